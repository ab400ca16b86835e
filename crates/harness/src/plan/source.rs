//! The repository a run copies from, as the run sees it: opened, looked at, read, and left alone.

use std::io;
use std::path::{Path, PathBuf};

use cto_core::task::source::{Looked, Source, SourceLook, SourceRecord};
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::Tree;

use crate::host::{self, Env, Home};
use crate::workspace::git::{SourceRepo, operators_excludes};
use crate::workspace::on_disk;

/// A source as the operator asked for it.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub path: PathBuf,
    pub record: SourceRecord,
    pub from_head: bool,
}

impl SourceRequest {
    /// What the contract says before anybody has looked.
    pub fn unseen(&self) -> Source {
        Source {
            record: self.record.clone(),
            from_head: self.from_head,
            head: cto_core::values::maybe_known::MaybeKnown::NotLookedAt,
        }
    }
}

/// An opened source. Our side of it lies in a directory that goes when this does.
pub struct SourceView {
    pub repo: SourceRepo,
    pub look: SourceLook,
    _ours: OwnDir,
}

/// Opens and looks. Only reads; whatever keeps it from being copied comes back as words.
pub fn look(path: &Path, env: &Env, home: &Home) -> Result<SourceView, String> {
    let git = env.find_program("git").ok_or("git was not found on PATH")?;
    let words = |error: &dyn std::error::Error| crate::host::failure::chain(error);
    let ours = OwnDir::make(home).map_err(|error| words(&error))?;
    let repo = SourceRepo::open(&git, path, &ours.0)
        .map_err(|error| format!("{}: {}", path.display(), words(&error)))?;
    let excludes = env
        .path("HOME")
        .and_then(|home| operators_excludes(&git, &home));
    let look = repo
        .look(excludes.as_deref())
        .map_err(|error| words(&error))?;
    Ok(SourceView {
        repo,
        look,
        _ours: ours,
    })
}

/// The second look, after everything: what it finds is compared with the first.
pub fn look_again(path: &Path, env: &Env, home: &Home) -> Looked {
    match look(path, env, home) {
        Ok(view) => Looked::Found(view.look),
        Err(why) => Looked::Unusable(why),
    }
}

impl SourceView {
    /// HEAD as a tree: every path, mode and content.
    pub fn tree(&self) -> Result<Tree, String> {
        let mut tree = Tree::new();
        let mut take = |path: &TreePath, kind, content: &mut dyn io::Read| {
            tree.insert(
                path.clone(),
                on_disk::digest_entry(kind, content, &mut io::sink())?,
            );
            Ok(())
        };
        self.repo
            .each_file(&mut take)
            .map_err(|error| crate::host::failure::chain(&error))?;
        Ok(tree)
    }
}

/// A private directory below `work/`.
pub struct OwnDir(PathBuf);

impl OwnDir {
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn make(home: &Home) -> io::Result<Self> {
        let name = host::random_name(12).map_err(|failure| io::Error::other(failure.what))?;
        let dir = home
            .work()
            .join(format!("{LOOK}{}-{name}", std::process::id()));
        host::make_private_dir(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for OwnDir {
    fn drop(&mut self) {
        // What stays behind is swept by the next recovery.
        let _ = on_disk::remove(&self.0);
    }
}

const LOOK: &str = "look-";

/// Removes what looks left behind whose process is gone.
pub fn sweep(home: &Home) {
    for entry in std::fs::read_dir(home.work())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix(LOOK)
            .and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = on_disk::remove(&entry.path());
        }
    }
}
