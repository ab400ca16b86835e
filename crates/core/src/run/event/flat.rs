//! Fields that a report has beside its own, for tools of an operator's that know an engine by fields of its name. Which
//! engine has them is its manifest's matter; what they hold is said once, at the start of the chain.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::records::ModelResult;

/// The endings of such fields in a report.
const ENDINGS: [&str; 5] = [
    "_process_started",
    "_model_provider",
    "_model",
    "_model_admission_status",
    "_runtime_model_provider",
];

/// What the fields of one run are made from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FlatFacts {
    /// How their names begin.
    pub prefix: String,
    /// The admitted pair, as far as one was asked for.
    pub model_provider: Option<String>,
    pub model: Option<String>,
    /// What became of asking for it; null where nobody looked.
    pub model_admission_status: Option<ModelResult>,
    /// What the engine is told its provider is, where that is another name.
    pub runtime_model_provider: Option<String>,
}

impl FlatFacts {
    pub fn of_report(&self, process_started: bool) -> BTreeMap<String, Value> {
        let values = [
            json!(process_started),
            json!(self.model_provider),
            json!(self.model),
            json!(self.model_admission_status),
            json!(self.runtime_model_provider),
        ];
        let names = ENDINGS.iter().map(|ending| self.name(ending));
        names.zip(values).collect()
    }

    /// Of an event by which a gate refused: nothing was executed.
    pub fn of_gate(&self) -> BTreeMap<String, bool> {
        BTreeMap::from([(self.name("_executed"), false)])
    }

    fn name(&self, ending: &str) -> String {
        format!("{}{ending}", self.prefix)
    }
}

/// Is this the name of such a field, whosever it is?
pub fn is_flat(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A prefix is a plain word, so that no field of the report's own can be meant.
pub fn is_prefix(word: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = word.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    begins && word.len() <= 32 && word.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_begin_with_their_prefix_and_are_known_again() {
        let flat = FlatFacts {
            prefix: "case".into(),
            model_provider: Some("qwen-local".into()),
            model: Some("m".into()),
            model_admission_status: Some(ModelResult::Admitted),
            runtime_model_provider: Some("openai".into()),
        };
        let fields = flat.of_report(true);
        let want = json!({
            "case_process_started": true, "case_model_provider": "qwen-local", "case_model": "m",
            "case_model_admission_status": "admitted", "case_runtime_model_provider": "openai",
        });
        assert_eq!(json!(fields), want);
        assert!(fields.keys().all(|name| is_flat(name)));
        assert_eq!(json!(flat.of_gate()), json!({"case_executed": false}));
        assert!(!is_flat("process_started") && !is_flat("model_use"));
        for (word, fine) in [
            ("case", true),
            ("acp_x2", true),
            ("", false),
            ("Case", false),
            ("2x", false),
            ("a-b", false),
            ("_x", false),
        ] {
            assert_eq!(is_prefix(word), fine, "{word:?}");
        }
    }
}
