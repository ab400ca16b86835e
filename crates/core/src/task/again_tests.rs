//! What may differ, what may not, and how it is told.

use super::*;
use crate::task::contract::tests::sample;
use crate::task::contract::{ControlPatch, MutationMode, Stage};
use crate::values::maybe_known::MaybeKnown;

fn again() -> Contract {
    let mut contract = sample();
    contract.lane.engine = REVERIFY.parse().unwrap();
    contract
}

fn with(commands: &[&str]) -> Contract {
    let mut contract = again();
    contract.verification_commands = commands.iter().map(|text| (*text).to_owned()).collect();
    contract
}

#[test]
fn commands_are_the_same_more_or_others() {
    let mut first = sample();
    first.verification_commands = vec!["a".into(), "b".into()];
    for (commands, want, dropped, added, short) in [
        (
            &["a", "b"][..],
            CommandsAre::Same,
            &[][..],
            &[][..],
            "the same checks",
        ),
        (
            &["a", "b", "c"],
            CommandsAre::More,
            &[],
            &["c"],
            "more commands",
        ),
        (&["a"], CommandsAre::Other, &["b"], &[], "fewer commands"),
        (&[], CommandsAre::Other, &["a", "b"], &[], "fewer commands"),
        (&["b", "a"], CommandsAre::Other, &[], &[], "other commands"),
        (
            &["c", "a", "b"],
            CommandsAre::Other,
            &[],
            &["c"],
            "other commands",
        ),
        (
            &["a", "c"],
            CommandsAre::Other,
            &["b"],
            &["c"],
            "other commands",
        ),
        (
            &["a", "a"],
            CommandsAre::Other,
            &["b"],
            &["a"],
            "other commands",
        ),
    ] {
        let differ = ChecksDiffer::between(&first, &with(commands));
        assert_eq!(differ.commands, want, "{commands:?}");
        assert_eq!(differ.dropped, dropped, "{commands:?}");
        assert_eq!(differ.added, added, "{commands:?}");
        assert_eq!(differ.short(), short, "{commands:?}");
        let says = !differ.lines().is_empty();
        assert_eq!(says, want != CommandsAre::Same, "{commands:?}");
    }
}

#[test]
fn inputs_control_limits_and_programs_are_told() {
    let (first, mut second) = (sample(), again());
    assert_eq!(
        ChecksDiffer::between(&first, &second),
        ChecksDiffer::default()
    );
    second.inputs = vec!["data/".parse().unwrap()];
    second.verification_control = Control::None("why".into());
    second.limits.verification_wall_seconds += 1;
    second.lane.toolchains = vec!["~/tool".into()];
    let differ = ChecksDiffer::between(&first, &second);
    assert_eq!(
        differ.lines(),
        [
            "inputs besides: data/",
            "control now: none (why)",
            "others than then: time limits, toolchains"
        ]
    );
    assert_eq!(
        differ.short(),
        "more inputs, another control, other time limits, other toolchains"
    );
}

#[test]
fn nothing_of_the_task_may_differ_but_its_checks() {
    let first = sample();
    assert_eq!(other_task(&first, &again()), None);
    let mut free = with(&["another"]);
    free.verification_control = Control::None("why".into());
    free.inputs = vec!["data/".parse().unwrap()];
    free.limits.verification_wall_seconds += 1;
    assert_eq!(other_task(&first, &free), None);
    type Change = fn(&mut Contract);
    let changes: [(&str, Change); 16] = [
        ("scope", |c| c.allowed_paths.push("more".parse().unwrap())),
        ("scope", |c| c.forbidden_paths.clear()),
        ("tree", |c| {
            c.start_tree = MaybeKnown::Known(Digest::of(b"other"))
        }),
        ("tree", |c| c.start_tree = MaybeKnown::NotLookedAt),
        ("engine", |c| c.lane.engine = "fake".parse().unwrap()),
        ("engine", |c| c.lane.script_sha256 = Some(Digest::of(b"s"))),
        ("stage", |c| c.lane.stage = Stage::Three),
        ("task", |c| c.label = Label::Try),
        ("task", |c| c.objective.push('!')),
        ("task", |c| c.mutation_mode = MutationMode::CopiedRepo),
        ("task", |c| c.setup.push("true".into())),
        ("task", |c| {
            c.hidden_verification.commands.push("true".into())
        }),
        ("task", |c| c.reasons.unchecked = Some("so".into())),
        ("task", |c| c.variables = [("A".into(), "b".into())].into()),
        ("task", |c| c.trace = true),
        ("task", |c| c.limits.memory_mib += 1),
    ];
    for (number, (what, change)) in changes.into_iter().enumerate() {
        let mut other = again();
        change(&mut other);
        let said = other_task(&first, &other);
        assert!(
            said.is_some_and(|said| said.contains(what)),
            "{number}: {said:?}"
        );
    }
    let mut had_inputs = sample();
    had_inputs.inputs = vec!["data/".parse().unwrap()];
    assert_eq!(other_task(&had_inputs, &again()), Some("leaves inputs out"));
}

#[test]
fn a_task_is_asked_once_more_with_what_was_said() {
    let first = sample();
    let same = task_again(&first, OtherChecks::default());
    assert_eq!(same.verification_commands, first.verification_commands);
    assert_eq!(same.allowed_paths, first.allowed_paths);
    let other = OtherChecks {
        commands: vec!["make".into()],
        inputs: vec!["data/".parse().unwrap()],
        control: Some(ControlSource::Patch("control.patch".into())),
    };
    let asked = task_again(&first, other);
    assert_eq!(asked.verification_commands, ["make"]);
    assert_eq!(asked.inputs.len(), 1);
    let patch = Some(ControlSource::Patch("control.patch".into()));
    assert_eq!(asked.verification_control, patch);
    let mut by_patch = sample();
    by_patch.verification_control = Control::Patch(ControlPatch {
        file: "control.patch".into(),
        sha256: Digest::of(b"p"),
    });
    let asked = task_again(&by_patch, OtherChecks::default());
    assert_eq!(
        asked.verification_control, patch,
        "and its bytes are needed"
    );
}
