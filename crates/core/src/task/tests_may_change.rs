//! Tests of the baseline that the task itself takes away, renames or merges. Said before an engine
//! starts, and part of the task: nobody can add to it afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A test that need not run again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestChange {
    /// As reports name it; `*` stands for any letters, `?` for one.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl TestChange {
    /// `ID` or `ID=REASON`. What would cover every test covers nothing that was thought about.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (id, reason) = match text.split_once('=') {
            Some((id, reason)) => (id.trim(), Some(reason.trim())),
            None => (text.trim(), None),
        };
        Self::new(id, reason)
    }

    pub fn new(id: &str, reason: Option<&str>) -> Result<Self, &'static str> {
        if id.chars().all(|c| matches!(c, '*' | '?')) {
            return Err("names no test");
        }
        if id
            .chars()
            .chain(reason.unwrap_or_default().chars())
            .any(char::is_control)
        {
            return Err("holds a control character");
        }
        if reason == Some("") {
            return Err("gives an empty reason");
        }
        Ok(Self {
            id: id.to_owned(),
            reason: reason.map(str::to_owned),
        })
    }

    /// As people are told.
    pub fn line(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{} ({reason})", self.id),
            None => self.id.clone(),
        }
    }

    pub fn covers(&self, id: &str) -> bool {
        fits(&self.id, id)
    }
}

/// Does a pattern with `*` and `?` fit a name? In time of both lengths: the last `*` is the only one
/// that ever has to take more.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || Some(wanted) == name.get(n) => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .unwrap_or_default()
        .iter()
        .all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_and_perhaps_a_reason() {
        let change = |id: &str, reason: Option<&str>| {
            Ok(TestChange {
                id: id.into(),
                reason: reason.map(Into::into),
            })
        };
        for (text, want) in [
            ("test_a.A.test_x", change("test_a.A.test_x", None)),
            (
                "a.py::x=merged into y",
                change("a.py::x", Some("merged into y")),
            ),
            (
                "a.py::* = moved = away",
                change("a.py::*", Some("moved = away")),
            ),
            ("double > two", change("double > two", None)),
            ("", Err("names no test")),
            ("*", Err("names no test")),
            ("**?=all", Err("names no test")),
            ("a=", Err("gives an empty reason")),
            ("a\nb", Err("holds a control character")),
        ] {
            assert_eq!(TestChange::parse(text), want, "{text}");
        }
    }

    #[test]
    fn a_star_stands_for_letters() {
        for (pattern, name, want) in [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*", "a.bc", true),
            ("*.c", "a.b.c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
            ("ä*", "äb", true),
        ] {
            assert_eq!(fits(pattern, name), want, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_fits_itself_and_what_it_begins_with(name in "[a-c.]{1,12}", more in "[a-c.]{0,6}") {
            prop_assert!(fits(&name, &name));
            let (pattern, longer) = (format!("{name}*"), format!("{name}{more}"));
            prop_assert!(fits(&pattern, &longer));
            prop_assert_eq!(fits(&name, &longer), more.is_empty());
        }
    }
}
