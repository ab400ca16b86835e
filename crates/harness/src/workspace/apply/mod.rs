//! Putting a verified patch into the work tree of the person who asks for it: every touched path is
//! proven to be what the run started from, results are made aside, and each is put in place by a
//! rename. Nothing is staged, nothing is committed, nothing dirty is touched.
//!
//! - this file: looks, and the way in; `place.rs` one place of a work tree; `work_form.rs` files that
//!   are not their blobs

pub(in crate::workspace) mod place;
pub(in crate::workspace) mod work_form;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{Entry, Tree};

use crate::host;
use crate::host::programs::Program;
use crate::supervise::cancel::Cancel;
use crate::workspace::git::{GitError, HarnessRepo, SourceError, SourceRepo};
use crate::workspace::on_disk;

use place::{fill, is_as, make_parent, remove_empty_parents};
use work_form::Blobs;

/// Why a patch was not put into a work tree. Nothing was changed unless it says so.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Repository(#[from] SourceError),
    #[error("the commit this patch was made on is not in this repository")]
    OtherRepository(#[source] GitError),
    #[error("its path leads to {} now, and the run copied another one", .0.display())]
    Elsewhere(PathBuf),
    #[error("git has unfinished work here: {0}")]
    Unfinished(String),
    #[error("not as the run found it: {0}")]
    Changed(String),
    #[error("another `cto apply` is at work here")]
    Busy,
    #[error("it was interrupted; every path is as it was before")]
    Interrupted,
    #[error("the patch does not apply to what the run started from")]
    Patch(#[source] GitError),
    #[error("{path} could not be written; every path is as it was before")]
    Write { path: TreePath, source: io::Error },
    #[error("{path} could not be written, and these could not be put back: {stuck}")]
    Torn {
        path: TreePath,
        stuck: String,
        source: io::Error,
    },
    #[error("a private copy could not be made")]
    Aside(#[source] io::Error),
}

/// A patch that would go in as it stands.
pub struct Ready {
    pub top: PathBuf,
    /// The same directory as it is held open: whatever becomes of its path, this one is changed.
    held: PathBuf,
    aside: PathBuf,
    before: Tree,
    after: Tree,
    paths: BTreeSet<TreePath>,
    /// Every path already is what it would become.
    pub is_applied: bool,
    /// Held from the first look to the last rename. On the directory itself: nothing of ours lies
    /// in the tree.
    _lock: fs::File,
}

/// What to apply, and where.
pub struct Order<'a> {
    pub git: &'a Program,
    pub repository: &'a Path,
    /// Of the path of the repository that was copied, where the patch may go into no other.
    pub only: Option<Digest>,
    /// Of whoever asks, whose git has settings there.
    pub home: Option<&'a Path>,
    /// The tree the run started from, as git names it.
    pub tree: &'a str,
    pub patch: &'a Path,
    pub paths: BTreeSet<TreePath>,
    /// A private directory of ours.
    pub aside: &'a Path,
}

/// Checks everything and makes the results aside. Only reads the repository.
pub fn prepare(order: Order<'_>) -> Result<Ready, ApplyError> {
    let ours = order.aside.join("ours");
    host::make_private_dir(&ours).map_err(ApplyError::Aside)?;
    let source = SourceRepo::open(order.git, order.repository, &ours, order.home)?;
    let lock = fs::File::open(&source.top).map_err(ApplyError::Aside)?;
    let held = PathBuf::from(format!("/proc/self/fd/{}", lock.as_raw_fd()));
    // Its path without links, and the one that was asked for.
    let path = fs::read_link(&held).map_err(ApplyError::Aside)?;
    let is_it = |only: Digest| Digest::of(path.as_os_str().as_bytes()) == only;
    if path != source.top || !order.only.is_none_or(is_it) {
        return Err(ApplyError::Elsewhere(path));
    }
    match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(ApplyError::Busy),
        locked => locked.map_err(|error| ApplyError::Aside(error.into()))?,
    }
    let unfinished = source.unfinished();
    if !unfinished.is_empty() {
        return Err(ApplyError::Unfinished(unfinished.join(", ")));
    }
    let (old, new) = (order.aside.join("before"), order.aside.join("after"));
    let mut before = Tree::new();
    for dir in [&old, &new] {
        host::make_private_dir(dir).map_err(ApplyError::Aside)?;
        let wanted = |path: &TreePath| order.paths.contains(path);
        let mut take = |path: &TreePath, kind, content: &mut dyn io::Read| {
            before.insert(
                path.clone(),
                on_disk::write_entry(dir, path, kind, content)?,
            );
            Ok(())
        };
        source
            .files_of(order.tree, &wanted, &mut take)
            .map_err(ApplyError::OtherRepository)?;
    }
    let keeper = order.aside.join("harness.git");
    let repo = HarnessRepo::init(order.git, &keeper, source.format).map_err(ApplyError::Patch)?;
    repo.apply(&new, &[order.patch])
        .map_err(ApplyError::Patch)?;
    let after = on_disk::walk(&new).map_err(ApplyError::Aside)?.tree;
    let blobs = Blobs {
        before: (&old, before),
        after: (&new, after),
        paths: &order.paths,
    };
    let (before, after) = work_form::settle(&source, &repo, blobs)?;
    let is_applied = order
        .paths
        .iter()
        .all(|path| is_as(&held, path, after.get(path)));
    let (top, aside) = (source.top.clone(), order.aside.to_owned());
    let ready = Ready {
        top,
        held,
        aside,
        before,
        after,
        paths: order.paths,
        is_applied,
        _lock: lock,
    };
    if is_applied {
        return Ok(ready);
    }
    let mut changed: BTreeSet<TreePath> = source
        .dirty_among(&ready.paths)
        .map_err(SourceError::from)?
        .into_iter()
        .collect();
    changed.extend(
        ready
            .paths
            .iter()
            .filter(|path| !ready.is_as_before(path))
            .cloned(),
    );
    if !changed.is_empty() {
        return Err(ApplyError::Changed(names(&changed)));
    }
    Ok(ready)
}

