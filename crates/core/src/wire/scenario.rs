//! A scenario of the scripted model: what it answers, turn by turn, and what goes wrong on the way.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::Protocol;
use crate::task::case_file::toml_problem;

#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The name under which it answers; without it, the name it was asked by.
    pub model: Option<String>,
    /// The credential a request must show; another, or none, is answered with 401.
    pub key: Option<String>,
    /// Fields of a request that it refuses by name, with 400, as servers do that want another one.
    pub refuse_fields: Vec<String>,
    /// The models it lists; without any, its list is empty.
    pub models: Vec<String>,
    pub select: Select,
    pub after: After,
    /// Listens no more after so many connections: the next is refused.
    pub leave_after: Option<u64>,
    /// Answers the first request, which then is not counted.
    pub probe: Option<Turn>,
    pub turn: Vec<Turn>,
}

/// By what a turn is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Select {
    /// The assistant's turns that the request already holds.
    #[default]
    History,
    /// The number of the request.
    Requests,
}

/// What comes when there is no turn left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// A closing text.
    #[default]
    End,
    /// The last turn, for ever: an endless loop of tool calls.
    Last,
    /// The first turn again.
    Again,
}

/// One answer.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    pub reasoning: String,
    pub text: String,
    pub tool: Vec<ToolCall>,
    pub usage: Option<Usage>,
    /// The protocol's word for the end; without it, the usual one.
    pub finish: Option<String>,
    /// Answers under another name this time.
    pub model: Option<String>,
    /// Answers without saying a name.
    pub unnamed: bool,
    /// Letters in a piece of text.
    pub piece: usize,
    /// Sends the text so many times.
    pub repeat: u64,
    /// Before the head.
    pub first_ms: u64,
    /// Before each piece.
    pub latency_ms: u64,
    /// Another status than 200: then `body` is the answer.
    pub status: Option<u16>,
    pub body: String,
    pub headers: BTreeMap<String, String>,
    /// Closes without any answer.
    pub hang_up: bool,
    /// Closes after so many pieces, or bytes of the body.
    pub drop_after: Option<u64>,
    pub drop_after_bytes: Option<u64>,
    /// Says no more after so many pieces, and stays.
    pub silent_after: Option<u64>,
    /// Repeats the text until the other side leaves.
    pub endless: bool,
    /// Sent as the body, whatever it is.
    pub garbage: Option<String>,
    /// A piece of text of so many bytes, in one line.
    pub huge_line: u64,
    /// An error inside the stream, by this type.
    pub error: Option<String>,
    /// Not without a length, not by chunks: the body ends when the connection does.
    pub until_close: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            reasoning: String::new(),
            text: String::new(),
            tool: Vec::new(),
            usage: None,
            finish: None,
            model: None,
            unnamed: false,
            piece: 16,
            repeat: 1,
            first_ms: 0,
            latency_ms: 0,
            status: None,
            body: String::new(),
            headers: BTreeMap::new(),
            hang_up: false,
            drop_after: None,
            drop_after_bytes: None,
            silent_after: None,
            endless: false,
            garbage: None,
            huge_line: 0,
            error: None,
            until_close: false,
        }
    }
}

