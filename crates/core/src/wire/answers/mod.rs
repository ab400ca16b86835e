//! What an answer holds, read as it passes: which model gave it, whether there is content, how it
//! ended. The bytes themselves are not kept. The paths of each protocol are in `readings.rs`.

pub mod readings;

use super::Protocol;
use super::calls::{Outcome, RefusalReason, TokenCounts};
use super::json_scan::{Rigour, Scanner};
use crate::values::maybe_known::MaybeKnown;
use crate::wire::http::sse::{Events, Part};
use readings::Event;

const DONE: &[u8] = b"[DONE]";
const MAX_NAMES: usize = 4;
const MAX_IDS: usize = 4096;

/// What has been seen of an answer so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// Every different name under which a model answered; more than a few are not kept.
    pub models: Vec<String>,
    pub content: bool,
    pub reasoning: bool,
    pub tool_calls: u64,
    pub tokens: TokenCounts,
    pub finish_reason: Option<String>,
    pub error: Option<ErrorKind>,
    /// The protocol's own end has come.
    pub ended: bool,
    /// Something came that is not of the protocol.
    pub garbled: bool,
    /// Tool calls already counted.
    pub(super) ids: Vec<u64>,
}

/// Whose error an answer carries inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ErrorKind {
    Model,
    Server,
    RateLimit,
    Auth,
}

impl ErrorKind {
    /// From a type, a code or a status word.
    pub fn named(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
        match () {
            () if has(&["rate_limit", "resource_exhausted", "quota"]) || word == "429" => {
                Some(Self::RateLimit)
            }
            () if has(&[
                "authentication",
                "permission",
                "invalid_api_key",
                "unauthenticated",
            ]) =>
            {
                Some(Self::Auth)
            }
            () if has(&[
                "server_error",
                "overloaded",
                "unavailable",
                "internal",
                "api_error",
                "timeout",
            ]) =>
            {
                Some(Self::Server)
            }
            () if word.len() == 3 && word.starts_with('5') => Some(Self::Server),
            () => None,
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Self::Model => Outcome::ModelError,
            Self::Server => Outcome::ServerError,
            Self::RateLimit => Outcome::RateLimit,
            Self::Auth => Outcome::Auth,
        }
    }
}

impl Answer {
    pub(super) fn named(&mut self, name: &str) {
        // An empty name is what some servers send before they know it.
        if !name.is_empty()
            && self.models.len() < MAX_NAMES
            && !self.models.iter().any(|model| model == name)
        {
            self.models.push(name.to_owned());
        }
    }

    pub(super) fn tool_call(&mut self, id: &str) {
        let hash = id.bytes().fold(17u64, |hash, byte| {
            hash.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(byte)
        });
        if self.ids.len() < MAX_IDS && !self.ids.contains(&hash) {
            self.ids.push(hash);
            self.tool_calls += 1;
        }
    }

    pub(super) fn failed(&mut self, kind: ErrorKind) {
        self.error = self.error.max(Some(kind));
    }

    /// Is every name that was given the admitted one or an alias?
    pub fn other_model(&self, admitted: &str, aliases: &[String]) -> bool {
        self.models
            .iter()
            .any(|name| name != admitted && !aliases.iter().any(|alias| alias == name))
    }
}

/// Reads the body of an answer piece by piece.
pub struct AnswerReader {
    protocol: Protocol,
    form: Form,
    scanner: Scanner,
    event: Event,
    pub answer: Answer,
}

enum Form {
    Document,
    Stream { events: Events, done: Marker },
}

/// `[DONE]` is the one event that is not JSON; its first bytes wait until they are
/// told from JSON.
#[derive(Default)]
struct Marker {
    matched: usize,
    is_other: bool,
}

