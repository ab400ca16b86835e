//! One file of a copy, read from outside while a process inside may change everything: by descriptors from the top, no link
//! followed, nothing waited for, no more read than asked. In an overlay the upper half comes first, and what it hides is gone.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::OPAQUE;

/// What is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    Bytes(Vec<u8>),
    Absent,
    Directory,
    /// A link, a pipe, a socket, or one of these on the way.
    NoFile,
    TooLarge,
}

/// The same directory in both halves; a plain copy has one.
struct Halves {
    upper: Option<OwnedFd>,
    lower: Option<OwnedFd>,
}

enum Entry {
    Absent,
    Hidden,
    Dir(OwnedFd),
    File(OwnedFd),
    Other,
}

/// The file of this path in the view of the two halves.
pub fn read(upper: &Path, lower: Option<&Path>, path: &str, most: u64) -> io::Result<Seen> {
    let mut here = Halves {
        upper: Some(open(CWD, upper, OFlags::DIRECTORY)?),
        lower: lower
            .map(|lower| open(CWD, lower, OFlags::DIRECTORY))
            .transpose()?,
    };
    let is_merged = lower.is_some();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let (entry, below) = here.entry(part, is_merged)?;
        match entry {
            Entry::Absent | Entry::Hidden => return Ok(Seen::Absent),
            Entry::Other => return Ok(Seen::NoFile),
            Entry::Dir(_) if is_last => return Ok(Seen::Directory),
            Entry::File(file) if is_last => return bytes(file, most),
            Entry::File(_) => return Ok(Seen::Absent),
            Entry::Dir(dir) => {
                here = Halves {
                    upper: Some(dir),
                    lower: below,
                }
            }
        }
    }
    Ok(Seen::Absent)
}

impl Halves {
    /// What the view has of this name, and what of a directory shows through from below.
    fn entry(&self, name: &str, is_merged: bool) -> io::Result<(Entry, Option<OwnedFd>)> {
        let below = || match &self.lower {
            Some(dir) => entry(dir, name, false),
            None => Ok(Entry::Absent),
        };
        let above = match &self.upper {
            Some(dir) => entry(dir, name, is_merged)?,
            None => Entry::Absent,
        };
        match above {
            Entry::Absent => Ok((below()?, None)),
            Entry::Dir(dir) if is_merged && !is_opaque(&dir)? => match below()? {
                Entry::Dir(below) => Ok((Entry::Dir(dir), Some(below))),
                _ => Ok((Entry::Dir(dir), None)),
            },
            other => Ok((other, None)),
        }
    }
}

fn entry(dir: &OwnedFd, name: &str, may_hide: bool) -> io::Result<Entry> {
    let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Entry::Absent),
        stat => stat?,
    };
    let (flags, wanted) = match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice if may_hide && stat.st_rdev == 0 => return Ok(Entry::Hidden),
        FileType::Directory => (OFlags::DIRECTORY, FileType::Directory),
        FileType::RegularFile => (OFlags::empty(), FileType::RegularFile),
        _ => return Ok(Entry::Other),
    };
    let opened = match open(dir, name, flags) {
        // It was another a moment ago.
        Err(Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::NOENT) => return Ok(Entry::Other),
        opened => opened?,
    };
    let kind = FileType::from_raw_mode(fstat(&opened)?.st_mode);
    Ok(match kind {
        FileType::Directory if kind == wanted => Entry::Dir(opened),
        FileType::RegularFile if kind == wanted => Entry::File(opened),
        _ => Entry::Other,
    })
}

fn open(dir: impl AsFd, name: impl rustix::path::Arg, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    openat(dir, name, flags | more, Mode::empty())
}

fn is_opaque(dir: &OwnedFd) -> io::Result<bool> {
    let mut value = [0u8; 16];
    match rustix::fs::fgetxattr(dir, OPAQUE, &mut value[..]) {
        Ok(length) => Ok(&value[..length] == b"y"),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// All of a file, if it is no longer than that.
fn bytes(file: OwnedFd, most: u64) -> io::Result<Seen> {
    let mut bytes = Vec::new();
    File::from(file).take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Ok(Seen::TooLarge),
        false => Ok(Seen::Bytes(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for half in ["upper", "lower"] {
                fs::create_dir(place.0.path().join(half)).unwrap();
            }
            place
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn at(&self, path: &str) -> std::path::PathBuf {
            self.0.path().join(path)
        }

        fn merged(&self, path: &str) -> Seen {
            read(&self.at("upper"), Some(&self.at("lower")), path, 16).unwrap()
        }

        fn plain(&self, path: &str) -> Seen {
            read(&self.at("upper"), None, path, 16).unwrap()
        }
    }

    fn text(text: &str) -> Seen {
        Seen::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn what_lies_above_comes_first_and_what_is_only_below_shows_through() {
        let place = Place::new();
        place.put("lower/a/x", "below");
        place.put("lower/a/y", "below");
        place.put("upper/a/x", "above");
        assert_eq!(place.merged("a/x"), text("above"));
        assert_eq!(place.merged("a/y"), text("below"));
        assert_eq!(place.plain("a/y"), Seen::Absent);
        assert_eq!(place.merged("a"), Seen::Directory);
        assert_eq!(place.merged("a/z"), Seen::Absent);
        assert_eq!(
            place.merged("a/x/z"),
            Seen::Absent,
            "a file has nothing below it"
        );
        place.put("upper/b", "a file above a directory");
        place.put("lower/b/x", "below");
        assert_eq!(place.merged("b/x"), Seen::Absent);
    }

    #[test]
    fn what_the_kernel_hides_is_gone() {
        let place = Place::new();
        place.put("lower/a/x", "below");
        place.put("lower/b/x", "below");
        let whiteout = place.at("upper/a");
        if super::super::make_whiteout(&whiteout).is_ok() {
            assert_eq!(place.merged("a/x"), Seen::Absent);
            assert_eq!(place.merged("a"), Seen::Absent);
            assert_eq!(
                place.plain("a"),
                Seen::NoFile,
                "in a plain copy it is a device"
            );
        }
        fs::create_dir(place.at("upper/b")).unwrap();
        assert_eq!(place.merged("b/x"), text("below"));
        super::super::make_opaque(&place.at("upper/b")).unwrap();
        assert_eq!(place.merged("b/x"), Seen::Absent);
    }

    #[test]
    fn links_pipes_and_large_files_are_not_read() {
        let place = Place::new();
        place.put("upper/dir/file", "text");
        place.put("upper/large", "more than sixteen bytes of text");
        symlink("dir", place.at("upper/link")).unwrap();
        symlink("link", place.at("upper/dir/link")).unwrap();
        rustix::fs::mknodat(
            CWD,
            place.at("upper/pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(place.plain("dir/file"), text("text"));
        for path in ["link", "link/file", "dir/link", "pipe"] {
            assert_eq!(place.plain(path), Seen::NoFile, "{path}");
            assert_eq!(place.merged(path), Seen::NoFile, "{path}");
        }
        assert_eq!(place.plain("large"), Seen::TooLarge);
        let sparse = File::create(place.at("upper/sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert_eq!(place.plain("sparse"), Seen::TooLarge);
    }
}
