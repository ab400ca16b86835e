//! The only git that writes to a person's repository, and it writes one thing: a ref (`move_branch`). The
//! rest of this file asks, or works in directories of ours: the commit that lands is made in a repository
//! of the harness, a new index beside a copy of the old one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_core::values::paths::TreePath;
use cto_core::values::time::Utc;
use cto_core::workspace::landing::message::Who;
use cto_core::workspace::tree::FileKind;

use super::command::{asked, finish, scrubbed, told, told_well};
use super::import::{Base, Words};
use super::tree_files::{Answers, Visit};
use super::{Commit, Edit, GitError, HarnessRepo, SourceRepo};
use crate::host::programs::Program;

/// What is to be a commit on one of a person's own.
pub struct NewCommit<'a> {
    pub parent: &'a str,
    pub message: &'a str,
    pub author: &'a Who,
    pub committer: &'a Who,
    pub when: Utc,
}

/// One name in a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeEntry {
    pub mode: String,
    pub id: String,
}

impl TreeEntry {
    pub fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }

    pub fn kind(&self) -> Option<FileKind> {
        match self.mode.as_str() {
            "120000" => Some(FileKind::Symlink),
            "100755" => Some(FileKind::Executable),
            mode if mode.starts_with("100") => Some(FileKind::Regular),
            _ => None,
        }
    }
}

/// What makes files of a work tree other bytes than their blobs, beyond line ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    pub filtered: Vec<TreePath>,
    pub encoded: Vec<TreePath>,
    pub with_keywords: Vec<TreePath>,
}

/// The settings of a repository and its owner that matter to a landing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    fn of(told: &[u8]) -> Self {
        let text = String::from_utf8_lossy(told);
        let lines = text.split('\0').filter(|line| !line.is_empty());
        Self(
            lines
                .map(|line| line.split_once('\n').unwrap_or((line, "true")))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
        )
    }

    /// Of the repository around a directory.
    pub fn around(git: &Program, dir: &Path, home: Option<&Path>) -> Self {
        let mut command = scrubbed(git);
        command.current_dir(dir);
        Self::ask(command, home)
    }

    fn ask(mut command: Command, home: Option<&Path>) -> Self {
        command
            .env_remove("GIT_CONFIG_NOSYSTEM")
            .env_remove("GIT_CONFIG_SYSTEM");
        if let Some(home) = home {
            command.env("HOME", home).env_remove("GIT_CONFIG_GLOBAL");
        }
        command.args(["config", "-z", "--get-regexp"]);
        const ASKED: [&str; 4] = [
            "core\\.(sparsecheckout|ignorecase)",
            "extensions\\.partialclone",
            "remote\\..*\\.promisor",
            "user\\.(name|email)",
        ];
        command.arg(format!("^({})$", ASKED.join("|")));
        // Nothing set is an answer too.
        Self::of(&asked("config", command).unwrap_or_default())
    }

    fn is_on(&self, name: &str) -> bool {
        let value = self.0.get(name).map(|value| value.to_ascii_lowercase());
        value.is_some_and(|value| !matches!(value.as_str(), "false" | "no" | "off" | "0" | ""))
    }

    pub fn is_sparse(&self) -> bool {
        self.is_on("core.sparsecheckout")
    }

    pub fn ignores_case(&self) -> bool {
        self.is_on("core.ignorecase")
    }

    pub fn is_partial(&self) -> bool {
        let names_one = |(name, value): (&String, &String)| match name.as_str() {
            "extensions.partialclone" => !value.is_empty(),
            name => name.ends_with(".promisor") && self.is_on(name),
        };
        self.0.iter().any(names_one)
    }

    /// Who commits here, where somebody said so.
    pub fn who(&self) -> Option<Who> {
        Who::named(self.0.get("user.name")?, self.0.get("user.email")?)
    }
}

impl SourceRepo {
    pub fn head(&self) -> &str {
        &self.head
    }

