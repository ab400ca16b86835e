//! One call: sends a checked request to the endpoint and waits for the head of its answer. What is
//! done with the answer's body is in `response_forwarder`.

use std::io;
use std::time::Instant;

use cto_core::values::seen::Seen;
use cto_core::wire::calls::{CallRecord, Outcome, Why};
use cto_core::wire::http::{ResponseHead, response_head};
use cto_core::wire::mask::Needles;

use super::Route;
use super::hold::Hold;
use super::ledger::Ledger;
use super::line::{Broken, Line, PIECE, micros};
use super::reply::Reply;
use super::response_forwarder::ResponseForwarder;
use super::upstream::{Pool, Upstream};

const MAX_INTERIM: usize = 8;

/// A request as it goes to the endpoint.
pub struct Outbound<'a> {
    /// With the credential in it: it goes to the wire and nowhere else.
    pub head: String,
    pub body: &'a mut Hold,
}

/// What the calls of a run share.
pub struct Exchange {
    pub pool: Pool,
    /// What must not be in an answer, and what must not be in an error.
    in_answers: Needles,
    in_errors: Needles,
}

/// Shorter than this a credential is a common word, and is taken out of errors only.
const MIN_TELLING: usize = 8;

impl Exchange {
    pub fn new(route: &Route) -> Self {
        let key = route
            .credential
            .as_ref()
            .map(|credential| credential.reveal().as_bytes().to_vec())
            .unwrap_or_default();
        let tells: Vec<Vec<u8>> = route
            .endpoint
            .tells()
            .into_iter()
            .map(String::into_bytes)
            .collect();
        let telling_key = if key.len() >= MIN_TELLING {
            key.clone()
        } else {
            Vec::new()
        };
        Self {
            pool: Pool::default(),
            in_answers: Needles::new(tells.iter().cloned().chain([telling_key])),
            in_errors: Needles::new(tells.into_iter().chain([key])),
        }
    }

    /// Makes the call and tells the engine; whether another request may follow on its connection.
    pub fn run(
        &self,
        route: &Route,
        ledger: &Ledger,
        call: &mut CallRecord,
        request: Outbound<'_>,
        reply: &mut Reply<'_>,
    ) -> bool {
        let mut line = Line {
            route,
            ledger,
            reply,
            sent: Instant::now(),
        };
        let arrived = self.send(&mut line, call, request);
        let ended = arrived
            .and_then(|(upstream, head, rest)| self.answer(&mut line, call, upstream, &head, rest));
        match ended {
            Ok(keep_alive) => keep_alive,
            Err(Broken(outcome, why)) => {
                call.ended(outcome, why);
                if outcome == Outcome::EngineClosed {
                    return false;
                }
                reply.fail(outcome, why)
            }
        }
    }

    /// A connection with the head of an answer on it. One that was idle may turn out closed: then,
    /// and only when nothing at all came back, a new one is made.
    fn send(
        &self,
        line: &mut Line<'_, '_>,
        call: &mut CallRecord,
        mut request: Outbound<'_>,
    ) -> Result<(Upstream, ResponseHead, Vec<u8>), Broken> {
        if let Some(mut upstream) = self.pool.take() {
            match ask(line, call, &mut upstream, &mut request) {
                Ok((head, rest)) => return Ok((upstream, head, rest)),
                Err(Broken(Outcome::Transport, Some(Why::Reset)))
                    if call.first_byte_us == Seen::NotSeen => {}
                Err(broken) => return Err(broken),
            }
        }
        let mut upstream = Upstream::connect(&line.route.endpoint, &line.route.patience)?;
        let (head, rest) = ask(line, call, &mut upstream, &mut request)?;
        Ok((upstream, head, rest))
    }

    fn answer(
        &self,
        line: &mut Line<'_, '_>,
        call: &mut CallRecord,
        mut upstream: Upstream,
        head: &ResponseHead,
        rest: Vec<u8>,
    ) -> Result<bool, Broken> {
        call.status = Seen::Known(head.status);
        if (300..400).contains(&head.status) {
            return Err(Broken(Outcome::Redirected, None));
        }
        if head
            .headers
            .all("content-encoding")
            .any(|coding| !coding.eq_ignore_ascii_case("identity"))
        {
            return Err(Why::EncodedAnswer.into());
        }
        let is_success = (200..300).contains(&head.status);
        let needles = if is_success {
            &self.in_answers
        } else {
            &self.in_errors
        };
        let mut forwarder =
            ResponseForwarder::new(line.route, call.path, head, is_success, needles);
        let done = forwarder.carry(line, call, &mut upstream, rest);
        forwarder.into_record(call, needles);
        let whole = done?;
        if whole.may_be_used_again && head.keeps_alive() {
            self.pool.put(upstream);
        }
        Ok(whole.keep_alive)
    }
}

/// Sends a request and waits for the head of its answer; returns what came behind the head.
fn ask(
    line: &mut Line<'_, '_>,
    call: &mut CallRecord,
    upstream: &mut Upstream,
    request: &mut Outbound<'_>,
) -> Result<(ResponseHead, Vec<u8>), Broken> {
    let mut first = Some(request.head.as_bytes().to_vec());
    let sent = request.body.each(&mut |piece| match first.take() {
        Some(mut head) => {
            head.extend_from_slice(piece);
            upstream.send(&head)
        }
        None => upstream.send(piece),
    });
    if sent.is_err_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
        )
    }) {
        return Err(Broken(Outcome::Stalled, None));
    }
    line.sent = Instant::now();
    let mut got = Vec::with_capacity(PIECE);
    let mut buffer = vec![0u8; PIECE];
    let mut interim = 0;
    loop {
        match response_head(&got).map_err(|_| Why::Garbled)? {
            // 101 would be another protocol; other interim answers say nothing.
            Some((head, used)) if (100..200).contains(&head.status) => {
                interim += 1;
                if head.status == 101 || interim > MAX_INTERIM {
                    return Err(Why::Garbled.into());
                }
                got.drain(..used);
                continue;
            }
            Some((head, used)) => {
                got.drain(..used);
                return Ok((head, got));
            }
            None => {}
        }
        // Not all of the request may have gone out: an early refusal is there to read all the same.
        let n = line.read(upstream, &mut buffer)?;
        if n == 0 {
            return Err(if got.is_empty() {
                Why::Reset
            } else {
                Why::Garbled
            }
            .into());
        }
        if call.first_byte_us == Seen::NotSeen {
            call.first_byte_us = Seen::Known(micros(line.sent));
        }
        got.extend_from_slice(&buffer[..n]);
    }
}
