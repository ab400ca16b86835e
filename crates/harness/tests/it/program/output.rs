//! Colours, widths, broken pipes, full disks and progress: how every command speaks.

use std::fs::OpenOptions;
use std::io::Read;
use std::process::Stdio;

use cto_core::values::text::is_dangerous;
use cto_testkit::{Answer, Case, House, ORACLE, print, script, skip, sleep, without_styles, write};

use crate::house;
use crate::passed;

const ESC: char = '\u{1b}';

fn coloured(house: &House, vars: &[(&str, &str)], args: &[&str], terminal: bool) -> bool {
    let mut command = house.command(args);
    command
        .env("TERM", "xterm-256color")
        .envs(vars.iter().copied());
    let answer = match terminal {
        true => cto_testkit::watch(command, 80),
        false => Answer::of(&command.output().unwrap()),
    };
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.stdout.contains(ESC)
}

#[test]
fn colours_follow_flag_then_variable_then_config_then_terminal() {
    let house = house();
    let config = house.root().join("colours.toml");
    let config = config.to_str().unwrap();
    let with = |text: &str| std::fs::write(config, text).unwrap();
    let never = ("NO_COLOR", "1");
    let force = ("CLICOLOR_FORCE", "1");
    let file = ("CTO_CONFIG", config);
    with("color = \"always\"\n");
    for (vars, flag, terminal, want) in [
        (&[][..], None, true, true),
        (&[], None, false, false),
        (&[never], None, true, false),
        (&[("NO_COLOR", "")], None, true, true),
        (&[force], None, false, true),
        (&[never, force], None, false, false),
        (&[never], Some("always"), false, true),
        (&[force], Some("never"), true, false),
        (&[file], None, false, true),
        (&[file, never], None, false, false),
        (&[file], Some("never"), true, false),
    ] {
        let mut args = vec!["engines"];
        args.extend(flag.iter().flat_map(|when| ["--color", *when]));
        assert_eq!(
            coloured(&house, vars, &args, terminal),
            want,
            "{vars:?} {flag:?} terminal {terminal}"
        );
    }
    with("color = \"never\"\n");
    assert!(!coloured(&house, &[file], &["engines"], true));
    assert!(!coloured(&house, &[], &["--color=never", "--help"], true));
    assert!(coloured(&house, &[], &["--color", "always", "-h"], false));
}

#[test]
fn every_answer_fits_eighty_columns() {
    let (house, bundle) = passed();
    let case = house.case(&Case::new("quick"));
    house.run(&case, &script(&[write("keep.txt", "x\n")]), &[]);
    let id = bundle.run_id();
    for args in [
        &["engines"][..],
        &["doctor"],
        &["show"],
        &["show", "--events", &id],
        &["verify", &id],
        &["recover"],
        &["config"],
        &["diff", "--stat", &id],
        &["replay", &id],
        &["replay", "--trace"],
        &["schema"],
    ] {
        let answer = house.on_terminal(80, args);
        for line in without_styles(&answer.stdout).lines() {
            // A path is one word: the terminal may break it, we may not.
            let has_path = line
                .split_whitespace()
                .any(|word| word.contains('/') && word.len() > 40);
            assert!(line.chars().count() <= 80 || has_path, "{args:?}: {line:?}");
        }
    }
    // Without a terminal nothing is cut or broken.
    assert!(
        house
            .cto(&["show", "--events", &id])
            .stdout
            .lines()
            .any(|line| line.chars().count() > 120)
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (house, bundle) = passed();
    for args in [
        &["runs"][..],
        &["schema", "report"],
        &["diff", "--raw"],
        &["replay"],
        &["runs", "--json"],
        &["completions", "bash"],
    ] {
        let mut child = house
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), said.as_str()),
            (Some(0), ""),
            "{args:?} {}",
            bundle.run_id()
        );
    }
}

