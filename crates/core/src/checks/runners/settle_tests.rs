//! What a contract says of its commands, and when a change says otherwise.

use super::*;
use crate::run::belief::seen::runs_what_it_builds;
use crate::task::contract::tests::sample;

fn settled(commands: &[&str], declared: Option<Control>, package: &str) -> Contract {
    let mut contract = sample();
    contract.verification_commands = commands.iter().map(|c| (*c).to_owned()).collect();
    contract.verification_control = declared
        .clone()
        .unwrap_or_else(|| Control::None("no control is known for this command".into()));
    settle(&mut contract, declared.is_some(), &mut file(package));
    contract
}

fn file(package: &str) -> impl FnMut(&str) -> Option<String> {
    move |path| (path == "package.json").then(|| package.to_owned())
}

const MOCHA: &str = r#"{"scripts": {"test": "mocha -b"}}"#;
const JEST: &str = r#"{"scripts": {"test": "jest"}}"#;

#[test]
fn what_is_recognised_becomes_the_control() {
    for (commands, declared, want, heard) in [
        (&["npm test"][..], None, Control::Runner(Runner::Mocha), 1),
        (
            &["true", "npm test", "cargo test"],
            None,
            Control::Runner(Runner::Mocha),
            2,
        ),
        (
            &["true"],
            None,
            Control::None("no control is known for this command".into()),
            0,
        ),
        (
            &["npm test"],
            Some(Control::Runner(Runner::Jest)),
            Control::Runner(Runner::Jest),
            1,
        ),
        (
            &["npm test"],
            Some(Control::None("why".into())),
            Control::None("why".into()),
            0,
        ),
    ] {
        let contract = settled(commands, declared, MOCHA);
        assert_eq!(contract.verification_control, want, "{commands:?}");
        assert_eq!(contract.runners().len(), heard, "{commands:?}");
    }
    let contract = settled(&["npm test"], None, MOCHA);
    let control = contract.recognised[0].control.as_ref().unwrap();
    assert_eq!(control.drop, ["-b"]);
    assert_eq!(contract.control_command(0), "npm test");
    let contract = settled(&["pytest -x"], None, "");
    assert_eq!(contract.control_command(0), "pytest ");
}

#[test]
fn in_a_try_nobodys_word_takes_away_what_is_seen() {
    let patch = || {
        Control::Patch(crate::task::contract::ControlPatch {
            file: "control.patch".into(),
            sha256: crate::values::digest::Digest::of(b"x"),
        })
    };
    let tried = |command: &str, label: Label, said: Control| {
        let mut contract = sample();
        contract.label = label;
        contract.verification_commands = vec![command.to_owned()];
        contract.verification_control = said;
        settle(&mut contract, true, &mut |_| None);
        let runners: Vec<Runner> = contract.runners().into_iter().collect();
        (contract.verification_control.clone(), runners, contract)
    };
    // A patch stays the control, and the tests are compared all the same; the command is as it is written.
    let (control, runners, contract) = tried("pytest -x", Label::Try, patch());
    assert_eq!((control, runners), (patch(), vec![Runner::Pytest]));
    assert_eq!(contract.compared_runner(), Some(Runner::Pytest));
    assert_eq!(contract.control_command(0), "pytest -x");
    let (_, runners, contract) = tried("sh check.sh", Label::Try, patch());
    assert!(runners.is_empty() && contract.recognised.is_empty());
    let (_, runners, contract) = tried("pytest -x", Label::Case, patch());
    assert!(
        runners.is_empty() && contract.recognised.is_empty(),
        "its author's word"
    );
    // A runner that is named comes beside those that are seen.
    let said = |runner| Control::Runner(runner);
    let (control, runners, _) = tried("pytest", Label::Try, said(Runner::Go));
    assert_eq!(control, said(Runner::Go));
    assert!(runners.contains(&Runner::Pytest), "{runners:?}");
    let (control, runners, _) = tried("python3 -m unittest", Label::Try, said(Runner::Pytest));
    assert_eq!(
        (control, runners),
        (said(Runner::Unittest), vec![Runner::Unittest])
    );
    let (control, runners, _) = tried("./check", Label::Try, said(Runner::Go));
    assert_eq!((control, runners), (said(Runner::Go), vec![Runner::Go]));
    let (_, runners, _) = tried("pytest", Label::Case, said(Runner::Go));
    assert_eq!(runners, [Runner::Go]);
}

#[test]
fn a_change_that_alters_the_answer_is_named() {
    let changed = ["package.json".to_owned()];
    let otherwise = |contract: &Contract, after: &mut Look<'_>| {
        otherwise(contract, &changed, &mut file(MOCHA), after)
    };
    let contract = settled(&["npm test", "cargo test"], None, MOCHA);
    assert!(otherwise(&contract, &mut file(MOCHA)).is_empty());
    assert_eq!(otherwise(&contract, &mut file(JEST)), ["npm test"]);
    assert_eq!(otherwise(&contract, &mut |_| None), ["npm test"]);
    let named = settled(&["npm test"], Some(Control::Runner(Runner::Jest)), MOCHA);
    assert!(otherwise(&named, &mut file(MOCHA)).is_empty());
    assert_eq!(otherwise(&named, &mut file(JEST)), ["npm test"]);
}

#[test]
fn cargo_runs_what_it_builds_through_words_before_it_and_with_nothing_beside_it() {
    let make = |text: &'static str| move |path: &str| (path == "Makefile").then(|| text.to_owned());
    for (command, text, want) in [
        ("cargo test", "", true),
        ("RUST_BACKTRACE=1 cargo test -q", "", true),
        ("env A=b timeout 300 cargo test", "", true),
        ("cd src && cargo test --tests", "", true),
        ("make test", "test:\n\tcargo test\n", true),
        ("make test", "test:\n\tcargo build\n\tcargo test\n", false),
        ("make test", "test:\n\t-cargo test\n", false),
        ("cargo test && cargo check", "", false),
        ("cargo test || true", "", false),
        ("cargo test | tail", "", false),
        ("cargo test --no-run", "", false),
        ("cargo test && cargo test --doc", "", false),
        ("cargo check", "", false),
        ("pytest", "", false),
    ] {
        let mut contract = sample();
        contract.verification_commands = vec![command.to_owned()];
        contract.verification_control = Control::None("no control is known".into());
        settle(&mut contract, false, &mut make(text));
        assert_eq!(runs_what_it_builds(&contract, 0), want, "{command} {text}");
    }
}
