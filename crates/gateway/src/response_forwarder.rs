//! The body of an answer on its way to the engine: checked and passed on byte for byte as it comes,
//! held only until the answering model has said its name. One that holds the credential is cut. The
//! body of an error waits until all of it was looked at.

use std::io;

use cto_core::values::digest::Hasher;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::answers::{AnswerReader, outcome_of};
use cto_core::wire::calls::{CallRecord, Outcome, RefusalReason};
use cto_core::wire::http::headers::passes_down;
use cto_core::wire::http::path::PathClass;
use cto_core::wire::http::{BodyReader, ResponseHead};
use cto_core::wire::watch::Watch;

use super::Route;
use super::call_context::{Broken, CallContext, PIECE};
use super::exchange::Known;
use super::spill_buffer::SpillBuffer;
use crate::endpoint_side::upstream::Upstream;

/// How much of the body of an error is passed on.
const MAX_ERROR_BODY: usize = 1 << 20;

pub struct Whole {
    pub keep_alive: bool,
    pub may_be_used_again: bool,
}

/// Passes one answer on and remembers what the record of its call needs.
pub struct ResponseForwarder<'a> {
    route: &'a Route,
    status: u16,
    headers: Vec<(String, String)>,
    body: BodyReader,
    reader: AnswerReader,
    known: &'a Known,
    watch: Watch<'a>,
    /// The body of an error, as far as it may be passed on.
    error: Vec<u8>,
    hasher: Hasher,
    bytes: u64,
    is_success: bool,
    /// Must the answer say which model gave it?
    needs_model: bool,
    /// Bytes that wait until it has.
    held: Option<SpillBuffer>,
}

impl<'a> ResponseForwarder<'a> {
    pub fn new(
        route: &'a Route,
        path: PathClass,
        head: &ResponseHead,
        is_success: bool,
        known: &'a Known,
    ) -> Self {
        let needs_model = is_success && path == PathClass::Generate;
        let holds_none = |value: &str| !is_known(known, value.as_bytes());
        let pass = head
            .headers
            .iter()
            .filter(|(name, value)| passes_down(name) && holds_none(value));
        Self {
            route,
            status: head.status,
            headers: pass
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            body: BodyReader::new(head.body),
            reader: AnswerReader::new(route.protocol, head.is_event_stream()),
            known,
            watch: Watch::new(&known.in_answers),
            error: Vec::new(),
            hasher: Hasher::default(),
            bytes: 0,
            is_success,
            needs_model,
            held: needs_model.then(SpillBuffer::default),
        }
    }

    pub fn carry(
        &mut self,
        context: &mut CallContext<'_, '_>,
        call: &mut CallRecord,
        upstream: &mut Upstream,
        rest: Vec<u8>,
    ) -> Result<Whole, Broken> {
        if self.held.is_none() && self.is_success {
            context.reply.begin(self.status, &self.headers);
        }
        let mut buffer = rest;
        let mut filled = buffer.len();
        let mut left_over = false;
        loop {
            let said_all = self.has_said_all();
            if filled > 0 {
                let used = match self.take(context, &buffer[..filled]) {
                    // It had all of the answer when it left.
                    Err(Broken(Outcome::EngineClosed, _)) if said_all => break,
                    taken => taken?,
                };
                left_over = used < filled;
            }
            // Of an error no more is read than may be passed on.
            if self.body.is_done() || self.error.len() > MAX_ERROR_BODY {
                break;
            }
            buffer.resize(PIECE, 0);
            filled = match self.read(context, upstream, &mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                // What is missing of an error changes nothing of its status.
                Err(Broken(Outcome::Truncated | Outcome::Transport | Outcome::Stalled, _))
                    if !self.is_success =>
                {
                    break;
                }
                // After the protocol's own end nothing is missing, whoever hangs up how.
                Err(Broken(
                    Outcome::Truncated
                    | Outcome::Transport
                    | Outcome::Stalled
                    | Outcome::EngineClosed,
                    _,
                )) if self.has_said_all() => break,
                Err(broken) => return Err(broken),
            };
        }
        let is_done = self.body.is_done();
        let keep_alive = self.finish(context, call)?;
        Ok(Whole {
            keep_alive,
            may_be_used_again: is_done && !left_over,
        })
    }

