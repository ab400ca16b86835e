//! The `.git` of a check: the one commit an engine is shown, the measured tree staged on it, and the
//! nearest tags of the source. It is made of objects that are ours, once a run, as what lies above a
//! git directory nobody was in yet; no git of the harness ever reads one back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cto_core::containment::masks::Seen;
use cto_core::values::paths::TreePath;
use cto_core::workspace::near_tags::NearTag;

use super::command::{asked, fed, told, told_well};
use super::engine_git::copy_dir;
use super::import::{AUTHOR, WHEN};
use super::{BRANCH, Commit, GitError, HarnessRepo};

/// Nobody's name: the jail has one for git.
const CONFIG: &str = "\tfilemode = true\n\tbare = false\n\tcheckStat = minimal\n\ttrustctime = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
/// What an engine's has so that it can be protected; a check's own tools may take it for something
/// else.
pub const NOT_FOR_CHECKS: &str = "commondir";

/// What a check's git directory is made from.
pub struct CheckGit<'a> {
    /// A git directory at what an engine is shown of the baseline, in which nobody was.
    pub below: &'a Path,
    pub baseline: &'a Commit,
    /// The measured tree; without one the baseline itself is staged.
    pub result: Option<&'a Commit>,
    pub masked: &'a [(TreePath, Seen)],
    pub tags: &'a [NearTag],
}

impl HarnessRepo {
    /// Keeps a fresh workspace's `.git` for checks, with an index that knows its files.
    pub fn keep_below(&self, workspace: &Path, to: &Path) -> Result<(), GitError> {
        copy_dir(&workspace.join(".git"), to, &[NOT_FOR_CHECKS])
            .map_err(|source| GitError::Layout { source })?;
        self.refresh_from(workspace, to)
    }

    /// Makes what lies above it, in a directory that does not exist.
    pub fn make_check_git(&self, to: &Path, from: &CheckGit<'_>) -> Result<(), GitError> {
        let layout = |source| GitError::Layout { source };
        for dir in ["objects/pack", "info"] {
            fs::create_dir_all(to.join(dir)).map_err(layout)?;
        }
        fs::write(to.join("config"), self.format.config(CONFIG)).map_err(layout)?;
        fs::write(to.join("info/exclude"), not_held(from.masked)).map_err(layout)?;
        fs::copy(from.below.join("index"), to.join("index")).map_err(layout)?;
        let mut objects = match from.result {
            Some(result) => self.stage(&to.join("index"), from, result)?,
            None => Vec::new(),
        };
        if !from.tags.is_empty() {
            let head = fs::read_to_string(from.below.join(BRANCH)).map_err(layout)?;
            let (refs, made) = self.tags_on(head.trim_end(), from.tags)?;
            fs::write(to.join("packed-refs"), refs).map_err(layout)?;
            objects.extend(made);
        }
        self.pack_ids(&objects, to)
    }

