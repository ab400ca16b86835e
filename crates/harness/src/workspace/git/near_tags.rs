//! The tags that `git describe` would name for the source's HEAD. Names alone are taken over, and
//! only those that git itself would let somebody give.

use std::fs;
use std::io::{self, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use cto_core::workspace::near_tags::{NearTag, is_tag_name, on_one_commit};

use super::command::{asked, scrubbed};
use super::source::{SourceRepo, copy_if_there};
use super::{GitError, SourceError};

/// Of any kind; then with notes, and with a number in them, as version tools ask.
const ANY: &[&str] = &["--tags"];
const WITH_NOTES: &[&str] = &[];
const NUMBERED: &[&str] = &["--tags", "--match=*[0-9]*"];

/// Each question may have to walk through all history. A check is no worse off without a tag than
/// one that waits for it, so nobody waits for longer.
const LONGEST: Duration = Duration::from_secs(10);
/// Most often git has answered after two milliseconds.
const FIRST_LOOK: Duration = Duration::from_micros(500);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

impl SourceRepo {
    /// None where there are none, or history does not reach them.
    pub fn nearest_tags(&self) -> Result<Vec<NearTag>, SourceError> {
        let mut refs = scrubbed(&self.git);
        refs.env("GIT_DIR", &self.git_dir).args([
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "refs/tags",
        ]);
        let told = asked("for-each-ref", refs)?;
        let lines = told.split(|byte| *byte == b'\n');
        let all: Vec<(&str, &str)> = lines
            .filter_map(|line| std::str::from_utf8(line).ok()?.split_once(' '))
            .filter(|(_, name)| {
                let name = name.strip_prefix("refs/tags/");
                name.is_some_and(is_tag_name)
            })
            .collect();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        self.lay_out_tags(&all).map_err(SourceError::Index)?;
        let until = Instant::now() + LONGEST;
        let named = |asked: Result<Child, GitError>| {
            let told = asked.ok().and_then(|child| until_then(child, until))?;
            let told = String::from_utf8(told).ok()?;
            let of = |(_, name): &&(&str, &str)| {
                name.strip_prefix("refs/tags/") == Some(told.trim_end())
            };
            all.iter().find(of).copied()
        };
        // Without one of any kind there is none of another.
        let Some(any) = named(self.describe(ANY)) else {
            return Ok(Vec::new());
        };
        // The nearest of all is the nearest of each kind that it is of.
        let has_notes = self.is_tag_object(any.0);
        let has_number = any.1.bytes().any(|byte| byte.is_ascii_digit());
        let ask = |known: bool, which| (!known).then(|| self.describe(which));
        // Both at once: each may have to walk far.
        let (annotated, numbered) = (ask(has_notes, WITH_NOTES), ask(has_number, NUMBERED));
        let annotated = annotated.map_or(Some(any), &named);
        let numbered = numbered.map_or(Some(any), &named);
        let tag = |found: Option<(&str, &str)>| {
            let (id, name) = found?;
            Some(NearTag {
                name: name.strip_prefix("refs/tags/")?.to_owned(),
                annotated: found == annotated || self.is_tag_object(id),
            })
        };
        Ok(on_one_commit(tag(annotated), tag(Some(any)), tag(numbered)))
    }

    /// A git directory with these tags and nothing else: no other question is answered by it.
    fn lay_out_tags(&self, all: &[(&str, &str)]) -> io::Result<()> {
        let dir = self.ours.join("tags");
        for below in ["refs", "objects"] {
            fs::create_dir_all(dir.join(below))?;
        }
        fs::write(dir.join("HEAD"), format!("{}\n", self.head))?;
        fs::write(dir.join("config"), self.format.config(""))?;
        copy_if_there(&self.common_dir.join("shallow"), &dir.join("shallow"))?;
        let lines = all.iter().map(|(id, name)| format!("{id} {name}\n"));
        fs::write(dir.join("packed-refs"), lines.collect::<String>())
    }

    fn over_tags(&self) -> std::process::Command {
        let mut command = self.command();
        command.env("GIT_DIR", self.ours.join("tags"));
        command
    }

    fn describe(&self, which: &[&str]) -> Result<Child, GitError> {
        const OPERATION: &str = "describe";
        let mut command = self.over_tags();
        command.args([OPERATION, "--abbrev=0"]).args(which);
        command
            .arg(&self.head)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().map_err(|source| GitError::Spawn {
            operation: OPERATION,
            source,
        })
    }

    fn is_tag_object(&self, id: &str) -> bool {
        let mut command = self.over_tags();
        command.args(["cat-file", "-t", id]);
        asked("cat-file", command).is_ok_and(|kind| kind.trim_ascii() == b"tag")
    }
}

/// What a command says that has ended well by then; one that has not is ended. It says a line at
/// most, which no pipe is too small for.
fn until_then(mut child: Child, then: Instant) -> Option<Vec<u8>> {
    let mut pause = FIRST_LOOK;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < then => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(BETWEEN_LOOKS);
            }
            Ok(Some(status)) if status.success() => {
                let mut told = Vec::new();
                let read = child.stdout.take()?.read_to_end(&mut told);
                return read.ok().map(|_| told);
            }
            Ok(Some(_)) => return None,
            Ok(None) | Err(_) => {
                // It was ours, and has nothing to lose.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
