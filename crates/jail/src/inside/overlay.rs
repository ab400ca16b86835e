//! A workspace that is an overlay: a checkout below that nobody writes to, and what changes above
//! it. Made in the jail's own mount namespace, so the merged view exists nowhere else.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::inside::enter::{Named, Step};
use crate::inside::root::pin;
use crate::spec::Over;
use crate::sys::{self, DetachedTree};

/// The writable half of an overlay, held on to before the way to it is covered.
pub struct Layers {
    upper: OwnedFd,
    work: OwnedFd,
}

impl Layers {
    pub fn pin(over: &Over) -> Step<Self> {
        let work = fresh(&over.work).step("make a directory for the overlay's own use")?;
        Ok(Self {
            upper: pin(&over.upper).step("find the overlay's upper directory")?,
            work: pin(&work).step("find the overlay's own directory")?,
        })
    }
}

/// Each mount needs one of its own: what the last one left in it is refused.
fn fresh(parent: &Path) -> io::Result<PathBuf> {
    for number in 0u32.. {
        let dir = parent.join(number.to_string());
        match fs::create_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| dir),
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

/// Mounts `lower` with the layers over it at `place`. `stage` is an empty directory for the time of
/// the call.
///
/// `userxattr` for root too: the kernel then never follows a redirect and never leaves content
/// behind in the lower directory, and the marks it makes are ones no process inside can make.
/// `volatile`: nothing of a workspace must survive a crash, and the end of a jail need not wait for
/// the disk.
pub fn mount(
    lower: &Path,
    stage: &Path,
    layers: &Layers,
    place: &Path,
    map: Option<&OwnedFd>,
) -> Step<()> {
    let held = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let below = match map {
        None => lower.to_owned(),
        Some(map) => {
            let attributes = sys::ATTR_RDONLY | sys::ATTR_NOSUID | sys::ATTR_NODEV;
            DetachedTree::copy(lower)
                .and_then(|tree| {
                    tree.map_owners(map.as_fd())?;
                    tree.attach(stage, attributes)
                })
                .step("show the checkout as its user's")?;
            stage.to_owned()
        }
    };
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,index=off,xino=off,volatile",
        below.display(),
        held(&layers.upper),
        held(&layers.work)
    );
    sys::mount(
        "overlay",
        place,
        "overlay",
        libc::MS_NOSUID | libc::MS_NODEV,
        &options,
    )
    .step("mount the overlay")?;
    if map.is_some() {
        sys::unmount(stage).step("let go of the checkout")?;
    }
    fs::remove_dir(stage).step("let go of the checkout")
}
