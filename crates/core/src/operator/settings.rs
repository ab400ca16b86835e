//! `config.toml`: the settings a person may make once for all commands, and which source of a
//! setting wins.
//!
//! A file can be written by anyone who gets at it, so it holds nothing that is secret and nothing
//! that changes what a run may do: no engine is opened, no stage raised, no containment loosened
//! from here. The one program it may name is git, and what is named is looked at like any other
//! program outside a jail (`containment/outside.rs`).

use std::collections::BTreeMap;

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use crate::task::case_file::ContractIssue as Issue;
use crate::task::case_file::place;

/// One setting: its key in the file and everything else that can set it.
pub struct Knob {
    pub key: &'static str,
    pub takes: Takes,
    /// None where only the file can set it.
    pub flag: Option<&'static str>,
    /// Environment variables, the strongest first.
    pub variables: &'static [&'static str],
    pub what: &'static str,
    pub default: &'static str,
}

/// Which values a setting takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    Directory,
    File,
    Seconds,
    Color,
    Program,
}

pub const KNOBS: &[Knob] = &[
    Knob {
        key: "home",
        takes: Takes::Directory,
        flag: Some("--home"),
        variables: &["CTO_STATE_DIR", "HERMES_HOME", "CTO_HOME"],
        what: "directory for all state",
        default: "XDG state",
    },
    Knob {
        key: "runs_dir",
        takes: Takes::Directory,
        flag: Some("--runs-dir"),
        variables: &["CTO_RUNS_DIR"],
        what: "directory for run bundles only",
        default: "`harness-runs` in the state directory",
    },
    Knob {
        key: "cases",
        takes: Takes::Directory,
        flag: Some("--cases"),
        variables: &[],
        what: "directory of cases, instead of the built-in ones",
        default: "the built-in cases",
    },
    Knob {
        key: "timeout",
        takes: Takes::Seconds,
        flag: Some("--timeout"),
        variables: &[],
        what: "seconds an engine may take",
        default: "as the case says",
    },
    Knob {
        key: "idle",
        takes: Takes::Seconds,
        flag: Some("--idle"),
        variables: &[],
        what: "seconds an engine may stay silent",
        default: "as the case says",
    },
    Knob {
        key: "color",
        takes: Takes::Color,
        flag: Some("--color"),
        variables: &["NO_COLOR", "CLICOLOR_FORCE"],
        what: "when to use colours: auto, always or never",
        default: "auto",
    },
    Knob {
        key: "prices",
        takes: Takes::File,
        flag: Some("--prices"),
        variables: &[],
        what: "your file with the prices of models, for --spend",
        default: "none",
    },
    Knob {
        key: "git",
        takes: Takes::Program,
        flag: None,
        variables: &[],
        what: "the git to use, by its absolute path",
        default: "the system's",
    },
];

impl Knob {
    pub fn find(key: &str) -> Option<&'static Self> {
        KNOBS.iter().find(|knob| knob.key == key)
    }
}

impl Takes {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Directory => "a directory as text, absolute or below `~/`",
            Self::File => "a file as text, absolute or below `~/`",
            Self::Seconds => "a whole number of seconds, 1 to 604800",
            Self::Color => "\"auto\", \"always\" or \"never\"",
            Self::Program => "the absolute path of a program",
        }
    }

    /// The value as text, if the setting takes it.
    fn read(self, value: &DeValue<'_>) -> Option<String> {
        match (self, value) {
            (Self::Directory | Self::File, DeValue::String(text)) => {
                let rooted = text.starts_with('/') || text.starts_with("~/") || text == "~";
                (rooted && text.len() <= 4096 && !text.chars().any(char::is_control))
                    .then(|| text.to_string())
            }
            (Self::Seconds, DeValue::Integer(number)) => {
                let seconds = u32::from_str_radix(number.as_str(), number.radix()).ok()?;
                (1..=604_800)
                    .contains(&seconds)
                    .then(|| seconds.to_string())
            }
            (Self::Color, DeValue::String(text)) => {
                matches!(text.as_ref(), "auto" | "always" | "never").then(|| text.to_string())
            }
            (Self::Program, DeValue::String(text)) => {
                let plain = !text.split('/').any(|part| part == "..");
                (text.starts_with('/')
                    && plain
                    && text.len() <= 4096
                    && !text.chars().any(char::is_control))
                .then(|| text.to_string())
            }
            _ => None,
        }
    }
}

