//! What an event says of commands and files, by tables.

use super::*;
use crate::run::event::{Check, CheckKind, ProcessEnd};
use crate::run::loaded::LoadingFile;
use crate::task::contract::tests::sample;
use crate::values::digest::Digest;

const COMMANDS: [&str; 2] = ["ruff check .", "python3 -m unittest -v"];

fn check(command: &str, code: u8) -> Check {
    Check {
        kind: CheckKind::Visible,
        command: command.into(),
        end: ProcessEnd::Exited { code },
        duration_ms: 1,
        lacks: Vec::new(),
    }
}

fn round(proves: Proves, files: &[&str], ended: &[(usize, u8)]) -> LoadingRound {
    let ran = ended
        .iter()
        .map(|(index, code)| check(COMMANDS[*index], *code));
    LoadingRound {
        proves,
        files: files.iter().map(|path| TreePath::new(*path)).collect(),
        harmless: false,
        single: false,
        setup_failed: None,
        checks: ran.collect(),
    }
}

fn loading(rounds: Vec<LoadingRound>) -> LoadingRun {
    let file = |path: &str| LoadingFile {
        path: TreePath::new(path),
        not_code: None,
        how: None,
        tells_how_to_run: false,
        put_back: false,
    };
    LoadingRun {
        substance: Substance::Code,
        files: ["a.py", "b.py", "c.py"].map(file).to_vec(),
        rounds,
        could_not_run: None,
    }
}

const BOTH: &[&str] = &["a.py", "b.py"];

#[test]
fn only_rounds_that_decide_say_what_a_command_loads() {
    let seen = |rounds: Vec<LoadingRound>| {
        let run = loading(rounds);
        COMMANDS.map(|command| run.seen(command, false))
    };
    use LoadingSeen::{Loaded, NotRed, NotTried, OnlyRead};
    assert_eq!(seen(vec![]), [NotTried, NotTried]);
    let first = || round(Proves::Loaded, BOTH, &[(0, 0), (1, 97)]);
    assert_eq!(seen(vec![first()]), [NotRed, Loaded]);
    let second = round(Proves::Parsed, BOTH, &[(0, 1)]);
    assert_eq!(seen(vec![first(), second]), [OnlyRead, Loaded]);
    let twin = LoadingRound {
        harmless: true,
        ..round(Proves::Loaded, BOTH, &[(1, 1)])
    };
    let red = round(Proves::Loaded, BOTH, &[(0, 0), (1, 1)]);
    assert_eq!(seen(vec![red.clone(), twin]), [NotRed, OnlyRead]);
    let twin = LoadingRound {
        harmless: true,
        ..round(Proves::Loaded, BOTH, &[(1, 0)])
    };
    assert_eq!(seen(vec![red, twin]), [NotRed, Loaded]);
    let alone = LoadingRound {
        single: true,
        ..round(Proves::Loaded, &["c.py"], &[(0, 1), (1, 1)])
    };
    let green = round(Proves::Loaded, BOTH, &[(0, 0), (1, 0)]);
    assert_eq!(seen(vec![green, alone]), [NotRed, NotRed]);
    let unprepared = LoadingRound {
        setup_failed: Some("pip install .".into()),
        ..round(Proves::Loaded, BOTH, &[])
    };
    use LoadingSeen::OnlyAround;
    assert_eq!(seen(vec![unprepared.clone()]), [OnlyAround, OnlyAround]);
    let after_it = LoadingRound {
        checks: first().checks,
        ..unprepared
    };
    assert_eq!(seen(vec![after_it]), [OnlyAround, Loaded]);
}

#[test]
fn a_makefile_that_cannot_be_read_does_not_show_that_its_rules_can_fail() {
    for (files, want) in [
        (&["Makefile"][..], LoadingSeen::OnlyAround),
        (&["package.json", "Makefile"], LoadingSeen::OnlyAround),
        (&["Makefile", "a.py"], LoadingSeen::OnlyRead),
        (&["conftest.py"], LoadingSeen::OnlyRead),
    ] {
        let mut run = loading(vec![round(Proves::Parsed, files, &[(0, 2)])]);
        let paths = ["Makefile", "package.json", "conftest.py"];
        for (file, path) in run.files.iter_mut().zip(paths) {
            file.path = TreePath::new(path);
            file.tells_how_to_run = path != "conftest.py";
        }
        assert_eq!(run.seen(COMMANDS[0], false), want, "{files:?}");
    }
}

