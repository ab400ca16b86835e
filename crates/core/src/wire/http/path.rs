//! Which request targets each protocol has, and the targets at the endpoint they become.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire::Protocol;
use crate::wire::calls::RefusalReason;

/// What a request is for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PathClass {
    /// Asks for an answer of the model.
    Generate,
    /// Asks how many tokens a request would have.
    CountTokens,
    /// Asks which models there are; the gateway answers itself.
    ModelList,
    /// Not passed on.
    Other,
}

/// A target that may pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    pub class: PathClass,
    /// Named in the path, where the protocol does that.
    pub model: Option<String>,
    /// What stands after the base of the endpoint, without the model where that is in the path.
    tail: Tail,
    query: Option<&'static str>,
    /// A token in the query; it is not passed on.
    pub key: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tail {
    Plain(&'static str),
    /// `/models/{model}:verb`
    Verb(&'static str),
}

impl Asked {
    /// The target at the endpoint, for the admitted model.
    pub fn upstream_target(&self, protocol: Protocol, base: &str, model: &str) -> String {
        let version = match protocol {
            Protocol::AnthropicMessages if !base.ends_with("/v1") => "/v1",
            Protocol::GeminiGenerate if base.is_empty() => "/v1beta",
            _ => "",
        };
        let query = self
            .query
            .map_or(String::new(), |query| format!("?{query}"));
        match self.tail {
            Tail::Plain(tail) => format!("{base}{version}{tail}{query}"),
            Tail::Verb(verb) => format!("{base}{version}/models/{}:{verb}{query}", encoded(model)),
        }
    }
}

/// Says what a request is for by its method and target. The engine may write its paths with or
/// without a version in front.
pub fn ask(protocol: Protocol, method: &str, target: &str) -> Result<Asked, RefusalReason> {
    if method == "CONNECT" || !target.starts_with('/') {
        return Err(RefusalReason::AbsoluteTarget);
    }
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, query),
        None => (target, ""),
    };
    // `//host/path` is a path to us and a host to others.
    if path.starts_with("//") || path.contains('#') {
        return Err(RefusalReason::BadPath);
    }
    let path = ["/v1beta", "/v1"]
        .iter()
        .find_map(|version| path.strip_prefix(version))
        .unwrap_or(path);
    let is_list = is_model_list(method, path);
    let (query, key) = match is_list {
        // Answered here: nothing of its query goes anywhere.
        true => (None, list_query(query)?),
        false => known_query(protocol, query)?,
    };
    let asked = |class, tail, model| Asked {
        class,
        model,
        tail,
        query,
        key: key.clone(),
    };
    if is_list {
        return match method {
            "GET" => Ok(asked(PathClass::ModelList, Tail::Plain("/models"), None)),
            _ => Err(RefusalReason::BadMethod),
        };
    }
    let (class, tail, model) = match (protocol, path) {
        (Protocol::OpenaiChat, "/chat/completions") => {
            (PathClass::Generate, Tail::Plain("/chat/completions"), None)
        }
        (Protocol::OpenaiResponses, "/responses") => {
            (PathClass::Generate, Tail::Plain("/responses"), None)
        }
        (Protocol::AnthropicMessages, "/messages") => {
            (PathClass::Generate, Tail::Plain("/messages"), None)
        }
        (Protocol::AnthropicMessages, "/messages/count_tokens") => (
            PathClass::CountTokens,
            Tail::Plain("/messages/count_tokens"),
            None,
        ),
        (Protocol::GeminiGenerate, path) => {
            let (model, verb) = path
                .strip_prefix("/models/")
                .and_then(|rest| rest.rsplit_once(':'))
                .ok_or(RefusalReason::BadPath)?;
            let (class, verb) = match verb {
                "generateContent" => (PathClass::Generate, "generateContent"),
                "streamGenerateContent" => (PathClass::Generate, "streamGenerateContent"),
                "countTokens" => (PathClass::CountTokens, "countTokens"),
                _ => return Err(RefusalReason::BadPath),
            };
            (
                class,
                Tail::Verb(verb),
                Some(decoded(model).ok_or(RefusalReason::BadPath)?),
            )
        }
        _ => return Err(RefusalReason::BadPath),
    };
    if method != "POST" {
        return Err(RefusalReason::BadMethod);
    }
    Ok(asked(class, tail, model))
}

