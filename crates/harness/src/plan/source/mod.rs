//! The repository a run copies from, as the run sees it: opened, looked at, read, and left alone. `disposable.rs`:
//! one that is made to be thrown away.

pub mod disposable;

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cto_core::containment::guard::Decision;
use cto_core::containment::mounts::stand::{Stand, Unfit};
use cto_core::task::contract::{ContractDocument, Label};
use cto_core::task::source::{Looked, RepositoryName, SourceLook};
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{self, Tree};

use super::runners;
use super::{Planned, asked_of, confine, inputs};
use crate::evidence::host_names::HostNames;
use crate::host::places::Places;
use crate::host::{Env, Home, programs};
use crate::records::targets;
use crate::task::request::Request;
use crate::workspace::checkout::Checkout;
use crate::workspace::git::{LookedAt, OperatorsExcludes, OwnOutput, SourceRepo};
use crate::workspace::on_disk;
use crate::workspace::own_dir::OwnDir;

/// An opened source. Our side of it lies in a directory that goes when this does.
pub struct SourceView {
    pub repo: SourceRepo,
    pub look: SourceLook,
    /// Of every file, for the look in the end.
    looked: LookedAt,
    /// The operator's own ignore file.
    pub excludes: Option<PathBuf>,
    _ours: OwnDir,
}

/// A repository that was opened, before the look at it.
struct Opened {
    repo: SourceRepo,
    excludes: Option<PathBuf>,
    ours: OwnDir,
}

fn words(error: &dyn std::error::Error) -> String {
    crate::host::failure::chain(error)
}

fn open(path: &Path, env: &Env, home: &Home) -> Result<Opened, String> {
    let git = programs::git(env, home).map_err(|none| none.to_string())?;
    let ours = OwnDir::make(home).map_err(|error| words(&error))?;
    let at_home = env.path("HOME");
    let excludes = at_home.as_deref();
    let excludes = excludes.map(|home| OperatorsExcludes::ask(&git, home));
    let repo = SourceRepo::open(&git, path, ours.path(), at_home.as_deref())
        .map_err(|error| format!("{}: {}", path.display(), words(&error)))?;
    let excludes = excludes.and_then(OperatorsExcludes::answer);
    Ok(Opened {
        repo,
        excludes,
        ours,
    })
}

/// Opens and looks. Only reads; whatever keeps it from being copied comes back as words.
pub fn look(path: &Path, label: Label, env: &Env, home: &Home) -> Result<SourceView, String> {
    looked_at(open(path, env, home)?, label)
}

fn looked_at(opened: Opened, label: Label) -> Result<SourceView, String> {
    let Opened {
        repo,
        excludes,
        ours,
    } = opened;
    let (look, looked) = repo
        .look(excludes.as_deref(), own_output(label))
        .map_err(|error| words(&error))?;
    Ok(SourceView {
        repo,
        look,
        looked,
        excludes,
        _ours: ours,
    })
}

/// Who tries something may write down what is printed where they are. A case has a source of its own.
fn own_output(label: Label) -> OwnOutput {
    match label {
        Label::Try => OwnOutput::LeftOut,
        Label::Case => OwnOutput::Counts,
    }
}

/// The second look, after everything: what it finds is compared with the first, and how many files are
/// others.
pub fn look_again(
    (path, label): (&Path, Label),
    before: Option<&SourceView>,
    env: &Env,
    home: &Home,
) -> (Looked, Option<u64>) {
    let again = || -> Result<(SourceLook, Option<u64>), String> {
        let opened = open(path, env, home)?;
        let still = before.map(|before| {
            let first = (&before.repo, &before.look, &before.looked);
            opened.repo.still_clean(opened.excludes.as_deref(), first)
        });
        let still = still.transpose().map_err(|error| words(&error))?;
        if let Some(look) = still.flatten() {
            return Ok((look, Some(0)));
        }
        let now = looked_at(opened, label)?;
        let files = before.map(|before| before.differences(&now));
        Ok((now.look, files))
    };
    match again() {
        Ok((look, files)) => (Looked::Found(look), files),
        Err(why) => (Looked::Unusable(why), None),
    }
}

impl SourceView {
    /// How many files are others in a later look.
    fn differences(&self, later: &Self) -> u64 {
        match self.look.fingerprint == later.look.fingerprint {
            true => 0,
            false => self.looked.states.differences(&later.looked.states),
        }
    }

    /// HEAD as a tree: every path, mode and content.
    pub fn tree(&self) -> Result<Tree, String> {
        let mut tree = Tree::new();
        let mut take = |path: &TreePath, kind, content: &mut dyn io::Read| {
            tree.insert(
                path.clone(),
                on_disk::digest_entry(kind, content, &mut io::sink())?,
            );
            Ok(())
        };
        self.repo
            .each_file(&mut take)
            .map_err(|error| crate::host::failure::chain(&error))?;
        Ok(tree)
    }
}

