//! Writes answers to the engine: the answer of the endpoint as it comes, or a typed error. Neither
//! says where the endpoint is.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use cto_core::wire::Protocol;
use cto_core::wire::calls::{Outcome, RefusalReason};
use cto_core::wire::http::{Version, reason};
use serde_json::json;

/// Stands for the words of an error that are not passed on.
const WITHHELD: &str = "the model endpoint answered with an error whose words are not passed on";

/// The body of an error, as it came. It is for a person, and nothing of it may be shown before it was masked.
#[derive(Default)]
pub struct HeardError {
    pub body: Vec<u8>,
    /// Did all of it come, and was all of it kept?
    pub whole: bool,
}

/// An answer on its way to the engine; without a socket it goes nowhere, for a probe.
pub struct Reply<'a> {
    socket: Option<&'a TcpStream>,
    /// In the place of an engine: its other end is closed by whoever gives up.
    leash: Option<&'a UnixStream>,
    /// The body of an error, where nobody but a person is told of it.
    heard: HeardError,
    protocol: Protocol,
    chunked: bool,
    keep_alive: bool,
    pub begun: bool,
    waiting: Vec<u8>,
}

impl<'a> Reply<'a> {
    pub fn new(
        socket: &'a TcpStream,
        protocol: Protocol,
        version: Version,
        keep_alive: bool,
    ) -> Self {
        let chunked = version == Version::Http11;
        Self {
            socket: Some(socket),
            leash: None,
            heard: HeardError::default(),
            protocol,
            chunked,
            keep_alive,
            begun: false,
            waiting: Vec::new(),
        }
    }

    pub fn to_nobody(protocol: Protocol, leash: Option<&'a UnixStream>) -> Self {
        Self {
            socket: None,
            leash,
            heard: HeardError::default(),
            protocol,
            chunked: true,
            keep_alive: false,
            begun: false,
            waiting: Vec::new(),
        }
    }

    /// What is watched while waiting for the endpoint: the socket of the engine, or the leash.
    pub fn engine(&self) -> Option<BorrowedFd<'a>> {
        self.socket
            .map(AsFd::as_fd)
            .or_else(|| self.leash.map(AsFd::as_fd))
    }

    /// Keeps an error's body for whoever asked without an engine. It is not cut here: half a credential is none that
    /// a masker knows.
    pub fn hear(&mut self, body: &[u8], whole: bool) {
        if self.socket.is_none() {
            self.heard = HeardError {
                body: body.to_vec(),
                whole,
            };
        }
    }

    pub fn into_heard(self) -> HeardError {
        self.heard
    }

    /// The head of an answer whose length is not known.
    pub fn begin(&mut self, status: u16, headers: &[(String, String)]) {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            // Writing to a String cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if self.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str(self.connection());
        head.push_str("\r\n");
        self.waiting.extend_from_slice(head.as_bytes());
        self.begun = true;
    }

    fn connection(&self) -> &'static str {
        if self.keep_alive && self.chunked {
            ""
        } else {
            "connection: close\r\n"
        }
    }

    pub fn data(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if !self.chunked {
            return self.waiting.extend_from_slice(bytes);
        }
        // Writing to a Vec cannot fail.
        let _ = write!(self.waiting, "{:x}\r\n", bytes.len());
        self.waiting.extend_from_slice(bytes);
        self.waiting.extend_from_slice(b"\r\n");
    }

    /// Writes everything so far in one piece.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let sent = self
            .socket
            .map_or(Ok(()), |mut socket| socket.write_all(&self.waiting));
        self.waiting.clear();
        sent
    }

    /// Ends a whole answer. Returns whether another request may follow.
    pub fn end(&mut self) -> bool {
        if self.chunked {
            self.waiting.extend_from_slice(b"0\r\n\r\n");
        }
        self.flush().is_ok() && self.keep_alive && self.chunked
    }

    /// Answers with an error. An answer that has begun is left without its end instead, which no
    /// client takes for a whole one.
    pub fn fail(&mut self, outcome: Outcome, why: Option<RefusalReason>) -> bool {
        if self.begun {
            let _ = self.flush();
            return false;
        }
        let message = why.map_or("the model call failed", RefusalReason::sentence);
        self.explain(status_of(outcome, why), outcome, why, message)
    }

    /// Answers with the status of an error and, instead of its words, a sentence of ours.
    pub fn withheld(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        outcome: Outcome,
    ) -> bool {
        let json = [("content-type".to_owned(), "application/json".to_owned())];
        let kept = headers.iter().filter(|(name, _)| name != "content-type");
        let headers: Vec<_> = kept.cloned().chain(json).collect();
        self.begin(status, &headers);
        self.data(error_body(self.protocol, status, outcome, None, WITHHELD).as_bytes());
        self.end()
    }

    /// Says why a request is not passed on and, where one is to blame, by which field of it.
    pub fn refuse(&mut self, outcome: Outcome, why: RefusalReason, field: Option<&str>) -> bool {
        let message = match field {
            Some(field) => format!("{}: {field}", why.sentence()),
            None => why.sentence().to_owned(),
        };
        self.explain(status_of(outcome, Some(why)), outcome, Some(why), &message)
    }

    fn explain(
        &mut self,
        status: u16,
        outcome: Outcome,
        why: Option<RefusalReason>,
        message: &str,
    ) -> bool {
        let body = error_body(self.protocol, status, outcome, why, message);
        let again = retry_helps(outcome) && why != Some(RefusalReason::CredentialInAnswer);
        self.document(status, &body, !again)
    }

    /// Writes a short JSON document. A final one tells the engine not to try again.
    pub fn document(&mut self, status: u16, body: &str, is_final: bool) -> bool {
        let head = format!(
            "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{}{}\r\n{body}",
            reason(status),
            body.len(),
            if is_final {
                "x-should-retry: false\r\n"
            } else {
                ""
            },
            self.connection(),
        );
        self.begun = true;
        self.waiting.extend_from_slice(head.as_bytes());
        self.flush().is_ok() && self.keep_alive && self.chunked
    }
}

