//! The probe: one real request to the model before an engine is started, to see what its answer
//! looks like.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cto_core::values::digest::Digest;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::text::{excerpt, tame_lines};
use cto_core::wire::Protocol;
use cto_core::wire::calls::{Budget, CallRecord, Outcome, ProbeOutcome, probe_outcome};
use cto_core::wire::http::Headers;
use cto_core::wire::http::path::{self, PathClass};
use cto_core::wire::needles::Needles;
use cto_core::wire::profiles::switch::Habits;
use cto_core::wire::watch::Watch;
use serde_json::{Value, json};

use crate::Route;
use crate::call_context::micros;
use crate::endpoint_side::outbound;
use crate::exchange::{Exchange, Known, Outbound};
use crate::ledger::Ledger;
use crate::questions::attended::{GivenUp, attended};
use crate::reply::{HeardError, Reply};
use crate::spill_buffer::SpillBuffer;

/// With fewer, reasoning used them up and a working model looked broken.
const MAX_TOKENS: u32 = 1024;
const MAX_BYTES: u64 = 8 << 20;
const AFTER_FIRST_BYTE: Duration = Duration::from_secs(120);
/// So many letters of an error's body are for a person.
const MAX_TOLD: usize = 4096;
const WITHHELD: &str = "[withheld: it repeats what is private of this endpoint]";
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

/// The words of a refusal, for a person: nothing of ours in them, and nothing a terminal obeys. They are shortened last:
/// of a value that was cut nobody finds the half that is left.
fn told(known: &Known, heard: &HeardError) -> Option<String> {
    if heard.body.is_empty() {
        return None;
    }
    let masked = known
        .patterns
        .masked(&String::from_utf8_lossy(&heard.body))
        .into_bytes();
    // In another spelling, a secret stays one.
    let read = settled(&known.in_errors, masked, heard.whole)
        .and_then(|text| settled(&known.private, text, heard.whole));
    let told = read.map(|text| excerpt(&String::from_utf8_lossy(&text), MAX_TOLD));
    Some(tame_lines(&told.unwrap_or_else(|| WITHHELD.into())))
}

/// A text without one of these values; none where it holds one. What may be the beginning of one stays only at the
/// end of a text that is whole.
fn settled(needles: &Needles, text: Vec<u8>, whole: bool) -> Option<Vec<u8>> {
    let (mut watch, mut out) = (Watch::new(needles), Vec::new());
    let found = watch.push(&text, &mut out) || (whole && watch.finish(&mut out));
    (!found).then_some(out)
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

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::wire::endpoint::Endpoint;

    use crate::credential::Credential;

    const KEY: &str = "key/of+the-operator-0123456789";

    fn known() -> Known {
        let endpoint = Endpoint::parse("https://gate.corp.example/tenants/acme-0815").unwrap();
        let route = Route::new(
            Protocol::OpenaiChat,
            endpoint,
            Some(Credential::of_tests(KEY)),
            "lab-1",
        );
        Exchange::new(&route.unwrap()).known
    }

    fn heard(body: &str, whole: bool) -> HeardError {
        let mut reply = Reply::to_nobody(Protocol::OpenaiChat, None);
        reply.hear(body.as_bytes(), whole);
        reply.into_heard()
    }

    /// Every letter as an escape of JSON, and as one of a URL.
    fn spellings() -> [String; 4] {
        [
            KEY.to_owned(),
            KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
            KEY.replace('/', "%2F").replace('+', "%2B"),
            KEY.replace('/', "\\/"),
        ]
    }

    #[test]
    fn a_value_that_the_end_would_cut_is_masked_first() {
        let known = known();
        for spelling in spellings() {
            for before in [MAX_TOLD - 20, MAX_TOLD - 5, MAX_TOLD - 1] {
                let body = format!("{}{spelling} and more", ".".repeat(before));
                let told = told(&known, &heard(&body, true)).unwrap();
                let shown = told.trim_start_matches('.').trim_end_matches('…');
                let is_masked = "[redacted] and more".starts_with(shown) || told == WITHHELD;
                assert!(is_masked, "{spelling}: {shown}");
            }
        }
        let long = told(&known, &heard(&"x".repeat(MAX_TOLD * 2), true)).unwrap();
        assert_eq!(long.chars().count(), MAX_TOLD + 1, "and it is bounded");
    }

    #[test]
    fn the_half_of_a_value_with_which_a_body_broke_off_is_not_told() {
        let known = known();
        for spelling in spellings() {
            let half = &spelling[..spelling.len() / 2];
            let told = told(&known, &heard(&format!("bad key {half}"), false)).unwrap();
            assert!(told.len() <= "bad key ".len() + 8, "{half}: {told}");
        }
        let host = told(&known, &heard("at GATE.corp.exam", false)).unwrap();
        assert!(!host.to_lowercase().contains("corp"), "{host}");
        let plain = told(&known, &heard("no such model", false));
        assert_eq!(plain.as_deref(), Some("no such model"));
    }
}