#[test]
fn an_answer_that_did_not_arrive_is_no_pass() {
    let (house, _) = passed();
    for args in [
        &["verify"][..],
        &["verify", "--json"],
        &["diff", "--raw"],
        &["engines"],
        &["-h"],
    ] {
        let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else {
            return skip("there is no /dev/full");
        };
        let output = house
            .command(args)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(70), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            args.contains(&"--json") || said.contains("output_lost"),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_person_sees_one_live_line_a_step() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let slow = house.script("slow", &format!("{}{ORACLE}", script(&[sleep(1200)])));
    let answer = house.on_terminal(80, &["run", &case, "--script", &slow]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let text = without_styles(&answer.stdout);
    let engine = text
        .lines()
        .find(|line| line.contains("engine     fake"))
        .unwrap();
    assert!(
        engine.matches('\r').count() >= 3,
        "the line does not live: {engine:?}"
    );
    // The last drawing of each line is what stays, and covers what was under it.
    for line in text.lines().filter(|line| line.contains('\r')) {
        let longest = line
            .split('\r')
            .map(|part| part.trim_end().chars().count())
            .max()
            .unwrap();
        let last = line.rsplit('\r').next().unwrap();
        assert!(
            last.starts_with("  •") && last.chars().count() >= longest,
            "{line:?}"
        );
        assert!(last.contains(" ms") || last.contains(" s"), "{last:?}");
    }
    assert!(text.contains("PASS  quick"), "{text}");

    let piped = house.cto(&["run", &case]);
    for step in [
        "plan: ",
        "workspace: ",
        "engine: ",
        "measure: ",
        "verify: ",
        "seal: ",
        "done",
    ] {
        assert!(
            piped.stderr.lines().any(|line| line.contains(step)),
            "{step}: {}",
            piped.stderr
        );
    }
    assert_eq!(house.cto(&["run", &case, "--json"]).stderr, "");
}

#[test]
fn suggested_commands_can_be_typed_whatever_the_directory_is_called() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let home = house.root().join("a state's home");
    let answer = house.cto(&["--home", home.to_str().unwrap(), "run", &case]);
    let next = answer
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("next: "))
        .unwrap_or_else(|| panic!("{answer:?}"));
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(next)
        .env("HOME", house.root())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{next}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn no_dangerous_character_of_an_engine_is_shown() {
    const HIDDEN: &str =
        "\u{200b}\u{200d}\u{202e}\u{2066}\u{2028}\u{ad}\u{3164}\u{fe0f}\u{feff}\u{e0041}\u{e0100}";
    let house = house();
    let case = house.case(&Case::new("quick"));
    let said = |kind: &str, fields: serde_json::Value| {
        let mut line = fields;
        line["type"] = kind.into();
        print(&format!("{line}\n"))
    };
    let words = format!("a\u{1b}[2J{HIDDEN}b");
    let steps = [
        said("plan", serde_json::json!({ "text": words })),
        said("message", serde_json::json!({ "text": words })),
        said(
            "tool",
            serde_json::json!({ "tool": words, "target": words }),
        ),
        said("file_change", serde_json::json!({ "path": words })),
        write(&format!("name{HIDDEN}.txt"), &format!("{HIDDEN}\n")),
        said(
            "result",
            serde_json::json!({ "status": words, "summary": words }),
        ),
    ];
    let (_, bundle) = house.run(&case, &script(&steps), &[]);
    let id = bundle.run_id();
    let mut shown = vec![("report.md".to_owned(), bundle.text("report.md"))];
    for args in [
        &["show", &id][..],
        &["show", "--events", &id],
        &["runs"],
        &["replay", &id],
        &["replay", "--trace", &id],
        &["diff", "--stat", &id],
        &["diff", "--name-only", &id],
        &["verify", &id],
    ] {
        let answer = house.cto(args);
        assert!(!answer.stdout.is_empty(), "{args:?}: {answer:?}");
        shown.push((args.join(" "), answer.stdout + &answer.stderr));
    }
    // Without a terminal `cto diff` prints the exact patch.
    let watched = house.on_terminal(80, &["diff", &id]).stdout;
    shown.push((
        "diff".to_owned(),
        without_styles(&watched).replace('\r', ""),
    ));
    for (what, text) in &shown {
        let found = text
            .chars()
            .find(|c| is_dangerous(*c) && !matches!(c, '\n' | '\t'));
        assert_eq!(found, None, "{what}: {text:?}");
    }
    assert!(shown[0].1.contains('\u{fffd}'), "{}", shown[0].1);
    // What a machine reads is exact.
    let name = format!("name{HIDDEN}.txt");
    assert!(
        bundle.changed_files().contains(&name),
        "{name:?}: {:?}",
        bundle.changed_files()
    );
}
