//! A value that may be unknown because no gate has allowed looking at it yet.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Written as the value itself, or as the literal `not_seen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaybeKnown<T> {
    Known(T),
    NotLookedAt,
}

const NOT_SEEN: &str = "not_seen";

impl<T> MaybeKnown<T> {
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::NotLookedAt => None,
        }
    }
}

impl<T: Serialize> Serialize for MaybeKnown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::NotLookedAt => serializer.serialize_str(NOT_SEEN),
        }
    }
}

impl<'de, T: for<'a> Deserialize<'a>> Deserialize<'de> for MaybeKnown<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.as_str() == Some(NOT_SEEN) {
            return Ok(Self::NotLookedAt);
        }
        serde_json::from_value(value)
            .map(Self::Known)
            .map_err(serde::de::Error::custom)
    }
}

impl<T: JsonSchema> JsonSchema for MaybeKnown<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Seen_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let known = generator.subschema_for::<T>();
        json_schema!({"anyOf": [known, {"const": NOT_SEEN}]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for value in [MaybeKnown::Known(7u32), MaybeKnown::NotLookedAt] {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(
                serde_json::from_str::<MaybeKnown<u32>>(&text).unwrap(),
                value,
                "{text}"
            );
        }
        assert_eq!(
            serde_json::to_string(&MaybeKnown::<u32>::NotLookedAt).unwrap(),
            "\"not_seen\""
        );
    }
}
