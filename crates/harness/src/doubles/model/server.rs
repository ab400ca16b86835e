//! The scripted model's side of HTTP: reads a request, plays the turn that is due.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use cto_core::values::digest::Digest;
use cto_core::wire::Protocol;
use cto_core::wire::http::{BodyReader, RequestHead, reason, request_head};
use cto_core::wire::scenario::{Turn, prior_turns};
use serde_json::{Value, json};

use super::{Playback, render};

const SECRET_HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
const HUGE_PIECE: u64 = 64 * 1024;

/// Requests of one connection until either side has enough.
pub fn serve(playback: &Playback, socket: &TcpStream) {
    let _ = socket.set_nodelay(true);
    let mut ahead = Vec::new();
    while let Ok(Some((head, body))) = next_request(socket, &mut ahead) {
        match answer(playback, socket, &head, &body) {
            Ok(true) if head.keeps_alive() && playback.scenario.leave_after.is_none() => {}
            _ => break,
        }
    }
    let _ = socket.shutdown(Shutdown::Both);
}

fn next_request(
    mut socket: &TcpStream,
    ahead: &mut Vec<u8>,
) -> io::Result<Option<(RequestHead, Vec<u8>)>> {
    let mut buffer = vec![0u8; 16 * 1024];
    let head = loop {
        if let Some((head, used)) = request_head(ahead).map_err(io::Error::other)? {
            ahead.drain(..used);
            break head;
        }
        match socket.read(&mut buffer)? {
            0 => return Ok(None),
            n => ahead.extend_from_slice(&buffer[..n]),
        }
    };
    let (mut reader, mut body) = (BodyReader::new(head.body), Vec::new());
    loop {
        let used = reader
            .push(ahead, &mut |bytes| body.extend_from_slice(bytes))
            .map_err(io::Error::other)?;
        ahead.drain(..used);
        if reader.is_done() {
            return Ok(Some((head, body)));
        }
        match socket.read(&mut buffer)? {
            0 => return Ok(None),
            n => ahead.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Plays one turn; whether the connection may go on.
fn answer(
    playback: &Playback,
    socket: &TcpStream,
    head: &RequestHead,
    body: &[u8],
) -> io::Result<bool> {
    let path = head.target.split('?').next().unwrap_or_default();
    let Some(protocol) = protocol_of(path) else {
        return match head.method == "GET" && path.ends_with("/models") {
            true if !playback.admits(head) => wrong_key(socket),
            true => whole(socket, 200, &list(&playback.scenario.models), &[]),
            false => whole(socket, 404, r#"{"error":{"message":"no such path"}}"#, &[]),
        };
    };
    let asked: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let request = playback.requests.fetch_add(1, Ordering::SeqCst) + 1;
    let prior = prior_turns(protocol, &asked);
    let in_path = path
        .rsplit('/')
        .next()
        .and_then(|last| last.split(':').next())
        .unwrap_or_default();
    let name = asked["model"].as_str().unwrap_or(in_path);
    playback.note(request, head, &asked, body, prior)?;
    if !playback.admits(head) {
        return wrong_key(socket);
    }
    let refused = playback.scenario.refuse_fields.iter();
    if let Some(field) = refused
        .into_iter()
        .find(|field| !asked[field.as_str()].is_null())
    {
        let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}});
        return whole(socket, 400, &error.to_string(), &[]);
    }
    if path.ends_with("/count_tokens") || path.ends_with(":countTokens") {
        return whole(
            socket,
            200,
            r#"{"input_tokens":100,"totalTokens":100}"#,
            &[],
        );
    }
    let turn = playback.scenario.choose(request, prior);
    let model = playback.scenario.model.as_deref().unwrap_or(name);
    if turn.hang_up {
        return Ok(false);
    }
    thread::sleep(Duration::from_millis(turn.first_ms));
    let headers: Vec<(&str, &str)> = turn
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    if let Some(status) = turn.status {
        return whole(socket, status, &turn.body, &headers);
    }
    let streams = asked["stream"] == json!(true) || path.ends_with(":streamGenerateContent");
    let mut play = Play::begin(socket, &turn, streams, &headers)?;
    match (&turn.garbage, streams) {
        (Some(garbage), _) => play.piece(garbage.as_bytes())?,
        (None, true) => play.stream(&render::stream(protocol, &turn, model, request))?,
        (None, false) => {
            play.piece(render::document(protocol, &turn, model, request).as_bytes())?
        }
    }
    play.end()
}

fn wrong_key(socket: &TcpStream) -> io::Result<bool> {
    let error = json!({"type": "error", "error": {"type": "authentication_error", "code": "invalid_api_key", "message": "wrong key"}});
    whole(socket, 401, &error.to_string(), &[])
}

/// Good for every protocol: each reads the fields it knows.
fn list(models: &[String]) -> String {
    let data: Vec<Value> = models
        .iter()
        .map(|name| json!({"id": name, "object": "model", "type": "model"}))
        .collect();
    json!({"object": "list", "data": data, "has_more": false}).to_string()
}

fn protocol_of(path: &str) -> Option<Protocol> {
    match path {
        _ if path.ends_with("/chat/completions") => Some(Protocol::OpenaiChat),
        _ if path.ends_with("/responses") => Some(Protocol::OpenaiResponses),
        _ if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") => {
            Some(Protocol::AnthropicMessages)
        }
        _ if path.contains(":generateContent")
            || path.contains(":streamGenerateContent")
            || path.ends_with(":countTokens") =>
        {
            Some(Protocol::GeminiGenerate)
        }
        _ => None,
    }
}

