//! What of a repository decides what a command does: the files it was followed through, and the configuration
//! of its runners. A change of any of it makes the command another one, whatever is recognised afterwards.
//!
//! Of files that honest work edits every day only the part that decides is compared. Keys nobody has looked at
//! count: those that do not are listed.

use std::collections::{BTreeMap, BTreeSet};

use super::named;
use super::recognise::{Look, Trail};
use crate::task::runner::{Found, Runner};

/// Keys of a `package.json` that say nothing of how its tests are run.
const EVERYDAY: &str = "name version description keywords homepage bugs license licenses author contributors \
    maintainers funding files main module browser types typings typesVersions exports man repository \
    dependencies devDependencies peerDependencies peerDependenciesMeta optionalDependencies \
    bundleDependencies bundledDependencies private publishConfig sideEffects engines os cpu scripts \
    eslintConfig eslintIgnore prettier lint-staged husky browserslist unpkg jsdelivr readme readmeFilename";
const DEPENDENCIES: [&str; 4] = [
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "optionalDependencies",
];
/// A dependency that is found elsewhere than under its own name in a registry.
const FOUND_ELSEWHERE: [&str; 9] = [
    "file:", "link:", "portal:", "patch:", "npm:", "git", "http", ".", "/",
];
/// Tools of a `pyproject.toml` that run tests.
const TOOLS: [&str; 7] = ["pytest", "tox", "hatch", "pdm", "poe", "nox", "coverage"];
const SECTIONS: [&str; 5] = ["tool:pytest", "pytest", "tox", "testenv", "coverage"];
const INCLUDED_BY_MAKE: [&str; 3] = [".mk", ".make", ".mak"];

/// Does a change of these paths alter what the command does, or how its runners are configured?
pub(super) fn altered(
    (trail, found): (&Trail, &[Found]),
    changed: &[String],
    before: &mut Look<'_>,
    after: &mut Look<'_>,
) -> bool {
    let by_make = |path: &str| {
        let computed = trail.computed && INCLUDED_BY_MAKE.iter().any(|end| path.ends_with(end));
        let path = format!("/{path}");
        computed || trail.ends.iter().any(|end| path.ends_with(end.as_str()))
    };
    let named = named::brought_in((trail, found), [&mut *before, &mut *after]);
    changed.iter().any(|path| {
        let counts = trail.files.contains(path)
            || found.iter().any(|found| configures(found, path))
            || named::holds(&named, path)
            || by_make(path);
        let decides = |text: String| deciding(path, &text, &trail.scripts);
        // What changed and is no text on either side may say anything.
        counts
            && match (before(path).map(decides), after(path).map(decides)) {
                (None, None) => true,
                (before, after) => before != after,
            }
    })
}

/// Does a file of this name configure the runner, where it lies?
fn configures(found: &Found, path: &str) -> bool {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = name.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    let of_node = || {
        matches!(
            name.as_str(),
            "package.json" | ".swcrc" | "node.config.json"
        ) || begins(&[".babelrc", "babel.config.", ".nycrc", ".c8rc", "tsconfig"])
    };
    let own = match found.runner {
        Runner::Pytest => matches!(
            name.as_str(),
            "pytest.ini"
                | ".pytest.ini"
                | "pytest.toml"
                | ".pytest.toml"
                | "tox.ini"
                | "setup.cfg"
                | "pyproject.toml"
        ),
        Runner::Unittest => false,
        Runner::Cargo => name == "nextest.toml",
        Runner::Go => matches!(name.as_str(), "go.work" | "go.mod"),
        Runner::Mocha => of_node() || begins(&[".mocharc", "mocha.opts"]),
        Runner::Jest => of_node() || begins(&["jest.", "jest-environment."]),
        Runner::Vitest => of_node() || begins(&["vitest.", "vite.config."]),
        Runner::Ava => of_node() || begins(&["ava.config."]),
        Runner::Tap => of_node() || begins(&[".taprc"]),
        Runner::Node | Runner::Tape => of_node(),
    };
    // A test may be called `jest.test.js`.
    own && !name.contains(".test.") && !name.contains(".spec.") && is_near(found, dir)
}

