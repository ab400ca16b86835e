//! Files that are not the engine's: reading, writing, replacing, removing, linking, marking.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;

use rustix::fs::XattrFlags;

use super::{Attack, refused};

pub const ATTACKS: &[Attack] = &[
    Attack::new("read-file", |path| fs::read(path).map(drop)),
    Attack::new("read-some", read_some),
    Attack::new("list-directory", list),
    Attack::new("write-file", |path| fs::write(path, "attack")),
    Attack::new("append-to-file", |path| {
        OpenOptions::new()
            .append(true)
            .open(path)?
            .write_all(b"attack")
    }),
    Attack::new("open-for-writing", |path| {
        OpenOptions::new().write(true).open(path).map(drop)
    }),
    Attack::new("truncate-file", |path| {
        OpenOptions::new().write(true).open(path)?.set_len(0)
    }),
    Attack::new("remove-file", |path| fs::remove_file(path)),
    Attack::new("make-directory", |path| fs::create_dir(path)),
    Attack::new("rename-onto", rename_onto),
    Attack::new("rename-away", |path| fs::rename(path, "taken")),
    Attack::new("hard-link", |path| {
        with_leftover("stolen", |name| fs::hard_link(path, name))
    }),
    Attack::new("read-through-link", |path| {
        with_leftover("door", |name| {
            symlink(path, name).and_then(|()| fs::read(name).map(drop))
        })
    }),
    Attack::new("write-through-link", |path| {
        with_leftover("door", |name| {
            symlink(path, name).and_then(|()| fs::write(name, "x"))
        })
    }),
    Attack::new("change-mode", |path| {
        fs::set_permissions(path, Permissions::from_mode(0o777))
    }),
    Attack::new("change-owner", |path| {
        std::os::unix::fs::chown(path, Some(0), Some(0))
    }),
    Attack::new("change-times", |path| {
        File::open(path)?.set_modified(SystemTime::UNIX_EPOCH)
    }),
    Attack::new("set-attribute", |path| {
        Ok(rustix::fs::setxattr(
            path,
            "user.attack",
            b"x",
            XattrFlags::empty(),
        )?)
    }),
];

/// A little of a file that has no end, or none one may read to.
fn read_some(path: &str) -> io::Result<()> {
    let mut some = [0u8; 64];
    match File::open(path)?.read(&mut some)? {
        0 => Err(refused("it is empty")),
        _ => Ok(()),
    }
}

fn list(path: &str) -> io::Result<()> {
    match fs::read_dir(path)?.next() {
        Some(entry) => entry.map(drop),
        None => Err(refused("it is empty")),
    }
}

fn rename_onto(path: &str) -> io::Result<()> {
    with_leftover("mine", |name| {
        fs::write(name, "attack").and_then(|()| fs::rename(name, path))
    })
}

/// Nothing may stay in the workspace that would be found for another reason.
fn with_leftover(name: &str, attempt: impl FnOnce(&str) -> io::Result<()>) -> io::Result<()> {
    let tried = attempt(name);
    let _ = fs::remove_file(name);
    tried
}
