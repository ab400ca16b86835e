use serde_json::json;

use super::*;
use crate::verify::{Problem, Signature, SignatureStanding};

/// A row with one of everything.
fn row() -> Row {
    let text = r#"
        name = "sample"
        trigger = "t"
        blocker = "timeout"
        also = ["no_diff"]
        event = "run.completed"
        status = "blocked"
        exit = 3
        runs = true
        reads_back = true
        shows = [
          { changed = ["a"] },
          { empty = "patch.diff" },
          { kept = "test.log" },
          { text = { file = "test.log", holds = "said" } },
          { lacks = { file = "test.log", holds = "shouted" } },
          { line = "a whole line" },
          { stopped = { attack = "climb", times = 2 } },
          { nowhere = "hush-hush" },
          { value = { of = "report.json", at = "/tests_passed", is = "false" } },
          { event = { of = "engine.started", at = "/engine" } },
          { never = "approval.granted" },
          { order = ["run.started", "engine.started", "run.completed"] },
          { trace = { action = "engine.run", holds = "limit" } },
          { detail = "wall" },
          { gate = { of = "engine", result = "pass" } },
        ]
    "#;
    toml::from_str(text).unwrap()
}

/// Where the row's status were Pass the sample would contradict itself; the evaluation believes the
/// row alone.
fn evidence() -> Evidence {
    let report = json!({
        "status": "blocked", "origin": "validator", "failure_reason": "slow", "process_started": true,
        "changed_files": ["a"], "tests_passed": false, "result": null,
        "blockers": [
            {"code": "no_diff", "message": "nothing", "event": "git.diff.checked"},
            {"code": "timeout", "message": "slow", "event": "run.completed", "detail": "the wall limit"},
        ],
    });
    let events = [
        json!({"type": "run.started", "data": {}}),
        json!({"type": "engine.started", "data": {"engine": "fake"}}),
        json!({"type": "run.completed", "data": {"status": "blocked", "blockers": ["no_diff", "timeout"]}}),
    ];
    let trace = json!({"action": "engine.run", "detail": "time limit reached"});
    let gates = json!({"gates": [{"gate": "engine", "result": "pass"}]});
    let mut files: BTreeMap<String, Vec<u8>> = bundle::ALWAYS
        .iter()
        .map(|name| ((*name).to_owned(), Vec::new()))
        .collect();
    files.insert(bundle::REPORT.into(), report.to_string().into_bytes());
    files.insert(
        bundle::EVENTS.into(),
        events
            .map(|event| format!("{event}\n"))
            .concat()
            .into_bytes(),
    );
    files.insert(bundle::TRACE.into(), format!("{trace}\n").into_bytes());
    files.insert(bundle::GATES.into(), gates.to_string().into_bytes());
    files.insert(bundle::TEST_LOG.into(), b"it said so\n".to_vec());
    let said = "attack climb 0: stopped: no\n  \na whole line\nattack climb 1: stopped: no\n";
    files.insert(bundle::STDOUT_LOG.into(), said.into());
    let verification = Verification {
        rules: None,
        not_re_derived: Vec::new(),
        schema_version: 1,
        standing: Standing::Good,
        signature: Signature {
            standing: SignatureStanding::Own,
            key_id: None,
            label: None,
            signed_at: None,
        },
        run_id: None,
        status: Some(Status::Blocked),
        checked: Vec::new(),
        problems: Vec::new(),
        unknowns: Vec::new(),
    };
    Evidence {
        exit_code: Some(3),
        bundles: vec![BundleSeen {
            files,
            verification,
        }],
        touched: Vec::new(),
        printed: "shown\n".into(),
        secrets: vec!["the-key-of-a-model".into()],
    }
}

fn wrong(row: &Row, evidence: &Evidence) -> Vec<String> {
    evaluate_row(row, evidence)
        .into_iter()
        .filter(|a| !a.holds)
        .map(|a| format!("{}: {}", a.check, a.want))
        .collect()
}

fn replaced(file: &str, from: &str, to: &str) -> Evidence {
    let mut evidence = evidence();
    let bytes = evidence.bundles[0].files.get_mut(file).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    *bytes = text.replace(from, to).into_bytes();
    evidence
}

fn changed(change: impl FnOnce(&mut Evidence)) -> Evidence {
    let mut evidence = evidence();
    change(&mut evidence);
    evidence
}

fn file(name: &str, bytes: Option<&[u8]>) -> Evidence {
    changed(|evidence| {
        let files = &mut evidence.bundles[0].files;
        match bytes {
            Some(bytes) => drop(files.insert(name.to_owned(), bytes.to_vec())),
            None => drop(files.remove(name)),
        }
    })
}

