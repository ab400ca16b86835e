//! `cto matrix` over all rows: green for everyone, nothing left behind, also when it is stopped.

use std::fs;
use std::process::{Command, Stdio};

use cto_core::proof::matrix::{self, FIXTURES, MatrixReport, RowVerdict};
use cto_testkit::{Answer, files_below, skip, wait_until};

use super::lanes::UNPLAYABLE;
use super::{is_empty, parsed, rows, suite, with_tmp};
use crate::fixtures::people::people;
use crate::house;

pub fn wrong_rows(report: &MatrixReport) -> Vec<String> {
    let wrong = |row: &matrix::RowOutcome| {
        row.wrong()
            .map(|w| format!("{}: {w:?}", row.row))
            .collect::<Vec<_>>()
    };
    report.rows.iter().flat_map(wrong).collect()
}

#[test]
fn every_row_is_green_for_everyone_and_nothing_is_left() {
    for person in people() {
        let tmp = person.at("ws").display().to_string();
        let home = files_below(&person.at("home"));
        let output = person
            .command(&["matrix", "--json"])
            .env("TMPDIR", &tmp)
            .output()
            .unwrap();
        let report = parsed(&String::from_utf8_lossy(&output.stdout));
        assert_eq!(wrong_rows(&report), Vec::<String>::new(), "{}", person.name);
        assert_eq!(
            (output.status.code(), report.exit_code),
            (Some(0), 0),
            "{}",
            person.name
        );
        let all = rows().len() as u64;
        assert_eq!(
            (report.counts.green, report.counts.not_applicable),
            (all, 0),
            "{}: {:?}",
            person.name,
            report.counts
        );
        for fixture in FIXTURES {
            let forms = report
                .rows
                .iter()
                .filter(|row| row.fixture.as_deref() == Some(fixture));
            assert!(
                forms.clone().count() > 0
                    && forms.clone().all(|row| row.verdict == RowVerdict::Green),
                "{fixture}"
            );
        }
        assert!(
            report.time.wall_ms > 0
                && report.time.children_ms > 0
                && report.time.rows_ms >= report.time.children_ms
        );
        assert!(
            is_empty(&person.at("ws")),
            "{}: something was left behind",
            person.name
        );
        assert_eq!(
            files_below(&person.at("home")),
            home,
            "{}: the operator's own state was touched",
            person.name
        );
    }
}

#[test]
fn an_engine_that_cannot_be_run_proves_nothing() {
    let (house, tmp) = with_tmp(house());
    let junit = house.root().join("junit.xml").display().to_string();
    for (engine, why) in [
        (
            "codex",
            "no program of codex is admitted here; `cto setup codex` admits one, --bin FILE names one for this command",
        ),
        (
            "acp-claude",
            "the manifest of acp-claude has no [invocation.tools], so no scripted model speaks for it",
        ),
    ] {
        let answer = house.cto(&["matrix", "--engine", engine, "--json", "--junit", &junit]);
        let report = parsed(&answer.stdout);
        assert_eq!(
            (answer.code, report.counts.red),
            (Some(3), 0),
            "{:?}",
            wrong_rows(&report)
        );
        for row in &report.rows {
            let gate = [
                "engine-gate-closed",
                "stage-gate-closed",
                "nothing-admitted",
            ]
            .contains(&row.row.as_str());
            let want = if gate {
                RowVerdict::Green
            } else {
                RowVerdict::NotApplicable
            };
            assert_eq!(
                (row.verdict, row.engine.as_str()),
                (want, engine),
                "{}",
                row.row
            );
            let reason = row.reason.clone().unwrap_or_default();
            match engine == "codex" && UNPLAYABLE.contains(&row.row.as_str()) {
                true => assert_ne!(reason, why, "{}", row.row),
                false => assert_eq!(reason, if gate { "" } else { why }, "{}", row.row),
            }
        }
        assert_eq!(suite(&junit), (rows().len(), 0, rows().len() - 3));
        let one = house.cto(&["matrix", "--engine", engine, "--row", "no-diff"]);
        assert_eq!(one.code, Some(3));
        assert!(
            one.stdout.contains("NOTHING PROVEN") && one.stdout.contains("–  no-diff"),
            "{}",
            one.stdout
        );
    }
    assert!(is_empty(&tmp));
}

#[test]
fn a_matrix_that_is_stopped_ends_its_rows_and_leaves_nothing() {
    let (house, tmp) = with_tmp(house());
    if house.cto(&["doctor"]).code != Some(0) {
        return skip("no jail can be built here");
    }
    let mut command = house.command(&[
        "matrix",
        "--row",
        "timeout-engine",
        "--row",
        "sound",
        "--json",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = || {
        let roots = fs::read_dir(&tmp).unwrap().flatten();
        roots
            .into_iter()
            .any(|root| root.path().join("timeout-engine/state/open").is_dir())
    };
    assert!(wait_until(begun), "no row began");
    Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let answer = Answer::of(&child.wait_with_output().unwrap());
    let report = parsed(&answer.stdout);
    assert_eq!(
        (answer.code, report.interrupted, report.counts.red),
        (Some(3), true, 0),
        "{answer:?}"
    );
    assert!(
        report
            .rows
            .iter()
            .any(|row| row.reason.as_deref() == Some("interrupted")),
        "{report:?}"
    );
    assert!(is_empty(&tmp));
}

/// A row with a scripted answer never lands among the runs of an operator.
#[test]
fn a_row_runs_only_in_a_state_home_of_its_own() {
    let house = house();
    fs::create_dir_all(house.runs_dir()).unwrap();
    let fresh = house.root().join("fresh").display().to_string();
    let runs = house.runs_dir().display().to_string();
    for args in [
        vec!["__row", "approval-granted", "--engine", "fake"],
        vec![
            "--home",
            &fresh,
            "--runs-dir",
            &runs,
            "__row",
            "approval-granted",
            "--engine",
            "fake",
        ],
    ] {
        let answer = house.cto(&args);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("not_fresh"), "{answer:?}");
    }
    assert!(house.run_dirs().is_empty());
}
