//! What checks, their control and the tests of the baseline mean.

use super::*;
use crate::run::event::{TestsCompared, TimeLimit};
use crate::run::judge::judge;
use crate::run::judge::tests::{COMMAND, check, codes, codes_with, exited, good, verification};
use crate::run::rules::RulesNumber;
use crate::task::contract::tests::sample;
use crate::values::digest::Digest;

#[path = "unheard_tests.rs"]
mod unheard;

fn verify_with(end: ProcessEnd, control: Option<ControlRun>) -> impl FnOnce(&mut Facts) {
    move |facts| facts.verification = Some(verification(end, control))
}

#[test]
fn verification_by_exit_code() {
    assert_eq!(codes(verify_with(exited(1), None)), ["verification_failed"]);
    assert_eq!(
        codes(verify_with(ProcessEnd::Signalled { signal: 11 }, None)),
        ["verification_failed"]
    );
    assert_eq!(
        codes(verify_with(ProcessEnd::Lost, None)),
        ["verification_failed"]
    );
    assert_eq!(
        codes(verify_with(
            ProcessEnd::TimedOut {
                limit: TimeLimit::Wall
            },
            None
        )),
        ["timeout"]
    );
}

#[test]
fn the_control_must_be_red_and_complete() {
    let ran = |end: ProcessEnd, added: Option<u64>, reported: Option<u64>| {
        Some(ControlRun::Ran {
            heard: Vec::new(),
            checks: vec![check(CheckKind::Visible, COMMAND, end)],
            failures_added: added,
            failures_reported: reported,
        })
    };
    let untrusted = ["verification_untrusted"];
    assert_eq!(codes(verify_with(exited(0), None)), untrusted, "no control");
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(0), Some(5), Some(5)))),
        untrusted,
        "green"
    );
    assert_eq!(
        codes(verify_with(
            exited(0),
            ran(ProcessEnd::Signalled { signal: 9 }, None, None)
        )),
        untrusted,
        "killed is not red"
    );
    assert_eq!(
        codes(verify_with(
            exited(0),
            ran(
                ProcessEnd::TimedOut {
                    limit: TimeLimit::Wall
                },
                None,
                None
            )
        )),
        untrusted
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), Some(5), Some(4)))),
        untrusted,
        "some silenced"
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), Some(5), None))),
        untrusted,
        "no count"
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), Some(5), Some(9)))),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), None, None))),
        Vec::<&str>::new()
    );
    let could_not = Some(ControlRun::CouldNotRun { reason: "x".into() });
    assert_eq!(codes(verify_with(exited(0), could_not)), untrusted);
    let none = || Some(ControlRun::None { reason: "x".into() });
    assert_eq!(
        codes(verify_with(exited(0), none())),
        untrusted,
        "the contract asked for one"
    );
    let other = ControlRun::Ran {
        heard: Vec::new(),
        checks: vec![check(CheckKind::Visible, "false", exited(1))],
        failures_added: None,
        failures_reported: None,
    };
    assert_eq!(
        codes(verify_with(exited(0), Some(other))),
        untrusted,
        "another command"
    );
    let empty = ControlRun::Ran {
        heard: Vec::new(),
        checks: vec![],
        failures_added: None,
        failures_reported: None,
    };
    assert_eq!(
        codes(verify_with(exited(0), Some(empty))),
        untrusted,
        "no command"
    );
}

#[test]
fn no_control_is_allowed_only_low_on_the_ladder() {
    let none = || Some(ControlRun::None { reason: "x".into() });
    let with_stage = |stage: Stage| {
        move |contract: &mut Contract| {
            contract.verification_control = Control::None("x".into());
            contract.lane.stage = stage;
        }
    };
    assert_eq!(
        codes_with(with_stage(Stage::Two), verify_with(exited(0), none())),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes_with(with_stage(Stage::Three), verify_with(exited(0), none())),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes_with(with_stage(Stage::Four), verify_with(exited(0), none())),
        ["verification_untrusted"]
    );
}

