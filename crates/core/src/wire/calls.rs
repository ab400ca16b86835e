//! The record of each model call, what a run may spend on them, and what they say about the
//! provider. No record holds an endpoint, a credential or a body: digests, numbers and words of
//! closed lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Protocol;
pub use super::budget::{Budget, Spent, WireCounts};
use crate::values::digest::Digest;
use crate::values::hint;
use crate::values::maybe_known::MaybeKnown;
use crate::values::money::Price;
use crate::wire::http::path::PathClass;

/// How a call ended.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    /// Nothing usable came over the wire: not reached, not understood, cut before an answer began.
    Transport,
    /// 401 or 403.
    Auth,
    /// 429.
    RateLimit,
    /// Any other 4xx, or an error inside an answer that is not the server's.
    ModelError,
    /// 5xx, or a server's error inside an answer.
    ServerError,
    /// A whole answer with nothing but reasoning.
    ReasoningOnly,
    /// An answer that ended before the protocol's own end.
    Truncated,
    /// No byte for as long as the gateway waits.
    Stalled,
    /// 3xx; never followed.
    Redirected,
    /// Another model answered, or one that did not say its name.
    WrongModel,
    /// Not forwarded: `why` says for what.
    Refused,
    /// Not forwarded, or cut, because the run has spent what it may.
    Budget,
    /// The engine went away first.
    EngineClosed,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Transport => "transport",
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::ModelError => "model_error",
            Self::ServerError => "server_error",
            Self::ReasoningOnly => "reasoning_only",
            Self::Truncated => "truncated",
            Self::Stalled => "stalled",
            Self::Redirected => "redirected",
            Self::WrongModel => "wrong_model",
            Self::Refused => "refused",
            Self::Budget => "budget",
            Self::EngineClosed => "engine_closed",
        }
    }

    /// Does this end mean that the provider could not be used?
    pub fn is_wire_failure(self) -> bool {
        matches!(
            self,
            Self::Transport
                | Self::Auth
                | Self::RateLimit
                | Self::ServerError
                | Self::Truncated
                | Self::Stalled
                | Self::Redirected
        )
    }
}

/// What exactly was refused or failed; one closed list for every outcome that needs it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
// The name it has in the published schemas.
#[schemars(rename = "Why")]
pub enum RefusalReason {
    // refused: the request
    BadHttp,
    HeadTooLong,
    SlowRequest,
    BadToken,
    BadMethod,
    BadPath,
    BadQuery,
    AbsoluteTarget,
    Upgrade,
    Expectation,
    EncodedBody,
    BodyTooLong,
    NotStrictJson,
    DuplicateKey,
    NoModel,
    OtherModel,
    /// A key by which some servers choose another model.
    ModelSwitch,
    /// A tool that the provider would run, with a network of its own.
    HostedTool,
    /// A field, or a value of one, that is not on the list of what may pass.
    RequestField,
    TooManyRequests,
    // transport
    Dns,
    ConnectionRefused,
    Unreachable,
    ConnectTimeout,
    Tls,
    /// By an authority that is not believed.
    TlsUntrusted,
    TlsExpired,
    /// For another name.
    TlsName,
    Proxy,
    Reset,
    Garbled,
    EncodedAnswer,
    /// The answer held the operator's credential, and was cut.
    CredentialInAnswer,
    // wrong model
    OtherName,
    NoName,
    // budget
    Calls,
    Tokens,
    /// Money, by the operator's prices.
    Spend,
    Bytes,
    Time,
}

impl RefusalReason {
    /// Its word in records.
    pub fn word(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Is it a limit of the run, and not the request, that stopped the call?
    pub fn is_budget(self) -> bool {
        matches!(
            self,
            Self::Calls | Self::Tokens | Self::Spend | Self::Bytes | Self::Time
        )
    }

    /// A sentence for the engine, and for whoever reads the record.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::BadHttp => "the request is not well-formed HTTP/1.1",
            Self::HeadTooLong => "the request head is too long",
            Self::SlowRequest => "the request did not arrive in time",
            Self::BadToken => "the token is missing or wrong",
            Self::BadMethod => "this method is not passed on",
            Self::BadPath => "this path is not passed on",
            Self::BadQuery => "this query is not passed on",
            Self::AbsoluteTarget => "a request to another host is not passed on",
            Self::Upgrade => "the connection cannot be upgraded",
            Self::Expectation => "this expectation cannot be met",
            Self::EncodedBody => {
                "a request that is compressed, or by its type not JSON in UTF-8, cannot be checked"
            }
            Self::BodyTooLong => "the request body is too long",
            Self::NotStrictJson => "the request body is not one strict JSON object",
            Self::DuplicateKey => "the request body holds a key twice",
            Self::NoModel => "the request names no model",
            Self::OtherModel => "only the admitted model may be asked",
            Self::ModelSwitch => "the request holds a key that could choose another model",
            Self::HostedTool => "the request offers a tool that the provider would run",
            Self::RequestField => "the request holds a field that is not passed on",
            Self::TooManyRequests => "the run has made more requests than can be recorded",
            Self::Dns => "the name of the model endpoint was not resolved",
            Self::ConnectionRefused => "the model endpoint refused the connection",
            Self::Unreachable => "the model endpoint was not reached",
            Self::ConnectTimeout => "the model endpoint did not accept in time",
            Self::Tls => "no trusted TLS connection to the model endpoint was made",
            Self::TlsUntrusted => {
                "the certificate of the model endpoint is from an authority that is not believed"
            }
            Self::TlsExpired => "the certificate of the model endpoint has expired",
            Self::TlsName => "the certificate of the model endpoint is for another name",
            Self::Proxy => "the proxy gave no way to the model endpoint",
            Self::Reset => "the model endpoint closed the connection",
            Self::Garbled => "the model endpoint did not speak its protocol",
            Self::EncodedAnswer => "a compressed answer cannot be checked",
            Self::CredentialInAnswer => "the answer held the credential, and was cut",
            Self::OtherName => "another model answered",
            Self::NoName => "the answer does not say which model gave it",
            Self::Calls => hint::CALLS_SPENT,
            Self::Tokens => hint::TOKENS_SPENT,
            Self::Spend => hint::MONEY_SPENT,
            Self::Bytes => hint::BYTES_SPENT,
            Self::Time => hint::TIME_SPENT,
        }
    }
}

