//! A test command out of the files of a repository. They are read as text and may be anybody's: nothing of what they say
//! becomes part of a command but what is written here.

use std::collections::BTreeMap;

use super::scope::{self, Language, Scope};
use crate::checks::names::test_files::{Names, is_test_file};
use crate::run::rules::Rules;
use crate::values::paths::TreePath;

/// Files at the top whose text is asked for.
pub const READ: &[&str] = &[
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "CMakeLists.txt",
];
/// A file that is longer is not read.
pub const MOST_TEXT: u64 = 256 << 10;

/// What was seen of a repository: the files of its last commit, links left out.
#[derive(Default)]
pub struct Seen {
    pub files: Vec<TreePath>,
    /// Of `READ`, what is there and is text.
    pub texts: BTreeMap<String, String>,
    /// A virtual environment in the work tree, which git ignores: `.venv`.
    pub environment: Option<String>,
}

/// A test command, and the file that it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub command: String,
    pub from: String,
    language: Language,
}

/// What a person is asked about, best first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proposal {
    pub tests: Vec<Candidate>,
    pub scope: Option<Scope>,
}

pub fn propose(seen: &Seen) -> Proposal {
    let finders: [fn(&Seen) -> Option<Candidate>; 8] =
        [node, cargo, python, go, make, cmake, gradle, maven];
    let tests: Vec<Candidate> = finders.iter().filter_map(|find| find(seen)).collect();
    let language = tests.first().map_or(Language::Any, |best| best.language);
    // A Makefile says nothing about what it builds.
    let scope = scope::of(&seen.files, language);
    Proposal { tests, scope }
}

impl Seen {
    fn has(&self, name: &str) -> bool {
        let is_it = |path: &TreePath| path.as_bytes() == name.as_bytes();
        self.files.iter().any(is_it)
    }

    fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// Is a line of this file one of those?
    fn says(&self, name: &str, line: impl Fn(&str) -> bool) -> bool {
        let text = self.text(name).unwrap_or_default();
        text.lines().any(|found| line(found.trim()))
    }
}

fn found(command: impl Into<String>, from: &str, language: Language) -> Option<Candidate> {
    Some(Candidate {
        command: command.into(),
        from: from.to_owned(),
        language,
    })
}

/// `npm init` writes this for a project without tests.
const NO_TESTS: &str = "no test specified";

fn node(seen: &Seen) -> Option<Candidate> {
    let package = serde_json::from_str::<serde_json::Value>(seen.text("package.json")?).ok()?;
    let script = package.get("scripts")?.get("test")?.as_str()?;
    if script.trim().is_empty() || script.contains(NO_TESTS) {
        return None;
    }
    let named = package.get("packageManager").and_then(|name| name.as_str());
    let named = named.and_then(|name| name.split('@').next());
    let manager = match (named, seen) {
        (Some("pnpm"), _) => "pnpm test",
        (Some("yarn"), _) => "yarn test",
        (Some("bun"), _) => "bun run test",
        (_, seen) if seen.has("pnpm-lock.yaml") => "pnpm test",
        (_, seen) if seen.has("yarn.lock") => "yarn test",
        (_, seen) if seen.first(&["bun.lock", "bun.lockb"]).is_some() => "bun run test",
        _ => "npm test",
    };
    found(manager, "package.json", Language::Node)
}

fn cargo(seen: &Seen) -> Option<Candidate> {
    seen.text("Cargo.toml")?;
    let workspace = seen.says("Cargo.toml", |line| line.starts_with("[workspace"));
    let command = if workspace {
        "cargo test --workspace"
    } else {
        "cargo test"
    };
    found(command, "Cargo.toml", Language::Rust)
}

const PYTHON_FILES: &[&str] = &["pyproject.toml", "setup.cfg", "tox.ini"];
const REQUIREMENTS: &[&str] = &[
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
];

fn python(seen: &Seen) -> Option<Candidate> {
    let python = match &seen.environment {
        Some(dir) => format!("{dir}/bin/python"),
        None => "python3".to_owned(),
    };
    let is_python = |path: &&TreePath| path.as_bytes().ends_with(b".py");
    let from = PYTHON_FILES.iter().copied().chain(["setup.py"]);
    let from = from.into_iter().find(|name| seen.has(name));
    // Without a file about the project, tests far below are of something else.
    let test =
        |path: &&TreePath| is_python(path) && is_test(path) && (from.is_some() || is_near(path));
    if let Some(from) = pytest(seen) {
        let command = match (&seen.environment, seen.has("uv.lock")) {
            (None, true) => "uv run pytest".to_owned(),
            _ => format!("{python} -m pytest"),
        };
        return found(command, &from, Language::Python);
    }
    if let Some(first) = seen.files.iter().find(test) {
        let shown = from.map_or_else(|| first.to_string(), str::to_owned);
        let command = format!("{python} -m unittest{}", discovered(seen));
        return found(command, &shown, Language::Python);
    }
    let tox = seen.says("tox.ini", |line| line.starts_with("[testenv"));
    tox.then(|| found("tox", "tox.ini", Language::Python))?
}

