//! What passes between an engine and a model: heads and bodies of HTTP, requests that may pass,
//! answers as they arrive, and the record of each call. Bytes in, decisions out; the sockets are in
//! `crates/gateway`.

pub mod answers;
mod budget;
pub mod calls;
pub mod endpoint;
pub mod http;
pub mod json_scan;
pub mod mask;
pub mod needles;
pub mod profiles;
pub mod request;
pub mod scenario;
pub mod watch;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ways of talking to a model that the gateway passes through; it translates none into another.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `POST {base}/chat/completions`
    OpenaiChat,
    /// `POST {base}/responses`
    OpenaiResponses,
    /// `POST {base}/v1/messages`
    AnthropicMessages,
    /// `POST {base}/models/{model}:generateContent` and `:streamGenerateContent`
    GeminiGenerate,
}

impl Protocol {
    pub const ALL: [Self; 4] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
        Self::GeminiGenerate,
    ];

    pub const WORDS: &'static [&'static str] = &[
        "openai-chat",
        "openai-responses",
        "anthropic-messages",
        "gemini-generate",
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::GeminiGenerate => "gemini-generate",
        }
    }
}

impl std::str::FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.as_str() == text)
            .ok_or(UnknownProtocol)
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no such protocol; known are openai-chat, openai-responses, anthropic-messages and gemini-generate"
)]
pub struct UnknownProtocol;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.as_str().parse(), Ok(protocol));
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.as_str());
        }
        assert_eq!(Protocol::ALL.map(Protocol::as_str), Protocol::WORDS);
        assert_eq!("openai".parse::<Protocol>(), Err(UnknownProtocol));
    }
}
