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

/// For counts that are left out where there is nothing to count.
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn text_of(bytes: &[u8]) -> Result<&str, JsonError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(JsonError::ByteOrderMark);
    }
    std::str::from_utf8(bytes).map_err(|e| JsonError::NotUtf8(e.valid_up_to()))
}

/// Parses a document, refusing byte order marks, duplicate keys, floats, huge integers and deep
/// nesting.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, JsonError> {
    let text = text_of(bytes)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictSeed { depth: 0 }
        .deserialize(&mut deserializer)
        .map_err(JsonError::Syntax)?;
    deserializer.end().map_err(JsonError::Syntax)?;
    Ok(value)
}

/// Everything [`parse_strict`] refuses, then the typed shape, without a tree of values in between.
pub fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, JsonError> {
    let text = text_of(bytes)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Checked { depth: 0 }
        .deserialize(&mut deserializer)
        .map_err(JsonError::Syntax)?;
    deserializer.end().map_err(JsonError::Syntax)?;
    serde_json::from_str(text).map_err(JsonError::Shape)
}

/// RFC 8785 bytes: what is hashed and signed.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    canonical_value(&serde_json::to_value(value).map_err(JsonError::Write)?)
}

/// The same for a value that is there already.
pub fn canonical_value(value: &Value) -> Result<Vec<u8>, JsonError> {
    let mut out = Vec::with_capacity(1024);
    match write_canonical(value, &mut out).map_err(JsonError::Write)? {
        Plain::Yes => Ok(out),
        // Nothing of ours holds one; how to write it is a science of its own.
        Plain::HasFloat => serde_json_canonicalizer::to_vec(value).map_err(JsonError::Write),
    }
}

enum Plain {
    Yes,
    HasFloat,
}

/// Sorted keys, no space. Strings and integers are written by `serde_json` as RFC 8785 wants them.
fn write_canonical(value: &Value, out: &mut Vec<u8>) -> Result<Plain, serde_json::Error> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => serde_json::to_writer(out, value)?,
        Value::Number(number) if number.is_f64() => return Ok(Plain::HasFloat),
        Value::Number(_) => serde_json::to_writer(out, value)?,
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                if let Plain::HasFloat = write_canonical(item, out)? {
                    return Ok(Plain::HasFloat);
                }
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            // By UTF-16 code units, which for ASCII are the bytes.
            match entries.iter().all(|(key, _)| key.is_ascii()) {
                true => entries.sort_unstable_by(|a, b| a.0.cmp(b.0)),
                false => {
                    entries.sort_unstable_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()))
                }
            }
            out.push(b'{');
            for (at, (key, item)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, key)?;
                out.push(b':');
                if let Plain::HasFloat = write_canonical(item, out)? {
                    return Ok(Plain::HasFloat);
                }
            }
            out.push(b'}');
        }
    }
    Ok(Plain::Yes)
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

fn deeper<E: de::Error>(depth: usize) -> Result<usize, E> {
    if depth >= MAX_DEPTH {
        Err(E::custom("nested too deeply"))
    } else {
        Ok(depth + 1)
    }
}

fn unsigned<E: de::Error>(value: u64) -> Result<u64, E> {
    if value > MAX_INTEGER {
        Err(E::custom(format!("integer {value} is above 2^53")))
    } else {
        Ok(value)
    }
}

fn signed<E: de::Error>(value: i64) -> Result<i64, E> {
    if value.unsigned_abs() > MAX_INTEGER {
        Err(E::custom(format!("integer {value} is below -2^53")))
    } else {
        Ok(value)
    }
}

fn float<T, E: de::Error>(value: f64) -> Result<T, E> {
    Err(E::custom(format!(
        "{value} is a float or an integer too large"
    )))
}

const EXPECTING: &str = "JSON without floats, huge integers or duplicate keys";

impl<'de> Visitor<'de> for StrictSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTING)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        unsigned(value).map(Value::from)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        signed(value).map(Value::from)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        float(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Self { depth })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(Self { depth })?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("duplicate key {key:?}")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Checks a value without keeping it.
struct Checked {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTING)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        unsigned(value).map(drop)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        signed(value).map(drop)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        float(value)
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let depth = deeper(self.depth)?;
        while seq.next_element_seed(Self { depth })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let depth = deeper(self.depth)?;
        let mut keys: Vec<Key<'de>> = Vec::new();
        while let Some(key) = access.next_key::<Key<'de>>()? {
            access.next_value_seed(Self { depth })?;
            keys.push(key);
        }
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(de::Error::custom(format!("duplicate key {:?}", pair[0].0))),
            None => Ok(()),
        }
    }
}

/// A key as it stands in the text, unless an escape made it another.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

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
            assert!(
                parse_strict(bad).is_err(),
                "{:?}",
                String::from_utf8_lossy(bad)
            );
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse_strict(deep.as_bytes()).is_err());
    }

    #[test]
    fn canonical_sorts_by_utf16_and_drops_space() {
        let value =
            parse_strict("{\"b\": 1, \"\u{fb33}\": 2, \"\u{1f600}\": 3, \"a\": [1, 2]}".as_bytes())
                .unwrap();
        let text = String::from_utf8(canonical(&value).unwrap()).unwrap();
        assert_eq!(text, "{\"a\":[1,2],\"b\":1,\"\u{1f600}\":3,\"\u{fb33}\":2}");
    }

    /// Any value without floats, keys of every kind included.
    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-(1i64 << 53)..=1 << 53).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((".{0,6}", inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn both_readings_refuse_the_same() {
        for text in [
            "{\"a\":{\"b\":1,\"\\u0062\":2}}",
            "[1.5]",
            "{\"a\":9007199254740993}",
            "[-9007199254740993]",
            "{} {}",
            "{\"a\":1e2}",
        ] {
            assert!(
                read::<Value>(text.as_bytes()).is_err() && parse_strict(text.as_bytes()).is_err(),
                "{text}"
            );
        }
        assert_eq!(
            canonical(&1.5f64).unwrap(),
            b"1.5",
            "a float is written by the canonicalizer"
        );
        assert_eq!(
            canonical(&serde_json::json!({"b": [1e30], "a": 1})).unwrap(),
            b"{\"a\":1,\"b\":[1e+30]}"
        );
    }

    proptest! {
        /// Our writer is the canonicalizer, only faster.
        #[test]
        fn canonical_is_what_the_canonicalizer_says(value in values()) {
            prop_assert_eq!(canonical_value(&value).unwrap(), serde_json_canonicalizer::to_vec(&value).unwrap());
            let text = serde_json::to_vec(&value).unwrap();
            prop_assert_eq!(&parse_strict(&text).unwrap(), &value);
            prop_assert_eq!(&read::<Value>(&text).unwrap(), &value);
        }

        #[test]
        fn both_readings_agree(bytes in "[\\[\\]{}:,\"a1\\\\u0. -]{0,40}") {
            let (one, other) = (parse_strict(bytes.as_bytes()), read::<Value>(bytes.as_bytes()));
            prop_assert_eq!(one.is_ok(), other.is_ok(), "{:?} {:?}", one, other);
        }

        #[test]
        fn never_panics_and_canonical_is_a_fixed_point(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(value) = parse_strict(&bytes) {
                let once = canonical(&value).unwrap();
                prop_assert_eq!(&canonical(&parse_strict(&once).unwrap()).unwrap(), &once);
            }
        }
    }
}
