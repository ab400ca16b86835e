//! `cto __agent`: an engine that speaks Pi's dialect and asks its model through the door, without
//! Node and without npm. For validators, which must work wherever this binary does.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use cto_core::engine::manifest::Manifest;
use serde_json::{Value, json};

use crate::host::failure::Failure;

/// How it is started.
const MANIFEST: &str = include_str!("agent.toml");

/// The double as an engine. No registry has it: a validator names it, and nobody else can.
pub fn manifest() -> Result<Manifest, Failure> {
    Manifest::parse("agent.toml", MANIFEST).map_err(|error| {
        Failure::internal("bad_double", "the double of an agent is broken").because(&error)
    })
}

/// More turns than any scenario has.
const MAX_TURNS: usize = 100;

/// Plays to the end. Like the engine it stands for, it ends with 0 whatever happened on the wire.
pub fn play(words: &[String]) -> u8 {
    say(&json!({"type": "session", "version": 3, "cwd": "."}));
    say(&json!({"type": "agent_start"}));
    let (text, error) = match converse(words) {
        Ok(text) => (text, None),
        Err(error) => (String::new(), Some(error.to_string())),
    };
    let mut message =
        json!({"role": "assistant", "content": [{"type": "text", "text": text}], "usage": {}});
    message["stopReason"] = if error.is_some() { "error" } else { "stop" }.into();
    message["errorMessage"] = error.into();
    say(&json!({"type": "message_end", "message": message}));
    say(&json!({"type": "agent_end", "messages": []}));
    0
}

