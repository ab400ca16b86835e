//! What is known of packages from an earlier look: the content of every file, by what the kernel said
//! of it then. It lies in the state home, which no jail is shown, and is believed only if nobody but
//! root and the operator could have written it. Without it everything is read again.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cto_core::records::packages::{Entry, Kind};
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use rustix::fs::FileType;

use super::walk::{Seen, State};
use crate::host::{Home, files, make_private_dir};
use crate::records::open_believed;

const TAG: &str = "cto-packages-seen/1";
/// Tag, directory and two digests.
const MAX_HEAD: u64 = 8 * 1024;
const MAX_KNOWN: u64 = 512 << 20;
/// In place of a digest of the state while a part of it is young.
const NOT_SETTLED: &str = "-";
/// A file that changed less than this before it was read could change again without a new time.
const SETTLED_SECONDS: i64 = 2;

/// The file about one directory.
pub struct Place {
    path: PathBuf,
    root: Vec<u8>,
}

/// An earlier look, as a whole.
pub struct Head {
    /// The state of all of it; none while it was young.
    pub state: Option<Digest>,
    pub sha256: Digest,
}

/// The same, entry by entry.
#[derive(Default)]
pub struct Known {
    /// State and path as one text, to content and whether that is believed by the state alone.
    contents: BTreeMap<Vec<u8>, (Digest, bool)>,
}

impl Place {
    pub fn of(home: &Home, root: &Path) -> Self {
        let root = root.as_os_str().as_bytes().to_vec();
        let name = Digest::tagged(TAG, &root).to_hex();
        Self {
            path: home.cache().join("packages").join(name),
            root,
        }
    }

    pub fn head(&self) -> Option<Head> {
        let mut bytes = Vec::new();
        let file = open_believed(&self.path).ok()?;
        file.take(MAX_HEAD).read_to_end(&mut bytes).ok()?;
        self.split(&bytes).map(|(head, _)| head)
    }

    pub fn read(&self) -> Option<Known> {
        let file = open_believed(&self.path).ok()?;
        let bytes = files::read_open(file, MAX_KNOWN).ok()?;
        let (_, lines) = self.split(&bytes)?;
        let mut known = Known::default();
        for line in lines
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let (sha256, rest) = line.split_at_checked(64)?;
            let (settled, key) = rest.split_at_checked(3)?;
            let sha256 = std::str::from_utf8(sha256).ok()?.parse().ok()?;
            known
                .contents
                .insert(key.to_owned(), (sha256, settled == b" s "));
        }
        Some(known)
    }

    /// The head, if it is about this directory, and all after it.
    fn split<'b>(&self, bytes: &'b [u8]) -> Option<(Head, &'b [u8])> {
        let mut parts = bytes.splitn(5, |byte| *byte == 0);
        let (tag, root) = (parts.next()?, parts.next()?);
        let text = |part: &'b [u8]| std::str::from_utf8(part).ok();
        let (state, sha256) = (text(parts.next()?)?, text(parts.next()?)?);
        (tag == TAG.as_bytes() && root == self.root).then_some(())?;
        let state = match state {
            NOT_SETTLED => None,
            digest => Some(digest.parse().ok()?),
        };
        let sha256 = sha256.parse().ok()?;
        Some((Head { state, sha256 }, parts.next().unwrap_or_default()))
    }

    /// Remembers a look that began at `began`. Whoever cannot reads it all again the next time.
    pub fn write(&self, began: i64, head: &Head, seen: &[Seen], contents: &[Digest]) {
        let _ = self.put(began, head, seen, contents);
    }

    fn put(&self, began: i64, head: &Head, seen: &[Seen], contents: &[Digest]) -> io::Result<()> {
        let all_settled = seen.iter().all(|one| is_settled(&one.state, began));
        let state = head.state.filter(|_| all_settled);
        let mut out = Vec::with_capacity(seen.len() * 192);
        let state = state.map_or_else(|| NOT_SETTLED.to_owned(), |digest| digest.to_hex());
        for part in [TAG.as_bytes(), &self.root, state.as_bytes()] {
            out.extend_from_slice(part);
            out.push(0);
        }
        out.extend_from_slice(head.sha256.to_hex().as_bytes());
        out.push(0);
        for (one, content) in seen.iter().zip(contents) {
            let settled = match is_settled(&one.state, began) {
                true => " s ",
                false => " y ",
            };
            out.extend_from_slice(content.to_hex().as_bytes());
            out.extend_from_slice(settled.as_bytes());
            out.extend_from_slice(&key(one));
            out.push(0);
        }
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        make_private_dir(dir)?;
        let part = self
            .path
            .with_extension(format!("{}.part", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        file.write_all(&out)?;
        fs::rename(&part, &self.path)
    }
}

impl Known {
    /// The content of a file that was read when the kernel said the same of it.
    pub fn content(&self, seen: &Seen) -> Option<Digest> {
        let (sha256, settled) = self.contents.get(&key(seen))?;
        settled.then_some(*sha256)
    }

    /// Was it there, as it is?
    pub fn has(&self, seen: &Seen) -> bool {
        self.contents.contains_key(&key(seen))
    }

    /// The tree as it was, in the order of paths.
    pub fn entries(&self) -> Option<Vec<Entry>> {
        let entry = |(key, (sha256, _)): (&Vec<u8>, &(Digest, bool))| {
            let (mode, path) = split_key(key)?;
            Some(entry(mode, path, *sha256))
        };
        let mut entries: Vec<Entry> = self.contents.iter().map(entry).collect::<Option<_>>()?;
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Some(entries)
    }
}

/// An entry as it is pinned.
pub fn entry(mode: u32, path: &[u8], content: Digest) -> Entry {
    let (kind, mode) = match FileType::from_raw_mode(mode) {
        FileType::Directory => (Kind::Directory, mode & 0o7777),
        FileType::Symlink => (Kind::Link(content), 0),
        _ => (Kind::File(content), mode & 0o7777),
    };
    Entry {
        path: TreePath::new(path),
        mode,
        kind,
    }
}

/// State and path as one text: it begins with the mode, and the path is all after the first space.
fn key(seen: &Seen) -> Vec<u8> {
    let state = &seen.state;
    let mut key = format!(
        "{:o}.{:x}.{:x}.{}.{}.{}.{}.{} ",
        state.mode,
        state.device,
        state.inode,
        state.size,
        state.modified.0,
        state.modified.1,
        state.changed.0,
        state.changed.1
    )
    .into_bytes();
    key.extend_from_slice(&seen.path);
    key
}

fn split_key(key: &[u8]) -> Option<(u32, &[u8])> {
    let at = key.iter().position(|byte| *byte == b' ')?;
    let (state, path) = key.split_at_checked(at)?;
    let mode = std::str::from_utf8(state).ok()?.split('.').next()?;
    Some((u32::from_str_radix(mode, 8).ok()?, path.get(1..)?))
}

fn is_settled(state: &State, began: i64) -> bool {
    state.changed.0.saturating_add(SETTLED_SECONDS) < began
}

/// The present, in seconds.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}
