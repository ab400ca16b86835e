//! What is seen while a run goes on: a line a step, several at a time, all that is printed for those who ask,
//! a call at the end of a long one, and the truth about one that was stopped. Nothing of it in a pipe.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use cto_testkit::{Bundle, House, Repo, print, script, sleep, watch, write};
use rustix::process::{Pid, Signal, kill_process};

use crate::{assert_good, house};

/// Prints what a terminal would obey, slowly enough to be seen, and is green once the answer is right.
const LOUD: &str = "printf 'o''ne \\033]0;ti''tle\\007\\033[31mtwo\\033[2J\\033[m\\n'; sleep 1; printf 'thr''ee\\033[5A'; grep -qx right answer.txt";

fn fix() -> String {
    script(&[write("answer.txt", "right\n")])
}

/// What a terminal is told beside letters: moves and erasures of the display, and styles.
fn without_ours(text: &str) -> String {
    let mut rest = text.replace("\u{1b}[J", "");
    for lines in 1..6 {
        rest = rest.replace(&format!("\u{1b}[{lines}A"), "");
    }
    cto_testkit::without_styles(&rest)
}

fn seen(house: &House, repo: &Repo, columns: u16, more: &[&str]) -> String {
    let mut command = house.try_command(repo, &fix(), more);
    command.env("TERM", "xterm-256color");
    let answer = watch(command, columns);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.stdout
}

#[test]
fn every_step_has_its_line_with_its_time_and_last_words() {
    let house = house();
    let repo = Repo::new(&house, "seen");
    repo.write(
        "red.patch",
        "--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+wrong\n",
    );
    repo.commit("a control");
    let control = repo.at("red.patch").display().to_string();
    let more = [
        "--setup",
        "echo made",
        "--test",
        LOUD,
        "--control",
        &control,
        "--jobs",
        "3",
    ];
    for (columns, locale) in [(100, "C.UTF-8"), (60, "C")] {
        let house = House::new(&crate::program()).with("LC_ALL", locale);
        let text = seen(&house, &repo, columns, &more);
        let plain = without_ours(&text);
        assert!(
            plain
                .chars()
                .all(|c| !c.is_control() || matches!(c, '\r' | '\n')),
            "{plain:?}"
        );
        assert!(!plain.contains("title"), "{plain}");
        for line in plain
            .split(['\r', '\n'])
            .take_while(|line| !line.starts_with("PASS"))
        {
            let wide = line.chars().count();
            assert!(
                line.starts_with("run ") || wide < usize::from(columns),
                "{line:?}"
            );
        }
        let mark = if locale == "C" { "  * " } else { "  • " };
        let stays = |name: &str| {
            let mut lines = plain.split(['\r', '\n']);
            let line = lines.find(|line| line.starts_with(&format!("{mark}{name} ")));
            line.unwrap_or_else(|| panic!("{name}: {plain}")).to_owned()
        };
        for name in [
            "plan",
            "workspace",
            "setup",
            "engine",
            "measure",
            "check",
            "control",
            "loading",
            "verify",
            "seal",
        ] {
            let line = stays(name);
            assert!(line.contains(" ms") || line.contains(" s"), "{line:?}");
        }
        assert!(stays("check").contains("green"), "{plain}");
        assert!(stays("control").contains("red, as it"), "{plain}");
        // Two at a time, each on a line of its own, with what it said last.
        assert!(text.contains("\u{1b}[1A"), "{text:?}");
        let live = plain.split(['\r', '\n']).find(|line| {
            !line.starts_with(mark) && line.contains("check ") && line.contains("one")
        });
        assert!(live.is_some(), "{plain}");
        assert!(
            !text.contains('\u{7}'),
            "nobody is called back from a short run"
        );
        if locale == "C" {
            assert!(plain.is_ascii(), "{plain}");
        }
    }
}

