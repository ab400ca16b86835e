//! The whole space of belief: every pair of experiments, every reason, every stage.

use super::words::{self, FileSeen, FilesSeen};
use super::*;
use crate::values::paths::TreePath;

const STAGES: [Stage; 6] = [
    Stage::One,
    Stage::Two,
    Stage::Three,
    Stage::Four,
    Stage::Five,
    Stage::Six,
];
const SUBSTANCES: [Substance; 3] = [
    Substance::Code,
    Substance::OnlyDocumentation,
    Substance::NoCode,
];

fn everything_seen() -> Vec<CommandSeen> {
    let pairs = ControlSeen::ALL.iter().flat_map(|control| {
        LoadingSeen::ALL
            .iter()
            .map(move |loading| (*control, *loading))
    });
    pairs
        .map(|(control, loading)| CommandSeen { control, loading })
        .collect()
}

fn everything_accepted() -> Vec<Accepted> {
    let mut out = Vec::new();
    for stage in STAGES {
        for label in [Label::Case, Label::Try] {
            for (unproven, unchecked) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                out.push(Accepted {
                    proven_required: false,
                    unproven,
                    unchecked,
                    stage,
                    label,
                });
            }
        }
    }
    out
}

#[test]
fn every_pair_of_experiments_has_its_word() {
    use Belief::{None, Partly, Proven};
    // Columns: not tried, not red, only set up, no end, only read, loaded.
    let never = [None, None, None, Partly, Partly, Partly];
    let red = [Partly, Partly, Partly, Partly, Partly, Proven];
    let table = [
        (ControlSeen::NotRun, never),
        (ControlSeen::NotRed, never),
        (ControlSeen::OfOtherTests, never),
        (ControlSeen::OfFormerCommand, [Partly; 6]),
        (ControlSeen::StoppedEarly, [Partly; 6]),
        (ControlSeen::RedByPatch, red),
        (ControlSeen::RedByFailingTests, red),
    ];
    for (control, row) in table {
        for (loading, want) in LoadingSeen::ALL.into_iter().zip(row) {
            let seen = CommandSeen { control, loading };
            assert_eq!(of_command(seen, Substance::Code), want, "{seen:?}");
            for other in [Substance::OnlyDocumentation, Substance::NoCode] {
                assert_eq!(of_command(seen, other), Partly, "{seen:?} {other:?}");
            }
        }
    }
}

#[test]
fn more_evidence_never_makes_less_belief() {
    for a in everything_seen() {
        for b in everything_seen() {
            let more = a.control <= b.control && a.loading <= b.loading;
            if more {
                assert!(
                    of_command(a, Substance::Code) <= of_command(b, Substance::Code),
                    "{a:?} {b:?}"
                );
            }
        }
    }
}

#[test]
fn one_command_never_answers_for_another_that_nothing_turns_red() {
    use Belief::{None, Partly, Proven};
    for (commands, want) in [
        (&[][..], None),
        (&[None], None),
        (&[Partly], Partly),
        (&[Proven], Proven),
        (&[Proven, None], None),
        (&[None, Proven, Proven], None),
        (&[Partly, None], None),
        (&[Proven, Partly], Proven),
        (&[Partly, Partly], Partly),
    ] {
        assert_eq!(of_run(commands), want, "{commands:?}");
        let mut turned = commands.to_vec();
        turned.reverse();
        assert_eq!(of_run(&turned), want, "order says nothing");
    }
    for a in Belief::ALL {
        for b in Belief::ALL {
            for c in Belief::ALL {
                let run = of_run(&[a, b, c]);
                assert_eq!(run == None, [a, b, c].contains(&None));
                assert_eq!(
                    run == Proven,
                    ![a, b, c].contains(&None) && [a, b, c].contains(&Proven)
                );
            }
        }
    }
}

/// Two commands, every experiment on each, every reason, label and stage: 57 600 runs.
#[test]
fn what_does_not_pass_is_what_nobody_may_accept() {
    for first in everything_seen() {
        for second in everything_seen() {
            for substance in SUBSTANCES {
                for accepted in everything_accepted() {
                    check_one(&[first, second], substance, accepted);
                    let seen = believe(&[first, second], substance, false, accepted);
                    let unseen = believe(&[first, second], substance, true, accepted);
                    assert_eq!(unseen.run, seen.run.min(Belief::Partly));
                    if accepted.stage < Stage::Four {
                        assert_eq!(unseen.doubts, seen.doubts);
                    }
                }
            }
        }
    }
}

