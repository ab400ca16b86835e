//! What is looked at in a repository before something lands in it. Nothing here writes, and no git of the
//! target's own configuration runs but to read that configuration and its refs.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use cto_core::values::paths::TreePath;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::refusal::{self, Facts};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::places::Places;
use super::{Clean, LandingError, Order, Target, lock};
use crate::host::files;
use crate::workspace::git::{OperatorsExcludes, OwnOutput, Settings, SourceRepo, UNFINISHED};
use crate::workspace::on_disk;

/// For so long another git's work is waited for.
const WAIT: Duration = Duration::from_secs(2);
/// Git takes an older one for left behind.
const OLDEST_GC: Duration = Duration::from_secs(12 * 60 * 60);
const INDEX_LOCK: &str = "index.lock";

pub struct Look<'a> {
    pub order: &'a Order<'a>,
    pub target: &'a Target,
    pub settings: &'a Settings,
    pub paths: &'a [TreePath],
    /// Of these paths, names that HEAD does not have.
    pub added: &'a [TreePath],
    pub submodules: Vec<TreePath>,
    /// Once it is known what the work tree should hold.
    pub places: Option<&'a Places>,
    pub branch: &'a str,
}

impl Look<'_> {
    /// Facts for one way of landing; what the other one would ask is not looked at.
    pub fn facts(self) -> Result<Facts, LandingError> {
        let (source, merge) = (&self.target.source, self.order.way == Way::Merge);
        wait_for(|| !is_locked(source) || !merge);
        wait_for(|| cleaning_up(source).is_none());
        let mut facts = Facts {
            head: source.head().to_owned(),
            branch: head_branch(source.git_dir()),
            foreign: foreign(source),
            maintenance: cleaning_up(source),
            partial: self.settings.is_partial(),
            strange_refs: has_strange_refs(source),
            not_writable: self.not_writable(),
            submodules: self.submodules.clone(),
            ..Facts::default()
        };
        match merge {
            false => facts.taken = source.taken(self.branch)?,
            true => self.of_work_tree(&mut facts)?,
        }
        Ok(facts)
    }

    fn of_work_tree(self, facts: &mut Facts) -> Result<(), LandingError> {
        let source = &self.target.source;
        facts.locked = is_locked(source);
        facts.unfinished = source.unfinished();
        facts.unfinished.retain(|name| name != INDEX_LOCK);
        facts.sparse = self.settings.is_sparse();
        facts.shared_with = shared_with(source, facts.branch.as_deref());
        let attributes = source.attributes(self.paths)?;
        facts.filtered = attributes.filtered;
        facts.encoded = attributes.encoded;
        facts.with_keywords = attributes.with_keywords;
        if self.settings.ignores_case() && !self.added.is_empty() {
            facts.case_clashes = refusal::case_clashes(self.added, &source.tracked()?);
        }
        if facts.locked {
            // Whatever else it is, it is being changed.
            return Ok(());
        }
        facts.dirty = source.dirty_among(self.paths)?;
        if let Some(places) = self.places {
            facts.behind_links = places.behind_links();
            facts.dirty.extend(places.not_old());
        }
        if self.order.clean == Clean::Everything {
            let home = self.order.users_home;
            let excludes =
                home.and_then(|home| OperatorsExcludes::ask(self.order.git, home).answer());
            let (look, _) = source.look(excludes.as_deref(), OwnOutput::LeftOut)?;
            facts.dirty.extend(look.status.first);
        }
        facts.dirty.sort();
        facts.dirty.dedup();
        let behind = |path: &TreePath| facts.behind_links.contains(path);
        facts.dirty.retain(|path| !behind(path));
        Ok(())
    }

    /// Directories of which something would change.
    fn not_writable(&self) -> Vec<String> {
        let source = &self.target.source;
        let objects = source.common_dir.join("objects");
        let mut dirs = vec![
            (source.git_dir().to_owned(), "the git directory"),
            (source.common_dir.join("refs"), "its refs"),
            (objects.clone(), "its objects"),
            (objects.join("pack"), "its packs"),
        ];
        if self.order.way == Way::Merge {
            let above = self.paths.iter().map(|path| {
                let place = on_disk::locate(&source.top, path);
                let mut above = place.ancestors().skip(1);
                above
                    .find(|dir| dir.is_dir())
                    .unwrap_or(&source.top)
                    .to_owned()
            });
            dirs.extend(above.map(|dir| (dir, "a directory of the work tree")));
        }
        let closed = |dir: &Path| {
            let can = accessat(
                CWD,
                dir,
                Access::WRITE_OK | Access::EXEC_OK,
                AtFlags::EACCESS,
            );
            can.is_err_and(|error| error != rustix::io::Errno::NOENT)
        };
        let mut said: Vec<String> = dirs
            .into_iter()
            .filter(|(dir, _)| closed(dir))
            .map(|(_, what)| what.to_owned())
            .collect();
        said.dedup();
        said
    }
}

