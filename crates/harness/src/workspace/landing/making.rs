//! The commit that would land and the files that go with it, made aside from what was verified and from
//! what HEAD holds.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::journal::{
    Deed, Held, IndexChange, Journal, PathChange, Step, Target as Whose, VERSION,
};
use cto_core::workspace::landing::message::{self, Trailers};
use cto_core::workspace::landing::refusal::{self, Reason, Refusal, Wanted};
use cto_core::workspace::tree::{FileKind, Tree};

use super::places::Places;
use super::target::{self, Look};
use super::{Change, LandingError, Order, Ready, Target, objects};
use crate::host::{self, files, repositories};
use crate::workspace::apply::work_form::{self, Blobs};
use crate::workspace::git::{Commit, Edit, HarnessRepo, NewCommit, SourceRepo, TreeEntry};
use crate::workspace::on_disk;

type Entries = BTreeMap<TreePath, TreeEntry>;

/// What changes, by the names of objects.
struct Sides {
    paths: Vec<TreePath>,
    /// What HEAD has, submodules on the way among it.
    old: Entries,
    deed: Deed,
    /// Where what comes is, for a commit that is taken back.
    back_to: Option<String>,
}

pub fn ready(order: &Order<'_>, target: Target, aside: PathBuf) -> Result<Ready, LandingError> {
    let source = &target.source;
    let settings = source.settings(order.users_home);
    let branch = branch_of(order, source)?;
    let sides = sides(order, source)?;
    let submodules = sides.old.iter().filter(|(_, entry)| entry.is_submodule());
    let look = |places, added: &[TreePath]| {
        let look = Look {
            order,
            target: &target,
            settings: &settings,
            paths: &sides.paths,
            added,
            submodules: submodules.clone().map(|(path, _)| path.clone()).collect(),
            places,
            branch: &branch,
        };
        look.facts()
    };
    let refused = |facts: &refusal::Facts| {
        let moves = order.branch.map(|name| format!("refs/heads/{name}"));
        let wanted = Wanted {
            way: order.way,
            head: order.head,
            branch: moves.as_deref().filter(|_| order.way == Way::Merge),
            paths: &sides.paths,
        };
        refusal::refusals(wanted, facts)
    };
    if sides.old.values().any(TreeEntry::is_submodule) {
        // Nothing can be made of such a path.
        return Err(LandingError::Refused(refused(&look(None, &[])?)));
    }
    let made = make(order, &target, &sides, &aside)?;
    let mut journal = journal(order, &target, &sides, &made, &branch)?;
    let places = Places::of(&target, &journal);
    let stamp = target::stamp(&target, &sides.paths);
    let added: Vec<TreePath> = sides
        .paths
        .iter()
        .filter(|path| !sides.old.contains_key(*path))
        .cloned()
        .collect();
    let mut refusals = refused(&look(Some(&places), &added)?);
    let is_landed = order.way == Way::Branch
        && source.branch_now(&branch)?.as_deref() == Some(made.commit.commit.as_str());
    refusals.retain(|refusal| !(is_landed && refusal.reason == Reason::BranchTaken));
    if !refusals.is_empty() {
        return Err(LandingError::Refused(refusals));
    }
    if order.way == Way::Merge {
        let digest = target::is_index_of(source).map_err(LandingError::Write)?;
        let old = digest.ok_or(LandingError::Moved)?;
        journal.index = Some(IndexChange { old, new: None });
    }
    // The journal says where it is by digest alone.
    repositories::remember(order.home, &source.top).map_err(LandingError::Journal)?;
    Ok(Ready {
        commit: made.commit.commit,
        tree: made.commit.tree,
        parent: source.head().to_owned(),
        branch,
        is_landed,
        top: source.top.clone(),
        store: order.home.journal(),
        pack: made.pack,
        committer: order.committer.clone(),
        stamp,
        touched: false,
        aside,
        journal,
        target,
    })
}

/// The whole name of the ref that moves.
fn branch_of(order: &Order<'_>, source: &SourceRepo) -> Result<String, LandingError> {
    match order.way {
        // Without one it is refused later, with everything else.
        Way::Merge => {
            let is = target::head_branch(source.git_dir());
            let is = is.unwrap_or_else(|| "refs/heads/none".to_owned());
            let name = is.strip_prefix("refs/heads/").unwrap_or_default();
            if target::is_symbolic(source, &is) {
                return Err(LandingError::Symbolic(name.to_owned()));
            }
            match message::is_branch_name(name) {
                true => Ok(is),
                false => Err(LandingError::Name(name.to_owned())),
            }
        }
        Way::Branch => {
            let of_run = message::branch_of_run(order.run);
            let name = order.branch.unwrap_or(&of_run);
            match message::is_branch_name(name) {
                true => Ok(format!("refs/heads/{name}")),
                false => Err(LandingError::Name(name.to_owned())),
            }
        }
    }
}