/// Looks at the source, and fixes in the contract which commit and which tree it is.
pub fn look_at(
    planned: &mut Planned,
    request: &Request,
    env: &Env,
    home: &Home,
) -> (Looked, Option<Decision>) {
    let unusable = |why: String| (Looked::Unusable(why), None);
    let Some(asked) = &request.source else {
        return unusable("no source was named".into());
    };
    let view = match look(&asked.path, request.label, env, home) {
        Ok(view) => view,
        Err(why) => return unusable(why),
    };
    let look = view.look.clone();
    let first = request.again.as_ref();
    if let Some(why) = first.and_then(|first| first.other_commit(&look)) {
        return unusable(why);
    }
    let fits = match (&request.admitted, request.label) {
        (Some(_), _) => is_whole(&asked.path, &view.repo.top),
        (None, Label::Case) => {
            targets::is_no_target(&view.repo.top, Some(&view.repo.common_dir), home)
        }
        (None, Label::Try) => Ok(()),
    };
    if let Err(why) = fits {
        return unusable(why);
    }
    planned.stand = Places::of(env, home).stand(&view.repo.top);
    if planned.stand == Stand::Instead(Unfit::System) {
        // What is ignored or hidden there would be seen as it is, beside its copy.
        let why =
            "it lies in the system, which every command in a jail may read; clone it elsewhere";
        return unusable(why.into());
    }
    if request.label == Label::Case {
        // Its owner's path is of no use to a case, and tells where it lies.
        planned.stand = Stand::Neutral;
    }
    let mut decided = None;
    if let ContractDocument::Valid(contract) = &mut planned.contract {
        if let Some(source) = &mut contract.source {
            source.head = MaybeKnown::Known(look.head.clone());
        }
        let top = view.repo.top.as_os_str().as_bytes();
        let name = RepositoryName::of(top);
        if request.admitted.is_some() {
            contract.target_repository.clone_from(&name.name);
            contract.lane.target_head = MaybeKnown::Known(look.head.clone());
            contract.lane.target_branch.clone_from(&look.branch);
        }
        contract.lane.repository = Some(name);
        // A source that will be refused anyway need not be read.
        if asked.from_head || look.status.dirt().is_none() {
            let known = Checkout::find_any(home, &look.tree);
            // Where there is a checkout, an earlier run read every file of this very tree.
            let read = match &known {
                Some(checkout) => {
                    Ok((checkout.manifest.tree.clone(), checkout.manifest.start_tree))
                }
                None => view
                    .tree()
                    .map(|tree| (tree::tree_digest(&tree), tree))
                    .map(|(digest, tree)| (tree, digest)),
            };
            match read {
                Ok((tree, digest)) => {
                    planned.source_files = Some(forced_files(env).unwrap_or(tree.len() as u64));
                    contract.start_tree = MaybeKnown::Known(digest);
                    contract.name_directories(&tree);
                    runners::of_source(contract, request, &view, &tree);
                    let decision = confine(asked_of(request, contract), contract, &tree);
                    let masked = &decision.guard.masked;
                    if let Some(why) = inputs::out_of_place(contract, &tree, masked) {
                        return unusable(why);
                    }
                    // One that hides other files has told what the tree is, and no more.
                    planned.checkout = known
                        .filter(|known| known.manifest.masked == *masked)
                        .or_else(|| Checkout::find(home, &look.tree, masked, None))
                        .map(Arc::new);
                    contract.lane.containment = Some(decision.policy);
                    decided = Some(decision);
                    planned.tree = request.environments.as_ref().map(|_| tree);
                }
                Err(why) => return unusable(why),
            }
        }
    }
    planned.source = Some(view);
    (Looked::Found(look), decided)
}

/// A test may have any repository made into an overlay, or none: no release build looks.
fn forced_files(env: &Env) -> Option<u64> {
    let forced = env
        .get("CTO_TEST_WORKSPACE")
        .filter(|_| cfg!(debug_assertions))?;
    [("overlay", u64::MAX), ("copy", 0)]
        .into_iter()
        .find(|(kind, _)| forced == *kind)
        .map(|(_, files)| files)
}

/// Paths of this host that the bundle of this run has other names for.
pub fn host_names(planned: &Planned, request: &Request, env: &Env) -> HostNames {
    let typed = request.source.as_ref().map(|asked| asked.path.as_path());
    let top = planned.source.as_ref().map(|view| view.repo.top.as_path());
    // What was typed may lie below the top.
    let is_top = |typed: &&Path| top.is_none_or(|top| same_place(typed, top));
    HostNames::of_host(top.into_iter().chain(typed.filter(is_top)), env)
}

/// An admission is of a repository, not of a directory in one: its rules are counted from the top.
fn is_whole(admitted: &Path, top: &Path) -> Result<(), String> {
    match same_place(admitted, top) {
        true => Ok(()),
        false => Err("the admission names a directory inside of a repository".into()),
    }
}

fn same_place(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|real| real == other)
}