#[test]
fn only_the_contracts_commands_count() {
    let other =
        |facts: &mut Facts| facts.verification.as_mut().unwrap().checks[0].command = "true".into();
    assert_eq!(codes(other)[0], "verification_untrusted");
    let hidden = |c: &mut Contract| c.hidden_verification.commands = vec!["sh hidden.sh".into()];
    assert_eq!(
        codes_with(hidden, |_| {}),
        ["verification_untrusted"],
        "hidden check left out"
    );
    let push = |end: ProcessEnd| {
        move |facts: &mut Facts| {
            facts.verification.as_mut().unwrap().checks.push(check(
                CheckKind::Hidden,
                "sh hidden.sh",
                end,
            ));
        }
    };
    assert_eq!(codes_with(hidden, push(exited(0))), Vec::<&str>::new());
    assert_eq!(codes_with(hidden, push(exited(1))), ["verification_failed"]);
    assert_eq!(
        codes(|facts| facts.verification.as_mut().unwrap().mismatch = Some("tree differs".into())),
        ["verification_untrusted"]
    );
}

#[test]
fn codes_of_the_verification_event_leave_out_time_limits() {
    let contract = sample();
    let done = verification(
        ProcessEnd::TimedOut {
            limit: TimeLimit::Wall,
        },
        None,
    );
    assert_eq!(
        verification_codes(Rules::NEWEST, Some(&contract), &[], &done),
        []
    );
    let review = [EngineReview {
        accepted: false,
        summary: "no".into(),
    }];
    assert_eq!(
        verification_codes(
            Rules::NEWEST,
            Some(&contract),
            &review,
            &verification(exited(1), None)
        ),
        [Code::ReviewerRejected, Code::VerificationFailed]
    );
}

#[test]
fn a_program_that_is_not_there_says_nothing_about_the_change() {
    let baseline = |end: ProcessEnd| {
        move |facts: &mut Facts, own: ProcessEnd| {
            let done = facts.verification.as_mut().unwrap();
            done.checks[0].end = own;
            done.baseline_checks = vec![Check {
                end,
                ..done.checks[0].clone()
            }];
        }
    };
    let unavailable = ["toolchain_unavailable"];
    let failed = ["verification_failed"];
    // rules, on the change, on the untouched copy
    for (rules, own, other, want) in [
        (3, exited(127), exited(127), &unavailable),
        (3, exited(126), exited(126), &unavailable),
        (3, exited(127), exited(126), &failed),
        (3, exited(127), exited(0), &failed),
        (3, exited(127), exited(1), &failed),
        (3, exited(1), exited(1), &failed),
        (3, exited(2), exited(127), &failed),
        (
            3,
            ProcessEnd::Signalled { signal: 127 },
            exited(127),
            &failed,
        ),
        (2, exited(127), exited(127), &failed),
        (1, exited(126), exited(126), &failed),
    ] {
        let change = baseline(other);
        let found = codes(|facts| {
            facts.rules = RulesNumber(rules);
            change(facts, own);
        });
        assert_eq!(found, want, "rules {rules}: {own:?}, {other:?}");
    }
    // Nothing of it where the baseline never ran, or ran another command.
    let bare = |facts: &mut Facts| facts.verification.as_mut().unwrap().checks[0].end = exited(127);
    assert_eq!(codes(bare), failed);
    let another = |facts: &mut Facts| {
        baseline(exited(127))(facts, exited(127));
        facts.verification.as_mut().unwrap().baseline_checks[0].command = "other".into();
    };
    assert_eq!(codes(another), failed);
    // The event of the checks does not carry it: the end of the run does.
    let mut done = verification(exited(127), None);
    done.baseline_checks = done.checks.clone();
    let contract = sample();
    assert_eq!(
        verification_codes(Rules::Three, Some(&contract), &[], &done),
        []
    );
    let blockers = verification_blockers(Rules::Three, Some(&contract), &done);
    assert_eq!(blockers[0].event, Some(EventType::RunCompleted));
    assert!(
        blockers[0]
            .detail
            .as_ref()
            .is_some_and(|text| text.contains("--toolchain"))
    );
}

