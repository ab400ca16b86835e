//! Can a jail have a directory of the operator's below an overlay? Tried once for each file system
//! it lies on: not every one can be below, and not every one can be shown as another user's.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cto_core::containment::mounts::Granted;
use cto_jail::probe::line_in;
use cto_jail::{Mount, Over};

use crate::host::Home;
use crate::host::probes::remembered;
use crate::workspace::own_dir::OwnDir;

/// A file is made, another is copied up, and a directory is listed.
const LINE: &str = "cd /workspace && echo x > .cto-trial && test -s .cto-trial && ls >/dev/null && \
                    for f in * .*; do if test -f \"$f\" && test ! -L \"$f\" && test -r \"$f\"; then \
                    touch -c \"$f\" && exit 0 || exit 1; fi; done; exit 0";

pub fn can_be_below(source: &Granted, home: &Home) -> bool {
    let Ok(device) = fs::symlink_metadata(source.path()).map(|meta| meta.dev()) else {
        return false;
    };
    let prefix = format!("below-{device:x}-");
    remembered(home, &prefix, || try_one(source, home).unwrap_or(false))
}

fn try_one(source: &Granted, home: &Home) -> io::Result<bool> {
    let own = OwnDir::make(home)?;
    let make = |name: &str| -> io::Result<std::path::PathBuf> {
        let dir = own.path().join(name);
        fs::create_dir(&dir)?;
        Ok(dir)
    };
    let over = Over {
        upper: make("upper")?,
        work: make("work")?,
    };
    cto_jail::hand_over(&over.upper)?;
    let mount = Mount::at(source, Path::new("/workspace")).below(over);
    Ok(line_in(vec![mount], LINE).unwrap_or(false))
}
