//! Which files the commands of a contract and the build files of a tree name.
//!
//! Who names a file reads it: then it is no mere documentation. A package that names its own readme
//! and licence only shows them, and so does not read them.

use std::collections::BTreeSet;

use super::language::file_name;
use super::not_code::is_front_page;
use crate::values::paths::{PathRule, TreePath};

/// A build file and what stands in it.
#[derive(Clone, Copy, Debug)]
pub struct BuildFile<'a> {
    pub path: &'a TreePath,
    pub text: &'a str,
}

/// The words of commands and build files that could be names of files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Named {
    words: BTreeSet<String>,
    of_commands: BTreeSet<String>,
    /// Of commands only: a directory a command names is read whole.
    directories: BTreeSet<String>,
}

/// Keys under which a package shows its pages.
const SHOWN: &[&str] = &[
    "readme",
    "license",
    "license-file",
    "license-files",
    "license_file",
    "license_files",
    "description-file",
    "description_file",
    "long_description",
    "description",
    "include",
    "exclude",
    "files",
    "changelog",
    "urls",
    "homepage",
    "documentation",
    "sdist",
];

const BUILD_FILES: &[&str] = &[
    "makefile",
    "gnumakefile",
    "cmakelists.txt",
    "justfile",
    "meson.build",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "noxfile.py",
    "pytest.ini",
    ".pytest.ini",
    "hatch.toml",
    "package.json",
    "cargo.toml",
    "build.rs",
    "build.gradle",
    "build.gradle.kts",
    "pom.xml",
    "rakefile",
    "gemfile",
    "go.mod",
    "tsconfig.json",
    "composer.json",
    "dune",
    "build.zig",
    "dockerfile",
    "conftest.py",
    "sconstruct",
    "wscript",
    "tasks.py",
    "dodo.py",
];

/// Is this one of the files that say how a project is built and tested?
pub fn is_build_file(path: &TreePath) -> bool {
    let name = String::from_utf8_lossy(file_name(path)).to_ascii_lowercase();
    let script = ["js", "mjs", "cjs", "ts", "mts", "cts", "json"]
        .iter()
        .any(|end| name.ends_with(&format!(".config.{end}")));
    BUILD_FILES.contains(&name.as_str())
        || script
        || name.ends_with(".mk")
        || name.ends_with(".cmake")
        || name.ends_with(".gemspec")
}

impl Named {
    /// Commands are those of setup, visible and hidden checks; build files those of the baseline and
    /// of the result, since a change may have taken a name out.
    pub fn by<'a>(
        commands: impl IntoIterator<Item = &'a str>,
        build_files: impl IntoIterator<Item = BuildFile<'a>>,
    ) -> Self {
        let mut found = Self::default();
        for command in commands {
            for word in words(command) {
                found
                    .directories
                    .insert(word.trim_end_matches('/').to_owned());
                found.of_commands.insert(word.clone());
                found.words.insert(word);
            }
        }
        for file in build_files {
            found.read(file);
        }
        found
    }

    fn read(&mut self, file: BuildFile<'_>) {
        let name = String::from_utf8_lossy(file_name(file.path)).to_ascii_lowercase();
        if name.ends_with(".toml")
            && let Ok(table) = file.text.parse::<toml::Table>()
        {
            return self.toml(&toml::Value::Table(table));
        }
        if name.ends_with(".json")
            && let Ok(value) = serde_json::from_str(file.text)
        {
            return self.json(&value);
        }
        // How a package is packed shows its pages, and reads them for nothing else.
        let packs = ["setup.py", "setup.cfg", "pom.xml"].contains(&name.as_str())
            || name.ends_with(".gemspec");
        for line in file.text.lines() {
            let key: String = line
                .trim_start_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'')
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                .collect();
            if SHOWN.contains(&key.as_str()) || line.contains("long_description") {
                continue;
            }
            let read = |word: &String| !(packs && is_front_page(word));
            self.words.extend(words(line).into_iter().filter(read));
        }
    }

    fn toml(&mut self, value: &toml::Value) {
        match value {
            toml::Value::String(text) => self.words.extend(words(text)),
            toml::Value::Array(list) => list.iter().for_each(|value| self.toml(value)),
            toml::Value::Table(table) => {
                for (key, value) in table {
                    if !SHOWN.contains(&key.as_str()) {
                        self.toml(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn json(&mut self, value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.words.extend(words(text)),
            serde_json::Value::Array(list) => list.iter().for_each(|value| self.json(value)),
            serde_json::Value::Object(table) => {
                for (key, value) in table {
                    if !SHOWN.contains(&key.as_str()) {
                        self.json(value);
                    }
                }
            }
            _ => {}
        }
    }

    /// Does a command name this very path?
    pub fn by_a_command(&self, path: &TreePath) -> bool {
        let whole = std::str::from_utf8(path.as_bytes());
        whole.is_ok_and(|whole| self.directories.contains(whole))
    }

    /// Does a command name it, by its name or by a pattern for it?
    pub fn by_words_of_a_command(&self, path: &TreePath) -> bool {
        said(&self.of_commands, path)
    }

    /// Is this file named: by its path, its name, a pattern for its name, or, in a command, by a
    /// directory it lies in?
    pub fn names(&self, path: &TreePath) -> bool {
        let Ok(whole) = std::str::from_utf8(path.as_bytes()) else {
            return false;
        };
        let below = whole
            .match_indices('/')
            .filter_map(|(at, _)| whole.get(..at))
            .any(|dir| self.directories.contains(dir));
        below || said(&self.words, path)
    }
}

/// Is the name of this file among the words, or covered by one?
fn said(words: &BTreeSet<String>, path: &TreePath) -> bool {
    let Ok(whole) = std::str::from_utf8(path.as_bytes()) else {
        return false;
    };
    let name = whole.rsplit('/').next().unwrap_or(whole);
    words.iter().any(|word| {
        let last = word.rsplit('/').next().unwrap_or(word);
        // `../README.md` and `{toxinidir}/README.md` are the same file for all that is known.
        last == name || (last.contains('*') && matches(last, name))
    })
}

/// A pattern counts when it says what kind of file it means: `*` alone names nothing.
fn matches(pattern: &str, name: &str) -> bool {
    let end = pattern.rsplit('*').next().unwrap_or_default();
    let rule: Result<PathRule, _> = pattern.parse();
    end.len() > 1 && rule.is_ok_and(|rule| rule.covers(&TreePath::new(name)))
}

/// The words of a line, as far as they could be paths. `--option=value` is two.
fn words(text: &str) -> Vec<String> {
    let part_of_path = |c: char| c.is_alphanumeric() || "._-/*+@~".contains(c);
    text.split(|c: char| !part_of_path(c))
        .map(|word| word.strip_prefix("./").unwrap_or(word))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(str::to_owned)
        .collect()
}