#[test]
fn a_program_missing_behind_another_is_named_by_both() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (unavailable, failed) = (["toolchain_unavailable"], ["verification_failed"]);
    type Side<'a> = (u8, &'a [&'a str]);
    // rules, on the change, on the untouched copy
    let rows: [(u32, Side<'_>, Side<'_>, [&str; 1]); 13] = [
        (4, (2, &["pytest"]), (2, &["pytest"]), unavailable),
        (4, (1, &["a", "pytest"]), (1, &["pytest", "z"]), unavailable),
        (4, (127, &["pytest"]), (127, &["pytest"]), unavailable),
        (4, (127, &[]), (127, &[]), unavailable),
        (4, (127, &["pytest"]), (127, &[]), unavailable),
        // The untouched copy says nothing of the kind, or something else.
        (4, (2, &["pytest"]), (0, &[]), failed),
        (4, (2, &["pytest"]), (2, &[]), failed),
        (4, (2, &[]), (2, &["pytest"]), failed),
        (4, (2, &["pytest"]), (1, &["pytest"]), failed),
        (4, (2, &["pytest"]), (2, &["eslint"]), failed),
        (4, (127, &["pytest"]), (127, &["eslint"]), failed),
        // Older rules ask for the number alone.
        (3, (2, &["pytest"]), (2, &["pytest"]), failed),
        (3, (127, &["pytest"]), (127, &["eslint"]), unavailable),
    ];
    for (rules, own, other, want) in rows {
        let found = codes(|facts| {
            facts.rules = RulesNumber(rules);
            let done = facts.verification.as_mut().unwrap();
            done.checks[0].end = exited(own.0);
            let untouched = Check {
                end: exited(other.0),
                lacks: names(other.1),
                ..done.checks[0].clone()
            };
            done.checks[0].lacks = names(own.1);
            done.baseline_checks = vec![untouched];
        });
        assert_eq!(found, want, "rules {rules}: {own:?}, {other:?}");
    }
    // It never makes anything better than blocked, and no hidden check says it.
    let mut done = verification(exited(2), None);
    done.checks[0].lacks = names(&["pytest", "/opt/x"]);
    done.baseline_checks = done.checks.clone();
    let contract = sample();
    let said = |done: &VerificationCompleted| {
        let blockers = verification_blockers(Rules::Four, Some(&contract), done);
        (blockers[0].code, blockers[0].detail.clone().unwrap())
    };
    let (code, detail) = said(&done);
    assert_eq!(code, Code::ToolchainUnavailable);
    assert!(
        detail.contains("looked for pytest, /opt/x") && detail.contains("--toolchain PATH"),
        "{detail}"
    );
    done.checks[0].lacks = names(&[".venv/bin/pytest"]);
    done.baseline_checks = done.checks.clone();
    let (_, detail) = said(&done);
    assert!(detail.contains("--input DIR"), "{detail}");
    done.checks[0].kind = CheckKind::Hidden;
    assert_ne!(said(&done).0, Code::ToolchainUnavailable);
}

fn compared(missing: &[&str]) -> TestsCompared {
    TestsCompared {
        ids_sha256: Digest::of(b"ids"),
        baseline_ids: 12,
        verified_ids: 12,
        not_seen: None,
        missing_count: missing.len() as u64,
        missing: missing.iter().take(10).map(|id| (*id).to_owned()).collect(),
        not_heard: false,
        unfinished: Vec::new(),
        unfinished_before_too: Vec::new(),
        none_passed: Vec::new(),
        changed_count: 0,
        changed: Vec::new(),
        renamed: Vec::new(),
    }
}

fn verified_with(change: impl FnOnce(&mut VerificationCompleted)) -> impl FnOnce(&mut Facts) {
    move |facts| change(facts.verification.as_mut().unwrap())
}

