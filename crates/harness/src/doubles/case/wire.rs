//! How the double asks its model: streamed chat completions, with the key of the provider's own variable, and two
//! more tries where the server is busy or broken.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use cto_core::wire::http::{BodyReader, response_head};
use serde_json::{Value, json};

use super::neighbourhood::Surroundings;
use super::{dir_of, read_json};

/// Further tries of a request.
const TRIES: u32 = 2;

pub struct Model {
    name: String,
    /// Where the provider is, if its settings name it.
    base: Option<(String, String)>,
    /// Whom it asks instead of whoever that is.
    proxy: Option<String>,
    key: String,
}

/// One answer.
#[derive(Default)]
pub struct Turn {
    pub text: String,
    /// Id, name and arguments.
    pub calls: Vec<(String, String, String)>,
}

impl Turn {
    pub fn message(&self) -> Value {
        let call = |(id, name, arguments): &(String, String, String)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let calls: Vec<Value> = self.calls.iter().map(call).collect();
        json!({"role": "assistant", "content": self.text, "tool_calls": calls})
    }
}

impl Model {
    pub fn find(provider: &str, model: &str, around: &Surroundings) -> io::Result<Self> {
        let settings =
            read_json(&dir_of("PI_CODING_AGENT_DIR")?.join("models.json")).unwrap_or_default();
        let url = settings["providers"][provider]["baseUrl"].as_str();
        let base = url.and_then(|url| url.strip_prefix("http://")).map(|rest| {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            (authority.to_owned(), path.to_owned())
        });
        let variable = format!("{}_API_KEY", provider.to_uppercase());
        let host = |(authority, _): &(String, String)| {
            let host = authority
                .rsplit_once(':')
                .map_or(authority.as_str(), |(host, _)| host);
            around.proxy(host)
        };
        Ok(Self {
            name: model.to_owned(),
            proxy: base.as_ref().and_then(host),
            base,
            key: around.variable(&variable).unwrap_or_default(),
        })
    }

    /// An error is all that is left of a server that was not reached, refused, or broke off.
    pub fn ask(&self, messages: &[Value]) -> io::Result<Turn> {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
        let tools: Vec<Value> = ["read", "write", "edit", "bash"].map(tool).into();
        let body = json!({
            "model": self.name, "messages": messages, "tools": tools, "stream": true,
            "stream_options": {"include_usage": true}, "max_completion_tokens": 4096,
        })
        .to_string();
        let mut tried = 0;
        loop {
            let (status, answer) = self.post(&body)?;
            match status {
                200 => return read_stream(&answer),
                429 | 500.. if tried < TRIES => {
                    tried += 1;
                    thread::sleep(Duration::from_millis(20));
                }
                _ => return Err(io::Error::other(format!("status {status}"))),
            }
        }
    }

    fn post(&self, body: &str) -> io::Result<(u16, Vec<u8>)> {
        let (authority, path) = self
            .base
            .as_ref()
            .ok_or_else(|| io::Error::other("the provider is not reached from here"))?;
        let (peer, before) = match &self.proxy {
            Some(proxy) => (proxy, format!("http://{authority}")),
            None => (authority, String::new()),
        };
        let mut socket = TcpStream::connect(peer)?;
        write!(
            socket,
            "POST {before}/{path}/chat/completions HTTP/1.1\r\nhost: {authority}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.key,
            body.len(),
        )?;
        let (mut got, mut answer, mut buffer) = (Vec::new(), Vec::new(), [0u8; 16 * 1024]);
        let mut reader: Option<(u16, BodyReader)> = None;
        loop {
            if reader.is_none()
                && let Some((head, used)) = response_head(&got).map_err(io::Error::other)?
            {
                got.drain(..used);
                reader = Some((head.status, BodyReader::new(head.body)));
            }
            if let Some((status, reader)) = &mut reader {
                let used = reader
                    .push(&got, &mut |bytes| answer.extend_from_slice(bytes))
                    .map_err(io::Error::other)?;
                got.drain(..used);
                if reader.is_done() {
                    return Ok((*status, answer));
                }
            }
            let count = socket.read(&mut buffer)?;
            if count == 0 {
                return Err(io::Error::other("the answer broke off"));
            }
            got.extend_from_slice(&buffer[..count]);
        }
    }
}

/// What a stream says, put together: text and calls of tools; what was only thought does not count.
fn read_stream(answer: &[u8]) -> io::Result<Turn> {
    let mut turn = Turn::default();
    let mut calls: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    let lines = answer.split(|byte| *byte == b'\n');
    for line in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
        let line = line.trim_ascii();
        if line == b"[DONE]" {
            break;
        }
        let event: Value = serde_json::from_slice(line)?;
        let delta = &event["choices"][0]["delta"];
        turn.text
            .push_str(delta["content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let entry = calls
                .entry(call["index"].as_u64().unwrap_or(0))
                .or_default();
            entry.0.push_str(call["id"].as_str().unwrap_or_default());
            entry
                .1
                .push_str(call["function"]["name"].as_str().unwrap_or_default());
            entry
                .2
                .push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
    }
    turn.calls = calls.into_values().collect();
    Ok(turn)
}
