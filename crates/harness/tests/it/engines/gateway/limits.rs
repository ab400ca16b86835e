//! The model gateway when time, budget or a connection runs out, with many streams at once, and its
//! probe.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use cto_core::wire::Protocol;
use cto_core::wire::calls::{Outcome, ProbeOutcome, RefusalReason};
use cto_core::wire::endpoint::Endpoint;
use cto_gateway::Route;

use crate::fixtures::gateway_lab::{
    Answer, CHAT, KEY, TURN, body_of, lab, lab_with, model, open, path_of, route_to,
};

#[test]
fn budgets_end_what_would_not_end() {
    let spend = |change: &dyn Fn(&mut Route), scenario: &str, calls: usize| {
        let lab = lab_with(CHAT, scenario, |route| change(route));
        let answers: Vec<Answer> = (0..calls).map(|_| lab.chat()).collect();
        (answers, lab.finish())
    };
    let turn = "after='last'\n[[turn]]\ntext='x'\nusage={input=10,output=5}\n";
    for (change, why) in [
        (
            &(|route: &mut Route| route.budget.calls = 2) as &dyn Fn(&mut Route),
            RefusalReason::Calls,
        ),
        (
            &|route: &mut Route| route.budget.tokens = 30,
            RefusalReason::Tokens,
        ),
        (
            &|route: &mut Route| route.budget.wall_ms = 0,
            RefusalReason::Time,
        ),
    ] {
        let (answers, report) = spend(change, turn, 3);
        assert_eq!(report.budget_exceeded, Some(why));
        let last = report.calls.last().unwrap();
        assert_eq!(
            (last.outcome, last.why, last.forwarded),
            (Outcome::Budget, Some(why), false)
        );
        assert_eq!(answers[2].head.status, 429);
        assert_eq!(answers[2].head.headers.one("x-should-retry"), Some("false"));
    }
    let endless = "[[turn]]\ntext='0123456789'\nendless=true\n";
    let (answers, report) = spend(&|route| route.budget.bytes = 200_000, endless, 1);
    assert!(!answers[0].whole);
    assert_eq!(
        (report.calls[0].outcome, report.budget_exceeded),
        (Outcome::Budget, Some(RefusalReason::Bytes))
    );
    let (answers, report) = spend(&|route| route.budget.wall_ms = 300, endless, 1);
    assert!(!answers[0].whole);
    assert_eq!(
        (report.calls[0].outcome, report.calls[0].why),
        (Outcome::Budget, Some(RefusalReason::Time)),
        "it never pauses"
    );
    let silent = "[[turn]]\ntext='0123456789'\nsilent_after=1\n";
    let (answers, report) = spend(&|route| route.budget.wall_ms = 300, silent, 1);
    assert!(!answers[0].whole);
    assert_eq!(
        (report.calls[0].outcome, report.calls[0].why),
        (Outcome::Budget, Some(RefusalReason::Time))
    );
}

#[test]
fn silence_is_told_from_a_cut() {
    for (turn, status) in [("silent_after=0\n", 504), ("silent_after=2\n", 200)] {
        let lab = lab_with(
            CHAT,
            &format!("[[turn]]\ntext='0123456789'\npiece=1\n{turn}"),
            |route| {
                route.timeouts.stall = Duration::from_millis(150);
            },
        );
        let answer = lab.chat();
        assert_eq!((answer.head.status, answer.whole), (status, status == 504));
        let report = lab.finish();
        assert_eq!(report.wire_failure(), Some(Outcome::Stalled));
    }
}

#[test]
fn an_engine_that_leaves_is_not_the_providers_failure() {
    let silent = "[[turn]]\ntext='0123456789'\nsilent_after=2\n";
    let first = lab(silent);
    let mut socket = first.connect();
    socket
        .write_all(
            first
                .text(path_of(CHAT), "", &body_of(CHAT).to_string())
                .as_bytes(),
        )
        .unwrap();
    let mut some = [0u8; 64];
    assert!(socket.read(&mut some).unwrap() > 0);
    drop(socket);
    let report = first.finish();
    assert_eq!(
        (report.calls[0].outcome, report.unfinished),
        (Outcome::EngineClosed, 0)
    );
    assert_eq!(report.wire_failure(), None);
    // And one that is closed while the engine waits.
    let second = lab(silent);
    let mut socket = second.connect();
    socket
        .write_all(
            second
                .text(path_of(CHAT), "", &body_of(CHAT).to_string())
                .as_bytes(),
        )
        .unwrap();
    assert!(socket.read(&mut some).unwrap() > 0);
    assert_eq!(second.finish().calls[0].outcome, Outcome::EngineClosed);
}

#[test]
fn a_request_that_never_ends_is_ended() {
    let lab = lab_with(CHAT, TURN, |route| {
        route.timeouts.request = Duration::from_millis(150)
    });
    for part in [
        "POST /v1/chat",
        &lab.text(path_of(CHAT), "", &body_of(CHAT).to_string())[..200],
    ] {
        let answer = lab.raw(part);
        assert_eq!(answer.head.status, 408, "{}", answer.body);
    }
    // A connection that says nothing is no request.
    drop(lab.connect());
    let report = lab.finish();
    assert_eq!(
        report.calls.iter().map(|call| call.why).collect::<Vec<_>>(),
        [
            Some(RefusalReason::SlowRequest),
            Some(RefusalReason::SlowRequest)
        ]
    );
}