#[test]
fn every_test_of_the_baseline_ran_again() {
    let untrusted = ["verification_untrusted"];
    assert_eq!(
        codes(verified_with(|done| done.tests = Some(compared(&[])))),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes(verified_with(
            |done| done.tests = Some(compared(&["t: skipped"]))
        )),
        untrusted
    );
    assert_eq!(
        codes(verified_with(|done| done.log_nonce = Some("n".into()))),
        untrusted,
        "absence is no pass"
    );
    let without_runner =
        |contract: &mut Contract| contract.verification_control = Control::None("x".into());
    let none = |done: &mut VerificationCompleted| {
        done.control = Some(ControlRun::None { reason: "x".into() });
        done.log_nonce = Some("n".into());
    };
    assert_eq!(
        codes_with(without_runner, verified_with(none)),
        Vec::<&str>::new(),
        "no runner, no ids"
    );
    let mut not_seen = compared(&[]);
    not_seen.not_seen = Some("the baseline's own run named no test (exit code 1)".into());
    assert_eq!(
        codes(verified_with(|done| done.tests = Some(not_seen))),
        Vec::<&str>::new()
    );
    let names: Vec<String> = (0..12).map(|n| format!("t{n}: not there")).collect();
    let mut facts = good();
    facts.verification.as_mut().unwrap().tests = Some(compared(
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    ));
    let detail = judge(Some(&sample()), &facts).blockers[0]
        .detail
        .clone()
        .unwrap();
    assert!(
        detail.contains("t0: not there; t1") && detail.contains("and 2 more (where"),
        "{detail}"
    );
}

#[test]
fn who_takes_over_the_runner_is_not_believed() {
    let path = || vec![TreePath::new("sitecustomize.py")];
    let untrusted = ["verification_untrusted"];
    assert_eq!(
        codes(verified_with(|done| done.runner_takeovers = path())),
        untrusted
    );
    assert_eq!(
        codes(verified_with(|done| done.rewritten_test_files = path())),
        untrusted
    );
}

#[test]
fn a_module_that_is_not_installed_says_nothing_about_a_change_that_asks_for_it() {
    let missing = |command: &str, modules: &[&str], lists: &[&str]| MissingModules {
        command: command.into(),
        modules: modules.iter().map(|name| (*name).to_owned()).collect(),
        lists: lists.iter().map(|path| TreePath::new(*path)).collect(),
    };
    let own = verification(exited(1), None).checks[0].command.clone();
    let (named, lists) = (["requests"], ["pyproject.toml"]);
    let killed = ProcessEnd::Signalled { signal: 9 };
    for (rules, end, said, want) in [
        (
            4,
            exited(1),
            missing(&own, &named, &lists),
            "toolchain_unavailable",
        ),
        (
            4,
            exited(2),
            missing(&own, &named, &lists),
            "toolchain_unavailable",
        ),
        (
            3,
            exited(1),
            missing(&own, &named, &lists),
            "verification_failed",
        ),
        (
            4,
            exited(1),
            missing(&own, &[], &lists),
            "verification_failed",
        ),
        (
            4,
            exited(1),
            missing(&own, &named, &[]),
            "verification_failed",
        ),
        (
            4,
            exited(1),
            missing("other", &named, &lists),
            "verification_failed",
        ),
        (
            4,
            killed,
            missing(&own, &named, &lists),
            "verification_failed",
        ),
    ] {
        let found = codes(|facts| {
            facts.rules = RulesNumber(rules);
            let done = facts.verification.as_mut().unwrap();
            done.checks[0].end = end;
            done.missing_modules = vec![said.clone()];
        });
        assert_eq!(found, [want], "rules {rules}: {end:?} {said:?}");
    }
    // It makes nothing green, and nothing red that is green.
    let green = codes(|facts| {
        let done = facts.verification.as_mut().unwrap();
        done.missing_modules = vec![missing(&own, &named, &lists)];
    });
    assert_eq!(green, codes(|_| {}));
    // What an engine never saw stays what it is.
    let hidden = codes(|facts| {
        let done = facts.verification.as_mut().unwrap();
        done.checks[0].end = exited(1);
        done.checks[0].kind = CheckKind::Hidden;
        done.missing_modules = vec![missing(&own, &named, &lists)];
    });
    assert!(hidden.contains(&"verification_failed"), "{hidden:?}");
}
