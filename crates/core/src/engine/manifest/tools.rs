//! An engine's own tools, as a model that plays a script must call them. Only validators look here:
//! the words are the engine's, and nothing of it reaches a run of an operator.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fill;
use super::places::braced;
use crate::values::event_type::EventType;
use crate::wire::scenario::ToolCall;

/// What the engine calls the tool that runs a command, and those that write and edit files. Without
/// one that writes, a file is written by a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// `{command}`: one line or more, for a shell.
    pub shell: Tool,
    /// `{path}`, where it writes and edits no file that it has not read.
    pub read: Option<Tool>,
    /// `{path}` below the workspace, and its whole `{text}`. `{workspace}/{path}` where it wants one from the root.
    pub write: Option<Tool>,
    /// `{path}`, one line of it as it is, `{old}`, and as it shall be, `{new}`.
    pub edit: Option<Tool>,
    /// What its model says where the engine takes nothing else for an end: after the steps, and to whoever of its agents
    /// asks after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    /// The call that ends it, without a placeholder, where the engine asks on and on until its model calls this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<Tool>,
    /// Events it tells of in every run: no row can be about one of them that never came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<EventType>,
    /// How its reviewer says no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejects: Option<Rejects>,
}

/// A reviewer among an engine's agents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rejects {
    /// So many others end before it is asked.
    pub after: u8,
    pub says: String,
}

/// The directory the engine works in, for tools that want a path from the root: `{workspace}/{path}`.
const WORKSPACE: &str = "workspace";

/// One tool: its name, and its arguments with placeholders in their texts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    pub arguments: Map<String, Value>,
}

impl Tools {
    /// The first mistake: the tool it is in, and what is wrong.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        [
            ("shell", Some(&self.shell), &["command"][..]),
            ("read", self.read.as_ref(), &["path"]),
            ("write", self.write.as_ref(), &["path", "text"]),
            ("edit", self.edit.as_ref(), &["path", "old", "new"]),
            ("finish", self.finish.as_ref(), &[]),
        ]
        .into_iter()
        .find_map(|(name, tool, words)| Some((name, tool?.problem(words)?)))
        .or_else(|| {
            let what = "who has others to ask must say what ends one of them: done";
            (self.rejects.is_some() && self.done.is_none()).then(|| ("rejects", what.to_owned()))
        })
    }

    /// The same for an engine that works there. Where that is not known, a tool that must name it is none.
    pub fn at(&self, workspace: Option<&str>) -> Self {
        let at = |tool: &Option<Tool>| tool.as_ref().and_then(|tool| tool.at(workspace));
        Self {
            shell: self.shell.clone(),
            read: at(&self.read),
            write: at(&self.write),
            edit: at(&self.edit),
            ..self.clone()
        }
    }

    /// The one tool of which nobody is asked what it will change.
    pub fn by_command(&self) -> Self {
        Self {
            shell: self.shell.clone(),
            read: None,
            write: None,
            edit: None,
            ..self.clone()
        }
    }

    pub fn run(&self, command: &str) -> ToolCall {
        self.shell.call([("command", command)])
    }

    /// What goes before a call of one of those that change a file, where anything does.
    pub fn read(&self, path: &str) -> Option<ToolCall> {
        Some(self.read.as_ref()?.call([("path", path)]))
    }

    /// By a command where no tool writes: what the file holds is the same.
    pub fn write(&self, path: &str, text: &str) -> ToolCall {
        match &self.write {
            Some(tool) => tool.call([("path", path), ("text", text)]),
            None => {
                // Without a command in the command: some agents run none such.
                let above = path.rsplit_once('/').map(|(above, _)| quoted(above));
                let above = above.map_or_else(String::new, |dir| format!("mkdir -p -- {dir} && "));
                let (text, path) = (quoted(text), quoted(path));
                self.run(&format!("{above}printf '%s' {text} > {path}"))
            }
        }
    }

    pub fn finish(&self) -> Option<ToolCall> {
        Some(self.finish.as_ref()?.call([]))
    }

    pub fn edit(&self, path: &str, old: &str, new: &str) -> Option<ToolCall> {
        let tool = self.edit.as_ref()?;
        Some(tool.call([("path", path), ("old", old), ("new", new)]))
    }
}