#[test]
fn a_pipe_gets_the_steps_of_a_log_and_nothing_else() {
    let house = house();
    let repo = Repo::new(&house, "piped");
    let more = ["--test", LOUD, "--jobs", "2"];
    let mut command = house.try_command(&repo, &fix(), &more);
    command.env("TERM", "xterm-256color");
    let answer = cto_testkit::Answer::of(&command.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let steps: Vec<&str> = answer
        .stderr
        .lines()
        .filter_map(|line| line.trim().split_once("  ").map(|(_, step)| step))
        .map(|step| step.split(':').next().unwrap_or_default())
        .filter(|step| !step.is_empty())
        .collect();
    assert_eq!(
        steps,
        [
            "plan",
            "workspace",
            "engine",
            "measure",
            "verify",
            "seal",
            "done"
        ],
        "{answer:?}"
    );
    for sign in ['\u{1b}', '\u{7}', '\r'] {
        assert!(!answer.stderr.contains(sign), "{answer:?}");
    }
}

#[test]
fn who_asks_sees_all_that_engine_and_checks_print() {
    let house = house();
    let repo = Repo::new(&house, "verbose");
    let steps = script(&[print("thinking about it\n"), write("answer.txt", "right\n")]);
    let more = ["--test", LOUD, "--jobs", "1", "-v"];
    let mut command = house.try_command(&repo, &steps, &more);
    let piped = cto_testkit::Answer::of(&command.output().unwrap());
    assert_eq!(piped.code, Some(0), "{piped:?}");
    let mut command = house.try_command(&repo, &steps, &more);
    command.env("TERM", "xterm-256color");
    let watched = watch(command, 100);
    for text in [&piped.stderr, &watched.stdout] {
        for want in [
            "thinking about it",
            "check | one ",
            "check | three",
            "loading | one ",
        ] {
            assert!(text.contains(want), "{want}: {text}");
        }
        assert!(
            !without_ours(text).contains('\u{1b}') && !text.contains('\u{7}'),
            "{text:?}"
        );
    }
    // Nothing is drawn over what was printed.
    assert!(!watched.stdout.contains("\u{1b}[1A"), "{watched:?}");
}

/// A long run on a terminal; the engine sleeps.
#[test]
fn a_long_run_calls_once_at_its_end() {
    let house = house();
    let repo = Repo::new(&house, "long");
    let steps = script(&[sleep(10_000), write("answer.txt", "right\n")]);
    let mut command = house.try_command(&repo, &steps, &[]);
    command.env("TERM", "xterm-256color");
    let answer = watch(command, 100);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.stdout.matches('\u{7}').count(), 1, "{answer:?}");
    let (before, after) = answer.stdout.split_once('\u{7}').unwrap();
    assert!(
        before.contains("seal") && !before.contains("PASS") && after.contains("PASS"),
        "{answer:?}"
    );
}

/// Starts a try, waits until its output holds this, and stops it as Ctrl-C does.
fn stopped(house: &House, repo: &Repo, steps: &str, more: &[&str], at: &str) -> (String, Bundle) {
    let mut command = house.try_command(repo, steps, more);
    command
        .arg("-v")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child: Child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let found = lines
        .by_ref()
        .any(|line| line.is_ok_and(|line| line.contains(at)));
    assert!(found, "{at} was not printed");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    lines.for_each(drop);
    let mut said = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{said}");
    let dir = house.run_dirs().into_iter().max().unwrap();
    (said, Bundle::at(dir))
}

#[test]
fn whoever_stops_a_run_is_told_how_far_it_came() {
    let house = house();
    let repo = Repo::new(&house, "stopped");
    let wait = "echo up; sleep 60; grep -qx right answer.txt";
    let slow = script(&[
        print("engine-is-up\n"),
        write("answer.txt", "right\n"),
        sleep(60_000),
    ]);
    let fixed = fix();
    let nothing = "no engine was started, and nothing was spent";
    for (what, steps, more, at, during, sealed) in [
        (
            "setup",
            &fixed,
            vec!["--setup", "echo up; sleep 60"],
            "setup | up",
            "during setup (",
            nothing,
        ),
        (
            "baseline",
            &fixed,
            vec!["--baseline", "green", "--test", wait],
            "baseline | up",
            "during baseline (",
            nothing,
        ),
        (
            "engine",
            &slow,
            vec![],
            "engine-is-up",
            "cancelled; ",
            "the engine was stopped",
        ),
        (
            "check",
            &fixed,
            vec!["--test", "true", "--test", wait],
            "check | up",
            "during check (2 of 2: ",
            "its change of 1 file is sealed (`cto diff`), and no check of it counts",
        ),
    ] {
        let (said, bundle) = stopped(&house, &repo, steps, &more, at);
        assert_eq!(bundle.codes(), ["interrupted"], "{what}: {said}");
        let report = bundle.report();
        let detail = report["blockers"][0]["detail"].as_str().unwrap();
        assert!(
            detail.contains(during) && detail.contains(sealed),
            "{what}: {detail}"
        );
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(sealed), "{what}: {said}");
        assert!(flat.contains("hint: try again;"), "{what}: {said}");
        assert_good(&bundle);
    }
}
