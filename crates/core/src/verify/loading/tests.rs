//! Whatever the harness chooses by the content of files, a verifier believes by their names.

use super::*;
use crate::checks::loading::forms;
use crate::run::event::{Check, CheckKind, ProcessEnd};
use crate::task::contract::tests::sample;

/// Names of every kind of code, with a content that is code there.
const CODE: &[(&str, &str)] = &[
    ("a.py", "x = 1\n"),
    ("a.js", "let x = 1;\n"),
    ("a.ts", "let x = 1;\n"),
    ("a.vue", "<script>\nlet x = 1;\n</script>\n"),
    ("a.go", "package a\n"),
    ("a.rs", "fn a() {}\n"),
    ("a.c", "int a;\n"),
    ("a.h", "int a;\n"),
    ("a.cs", "class A {}\n"),
    ("a.sh", "echo\n"),
    ("a.rb", "x = 1\n"),
    ("a.pl", "use strict;\n"),
    ("a.t", "#!/usr/bin/perl\nuse strict;\n"),
    ("a.php", "<?php\necho 1;\n"),
    ("a.lua", "x = 1\n"),
    ("tool", "#!/bin/sh\necho\n"),
    ("bin/tool", "#!/usr/bin/env python3\nx = 1\n"),
    ("a.java", "class A {}\n"),
];

/// The run as the harness makes it for these files, with everything red.
fn made(files: &[(&str, &str, bool)], commands: &[String]) -> (Vec<Change>, LoadingRun) {
    let named = Named::by(commands.iter().map(String::as_str), []);
    let paths: Vec<TreePath> = files.iter().map(|file| TreePath::new(file.0)).collect();
    let (mut changes, mut told, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
    for (path, (_, text, put_back)) in paths.iter().zip(files) {
        let file = File {
            path,
            kind: FileKind::Regular,
            bytes: text.as_bytes(),
        };
        let forms = forms(file, "word");
        let kind = match put_back {
            true => ChangeKind::Deleted,
            false => ChangeKind::Modified,
        };
        changes.push(Change {
            path: path.clone(),
            kind,
        });
        told.push(LoadingFile {
            path: path.clone(),
            not_code: None,
            how: forms.strongest().map(|form| form.how),
            put_back: *put_back,
            tells_how_to_run: rounds::tells_how_to_run(path),
        });
        candidates.push(rounds::Candidate {
            weight: rounds::weight(file, &named, *put_back),
            forms,
        });
    }
    let check = |command: &String| Check {
        kind: CheckKind::Visible,
        command: command.clone(),
        end: ProcessEnd::Exited { code: 1 },
        duration_ms: 1,
        lacks: Vec::new(),
    };
    let round = |round: rounds::Round| LoadingRound {
        proves: round.proves,
        files: round.files.iter().map(|at| paths[*at].clone()).collect(),
        harmless: false,
        single: false,
        setup_failed: None,
        checks: commands.iter().map(check).collect(),
    };
    let run = LoadingRun {
        substance: crate::run::belief::Substance::Code,
        files: told,
        rounds: rounds::together(&candidates)
            .into_iter()
            .map(round)
            .collect(),
        could_not_run: None,
    };
    (changes, run)
}

#[test]
fn what_the_harness_chooses_is_what_a_verifier_expects() {
    let mut contract = sample();
    contract.verification_commands = vec!["sh check.sh tool".to_owned()];
    let commands = &contract.verification_commands;
    let others = [
        ("conf.json", "{}\n", false),
        ("page.html", "<p>\n", false),
        ("test_a.py", "x = 1\n", false),
        ("old.py", "x = 1\n", true),
        ("check.sh", "x\n", false),
    ];
    for (path, text) in CODE {
        let alone = [(*path, *text, false)];
        let (changes, run) = made(&alone, commands);
        assert_eq!(wrong(&contract, &changes, &run), None, "{path}");
        for other in others {
            let both = [(*path, *text, false), other];
            let (changes, run) = made(&both, commands);
            assert_eq!(wrong(&contract, &changes, &run), None, "{path} {other:?}");
        }
    }
    // What says less must not decide beside code.
    for other in others {
        let (changes, mut run) = made(&[("a.py", "x = 1\n", false), other], commands);
        for round in &mut run.rounds {
            round.files.push(TreePath::new(other.0));
        }
        assert!(wrong(&contract, &changes, &run).is_some(), "{other:?}");
    }
    // Nor may a round be called what it is not.
    let one = [("a.py", "x = 1\n", false)];
    for forge in [
        (|run: &mut LoadingRun| run.rounds[1].proves = Proves::Loaded) as fn(&mut LoadingRun),
        |run| run.rounds[1].single = true,
        |run| run.rounds.swap(0, 1),
        |run| run.rounds[1].harmless = true,
    ] {
        let (changes, mut run) = made(&one, commands);
        forge(&mut run);
        assert!(
            wrong(&contract, &changes, &run).is_some(),
            "{:?}",
            run.rounds
        );
    }
    let (changes, mut run) = made(
        &[("a.py", "", false), ("b.php", "<?php\n", false)],
        commands,
    );
    run.rounds[0].files.pop();
    assert!(wrong(&contract, &changes, &run).is_some());
}