impl AnswerReader {
    pub fn new(protocol: Protocol, event_stream: bool) -> Self {
        let form = match event_stream {
            true => Form::Stream {
                events: Events::default(),
                done: Marker::default(),
            },
            false => Form::Document,
        };
        Self {
            protocol,
            form,
            scanner: Scanner::new(Rigour::Plain),
            event: Event::default(),
            answer: Answer::default(),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let Self {
            protocol,
            form,
            scanner,
            event,
            answer,
        } = self;
        let read = |scanner: &mut Scanner, event: &mut Event, answer: &mut Answer, bytes: &[u8]| {
            let found = scanner.push(bytes, &mut |path, value| {
                readings::see(*protocol, path, &value, event, answer)
            });
            answer.garbled |= found.is_err();
        };
        match form {
            Form::Document => read(scanner, event, answer, bytes),
            Form::Stream { events, done } => events.push(bytes, &mut |part| match part {
                Part::Data(data) => done.push(data, &mut |data| read(scanner, event, answer, data)),
                Part::EventEnds => {
                    let whole = std::mem::take(done);
                    if whole.is_done() {
                        answer.ended = true;
                        return;
                    }
                    whole.release(&mut |data| read(scanner, event, answer, data));
                    if !scanner.is_fresh() && !scanner.is_whole() {
                        answer.garbled = true;
                    }
                    scanner.reset();
                    readings::event_ended(*protocol, event, answer);
                }
            }),
        }
    }

    /// The body has ended, well or not.
    pub fn finish(&mut self) {
        let Self {
            protocol,
            form,
            scanner,
            event,
            answer,
        } = self;
        match form {
            Form::Document => {
                let whole = scanner
                    .finish(&mut |path, value| {
                        readings::see(*protocol, path, &value, event, answer)
                    })
                    .is_ok();
                readings::event_ended(*protocol, event, answer);
                answer.ended = whole;
            }
            // Some servers leave the last empty line out.
            Form::Stream { events, done } => {
                if events.is_open() && (done.is_done() || scanner.is_whole()) {
                    self.push(b"\n\n");
                }
                readings::stream_ended(self.protocol, &mut self.answer);
            }
        }
    }
}

impl Marker {
    fn is_done(&self) -> bool {
        !self.is_other && self.matched == DONE.len()
    }

    fn push(&mut self, data: &[u8], read: &mut dyn FnMut(&[u8])) {
        if self.is_other {
            return read(data);
        }
        let same = data
            .iter()
            .zip(&DONE[self.matched..])
            .take_while(|(a, b)| a == b)
            .count();
        if same == data.len() {
            self.matched += same;
            return;
        }
        self.is_other = true;
        read(&DONE[..self.matched]);
        read(data);
    }

    fn release(self, read: &mut dyn FnMut(&[u8])) {
        if !self.is_other {
            read(&DONE[..self.matched]);
        }
    }
}

/// How a call ended, once the body of its answer has ended in one way or another.
pub fn outcome_of(
    status: u16,
    answer: &Answer,
    body_is_whole: bool,
    needs_model: bool,
) -> (Outcome, Option<RefusalReason>) {
    match status {
        401 | 403 => return (Outcome::Auth, None),
        429 => return (Outcome::RateLimit, None),
        300..=399 => return (Outcome::Redirected, None),
        400..=499 => return (Outcome::ModelError, None),
        200..=299 => {}
        _ => return (Outcome::ServerError, None),
    }
    if let Some(kind) = answer.error {
        return (kind.outcome(), None);
    }
    if !needs_model {
        return if body_is_whole {
            (Outcome::Ok, None)
        } else {
            (Outcome::Truncated, None)
        };
    }
    let unnamed = answer.models.is_empty();
    match () {
        () if unnamed && answer.garbled => (Outcome::Transport, Some(RefusalReason::Garbled)),
        () if !body_is_whole || !answer.ended || answer.garbled => (Outcome::Truncated, None),
        () if unnamed => (Outcome::WrongModel, Some(RefusalReason::NoName)),
        () if answer.content || answer.tool_calls > 0 => (Outcome::Ok, None),
        () if answer.reasoning => (Outcome::ReasoningOnly, None),
        () => (Outcome::Ok, None),
    }
}

pub(super) fn add(total: &mut MaybeKnown<u64>, more: u64) {
    *total = MaybeKnown::Known(total.known().copied().unwrap_or(0).saturating_add(more));
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
