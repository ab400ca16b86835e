//! No engine reads the key of its model, no error says where it is, and no model gets the accounts of
//! an engine. A good answer passes byte for byte.

use std::io::{Read, Write};
use std::net::TcpListener;

use cto_core::values::digest::Digest;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{Outcome, RefusalReason};
use cto_core::wire::scenario::Scenario;
use cto_harness::doubles::model::Model;
use serde_json::{Value, json};

use crate::fixtures::gateway_lab::*;

/// What only this operator has in a base URL.
const PRIVATE: &str = "tenants/acme-0815";

/// A model at a private path, and the gateway before it.
fn private_lab(scenario: impl FnOnce(&str, &str) -> String) -> Lab {
    let log = tempfile::NamedTempFile::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let base = format!("http://{address}/{PRIVATE}/v1");
    let scenario = Scenario::parse(&scenario(&address, &base)).unwrap();
    Model::start(listener, scenario, Some(log.reopen().unwrap())).unwrap();
    open(route_to(CHAT, &base), base, log)
}

#[test]
fn no_error_says_where_the_endpoint_is_or_what_authenticates_there() {
    let mut statuses = Vec::new();
    let lab = private_lab(|address, base| {
        let echo = format!("you at {base} with key {KEY}");
        let escaped = format!("you at {}", base.replace('/', "\\\\/"));
        let headers = format!(
            "headers={{server='{address}',set-cookie='a={KEY}',x-request-id='{base}',openai-organization='org-1',location='{base}',content-type='application/json; at={base}',retry-after='{KEY}',x-ratelimit-reset='7'}}"
        );
        format!(
            "select='requests'\n[[turn]]\nstatus=401\nbody='{{\"error\":\"{echo}\"}}'\n{headers}\n\
             [[turn]]\nstatus=429\nbody='{{\"error\":\"{escaped}\"}}'\n{headers}\n\
             [[turn]]\nstatus=500\nbody='at {}'\n[[turn]]\nstatus=302\nbody='{echo}'\n{headers}\n\
             [[turn]]\ntext='x'\nmodel='{base}'\n[[turn]]\nhang_up=true\n[[turn]]\ngarbage='{echo}'\n\
             [[turn]]\ngarbage='{{\"error\":{{\"type\":\"server_error\",\"message\":\"at {base}\"}}}}'\n",
            base.to_uppercase()
        )
    });
    let mut seen = Vec::new();
    for _ in 0..8 {
        let answer = lab.chat();
        statuses.push(answer.head.status);
        seen.extend_from_slice(&answer.raw);
    }
    assert_eq!(statuses, [401, 429, 500, 502, 502, 502, 502, 502]);
    let wrong = lab.text(path_of(CHAT), "", r#"{"model":"other"}"#);
    seen.extend_from_slice(&lab.raw(&wrong).raw);
    let report = lab.finish();
    assert_eq!(report.credential_in_answer(), 2, "{report:?}");
    assert_eq!(report.calls[0].outcome, Outcome::Auth);
    let seen = String::from_utf8_lossy(&seen).to_lowercase();
    for text in [seen.clone(), serde_json::to_string(&report).unwrap()] {
        for secret in [KEY, PRIVATE, "acme-0815", "org-1"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    assert!(
        seen.contains("whose words are not passed on") && seen.contains("x-ratelimit-reset: 7")
    );
}

#[test]
fn an_error_that_holds_nothing_private_passes_as_it_is() {
    let lab = private_lab(|address, _| {
        let body = format!("{{\"error\":\"no model at {address} or localhost:8000\"}}");
        format!("[[turn]]\nstatus=404\nbody='{body}'\n")
    });
    let answer = lab.chat();
    assert_eq!(answer.head.status, 404);
    assert!(
        answer.body.contains("no model at 127.0.0.1:"),
        "{}",
        answer.body
    );
}

#[test]
fn a_good_answer_reaches_the_engine_byte_for_byte() {
    // Whatever it says of the endpoint: code is about addresses, and this is code.
    let lab = private_lab(|address, base| {
        format!("[[turn]]\ntext='connect({address}) # {base} localhost:8000'\npiece=200\n")
    });
    let said = &lab.endpoint.clone();
    let answer = lab.chat();
    assert!(
        answer.whole && answer.body.contains(said),
        "{}",
        answer.body
    );
    assert!(!answer.body.contains("redacted"));
    let call = lab.only_call();
    assert_eq!(call.response_bytes, answer.body.len() as u64);
    assert_eq!(
        call.response_sha256,
        MaybeKnown::Known(Digest::of(answer.body.as_bytes()))
    );
}

/// Every letter as an escape of JSON.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

fn event(text: &str) -> String {
    format!(
        "data: {{\"model\":\"lab-1\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

#[test]
fn an_answer_that_holds_the_credential_is_cut_in_every_spelling() {
    let in_two = KEY.split_at(11);
    for (name, body) in [
        ("as it is", event(KEY)),
        ("escaped", event(&escaped(KEY))),
        ("in two events", event(in_two.0) + &event(in_two.1)),
        (
            "in two events, escaped",
            event(&escaped(in_two.0)) + &event(in_two.1),
        ),
        (
            "letter by letter",
            KEY.chars()
                .map(|letter| event(&letter.to_string()))
                .collect(),
        ),
        // `key-of-the-operator-0123456789`, between other letters.
        (
            "base64",
            event("eGtleS1vZi10aGUtb3BlcmF0b3ItMDEyMzQ1Njc4OXg="),
        ),
        (
            "in JSON in JSON",
            event(&format!(
                "{{\\\"a\\\":\\\"{}\\\"}}",
                escaped(KEY).replace('\\', "\\\\")
            )),
        ),
        ("in a comment", format!("{}: {KEY}\n\n", event("x"))),
    ] {
        for size in [1, 7, 10_000] {
            let lab = raw_lab(&(event("first") + &body + &event("last")), size);
            let answer = lab.chat();
            // Cut in the middle, or not begun at all.
            assert!(
                !answer.whole || answer.head.status == 502,
                "{name} in pieces of {size}: {}",
                answer.body
            );
            assert!(!answer.body.contains("last"), "{name}: {}", answer.body);
            let content: String = answer
                .body
                .split("\"content\":\"")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap())
                .collect();
            assert!(
                !content.contains("key-") && !answer.body.contains(KEY),
                "{name}: {content}"
            );
            let call = lab.only_call();
            assert_eq!(
                (call.outcome, call.why),
                (Outcome::Transport, Some(RefusalReason::CredentialInAnswer)),
                "{name}"
            );
        }
    }
}

/// Pieces that only a reader who knows what belongs together has as one text.
#[test]
fn pieces_between_other_pieces_are_cut() {
    let letters = || KEY.chars().map(|letter| letter.to_string());
    let choice = |index: &str, words: &str| {
        format!(
            "data: {{\"model\":\"lab-1\",\"choices\":[{{\"delta\":{{\"content\":\"{words}\"}},\"index\":{index}}}]}}\n\n"
        )
    };
    let keys: String = (0..40).map(|n| format!(",\"k{n}\":\"v\"")).collect();
    let listed: Vec<String> = letters().map(|letter| format!("\"{letter}\"")).collect();
    let argument = |index: u8, piece: &str| {
        format!(
            "data: {{\"model\":\"lab-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"arguments\":\"{piece}\"}}}}]}}}}]}}\n\n"
        )
    };
    for (name, body) in [
        (
            "between those of another answer",
            letters()
                .map(|letter| choice("0", &letter) + &choice("1", "q"))
                .collect::<String>(),
        ),
        (
            "the index written in two ways",
            letters()
                .enumerate()
                .map(|(n, letter)| choice(["0", "0.0"][n % 2], &letter) + &choice("1", "q"))
                .collect(),
        ),
        (
            "after many keys",
            format!("data: {{\"model\":\"lab-1\"{keys}}}\n\n")
                + &letters().map(|letter| event(&letter)).collect::<String>(),
        ),
        (
            "in a list",
            format!(
                "data: {{\"model\":\"lab-1\",\"tokens\":[{}]}}\n\n",
                listed.join(",")
            ),
        ),
        (
            "in arguments of two calls",
            letters()
                .map(|letter| argument(0, &letter) + &argument(1, "q"))
                .collect(),
        ),
        (
            "over lines of an event",
            letters()
                .map(|letter| {
                    choice("0", &letter).replace("\"content\":", "\"content\":\ndata: ")
                        + &choice("1", "q")
                })
                .collect(),
        ),
    ] {
        for size in [1, 61, 100_000] {
            let lab = raw_lab(&(event("first") + &body + &event("last")), size);
            let answer = lab.chat();
            assert!(
                !answer.whole || answer.head.status == 502,
                "{name} in pieces of {size}: {}",
                answer.body
            );
            let events = answer.body.matches("\n\n").count();
            assert!(events <= 9, "{name}: {events} events passed");
            let call = lab.only_call();
            assert_eq!(
                (call.outcome, call.why),
                (Outcome::Transport, Some(RefusalReason::CredentialInAnswer)),
                "{name} in pieces of {size}"
            );
        }
    }
}

/// A server that answers one request with these bytes, so many at a time, and with a trailer.
fn raw_lab(body: &str, size: usize) -> Lab {
    let log = tempfile::NamedTempFile::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let body = body.to_owned();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0u8; 65536]);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let _ = socket.write_all(head.as_bytes());
        for piece in body.as_bytes().chunks(size) {
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            let _ = socket.write_all(&chunk);
        }
        let _ = socket.write_all(format!("0\r\nx-trailer: {KEY}\r\n\r\n").as_bytes());
    });
    open(route_to(CHAT, &base), base, log)
}

