//! May this request body go to the model? Read as it arrives: one strict JSON object, the admitted
//! model by its exact name, and nothing that is not on the protocol's list. The provider is a network:
//! what it would fetch, look up, keep or run for an engine is a way out of the jail.
//!
//! - `mod.rs` the check, and the keys by which another model could be chosen
//! - `place.rs` what a list is made of, and a document held against it; `media.rs` bytes in a request;
//!   `schema.rs` references in a schema
//! - `openai.rs`, `anthropic.rs`, `gemini.rs` the lists; `recorded/` requests of real engines
//!
//! The bytes that are judged are the bytes that are sent. A key counts by its exact letters after
//! escapes, and none may stand twice, so no reader can see another document in them: a key that
//! only looks like one of the list, to a server that folds case, is not on it.

mod anthropic;
mod gemini;
mod media;
mod openai;
mod place;
mod schema;

use super::Protocol;
use super::calls::RefusalReason;
use super::json_scan::{Fault, Rigour, Scanner, Value};
use place::{Place, Refused, Walk};

/// Keys by which routers and proxies choose another model than the one named.
const SWITCHES: [&str; 10] = [
    "models",
    "fallbacks",
    "fallback",
    "fallback_models",
    "fallback_model",
    "route",
    "extra_body",
    "model_list",
    "deployment",
    "engine",
];
/// Keys that let the provider reach out by itself, outside the list of tools.
const HOSTED: [&str; 2] = ["web_search_options", "mcp_servers"];

pub struct RequestCheck<'a> {
    protocol: Protocol,
    admitted: &'a str,
    scanner: Scanner,
    seen: Look<'a>,
}

struct Look<'a> {
    is_object: bool,
    model: Option<String>,
    streamed: bool,
    wrong: Option<Refused>,
    walk: Walk<'a>,
}

/// What is known of a request whose body has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    pub model: Option<String>,
    pub streamed: bool,
    pub verdict: Result<(), RefusalReason>,
    /// Where in the body stands what was refused, if it stands anywhere: the keys that lead there,
    /// `*` for a position in a list, `?` for a key that could be taken for a path itself.
    pub field: Option<String>,
}

/// The list of a protocol.
fn list_of(protocol: Protocol) -> &'static Place {
    match protocol {
        Protocol::OpenaiChat => &openai::CHAT,
        Protocol::OpenaiResponses => &openai::RESPONSES,
        Protocol::AnthropicMessages => &anthropic::MESSAGES,
        Protocol::GeminiGenerate => &gemini::GENERATE,
    }
}

impl<'a> RequestCheck<'a> {
    /// `further`: fields beyond the list, by the path that a refusal names.
    pub fn new(protocol: Protocol, admitted: &'a str, further: &'a [String]) -> Self {
        Self {
            protocol,
            admitted,
            scanner: Scanner::new(Rigour::Strict),
            seen: Look {
                is_object: false,
                model: None,
                streamed: false,
                wrong: None,
                walk: Walk::new(further),
            },
        }
    }

    /// A fault ends the reading; what comes after need not be looked at.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), RefusalReason> {
        let Self {
            protocol,
            admitted,
            scanner,
            seen,
        } = self;
        scanner
            .push(bytes, &mut |path, value| {
                seen.see(*protocol, admitted, path, &value)
            })
            .map_err(why_of)
    }

    /// `in_path`: the model that the target names, where the protocol does that.
    pub fn finish(mut self, in_path: Option<&str>) -> Checked {
        let Self {
            protocol,
            admitted,
            scanner,
            seen,
        } = &mut self;
        let whole = scanner
            .finish(&mut |path, value| seen.see(*protocol, admitted, path, &value))
            .map_err(why_of);
        let named = in_path
            .map(str::to_owned)
            .or_else(|| self.seen.model.clone());
        let mut field = None;
        let verdict = match (whole, self.seen.wrong, &named) {
            (Err(why), _, _) => Err(why),
            _ if !self.seen.is_object => Err(RefusalReason::NotStrictJson),
            (_, Some(refused), _) => {
                field = Some(refused.field);
                Err(refused.why)
            }
            (_, _, None) => Err(RefusalReason::NoModel),
            (_, _, Some(name)) if name.as_bytes() != self.admitted.as_bytes() => {
                Err(RefusalReason::OtherModel)
            }
            _ => Ok(()),
        };
        Checked {
            model: named,
            streamed: self.seen.streamed,
            verdict,
            field,
        }
    }
}

fn why_of(fault: Fault) -> RefusalReason {
    match fault {
        Fault::DuplicateKey => RefusalReason::DuplicateKey,
        Fault::Syntax | Fault::Depth | Fault::TooManyKeys => RefusalReason::NotStrictJson,
    }
}

impl Look<'_> {
    /// The first thing that is wrong is the one that is told.
    fn wrong(&mut self, why: RefusalReason, path: &str) {
        self.wrong.get_or_insert_with(|| Refused::new(why, path));
    }

    fn see(&mut self, protocol: Protocol, admitted: &str, path: &str, value: &Value<'_>) {
        if path.is_empty() {
            self.is_object |= *value == Value::ObjectBegins;
        }
        let is_top = !path.is_empty() && !path.contains('.');
        let ends = matches!(value, Value::ObjectEnds | Value::ArrayEnds);
        if is_top && !ends && self.top(protocol, admitted, path, value) {
            return;
        }
        if let Err(refused) = self.walk.see(list_of(protocol), path, value) {
            self.wrong.get_or_insert(refused);
        }
    }

    /// Keys of the top that have a meaning of their own. Is the value judged by that?
    fn top(&mut self, protocol: Protocol, admitted: &str, key: &str, value: &Value<'_>) -> bool {
        let is_scalar = !matches!(value, Value::ObjectBegins | Value::ArrayBegins);
        let nothing = *value == Value::Null;
        match folded(key).as_str() {
            "model" if key != "model" => self.wrong(RefusalReason::ModelSwitch, key),
            "model" => self.model_named(protocol, admitted, value),
            "stream" if *value == Value::Bool(true) => self.streamed = true,
            name if SWITCHES.contains(&name) && nothing => return true,
            name if SWITCHES.contains(&name) => self.wrong(RefusalReason::ModelSwitch, key),
            name if HOSTED.contains(&name) && nothing => return true,
            name if HOSTED.contains(&name) => self.wrong(RefusalReason::HostedTool, key),
            _ => return false,
        }
        // What is inside of a container is still walked through.
        key == "model" && is_scalar
    }

    fn model_named(&mut self, protocol: Protocol, admitted: &str, value: &Value<'_>) {
        let Value::Text { text, whole } = value else {
            return self.wrong(RefusalReason::OtherModel, "model");
        };
        // Where the path names the model, the body may only repeat it.
        if protocol == Protocol::GeminiGenerate {
            let name = text.strip_prefix("models/").unwrap_or(text);
            if name != admitted || !whole {
                self.wrong(RefusalReason::OtherModel, "model");
            }
            return;
        }
        self.model = Some((*text).to_owned());
        if !whole {
            self.wrong(RefusalReason::OtherModel, "model");
        }
    }
}

/// Some servers read keys without regard to case, and to letters that fold into ASCII.
fn folded(key: &str) -> String {
    key.chars()
        .map(|c| match c {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

#[cfg(test)]
mod list_tests;
#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
