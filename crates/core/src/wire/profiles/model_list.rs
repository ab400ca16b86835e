//! Which models an endpoint says it has. Names of others: shown to a person who chooses, and never
//! taken for admitted.

use serde_json::Value;

use crate::wire::Protocol;

/// So many are shown; an endpoint that has more is searched by its name.
pub const MAX_NAMES: usize = 512;
const MAX_NAME: usize = 200;

/// A smaller number is no size of a model of today, a larger one no size of any.
const SIZES: std::ops::RangeInclusive<u64> = 1024..=100_000_000;
/// How servers call what a model reads at once, and what it writes at most; what is in use before what
/// is possible.
const WINDOWS: [&str; 8] = [
    "/max_model_len",
    "/loaded_context_length",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/inputTokenLimit",
    "/max_input_tokens",
    "/meta/n_ctx",
];
const LIMITS: [&str; 4] = [
    "/top_provider/max_completion_tokens",
    "/max_completion_tokens",
    "/outputTokenLimit",
    "/max_output_tokens",
];

/// One model of a list, with the sizes the endpoint names for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    pub name: String,
    pub context_window: Option<u64>,
    pub output_limit: Option<u64>,
}

impl Listed {
    fn of(name: String, item: &Value) -> Self {
        let size = |places: &[&str]| {
            let found = places.iter().find_map(|at| item.pointer(at)?.as_u64());
            found.filter(|size| SIZES.contains(size))
        };
        let context_window = size(&WINDOWS);
        let fits = |limit: &u64| context_window.is_none_or(|window| *limit <= window);
        Self {
            name,
            output_limit: size(&LIMITS).filter(fits),
            context_window,
        }
    }
}

/// The target of the list below a base.
pub fn target(protocol: Protocol, base: &str) -> String {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => format!("{base}/models"),
        Protocol::AnthropicMessages if base.ends_with("/v1") => {
            format!("{base}/models?limit=1000")
        }
        Protocol::AnthropicMessages => format!("{base}/v1/models?limit=1000"),
        Protocol::GeminiGenerate if base.is_empty() => "/v1beta/models?pageSize=1000".into(),
        Protocol::GeminiGenerate => format!("{base}/models?pageSize=1000"),
    }
}