impl Turn {
    pub fn saying(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// A call of one of the engine's tools, by the name the engine gave it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
    /// Instead of `arguments`: the text as it stands, JSON or not.
    #[serde(default)]
    pub raw: Option<String>,
}

impl ToolCall {
    pub fn text(&self) -> String {
        match (&self.raw, &self.arguments) {
            (Some(raw), _) => raw.clone(),
            (None, Value::Null) => "{}".to_owned(),
            (None, value) => value.to_string(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    #[serde(default)]
    pub reasoning: u64,
}

impl Scenario {
    /// Line and column of the first thing wrong, both from 1, and its words.
    pub fn parse(text: &str) -> Result<Self, (u64, u64, String)> {
        toml::from_str(text).map_err(|error| toml_problem(text, &error))
    }

    /// The answer to a request. `request` counts from 1.
    pub fn choose(&self, request: u64, prior_turns: u64) -> Turn {
        if request == 1
            && let Some(probe) = &self.probe
        {
            return probe.clone();
        }
        let counted = request.saturating_sub(1 + u64::from(self.probe.is_some()));
        let at = match self.select {
            Select::History => prior_turns,
            Select::Requests => counted,
        };
        let count = self.turn.len() as u64;
        let at = match self.after {
            After::Again if count > 0 => at % count,
            After::Last if count > 0 => at.min(count - 1),
            _ => at,
        };
        let turn = usize::try_from(at)
            .ok()
            .and_then(|at| self.turn.get(at))
            .cloned();
        turn.unwrap_or_else(|| Turn::saying("Done."))
    }
}

/// How many turns of the assistant a request holds: runs of its items, whatever stands between
/// them.
pub fn prior_turns(protocol: Protocol, body: &Value) -> u64 {
    let list = match protocol {
        Protocol::OpenaiChat | Protocol::AnthropicMessages => &body["messages"],
        Protocol::OpenaiResponses => &body["input"],
        Protocol::GeminiGenerate => &body["contents"],
    };
    let mut turns = 0;
    let mut inside = false;
    for item in list.as_array().into_iter().flatten() {
        let is_own = match item["role"].as_str() {
            Some(role) => matches!(role, "assistant" | "model"),
            None => item["type"]
                .as_str()
                .is_some_and(|kind| kind == "reasoning" || kind.ends_with("_call")),
        };
        turns += u64::from(is_own && !inside);
        inside = is_own;
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse(text).unwrap()
    }

    #[test]
    fn turns_are_chosen() {
        let by_history = scenario("[probe]\ntext='p'\n[[turn]]\ntext='0'\n[[turn]]\ntext='1'\n");
        let said = |scenario: &Scenario, request, prior| scenario.choose(request, prior).text;
        assert_eq!(said(&by_history, 1, 0), "p");
        assert_eq!(said(&by_history, 2, 0), "0");
        assert_eq!(said(&by_history, 9, 1), "1");
        assert_eq!(said(&by_history, 9, 2), "Done.");
        let by_number =
            scenario("select='requests'\nafter='last'\n[[turn]]\ntext='0'\n[[turn]]\ntext='1'\n");
        assert_eq!(
            (
                said(&by_number, 1, 7),
                said(&by_number, 2, 7),
                said(&by_number, 99, 7)
            ),
            ("0".into(), "1".into(), "1".into())
        );
        let again = scenario("after='again'\n[[turn]]\ntext='0'\n[[turn]]\ntext='1'\n");
        assert_eq!(said(&again, 2, 3), "1");
        assert_eq!(said(&scenario("after='last'"), 1, 0), "Done.");
    }

    #[test]
    fn mistakes_have_a_place() {
        let (line, column, words) = Scenario::parse("[[turn]]\ntxet = 'x'\n").unwrap_err();
        assert_eq!((line, column), (2, 1));
        assert!(words.contains("txet"), "{words}");
    }

    #[test]
    fn runs_of_the_assistant_are_counted() {
        for (protocol, body, want) in [
            (
                Protocol::OpenaiChat,
                json!({"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}, {"role": "tool"}, {"role": "assistant"}]}),
                2,
            ),
            (
                Protocol::OpenaiResponses,
                json!({"input": [
                {"role": "user"}, {"type": "reasoning"}, {"type": "message", "role": "assistant"}, {"type": "function_call"},
                {"type": "function_call_output"}, {"type": "function_call"}, {"type": "function_call_output"}]}),
                2,
            ),
            (
                Protocol::AnthropicMessages,
                json!({"messages": [{"role": "user"}]}),
                0,
            ),
            (
                Protocol::GeminiGenerate,
                json!({"contents": [{"role": "user"}, {"role": "model"}]}),
                1,
            ),
            (Protocol::OpenaiChat, json!({}), 0),
        ] {
            assert_eq!(prior_turns(protocol, &body), want, "{body}");
        }
    }

    #[test]
    fn arguments_are_json_or_as_they_stand() {
        let scenario = scenario(
            "[[turn]]\n[[turn.tool]]\nname='w'\narguments={path='a', n=1}\n[[turn.tool]]\nname='w'\nraw='{oops'\n[[turn.tool]]\nname='w'\n",
        );
        let texts: Vec<String> = scenario.turn[0].tool.iter().map(ToolCall::text).collect();
        assert_eq!(texts, [r#"{"n":1,"path":"a"}"#, "{oops", "{}"]);
    }
}