fn is_model_list(method: &str, path: &str) -> bool {
    path == "/models" || (method == "GET" && path.starts_with("/models/") && !path.contains(':'))
}

/// How clients ask for a part of the list; the one model fits into any.
fn list_query(query: &str) -> Result<Option<String>, RefusalReason> {
    const USUAL: [&str; 9] = [
        "after_id",
        "before_id",
        "beta",
        "client_version",
        "limit",
        "order",
        "pageSize",
        "pageToken",
        "page_size",
    ];
    let mut key = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("key", value) if key.is_none() => key = Some(value.to_owned()),
            (name, _) if USUAL.contains(&name) => {}
            _ => return Err(RefusalReason::BadQuery),
        }
    }
    Ok(key)
}

/// Queries that SDKs are known to send; nothing else passes.
fn known_query(
    protocol: Protocol,
    query: &str,
) -> Result<(Option<&'static str>, Option<String>), RefusalReason> {
    let (mut passed, mut key) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match (protocol, pair.split_once('=').unwrap_or((pair, ""))) {
            (Protocol::AnthropicMessages, ("beta", "true")) if passed.is_none() => {
                passed = Some("beta=true")
            }
            (Protocol::GeminiGenerate, ("alt", "sse")) if passed.is_none() => {
                passed = Some("alt=sse")
            }
            (Protocol::GeminiGenerate, ("alt", "json")) if passed.is_none() => {
                passed = Some("alt=json")
            }
            (Protocol::GeminiGenerate, ("key", value)) if key.is_none() => {
                key = Some(value.to_owned())
            }
            _ => return Err(RefusalReason::BadQuery),
        }
    }
    Ok((passed, key))
}

/// Percent signs taken out; nothing that is not UTF-8 comes back.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
        out.push(high << 4 | low);
    }
    String::from_utf8(out).ok()
}

