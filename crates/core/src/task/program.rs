//! A program that a command of the contract names, as it was found: which bytes, in what kind of
//! place. Never a path: it would name the operator's home, and differ from clone to clone.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::runner::Runner;
use crate::values::digest::Digest;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BoundProgram {
    /// The word of the command.
    pub name: String,
    pub place: ProgramPlace,
    /// As the name of a directory it lies in says; it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub sha256: Digest,
}

/// The kind of place it was found in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramPlace {
    /// Where every jail sees it.
    System,
    /// `.venv/bin` and the like.
    Environment,
    /// What the operator named with `--toolchain`.
    Named,
    /// A directory that is shown whole.
    Installation,
    /// One file of a personal directory.
    Single,
}

/// What was seen of the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaceSeen {
    pub is_system: bool,
    pub is_environment: bool,
    pub is_named: bool,
    /// Something around it is shown whole.
    pub is_in_directory: bool,
}

impl ProgramPlace {
    pub fn of(seen: PlaceSeen) -> Self {
        match seen {
            PlaceSeen {
                is_system: true, ..
            } => Self::System,
            PlaceSeen { is_named: true, .. } => Self::Named,
            PlaceSeen {
                is_environment: true,
                ..
            } => Self::Environment,
            PlaceSeen {
                is_in_directory: true,
                ..
            } => Self::Installation,
            _ => Self::Single,
        }
    }
}

/// The version that the directories around a program name: `…/versions/3.11.7/bin/python3`,
/// `…/node/v20.11.0/bin/npm`, `…/jdk-21.0.1/bin/java`. The innermost counts.
pub fn version_in(path: &Path) -> Option<String> {
    let dirs = path.parent()?.components().rev();
    dirs.filter_map(|part| part.as_os_str().to_str())
        .find_map(version)
        .map(str::to_owned)
}

fn version(name: &str) -> Option<&str> {
    const LONGEST: usize = 32;
    let at = name.find(|c: char| c.is_ascii_digit())?;
    let before = &name[..at];
    let rest = &name[at..];
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let is_word =
        before.is_empty() || before.ends_with('-') || before.chars().all(char::is_alphabetic);
    let mut numbers = rest.split('.');
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let has_two = numbers.next().is_some_and(is_number) && numbers.next().is_some_and(is_number);
    (is_word && has_two && rest.len() <= LONGEST && rest.chars().all(plain)).then_some(rest)
}

/// Is a runner of tests all that a command starts? Nothing of a shell stands beside it.
pub fn is_plain_runner(command: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./=:,@+".contains(c);
    let known = Runner::of_plain(command).is_some() || command.starts_with("go test");
    known && command.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_a_directory_is_named_by() {
        for (path, want) in [
            ("/h/.pyenv/versions/3.11.7/bin/python3", Some("3.11.7")),
            ("/h/.nvm/versions/node/v20.11.0/bin/npm", Some("20.11.0")),
            ("/opt/jdk-21.0.1/bin/java", Some("21.0.1")),
            ("/opt/go1.22.1/bin/go", Some("1.22.1")),
            ("/h/.asdf/installs/lua/5.4.6/bin/lua", Some("5.4.6")),
            (
                "/h/.rustup/toolchains/1.80.0-x86_64-unknown-linux-gnu/bin/cargo",
                Some("1.80.0-x86_64-unknown-linux-gnu"),
            ),
            // The innermost.
            ("/h/v1.2/kit-3.4/bin/x", Some("3.4")),
            // No version, or none that is one.
            ("/usr/bin/python3.11", None),
            (
                "/h/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo",
                None,
            ),
            ("/h/project2/.venv/bin/pytest", None),
            ("/h/a.1 b.2/bin/x", None),
            ("/h/1.2\u{1b}/bin/x", None),
            ("x", None),
        ] {
            assert_eq!(version_in(Path::new(path)).as_deref(), want, "{path}");
        }
        let long = format!("/opt/1.{}/bin/x", "1".repeat(64));
        assert_eq!(version_in(Path::new(&long)), None);
    }

    #[test]
    fn a_place_is_of_one_kind() {
        let seen = |bits: u8| PlaceSeen {
            is_system: bits & 1 != 0,
            is_named: bits & 2 != 0,
            is_environment: bits & 4 != 0,
            is_in_directory: bits & 8 != 0,
        };
        for bits in 0..16u8 {
            let want = match bits.trailing_zeros() {
                0 => ProgramPlace::System,
                1 => ProgramPlace::Named,
                2 => ProgramPlace::Environment,
                3 => ProgramPlace::Installation,
                _ => ProgramPlace::Single,
            };
            assert_eq!(ProgramPlace::of(seen(bits)), want, "{bits}");
        }
    }

    #[test]
    fn a_runner_alone_is_a_plain_one() {
        for (command, want) in [
            ("pytest -q tests/a.py", true),
            ("go test ./...", true),
            ("cargo test && cargo clippy", false),
            ("pytest; true", false),
            ("pytest `x`", false),
            ("make test", false),
        ] {
            assert_eq!(is_plain_runner(command), want, "{command}");
        }
    }
}
