//! What people put before a runner, taken off one layer at a time.
//!
//! A layer is a program that starts the words behind its own options. Each has a row: which of its
//! options take a value that stands apart. A program without a row is not looked behind.

use super::packages::{manager, node, package_program};
use super::shell::{Word, assignment};
use crate::task::runner::Runner;

/// What the words come to when one layer is off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layer {
    /// A wrapper, in its own words; these are behind it.
    Behind(String, Vec<Word>),
    /// `NAME=value`: which variables.
    Variables(Vec<String>, Vec<Word>),
    /// From here on in another directory.
    Directory(String, Vec<Word>),
    /// A command in a word: `sh -c TEXT`.
    Text(String, String),
    /// A Python module with its arguments.
    Module(String, Vec<Word>),
    /// A script of `package.json`, or a program if there is none of that name.
    Script(Script),
    /// A task of another tool: `make`, `tox`, `nox`, `just`, or scripts of a Python project tool.
    Task(Tool, Vec<Word>),
    Runner(Runner, Vec<Word>),
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    pub manager: &'static str,
    pub name: String,
    /// Behind the script's own words.
    pub more: Vec<Word>,
    /// `yarn mocha`: without such a script it is a program.
    pub or_program: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tool {
    Make,
    Tox,
    Nox,
    Just,
    /// `hatch run`, `pdm run`, `pipenv run` of a name that may be a script of the project.
    Hatch,
    Pdm,
    Pipenv,
}

/// Programs that start what stands behind their options, which of those take a value, and how many
/// words more are theirs.
const STARTERS: &[(&str, &str, usize)] = &[
    ("timeout", "-s --signal -k --kill-after", 1),
    ("gtimeout", "-s --signal -k --kill-after", 1),
    ("nice", "-n --adjustment", 0),
    ("ionice", "-c -n --class --classdata", 0),
    ("time", "-f -o", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("exec", "", 0),
    ("command", "", 0),
    ("stdbuf", "-i -o -e", 0),
    ("xvfb-run", "-s --server-args -n -e -f", 0),
    ("dbus-run-session", "", 0),
    (
        "c8",
        "-r --reporter -o --reports-dir --report-dir --src -n --include -x --exclude -e --extension --lines --branches --functions --statements --temp-directory --config -c",
        0,
    ),
    (
        "nyc",
        "-r --reporter --report-dir -t --temp-dir -n --include -x --exclude -e --extension --lines --branches --functions --statements -i --require --cwd --nycrc-path",
        0,
    ),
    ("cross-env", "", 0),
    ("cross-env-shell", "", 0),
    ("env-cmd", "-f -e -r", 0),
    ("dotenv", "-e -v", 0),
    ("dotenvx", "-f", 0),
    ("tsx", "--tsconfig", 0),
    ("uvx", "--with --from -p --python", 0),
    ("npx", "-p --package --cache --prefix -w --workspace", 0),
    ("bunx", "", 0),
    ("concurrently", "-n --names -c --prefix-colors --success", 0),
    ("npm-run-all", "", 0),
    ("npm-run-all2", "", 0),
    ("run-s", "", 0),
    ("run-p", "", 0),
];

/// The same, where a word of the program's own comes first.
const SECOND: &[(&str, &str, &str)] = &[
    (
        "uv",
        "run",
        "--with --with-editable --with-requirements --extra --group --only-group --no-group --no-extra -p --python --package --project --env-file --index --index-url --cache-dir --color",
    ),
    ("poetry", "run", ""),
    ("rye", "run", ""),
    ("npm", "exec", "-p --package -w --workspace --prefix"),
    ("npm", "x", "-p --package -w --workspace --prefix"),
    ("pnpm", "exec", "-C --dir --filter"),
    ("pnpm", "dlx", "--package"),
    ("yarn", "exec", ""),
    ("yarn", "dlx", "-p"),
    ("dotenvx", "run", "-f"),
];

pub fn peel(words: &[Word]) -> Layer {
    let Some(first) = words.first() else {
        return Layer::Unknown;
    };
    if assignment(&first.text).is_some() {
        return variables(words);
    }
    if first.computed && !first.text.contains('/') {
        return Layer::Unknown;
    }
    let program = program_name(&first.text);
    let behind = words.get(1..).unwrap_or_default();
    if let Some(layer) = package_program(&first.text, behind) {
        return layer;
    }
    if is_python(program) {
        return python(words);
    }
    match program {
        "cd" | "pushd" => match behind {
            [dir, ..] if !dir.computed => Layer::Directory(dir.text.clone(), Vec::new()),
            _ => Layer::Unknown,
        },
        "env" => env(behind),
        "sh" | "bash" | "dash" | "zsh" => shell(words),
        "coverage" => coverage(behind),
        "node" | "nodejs" => node(behind),
        "cargo" => cargo(behind),
        "go" => go(behind),
        "npm" | "pnpm" | "yarn" => manager(program, behind),
        "make" | "gmake" => Layer::Task(Tool::Make, words.to_vec()),
        "tox" => Layer::Task(Tool::Tox, behind.to_vec()),
        "nox" => Layer::Task(Tool::Nox, behind.to_vec()),
        "just" => Layer::Task(Tool::Just, behind.to_vec()),
        "hatch" | "pdm" | "pipenv" => project_tool(program, behind),
        "pytest" | "py.test" | "pytest-3" => Layer::Runner(Runner::Pytest, behind.to_vec()),
        "unit2" => Layer::Runner(Runner::Unittest, behind.to_vec()),
        "mocha" | "_mocha" | "jest" | "vitest" | "ava" | "tap" | "tape" => {
            let name = Runner::parse(program.trim_start_matches('_'));
            name.map_or(Layer::Unknown, |name| Layer::Runner(name, behind.to_vec()))
        }
        _ => starter(program, words),
    }
}

/// The last part of a path: `.venv/bin/pytest`, `./node_modules/.bin/jest`, `jest.cmd`.
pub fn program_name(text: &str) -> &str {
    let name = text.rsplit('/').next().unwrap_or(text);
    name.strip_suffix(".cmd").unwrap_or(name)
}

fn is_python(program: &str) -> bool {
    ["python", "pypy"].iter().any(|start| {
        program.strip_prefix(start).is_some_and(|version| {
            version
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'.' || b == b't')
        })
    })
}