fn sides(order: &Order<'_>, source: &SourceRepo) -> Result<Sides, LandingError> {
    let missing = |what: &str| {
        LandingError::Refused(vec![Refusal {
            reason: Reason::HistoryMissing,
            detail: Some(what.to_owned()),
        }])
    };
    match &order.change {
        Change::Patch { tree, paths, .. } => {
            let paths: Vec<TreePath> = paths.iter().cloned().collect();
            let old = source.entries_at(source.tree(), &paths)?;
            if *tree != source.tree() {
                let then = source
                    .entries_at(tree, &paths)
                    .map_err(LandingError::OtherRepository)?;
                unchanged(&paths, &then, &old)?;
            }
            Ok(Sides {
                paths,
                old,
                deed: Deed::Landing,
                back_to: None,
            })
        }
        Change::Undo { commit } => {
            let tree = |revision: String| source.named(&format!("{revision}^{{tree}}"));
            let after = tree((*commit).to_owned()).ok_or_else(|| missing(commit))?;
            let before =
                tree(format!("{commit}^")).ok_or_else(|| missing("the commit before it"))?;
            if !source.leads_to(commit, source.head()) {
                return Err(missing("HEAD does not come from it"));
            }
            let paths = source.between(&before, &after)?;
            let old = source.entries_at(source.tree(), &paths)?;
            unchanged(&paths, &source.entries_at(&after, &paths)?, &old)?;
            Ok(Sides {
                paths,
                old,
                deed: Deed::Revert,
                back_to: Some(before),
            })
        }
    }
}

/// Nothing was committed to these paths since.
fn unchanged(paths: &[TreePath], then: &Entries, now: &Entries) -> Result<(), LandingError> {
    let other = |path: &&TreePath| then.get(*path) != now.get(*path);
    let changed: Vec<String> = paths
        .iter()
        .filter(other)
        .map(ToString::to_string)
        .collect();
    match changed.is_empty() {
        true => Ok(()),
        false => Err(LandingError::Changed(changed.join(", "))),
    }
}

/// The commit, and what lies in a work tree before and after it.
struct Made {
    commit: Commit,
    pack: Option<PathBuf>,
    new: Entries,
    before: Tree,
    after: Tree,
}

fn make(
    order: &Order<'_>,
    target: &Target,
    sides: &Sides,
    aside: &Path,
) -> Result<Made, LandingError> {
    let source = &target.source;
    let (old, new) = (aside.join("before"), aside.join("after"));
    for dir in [&old, &new] {
        host::make_private_dir(dir).map_err(LandingError::Aside)?;
    }
    let before = lay_out(source, source.tree(), &sides.old, &[&old, &new])?;
    let objects = source.common_dir.join("objects");
    let keeper = aside.join("harness.git");
    let repo = HarnessRepo::beside(order.git, &keeper, &objects, source.format)
        .map_err(LandingError::Patch)?;
    match (&order.change, &sides.back_to) {
        (Change::Patch { bytes, .. }, _) => {
            let patch = aside.join("patch.diff");
            std::fs::write(&patch, bytes).map_err(LandingError::Aside)?;
            repo.apply(&new, &[&patch]).map_err(LandingError::Patch)?;
        }
        (Change::Undo { .. }, Some(tree)) => {
            files::remove_tree(&new).map_err(LandingError::Aside)?;
            host::make_private_dir(&new).map_err(LandingError::Aside)?;
            let entries = source.entries_at(tree, &sides.paths)?;
            lay_out(source, tree, &entries, &[&new])?;
        }
        (Change::Undo { .. }, None) => return Err(LandingError::Nothing),
    }
    let after = on_disk::walk(&new).map_err(LandingError::Aside)?.tree;
    let strange = after.keys().find(|path| !sides.paths.contains(path));
    if before == after || strange.is_some() {
        // A patch that writes what it does not say is refused by the verifier long before.
        return Err(LandingError::Nothing);
    }
    let (commit, pack) = commit(order, source, &repo, (&new, &before, &after))?;
    let entries = repo.entries_at(&commit.tree, &sides.paths)?;
    let paths: BTreeSet<TreePath> = sides.paths.iter().cloned().collect();
    let blobs = Blobs {
        before: (&old, before),
        after: (&new, after),
        paths: &paths,
    };
    let (before, after) = match order.way {
        Way::Merge => work_form::settle(source, &repo, blobs)?,
        Way::Branch => (blobs.before.1, blobs.after.1),
    };
    Ok(Made {
        commit,
        pack,
        new: entries,
        before,
        after,
    })
}

