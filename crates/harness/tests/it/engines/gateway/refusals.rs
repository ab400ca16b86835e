//! What the gateway refuses: requests that may not pass, and answers of another model.

use std::io::{Read, Write};

use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{Outcome, RefusalReason};
use serde_json::{Value, json};

use crate::fixtures::gateway_lab::*;

#[test]
fn another_model_never_reaches_the_engine() {
    for protocol in Protocol::ALL {
        for wrong in ["model='other'", "unnamed=true"] {
            let lab = lab_with(
                protocol,
                &format!("[[turn]]\ntext='forbidden words'\npiece=3\nlatency_ms=1\n{wrong}\n"),
                |_| {},
            );
            let answer = lab.ask(protocol);
            assert_eq!(answer.head.status, 502, "{protocol:?} {wrong}");
            assert!(
                !answer.body.contains("forb"),
                "{protocol:?} {wrong}: {}",
                answer.body
            );
            let report = lab.finish();
            assert!(report.wrong_model(), "{report:?}");
        }
        let lab = lab_with(
            protocol,
            "[[turn]]\ntext='fine'\nmodel='lab-1-2026'\n",
            |route| route.aliases = vec!["lab-1-2026".into()],
        );
        assert_eq!(
            lab.ask(protocol).head.status,
            200,
            "an alias is the same model"
        );
        assert_eq!(
            lab.only_call().model_answered,
            MaybeKnown::Known("lab-1-2026".into())
        );
    }
    // A switch in the middle ends the stream there.
    let first = r#"data: {"model":"lab-1","choices":[{"delta":{"content":"a"}}]}"#;
    let second = r#"data: {"model":"other","choices":[{"delta":{"content":"forbidden"}}]}"#;
    let lab = lab(&format!(
        "[[turn]]\ngarbage='''{first}\n\n{second}\n\n'''\n"
    ));
    let answer = lab.chat();
    assert!(!answer.body.contains("forbidden") && (answer.head.status == 502 || !answer.whole));
    assert_eq!(lab.only_call().outcome, Outcome::WrongModel);
}