/// Token counts as the provider reported them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCounts {
    /// With what was in a cache.
    pub input: MaybeKnown<u64>,
    /// Of the input: what the provider had in a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// With reasoning.
    pub output: MaybeKnown<u64>,
    pub reasoning: MaybeKnown<u64>,
}

impl Default for TokenCounts {
    fn default() -> Self {
        Self {
            input: MaybeKnown::NotLookedAt,
            cached: None,
            output: MaybeKnown::NotLookedAt,
            reasoning: MaybeKnown::NotLookedAt,
        }
    }
}

/// One request of the engine and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    /// In order of arrival, from 1.
    pub seq: u64,
    /// Since the gateway was opened.
    pub started_ms: u64,
    pub protocol: Protocol,
    pub path: PathClass,
    /// Did it go to the endpoint?
    pub forwarded: bool,
    pub streamed: bool,
    pub model_asked: MaybeKnown<String>,
    pub model_answered: MaybeKnown<String>,
    /// Of the endpoint.
    pub status: MaybeKnown<u16>,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<RefusalReason>,
    /// Where in the request stands what was refused, if it stands anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub request_sha256: MaybeKnown<Digest>,
    /// Of the body as the endpoint sent it.
    pub response_sha256: MaybeKnown<Digest>,
    pub tokens: TokenCounts,
    /// From the end of the request to the first byte of the answer's head.
    pub first_byte_us: MaybeKnown<u64>,
    pub total_us: u64,
    pub content: bool,
    pub reasoning: bool,
    pub tool_calls: u64,
    pub finish_reason: MaybeKnown<String>,
}

impl CallRecord {
    pub fn begun(seq: u64, started_ms: u64, protocol: Protocol) -> Self {
        Self {
            seq,
            started_ms,
            protocol,
            path: PathClass::Other,
            forwarded: false,
            streamed: false,
            model_asked: MaybeKnown::NotLookedAt,
            model_answered: MaybeKnown::NotLookedAt,
            status: MaybeKnown::NotLookedAt,
            outcome: Outcome::Ok,
            why: None,
            field: None,
            request_bytes: 0,
            response_bytes: 0,
            request_sha256: MaybeKnown::NotLookedAt,
            response_sha256: MaybeKnown::NotLookedAt,
            tokens: TokenCounts::default(),
            first_byte_us: MaybeKnown::NotLookedAt,
            total_us: 0,
            content: false,
            reasoning: false,
            tool_calls: 0,
            finish_reason: MaybeKnown::NotLookedAt,
        }
    }

    pub fn ended(&mut self, outcome: Outcome, why: Option<RefusalReason>) {
        self.outcome = outcome;
        self.why = why;
    }

    /// What the call costs the token budget. Where the provider reports nothing, a token is taken
    /// for four bytes.
    pub fn tokens_spent(&self) -> u64 {
        let (input, output) = self.tokens_counted();
        input.saturating_add(output)
    }

    /// What the call costs by a price, in millionths.
    pub fn micros_spent(&self, price: &Price) -> u64 {
        let (input, output) = self.tokens_counted();
        price.cost(input, self.tokens.cached.unwrap_or(0), output)
    }

    fn tokens_counted(&self) -> (u64, u64) {
        let guess = |bytes: u64| if self.forwarded { bytes.div_ceil(4) } else { 0 };
        let known = |seen: MaybeKnown<u64>| seen.known().copied();
        let input = known(self.tokens.input).unwrap_or_else(|| guess(self.request_bytes));
        let output = known(self.tokens.output).unwrap_or_else(|| guess(self.response_bytes));
        (input, output)
    }

