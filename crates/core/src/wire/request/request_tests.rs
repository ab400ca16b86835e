//! What passes to a model and what does not: truth tables, spellings, and requests of real engines.

use super::*;
use Protocol::*;
use proptest::prelude::*;

fn check(protocol: Protocol, body: &str, in_path: Option<&str>) -> Checked {
    let mut check = RequestCheck::new(protocol, "lab-1", &[]);
    let _ = check.push(body.as_bytes());
    check.finish(in_path)
}

fn verdict(body: &str) -> Result<(), RefusalReason> {
    check(OpenaiChat, body, None).verdict
}

#[test]
fn the_admitted_model_passes() {
    for body in [
        r#"{"model":"lab-1"}"#,
        r#"{"messages":[{"content":"other"}],"model":"lab-\u0031"}"#,
        r#"{"\u006dodel":"lab-1","temperature":0.5,"n":1,"stream":true}"#,
        r#"{"model":"lab-1","tools":[{"type":"function","function":{"name":"type","parameters":{"type":"object"}}}]}"#,
        r#"{"model":"lab-1","models":null}"#,
    ] {
        assert_eq!(verdict(body), Ok(()), "{body}");
    }
    assert!(check(OpenaiChat, r#"{"model":"lab-1","stream":true}"#, None).streamed);
}

#[test]
fn no_other_name_passes() {
    for name in [
        "Lab-1",
        "lab-1 ",
        " lab-1",
        "lab\u{2010}1",
        "l\u{430}b-1",
        "lab-1\\u0000",
        "lab-\u{ff11}",
        "",
        "lab-10",
        "LAB-1",
    ] {
        assert_eq!(
            verdict(&format!("{{\"model\":\"{name}\"}}")),
            Err(RefusalReason::OtherModel),
            "{name:?}"
        );
    }
    let long = format!("{{\"model\":\"lab-1{}\"}}", "x".repeat(5000));
    assert_eq!(verdict(&long), Err(RefusalReason::OtherModel));
    for (body, want) in [
        (
            r#"{"model":"lab-1","model":"other"}"#,
            RefusalReason::DuplicateKey,
        ),
        (
            r#"{"model":"lab-1","\u006dodel":"lab-1"}"#,
            RefusalReason::DuplicateKey,
        ),
        (
            r#"{"model":"lab-1","metadata":{"b":1,"b":2}}"#,
            RefusalReason::DuplicateKey,
        ),
        (
            r#"{"model":"lab-1","Model":"other"}"#,
            RefusalReason::ModelSwitch,
        ),
        (
            r#"{"model":"lab-1","MODEL":"lab-1"}"#,
            RefusalReason::ModelSwitch,
        ),
        (
            r#"{"model":"lab-1","models":["other"]}"#,
            RefusalReason::ModelSwitch,
        ),
        (
            r#"{"model":"lab-1","Fallbacks":[]}"#,
            RefusalReason::ModelSwitch,
        ),
        (
            "{\"model\":\"lab-1\",\"model\u{17f}\":[\"other\"]}",
            RefusalReason::ModelSwitch,
        ),
        (
            r#"{"model":"lab-1","extra_body":{"model":"other"}}"#,
            RefusalReason::ModelSwitch,
        ),
        (r#"{"model":{"model":"lab-1"}}"#, RefusalReason::OtherModel),
        (r#"{"model":["lab-1"]}"#, RefusalReason::OtherModel),
        (r#"{"model":null}"#, RefusalReason::OtherModel),
        (
            r#"{"messages":[{"content":"lab-1"}]}"#,
            RefusalReason::NoModel,
        ),
        (r#"{}"#, RefusalReason::NoModel),
        (r#"[{"model":"lab-1"}]"#, RefusalReason::NotStrictJson),
        (r#""lab-1""#, RefusalReason::NotStrictJson),
        (
            r#"{"model":"lab-1"}{"model":"other"}"#,
            RefusalReason::NotStrictJson,
        ),
        (r#"{"model":"lab-1""#, RefusalReason::NotStrictJson),
        (
            "\u{feff}{\"model\":\"lab-1\"}",
            RefusalReason::NotStrictJson,
        ),
        ("model=lab-1", RefusalReason::NotStrictJson),
        ("", RefusalReason::NotStrictJson),
    ] {
        assert_eq!(verdict(body), Err(want), "{body}");
    }
}

#[test]
fn tools_of_the_provider_do_not_pass() {
    for (protocol, body, good) in [
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"type":"web_search"}]}"#,
            false,
        ),
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"type":"mcp","server_url":"x"}]}"#,
            false,
        ),
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"type":"namespace","tools":[{"type":"function"}]}]}"#,
            true,
        ),
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}"#,
            false,
        ),
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"name":"web_search"}]}"#,
            false,
        ),
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"type":null,"name":"web_search"}]}"#,
            false,
        ),
        (
            OpenaiResponses,
            r#"{"model":"lab-1","tools":[{"type":"namespace","tools":[{}]}]}"#,
            false,
        ),
        (
            OpenaiChat,
            r#"{"model":"lab-1","web_search_options":{}}"#,
            false,
        ),
        (
            AnthropicMessages,
            r#"{"model":"lab-1","tools":[{"name":"x","input_schema":{"type":"object"}}]}"#,
            true,
        ),
        (
            AnthropicMessages,
            r#"{"model":"lab-1","tools":[{"type":"text_editor_20250728"}]}"#,
            true,
        ),
        (
            AnthropicMessages,
            r#"{"model":"lab-1","tools":[{"type":"web_fetch_20250910"}]}"#,
            false,
        ),
        (
            AnthropicMessages,
            r#"{"model":"lab-1","mcp_servers":[{"url":"x"}]}"#,
            false,
        ),
        (
            OpenaiChat,
            r#"{"model":"lab-1","tools":[{"type":7}]}"#,
            false,
        ),
    ] {
        let want = if good {
            Ok(())
        } else {
            Err(RefusalReason::HostedTool)
        };
        assert_eq!(check(protocol, body, None).verdict, want, "{body}");
    }
}

