//! Whatever an engine says, in whatever dialect: no panic, no hang, and nothing comes out but events of an engine.
//! `CTO_FUZZ=1000000` says that many things.
//!
//! Each input is a few lines of a real or likely session, mutated. An agent that is talked to is heard from somewhere
//! within its conversation on, so that what only means something there is reached.

use std::path::Path;

use cto_core::engine::dialect::{Brief, DialectParser, ParsedLine, Reply, Scope, Source, WireSeen};
use cto_core::engine::manifest::Dialect;
use cto_core::run::event::Event;
use serde_json::Value;

use super::fuzz::{Dice, inputs, mutate};

/// What real agents said, and what nothing was recorded of: one session a text.
struct Seeds(Vec<(Dialect, Vec<u8>)>);

const FAKE: &str = r#"{"type":"message","text":"hi"}
{"type":"plan","steps":["a","b"]}
{"type":"tool_call","tool":"bash","target":"a.py"}
{"type":"file_change","path":"a.py"}
{"type":"review","accepted":true,"summary":"fine"}
{"type":"tokens","input":3,"output":4}
{"type":"result","status":"completed","summary":"done"}
"#;

const CASE: &str = r#"{"event":"pipeline_start","runId":"r","sequence":1,"profile":"standard","plan":["implementer","review"]}
{"event":"phase_start","runId":"r","sequence":2,"phase":"scout","agent":"scout","ts":"2026-01-02T03:04:05Z"}
{"event":"heartbeat","runId":"r","sequence":3,"elapsedMs":40}
{"event":"tool_start","runId":"r","sequence":3,"toolCallId":"1","tool":"write","args":{"path":"a.py"}}
{"event":"tool_end","runId":"r","sequence":4,"toolCallId":"1","isError":false,"result":"written"}
{"event":"phase_end","runId":"r","sequence":4,"phase":"implementer","agent":"implementer","outcome":"completed","result":{"status":"completed","artifacts":{"commit":"abc"},"usage":{"input":3,"output":4,"cost":"0.1"}}}
{"event":"phase_end","runId":"r","sequence":5,"phase":"review","agent":"review","outcome":"failed","result":{"status":"failed","error":"AGENT_RESULT start delimiter not found"}}
{"event":"phase_end","runId":"r","sequence":6,"phase":"review","agent":"review","outcome":"completed","result":{"status":"completed","findings":{"critical":1},"rubric":{"categories":[{"category":"scope","verdict":"fail","hard":true}]}}}
{"event":"revision_requested","runId":"r","sequence":6,"source":"review","cycle":1,"failedCategories":["scope"]}
{"event":"revision_budget_exhausted","runId":"r","sequence":7,"source":"review"}
{"event":"status_changed","runId":"r","sequence":8,"from":"active","to":"merged"}
{"event":"pipeline_end","runId":"r","sequence":7,"outcome":"failed","failedAgent":"review"}
"#;

/// What goes before an ACP agent's work, in its order; each line is answered by us.
const GREETING: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"x","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"x","availableModes":[{"id":"x"},{"id":"ask"}]}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
    "",
];

const ACP: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one "}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit a","kind":"edit","status":"pending","locations":[{"path":"/w/a.py","line":3}],"rawInput":{"path":"a.py"}}}}
{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","kind":"edit","locations":[{"path":"/w/a.py"}],"content":[{"type":"diff","path":"/w/a.py","oldText":"a","newText":"b"}]},"options":[{"optionId":"y","kind":"allow_once","name":"Yes"},{"optionId":"n","kind":"reject_once","name":"No"}]}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"done"}}]}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"one","status":"completed","priority":"high"}]}}}
{"jsonrpc":"2.0","id":"x","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}
{"jsonrpc":"2.0","id":null,"method":"terminal/create","params":{}}
{"jsonrpc":"2.0","method":"mine/notice","params":[1]}
{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4}}}
{"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"no"}}
"#;

fn seeds() -> Seeds {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/engine/dialect/recorded");
    let mut files: Vec<_> = std::fs::read_dir(recorded)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut seeds: Vec<(Dialect, Vec<u8>)> = files
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let dialect = match name.split('-').next().unwrap() {
                "codex" => Dialect::Codex,
                "opencode" => Dialect::Opencode,
                "pi" => Dialect::Pi,
                other => panic!("nobody speaks {other}"),
            };
            (dialect, std::fs::read(path).unwrap())
        })
        .collect();
    // As often as the recorded ones together, or nearly.
    for _ in 0..8 {
        for (dialect, text) in [
            (Dialect::Fake, FAKE),
            (Dialect::Case, CASE),
            (Dialect::Plain, ACP),
            (Dialect::Acp, ACP),
        ] {
            seeds.push((dialect, text.as_bytes().to_vec()));
        }
    }
    for dialect in Dialect::ALL {
        assert!(
            seeds.iter().any(|(speaks, _)| speaks == dialect),
            "{dialect:?}"
        );
    }
    Seeds(seeds)
}

