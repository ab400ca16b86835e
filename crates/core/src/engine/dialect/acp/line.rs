//! One line of the conversation, read and written: who it is for, what it is about. Nothing here decides.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longer ids are no ids.
const MAX_ID: usize = 256;

/// What a request is answered under.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Number(serde_json::Number),
    Text(String),
    Null,
}

impl Id {
    pub fn is(&self, number: u64) -> bool {
        matches!(self, Self::Number(own) if own.as_u64() == Some(number))
    }
}

/// The beginning of a message: as much of it as stands in a line, also in one that was cut.
#[derive(Debug, Default)]
pub struct Head {
    pub id: Option<Id>,
    pub method: Option<String>,
    pub answers: bool,
    /// The line is one JSON object, whole.
    pub is_whole: bool,
    /// A key that counts came twice: two readers could read two messages.
    twice: bool,
}

/// What a line is.
#[derive(Debug)]
pub enum Message {
    Request(Id, String),
    Notification(String),
    Answer(Id),
}

impl Head {
    pub fn of(line: &[u8]) -> Self {
        let mut head = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(line);
        let read = Reader(&mut head).deserialize(&mut reader);
        head.is_whole = read.is_ok() && reader.end().is_ok();
        head
    }

    pub fn message(self) -> Option<Message> {
        if self.twice {
            return None;
        }
        let id = match self.id {
            Some(Id::Text(text)) if text.len() > MAX_ID => return None,
            id => id,
        };
        match (id, self.method, self.answers) {
            (Some(id), Some(method), false) => Some(Message::Request(id, method)),
            (None, Some(method), false) => Some(Message::Notification(method)),
            (Some(id), None, true) => Some(Message::Answer(id)),
            _ => None,
        }
    }
}

struct Reader<'h>(&'h mut Head);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let head = self.0;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "id" => {
                    head.twice |= head.id.is_some();
                    head.id = Some(map.next_value()?);
                }
                "method" => {
                    head.twice |= head.method.is_some();
                    head.method = Some(map.next_value()?);
                }
                "result" | "error" => {
                    head.twice |= head.answers;
                    head.answers = true;
                    map.next_value::<IgnoredAny>()?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A message of ours, with its line end.
fn line(message: &Value) -> Vec<u8> {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

pub fn request(id: u64, method: &str, params: Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

pub fn answer(id: &Id, result: Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub fn refusal(id: &Id, code: i32, message: &str) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

/// An answer to us, as far as it is of use.
#[derive(Deserialize)]
pub struct Answer<R> {
    // No bound of its own: what `R` lacks it has a default for.
    pub result: Option<R>,
    pub error: Option<Failure>,
}

#[derive(Deserialize)]
pub struct Failure {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Value,
}

impl Failure {
    /// Some put a general word in the message, and what happened beside it.
    pub fn words(&self) -> String {
        let more = match &self.data {
            Value::String(text) => Some(text.as_str()),
            data => ["details", "message", "error"]
                .iter()
                .find_map(|key| data.get(key)?.as_str()),
        };
        match more {
            Some(more) if more != self.message => format!("{}: {more}", self.message),
            _ => self.message.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    #[serde(default)]
    pub protocol_version: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub session_id: String,
    #[serde(default)]
    pub modes: Option<Modes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    #[serde(default)]
    pub available_modes: Vec<Mode>,
}

#[derive(Deserialize)]
pub struct Mode {
    pub id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompted {
    pub stop_reason: String,
    #[serde(default)]
    pub usage: Value,
}

#[derive(Deserialize)]
pub struct Params<P> {
    pub params: P,
}

#[derive(Deserialize)]
pub struct Updated {
    pub update: Value,
}

/// A question whether something may be done.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    #[serde(default)]
    pub tool_call: ToolCall,
    #[serde(default)]
    pub options: Vec<Choice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    pub option_id: String,
    #[serde(default)]
    pub kind: String,
}

/// A call of a tool, or what changed about one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolCall {
    pub tool_call_id: String,
    pub title: Option<String>,
    pub kind: Option<String>,
    pub status: Option<String>,
    pub locations: Option<Vec<Value>>,
    pub content: Option<Vec<Value>>,
    pub raw_input: Option<Value>,
}

/// Most paths looked at of one call.
pub const MAX_PATHS: usize = 256;

impl ToolCall {
    /// Every file it says it is about: where it is, what it would change, what it was asked for. `None`
    /// where there are too many to look at.
    pub fn paths(&self) -> Option<Vec<String>> {
        const KEYS: [&str; 8] = [
            "path",
            "filePath",
            "file_path",
            "filepath",
            "absolute_path",
            "new_path",
            "newPath",
            "file",
        ];
        let mut found: Vec<String> = Vec::new();
        let mut add = |path: Option<&Value>| {
            if let Some(path) = path.and_then(Value::as_str)
                && !found.iter().any(|have| have == path)
            {
                found.push(path.to_owned());
            }
            found.len() <= MAX_PATHS
        };
        let mut fine = true;
        for place in self.locations.iter().flatten() {
            fine = fine && add(place.get("path"));
        }
        for part in self.content.iter().flatten() {
            if part.get("type").and_then(Value::as_str) == Some("diff") {
                fine = fine && add(part.get("path"));
            }
        }
        if let Some(input) = &self.raw_input {
            for key in KEYS {
                fine = fine && add(input.get(key));
            }
            // Codex names its changes by file.
            for (path, _) in input
                .get("changes")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                fine = fine && add(Some(&Value::String(path.clone())));
            }
        }
        fine.then_some(found)
    }
}
