//! Endpoints people have, as data: where each is, how it talks, and what it wants otherwise than the
//! protocol's first server does. A profile fills in what nobody said; it admits nothing.
//!
//! - `switch.rs` how requests differ between servers, and what an agent sends by itself
//! - `refusal.rs` what the body of a refusal tells; `model_list.rs` which models an endpoint offers
//! - `header.rs` which headers an operator may add
//!
//! See `docs/decisions/0051-endpoints-people-have.md`.

pub mod header;
pub mod model_list;
pub mod refusal;
pub mod switch;

use super::Protocol;
use super::endpoint::{Endpoint, EndpointClass};
use switch::Switch;

/// One kind of endpoint.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// As records call it.
    pub name: &'static str,
    pub title: &'static str,
    /// What a record calls the provider where nobody says otherwise.
    pub provider: &'static str,
    /// Whole names of hosts, or endings that begin with a dot, in lower case.
    pub hosts: &'static [&'static str],
    /// The port a local server has by itself.
    pub port: Option<u16>,
    /// Protocols in order of preference, each with its usual path.
    pub ways: &'static [(Protocol, &'static str)],
    pub auth: Auth,
    /// What it is known to want; a request shows whether this one does.
    pub switches: &'static [Switch],
    /// Does it take an `api-version` in the query?
    pub takes_api_version: bool,
    /// Does it say which models it has?
    pub lists_models: bool,
}

/// How a credential is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Auth {
    /// As the protocol's first server wants it.
    #[default]
    Usual,
    /// `api-key`, whatever the protocol.
    ApiKey,
}

impl Profile {
    pub const NAMES: &'static [&'static str] = &[
        "openai",
        "anthropic",
        "google",
        "openrouter",
        "azure",
        "vllm",
        "llama-cpp",
        "ollama",
        "lm-studio",
    ];

    pub fn named(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// The usual path of a protocol; `None` where this kind of endpoint does not speak it.
    pub fn base(&self, protocol: Protocol) -> Option<&'static str> {
        self.ways
            .iter()
            .find(|(spoken, _)| *spoken == protocol)
            .map(|(_, base)| *base)
    }

    fn is_at(&self, host: &str) -> bool {
        self.hosts
            .iter()
            .any(|known| match known.strip_prefix('.') {
                Some(_) => host.ends_with(known),
                None => host == *known,
            })
    }
}

const CHAT: Protocol = Protocol::OpenaiChat;
const RESPONSES: Protocol = Protocol::OpenaiResponses;
const MESSAGES: Protocol = Protocol::AnthropicMessages;

/// A server of one's own: the OpenAI protocol below `/v1`, no credential of a shape of its own.
const fn local(
    name: &'static str,
    title: &'static str,
    port: u16,
    ways: &'static [(Protocol, &'static str)],
) -> Profile {
    Profile {
        name,
        title,
        provider: name,
        hosts: &[],
        port: Some(port),
        ways,
        auth: Auth::Usual,
        switches: &[],
        takes_api_version: false,
        lists_models: true,
    }
}

pub const PROFILES: &[Profile] = &[
    Profile {
        name: "openai",
        title: "OpenAI",
        provider: "openai",
        hosts: &["api.openai.com"],
        port: None,
        ways: &[(CHAT, "/v1"), (RESPONSES, "/v1")],
        auth: Auth::Usual,
        switches: &[Switch::MaxCompletionTokens],
        takes_api_version: false,
        lists_models: true,
    },
    Profile {
        name: "anthropic",
        title: "Anthropic",
        provider: "anthropic",
        hosts: &["api.anthropic.com"],
        port: None,
        ways: &[(MESSAGES, ""), (CHAT, "/v1")],
        auth: Auth::Usual,
        switches: &[],
        takes_api_version: false,
        lists_models: true,
    },
    Profile {
        name: "google",
        title: "Google",
        provider: "google",
        hosts: &["generativelanguage.googleapis.com"],
        port: None,
        ways: &[
            (Protocol::GeminiGenerate, "/v1beta"),
            (CHAT, "/v1beta/openai"),
        ],
        auth: Auth::Usual,
        switches: &[Switch::NoStore],
        takes_api_version: false,
        lists_models: true,
    },
    Profile {
        name: "openrouter",
        title: "OpenRouter",
        provider: "openrouter",
        hosts: &["openrouter.ai"],
        port: None,
        ways: &[
            (CHAT, "/api/v1"),
            (RESPONSES, "/api/v1"),
            (MESSAGES, "/api"),
        ],
        auth: Auth::Usual,
        switches: &[],
        takes_api_version: false,
        lists_models: true,
    },
    Profile {
        name: "azure",
        title: "Azure OpenAI",
        provider: "azure",
        hosts: &[
            ".openai.azure.com",
            ".cognitiveservices.azure.com",
            ".services.ai.azure.com",
        ],
        port: None,
        ways: &[(CHAT, "/openai/v1"), (RESPONSES, "/openai/v1")],
        auth: Auth::ApiKey,
        switches: &[Switch::MaxCompletionTokens],
        takes_api_version: true,
        // It lists what a region has, not what this resource has deployed.
        lists_models: false,
    },
    local(
        "vllm",
        "vLLM",
        8000,
        &[(CHAT, "/v1"), (RESPONSES, "/v1"), (MESSAGES, "")],
    ),
    local(
        "llama-cpp",
        "llama.cpp server",
        8080,
        &[(CHAT, "/v1"), (MESSAGES, "")],
    ),
    local(
        "ollama",
        "Ollama",
        11434,
        &[(CHAT, "/v1"), (RESPONSES, "/v1"), (MESSAGES, "")],
    ),
    local(
        "lm-studio",
        "LM Studio",
        1234,
        &[(CHAT, "/v1"), (RESPONSES, "/v1"), (MESSAGES, "")],
    ),
];

/// The profile an endpoint looks like: by its host, or by the port of a server in reach.
pub fn profile_of(endpoint: &Endpoint) -> Option<&'static Profile> {
    let by_port = |profile: &&Profile| {
        endpoint.class() != EndpointClass::Hosted && profile.port == Some(endpoint.port())
    };
    PROFILES
        .iter()
        .find(|profile| profile.is_at(endpoint.host()))
        .or_else(|| PROFILES.iter().find(by_port))
}

/// The same server by the path that was probably meant: a base without its `/v1`, or with a path
/// that an agent adds by itself. For a question; nothing is sent there unasked.
pub fn other_base(endpoint: &Endpoint, protocol: Protocol) -> Option<Endpoint> {
    let base = endpoint.base();
    const ADDED: [&str; 4] = [
        "/chat/completions",
        "/responses",
        "/v1/messages",
        "/messages",
    ];
    if let Some(short) = ADDED.iter().find_map(|tail| base.strip_suffix(tail)) {
        return endpoint.with_base(short);
    }
    let usual = profile_of(endpoint)
        .and_then(|profile| profile.base(protocol))
        .unwrap_or("/v1");
    let has_version = protocol == Protocol::AnthropicMessages
        || protocol == Protocol::GeminiGenerate
        || base.ends_with("/v1");
    match base {
        "" if !usual.is_empty() => endpoint.with_base(usual),
        _ if !has_version => endpoint.with_base(&format!("{base}/v1")),
        _ => None,
    }
}

#[cfg(test)]
#[path = "profiles_tests.rs"]
mod tests;
