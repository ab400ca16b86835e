//! The list: what is refused by its name, other spellings of it, and requests of real engines.

use super::*;
use Protocol::*;
use proptest::prelude::*;
use std::sync::LazyLock;

fn check(protocol: Protocol, body: &str, in_path: Option<&str>) -> Checked {
    let mut check = RequestCheck::new(protocol, "lab-1", &[]);
    let _ = check.push(body.as_bytes());
    check.finish(in_path)
}

fn refused(protocol: Protocol, body: &str) -> (Result<(), RefusalReason>, Option<String>) {
    let in_path = (protocol == GeminiGenerate).then_some("lab-1");
    let checked = check(protocol, body, in_path);
    (checked.verdict, checked.field)
}

/// A body with the admitted model and something more at its top.
fn with(protocol: Protocol, more: &str) -> String {
    match protocol {
        GeminiGenerate => format!("{{{more}}}"),
        _ => format!("{{\"model\":\"lab-1\",{more}}}"),
    }
}

const RECORDED: [&str; 11] = [
    include_str!("recorded/codex-openai-responses.json"),
    include_str!("recorded/gemini-gemini-generate.json"),
    include_str!("recorded/opencode-anthropic-messages.json"),
    include_str!("recorded/opencode-gemini-generate.json"),
    include_str!("recorded/opencode-openai-chat.json"),
    include_str!("recorded/opencode-openai-responses.json"),
    include_str!("recorded/pi-anthropic-messages.json"),
    include_str!("recorded/pi-gemini-generate.json"),
    include_str!("recorded/pi-openai-chat.json"),
    include_str!("recorded/pi-openai-responses.json"),
    include_str!("recorded/qwen-openai-chat.json"),
];

/// Requests of real engines, with a text of the same length wherever one was.
static REAL: LazyLock<Vec<(String, Protocol, serde_json::Value)>> = LazyLock::new(|| {
    fn words(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                if let Some((head, count)) = text.clone().rsplit_once('~')
                    && let Ok(count) = count.parse()
                {
                    *text = format!("{head}{}", "x".repeat(count));
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(words),
            serde_json::Value::Object(map) => map.values_mut().for_each(words),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for text in RECORDED {
        let file: serde_json::Value = serde_json::from_str(text).unwrap();
        let protocol = file["protocol"].as_str().unwrap().parse().unwrap();
        for request in file["requests"].as_array().unwrap() {
            let mut body = request.clone();
            words(&mut body);
            all.push((file["engine"].to_string(), protocol, body));
        }
    }
    all
});

#[test]
fn requests_of_real_engines_pass() {
    let all = REAL.clone();
    assert!(all.len() >= RECORDED.len());
    for (engine, protocol, body) in all {
        assert_eq!(
            refused(protocol, &body.to_string()),
            (Ok(()), None),
            "{engine} {protocol:?}"
        );
    }
}

/// What a provider would fetch, look up, keep or run, each by the field that is named.
const WAYS_OUT: &str = include_str!("ways_out.tsv");

#[test]
fn what_the_provider_would_fetch_keep_or_run_is_refused_by_name() {
    for row in WAYS_OUT.lines() {
        let [protocol, field, more] = row.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let protocol = protocol.parse().unwrap();
        let want = (Err(RefusalReason::RequestField), Some(field.to_owned()));
        assert_eq!(refused(protocol, &with(protocol, more)), want, "{more}");
    }
}

/// Spellings under which another reader could know a key: case, letters that fold, and ends that
/// some readers cut off.
fn spellings(key: &str) -> Vec<String> {
    let capital = key[..1].to_uppercase() + &key[1..];
    vec![
        key.to_uppercase(),
        capital,
        format!("{key}\\u0000"),
        format!("{key} "),
        format!("\\ufeff{key}"),
        key.replace('s', "\u{17f}").replace('e', "\u{435}"),
        key.chars()
            .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c))
            .collect(),
    ]
}