#[test]
fn a_flawless_bundle_is_green() {
    assert_eq!(wrong(&row(), &evidence()), Vec::<String>::new());
    assert_eq!(
        evaluate_row(&row(), &evidence())
            .iter()
            .filter(|a| a.check == "shows")
            .count(),
        row().shows.len()
    );
}

const CLIMB: &str = "shows: climb was tried 2 times and stopped each time";
const PRINTED: &str = "printed: nothing shown of the run moves a terminal";

/// One flaw, and the assertion that sees it.
#[test]
fn every_flaw_is_seen_by_the_check_it_belongs_to() {
    let problem = Problem {
        check: "sums".into(),
        artifact: "x".into(),
        message: "y".into(),
    };
    let report = bundle::REPORT;
    let rows: Vec<(&str, Evidence)> = vec![
        ("exit: cto ends with 3", changed(|e| e.exit_code = Some(0))),
        ("exit: cto ends with 3", changed(|e| e.exit_code = None)),
        (
            "untouched: nothing outside the bundle changed",
            changed(|e| e.touched.push("home/.profile".into())),
        ),
        (
            "bundle: one run, one bundle",
            changed(|e| e.bundles.clear()),
        ),
        (
            "bundle: one run, one bundle",
            changed(|e| e.bundles.push(e.bundles[0].clone())),
        ),
        (
            "status: run.completed says blocked",
            replaced(
                bundle::EVENTS,
                "\"status\":\"blocked\"",
                "\"status\":\"pass\"",
            ),
        ),
        (
            "origin: the run is a validator's",
            replaced(report, "validator", "operator"),
        ),
        (
            "blocker: blockers are no_diff, timeout",
            replaced(
                report,
                "\"code\":\"no_diff\"",
                "\"code\":\"stale_artifact\"",
            ),
        ),
        (
            "blocker: timeout is the headline",
            replaced(
                report,
                "\"failure_reason\":\"slow\"",
                "\"failure_reason\":\"nothing\"",
            ),
        ),
        (
            "blocker: timeout is the headline",
            replaced(
                report,
                "\"failure_reason\":\"slow\"",
                "\"failure_reason\":null",
            ),
        ),
        (
            "event: timeout belongs to run.completed",
            replaced(report, "\"event\":\"run.completed\"", "\"event\":null"),
        ),
        (
            "event: run.completed carries timeout",
            replaced(bundle::EVENTS, "\"timeout\"", "\"no_diff\""),
        ),
        (
            "artifacts: every artifact is there",
            file(bundle::ELIGIBILITY, None),
        ),
        (
            "digests: the bundle verifies",
            changed(|e| {
                e.bundles[0].verification.standing = Standing::Bad;
                e.bundles[0].verification.problems.push(problem);
            }),
        ),
        (
            "digests: the verdict can be derived again",
            changed(|e| e.bundles[0].verification.status = None),
        ),
        (
            "digests: the verdict can be derived again",
            changed(|e| e.bundles[0].verification.status = Some(Status::Pass)),
        ),
        (
            "execution: an engine ran and its raw log is kept",
            replaced(
                report,
                "\"process_started\":true",
                "\"process_started\":false",
            ),
        ),
        (
            "shows: changed_files is a",
            replaced(report, "[\"a\"]", "[\"a\",\"b\"]"),
        ),
        (
            "shows: patch.diff is empty",
            file(bundle::PATCH, Some(b"x")),
        ),
        (
            "shows: test.log holds \"said\"",
            replaced(bundle::TEST_LOG, "said", "thought"),
        ),
        (
            "shows: test.log does not hold \"shouted\"",
            replaced(bundle::TEST_LOG, "so", "shouted"),
        ),
        (
            "shows: the engine says \"a whole line\"",
            replaced(bundle::STDOUT_LOG, "a whole line", "a whole line."),
        ),
        (
            CLIMB,
            replaced(bundle::STDOUT_LOG, "climb 1: stopped", "climb 1: THROUGH"),
        ),
        (
            CLIMB,
            replaced(bundle::STDOUT_LOG, "climb 0: stopped", "climb 2: stopped"),
        ),
        (
            CLIMB,
            replaced(
                bundle::STDOUT_LOG,
                "climb 0: stopped: no\n",
                "climb 0: stopped: no\nattack climb 0: THROUGH\n",
            ),
        ),
        (PRINTED, changed(|e| e.printed.clear())),
        (PRINTED, changed(|e| e.printed.push('\u{1b}'))),
        (PRINTED, changed(|e| e.printed.push('\u{202e}'))),
        (
            "shows: the secret is in no file",
            file("backend/x", Some(b"psst hush-hush")),
        ),
        (
            "shows: report.json /tests_passed is false",
            replaced(report, "\"tests_passed\":false", "\"tests_passed\":null"),
        ),
        (
            "shows: report.json /tests_passed is false",
            replaced(report, "\"tests_passed\":false,", ""),
        ),
        (
            "shows: engine.started /engine says something",
            replaced(bundle::EVENTS, "\"fake\"", "\"\""),
        ),
        (
            "shows: trace: engine.run says \"limit\"",
            replaced(bundle::TRACE, "limit", "end"),
        ),
        (
            "shows: trace: engine.run says \"limit\"",
            replaced(bundle::TRACE, "engine.run", "engine.ran"),
        ),
        (
            "shows: the blocker names \"wall\"",
            replaced(report, "the wall limit", "a limit"),
        ),
        (
            "shows: gate engine is pass",
            replaced(bundle::GATES, "\"pass\"", "\"not_seen\""),
        ),
        (
            "shows: gate engine is pass",
            replaced(bundle::GATES, "\"engine\"", "\"engines\""),
        ),
    ];
    for (want, evidence) in rows {
        assert_eq!(wrong(&row(), &evidence), [want]);
    }
}

