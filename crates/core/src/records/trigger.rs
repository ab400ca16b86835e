//! Review triggers: what makes a record due for another look before it may be used again.
//!
//! A trigger of a known form names what was true when the record was reviewed and fires when it no
//! longer is. Any other text is for people and is shown.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::fields::{Takes, one};
use crate::task::contract::{ModelPair, Stage};
use crate::values::time::Utc;
use crate::wire::endpoint::EndpointClass;

const MAX_TRIGGERS: usize = 32;

/// One reason to review.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// `path:/P`: the record, or the file it is about, lies elsewhere.
    Path(String),
    /// `endpoint_class:loopback`: the endpoint is of another class.
    EndpointClass(EndpointClass),
    /// `credential_class:C`: the credential comes another way.
    CredentialClass(String),
    /// `model_pair:PROVIDER/MODEL`: another pair is asked for.
    ModelPair(ModelPair),
    /// `stage_beyond:2`: a higher stage is asked for.
    StageBeyond(Stage),
    /// `date:2026-12-01`: that day has come.
    Date { written: String, from: Utc },
    /// Words for people.
    Words(String),
}

/// The facts of a run that triggers may look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circumstance<'a> {
    pub stage: Stage,
    pub now: Utc,
    /// Where the record lies.
    pub record_path: &'a str,
    /// What it is about, where that is a file or a directory.
    pub subject_path: Option<&'a str>,
    pub endpoint: Option<EndpointClass>,
    pub credential_class: Option<&'a str>,
    pub pair: Option<&'a ModelPair>,
}

impl Trigger {
    /// Known forms by their word; a known word with a value it does not take is refused, not taken
    /// for text.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let Some((word, value)) = text.split_once(':') else {
            return Ok(Self::Words(text.to_owned()));
        };
        match word {
            "path" if value.starts_with('/') => Ok(Self::Path(value.to_owned())),
            "path" => Err("path: takes an absolute path"),
            "endpoint_class" => EndpointClass::parse(value)
                .map(Self::EndpointClass)
                .ok_or("endpoint_class: takes loopback, local or hosted"),
            "credential_class" if !value.is_empty() => Ok(Self::CredentialClass(value.to_owned())),
            "credential_class" => Err("credential_class: takes the class"),
            "model_pair" => match value.split_once('/') {
                Some((provider, model))
                    if one(Takes::Name, provider).is_none()
                        && one(Takes::Name, model).is_none() =>
                {
                    Ok(Self::ModelPair(ModelPair {
                        provider: provider.to_owned(),
                        model: model.to_owned(),
                    }))
                }
                _ => Err("model_pair: takes PROVIDER/MODEL"),
            },
            "stage_beyond" => {
                let stage = value
                    .parse::<u8>()
                    .ok()
                    .and_then(|number| Stage::try_from(number).ok());
                stage
                    .map(Self::StageBeyond)
                    .ok_or("stage_beyond: takes a stage, 1 to 6")
            }
            "date" => match Utc::day(value) {
                Some(from) => Ok(Self::Date {
                    written: value.to_owned(),
                    from,
                }),
                None => Err("date: takes a day like 2026-12-01"),
            },
            _ => Ok(Self::Words(text.to_owned())),
        }
    }

    /// Why this trigger has fired; none where it has not. Says which, never the values on either
    /// side.
    fn fired(&self, now: &Circumstance<'_>) -> Option<&'static str> {
        let fires = match self {
            Self::Path(path) => path != now.record_path && Some(path.as_str()) != now.subject_path,
            Self::EndpointClass(class) => now.endpoint.is_some_and(|found| !class.covers(found)),
            Self::CredentialClass(class) => {
                now.credential_class.is_some_and(|found| found != class)
            }
            Self::ModelPair(pair) => now.pair.is_some_and(|found| found != pair),
            Self::StageBeyond(stage) => now.stage > *stage,
            Self::Date { from, .. } => now.now >= *from,
            Self::Words(_) => false,
        };
        fires.then_some(match self {
            Self::Path(_) => "the path is not the one that was reviewed",
            Self::EndpointClass(_) => {
                "the endpoint is of another class than the one that was reviewed"
            }
            Self::CredentialClass(_) => {
                "the credential comes another way than the one that was reviewed"
            }
            Self::ModelPair(_) => "the model pair is not the one that was reviewed",
            Self::StageBeyond(_) => "the stage is beyond the one that was reviewed",
            Self::Date { .. } | Self::Words(_) => "the day of its review has come",
        })
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "path:{path}"),
            Self::EndpointClass(class) => write!(f, "endpoint_class:{}", class.as_str()),
            Self::CredentialClass(class) => write!(f, "credential_class:{class}"),
            Self::ModelPair(pair) => write!(f, "model_pair:{}/{}", pair.provider, pair.model),
            Self::StageBeyond(stage) => write!(f, "stage_beyond:{}", stage.number()),
            Self::Date { written, .. } => write!(f, "date:{written}"),
            Self::Words(text) => f.write_str(text),
        }
    }
}

