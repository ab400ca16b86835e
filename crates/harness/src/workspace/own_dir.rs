//! Private directories below `work/` for a short look: each goes with the value that made it, and
//! what a process left behind that is gone is swept.

use std::io;
use std::path::{Path, PathBuf};

use crate::host::files;
use crate::host::{self, Home};

/// A private directory below `work/`.
pub struct OwnDir(PathBuf);

impl OwnDir {
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn make(home: &Home) -> io::Result<Self> {
        let name = host::look_name().map_err(|failure| io::Error::other(failure.what))?;
        let dir = home.work().join(name);
        host::make_private_dir(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for OwnDir {
    fn drop(&mut self) {
        // What stays behind is swept by the next recovery.
        let _ = files::remove_tree(&self.0);
    }
}

/// Removes what looks left behind whose process is gone.
pub fn sweep(home: &Home) {
    for entry in std::fs::read_dir(home.work())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Exactly a name that is given; anything like it may be somebody else's.
        let owner = name
            .strip_prefix(host::LOOK)
            .and_then(|rest| rest.split_once('-'))
            .filter(|(_, random)| random.len() == 12 && !random.contains('-'))
            .and_then(|(pid, _)| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = files::remove_tree(&entry.path());
        }
    }
}
