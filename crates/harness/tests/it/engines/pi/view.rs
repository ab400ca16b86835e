//! The real Pi, watched: what it does and what its model was asked, on a narrow terminal, in a pipe, and whole for
//! those who ask.

use std::process::Command;

use cto_testkit::{Answer, watch, without_styles};
use serde_json::json;

use crate::fixtures::pi_lab::{Lab, Model, PROBE, edit, pi, quick, tool};

/// Reads, edits, and thinks long enough to be seen.
fn scenario() -> String {
    let read = tool("read", json!({"path": "answer.txt"}));
    let usage = "usage = { input = 4000, output = 100 }\n";
    format!(
        "{PROBE}{read}{usage}{}first_ms = 700\n[[turn]]\ntext = \"The answer \\u001b[2Jis right.\"\nfirst_ms = 700\n",
        edit()
    )
}

fn command(lab: &Lab, model: &Model, more: &[&str]) -> Command {
    let args = ["run", &lab.case, "--engine", "pi", "--stage", "2"];
    let args = [&args[..], &["--base-url-file", &model.url_file], more].concat();
    let mut command = lab.house.command(&args);
    command.env("TERM", "xterm-256color");
    command
}

/// The claim and what was seen stand beside each other, and nothing of it is obeyed.
fn assert_end(text: &str) {
    let flat = without_styles(text);
    let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
    for want in [
        "claimed completed: The answer",
        "observed 1 file changed, its check is green",
    ] {
        assert!(flat.contains(want), "{want}: {text}");
    }
    assert!(!text.contains("\u{1b}[2J"), "{text:?}");
}

#[test]
fn whoever_watches_sees_what_it_does_and_what_that_costs() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let model = lab.model(&scenario());

    let narrow = watch(command(&lab, &model, &[]), 60);
    assert_eq!(narrow.code, Some(0), "{narrow:?}");
    assert_end(&narrow.stdout);
    let mut plain = narrow.stdout.replace("\u{1b}[J", "");
    for lines in 1..6 {
        plain = plain.replace(&format!("\u{1b}[{lines}A"), "");
    }
    let plain = without_styles(&plain);
    let drawn: Vec<&str> = plain
        .split(['\r', '\n'])
        .take_while(|line| !line.starts_with("PASS"))
        .collect();
    for line in &drawn {
        assert!(
            line.starts_with("run ") || line.chars().count() < 60,
            "{line:?}"
        );
    }
    let live = |want: &str| drawn.iter().any(|line| line.contains(want));
    assert!(live("thinking"), "{drawn:#?}");
    assert!(live("2 calls, 4.1k: thinking"), "{drawn:#?}");
    assert!(live("• engine     pi, 3 calls,"), "{drawn:#?}");
    assert!(!live("{\"type\""), "{drawn:#?}");

    let piped = Answer::of(&command(&lab, &model, &[]).output().unwrap());
    assert_eq!(piped.code, Some(0), "{piped:?}");
    assert_end(&piped.stdout);
    assert!(piped.stderr.contains("engine: pi\n"), "{piped:?}");
    assert!(piped.stderr.contains("engine: 3 calls, 4."), "{piped:?}");
    for sign in ['\u{1b}', '\r', '{'] {
        assert!(!piped.stderr.contains(sign), "{piped:?}");
    }

    for text in [
        Answer::of(&command(&lab, &model, &["-v"]).output().unwrap()).stderr,
        watch(command(&lab, &model, &["-v"]), 100).stdout,
    ] {
        for want in [
            "┊ engine.tool_call    read answer.txt",
            "┊ engine.tool_call    edit answer.txt",
            "┊ engine.file_change  answer.txt",
            "  engine.model_call   call 1 ok, 4000 tokens in, 100 out",
            "┊ engine.result       claims completed",
        ] {
            assert!(text.contains(want), "{want}: {text}");
        }
        assert!(
            !text.contains("{\"type\"") && !text.contains("\u{1b}[2J"),
            "{text:?}"
        );
    }
}
