//! The model gateway against the scripted model, over real sockets: what passes, what is refused,
//! how each way to fail is told apart, and that neither endpoint nor key ever reaches the engine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use cto_core::values::seen::Seen;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{CallRecord, GatewayReport, Outcome, Why};
use cto_core::wire::endpoint::Endpoint;
use cto_core::wire::http::{BodyReader, ResponseHead, response_head};
use cto_core::wire::scenario::Scenario;
use cto_gateway::{Credential, CredentialClass, Gateway, Route};
use cto_harness::doubles::model::Model;
use serde_json::{Value, json};

pub const KEY: &str = "key-of-the-operator-0123456789";
const MODEL: &str = "lab-1";
pub const CHAT: Protocol = Protocol::OpenaiChat;

/// A gateway, the model behind it, and what an engine knows of both.
pub struct Lab {
    gateway: Gateway,
    port: u16,
    token: String,
    endpoint: String,
    log: tempfile::NamedTempFile,
}

pub struct Answer {
    pub head: ResponseHead,
    pub body: String,
    /// Did the body come to its end?
    pub whole: bool,
    /// Every byte that came.
    raw: Vec<u8>,
}

fn credential() -> Credential {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), KEY).unwrap();
    Credential::load(&CredentialClass::File(file.path().into()), &|_| None).unwrap()
}

pub fn route_to(protocol: Protocol, base: &str) -> Route {
    let mut route = Route::new(
        protocol,
        Endpoint::parse(base).unwrap(),
        Some(credential()),
        MODEL,
    )
    .map_err(|_| ())
    .unwrap();
    route.patience.stall = Duration::from_secs(20);
    route
}

pub fn model(scenario: &str, log: &tempfile::NamedTempFile) -> String {
    let scenario = Scenario::parse(scenario).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let model = Model::start(listener, scenario, Some(log.reopen().unwrap())).unwrap();
    format!("http://{}/v1", model.address)
}

pub fn lab_with(protocol: Protocol, scenario: &str, change: impl FnOnce(&mut Route)) -> Lab {
    let log = tempfile::NamedTempFile::new().unwrap();
    let endpoint = model(&format!("key = '{KEY}'\n{scenario}"), &log);
    let mut route = route_to(protocol, &endpoint);
    change(&mut route);
    open(route, endpoint, log)
}

pub fn open(route: Route, endpoint: String, log: tempfile::NamedTempFile) -> Lab {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = route.token.reveal().to_owned();
    Lab {
        gateway: cto_gateway::start(listener, route).unwrap(),
        port,
        token,
        endpoint,
        log,
    }
}

pub fn lab(scenario: &str) -> Lab {
    lab_with(CHAT, scenario, |_| {})
}

pub fn path_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "/v1/chat/completions",
        Protocol::OpenaiResponses => "/v1/responses",
        Protocol::AnthropicMessages => "/v1/messages",
        Protocol::GeminiGenerate => "/v1beta/models/lab-1:streamGenerateContent?alt=sse",
    }
}

pub fn body_of(protocol: Protocol) -> Value {
    match protocol {
        Protocol::GeminiGenerate => {
            json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
        }
        Protocol::OpenaiResponses => {
            json!({"model": MODEL, "input": [{"role": "user", "content": "hi"}], "stream": true})
        }
        _ => {
            json!({"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": true, "max_tokens": 9})
        }
    }
}

/// Reads one answer, or what there is of it.
pub fn read_answer(socket: &mut TcpStream) -> Option<Answer> {
    let (mut got, mut buffer, mut raw) = (Vec::new(), [0u8; 8192], Vec::new());
    let mut more = |got: &mut Vec<u8>, raw: &mut Vec<u8>| {
        let n = socket.read(&mut buffer).unwrap_or(0);
        got.extend_from_slice(&buffer[..n]);
        raw.extend_from_slice(&buffer[..n]);
        n
    };
    let head = loop {
        match response_head(&got).unwrap() {
            Some((head, used)) => {
                got.drain(..used);
                if head.status != 100 {
                    break head;
                }
            }
            None if more(&mut got, &mut raw) == 0 => return None,
            None => {}
        }
    };
    let (mut reader, mut body) = (BodyReader::new(head.body), Vec::new());
    loop {
        let used = reader
            .push(&got, &mut |bytes| body.extend_from_slice(bytes))
            .unwrap();
        got.drain(..used);
        if reader.is_done() || more(&mut got, &mut raw) == 0 {
            break;
        }
    }
    let whole = reader.closed_well();
    Some(Answer {
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
        whole,
        raw,
    })
}

