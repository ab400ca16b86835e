//! The body of an answer on its way to the engine: checked, masked and passed on as it comes, held
//! only until the answering model has said its name.

use std::io;

use cto_core::values::digest::Hasher;
use cto_core::values::seen::Seen;
use cto_core::wire::answers::{AnswerReader, outcome_of};
use cto_core::wire::calls::{CallRecord, Outcome, Why};
use cto_core::wire::http::headers::passes_down;
use cto_core::wire::http::path::PathClass;
use cto_core::wire::http::{BodyReader, ResponseHead};
use cto_core::wire::mask::{Masker, Needles};

use super::Route;
use super::hold::Hold;
use super::line::{Broken, Line, PIECE};
use super::upstream::Upstream;

/// Of the body of an answer that is an error.
const MAX_ERROR_BODY: u64 = 1 << 20;

pub struct Whole {
    pub keep_alive: bool,
    pub may_be_used_again: bool,
}

/// An answer's body on its way through.
pub struct ResponseForwarder<'a> {
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

impl<'a> ResponseForwarder<'a> {
    pub fn new(
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

    pub fn carry(
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

    pub fn into_record(self, call: &mut CallRecord, needles: &Needles) {
        let answer = self.reader.answer;
        call.response_bytes = self.bytes;
        call.response_sha256 = Seen::Known(self.hasher.finish());
        call.tokens = answer.tokens;
        call.content = answer.content;
        call.reasoning = answer.reasoning;
        call.tool_calls = answer.tool_calls;
        let told = |text: &str| Seen::Known(needles.masked(text));
        call.finish_reason = answer.finish_reason.as_deref().map_or(Seen::NotSeen, told);
        // Of several names the one that is not admitted matters.
        let foreign = answer
            .models
            .iter()
            .find(|name| **name != self.route.model && !self.route.aliases.contains(name));
        call.model_answered = foreign
            .or(answer.models.first())
            .map_or(Seen::NotSeen, |name| told(name));
    }
}

/// Does it come from a file, in pieces?
fn held_is_large(piece: &[u8]) -> bool {
    piece.len() >= PIECE
}
