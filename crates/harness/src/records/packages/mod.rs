//! The packages around a program: pinned when it is admitted, compared on every run, looked at once
//! more when it has ended.
//!
//! - this file: pin, check, and what changed since; `walk.rs` one look, and the content of a file
//! - `outward.rs` what leads out of them, and is refused
//! - `known.rs` contents by what the kernel says of files, so that only what changed is read
//!
//! Nothing is run and no link is followed.

mod known;
mod outward;
#[cfg(test)]
mod packages_tests;
mod walk;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use cto_core::containment::mounts::Id;
use cto_core::gate::PinnedPackages;
use cto_core::records::packages::{
    Entry, MOST_BYTES, MOST_ENTRIES, first_difference, packages_digest,
};
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;

use self::known::{Head, Known, Place};
use self::walk::{Seen, Top, fingerprint};
use crate::host::{Home, workers};

/// Why packages cannot be pinned or compared.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("its packages are more than {0} files, which is more than is pinned")]
    TooMany(u64),
    #[error("its packages hold more than {0} bytes, which is more than is pinned")]
    TooLarge(u64),
    #[error("{0} in its packages cannot be read: {1}")]
    Unreadable(TreePath, #[source] io::Error),
    #[error("{0} in its packages is neither a file, a directory nor a link")]
    Odd(TreePath),
    #[error(
        "{0} in its packages leads out of them, to what nobody pinned; install it without links to other places"
    )]
    Outward(TreePath),
    #[error(
        "its environment takes packages of the system, which nobody pinned; make one without --system-site-packages"
    )]
    SystemPackages,
    #[error("the Python that its environment was made from cannot be relied on: {0}")]
    ForeignPython(String),
    #[error("{0} in its packages changed while it was read")]
    Unsteady(TreePath),
}

/// What a tree may hold at most.
#[derive(Clone, Copy)]
pub struct Limits {
    pub entries: u64,
    pub bytes: u64,
}

const LIMITS: Limits = Limits {
    entries: MOST_ENTRIES,
    bytes: MOST_BYTES,
};

/// A tree that was compared with what is admitted.
pub struct Checked {
    pub sha256: Digest,
    pub state: Digest,
    /// The directory that was looked at.
    pub id: Id,
    /// The first path that differs, where the admitted tree is still known.
    pub difference: Option<String>,
}

/// The digest that an admission pins. Everything that is not known is read.
pub fn pin(home: &Home, root: &Path) -> Result<Digest, Problem> {
    let look = Look::take(home, root, LIMITS)?;
    outward::look(root, &look.seen)?;
    let (contents, sha256) = look.contents(look.place.read().as_ref())?;
    look.remember(sha256, &contents);
    Ok(sha256)
}

/// Compares a tree with the admitted digest. Where the kernel says the same of every file as when it
/// was read, nothing is read.
pub fn check(home: &Home, root: &Path, admitted: Digest) -> Result<Checked, Problem> {
    let look = Look::take(home, root, LIMITS)?;
    outward::look(root, &look.seen)?;
    let state = look.state;
    let done = |sha256, difference| Checked {
        sha256,
        state,
        id: look.id(),
        difference,
    };
    let head = look.place.head();
    if head.is_some_and(|head| head.state == Some(state) && head.sha256 == admitted) {
        return Ok(done(admitted, None));
    }
    let known = look.place.read();
    let (contents, sha256) = look.contents(known.as_ref())?;
    if sha256 == admitted {
        look.remember(sha256, &contents);
        return Ok(done(sha256, None));
    }
    // What is known stays what was admitted: the next refusal can say where they differ, too.
    let before = known.and_then(|known| known.entries());
    let before = before.filter(|entries| packages_digest(entries) == admitted);
    let difference = before.and_then(|before| first_difference(&before, &look.entries(&contents)));
    Ok(done(sha256, difference))
}

/// What is not as it was when a gate let these packages pass: every write, even one that was taken
/// back, leaves another time of change.
pub fn changed_since(home: &Home, then: &PinnedPackages) -> Option<String> {
    let look = match Look::take(home, &then.root, LIMITS) {
        Ok(look) => look,
        Err(problem) => return Some(problem.to_string()),
    };
    if look.state != then.state {
        let known = look.place.read().unwrap_or_default();
        let what = look.first_unlike(&known);
        return Some(format!("{what} in its packages changed while it ran"));
    }
    // What was young then could have changed within one tick of the clock: it is read again.
    let head = look.place.head();
    if head.is_some_and(|head| head.state == Some(then.state)) {
        return None;
    }
    match check(home, &then.root, then.sha256) {
        Ok(now) if now.sha256 == then.sha256 && now.state == then.state => None,
        Ok(now) => Some(
            now.difference
                .unwrap_or_else(|| "its packages changed while it ran".into()),
        ),
        Err(problem) => Some(problem.to_string()),
    }
}

/// One look at a tree.
struct Look {
    began: i64,
    top: Top,
    seen: Vec<Seen>,
    state: Digest,
    place: Place,
}

impl Look {
    fn take(home: &Home, root: &Path, limits: Limits) -> Result<Self, Problem> {
        let began = known::now();
        let top = Top::open(root)?;
        let seen = top.walk(limits)?;
        Ok(Self {
            began,
            state: fingerprint(&seen),
            place: Place::of(home, root),
            top,
            seen,
        })
    }

    /// The content of every entry and the digest of all: known by its state, or read.
    fn contents(&self, known: Option<&Known>) -> Result<(Vec<Digest>, Digest), Problem> {
        let nothing = Digest::of(b"");
        let content = |seen: &Seen| match known.and_then(|known| known.content(seen)) {
            _ if seen.kind().is_dir() => Ok(nothing),
            Some(content) => Ok(content),
            None => self.top.content(seen),
        };
        let read = workers::for_all(workers::cores(), &self.seen, content);
        let contents = read.into_iter().collect::<Result<Vec<_>, _>>()?;
        let sha256 = packages_digest(&self.entries(&contents));
        Ok((contents, sha256))
    }

    /// The top, as it was opened.
    fn id(&self) -> Id {
        let top = self.seen.first().map(|top| top.state);
        top.map_or(Id::NONE, |state| Id {
            device: state.device,
            inode: state.inode,
        })
    }

    fn entries(&self, contents: &[Digest]) -> Vec<Entry> {
        let both = self.seen.iter().zip(contents);
        both.map(|(seen, content)| known::entry(seen.state.mode, &seen.path, *content))
            .collect()
    }

    fn remember(&self, sha256: Digest, contents: &[Digest]) {
        let head = Head {
            state: Some(self.state),
            sha256,
        };
        self.place.write(self.began, &head, &self.seen, contents);
    }

    /// The first entry that is not as it is known; a directory only if nothing in it says more.
    fn first_unlike(&self, known: &Known) -> String {
        let other = |seen: &&Seen| !known.has(seen);
        let files = || self.seen.iter().filter(|seen| !seen.kind().is_dir());
        let here: BTreeSet<&[u8]> = self.seen.iter().map(|seen| seen.path.as_slice()).collect();
        let gone = || {
            let mut before = known.entries().unwrap_or_default().into_iter();
            before.find(|entry| !here.contains(entry.path.as_bytes()))
        };
        let named = |seen: &Seen| TreePath::new(seen.path.as_slice());
        let found = files().find(other).map(named);
        let found = found.or_else(|| gone().map(|entry| entry.path));
        found
            .or_else(|| self.seen.iter().find(other).map(named))
            .filter(|path| !path.as_bytes().is_empty())
            .map_or_else(|| "something".to_owned(), |path| path.to_string())
    }
}
