//! Points in time as values. Core never asks what time it is.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// UTC with millisecond precision, written as `2026-01-02T03:04:05.678Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Utc(jiff::Timestamp);

#[derive(Debug, thiserror::Error)]
#[error("not a UTC time like 2026-01-02T03:04:05.678Z")]
pub struct NotATime;

impl Utc {
    pub fn from_millis(millis: i64) -> Result<Self, NotATime> {
        jiff::Timestamp::from_millisecond(millis).map(Self).map_err(|_| NotATime)
    }

    pub fn as_millis(&self) -> i64 {
        self.0.as_millisecond()
    }

    /// `20260102T030405Z`, the leading part of a run id.
    pub fn compact(&self) -> String {
        self.0.strftime("%Y%m%dT%H%M%SZ").to_string()
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Utc {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let shape_ok = text.len() == 24 && text.ends_with('Z') && text.is_ascii();
        let parsed = text.parse::<jiff::Timestamp>().map_err(|_| NotATime)?;
        let utc = Self(parsed);
        if shape_ok && utc.to_string() == text { Ok(utc) } else { Err(NotATime) }
    }
}

impl Serialize for Utc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Utc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Utc {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Utc".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_only() {
        let t = Utc::from_millis(1_767_323_045_678).unwrap();
        assert_eq!(t.to_string(), "2026-01-02T03:04:05.678Z");
        assert_eq!(t.compact(), "20260102T030405Z");
        assert_eq!("2026-01-02T03:04:05.678Z".parse::<Utc>().unwrap(), t);
        assert_eq!(Utc::from_millis(0).unwrap().to_string(), "1970-01-01T00:00:00.000Z");
        for bad in ["2026-01-02T03:04:05Z", "2026-01-02 03:04:05.678Z", "2026-01-02T04:04:05.678+01:00", ""] {
            assert!(bad.parse::<Utc>().is_err(), "{bad}");
        }
    }
}
