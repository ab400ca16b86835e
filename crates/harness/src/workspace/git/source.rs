//! A person's own repository, only ever read. Objects, status and index are asked through a git
//! directory of ours, so that no configuration, hook, filter or lock of theirs has a part in it.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_core::task::source::{SourceLook, SourceStatus};
use cto_core::values::digest::{Digest, Hasher};
use cto_core::values::paths::TreePath;
use cto_core::workspace::times::Time;

use super::command::{Asking, asked, scrubbed};
use super::file_states::{Clean, LookedAt, Staged};
use super::own_output::{OwnOutput, without_own_output};
use super::owners_view::OwnersView;
use super::tree_files::{self, Submodule, Visit, Wanted};
use super::{GitError, ObjectFormat, ignored_of};
use crate::host::programs::Program;
use crate::workspace::stamping;

/// What git leaves in its directory while something is unfinished.
pub const UNFINISHED: [&str; 9] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "index.lock",
    "HEAD.lock",
];

/// An opened source: where it is, and which commit HEAD named.
#[derive(Debug)]
pub struct SourceRepo {
    pub(super) git: Program,
    /// Our own git directory, with a copy of the source's index.
    pub(super) ours: PathBuf,
    /// The top of the work tree.
    pub top: PathBuf,
    pub(super) git_dir: PathBuf,
    pub common_dir: PathBuf,
    pub(super) head: String,
    pub(super) tree: String,
    pub(super) view: OwnersView,
    pub format: ObjectFormat,
    /// When it was opened: what changed since may have been others to whoever built of it.
    pub opened: Time,
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("it is not a git work tree with a commit: {0}")]
    NoRepository(String),
    #[error("it belongs to user {owner}, not to the operator")]
    Foreign { owner: u32 },
    #[error("its object format is {0}; only sha1 and sha256 are supported")]
    ObjectFormat(String),
    #[error("its index could not be read")]
    Index(#[source] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl SourceRepo {
    /// Finds the repository around `dir`, as the owner of `home` sees it, whose git has settings
    /// there. `ours` is a fresh directory for our side of it.
    pub fn open(
        git: &Program,
        dir: &Path,
        ours: &Path,
        home: Option<&Path>,
    ) -> Result<Self, SourceError> {
        if !dir.is_dir() {
            return Err(SourceError::NoRepository(
                "there is no such directory".into(),
            ));
        }
        let [top, git_dir, common_dir, format] = places_of(git, dir).map_err(no_repository)?;
        let path = |bytes: Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let Some(format) = ObjectFormat::named(&format) else {
            let word = String::from_utf8_lossy(&format).into_owned();
            return Err(SourceError::ObjectFormat(word));
        };
        let mut repo = Self {
            git: git.clone(),
            ours: ours.to_owned(),
            top: path(top),
            git_dir: path(git_dir),
            common_dir: path(common_dir),
            head: String::new(),
            tree: String::new(),
            view: OwnersView::default(),
            format,
            opened: stamping::now(),
        };
        repo.check_owner()?;
        let view = OwnersView::ask(git, &repo.git_dir, home);
        let mut head = scrubbed(git);
        // A name to an id, without a look at what it names.
        head.env("GIT_DIR", &repo.git_dir)
            .args(["rev-parse", "--verify", "--quiet", "HEAD"]);
        repo.head = id(asked("rev-parse", head)
            .map_err(|_| SourceError::NoRepository("it has no commit yet".into()))?);
        repo.view = OwnersView::read(view);
        repo.furnish_ours().map_err(SourceError::Index)?;
        let mut tree = repo.command();
        tree.args([
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{}^{{tree}}", repo.head),
        ]);
        repo.tree = id(asked("rev-parse", tree)
            .map_err(|_| SourceError::NoRepository("the commit of HEAD is not there".into()))?);
        Ok(repo)
    }

    fn check_owner(&self) -> Result<(), SourceError> {
        let operator = rustix::process::geteuid();
        for dir in [&self.top, &self.git_dir, &self.common_dir] {
            let owner = fs::metadata(dir).map_err(SourceError::Index)?.uid();
            if !operator.is_root() && owner != operator.as_raw() {
                return Err(SourceError::Foreign { owner });
            }
        }
        Ok(())
    }

    /// The smallest git directory git accepts, with HEAD, index and private ignore rules of the
    /// source.
    fn furnish_ours(&self) -> io::Result<()> {
        for dir in ["refs", "objects", "info"] {
            fs::create_dir_all(self.ours.join(dir))?;
        }
        fs::write(self.ours.join("HEAD"), format!("{}\n", self.head))?;
        fs::write(self.ours.join("config"), self.format.config(""))?;
        copy_if_there(
            &self.common_dir.join("info/exclude"),
            &self.ours.join("info/exclude"),
        )?;
        copy_if_there(
            &self.common_dir.join("info/attributes"),
            &self.ours.join("info/attributes"),
        )?;
        for entry in fs::read_dir(&self.git_dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "index" || name.as_bytes().starts_with(b"sharedindex.") {
                copy_if_there(&entry.path(), &self.ours.join(name))?;
            }
        }
        Ok(())
    }

    /// Our side: their objects, their work tree, nothing else of theirs.
    pub(super) fn command(&self) -> Command {
        let mut command = scrubbed(&self.git);
        command
            .args(self.view.args())
            .current_dir(&self.top)
            .env("GIT_DIR", &self.ours)
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_INDEX_FILE", self.ours.join("index"))
            .env("GIT_OBJECT_DIRECTORY", self.common_dir.join("objects"));
        command
    }

    /// The same with the operator's own ignore file, if there is one.
    fn excluding(&self, excludes: Option<&Path>) -> Command {
        let mut command = self.command();
        if let Some(excludes) = excludes {
            let mut setting = std::ffi::OsString::from("core.excludesFile=");
            setting.push(excludes);
            command.arg("-c").arg(setting);
        }
        command
    }

    /// Which of these untracked paths of the work tree git ignores.
    pub fn ignored(
        &self,
        excludes: Option<&Path>,
        paths: &[TreePath],
    ) -> Result<Vec<TreePath>, GitError> {
        let mut command = self.excluding(excludes);
        command.args(["check-ignore", "-z", "--stdin"]);
        ignored_of(command, paths)
    }

    /// One look. `excludes` is the operator's own ignore file, if there is one.
    pub fn look(
        &self,
        excludes: Option<&Path>,
        own_output: OwnOutput,
    ) -> Result<(SourceLook, LookedAt), SourceError> {
        let mut command = self.excluding(excludes);
        command.args([
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
        ]);
        // Before git reads it: what changes later is not what this status was by.
        let rules = excludes.map(state);
        // Git looks at the work tree while we do.
        let status = Asking::start("status", command)?;
        let refs = self.refs()?;
        // The other cores are git's.
        let mut staged = self.staged(1)?;
        let ignored = |dirs: &[TreePath]| self.ignored(excludes, dirs).ok();
        let clean = Clean::of(&self.top, &staged, self.opened, ignored);
        let lines = match own_output {
            OwnOutput::Counts => status.answer()?,
            OwnOutput::LeftOut => without_own_output(status.answer()?, &self.top),
        };
        let lines = self.without_lfs(lines)?;
        let changed = changed_paths(&lines);
        for path in &changed {
            let place = self.top.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
            staged.states.take_untracked(path, &state(&place));
        }
        let look = self.seen_as(&refs.answer()?, &staged, &lines, changed);
        let clean = clean.filter(|_| lines.is_empty());
        let looked = LookedAt {
            states: staged.states,
            clean,
            rules,
        };
        Ok((look, looked))
    }

    pub(super) fn refs(&self) -> Result<Asking, GitError> {
        let mut refs = scrubbed(&self.git);
        refs.env("GIT_DIR", &self.git_dir)
            .args(["for-each-ref", "--format=%(refname) %(objectname)"]);
        Asking::start("for-each-ref", refs)
    }

    pub(super) fn seen_as(
        &self,
        refs: &[u8],
        staged: &Staged,
        lines: &[u8],
        changed: Vec<TreePath>,
    ) -> SourceLook {
        let fingerprint = self.fingerprint(refs, &staged.digest, &changed);
        SourceLook {
            head: self.head.clone(),
            branch: branch(&self.git_dir),
            tree: self.tree.clone(),
            status: SourceStatus::new(lines, changed, self.unfinished()),
            fingerprint,
        }
    }

    /// Everything an outsider could have changed without a new commit: also what is not committed.
    fn fingerprint(&self, refs: &[u8], staged: &Digest, changed: &[TreePath]) -> Digest {
        let mut hasher = Hasher::default();
        hasher.update(b"cto-source/2\n");
        hasher.update(branch(&self.git_dir).unwrap_or_default().as_bytes());
        hasher.update(refs);
        hasher.update(&staged.to_bytes());
        for (dir, file) in [
            (&self.common_dir, "config"),
            (&self.common_dir, "info/exclude"),
            (&self.common_dir, "info/attributes"),
            (&self.git_dir, "config.worktree"),
            (&self.git_dir, "info/sparse-checkout"),
        ] {
            hasher.update(&state(&dir.join(file)));
            hasher.update(
                &crate::host::files::read_limited(&dir.join(file), MAX_TEXT).unwrap_or_default(),
            );
        }
        let mut places = vec![self.common_dir.join("hooks")];
        while let Some(place) = places.pop() {
            let mut below: Vec<_> = fs::read_dir(&place)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            below.sort();
            below.iter().for_each(|path| hasher.update(&state(path)));
            places.extend(
                below
                    .into_iter()
                    .filter(|path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())),
            );
        }
        for path in changed {
            hasher.update(&state(
                &self.top.join(std::ffi::OsStr::from_bytes(path.as_bytes())),
            ));
        }
        hasher.finish()
    }

    /// Every file of HEAD.
    pub fn each_file(&self, visit: &mut Visit<'_>) -> Result<Vec<Submodule>, GitError> {
        self.files_of(&self.tree, &|_| true, visit)
    }

    /// The wanted files of any tree this repository holds.
    pub fn files_of(
        &self,
        tree: &str,
        wanted: &Wanted<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<Vec<Submodule>, GitError> {
        tree_files::each_file(&|| self.command(), tree, wanted, visit)
    }

    /// Which of these paths are not as HEAD has them: changed, staged, new, or ignored and there.
    pub fn dirty_among<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p TreePath>,
    ) -> Result<Vec<TreePath>, GitError> {
        let paths: Vec<&TreePath> = paths.into_iter().collect();
        let mut dirty = Vec::new();
        // A command line holds only so many names.
        for some in paths.chunks(256) {
            let mut command = self.command();
            command.env("GIT_LITERAL_PATHSPECS", "1");
            command.args([
                "status",
                "--porcelain",
                "-z",
                "--untracked-files=all",
                "--ignored=matching",
            ]);
            command.args(["--no-renames", "--ignore-submodules=all", "--"]);
            command.args(
                some.iter()
                    .map(|path| std::ffi::OsStr::from_bytes(path.as_bytes())),
            );
            dirty.extend(changed_paths(&asked("status", command)?));
        }
        Ok(dirty)
    }

    /// What of git's own work is unfinished here.
    pub fn unfinished(&self) -> Vec<String> {
        let there = |name: &&str| fs::symlink_metadata(self.git_dir.join(name)).is_ok();
        UNFINISHED
            .into_iter()
            .filter(there)
            .map(str::to_owned)
            .collect()
    }
}

