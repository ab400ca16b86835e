//! No engine reads the endpoint or the key of its model, and no model the accounts of an engine.

use std::io::{Read, Write};
use std::net::TcpListener;

use cto_core::wire::Protocol;
use cto_core::wire::scenario::Scenario;
use cto_harness::doubles::model::Model;
use serde_json::json;

use crate::fixtures::gateway_lab::*;

#[test]
fn the_endpoint_and_the_key_are_in_no_byte_the_engine_reads() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let base = format!("http://{address}/v1");
    let echo = format!(
        "you at {base} with key {KEY} and {} again",
        base.replace('/', "\\\\/")
    );
    let headers = format!(
        "headers={{server='{address}',set-cookie='a={KEY}',x-request-id='{address}',openai-organization='org-1',location='{base}',content-type='application/json; at={address}',retry-after='{KEY}'}}"
    );
    let scenario = format!(
        "select='requests'\n[[turn]]\nstatus=401\nbody='{{\"error\":\"{echo}\"}}'\n{headers}\n\
         [[turn]]\nstatus=302\nbody='{echo}'\n{headers}\n[[turn]]\nstatus=500\nbody='{echo}'\n\
         [[turn]]\ntext='{echo}'\npiece=200\n[[turn]]\ntext='x'\nmodel='{base}'\n[[turn]]\nhang_up=true\n[[turn]]\ngarbage='{echo}'\n"
    );
    Model::start(
        listener,
        Scenario::parse(&scenario).unwrap(),
        Some(log.reopen().unwrap()),
    )
    .unwrap();
    let lab = open(route_to(CHAT, &base), base.clone(), log);
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.extend_from_slice(&lab.chat().raw);
    }
    let wrong = lab.text(path_of(CHAT), "", r#"{"model":"other"}"#);
    seen.extend_from_slice(&lab.raw(&wrong).raw);
    seen.extend_from_slice(
        &lab.raw(&format!(
            "GET /v1/models HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\n\r\n",
            lab.token
        ))
        .raw,
    );
    let report = serde_json::to_string(&lab.finish()).unwrap();
    for text in [String::from_utf8_lossy(&seen).into_owned(), report] {
        for secret in [KEY, base.as_str(), &address.to_string(), "org-1"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    assert!(String::from_utf8_lossy(&seen).contains("[redacted]"));
}

#[test]
fn a_key_in_pieces_is_taken_out_too() {
    let log = tempfile::NamedTempFile::new().unwrap();
    // The pieces are of the connection, not of the text: here the whole body is one JSON text cut
    // anywhere.
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
    assert_eq!(lab.chat().body, "{\"error\":\"bad key [redacted]!\"}");
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
                     Proxy-Authorization: x\r\nX-Model: other\r\nAccept-Encoding: gzip\r\nTE: trailers\r\nAnthropic-Beta: b1\r\n";
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