#[test]
fn what_does_not_compile_was_run_only_by_a_runner_that_does_nothing_else() {
    use LoadingSeen::{Loaded, OnlyRead};
    let cargo = Some(Runner::Cargo);
    for (command, runner, files, want) in [
        ("cargo test", cargo, &["src/lib.rs"][..], Loaded),
        ("cargo test -q -p a", cargo, &["a/src/lib.rs"], Loaded),
        (
            "cargo test && cargo check",
            cargo,
            &["src/lib.rs"],
            OnlyRead,
        ),
        ("cargo check", cargo, &["src/lib.rs"], OnlyRead),
        ("cargo test", None, &["src/lib.rs"], OnlyRead),
        ("cargo test", cargo, &["examples/e.rs"], OnlyRead),
        (
            "cargo test",
            cargo,
            &["a/benches/b.rs", "examples/e.rs"],
            OnlyRead,
        ),
        (
            "cargo test",
            cargo,
            &["examples/e.rs", "src/lib.rs"],
            Loaded,
        ),
        ("pytest", Some(Runner::Pytest), &["a.py"], OnlyRead),
    ] {
        let mut round = round(Proves::Parsed, files, &[(0, 1)]);
        round.checks[0].command = command.to_owned();
        let mut contract = sample();
        contract.verification_commands = vec![command.to_owned()];
        contract.verification_control = match runner {
            Some(runner) => Control::Runner(runner),
            None => Control::None("no runner".into()),
        };
        let builds = runs_what_it_builds(&contract, 0);
        let seen = loading(vec![round]).seen(command, builds);
        assert_eq!(seen, want, "{command} {runner:?} {files:?}");
    }
}

#[test]
fn what_waits_for_the_change_has_noticed_it_where_its_twin_comes_to_an_end() {
    let limit = |mut round: LoadingRound| {
        round.checks[0].end = ProcessEnd::TimedOut {
            limit: crate::run::event::TimeLimit::Wall,
        };
        round
    };
    let first = || limit(round(Proves::Loaded, &["a.py"], &[(1, 0)]));
    let twin = LoadingRound {
        harmless: true,
        ..round(Proves::Loaded, &["a.py"], &[(1, 0)])
    };
    let seen = |rounds: Vec<LoadingRound>| {
        let run = loading(rounds);
        (
            run.seen(COMMANDS[1], false),
            run.file_seen(&TreePath::new("a.py"), 1),
        )
    };
    assert_eq!(
        seen(vec![first()]),
        (LoadingSeen::NotTried, FileSeen::NotTried)
    );
    assert_eq!(
        seen(vec![first(), twin.clone()]),
        (LoadingSeen::NoEnd, FileSeen::Noticed)
    );
    assert_eq!(
        seen(vec![first(), limit(twin)]),
        (LoadingSeen::NotTried, FileSeen::NotTried)
    );
}

#[test]
fn code_that_nobody_noticed_alone_is_not_proven_by_what_lies_beside_it() {
    let of = |how, put_back, not_code| {
        let mut run = loading(vec![
            round(Proves::Loaded, BOTH, &[(1, 97)]),
            LoadingRound {
                single: true,
                ..round(Proves::Loaded, &["a.py"], &[(1, 0)])
            },
        ]);
        run.files[0] = LoadingFile {
            how,
            put_back,
            not_code,
            ..run.files[0].clone()
        };
        (run.has_unseen_code(1), run.files_seen(1).count())
    };
    use crate::run::loaded::NotCode;
    for (how, put_back, not_code, want) in [
        (Some(How::EndsItsProcess), false, None, (true, 3)),
        (Some(How::DoesNotCompile), false, None, (true, 3)),
        (Some(How::BrokenLine), false, None, (false, 3)),
        // Nothing should load what was deleted.
        (Some(How::EndsItsProcess), true, None, (false, 2)),
        (
            Some(How::EndsItsProcess),
            false,
            Some(NotCode::Documentation),
            (false, 2),
        ),
    ] {
        assert_eq!(of(how, put_back, not_code), want, "{how:?} {put_back}");
    }
}

