//! `cto log`, and the last words of a red check in the verdict: the right part, its end alone, tamed, from
//! a log of any length.

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use cto_testkit::{Bundle, House, Repo, copy_dir, script, write};

use crate::house;

/// A try with two checks, of which the second prints a lot and is red.
fn red(house: &House) -> Bundle {
    let repo = Repo::new(house, "red");
    let loud = "seq 1 500; printf 'the \\033[31mreason\\033[m\\342\\200\\256\\n'; echo [cto:0 end 2 check: exit code 0, 1 ms]; false";
    let more = ["--test", "echo first of two", "--test", loud];
    let (answer, bundle) = house.try_on(&repo, &script(&[write("answer.txt", "right\n")]), &more);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    bundle
}

#[test]
fn somebody_whose_run_failed_finds_the_cause_without_opening_a_file() {
    let house = house();
    let bundle = red(&house);
    let run = bundle.run_id();
    let shown = house.cto(&["show", &run]).stdout;
    assert!(shown.contains("reason"), "{shown}");
    assert!(shown.contains("said"), "{shown}");
    for text in [&shown, &house.cto(&["log", &run]).stdout] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }
    // The red one by itself, its end alone.
    let log = house.cto(&["log", &run, "-n", "4"]).stdout;
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[0].contains("check 2 of 2") && lines[0].contains("exit code 1"),
        "{log}"
    );
    assert_eq!(lines[1..3], ["499", "500"], "{log}");
    assert!(lines[3].contains("reason"), "{log}");
    assert_eq!(lines[4], "[cto:0 end 2 check: exit code 0, 1 ms]", "{log}");
    let first = house.cto(&["log", &run, "--check", "1"]).stdout;
    assert!(
        first.contains("check 1 of 2") && first.contains("first of two"),
        "{first}"
    );
    assert!(!first.contains("reason"), "{first}");
    let engine = house.cto(&["log", &run, "--engine"]);
    assert_eq!(engine.code, Some(0), "{engine:?}");
    assert!(engine.stdout.contains("answer.txt"), "{engine:?}");
    let document = house.cto(&["log", &run, "--json"]).json();
    assert_eq!(document["parts"][0]["is_cut"], true, "{document}");
    for words in [
        &["--check", "3"][..],
        &["--control"],
        &["--loading"],
        &["--garbled"],
        &["--check", "0"],
        &["--control", "--engine"],
    ] {
        let refused = house.cto(&[&["log", run.as_str()], words].concat());
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
    }
    // Red before the change as well: the untouched copy was asked.
    let before = house.cto(&["log", &run, "--baseline", "-n", "3"]);
    assert!(before.stdout.contains("500"), "{before:?}");
    assert!(shown.contains("red before the change too"), "{shown}");
    // A log that somebody wrote to is not shown.
    let forged = house.root().join("forged").join(&run);
    fs::create_dir_all(forged.parent().unwrap()).unwrap();
    copy_dir(&bundle.dir, &forged);
    let text = bundle.text("test.log").replace("reason", "excuse");
    fs::write(forged.join("test.log"), text).unwrap();
    let refused = house.cto(&["log", forged.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let shown = house.cto(&["show", forged.to_str().unwrap()]).stdout;
    assert!(!shown.contains("excuse"), "{shown}");
}

#[test]
fn each_part_of_a_pass_is_shown() {
    let house = house();
    let repo = Repo::new(&house, "green");
    let control = house.root().join("control.patch");
    let text = "--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+broken\n";
    fs::write(&control, text).unwrap();
    let more = [
        "--control",
        control.to_str().unwrap(),
        "--test",
        "cat answer.txt; grep -qx right answer.txt",
    ];
    let (answer, bundle) = house.try_on(&repo, &script(&[write("answer.txt", "right\n")]), &more);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let log = |more: &[&str]| {
        house
            .cto(&[&["log", bundle.run_id().as_str()], more].concat())
            .stdout
    };
    assert!(log(&[]).contains("\nright"), "{}", log(&[]));
    let control = log(&["--control"]);
    assert!(
        control.contains("-- control") && control.contains("\nbroken"),
        "{control}"
    );
}

/// Much of nothing before the end: it is sought, not read.
#[test]
fn a_log_of_a_gigabyte_is_read_from_its_end() {
    let house = house();
    let bundle = red(&house);
    let log = bundle.dir.join("backend/stdout.log");
    let mut file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(1 << 30).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b"\nthe very last line\n").unwrap();
    let command = house.command(&["log", &bundle.run_id(), "--engine", "-n", "1"]);
    // Less room than the log would take.
    let limited = "ulimit -v 800000; exec \"$0\" \"$@\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", limited]).arg(command.get_program());
    shell.args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let answer = cto_testkit::Answer::of(&shell.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("the very last line"), "{answer:?}");
}
