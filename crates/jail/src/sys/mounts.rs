//! System calls about mounts: binding, attributes, the change of root, maps of owners.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;

use super::processes::die_with_parent;
use super::{c_path, check};

pub fn mount(source: &str, target: &Path, kind: &str, flags: u64, data: &str) -> io::Result<()> {
    let (source, target) = (CString::new(source)?, c_path(target)?);
    let (kind, data) = (CString::new(kind)?, CString::new(data)?);
    // SAFETY: all pointers are valid NUL-terminated strings for the duration of the call.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            data.as_ptr().cast(),
        )
    })
    .map(drop)
}

pub const ATTR_RDONLY: u64 = 1;
pub const ATTR_NOSUID: u64 = 2;
pub const ATTR_NODEV: u64 = 4;
const AT_RECURSIVE: i32 = 0x8000;
const OPEN_TREE_CLONE: i32 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
const MOVE_MOUNT_T_EMPTY_PATH: u32 = 0x40;

/// A copy of a tree of mounts that is attached nowhere yet: what it shows stays the same, whatever
/// comes to cover the path it was taken from.
pub struct DetachedTree(OwnedFd);

impl DetachedTree {
    /// Copies what is mounted at and below a path.
    pub fn copy(source: &Path) -> io::Result<Self> {
        copy_tree(&c_path(source)?, 0)
    }

    /// Copies what is mounted at and below a place that is held.
    pub fn copy_held(place: BorrowedFd<'_>) -> io::Result<Self> {
        copy_tree_at(place.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
    }

    pub fn is_dir(&self) -> io::Result<bool> {
        let mode = rustix::fs::fstat(&self.0)?.st_mode;
        Ok(rustix::fs::FileType::from_raw_mode(mode).is_dir())
    }

    /// Shows owners through the map of a user namespace, in the whole tree or not at all.
    pub fn map_owners(&self, map: BorrowedFd<'_>) -> io::Result<()> {
        let flags = libc::AT_EMPTY_PATH | AT_RECURSIVE;
        set_attributes(self.0.as_raw_fd(), c"", flags, 0, Some(map))
    }

    /// The same for its first mount alone: what is mounted below keeps its owners.
    pub fn map_owners_of_first(&self, map: BorrowedFd<'_>) -> io::Result<()> {
        set_attributes(self.0.as_raw_fd(), c"", libc::AT_EMPTY_PATH, 0, Some(map))
    }

    /// Puts it in its place. Attributes are only added, so flags locked by the host never clash.
    pub fn attach(self, target: &Path, attributes: u64) -> io::Result<()> {
        attach(&self, (libc::AT_FDCWD, &c_path(target)?), attributes)
    }

    /// The same at a place that is held.
    pub fn attach_at(self, place: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
        attach(&self, (place.as_raw_fd(), c""), attributes)
    }
}

/// Binds a tree elsewhere.
pub fn bind(source: &Path, target: &Path, attributes: u64) -> io::Result<()> {
    DetachedTree::copy(source)?.attach(target, attributes)
}

/// Binds one mount elsewhere, as it is: its attributes are those of the source.
pub fn bind_unchanged(source: &Path, target: &Path) -> io::Result<()> {
    let (source, target) = (c_path(source)?, c_path(target)?);
    // SAFETY: valid C strings; a bind looks at neither a type nor data.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            ptr::null(),
            libc::MS_BIND,
            ptr::null(),
        )
    })
    .map(drop)
}

/// Binds a place over itself. A link is covered as the link it is: neither end is followed.
pub fn bind_over_itself(place: &Path, attributes: u64) -> io::Result<()> {
    let place = c_path(place)?;
    let tree = copy_tree(&place, libc::AT_SYMLINK_NOFOLLOW)?;
    attach(&tree, (libc::AT_FDCWD, &place), attributes)
}

fn copy_tree(source: &CStr, follow: i32) -> io::Result<DetachedTree> {
    copy_tree_at(libc::AT_FDCWD, source, follow)
}

fn copy_tree_at(from: RawFd, source: &CStr, follow: i32) -> io::Result<DetachedTree> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | AT_RECURSIVE | follow;
    // SAFETY: the path is a valid C string; the result is a new descriptor or an error.
    let tree = check(unsafe { libc::syscall(libc::SYS_open_tree, from, source.as_ptr(), flags) })?;
    // SAFETY: the kernel just gave us this descriptor and nobody else has it.
    Ok(DetachedTree(unsafe { OwnedFd::from_raw_fd(tree as RawFd) }))
}