#[test]
fn a_limit_or_a_kill_is_not_red_and_a_trap_is() {
    for (end, want) in [
        (ProcessEnd::Exited { code: 0 }, false),
        (ProcessEnd::Exited { code: 1 }, true),
        (ProcessEnd::Signalled { signal: 4 }, true),
        (ProcessEnd::Signalled { signal: 6 }, true),
        (ProcessEnd::Signalled { signal: 9 }, false),
        (ProcessEnd::Lost, false),
        (ProcessEnd::Cancelled, false),
    ] {
        let mut red = round(Proves::Loaded, BOTH, &[(1, 0)]);
        red.checks[0].end = end;
        assert_eq!(red.is_red(), want, "{end:?}");
    }
}

#[test]
fn files_are_counted_as_they_were_tried() {
    let told = |rounds: Vec<LoadingRound>| {
        let seen = loading(rounds).files_seen(2);
        (seen.noticed, seen.not_noticed.len(), seen.not_tried.len())
    };
    let red = || round(Proves::Loaded, BOTH, &[(0, 0), (1, 97)]);
    let green = || round(Proves::Loaded, BOTH, &[(0, 0), (1, 0)]);
    let alone = |path: &'static str, ended: &[(usize, u8)]| LoadingRound {
        single: true,
        ..round(Proves::Loaded, &[path], ended)
    };
    assert_eq!(told(vec![]), (0, 0, 3));
    assert_eq!(told(vec![green()]), (0, 2, 1));
    assert_eq!(told(vec![red()]), (0, 0, 3), "which of both is not known");
    let both = vec![
        red(),
        alone("a.py", &[(1, 97)]),
        alone("b.py", &[(1, 0), (0, 0)]),
    ];
    assert_eq!(told(both), (1, 1, 1));
    let cut = vec![red(), alone("a.py", &[(1, 0)])];
    assert_eq!(told(cut), (0, 0, 3), "not every command ran");
    let only = round(Proves::Loaded, &["a.py"], &[(0, 0), (1, 97)]);
    assert_eq!(told(vec![only]), (1, 0, 2));
}

#[test]
fn what_is_absent_was_not_tried_and_never_passes() {
    use crate::run::belief::{Belief, Doubt};
    let mut contract = sample();
    contract.verification_commands = COMMANDS.map(str::to_owned).to_vec();
    let mut done = VerificationCompleted::nothing(Digest::of(b""));
    done.checks = COMMANDS.map(|command| check(command, 0)).to_vec();
    let found = of_run(&contract, &done);
    assert_eq!(found.run, Belief::None);
    assert_eq!(found.doubts, [Doubt::NotChecked, Doubt::Unproven]);
    done.control = Some(ControlRun::Ran {
        heard: Vec::new(),
        checks: vec![check(COMMANDS[0], 0), check(COMMANDS[1], 1)],
        failures_added: Some(5),
        failures_reported: Some(5),
    });
    done.loading = Some(loading(vec![round(
        Proves::Loaded,
        BOTH,
        &[(0, 0), (1, 97)],
    )]));
    let found = of_run(&contract, &done);
    assert_eq!(found.commands, [Belief::None, Belief::Proven]);
    assert_eq!(
        found.run,
        Belief::None,
        "one red command answers for itself alone"
    );
    let loading = done.loading.as_mut().unwrap();
    loading.rounds.push(round(Proves::Parsed, BOTH, &[(0, 1)]));
    let found = of_run(&contract, &done);
    assert_eq!(found.commands, [Belief::Partly, Belief::Proven]);
    assert_eq!((found.run, found.doubts), (Belief::Proven, vec![]));
    for (added, reported) in [(Some(5), Some(4)), (Some(5), None)] {
        done.control = Some(ControlRun::Ran {
            heard: Vec::new(),
            checks: vec![check(COMMANDS[0], 0), check(COMMANDS[1], 1)],
            failures_added: added,
            failures_reported: reported,
        });
        assert_eq!(commands(&contract, &done)[1].control, ControlSeen::NotRed);
    }
}

