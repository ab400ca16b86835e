//! The only place that spawns git. Every call runs with a scrubbed environment and no configuration
//! but ours, against a git directory no engine ever saw.
//!
//! - this file: the repositories of the harness; `source.rs` the one of a person, only read, and
//!   `owners_view/` what its owner's git takes its files for; `submodules.rs` what is checked out in it of others; `own_output.rs` where this command
//!   writes to; `file_states.rs` which files are not what they were, and that none is; `identity.rs` which one it is
//! - `engine_git.rs` the git directory an engine gets; `check_git.rs` the one a check gets, with
//!   the tags of `near_tags.rs`
//! - `landing.rs` the only git that writes to a person's repository, and what is asked around it
//! - `object_format.rs` how objects are named; `command.rs` how git is started; `import.rs`, `tree_files.rs` files into and out of its
//!   objects

mod check_git;
mod command;
mod engine_git;
mod file_states;
mod identity;
mod import;
mod landing;
mod near_tags;
mod object_format;
mod own_output;
mod owners_view;
mod source;
mod submodules;
mod tree_files;

pub use check_git::{CheckGit, NOT_FOR_CHECKS};
pub use file_states::LookedAt;
pub use landing::{Attributes, NewCommit, Settings, TreeEntry};
pub use object_format::ObjectFormat;
pub use own_output::OwnOutput;
pub(in crate::workspace) use source::state;
pub use source::{OperatorsExcludes, SourceError, SourceRepo, UNFINISHED};
pub use submodules::ModuleFiles;
use tree_files::Answers;
pub use tree_files::{Submodule, Visit, Wanted};

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cto_core::task::source::branch_policy;
use cto_core::values::paths::TreePath;
use cto_core::workspace::git_names;
use cto_core::workspace::tree::FileKind;

use crate::host::programs::Program;
use crate::task::cases::FixtureFile;
use command::{asked, finish, last_line, scrubbed, told};
use import::{Base, Words, quoted, write_commit};

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git {operation} could not be started")]
    Spawn {
        operation: &'static str,
        source: io::Error,
    },
    #[error("git {operation} failed: {message}")]
    Failed {
        operation: &'static str,
        message: String,
    },
    #[error("talking to git {operation} failed")]
    Pipe {
        operation: &'static str,
        source: io::Error,
    },
    #[error("git {operation} answered something unexpected: {answer:?}")]
    Answer {
        operation: &'static str,
        answer: String,
    },
    #[error("the repository's files could not be laid out")]
    Layout { source: io::Error },
}

/// A commit the harness made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub commit: String,
    pub tree: String,
}

/// One entry of a commit: new content, or gone.
pub enum Edit<'a> {
    Delete,
    /// Another repository's commit, named and not held.
    Submodule {
        commit: &'a str,
    },
    Write {
        kind: FileKind,
        bytes: u64,
        content: Box<dyn io::Read + 'a>,
    },
}

// A fixed time: the same content always gives the same commit id.
const BRANCH: &str = branch_policy::BASE_REF;
const RESULT: &str = branch_policy::RESULT_REF;
/// Commits below the one that a disposable repository starts from.
pub const HISTORY: u64 = 1;

// No attribute of the work tree may convert, filter or re-encode content: this file wins over all
// of them.
const ATTRIBUTES: &str = "* -text -ident !eol !filter !working-tree-encoding !merge\n";

/// A repository of the harness's own.
pub struct HarnessRepo {
    git: Program,
    dir: PathBuf,
    format: ObjectFormat,
    answers: Answers,
}

impl<'a> Edit<'a> {
    /// A file whose content is at hand.
    pub fn inline(kind: FileKind, content: &'a [u8]) -> Self {
        Self::Write {
            kind,
            bytes: content.len() as u64,
            content: Box::new(content),
        }
    }
}

impl HarnessRepo {
    pub fn init(git: &Program, dir: &Path, format: ObjectFormat) -> Result<Self, GitError> {
        Self::laid_out(git, dir, None, format)
    }

    /// One that starts with another's objects, which are only ever read.
    pub fn beside(
        git: &Program,
        dir: &Path,
        objects: &Path,
        format: ObjectFormat,
    ) -> Result<Self, GitError> {
        Self::laid_out(git, dir, Some(objects), format)
    }