/// The models of a list, named as requests would name them; `None` where this is no list. What is no plain
/// name is left out: nobody could admit it.
pub fn read(protocol: Protocol, body: &[u8]) -> Option<Vec<Listed>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    // Google's own list has a field and a prefix of its own; Ollama's old list, too.
    let items = ["data", "models"]
        .iter()
        .find_map(|key| value[key].as_array())
        .or_else(|| value.as_array())?;
    let name_of = |item: &Value| {
        let id = match item {
            Value::String(text) => text.as_str(),
            other => other["id"].as_str().or_else(|| other["name"].as_str())?,
        };
        let id = match protocol {
            Protocol::GeminiGenerate => id.strip_prefix("models/").unwrap_or(id),
            _ => id,
        };
        is_plain(id).then(|| id.to_owned())
    };
    let mut found: Vec<Listed> = Vec::new();
    for (name, item) in items.iter().filter_map(|item| Some((name_of(item)?, item))) {
        if found.len() < MAX_NAMES && !found.iter().any(|have| have.name == name) {
            found.push(Listed::of(name, item));
        }
    }
    Some(found)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(protocol: Protocol, body: &[u8]) -> Option<Vec<String>> {
        let listed = read(protocol, body)?.into_iter();
        Some(listed.map(|listed| listed.name).collect())
    }

    #[test]
    fn sizes_are_taken_where_an_endpoint_names_them_and_they_can_be_true() {
        for (item, want) in [
            (r#"{"id":"m"}"#, (None, None)),
            (r#"{"id":"m","max_model_len":32768}"#, (Some(32_768), None)),
            (
                r#"{"id":"m","context_length":200000,"top_provider":{"max_completion_tokens":64000}}"#,
                (Some(200_000), Some(64_000)),
            ),
            (
                r#"{"name":"models/m","inputTokenLimit":1048576,"outputTokenLimit":65536}"#,
                (Some(1_048_576), Some(65_536)),
            ),
            // What is loaded counts, not what could be.
            (
                r#"{"id":"m","loaded_context_length":4096,"max_context_length":131072}"#,
                (Some(4096), None),
            ),
            (r#"{"id":"m","max_model_len":"32768"}"#, (None, None)),
            (r#"{"id":"m","max_model_len":-1}"#, (None, None)),
            (r#"{"id":"m","max_model_len":7}"#, (None, None)),
            (
                r#"{"id":"m","max_model_len":9007199254740993}"#,
                (None, None),
            ),
            (
                r#"{"id":"m","context_length":4096,"max_output_tokens":8192}"#,
                (Some(4096), None),
            ),
        ] {
            let body = format!("{{\"data\":[{item}]}}");
            let listed = read(Protocol::GeminiGenerate, body.as_bytes()).unwrap();
            let found = (listed[0].context_window, listed[0].output_limit);
            assert_eq!((listed[0].name.as_str(), found), ("m", want), "{item}");
        }
    }

    #[test]
    fn lists_of_each_kind_are_read() {
        let chat = Protocol::OpenaiChat;
        for (protocol, body, want) in [
            (
                chat,
                r#"{"object":"list","data":[{"id":"gpt-5.2","object":"model"},{"id":"gpt-5.2"},{"id":"o4-mini-2025-04-16"}]}"#,
                vec!["gpt-5.2", "o4-mini-2025-04-16"],
            ),
            (
                chat,
                r#"{"data":[{"id":"anthropic/claude-sonnet-4.5","name":"Anthropic: Claude"},{"id":"qwen/qwen3:free"}]}"#,
                vec!["anthropic/claude-sonnet-4.5", "qwen/qwen3:free"],
            ),
            (
                Protocol::AnthropicMessages,
                r#"{"data":[{"type":"model","id":"claude-sonnet-4-5-20250929","display_name":"Claude Sonnet 4.5"}],"has_more":false}"#,
                vec!["claude-sonnet-4-5-20250929"],
            ),
            (
                Protocol::GeminiGenerate,
                r#"{"models":[{"name":"models/gemini-2.5-pro","version":"2.5"}]}"#,
                vec!["gemini-2.5-pro"],
            ),
            (
                chat,
                r#"{"data":[{"id":"with space"},{"id":""},{"id":"\u001b[2J"},{"no":1},{"id":7},{"id":"good"}]}"#,
                vec!["good"],
            ),
            (chat, r#"{"object":"list","data":[]}"#, vec![]),
        ] {
            assert_eq!(names(protocol, body.as_bytes()).unwrap(), want, "{body}");
        }
        for no_list in ["<html>", "{}", "{\"data\": 7}", "", "\"x\""] {
            assert_eq!(names(chat, no_list.as_bytes()), None, "{no_list}");
        }
    }

    #[test]
    fn no_list_is_longer_than_a_screen_can_bear() {
        let items: Vec<Value> = (0..2000)
            .map(|n| serde_json::json!({"id": format!("m{n}")}))
            .collect();
        let body = serde_json::json!({"data": items}).to_string();
        assert_eq!(
            names(Protocol::OpenaiChat, body.as_bytes()).unwrap().len(),
            MAX_NAMES
        );
    }

    #[test]
    fn the_list_lies_beside_what_is_asked() {
        for (protocol, base, want) in [
            (Protocol::OpenaiChat, "/v1", "/v1/models"),
            (Protocol::AnthropicMessages, "", "/v1/models?limit=1000"),
            (Protocol::AnthropicMessages, "/v1", "/v1/models?limit=1000"),
            (Protocol::GeminiGenerate, "", "/v1beta/models?pageSize=1000"),
            (
                Protocol::GeminiGenerate,
                "/v1beta",
                "/v1beta/models?pageSize=1000",
            ),
        ] {
            assert_eq!(target(protocol, base), want);
        }
    }
}
