//! Which repository lies at a path, and what its last commit holds by name: for what is remembered of it, and for what is
//! proposed. Asked through our side of it, like everything about a source.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use cto_core::operator::project::memory::Repository;
use cto_core::operator::project::propose::{MOST_TEXT, READ};
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::FileKind;

use super::command::asked;
use super::source::copy_if_there;
use super::{GitError, SourceRepo};

/// The names of the files of a commit, links left out, and the texts of some of them.
#[derive(Default)]
pub struct NamesAndTexts {
    pub files: Vec<TreePath>,
    pub texts: BTreeMap<String, String>,
}

impl SourceRepo {
    /// What it is known by: its git directory and the commit that it began with.
    pub fn identity(&self) -> Result<Repository, GitError> {
        Ok(Repository {
            git_dir: TreePath::new(self.git_dir.as_os_str().as_bytes()),
            git_dir_inode: self.inode()?,
            first_commit: self.first_commits()?.pop().unwrap_or_default(),
            known_head: self.head.clone(),
        })
    }

    /// Is this the repository that was known? One that was made anew at its path is not.
    pub fn is(&self, known: &Repository) -> Result<bool, GitError> {
        let place = self.git_dir.as_os_str().as_bytes();
        if known.git_dir.as_bytes() != place || known.git_dir_inode != self.inode()? {
            return Ok(false);
        }
        // Most often the history behind a known commit need not be walked.
        if known.known_head == self.head || self.comes_from(&known.known_head) {
            return Ok(true);
        }
        Ok(self.first_commits()?.contains(&known.first_commit))
    }

    pub fn inode(&self) -> Result<String, GitError> {
        let meta = std::fs::metadata(&self.git_dir);
        // Its number alone is given again to the next directory that is made.
        let number = meta.map(|meta| {
            let made = meta.created().ok();
            let since = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
            format!("{}-{}", meta.ino(), since.unwrap_or_default().as_nanos())
        });
        number.map_err(|source| GitError::Pipe {
            operation: "stat",
            source,
        })
    }

    /// No where that commit is not here, or only words.
    fn comes_from(&self, commit: &str) -> bool {
        let plain = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !plain || self.told_what_is_shallow().is_err() {
            return false;
        }
        let mut command = self.command();
        command.args(["merge-base", "--is-ancestor", commit, &self.head]);
        asked("merge-base", command).is_ok()
    }

    /// Commits without parents that HEAD comes from, the oldest last. Of a shallow clone those where it ends.
    fn first_commits(&self) -> Result<Vec<String>, GitError> {
        self.told_what_is_shallow()
            .map_err(|source| GitError::Pipe {
                operation: "rev-list",
                source,
            })?;
        let mut command = self.command();
        command.args(["rev-list", "--max-parents=0", &self.head]);
        let answer = asked("rev-list", command)?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    pub(super) fn told_what_is_shallow(&self) -> io::Result<()> {
        copy_if_there(&self.common_dir.join("shallow"), &self.ours.join("shallow"))
    }

    /// What of the last commit a proposal is made of.
    pub fn names_and_texts(&self) -> Result<NamesAndTexts, GitError> {
        let mut found = NamesAndTexts::default();
        let listed = std::cell::RefCell::new(Vec::new());
        let is_read = |path: &TreePath| {
            listed.borrow_mut().push(path.clone());
            READ.iter().any(|name| name.as_bytes() == path.as_bytes())
        };
        let mut links = Vec::new();
        let texts = &mut found.texts;
        let mut take = |path: &TreePath, kind: FileKind, content: &mut dyn Read| {
            let mut bytes = Vec::new();
            content.take(MOST_TEXT + 1).read_to_end(&mut bytes)?;
            if kind == FileKind::Symlink {
                links.push(path.clone());
            } else if bytes.len() as u64 <= MOST_TEXT
                && let Ok(text) = String::from_utf8(bytes)
            {
                texts.insert(path.to_string(), text);
            }
            Ok(())
        };
        self.files_of(&self.tree, &is_read, &mut take)?;
        found.files = listed.into_inner();
        found.files.retain(|path| !links.contains(path));
        Ok(found)
    }
}
