//! `cto show --markdown`: what a pull request needs to know, and nothing of the change that does anything
//! there.

use cto_testkit::{Repo, script, shell, write};

use crate::fixtures::project::{BUG, FIXED, TESTS};
use crate::house;

/// Every line without its code spans: what is left is ours.
fn outside_of_spans(text: &str) -> String {
    let line = |line: &str| {
        let parts = line.split('`').collect::<Vec<_>>();
        assert_eq!(parts.len() % 2, 1, "a span that is not closed: {line}");
        parts.into_iter().step_by(2).collect::<String>()
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_summary_says_what_a_reviewer_asks() {
    let house = house();
    let repo = Repo::new(&house, "project");
    for (path, text) in [("app.py", BUG), ("test_app.py", TESTS)] {
        repo.write(path, text);
    }
    repo.commit("a bug");
    let steps = script(&[write("app.py", FIXED)]);
    let more = ["--allow", ".", "--test", "python3 -m unittest"];
    let (answer, bundle) = house.try_on(&repo, &steps, &more);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let run = bundle.run_id();
    let page = house.cto(&["show", &run, "--markdown"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    let text = &page.stdout;
    assert!(text.starts_with("### PASS: `try-"), "{text}");
    for want in [
        "**checks proven**",
        "**Files** (1)",
        "- `app.py` (modified)",
        "(exit code 0, red before the change)",
        "tests red to green: ",
        &format!("`cto verify {run}`"),
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert!(
        !text.contains(repo.path()) && !text.contains("harness-runs"),
        "{text}"
    );
    let both = house.cto(&["show", &run, "--markdown", "--json"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn nothing_of_the_change_does_anything() {
    let house = house();
    let repo = Repo::new(&house, "hostile");
    let names = [
        "@everyone #1",
        "a`b`` c",
        "[x](https://example.invalid)",
        "<img src=x onerror=alert(1)>.txt",
        "![p](y)",
        "two\nlines\n# PASS",
        "bidi\u{202e}txt",
    ];
    let make = names.map(|name| {
        let quoted = name.replace('\'', "'\\''");
        shell(&format!("echo x > '{}'", quoted.replace('/', "_")))
    });
    let steps = script(&[&[write("answer.txt", "right\n")], &make[..]].concat());
    let test = "grep -qx right answer.txt # `id` @everyone <b>";
    let more = ["--allow", ".", "--test", test, "--contain", "contained"];
    let (_, bundle) = house.try_on(&repo, &steps, &more);
    assert!(
        bundle.changed_files().len() >= 7,
        "{:?}",
        bundle.changed_files()
    );
    let text = house.cto(&["show", &bundle.run_id(), "--markdown"]).stdout;
    let ours = outside_of_spans(&text);
    for sign in [
        "@everyone",
        "#1",
        "https:",
        "<img",
        "![",
        "](",
        "<b>",
        "# PASS\n",
        "\u{202e}",
    ] {
        assert!(!ours.contains(sign), "{sign:?}: {text}");
    }
    assert!(!text.contains('\u{202e}'), "{text}");
    assert_eq!(
        text.lines().filter(|line| line.starts_with('#')).count(),
        1,
        "{text}"
    );
}
