//! The repository a run copies from, as the run sees it: opened, looked at, read, and left alone.

use std::io;
use std::path::{Path, PathBuf};

use cto_core::task::source::{Looked, SourceLook};
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::Tree;

use crate::host::{Env, Home, programs};
use crate::workspace::git::{SourceRepo, operators_excludes};
use crate::workspace::on_disk;
use crate::workspace::own_dir::OwnDir;

/// An opened source. Our side of it lies in a directory that goes when this does.
pub struct SourceView {
    pub repo: SourceRepo,
    pub look: SourceLook,
    /// The operator's own ignore file.
    pub excludes: Option<PathBuf>,
    _ours: OwnDir,
}

/// Opens and looks. Only reads; whatever keeps it from being copied comes back as words.
pub fn look(path: &Path, env: &Env, home: &Home) -> Result<SourceView, String> {
    let git = programs::git(env, home).map_err(|none| none.to_string())?;
    let words = |error: &dyn std::error::Error| crate::host::failure::chain(error);
    let ours = OwnDir::make(home).map_err(|error| words(&error))?;
    let repo = SourceRepo::open(&git, path, ours.path())
        .map_err(|error| format!("{}: {}", path.display(), words(&error)))?
        .seen_by(env.path("HOME").as_deref());
    let excludes = env
        .path("HOME")
        .and_then(|home| operators_excludes(&git, &home));
    let look = repo
        .look(excludes.as_deref())
        .map_err(|error| words(&error))?;
    Ok(SourceView {
        repo,
        look,
        excludes,
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