fn say(line: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// `--also MODEL` first asks for a model nobody admitted, as an engine with a fallback would.
/// `--tries LIST` first makes requests with fields of its own, a hostile engine's.
fn converse(words: &[String]) -> io::Result<String> {
    let door = Door::find()?;
    let hello = json!({"role": "user", "content": "hello"});
    match words {
        [flag, other, ..] if flag == "--also" => {
            let refused = door.ask(other, &[hello]);
            say(&json!({"type": "message_update", "other_model_answered": refused.is_ok()}));
        }
        [flag, list, ..] if flag == "--tries" => {
            for fields in serde_json::from_str::<Vec<Value>>(list)? {
                let mut body = json!({"model": door.model, "messages": [hello]});
                if let (Some(body), Some(fields)) = (body.as_object_mut(), fields.as_object()) {
                    body.extend(fields.clone());
                }
                let heard = door.post(&body).map(|answer| put_together(&answer));
                let heard = heard.unwrap_or_else(|error| vec![error.to_string()]);
                say(&json!({"type": "message_update", "heard": heard}));
            }
        }
        _ => {}
    }
    let mut messages =
        vec![json!({"role": "user", "content": words.last().cloned().unwrap_or_default()})];
    for _ in 0..MAX_TURNS {
        let answer = door.ask(&door.model, &messages)?;
        let message = answer["choices"][0]["message"].clone();
        let calls = message["tool_calls"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let text = message["content"].as_str().unwrap_or_default().to_owned();
        messages.push(message);
        if calls.is_empty() {
            return Ok(text);
        }
        for call in calls {
            let result = use_tool(&call)?;
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
        }
    }
    Err(io::Error::other("the conversation has no end"))
}

fn use_tool(call: &Value) -> io::Result<String> {
    let name = call["function"]["name"].as_str().unwrap_or_default();
    let args: BTreeMap<String, String> =
        serde_json::from_str(call["function"]["arguments"].as_str().unwrap_or("{}"))?;
    say(
        &json!({"type": "tool_execution_start", "toolCallId": call["id"], "toolName": name, "args": args}),
    );
    let arg = |name: &str| args.get(name).map(String::as_str).unwrap_or_default();
    let result = match name {
        "write" => fs::write(arg("path"), arg("content")).map(|()| "written".to_owned()),
        "bash" => Command::new("/bin/sh")
            .args(["-c", arg("command")])
            .stdin(Stdio::null())
            .output()
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned()),
        other => Err(io::Error::other(format!("there is no tool called {other}"))),
    };
    let is_error = result.is_err();
    say(
        &json!({"type": "tool_execution_end", "toolCallId": call["id"], "toolName": name, "result": {}, "isError": is_error}),
    );
    Ok(result.unwrap_or_else(|error| error.to_string()))
}

/// The way to the model, from where an engine is told it: a file for the place, a variable for the
/// token.
struct Door {
    authority: String,
    base: String,
    model: String,
    token: String,
}

impl Door {
    fn find() -> io::Result<Self> {
        let missing = |what: &str| io::Error::other(format!("{what} was not given"));
        let var = |name: &str| env::var(name).map_err(|_| missing(name));
        let settings: Value = serde_json::from_slice(&fs::read(format!(
            "{}/models.json",
            var("PI_CODING_AGENT_DIR")?
        ))?)?;
        let provider = &settings["providers"]["cto"];
        let url = provider["baseUrl"]
            .as_str()
            .and_then(|url| url.strip_prefix("http://"))
            .ok_or_else(|| missing("baseUrl"))?;
        let (authority, base) = url.split_once('/').unwrap_or((url, ""));
        let model = provider["models"][0]["id"]
            .as_str()
            .ok_or_else(|| missing("a model"))?;
        Ok(Self {
            authority: authority.to_owned(),
            base: if base.is_empty() {
                String::new()
            } else {
                format!("/{base}")
            },
            model: model.to_owned(),
            token: var("CTO_MODEL_TOKEN")?,
        })
    }

    fn ask(&self, model: &str, messages: &[Value]) -> io::Result<Value> {
        let body = json!({"model": model, "messages": messages, "max_tokens": 1024});
        Ok(serde_json::from_slice(&self.post(&body)?)?)
    }

    fn post(&self, body: &Value) -> io::Result<Vec<u8>> {
        let body = body.to_string();
        let mut socket = TcpStream::connect(&self.authority)?;
        write!(
            socket,
            "POST {}/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.base,
            self.authority,
            self.token,
            body.len(),
        )?;
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer)?;
        let garbled = || io::Error::other("the answer is not HTTP");
        let at = memchr::memmem::find(&answer, b"\r\n\r\n").ok_or_else(garbled)?;
        let head = String::from_utf8_lossy(&answer[..at]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = &answer[at + 4..];
        if status != "200" {
            return Err(io::Error::other(format!(
                "{status} {}",
                String::from_utf8_lossy(body)
            )));
        }
        if head.contains("transfer-encoding: chunked") {
            joined(body).ok_or_else(garbled)
        } else {
            Ok(body.to_vec())
        }
    }
}

/// The words of a stream, of each of its answers, as a reader would put them together.
fn put_together(answer: &[u8]) -> Vec<String> {
    let mut all: BTreeMap<u64, String> = BTreeMap::new();
    let lines = answer.split(|byte| *byte == b'\n');
    for line in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
        let event: Value = serde_json::from_slice(line).unwrap_or_default();
        for choice in event["choices"].as_array().into_iter().flatten() {
            let words = choice["delta"]["content"].as_str().unwrap_or_default();
            *all.entry(choice["index"].as_u64().unwrap_or(0))
                .or_default() += words;
        }
    }
    all.into_values().collect()
}

/// A chunked body, put together.
fn joined(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let at = memchr::memmem::find(rest, b"\r\n")?;
        let size = usize::from_str_radix(
            std::str::from_utf8(&rest[..at])
                .ok()?
                .split(';')
                .next()?
                .trim(),
            16,
        )
        .ok()?;
        if size == 0 {
            return Some(out);
        }
        out.extend_from_slice(rest.get(at + 2..at + 2 + size)?);
        rest = rest.get(at + 4 + size..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_put_together_by_their_index() {
        let event = |index: u64, words: &str| {
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{words}\"}},\"index\":{index}}}]}}\n\n"
            )
        };
        let stream = [event(0, "a"), event(1, "x"), event(0, "b")].concat();
        assert_eq!(put_together(stream.as_bytes()), ["ab", "x"]);
        assert!(put_together(b"data: [DONE]\n\n").is_empty());
    }

    #[test]
    fn chunks_are_put_together_and_a_cut_is_seen() {
        assert_eq!(
            joined(b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n").as_deref(),
            Some(&b"abcde"[..])
        );
        assert_eq!(joined(b"3\r\nab"), None);
        assert_eq!(joined(b"zz\r\n"), None);
    }
}
