//! The two promises every artifact repeats, as types with only one value each.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `false`, always. There is no value of this type that serialises to `true`, and `true` does not
/// parse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NeverActivated;

impl Serialize for NeverActivated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl<'de> Deserialize<'de> for NeverActivated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match bool::deserialize(deserializer)? {
            false => Ok(Self),
            true => Err(serde::de::Error::custom(
                "runtime_default_activation must be false",
            )),
        }
    }
}

impl JsonSchema for NeverActivated {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NeverActivated".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"const": false})
    }
}

/// The only promotion status this project can write or accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum CorePromotion {
    #[default]
    #[serde(rename = "not-promoted")]
    NotPromoted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_parses_or_prints() {
        assert_eq!(serde_json::to_string(&NeverActivated).unwrap(), "false");
        assert!(serde_json::from_str::<NeverActivated>("true").is_err());
        assert_eq!(
            serde_json::to_string(&CorePromotion::NotPromoted).unwrap(),
            "\"not-promoted\""
        );
        assert!(serde_json::from_str::<CorePromotion>("\"promoted\"").is_err());
    }
}
