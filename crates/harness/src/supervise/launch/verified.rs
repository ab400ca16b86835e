//! An engine's jail held against what the gates saw: its program, its interpreter and its packages are
//! mounted as they were verified, or it is not started.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cto_core::containment::mounts::Id;
use cto_core::containment::mounts::needed::{Shows, Unlike, Verified, unlike};
use cto_core::gate::EngineUse;
use cto_jail::Mount;

use super::Launch;

impl Launch {
    /// What of the engine its jail would not have as it was verified. Nothing was started yet.
    pub fn unlike_verified(&self, engine: &EngineUse) -> Option<Unlike> {
        let mounts = self.jail.as_ref()?.mounts.iter();
        let mounts: Vec<Shows<'_>> = mounts.map(shows).collect();
        verified(engine).find_map(|one| unlike(&one, &mounts))
    }

    /// What was verified and is another one by now: why a jail would not mount it.
    pub fn exchanged(&self, engine: &EngineUse) -> Option<Unlike> {
        self.jail.as_ref()?;
        let is_other = |one: &Verified<'_>| id_at(one.path) != Some(one.id);
        let found = verified(engine).find(is_other);
        found.map(|one| Unlike::Exchanged(one.path.to_owned()))
    }
}

fn shows(mount: &Mount) -> Shows<'_> {
    Shows {
        source: &mount.source,
        target: &mount.target,
        id: mount.id,
        plain: !mount.writable && mount.over.is_none(),
    }
}

fn verified(engine: &EngineUse) -> impl Iterator<Item = Verified<'_>> {
    let packages = engine.packages.iter().map(|packages| Verified {
        path: &packages.root,
        id: packages.id,
        whole: true,
    });
    let files = engine.files.iter().map(|file| Verified {
        path: &file.path,
        id: file.id,
        whole: false,
    });
    packages.chain(files)
}

fn id_at(path: &Path) -> Option<Id> {
    let meta = path.symlink_metadata().ok()?;
    Some(Id {
        device: meta.dev(),
        inode: meta.ino(),
    })
}
