//! The `.git` a check gets: one commit, the measured tree staged on it, and the nearest tags of the
//! source. It is made once from objects that are ours, and copied into each copy; nobody ever reads
//! one back. What is masked is not in its objects, as with an engine's.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use cto_core::containment::masks::Seen;
use cto_core::values::paths::TreePath;

use super::command::{finish, last_line, told};
use super::engine_git::{CONFIG, lay_out};
use super::import::{AUTHOR, WHEN};
use super::source::asked;
use super::{BRANCH, Commit, GitError, HarnessRepo};

/// A tag of the source that is put on the one commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearTag {
    /// Below `refs/tags/`.
    pub name: String,
    pub annotated: bool,
}

/// What a check's git directory is made from.
pub struct CheckGit<'a> {
    pub baseline: &'a Commit,
    /// The measured tree; without one the baseline itself is staged.
    pub result: Option<&'a str>,
    pub masked: &'a [(TreePath, Seen)],
    pub tags: &'a [NearTag],
    /// A git directory of ours at the baseline that will lie below: only what differs is made.
    pub below: Option<&'a Path>,
}

impl HarnessRepo {
    /// Makes it in a directory that does not exist.
    pub fn make_check_git(&self, to: &Path, from: &CheckGit<'_>) -> Result<(), GitError> {
        let layout = |source| GitError::Layout { source };
        let head = match from.below {
            Some(below) => {
                fs::create_dir_all(to.join("objects/pack")).map_err(layout)?;
                fs::copy(below.join("index"), to.join("index")).map_err(layout)?;
                let head = fs::read_to_string(below.join(BRANCH)).map_err(layout)?;
                head.trim_end().to_owned()
            }
            None => self.whole(to, from)?,
        };
        let mut objects = match from.result {
            Some(result) => self.stage(&to.join("index"), from, result)?,
            None => Vec::new(),
        };
        let mut refs = String::from("# pack-refs with: peeled fully-peeled sorted \n");
        for tag in from.tags {
            let (id, peeled) = match tag.annotated {
                true => (self.tag_object(&tag.name, &head)?, format!("^{head}\n")),
                false => (head.clone(), String::new()),
            };
            refs += &format!("{id} refs/tags/{}\n{peeled}", tag.name);
            objects.extend(tag.annotated.then_some(id));
        }
        if !from.tags.is_empty() {
            fs::write(to.join("packed-refs"), refs).map_err(layout)?;
        }
        self.pack_ids(&objects, to)
    }

    /// Everything of the baseline's, where nothing lies below.
    fn whole(&self, to: &Path, from: &CheckGit<'_>) -> Result<String, GitError> {
        let layout = |source| GitError::Layout { source };
        let shown = match from.masked {
            [] => from.baseline.clone(),
            masked => self.shown(from.baseline, masked)?,
        };
        lay_out(to, &shown).map_err(layout)?;
        fs::write(to.join("config"), CONFIG).map_err(layout)?;
        self.pack(&shown, to)?;
        let mut command = self.with_index(&to.join("index"));
        command.args(["read-tree", &shown.tree]);
        finish("read-tree", command)?;
        let there = from.masked.iter().filter(|(_, seen)| *seen == Seen::Empty);
        let there: Vec<TreePath> = there.map(|(path, _)| path.clone()).collect();
        if !there.is_empty() {
            let mut command = self.with_index(&to.join("index"));
            command.args(["update-index", "--skip-worktree", "-z", "--stdin"]);
            succeeded("update-index", told("update-index", command, &there)?)?;
        }
        Ok(shown.commit)
    }

    /// Puts what differs from the baseline into the index; which objects it needs for that.
    fn stage(
        &self,
        index: &Path,
        from: &CheckGit<'_>,
        result: &str,
    ) -> Result<Vec<String>, GitError> {
        let mut command = self.command();
        command.args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]);
        command.args([from.baseline.commit.as_str(), result]);
        let changes = raw_changes(&asked("diff-tree", command)?);
        let (mut lines, mut objects) = (Vec::new(), Vec::new());
        for (mode, id, path) in changes {
            // As it is shown to whoever works there.
            if from.masked.iter().any(|(masked, _)| *masked == path) {
                continue;
            }
            let gone = mode.bytes().all(|digit| digit == b'0');
            let mode = if gone { "0" } else { mode.as_str() };
            lines.push(TreePath::new(
                [format!("{mode} {id}\t").as_bytes(), path.as_bytes()].concat(),
            ));
            if !gone && mode != "160000" {
                objects.push(id);
            }
        }
        let mut command = self.with_index(index);
        command.args(["update-index", "-z", "--index-info"]);
        succeeded("update-index", told("update-index", command, &lines)?)?;
        Ok(objects)
    }

    fn with_index(&self, index: &Path) -> Command {
        let mut command = self.command();
        command.env("GIT_INDEX_FILE", index);
        command
    }

    fn tag_object(&self, name: &str, commit: &str) -> Result<String, GitError> {
        let text =
            format!("object {commit}\ntype commit\ntag {name}\ntagger {AUTHOR} {WHEN}\n\n{name}\n");
        let mut command = self.command();
        command.args(["hash-object", "-t", "tag", "-w", "--stdin"]);
        let answer = fed("hash-object", command, text.as_bytes())?;
        Ok(String::from_utf8_lossy(answer.trim_ascii()).into_owned())
    }

    /// Writes these objects, and no others, into another git directory.
    fn pack_ids(&self, ids: &[String], to: &Path) -> Result<(), GitError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut command = self.command();
        command
            .args(["pack-objects", "-q", "--window=0"])
            .arg(to.join("objects/pack/pack"));
        fed("pack-objects", command, (ids.join("\n") + "\n").as_bytes()).map(drop)
    }
}

/// Mode, object and path after each change, as `diff-tree --raw -z` tells them.
fn raw_changes(told: &[u8]) -> Vec<(String, String, TreePath)> {
    let mut parts = told.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.split(' ').collect();
        if let [_, mode, _, id, _] = words.as_slice() {
            changes.push(((*mode).to_owned(), (*id).to_owned(), TreePath::new(path)));
        }
    }
    changes
}

/// Runs a command that reads something short.
fn fed(operation: &'static str, mut command: Command, input: &[u8]) -> Result<Vec<u8>, GitError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| GitError::Spawn { operation, source })?;
    let pipe = |source| GitError::Pipe { operation, source };
    let written = match child.stdin.take() {
        Some(mut stdin) => stdin.write_all(input),
        None => Ok(()),
    };
    let output = child.wait_with_output().map_err(pipe)?;
    let answer = succeeded(operation, output)?;
    written.map_err(pipe)?;
    Ok(answer)
}

fn succeeded(operation: &'static str, output: std::process::Output) -> Result<Vec<u8>, GitError> {
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(GitError::Failed {
            operation,
            message: last_line(&output.stderr),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_git_tells_them() {
        let told = b":100644 100755 aaa bbb M\0a b\n\0:100644 000000 ccc 000 D\0gone\0";
        let found: Vec<String> = raw_changes(told)
            .into_iter()
            .map(|(mode, id, path)| format!("{mode} {id} {path:?}"))
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("100755 bbb") && found[1].starts_with("000000 000"));
        assert!(raw_changes(b"").is_empty());
    }
}