fn check_one(commands: &[CommandSeen], substance: Substance, accepted: Accepted) {
    let found = believe(commands, substance, false, accepted);
    let told = || format!("{commands:?} {substance:?} {accepted:?} {found:?}");
    let never_red = |seen: &CommandSeen| {
        seen.control <= ControlSeen::OfOtherTests && seen.loading <= LoadingSeen::OnlyAround
    };
    let unproven = substance == Substance::Code && commands.iter().any(never_red);
    assert_eq!(found.run == Belief::None, unproven, "{}", told());
    let by_nothing = |seen: &CommandSeen| {
        !never_red(seen)
            || (seen.control == ControlSeen::NotRun && seen.loading <= LoadingSeen::NotRed)
    };
    let unchecked = accepted.unchecked && accepted.label == Label::Try;
    let excused = accepted.stage <= Stage::Three
        && (accepted.unproven || (unchecked && commands.iter().all(by_nothing)));
    assert_eq!(
        found.doubts.contains(&Doubt::Unproven),
        match accepted.stage >= Stage::Four {
            true => found.run != Belief::Proven,
            false => unproven && !excused,
        },
        "{}",
        told()
    );
    let unseen =
        substance == Substance::Code && commands.iter().all(|seen| !seen.loading.noticed());
    let none_at_all = found.commands.iter().all(|word| *word == Belief::None);
    let excused = accepted.stage <= Stage::Three
        && ((accepted.unchecked && accepted.label == Label::Try)
            || (accepted.unproven
                && none_at_all
                && (accepted.label != Label::Try
                    || commands
                        .iter()
                        .all(|seen| seen.loading == LoadingSeen::NotTried))));
    assert_eq!(
        found.doubts.contains(&Doubt::NotChecked),
        unseen && !excused,
        "{}",
        told()
    );
    // A reason lets a run pass; it never makes it worth more.
    let without = Accepted {
        unproven: false,
        unchecked: false,
        ..accepted
    };
    let plain = believe(commands, substance, false, without);
    assert_eq!(
        (found.run, &found.commands),
        (plain.run, &plain.commands),
        "{}",
        told()
    );
    if found.run.proves_a_stage() {
        assert!(found.doubts.is_empty(), "{}", told());
        assert!(
            commands
                .iter()
                .any(|seen| seen.control.is_red() && seen.loading == LoadingSeen::Loaded),
            "{}",
            told()
        );
    }
}

#[test]
fn nothing_ran_is_nothing_believed() {
    let accepted = Accepted {
        unproven: false,
        unchecked: false,
        proven_required: false,
        stage: Stage::Three,
        label: Label::Try,
    };
    let found = believe(&[], Substance::OnlyDocumentation, false, accepted);
    assert_eq!(found.run, Belief::None);
    assert_eq!(found.doubts, [Doubt::Unproven]);
}

#[test]
fn the_end_of_a_loading_control_is_read_with_its_harmless_twin() {
    use FormSeen::{Breaks, BuiltByItsRunner, Runs};
    for form in [Runs, BuiltByItsRunner, Breaks] {
        for harmless in [
            None,
            Some(Ended::Green),
            Some(Ended::AtALimit),
            Some(Ended::Red),
        ] {
            assert_eq!(
                LoadingSeen::of(Ended::Green, form, harmless),
                LoadingSeen::NotRed,
                "green is green"
            );
            let want = match (form, harmless) {
                (Runs, Some(Ended::Red | Ended::AtALimit)) | (Breaks, _) => LoadingSeen::OnlyRead,
                _ => LoadingSeen::Loaded,
            };
            assert_eq!(LoadingSeen::of(Ended::Red, form, harmless), want);
            let want = match harmless {
                Some(Ended::Green) => LoadingSeen::NoEnd,
                _ => LoadingSeen::NotTried,
            };
            assert_eq!(LoadingSeen::of(Ended::AtALimit, form, harmless), want);
        }
    }
}

#[test]
fn files_are_counted_in_words() {
    let paths = ["a.py", "b.py", "c.py", "d.py"].map(TreePath::new);
    let seen = |all: [FileSeen; 4]| FilesSeen::of(paths.iter().zip(all));
    use FileSeen::{NotNoticed, NotTried, Noticed};
    for (all, want) in [
        (
            [Noticed, Noticed, NotNoticed, Noticed],
            "seen by the checks: 3 of 4 files",
        ),
        (
            [Noticed, NotTried, NotTried, NotNoticed],
            "seen by the checks: 1 of 4 files, 2 not tried",
        ),
        ([NotNoticed; 4], "seen by the checks: 0 of 4 files"),
    ] {
        assert_eq!(seen(all).line(), want);
    }
    let one = FilesSeen::of([(&paths[0], Noticed)]);
    assert_eq!(one.line(), "seen by the checks: 1 of 1 file");
    assert_eq!(
        words::markdown(&seen([Noticed, NotTried, NotNoticed, Noticed]), |path| {
            format!("`{path}`")
        }),
        "- seen by the checks: 2 of 4 files, 1 not tried\n- **no check noticed**: `c.py`\n- not tried: `b.py`\n"
    );
}

#[test]
fn no_words_claim_more_than_the_word() {
    for seen in everything_seen() {
        for substance in SUBSTANCES {
            let belief = of_command(seen, substance);
            let told = format!(
                "{} {}",
                words::sentence(belief, substance, &FilesSeen::default()),
                words::verdict_clause(belief, substance)
            );
            assert_eq!(
                told.contains("fail where they must"),
                belief == Belief::Proven,
                "{told}"
            );
            assert_eq!(told.contains("NONE"), belief == Belief::None, "{told}");
            assert_eq!(
                words::because(seen, substance).contains("turned it red"),
                seen.control.is_red(),
            );
        }
    }
    for seen in [FileSeen::NotNoticed, FileSeen::NotTried] {
        let some = FilesSeen::of([(&TreePath::new("a.c"), seen)]);
        let told = words::sentence(Belief::Proven, Substance::Code, &some);
        assert!(told.contains("load some of what was changed"), "{told}");
    }
    assert_eq!(
        FilesSeen::of([(&TreePath::new("a.c"), FileSeen::Noticed)]).line(),
        "seen by the checks: 1 of 1 file"
    );
    assert_eq!(
        words::verdict_clause(Belief::Partly, Substance::OnlyDocumentation),
        "checks partly (documentation only)"
    );
}
