//! A row as what a model says: the steps of the scripted engine as calls of another engine's tools.

use serde::Deserialize;

use super::{Row, Words, spoken};
use crate::containment::mounts::stand::NEUTRAL;
use crate::engine::manifest::Invocation;
use crate::engine::manifest::tools::{Tools, quoted};
use crate::wire::scenario::{After, Scenario, Select, ToolCall, Turn};

/// What a model can make an engine do. Other steps are the scripted engine's own.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Played {
    Write {
        path: String,
        text: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Shell {
        command: String,
    },
    Say {
        text: String,
    },
    Print {
        text: String,
    },
    Sleep {
        ms: u64,
    },
    Exit {},
    Review {
        #[serde(default)]
        accepted: bool,
    },
    #[serde(other)]
    Other,
}

impl Row {
    /// What a model says so that this engine does what the row does; or why none can.
    pub fn scenario_for(&self, own: &Invocation, words: &Words) -> Result<Scenario, String> {
        let tools = own.tools.as_ref().ok_or("its manifest names no tools")?;
        // A copy of a repository may stand where the repository stands.
        let tools = tools.at(self.source.is_none().then_some(NEUTRAL));
        match self.unasked && own.dialect.is_talked_to() {
            true => self.scenario(&tools.by_command(), words),
            false => self.scenario(&tools, words),
        }
    }

    /// What a model says so that an engine with these tools does what the row does; or why none can.
    /// The turns of the row's own model come after its steps.
    fn scenario(&self, tools: &Tools, words: &Words) -> Result<Scenario, String> {
        if let Some(why) = &self.not_on_lanes {
            return Err(why.clone());
        }
        let expected = self.case.get("evidence_expectations");
        let expected = expected
            .and_then(toml::Value::as_array)
            .into_iter()
            .flatten();
        let mut expected = expected.filter_map(toml::Value::as_str);
        let told = |name: &&str| tools.always.iter().any(|event| event.as_str() == *name);
        if let Some(event) = expected.find(told) {
            return Err(format!("it tells of {event} in every run"));
        }
        if self.silent {
            return Err("its last word is its own, and no model can keep it back".into());
        }
        let mut own = self.model.clone().unwrap_or_default();
        let mut turns = Turns::default();
        for step in self.lane_steps.as_ref().unwrap_or(&self.steps) {
            let step = spoken(step.clone().into(), words).try_into::<Played>();
            turns.play(step.unwrap_or(Played::Other), tools)?;
        }
        if turns.sleeps {
            // However soon a tool gives up waiting, the engine is told to wait again.
            own.after = After::Last;
        }
        turns.print(tools);
        let goes_on = own.after != After::End || !own.turn.is_empty();
        if let Some(done) = &tools.done {
            // Each of its agents has a conversation of its own, so turns are counted over all of them.
            own.select = Select::Requests;
            if !goes_on {
                turns.end(done);
                own.after = After::Last;
            }
        }
        if let Some(call) = tools.finish().filter(|_| !goes_on) {
            turns.call(call);
            own.after = After::Last;
        }
        let mut turn = turns.all();
        turn.append(&mut own.turn);
        own.probe.get_or_insert_with(|| Turn::saying("ready"));
        Ok(Scenario { turn, ..own })
    }
}

#[derive(Default)]
struct Turns {
    done: Vec<Turn>,
    /// Words for the next turn.
    said: String,
    /// What is printed, in one piece: an engine shows each command's output by itself.
    printed: String,
    sleeps: bool,
}

