//! How requests of the same protocol differ between servers. A switch is what a server wants
//! otherwise; habits are what an agent sends where no switch says so. The request before a run is
//! built from both, so that it is refused where the agent's own would be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing a server wants otherwise, as records call it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// The limit of an answer is `max_completion_tokens`.
    MaxCompletionTokens,
    /// The limit of an answer is `max_tokens`.
    MaxTokens,
    /// No `store`.
    NoStore,
    /// No `stream_options`.
    NoStreamOptions,
    /// `system` in the place of `developer`.
    NoDeveloperRole,
    /// No `reasoning_effort`.
    NoReasoningEffort,
    /// No `strict` in the definition of a tool.
    NoStrictTools,
    /// No long retention of cached prompts.
    NoLongCache,
    /// The result of a tool names the tool.
    ToolResultName,
    /// An assistant's turn between the result of a tool and the user's next words.
    AssistantAfterToolResult,
    /// Thoughts go back as text.
    ThinkingAsText,
}

impl Switch {
    pub const ALL: [Self; 11] = [
        Self::MaxCompletionTokens,
        Self::MaxTokens,
        Self::NoStore,
        Self::NoStreamOptions,
        Self::NoDeveloperRole,
        Self::NoReasoningEffort,
        Self::NoStrictTools,
        Self::NoLongCache,
        Self::ToolResultName,
        Self::AssistantAfterToolResult,
        Self::ThinkingAsText,
    ];

    pub const WORDS: &'static [&'static str] = &[
        "max_completion_tokens",
        "max_tokens",
        "no_store",
        "no_stream_options",
        "no_developer_role",
        "no_reasoning_effort",
        "no_strict_tools",
        "no_long_cache",
        "tool_result_name",
        "assistant_after_tool_result",
        "thinking_as_text",
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .zip(Self::WORDS)
            .find(|(switch, _)| **switch == self)
            .map_or("", |(_, word)| word)
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|switch| switch.as_str() == word)
    }

    /// What a server that refuses this field of a request wants.
    pub fn for_refused(field: &str) -> Option<Self> {
        match field {
            "max_tokens" => Some(Self::MaxCompletionTokens),
            "max_completion_tokens" => Some(Self::MaxTokens),
            "store" => Some(Self::NoStore),
            "stream_options" => Some(Self::NoStreamOptions),
            _ => None,
        }
    }
}

/// The field that limits an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenField {
    MaxTokens,
    MaxCompletionTokens,
}

impl TokenField {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// What a chat request of an agent has beside its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Habits {
    pub token_field: TokenField,
    pub store: bool,
    pub stream_options: bool,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            token_field: TokenField::MaxTokens,
            store: false,
            stream_options: false,
        }
    }
}

impl Habits {
    /// Fields a manifest may say its agent sends by itself.
    pub const FIELDS: &'static [&'static str] = &[
        "max_completion_tokens",
        "max_tokens",
        "store",
        "stream_options",
    ];

    /// Habits of an agent that sends these fields by itself.
    pub fn of(fields: &[String]) -> Self {
        let has = |name: &str| fields.iter().any(|field| field == name);
        Self {
            token_field: match has("max_completion_tokens") {
                true => TokenField::MaxCompletionTokens,
                false => TokenField::MaxTokens,
            },
            store: has("store"),
            stream_options: has("stream_options"),
        }
    }

    /// The same, told what the server wants.
    #[must_use]
    pub fn with(mut self, switches: &[Switch]) -> Self {
        for switch in switches {
            match switch {
                Switch::MaxCompletionTokens => self.token_field = TokenField::MaxCompletionTokens,
                Switch::MaxTokens => self.token_field = TokenField::MaxTokens,
                Switch::NoStore => self.store = false,
                Switch::NoStreamOptions => self.stream_options = false,
                _ => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_both_ways() {
        for (switch, word) in Switch::ALL.into_iter().zip(Switch::WORDS) {
            assert_eq!(Switch::parse(word), Some(switch));
            assert_eq!(serde_json::to_value(switch).unwrap(), *word);
        }
        assert_eq!(Switch::parse("temperature"), None);
    }

    #[test]
    fn a_switch_changes_the_habit_it_is_about() {
        let agent =
            Habits::of(&["max_completion_tokens", "store", "stream_options"].map(String::from));
        assert_eq!(agent.with(&[]), agent);
        let told = agent.with(&[Switch::MaxTokens, Switch::NoStore, Switch::ThinkingAsText]);
        assert_eq!(
            told,
            Habits {
                token_field: TokenField::MaxTokens,
                store: false,
                stream_options: true
            }
        );
        assert_eq!(Habits::of(&[]), Habits::default());
    }

    #[test]
    fn every_habit_that_is_refused_has_its_switch() {
        for field in Habits::FIELDS {
            let switch = Switch::for_refused(field).unwrap();
            let agent = Habits::of(&[(*field).to_owned()]);
            assert_ne!(agent.with(&[switch]), agent, "{field}");
        }
    }
}
