//! What a program says about itself: asked once, in a jail, when it is admitted. No run ever asks
//! again.

use std::io::{BufRead, BufReader};
use std::path::Path;

use cto_core::containment::mounts::Granted;
use cto_core::engine::manifest::questions::Question;
use cto_core::gate::ToolchainUse;
use cto_core::records::secret_shape;

use crate::host::failure::Failure;
use crate::host::files;
use crate::host::places::Places;
use crate::host::toolchains::{self, Resolved, SYSTEM_PATH};
use crate::host::{self, Env, Home};
use crate::supervise;
use crate::supervise::cancel::Cancel;
use crate::supervise::launch::Launch;

/// As much as a record keeps.
const MOST_TEXT: usize = 4000;

/// What was said, whole lines, without control characters. What a program says on its way to a
/// failure is not about itself: it names nothing.
#[derive(Default)]
pub struct Said {
    pub help: String,
    pub version: String,
    /// Where neither question ended well: its words, for a person.
    pub failed: Option<String>,
}

/// One question: what came back, and whether the program ended well.
#[derive(Default)]
struct Reply {
    text: String,
    is_answer: bool,
}

/// What runs a program, where that was found: what a jail must be shown of it, which of the system's is nothing.
pub type RunsOn<'a> = Option<Option<&'a ToolchainUse>>;

/// Asks a program for its help and its version, or what of that it answers, run by what was found to run it.
pub fn ask(
    (program, questions): (&Path, &[Question]),
    runs_on: RunsOn<'_>,
    cancel: &Cancel,
    env: &Env,
    home: &Home,
) -> Result<Said, Failure> {
    let shown = shown(program, runs_on, env, home)?;
    with_jail(shown, env, home, |shown, scratch| {
        let one = |asked: Question| match questions.contains(&asked) {
            true => question((program, asked.flag()), cancel, shown, scratch, env),
            false => Ok(Reply::default()),
        };
        let (help, version) = (one(Question::Help)?, one(Question::Version)?);
        let failed = (!help.is_answer && !version.is_answer).then(|| match help.text.is_empty() {
            true => version.text.clone(),
            false => help.text.clone(),
        });
        let said = |reply: Reply| match reply.is_answer {
            true => reply.text,
            false => String::new(),
        };
        Ok(Said {
            help: said(help),
            version: first_line(&said(version)),
            failed,
        })
    })
}