    pub fn tree(&self) -> &str {
        &self.tree
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The copy of the index as it was when this was opened.
    pub fn index_copy(&self) -> PathBuf {
        self.ours.join("index")
    }

    pub fn settings(&self, home: Option<&Path>) -> Settings {
        let mut command = scrubbed(&self.git);
        command.env("GIT_DIR", &self.git_dir);
        Settings::ask(command, home)
    }

    pub fn attributes(&self, paths: &[TreePath]) -> Result<Attributes, GitError> {
        const OPERATION: &str = "check-attr";
        let mut command = self.command();
        command.args([
            OPERATION,
            "-z",
            "--stdin",
            "filter",
            "working-tree-encoding",
            "ident",
        ]);
        let answer = told_well(OPERATION, told(OPERATION, command, paths)?)?;
        let parts: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let mut found = Attributes::default();
        for words in parts.chunks_exact(3) {
            if matches!(words[2], b"unspecified" | b"unset") {
                continue;
            }
            let list = match words[1] {
                b"filter" => &mut found.filtered,
                b"working-tree-encoding" => &mut found.encoded,
                _ => &mut found.with_keywords,
            };
            list.push(TreePath::of(words[0]));
        }
        Ok(found)
    }

    /// What a tree has at these paths, and which submodules lie at or above one.
    pub fn entries_at(
        &self,
        tree: &str,
        paths: &[TreePath],
    ) -> Result<BTreeMap<TreePath, TreeEntry>, GitError> {
        entries_at(&|| self.command(), tree, paths)
    }

    /// Files of trees that this repository holds.
    pub fn visit_named(
        &self,
        tree: &str,
        files: &[(TreePath, FileKind)],
        visit: &mut Visit<'_>,
    ) -> Result<(), GitError> {
        let named: Vec<(&str, &TreePath, FileKind)> = files
            .iter()
            .map(|(path, kind)| (tree, path, *kind))
            .collect();
        if Answers::default().named_files(&|| self.command(), &named, visit)? {
            return Ok(());
        }
        let wanted = |path: &TreePath| files.iter().any(|(file, _)| file == path);
        self.files_of(tree, &wanted, visit).map(drop)
    }

    /// Every name of the index.
    pub fn tracked(&self) -> Result<Vec<TreePath>, GitError> {
        let mut command = self.command();
        command.args(["ls-files", "-z"]);
        let answer = asked("ls-files", command)?;
        let names = answer
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        Ok(names.map(TreePath::of).collect())
    }

    /// What a revision names here, if it is one: `COMMIT^`, `COMMIT^{tree}`.
    pub fn named(&self, revision: &str) -> Option<String> {
        let mut command = self.command();
        command.args([
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            revision,
        ]);
        let answer = asked("rev-parse", command).ok()?;
        Some(super::source::id(answer)).filter(|id| super::ObjectFormat::of_id(id).is_some())
    }

    /// Does history lead from one commit to the other?
    pub fn leads_to(&self, from: &str, to: &str) -> bool {
        if self.told_what_is_shallow().is_err() {
            return false;
        }
        let mut command = self.command();
        command.args(["merge-base", "--is-ancestor", from, to]);
        asked("merge-base", command).is_ok()
    }

    /// The paths that differ between two trees.
    pub fn between(&self, from: &str, to: &str) -> Result<Vec<TreePath>, GitError> {
        let mut command = self.command();
        command.args([
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            from,
            to,
        ]);
        let answer = asked("diff-tree", command)?;
        let names = answer
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        Ok(names.map(TreePath::of).collect())
    }

    /// The commit a branch names now, by its whole name.
    pub fn branch_now(&self, branch: &str) -> Result<Option<String>, GitError> {
        let mut refs = scrubbed(&self.git);
        refs.env("GIT_DIR", &self.git_dir);
        refs.args(["for-each-ref", "--format=%(refname) %(objectname)", branch]);
        let answer = asked("for-each-ref", refs)?;
        let text = String::from_utf8_lossy(&answer);
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        Ok(lines
            .find(|(name, _)| *name == branch)
            .map(|(_, id)| id.to_owned()))
    }

    /// A branch that a new one of this name would be, lie in, or hold.
    pub fn taken(&self, branch: &str) -> Result<Option<String>, GitError> {
        let mut refs = scrubbed(&self.git);
        refs.env("GIT_DIR", &self.git_dir);
        refs.args(["for-each-ref", "--format=%(refname)", "refs/heads"]);
        let answer = asked("for-each-ref", refs)?;
        let text = String::from_utf8_lossy(&answer);
        let below = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let same = |name: &&str| *name == branch || below(name, branch) || below(branch, name);
        Ok(text.lines().find(same).map(str::to_owned))
    }

    /// A new index beside the copy of the old one: other entries for these paths, and what the kernel says
    /// of their files, which are in place.
    pub fn make_index(
        &self,
        entries: &[(&TreePath, Option<&TreeEntry>)],
    ) -> Result<PathBuf, GitError> {
        let layout = |source| GitError::Layout { source };
        let index = self.ours.join("new-index");
        fs::copy(self.index_copy(), &index).map_err(layout)?;
        let line = |(path, entry): &(&TreePath, Option<&TreeEntry>)| {
            let none = "0".repeat(self.head.len());
            let (mode, id) = match entry {
                Some(entry) => (entry.mode.as_str(), entry.id.as_str()),
                None => ("0", none.as_str()),
            };
            TreePath::new([format!("{mode} {id}\t").as_bytes(), path.as_bytes()].concat())
        };
        // What goes makes room for what comes: a file may have become a directory.
        let (kept, gone): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, entry)| entry.is_some());
        let lines: Vec<TreePath> = gone.into_iter().chain(kept).map(line).collect();
        let mut command = self.command();
        command.env("GIT_INDEX_FILE", &index).arg("update-index");
        let mut files = fs::read_dir(&self.ours).map_err(layout)?.flatten();
        if files.any(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex.")) {
            command.arg("--no-split-index");
        }
        command.args(["-z", "--index-info"]);
        told_well("update-index", told("update-index", command, &lines)?)?;
        let there = entries.iter().filter(|(_, entry)| entry.is_some());
        let there: Vec<TreePath> = there.map(|(path, _)| (*path).clone()).collect();
        if !there.is_empty() {
            let mut command = self.command();
            command
                .env("GIT_INDEX_FILE", &index)
                .env("GIT_LITERAL_PATHSPECS", "1")
                .args(["-c", "core.preloadIndex=false", "add", "--refresh"])
                .args(["--pathspec-from-file=-", "--pathspec-file-nul"]);
            told_well("add", told("add", command, &there)?)?;
        }
        Ok(index)
    }

    /// The one write: the branch names another commit, if it still names the old one. No hook runs, and it
    /// is on the disk before this returns.
    pub fn move_branch(
        &self,
        branch: &str,
        (new, old): (&str, Option<&str>),
        (who, reason): (&Who, &str),
    ) -> Result<(), GitError> {
        let none = "0".repeat(new.len());
        let mut command = durable(scrubbed(&self.git));
        command
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMITTER_NAME", &who.name)
            .env("GIT_COMMITTER_EMAIL", &who.email)
            .args(["update-ref", "--no-deref", "-m", reason, branch, new])
            .arg(old.unwrap_or(&none));
        finish("update-ref", command)
    }
}

