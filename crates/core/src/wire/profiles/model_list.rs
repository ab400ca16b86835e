//! Which models an endpoint says it has. Names of others: shown to a person who chooses, and never
//! taken for admitted.

use serde_json::Value;

use crate::wire::Protocol;

/// So many are shown; an endpoint that has more is searched by its name.
pub const MAX_NAMES: usize = 512;
const MAX_NAME: usize = 200;

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

/// The names of a list, as requests would use them; `None` where this is no list. What is no plain
/// name is left out: nobody could admit it.
pub fn names(protocol: Protocol, body: &[u8]) -> Option<Vec<String>> {
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
    let mut found: Vec<String> = Vec::new();
    for name in items.iter().filter_map(name_of) {
        if found.len() < MAX_NAMES && !found.contains(&name) {
            found.push(name);
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