fn shows(head: &RequestHead, key: &str) -> bool {
    let bare = |value: &str| value.strip_prefix("Bearer ").unwrap_or(value) == key;
    SECRET_HEADERS
        .iter()
        .any(|name| head.headers.one(name).is_some_and(bare))
}

fn whole(
    mut socket: &TcpStream,
    status: u16,
    body: &str,
    headers: &[(&str, &str)],
) -> io::Result<bool> {
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-length: {}\r\n",
        reason(status),
        body.len()
    );
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        head.push_str("content-type: application/json\r\n");
    }
    headers
        .iter()
        .for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    socket.write_all(format!("{head}\r\n{body}").as_bytes())?;
    Ok(true)
}

impl Playback {
    fn admits(&self, head: &RequestHead) -> bool {
        self.scenario
            .key
            .as_ref()
            .is_none_or(|key| shows(head, key))
    }

    /// One line for each request; what authenticates is named, never written.
    fn note(
        &self,
        request: u64,
        head: &RequestHead,
        asked: &Value,
        body: &[u8],
        prior: u64,
    ) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let shown = |(name, value): (&str, &str)| {
            let value = if SECRET_HEADERS.contains(&name) {
                "(hidden)"
            } else {
                value
            };
            (name.to_owned(), json!(value))
        };
        let headers: serde_json::Map<String, Value> = head.headers.iter().map(shown).collect();
        let line = json!({
            "request": request, "method": head.method, "target": head.target, "headers": headers, "prior_turns": prior,
            "body": asked, "body_sha256": Digest::of(body),
        });
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.write_all(format!("{line}\n").as_bytes())
    }
}

/// A body on its way out, and what the turn wants to go wrong with it.
struct Play<'a> {
    socket: &'a TcpStream,
    turn: &'a Turn,
    chunked: bool,
    pieces: u64,
    bytes: u64,
    begun: Instant,
    /// The scenario has ended this answer.
    over: bool,
}

impl<'a> Play<'a> {
    fn begin(
        mut socket: &'a TcpStream,
        turn: &'a Turn,
        streams: bool,
        headers: &[(&str, &str)],
    ) -> io::Result<Self> {
        let kind = if streams {
            "text/event-stream"
        } else {
            "application/json"
        };
        let framing = if turn.until_close {
            "connection: close\r\n"
        } else {
            "transfer-encoding: chunked\r\n"
        };
        let mut head = format!("HTTP/1.1 200 OK\r\n{framing}");
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            head.push_str(&format!("content-type: {kind}\r\n"));
        }
        headers
            .iter()
            .for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        socket.write_all(format!("{head}\r\n").as_bytes())?;
        Ok(Self {
            socket,
            turn,
            chunked: !turn.until_close,
            pieces: 0,
            bytes: 0,
            begun: Instant::now(),
            over: false,
        })
    }

    fn stream(&mut self, rendered: &render::Rendered) -> io::Result<()> {
        for piece in &rendered.opening {
            self.piece(piece.as_bytes())?;
        }
        let mut round = 0;
        while !self.over && (self.turn.endless || round < self.turn.repeat) {
            for piece in &rendered.text {
                self.piece(piece.as_bytes())?;
            }
            round += 1;
            if rendered.text.is_empty() {
                break;
            }
        }
        if self.turn.huge_line > 0 {
            self.huge_line(&rendered.around_text)?;
        }
        for piece in &rendered.closing {
            self.piece(piece.as_bytes())?;
        }
        Ok(())
    }

    fn huge_line(&mut self, (before, after): &(String, String)) -> io::Result<()> {
        self.piece(before.as_bytes())?;
        let mut left = self.turn.huge_line;
        while left > 0 && !self.over {
            let size = left.min(HUGE_PIECE);
            self.piece(&vec![b'a'; usize::try_from(size).unwrap_or(0)])?;
            left -= size;
        }
        self.piece(after.as_bytes())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        if self.turn.silent_after == Some(self.pieces) {
            self.over = true;
            // Until the other side leaves.
            let _ = self.socket.read(&mut [0u8; 1]);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if self.turn.drop_after == Some(self.pieces) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.keep_time();
        let room = self
            .turn
            .drop_after_bytes
            .map_or(u64::MAX, |limit| limit.saturating_sub(self.bytes));
        let sent = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.write(&bytes[..sent])?;
        self.pieces += 1;
        self.bytes += sent as u64;
        if sent < bytes.len() {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }

    /// Pieces come at their time, however long the one before took.
    fn keep_time(&self) {
        let due = Duration::from_millis(self.turn.latency_ms.saturating_mul(self.pieces + 1));
        thread::sleep(due.saturating_sub(self.begun.elapsed()));
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.chunked {
            return self.socket.write_all(bytes);
        }
        let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
        self.socket.write_all(&out)
    }

    fn end(mut self) -> io::Result<bool> {
        if self.turn.silent_after == Some(self.pieces) || self.turn.drop_after == Some(self.pieces)
        {
            self.piece(b"")?;
        }
        if self.chunked {
            self.socket.write_all(b"0\r\n\r\n")?;
        }
        Ok(self.chunked)
    }
}
