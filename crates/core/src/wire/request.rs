//! May this request body go to the model? Read as it arrives: one strict JSON object, the admitted
//! model by its exact name, no key by which another could be chosen, no tool that the provider
//! would run.

use super::Protocol;
use super::calls::RefusalReason;
use super::json_scan::{Fault, Rigour, Scanner, Value};

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
    seen: Look,
}

#[derive(Default)]
struct Look {
    is_object: bool,
    model: Option<String>,
    streamed: bool,
    wrong: Option<RefusalReason>,
}

/// What is known of a request whose body has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    pub model: Option<String>,
    pub streamed: bool,
    pub verdict: Result<(), RefusalReason>,
}

impl<'a> RequestCheck<'a> {
    pub fn new(protocol: Protocol, admitted: &'a str) -> Self {
        Self {
            protocol,
            admitted,
            scanner: Scanner::new(Rigour::Strict),
            seen: Look::default(),
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
        let verdict = match (&whole, self.seen.wrong, &named) {
            (Err(why), _, _) => Err(*why),
            _ if !self.seen.is_object => Err(RefusalReason::NotStrictJson),
            (_, Some(why), _) => Err(why),
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
        }
    }
}

fn why_of(fault: Fault) -> RefusalReason {
    match fault {
        Fault::DuplicateKey => RefusalReason::DuplicateKey,
        Fault::Syntax | Fault::Depth | Fault::TooManyKeys => RefusalReason::NotStrictJson,
    }
}

impl Look {
    fn wrong(&mut self, why: RefusalReason) {
        self.wrong = self.wrong.or(Some(why));
    }

    fn see(&mut self, protocol: Protocol, admitted: &str, path: &str, value: &Value<'_>) {
        if path.is_empty() {
            self.is_object |= *value == Value::ObjectBegins;
            return;
        }
        if !path.contains('.') {
            return self.top(protocol, admitted, path, value);
        }
        if !tool_is_the_engines(protocol, path, value) {
            self.wrong(RefusalReason::HostedTool);
        }
    }

    fn top(&mut self, protocol: Protocol, admitted: &str, key: &str, value: &Value<'_>) {
        if matches!(value, Value::ObjectEnds | Value::ArrayEnds) {
            return;
        }
        match folded(key).as_str() {
            "model" if key != "model" => self.wrong(RefusalReason::ModelSwitch),
            "model" => self.model_named(protocol, admitted, value),
            "stream" if *value == Value::Bool(true) => self.streamed = true,
            name if SWITCHES.contains(&name) && *value != Value::Null => {
                self.wrong(RefusalReason::ModelSwitch)
            }
            name if HOSTED.contains(&name) && *value != Value::Null => {
                self.wrong(RefusalReason::HostedTool)
            }
            _ => {}
        }
    }

    fn model_named(&mut self, protocol: Protocol, admitted: &str, value: &Value<'_>) {
        let Value::Text { text, whole } = value else {
            return self.wrong(RefusalReason::OtherModel);
        };
        // Where the path names the model, the body may only repeat it.
        if protocol == Protocol::GeminiGenerate {
            let name = text.strip_prefix("models/").unwrap_or(text);
            if name != admitted || !whole {
                self.wrong(RefusalReason::OtherModel);
            }
            return;
        }
        self.model = Some((*text).to_owned());
        if !whole {
            self.wrong(RefusalReason::OtherModel);
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

/// Tools of these kinds run where the engine is. Any other kind the provider would run, with a
/// network of its own.
fn tool_is_the_engines(protocol: Protocol, path: &str, value: &Value<'_>) -> bool {
    match (protocol, path) {
        (Protocol::GeminiGenerate, path) => match path.strip_prefix("tools.*.") {
            Some(key) if !key.contains('.') => {
                matches!(key, "functionDeclarations" | "function_declarations")
            }
            _ => true,
        },
        (_, "tools.*.type" | "tools.*.tools.*.type") => match value {
            Value::Text { text, whole: true } => match protocol {
                Protocol::AnthropicMessages => {
                    let kinds = ["custom", "bash_", "text_editor_", "computer_", "memory_"];
                    kinds.iter().any(|kind| text.starts_with(kind))
                }
                _ => matches!(
                    *text,
                    "function" | "custom" | "namespace" | "local_shell" | "shell" | "apply_patch"
                ),
            },
            Value::Null => true,
            _ => false,
        },
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::*;
    use proptest::prelude::*;

    fn check(protocol: Protocol, body: &str, in_path: Option<&str>) -> Checked {
        let mut check = RequestCheck::new(protocol, "lab-1");
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
            r#"{"messages":[{"model":"other"}],"model":"lab-\u0031"}"#,
            r#"{"\u006dodel":"lab-1","temperature":0.5,"n":1e3,"stream":true}"#,
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
                r#"{"model":"lab-1","a":{"b":1,"b":2}}"#,
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
                r#"{"messages":[{"model":"lab-1"}]}"#,
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
            let mut request = RequestCheck::new(OpenaiChat, "lab-1");
            for piece in body.as_bytes().chunks(cut) {
                let _ = request.push(piece);
            }
            let passed = request.finish(None).verdict.is_ok();
            let strict = crate::values::json::parse_strict(body.as_bytes()).ok();
            let want = strict.is_some_and(|value| value["model"] == "lab-1" && value.get("Model").is_none());
            prop_assert_eq!(passed, want, "{}", body);
        }
    }
}