fn variables(words: &[Word]) -> Layer {
    let count = words
        .iter()
        .take_while(|word| assignment(&word.text).is_some())
        .count();
    let (set, rest) = words.split_at(count);
    let names = set
        .iter()
        .filter_map(|word| assignment(&word.text))
        .map(|(name, _)| name.to_owned())
        .collect();
    Layer::Variables(names, rest.to_vec())
}

/// Takes options off, with the values of those named.
pub(super) fn past_options<'a>(words: &'a [Word], valued: &str) -> &'a [Word] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if word.text == "--" {
            at += 1;
            break;
        }
        if !word.text.starts_with('-') || word.text == "-" {
            break;
        }
        at += 1 + usize::from(valued.split(' ').any(|option| option == word.text));
    }
    words.get(at..).unwrap_or_default()
}

fn starter(program: &str, words: &[Word]) -> Layer {
    let behind = words.get(1..).unwrap_or_default();
    let Some((_, valued, own)) = STARTERS.iter().find(|(name, ..)| *name == program) else {
        return second(program, behind);
    };
    // `tsx --test` is node's own option, behind a loader.
    if program == "tsx" && behind.iter().any(|word| word.text == "--test") {
        return node(behind);
    }
    if program == "dotenvx" && behind.first().is_some_and(|word| word.text == "run") {
        return second(program, behind);
    }
    let rest = past_options(behind, valued).get(*own..).unwrap_or_default();
    Layer::Behind(program.to_owned(), rest.to_vec())
}

