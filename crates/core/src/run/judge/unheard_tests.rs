//! Runners that report: what they left behind, and what nobody heard.

use super::*;
use crate::run::checked::ControlHeard;

/// Rules 7: what nobody could place or hear is believed less, and accuses nobody.
#[test]
fn a_runner_that_reports_and_was_not_heard_is_no_accusation() {
    let heard = |not_heard: bool, unfinished: &[&str]| TestsCompared {
        not_heard,
        unfinished: unfinished.iter().map(|word| (*word).to_owned()).collect(),
        ..compared(&[])
    };
    let ran = |reported| ControlRun::Ran {
        heard: Vec::new(),
        checks: vec![check(CheckKind::Visible, COMMAND, exited(1))],
        failures_added: Some(5),
        failures_reported: reported,
    };
    let not_placed = ControlRun::None {
        reason: "no test file".into(),
    };
    for (runner, control, tests, want) in [
        (Runner::Mocha, ran(Some(5)), heard(false, &[]), true),
        (Runner::Mocha, ran(None), heard(true, &[]), true),
        (Runner::Mocha, ran(None), heard(false, &[]), false),
        (Runner::Mocha, ran(Some(0)), heard(true, &[]), false),
        (Runner::Mocha, ran(Some(5)), heard(false, &["left"]), false),
        (Runner::Mocha, not_placed.clone(), heard(false, &[]), true),
        (Runner::Unittest, not_placed, heard(false, &[]), false),
    ] {
        let mut contract = sample();
        contract.verification_control = Control::Runner(runner);
        let done = VerificationCompleted {
            checks: vec![check(CheckKind::Visible, COMMAND, exited(0))],
            control: Some(control),
            log_nonce: Some(String::new()),
            tests: Some(tests),
            ..VerificationCompleted::nothing(Digest::of(b""))
        };
        let found = untrusted(Rules::Seven, &contract, &done);
        assert_eq!(found.is_none(), want, "{done:?} {found:?}");
    }
}

/// A runner that left early on the baseline as well: its run in the control says whether it is known.
#[test]
fn a_run_without_an_end_counts_where_the_control_has_one() {
    let done = |reported: &[bool]| VerificationCompleted {
        checks: vec![check(CheckKind::Visible, COMMAND, exited(0))],
        control: Some(ControlRun::Ran {
            checks: vec![check(CheckKind::Visible, COMMAND, exited(1))],
            failures_added: Some(5),
            failures_reported: Some(5),
            heard: (reported.iter())
                .map(|reported| ControlHeard {
                    named: true,
                    reported: *reported,
                })
                .collect(),
        }),
        log_nonce: Some(String::new()),
        tests: Some(TestsCompared {
            unfinished_before_too: vec![(0, "mocha began and left no report".into())],
            ..compared(&[])
        }),
        ..VerificationCompleted::nothing(Digest::of(b""))
    };
    let mut contract = sample();
    contract.verification_control = Control::Runner(Runner::Mocha);
    for (reported, is_untrusted) in [(&[true][..], true), (&[false], false), (&[], false)] {
        let found = untrusted(Rules::Seven, &contract, &done(reported));
        assert_eq!(found.is_some(), is_untrusted, "{reported:?} {found:?}");
    }
}