    fn end_us(&self) -> u64 {
        self.started_ms
            .saturating_mul(1000)
            .saturating_add(self.total_us)
    }
}

/// So many refused fields are told of a run; each call has its own in its record.
const MAX_FIELDS_TOLD: usize = 16;

/// What the gateway of one run saw.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayReport {
    /// In order of arrival.
    pub calls: Vec<CallRecord>,
    pub spent: Spent,
    /// The first limit that stopped a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_exceeded: Option<RefusalReason>,
    /// Requests after the last one that could be recorded, and connections beyond those that may be
    /// open at once.
    pub unrecorded: u64,
    /// Calls that had not ended when the gateway was closed; they are not in `calls`.
    pub unfinished: u64,
}

impl GatewayReport {
    pub fn wire_failure(&self) -> Option<Outcome> {
        wire_failure(&self.calls)
    }

    /// Did any answer come from a model that is not the admitted one? It never reached the engine.
    pub fn wrong_model(&self) -> bool {
        self.calls
            .iter()
            .any(|call| call.outcome == Outcome::WrongModel)
    }

    /// Why and by which field requests were refused, each once, in order of arrival.
    pub fn refused_fields(&self) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for call in &self.calls {
            if let (Some(why), Some(field)) = (call.why, &call.field) {
                let text = format!("{}: {field}", why.word());
                if told.len() < MAX_FIELDS_TOLD && !told.contains(&text) {
                    told.push(text);
                }
            }
        }
        told
    }

    /// Answers that held the credential; none of it reached the engine.
    pub fn credential_in_answer(&self) -> u64 {
        let held = |call: &&CallRecord| call.why == Some(RefusalReason::CredentialInAnswer);
        self.calls.iter().filter(held).count() as u64
    }

    /// Requests that were not passed on, budget aside.
    pub fn refused(&self) -> usize {
        self.calls
            .iter()
            .filter(|call| call.outcome == Outcome::Refused)
            .count()
    }
}

/// Was the provider gone at the end? The call that ended last, of those that went to the endpoint,
/// decides: an engine that was served after a failure has got over it. A call the engine gave up
/// says nothing about the provider, and one that only counted tokens is no answer.
pub fn wire_failure(calls: &[CallRecord]) -> Option<Outcome> {
    calls
        .iter()
        .filter(|call| call.forwarded && call.path == PathClass::Generate)
        .filter(|call| {
            !matches!(
                call.outcome,
                Outcome::EngineClosed | Outcome::Budget | Outcome::Refused
            )
        })
        .max_by_key(|call| (call.end_us(), call.seq))
        .map(|call| call.outcome)
        .filter(|outcome| outcome.is_wire_failure())
}

/// A request that went to the endpoint, failed, and was never answered however often it was made again: the
/// last of them. One that was answered at another try is none.
pub fn unanswered(calls: &[CallRecord]) -> Option<&CallRecord> {
    let asked = |call: &&CallRecord| call.forwarded && call.path == PathClass::Generate;
    let answered = |failed: &CallRecord| {
        let same = |call: &CallRecord| {
            failed.request_sha256.known().is_some()
                && call.request_sha256 == failed.request_sha256
                && !call.outcome.is_wire_failure()
                && call.outcome != Outcome::EngineClosed
        };
        calls.iter().filter(asked).any(same)
    };
    let failed = calls.iter().filter(asked).rev();
    failed
        .filter(|call| call.outcome.is_wire_failure())
        .find(|call| !answered(call))
}

/// The call that the engine ended with, if a field of it was refused: nothing the engine asked of its model was
/// answered after that. What it asks of another model beside its work is refused anyway, and no end of it.
pub fn ended_refused<'c>(calls: &'c [CallRecord], model: &str) -> Option<&'c CallRecord> {
    let of_another =
        |call: &CallRecord| call.model_asked.known().is_some_and(|asked| asked != model);
    calls
        .iter()
        .filter(|call| call.path == PathClass::Generate && !of_another(call))
        .filter(|call| call.forwarded || call.field.is_some())
        .max_by_key(|call| (call.end_us(), call.seq))
        .filter(|call| call.outcome == Outcome::Refused)
}

/// What one real request said about the shape of answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum ProbeOutcome {
    /// Text or a tool call for an assistant's turn: go.
    Content,
    /// A whole answer without either.
    ReasoningOnly,
    /// 401 or 403.
    Auth,
    WrongModel,
    Unavailable {
        class: Outcome,
    },
}

/// The meaning of a probe's call.
pub fn probe_outcome(call: &CallRecord) -> ProbeOutcome {
    match call.outcome {
        Outcome::Ok if call.content || call.tool_calls > 0 => ProbeOutcome::Content,
        Outcome::Ok | Outcome::ReasoningOnly => ProbeOutcome::ReasoningOnly,
        Outcome::Auth => ProbeOutcome::Auth,
        Outcome::WrongModel => ProbeOutcome::WrongModel,
        class => ProbeOutcome::Unavailable { class },
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