fn names(paths: &BTreeSet<TreePath>) -> String {
    const SHOWN: usize = 10;
    let more = paths.len().saturating_sub(SHOWN);
    let first = paths
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        format!("{first} and {more} more")
    } else {
        first
    }
}

impl Ready {
    pub fn paths(&self) -> &BTreeSet<TreePath> {
        &self.paths
    }

    /// Is this path what the run started from? Where files go, a directory may come, and the other
    /// way round.
    fn is_as_before(&self, path: &TreePath) -> bool {
        let place = on_disk::locate(&self.held, path);
        let entry = self.before.get(path);
        if entry.is_some() || is_as(&self.held, path, None) {
            return is_as(&self.held, path, entry);
        }
        let goes = |path: &TreePath| {
            self.before.contains_key(path)
                && !self.after.contains_key(path)
                && is_as(&self.held, path, self.before.get(path))
        };
        let above = place
            .ancestors()
            .skip(1)
            .take_while(|dir| *dir != self.held)
            .map(|dir| relative(&self.held, dir));
        if above.into_iter().any(|parent| goes(&parent)) {
            return true;
        }
        let below = on_disk::walk(&place)
            .map(|walked| walked.tree)
            .unwrap_or_default();
        place.is_dir()
            && !below.is_empty()
            && below.keys().all(|name| {
                goes(&TreePath::new(
                    [path.as_bytes(), b"/", name.as_bytes()].concat(),
                ))
            })
    }

    /// Puts every result in place; on the first failure, or when asked to stop, everything is put
    /// back.
    pub fn apply(&self, cancel: &Cancel) -> Result<(), ApplyError> {
        let new = self.aside.join("after");
        let mut done: Vec<Done<'_>> = Vec::new();
        // Removals first: a file may have become a directory.
        let (kept, gone): (Vec<_>, Vec<_>) = self
            .paths
            .iter()
            .partition(|path| self.after.contains_key(*path));
        for path in gone.into_iter().chain(kept) {
            if cancel.requested() {
                let stop = io::Error::from(io::ErrorKind::Interrupted);
                return Err(match self.put_back(&done, path, stop) {
                    ApplyError::Write { .. } => ApplyError::Interrupted,
                    torn => torn,
                });
            }
            let was = fs::symlink_metadata(on_disk::locate(&self.held, path)).ok();
            let put = match is_as(&self.held, path, self.before.get(path)) {
                true => put(&self.held, path, &new, self.after.get(path), was.as_ref()),
                false => Err(io::Error::other("it changed a moment ago")),
            };
            if let Err(source) = put {
                return Err(self.put_back(&done, path, source));
            }
            done.push(Done { path, was });
        }
        Ok(())
    }

    fn put_back(&self, done: &[Done<'_>], path: &TreePath, source: io::Error) -> ApplyError {
        let old = self.aside.join("before");
        let stuck: Vec<String> = done
            .iter()
            .rev()
            .filter(|Done { path, was }| {
                // Only what is still ours is taken back.
                !is_as(&self.held, path, self.after.get(*path))
                    || put(&self.held, path, &old, self.before.get(*path), was.as_ref()).is_err()
            })
            .map(|done| done.path.to_string())
            .collect();
        match stuck.is_empty() {
            true => ApplyError::Write {
                path: path.clone(),
                source,
            },
            false => ApplyError::Torn {
                path: path.clone(),
                stuck: stuck.join(", "),
                source,
            },
        }
    }
}

/// A path that was changed, and what it was before.
struct Done<'a> {
    path: &'a TreePath,
    was: Option<fs::Metadata>,
}

