//! The failure matrix: every row of `matrix.toml` through the ordinary path, to a full bundle.

use cto_testkit::{Bundle, Case, House};
use serde_json::Value;

use crate::{assert_good, house};

/// Artifacts of every bundle, blocked ones included.
pub const ARTIFACTS: [&str; 11] = [
    "report.json",
    "report.md",
    "contract.json",
    "gates.json",
    "eligibility.json",
    "events.normalized.jsonl",
    "trace.jsonl",
    "containment.json",
    "patch.diff",
    "test.log",
    "SHA256SUMS",
];

/// Rows whose fixture must be among the data: a deleted row is noticed.
const REQUIRED: [&str; 4] = ["no-diff", "disallowed-file", "failed-tests", "missing-test-command"];

fn rows() -> Vec<toml::Table> {
    let table: toml::Table = include_str!("matrix.toml").parse().unwrap();
    table["row"].as_array().unwrap().iter().map(|row| row.as_table().unwrap().clone()).collect()
}

fn text<'a>(row: &'a toml::Table, key: &str) -> Option<&'a str> {
    row.get(key).and_then(toml::Value::as_str)
}

fn flag(row: &toml::Table, key: &str) -> bool {
    row[key].as_bool().unwrap()
}

fn list(row: &toml::Table, key: &str) -> Vec<String> {
    row[key].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// `verb: object` lines of a row, as steps of the fake engine.
fn steps(row: &toml::Table) -> String {
    let step = |line: &String| {
        let (verb, object) = line.split_once(": ").unwrap();
        match verb {
            "write" => cto_testkit::write(object, "right\n"),
            "reject" => format!("[[step]]\ndo = \"review\"\naccepted = false\nsummary = \"{object}\"\n"),
            _ => format!("[[step]]\ndo = \"say\"\ntext = \"{object}\"\n"),
        }
    };
    list(row, "script").iter().map(step).collect()
}

fn case_of(row: &toml::Table, number: usize) -> Case {
    let mut case = Case::new(&format!("row-{number}"));
    if let Some(commands) = text(row, "commands") {
        case = case.commands(commands);
    }
    if let Some(extra) = text(row, "extra") {
        case = case.extra(extra);
    }
    case
}

#[test]
fn the_required_rows_are_there() {
    let fixtures: Vec<String> = rows().iter().map(|row| text(row, "fixture").unwrap().to_owned()).collect();
    for fixture in REQUIRED {
        assert!(fixtures.iter().any(|name| name == fixture), "{fixture}");
    }
}

#[test]
fn every_row_gives_its_blocker_its_event_and_a_full_bundle() {
    let house = house();
    for (number, row) in rows().iter().enumerate() {
        let case = house.case(&case_of(row, number));
        let script = steps(row);
        // Written before the look outside, so that only `cto` itself could make a difference.
        house.script(&format!("script-{}", house.run_dirs().len()), &script);
        let before = house.outside();
        let (answer, bundle) = house.run(&case, &script, &[]);
        let name = format!("{} ({})", text(row, "fixture").unwrap(), bundle.run_id());
        assert_eq!(answer.code.map(i64::from), row["exit"].as_integer(), "{name}: {answer:?}");
        assert_eq!(house.outside(), before, "{name}: something outside was touched");
        assert!(house.work_entries().is_empty(), "{name}: {:?}", house.work_entries());
        check_verdict(row, &bundle, &name);
        check_shown(row, &bundle, &name);
        check_bundle(&house, &bundle, &name);
    }
}

fn check_verdict(row: &toml::Table, bundle: &Bundle, name: &str) {
    let (code, event) = (text(row, "blocker").unwrap(), text(row, "event").unwrap());
    let report = bundle.report();
    assert_eq!(bundle.status(), text(row, "status").unwrap(), "{name}");
    let headline = report["blockers"].as_array().unwrap().iter().find(|b| b["code"] == code);
    let headline = headline.unwrap_or_else(|| panic!("{name}: {:?}", bundle.codes()));
    assert_eq!(headline["event"], event, "{name}");
    assert_eq!(report["failure_reason"], headline["message"], "{name}");
    assert!(carries(&bundle.event(event).unwrap(), code), "{name}: {event} does not carry {code}");
    let completed = bundle.event("run.completed").unwrap();
    assert!(carries(&completed, code), "{name}: run.completed does not carry {code}");
    assert_eq!(completed["status"], report["status"], "{name}");
    if let Some(detail) = text(row, "detail_has") {
        assert!(headline["detail"].as_str().unwrap_or_default().contains(detail), "{name}: {headline}");
    }
}

fn carries(data: &Value, code: &str) -> bool {
    data["reason"] == code || data["blockers"].as_array().is_some_and(|codes| codes.iter().any(|found| found == code))
}

fn check_shown(row: &toml::Table, bundle: &Bundle, name: &str) {
    assert_eq!(bundle.changed_files(), list(row, "changed"), "{name}");
    let patch = bundle.text("patch.diff");
    assert_eq!(patch.is_empty(), flag(row, "patch_empty"), "{name}: {patch}");
    if let Some(want) = text(row, "patch_has") {
        assert!(patch.contains(want), "{name}: {patch}");
    }
    let log = bundle.text("test.log");
    assert!(log.contains(text(row, "log_has").unwrap()), "{name}: {log}");
    assert_eq!(bundle.event("engine.started").is_some(), flag(row, "engine_ran"), "{name}");
    if flag(row, "engine_ran") {
        assert!(bundle.has("backend/stdout.log"), "{name}: the raw log is gone");
    }
    for (field, want) in row["report"].as_table().unwrap() {
        assert_eq!(bundle.report()[field].to_string(), want.as_str().unwrap(), "{name}: {field}");
    }
}

fn check_bundle(house: &House, bundle: &Bundle, name: &str) {
    for artifact in ARTIFACTS {
        assert!(bundle.has(artifact), "{name}: no {artifact}");
    }
    assert_good(bundle);
    let answer = house.cto(&["verify", &bundle.run_id(), "--json"]);
    assert_eq!(answer.code, Some(0), "{name}: {answer:?}");
}