#[test]
fn what_only_begins_like_the_credential_passes_whole() {
    let body = [
        event("the key-of-the-operator"),
        event("s and key-"),
        event("of-"),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    for size in [1, 13, 10_000] {
        let lab = raw_lab(&body, size);
        let answer = lab.chat();
        assert!(answer.whole, "{}", answer.body);
        assert_eq!(answer.body, body);
        assert!(
            !String::from_utf8_lossy(&answer.raw).contains(KEY),
            "no trailer"
        );
    }
}

#[test]
fn a_key_in_pieces_of_an_error_keeps_its_status_only() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0u8; 65536]);
        let body = format!("{{\"error\":\"bad key {KEY}!\"}}");
        let _ = socket.write_all(
            format!("HTTP/1.1 401 No\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(),
        );
        for byte in body.bytes() {
            let _ = socket.write_all(&[byte]);
            std::thread::yield_now();
        }
    });
    let lab = open(route_to(CHAT, &base), base, log);
    let answer = lab.chat();
    assert_eq!(answer.head.status, 401);
    let told: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(told["error"]["type"], "cto_auth", "{told}");
    assert!(!answer.body.contains("bad key"), "{told}");
}

#[test]
fn the_model_gets_the_operators_key_and_no_accounts_of_the_engine() {
    for (protocol, key_header) in [
        (CHAT, "authorization"),
        (Protocol::OpenaiResponses, "authorization"),
        (Protocol::AnthropicMessages, "x-api-key"),
        (Protocol::GeminiGenerate, "x-goog-api-key"),
    ] {
        let lab = lab_with(protocol, TURN, |_| {});
        let extra = "Cookie: a=b\r\nOpenAI-Organization: org\r\nOpenAI-Project: p\r\nForwarded: for=x\r\nX-Forwarded-For: x\r\n\
                     Proxy-Authorization: x\r\nX-Model: other\r\nAccept-Encoding: gzip\r\nTE: trailers\r\nAnthropic-Beta: b1\r\n\
                     Content-Type: Application/JSON; charset=UTF-8\r\n";
        let answer = lab.raw(&lab.text(path_of(protocol), extra, &body_of(protocol).to_string()));
        assert_eq!(
            answer.head.status, 200,
            "the model demands the operator's key"
        );
        let log = lab.log();
        let headers = log[0]["headers"].as_object().unwrap();
        let mut names: Vec<&str> = headers.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut want = vec![
            "accept-encoding",
            "anthropic-beta",
            "content-length",
            "content-type",
            "host",
            key_header,
        ];
        want.sort_unstable();
        assert_eq!(names, want);
        assert_eq!(
            (&headers["accept-encoding"], &headers["host"]),
            (
                &json!("identity"),
                &json!(&lab.endpoint[7..lab.endpoint.len() - 3])
            )
        );
        assert_eq!(headers["content-type"], json!("application/json"));
        assert!(!log[0].to_string().contains(&lab.token));
    }
}

#[test]
fn tokens_are_taken_in_every_usual_place() {
    for (protocol, place) in [
        (CHAT, "Authorization: Bearer TOKEN"),
        (CHAT, "authorization: bearer TOKEN"),
        (Protocol::AnthropicMessages, "x-api-key: TOKEN"),
        (Protocol::GeminiGenerate, "x-goog-api-key: TOKEN"),
    ] {
        let lab = lab_with(protocol, TURN, |_| {});
        let body = body_of(protocol).to_string();
        let place = place.replace("TOKEN", &lab.token);
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\n{place}\r\nContent-Length: {}\r\n\r\n{body}",
            path_of(protocol),
            body.len()
        );
        assert_eq!(lab.raw(&request).head.status, 200, "{place}");
    }
    let lab = lab_with(Protocol::GeminiGenerate, TURN, |_| {});
    let body = body_of(Protocol::GeminiGenerate).to_string();
    let target = format!("/v1beta/models/lab-1:generateContent?key={}", lab.token);
    assert_eq!(
        lab.raw(&format!(
            "POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .head
        .status,
        200
    );
    assert!(
        !lab.log()[0]["target"].to_string().contains("key"),
        "it is not passed on"
    );
}
