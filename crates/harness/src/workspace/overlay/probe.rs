//! Does an overlay work here? Tried once with a jail: every kind of change, read back and compared.

use std::fs;
use std::io;
use std::path::Path;

use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::Tree;
use cto_jail::probe::line_in;
use cto_jail::{Mount, Over};

use super::{make_opaque, make_whiteout, read};
use crate::host::places::Places;
use crate::host::probes::remembered;
use crate::host::{Env, Home};
use crate::workspace::on_disk;
use crate::workspace::own_dir::OwnDir;

const BEFORE: [&str; 5] = ["keep", "change", "remove", "dir/inside", "dark/inside"];
const LINE: &str = "cd /workspace && echo new > change && rm remove && chmod +x dir/inside && rm -r dark && mkdir dark && \
                    echo new > dark/other && ln -s keep link && test ! -e planted && test ! -e covered/inside";

/// Can a jail be given an overlay of directories of the state home, and does the kernel leave
/// behind what the harness can read?
pub fn works(home: &Home) -> bool {
    remembered(home, "overlay-", || try_one(home).unwrap_or(false))
}

fn try_one(home: &Home) -> io::Result<bool> {
    let own = OwnDir::make(home)?;
    let [lower, upper, work, wanted] =
        ["lower", "upper", "work", "wanted"].map(|name| own.path().join(name));
    for dir in [&lower, &upper, &work, &wanted] {
        fs::create_dir(dir)?;
    }
    for file in BEFORE.iter().chain(&["planted", "covered/inside"]) {
        put(&lower, file, "old\n")?;
    }
    // Marks the harness makes must mean to the kernel what they mean to the harness.
    make_whiteout(&upper.join("planted"))?;
    fs::create_dir(upper.join("covered"))?;
    make_opaque(&upper.join("covered"))?;
    cto_jail::hand_over(&upper)?;
    let over = Over {
        upper: upper.clone(),
        work,
    };
    let granted = Places::of(&Env::default(), home).made(&lower, false)?;
    let mount = Mount::at(&granted, "/workspace").below(over);
    if !line_in(vec![mount], LINE).unwrap_or(false) {
        return Ok(false);
    }
    for (file, text) in [
        ("keep", "old\n"),
        ("change", "new\n"),
        ("dir/inside", "old\n"),
        ("dark/other", "new\n"),
    ] {
        put(&wanted, file, text)?;
    }
    fs::set_permissions(
        wanted.join("dir/inside"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    std::os::unix::fs::symlink("keep", wanted.join("link"))?;
    let baseline: Tree = on_disk::walk(&lower)?.tree;
    let (found, wanted) = (read(&baseline, &lower, &upper)?, on_disk::walk(&wanted)?);
    Ok(found.tree == wanted.tree
        && found.unrecordable.is_empty()
        && !baseline.contains_key(&TreePath::new("link")))
}

fn put(dir: &Path, file: &str, text: &str) -> io::Result<()> {
    let place = dir.join(file);
    on_disk::make_parent(dir, &place)?;
    fs::write(place, text)
}