impl Tool {
    fn problem(&self, words: &[&str]) -> Option<String> {
        if self.name.is_empty() {
            return Some("a tool has a name".into());
        }
        let mut texts = Vec::new();
        self.arguments
            .values()
            .for_each(|value| collect(value, &mut texts));
        let named: Vec<&str> = texts.into_iter().flat_map(braced).collect();
        let known =
            |name: &&str| words.contains(name) || (words.contains(&"path") && *name == WORKSPACE);
        if let Some(strange) = named.iter().find(|name| !known(name)) {
            return Some(format!("{{{strange}}} means nothing here"));
        }
        let missing = words.iter().find(|word| !named.contains(word))?;
        Some(format!("its arguments do not name {{{missing}}}"))
    }

    fn at(&self, workspace: Option<&str>) -> Option<Self> {
        let mut texts = Vec::new();
        self.arguments
            .values()
            .for_each(|value| collect(value, &mut texts));
        if !texts
            .into_iter()
            .flat_map(braced)
            .any(|name| name == WORKSPACE)
        {
            return Some(self.clone());
        }
        let words = BTreeMap::from([(WORKSPACE, workspace?.to_owned())]);
        match filled(&Value::Object(self.arguments.clone()), &words) {
            Value::Object(arguments) => Some(Self {
                name: self.name.clone(),
                arguments,
            }),
            _ => None,
        }
    }

    fn call<const N: usize>(&self, words: [(&str, &str); N]) -> ToolCall {
        let words = words.map(|(name, text)| (name, text.to_owned()));
        let filled = filled(&Value::Object(self.arguments.clone()), &words.into());
        ToolCall {
            name: self.name.clone(),
            arguments: filled,
            raw: None,
        }
    }
}

/// What is wrong with an answer that makes an engine without tools write a file.
pub fn answer_problem(answer: &str) -> Option<String> {
    let words = ["path", "text"];
    let named: Vec<&str> = braced(answer).collect();
    if let Some(strange) = named.iter().find(|name| !words.contains(name)) {
        return Some(format!("{{{strange}}} means nothing here"));
    }
    let missing = words.iter().find(|word| !named.contains(word))?;
    Some(format!("it does not name {{{missing}}}"))
}

/// The answer for one file.
pub fn answer(template: &str, path: &str, text: &str) -> String {
    let words = [("path", path.to_owned()), ("text", text.to_owned())];
    fill::template(template, &words.into())
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(list) => list.iter().for_each(|one| collect(one, texts)),
        Value::Object(map) => map.values().for_each(|one| collect(one, texts)),
        _ => {}
    }
}

fn filled(value: &Value, words: &BTreeMap<&str, String>) -> Value {
    match value {
        Value::String(text) => fill::template(text, words).into(),
        Value::Array(list) => list.iter().map(|one| filled(one, words)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, one)| (key.clone(), filled(one, words)))
            .collect(),
        other => other.clone(),
    }
}

/// One word of a shell, whatever it holds.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(text: &str) -> Tools {
        toml::from_str(text).unwrap()
    }

    const WHOLE: &str = r#"