impl Turns {
    fn play(&mut self, step: Played, tools: &Tools) -> Result<(), String> {
        if !matches!(step, Played::Print { .. }) {
            self.print(tools);
        }
        if let Played::Write { path, .. } | Played::Edit { path, .. } = &step
            && let Some(read) = tools.read(path)
        {
            self.call(read);
        }
        let call = match step {
            // A script's text begins on the line after its quotes.
            Played::Write { path, text } => {
                tools.write(&path, text.strip_prefix('\n').unwrap_or(&text))
            }
            Played::Edit { path, old, new } => tools
                .edit(&path, &old, &new)
                .ok_or("its manifest names no tool that edits")?,
            Played::Shell { command } => tools.run(&command),
            Played::Say { text } => {
                self.said.push_str(&text);
                return Ok(());
            }
            Played::Print { text } => {
                self.printed.push_str(&text);
                return Ok(());
            }
            Played::Sleep { ms } => {
                self.sleeps = true;
                // Some refuse to do nothing but wait, unless it is said that this is meant.
                let seconds = ms.div_ceil(1000);
                tools.run(&format!("sleep {seconds} # intentional-sleep: as asked"))
            }
            Played::Exit {} => return Err("its exit code is its own, and no model says it".into()),
            Played::Review { accepted } => return self.reviews(accepted, tools),
            Played::Other => return Err("only the scripted engine does what this row does".into()),
        };
        self.call(call);
        Ok(())
    }

    /// Whoever comes before the reviewer ends, and the reviewer says no. A yes is what every end is.
    fn reviews(&mut self, accepted: bool, tools: &Tools) -> Result<(), String> {
        let (Some(rejects), Some(done)) = (&tools.rejects, &tools.done) else {
            return Err("it has no reviewer that a model could be".into());
        };
        if !accepted {
            (0..rejects.after).for_each(|_| self.end(done));
            self.end(&rejects.says);
        }
        Ok(())
    }

    /// The last words of one agent.
    fn end(&mut self, words: &str) {
        let said = std::mem::take(&mut self.said);
        let text = match said.is_empty() {
            true => words.to_owned(),
            false => format!("{said}\n{words}"),
        };
        self.done.push(Turn::saying(&text));
    }

    fn call(&mut self, call: ToolCall) {
        self.done.push(Turn {
            text: std::mem::take(&mut self.said),
            tool: vec![call],
            ..Turn::default()
        });
    }

    fn print(&mut self, tools: &Tools) {
        if !self.printed.is_empty() {
            let text = std::mem::take(&mut self.printed);
            self.call(tools.run(&format!("printf '%s' {}", quoted(&text))));
        }
    }