pub(super) fn second(program: &str, behind: &[Word]) -> Layer {
    // Options before the word itself: `poetry -C dir run`, `uv --offline run`.
    let mut dir = None;
    let mut at = 0;
    while let Some(word) = behind.get(at).filter(|word| word.text.starts_with('-')) {
        let apart = matches!(
            word.text.as_str(),
            "-C" | "--directory" | "--project" | "--dir" | "--prefix" | "--filter"
        );
        if matches!(
            word.text.as_str(),
            "-C" | "--directory" | "--dir" | "--prefix"
        ) {
            dir = behind.get(at + 1).map(|word| word.text.clone());
        }
        at += 1 + usize::from(apart);
    }
    let rest = behind.get(at..).unwrap_or_default();
    let Some((own, rest)) = rest.split_first() else {
        return Layer::Unknown;
    };
    if program == "uv" && own.text == "tool" {
        return starter("uvx", rest);
    }
    let Some((_, _, valued)) = SECOND
        .iter()
        .find(|(name, word, _)| *name == program && *word == own.text)
    else {
        return Layer::Unknown;
    };
    let inner = past_options(rest, valued);
    // `uv run -m pytest`: past_options has taken the `-m` for a switch.
    let taken = rest.get(..rest.len() - inner.len()).unwrap_or_default();
    if taken
        .last()
        .is_some_and(|word| matches!(word.text.as_str(), "-m" | "--module"))
    {
        return module(inner);
    }
    match dir {
        Some(dir) => Layer::Directory(dir, inner.to_vec()),
        None => Layer::Behind(format!("{program} {}", own.text), inner.to_vec()),
    }
}

fn env(behind: &[Word]) -> Layer {
    let mut at = 0;
    while let Some(word) = behind.get(at) {
        match word.text.as_str() {
            "-u" | "--unset" => at += 2,
            "-C" | "--chdir" => {
                let dir = behind.get(at + 1).map(|word| word.text.clone());
                let rest = behind.get(at + 2..).unwrap_or_default();
                return dir.map_or(Layer::Unknown, |dir| Layer::Directory(dir, rest.to_vec()));
            }
            "-S" | "--split-string" => return Layer::Unknown,
            "--" => {
                at += 1;
                break;
            }
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    Layer::Behind("env".into(), behind.get(at..).unwrap_or_default().to_vec())
}

fn shell(words: &[Word]) -> Layer {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        if !word.text.starts_with("--") && word.text.ends_with('c') {
            return match words.get(at + 1) {
                Some(text) if !text.computed => Layer::Text("sh -c".into(), text.text.clone()),
                _ => Layer::Unknown,
            };
        }
        at += 1;
    }
    Layer::Unknown
}

/// Interpreter flags, then `-m MODULE`, or a program that is a Python script with a known name.
fn python(words: &[Word]) -> Layer {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            let rest = words.get(at..).unwrap_or_default();
            let known = matches!(
                program_name(text),
                "pytest" | "py.test" | "coverage" | "tox" | "nox"
            );
            return if known {
                Layer::Behind("python".into(), rest.to_vec())
            } else {
                Layer::Unknown
            };
        };
        if letters.starts_with('-') {
            at += 1 + usize::from(text == "--check-hash-based-pycs");
            continue;
        }
        for (place, letter) in letters.char_indices() {
            let attached = letters.get(place + 1..).unwrap_or_default();
            match letter {
                'm' if attached.is_empty() => {
                    return module(words.get(at + 1..).unwrap_or_default());
                }
                'm' => {
                    let mut rest = vec![Word::plain(attached)];
                    rest.extend(words.get(at + 1..).unwrap_or_default().iter().cloned());
                    return module(&rest);
                }
                'c' => return Layer::Unknown,
                'W' | 'X' => {
                    at += usize::from(attached.is_empty());
                    break;
                }
                _ => {}
            }
        }
        at += 1;
    }
    Layer::Unknown
}

