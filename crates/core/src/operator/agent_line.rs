//! What an engine is doing, in one short line for somebody who watches: how much of its model it has used, and the
//! last thing it did. All of it is its own words or a count; nothing is decided by it.

use crate::bundle::report::Claimed;
use crate::operator::timeline::{Voice, clock_text, event_sentence, permission, voice_of};
use crate::run::event::Event;
use crate::values::text::{excerpt, tame};
use crate::wire::calls::WireCounts;

/// No path, command or message is shown beyond this.
const MOST: usize = 120;
/// Lines narrower than this have no room for whole words.
const NARROW: usize = 48;

/// `3 calls, 12.4k tokens`.
pub fn counts_text(wire: WireCounts) -> String {
    format!("{}, {} tokens", calls_text(wire), short(wire.tokens))
}

fn calls_text(wire: WireCounts) -> String {
    match wire.calls {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    }
}

/// The last thing an engine did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentLine {
    last: String,
}

impl AgentLine {
    pub fn take(&mut self, event: &Event) {
        if let Some(did) = did(event) {
            self.last = did;
        }
    }

    /// As it looks now, in about so many columns. A model that is asked is thinking, after whatever came before.
    pub fn text(&self, wire: Option<WireCounts>, columns: usize) -> String {
        let waiting = wire.is_some_and(|wire| wire.waiting);
        let doing = match (waiting, self.last.as_str()) {
            (true, "") => "thinking".to_owned(),
            (true, last) if columns >= NARROW => format!("thinking, after {last}"),
            (true, _) => "thinking".to_owned(),
            (false, last) => last.to_owned(),
        };
        let counts = wire.filter(|wire| wire.calls > 0).map(|wire| {
            match columns >= NARROW {
                true => counts_text(wire),
                // A number alone is tokens: there is no room for the word.
                false => format!("{}, {}", calls_text(wire), short(wire.tokens)),
            }
        });
        match (counts, doing.as_str()) {
            (None, _) => doing,
            (Some(counts), "") => counts,
            (Some(counts), doing) => format!("{counts}: {doing}"),
        }
    }
}

/// One event of an engine in a few words; none where it says nothing about what is being done.
fn did(event: &Event) -> Option<String> {
    let text = match event {
        Event::EngineToolCall(call) if call.target.is_empty() => call.tool.clone(),
        Event::EngineToolCall(call) => format!("{} {}", call.tool, call.target),
        Event::EngineMessage(said) | Event::EnginePlan(said) | Event::EngineWarning(said) => {
            said.text.clone()
        }
        Event::EnginePhase(phase) if phase.outcome.is_none() => phase.phase.clone(),
        Event::EnginePermission(asked) => permission(asked),
        Event::EngineReview(review) => review.summary.clone(),
        Event::EngineResult(result) => format!("claims {}", result.claimed),
        // A change of a file is the end of the call that was shown; counts have a place of their own.
        _ => return None,
    };
    let one = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!one.is_empty()).then(|| tame(&excerpt(&one, MOST)))
}

/// A line of `cto replay`, for an event that happened just now.
pub fn replay_row(at_ms: i64, event: &Event) -> String {
    const NAMES: usize = 18;
    let kind = event.kind();
    let mark = match voice_of(kind) {
        Voice::Observed => " ",
        Voice::Claimed => "┊",
    };
    let text = event_sentence(event);
    let text = text.split('\n').map(str::trim_end);
    let text = tame(&text.collect::<Vec<_>>().join(" "));
    format!(
        "{:>10}  {mark} {:<NAMES$}  {text}",
        clock_text(at_ms),
        kind.as_str()
    )
}

/// The end of what an agent says it did.
const MOST_CLAIMED: usize = 200;

/// What an engine claims, in its own words.
pub fn claimed_text(claimed: &Claimed) -> Option<String> {
    let status = tame(&excerpt(claimed.status.as_deref()?, MOST));
    let said = claimed.summary.as_deref().unwrap_or_default();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(match said.as_str() {
        "" => status,
        said => format!("{status}: {}", tame(&excerpt(said, MOST_CLAIMED))),
    })
}

/// What was seen of it, beside that: files that changed, and checks that it never saw run.
pub fn seen_text(files: usize, green: usize, checks: usize) -> String {
    let files = match files {
        0 => "nothing changed".to_owned(),
        1 => "1 file changed".to_owned(),
        files => format!("{files} files changed"),
    };
    match checks {
        0 => format!("{files}, no check ran"),
        1 if green == 1 => format!("{files}, its check is green"),
        1 => format!("{files}, its check is not green"),
        checks => format!("{files}, {green} of {checks} checks green"),
    }
}