    /// A bare repository, by hand: `git init` writes its configuration five times over, each time by a
    /// rename that waits for the disk.
    fn laid_out(
        git: &Program,
        dir: &Path,
        objects: Option<&Path>,
        format: ObjectFormat,
    ) -> Result<Self, GitError> {
        let write = || -> io::Result<()> {
            for below in ["objects/info", "refs", "info"] {
                fs::create_dir_all(dir.join(below))?;
            }
            fs::write(dir.join("HEAD"), "ref: refs/heads/main\n")?;
            fs::write(dir.join("config"), format.config("\tbare = true\n"))?;
            if let Some(objects) = objects {
                let objects = quoted(&TreePath::new(objects.as_os_str().as_encoded_bytes()));
                fs::write(dir.join("objects/info/alternates"), format!("{objects}\n"))?;
            }
            fs::write(dir.join("info/attributes"), ATTRIBUTES)
        };
        write().map_err(|source| GitError::Layout { source })?;
        Ok(Self {
            git: git.clone(),
            dir: dir.to_owned(),
            format,
            answers: Answers::default(),
        })
    }

    fn command(&self) -> Command {
        let mut command = scrubbed(&self.git);
        // From inside, by no path: a git that outlives a killed harness cannot make again what
        // recovery removed.
        command.current_dir(&self.dir).env("GIT_DIR", ".");
        command
    }

    /// Git over a directory of files, which are no part of the repository.
    fn command_over(&self, files: &Path) -> Command {
        let mut command = self.command();
        command
            .current_dir(files)
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", files);
        command
    }

    /// The commit a run starts from.
    pub fn import_baseline<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a TreePath, Edit<'a>)>,
    ) -> Result<Commit, GitError> {
        self.import(BRANCH, (Base::Nothing, None), files)
    }

    /// The commit a case starts from: its files alone, or with a past below them, so that a repository has
    /// history.
    pub fn import_start(
        &self,
        files: &[FixtureFile],
        with_history: bool,
    ) -> Result<Commit, GitError> {
        let all = files
            .iter()
            .map(|file| (&file.path, Edit::inline(file.entry().kind, &file.bytes)));
        let Some(first) = files.first().filter(|_| with_history) else {
            return self.import_baseline(all);
        };
        // The first file was empty once: no file of the case is missing from the commit it starts from.
        let begun = [(&first.path, Edit::inline(FileKind::Regular, b""))];
        let begun = self.import(BRANCH, (Base::Nothing, None), begun)?;
        self.import(BRANCH, (Base::Upon(&begun), None), all)
    }

    /// The measured tree as one commit on the baseline. Commits an engine made are never used.
    pub fn import_result<'a>(
        &self,
        base: &Commit,
        changes: impl IntoIterator<Item = (&'a TreePath, Edit<'a>)>,
    ) -> Result<Commit, GitError> {
        self.import(RESULT, (Base::Parent(base), None), changes)
    }

    fn import<'a>(
        &self,
        branch: &str,
        base: (Base<'_>, Option<Words<'_>>),
        edits: impl IntoIterator<Item = (&'a TreePath, Edit<'a>)>,
    ) -> Result<Commit, GitError> {
        const OPERATION: &str = "fast-import";
        let mut command = self.command();
        // One pack instead of loose objects: no second process to unpack, few files to copy and
        // remove.
        command.args([
            "-c",
            "fastimport.unpackLimit=0",
            "fast-import",
            "--quiet",
            "--done",
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| GitError::Spawn {
            operation: OPERATION,
            source,
        })?;
        let written = match child.stdin.take() {
            Some(stdin) => write_commit(BufWriter::new(stdin), branch, base, edits),
            None => Ok(()),
        };
        let output = child.wait_with_output().map_err(|source| GitError::Pipe {
            operation: OPERATION,
            source,
        })?;
        if !output.status.success() {
            return Err(GitError::Failed {
                operation: OPERATION,
                message: last_line(&output.stderr),
            });
        }
        written.map_err(|source| GitError::Pipe {
            operation: OPERATION,
            source,
        })?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        // `get-mark` prints the commit, `ls` prints `040000 tree <id>\t`.
        let mut words = answer.split_whitespace();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(commit), Some("040000"), Some("tree"), Some(tree)) => Ok(Commit {
                commit: commit.into(),
                tree: tree.into(),
            }),
            _ => Err(GitError::Answer {
                operation: OPERATION,
                answer,
            }),
        }
    }

    /// The exact difference between two commits, written to `out`.
    pub fn diff(&self, from: &Commit, to: &Commit, out: &Path) -> Result<(), GitError> {
        let file = File::create(out).map_err(|source| GitError::Layout { source })?;
        let mut command = self.command();
        command
            .args([
                "-c",
                "core.quotePath=true",
                "diff-tree",
                "-p",
                "--binary",
                "--full-index",
                "--no-renames",
            ])
            .args([
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--src-prefix=a/",
                "--dst-prefix=b/",
            ])
            .args([&from.commit, &to.commit])
            .stdout(file);
        finish("diff-tree", command)
    }

    /// The wanted files of a commit.
    pub fn each_file(
        &self,
        commit: &Commit,
        wanted: &Wanted<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<(), GitError> {
        self.answers
            .each_file(&|| self.command(), &commit.tree, wanted, visit)
    }

    /// Files of trees, by the names of both.
    pub fn named_files(
        &self,
        files: &[(&str, &TreePath, FileKind)],
        visit: &mut Visit<'_>,
    ) -> Result<bool, GitError> {
        self.answers.named_files(&|| self.command(), files, visit)
    }

    /// Applies patches, in order, to a directory that is nothing but files.
    pub fn apply(&self, dir: &Path, patches: &[&Path]) -> Result<(), GitError> {
        let mut command = self.command_over(dir);
        command
            .args(["apply", "--whitespace=nowarn", "--"])
            .args(patches);
        finish("apply", command)
    }

    /// Every path a patch reads or writes.
    pub fn touched(&self, patch: &Path) -> Result<Vec<TreePath>, GitError> {
        const OPERATION: &str = "apply";
        let mut command = self.command();
        command
            .args(["apply", "--numstat", "-z", "--"])
            .arg(patch)
            .stdout(Stdio::piped());
        let child = command.spawn().map_err(|source| GitError::Spawn {
            operation: OPERATION,
            source,
        })?;
        let output = child.wait_with_output().map_err(|source| GitError::Pipe {
            operation: OPERATION,
            source,
        })?;
        if !output.status.success() {
            return Err(GitError::Failed {
                operation: OPERATION,
                message: last_line(&output.stderr),
            });
        }
        let numbered = output
            .stdout
            .split(|b| *b == 0)
            .filter_map(|line| line.splitn(3, |b| *b == b'\t').nth(2));
        let mut paths: Vec<TreePath> = numbered.map(TreePath::new).collect();
        // Where something came from is not among the numbers.
        let text = fs::read(patch).map_err(|source| GitError::Layout { source })?;
        for line in text.split(|b| *b == b'\n') {
            let from = [&b"rename from "[..], b"copy from "]
                .iter()
                .find_map(|word| line.strip_prefix(*word));
            paths.extend(from.and_then(|name| TreePath::parse(name).ok()));
        }
        Ok(paths)
    }

    /// Which of these paths the ignore rules of `rules` cover. The engine's own rules are never
    /// asked.
    pub fn ignored(&self, rules: &Path, paths: &[TreePath]) -> Result<Vec<TreePath>, GitError> {
        let mut command = self.command_over(rules);
        command.args(["check-ignore", "-z", "--stdin", "--no-index"]);
        ignored_of(command, paths)
    }
}

