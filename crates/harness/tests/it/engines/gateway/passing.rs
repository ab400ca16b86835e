//! What the gateway lets pass, byte for byte, and how a failing model is told apart.

use std::io::{Read, Write};

use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{Outcome, RefusalReason};
use serde_json::{Value, json};

use crate::fixtures::gateway_lab::*;

#[test]
fn every_protocol_passes_through_byte_for_byte() {
    for protocol in Protocol::ALL {
        for stream in [true, false] {
            let lab = lab_with(protocol, TURN, |_| {});
            let (mut path, mut body) = (path_of(protocol).to_owned(), body_of(protocol));
            if !stream {
                path = path.replace("streamGenerateContent?alt=sse", "generateContent");
                body["stream"] = json!(false);
            }
            if protocol == Protocol::GeminiGenerate {
                body.as_object_mut().unwrap().remove("stream");
            }
            let through = lab.raw(&lab.text(&path, "", &body.to_string()));
            assert_eq!(through.head.status, 200, "{}", through.body);
            assert!(through.whole);
            assert!(
                through.body.contains("write") && through.body.contains("a.txt"),
                "{}",
                through.body
            );
            let call = lab.only_call();
            assert_eq!(
                (call.outcome, call.streamed, call.forwarded),
                (Outcome::Ok, stream, true),
                "{call:?}"
            );
            assert_eq!(call.model_answered, MaybeKnown::Known(MODEL.into()));
            assert_eq!(
                (
                    call.tokens.input,
                    call.tool_calls,
                    call.content,
                    call.reasoning
                ),
                (MaybeKnown::Known(10), 1, true, true),
                "{call:?}"
            );
            assert_eq!(
                call.response_sha256,
                MaybeKnown::Known(cto_core::values::digest::Digest::of(
                    through.body.as_bytes()
                ))
            );
            assert_eq!(
                call.request_sha256,
                MaybeKnown::Known(cto_core::values::digest::Digest::of(
                    body.to_string().as_bytes()
                ))
            );
            assert_eq!(call.status, MaybeKnown::Known(200));
            assert!(call.first_byte_us.known().is_some() && call.finish_reason.known().is_some());
        }
    }
}

#[test]
fn every_way_to_fail_has_its_class() {
    let whole = "text='x'\n";
    for (turn, outcome, why, status) in [
        ("status=401\nbody='{}'\n", Outcome::Auth, None, 401),
        ("status=403\nbody='{}'\n", Outcome::Auth, None, 403),
        ("status=429\nbody='{}'\n", Outcome::RateLimit, None, 429),
        ("status=400\nbody='{}'\n", Outcome::ModelError, None, 400),
        ("status=500\nbody='x'\n", Outcome::ServerError, None, 500),
        (
            "status=302\nbody=''\nheaders={location='http://127.0.0.1:1/'}\n",
            Outcome::Redirected,
            None,
            502,
        ),
        (
            "status=101\nbody=''\n",
            Outcome::Transport,
            Some(RefusalReason::Garbled),
            502,
        ),
        (
            "hang_up=true\n",
            Outcome::Transport,
            Some(RefusalReason::Reset),
            502,
        ),
        (
            "garbage='<html>'\nheaders={content-type='text/html'}\n",
            Outcome::Transport,
            Some(RefusalReason::Garbled),
            502,
        ),
        (
            "text='x'\nheaders={content-encoding='gzip'}\n",
            Outcome::Transport,
            Some(RefusalReason::EncodedAnswer),
            502,
        ),
        ("reasoning='only this'\n", Outcome::ReasoningOnly, None, 200),
        (
            "text='x'\nerror='server_error'\n",
            Outcome::ServerError,
            None,
            200,
        ),
        (
            "text='x'\nerror='rate_limit_exceeded'\n",
            Outcome::RateLimit,
            None,
            200,
        ),
        (
            "text='0123456789'\npiece=1\ndrop_after=4\n",
            Outcome::Truncated,
            None,
            200,
        ),
        (
            "text='x'\nuntil_close=true\ndrop_after=1\n",
            Outcome::Truncated,
            None,
            200,
        ),
        (
            "text='x'\nmodel='other'\n",
            Outcome::WrongModel,
            Some(RefusalReason::OtherName),
            502,
        ),
        (
            "text='x'\nmodel='Lab-1'\n",
            Outcome::WrongModel,
            Some(RefusalReason::OtherName),
            502,
        ),
        (
            "text='x'\nunnamed=true\n",
            Outcome::WrongModel,
            Some(RefusalReason::NoName),
            502,
        ),
        (
            "garbage=\"data: <html>\\n\\n\"\n",
            Outcome::Transport,
            Some(RefusalReason::Garbled),
            502,
        ),
        (whole, Outcome::Ok, None, 200),
    ] {
        let lab = lab(&format!("[[turn]]\n{turn}"));
        let answer = lab.chat();
        assert_eq!(answer.head.status, status, "{turn}: {}", answer.body);
        assert_eq!(answer.whole, outcome != Outcome::Truncated, "{turn}");
        let call = lab.only_call();
        assert_eq!((call.outcome, call.why), (outcome, why), "{turn}: {call:?}");
    }
}

#[test]
fn odd_but_honest_requests_pass() {
    let lab = lab(TURN);
    let body = body_of(CHAT).to_string();
    let chunked: String = body
        .as_bytes()
        .chunks(7)
        .map(|c| format!("{:x}\r\n{}\r\n", c.len(), String::from_utf8_lossy(c)))
        .collect();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n",
        lab.token
    );
    assert_eq!(
        lab.raw(&format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n{chunked}0\r\n\r\n"
        ))
        .head
        .status,
        200
    );
    let mut socket = lab.connect();
    socket
        .write_all(
            format!(
                "{head}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        )
        .unwrap();
    let mut interim = [0u8; 25];
    socket.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket.write_all(body.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut socket).unwrap().head.status, 200);
    let old = lab.raw(&format!(
        "POST /chat/completions HTTP/1.0\r\nx-api-key: {}\r\nContent-Length: {}\r\n\r\n{body}",
        lab.token,
        body.len()
    ));
    assert_eq!(old.head.status, 200);
    assert!(
        old.head.headers.one("transfer-encoding").is_none() && old.body.ends_with("[DONE]\n\n"),
        "{}",
        old.body
    );
    let long =
        json!({"model": MODEL, "messages": [{"role": "user", "content": "x".repeat(3_000_000)}]})
            .to_string();
    assert_eq!(
        lab.raw(&lab.text(path_of(CHAT), "", &long)).head.status,
        200,
        "a long prompt waits in a file"
    );
    let models = lab.raw(&format!(
        "GET /v1/models HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\n\r\n",
        lab.token
    ));
    assert_eq!(
        serde_json::from_str::<Value>(&models.body).unwrap()["data"][0]["id"],
        MODEL
    );
    let report = lab.finish();
    assert!(
        report.calls.iter().all(|call| call.outcome == Outcome::Ok),
        "{report:?}"
    );
    assert_eq!(report.spent.calls, 4);
}
