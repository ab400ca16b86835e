//! One call: a checked request to the endpoint, its answer back as it comes, held only until the
//! answering model has said its name.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use cto_core::values::digest::Hasher;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::answers::{AnswerReader, outcome_of};
use cto_core::wire::calls::{CallRecord, Outcome, Why};
use cto_core::wire::http::headers::passes_down;
use cto_core::wire::http::path::PathClass;
use cto_core::wire::http::{BodyReader, ResponseHead, response_head};
use cto_core::wire::mask::{Masker, Needles};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Route;
use super::hold::Hold;
use super::ledger::Ledger;
use super::reply::Reply;
use super::upstream::{Pool, Upstream};

const PIECE: usize = 16 * 1024;
/// Of the body of an answer that is an error.
const MAX_ERROR_BODY: u64 = 1 << 20;
const MAX_INTERIM: usize = 8;

/// Why a call ended before its answer did.
pub struct Broken(Outcome, Option<Why>);

impl From<Why> for Broken {
    fn from(why: Why) -> Self {
        Self(Outcome::Transport, Some(why))
    }
}

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
                    if call.first_byte_us == MaybeKnown::NotLookedAt => {}
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
        call.status = MaybeKnown::Known(head.status);
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
        let mut passage = Passage::new(line.route, call.path, head, is_success, needles);
        let done = passage.carry(line, call, &mut upstream, rest);
        passage.into_record(call, needles);
        let whole = done?;
        if whole.may_be_used_again && head.keeps_alive() {
            self.pool.put(upstream);
        }
        Ok(whole.keep_alive)
    }
}

/// What a call needs of its surroundings.
struct Line<'a, 'b> {
    route: &'a Route,
    ledger: &'a Ledger,
    reply: &'a mut Reply<'b>,
    sent: Instant,
}

impl Line<'_, '_> {
    /// The next bytes of the endpoint; 0 at their end.
    fn read(&mut self, upstream: &mut Upstream, buffer: &mut [u8]) -> Result<usize, Broken> {
        let reset = |_: io::Error| Broken::from(Why::Reset);
        // Also where the endpoint never pauses.
        self.in_time()?;
        loop {
            if let Some(n) = upstream.buffered(buffer).map_err(reset)? {
                return Ok(n);
            }
            self.wait(upstream)?;
            if let Some(n) = upstream.receive(buffer).map_err(reset)? {
                return Ok(n);
            }
        }
    }

    fn in_time(&self) -> Result<(), Broken> {
        if !self.ledger.time_left().is_zero() {
            return Ok(());
        }
        self.ledger.out_of_time();
        Err(Broken(Outcome::Budget, Some(Why::Time)))
    }

    /// Until the endpoint has something to say, the engine goes away, or patience ends.
    fn wait(&self, upstream: &Upstream) -> Result<(), Broken> {
        let stall = self.route.patience.stall;
        let deadline = Instant::now() + stall.min(self.ledger.time_left());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = vec![PollFd::from_borrowed_fd(upstream.fd(), PollFlags::IN)];
            if let Some(engine) = self.reply.engine() {
                // Bytes of a next request may wait; only its going away counts.
                fds.push(PollFd::from_borrowed_fd(engine.as_fd(), PollFlags::RDHUP));
            }
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) => return self.in_time().and(Err(Broken(Outcome::Stalled, None))),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Err(Why::Reset.into()),
            }
            let ready = !fds[0].revents().is_empty();
            let gone = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            match (gone, ready) {
                (true, _) => return Err(Broken(Outcome::EngineClosed, None)),
                (false, true) => return Ok(()),
                (false, false) => {}
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

pub fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
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
        if call.first_byte_us == MaybeKnown::NotLookedAt {
            call.first_byte_us = MaybeKnown::Known(micros(line.sent));
        }
        got.extend_from_slice(&buffer[..n]);
    }
}

struct Whole {
    keep_alive: bool,
    may_be_used_again: bool,
}

/// An answer's body on its way through.
struct Passage<'a> {
    route: &'a Route,
    status: u16,
    headers: Vec<(String, String)>,
    body: BodyReader,
    reader: AnswerReader,
    masker: Masker<'a>,
    hasher: Hasher,
    bytes: u64,
    is_success: bool,
    /// Must the answer say which model gave it?
    needs_model: bool,
    /// What waits until it has.
    held: Option<Hold>,
}

impl<'a> Passage<'a> {
    fn new(
        route: &'a Route,
        path: PathClass,
        head: &ResponseHead,
        is_success: bool,
        needles: &'a Needles,
    ) -> Self {
        let needs_model = is_success && path == PathClass::Generate;
        let pass = head.headers.iter().filter(|(name, _)| passes_down(name));
        Self {
            route,
            status: head.status,
            headers: pass
                .map(|(name, value)| (name.to_owned(), needles.masked(value)))
                .collect(),
            body: BodyReader::new(head.body),
            reader: AnswerReader::new(route.protocol, head.is_event_stream()),
            masker: Masker::new(needles),
            hasher: Hasher::default(),
            bytes: 0,
            is_success,
            needs_model,
            held: needs_model.then(Hold::default),
        }
    }

    fn carry(
        &mut self,
        line: &mut Line<'_, '_>,
        call: &mut CallRecord,
        upstream: &mut Upstream,
        rest: Vec<u8>,
    ) -> Result<Whole, Broken> {
        if self.held.is_none() {
            line.reply.begin(self.status, &self.headers);
        }
        let mut buffer = rest;
        let mut filled = buffer.len();
        let mut left_over = false;
        loop {
            if filled > 0 {
                let used = self.take(line, &buffer[..filled])?;
                left_over = used < filled;
            }
            if self.body.is_done() {
                break;
            }
            buffer.resize(PIECE, 0);
            filled = match self.read(line, upstream, &mut buffer)? {
                0 => break,
                n => n,
            };
        }
        let is_done = self.body.is_done();
        let keep_alive = self.finish(line, call)?;
        Ok(Whole {
            keep_alive,
            may_be_used_again: is_done && !left_over,
        })
    }

