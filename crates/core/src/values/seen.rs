//! A fact that may not have been looked at yet, because no gate allowed it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Written as the value itself, or as the literal `not_seen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen<T> {
    Known(T),
    NotSeen,
}

const NOT_SEEN: &str = "not_seen";

impl<T> Seen<T> {
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::NotSeen => None,
        }
    }
}

impl<T: Serialize> Serialize for Seen<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::NotSeen => serializer.serialize_str(NOT_SEEN),
        }
    }
}

impl<'de, T: for<'a> Deserialize<'a>> Deserialize<'de> for Seen<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.as_str() == Some(NOT_SEEN) {
            return Ok(Self::NotSeen);
        }
        serde_json::from_value(value)
            .map(Self::Known)
            .map_err(serde::de::Error::custom)
    }
}

impl<T: JsonSchema> JsonSchema for Seen<T> {
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
        for value in [Seen::Known(7u32), Seen::NotSeen] {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(
                serde_json::from_str::<Seen<u32>>(&text).unwrap(),
                value,
                "{text}"
            );
        }
        assert_eq!(
            serde_json::to_string(&Seen::<u32>::NotSeen).unwrap(),
            "\"not_seen\""
        );
    }
}
