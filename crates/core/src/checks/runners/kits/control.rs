//! Where failing tests go, what they are called, and which of them were seen red.
//!
//! They go into every test file of the runner, because that is where the command looks, and into files of
//! their own beside some of them, which count only if the command finds them.

use std::collections::BTreeMap;

use super::rows::rows;
use super::words::{Words, capital};
use crate::checks::control::{Count, Edit};
use crate::checks::names::test_files::{Names, is_test_file};
use crate::checks::runner_output::Heard;
use crate::checks::test_ids::Tally;
use crate::checks::test_ids::of_file::directory_of;
use crate::checks::test_ids::own_text::tests_of_go;
use crate::task::contract::Contract;
use crate::task::runner::Runner;
use crate::values::paths::TreePath;

/// A test file of the checked tree.
#[derive(Clone, Copy, Debug)]
pub struct TestFile<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

/// Failing tests in one file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    path: String,
    names: Vec<String>,
    /// Tests that stood there before, where a runner names no file of theirs.
    stood: Vec<String>,
    /// A file that was not there: nobody has to look for it.
    is_own: bool,
}

impl Place {
    fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(dir, _)| dir)
    }
}

/// What is added for a runner that reports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReportedKit {
    pub edits: Vec<Edit>,
    places: Vec<Place>,
}

/// Test files that get every kind of failing test; of more than these each gets a part, and every kind is
/// in two or more.
const WHOLE: usize = 4;
/// Files of our own.
const OWN: usize = 8;

/// May this file hold tests of the runner? By its name, or because a command names it.
pub fn may_hold_tests(runner: Runner, path: &TreePath, contract: &Contract) -> bool {
    const PASSED_BY: [&str; 6] = [
        "node_modules",
        "fixtures",
        "__fixtures__",
        "__mocks__",
        "__snapshots__",
        "testdata",
    ];
    let path_text = path.to_string();
    let (dir, name) = path_text.rsplit_once('/').unwrap_or(("", &path_text));
    let language = match runner {
        Runner::Go => name.ends_with("_test.go"),
        _ => is_javascript(name),
    };
    let passed_by = dir.split('/').any(|dir| PASSED_BY.contains(&dir));
    let found = contract.recognised.iter().flat_map(|known| &known.found);
    let named = found.flat_map(|found| {
        let dir = found.dir.clone().unwrap_or_default();
        let places = found.said.selection.places.iter();
        places.map(move |place| match dir.is_empty() {
            true => place.path.trim_start_matches("./").to_owned(),
            false => format!("{dir}/{}", place.path.trim_start_matches("./")),
        })
    });
    language
        && !passed_by
        && (is_test_file(Names::Broad, path) || { named }.any(|named| named == path_text))
}

fn is_javascript(name: &str) -> bool {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let language = ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"].contains(&end);
    let types = [".d.ts", ".d.mts", ".d.cts", ".test-d.ts", ".test-d.tsx"];
    language && !types.iter().any(|types| name.ends_with(types))
}

/// Do these lines use the runner? A helper beside tests does not, nor do tests of another runner.
fn uses(runner: Runner, text: &str) -> bool {
    let package = |name: &str| {
        ["'", "\""]
            .iter()
            .any(|q| text.contains(&format!("{q}{name}{q}")))
    };
    let others = ["node:test", "ava", "tap", "tape", "vitest"];
    let globals = [
        "test(",
        "it(",
        "describe(",
        "test.",
        "it.",
        "specify(",
        "suite(",
    ];
    match runner {
        Runner::Go => text.contains("testing."),
        Runner::Node => package("node:test") || package("test"),
        Runner::Vitest => package("vitest") || globals.iter().any(|word| text.contains(word)),
        Runner::Mocha | Runner::Jest => {
            globals.iter().any(|word| text.contains(word)) && !others.into_iter().any(package)
        }
        runner => package(runner.as_str()),
    }
}

