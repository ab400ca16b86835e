//! One agent of a pipeline: a conversation with the model, and the four tools it may call. Nothing is read-only for
//! any of them, and what a shell command starts is in a session of its own.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Log;
use super::neighbourhood::Surroundings;
use super::wire::Model;

/// More turns than any scenario has.
const MAX_TURNS: usize = 60;

pub struct Agent<'a> {
    pub role: &'static str,
    pub model: &'a Model,
    pub workspace: &'a Path,
    pub page: &'a Path,
    pub log: &'a Log,
    pub around: &'a Surroundings,
}

impl Agent<'_> {
    /// All it said, over all turns. A model that is not reached leaves nothing that was said.
    pub fn converse(&self, note: &str) -> Result<String, String> {
        let title = self.role[..1].to_uppercase() + &self.role[1..];
        let orders = self.around.prompt(self.role);
        let orders = orders.unwrap_or_else(|| "Read the task and end with a result.".into());
        let mut messages = vec![
            json!({"role": "system", "content": format!("# {title}\n\n{orders}")}),
            json!({"role": "user", "content": format!("The task is in {}. {note}", self.page.display())}),
        ];
        let mut said = String::new();
        for _ in 0..MAX_TURNS {
            let Ok(turn) = self.model.ask(&messages) else {
                return Ok(said);
            };
            said.push_str(&turn.text);
            if turn.calls.is_empty() {
                return Ok(said);
            }
            messages.push(turn.message());
            for (id, name, arguments) in &turn.calls {
                let result = self
                    .uses(id, name, arguments)
                    .map_err(|error| error.to_string())?;
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
        }
        Ok(said)
    }

    fn uses(&self, id: &str, name: &str, arguments: &str) -> io::Result<String> {
        let args: Value = serde_json::from_str(arguments).unwrap_or_default();
        self.log
            .write(json!({"event": "tool_start", "toolCallId": id, "tool": name, "args": args}))?;
        let result = self.tool(name, &args);
        let (is_error, text) = match result {
            Ok(text) => (false, text),
            Err(error) => (true, error.to_string()),
        };
        self.log.write(json!({
            "event": "tool_end", "toolCallId": id, "tool": name, "durationMs": 0, "isError": is_error, "result": text,
        }))?;
        Ok(text)
    }

    fn tool(&self, name: &str, args: &Value) -> io::Result<String> {
        let arg = |name: &str| args[name].as_str().unwrap_or_default();
        let path = self.workspace.join(arg("path"));
        match name {
            "read" => fs::read_to_string(path),
            "write" => {
                if let Some(dir) = path.parent() {
                    fs::create_dir_all(dir)?;
                }
                fs::write(path, arg("content")).map(|()| "written".into())
            }
            "edit" => {
                let before = fs::read_to_string(&path)?;
                fs::write(path, before.replacen(arg("oldText"), arg("newText"), 1))?;
                Ok("edited".into())
            }
            "bash" => {
                let shell = self.around.shell.as_deref().unwrap_or("/bin/sh");
                let output = Command::new("setsid")
                    .args(["--wait", shell, "-c", arg("command")])
                    .envs(self.around.variables.iter().cloned())
                    .current_dir(self.workspace)
                    .stdin(Stdio::null())
                    .output()?;
                let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.push_str(&String::from_utf8_lossy(&output.stderr));
                match output.status.success() {
                    true => Ok(text),
                    false => Err(io::Error::other(text)),
                }
            }
            other => Err(io::Error::other(format!("there is no tool called {other}"))),
        }
    }
}