/// Above or below where the runner starts: both are searched.
fn is_near(found: &Found, dir: &str) -> bool {
    let below = |a: &str, b: &str| {
        b.is_empty()
            || a.strip_prefix(b)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let start = found.dir.as_deref();
    start.is_none_or(|start| below(start, dir) || below(dir, start))
}

/// The part of a file that decides; the whole text of one that is not known better.
pub(super) fn deciding(path: &str, text: &str, scripts: &BTreeSet<String>) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let part = match name.as_str() {
        "package.json" => package(text, scripts),
        "pyproject.toml" => tables(text, Some("tool"), &TOOLS),
        "pipfile" => tables(text, None, &["scripts"]),
        "setup.cfg" => Some(sections(text)),
        "go.mod" => Some(lines(text, |line| {
            line.contains("=>") || line.trim_start().starts_with("toolchain")
        })),
        "pytest.ini" | ".pytest.ini" | "tox.ini" | "justfile" | ".justfile" => {
            Some(without_comments(text))
        }
        name if name.contains("makefile")
            || INCLUDED_BY_MAKE.iter().any(|end| name.ends_with(end)) =>
        {
            Some(without_comments(text))
        }
        _ => None,
    };
    part.unwrap_or_else(|| text.to_owned())
}

fn package(text: &str, followed: &BTreeSet<String>) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let mut deciding: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    for (key, value) in value.as_object()? {
        let inner = value.as_object().into_iter().flatten();
        if key == "scripts" {
            let scripts = inner.filter(|(name, _)| followed.contains(*name));
            deciding.extend(scripts.map(|(name, value)| (format!("run {name}"), value.clone())));
        } else if DEPENDENCIES.contains(&key.as_str()) {
            let elsewhere = inner.filter(|(_, value)| {
                let place = value.as_str().unwrap_or("file:");
                FOUND_ELSEWHERE.iter().any(|begin| place.starts_with(begin))
            });
            deciding.extend(elsewhere.map(|(name, value)| (format!("from {name}"), value.clone())));
        } else if !EVERYDAY.split_whitespace().any(|everyday| everyday == key) {
            deciding.insert(format!("key {key}"), value.clone());
        }
    }
    serde_json::to_string(&deciding).ok()
}

fn tables(text: &str, below: Option<&str>, names: &[&str]) -> Option<String> {
    let root = toml::Value::Table(text.parse::<toml::Table>().ok()?);
    let root = below.map_or(Some(&root), |name| root.get(name));
    let of = |name: &&str| Some(((*name).to_owned(), root?.get(name)?));
    Some(format!(
        "{:?}",
        names.iter().filter_map(of).collect::<Vec<_>>()
    ))
}

fn sections(text: &str) -> String {
    let mut inside = false;
    lines(text, |line| {
        if let Some(name) = line.strip_prefix('[') {
            inside = SECTIONS.iter().any(|section| name.starts_with(section));
        }
        inside && !line.starts_with(['#', ';']) && !line.trim().is_empty()
    })
}

/// A line that another one continues is no comment, nor one that goes on.
fn without_comments(text: &str) -> String {
    let mut continued = false;
    lines(text, |line| {
        let says_nothing = line.starts_with('#') || line.trim().is_empty();
        let goes_on = line.ends_with('\\');
        let kept = !says_nothing || continued || goes_on;
        continued = goes_on;
        kept
    })
}

fn lines(text: &str, keep: impl FnMut(&&str) -> bool) -> String {
    let mut keep = keep;
    let kept: Vec<&str> = text.lines().filter(|line| keep(line)).collect();
    kept.join("\n")
}

#[cfg(test)]
#[path = "decides_tests.rs"]
mod tests;