#[test]
fn an_endpoint_that_is_not_there() {
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (base, why) in [
        (
            format!("http://{unused}/v1"),
            RefusalReason::ConnectionRefused,
        ),
        (
            "http://no-such-name.invalid.localhost:9/v1".to_owned(),
            RefusalReason::Dns,
        ),
        (
            format!("https://{unused}/v1"),
            RefusalReason::ConnectionRefused,
        ),
    ] {
        let lab = open(
            route_to(CHAT, &base),
            base,
            tempfile::NamedTempFile::new().unwrap(),
        );
        assert_eq!(lab.chat().head.status, 502);
        let report = lab.finish();
        // Some resolvers answer every name under localhost.
        let found = report.calls[0].why;
        assert!(
            found == Some(why)
                || (why == RefusalReason::Dns && found == Some(RefusalReason::ConnectionRefused)),
            "{found:?}"
        );
        assert_eq!(report.wire_failure(), Some(Outcome::Transport));
    }
}

#[test]
fn an_idle_connection_is_used_again_and_a_closed_one_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let document =
            r#"{"model":"lab-1","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}"#;
        let mut served = Vec::new();
        // Two requests on the first connection, which then closes without a word; one on the next.
        for expected in [2, 1] {
            let (mut socket, _) = listener.accept().unwrap();
            for _ in 0..expected {
                let mut request = [0u8; 65536];
                let n = socket.read(&mut request).unwrap();
                served.push(n > 0);
                socket
                    .write_all(
                        format!(
                            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{document}",
                            document.len()
                        )
                        .as_bytes(),
                    )
                    .unwrap();
            }
        }
        served
    });
    let lab = open(
        route_to(CHAT, &base),
        base,
        tempfile::NamedTempFile::new().unwrap(),
    );
    for _ in 0..3 {
        assert_eq!(lab.chat().head.status, 200);
    }
    assert_eq!(server.join().unwrap(), [true, true, true]);
    assert!(
        lab.finish()
            .calls
            .iter()
            .all(|call| call.outcome == Outcome::Ok)
    );
}

#[test]
fn sixty_four_streams_at_once() {
    let lab = lab("after='last'\n[[turn]]\ntext='0123456789'\npiece=1\nrepeat=20\nlatency_ms=1\n");
    std::thread::scope(|scope| {
        let streams: Vec<_> = (0..64).map(|_| scope.spawn(|| lab.chat())).collect();
        for stream in streams {
            let answer = stream.join().unwrap();
            assert!(answer.whole);
            assert_eq!(answer.body.matches("\"content\":\"7\"").count(), 20);
        }
    });
    let report = lab.finish();
    assert_eq!(
        report
            .calls
            .iter()
            .filter(|call| call.outcome == Outcome::Ok)
            .count(),
        64
    );
    assert_eq!(report.spent.calls, 64);
}

#[test]
fn probes_tell_the_shape_of_answers() {
    for (scenario, want) in [
        ("[probe]\ntext='ready'\n", ProbeOutcome::Content),
        (
            "[probe]\nreasoning='long thoughts first'\ntext='ready'\nfirst_ms=20\n",
            ProbeOutcome::Content,
        ),
        (
            "[probe]\nreasoning='nothing else'\nfinish='length'\n",
            ProbeOutcome::ReasoningOnly,
        ),
        ("[probe]\nstatus=401\n", ProbeOutcome::Auth),
        ("[probe]\nstatus=403\n", ProbeOutcome::Auth),
        (
            "[probe]\ntext='x'\nmodel='other'\n",
            ProbeOutcome::WrongModel,
        ),
        (
            "[probe]\nstatus=429\n",
            ProbeOutcome::Unavailable {
                class: Outcome::RateLimit,
            },
        ),
        (
            "[probe]\nstatus=503\n",
            ProbeOutcome::Unavailable {
                class: Outcome::ServerError,
            },
        ),
        (
            "[probe]\nhang_up=true\n",
            ProbeOutcome::Unavailable {
                class: Outcome::Transport,
            },
        ),
        (
            "[probe]\nstatus=307\nheaders={location='/x'}\n",
            ProbeOutcome::Unavailable {
                class: Outcome::Redirected,
            },
        ),
        (
            "[probe]\ntext='0123456789'\npiece=1\ndrop_after=3\n",
            ProbeOutcome::Unavailable {
                class: Outcome::Truncated,
            },
        ),
        (
            "[probe]\nsilent_after=0\n",
            ProbeOutcome::Unavailable {
                class: Outcome::Stalled,
            },
        ),
    ] {
        for protocol in Protocol::ALL {
            let log = tempfile::NamedTempFile::new().unwrap();
            let mut route = route_to(protocol, &model(&format!("key='{KEY}'\n{scenario}"), &log));
            if scenario.contains("silent") {
                route.timeouts.stall = Duration::from_millis(100);
            }
            assert_eq!(cto_gateway::probe(&route), want, "{protocol:?} {scenario}");
            let asked = std::fs::read_to_string(log.path()).unwrap();
            assert!(asked.contains("1024"), "{asked}");
        }
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut route = route_to(CHAT, &model("key='another'\n", &log));
    assert_eq!(cto_gateway::probe(&route), ProbeOutcome::Auth);
    route.endpoint = Endpoint::parse(&format!(
        "http://{}/v1",
        TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
    ))
    .unwrap();
    assert_eq!(
        cto_gateway::probe(&route),
        ProbeOutcome::Unavailable {
            class: Outcome::Transport
        }
    );
}
