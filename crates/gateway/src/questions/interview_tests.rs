//! What becomes of every answer that is none, and what a person is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use cto_core::wire::Protocol;
use cto_core::wire::calls::{Outcome, RefusalReason};
use cto_core::wire::endpoint::Endpoint;
use cto_core::wire::profiles::Profile;
use cto_core::wire::profiles::switch::{Habits, TokenField};

use super::*;
use crate::{Credential, CredentialClass, HeaderValue, list_models};

#[path = "recorded_tests.rs"]
mod recorded;
use recorded::{RECORDED, SSE};

const KEY: &str = "lab-key-0123456789";

/// What a server does with one request.
#[derive(Clone, Copy)]
enum Act {
    Say(&'static str),
    /// Never answers; ends when the other side has left.
    Wait,
    /// Says this for ever, once it has said the first.
    Repeat(&'static str, &'static str),
}

/// Answers one connection after the other; returns what was asked.
fn serve_on(listener: TcpListener, acts: Vec<Act>) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        acts.into_iter()
            .map(|act| {
                let (mut socket, _) = listener.accept().unwrap();
                let asked = request(&mut socket);
                match act {
                    Act::Say(text) => socket.write_all(text.as_bytes()).unwrap(),
                    Act::Wait => drop(socket.read(&mut [0u8; 1])),
                    Act::Repeat(first, more) => {
                        socket.write_all(first.as_bytes()).unwrap();
                        let piece = more.repeat(200);
                        while socket.write_all(piece.as_bytes()).is_ok() {}
                    }
                }
                asked
            })
            .collect()
    })
}

fn request(socket: &mut TcpStream) -> String {
    let mut got = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&got).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |digits| digits.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        match socket.read(&mut buffer).unwrap() {
            0 => return text,
            n => got.extend_from_slice(&buffer[..n]),
        }
    }
}

fn serve(acts: Vec<Act>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, serve_on(listener, acts))
}

fn route(protocol: Protocol, url: &str, model: &str) -> Route {
    let credential = Credential::load(&CredentialClass::Environment("K".into()), &|_| {
        Some(KEY.into())
    });
    let endpoint = Endpoint::parse(url).unwrap();
    Route::new(protocol, endpoint, Some(credential.unwrap()), model).unwrap()
}