shell = { name = "bash", arguments = { command = "{command}", timeout = 5 } }
write = { name = "write", arguments = { path = "{path}", content = "{text}" } }
edit = { name = "edit", arguments = { path = "{path}", edits = [{ old = "{old}", new = "{new}" }] } }
"#;

    #[test]
    fn steps_become_calls_and_a_value_is_never_looked_at_again() {
        let tools = tools(WHOLE);
        assert_eq!(tools.problem(), None);
        assert_eq!(
            tools.run("echo {text}").arguments,
            json!({"command": "echo {text}", "timeout": 5})
        );
        let write = tools.write("a.txt", "{path}\n\"'");
        assert_eq!(
            (write.name.as_str(), write.arguments),
            ("write", json!({"path": "a.txt", "content": "{path}\n\"'"}))
        );
        assert_eq!(
            tools.edit("a", "b", "c").unwrap().arguments,
            json!({"path": "a", "edits": [{"old": "b", "new": "c"}]})
        );
    }

    #[test]
    fn without_a_tool_that_writes_a_command_does() {
        let tools = tools("shell = { name = \"sh\", arguments = { cmd = \"{command}\" } }");
        let call = tools.write("a/it's", "it's\n");
        assert_eq!(
            call.arguments["cmd"],
            "mkdir -p -- 'a' && printf '%s' 'it'\\''s\n' > 'a/it'\\''s'"
        );
        assert_eq!(tools.edit("a", "b", "c"), None);
    }

    #[test]
    fn a_tool_that_wants_a_path_from_the_root_is_told_where_the_engine_works_or_is_none() {
        let text = "shell = { name = \"sh\", arguments = { cmd = \"{command}\" } }\nwrite = { name = \"w\", arguments = { p = \"{workspace}/{path}\", t = \"{text}\" } }";
        let tools = tools(text);
        assert_eq!(tools.problem(), None);
        let known = tools.at(Some("/w")).write("a", "{workspace}");
        assert_eq!(known.arguments, json!({"p": "/w/a", "t": "{workspace}"}));
        let by_command = tools.run("printf '%s' 'b' > 'a'");
        assert_eq!(tools.at(None).write("a", "b"), by_command);
        assert_eq!(tools.by_command().write("a", "b"), by_command);
        let nothing = self::tools(
            "shell = { name = \"sh\", arguments = { cmd = \"{workspace} {command}\" } }",
        );
        assert!(nothing.problem().is_some(), "a command knows where it is");
    }

    #[test]
    fn who_must_read_first_reads_unless_a_command_does_it_all() {
        let text = "shell = { name = \"sh\", arguments = { cmd = \"{command}\" } }\nread = { name = \"r\", arguments = { p = \"{workspace}/{path}\" } }";
        let tools = tools(text);
        assert_eq!(tools.problem(), None);
        let read = tools.at(Some("/w")).read("a").unwrap();
        assert_eq!(read.arguments, json!({"p": "/w/a"}));
        assert_eq!(tools.at(None).read("a"), None);
        assert_eq!(tools.by_command().read("a"), None);
    }

    #[test]
    fn an_answer_names_the_file_and_its_text() {
        assert_eq!(answer_problem("{path}\n```\n{text}```"), None);
        assert_eq!(answer("{path}: {text}", "a", "{path}"), "a: {path}");
        for (text, words) in [
            ("{path}", "it does not name {text}"),
            ("{path} {text} {token}", "{token} means nothing here"),
        ] {
            assert_eq!(answer_problem(text).as_deref(), Some(words));
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_tool() {
        for (text, tool, words) in [
            (
                "shell = { name = \"\", arguments = { c = \"{command}\" } }",
                "shell",
                "a tool has a name",
            ),
            (
                "shell = { name = \"sh\", arguments = {} }",
                "shell",
                "its arguments do not name {command}",
            ),
            (
                "shell = { name = \"sh\", arguments = { c = \"{command}\" } }\nfinish = { name = \"f\", arguments = { c = \"{command}\" } }",
                "finish",
                "{command} means nothing here",
            ),
            (
                "shell = { name = \"sh\", arguments = { c = \"{command} {token}\" } }",
                "shell",
                "{token} means nothing here",
            ),
            (
                "shell = { name = \"sh\", arguments = { c = \"{command}\" } }\nwrite = { name = \"w\", arguments = { p = \"{path}\" } }",
                "write",
                "its arguments do not name {text}",
            ),
        ] {
            let problem = tools(text).problem().unwrap();
            assert_eq!(problem, (tool, words.to_owned()));
        }
    }
}