/// The files of a tree at these entries, as blobs, in each directory.
fn lay_out(
    source: &SourceRepo,
    tree: &str,
    entries: &Entries,
    dirs: &[&Path],
) -> Result<Tree, LandingError> {
    let files: Vec<(TreePath, FileKind)> = entries
        .iter()
        .filter_map(|(path, entry)| Some((path.clone(), entry.kind()?)))
        .collect();
    let mut laid = Tree::new();
    if files.is_empty() {
        return Ok(laid);
    }
    let mut take = |path: &TreePath, kind, content: &mut dyn io::Read| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        for dir in dirs {
            let entry = on_disk::write_entry(dir, path, kind, &mut bytes.as_slice())?;
            laid.insert(path.clone(), entry);
        }
        Ok(())
    };
    source
        .visit_named(tree, &files, &mut take)
        .map_err(LandingError::OtherRepository)?;
    Ok(laid)
}

fn commit(
    order: &Order<'_>,
    source: &SourceRepo,
    repo: &HarnessRepo,
    (dir, before, after): (&Path, &Tree, &Tree),
) -> Result<(Commit, Option<PathBuf>), LandingError> {
    let trailers = Trailers {
        run: order.run.clone(),
        approval: order.approval.map(str::to_owned),
        reverts: match order.change {
            Change::Undo { commit } => Some(commit.to_owned()),
            Change::Patch { .. } => None,
        },
    };
    let message = message::message(order.words, &trailers)?;
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let mut edits: Vec<(&TreePath, Edit<'_>)> = gone.map(|path| (path, Edit::Delete)).collect();
    for (path, entry) in after
        .iter()
        .filter(|(path, entry)| before.get(*path) != Some(*entry))
    {
        let place = on_disk::locate(dir, path);
        let content: Box<dyn io::Read> = match entry.kind {
            FileKind::Symlink => {
                let text = std::fs::read_link(&place).map_err(LandingError::Aside)?;
                Box::new(io::Cursor::new(text.as_os_str().as_bytes().to_vec()))
            }
            _ => Box::new(files::open_regular(&place).map_err(LandingError::Aside)?),
        };
        let edit = Edit::Write {
            kind: entry.kind,
            bytes: entry.bytes,
            content,
        };
        edits.push((path, edit));
    }
    let new = NewCommit {
        parent: source.head(),
        message: &message,
        author: &order.author,
        committer: &order.committer,
        when: order.when,
    };
    repo.commit_on(&new, edits).map_err(LandingError::Patch)
}

fn journal(
    order: &Order<'_>,
    target: &Target,
    sides: &Sides,
    made: &Made,
    branch: &str,
) -> Result<Journal, LandingError> {
    let source = &target.source;
    let held = |path: &TreePath, entries: &Entries, tree: &Tree| {
        let (entry, lies) = (entries.get(path)?, tree.get(path)?);
        Some(Held {
            mode: entry.mode.clone(),
            blob: entry.id.clone(),
            sha256: lies.sha256,
            bytes: lies.bytes,
            on_disk: lies.kind.into(),
        })
    };
    let change = |path: &TreePath| PathChange {
        path: path.clone(),
        old: held(path, &sides.old, &made.before),
        new: held(path, &made.new, &made.after),
    };
    let merge = order.way == Way::Merge;
    Ok(Journal {
        schema_version: VERSION,
        id: host::random_name(20)
            .map_err(|failure| LandingError::Aside(io::Error::other(failure.what)))?,
        deed: sides.deed,
        way: order.way,
        run_id: order.run.clone(),
        written_at: host::now(),
        target: whose(source)?,
        branch: branch.to_owned(),
        old_commit: merge.then(|| source.head().to_owned()),
        new_commit: made.commit.commit.clone(),
        paths: sides.paths.iter().map(change).collect(),
        index: None,
        pack: made.pack.as_deref().and_then(objects::name_of),
        awaits_settlement: order.awaits_settlement,
        step: Step::Prepared,
        end: None,
    })
}

/// What a repository is known by.
pub fn whose(source: &SourceRepo) -> Result<Whose, LandingError> {
    Ok(Whose {
        path_sha256: Digest::of(source.top.as_os_str().as_bytes()),
        git_dir_sha256: Digest::of(source.git_dir().as_os_str().as_bytes()),
        git_dir_inode: source.inode()?,
    })
}