fn retry_helps(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Transport | Outcome::Stalled | Outcome::Truncated | Outcome::Ok
    )
}

fn status_of(outcome: Outcome, why: Option<RefusalReason>) -> u16 {
    match (outcome, why) {
        (Outcome::Budget, _) | (_, Some(RefusalReason::TooManyRequests)) => 429,
        (Outcome::Stalled, _) => 504,
        (Outcome::Refused, Some(why)) => match why {
            RefusalReason::BadToken => 401,
            RefusalReason::BadPath => 404,
            RefusalReason::BadMethod => 405,
            RefusalReason::SlowRequest => 408,
            RefusalReason::BodyTooLong => 413,
            RefusalReason::EncodedBody => 415,
            RefusalReason::Expectation => 417,
            RefusalReason::HeadTooLong => 431,
            _ => 400,
        },
        _ => 502,
    }
}

fn error_body(
    protocol: Protocol,
    status: u16,
    outcome: Outcome,
    why: Option<RefusalReason>,
    message: &str,
) -> String {
    let code = why.map_or_else(|| outcome.as_str().to_owned(), RefusalReason::word);
    let kind = format!("cto_{}", outcome.as_str());
    let body = match protocol {
        Protocol::GeminiGenerate => {
            json!({"error": {"code": status, "message": message, "status": kind, "details": [{"reason": code}]}})
        }
        _ => json!({"type": "error", "error": {"type": kind, "code": code, "message": message}}),
    };
    body.to_string()
}

/// A list that holds the one admitted model, in the protocol's shape.
pub fn model_list(protocol: Protocol, model: &str) -> String {
    let body = match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => {
            json!({"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "admitted"}]})
        }
        Protocol::AnthropicMessages => json!({
            "data": [{"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}],
            "has_more": false, "first_id": model, "last_id": model,
        }),
        Protocol::GeminiGenerate => json!({"models": [{
            "name": format!("models/{model}"), "displayName": model,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }]}),
    };
    body.to_string()
}
