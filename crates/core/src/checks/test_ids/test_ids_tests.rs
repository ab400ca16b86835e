use super::*;
use crate::run::event::{CheckKind, ProcessEnd};

fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
    Tally {
        passed,
        failed,
        skipped,
    }
}

#[test]
fn what_may_become_of_a_test() {
    for (was, is, want) in [
        (tally(1, 0, 0), tally(1, 0, 0), None),
        (tally(0, 1, 0), tally(1, 0, 0), None),
        (tally(0, 0, 1), tally(0, 0, 1), None),
        (tally(0, 0, 1), tally(1, 0, 0), None),
        (tally(2, 1, 0), tally(4, 0, 1), None),
        (tally(1, 0, 0), tally(0, 0, 0), Some("not there")),
        (tally(0, 0, 1), tally(0, 0, 0), Some("not there")),
        (tally(0, 1, 0), tally(0, 0, 1), Some("skipped")),
        (tally(2, 1, 0), tally(2, 0, 0), Some("2 of 3 ran")),
        (tally(1, 0, 1), tally(1, 0, 0), Some("1 of 2 are there")),
        (
            tally(0, 1, 0),
            tally(0, 1, 0),
            Some("failed, and yet the command was green"),
        ),
    ] {
        assert_eq!(loss(was, is).as_deref(), want, "{was:?} {is:?}");
    }
}

fn document(baseline: &[&str], verified: &[&str]) -> TestIdDocument {
    let ids = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), tally(1, 0, 0)))
            .collect()
    };
    let end = ProcessEnd::Exited { code: 1 };
    TestIdDocument {
        schema_version: 1,
        runners: Vec::new(),
        runner: Runner::Cargo,
        baseline_not_run: None,
        baseline: vec![Check {
            kind: CheckKind::Visible,
            command: "cargo test --no-fail-fast".into(),
            end,
            duration_ms: 1,
            lacks: Vec::new(),
        }],
        commands: vec![CommandTests {
            baseline_runs: Runs::default(),
            verified_runs: Runs::default(),
            command: "cargo test".into(),
            baseline: ids(baseline),
            verified: ids(verified),
            baseline_whole: Whole::default(),
            verified_whole: Whole::default(),
        }],
        files: None,
    }
}

#[test]
fn the_first_missing_are_named_and_all_are_counted() {
    let many: Vec<String> = (0..12).map(|n| format!("t{n:02}")).collect();
    let names: Vec<&str> = many.iter().map(String::as_str).collect();
    let found = document(&names, &["t00", "new"]).compared(Digest::of(b""), &[]);
    assert_eq!(
        (found.baseline_ids, found.verified_ids, found.missing_count),
        (12, 2, 11)
    );
    assert_eq!(found.missing.len(), 10);
    assert_eq!(found.missing[0], "t01: not there");
    assert_eq!(found.not_seen, None);
}

#[test]
fn a_baseline_that_names_nothing_is_said_to() {
    let found = document(&[], &["a"]).compared(Digest::of(b""), &[]);
    assert_eq!(
        found.not_seen.as_deref(),
        Some("the baseline's own run named no test (exit code 1)")
    );
    assert_eq!(found.missing_count, 0);
    let mut broken = document(&[], &["a"]);
    broken.baseline_not_run = Some("setup failed".into());
    broken.baseline.clear();
    assert_eq!(
        broken.compared(Digest::of(b""), &[]).not_seen.as_deref(),
        Some("setup failed")
    );
    assert!(
        broken.is_about(&["cargo test".to_owned()], &[])
            && !broken.is_about(&["true".to_owned()], &[])
    );
    let mut other = document(&["a"], &["a"]);
    other.baseline.clear();
    assert!(
        !other.is_about(&["cargo test".to_owned()], &[]),
        "a baseline that ran, ran the commands"
    );
}

#[test]
fn a_run_that_does_not_come_to_its_end_counts_where_that_of_the_baseline_did() {
    let runs = |began, unfinished: &[&str]| Runs {
        began,
        unfinished: unfinished.iter().map(|word| (*word).to_owned()).collect(),
        ..Runs::default()
    };
    let left = "mocha began and left no report";
    for (was, is, unfinished, not_heard) in [
        (runs(1, &[]), runs(1, &[]), 0, false),
        (runs(1, &[]), runs(1, &[left]), 1, false),
        (runs(1, &[left]), runs(1, &[left]), 0, false),
        (runs(0, &[]), runs(1, &[left]), 0, false),
        (runs(1, &[]), runs(0, &[]), 0, false),
        (runs(0, &[]), runs(0, &[]), 0, true),
    ] {
        let mut ids = document(&[], &[]);
        (ids.commands[0].baseline_runs, ids.commands[0].verified_runs) = (was.clone(), is.clone());
        let found = ids.compared(Digest::of(b""), &[]);
        assert_eq!(found.unfinished.len(), unfinished, "{was:?} {is:?}");
        assert_eq!(found.not_heard, not_heard, "{was:?} {is:?}");
        let too = !is.unfinished.is_empty() && unfinished == 0;
        assert_eq!(found.unfinished_before_too.len(), usize::from(too));
    }
    assert!(
        !document(&["a"], &[])
            .compared(Digest::of(b""), &[])
            .not_heard
    );
}

#[test]
fn a_command_whose_tests_none_passed_is_named() {
    for (runners, verified, want) in [
        (vec![BTreeSet::from([Runner::Cargo])], &[][..], vec![0]),
        (vec![BTreeSet::from([Runner::Cargo])], &["a"], vec![]),
        (vec![BTreeSet::new()], &[], vec![]),
        // Up to rules 6.
        (vec![], &[], vec![]),
    ] {
        let mut ids = document(&[], verified);
        ids.runners.clone_from(&runners);
        let found = ids.compared(Digest::of(b""), &[]);
        assert_eq!(found.none_passed, want, "{runners:?} {verified:?}");
    }
}