#[test]
fn a_path_names_the_model_and_the_body_may_repeat_it() {
    for (body, in_path, want) in [
        ("{}", "lab-1", Ok(())),
        (r#"{"model":"models/lab-1"}"#, "lab-1", Ok(())),
        (
            r#"{"model":"models/other"}"#,
            "lab-1",
            Err(RefusalReason::OtherModel),
        ),
        ("{}", "Lab-1", Err(RefusalReason::OtherModel)),
        (
            r#"{"tools":[{"functionDeclarations":[{"name":"x"}]}]}"#,
            "lab-1",
            Ok(()),
        ),
        (
            r#"{"tools":[{"googleSearch":{}}]}"#,
            "lab-1",
            Err(RefusalReason::HostedTool),
        ),
    ] {
        assert_eq!(
            check(GeminiGenerate, body, Some(in_path)).verdict,
            want,
            "{body}"
        );
    }
}

proptest! {
    /// Whatever stands around it, a body that passes names the admitted model at its top and
    /// nowhere twice.
    #[test]
    fn nothing_passes_by_accident(body in "\\{\"(model|Model|a)\":\"(lab-1|lab-2)\"(,\"(model|x)\":\"(lab-1|lab-2)\"){0,2}\\}", cut in 1usize..9) {
        let mut request = RequestCheck::new(OpenaiChat, "lab-1", &[]);
        for piece in body.as_bytes().chunks(cut) {
            let _ = request.push(piece);
        }
        let passed = request.finish(None).verdict.is_ok();
        let strict = crate::values::json::parse_strict(body.as_bytes()).ok();
        let want = strict.is_some_and(|value| value == serde_json::json!({"model": "lab-1"}));
        prop_assert_eq!(passed, want, "{}", body);
    }
}