    /// Puts what differs from the baseline into the index; which objects that needs.
    fn stage(
        &self,
        index: &Path,
        from: &CheckGit<'_>,
        result: &Commit,
    ) -> Result<Vec<String>, GitError> {
        let mut command = self.command();
        command.args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]);
        command.args([&from.baseline.tree, &result.tree]);
        let (mut lines, mut objects) = (Vec::new(), Vec::new());
        for (mode, id, path) in raw_changes(&asked("diff-tree", command)?) {
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
        let mut command = self.command();
        command.env("GIT_INDEX_FILE", index);
        command.args(["update-index", "-z", "--index-info"]);
        told_well("update-index", told("update-index", command, &lines)?)?;
        Ok(objects)
    }

    /// Tells a copy's index when these files were written. Only for a copy in which nothing ran yet.
    pub fn know_files(
        &self,
        files: &Path,
        index: &Path,
        paths: &[TreePath],
    ) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut command = self.command_over(files);
        command
            .env("GIT_INDEX_FILE", index)
            .env("GIT_LITERAL_PATHSPECS", "1")
            // A thread for every few hundred files of the index takes longer than these few.
            .args(["-c", "core.preloadIndex=false"])
            .args(["add", "--refresh", "--pathspec-from-file=-"])
            .arg("--pathspec-file-nul");
        told_well("add", told("add", command, paths)?).map(drop)
    }

    /// The references to tags on a commit, and the objects they are.
    fn tags_on(&self, commit: &str, tags: &[NearTag]) -> Result<(String, Vec<String>), GitError> {
        let (mut refs, mut objects) = (BTreeMap::new(), Vec::new());
        for (NearTag { name, annotated }, when) in tags.iter().zip(WHEN..) {
            if !annotated {
                refs.insert(name, format!("{commit} refs/tags/{name}\n"));
                continue;
            }
            let text = format!(
                "object {commit}\ntype commit\ntag {name}\ntagger {AUTHOR} {when} +0000\n\n{name}\n"
            );
            let mut command = self.command();
            command.args(["hash-object", "-t", "tag", "-w", "--stdin"]);
            let id = fed("hash-object", command, text.into_bytes())?;
            let id = String::from_utf8_lossy(id.trim_ascii()).into_owned();
            refs.insert(name, format!("{id} refs/tags/{name}\n^{commit}\n"));
            objects.push(id);
        }
        let lines: String = refs.into_values().collect();
        let head = "# pack-refs with: peeled fully-peeled sorted \n";
        Ok((format!("{head}{lines}"), objects))
    }

    /// Writes these objects, and no others, into another git directory.
    fn pack_ids(&self, ids: &[String], to: &Path) -> Result<(), GitError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut command = self.command();
        // No search for what is alike: it would cost more than the space it saves.
        command.args(["pack-objects", "-q", "--window=0", "--threads=1"]);
        command.arg(to.join("objects/pack/pack"));
        let ids = ids.join("\n") + "\n";
        fed("pack-objects", command, ids.into_bytes()).map(drop)
    }

    fn refresh_from(&self, workspace: &Path, dot_git: &Path) -> Result<(), GitError> {
        let mut command = self.command_over(workspace);
        command.env("GIT_INDEX_FILE", dot_git.join("index"));
        command.args(["update-index", "-q", "--refresh", "--ignore-submodules"]);
        super::finish("update-index", command)
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

/// Ignore rules for files that are in a check's copy and not in its commit.
fn not_held(masked: &[(TreePath, Seen)]) -> Vec<u8> {
    let gone = masked.iter().filter(|(_, seen)| *seen == Seen::Gone);
    // No rule can name a line end.
    let gone = gone.filter(|(path, _)| !path.as_bytes().contains(&b'\n'));
    gone.flat_map(|(path, _)| {
        let mut rule = vec![b'/'];
        for byte in path.as_bytes() {
            if matches!(byte, b'\\' | b'*' | b'?' | b'[' | b' ') {
                rule.push(b'\\');
            }
            rule.push(*byte);
        }
        rule.push(b'\n');
        rule
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_git_tells_them() {
        let told = b":100644 100755 aaa bbb M\0a b\n\0:100644 000000 ccc 000 D\0gone\0";
        let found = raw_changes(told);
        let path = |text: &str| TreePath::new(text);
        assert_eq!(
            found,
            [
                ("100755".to_owned(), "bbb".to_owned(), path("a b\n")),
                ("000000".to_owned(), "000".to_owned(), path("gone")),
            ]
        );
        assert!(raw_changes(b"").is_empty());
    }

    #[test]
    fn a_rule_names_one_file_whatever_it_is_called() {
        let masked = [
            (TreePath::new(".claude/a*b [x].md"), Seen::Gone),
            (TreePath::new(".pi/two\nlines"), Seen::Gone),
            (TreePath::new(".env"), Seen::Empty),
        ];
        assert_eq!(not_held(&masked), b"/.claude/a\\*b\\ \\[x].md\n");
    }
}