    /// Has a stream come to the end that its protocol writes itself, `[DONE]` and the like? A document
    /// has none: its end is that of the body.
    fn has_said_all(&self) -> bool {
        self.is_success && self.reader.answer.ended && !self.reader.answer.garbled
    }

    /// A connection that breaks inside an answer means a truncated answer, not an unreachable
    /// endpoint.
    fn read(
        &self,
        context: &mut CallContext<'_, '_>,
        upstream: &mut Upstream,
        buffer: &mut [u8],
    ) -> Result<usize, Broken> {
        match context.read(upstream, buffer) {
            Err(Broken(Outcome::Transport, Some(RefusalReason::Reset))) if self.bytes > 0 => {
                Err(Broken(Outcome::Truncated, None))
            }
            other => other,
        }
    }

    /// Checks what came before any of it is passed on.
    fn take(&mut self, context: &mut CallContext<'_, '_>, bytes: &[u8]) -> Result<usize, Broken> {
        let Self {
            body,
            reader,
            hasher,
            watch,
            error,
            is_success,
            bytes: total,
            ..
        } = self;
        let mut leaked = false;
        let mut out = Vec::with_capacity(bytes.len() + 16);
        let mut fresh = 0u64;
        let used = body.push(bytes, &mut |piece| {
            hasher.update(piece);
            reader.push(piece);
            if *is_success {
                leaked |= watch.push(piece, &mut out);
            } else {
                let room = MAX_ERROR_BODY + 1 - error.len();
                error.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            fresh += piece.len() as u64;
        });
        *total += fresh;
        if leaked {
            return Err(RefusalReason::CredentialInAnswer.into());
        }
        if self.is_success && self.is_other_model() {
            return Err(Broken(Outcome::WrongModel, Some(RefusalReason::OtherName)));
        }
        let used = used.map_err(|_| match self.bytes {
            0 => Broken::from(RefusalReason::Garbled),
            _ => Broken(Outcome::Truncated, None),
        })?;
        context
            .ledger
            .moved(fresh)
            .map_err(|why| Broken(Outcome::Budget, Some(why)))?;
        if self.is_success {
            self.pass(context, &out)?;
        }
        Ok(used)
    }

    fn is_other_model(&self) -> bool {
        let answer = &self.reader.answer;
        !self.route.any_name && answer.other_model(&self.route.model, &self.route.aliases)
    }

    fn pass(&mut self, context: &mut CallContext<'_, '_>, out: &[u8]) -> Result<(), Broken> {
        let gone = |_: io::Error| Broken(Outcome::EngineClosed, None);
        let Some(held) = &mut self.held else {
            context.reply.data(out);
            return context.reply.flush().map_err(gone);
        };
        let unnamed = self.reader.answer.models.is_empty();
        if unnamed && self.reader.answer.garbled {
            return Err(RefusalReason::Garbled.into());
        }
        if unnamed {
            if !held.has_room(out.len()) {
                return Err(Broken(Outcome::WrongModel, Some(RefusalReason::NoName)));
            }
            return held.push(out).map_err(|_| RefusalReason::Garbled.into());
        }
        self.release(context)?;
        context.reply.data(out);
        context.reply.flush().map_err(gone)
    }

    /// Sends the bytes that waited.
    fn release(&mut self, context: &mut CallContext<'_, '_>) -> Result<(), Broken> {
        let Some(mut held) = self.held.take() else {
            return Ok(());
        };
        context.reply.begin(self.status, &self.headers);
        let reply = &mut *context.reply;
        held.each(&mut |piece| {
            reply.data(piece);
            if is_large(piece) {
                reply.flush()
            } else {
                Ok(())
            }
        })
        .map_err(|_| Broken(Outcome::EngineClosed, None))
    }

    fn finish(
        &mut self,
        context: &mut CallContext<'_, '_>,
        call: &mut CallRecord,
    ) -> Result<bool, Broken> {
        let said_all = self.has_said_all();
        self.reader.finish();
        let whole = self.body.closed_well() || said_all;
        let answer = &self.reader.answer;
        if self.is_success && self.is_other_model() {
            return Err(Broken(Outcome::WrongModel, Some(RefusalReason::OtherName)));
        }
        let (outcome, why) = outcome_of(self.status, answer, whole, self.needs_model);
        call.ended(outcome, why);
        if !self.is_success {
            return Ok(self.pass_error(context, call, whole));
        }
        let mut rest = Vec::new();
        if self.watch.finish(&mut rest) {
            return Err(RefusalReason::CredentialInAnswer.into());
        }
        // An error inside an answer that names no model is the engine's to read; anything else
        // unnamed is not.
        let named = !answer.models.is_empty();
        let only_an_error = answer.error.is_some()
            && !answer.content
            && !answer.reasoning
            && answer.tool_calls == 0;
        if self.held.is_some() && !named && (!only_an_error || self.held_is_private(&rest)) {
            return Err(Broken(outcome, why));
        }
        call.tokens = self.reader.answer.tokens;
        call.response_bytes = self.bytes;
        context.ledger.count_tokens(call);
        self.release(context)?;
        context.reply.data(&rest);
        if !whole || matches!(outcome, Outcome::Truncated | Outcome::Transport) {
            return Err(Broken(outcome, why));
        }
        Ok(context.reply.end())
    }

    /// An error keeps its status. Its body passes as it came, unless something in it is not the
    /// engine's to know.
    fn pass_error(
        &mut self,
        context: &mut CallContext<'_, '_>,
        call: &mut CallRecord,
        whole: bool,
    ) -> bool {
        let body = std::mem::take(&mut self.error);
        let whole = whole && body.len() <= MAX_ERROR_BODY;
        context.reply.hear(&body, whole);
        if Watch::sees(&self.known.in_errors, &body) {
            call.why = Some(RefusalReason::CredentialInAnswer);
        }
        let may_pass = whole && !is_known(self.known, &body);
        if may_pass {
            context.reply.begin(self.status, &self.headers);
            context.reply.data(&body);
            return context.reply.end();
        }
        context
            .reply
            .withheld(self.status, &self.headers, call.outcome)
    }

    /// Does what waits say where the endpoint is? Read again: it is short, or in a file.
    fn held_is_private(&mut self, rest: &[u8]) -> bool {
        let mut watch = Watch::new(&self.known.private);
        let mut found = false;
        let read = self.held.as_mut().map_or(Ok(()), |held| {
            held.each(&mut |piece| {
                found |= watch.push(piece, &mut Vec::new());
                Ok(())
            })
        });
        let mut out = Vec::new();
        found || watch.push(rest, &mut out) || watch.finish(&mut out) || read.is_err()
    }

    pub fn into_record(self, call: &mut CallRecord) {
        let patterns = &self.known.patterns;
        let answer = self.reader.answer;
        call.response_bytes = self.bytes;
        call.response_sha256 = MaybeKnown::Known(self.hasher.finish());
        call.tokens = answer.tokens;
        call.content = answer.content;
        call.reasoning = answer.reasoning;
        call.tool_calls = answer.tool_calls;
        let told = |text: &str| MaybeKnown::Known(patterns.masked(text));
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

/// Does a text hold the credential, or what is private of the endpoint?
pub fn is_known(known: &Known, text: &[u8]) -> bool {
    Watch::sees(&known.in_errors, text) || Watch::sees(&known.private, text)
}

/// Large enough to be sent by itself: it comes from the file of a buffer.
fn is_large(piece: &[u8]) -> bool {
    piece.len() >= PIECE
}
