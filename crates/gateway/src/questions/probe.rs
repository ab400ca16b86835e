//! The probe: one real request to the model before an engine is started, to see what its answer
//! looks like.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cto_core::values::digest::Digest;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::text::tame_lines;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{Budget, CallRecord, Outcome, ProbeOutcome, probe_outcome};
use cto_core::wire::http::Headers;
use cto_core::wire::http::path::{self, PathClass};
use cto_core::wire::profiles::switch::Habits;
use serde_json::{Value, json};

use crate::Route;
use crate::call_context::micros;
use crate::endpoint_side::outbound;
use crate::exchange::{Exchange, Known, Outbound};
use crate::ledger::Ledger;
use crate::questions::attended::{GivenUp, attended};
use crate::reply::Reply;
use crate::response_forwarder::is_known;
use crate::spill_buffer::SpillBuffer;

/// With fewer, reasoning used them up and a working model looked broken.
const MAX_TOKENS: u32 = 1024;
const MAX_BYTES: u64 = 8 << 20;
const AFTER_FIRST_BYTE: Duration = Duration::from_secs(120);
const QUESTION: &str = "Answer with the one word: ready";

/// Asks the admitted model for one short answer and says what came back.
pub fn probe(route: &Route) -> ProbeOutcome {
    probe_outcome(&probe_call(route))
}

/// The call of a probe, for the evidence. It is not part of the run's budget.
pub fn probe_call(route: &Route) -> CallRecord {
    probe_heard(route, None).call
}

/// One call, and what a person may read of its refusal.
pub struct Heard {
    pub call: CallRecord,
    pub error_body: Option<String>,
}

/// The same while a person waits: `still` is told how long it has taken, and ends it by saying no.
pub fn probe_attended(
    route: &Route,
    still: &mut dyn FnMut(Duration) -> bool,
) -> Result<Heard, GivenUp> {
    let route = route.clone();
    attended(move |leash| probe_heard(&route, Some(leash)), still)
}

/// Asks once; the other end of the leash gives up by closing.
pub fn probe_heard(route: &Route, leash: Option<&UnixStream>) -> Heard {
    let begun = Instant::now();
    let mut call = CallRecord::begun(1, 0, route.protocol);
    call.path = PathClass::Generate;
    call.streamed = true;
    call.model_asked = MaybeKnown::Known(route.model.clone());
    let body = question(route).to_string();
    call.request_bytes = body.len() as u64;
    call.request_sha256 = MaybeKnown::Known(Digest::of(body.as_bytes()));
    let mut error_body = None;
    let mut held = SpillBuffer::default();
    let target = target(route);
    let asked = path::ask(route.protocol, "POST", &target);
    match (asked, held.push(body.as_bytes())) {
        (Ok(asked), Ok(())) => {
            call.forwarded = true;
            let head = outbound::head(route, &asked, &headers(route.protocol), held.len());
            let request = Outbound {
                head,
                body: &mut held,
            };
            let ledger = Ledger::new(route.protocol, short(route));
            let exchange = Exchange::new(route);
            let mut reply = Reply::to_nobody(route.protocol, leash);
            exchange.run(route, &ledger, &mut call, request, &mut reply);
            error_body = told(&exchange.known, &reply.into_heard());
        }
        (Err(why), _) => call.ended(Outcome::Refused, Some(why)),
        (Ok(_), Err(_)) => call.ended(Outcome::Transport, None),
    }
    call.total_us = micros(begun);
    Heard { call, error_body }
}

/// What one short answer may cost: one without an end must not be read to a run's own limits.
fn short(route: &Route) -> Budget {
    let patience = route.timeouts.first_byte + route.timeouts.connect + AFTER_FIRST_BYTE;
    Budget {
        bytes: MAX_BYTES,
        wall_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
        ..route.budget
    }
}

/// The words of a refusal, for a person: nothing of ours in them, and nothing a terminal obeys.
fn told(known: &Known, body: &[u8]) -> Option<String> {
    if body.is_empty() {
        return None;
    }
    let masked = known.patterns.masked(&String::from_utf8_lossy(body));
    // In another spelling, a secret stays one.
    if is_known(known, masked.as_bytes()) {
        return Some("[withheld: it repeats what is private of this endpoint]".into());
    }
    Some(tame_lines(&masked))
}

fn target(route: &Route) -> String {
    match route.protocol {
        Protocol::OpenaiChat => "/chat/completions".into(),
        Protocol::OpenaiResponses => "/responses".into(),
        Protocol::AnthropicMessages => "/v1/messages".into(),
        // The admitted name is put in its place by whoever writes the head.
        Protocol::GeminiGenerate => "/models/admitted:streamGenerateContent?alt=sse".into(),
    }
}

fn headers(protocol: Protocol) -> Headers {
    let version =
        (protocol == Protocol::AnthropicMessages).then_some(("anthropic-version", "2023-06-01"));
    Headers::of(
        [
            ("accept", "text/event-stream, application/json"),
            ("user-agent", "cto"),
        ]
        .into_iter()
        .chain(version),
    )
}

/// Streamed, as engines ask.
fn question(route: &Route) -> Value {
    let model = &route.model;
    let messages = json!([{"role": "user", "content": QUESTION}]);
    match route.protocol {
        Protocol::OpenaiChat => {
            let Habits {
                token_field,
                store,
                stream_options,
            } = route.habits;
            let mut body = json!({"model": model, "messages": messages, "stream": true});
            body[token_field.as_str()] = MAX_TOKENS.into();
            if store {
                body["store"] = false.into();
            }
            if stream_options {
                body["stream_options"] = json!({"include_usage": true});
            }
            body
        }
        Protocol::OpenaiResponses => {
            let input = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]);
            json!({"model": model, "input": input, "max_output_tokens": MAX_TOKENS, "stream": true, "store": false})
        }
        Protocol::AnthropicMessages => {
            json!({"model": model, "messages": messages, "max_tokens": MAX_TOKENS, "stream": true})
        }
        Protocol::GeminiGenerate => json!({
            "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
            "generationConfig": {"maxOutputTokens": MAX_TOKENS},
        }),
    }
}