    /// A connection that breaks inside an answer cuts it; that is told by what came of it.
    fn read(
        &self,
        line: &mut Line<'_, '_>,
        upstream: &mut Upstream,
        buffer: &mut [u8],
    ) -> Result<usize, Broken> {
        match line.read(upstream, buffer) {
            Err(Broken(Outcome::Transport, Some(Why::Reset))) if self.bytes > 0 => {
                Err(Broken(Outcome::Truncated, None))
            }
            other => other,
        }
    }

    /// Looks at what came before any of it goes on.
    fn take(&mut self, line: &mut Line<'_, '_>, bytes: &[u8]) -> Result<usize, Broken> {
        let Self {
            body,
            reader,
            hasher,
            masker,
            bytes: total,
            ..
        } = self;
        let mut out = Vec::with_capacity(bytes.len() + 16);
        let mut fresh = 0u64;
        let used = body.push(bytes, &mut |piece| {
            hasher.update(piece);
            reader.push(piece);
            masker.push(piece, &mut out);
            fresh += piece.len() as u64;
        });
        *total += fresh;
        if self.is_success
            && self
                .reader
                .answer
                .other_model(&self.route.model, &self.route.aliases)
        {
            return Err(Broken(Outcome::WrongModel, Some(Why::OtherName)));
        }
        let used = used.map_err(|_| match self.bytes {
            0 => Broken::from(Why::Garbled),
            _ => Broken(Outcome::Truncated, None),
        })?;
        line.ledger
            .moved(fresh)
            .map_err(|why| Broken(Outcome::Budget, Some(why)))?;
        if !self.is_success && self.bytes > MAX_ERROR_BODY {
            return Err(Broken(
                outcome_of(self.status, &self.reader.answer, false, false).0,
                None,
            ));
        }
        self.pass(line, &out)?;
        Ok(used)
    }

    fn pass(&mut self, line: &mut Line<'_, '_>, out: &[u8]) -> Result<(), Broken> {
        let gone = |_: io::Error| Broken(Outcome::EngineClosed, None);
        let Some(held) = &mut self.held else {
            line.reply.data(out);
            return line.reply.flush().map_err(gone);
        };
        let unnamed = self.reader.answer.models.is_empty();
        if unnamed && self.reader.answer.garbled {
            return Err(Why::Garbled.into());
        }
        if unnamed {
            if !held.has_room(out.len()) {
                return Err(Broken(Outcome::WrongModel, Some(Why::NoName)));
            }
            return held.push(out).map_err(|_| Why::Garbled.into());
        }
        self.release(line)?;
        line.reply.data(out);
        line.reply.flush().map_err(gone)
    }

    /// What waited goes on.
    fn release(&mut self, line: &mut Line<'_, '_>) -> Result<(), Broken> {
        let Some(mut held) = self.held.take() else {
            return Ok(());
        };
        line.reply.begin(self.status, &self.headers);
        let reply = &mut *line.reply;
        held.each(&mut |piece| {
            reply.data(piece);
            if held_is_large(piece) {
                reply.flush()
            } else {
                Ok(())
            }
        })
        .map_err(|_| Broken(Outcome::EngineClosed, None))
    }

    fn finish(&mut self, line: &mut Line<'_, '_>, call: &mut CallRecord) -> Result<bool, Broken> {
        self.reader.finish();
        let whole = self.body.closed_well();
        let answer = &self.reader.answer;
        if self.is_success && answer.other_model(&self.route.model, &self.route.aliases) {
            return Err(Broken(Outcome::WrongModel, Some(Why::OtherName)));
        }
        let (outcome, why) = outcome_of(self.status, answer, whole, self.needs_model);
        call.ended(outcome, why);
        // An error inside an answer that names no model is the engine's to read; anything else
        // unnamed is not.
        let named = !answer.models.is_empty();
        let only_an_error = answer.error.is_some()
            && !answer.content
            && !answer.reasoning
            && answer.tool_calls == 0;
        if self.held.is_some() && !named && !only_an_error {
            return Err(Broken(outcome, why));
        }
        self.release(line)?;
        let mut out = Vec::new();
        self.masker.finish(&mut out);
        line.reply.data(&out);
        if !whole || matches!(outcome, Outcome::Truncated | Outcome::Transport) {
            return Err(Broken(outcome, why));
        }
        Ok(line.reply.end())
    }

    fn into_record(self, call: &mut CallRecord, needles: &Needles) {
        let answer = self.reader.answer;
        call.response_bytes = self.bytes;
        call.response_sha256 = MaybeKnown::Known(self.hasher.finish());
        call.tokens = answer.tokens;
        call.content = answer.content;
        call.reasoning = answer.reasoning;
        call.tool_calls = answer.tool_calls;
        let told = |text: &str| MaybeKnown::Known(needles.masked(text));
        call.finish_reason = answer
            .finish_reason
            .as_deref()
            .map_or(MaybeKnown::NotLookedAt, told);
        // Of several names the one that is not admitted matters.
        let foreign = answer
            .models
            .iter()
            .find(|name| **name != self.route.model && !self.route.aliases.contains(name));
        call.model_answered = foreign
            .or(answer.models.first())
            .map_or(MaybeKnown::NotLookedAt, |name| told(name));
    }
}

/// Does it come from a file, in pieces?
fn held_is_large(piece: &[u8]) -> bool {
    piece.len() >= PIECE
}