fn ask(route: &Route) -> Interview {
    interview(route, &mut |_| true).unwrap()
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

const NAMED: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"ready\"},\"finish_reason\":null}]}\n\n";
const DONE: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const THOUGHT: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
const UNNAMED: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"ready\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const HTML: &str = "<!doctype html><html><body>Sign in</body></html>";

fn say(text: String) -> Act {
    Act::Say(text.leak())
}

fn status(status: u16, body: &str) -> Act {
    say(format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

type Row = (&'static str, Act, Outcome, Option<RefusalReason>);

/// The names are those of the page for people.
fn refusals() -> Vec<Row> {
    let gzip = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x0bxx";
    let moved =
        "HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example/\r\ncontent-length: 0\r\n\r\n";
    let garbled = Some(RefusalReason::Garbled);
    vec![
        ("html", status(200, HTML), Outcome::Transport, garbled),
        ("401", status(401, "{}"), Outcome::Auth, None),
        ("403", status(403, "{}"), Outcome::Auth, None),
        ("404", status(404, HTML), Outcome::ModelError, None),
        ("429", status(429, "{}"), Outcome::RateLimit, None),
        ("500", status(500, "oops"), Outcome::ServerError, None),
        ("redirect", Act::Say(moved), Outcome::Redirected, None),
        (
            "gzip",
            Act::Say(gzip),
            Outcome::Transport,
            Some(RefusalReason::EncodedAnswer),
        ),
        (
            "empty",
            Act::Say(""),
            Outcome::Transport,
            Some(RefusalReason::Reset),
        ),
        (
            "garbage",
            Act::Say("\u{1}\u{2}\u{3}\r\n\r\n"),
            Outcome::Transport,
            garbled,
        ),
    ]
}

fn streams() -> Vec<Row> {
    let broken = "data: {{\n\n";
    vec![
        ("empty body", Act::Say(SSE), Outcome::Truncated, None),
        (
            "no model name",
            say(format!("{SSE}{UNNAMED}")),
            Outcome::WrongModel,
            Some(RefusalReason::NoName),
        ),
        (
            "reasoning only",
            say(format!("{SSE}{THOUGHT}")),
            Outcome::ReasoningOnly,
            None,
        ),
        (
            "garbage in a stream",
            say(format!("{SSE}{broken}")),
            Outcome::Transport,
            Some(RefusalReason::Garbled),
        ),
        (
            "cut",
            say(format!("{CHUNKED}{}", chunk(NAMED))),
            Outcome::Truncated,
            None,
        ),
        // What the protocol itself has ended is whole, however the connection ends.
        (
            "closed after [DONE]",
            say(format!("{CHUNKED}{}{}", chunk(NAMED), chunk(DONE))),
            Outcome::Ok,
            None,
        ),
        (
            "ended by close",
            say(format!("{SSE}{NAMED}{DONE}")),
            Outcome::Ok,
            None,
        ),
        (
            "endless",
            Act::Repeat(format!("{SSE}{NAMED}").leak(), NAMED),
            Outcome::Budget,
            Some(RefusalReason::Bytes),
        ),
        ("slow", Act::Wait, Outcome::Stalled, None),
    ]
}

#[test]
fn every_bad_answer_has_its_own_end() {
    for (name, act, outcome, why) in refusals().into_iter().chain(streams()) {
        let (port, asked) = serve(vec![act]);
        let mut route = route(
            Protocol::OpenaiChat,
            &format!("http://127.0.0.1:{port}/v1"),
            "m",
        );
        if name == "slow" {
            route.timeouts.first_byte = Duration::from_millis(300);
        }
        let found = ask(&route);
        assert_eq!(
            (found.call.outcome, found.call.why),
            (outcome, why),
            "{name}"
        );
        assert_eq!(asked.join().unwrap().len(), 1, "{name}: asked once");
    }
}

#[test]
fn a_refusal_is_told_without_what_is_private_and_without_what_a_terminal_obeys() {
    let body = format!("{{\"error\":{{\"message\":\"bad key {KEY}\u{1b}[2J\"}}}}");
    let answer = format!(
        "HTTP/1.1 401 X\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (port, asked) = serve(vec![Act::Say(answer.leak())]);
    let route = route(
        Protocol::OpenaiChat,
        &format!("http://127.0.0.1:{port}/v1"),
        "m",
    );
    let words = ask(&route).error_body.unwrap();
    asked.join().unwrap();
    assert!(words.contains("bad key [redacted]"), "{words}");
    assert!(!words.contains(KEY) && !words.contains('\u{1b}'), "{words}");
}

#[test]
fn a_field_that_is_refused_by_name_is_asked_for_otherwise_and_remembered() {
    let refuse = |field: &str| {
        let body = format!("{{\"error\":{{\"message\":\"Unsupported parameter: '{field}'\"}}}}");
        let text = format!(
            "HTTP/1.1 400 X\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Act::Say(text.leak())
    };
    let good: &'static str = format!("{SSE}{}", RECORDED[0].events).leak();
    let (port, asked) = serve(vec![refuse("max_tokens"), refuse("store"), Act::Say(good)]);
    let mut route = route(
        Protocol::OpenaiChat,
        &format!("http://127.0.0.1:{port}/v1"),
        RECORDED[0].answered,
    );
    route.habits = Habits {
        token_field: TokenField::MaxTokens,
        store: true,
        stream_options: true,
    };
    let found = ask(&route);
    assert_eq!(found.call.outcome, Outcome::Ok);
    assert_eq!(
        found.switches,
        [Switch::MaxCompletionTokens, Switch::NoStore]
    );
    assert_eq!(found.earlier.len(), 2);
    let asked = asked.join().unwrap();
    assert!(asked[0].contains("\"max_tokens\"") && asked[0].contains("\"store\""));
    assert!(asked[2].contains("\"max_completion_tokens\"") && !asked[2].contains("\"store\""));
    assert!(!asked[2].contains("\"max_tokens\""));
    // A server that wants neither is not asked for ever.
    let (port, asked) = serve(vec![
        refuse("max_tokens"),
        refuse("max_completion_tokens"),
        refuse("max_tokens"),
    ]);
    route.endpoint = Endpoint::parse(&format!("http://127.0.0.1:{port}/v1")).unwrap();
    let found = ask(&route);
    assert_eq!(found.call.outcome, Outcome::ModelError);
    assert_eq!(asked.join().unwrap().len(), 3);
}

#[test]
fn what_is_given_up_ends_at_once_and_its_connection_with_it() {
    let (port, asked) = serve(vec![Act::Wait]);
    let route = route(
        Protocol::OpenaiChat,
        &format!("http://127.0.0.1:{port}/v1"),
        "m",
    );
    assert_eq!(interview(&route, &mut |_| false), Err(GivenUp::Cancelled));
    // The server's thread ends only when the other side has left; at most its head came through.
    drop(TcpStream::connect(("127.0.0.1", port)));
    asked.join().unwrap();
}

#[test]
fn an_endpoint_by_ipv6_is_reached() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return assert!(std::path::Path::new("/proc/net").exists(), "no IPv6 here");
    };
    let port = listener.local_addr().unwrap().port();
    let answer: &'static str = format!("{SSE}{}", RECORDED[0].events).leak();
    let asked = serve_on(listener, vec![Act::Say(answer)]);
    let route = route(
        Protocol::OpenaiChat,
        &format!("http://[::1]:{port}/v1"),
        "m",
    );
    assert_eq!(ask(&route).call.outcome, Outcome::Ok);
    assert!(asked.join().unwrap()[0].contains(&format!("host: [::1]:{port}\r\n")));
}

#[test]
fn headers_of_the_operator_go_with_every_request_and_a_credential_stays_home() {
    let answer: &'static str = format!("{SSE}{}", RECORDED[0].events).leak();
    let (port, asked) = serve(vec![Act::Say(answer)]);
    let mut route = route(
        Protocol::OpenaiChat,
        &format!("http://127.0.0.1:{port}/v1"),
        "m",
    );
    route.headers = vec![("X-Title".into(), HeaderValue::new("lab").unwrap())];
    ask(&route);
    assert!(asked.join().unwrap()[0].contains("\r\nX-Title: lab\r\n"));
    // Not in the clear across a network, whoever made the route.
    route.endpoint = Endpoint::parse("http://192.168.0.9/v1").unwrap();
    let head = crate::endpoint_side::outbound::list_head(&route);
    assert!(!head.contains(KEY), "{head}");
}

#[test]
fn lists_of_models_are_read_from_the_same_host_and_nothing_else_is_taken_for_one() {
    let ok = |body: &str| {
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Act::Say(text.leak())
    };
    let list = |act: Act| {
        let (port, asked) = serve(vec![act]);
        let route = route(
            Protocol::OpenaiChat,
            &format!("http://127.0.0.1:{port}/v1"),
            "m",
        );
        let found = list_models(&route, &mut |_| true);
        (found, asked.join().unwrap().remove(0))
    };
    let (found, asked) = list(ok("{\"object\":\"list\",\"data\":[{\"id\":\"a/b:c\"}]}"));
    let names = found.unwrap().into_iter().map(|listed| listed.name);
    assert_eq!(names.collect::<Vec<_>>(), ["a/b:c"]);
    assert!(asked.starts_with("GET /v1/models HTTP/1.1\r\n"), "{asked}");
    for (act, want) in [
        (ok("<html>"), "no list"),
        (
            Act::Say("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n"),
            "status 404",
        ),
        (
            Act::Say("HTTP/1.1 302 X\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n"),
            "status 302",
        ),
        (
            Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{\"data\":[]}"),
            "no list",
        ),
        (Act::Say(""), "could not be asked"),
        (
            Act::Repeat("HTTP/1.1 200 OK\r\n\r\n{\"data\":[", "\"m\","),
            "no list",
        ),
    ] {
        let said = list(act).0.unwrap_err().to_string();
        assert!(said.contains(want), "{said}");
    }
}
