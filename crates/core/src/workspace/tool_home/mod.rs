//! What tools keep in their user's home: caches of builds and packages without which a suite takes
//! many times as long, or finds no network to fetch them from. Which they are, when they are called
//! for, and what of them a jail is shown: one table.
//!
//! Every row is a store whose names are made of what was put in: an entry that is there says what
//! was made of the same bytes, and nothing about others. What a tool finds there by the path or the
//! time of a directory, or by the name of a package that the repository itself builds, is in no row
//! or looks empty: it would be what the code was before the change.
//!
//! - this file: the table; `called_for.rs` which words of a command start a program
//! - `maven.rs` which packages a repository builds itself

mod called_for;
pub mod maven;

use std::path::{Path, PathBuf};

use super::environment::{Carried, EnvironmentKind, MOST_COPIED_BYTES, MOST_COPIED_FILES};
use crate::values::paths::TreePath;

/// One directory of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToolHome {
    pub kind: EnvironmentKind,
    /// Tracked files of these names call for it; a `*` at the end is any rest.
    files: &'static [&'static str],
    /// So do these programs, where a command of the contract starts one.
    words: &'static [&'static str],
    /// Where the tool looks: what lies below the first variable that is set.
    places: &'static [(&'static str, &'static str)],
    /// What of it is shown; the empty name is all of it, and a `*` at the end is any rest.
    pub parts: &'static [&'static str],
    /// What of a part looks empty.
    pub covered: &'static [&'static str],
}

const GO: ToolHome = ToolHome {
    kind: EnvironmentKind::GoBuilds,
    files: &["go.mod", "go.work"],
    words: &["go", "gofmt", "golangci-lint"],
    places: &[
        ("GOCACHE", ""),
        ("XDG_CACHE_HOME", "go-build"),
        ("HOME", ".cache/go-build"),
    ],
    parts: &[""],
    covered: &[],
};

/// The table.
pub const TOOL_HOMES: [ToolHome; 5] = [
    GO,
    ToolHome {
        kind: EnvironmentKind::GoModules,
        places: &[
            ("GOMODCACHE", ""),
            ("GOPATH", "pkg/mod"),
            ("HOME", "go/pkg/mod"),
        ],
        // Clones of repositories that modules were fetched from: nothing is fetched here.
        covered: &["cache/vcs"],
        ..GO
    },
    ToolHome {
        kind: EnvironmentKind::UvCache,
        files: &["uv.lock"],
        words: &["uv", "uvx"],
        places: &[
            ("UV_CACHE_DIR", ""),
            ("XDG_CACHE_HOME", "uv"),
            ("HOME", ".cache/uv"),
        ],
        // What it built of a directory it finds again by that directory's name and the time of its
        // `pyproject.toml`: `sdists`, `builds` and `environments` stay at home. So do answers of
        // indexes, whose addresses may carry what authenticates there: with a lock file or an
        // environment nothing asks for them.
        parts: &["archive-v*", "wheels-v*"],
        covered: &["path", "editable"],
    },
    ToolHome {
        kind: EnvironmentKind::MavenHome,
        files: &["pom.xml"],
        words: &["mvn", "mvnw", "mvnd"],
        places: &[("HOME", ".m2")],
        // Beside them lie `settings.xml` and `settings-security.xml`.
        parts: &["repository", "wrapper/dists"],
        covered: &[],
    },
    ToolHome {
        kind: EnvironmentKind::GradleHome,
        files: &["build.gradle*", "settings.gradle*"],
        words: &["gradle", "gradlew"],
        places: &[("GRADLE_USER_HOME", ""), ("HOME", ".gradle")],
        // Beside them lie `gradle.properties`, `init.d` and results of tasks.
        parts: &["caches/modules-2", "wrapper/dists"],
        covered: &[],
    },
];

/// Where a jail has a part: at its own path, since what lies there names others by theirs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InHome {
    pub target: PathBuf,
    /// The tool's directory around it. Nothing else of it is shown, and the tool can write there.
    pub around: Option<PathBuf>,
    /// Directories in it that look empty.
    pub covered: Vec<PathBuf>,
}

impl InHome {
    /// What its tool is told.
    pub fn root(&self) -> &Path {
        self.around.as_deref().unwrap_or(&self.target)
    }
}

/// Does a name match one of the table?
pub fn matches(pattern: &str, name: &[u8]) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start.as_bytes()),
        None => name == pattern.as_bytes(),
    }
}

impl ToolHome {
    /// Do the repository's files or a command of the contract call for it?
    pub fn is_called_for<'p, 'c>(
        &self,
        mut tracked: impl Iterator<Item = &'p TreePath>,
        mut commands: impl Iterator<Item = &'c str>,
    ) -> bool {
        let is_word = |command: &str| called_for::starts(command, self.words);
        let named = |path: &TreePath| {
            let name = name_of(path);
            self.files.iter().any(|pattern| matches(pattern, name))
        };
        commands.any(is_word) || tracked.any(named)
    }

    /// Where the tool keeps it, by the variables of its user.
    pub fn place(&self, variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let set = |(name, below): &(&str, &'static str)| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            // A list, of which the first is written to.
            let first = match *name {
                "GOPATH" => value.split(':').next().unwrap_or_default(),
                _ => &value,
            };
            let dir = Path::new(first);
            Some(match below.is_empty() {
                true => dir.to_owned(),
                false => dir.join(below),
            })
        };
        let place = self.places.iter().find_map(set);
        place.filter(|dir| dir.is_absolute() && dir.parent().is_some())
    }
}

fn name_of(path: &TreePath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes)
}

/// What is known of one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartFacts {
    /// It overlaps with the repository, which a jail has as a copy.
    pub in_repository: bool,
    /// A jail may be shown it, at its own path.
    pub granted: bool,
    /// All of it could be looked at.
    pub readable: bool,
    /// It holds directories of another owner.
    pub foreign: bool,
    /// What in it the repository builds itself is known.
    pub own_known: bool,
    pub overlay: bool,
    pub files: u64,
    pub bytes: u64,
    pub hidden_files: u64,
}

/// How a jail gets a part. It is never read-only: every tool of the table writes where it reads.
pub fn decide_part(facts: &PartFacts) -> (Carried, Option<&'static str>) {
    let not = |why| (Carried::Not, Some(why));
    if facts.in_repository {
        return not("it lies in the repository, or around it");
    }
    if !facts.granted {
        return not("a jail may not be shown it");
    }
    if !facts.readable {
        return not("it could not be read as a whole");
    }
    if facts.foreign {
        return not("it holds files of another owner");
    }
    if !facts.own_known {
        return not("what in it is of this repository is not known");
    }
    if facts.files > super::environment::MOST_FILES {
        return not("it has too many files");
    }
    if facts.hidden_files > super::environment::MOST_HIDDEN {
        return not("too many files in it would have to be hidden");
    }
    match facts.overlay {
        true => (Carried::Overlay, None),
        false if facts.files <= MOST_COPIED_FILES && facts.bytes <= MOST_COPIED_BYTES => {
            (Carried::Copied, None)
        }
        false => not("this host has no overlays for it, and it is too large to be copied"),
    }
}

#[cfg(test)]
#[path = "tool_home_tests.rs"]
mod tests;