/// A value and its line in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    pub value: String,
    pub line: u64,
}

/// A config file after every check on its text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config(BTreeMap<&'static str, Given>);

impl Config {
    pub fn get(&self, key: &str) -> Option<&Given> {
        self.0.get(key)
    }
}

/// Parses and checks a config file. On failure every issue is returned, never none.
pub fn parse_config(file: &str, bytes: &[u8]) -> Result<Config, Vec<Issue>> {
    let issue = |(line, column), message| Issue {
        file: file.to_owned(),
        line,
        column,
        message,
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        vec![issue(
            place(&good, good.len()),
            "is not UTF-8 from here on".to_owned(),
        )]
    })?;
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        vec![issue(place(text, offset), error.message().to_owned())]
    })?;
    let mut config = Config::default();
    let mut issues = Vec::new();
    for (key, value) in table.get_ref().iter() {
        let at = place(text, key.span().start);
        match Knob::find(key.get_ref()) {
            Some(knob) => match knob.takes.read(value.get_ref()) {
                Some(value) => drop(config.0.insert(knob.key, Given { value, line: at.0 })),
                None => issues.push(issue(
                    place(text, value.span().start),
                    format!(
                        "{} takes {}, not this {}",
                        knob.key,
                        knob.takes.describe(),
                        value.get_ref().type_str()
                    ),
                )),
            },
            None => refuse("", key, value, &mut |offset, message| {
                issues.push(issue(place(text, offset), message))
            }),
        }
    }
    issues.sort_by_key(|issue| (issue.line, issue.column));
    if issues.is_empty() {
        Ok(config)
    } else {
        Err(issues)
    }
}

/// Names every key below one that is not known: what is in a table is refused like what is not.
fn refuse(
    above: &str,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    say: &mut dyn FnMut(usize, String),
) {
    let name = format!("{above}{}", key.get_ref());
    match value.get_ref() {
        DeValue::Table(table) if !table.is_empty() => {
            for (inner, value) in table.iter() {
                refuse(&format!("{name}."), inner, value, say);
            }
        }
        _ => say(key.span().start, refusal(&name)),
    }
}

const SECRET: &[&str] = &[
    "token",
    "secret",
    "passw",
    "passphrase",
    "key",
    "credential",
    "auth",
    "bearer",
    "cookie",
    "baseurl",
    "endpoint",
];
const POWER: &[&str] = &[
    "allow",
    "engine",
    "stage",
    "contain",
    "jail",
    "layer",
    "sandbox",
    "network",
    "approv",
    "promot",
    "activat",
    "default",
    "gate",
    "land",
    "push",
    "merge",
    "deploy",
    "verif",
    "control",
    "hidden",
    "script",
    "scope",
    "forbid",
    "admission",
];

/// Why an unknown key is refused. Its value is never shown: it may be a secret.
fn refusal(name: &str) -> String {
    let plain: String = name
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect();
    let holds = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    if holds(SECRET) {
        return format!("{name:?} looks like a secret or an endpoint; this file holds neither");
    }
    if holds(POWER) {
        return format!(
            "{name:?} would change what a run may do; no file can, only a flag or variable of the command itself"
        );
    }
    let known = KNOBS
        .iter()
        .map(|knob| knob.key)
        .collect::<Vec<_>>()
        .join(", ");
    format!("{name:?} is not a known key; known keys: {known}")
}

/// Where a setting came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    Flag {
        name: &'static str,
    },
    Environment {
        name: &'static str,
    },
    /// A profile that was found at its usual place.
    Profile,
    Config {
        line: u64,
    },
    Default,
}

/// All sources of one setting.
pub struct Layers<T> {
    pub flag: Option<T>,
    pub environment: Option<(Source, T)>,
    pub config: Option<(u64, T)>,
    pub default: Option<T>,
}

impl<T> Layers<T> {
    /// Flag over environment over config file over default.
    pub fn choose(self, key: &str) -> Option<(Source, T)> {
        let name = Knob::find(key)
            .and_then(|knob| knob.flag)
            .unwrap_or("a flag");
        let flag = self.flag.map(|value| (Source::Flag { name }, value));
        let config = self
            .config
            .map(|(line, value)| (Source::Config { line }, value));
        flag.or(self.environment)
            .or(config)
            .or(self.default.map(|value| (Source::Default, value)))
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