/// Does a file of tap say itself how many tests it holds, or where they end? What comes behind that is not
/// reported. Inside a test it stands further to the right than where the module is named.
fn counts_its_tests(text: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let names_tap = |line: &&str| line.contains("'tap'") || line.contains("\"tap\"");
    let Some(outermost) = text.lines().find(names_tap).map(indent) else {
        return false;
    };
    let counts = |line: &str| {
        let call = line.trim_start().split('(').next().unwrap_or_default();
        let end = call.rsplit_once('.').map(|(_, end)| end);
        matches!(end, Some("plan" | "end" | "endAll" | "bailout")) && !call.contains(' ')
    };
    text.lines()
        .any(|line| indent(line) <= outermost && counts(line))
}

/// The failing tests for a runner; none where no file of its tests was found.
pub fn reported_kit(runner: Runner, nonce: &str, files: &[TestFile<'_>]) -> Option<ReportedKit> {
    let files: Vec<&TestFile<'_>> = files
        .iter()
        .filter(|file| uses(runner, file.text))
        .collect();
    let mut kit = ReportedKit::default();
    let mut directories = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut words = Words::new(nonce, file.path);
        let style = Style::of(runner, file);
        let mut bodies = rows(runner);
        if files.len() > WHOLE {
            let parts = (files.len() / 2).clamp(1, bodies.len());
            let kept = bodies.into_iter().enumerate();
            let kept = kept.filter(|(row, _)| row % parts == index % parts);
            bodies = kept.map(|(_, body)| body).collect();
        }
        let (text, names) = tests(runner, style, bodies, &mut words);
        if !(runner == Runner::Tap && counts_its_tests(file.text)) {
            kit.edits.push(Edit::Append {
                path: TreePath::new(file.path.as_bytes()),
                text: format!("\n{text}"),
            });
            kit.add(file.path, names, false);
        }
        if let (Runner::Go, Some(place)) = (runner, kit.places.last_mut()) {
            let path = TreePath::new(file.path.as_bytes());
            place.stood = tests_of_go(&path, file.text.as_bytes());
        }
        let dir = file.path.rsplit_once('/').map_or("", |(dir, _)| dir);
        let beside = beside(file.path, &words.word());
        if directories.contains(&dir) || directories.len() >= OWN {
            continue;
        }
        if let Some(path) = beside.filter(|path| !kit.creates(path)) {
            directories.push(dir);
            let (text, names) = tests(runner, style, rows(runner), &mut words);
            let head = match runner {
                Runner::Go => go_head(file.text),
                _ if style.is_typed => "// @ts-nocheck\n".to_owned(),
                _ => String::new(),
            };
            kit.edits.push(Edit::Create {
                path: path.clone(),
                text: format!("{head}{text}"),
            });
            kit.add(&path, names, true);
        }
    }
    // Files of our own alone may be where no command looks.
    let is_certain = kit.places.iter().any(|place| !place.is_own);
    is_certain.then_some(kit)
}

impl ReportedKit {
    fn add(&mut self, path: &str, names: Vec<String>, is_own: bool) {
        self.places.push(Place {
            path: path.to_owned(),
            names,
            stood: Vec::new(),
            is_own,
        });
    }

    fn creates(&self, wanted: &str) -> bool {
        let mut edits = self.edits.iter();
        edits.any(|edit| matches!(edit, Edit::Create { path, .. } if path == wanted))
    }