/// The paths of `git status --porcelain -z`: two letters, a blank, a name.
fn changed_paths(lines: &[u8]) -> Vec<TreePath> {
    lines
        .split(|b| *b == 0)
        .filter_map(|line| line.get(3..))
        .map(TreePath::new)
        .collect()
}

/// What the kernel says about a file; its change time cannot be forged by its owner.
pub(in crate::workspace) fn state(path: &Path) -> Vec<u8> {
    let told = fs::symlink_metadata(path).map(|meta| {
        let (modified, changed) = (
            (meta.mtime(), meta.mtime_nsec()),
            (meta.ctime(), meta.ctime_nsec()),
        );
        format!(
            "\0{:o} {} {} {modified:?} {changed:?}\n",
            meta.mode(),
            meta.size(),
            meta.ino()
        )
    });
    [
        path.as_os_str().as_bytes(),
        told.unwrap_or_else(|_| "\0absent\n".into()).as_bytes(),
    ]
    .concat()
}

fn branch(git_dir: &Path) -> Option<String> {
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    Some(head.strip_prefix("ref: refs/heads/")?.trim_end().to_owned())
}

/// With the times of the original: git takes an entry that is younger than its index for suspect.
pub(super) fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match crate::host::files::open_regular(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let modified = source.metadata()?.modified()?;
    let mut copy = fs::File::create(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_modified(modified)
}

/// What is read of a text file of the repository; its times tell of more.
const MAX_TEXT: u64 = 16 << 20;

/// Top, git directory, common directory and object format. Only questions about places: nothing of
/// the repository's objects is read under its own configuration.
fn places_of(git: &Program, dir: &Path) -> Result<[Vec<u8>; 4], GitError> {
    const QUESTIONS: [&str; 4] = [
        "--show-toplevel",
        "--absolute-git-dir",
        "--git-common-dir",
        "--show-object-format",
    ];
    let ask = |questions: &[&str]| {
        let mut command = scrubbed(git);
        command.current_dir(dir).arg("rev-parse");
        command.arg("--path-format=absolute").args(questions);
        asked("rev-parse", command)
    };
    let answer = ask(&QUESTIONS)?;
    let lines: Vec<&[u8]> = answer
        .strip_suffix(b"\n")
        .unwrap_or(&answer)
        .split(|byte| *byte == b'\n')
        .collect();
    if let [top, git_dir, common_dir, format] = lines.as_slice() {
        return Ok([top, git_dir, common_dir, format].map(|line| line.to_vec()));
    }
    // A path with a line end in it: each is asked for alone.
    let alone = |question| {
        let mut answer = ask(&[question])?;
        answer.truncate(answer.len().saturating_sub(1));
        Ok(answer)
    };
    let [top, git_dir, common_dir, format] = QUESTIONS.map(alone);
    Ok([top?, git_dir?, common_dir?, format?])
}

pub(super) fn id(answer: Vec<u8>) -> String {
    String::from_utf8_lossy(answer.trim_ascii()).into_owned()
}

fn no_repository(error: GitError) -> SourceError {
    match error {
        GitError::Failed { message, .. } => SourceError::NoRepository(message),
        other => SourceError::Git(other),
    }
}

/// The ignore file of the operator's own git, where one is named: asked for while something else is
/// done.
pub struct OperatorsExcludes {
    home: PathBuf,
    asking: Option<Asking>,
}

impl OperatorsExcludes {
    pub fn ask(git: &Program, home: &Path) -> Self {
        let mut command = scrubbed(git);
        command.env("HOME", home).env_remove("GIT_CONFIG_GLOBAL");
        command.args([
            "config",
            "--global",
            "--type=path",
            "--get",
            "core.excludesFile",
        ]);
        Self {
            home: home.to_owned(),
            asking: Asking::start("config", command).ok(),
        }
    }

    pub fn answer(self) -> Option<PathBuf> {
        let told = self.asking.and_then(|asking| asking.answer().ok());
        let named = told.map(|mut answer| {
            answer.truncate(answer.trim_ascii_end().len());
            PathBuf::from(std::ffi::OsString::from_vec(answer))
        });
        named
            .or_else(|| Some(self.home.join(".config/git/ignore")))
            .filter(|path| path.is_file())
    }
}