/// All triggers of a record: written as one text, or as a list of texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReviewTrigger(pub Vec<Trigger>);

impl ReviewTrigger {
    /// Every trigger that has fired.
    pub fn fired(&self, now: &Circumstance<'_>) -> Vec<&'static str> {
        self.0
            .iter()
            .filter_map(|trigger| trigger.fired(now))
            .collect()
    }

    /// What only a person can judge.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|trigger| match trigger {
            Trigger::Words(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub fn read(texts: &[String]) -> Result<Self, &'static str> {
        texts
            .iter()
            .map(|text| Trigger::read(text))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// What is wrong with the value of a trigger field.
pub(super) fn problem(value: &Value) -> Option<String> {
    let look = |value: &Value| match value {
        Value::String(text) => {
            one(Takes::Text, text).or_else(|| Trigger::read(text).err().map(Into::into))
        }
        _ => Some("must be text, or a list of texts".into()),
    };
    match value {
        Value::Array(items) if items.is_empty() => Some("is empty".into()),
        Value::Array(items) if items.len() > MAX_TRIGGERS => {
            Some(format!("has more than {MAX_TRIGGERS} entries"))
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| look(item).map(|found| format!("entry {}: {found}", at + 1))),
        other => look(other),
    }
}

impl Serialize for ReviewTrigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.collect_str(one),
            several => serializer.collect_seq(several.iter().map(ToString::to_string)),
        }
    }
}

impl<'de> Deserialize<'de> for ReviewTrigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let texts = match Value::deserialize(deserializer)? {
            Value::String(text) => vec![text],
            Value::Array(items) => items
                .into_iter()
                .map(|item| {
                    item.as_str()
                        .map(str::to_owned)
                        .ok_or_else(|| Error::custom("must be text"))
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(Error::custom("must be text, or a list of texts")),
        };
        Self::read(&texts).map_err(Error::custom)
    }
}

impl JsonSchema for ReviewTrigger {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReviewTrigger".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = serde_json::json!({"type": "string", "minLength": 1, "maxLength": 4096});
        json_schema!({
            "description": "path:/P, endpoint_class:C, credential_class:C, model_pair:P/M, stage_beyond:N, date:YYYY-MM-DD fire by themselves; other text is shown",
            "anyOf": [text, {"type": "array", "items": text, "minItems": 1, "maxItems": MAX_TRIGGERS}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Circumstance<'static> {
        Circumstance {
            stage: Stage::Two,
            now: Utc::day("2026-06-15").unwrap(),
            record_path: "/r/model.json",
            subject_path: Some("/opt/pi"),
            endpoint: Some(EndpointClass::Loopback),
            credential_class: Some("env:K"),
            pair: None,
        }
    }

    #[test]
    fn each_known_trigger_fires_when_what_it_names_is_no_longer_so() {
        let pair = ModelPair {
            provider: "p".into(),
            model: "m".into(),
        };
        for (text, fires) in [
            ("path:/r/model.json", false),
            ("path:/opt/pi", false),
            ("path:/other", true),
            ("endpoint_class:local", false),
            ("endpoint_class:hosted", true),
            ("credential_class:env:K", false),
            ("credential_class:file:/k", true),
            ("model_pair:p/m", false),
            ("model_pair:p/M", true),
            ("stage_beyond:2", false),
            ("stage_beyond:1", true),
            ("date:2026-06-16", false),
            ("date:2026-06-15", true),
            ("before anything changes: look", false),
        ] {
            let trigger = ReviewTrigger(vec![Trigger::read(text).unwrap()]);
            let at = Circumstance {
                pair: Some(&pair),
                ..now()
            };
            assert_eq!(!trigger.fired(&at).is_empty(), fires, "{text}");
            let again: ReviewTrigger =
                serde_json::from_value(serde_json::to_value(&trigger).unwrap()).unwrap();
            assert_eq!(again, trigger);
        }
    }

    #[test]
    fn a_known_word_with_a_strange_value_is_refused() {
        for bad in [
            "path:x",
            "endpoint_class:near",
            "credential_class:",
            "model_pair:p",
            "stage_beyond:7",
            "stage_beyond:x",
            "date:soon",
        ] {
            assert!(Trigger::read(bad).is_err(), "{bad}");
            assert!(problem(&Value::from(bad)).is_some());
        }
        assert!(
            problem(&serde_json::json!([])).is_some() && problem(&serde_json::json!(7)).is_some()
        );
        assert!(
            problem(&serde_json::json!(["date:2026-01-01", 7]))
                .is_some_and(|p| p.starts_with("entry 2"))
        );
    }
}