    /// How many of the added tests were due, and how many of those were red. Those of a file are due where
    /// one of them came, or where a test came that stood there before. Nothing is counted where no runner
    /// was heard at all.
    pub fn count(&self, heard: &[Heard]) -> Count {
        let mut ours: BTreeMap<&str, Tally> = BTreeMap::new();
        let names = self.places.iter().flat_map(|place| &place.names);
        ours.extend(names.map(|name| (name.as_str(), Tally::default())));
        let mut others: Vec<(&str, &str)> = Vec::new();
        for (id, tally) in heard.iter().flat_map(|heard| &heard.ids) {
            // A runner puts files, suites and modules before a name.
            let name = id.rsplit(char::is_whitespace).next().unwrap_or(id);
            match ours.get_mut(name) {
                Some(seen) => seen.merge(*tally),
                None if tally.passed + tally.failed > 0 => {
                    others.extend(id.split_once(": "));
                }
                None => {}
            }
        }
        let came = |name: &String| {
            let tally = ours.get(name.as_str()).copied().unwrap_or_default();
            tally.passed + tally.failed > 0
        };
        let directories = || self.places.iter().map(Place::directory);
        let stood_there = |place: &Place, (file, name): &(&str, &str)| {
            let first = name.split('/').next().unwrap_or(name);
            let of_package = || directory_of(file, directories()) == Some(place.directory());
            *file == place.path || (place.stood.iter().any(|stood| stood == first) && of_package())
        };
        let is_due = |place: &&Place| {
            let ran = || others.iter().any(|other| stood_there(place, other));
            place.names.iter().any(came) || (!place.is_own && ran())
        };
        let (mut expected, mut red) = (0, 0);
        for name in self
            .places
            .iter()
            .filter(is_due)
            .flat_map(|place| &place.names)
        {
            let tally = ours.get(name.as_str()).copied().unwrap_or_default();
            expected += 1;
            red += u64::from(tally.failed > 0 && tally.passed == 0);
        }
        if expected == 0 {
            let most = self.places.iter().map(|place| place.names.len()).max();
            let began = heard.iter().any(|heard| heard.runs.began > 0);
            return Count {
                expected: most.unwrap_or(1) as u64,
                reported: began.then_some(0),
                silent: true,
            };
        }
        Count {
            expected,
            reported: Some(red),
            silent: false,
        }
    }
}

/// How a file has what it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Style {
    imports: bool,
    /// Parameters need a type.
    is_typed: bool,
}

impl Style {
    fn of(runner: Runner, file: &TestFile<'_>) -> Self {
        const WORDS: [&str; 6] = [
            "import ", "import{", "import\"", "import'", "import*", "export ",
        ];
        let end = file.path.rsplit_once('.').map_or("", |(_, end)| end);
        let lines = |line: &str| WORDS.iter().any(|word| line.starts_with(word));
        let imports = match end {
            "mjs" | "mts" => true,
            "cjs" | "cts" => false,
            _ => runner == Runner::Vitest || file.text.lines().any(lines),
        };
        Self {
            imports,
            is_typed: matches!(end, "ts" | "tsx" | "mts" | "cts"),
        }
    }
}

/// The text of failing tests, and their names.
fn tests(
    runner: Runner,
    style: Style,
    mut bodies: Vec<&'static str>,
    words: &mut Words,
) -> (String, Vec<String>) {
    words.shuffle(&mut bodies);
    let mut named = Vec::new();
    for body in bodies {
        let word = words.word();
        let name = match runner {
            Runner::Go => format!("Test{}", capital(&word)),
            _ => word,
        };
        let body = body
            .replace("$1", &words.word())
            .replace("$2", &words.word());
        named.push((name, body));
    }
    let text = match runner {
        Runner::Go => go(&named),
        _ => javascript(runner, style, &named, words),
    };
    (text, named.into_iter().map(|(name, _)| name).collect())
}