/// Ours are thrown away after a crash, a person's repository is not: the last word counts.
fn durable(mut command: Command) -> Command {
    command.args(["-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync"]);
    command
}

impl HarnessRepo {
    /// The commit that lands, and the pack of its objects, where one had to be made.
    pub fn commit_on<'a>(
        &self,
        new: &NewCommit<'_>,
        edits: impl IntoIterator<Item = (&'a TreePath, Edit<'a>)>,
    ) -> Result<(Commit, Option<PathBuf>), GitError> {
        let words = Words {
            author: new.author,
            committer: new.committer,
            when: u64::try_from(new.when.as_millis() / 1000).unwrap_or_default(),
            message: new.message,
        };
        let commit = self.import(
            "refs/heads/landing",
            (Base::On(new.parent), Some(words)),
            edits,
        )?;
        let packs = fs::read_dir(self.dir.join("objects/pack"))
            .map_err(|source| GitError::Layout { source })?;
        let mut packs = packs.flatten().map(|entry| entry.path());
        let pack = packs.find(|path| path.extension() == Some(OsStr::new("pack")));
        Ok((commit, pack))
    }

    /// What a tree of ours has at these paths.
    pub fn entries_at(
        &self,
        tree: &str,
        paths: &[TreePath],
    ) -> Result<BTreeMap<TreePath, TreeEntry>, GitError> {
        entries_at(&|| self.command(), tree, paths)
    }
}

fn entries_at(
    git: &dyn Fn() -> Command,
    tree: &str,
    paths: &[TreePath],
) -> Result<BTreeMap<TreePath, TreeEntry>, GitError> {
    const OPERATION: &str = "ls-tree";
    let mut asked_for: Vec<TreePath> = Vec::new();
    for path in paths {
        let bytes = path.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        asked_for.extend(ends.map(|(at, _)| TreePath::of(&bytes[..at])));
        asked_for.push(path.clone());
    }
    asked_for.sort();
    asked_for.dedup();
    let mut found = BTreeMap::new();
    // A command line holds only so many names.
    for some in asked_for.chunks(256) {
        let mut command = git();
        command.args([OPERATION, "-z", "--full-tree", tree, "--"]);
        command.args(some.iter().map(|path| OsStr::from_bytes(path.as_bytes())));
        let answer = asked(OPERATION, command)?;
        for line in answer
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let strange = || GitError::Answer {
                operation: OPERATION,
                answer: String::from_utf8_lossy(line).into_owned(),
            };
            let tab = line
                .iter()
                .position(|byte| *byte == b'\t')
                .ok_or_else(strange)?;
            let head = String::from_utf8_lossy(&line[..tab]).into_owned();
            let words: Vec<&str> = head.split(' ').collect();
            let [mode, kind, id] = words.as_slice() else {
                return Err(strange());
            };
            // Old trees hold 100664 and the like.
            let mode = match *mode {
                "100755" | "120000" | "160000" => *mode,
                mode if mode.starts_with("100") => "100644",
                _ if *kind == "tree" => continue,
                _ => return Err(strange()),
            };
            let entry = TreeEntry {
                mode: mode.to_owned(),
                id: (*id).to_owned(),
            };
            // Asked for a directory and for something in it, git tells all of that directory.
            let path = TreePath::of(&line[tab + 1..]);
            if asked_for.binary_search(&path).is_ok() {
                found.insert(path, entry);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_tells_them() {
        let told =
            b"core.sparseCheckout\ntrue\0remote.origin.promisor\0user.name\nA B\0user.email\na@b\0";
        let settings = Settings::of(told);
        assert!(settings.is_sparse() && settings.is_partial() && !settings.ignores_case());
        assert_eq!(settings.who().map(|who| who.name).as_deref(), Some("A B"));
        let off = Settings::of(
            b"core.sparsecheckout\nfalse\0remote.o.promisor\nno\0core.ignorecase\n1\0",
        );
        assert!(!off.is_sparse() && !off.is_partial() && off.ignores_case());
        assert_eq!(off.who(), None);
    }
}