fn relative(top: &Path, place: &Path) -> TreePath {
    TreePath::new(
        place
            .strip_prefix(top)
            .unwrap_or(place)
            .as_os_str()
            .as_bytes(),
    )
}

/// Makes one path what `from` holds of it, or removes it. `like` is the file whose owner and mode
/// it takes over.
fn put(
    top: &Path,
    path: &TreePath,
    from: &Path,
    entry: Option<&Entry>,
    like: Option<&fs::Metadata>,
) -> io::Result<()> {
    let place = on_disk::locate(top, path);
    let Some(entry) = entry else {
        fs::remove_file(&place)?;
        remove_empty_parents(top, &place);
        return Ok(());
    };
    make_parent(top, &place)?;
    let parent = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = host::random_name(12).map_err(|failure| io::Error::other(failure.what))?;
    let temporary = parent.join(format!(".cto-apply-{name}"));
    let like = like.filter(|meta| meta.is_file());
    let made = fill(&temporary, &on_disk::locate(from, path), like, entry.kind)
        .and_then(|()| fs::rename(&temporary, &place));
    if made.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    made
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    /// Two committed files and a patch that changes both, ready to go in.
    fn ready(dir: &Path) -> Ready {
        let (top, aside, patch) = (dir.join("repo"), dir.join("aside"), dir.join("patch.diff"));
        fs::create_dir(&top).unwrap();
        let git = |args: &[&str]| {
            let who = [
                "-c",
                "user.name=owner",
                "-c",
                "user.email=owner@example.invalid",
            ];
            let output = Command::new("git")
                .args(who)
                .args(args)
                .current_dir(&top)
                .output()
                .unwrap();
            assert!(output.status.success(), "git {args:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "-q"]);
        ["a", "b"]
            .iter()
            .for_each(|name| fs::write(top.join(name), "old\n").unwrap());
        fs::set_permissions(top.join("a"), Permissions::from_mode(0o600)).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "start"]);
        ["a", "b"]
            .iter()
            .for_each(|name| fs::write(top.join(name), "new\n").unwrap());
        fs::write(&patch, git(&["diff", "--full-index"])).unwrap();
        git(&["checkout", "-q", "."]);
        fs::set_permissions(top.join("a"), Permissions::from_mode(0o600)).unwrap();
        let tree = git(&["rev-parse", "HEAD^{tree}"]);
        let home = host::Home {
            root: dir.join("state"),
            runs: dir.join("runs"),
        };
        let program = host::programs::git(&host::Env::default(), &home);
        let paths = ["a", "b"].map(TreePath::new).into();
        let order = Order {
            git: &program.unwrap(),
            repository: &top,
            only: None,
            home: None,
            tree: tree.trim(),
            patch: &patch,
            paths,
            aside: &aside,
        };
        prepare(order).unwrap()
    }

    fn text(ready: &Ready, name: &str) -> String {
        fs::read_to_string(ready.top.join(name)).unwrap()
    }

    #[test]
    fn a_path_that_changed_a_moment_ago_puts_the_others_back() {
        let dir = tempfile::tempdir().unwrap();
        let ready = ready(dir.path());
        fs::write(ready.top.join("b"), "the owner was faster\n").unwrap();
        let refused = ready.apply(&Cancel::never().unwrap());
        assert!(
            matches!(refused, Err(ApplyError::Write { .. })),
            "{refused:?}"
        );
        assert_eq!(
            (text(&ready, "a"), text(&ready, "b")),
            ("old\n".into(), "the owner was faster\n".into())
        );
        assert_eq!(
            fs::metadata(ready.top.join("a"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600,
            "its mode came back too"
        );
        assert_eq!(
            fs::read_dir(&ready.top).unwrap().count(),
            3,
            "nothing of ours is left"
        );
    }

    #[test]
    fn a_signal_stops_it_with_everything_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (ready, cancel) = (ready(dir.path()), Cancel::never().unwrap());
        cancel.pretend(2).unwrap();
        assert!(matches!(ready.apply(&cancel), Err(ApplyError::Interrupted)));
        assert_eq!(
            (text(&ready, "a"), text(&ready, "b")),
            ("old\n".into(), "old\n".into())
        );
        ready.apply(&Cancel::never().unwrap()).unwrap();
        assert_eq!(
            (text(&ready, "a"), text(&ready, "b")),
            ("new\n".into(), "new\n".into())
        );
    }
}