fn javascript(
    runner: Runner,
    style: Style,
    tests: &[(String, String)],
    words: &mut Words,
) -> String {
    let [test, assert, expect] = [words.word(), words.word(), words.word()];
    let package = match runner {
        Runner::Node => Some("node:test"),
        Runner::Vitest => Some("vitest"),
        Runner::Ava => Some("ava"),
        Runner::Tap => Some("tap"),
        Runner::Tape => Some("tape"),
        _ => None,
    };
    let mut text = String::new();
    match (package, style.imports) {
        (Some("vitest"), _) => text.push_str(&format!(
            "import {{ test as {test}, expect as {expect} }} from 'vitest';\n"
        )),
        // Its test function is the default, a property of it, or the module itself.
        (Some("tap"), true) => text.push_str(&format!("import {{ test as {test} }} from 'tap';\n")),
        (Some("tap"), false) => text.push_str(&format!("const {test} = require('tap').test;\n")),
        (Some(package), true) => text.push_str(&format!("import {test} from '{package}';\n")),
        (Some(package), false) => {
            let module = words.word();
            text.push_str(&format!("const {module} = require('{package}');\nconst {test} = {module}.default || {module};\n"));
        }
        // Globals of the runner, in either of its two ways to write tests.
        (None, _) => text.push_str(&format!(
            "const {test} = typeof it === 'function' ? it : test;\n"
        )),
    }
    let uses_assert = tests.iter().any(|(_, body)| body.contains("A."));
    match style.imports {
        _ if !uses_assert => {}
        true => text.push_str(&format!("import * as {assert} from 'assert';\n")),
        false => text.push_str(&format!("const {assert} = require('assert');\n")),
    }
    let expect = if runner == Runner::Vitest {
        expect
    } else {
        "expect".to_owned()
    };
    for (name, body) in tests {
        let body = match style.is_typed {
            true => typed(body),
            false => body.clone(),
        };
        let body = body
            .replace("A.", &format!("{assert}."))
            .replace("E(", &format!("{expect}("));
        text.push_str(&format!("{test}('{name}', {body});\n"));
    }
    if style.is_typed {
        // A compiler of types in front of the runner must not be what is red.
        let lines = text.lines().map(|line| format!("// @ts-ignore\n{line}\n"));
        return lines.collect();
    }
    text
}

fn go(tests: &[(String, String)]) -> String {
    let function =
        |(name, body): &(String, String)| format!("\nfunc {name}(t *testing.T) {{\n\t{body}\n}}\n");
    tests.iter().map(function).collect()
}

/// The head of a file of its own, in the same package.
fn go_head(text: &str) -> String {
    let package = text
        .lines()
        .find(|line| line.starts_with("package "))
        .unwrap_or("package main");
    format!("{}\n\nimport \"testing\"\n", package.trim_end())
}

/// Parameters as TypeScript wants them.
fn typed(body: &str) -> String {
    for (plain, typed) in [
        ("(t, done) =>", "(t: any, done: any) =>"),
        ("(done) =>", "(done: any) =>"),
        ("(t) =>", "(t: any) =>"),
        ("t =>", "(t: any) =>"),
    ] {
        if let Some(at) = body.find(plain).filter(|at| *at <= "async ".len()) {
            let (before, rest) = body.split_at(at);
            return format!("{before}{typed}{}", &rest[plain.len()..]);
        }
    }
    body.to_owned()
}

/// A file of the same directory, named as the runner would find it: `sums.test.js` gives `WORD.test.js`.
/// None where the whole name is what is looked for.
fn beside(path: &str, word: &str) -> Option<String> {
    let (dir, name) = path
        .rsplit_once('/')
        .map_or(("", path), |(dir, name)| (dir, name));
    let (stem, end) = name.split_once('.')?;
    let stem = match stem {
        "test" | "tests" | "index" | "spec" | "lib" | "main" | "mod" => return None,
        stem if stem.starts_with("test_") => format!("test_{word}"),
        stem if stem.starts_with("test-") => format!("test-{word}"),
        stem if stem.ends_with("_test") => format!("{word}_test"),
        stem if stem.ends_with("-test") => format!("{word}-test"),
        _ => word.to_owned(),
    };
    let slash = if dir.is_empty() { "" } else { "/" };
    Some(format!("{dir}{slash}{stem}.{end}"))
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