/// What a program answers to `--version`; nothing where it fails.
pub fn version(program: &Path, cancel: &Cancel, env: &Env, home: &Home) -> Result<String, Failure> {
    let shown = shown(program, None, env, home)?;
    with_jail(shown, env, home, |shown, scratch| {
        let flag = Question::Version.flag();
        let reply = question((program, flag), cancel, shown, scratch, env)?;
        Ok(match reply.is_answer {
            true => first_line(&reply.text),
            false => String::new(),
        })
    })
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// Makes what a jail of questions needs, and takes it away again.
fn with_jail<T>(
    shown: Shown,
    env: &Env,
    home: &Home,
    ask: impl FnOnce(&Shown, &Granted) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let work = home
        .work()
        .join(format!("identity-{}", host::random_name(8)?));
    let failed = |error: std::io::Error| {
        Failure::internal("identity", "the program cannot be asked")
            .because(&error)
            .so("nothing was admitted")
    };
    host::make_private_dir(&work.join("home"))
        .and_then(|()| cto_jail::hand_over(&work))
        .map_err(failed)?;
    let places = Places::of(env, home);
    let scratch = places.made(&work, true).map_err(failed)?;
    let answers = ask(&shown, &scratch);
    // Litter at most: nothing of ours was in it.
    let _ = files::remove_tree(&work);
    answers
}

/// What a jail must be shown, and where programs are then found.
struct Shown {
    mounts: Vec<Granted>,
    path: String,
}

fn shown(program: &Path, runs_on: RunsOn<'_>, env: &Env, home: &Home) -> Result<Shown, Failure> {
    let places = Places::of(env, home);
    let granted = places.program(program).map_err(|refused| {
        Failure::usage(refused.code(), "a jail cannot be shown the program")
            .reason(refused.to_string())
            .so("nothing was admitted")
    })?;
    let mut shown = Shown {
        mounts: granted.into_iter().collect(),
        path: String::new(),
    };
    // An environment is nothing without the Python it was made from.
    if let Some(root) = toolchains::environment_around(program) {
        let base = toolchains::base_of(&root, &shown.mounts, &places).map_err(|why| {
            Failure::usage("toolchain_unavailable", "a jail cannot be shown its Python")
                .reason(why)
                .so("nothing was admitted")
        })?;
        shown.mounts.extend(base);
    }
    let take = |shown: &mut Shown, found: &ToolchainUse| {
        shown.mounts.extend(found.mounts.iter().cloned());
        let dirs = found.bin.iter().map(|bin| format!("{bin}:"));
        shown.path.extend(dirs);
    };
    if let Some(found) = runs_on {
        found.into_iter().for_each(|found| take(&mut shown, found));
    } else if let Some(name) = interpreter(program) {
        match toolchains::resolve(&name, env, home) {
            Resolved::Toolchain(found) => take(&mut shown, &found),
            Resolved::System(_) => {}
            Resolved::Missing | Resolved::Unusable(_) => {
                return Err(Failure::usage(
                    "toolchain_unavailable",
                    format!("the program is a script for {name}, which a jail cannot be shown"),
                )
                .so("nothing was admitted")
                .hint(format!("put {name} on PATH")));
            }
        }
    }
    shown.path.push_str(SYSTEM_PATH);
    Ok(shown)
}

/// The program a script asks `env` for.
pub fn interpreter(program: &Path) -> Option<String> {
    let mut words = first_words(program)?.into_iter();
    words.next().filter(|first| first.ends_with("/env"))?;
    words.find(|word| !word.starts_with('-'))
}

/// What the first line of a script asks the kernel for.
pub(super) fn first_words(program: &Path) -> Option<Vec<String>> {
    let mut line = Vec::new();
    BufReader::new(files::open_regular(program).ok()?).take_line(&mut line)?;
    let text = std::str::from_utf8(&line).ok()?.trim();
    let words = text.strip_prefix("#!")?.split_whitespace();
    Some(words.map(str::to_owned).collect())
}

trait TakeLine {
    fn take_line(self, line: &mut Vec<u8>) -> Option<()>;
}

impl<R: BufRead> TakeLine for R {
    /// The first line, or as much of it as could be one.
    fn take_line(self, line: &mut Vec<u8>) -> Option<()> {
        self.take(256).read_until(b'\n', line).ok().map(drop)
    }
}

fn question(
    asked: (&Path, &str),
    cancel: &Cancel,
    shown: &Shown,
    scratch: &Granted,
    env: &Env,
) -> Result<Reply, Failure> {
    let launch = Launch::question(asked, &shown.mounts, &shown.path, scratch, env);
    let mut said = Vec::new();
    let ended = supervise::run(&launch, cancel, &mut |_, bytes| {
        let room = MOST_TEXT.saturating_sub(said.len());
        said.extend_from_slice(&bytes[..bytes.len().min(room)]);
    })
    .map_err(|error| {
        Failure::internal(
            "containment_unavailable",
            "the program cannot be asked in a jail on this host",
        )
        .because(&error)
        .so("nothing was admitted")
        .hint("`cto doctor` says what is missing and how to fix it")
    })?;
    if cancel.requested() {
        return Err(
            Failure::blocked("interrupted", "it was interrupted").so("nothing was admitted")
        );
    }
    let text = String::from_utf8_lossy(&said);
    let plain: String = text
        .chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .collect();
    Ok(Reply {
        text: recordable(plain.trim()),
        is_answer: ended.end.exit_code() == Some(0),
    })
}

/// Without lines that no record may hold: a help shows what an address with a password looks like.
fn recordable(text: &str) -> String {
    let lines = text.lines().filter(|line| secret_shape(line).is_none());
    lines.collect::<Vec<_>>().join("\n")
}

/// Does what a program said name the engine it is to be? A whole word, in any case.
pub fn names(said: &Said, word: &str) -> bool {
    let word = word.to_lowercase();
    [&said.help, &said.version].iter().any(|text| {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric() && c != '-')
            .any(|found| found == word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_named_by_a_whole_word() {
        let said = |help: &str| Said {
            help: help.into(),
            version: "1.0".into(),
            failed: None,
        };
        assert!(names(&said("Pi - a coding agent"), "pi"));
        assert!(names(&said("usage: pi [options]"), "pi"));
        assert!(!names(&said("a pipe for everything"), "pi"));
        assert!(!names(&said(""), "pi"));
    }

    #[test]
    fn a_line_that_no_record_may_hold_is_left_out() {
        let help = "usage: qwen [options]\n  --proxy  like http://user:password@host:8080\n  --acp";
        assert_eq!(recordable(help), "usage: qwen [options]\n  --acp");
        assert!(secret_shape(help).is_some() && secret_shape(&recordable(help)).is_none());
    }

    #[test]
    fn the_interpreter_of_a_script_is_read_from_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        for (text, want) in [
            ("#!/usr/bin/env node\n", Some("node")),
            ("#!/usr/bin/env -S node --x\n", Some("node")),
            ("#!/bin/sh\n", None),
            ("\x7fELF", None),
            ("", None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(interpreter(&file).as_deref(), want, "{text:?}");
        }
    }
}
