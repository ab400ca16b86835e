//! A person's own repository, only ever read. Objects, status and index are asked through a git
//! directory of ours, so that no configuration, hook, filter or lock of theirs has a part in it.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cto_core::digest::Hasher;
use cto_core::scope::TreePath;
use cto_core::source::{SourceLook, SourceStatus};

use super::tree_files::{self, Submodule, Visit, Wanted};
use super::{GitError, last_line, scrubbed};

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
    git: PathBuf,
    /// Our own git directory, with a copy of the source's index.
    ours: PathBuf,
    /// The top of the work tree.
    pub top: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    head: String,
    tree: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("it is not a git work tree with a commit: {0}")]
    NoRepository(String),
    #[error("it belongs to user {owner}, not to the operator")]
    Foreign { owner: u32 },
    #[error("its object format is {0}; only sha1 is supported")]
    ObjectFormat(String),
    #[error("its index could not be read")]
    Index(#[source] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl SourceRepo {
    /// Finds the repository around `dir`. `ours` is a fresh directory for our side of it.
    pub fn open(git: &Path, dir: &Path, ours: &Path) -> Result<Self, SourceError> {
        let mut command = scrubbed(git);
        command.current_dir(dir).args(["rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir"]);
        command.args(["--git-common-dir", "--show-object-format", "HEAD^{commit}", "HEAD^{tree}"]);
        let answer = asked("rev-parse", command).map_err(|error| match error {
            GitError::Failed { message, .. } => SourceError::NoRepository(message),
            other => SourceError::Git(other),
        })?;
        let lines: Vec<&[u8]> = answer.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
        let [top, git_dir, common_dir, format, head, tree] = lines.as_slice() else {
            return Err(SourceError::NoRepository("its path cannot be told apart".into()));
        };
        let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if *format != b"sha1" {
            return Err(SourceError::ObjectFormat(text(format)));
        }
        let repo = Self {
            git: git.to_owned(),
            ours: ours.to_owned(),
            top: path(top),
            git_dir: path(git_dir),
            common_dir: path(common_dir),
            head: text(head),
            tree: text(tree),
        };
        let owner = fs::metadata(&repo.top).map_err(SourceError::Index)?.uid();
        let operator = rustix::process::geteuid();
        if !operator.is_root() && owner != operator.as_raw() {
            return Err(SourceError::Foreign { owner });
        }
        repo.furnish_ours().map_err(SourceError::Index)?;
        Ok(repo)
    }

    /// The smallest git directory git accepts, with HEAD, index and private ignore rules of the source.
    fn furnish_ours(&self) -> io::Result<()> {
        for dir in ["refs", "objects", "info"] {
            fs::create_dir_all(self.ours.join(dir))?;
        }
        fs::write(self.ours.join("HEAD"), format!("{}\n", self.head))?;
        copy_if_there(&self.common_dir.join("info/exclude"), &self.ours.join("info/exclude"))?;
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
    fn command(&self) -> Command {
        let mut command = scrubbed(&self.git);
        command
            .current_dir(&self.top)
            .env("GIT_DIR", &self.ours)
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_INDEX_FILE", self.ours.join("index"))
            .env("GIT_OBJECT_DIRECTORY", self.common_dir.join("objects"))
            .env("GIT_NO_LAZY_FETCH", "1");
        command
    }

    /// One look. `excludes` is the operator's own ignore file, if there is one.
    pub fn look(&self, excludes: Option<&Path>) -> Result<SourceLook, SourceError> {
        let mut command = self.command();
        if let Some(excludes) = excludes {
            let mut setting = std::ffi::OsString::from("core.excludesFile=");
            setting.push(excludes);
            command.arg("-c").arg(setting);
        }
        command.args(["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"]);
        let lines = asked("status", command)?;
        Ok(SourceLook {
            head: self.head.clone(),
            branch: branch(&self.git_dir),
            tree: self.tree.clone(),
            status: SourceStatus::new(&lines, changed_paths(&lines), self.unfinished()),
            fingerprint: self.fingerprint()?,
        })
    }

    /// Everything an outsider could have changed without a new commit.
    fn fingerprint(&self) -> Result<cto_core::digest::Digest, SourceError> {
        let mut hasher = Hasher::default();
        hasher.update(b"cto-source/1\n");
        hasher.update(branch(&self.git_dir).unwrap_or_default().as_bytes());
        let mut refs = scrubbed(&self.git);
        refs.env("GIT_DIR", &self.git_dir).args(["for-each-ref", "--format=%(refname) %(objectname)"]);
        hasher.update(&asked("for-each-ref", refs)?);
        for file in ["config", "info/exclude", "info/attributes"] {
            hasher.update(format!("\n{file}\n").as_bytes());
            hasher.update(&fs::read(self.common_dir.join(file)).unwrap_or_default());
        }
        let mut hooks: Vec<_> = fs::read_dir(self.common_dir.join("hooks")).into_iter().flatten().flatten().collect();
        hooks.sort_by_key(fs::DirEntry::file_name);
        for hook in hooks {
            hasher.update(&state(&hook.path()));
        }
        let mut staged = self.command();
        staged.args(["ls-files", "--stage", "-z"]);
        for line in asked("ls-files", staged)?.split(|b| *b == 0).filter(|line| !line.is_empty()) {
            hasher.update(line);
            let path = line.iter().position(|b| *b == b'\t').map_or(line, |tab| &line[tab + 1..]);
            hasher.update(&state(&self.top.join(std::ffi::OsStr::from_bytes(path))));
        }
        Ok(hasher.finish())
    }

    /// Every file of HEAD.
    pub fn each_file(&self, visit: &mut Visit<'_>) -> Result<Vec<Submodule>, GitError> {
        self.files_of(&self.tree, &|_| true, visit)
    }

    /// The wanted files of any tree this repository holds.
    pub fn files_of(&self, tree: &str, wanted: &Wanted<'_>, visit: &mut Visit<'_>) -> Result<Vec<Submodule>, GitError> {
        tree_files::each_file(&|| self.command(), tree, wanted, visit)
    }

    /// Which of these paths are not as HEAD has them: changed, staged, new, or ignored and there.
    pub fn dirty_among<'p>(&self, paths: impl IntoIterator<Item = &'p TreePath>) -> Result<Vec<TreePath>, GitError> {
        let paths: Vec<&TreePath> = paths.into_iter().collect();
        let mut dirty = Vec::new();
        // A command line holds only so many names.
        for some in paths.chunks(256) {
            let mut command = self.command();
            command.env("GIT_LITERAL_PATHSPECS", "1");
            command.args(["status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames", "--"]);
            command.args(some.iter().map(|path| std::ffi::OsStr::from_bytes(path.as_bytes())));
            dirty.extend(changed_paths(&asked("status", command)?));
        }
        Ok(dirty)
    }

    /// What of git's own work is unfinished here.
    pub fn unfinished(&self) -> Vec<String> {
        let there = |name: &&str| fs::symlink_metadata(self.git_dir.join(name)).is_ok();
        UNFINISHED.into_iter().filter(there).map(str::to_owned).collect()
    }
}

