//! Which program a red command went without, where what started that program ends with a number of
//! its own: make with 2, tox with 1.
//!
//! Only the last words of a command are read: a complaint of a shell or of a tool that starts
//! programs, and after it nothing but the closing words of such tools. Makefiles probe for programs
//! they can do without, and tests print whatever they like. What is read here decides nothing by
//! itself: the untouched copy has to say the same (`run/judge/`).

use std::collections::BTreeSet;

use crate::containment::mounts::stand::NEUTRAL;
use crate::run::event::ProcessEnd;
use crate::run::judge::lacks_a_program;
use crate::workspace::environment::{Signs, kind_of};

/// As much as is read of the end of each stream.
pub const TAIL: usize = 16 << 10;
/// More names of one command say no more.
const MOST: usize = 8;
const LONGEST_NAME: usize = 80;

/// Names of the programs a command says are not there, or cannot be started. `streams`: the end of
/// what it printed, each stream apart and clean of secrets.
pub fn lacking(end: ProcessEnd, streams: &[&str]) -> Vec<String> {
    if end.exit_code().is_none_or(|code| code == 0) {
        return Vec::new();
    }
    let found = streams.iter().flat_map(|stream| last_words(end, stream));
    let found: BTreeSet<String> = found.collect();
    found.into_iter().take(MOST).collect()
}

/// What a complaint is said of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    /// Of programs only.
    OfProgram,
    /// Of any file: of a program only if something ended with 126 or 127 for it.
    OfFile,
}

fn last_words(end: ProcessEnd, stream: &str) -> Vec<String> {
    let mut found = Vec::new();
    // How what was started ended, as its starter says below the complaint.
    let mut told = None;
    for line in stream.lines().rev().map(str::trim) {
        if let Some((said, name)) = complaint(line) {
            let is_program = match told {
                Some(status) => matches!(status, 126 | 127),
                None => said == Said::OfProgram || lacks_a_program(end),
            };
            if !is_program {
                break;
            }
            found.extend(is_of_the_host(&name).then_some(name));
        } else if let Some(status) = closing_words(line) {
            told = status.or(told);
        } else {
            break;
        }
    }
    found
}

/// Words after the last colon, and what they are said of.
const SHELL_ENDS: [(&str, Said); 9] = [
    (": command not found", Said::OfProgram),
    (": inaccessible or not found", Said::OfProgram),
    (": cannot execute: required file not found", Said::OfProgram),
    (": not found", Said::OfProgram),
    (
        ": bad interpreter: No such file or directory",
        Said::OfProgram,
    ),
    (
        ": cannot execute binary file: Exec format error",
        Said::OfProgram,
    ),
    (": Exec format error", Said::OfProgram),
    (": No such file or directory", Said::OfFile),
    (": Permission denied", Said::OfFile),
];

/// Programs that start others and complain under their own name.
const STARTERS: [&str; 19] = [
    "sh", "dash", "bash", "ash", "ksh", "mksh", "zsh", "busybox", "make", "gmake", "env", "xargs",
    "nice", "nohup", "setsid", "timeout", "stdbuf", "time", "ionice",
];

/// The program a line says is missing.
fn complaint(line: &str) -> Option<(Said, String)> {
    if let Some(name) = of_a_tool(line) {
        return Some((Said::OfProgram, name));
    }
    let (rest, said) = SHELL_ENDS
        .iter()
        .find_map(|(end, said)| Some((line.strip_suffix(end)?, *said)))?;
    let (before, name) = rest.rsplit_once(": ")?;
    let is_own_word = line.ends_with(": command not found");
    (is_own_word || starts_programs(before)).then_some((said, clean(name)?))
}

/// What stands around the name in the words of single tools: at the start of a line, or anywhere.
const LINES: [(&str, &str); 3] = [
    // Our own stand-ins, `the Rust toolchain stable` among them.
    ("cto: ", " is not shown to this jail"),
    ("nox > Program ", " not found."),
    ("error: no such command: ", ""),
];
const WORDS: [(&str, &str); 3] = [
    // tox
    (
        "Exception running subprocess [Errno 2] No such file or directory: ",
        "",
    ),
    // Go
    ("exec: ", ": executable file not found in $PATH"),
    // zsh, yarn
    ("command not found: ", ""),
];