/// Some lines of it, from anywhere.
fn piece<'s>(dice: &mut Dice, text: &'s [u8]) -> &'s [u8] {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            text.iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'\n')
                .map(|(at, _)| at + 1),
        )
        .filter(|at| *at < text.len())
        .collect();
    let first = dice.below(starts.len());
    let last = starts.get(first + 1 + dice.below(6));
    let whole = &text[starts[first]..last.copied().unwrap_or(text.len())];
    &whole[..whole.len().min(4096)]
}

fn speak(dice: &mut Dice, seeds: &Seeds) {
    let (dialect, text) = &seeds.0[dice.below(seeds.0.len())];
    let (_, other) = &seeds.0[dice.below(seeds.0.len())];
    let (text, other) = (piece(dice, text), piece(dice, other));
    let said = mutate(dice, text, other);
    // Now and then in a dialect it was not meant for.
    let dialect = match dice.below(8) {
        0 => Dialect::ALL[dice.below(Dialect::ALL.len())],
        _ => *dialect,
    };
    let brief = Brief {
        prompt: "Fix it.".into(),
        mode: (dice.below(2) == 0).then(|| "ask".to_owned()),
        own_methods: vec!["mine/".into()],
        scope: Scope {
            root: "/w".into(),
            allowed: vec!["a.py".parse().unwrap()],
            forbidden: Vec::new(),
        },
    };
    let mut parser = DialectParser::briefed(dialect, &brief);
    let mut heard = Heard::default();
    heard.answer(&parser.begin());
    let talked_to = dialect.is_talked_to();
    if talked_to {
        for line in GREETING.iter().take(dice.below(GREETING.len() + 1)) {
            let (parsed, reply) = parser.converse(line.as_bytes(), line.as_bytes());
            heard.take(parsed);
            heard.answer(&reply);
        }
    }
    let from = [Source::Stdout, Source::Log, Source::Stderr][dice.below(3)];
    for line in said.split(|byte| *byte == b'\n') {
        if talked_to {
            let (parsed, reply) = parser.converse(line, line);
            heard.take(parsed);
            heard.answer(&reply);
        } else {
            let source = match dialect {
                Dialect::Case | Dialect::Plain => from,
                _ => Source::Stdout,
            };
            heard.take(parser.hear(source, line));
        }
        let _ = parser.has_ended();
    }
    let unanswered = (dice.below(4) == 0).then(|| "503".to_owned());
    heard.take(ParsedLine::Events(parser.ended(&WireSeen {
        unanswered,
        silent: false,
    })));
    assert!(heard.results <= 1 || !talked_to, "it ended twice");
}

#[derive(Default)]
struct Heard {
    dismissed: bool,
    results: usize,
}

impl Heard {
    fn take(&mut self, parsed: ParsedLine) {
        let ParsedLine::Events(events) = parsed else {
            return;
        };
        for event in events {
            assert!(event.kind().is_engine(), "{event:?}");
            self.results += usize::from(matches!(event, Event::EngineResult(_)));
            // What a chain could not hold would end the run at the first line that says it.
            let written = serde_json::to_value(&event).unwrap();
            let bytes = cto_core::values::json::canonical_value(&written);
            assert!(bytes.is_ok_and(|bytes| bytes.len() < 1 << 18), "{event:?}");
        }
    }

    /// Whole lines of JSON, and not a word after the end.
    fn answer(&mut self, reply: &Reply) {
        assert!(!self.dismissed || reply.said.is_empty(), "after the end");
        self.dismissed |= reply.dismissed.is_some();
        assert!(reply.said.is_empty() || reply.said.ends_with(b"\n"));
        for line in reply.said.split(|byte| *byte == b'\n') {
            assert!(line.is_empty() || serde_json::from_slice::<Value>(line).is_ok());
        }
    }
}

#[test]
fn nothing_said_in_any_dialect_panics() {
    let (count, seeds) = (inputs(), seeds());
    std::thread::scope(|scope| {
        for half in 0..2u64 {
            let seeds = &seeds;
            scope.spawn(move || {
                let mut dice = Dice(0x2545_f491_4f6c_dd1d ^ (half + 1));
                for _ in (half..count).step_by(2) {
                    speak(&mut dice, seeds);
                }
            });
        }
    });
}