fn module(words: &[Word]) -> Layer {
    let Some((name, rest)) = words.split_first() else {
        return Layer::Unknown;
    };
    match name.text.as_str() {
        "unittest" => Layer::Runner(Runner::Unittest, rest.to_vec()),
        "pytest" | "py.test" => Layer::Runner(Runner::Pytest, rest.to_vec()),
        "coverage" => coverage(rest),
        "tox" => Layer::Task(Tool::Tox, rest.to_vec()),
        "nox" => Layer::Task(Tool::Nox, rest.to_vec()),
        "poetry" | "uv" | "pipenv" | "hatch" | "pdm" => {
            Layer::Behind("python -m".into(), words.to_vec())
        }
        other => Layer::Module(other.to_owned(), rest.to_vec()),
    }
}

fn coverage(behind: &[Word]) -> Layer {
    const VALUED: &str = "--rcfile --source --omit --include --context --concurrency --data-file --debug --source-pkg";
    let Some((_, rest)) = behind.split_first().filter(|(word, _)| word.text == "run") else {
        return Layer::Unknown;
    };
    let inner = past_options(rest, VALUED);
    let taken = rest.get(..rest.len() - inner.len()).unwrap_or_default();
    if taken
        .last()
        .is_some_and(|word| word.text == "-m" || word.text == "--module")
    {
        return module(inner);
    }
    Layer::Behind("coverage run".into(), inner.to_vec())
}

fn cargo(behind: &[Word]) -> Layer {
    let rest = behind.strip_prefix_toolchain();
    let mut at = 0;
    while let Some(word) = rest.get(at).filter(|word| word.text.starts_with('-')) {
        if word.text == "-C" {
            let dir = rest
                .get(at + 1)
                .map(|word| word.text.clone())
                .unwrap_or_default();
            let mut inner = vec![Word::plain("cargo")];
            inner.extend(rest.get(at + 2..).unwrap_or_default().iter().cloned());
            return Layer::Directory(dir, inner);
        }
        at += 1 + usize::from(matches!(word.text.as_str(), "--config" | "-Z" | "--color"));
    }
    let rest = rest.get(at..).unwrap_or_default();
    let Some((own, rest)) = rest.split_first() else {
        return Layer::Unknown;
    };
    match (
        own.text.as_str(),
        rest.first().map(|word| word.text.as_str()),
    ) {
        ("test" | "t", _) => Layer::Runner(Runner::Cargo, rest.to_vec()),
        ("nextest", Some("run" | "r")) => {
            Layer::Runner(Runner::Cargo, rest.get(1..).unwrap_or_default().to_vec())
        }
        ("llvm-cov", Some("nextest")) => {
            Layer::Runner(Runner::Cargo, rest.get(1..).unwrap_or_default().to_vec())
        }
        ("llvm-cov", Some("test")) => {
            Layer::Runner(Runner::Cargo, rest.get(1..).unwrap_or_default().to_vec())
        }
        _ => Layer::Unknown,
    }
}

trait Toolchain {
    fn strip_prefix_toolchain(&self) -> &[Word];
}

impl Toolchain for [Word] {
    /// `cargo +nightly test`
    fn strip_prefix_toolchain(&self) -> &[Word] {
        match self {
            [first, rest @ ..] if first.text.starts_with('+') => rest,
            all => all,
        }
    }
}

fn go(behind: &[Word]) -> Layer {
    match behind {
        [own, rest @ ..] if own.text == "test" => Layer::Runner(Runner::Go, rest.to_vec()),
        [option, dir, rest @ ..] if option.text == "-C" => {
            let mut inner = vec![Word::plain("go")];
            inner.extend(rest.iter().cloned());
            Layer::Directory(dir.text.clone(), inner)
        }
        _ => Layer::Unknown,
    }
}

fn project_tool(program: &str, behind: &[Word]) -> Layer {
    let tool = match program {
        "hatch" => Tool::Hatch,
        "pdm" => Tool::Pdm,
        _ => Tool::Pipenv,
    };
    let inner = past_options(behind, "-e --env -p --project --python");
    match inner {
        [own, rest @ ..] if own.text == "run" => {
            Layer::Task(tool, past_options(rest, "-p --project").to_vec())
        }
        [own, rest @ ..] if own.text == "test" && tool == Tool::Hatch => {
            Layer::Runner(Runner::Pytest, rest.to_vec())
        }
        _ => Layer::Unknown,
    }
}
