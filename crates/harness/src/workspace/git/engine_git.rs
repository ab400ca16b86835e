//! The `.git` an engine gets, to use or ruin. It holds what the engine is shown: what is masked is
//! not in its objects either, and its commit has an empty file where the engine sees one, so that
//! status, diff and stash find nothing amiss.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

use cto_core::containment::masks::Seen;
use cto_core::task::source::branch_policy::WORK_REF;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::FileKind;

use super::command::{finish, last_line, scrubbed, told};
use super::import::Base;
use super::{BRANCH, Commit, Edit, GitError, HarnessRepo};

/// Where the commit an engine starts from lies in the harness's own repository.
const SHOWN: &str = "refs/heads/cto-shown";
const CONFIG: &str = "\tfilemode = true\n\tbare = false\n\tcheckStat = minimal\n\ttrustctime = false\n[user]\n\tname = engine\n\temail = engine@cto.invalid\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";

impl HarnessRepo {
    /// Gives a workspace a `.git` of its own, at what its engine sees of the baseline.
    pub fn furnish(
        &self,
        workspace: &Path,
        baseline: &Commit,
        masked: &[(TreePath, Seen)],
    ) -> Result<(), GitError> {
        let layout = |source| GitError::Layout { source };
        let dot_git = workspace.join(".git");
        if masked.is_empty() {
            // Our configuration and attributes are not the engine's to see.
            copy_dir(&self.dir, &dot_git, &["config", "attributes"]).map_err(layout)?;
        } else {
            let shown = self.shown(baseline, masked)?;
            lay_out(&dot_git, &shown).map_err(layout)?;
            self.pack(&shown, &dot_git)?;
        }
        fs::write(dot_git.join("config"), self.format.config(CONFIG)).map_err(layout)?;
        // So that each is there to be protected. A common directory that is this one changes
        // nothing for git.
        fs::write(dot_git.join("commondir"), ".\n").map_err(layout)?;
        for dir in ["hooks", "info"] {
            fs::create_dir_all(dot_git.join(dir)).map_err(layout)?;
        }
        let mut command = self.over(workspace);
        command.args(["read-tree", "HEAD"]);
        finish("read-tree", command)?;
        self.look_past(workspace, masked)
    }

    /// Puts an engine on a branch of its own, at the commit it was given.
    pub fn put_on_work_branch(&self, workspace: &Path) -> Result<(), GitError> {
        let dot_git = workspace.join(".git");
        let put = || -> io::Result<()> {
            fs::copy(dot_git.join(BRANCH), dot_git.join(WORK_REF))?;
            fs::write(dot_git.join("HEAD"), format!("ref: {WORK_REF}\n"))
        };
        put().map_err(|source| GitError::Layout { source })
    }

    /// Tells a workspace's index what its files look like, so that the engine's git need not read
    /// them all.
    pub fn refresh(&self, workspace: &Path) -> Result<(), GitError> {
        let mut command = self.over(workspace);
        command.current_dir(workspace);
        command.args(["update-index", "-q", "--refresh", "--ignore-submodules"]);
        finish("update-index", command)
    }

    /// Git over a workspace and the `.git` in it, while both are still only ours.
    fn over(&self, workspace: &Path) -> std::process::Command {
        let mut command = scrubbed(&self.git);
        command
            .env("GIT_DIR", workspace.join(".git"))
            .env("GIT_WORK_TREE", workspace);
        command
    }

    /// The baseline as the engine sees it: a commit without a parent.
    fn shown(&self, baseline: &Commit, masked: &[(TreePath, Seen)]) -> Result<Commit, GitError> {
        let edits = masked.iter().map(|(path, seen)| {
            let edit = match seen {
                Seen::Gone => Edit::Delete,
                Seen::Empty => Edit::inline(FileKind::Regular, b""),
            };
            (path, edit)
        });
        self.import(SHOWN, (Base::Tree(baseline), None), edits)
    }

    /// Writes what a commit needs into another git directory, and nothing else.
    fn pack(&self, commit: &Commit, dot_git: &Path) -> Result<(), GitError> {
        const OPERATION: &str = "pack-objects";
        let mut command = self.command();
        // No search for what is alike: it would cost more than the space it saves.
        command
            .args([OPERATION, "-q", "--revs", "--window=0"])
            .arg(dot_git.join("objects/pack/pack"))
            .stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|source| GitError::Spawn {
            operation: OPERATION,
            source,
        })?;
        let asked = child
            .stdin
            .take()
            .map_or(Ok(()), |mut stdin| writeln!(stdin, "{}", commit.commit));
        let output = child.wait_with_output().map_err(|source| GitError::Pipe {
            operation: OPERATION,
            source,
        })?;
        match (output.status.success(), asked) {
            (true, Ok(())) => Ok(()),
            (false, _) => Err(GitError::Failed {
                operation: OPERATION,
                message: last_line(&output.stderr),
            }),
            (true, Err(source)) => Err(GitError::Pipe {
                operation: OPERATION,
                source,
            }),
        }
    }

    /// Has the engine's git ask nothing of a place that shows an empty file: whose times and owner
    /// those are, its index cannot know.
    fn look_past(&self, workspace: &Path, masked: &[(TreePath, Seen)]) -> Result<(), GitError> {
        let there = masked.iter().filter(|(_, seen)| *seen == Seen::Empty);
        let paths: Vec<TreePath> = there.map(|(path, _)| path.clone()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let mut command = self.over(workspace);
        command.args(["update-index", "--skip-worktree", "-z", "--stdin"]);
        let output = told("update-index", command, &paths)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(GitError::Failed {
                operation: "update-index",
                message: last_line(&output.stderr),
            }),
        }
    }
}

/// A git directory with one branch and no objects yet.
fn lay_out(dot_git: &Path, commit: &Commit) -> io::Result<()> {
    for below in ["objects/info", "objects/pack", "refs/heads"] {
        fs::create_dir_all(dot_git.join(below))?;
    }
    fs::write(dot_git.join("HEAD"), format!("ref: {BRANCH}\n"))?;
    fs::write(dot_git.join(BRANCH), format!("{}\n", commit.commit))
}

/// Copies a directory and all in it, but for files of these names.
pub(super) fn copy_dir(from: &Path, to: &Path, without: &[&str]) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(&name);
        match entry.file_type()?.is_dir() {
            true => copy_dir(&entry.path(), &target, without)?,
            false if without.iter().any(|left_out| name == *left_out) => {}
            false => fs::copy(entry.path(), &target).map(drop)?,
        }
    }
    Ok(())
}
