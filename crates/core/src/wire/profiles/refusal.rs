//! What the body of a refusal tells: which field of the request was not wanted. Servers word it in
//! many ways, and none of the words decides anything but which request is tried next.

use super::switch::{Habits, Switch};

/// Statuses by which servers refuse a field.
fn refuses_fields(status: u16) -> bool {
    matches!(status, 400 | 422)
}

/// The switch that a refusal asks for: it names a field the request had. Of two that are named the
/// one that was sent counts: `use 'max_completion_tokens' instead` names both.
pub fn wanted(status: u16, body: &str, sent: Habits) -> Option<Switch> {
    if !refuses_fields(status) {
        return None;
    }
    let is_sent = |field: &str| match field {
        "store" => sent.store,
        "stream_options" => sent.stream_options,
        other => other == sent.token_field.as_str(),
    };
    Habits::FIELDS
        .iter()
        .filter(|field| is_sent(field) && names(body, field))
        .find_map(|field| Switch::for_refused(field))
}

/// Does a text hold this name as a word of its own?
fn names(text: &str, name: &str) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    text.match_indices(name).any(|(at, _)| {
        !part(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !part(bytes.get(at + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::profiles::switch::TokenField;

    #[test]
    fn a_refusal_names_the_field_that_was_sent() {
        let old = Habits::default();
        let new =
            Habits::of(&["max_completion_tokens", "store", "stream_options"].map(String::from));
        let openai = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#;
        let mistral = r#"{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":1024}]}"#;
        let store = r#"{"error":{"message":"Invalid JSON payload received. Unknown name \"store\": Cannot find field."}}"#;
        for (status, body, sent, want) in [
            (400, openai, old, Some(Switch::MaxCompletionTokens)),
            (422, mistral, new, Some(Switch::MaxTokens)),
            (400, store, new, Some(Switch::NoStore)),
            (400, store, old, None),
            (401, openai, old, None),
            (400, "the max_tokens_limit was reached", old, None),
            (400, "", old, None),
            (400, "prompt is too long", old, None),
        ] {
            assert_eq!(wanted(status, body, sent), want, "{body}");
        }
        // What is asked for changes the next request: no two requests are the same.
        assert_eq!(
            old.with(&[Switch::MaxCompletionTokens]).token_field,
            TokenField::MaxCompletionTokens
        );
        assert_eq!(
            wanted(400, openai, old.with(&[Switch::MaxCompletionTokens])),
            Some(Switch::MaxTokens)
        );
    }
}