#[test]
fn no_other_spelling_of_a_key_passes() {
    for key in ["tools", "messages", "store", "service_tier", "stream"] {
        for other in spellings(key) {
            let body = format!("{{\"model\":\"lab-1\",\"{other}\":null}}");
            let (verdict, field) = refused(OpenaiChat, &body);
            assert_eq!(verdict, Err(RefusalReason::RequestField), "{body}");
            assert!(field.is_some(), "{body}");
        }
    }
    for key in ["type", "image_url", "text"] {
        for other in spellings(key) {
            for (protocol, body) in [
                (
                    OpenaiChat,
                    format!(
                        r#""messages":[{{"content":[{{"type":"text","{other}":"web_search"}}]}}]"#
                    ),
                ),
                (
                    OpenaiChat,
                    format!(r#""tools":[{{"type":"function","{other}":"web_search"}}]"#),
                ),
                (
                    OpenaiResponses,
                    format!(r#""tools":[{{"type":"function","{other}":"web_search"}}]"#),
                ),
                (
                    AnthropicMessages,
                    format!(r#""tools":[{{"name":"x","{other}":"web_search_20250305"}}]"#),
                ),
            ] {
                let (verdict, field) = refused(protocol, &with(protocol, &body));
                assert_eq!(verdict, Err(RefusalReason::RequestField), "{body}");
                assert!(field.is_some(), "{body}");
            }
        }
    }
    // An escape is only another way to write the same letters.
    for (body, want) in [
        (
            r#"{"model":"lab-1","t\u006fols":[{"t\u0079pe":"web_\u0073earch"}]}"#,
            RefusalReason::HostedTool,
        ),
        (
            r#"{"model":"lab-1","\u0074ools":[],"tools":[]}"#,
            RefusalReason::DuplicateKey,
        ),
        (
            r#"{"model":"lab-1","tools":[{"type":"function","t\u0079pe":"mcp"}]}"#,
            RefusalReason::DuplicateKey,
        ),
        (
            r#"{"model":"lab-1","plug\u0069ns":[]}"#,
            RefusalReason::RequestField,
        ),
    ] {
        assert_eq!(refused(OpenaiChat, body).0, Err(want), "{body}");
    }
    assert_eq!(
        refused(
            OpenaiChat,
            r#"{"model":"lab-1","t\u006fols":[{"t\u0079pe":"function"}]}"#
        )
        .0,
        Ok(())
    );
}

#[test]
fn kinds_of_tools_are_exact() {
    for (protocol, kind) in [
        (AnthropicMessages, "bash_code_execution_20250825"),
        (AnthropicMessages, "text_editor_code_execution_20250825"),
        (AnthropicMessages, "computer_use"),
        (AnthropicMessages, "custom "),
        (AnthropicMessages, "Custom"),
        (OpenaiResponses, "code_interpreter"),
        (OpenaiResponses, "shell"),
        (OpenaiResponses, "Function"),
        (OpenaiResponses, "function\\u0000"),
        (OpenaiChat, "retrieval"),
        (OpenaiChat, "builtin_function"),
    ] {
        let body = with(protocol, &format!(r#""tools":[{{"type":"{kind}"}}]"#));
        let (verdict, field) = refused(protocol, &body);
        assert_eq!(verdict, Err(RefusalReason::HostedTool), "{body}");
        assert!(field.is_some_and(|field| field.starts_with("tools.*.type")));
    }
    for key in [
        "googleSearch",
        "codeExecution",
        "urlContext",
        "google_search",
        "FunctionDeclarations",
    ] {
        let body = with(GeminiGenerate, &format!(r#""tools":[{{"{key}":{{}}}}]"#));
        let want = (
            Err(RefusalReason::HostedTool),
            Some(format!("tools.*.{key}")),
        );
        assert_eq!(refused(GeminiGenerate, &body), want, "{body}");
    }
}

#[test]
fn values_that_switch_something_off_pass() {
    for (protocol, more) in [
        (
            OpenaiChat,
            r#""store":false,"background":false,"service_tier":"auto""#,
        ),
        (
            OpenaiChat,
            r#""service_tier":"default","tools":null,"store":null"#,
        ),
        (
            OpenaiResponses,
            r#""store":false,"previous_response_id":null,"conversation":null,"prompt":null"#,
        ),
        (
            AnthropicMessages,
            r#""service_tier":"standard_only","container":null"#,
        ),
        (GeminiGenerate, r#""cachedContent":null"#),
        (AnthropicMessages, r#""metadata":{"user_id":"u"}"#),
        (
            OpenaiChat,
            r#""metadata":{"sessionId":"s","promptId":"p","channel":"c","user_id":7}"#,
        ),
        (
            OpenaiResponses,
            r#""metadata":{},"client_metadata":{"turn_id":"t"}"#,
        ),
        (
            OpenaiResponses,
            r#""input":[{"role":"user","content":[]},{"type":"message"},{"content":"x","id":"i","type":null,"role":"user"}]"#,
        ),
    ] {
        assert_eq!(
            refused(protocol, &with(protocol, more)),
            (Ok(()), None),
            "{more}"
        );
    }
}

/// What agents and their libraries send by themselves, and what nobody has to fetch.
#[test]
fn ordinary_fields_pass() {
    for (protocol, more) in [
        (
            OpenaiChat,
            r##""n":1,"audio":null,"usage":{"include":true}"##,
        ),
        (
            OpenaiChat,
            r##""messages":[{"role":"assistant","content":"x","audio":null,"annotations":[],"refusal":null,"function_call":null,"tool_calls":null,"provider_specific_fields":null},{"annotations":null}]"##,
        ),
        (
            OpenaiChat,
            r##""messages":[{"role":"assistant","content":"x","provider_specific_fields":{"refusal":null,"reasoning_content":"x","annotations":[]}}]"##,
        ),
        (
            OpenaiChat,
            r##""chat_template_kwargs":{"enable_thinking":false,"thinking":true,"reasoning_effort":"high","preserve_thinking":true,"clear_thinking":false}"##,
        ),
        (
            OpenaiChat,
            r##""tools":[{"type":"function","function":{"name":"x","parameters":{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"$ref":{"type":"string"},"$schema":{"type":"string"}},"required":["$ref"],"description":"see https://a.example"}}}}}]"##,
        ),
        (
            OpenaiChat,
            r##""prompt_cache_options":{"mode":"implicit"},"reasoning_format":"parsed","reasoning_split":true,"min_tokens":1,"top_a":0.1,"cache_prompt":true,"do_sample":true"##,
        ),
        (
            OpenaiResponses,
            r##""store":false,"include":["reasoning.encrypted_content"],"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"x"}],"encrypted_content":"gAAA"},{"type":"function_call","id":"fc_1","call_id":"c","name":"x","arguments":"{}","caller":{"type":"direct"}}]"##,
        ),
        (
            OpenaiResponses,
            r##""context_management":[{"type":"compaction","compact_threshold":9}],"tools":[{"type":"function","name":"x","allowed_callers":["direct"],"output_schema":{"$ref":"#"}}]"##,
        ),
        (
            AnthropicMessages,
            r##""tools":[{"name":"x","input_schema":{"type":"object"},"allowed_callers":["direct"]}],"speed":"standard","output_config":{"task_budget":{"type":"tokens","total":9}}"##,
        ),
        (
            AnthropicMessages,
            r##""messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"see https://a.example, it says \"x\""}},{"type":"document","source":{"data":"any words","type":"text"}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"}]}},{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"x"}]}]}]"##,
        ),
        (
            AnthropicMessages,
            r##""context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":9},"instructions":null,"pause_after_compaction":false}]}"##,
        ),
        (
            GeminiGenerate,
            r##""generationConfig":{"candidateCount":1,"responseSchema":{"$ref":"#/a"}},"contents":[{"parts":[{"functionResponse":{"name":"x","response":{"$ref":"https://a.example"}}}]}]"##,
        ),
    ] {
        assert_eq!(
            refused(protocol, &with(protocol, more)),
            (Ok(()), None),
            "{more}"
        );
    }
}

#[test]
fn a_record_may_allow_further_fields_and_never_another_model() {
    let further: Vec<String> = [
        "enable_search",
        "messages.*.audio",
        "previous_response_id",
        "models",
        "tools.*.type",
        "messages.*.content.*.image_url.url",
        "functions.*.parameters.$ref",
    ]
    .map(str::to_owned)
    .to_vec();
    for (more, want) in [
        (r#""enable_search":{"any":["thing"]}"#, Ok(())),
        (r#""messages":[{"audio":{"id":"x"},"content":"x"}]"#, Ok(())),
        (r#""previous_response_id":"r""#, Ok(())),
        (
            r#""functions":[{"parameters":{"$ref":"https://a.example"}}]"#,
            Ok(()),
        ),
        (r#""Enable_search":true"#, Err(RefusalReason::RequestField)),
        (
            r#""metadata":{"enable_search":[]}"#,
            Err(RefusalReason::RequestField),
        ),
        (r#""models":["other"]"#, Err(RefusalReason::ModelSwitch)),
        (
            r#""tools":[{"type":"web_search"}]"#,
            Err(RefusalReason::HostedTool),
        ),
        (
            r#""messages":[{"content":[{"image_url":{"url":"https://a.example"}}]}]"#,
            Err(RefusalReason::RequestField),
        ),
    ] {
        let body = with(OpenaiChat, more);
        let mut check = RequestCheck::new(OpenaiChat, "lab-1", &further);
        let _ = check.push(body.as_bytes());
        assert_eq!(check.finish(None).verdict, want, "{more}");
    }
}

/// Places that hold the engine's own words.
const FREE: [&str; 8] = [
    "parameters",
    "input_schema",
    "parametersJsonSchema",
    "args",
    "response",
    "format",
    "schema",
    "input",
];

/// Puts one more key into the so-manieth object that is not free.
fn put(
    value: &mut serde_json::Value,
    key: &str,
    more: &serde_json::Value,
    left: &mut usize,
) -> bool {
    match value {
        serde_json::Value::Array(items) => items.iter_mut().any(|item| put(item, key, more, left)),
        serde_json::Value::Object(map) => {
            if *left == 0 {
                return map.insert(key.to_owned(), more.clone()).is_none();
            }
            *left -= 1;
            map.iter_mut()
                .filter(|(name, inner)| {
                    !FREE.contains(&name.as_str()) || (name.as_str() == "input" && inner.is_array())
                })
                .any(|(_, inner)| put(inner, key, more, left))
        }
        _ => false,
    }
}

proptest! {
    /// Wherever a key that is on no list is put into a request of a real engine, it does not pass.
    #[test]
    fn no_place_takes_a_key_that_is_on_no_list(which in 0usize..100, place in 0usize..80, key in "[A-Z][a-z_]{0,8}|[a-z]{1,6}_uri|x-[a-z]{1,5}|[a-z]\\.[a-z]", cut in 1usize..40) {
        let all = &*REAL;
        let (_, protocol, mut body) = all[which % all.len()].clone();
        let mut left = place;
        prop_assume!(put(&mut body, &key, &serde_json::json!({"url": ["https://a.example"]}), &mut left));
        let text = body.to_string();
        let mut check = RequestCheck::new(protocol, "lab-1", &[]);
        for piece in text.as_bytes().chunks(cut * 97) {
            let _ = check.push(piece);
        }
        let checked = check.finish((protocol == GeminiGenerate).then_some("lab-1"));
        prop_assert!(checked.verdict.is_err(), "{}", text);
        prop_assert!(checked.field.is_some(), "{:?}", checked);
    }
}
