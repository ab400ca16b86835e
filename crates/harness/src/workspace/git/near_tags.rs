//! The tags that `git describe` would name for the source's HEAD. Names alone are taken over, and
//! only those that git itself would let somebody give.

use std::fs;
use std::io;
use std::process::{Child, Stdio};

use cto_core::workspace::near_tags::{NearTag, is_tag_name, on_one_commit};

use super::command::{finished, scrubbed};
use super::source::{SourceRepo, asked, copy_if_there};
use super::{GitError, SourceError};

/// With notes, of any kind, and with a number in them, as version tools ask.
const QUESTIONS: [&[&str]; 3] = [&[], &["--tags"], &["--tags", "--match=*[0-9]*"]];

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
        // All at once: each may have to walk far.
        let asking: Vec<_> = QUESTIONS.map(|which| self.describe(which)).into();
        let answers = asking.into_iter().map(|asked| {
            let told = asked.and_then(|child| finished("describe", child));
            // What cannot be described there has no name here.
            let told = told.ok().and_then(|told| String::from_utf8(told).ok())?;
            let of = |(_, name): &&(&str, &str)| {
                name.strip_prefix("refs/tags/") == Some(told.trim_end())
            };
            all.iter().find(of).copied()
        });
        let answers: Vec<Option<(&str, &str)>> = answers.collect();
        let [annotated, any, numbered] = answers.as_slice() else {
            return Ok(Vec::new());
        };
        let tag = |found: &Option<(&str, &str)>| {
            let (id, name) = (*found)?;
            Some(NearTag {
                name: name.strip_prefix("refs/tags/")?.to_owned(),
                annotated: found == annotated || self.is_tag_object(id),
            })
        };
        Ok(on_one_commit(tag(annotated), tag(any), tag(numbered)))
    }

    /// A git directory with these tags and nothing else: no other question is answered by it.
    fn lay_out_tags(&self, all: &[(&str, &str)]) -> io::Result<()> {
        let dir = self.ours.join("tags");
        for below in ["refs", "objects"] {
            fs::create_dir_all(dir.join(below))?;
        }
        fs::write(dir.join("HEAD"), format!("{}\n", self.head))?;
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
        command.arg(&self.head).stdout(Stdio::piped());
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