/// Everything that an answer of git's about this work tree rests on, and that another may change: where it is
/// the same, so is the answer.
pub fn stamp(target: &Target, paths: &[TreePath]) -> Vec<u8> {
    let source = &target.source;
    let (own, common) = (source.git_dir(), &source.common_dir);
    let mut places: Vec<PathBuf> = ["HEAD", "config.worktree", "info/sparse-checkout", "index"]
        .iter()
        .map(|name| own.join(name))
        .collect();
    let markers = UNFINISHED.iter().filter(|name| **name != INDEX_LOCK);
    places.extend(markers.map(|name| own.join(name)));
    places.extend(["config", "info/attributes", "shallow"].map(|name| common.join(name)));
    for path in paths {
        let place = on_disk::locate(&source.top, path);
        let above = place
            .ancestors()
            .skip(1)
            .take_while(|dir| dir.starts_with(&source.top));
        places.extend(above.map(|dir| dir.join(".gitattributes")));
    }
    places.sort();
    places.dedup();
    places
        .iter()
        .flat_map(|place| crate::workspace::git::state(place))
        .collect()
}

/// The branch that HEAD stands on, by its whole name.
pub fn head_branch(git_dir: &Path) -> Option<String> {
    let head = files::read_limited(&git_dir.join("HEAD"), 4096).ok()?;
    let text = String::from_utf8(head).ok()?;
    let name = text.strip_prefix("ref: ")?.trim_end();
    name.starts_with("refs/heads/").then(|| name.to_owned())
}

/// A ref that stands for another one: moved, it would be one of its own. Such refs are never packed.
pub fn is_symbolic(source: &SourceRepo, branch: &str) -> bool {
    let head = files::read_limited(&source.common_dir.join(branch), 4096);
    head.is_ok_and(|text| text.starts_with(b"ref:"))
}

/// Refs in tables leave a word in HEAD that names nothing.
fn has_strange_refs(source: &SourceRepo) -> bool {
    head_branch(source.git_dir()).as_deref() == Some("refs/heads/.invalid")
        || fs::symlink_metadata(source.common_dir.join("reftable")).is_ok()
}

/// Files of ours among somebody else's are files they cannot change.
fn foreign(source: &SourceRepo) -> Option<u32> {
    let own = rustix::process::geteuid().as_raw();
    [&source.top, source.git_dir(), &source.common_dir as &Path]
        .into_iter()
        .filter_map(|dir| fs::metadata(dir).ok())
        .map(|meta| meta.uid())
        .find(|owner| *owner != own)
}

fn is_locked(source: &SourceRepo) -> bool {
    fs::symlink_metadata(lock::place(source.git_dir())).is_ok()
}

/// `git gc` and `git maintenance` say so while they work.
fn cleaning_up(source: &SourceRepo) -> Option<String> {
    let common = &source.common_dir;
    if fs::symlink_metadata(common.join("objects/maintenance.lock")).is_ok() {
        return Some("maintenance.lock".to_owned());
    }
    let place = common.join("gc.pid");
    let age = fs::symlink_metadata(&place)
        .and_then(|meta| meta.modified())
        .ok()?;
    let old = SystemTime::now()
        .duration_since(age)
        .is_ok_and(|age| age > OLDEST_GC);
    let said = files::read_limited(&place, 1000).unwrap_or_default();
    let text = String::from_utf8_lossy(&said).into_owned();
    let (pid, host) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let here = rustix::system::uname().nodename().to_bytes() == host.as_bytes();
    let gone = here
        && pid
            .parse::<u32>()
            .is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    (!old && !gone).then(|| "gc.pid".to_owned())
}

/// Another work tree of this repository that has the branch checked out too.
fn shared_with(source: &SourceRepo, branch: Option<&str>) -> Option<String> {
    let branch = branch?;
    let linked = fs::read_dir(source.common_dir.join("worktrees"));
    let linked = linked
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let own = source.git_dir().canonicalize().ok();
    let mut dirs = linked.chain([source.common_dir.clone()]);
    let other = |dir: &PathBuf| dir.canonicalize().ok() != own;
    let shares = |dir: &PathBuf| other(dir) && head_branch(dir).as_deref() == Some(branch);
    dirs.find(shares).map(|dir| {
        let name = dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    })
}

fn wait_for(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() && begun.elapsed() < WAIT {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Is the copy of the index that git was asked with still the index?
pub fn is_index_of(source: &SourceRepo) -> io::Result<Option<cto_core::values::digest::Digest>> {
    let digest = |path: &Path| files::scan_file(path, |_| {}).map(|file| file.sha256);
    let (copy, now) = (
        digest(&source.index_copy())?,
        digest(&source.git_dir().join("index"))?,
    );
    Ok((copy == now).then_some(copy))
}