/// The paths of `git status --porcelain -z`: two letters, a blank, a name.
fn changed_paths(lines: &[u8]) -> Vec<TreePath> {
    lines.split(|b| *b == 0).filter_map(|line| line.get(3..)).map(TreePath::new).collect()
}

/// What the kernel says about a file; its change time cannot be forged by its owner.
fn state(path: &Path) -> Vec<u8> {
    let told = fs::symlink_metadata(path).map(|meta| {
        let (modified, changed) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        format!("\0{:o} {} {} {modified:?} {changed:?}\n", meta.mode(), meta.size(), meta.ino())
    });
    [path.as_os_str().as_bytes(), told.unwrap_or_else(|_| "\0absent\n".into()).as_bytes()].concat()
}

fn branch(git_dir: &Path) -> Option<String> {
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    Some(head.strip_prefix("ref: refs/heads/")?.trim_end().to_owned())
}

/// With the times of the original: git takes an entry that is younger than its index for suspect.
fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    let modified = match fs::metadata(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.modified()?,
    };
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(modified)
}

fn asked(operation: &'static str, mut command: Command) -> Result<Vec<u8>, GitError> {
    command.stdout(Stdio::piped());
    let child = command.spawn().map_err(|source| GitError::Spawn { operation, source })?;
    let output = child.wait_with_output().map_err(|source| GitError::Pipe { operation, source })?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(GitError::Failed { operation, message: last_line(&output.stderr) }),
    }
}

/// The ignore file of the operator's own git, where one is named.
pub fn operators_excludes(git: &Path, home: &Path) -> Option<PathBuf> {
    let mut command = scrubbed(git);
    command.env("HOME", home).env_remove("GIT_CONFIG_GLOBAL");
    command.args(["config", "--global", "--type=path", "--get", "core.excludesFile"]);
    let named = asked("config", command).ok().map(|mut answer| {
        answer.truncate(answer.trim_ascii_end().len());
        PathBuf::from(std::ffi::OsString::from_vec(answer))
    });
    named.or_else(|| Some(home.join(".config/git/ignore"))).filter(|path| path.is_file())
}