fn attach(
    DetachedTree(tree): &DetachedTree,
    (at, target): (RawFd, &CStr),
    attributes: u64,
) -> io::Result<()> {
    set_attributes(
        tree.as_raw_fd(),
        c"",
        libc::AT_EMPTY_PATH | AT_RECURSIVE,
        attributes,
        None,
    )?;
    // SAFETY: valid descriptor and C strings.
    let moved = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            at,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH,
        )
    };
    check(moved).map(drop)
}

/// Asks whether a path could be written; a link itself, not what it leads to.
pub fn may_write(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path is a valid C string.
    check(unsafe {
        libc::faccessat(
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::W_OK,
            libc::AT_SYMLINK_NOFOLLOW,
        )
    })
    .map(drop)
}

/// Is this path the root of a mount?
pub fn is_mount(path: &Path) -> bool {
    let Ok(path) = c_path(path) else { return false };
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    // SAFETY: a valid C string and a structure of the size the call fills; zeroes are a valid one.
    let (result, found) = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (
            libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, 0, &mut found),
            found,
        )
    };
    let bit = libc::STATX_ATTR_MOUNT_ROOT as u64;
    result == 0 && found.stx_attributes_mask & bit != 0 && found.stx_attributes & bit != 0
}

/// Makes one mount read-only; what is mounted below it keeps its own attributes.
pub fn make_read_only(path: &Path) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, &c_path(path)?, 0, ATTR_RDONLY, None)
}

fn set_attributes(
    fd: RawFd,
    path: &CStr,
    flags: i32,
    set: u64,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    const ATTR_IDMAP: u64 = 0x0010_0000;
    let attributes = match map {
        None => [set, 0u64, 0, 0],
        Some(namespace) => [set | ATTR_IDMAP, 0, 0, namespace.as_raw_fd() as u64],
    };
    // SAFETY: the structure is four 64-bit words and its size is passed along.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            attributes.as_ptr(),
            std::mem::size_of_val(&attributes),
        )
    };
    check(result).map(drop)
}

/// The current directory becomes the root, and the old root is gone.
pub fn pivot_here() -> io::Result<()> {
    // SAFETY: valid C strings; pivoting onto itself stacks the old root, which is then detached.
    unsafe {
        check(libc::syscall(
            libc::SYS_pivot_root,
            c".".as_ptr(),
            c".".as_ptr(),
        ))?;
        check(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        check(libc::chdir(c"/".as_ptr())).map(drop)
    }
}

pub fn unmount(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a valid C string.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// A user namespace that exists only for its map: `owner` on disk is shown as `uid`. The child that
/// held it is ended here and left for the caller to reap.
pub fn owner_map(owner: (u32, u32), uid: u32) -> io::Result<OwnedFd> {
    const STACK: usize = 16 << 10;
    // Never given back: the child may stand on it for a moment after its end was ordered.
    let stack = vec![0u128; STACK / size_of::<u128>()].leak();
    let flags = libc::CLONE_NEWUSER | libc::CLONE_VM | libc::SIGCHLD;
    // SAFETY: the child shares our memory, so that none is copied for it; it has a stack of its
    // own, writes to nothing else and only waits to be killed.
    let child = check(unsafe {
        let top = stack.as_mut_ptr_range().end;
        libc::clone(wait_to_be_killed, top.cast(), flags, ptr::null_mut())
    })? as i32;
    let map = map_of(child, owner, uid);
    // SAFETY: our own child, not yet reaped.
    check(unsafe { libc::kill(child, libc::SIGKILL) })?;
    map
}

extern "C" fn wait_to_be_killed(_: *mut libc::c_void) -> libc::c_int {
    // Should the parent be killed before it can end us.
    let _ = die_with_parent();
    loop {
        // SAFETY: no arguments.
        unsafe { libc::pause() };
    }
}

fn map_of(child: i32, owner: (u32, u32), uid: u32) -> io::Result<OwnedFd> {
    std::fs::write(
        format!("/proc/{child}/uid_map"),
        format!("{} {uid} 1", owner.0),
    )?;
    std::fs::write(
        format!("/proc/{child}/gid_map"),
        format!("{} {uid} 1", owner.1),
    )?;
    Ok(std::fs::File::open(format!("/proc/{child}/ns/user"))?.into())
}
