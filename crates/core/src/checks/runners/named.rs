//! Files that a command, or the configuration of its runners, brings in by name: `--config cfg/mocha.json`,
//! `-r ./boot.js`, `setupFiles`, `extends`. A change of one makes the command another, wherever it lies.
//!
//! Words are read, not languages: a path behind a key that only says where tests are, or what is measured
//! or built, is passed by.

use std::collections::BTreeSet;

use super::decides::deciding;
use super::recognise::{Look, Trail, below};
use crate::task::runner::{Found, Runner};

/// Behind these a path is what is tested, measured or built, not what a runner loads.
const PASSED_BY: &str = "files spec include exclude ignore testmatch testregex roots testpaths norecursedirs \
    collectcoveragefrom coveragedirectory testpathignorepatterns coveragepathignorepatterns entry input main \
    module types outdir outdirectory outfile output dir root rootdir report-dir reports-dir outputfile \
    output-file cov cov-report cov-config source omit deselect junitxml junit-xml basetemp \
    coverprofile o temp-dir temp-directory data-file manifest-path path";
/// Behind these a plain word is a module.
const MODULES: &str =
    "p r require import loader experimental-loader plugin preset extends runner environment";
/// Ends of what nothing loads.
const NOT_LOADED: [&str; 5] = [".txt", ".md", ".rst", ".xml", ".lock"];
/// Ends of files whose own words are read too.
const READ: [&str; 10] = [
    ".js", ".cjs", ".mjs", ".ts", ".mts", ".cts", ".json", ".yml", ".yaml", ".toml",
];
/// Files asked for, of one command.
const MOST: usize = 64;

/// Where the runners of node and pytest look for their configuration, beside where they start.
fn usual(runner: Runner) -> &'static str {
    match runner {
        Runner::Mocha => {
            ".mocharc.js .mocharc.cjs .mocharc.mjs .mocharc.json .mocharc.jsonc .mocharc.yml .mocharc.yaml package.json"
        }
        Runner::Jest => {
            "jest.config.js jest.config.cjs jest.config.mjs jest.config.ts jest.config.json package.json"
        }
        Runner::Vitest => {
            "vitest.config.ts vitest.config.js vitest.config.mts vitest.config.mjs vite.config.ts vite.config.js vite.config.mts vite.config.mjs vitest.workspace.ts vitest.workspace.js"
        }
        Runner::Ava => "ava.config.js ava.config.cjs ava.config.mjs package.json",
        Runner::Tap => ".taprc package.json",
        Runner::Pytest => "pytest.ini pyproject.toml tox.ini setup.cfg",
        Runner::Unittest | Runner::Cargo | Runner::Go | Runner::Node | Runner::Tape => "",
    }
}

/// Everything that is brought in by name, as paths of the repository, some without their end.
pub(super) fn brought_in(
    (trail, found): (&Trail, &[Found]),
    looks: [&mut Look<'_>; 2],
) -> BTreeSet<String> {
    let mut named: BTreeSet<String> = BTreeSet::new();
    for (dir, words) in &trail.words {
        named.extend(paths(words, &[dir]));
    }
    let tested = found.iter().flat_map(|found| {
        let places = found.said.selection.places.iter();
        places.filter_map(|place| below(found.dir.as_deref()?, &place.path))
    });
    for place in tested {
        named.remove(&place);
    }
    let mut open: Vec<String> = named.iter().cloned().collect();
    let mut starts: BTreeSet<&str> = BTreeSet::new();
    for (dir, found) in found
        .iter()
        .filter_map(|found| Some((found.dir.as_deref()?, found)))
    {
        starts.insert(dir);
        open.extend(
            usual(found.runner)
                .split(' ')
                .filter_map(|name| below(dir, name)),
        );
    }
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let [before, after] = looks;
    while let Some(file) = open.pop() {
        let name = file.rsplit('/').next().unwrap_or(&file);
        let is_read = READ.iter().any(|end| name.ends_with(end))
            || matches!(name, ".taprc" | "pytest.ini" | "tox.ini" | "setup.cfg");
        if !is_read || asked.len() >= MOST || !asked.insert(file.clone()) {
            continue;
        }
        let dir = file.rsplit_once('/').map_or("", |(dir, _)| dir);
        let from: Vec<&str> = starts.iter().copied().chain([dir]).collect();
        for text in [before(&file), after(&file)].into_iter().flatten() {
            let text = match name {
                "package.json" => of_runners(&text),
                _ => deciding(&file, &text, &trail.scripts),
            };
            for path in paths(&text, &from) {
                if named.insert(path.clone()) {
                    open.push(path);
                }
            }
        }
    }
    named
}

/// Of a `package.json` what its runners read; its scripts were followed as commands.
fn of_runners(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let read = [
        "mocha", "jest", "vitest", "ava", "tap", "nyc", "c8", "babel",
    ];
    let read = read.iter().filter_map(|key| value.get(key));
    read.map(|value| format!("{value}\n")).collect()
}

/// Is the file one of those, by its path, without its end, or as the directory it stands for?
pub(super) fn holds(named: &BTreeSet<String>, path: &str) -> bool {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, _) = name.rsplit_once('.').unwrap_or((name, ""));
    let beside = |name: &str| match dir.is_empty() {
        true => name.to_owned(),
        false => format!("{dir}/{name}"),
    };
    let stands_for_all = matches!(stem, "index" | "__init__" | "jest-preset");
    named.contains(path)
        || named.contains(&beside(stem))
        || (stands_for_all && !dir.is_empty() && named.contains(dir))
        || (name.ends_with(".py") && named.contains(&beside(stem).replace('/', ".")))
}

/// Paths that stand in a text, from each of the directories.
fn paths(text: &str, from: &[&str]) -> Vec<String> {
    let is_one_of = |list: &str, key: &str| list.split_whitespace().any(|word| word == key);
    let mut found = Vec::new();
    for (key, word) in keyed(text) {
        let key = key.trim_start_matches('-').to_ascii_lowercase();
        let is_path = word.contains('/') || word.contains('.');
        if is_one_of(PASSED_BY, &key)
            || NOT_LOADED.iter().any(|end| word.ends_with(end))
            || !(is_path || is_one_of(MODULES, &key))
        {
            continue;
        }
        let word = word.strip_prefix("<rootDir>/").unwrap_or(word);
        found.extend(from.iter().filter_map(|dir| below(dir, word)));
    }
    found.retain(|path| !path.is_empty());
    found
}

/// Words, each with the key or the option it stands behind.
fn keyed(text: &str) -> Vec<(&str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || "._-/@<>~+".contains(c);
    let (mut found, mut key, mut rest) = (Vec::new(), "", text);
    while let Some(start) = rest.find(is_word) {
        let from = rest.get(start..).unwrap_or_default();
        let length = from.find(|c: char| !is_word(c)).unwrap_or(from.len());
        let (word, behind) = from.split_at(length);
        rest = behind;
        let next = behind.trim_start_matches(['"', '\'', '`', ' ', '\t']);
        let is_key = next.starts_with([':', '=']) && !next.starts_with("=>");
        if is_key || (word.starts_with('-') && word.len() > 1) {
            key = word;
        } else {
            found.push((key, word));
        }
    }
    found
}