/// Asks `check-ignore` about these paths.
fn ignored_of(command: Command, paths: &[TreePath]) -> Result<Vec<TreePath>, GitError> {
    let output = told("check-ignore", command, paths)?;
    // 0: some are ignored, 1: none is.
    match output.status.code() {
        Some(0 | 1) => Ok(output
            .stdout
            .split(|b| *b == 0)
            .filter(|p| !p.is_empty())
            .map(TreePath::new)
            .collect()),
        _ => Err(GitError::Failed {
            operation: "check-ignore",
            message: last_line(&output.stderr),
        }),
    }
}

/// What a git says of itself, in a few plain characters.
pub fn version(git: &Program) -> Result<String, GitError> {
    let mut command = scrubbed(git);
    command.current_dir("/").arg("--version");
    let answer = asked("--version", command)?;
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().next().unwrap_or_default();
    let plain = line.strip_prefix("git version ").unwrap_or(line);
    Ok(plain
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(100)
        .collect())
}

/// Where a git keeps programs that it starts itself.
pub fn own_programs(git: &Program) -> Result<PathBuf, GitError> {
    let mut command = scrubbed(git);
    command.current_dir("/").arg("--exec-path");
    let mut answer = asked("--exec-path", command)?;
    answer.truncate(answer.trim_ascii_end().len());
    Ok(PathBuf::from(std::ffi::OsString::from_vec(answer)))
}

/// Is this name a git directory or pointer, in any spelling git would accept?
pub fn is_dot_git(name: &OsStr) -> bool {
    git_names::is_gits_own(name.as_bytes())
}
