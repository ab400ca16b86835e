//! Recorded exchanges: what endpoints people have answer to one request, and what becomes of every
//! answer that is none. Short, by hand, in the formats their documentation gives.

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

const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A recorded answer of one kind of endpoint.
struct Recorded {
    profile: &'static str,
    protocol: Protocol,
    model: &'static str,
    answered: &'static str,
    /// What must stand in the request.
    sent: &'static [&'static str],
    events: &'static str,
}

const RECORDED: &[Recorded] = &[
    Recorded {
        profile: "openai",
        protocol: Protocol::OpenaiChat,
        model: "gpt-5.2",
        answered: "gpt-5.2-2025-12-11",
        sent: &[
            "POST /v1/chat/completions ",
            "authorization: Bearer lab-key",
            "\"max_completion_tokens\":1024",
            "\"stream_options\"",
        ],
        events: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-5.2-2025-12-11\",\"service_tier\":\"default\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5.2-2025-12-11\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ready\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5.2-2025-12-11\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5.2-2025-12-11\",\"choices\":[],\"usage\":{\"prompt_tokens\":14,\"completion_tokens\":2,\"total_tokens\":16}}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "anthropic",
        protocol: Protocol::AnthropicMessages,
        model: "claude-sonnet-4-5",
        answered: "claude-sonnet-4-5-20250929",
        sent: &[
            "POST /v1/messages ",
            "x-api-key: lab-key",
            "anthropic-version: 2023-06-01",
            "\"max_tokens\":1024",
        ],
        events: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5-20250929\",\"content\":[],\"usage\":{\"input_tokens\":14,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ready\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    },
    Recorded {
        profile: "google",
        protocol: Protocol::GeminiGenerate,
        model: "gemini-2.5-pro",
        answered: "gemini-2.5-pro",
        sent: &[
            "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse ",
            "x-goog-api-key: lab-key",
            "\"maxOutputTokens\":1024",
        ],
        events: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ready\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":1,\"totalTokenCount\":40,\"thoughtsTokenCount\":32},\"modelVersion\":\"gemini-2.5-pro\",\"responseId\":\"r\"}\n\n",
    },
    Recorded {
        profile: "google",
        protocol: Protocol::OpenaiChat,
        model: "models/gemini-2.5-pro",
        answered: "models/gemini-2.5-pro",
        sent: &[
            "POST /v1beta/openai/chat/completions ",
            "authorization: Bearer lab-key",
        ],
        events: "data: {\"choices\":[{\"delta\":{\"content\":\"ready\",\"role\":\"assistant\"},\"finish_reason\":\"stop\",\"index\":0}],\"created\":1,\"id\":\"x\",\"model\":\"models/gemini-2.5-pro\",\"object\":\"chat.completion.chunk\"}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "openrouter",
        protocol: Protocol::OpenaiChat,
        model: "qwen/qwen3-coder:free",
        answered: "qwen/qwen3-coder:free",
        sent: &[
            "POST /api/v1/chat/completions ",
            "\"model\":\"qwen/qwen3-coder:free\"",
        ],
        events: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: {\"id\":\"gen-1\",\"provider\":\"Chutes\",\"model\":\"qwen/qwen3-coder:free\",\"object\":\"chat.completion.chunk\",\"created\":1,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ready\"},\"finish_reason\":\"stop\",\"native_finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "azure",
        protocol: Protocol::OpenaiChat,
        model: "gpt-4o",
        answered: "gpt-4o-2024-08-06",
        sent: &[
            "POST /openai/v1/chat/completions?api-version=2024-10-21 ",
            "api-key: lab-key",
        ],
        events: "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"hate\":{\"filtered\":false,\"severity\":\"safe\"}}}]}\n\ndata: {\"choices\":[{\"content_filter_results\":{},\"delta\":{\"content\":\"ready\",\"role\":\"assistant\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-2024-08-06\",\"object\":\"chat.completion.chunk\",\"system_fingerprint\":\"fp_1\"}\n\ndata: {\"choices\":[{\"content_filter_results\":{},\"delta\":{},\"finish_reason\":\"stop\",\"index\":0}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-2024-08-06\",\"object\":\"chat.completion.chunk\"}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "vllm",
        protocol: Protocol::OpenaiChat,
        model: "Qwen/Qwen3-32B",
        answered: "Qwen/Qwen3-32B",
        sent: &["POST /v1/chat/completions "],
        events: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"Qwen/Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"Qwen/Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"Qwen/Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ready\"},\"finish_reason\":\"stop\",\"stop_reason\":null}]}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "llama-cpp",
        protocol: Protocol::OpenaiChat,
        model: "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M",
        answered: "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M",
        sent: &["POST /v1/chat/completions "],
        events: "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M\",\"system_fingerprint\":\"b6000\",\"object\":\"chat.completion.chunk\"}\n\ndata: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\"ready\"}}],\"model\":\"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M\"}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}],\"model\":\"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M\",\"timings\":{\"prompt_n\":12,\"predicted_n\":2}}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "ollama",
        protocol: Protocol::OpenaiChat,
        model: "qwen3-coder:30b",
        answered: "qwen3-coder:30b",
        sent: &["POST /v1/chat/completions "],
        events: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"qwen3-coder:30b\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ready\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"qwen3-coder:30b\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "lm-studio",
        protocol: Protocol::OpenaiResponses,
        model: "openai/gpt-oss-20b",
        answered: "openai/gpt-oss-20b",
        sent: &["POST /v1/responses ", "\"max_output_tokens\":1024"],
        events: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"openai/gpt-oss-20b\",\"output\":[]},\"sequence_number\":0}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"delta\":\"ready\",\"sequence_number\":1}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"model\":\"openai/gpt-oss-20b\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"ready\"}]}],\"usage\":{\"input_tokens\":14,\"output_tokens\":2}}}\n\n",
    },
];

#[test]
fn every_profile_answers_as_it_was_recorded() {
    for profile in Profile::NAMES {
        let has = RECORDED.iter().any(|recorded| recorded.profile == *profile);
        assert!(has, "{profile} has no recorded exchange");
    }
    for recorded in RECORDED {
        let profile = Profile::named(recorded.profile).unwrap();
        let base = profile.base(recorded.protocol).unwrap();
        let answer: &'static str = format!("{SSE}{}", recorded.events).leak();
        let (port, asked) = serve(vec![Act::Say(answer)]);
        let url = format!("http://127.0.0.1:{port}{base}");
        let mut route = route(recorded.protocol, &url, recorded.model);
        route.auth = profile.auth;
        route.api_version = profile.takes_api_version.then(|| "2024-10-21".into());
        let agent = ["max_completion_tokens", "stream_options"].map(String::from);
        route.habits = Habits::of(&agent).with(profile.switches);
        let found = ask(&route);
        let sent = asked.join().unwrap().remove(0);
        assert_eq!(
            found.call.outcome,
            Outcome::Ok,
            "{}: {:?}",
            recorded.profile,
            found.call
        );
        assert!(found.call.content, "{}", recorded.profile);
        assert_eq!(found.answered_model.as_deref(), Some(recorded.answered));
        let other = (recorded.model != recorded.answered).then_some(recorded.answered);
        assert_eq!(found.other_name(&route), other);
        for part in recorded.sent {
            assert!(
                sent.contains(part),
                "{}: {part} is not in {sent}",
                recorded.profile
            );
        }
        assert_eq!((found.switches, found.error_body), (vec![], None));
    }
}

/// Every answer that is none, and what is made of it. The names are those of the page for people.
#[test]
fn every_bad_answer_has_its_own_end() {
    let plain = |text: &str| -> Act { Act::Say(text.to_owned().leak()) };
    let status = |status: u16, body: &str| {
        plain(&format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let named = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"ready\"},\"finish_reason\":null}]}\n\n";
    let done = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let thought = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let unnamed = "data: {\"choices\":[{\"delta\":{\"content\":\"ready\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let html = "<!doctype html><html><body>Sign in</body></html>";
    let page = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{html}",
        html.len()
    );
    let rows: Vec<(&str, Act, Outcome, Option<RefusalReason>)> = vec![
        (
            "html",
            plain(&page),
            Outcome::Transport,
            Some(RefusalReason::Garbled),
        ),
        ("401", status(401, "{}"), Outcome::Auth, None),
        ("403", status(403, "{}"), Outcome::Auth, None),
        ("404", status(404, html), Outcome::ModelError, None),
        ("429", status(429, "{}"), Outcome::RateLimit, None),
        ("500", status(500, "oops"), Outcome::ServerError, None),
        (
            "redirect",
            plain(
                "HTTP/1.1 302 Found\r\nlocation: http://elsewhere.example/\r\ncontent-length: 0\r\n\r\n",
            ),
            Outcome::Redirected,
            None,
        ),
        (
            "gzip",
            plain(
                "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x0bxx",
            ),
            Outcome::Transport,
            Some(RefusalReason::EncodedAnswer),
        ),
        (
            "empty",
            plain(""),
            Outcome::Transport,
            Some(RefusalReason::Reset),
        ),
        ("empty body", plain(SSE), Outcome::Truncated, None),
        (
            "no model name",
            plain(&format!("{SSE}{unnamed}")),
            Outcome::WrongModel,
            Some(RefusalReason::NoName),
        ),
        (
            "reasoning only",
            plain(&format!("{SSE}{thought}")),
            Outcome::ReasoningOnly,
            None,
        ),
        (
            "garbage",
            plain("\u{1}\u{2}\u{3}\r\n\r\n"),
            Outcome::Transport,
            Some(RefusalReason::Garbled),
        ),
        (
            "garbage in a stream",
            plain(&format!("{SSE}data: {{{{\n\n")),
            Outcome::Transport,
            Some(RefusalReason::Garbled),
        ),
        (
            "cut",
            plain(&format!("{CHUNKED}{}", chunk(named))),
            Outcome::Truncated,
            None,
        ),
        // What the protocol itself has ended is whole, however the connection ends.
        (
            "closed after [DONE]",
            plain(&format!("{CHUNKED}{}{}", chunk(named), chunk(done))),
            Outcome::Ok,
            None,
        ),
        (
            "ended by close",
            plain(&format!("{SSE}{named}{done}")),
            Outcome::Ok,
            None,
        ),
        (
            "endless",
            Act::Repeat(format!("{SSE}{named}").leak(), named),
            Outcome::Budget,
            Some(RefusalReason::Bytes),
        ),
        ("slow", Act::Wait, Outcome::Stalled, None),
    ];
    for (name, act, outcome, why) in rows {
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
    let head = crate::outbound::list_head(&route);
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
    assert_eq!(found.unwrap(), ["a/b:c"]);
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
