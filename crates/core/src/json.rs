//! JSON as evidence: strict reading, canonical writing (RFC 8785).
//!
//! Hashed documents hold no floats and no integer above 2^53, so every reader in every language
//! sees the same numbers. Duplicate keys are refused: two readers could disagree about them.

use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Largest integer every JSON reader represents exactly.
pub const MAX_INTEGER: u64 = 1 << 53;
const MAX_DEPTH: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("begins with a byte order mark")]
    ByteOrderMark,
    #[error("is not UTF-8 (first bad byte at offset {0})")]
    NotUtf8(usize),
    #[error("is not acceptable JSON: {0}")]
    Syntax(serde_json::Error),
    #[error("does not have the expected shape: {0}")]
    Shape(serde_json::Error),
    #[error("cannot be written as JSON: {0}")]
    Write(serde_json::Error),
}

/// Parses a document, refusing byte order marks, duplicate keys, floats, huge integers and deep nesting.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, JsonError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(JsonError::ByteOrderMark);
    }
    let text = std::str::from_utf8(bytes).map_err(|e| JsonError::NotUtf8(e.valid_up_to()))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictSeed { depth: 0 }.deserialize(&mut deserializer).map_err(JsonError::Syntax)?;
    deserializer.end().map_err(JsonError::Syntax)?;
    Ok(value)
}

/// Strict parse, then the typed shape.
pub fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, JsonError> {
    serde_json::from_value(parse_strict(bytes)?).map_err(JsonError::Shape)
}

/// RFC 8785 bytes: what is hashed and signed.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    serde_json_canonicalizer::to_vec(value).map_err(JsonError::Write)
}

/// Two-space indented bytes with a final newline: what a person opens.
pub fn pretty<T: Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(JsonError::Write)?;
    bytes.push(b'\n');
    Ok(bytes)
}

struct StrictSeed {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for StrictSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl StrictSeed {
    fn deeper<E: de::Error>(&self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom("nested too deeply"));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> Visitor<'de> for StrictSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without floats, huge integers or duplicate keys")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_INTEGER {
            return Err(E::custom(format!("integer {value} is above 2^53")));
        }
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_INTEGER {
            return Err(E::custom(format!("integer {value} is below -2^53")));
        }
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Err(E::custom(format!("{value} is a float or an integer too large")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.deeper()?)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(self.deeper()?)?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("duplicate key {key:?}")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refusals() {
        for bad in [
            &b"\xef\xbb\xbf{}"[..],
            b"{\"a\":1,\"a\":1}",
            b"{\"x\":{\"a\":1,\"\\u0061\":2}}",
            b"1.0",
            b"1e3",
            b"9007199254740993",
            b"-9007199254740993",
            b"18446744073709551616",
            b"\"\xff\"",
            b"{} {}",
            b"{",
            b"",
        ] {
            assert!(parse_strict(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse_strict(deep.as_bytes()).is_err());
    }

    #[test]
    fn canonical_sorts_by_utf16_and_drops_space() {
        let value = parse_strict("{\"b\": 1, \"\u{fb33}\": 2, \"\u{1f600}\": 3, \"a\": [1, 2]}".as_bytes()).unwrap();
        let text = String::from_utf8(canonical(&value).unwrap()).unwrap();
        assert_eq!(text, "{\"a\":[1,2],\"b\":1,\"\u{1f600}\":3,\"\u{fb33}\":2}");
    }

    proptest! {
        #[test]
        fn never_panics_and_canonical_is_a_fixed_point(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = parse_strict(&bytes) {
                let once = canonical(&value).unwrap();
                prop_assert_eq!(&canonical(&parse_strict(&once).unwrap()).unwrap(), &once);
            }
        }
    }
}