/// `950`, `12.4k`, `1.2M`: three digits say enough while something runs.
fn short(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..100_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        100_000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::{EngineFileChange, EngineResult, EngineText, EngineToolCall};

    fn tool(tool: &str, target: &str) -> Event {
        Event::EngineToolCall(EngineToolCall::new(tool.into(), target.into()))
    }

    fn after(events: &[Event]) -> AgentLine {
        let mut line = AgentLine::default();
        events.iter().for_each(|event| line.take(event));
        line
    }

    const WIRE: WireCounts = WireCounts {
        calls: 3,
        tokens: 12_440,
        waiting: false,
    };

    #[test]
    fn the_last_thing_it_did_stands_behind_what_it_cost() {
        let edit = tool("edit", "src/a.py");
        let change = Event::EngineFileChange(EngineFileChange {
            path: "src/a.py".into(),
        });
        let said = Event::EngineMessage(EngineText {
            text: "Now\n the  tests.".into(),
        });
        let result = Event::EngineResult(EngineResult::new("completed", "Done.", false));
        let waiting = WireCounts {
            waiting: true,
            ..WIRE
        };
        for (events, wire, columns, want) in [
            (&[][..], None, 80, ""),
            (&[], Some(WireCounts::default()), 80, ""),
            (
                &[],
                Some(WireCounts {
                    waiting: true,
                    ..WireCounts::default()
                }),
                80,
                "thinking",
            ),
            (&[tool("ls", "")], None, 80, "ls"),
            (
                &[edit.clone(), change],
                Some(WIRE),
                80,
                "3 calls, 12.4k tokens: edit src/a.py",
            ),
            (
                &[tool("bash", "pytest -q")],
                Some(waiting),
                80,
                "3 calls, 12.4k tokens: thinking, after bash pytest -q",
            ),
            (
                std::slice::from_ref(&edit),
                Some(waiting),
                34,
                "3 calls, 12.4k: thinking",
            ),
            (
                std::slice::from_ref(&edit),
                Some(WIRE),
                34,
                "3 calls, 12.4k: edit src/a.py",
            ),
            (&[edit.clone(), said], None, 80, "Now the tests."),
            (&[edit.clone(), result], None, 80, "claims completed"),
        ] {
            assert_eq!(after(events).text(wire, columns), want);
        }
    }

    #[test]
    fn nothing_it_says_is_obeyed_or_endless() {
        let line = after(&[tool("bash\u{1b}[2J", &"x\u{202e}\n".repeat(5000))]);
        let text = line.text(None, 80);
        assert!(text.chars().count() <= MOST + 1, "{}", text.len());
        assert!(
            text.chars().all(|c| !crate::values::text::is_dangerous(c)),
            "{text:?}"
        );
    }

    #[test]
    fn a_claim_stands_beside_what_was_seen() {
        let claim = |status: Option<&str>, summary: Option<&str>| {
            claimed_text(&Claimed {
                status: status.map(str::to_owned),
                summary: summary.map(str::to_owned),
                commit: None,
            })
        };
        assert_eq!(claim(None, Some("x")), None);
        assert_eq!(
            claim(Some("completed"), Some(" ")).as_deref(),
            Some("completed")
        );
        let long = claim(Some("completed"), Some(&"All\n\u{1b}[2J ".repeat(900)));
        let long = long.unwrap_or_default();
        assert!(
            long.starts_with("completed: All \u{fffd}[2J All"),
            "{long:?}"
        );
        assert!(long.chars().count() < MOST_CLAIMED + 20);
        for (files, green, checks, want) in [
            (0, 0, 0, "nothing changed, no check ran"),
            (1, 1, 1, "1 file changed, its check is green"),
            (1, 0, 1, "1 file changed, its check is not green"),
            (2, 1, 3, "2 files changed, 1 of 3 checks green"),
        ] {
            assert_eq!(seen_text(files, green, checks), want);
        }
    }

    #[test]
    fn counts_are_short() {
        for (count, want) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (99_999, "99.9k"),
            (345_678, "345k"),
            (2_000_000, "2.0M"),
        ] {
            assert_eq!(short(count), want);
        }
        let one = WireCounts {
            calls: 1,
            tokens: 5,
            waiting: false,
        };
        assert_eq!(counts_text(one), "1 call, 5 tokens");
    }

    #[test]
    fn a_row_is_that_of_the_replay() {
        assert_eq!(
            replay_row(315, &tool("edit", "a\u{7}b")),
            "   0.315 s  ┊ engine.tool_call    edit a\u{fffd}b"
        );
        let said = Event::EngineMessage(EngineText {
            text: "one\ntwo".into(),
        });
        assert!(replay_row(0, &said).ends_with("  one two"));
    }
}
