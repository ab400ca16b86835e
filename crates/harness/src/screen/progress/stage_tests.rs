use cto_core::run::event::EngineToolCall;
use cto_core::wire::calls::WireCounts;

use super::*;

fn shown(stage: &Stage) -> Vec<String> {
    stage.shared.state().waiting.iter().cloned().collect()
}

const STREAM: Shown = Shown {
    live: false,
    lines: false,
    output: true,
};
const LIVE: Shown = Shown {
    live: true,
    lines: true,
    output: false,
};

#[test]
fn lines_fit_whatever_they_hold() {
    for columns in [20, 40, 59, 79, 200] {
        for said in ["", "ok", &"w".repeat(300), "日本語日本語日本語"] {
            for detail in ["x", &"long ".repeat(30)] {
                let line = line("check", detail, "59 m 59 s", said, columns);
                assert!(
                    columns < 30 || terminal::width(&line) <= columns,
                    "{columns}: {line:?}"
                );
                assert!(line.contains("59 m 59 s"), "{line:?}");
            }
        }
    }
    let narrow = line("check", "1 of 2: pytest -q", "1.20 s", "tests/a.py ..", 55);
    assert!(narrow.contains("tests/a.py"), "{narrow:?}");
}

#[test]
fn an_engine_at_work_has_its_line_in_any_width() {
    let stage = Stage::new(LIVE);
    let step = stage.frame("engine", "pi");
    step.on_wire(Box::new(|| WireCounts {
        calls: 12,
        tokens: 345_000,
        waiting: false,
    }));
    let did = |step: &Step| {
        let target = "src/some/where/deep.py".to_owned();
        let tool = "edit".to_owned();
        let call = EngineToolCall::new(tool, target);
        step.did(Duration::ZERO, &Event::EngineToolCall(call));
    };
    did(&step);
    for (columns, want) in [
        (55, "engine     12 calls, 345k: edit src/some/w"),
        (
            75,
            "engine     12 calls, 345k tokens: edit src/some/where/deep.py",
        ),
    ] {
        let text = stage.shared.state().live[0].line(columns);
        assert!(text.starts_with(want), "{text:?}");
        assert!(terminal::width(&text) <= columns, "{text:?}");
    }
    step.end("", true);
    let stays = shown(&stage).concat();
    assert!(stays.contains("pi, 12 calls, 345k tokens"), "{stays:?}");
    let stage = Stage::new(STREAM);
    let step = stage.frame("engine", "pi");
    did(&step);
    step.end("", true);
    assert_eq!(
        shown(&stage),
        ["   0.000 s  ┊ engine.tool_call    edit src/some/where/deep.py"]
    );
}

#[test]
fn nothing_a_step_prints_is_obeyed() {
    let stage = Stage::new(STREAM);
    let mut step = stage.begin(Named::new("check", "x"));
    step.hear(b"\x1b[31mred\x1b[0m\x1b]0;title\x07 on\rstep 2\nhal");
    step.hear(b"f\xff\x1b");
    step.end("green", true);
    let lines = shown(&stage);
    assert_eq!(lines[..2], ["check | red on", "check | step 2"]);
    assert!(lines[2].starts_with("check | half"), "{lines:?}");
    assert!(lines.concat().chars().all(|c| !c.is_control()), "{lines:?}");
}

#[test]
fn a_flood_is_counted_and_not_kept() {
    let stage = Stage::new(STREAM);
    let mut step = stage.begin(Named::new("check", "x"));
    step.hear(&b"y\n".repeat(MOST_WAITING + 7));
    assert_eq!(shown(&stage).len(), MOST_WAITING);
    assert_eq!(stage.shared.state().dropped, 7);
    let stage = Stage::new(LIVE);
    let mut step = stage.begin(Named::new("check", "x"));
    step.hear(&vec![b'z'; 10 << 20]);
    assert!(step.line.len() <= MOST_LINE);
    step.end("red", false);
    assert!(shown(&stage)[0].contains("red: zzz"));
}

#[test]
fn nobody_waits_for_the_one_who_draws() {
    let stage = Stage::new(LIVE);
    let mut step = stage.begin(Named::new("check", "x"));
    let drawing = stage.shared.state();
    step.hear(b"a line\n");
    drop(drawing);
    step.hear(b"another\n");
    assert_eq!(stage.shared.state().live[0].said, "another");
    step.end("", true);
}

#[test]
fn what_was_cut_short_is_known_and_nothing_else() {
    let stage = Stage::default();
    stage.begin(Named::new("setup", "make")).end("green", true);
    drop(stage.begin(Named {
        of: Some((1, 2)),
        ..Named::new("check", "pytest")
    }));
    drop(stage.frame("verify", "all"));
    let cut = stage.cut_short();
    assert_eq!(cut.len(), 1);
    assert!(
        cut[0].starts_with("check (1 of 2: pytest, after "),
        "{cut:?}"
    );
    assert_eq!(shown(&stage), [""; 0], "nobody watches");
}
