//! What may be remembered of a repository: one row a flag of `cto try`. What is not in this table never is.

use crate::task::runner::Runner;
use crate::values::paths::PathRule;
use crate::values::text::is_dangerous;

/// What a flag takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A shell command.
    Command,
    /// A path below the top of the repository; `.` is all of it.
    Path,
    Runner,
    Seconds,
    /// What the untouched copy must be before an engine starts.
    Start,
}

/// A flag that is remembered.
#[derive(Debug)]
pub struct Field {
    /// Its name in the document, and in answers.
    pub key: &'static str,
    pub flag: &'static str,
    takes: Takes,
    /// It may be given more than once.
    pub many: bool,
    /// Typed values are added to the remembered ones; else they stand in their place.
    pub adds: bool,
    /// What is remembered goes when one of these is typed: it belonged to what they replace.
    pub gives_way_to: &'static [&'static str],
}

pub const FIELDS: &[Field] = &[
    Field {
        key: "test",
        flag: "--test",
        takes: Takes::Command,
        many: true,
        adds: false,
        gives_way_to: &[],
    },
    Field {
        key: "allow",
        flag: "--allow",
        takes: Takes::Path,
        many: true,
        adds: false,
        gives_way_to: &[],
    },
    Field {
        key: "forbid",
        flag: "--forbid",
        takes: Takes::Path,
        many: true,
        // One more never loosens anything; a scope that is typed is a scope of its own.
        adds: true,
        gives_way_to: &["allow"],
    },
    Field {
        key: "setup",
        flag: "--setup",
        takes: Takes::Command,
        many: true,
        adds: false,
        gives_way_to: &[],
    },
    Field {
        key: "input",
        flag: "--input",
        takes: Takes::Path,
        many: true,
        adds: false,
        gives_way_to: &[],
    },
    Field {
        key: "no_input",
        flag: "--no-input",
        takes: Takes::Path,
        many: true,
        adds: false,
        gives_way_to: &[],
    },
    Field {
        key: "runner",
        flag: "--runner",
        takes: Takes::Runner,
        many: false,
        adds: false,
        gives_way_to: &["test", "control"],
    },
    Field {
        key: "test_timeout",
        flag: "--test-timeout",
        takes: Takes::Seconds,
        many: false,
        adds: false,
        gives_way_to: &["test"],
    },
    Field {
        key: "baseline",
        flag: "--baseline",
        takes: Takes::Start,
        many: false,
        adds: false,
        gives_way_to: &[],
    },
];

/// What `--baseline` takes: it must be green, or may be anything.
pub const STARTS: [&str; 2] = ["green", "any"];

/// Flags that open, loosen or excuse something, or that say something about one run alone. A test holds both
/// lists apart.
pub const NEVER: &[&str] = &[
    "--engine",
    "--allow-engine",
    "--script",
    "--contain",
    "--env",
    "--toolchain",
    "--accept-unproven",
    "--unchecked",
    "--changed-test",
    "--control",
    "--from-head",
    "--no-env",
    "--trace",
    "--keep",
];

/// More values of one flag than anybody types.
const MOST: usize = 256;
const LONGEST: usize = 4096;

impl Field {
    pub fn find(key: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.key == key)
    }

    /// Why these values cannot be remembered.
    pub fn refuses(&self, values: &[String]) -> Option<String> {
        let most = if self.many { MOST } else { 1 };
        if values.is_empty() || values.len() > most {
            return Some(format!("{} has {} values", self.flag, values.len()));
        }
        values.iter().find_map(|value| self.refuses_one(value))
    }

    fn refuses_one(&self, value: &str) -> Option<String> {
        let no = |why: &str| Some(format!("{} {value:?}: {why}", self.flag));
        if value.trim().is_empty() {
            return no("it is empty");
        }
        if value.len() > LONGEST {
            let flag = self.flag;
            return Some(format!("{flag}: it is longer than {LONGEST} bytes"));
        }
        if value.chars().any(is_dangerous) {
            return no("it holds a control character, or one that nobody sees");
        }
        match self.takes {
            Takes::Command => None,
            Takes::Path => {
                let plain = value.strip_prefix("./").unwrap_or(value);
                let plain = plain.trim_end_matches('/');
                if matches!(plain, "" | ".") {
                    return None;
                }
                let problem = plain.parse::<PathRule>().err()?;
                no(&problem.to_string())
            }
            Takes::Runner if Runner::parse(value).is_some() => None,
            Takes::Runner => no("there is no such runner"),
            Takes::Start if STARTS.contains(&value) => None,
            Takes::Start => no("it is neither green nor any"),
            Takes::Seconds => {
                let seconds = value.parse::<u32>().ok();
                match seconds.filter(|seconds| (1..=604_800).contains(seconds)) {
                    Some(_) => None,
                    None => no("it is no number of seconds from 1 to 604800"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_sound() {
        for field in FIELDS {
            assert_eq!(field.flag, format!("--{}", field.key.replace('_', "-")));
            assert!(!NEVER.contains(&field.flag), "{}", field.flag);
            assert_eq!(FIELDS.iter().filter(|f| f.key == field.key).count(), 1);
        }
    }

    #[test]
    fn values_are_read_before_they_are_believed() {
        let refuses = |key: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
            Field::find(key).unwrap().refuses(&values).is_some()
        };
        for (key, good) in [
            ("test", "npm test -- --x='a b'"),
            ("allow", "."),
            ("allow", "./src/"),
            ("forbid", "*/*_test.go"),
            ("input", "build"),
            ("runner", "jest"),
            ("test_timeout", "600"),
            ("baseline", "green"),
            ("baseline", "any"),
        ] {
            assert!(!refuses(key, &[good]), "{key} {good}");
        }
        for (key, bad) in [
            ("test", ""),
            ("test", " "),
            ("test", "a\u{1b}[2Jb"),
            ("test", "a\nb"),
            ("test", "a\u{202e}b"),
            ("allow", "/etc"),
            ("allow", "../x"),
            ("allow", "a/**"),
            ("runner", "make"),
            ("test_timeout", "0"),
            ("test_timeout", "many"),
            ("baseline", "red"),
        ] {
            assert!(refuses(key, &[bad]), "{key} {bad:?}");
        }
        assert!(refuses("runner", &["jest", "mocha"]));
        assert!(refuses("test", &[]));
        assert!(refuses("test", &["x"; 257]));
        assert!(refuses("test", &[&"x".repeat(5000)]));
    }
}
