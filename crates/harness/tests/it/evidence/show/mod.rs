//! `cto show`: what happened, for a tired person and for a program.

mod log;
mod markdown;

use cto_testkit::{Case, print, script, write};

use crate::house;
use crate::passed;

#[test]
fn a_pass_says_verdict_reason_change_and_next() {
    let (house, bundle) = passed();
    let answer = house.cto(&["show"]);
    assert_eq!(answer.code, Some(0));
    for want in [
        "PASS  quick",
        "answer.txt",
        "green",
        "red where it must be red",
        &bundle.run_id(),
        "next: ",
        "containment ",
    ] {
        assert!(answer.stdout.contains(want), "{want}: {}", answer.stdout);
    }
    let json = house.cto(&["show", "--json"]).json();
    assert_eq!(
        (json["state"].as_str(), &json["report"]),
        (Some("sealed"), &bundle.report())
    );
}

#[test]
fn a_failure_says_why_and_what_to_do() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (_, bundle) = house.run(&case, &script(&[write("stray.txt", "x\n")]), &[]);
    let answer = house.cto(&["show", &bundle.run_id()]);
    for want in [
        "FAIL  quick",
        "disallowed_file_change",
        "stray.txt",
        "hint: ",
    ] {
        assert!(answer.stdout.contains(want), "{want}: {}", answer.stdout);
    }
}

#[test]
fn events_are_listed_in_order() {
    let (house, bundle) = passed();
    let text = house.cto(&["show", "--events"]).stdout;
    let mut from = 0;
    for name in bundle.event_types() {
        let at = text[from..]
            .find(&name)
            .unwrap_or_else(|| panic!("{name} is missing or out of order: {text}"));
        from += at;
    }
}

#[test]
fn an_engine_cannot_write_to_the_terminal() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let nasty = "{\"type\":\"result\",\"status\":\"\\u001b[2J\\u0007owned\",\"summary\":\"\\u001b]0;x\\u0007\"}\n";
    let (_, bundle) = house.run(
        &case,
        &format!(
            "silent = true\n{}",
            script(&[write("answer.txt", "right\n"), print(nasty)])
        ),
        &[],
    );
    for args in [&["show", "--events"][..], &["runs"], &["verify"]] {
        let answer = house.cto(args);
        assert!(
            !answer.stdout.contains(['\u{1b}', '\u{7}']),
            "{args:?}: {:?}",
            answer.stdout
        );
    }
    assert!(!bundle.text("report.md").contains('\u{1b}'));
}

#[test]
fn unknown_and_ambiguous_names_are_usage_errors() {
    let house = house();
    assert_eq!(house.cto(&["show"]).code, Some(2));
    let case = house.case(&Case::new("quick"));
    for _ in 0..2 {
        house.run(&case, cto_testkit::ORACLE, &[]);
    }
    for (name, code) in [
        ("quick", "ambiguous_run"),
        ("nope", "unknown_run"),
        ("../..", "not_a_bundle"),
        ("", "unknown_run"),
    ] {
        let answer = house.cto(&["show", name]);
        assert!(!answer.panicked(), "{name}: {answer:?}");
        assert!(matches!(answer.code, Some(2 | 3)), "{name}: {answer:?}");
        assert!(
            answer.code == Some(3) || answer.stderr.contains(code),
            "{name}: {answer:?}"
        );
    }
}