    fn all(mut self) -> Vec<Turn> {
        if !self.said.is_empty() {
            let text = std::mem::take(&mut self.said);
            self.done.push(Turn::saying(&text));
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lanes, built_in};
    use super::*;

    fn tools() -> Tools {
        let text = r#"
shell = { name = "sh", arguments = { c = "{command}" } }
write = { name = "write", arguments = { p = "{path}", t = "{text}" } }
edit = { name = "edit", arguments = { p = "{path}", o = "{old}", n = "{new}" } }
"#;
        toml::from_str(text).unwrap()
    }

    fn row(steps: &str) -> Row {
        let mut row = built_in().unwrap().rows.remove(0);
        let table: toml::Table = format!("steps = [{steps}]").parse().unwrap();
        row.steps = table["steps"].clone().try_into().unwrap();
        row
    }

    fn said(row: &Row) -> Vec<String> {
        let turns = row.scenario(&tools(), &Words::new()).unwrap().turn;
        let call = |tool: &ToolCall| format!("{} {}", tool.name, tool.text());
        let calls = |turn: &Turn| turn.tool.iter().map(call).collect::<String>();
        turns
            .iter()
            .map(|turn| format!("{}|{}", turn.text, calls(turn)))
            .collect()
    }

    #[test]
    fn steps_are_calls_and_words_go_with_the_next_of_them() {
        let steps = r#"{ do = "say", text = "now" }, { do = "write", path = "a", text = "b" },
            { do = "print", text = "one " }, { do = "print", text = "two" },
            { do = "edit", path = "a", old = "b", new = "c" }, { do = "say", text = "done" }"#;
        assert_eq!(
            said(&row(steps)),
            [
                "now|write {\"p\":\"a\",\"t\":\"b\"}",
                "|sh {\"c\":\"printf '%s' 'one two'\"}",
                "|edit {\"n\":\"c\",\"o\":\"b\",\"p\":\"a\"}",
                "done|",
            ]
        );
        let printed = row(r#"{ do = "print", text = "last" }"#);
        assert_eq!(said(&printed), ["|sh {\"c\":\"printf '%s' 'last'\"}"]);
    }

    /// Agents one after the other: each ends in the engine's own words, and one of them may say no.
    #[test]
    fn an_engine_of_several_agents_is_ended_each_time() {
        let mut many = tools();
        many.done = Some("<done>".into());
        let plain = row(r#"{ do = "write", path = "a", text = "b" }, { do = "say", text = "so" }"#);
        let scenario = plain.scenario(&many, &Words::new()).unwrap();
        assert_eq!(
            (scenario.select, scenario.after),
            (Select::Requests, After::Last)
        );
        assert_eq!(scenario.turn.last().unwrap().text, "so\n<done>");
        let review = row(r#"{ do = "review", accepted = false, summary = "no" }"#);
        assert!(review.scenario(&many, &Words::new()).is_err());
        many.rejects = Some(crate::engine::manifest::tools::Rejects {
            after: 2,
            says: "<no>".into(),
        });
        let said = review.scenario(&many, &Words::new()).unwrap().turn;
        let said: Vec<&str> = said.iter().map(|turn| turn.text.as_str()).collect();
        assert_eq!(said, ["<done>", "<done>", "<no>", "<done>"]);
        // A model that fails goes on failing.
        let mut broken = row("");
        broken.model = Some(Scenario::parse("after = \"last\"\n[[turn]]\nstatus = 500\n").unwrap());
        let turns = broken.scenario(&many, &Words::new()).unwrap().turn;
        assert!(turns.iter().all(|turn| turn.text.is_empty()));
    }

    #[test]
    fn who_ends_by_a_call_is_ended_by_it_unless_its_model_goes_on() {
        let mut one = tools();
        let text = "name = \"sh\"\narguments = { c = \"echo END\" }";
        one.finish = Some(toml::from_str(text).unwrap());
        let plain = row(r#"{ do = "write", path = "a", text = "b" }, { do = "say", text = "so" }"#);
        let scenario = plain.scenario(&one, &Words::new()).unwrap();
        assert_eq!(scenario.after, After::Last);
        let last = scenario.turn.last().unwrap();
        assert_eq!(
            (last.text.as_str(), last.tool[0].text().as_str()),
            ("so", "{\"c\":\"echo END\"}")
        );
        let mut broken = row("");
        broken.model = Some(Scenario::parse("after = \"last\"\n[[turn]]\nstatus = 500\n").unwrap());
        let turns = broken.scenario(&one, &Words::new()).unwrap().turn;
        assert!(turns.iter().all(|turn| turn.tool.is_empty()));
    }

    #[test]
    fn what_an_engine_always_tells_of_is_never_missing() {
        let mut row = row("");
        row.case = "evidence_expectations = [\"engine.plan\"]".parse().unwrap();
        assert!(row.scenario(&tools(), &Words::new()).is_ok());
        let mut tells = tools();
        tells.always = vec![crate::values::event_type::EventType::EnginePlan];
        let why = row.scenario(&tells, &Words::new()).unwrap_err();
        assert_eq!(why, "it tells of engine.plan in every run");
    }

    #[test]
    fn who_must_read_first_reads_in_a_turn_of_its_own() {
        let reads = "name = \"r\"\narguments = { p = \"{path}\" }";
        let tools = Tools {
            read: Some(toml::from_str(reads).unwrap()),
            ..tools()
        };
        let row = row(r#"{ do = "write", path = "a", text = "b" }"#);
        let turns = row.scenario(&tools, &Words::new()).unwrap().turn;
        let names: Vec<&str> = turns
            .iter()
            .map(|turn| turn.tool[0].name.as_str())
            .collect();
        assert_eq!(names, ["r", "write"]);
    }

    #[test]
    fn who_sleeps_sleeps_again() {
        let asleep = row(r#"{ do = "sleep", ms = 1500 }"#);
        let scenario = asleep.scenario(&tools(), &Words::new()).unwrap();
        assert_eq!(scenario.after, After::Last);
        let waits = "|sh {\"c\":\"sleep 2 # intentional-sleep: as asked\"}";
        assert_eq!(said(&asleep), [waits]);
    }

    #[test]
    fn what_no_model_can_do_says_why() {
        for (steps, words) in [
            (r#"{ do = "exit", code = 3 }"#, "exit code"),
            (
                r#"{ do = "review", accepted = false, summary = "no" }"#,
                "reviewer",
            ),
            (
                r#"{ do = "attack", name = "x", on = [] }"#,
                "scripted engine",
            ),
            (r#"{ do = "surprise" }"#, "scripted engine"),
        ] {
            let why = row(steps).scenario(&tools(), &Words::new()).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        let mut silent = row("");
        silent.silent = true;
        assert!(silent.scenario(&tools(), &Words::new()).is_err());
        let toolless = Tools {
            edit: None,
            ..tools()
        };
        let edits = row(r#"{ do = "edit", path = "a", old = "b", new = "c" }"#);
        assert!(edits.scenario(&toolless, &Words::new()).is_err());
    }

    /// An agent that asks is refused what is out of scope; that it got in is what the row is about.
    #[test]
    fn who_asks_writes_by_a_command_where_nobody_may_be_asked() {
        let mut row = row(r#"{ do = "write", path = "stray.txt", text = "x" }"#);
        let own = |dialect: &str| {
            let text = format!("program = \"admitted\"\nargv = []\ndialect = \"{dialect}\"\n");
            let mut own: Invocation = toml::from_str(&text).unwrap();
            own.tools = Some(tools());
            own
        };
        let tool = |row: &Row, dialect: &str| {
            let scenario = row.scenario_for(&own(dialect), &Words::new()).unwrap();
            scenario.turn[0].tool[0].name.clone()
        };
        assert_eq!(tool(&row, "acp"), "write");
        row.unasked = true;
        assert_eq!(tool(&row, "acp"), "sh");
        assert_eq!(tool(&row, "pi"), "write");
    }

    /// A probe that nobody scripted is a good one; words of the row are in its calls.
    #[test]
    fn a_model_has_the_rows_own_turns_last() {
        let mut place = row(r#"{ do = "shell", command = "cat {place}" }"#);
        place.model = Some(Scenario::parse("[[turn]]\nstatus = 500\n").unwrap());
        let words = Words::from([("place".to_owned(), "/x".to_owned())]);
        let scenario = place.scenario(&tools(), &words).unwrap();
        assert_eq!(scenario.turn[0].tool[0].text(), "{\"c\":\"cat /x\"}");
        assert_eq!(scenario.turn[1].status, Some(500));
        assert_eq!(scenario.probe, Some(Turn::saying("ready")));
    }

    #[test]
    fn every_row_with_a_model_can_be_played_and_most_others_too() {
        let rows = built_in().unwrap().rows;
        let unplayable: Vec<&str> = rows
            .iter()
            .filter(|row| !row.has_a_desk())
            .filter(|row| row.scenario(&tools(), &Words::new()).is_err())
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!(
            unplayable,
            [
                "missing-event",
                "reviewer-reject",
                "artifact-write-failure",
                "engine-failed"
            ]
        );
        for row in rows {
            assert!(
                row.model.is_none() || row.lanes == Lanes::Modelled,
                "{}",
                row.name
            );
        }
    }
}