fn encoded(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut out, byte| {
            use std::fmt::Write as _;
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
                out.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
            out
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::*;
    use proptest::prelude::*;

    #[test]
    fn own_paths_lead_to_the_base() {
        for (protocol, target, base, want) in [
            (
                OpenaiChat,
                "/v1/chat/completions",
                "/v1",
                "/v1/chat/completions",
            ),
            (
                OpenaiChat,
                "/chat/completions",
                "/api/x",
                "/api/x/chat/completions",
            ),
            (OpenaiResponses, "/v1/responses", "/v1", "/v1/responses"),
            (AnthropicMessages, "/v1/messages", "", "/v1/messages"),
            (
                AnthropicMessages,
                "/v1/messages?beta=true",
                "/v1",
                "/v1/messages?beta=true",
            ),
            (
                AnthropicMessages,
                "/v1/messages/count_tokens",
                "/a",
                "/a/v1/messages/count_tokens",
            ),
            (
                GeminiGenerate,
                "/v1beta/models/m:generateContent",
                "",
                "/v1beta/models/m:generateContent",
            ),
            (
                GeminiGenerate,
                "/models/m:streamGenerateContent?alt=sse&key=k",
                "/v1",
                "/v1/models/m:streamGenerateContent?alt=sse",
            ),
        ] {
            let asked = ask(protocol, "POST", target).unwrap();
            assert_eq!(asked.upstream_target(protocol, base, "m"), want, "{target}");
        }
        assert_eq!(
            ask(GeminiGenerate, "POST", "/models/m%2Dx:countTokens")
                .unwrap()
                .model
                .as_deref(),
            Some("m-x")
        );
        assert_eq!(
            ask(GeminiGenerate, "POST", "/models/m:generateContent?key=k")
                .unwrap()
                .key
                .as_deref(),
            Some("k")
        );
        assert_eq!(
            ask(OpenaiChat, "GET", "/v1/models").unwrap().class,
            PathClass::ModelList
        );
        assert_eq!(
            ask(OpenaiChat, "GET", "/v1/models/m").unwrap().class,
            PathClass::ModelList
        );
        for (protocol, target) in [
            (OpenaiChat, "/v1/models?limit=20"),
            (OpenaiResponses, "/v1/models?client_version=0.166.0"),
            (AnthropicMessages, "/v1/models?limit=1000&after_id=x"),
            (AnthropicMessages, "/v1/models/m?beta=true"),
            (GeminiGenerate, "/v1beta/models?pageSize=50&key=k"),
        ] {
            let asked = ask(protocol, "GET", target).unwrap();
            assert_eq!(asked.class, PathClass::ModelList, "{target}");
            assert_eq!(asked.key.is_some(), target.contains("key="), "{target}");
        }
        let odd = ask(GeminiGenerate, "POST", "/models/m:generateContent").unwrap();
        assert_eq!(
            odd.upstream_target(GeminiGenerate, "", "a b?c"),
            "/v1beta/models/a%20b%3Fc:generateContent"
        );
    }

    #[test]
    fn everything_else_is_refused() {
        for (protocol, method, target, want) in [
            (OpenaiChat, "POST", "/v1/responses", RefusalReason::BadPath),
            (OpenaiChat, "POST", "/v1/embeddings", RefusalReason::BadPath),
            (
                OpenaiChat,
                "POST",
                "/v1/chat/completions/",
                RefusalReason::BadPath,
            ),
            (
                OpenaiChat,
                "POST",
                "/v1/../chat/completions",
                RefusalReason::BadPath,
            ),
            (
                OpenaiChat,
                "POST",
                "//evil.example/chat/completions",
                RefusalReason::BadPath,
            ),
            (OpenaiChat, "POST", "/", RefusalReason::BadPath),
            (
                OpenaiChat,
                "GET",
                "/v1/chat/completions",
                RefusalReason::BadMethod,
            ),
            (OpenaiChat, "DELETE", "/v1/models", RefusalReason::BadMethod),
            (
                OpenaiChat,
                "GET",
                "/v1/models?url=x",
                RefusalReason::BadQuery,
            ),
            (
                OpenaiChat,
                "POST",
                "/v1/chat/completions?x=1",
                RefusalReason::BadQuery,
            ),
            (
                OpenaiChat,
                "POST",
                "/v1/chat/completions?key=k",
                RefusalReason::BadQuery,
            ),
            (
                GeminiGenerate,
                "POST",
                "/models/m:generateContent?key=a&key=b",
                RefusalReason::BadQuery,
            ),
            (
                OpenaiChat,
                "CONNECT",
                "evil.example:443",
                RefusalReason::AbsoluteTarget,
            ),
            (
                OpenaiChat,
                "POST",
                "http://evil.example/v1/chat/completions",
                RefusalReason::AbsoluteTarget,
            ),
            (OpenaiChat, "OPTIONS", "*", RefusalReason::AbsoluteTarget),
            (
                GeminiGenerate,
                "POST",
                "/models/m:embedContent",
                RefusalReason::BadPath,
            ),
            (
                GeminiGenerate,
                "POST",
                "/models/m%zz:generateContent",
                RefusalReason::BadPath,
            ),
            (
                GeminiGenerate,
                "POST",
                "/models/m%ff:generateContent",
                RefusalReason::BadPath,
            ),
            (
                GeminiGenerate,
                "POST",
                "/tunedModels/m:generateContent",
                RefusalReason::BadPath,
            ),
        ] {
            assert_eq!(
                ask(protocol, method, target).unwrap_err(),
                want,
                "{method} {target}"
            );
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_never_leaves_the_base(target in "[/a-zA-Z0-9:%?&=.#-]{0,60}") {
            for protocol in Protocol::ALL {
                if let Ok(asked) = ask(protocol, "POST", &target) {
                    prop_assert!(asked.upstream_target(protocol, "/base", "m").starts_with("/base/"));
                }
            }
        }
    }
}
