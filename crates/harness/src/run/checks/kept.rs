//! Baselines kept for a week, a file each in a room of the state home that is ours alone. No jail is
//! shown the state home, so nothing of a run can write here. What is not whole, too old, or somebody
//! else's is as good as not there, and goes.
//!
//! A file is a line with a length, the document of that length, and the log. It gets its name when it
//! is whole, and whoever was first does not matter: two that have one name are of the same key.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use cto_core::checks::known_baseline::{KEPT_MILLIS, KeptBaseline};
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::values::time::Utc;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::evidence::secrets::Secrets;
use crate::host::files;
use crate::host::{Home, make_private_dir, random_name};

const MARK: &str = "cto-baseline/1 ";
/// A larger one is not kept.
const MOST_BYTES: u64 = 32 << 20;
/// As many and as much as is kept in all.
const MOST: usize = 64;
const MOST_IN_ALL: u64 = 256 << 20;
/// A file on its way to its name; nobody takes longer over one.
const UNNAMED: &str = "new-";
const LONGEST: Duration = Duration::from_secs(3600);

/// A baseline that ran before, as it travels in bundles.
pub struct Known {
    pub kept: KeptBaseline,
    pub document: Vec<u8>,
    pub log: Vec<u8>,
}

fn place(home: &Home) -> PathBuf {
    home.cache().join("baselines")
}

/// The room, where it is a directory of ours that nobody else may enter.
fn room(home: &Home) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let room = openat(CWD, place(home), flags, Mode::empty()).ok()?;
    let meta = File::from(room.try_clone().ok()?).metadata().ok()?;
    is_private(&meta).then_some(room)
}

fn is_private(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0
}

/// The baseline with this key, if one is kept. One that holds what is secret now is not used.
pub fn find(home: &Home, key: &Digest, now: Utc, secrets: &Secrets) -> Option<Known> {
    let room = room(home)?;
    let name = key.to_hex();
    let found = read(&room, &name).filter(|known| {
        let secret = |bytes: &[u8]| secrets.redact(bytes).1.known > 0;
        known.kept.is_known(key, now) && !secret(&known.document) && !secret(&known.log)
    });
    if found.is_none() {
        remove(home, &room, OsStr::new(&name));
    }
    found
}

/// What has this name goes, whatever it is; a link is not followed.
fn remove(home: &Home, room: &OwnedFd, name: &OsStr) {
    // What cannot be removed is not used either.
    if unlinkat(room, name, AtFlags::empty()) == Err(Errno::ISDIR) {
        let _ = files::remove_tree(&place(home).join(name));
    }
}

fn read(room: &OwnedFd, name: &str) -> Option<Known> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat(room, name, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    if !meta.is_file() || !is_private(&meta) || meta.nlink() != 1 {
        return None;
    }
    let mut bytes = Vec::new();
    (&mut file)
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .ok()
        .filter(|length| *length as u64 <= MOST_BYTES)?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Option<Known> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let length = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let length: usize = length.strip_prefix(MARK)?.parse().ok()?;
    let (document, log) = bytes.get(end + 1..)?.split_at_checked(length)?;
    let kept: KeptBaseline = json::read(document).ok()?;
    kept.log_contradiction(log).is_none().then(|| Known {
        kept,
        document: document.to_vec(),
        log: log.to_vec(),
    })
}

/// Keeps a baseline, in place of one with the same key.
pub fn keep(home: &Home, known: &Known, now: Utc) -> io::Result<()> {
    let head = format!("{MARK}{}\n", known.document.len());
    let bytes = [head.as_bytes(), &known.document, &known.log].concat();
    if bytes.len() as u64 > MOST_BYTES {
        return Ok(());
    }
    make_private_dir(&place(home))?;
    let Some(room) = room(home) else {
        return Ok(());
    };
    let suffix = random_name(12).map_err(|failure| io::Error::other(failure.what))?;
    let aside = format!("{UNNAMED}{suffix}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let written = openat(&room, &aside, flags, mode)
        .map_err(io::Error::from)
        .and_then(|file| File::from(file).write_all(&bytes))
        .and_then(|()| Ok(renameat(&room, &aside, &room, known.kept.key.to_hex())?));
    if written.is_err() {
        let _ = unlinkat(&room, &aside, AtFlags::empty());
    }
    sweep(home, now);
    written
}

/// Lets go of one.
pub fn forget(home: &Home, key: &Digest) {
    if let Some(room) = room(home) {
        remove(home, &room, OsStr::new(&key.to_hex()));
    }
}

/// Removes what nobody will use any more, and what no bound covers.
pub fn sweep(home: &Home, now: Utc) {
    let Some(room) = room(home) else { return };
    let mut stays: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(place(home)).into_iter().flatten().flatten() {
        let Ok(meta) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        match time_to_stay(&entry.file_name(), &meta, now) {
            Some(time) => stays.push((time, meta.len(), entry.path())),
            None => remove(home, &room, &entry.file_name()),
        }
    }
    stays.sort_by(|one, other| other.cmp(one));
    let mut bytes = 0u64;
    for (number, (_, length, path)) in stays.into_iter().enumerate() {
        bytes = bytes.saturating_add(length);
        if number >= MOST || bytes > MOST_IN_ALL {
            let _ = fs::remove_file(path);
        }
    }
}

/// When a file was written that may still be used; nothing of one that may not.
fn time_to_stay(name: &OsStr, meta: &Metadata, now: Utc) -> Option<SystemTime> {
    let written = meta.modified().ok()?;
    let millis = u64::try_from(now.as_millis()).ok()?;
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    let age = now.duration_since(written).unwrap_or(Duration::ZERO);
    let name = name.to_str()?;
    let longest = match name.parse::<Digest>() {
        Ok(_) => Duration::from_millis(KEPT_MILLIS.unsigned_abs()),
        Err(_) if name.starts_with(UNNAMED) => LONGEST,
        Err(_) => return None,
    };
    let ours = meta.is_file() && is_private(meta) && meta.nlink() == 1;
    (ours && age <= longest).then_some(written)
}