fn of_a_tool(line: &str) -> Option<String> {
    let until = |rest: &'_ str, after: &str| match after {
        "" => Some(rest.to_owned()),
        after => Some(rest.split_once(after)?.0.to_owned()),
    };
    let at_start = LINES
        .iter()
        .find_map(|(before, after)| until(line.strip_prefix(before)?, after));
    let anywhere = || {
        let mut words = WORDS.iter();
        words.find_map(|(before, after)| until(line.split_once(before)?.1, after))
    };
    // coreutils and util-linux
    let started = || {
        let mut words = [": failed to run command ", ": failed to execute "].iter();
        let (before, rest) = words.find_map(|word| line.split_once(word))?;
        starts_programs(before).then(|| until(rest, ": "))?
    };
    let name = at_start.or_else(anywhere).or_else(started)?;
    let name = clean(name.rsplit(' ').next().unwrap_or(&name))?;
    Some(if line.starts_with("error: no such command: ") {
        format!("cargo-{name}")
    } else {
        name
    })
}

/// `bash: line 3`, `/bin/sh: 1`, `make[1]`, `./t.sh: 3`.
fn starts_programs(before: &str) -> bool {
    let mut parts = before.split(": ");
    let first = parts.next().unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    let is_number = |part: &str| {
        let digits = part.strip_prefix("line ").unwrap_or(part);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    // A script is called by its path, or is named like one: anybody may say `server: 404`.
    let is_script = (first.contains('/') && !first.contains("://"))
        || [".sh", ".bash", ".zsh"]
            .iter()
            .any(|end| first.ends_with(end));
    STARTERS.contains(&name) || (is_script && parts.next().is_some_and(is_number))
}

/// A name as people type it; anything else is no name.
fn clean(name: &str) -> Option<String> {
    let name = name.trim_matches(['\'', '"', '`', '‘', '’']);
    let fits = |c: char| c.is_ascii_alphanumeric() || "._+-/@~{}".contains(c);
    let is_name = name.len() <= LONGEST_NAME
        && name.chars().all(fits)
        && name.chars().any(|c| c.is_ascii_alphanumeric());
    is_name.then(|| name.to_owned())
}

/// Is this a program that a host has, or an environment? A file of the repository's own is neither:
/// a change may be asked to make it.
fn is_of_the_host(name: &str) -> bool {
    let below = |dir: &str| name.strip_prefix(dir)?.strip_prefix('/');
    let own = below("{repo}").or_else(|| below(NEUTRAL));
    match own {
        Some(path) => is_in_an_environment(path),
        None if name.starts_with(['/', '~']) || !name.contains('/') => true,
        None => is_in_an_environment(name),
    }
}

/// `.venv/bin/pytest`: a path of the repository that no change brings.
pub fn is_in_an_environment(path: &str) -> bool {
    let dir = Signs {
        is_dir: true,
        ..Signs::default()
    };
    path.split('/')
        .any(|part| matches!(part, ".venv" | "venv") || kind_of(part.as_bytes(), dir).is_some())
}

/// Lines that tools print when what they started has ended, with its status where they say it.
fn closing_words(line: &str) -> Option<Option<i32>> {
    const SAY_NOTHING: [&str; 9] = [
        "npm ",
        "nox > ",
        "help: ",
        "info Visit ",
        "WARN ",
        "evaluation failed",
        "ELIFECYCLE",
        "error Command failed",
        "error: recipe `",
    ];
    let number = |word: &str| line.rsplit_once(word)?.1.trim_end_matches('.').parse().ok();
    if line.is_empty() {
        return Some(None);
    }
    let lower = line.replacen("Recipe", "recipe", 1);
    if SAY_NOTHING.iter().any(|start| lower.starts_with(start)) {
        return Some(number("exit code "));
    }
    let (who, what) = line.split_once(": ")?;
    let who = who.split_once('[').map_or(who, |(name, _)| name);
    if matches!(who, "make" | "gmake") {
        if what.starts_with("*** [") {
            return number("Error ").map(Some);
        }
        let is_aside = [
            "*** Waiting for",
            "Target ",
            "Leaving directory",
            "Entering directory",
        ]
        .iter()
        .any(|start| what.starts_with(start));
        return is_aside.then_some(None);
    }
    // tox: `py: exit 2 (0.00 seconds) /repo> …`, `py: FAIL code 2 (…)`. Its number may be an errno.
    let is_tox = (what.starts_with("exit ") && what.contains(" seconds) "))
        || what.starts_with("FAIL code ");
    is_tox.then_some(None)
}

#[cfg(test)]
#[path = "lacking_tests.rs"]
mod tests;