#[test]
fn requests_that_may_not_pass_are_refused_and_recorded() {
    let good = r#"{"model":"lab-1"}"#;
    let post = |headers: &str, body: &str| {
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}")
    };
    let sized = |body: &str| {
        post(
            &format!(
                "Authorization: Bearer TOKEN\r\nContent-Length: {}\r\n",
                body.len()
            ),
            body,
        )
    };
    let auth = "Authorization: Bearer TOKEN\r\n";
    let typed = |kind: &str| {
        let length = good.len();
        post(
            &format!("{auth}Content-Type: {kind}\r\nContent-Length: {length}\r\n"),
            good,
        )
    };
    for (request, why, status) in [
        (
            sized(r#"{"model":"lab-2"}"#),
            RefusalReason::OtherModel,
            400,
        ),
        (
            sized(r#"{"model":"Lab-1"}"#),
            RefusalReason::OtherModel,
            400,
        ),
        (
            sized(r#"{"model":"lab-1 "}"#),
            RefusalReason::OtherModel,
            400,
        ),
        (
            sized("{\"model\":\"l\u{430}b-1\"}"),
            RefusalReason::OtherModel,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","model":"lab-2"}"#),
            RefusalReason::DuplicateKey,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","Model":"lab-2"}"#),
            RefusalReason::ModelSwitch,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","models":["lab-2"]}"#),
            RefusalReason::ModelSwitch,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","tools":[{"type":"web_search"}]}"#),
            RefusalReason::HostedTool,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","Tools":[{"type":"web_search"}]}"#),
            RefusalReason::RequestField,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","plug\u0069ns":[]}"#),
            RefusalReason::RequestField,
            400,
        ),
        (
            sized(
                r#"{"model":"lab-1","messages":[{"content":[{"type":"image_url","image_url":{"url":"https://a.example/"}}]}]}"#,
            ),
            RefusalReason::RequestField,
            400,
        ),
        (sized(r#"{}"#), RefusalReason::NoModel, 400),
        (sized("[]"), RefusalReason::NotStrictJson, 400),
        (sized("not json"), RefusalReason::NotStrictJson, 400),
        (
            post(&format!("Content-Length: {}\r\n", good.len()), good),
            RefusalReason::BadToken,
            401,
        ),
        (
            post(
                &format!(
                    "Authorization: Bearer wrong\r\nContent-Length: {}\r\n",
                    good.len()
                ),
                good,
            ),
            RefusalReason::BadToken,
            401,
        ),
        (
            post(
                &format!("{auth}Content-Encoding: gzip\r\nContent-Length: 2\r\n"),
                "xx",
            ),
            RefusalReason::EncodedBody,
            415,
        ),
        (
            typed("application/json; charset=utf-7"),
            RefusalReason::EncodedBody,
            415,
        ),
        (
            typed("application/json\r\nContent-Type: text/plain"),
            RefusalReason::EncodedBody,
            415,
        ),
        (
            typed("application/x-www-form-urlencoded"),
            RefusalReason::EncodedBody,
            415,
        ),
        (
            post(&format!("{auth}Content-Length: 99999999999\r\n"), ""),
            RefusalReason::BodyTooLong,
            413,
        ),
        (
            post(
                &format!("{auth}Upgrade: websocket\r\nConnection: Upgrade\r\n"),
                "",
            ),
            RefusalReason::Upgrade,
            400,
        ),
        (
            post(
                &format!("{auth}Expect: 200-ok\r\nContent-Length: 2\r\n"),
                "{}",
            ),
            RefusalReason::Expectation,
            417,
        ),
        (
            format!("POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            RefusalReason::BadPath,
            404,
        ),
        (
            format!("POST /v1/responses HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            RefusalReason::BadPath,
            404,
        ),
        (
            format!("GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            RefusalReason::BadMethod,
            405,
        ),
        (
            format!("POST /v1/chat/completions?a=b HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            RefusalReason::BadQuery,
            400,
        ),
        (
            format!("CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            RefusalReason::AbsoluteTarget,
            400,
        ),
        (
            format!(
                "POST http://example.com/v1/chat/completions HTTP/1.1\r\nHost: x\r\n{auth}\r\n"
            ),
            RefusalReason::AbsoluteTarget,
            400,
        ),
        (
            "\u{0}\u{1}garbage\r\n\r\n".to_owned(),
            RefusalReason::BadHttp,
            400,
        ),
        (
            "POST / HTTP/1.1\r\n\r\n".to_owned(),
            RefusalReason::BadHttp,
            400,
        ),
        (
            post(
                &format!("{auth}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
                "",
            ),
            RefusalReason::BadHttp,
            400,
        ),
        (
            post(&format!("{auth}Transfer-Encoding: chunked\r\n"), "zz\r\n"),
            RefusalReason::BadHttp,
            400,
        ),
        ("x".repeat(70_000), RefusalReason::HeadTooLong, 431),
    ] {
        let lab = lab(TURN);
        let answer = lab.raw(&request.replace("TOKEN", &lab.token));
        assert_eq!(answer.head.status, status, "{why:?}: {}", answer.body);
        let told: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (told["error"]["type"].as_str(), &told["error"]["code"]),
            (Some("cto_refused"), &json!(why)),
            "{told}"
        );
        assert!(lab.log().is_empty(), "{why:?} went to the model");
        let call = lab.only_call();
        assert_eq!(
            (call.outcome, call.why, call.forwarded),
            (Outcome::Refused, Some(why), false)
        );
    }
}

#[test]
fn the_field_that_was_refused_is_named_in_every_protocol() {
    for (protocol, body, field) in [
        (
            Protocol::OpenaiChat,
            json!({"model": MODEL, "search_parameters": {}}),
            "search_parameters",
        ),
        (
            Protocol::OpenaiResponses,
            json!({"model": MODEL, "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://a.example/"}]}]}),
            "input.*.content.*.image_url",
        ),
        (
            Protocol::AnthropicMessages,
            json!({"model": MODEL, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}]}),
            "messages.*.content.*.source.type=url",
        ),
        (
            Protocol::GeminiGenerate,
            json!({"contents": [{"parts": [{"fileData": {"fileUri": "https://a.example/"}}]}]}),
            "contents.*.parts.*.fileData",
        ),
    ] {
        let lab = lab_with(protocol, TURN, |_| {});
        let answer = lab.raw(&lab.text(path_of(protocol), "", &body.to_string()));
        assert_eq!(answer.head.status, 400, "{}", answer.body);
        assert!(answer.body.contains(field), "{}", answer.body);
        assert!(lab.log().is_empty(), "{field} went to the model");
        let call = lab.only_call();
        assert_eq!(
            (call.why, call.field.as_deref()),
            (Some(RefusalReason::RequestField), Some(field))
        );
    }
    let lab = lab_with(CHAT, TURN, |route| {
        route.request_fields = vec!["search_parameters".into()];
    });
    let body = json!({"model": MODEL, "search_parameters": {}}).to_string();
    assert_eq!(
        lab.raw(&lab.text(path_of(CHAT), "", &body)).head.status,
        200
    );
    assert_eq!(
        lab.log()[0]["body"]["search_parameters"],
        json!({}),
        "as it came"
    );
}

#[test]
fn the_list_of_models_is_answered_whatever_part_of_it_is_asked_for() {
    for (protocol, target) in [
        (Protocol::OpenaiChat, "/v1/models?limit=20"),
        (
            Protocol::OpenaiResponses,
            "/v1/models?client_version=0.166.0",
        ),
        (
            Protocol::AnthropicMessages,
            "/v1/models?limit=1000&after_id=x",
        ),
        (Protocol::GeminiGenerate, "/v1beta/models?pageSize=50"),
    ] {
        let lab = lab_with(protocol, TURN, |_| {});
        let answer = lab.raw(&format!(
            "GET {target} HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\n\r\n",
            lab.token
        ));
        assert_eq!(answer.head.status, 200, "{target}: {}", answer.body);
        assert!(answer.body.contains(MODEL), "{}", answer.body);
        assert!(lab.log().is_empty());
    }
}

#[test]
fn a_refusal_can_be_followed_by_a_request() {
    let lab = lab(TURN);
    let mut socket = lab.connect();
    let wrong = lab.text(path_of(CHAT), "", r#"{"model":"other"}"#);
    let right = lab.text(path_of(CHAT), "", &body_of(CHAT).to_string());
    // All at once: pipelined.
    socket
        .write_all(format!("{wrong}{right}{right}").as_bytes())
        .unwrap();
    // Answers may come together; two of them are chunked and say where they end.
    let mut seen = String::new();
    let mut piece = [0u8; 8192];
    while seen.matches("\r\n0\r\n\r\n").count() < 2 {
        let read = socket.read(&mut piece).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    let statuses: Vec<&str> = seen
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| &answer[..3])
        .collect();
    assert_eq!(statuses, ["400", "200", "200"]);
    assert_eq!(lab.finish().calls.len(), 3);
}
