//! Where repositories of earlier runs lie: a private file of the state home for each, named by the
//! digest that bundles hold in place of the path. Nothing but `cto apply` and what is shown to the
//! operator rests on it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;

use super::{Home, files, make_private_dir, random_name};

/// The kernel takes no longer path.
const MOST: u64 = 4096;

fn place(home: &Home, sha256: &Digest) -> PathBuf {
    home.repositories().join(sha256.to_hex())
}

/// Keeps where a repository is.
pub fn remember(home: &Home, repository: &Path) -> io::Result<()> {
    let path = repository.as_os_str().as_bytes();
    let place = place(home, &Digest::of(path));
    if find(home, &Digest::of(path)).is_some() {
        return Ok(());
    }
    make_private_dir(&home.repositories())?;
    let suffix = random_name(8).map_err(|failure| io::Error::other(failure.what))?;
    let aside = place.with_extension(suffix);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| file.write_all(path))
        .and_then(|()| fs::rename(&aside, &place));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

/// The repository whose path has this digest, if this state home has seen it. What the file says is
/// believed only where it is that path.
pub fn find(home: &Home, sha256: &Digest) -> Option<PathBuf> {
    let path = files::read_limited(&place(home, sha256), MOST).ok()?;
    (Digest::of(&path) == *sha256).then(|| OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_remembered_is_found_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home {
            root: dir.path().to_owned(),
            runs: dir.path().join("runs"),
        };
        for name in ["/home/me/work", "/a b/new\nline", "/x"] {
            let sha256 = Digest::of(name.as_bytes());
            assert_eq!(find(&home, &sha256), None);
            remember(&home, Path::new(name)).unwrap();
            remember(&home, Path::new(name)).unwrap();
            assert_eq!(find(&home, &sha256), Some(name.into()));
            let mode = fs::metadata(place(&home, &sha256)).unwrap().permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
        let sha256 = Digest::of(b"/x");
        for forged in [b"/y".as_slice(), b"", b"/x\n", &[b'x'; 5000]] {
            fs::write(place(&home, &sha256), forged).unwrap();
            assert_eq!(find(&home, &sha256), None);
        }
        fs::remove_file(place(&home, &sha256)).unwrap();
        std::os::unix::fs::symlink(
            place(&home, &Digest::of(b"/home/me/work")),
            place(&home, &sha256),
        )
        .unwrap();
        assert_eq!(find(&home, &sha256), None);
        remember(&home, Path::new("/x")).unwrap();
        assert_eq!(find(&home, &sha256), Some("/x".into()));
        assert_eq!(fs::read_dir(home.repositories()).unwrap().count(), 3);
    }
}