#[test]
fn flaws_that_more_than_one_check_sees() {
    let order = "shows: events are run.started → engine.started → run.completed";
    let extra = replaced(
        bundle::EVENTS,
        "{\"type\":\"engine.started\"",
        "{\"type\":\"approval.granted\",\"data\":{}}\n{\"type\":\"engine.started\"",
    );
    assert_eq!(wrong(&row(), &extra), ["shows: no approval.granted", order]);
    let said = [
        "status: the report says blocked",
        "digests: the verdict can be derived again",
    ];
    assert_eq!(
        wrong(
            &row(),
            &replaced(
                bundle::REPORT,
                "\"status\":\"blocked\"",
                "\"status\":\"fail\""
            )
        ),
        said
    );
    let silent = [
        "execution: an engine ran and its raw log is kept",
        "shows: the engine says \"a whole line\"",
        CLIMB,
    ];
    assert_eq!(wrong(&row(), &file(bundle::STDOUT_LOG, None)), silent);
    let kept = ["shows: test.log is kept", "shows: test.log holds \"said\""];
    assert_eq!(wrong(&row(), &file(bundle::TEST_LOG, Some(b""))), kept);
}

#[test]
fn what_must_not_run_leaves_no_trace_of_running() {
    let mut row = row();
    (row.runs, row.reads_back) = (false, false);
    row.shows.clear();
    assert_eq!(
        wrong(&row, &evidence()),
        [
            "execution: no engine was started",
            "execution: nothing was changed"
        ]
    );
    let mut quiet = replaced(
        bundle::REPORT,
        "\"process_started\":true",
        "\"process_started\":false",
    );
    let files = &mut quiet.bundles[0].files;
    files.remove(bundle::STDOUT_LOG);
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    let (report, events) = (
        text(bundle::REPORT).replace("[\"a\"]", "[]"),
        text(bundle::EVENTS).replace("engine.started", "plan.updated"),
    );
    files.insert(bundle::REPORT.into(), report.clone().into_bytes());
    files.insert(bundle::EVENTS.into(), events.into_bytes());
    assert_eq!(wrong(&row, &quiet), Vec::<String>::new());
    let changed = ["execution: nothing was changed"];
    for (name, bytes) in [
        (bundle::PATCH, "x".to_owned()),
        (bundle::REPORT, report.replace("[]", "[\"a\"]")),
        (
            bundle::REPORT,
            report.replace("\"result\":null", "\"result\":{}"),
        ),
    ] {
        let mut evidence = quiet.clone();
        evidence.bundles[0]
            .files
            .insert(name.into(), bytes.into_bytes());
        assert_eq!(wrong(&row, &evidence), changed, "{name}");
    }
}

#[test]
fn a_bundle_of_garbage_is_red_and_nothing_worse() {
    let mut evidence = evidence();
    for bytes in evidence.bundles[0].files.values_mut() {
        *bytes = vec![0xff, b'\n', b'{', b'['];
    }
    assert!(wrong(&row(), &evidence).len() > 8);
}

/// The event that carries the code may carry it as its reason.
#[test]
fn a_reason_carries_a_code() {
    assert!(carries(&json!({"reason": "timeout"}), Code::Timeout));
    assert!(carries(
        &json!({"blockers": ["no_diff", "timeout"]}),
        Code::Timeout
    ));
    for data in [
        json!({"reason": "no_diff"}),
        json!({"blockers": []}),
        json!({"detail": "timeout"}),
        json!(null),
    ] {
        assert!(!carries(&data, Code::Timeout), "{data}");
    }
}
