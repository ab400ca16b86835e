//! Which modules a red command did not find, where the change asks for others than are installed: an
//! environment is the one from before, and what is not in it says nothing about the code.
//!
//! Output is the change's own to print, and tests print of modules that they do without. So this only
//! ever turns a failure into a block, and only for a module that the patch adds to a list of
//! dependencies of the same language (`asked_for.rs`). A module that the repository has, or had, is
//! the change's to keep.

mod asked_for;

use std::collections::{BTreeMap, BTreeSet};

use crate::run::event::ProcessEnd;
use crate::values::paths::TreePath;

pub use asked_for::{AskedFor, AskedReader};

/// More names of one command say no more.
const MOST: usize = 8;
/// Nor is more of what it says looked up.
const MOST_SAID: usize = 64;
const LONGEST_NAME: usize = 120;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Language {
    Python,
    Node,
    Rust,
    Go,
}

/// What a tool says before the name of what it did not find, and after it.
const WORDS: [(Language, &str, &str); 13] = [
    (Language::Python, "No module named '", "'"),
    (Language::Python, "No module named \"", "\""),
    (Language::Python, "No module named ", ""),
    (Language::Node, "Cannot find module '", "'"),
    (Language::Node, "Cannot find package '", "'"),
    (Language::Node, "Failed to resolve import \"", "\""),
    (Language::Rust, "no matching package named `", "`"),
    (
        Language::Rust,
        "error: failed to get `",
        "` as a dependency",
    ),
    (
        Language::Rust,
        "failed to select a version for the requirement `",
        " ",
    ),
    (Language::Rust, "can't find crate for `", "`"),
    (Language::Go, "no required module provides package ", ";"),
    (Language::Go, "cannot find module providing package ", ":"),
    (
        Language::Go,
        "missing go.sum entry for module providing package ",
        " ",
    ),
];
/// Go says the module first.
const GO_FETCHES: &str = ": module lookup disabled by GOPROXY=off";

/// Modules that a command says are not there, and the lists to which the patch adds them; none where
/// it adds none. `streams`: the end of what it printed, each stream apart and clean of secrets.
/// `tracked`: every path of the repository, before the change and after it.
pub fn missing_modules<'p>(
    end: ProcessEnd,
    streams: &[&str],
    asked: &AskedFor,
    tracked: impl Iterator<Item = &'p TreePath>,
) -> Option<(Vec<String>, Vec<TreePath>)> {
    if end.exit_code().is_none_or(|code| code == 0) {
        return None;
    }
    let own = own_names(tracked);
    let lines = streams.iter().flat_map(|stream| stream.lines());
    let said: BTreeSet<(Language, String)> = lines
        .filter_map(missing)
        .filter(|(language, name)| !is_own(*language, name, &own))
        .collect();
    let mut found: BTreeMap<String, BTreeSet<&TreePath>> = BTreeMap::new();
    for (language, name) in said.iter().take(MOST_SAID) {
        let lists: BTreeSet<&TreePath> = asked.lists(*language, name).collect();
        if !lists.is_empty() && found.len() < MOST {
            found.entry(name.clone()).or_default().extend(lists);
        }
    }
    let lists: BTreeSet<&TreePath> = found.values().flatten().copied().collect();
    let lists = lists.into_iter().cloned().collect();
    (!found.is_empty()).then(|| (found.into_keys().collect(), lists))
}

/// The language of a list of dependencies; none where this table cannot read what its tools say.
fn language_of(list: &TreePath) -> Option<Language> {
    let bytes = list.as_bytes();
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes);
    Some(match name {
        b"package.json"
        | b"package-lock.json"
        | b"npm-shrinkwrap.json"
        | b"yarn.lock"
        | b"pnpm-lock.yaml" => Language::Node,
        b"Cargo.toml" | b"Cargo.lock" => Language::Rust,
        b"go.mod" | b"go.sum" => Language::Go,
        b"pom.xml" => return None,
        _ => Language::Python,
    })
}

/// What one line says was not found.
fn missing(line: &str) -> Option<(Language, String)> {
    if let Some((before, _)) = line.split_once(GO_FETCHES) {
        let module = before.rsplit([' ', '\t']).next()?.split('@').next()?;
        return Some((Language::Go, plain(module)?));
    }
    WORDS.iter().find_map(|(language, before, after)| {
        let (_, rest) = line.split_once(before)?;
        let name = match *after {
            "" => rest.split(char::is_whitespace).next()?,
            after => rest.split_once(after).map_or(rest, |(name, _)| name),
        };
        let name = plain(name.trim_end_matches([':', ';', ',']))?;
        Some((*language, package_of(*language, &name)?))
    })
}

/// A name as somebody would write it in a list.
fn plain(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/@".contains(c);
    let fine = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits);
    fine.then(|| name.to_owned())
}

/// What has to be installed for it. A path is a file of somebody's.
fn package_of(language: Language, name: &str) -> Option<String> {
    let parts = |count| name.split('/').take(count).collect::<Vec<_>>().join("/");
    match language {
        Language::Python => name
            .split('.')
            .next()
            .filter(|part| !part.is_empty())
            .map(str::to_owned),
        Language::Node if name.starts_with(['.', '/']) || name.starts_with("@/") => None,
        Language::Node if name.starts_with('@') => name.contains('/').then(|| parts(2)),
        Language::Node => Some(parts(1)),
        Language::Rust | Language::Go => Some(name.to_owned()),
    }
}

/// Every name of a directory or a file on the way to what is tracked, files without their ending.
fn own_names<'p>(tracked: impl Iterator<Item = &'p TreePath>) -> BTreeSet<String> {
    let parts = tracked.flat_map(|path| path.as_bytes().split(|byte| *byte == b'/'));
    parts
        .map(|part| match part.iter().position(|byte| *byte == b'.') {
            Some(at) if at > 0 => &part[..at],
            _ => part,
        })
        .map(|part| even(&String::from_utf8_lossy(part)))
        .collect()
}

/// Rust and Python write one package with either sign.
fn even(name: &str) -> String {
    name.replace('-', "_")
}

fn is_own(language: Language, name: &str, own: &BTreeSet<String>) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let asked = match language {
        Language::Python | Language::Rust => name,
        Language::Node | Language::Go => last,
    };
    own.contains(&even(asked))
}

#[cfg(test)]
#[path = "missing_module_tests.rs"]
mod tests;
