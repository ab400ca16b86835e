//! Digests of large programs, remembered by what the kernel says identifies their content: device,
//! inode, size, and both times to the nanosecond. A changed program has another change time.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cto_core::containment::mounts::Id;
use cto_core::values::digest::Digest;

use crate::host::Home;
use crate::host::files;

/// Below this a digest is cheaper than a look-up.
const SMALL: u64 = 256 * 1024;

/// A file that changed less than this before it was read could change again without a new time.
const SETTLED_SECONDS: i64 = 2;

pub fn digest(home: &Home, program: &Path) -> io::Result<Digest> {
    let meta = fs::metadata(program)?;
    if meta.len() < SMALL {
        return Ok(files::digest_file(program)?.sha256);
    }
    let key = state_of(&meta);
    let entry = home.digests().join(&key);
    if let Some(known) = fs::read_to_string(&entry)
        .ok()
        .and_then(|text| text.trim().parse().ok())
    {
        return Ok(known);
    }
    let began = SystemTime::now();
    let digest = files::digest_file(program)?.sha256;
    let settled = began
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|now| meta.ctime().saturating_add(SETTLED_SECONDS) < now.as_secs() as i64);
    // Remembering is a convenience; the digest itself is already right.
    if settled && state(program)? == key {
        let _ = crate::host::make_private_dir(&home.digests())
            .and_then(|()| fs::write(entry, digest.to_hex()));
    }
    Ok(digest)
}

/// What the kernel says of a file. Every write, even one that was taken back, leaves another one.
pub fn state(program: &Path) -> io::Result<String> {
    fs::metadata(program).map(|meta| state_of(&meta))
}

/// The same, and which file it is.
pub fn state_and_id(program: &Path) -> io::Result<(String, Id)> {
    let meta = fs::metadata(program)?;
    let id = Id {
        device: meta.dev(),
        inode: meta.ino(),
    };
    Ok((state_of(&meta), id))
}

fn state_of(meta: &Metadata) -> String {
    format!(
        "{}-{}-{}-{}.{:09}-{}.{:09}",
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_program_is_digested_anew() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home {
            root: dir.path().to_owned(),
            runs: dir.path().join("r"),
        };
        let program = dir.path().join("p");
        fs::write(&program, vec![1u8; SMALL as usize]).unwrap();
        let first = digest(&home, &program).unwrap();
        assert_eq!(digest(&home, &program).unwrap(), first);
        fs::write(&program, vec![2u8; SMALL as usize]).unwrap();
        assert_ne!(digest(&home, &program).unwrap(), first);
    }
}