impl Lab {
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    pub fn text(&self, target: &str, headers: &str, body: &str) -> String {
        let token = &self.token;
        let length = body.len();
        format!(
            "POST {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
    }

    pub fn raw(&self, request: &str) -> Answer {
        let mut socket = self.connect();
        socket.write_all(request.as_bytes()).unwrap();
        read_answer(&mut socket).unwrap()
    }

    pub fn ask(&self, protocol: Protocol) -> Answer {
        self.raw(&self.text(path_of(protocol), "", &body_of(protocol).to_string()))
    }

    pub fn chat(&self) -> Answer {
        self.ask(CHAT)
    }

    /// What the model was asked, line by line.
    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log.path()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn finish(self) -> GatewayReport {
        self.gateway.finish()
    }

    /// The one call there was.
    fn only_call(self) -> CallRecord {
        let report = self.finish();
        assert_eq!(report.calls.len(), 1, "{report:?}");
        report.calls.into_iter().next().unwrap()
    }
}

pub const TURN: &str = "[[turn]]\nreasoning='hm'\ntext='I will write it.'\nusage={input=10,output=5,reasoning=2}\n[[turn.tool]]\nname='write'\narguments={path='a.txt',content='x'}\n";

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
            assert_eq!(call.model_answered, Seen::Known(MODEL.into()));
            assert_eq!(
                (
                    call.tokens.input,
                    call.tool_calls,
                    call.content,
                    call.reasoning
                ),
                (Seen::Known(10), 1, true, true),
                "{call:?}"
            );
            assert_eq!(
                call.response_sha256,
                Seen::Known(cto_core::values::digest::Digest::of(
                    through.body.as_bytes()
                ))
            );
            assert_eq!(
                call.request_sha256,
                Seen::Known(cto_core::values::digest::Digest::of(
                    body.to_string().as_bytes()
                ))
            );
            assert_eq!(call.status, Seen::Known(200));
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
            Some(Why::Garbled),
            502,
        ),
        ("hang_up=true\n", Outcome::Transport, Some(Why::Reset), 502),
        (
            "garbage='<html>'\nheaders={content-type='text/html'}\n",
            Outcome::Transport,
            Some(Why::Garbled),
            502,
        ),
        (
            "text='x'\nheaders={content-encoding='gzip'}\n",
            Outcome::Transport,
            Some(Why::EncodedAnswer),
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
            Some(Why::OtherName),
            502,
        ),
        (
            "text='x'\nmodel='Lab-1'\n",
            Outcome::WrongModel,
            Some(Why::OtherName),
            502,
        ),
        (
            "text='x'\nunnamed=true\n",
            Outcome::WrongModel,
            Some(Why::NoName),
            502,
        ),
        (
            "garbage=\"data: <html>\\n\\n\"\n",
            Outcome::Transport,
            Some(Why::Garbled),
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
            Seen::Known("lab-1-2026".into())
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
    for (request, why, status) in [
        (sized(r#"{"model":"lab-2"}"#), Why::OtherModel, 400),
        (sized(r#"{"model":"Lab-1"}"#), Why::OtherModel, 400),
        (sized(r#"{"model":"lab-1 "}"#), Why::OtherModel, 400),
        (sized("{\"model\":\"l\u{430}b-1\"}"), Why::OtherModel, 400),
        (
            sized(r#"{"model":"lab-1","model":"lab-2"}"#),
            Why::DuplicateKey,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","Model":"lab-2"}"#),
            Why::ModelSwitch,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","models":["lab-2"]}"#),
            Why::ModelSwitch,
            400,
        ),
        (
            sized(r#"{"model":"lab-1","tools":[{"type":"web_search"}]}"#),
            Why::HostedTool,
            400,
        ),
        (sized(r#"{}"#), Why::NoModel, 400),
        (sized("[]"), Why::NotStrictJson, 400),
        (sized("not json"), Why::NotStrictJson, 400),
        (
            post(&format!("Content-Length: {}\r\n", good.len()), good),
            Why::BadToken,
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
            Why::BadToken,
            401,
        ),
        (
            post(
                &format!("{auth}Content-Encoding: gzip\r\nContent-Length: 2\r\n"),
                "xx",
            ),
            Why::EncodedBody,
            415,
        ),
        (
            post(&format!("{auth}Content-Length: 99999999999\r\n"), ""),
            Why::BodyTooLong,
            413,
        ),
        (
            post(
                &format!("{auth}Upgrade: websocket\r\nConnection: Upgrade\r\n"),
                "",
            ),
            Why::Upgrade,
            400,
        ),
        (
            post(
                &format!("{auth}Expect: 200-ok\r\nContent-Length: 2\r\n"),
                "{}",
            ),
            Why::Expectation,
            417,
        ),
        (
            format!("POST /v1/embeddings HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            Why::BadPath,
            404,
        ),
        (
            format!("POST /v1/responses HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            Why::BadPath,
            404,
        ),
        (
            format!("GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            Why::BadMethod,
            405,
        ),
        (
            format!("POST /v1/chat/completions?a=b HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            Why::BadQuery,
            400,
        ),
        (
            format!("CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n{auth}\r\n"),
            Why::AbsoluteTarget,
            400,
        ),
        (
            format!(
                "POST http://example.com/v1/chat/completions HTTP/1.1\r\nHost: x\r\n{auth}\r\n"
            ),
            Why::AbsoluteTarget,
            400,
        ),
        ("\u{0}\u{1}garbage\r\n\r\n".to_owned(), Why::BadHttp, 400),
        ("POST / HTTP/1.1\r\n\r\n".to_owned(), Why::BadHttp, 400),
        (
            post(
                &format!("{auth}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
                "",
            ),
            Why::BadHttp,
            400,
        ),
        (
            post(&format!("{auth}Transfer-Encoding: chunked\r\n"), "zz\r\n"),
            Why::BadHttp,
            400,
        ),
        ("x".repeat(70_000), Why::HeadTooLong, 431),
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
fn a_refusal_can_be_followed_by_a_request() {
    let lab = lab(TURN);
    let mut socket = lab.connect();
    let wrong = lab.text(path_of(CHAT), "", r#"{"model":"other"}"#);
    let right = lab.text(path_of(CHAT), "", &body_of(CHAT).to_string());
    // All at once: pipelined.
    socket
        .write_all(format!("{wrong}{right}{right}").as_bytes())
        .unwrap();
    for status in [400, 200, 200] {
        assert_eq!(read_answer(&mut socket).unwrap().head.status, status);
    }
    assert_eq!(lab.finish().calls.len(), 3);
}

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
