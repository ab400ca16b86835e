//! A program that is missing behind another: blocked where the untouched copy lacks it as well, and
//! nothing that a change prints makes more of it.

use std::path::Path;

use cto_testkit::{Bundle, script, write};

use super::Lab;

/// A repository whose ways to test all start a program nobody has.
fn lab() -> Lab {
    let lab = Lab::new();
    let makefile = "direct:\n\tnosuch -q\nshell:\n\tcd . && nosuch\n\
                    nested:\n\t@$(MAKE) --no-print-directory direct\n\
                    probe:\n\t-@nosuch --version\n\t@grep -q 3 answer\n";
    lab.repo.write("Makefile", makefile);
    lab.repo.write(
        "package.json",
        r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "nosuch ."}}"#,
    );
    lab.repo.program("t.sh", "#!/bin/sh\nnosuch . || exit 3\n");
    lab.repo
        .program("t.bash", "#!/bin/bash\nnosuch . || exit 3\n");
    lab.repo.commit("ways to test");
    lab
}

#[test]
fn behind_another_program_it_is_blocked_by_its_name() {
    let lab = lab();
    let mut tests = vec![
        "make direct",
        "make shell",
        "make -j2 direct shell",
        "make nested",
        "sh -c 'nosuch; exit 1'",
        "bash -c 'nosuch || exit 1'",
        "./t.sh",
        "./t.bash",
        "true && env X=1 timeout 60 nosuch",
    ];
    if Path::new("/usr/bin/npm").exists() {
        tests.push("npm test");
    }
    for test in tests {
        let bundle = lab.blocked(&[], test, &[], &["looked for nosuch", "--toolchain PATH"]);
        let done = completed(&bundle);
        for checks in ["checks", "baseline_checks"] {
            assert_eq!(done[checks][0]["lacks"][0], "nosuch", "{test}: {done}");
        }
        assert_eq!(bundle.report()["tests_passed"], false, "{test}");
    }
}

/// A guard: it was so before last words were read.
#[test]
fn where_the_untouched_copy_runs_the_change_is_what_failed() {
    let lab = lab();
    for test in [
        // The untouched copy is green.
        "grep -q 1 answer || { nosuch; exit 1; }",
        "nosuch; grep -q 1 answer",
        // Red for another reason.
        "grep -q 2 answer && nosuch && exit 1; exit 1",
        // Something else ended it.
        "make probe",
    ] {
        let (answer, bundle) = lab.run(&[], test, &[]);
        assert_eq!(answer.code, Some(1), "{test}: {answer:?}");
        assert_eq!(bundle.codes(), ["verification_failed"], "{test}");
    }
    // A command that can do without is green as ever.
    lab.passes(&[], "nosuch; grep -q 2 answer", &[]);
}

#[test]
fn what_a_change_prints_says_nothing_alone() {
    for forged in [
        "sh: 1: pytest: not found",
        "make: pytest: No such file or directory\nmake: *** [Makefile:2: test] Error 127",
        "cto: pytest is not shown to this jail: forged",
    ] {
        let mut lab = lab();
        let change = script(&[write("answer", &format!("{forged}\n"))]);
        lab.change = lab.house.script("forged", &change);
        for test in ["cat answer >&2; exit 1", "cat answer; exit 127"] {
            let (_, bundle) = lab.run(&[], test, &[]);
            let done = completed(&bundle);
            assert_eq!(done["checks"][0]["lacks"][0], "pytest", "{done}");
            let ends_alike = test.ends_with("127");
            let want = if ends_alike {
                "toolchain_unavailable"
            } else {
                "verification_failed"
            };
            assert_eq!(bundle.codes(), [want], "{test}: {forged}");
        }
    }
}

/// The body of the event of the checks.
fn completed(bundle: &Bundle) -> serde_json::Value {
    bundle.event("verification.completed").unwrap()
}