/// The file that says that pytest is used here.
fn pytest(seen: &Seen) -> Option<String> {
    if let Some(name) = seen.first(&["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"]) {
        return Some(name.to_owned());
    }
    let word = |line: &str| {
        let parts = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        parts.into_iter().any(|part| part == "pytest")
    };
    let says = |name: &&&str| seen.says(name, |line| !line.starts_with('#') && word(line));
    let named = PYTHON_FILES.iter().chain(REQUIREMENTS).find(says);
    let conftest = |path: &&TreePath| {
        let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
        name == Some(b"conftest.py") && is_near(path)
    };
    let named = named.map(|name| (*name).to_owned());
    named.or_else(|| seen.files.iter().find(conftest).map(ToString::to_string))
}

/// Where `unittest` does not find tests by itself: a directory that is no package.
fn discovered(seen: &Seen) -> String {
    let top = |path: &TreePath| !path.as_bytes().contains(&b'/');
    let in_dir = |dir: &str| {
        let inside = |path: &&TreePath| {
            let rest = path.as_bytes().strip_prefix(dir.as_bytes());
            let rest = rest.and_then(|rest| rest.strip_prefix(b"/"));
            rest.is_some_and(|rest| rest.starts_with(b"test") && rest.ends_with(b".py"))
        };
        seen.files.iter().any(|path| inside(&path))
    };
    let at_top = seen.files.iter().any(|path| {
        top(path) && path.as_bytes().starts_with(b"test") && path.as_bytes().ends_with(b".py")
    });
    let alone = ["tests", "test"]
        .into_iter()
        .find(|dir| in_dir(dir) && !seen.has(&format!("{dir}/__init__.py")));
    match alone.filter(|_| !at_top) {
        Some(dir) => format!(" discover -s {dir}"),
        None => String::new(),
    }
}

/// At the top, or in a directory there.
fn is_near(path: &TreePath) -> bool {
    path.as_bytes().iter().filter(|byte| **byte == b'/').count() <= 1
}

fn is_test(path: &TreePath) -> bool {
    is_test_file(Names::of(Rules::NEWEST), path)
}

fn go(seen: &Seen) -> Option<Candidate> {
    let from = seen.first(&["go.mod"])?;
    found("go test ./...", from, Language::Go)
}

fn make(seen: &Seen) -> Option<Candidate> {
    let files = ["GNUmakefile", "makefile", "Makefile"];
    let from = files.into_iter().find(|name| seen.text(name).is_some())?;
    let target = ["test", "check"].into_iter().find(|target| {
        let text = seen.text(from).unwrap_or_default();
        text.lines().any(|line| is_rule_of(line, target))
    })?;
    found(format!("make {target}"), from, Language::Any)
}

/// `test check: deps`, and not `test := x` or the lines of a recipe.
fn is_rule_of(line: &str, target: &str) -> bool {
    let Some((heads, rest)) = line.split_once(':') else {
        return false;
    };
    let plain = !line.starts_with(['\t', ' ', '#']) && !heads.contains(['=', '$', '#']);
    plain && !rest.starts_with(['=', ':']) && heads.split_whitespace().any(|head| head == target)
}

fn cmake(seen: &Seen) -> Option<Candidate> {
    let from = "CMakeLists.txt";
    // Without tests `ctest` is green and says nothing.
    let tests = seen.says(from, |line| {
        let line = line.to_ascii_lowercase();
        let words = ["enable_testing", "add_test", "include(ctest"];
        words
            .iter()
            .any(|word| line.replace(' ', "").starts_with(word))
    });
    // In one command: what does not compile turns the test red, not what comes before it.
    let command = "cmake -S . -B _build && cmake --build _build && ctest --test-dir _build --output-on-failure";
    tests.then(|| found(command, from, Language::C))?
}

fn gradle(seen: &Seen) -> Option<Candidate> {
    let files = [
        "build.gradle.kts",
        "build.gradle",
        "settings.gradle.kts",
        "settings.gradle",
    ];
    let from = seen.first(&files)?;
    let program = if seen.has("gradlew") {
        "./gradlew"
    } else {
        "gradle"
    };
    found(format!("{program} test --offline"), from, Language::Jvm)
}

fn maven(seen: &Seen) -> Option<Candidate> {
    let from = seen.first(&["pom.xml"])?;
    let program = if seen.has("mvnw") { "./mvnw" } else { "mvn" };
    found(format!("{program} -o test"), from, Language::Jvm)
}

#[cfg(test)]
#[path = "propose_tests.rs"]
mod tests;
