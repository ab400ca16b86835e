//! A file of the operator's: a manifest of their own, or what a record names, the base URL, certificate
//! authorities, values of headers. Believed only where nobody else could have written it, and never at or below a
//! repository: whoever may change the one must not choose the other.

use std::io::{self, ErrorKind};
use std::path::Path;

use cto_core::containment::ownership;

use crate::host::{files, way};

/// Who may read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privacy {
    /// The operator alone: what it holds is theirs.
    Private,
    /// Anybody: what it holds is public, but not anybody's to write.
    Public,
}

/// Why such a file is not used. No variant holds its path or any of it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileProblem {
    #[error("is not there")]
    Missing,
    #[error("is a link; it has to be a file of its own")]
    Link,
    #[error("is no regular file")]
    NotRegular,
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("could have been written by someone else: others may write it or a directory above it")]
    Writable,
    #[error("can be read by others; `chmod 600` makes it private")]
    Readable,
    #[error("lies at or below a repository, whose contents are not the operator's word")]
    Repository,
    #[error("is empty")]
    Empty,
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
    #[error("is not text")]
    NotText,
}

impl FileProblem {
    fn of(error: &io::Error, limit: u64) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Missing,
            ErrorKind::FileTooLarge => Self::TooLarge(limit),
            ErrorKind::InvalidInput => Self::NotRegular,
            kind => Self::Unreadable(kind.to_string()),
        }
    }
}

/// Reads such a file: the bytes that were judged are the bytes returned.
pub fn read(path: &Path, limit: u64, privacy: Privacy) -> Result<Vec<u8>, FileProblem> {
    let problem = |error: io::Error| FileProblem::of(&error, limit);
    let path = std::path::absolute(path).map_err(problem)?;
    let meta = path.symlink_metadata().map_err(problem)?;
    if meta.is_symlink() {
        return Err(FileProblem::Link);
    }
    if !meta.is_file() {
        return Err(FileProblem::NotRegular);
    }
    let mut steps = way::walk(&path).map_err(problem)?;
    let Some(last) = steps.pop() else {
        return Err(FileProblem::Missing);
    };
    let file = files::open_regular(&last.path).map_err(problem)?;
    let meta = file.metadata().map_err(problem)?;
    let end = way::open_step(&last.path, &meta);
    if privacy == Privacy::Private && end.mode & 0o077 != 0 {
        return Err(match end.mode & 0o022 {
            0 => FileProblem::Readable,
            _ => FileProblem::Writable,
        });
    }
    steps.push(end);
    if ownership::stranger(&steps).is_some() {
        return Err(FileProblem::Writable);
    }
    if steps.iter().any(|step| step.is_repository) {
        return Err(FileProblem::Repository);
    }
    let bytes = files::read_open(file, limit).map_err(problem)?;
    match bytes.trim_ascii().is_empty() {
        true => Err(FileProblem::Empty),
        false => Ok(bytes),
    }
}

/// Longer than any credential.
const MAX_CREDENTIAL: u64 = 16 << 10;

/// May this file be read for a credential? Whoever can write it says on whose account, and so before whose
/// eyes, what is sent to a model is answered.
pub fn credential(path: &Path) -> Result<(), FileProblem> {
    read(path, MAX_CREDENTIAL, Privacy::Private).map(drop)
}

/// The same as text.
pub fn read_text(path: &Path, limit: u64, privacy: Privacy) -> Result<String, FileProblem> {
    String::from_utf8(read(path, limit, privacy)?).map_err(|_| FileProblem::NotText)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_the_operators_own_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name);
        let write = |name: &str, text: &[u8], mode: u32| {
            fs::create_dir_all(place(name).parent().unwrap()).unwrap();
            fs::write(place(name), text).unwrap();
            fs::set_permissions(place(name), Permissions::from_mode(mode)).unwrap();
        };
        write("good", b"https://gate.example/v1\n", 0o600);
        write("readable", b"x", 0o644);
        write("group", b"x", 0o660);
        write("everybody", b"x", 0o666);
        write("empty", b" \n", 0o600);
        write("huge", &[b'x'; 65], 0o600);
        write("binary", b"\xff", 0o600);
        write("repo/.git/HEAD", b"x", 0o600);
        write("repo/deep/file", b"x", 0o600);
        write("open/file", b"x", 0o600);
        fs::set_permissions(place("open"), Permissions::from_mode(0o777)).unwrap();
        symlink(place("good"), place("link")).unwrap();
        let read = |name: &str| read_text(&place(name), 64, Privacy::Private);
        assert_eq!(read("good").unwrap(), "https://gate.example/v1\n");
        for (name, want) in [
            ("none", FileProblem::Missing),
            ("good/none", FileProblem::Missing),
            ("link", FileProblem::Link),
            ("repo", FileProblem::NotRegular),
            ("readable", FileProblem::Readable),
            ("group", FileProblem::Writable),
            ("everybody", FileProblem::Writable),
            ("empty", FileProblem::Empty),
            ("huge", FileProblem::TooLarge(64)),
            ("binary", FileProblem::NotText),
            ("repo/deep/file", FileProblem::Repository),
            ("repo/.git/HEAD", FileProblem::Repository),
            ("open/file", FileProblem::Writable),
        ] {
            assert_eq!(read(name), Err(want), "{name}");
        }
        assert!(super::read(&place("readable"), 64, Privacy::Public).is_ok());
        assert_eq!(
            super::read(&place("everybody"), 64, Privacy::Public),
            Err(FileProblem::Writable)
        );
    }
}