#[test]
fn a_required_control_wants_everything_proven() {
    use crate::run::belief::{Belief, Doubt};
    let mut contract = sample();
    contract.reasons.require_control = true;
    let mut done = VerificationCompleted::nothing(Digest::of(b""));
    done.loading = Some(LoadingRun {
        substance: Substance::OnlyDocumentation,
        ..loading(vec![])
    });
    let found = of_run(&contract, &done);
    assert_eq!(
        (found.run, found.doubts),
        (Belief::Partly, vec![Doubt::Unproven])
    );
}

#[test]
fn an_early_stop_on_a_red_baseline_is_believed_partly() {
    use crate::task::runner::{Flag, Found};
    let stop = |place| Flag {
        words: vec!["-failfast".into()],
        place,
    };
    for (runner, place, code, want) in [
        (Runner::Go, None, 1, ControlSeen::StoppedEarly),
        (Runner::Go, None, 0, ControlSeen::RedByFailingTests),
        (Runner::Go, Some((0, 1)), 1, ControlSeen::RedByFailingTests),
        (Runner::Mocha, None, 1, ControlSeen::RedByFailingTests),
    ] {
        let mut contract = sample();
        contract.verification_commands = vec!["make test".into()];
        contract.verification_control = Control::Runner(runner);
        let mut found = Found::named(runner);
        found.said.early_stop = vec![stop(place)];
        contract.recognised = vec![Recognised {
            found: vec![found],
            ..Recognised::default()
        }];
        let done = VerificationCompleted {
            control: Some(ControlRun::Ran {
                heard: Vec::new(),
                checks: vec![check("make test", 1)],
                failures_added: None,
                failures_reported: None,
            }),
            baseline_checks: vec![check("make test", code)],
            ..VerificationCompleted::nothing(Digest::of(b""))
        };
        let seen = commands(&contract, &done);
        assert_eq!(seen[0].control, want, "{runner} {place:?} {code}");
        contract.recognised.clear();
        let seen = commands(&contract, &done);
        assert_eq!(seen[0].control, ControlSeen::RedByFailingTests);
    }
}

/// A selection is taken off for the control: what chooses no test was not seen to be red.
#[test]
fn a_command_of_which_no_test_passed_is_not_proven_by_tests_it_does_not_choose() {
    use crate::run::belief::Belief;
    use crate::run::checked::{ControlHeard, TestsCompared};
    let mut contract = sample();
    contract.verification_commands = vec![COMMANDS[1].to_owned()];
    contract.verification_control = Control::Runner(Runner::Unittest);
    for (named, none_passed, want) in [
        (true, vec![0], Belief::Partly),
        (true, vec![], Belief::Proven),
        (true, vec![1], Belief::Proven),
        // Whoever names no test in the control either is not heard at all.
        (false, vec![0], Belief::Proven),
    ] {
        let mut done = VerificationCompleted::nothing(Digest::of(b""));
        done.checks = vec![check(COMMANDS[1], 0)];
        done.control = Some(ControlRun::Ran {
            checks: vec![check(COMMANDS[1], 1)],
            failures_added: Some(5),
            failures_reported: Some(5),
            heard: vec![ControlHeard {
                named,
                reported: false,
            }],
        });
        done.loading = Some(loading(vec![round(Proves::Loaded, BOTH, &[(1, 97)])]));
        let tests = TestsCompared {
            none_passed: none_passed.clone(),
            ids_sha256: Digest::of(b""),
            baseline_ids: 1,
            verified_ids: 0,
            not_seen: None,
            missing_count: 0,
            missing: Vec::new(),
            not_heard: false,
            unfinished: Vec::new(),
            unfinished_before_too: Vec::new(),
            changed_count: 0,
            changed: Vec::new(),
            renamed: Vec::new(),
        };
        done.tests = Some(tests);
        let found = of_run(&contract, &done);
        assert_eq!(found.commands, [want], "{named} {none_passed:?}");
    }
}
