//! Small files of the operator's own: the one that holds a base URL, the agent's configuration.
//! Read only where nobody else can have written them, and opened once: what is looked at is what is
//! read.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cto_core::containment::ownership;

use crate::host::{files, way};

/// Why a file is not used. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum NotUsed {
    #[error("it is not there")]
    Missing,
    #[error("its path is not absolute")]
    Relative,
    #[error("it is a link; name the file itself")]
    Link,
    #[error("it lies in a repository, {0}, where an agent may have written it")]
    Repository(PathBuf),
    #[error("someone else could have written it: {0}")]
    Stranger(String),
    #[error("others may read it (mode {0:03o}); `chmod 600` makes it yours alone")]
    Readable(u32),
    #[error("it is empty")]
    Empty,
    #[error("it is larger than {0} bytes")]
    Large(u64),
    #[error("it is not text")]
    NotText,
    #[error("it cannot be read: {0}")]
    Io(io::ErrorKind),
}

/// Who else may look into the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readers {
    Anybody,
    OwnerAlone,
}

/// The text of a file that only root and the operator can have written.
pub fn read(path: &Path, limit: u64, readers: Readers) -> Result<String, NotUsed> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => NotUsed::Missing,
        ErrorKind::FileTooLarge => NotUsed::Large(limit),
        kind => NotUsed::Io(kind),
    };
    if !path.is_absolute() {
        return Err(NotUsed::Relative);
    }
    if path.symlink_metadata().map_err(failed)?.is_symlink() {
        return Err(NotUsed::Link);
    }
    let mut steps = way::walk(path).map_err(failed)?;
    let last = steps.pop().ok_or(NotUsed::Missing)?;
    if let Some(top) = steps.iter().find(|step| step.is_repository) {
        return Err(NotUsed::Repository(top.path.clone()));
    }
    let file = files::open_regular(&last.path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    let own = way::open_step(&last.path, &meta);
    let mode = own.mode;
    steps.push(own);
    if let Some(stranger) = ownership::stranger(&steps) {
        return Err(NotUsed::Stranger(stranger.to_string()));
    }
    if readers == Readers::OwnerAlone && mode & 0o077 != 0 {
        return Err(NotUsed::Readable(mode & 0o777));
    }
    let bytes = files::read_open(file, limit).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| NotUsed::NotText)?;
    match text.trim().is_empty() {
        true => Err(NotUsed::Empty),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_that_somebody_else_could_have_written_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let put = |name: &str, text: &str, mode: u32| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        put("good", "x\n", 0o600);
        put("shown", "x\n", 0o644);
        put("open", "x\n", 0o666);
        put("empty", " \n", 0o600);
        put("huge", &"x".repeat(65), 0o600);
        put("repo/in/url", "x", 0o600);
        fs::create_dir(at("repo/.git")).unwrap();
        fs::write(at("bytes"), [0xff, 0xfe]).unwrap();
        fs::set_permissions(at("bytes"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink(at("good"), at("link")).unwrap();
        let said = |path: &Path, readers| match read(path, 64, readers) {
            Ok(text) => text,
            Err(why) => why.to_string(),
        };
        let alone = |name: &str| said(&at(name), Readers::OwnerAlone);
        assert_eq!(alone("good"), "x\n");
        for (name, want) in [
            ("none", "not there"),
            ("good/x", "not there"),
            ("link", "is a link"),
            ("shown", "others may read it (mode 644)"),
            ("open", "could have written it"),
            ("empty", "is empty"),
            ("huge", "larger than 64"),
            ("bytes", "not text"),
            ("repo/in/url", "in a repository"),
            ("repo", "cannot be read"),
        ] {
            assert!(alone(name).contains(want), "{name}: {}", alone(name));
        }
        assert_eq!(said(&at("shown"), Readers::Anybody), "x\n");
        let relative = said(Path::new("good"), Readers::Anybody);
        assert!(relative.contains("not absolute"), "{relative}");
    }
}
