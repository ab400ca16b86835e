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
    /// Earlier than anything that happened: the first moment that can be written.
    pub const FIRST: Self = Self(jiff::Timestamp::MIN);

    pub fn from_millis(millis: i64) -> Result<Self, NotATime> {
        jiff::Timestamp::from_millisecond(millis)
            .map(Self)
            .map_err(|_| NotATime)
    }

    pub fn as_millis(&self) -> i64 {
        self.0.as_millisecond()
    }

    /// `20260102T030405Z`, the leading part of a run id.
    pub fn compact(&self) -> String {
        self.0.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    /// Reads that form; none where the digits are not a time.
    pub fn from_compact(text: &str) -> Option<Self> {
        let part = |range: std::ops::Range<usize>| text.get(range);
        let date = format!("{}-{}-{}", part(0..4)?, part(4..6)?, part(6..8)?);
        Self::from_rfc3339(&format!(
            "{date}T{}:{}:{}Z",
            part(9..11)?,
            part(11..13)?,
            part(13..15)?
        ))
    }

    /// For a table: `01-02 03:04` in the year of `now`, `2025-01-02` in any other.
    pub fn short(&self, now: Utc) -> String {
        let year = |time: &Self| time.0.strftime("%Y").to_string();
        self.0
            .strftime(if year(self) == year(&now) {
                "%m-%d %H:%M"
            } else {
                "%Y-%m-%d"
            })
            .to_string()
    }

    /// The first moment of a day written as `2026-01-02`.
    pub fn day(text: &str) -> Option<Self> {
        let shape_ok = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        shape_ok.then(|| Self::from_rfc3339(&format!("{text}T00:00:00Z")))?
    }

    /// Any RFC 3339 time, with whatever offset; only its milliseconds are kept.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let shape_ok = text.is_ascii()
            && text.as_bytes().get(10).is_some_and(|b| b"Tt".contains(b))
            && !text.contains('[');
        let time = text.parse::<jiff::Timestamp>().ok().filter(|_| shape_ok)?;
        Self::from_millis(time.as_millisecond()).ok()
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
        if shape_ok && utc.to_string() == text {
            Ok(utc)
        } else {
            Err(NotATime)
        }
    }
}

impl Serialize for Utc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Utc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
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
    fn other_spellings_are_read_where_they_are_asked_for() {
        let t = Utc::from_millis(1_767_323_045_000).unwrap();
        assert_eq!(Utc::from_compact(&t.compact()), Some(t));
        assert_eq!(Utc::from_rfc3339("2026-01-02T05:04:05.0004+02:00"), Some(t));
        assert_eq!(
            Utc::day("2026-01-02").unwrap().to_string(),
            "2026-01-02T00:00:00.000Z"
        );
        assert_eq!(t.short(t), "01-02 03:04");
        assert_eq!(t.short(Utc::from_millis(0).unwrap()), "2026-01-02");
        for bad in [
            "99999999T999999Z",
            "20260230T000000Z",
            "2026",
            "",
            "2026010éT030405Z",
        ] {
            assert_eq!(Utc::from_compact(bad), None, "{bad}");
        }
        for bad in [
            "2026-01-02",
            "2026-01-02 03:04:05Z",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05Z[UTC]",
            "now",
        ] {
            assert_eq!(Utc::from_rfc3339(bad), None, "{bad}");
        }
        assert_eq!(
            (
                Utc::day("2026-02-30"),
                Utc::day("2026-1-02"),
                Utc::day("+026-01-02")
            ),
            (None, None, None)
        );
    }

    #[test]
    fn one_spelling_only() {
        let t = Utc::from_millis(1_767_323_045_678).unwrap();
        assert_eq!(t.to_string(), "2026-01-02T03:04:05.678Z");
        assert_eq!(t.compact(), "20260102T030405Z");
        assert_eq!("2026-01-02T03:04:05.678Z".parse::<Utc>().unwrap(), t);
        assert_eq!(
            Utc::from_millis(0).unwrap().to_string(),
            "1970-01-01T00:00:00.000Z"
        );
        for bad in [
            "2026-01-02T03:04:05Z",
            "2026-01-02 03:04:05.678Z",
            "2026-01-02T04:04:05.678+01:00",
            "",
        ] {
            assert!(bad.parse::<Utc>().is_err(), "{bad}");
        }
    }
}
