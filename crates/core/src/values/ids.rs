//! Names that are checked once, when they enter, and trusted afterwards.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::values::time::Utc;

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is not a {what}: {rule}")]
pub struct BadName {
    pub text: String,
    pub what: &'static str,
    pub rule: &'static str,
}

const SLUG_RULE: &str = "lower-case letters, digits and single hyphens, 1 to 64 characters, starting with a letter or digit";

fn is_slug(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:expr, $pattern:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                if $check(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(BadName { text: text.chars().take(80).collect(), what: $what, rule: $rule })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": $pattern})
            }
        }
    };
}

name_type!(
    /// A case, e.g. `r1-string-slugify`.
    CaseId, "case id", SLUG_RULE, "^[a-z0-9](-?[a-z0-9])*$", is_slug
);
name_type!(
    /// An engine, e.g. `fake`.
    EngineId, "engine id", SLUG_RULE, "^[a-z0-9](-?[a-z0-9])*$", is_slug
);
name_type!(
    /// One run: `<UTC yyyymmddThhmmssZ>-<case-id>-<suffix>`; also its directory name.
    RunId,
    "run id",
    "<yyyymmddThhmmssZ>-<case-id>-<suffix>",
    "^\\d{8}T\\d{6}Z-[a-z0-9](-?[a-z0-9])*-[a-z0-9]{4,32}$",
    is_run_id
);

fn is_run_id(text: &str) -> bool {
    let Some((stamp, rest)) = text.split_once('-') else {
        return false;
    };
    let Some((case, suffix)) = rest.rsplit_once('-') else {
        return false;
    };
    let digits = |part: &str, n: usize| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
    let stamp_ok = stamp.len() == 16
        && stamp.is_ascii()
        && stamp.ends_with('Z')
        && digits(&stamp[..8], 8)
        && &stamp[8..9] == "T"
        && digits(&stamp[9..15], 6);
    let suffix_ok = (4..=32).contains(&suffix.len())
        && suffix
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    stamp_ok && is_slug(case) && suffix_ok
}

impl RunId {
    /// The parts of the name: when, case, suffix.
    fn parts(&self) -> (&str, &str, &str) {
        let (stamp, rest) = self.0.split_once('-').unwrap_or_default();
        let (case, suffix) = rest.rsplit_once('-').unwrap_or_default();
        (stamp, case, suffix)
    }

    /// One text that sorts as runs began: `<when>-<suffix>-<case>`. A hyphen sorts before every
    /// letter and digit, so comparing texts compares part by part.
    pub fn sort_key(&self) -> String {
        let (stamp, case, suffix) = self.parts();
        [stamp, suffix, case].join("-")
    }

    pub fn from_sort_key(key: &str) -> Result<Self, BadName> {
        let mut parts = key.splitn(3, '-');
        let mut next = || parts.next().unwrap_or_default();
        let (stamp, suffix, case) = (next(), next(), next());
        format!("{stamp}-{case}-{suffix}").parse()
    }

    /// The last part, which alone nearly always names the run.
    pub fn suffix(&self) -> &str {
        self.parts().2
    }

    /// The case the name was made for.
    pub fn case(&self) -> &str {
        self.parts().1
    }

    /// When the run began, to the second; a name whose digits are no time has no answer.
    pub fn started(&self) -> Option<Utc> {
        Utc::from_compact(self.parts().0)
    }

    pub fn new(started: Utc, case: &CaseId, suffix: &str) -> Result<Self, BadName> {
        format!("{}-{case}-{suffix}", started.compact()).parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        for good in ["a", "r1-string-slugify", "0", &"x".repeat(64)] {
            assert!(good.parse::<CaseId>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "a--b",
            "A",
            "a_b",
            "a/b",
            "..",
            "a b",
            "é",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<CaseId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sort_keys_follow_the_clock_and_lead_back() {
        let ids = [
            "20260102T030405Z-z-zz22",
            "20260102T030406Z-a-b-c-2222",
            "20260102T030406Z-a-22223",
            "20260102T030406Z-b-22223",
            "20260102T030407Z-a-2222",
        ];
        let keys: Vec<String> = ids
            .iter()
            .map(|id| id.parse::<RunId>().unwrap().sort_key())
            .collect();
        assert!(keys.is_sorted(), "{keys:?}");
        for (id, key) in ids.iter().zip(&keys) {
            assert_eq!(RunId::from_sort_key(key).unwrap().as_str(), *id);
        }
        for bad in [
            "",
            "20260102T030406Z",
            "20260102T030406Z-2222",
            "20260102T030406Z-22-a",
        ] {
            assert!(RunId::from_sort_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_id_tells_its_parts() {
        let id: RunId = "20260102T030405Z-a-b-k3v9".parse().unwrap();
        assert_eq!((id.case(), id.suffix()), ("a-b", "k3v9"));
        assert_eq!(
            id.started().unwrap().to_string(),
            "2026-01-02T03:04:05.000Z"
        );
        assert_eq!(
            "99999999T999999Z-a-k3v9"
                .parse::<RunId>()
                .unwrap()
                .started(),
            None
        );
    }

    #[test]
    fn run_ids() {
        let started = Utc::from_millis(1_767_323_045_678).unwrap();
        let case: CaseId = "r1-string-slugify".parse().unwrap();
        let id = RunId::new(started, &case, "k3v9x2").unwrap();
        assert_eq!(id.as_str(), "20260102T030405Z-r1-string-slugify-k3v9x2");
        for bad in [
            "20260102T030405Z-r1-x",
            "20260102T030405-r1-string-slugify-k3v9",
            "2026010AT030405Z-r1-string-slugify-k3v9",
            "20260102T03040éZ-a-k3v9",
            "20260102T030405Z-r1-string-slugify-K3V9",
            "../20260102T030405Z-a-k3v9",
            "20260102T030405Z-../x-k3v9",
        ] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }
}
