//! Small things that cost people time: help that is an error, a path that is an internal fault, tables
//! that do not fit, signs that a plain locale cannot show.

use cto_testkit::{Answer, Repo, script, write};

use crate::house;

#[test]
fn a_command_without_its_second_word_shows_its_help() {
    let house = house();
    for command in ["bundle", "admit", "case"] {
        let answer = house.cto(&[command]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert_eq!(answer.stdout, "", "{answer:?}");
        assert!(!answer.stderr.contains("error["), "{answer:?}");
        let listed = answer.stderr.lines().filter(|line| line.starts_with("  "));
        assert!(listed.count() >= 3, "{answer:?}");
        assert!(answer.stderr.contains("Usage: cto "), "{answer:?}");
        let document = house.cto(&[command, "--json"]);
        assert_eq!(document.code, Some(2), "{document:?}");
        assert_eq!(document.json()["error"]["code"], "missing_command");
    }
}

#[test]
fn help_and_version_are_documents_where_documents_are_asked_for() {
    let house = house();
    for words in [
        &["--help", "--json"][..],
        &["--json", "-h"],
        &["try", "--help", "--json"],
        &["--json", "keys", "trust", "--help"],
        &["--version", "--json"],
    ] {
        let answer = house.cto(words);
        assert_eq!(answer.code, Some(0), "{words:?}: {answer:?}");
        let document = answer.json();
        assert_eq!(document["schema_version"], 1, "{words:?}");
        assert!(
            document["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
    }
}

#[test]
fn a_key_that_is_not_there_is_a_slip_of_the_pen() {
    let house = house();
    for name in ["/nope", "nope.pub", "."] {
        let answer = house.cto(&["keys", "trust", name]);
        assert_eq!(answer.code, Some(2), "{name}: {answer:?}");
    }
}

#[test]
fn a_case_that_was_just_begun_is_found_by_its_name() {
    let house = house();
    assert_eq!(house.cto(&["case", "new", "greeting"]).code, Some(0));
    for name in ["greeting", "./greeting"] {
        let answer = house.cto(&["case", "check", name, "--static"]);
        assert_eq!(answer.code, Some(0), "{name}: {answer:?}");
    }
    // A name that ships with the program means that one, and nothing but a check looks here.
    assert_eq!(
        house.cto(&["case", "check", "nope", "--static"]).code,
        Some(2)
    );
    assert_eq!(house.cto(&["run", "greeting"]).code, Some(2));
}

#[test]
fn tables_fit_a_narrow_terminal() {
    let house = house();
    let repo = Repo::new(&house, "a-repository");
    let steps = script(&[write("answer.txt", "right\n")]);
    house.try_on(
        &repo,
        &steps,
        &["--task", "Make the answer right at last, please"],
    );
    for words in [&["runs"][..], &["engines"], &["cases"]] {
        let answer = house.on_terminal(60, words);
        for line in answer.stdout.lines() {
            let plain = anstream::adapter::strip_str(line.trim_end()).to_string();
            assert!(plain.chars().count() <= 60, "{words:?}: {plain:?}");
        }
        assert!(!answer.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn a_plain_locale_gets_plain_letters() {
    let house = house();
    let repo = Repo::new(&house, "plain");
    let steps = script(&[write("answer.txt", &"right ünd lang …\n".repeat(90))]);
    house.try_on(&repo, &steps, &[]);
    for locale in [("LC_ALL", "C"), ("LC_ALL", "POSIX"), ("LANG", "C")] {
        for words in [
            &["show"][..],
            &["runs"],
            &["cases"],
            &["help"],
            &["help", "try"],
            &["verify"],
            &["doctor"],
            &["show", "ünbekannt"],
        ] {
            for narrow in [false, true] {
                let mut command = house.command(words);
                command.env(locale.0, locale.1);
                let answer = match narrow {
                    true => cto_testkit::watch(command, 60),
                    false => Answer::of(&command.output().unwrap()),
                };
                let said = format!("{}{}", answer.stdout, answer.stderr);
                assert!(said.is_ascii(), "{locale:?} {words:?}: {said}");
            }
        }
    }
    // What is a patch stays one.
    let mut command = house.command(&["diff", "--raw"]);
    let patch = Answer::of(&command.env("LC_ALL", "C").output().unwrap());
    assert!(patch.stdout.contains("ünd lang …"), "{patch:?}");
}
