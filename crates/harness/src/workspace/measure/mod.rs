//! The workspace of a run, and the truth about it: our own walk, our own git directory. `ignored.rs`: which
//! new paths ignore rules cover; `scratch.rs`: what is no part of a change; `meanwhile.rs`: a look while an engine still runs; `refs.rs`: where an engine's
//! own refs point.

mod ignored;
mod meanwhile;
mod refs;
mod scratch;

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::bundle;
use cto_core::containment::masks;
use cto_core::gate::plan::Plan;
use cto_core::run::event::{DiffChecked, Event, PatchApplied, ScratchCount};
use cto_core::run::judge;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::contract::Contract;
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::digest::Digest;
use cto_core::values::paths::{PathStanding, TreePath, path_standing};
use cto_core::workspace::change::{Change, ChangeKind};
use cto_core::workspace::tree::{self, Entry, Tree};

use crate::evidence::secrets::PatchHits;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::host::files;
use crate::workspace::WorkspaceError;
use crate::workspace::git::{self, Commit, Edit};
use crate::workspace::of_run::Workspace;
use crate::workspace::on_disk::{Content, Walked};

const PATCH_TOMBSTONE: &[u8] = b"withheld by CTO Harness: this patch held a secret (secret_leak)\n";

/// What was found after the engine had ended.
pub struct Measured {
    /// The result: baseline plus changes, without scratch.
    pub tree: Tree,
    /// Its digest.
    pub digest: Digest,
    pub changes: Vec<Change>,
    pub patch: PathBuf,
    pub findings: Vec<Finding>,
    /// No change lies outside the contract's scope.
    pub in_scope: bool,
    /// Git can apply it; beyond its limit nothing can be verified.
    pub can_be_applied: bool,
    pub(super) everything: Tree,
    /// The result in the harness's own repository.
    pub(super) commit: Commit,
}

impl Measured {
    /// The untouched workspace: what there is before anybody worked on it.
    pub fn nothing(workspace: &Workspace) -> Self {
        Self {
            tree: workspace.baseline().clone(),
            digest: workspace.baseline_digest(),
            changes: Vec::new(),
            patch: workspace.work.join("patch.diff"),
            findings: Vec::new(),
            in_scope: true,
            can_be_applied: true,
            everything: workspace.baseline().clone(),
            commit: workspace.baseline_commit.clone(),
        }
    }
}

/// What was found where submodules belong.
#[derive(Default)]
struct InModules {
    odd: Vec<TreePath>,
    scratch: ScratchCount,
}

impl Workspace {
    /// Puts a patch into the engine's copy, and says where its bytes lie.
    pub fn put_in(&self, patch: &[u8], paths: &[TreePath]) -> Result<PathBuf, WorkspaceError> {
        let given = self.work.join("given.diff");
        fs::write(&given, patch).map_err(WorkspaceError::Io)?;
        let put = |dir: &Path| self.repo.apply(dir, &[&given]);
        self.copy.edit(paths, put).map_err(WorkspaceError::Io)??;
        Ok(given)
    }

    /// Walks, compares, commits and diffs; emits `patch.applied` and `git.diff.checked`. A patch that was
    /// put in stays as it is, byte for byte. `name` tells what commit a patch will be in somebody's repository, where
    /// it is for one.
    pub fn measure(
        &self,
        bundle: &mut OpenBundle,
        plan: &Plan,
        given: Option<PathBuf>,
        name: &dyn Fn(&Path) -> Option<Result<String, Finding>>,
    ) -> Result<Measured, WorkspaceError> {
        let since = Instant::now();
        // Nothing records the mode of the top; closed, it would only hide what there is to judge.
        fs::set_permissions(self.copy.changed_dir(), Permissions::from_mode(0o755))
            .map_err(WorkspaceError::Io)?;
        let mut walked = self.walk().map_err(WorkspaceError::Io)?;
        let in_modules = self.in_submodules(plan, &mut walked)?;
        let misplaced = misplaced(&in_modules.odd);
        let mut recorded = tree::tree_changes(self.baseline(), &walked.tree);
        let scratch = self.scratch(plan, &recorded, &walked.tree)?;
        let left = self.named_leftovers(plan, &recorded, &walked.tree, &scratch);
        recorded.retain(|change| !scratch.contains(&change.path));
        let mut count = in_modules.scratch;
        let mut tree = walked.tree.clone();
        for entry in scratch.iter().filter_map(|path| tree.remove(path)) {
            count.count += 1;
            count.bytes += entry.bytes;
        }
        let result = self.commit(&tree, &recorded)?;
        let patch = match given {
            Some(given) => given,
            None => {
                let patch = self.work.join("patch.diff");
                self.repo.diff(&self.baseline_commit, &result, &patch)?;
                patch
            }
        };
        let mut changes = recorded;
        changes.extend(walked.unrecordable.iter().map(|path| Change {
            path: path.clone(),
            kind: ChangeKind::Unrecordable,
        }));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let (applied, withheld) = self.keep_patch(bundle, &patch, changes.len() as u64)?;
        let oversize = oversize(applied.bytes);
        bundle.emit(Event::PatchApplied(applied))?;
        let contract = &plan.contract;
        let in_scope = all_allowed(contract, &changes);
        // What lands nowhere anyway needs no name there.
        let lands = in_scope && !changes.is_empty() && withheld.is_none() && oversize.is_none();
        let named = lands.then(|| name(&patch)).flatten().transpose();
        let (named, unnamed) = match named {
            Ok(named) => (named, None),
            Err(finding) => (None, Some(finding)),
        };

        let mut diff = DiffChecked {
            baseline_tree: self.baseline_commit.tree.clone(),
            result_tree: result.tree.clone(),
            result_commit: named.unwrap_or_else(|| result.commit.clone()),
            changes: changes.clone(),
            scratch: count,
            leftovers: left,
            blockers: Vec::new(),
        };
        let ended_well = judge::engine_ended_well(&bundle.folded().facts);
        diff.blockers = judge::diff_blockers(&plan.contract, &diff, ended_well)
            .iter()
            .map(|b| b.code)
            .collect();
        bundle.emit(Event::GitDiffChecked(diff))?;
        bundle.trace(
            "workspace.measure",
            TraceOutcome::Ok,
            since,
            Some(format!("{} changed", changes.len())),
        )?;
        let unfinished = self.copy.in_dot_git(git::UNFINISHED);
        let mut findings = unfinished_work(&walked, &unfinished, contract);
        findings.extend(misplaced);
        findings.extend(withheld);
        findings.extend(unnamed);
        let can_be_applied = oversize.is_none();
        findings.extend(oversize);
        Ok(Measured {
            digest: tree::tree_digest(&tree),
            tree,
            changes,
            patch,
            findings,
            in_scope,
            can_be_applied,
            everything: walked.tree,
            commit: result,
        })
    }

    /// What is not as it came along where a submodule belongs: no patch of this repository can carry
    /// it.
    ///
    /// What a build leaves there and a submodule's own rules ignore is scratch, as it is at home;
    /// never a forbidden path, and never what came along.
    fn in_submodules(&self, plan: &Plan, walked: &mut Walked) -> Result<InModules, WorkspaceError> {
        let submodules = self.submodules();
        let mut found = InModules::default();
        if submodules.is_empty() {
            return Ok(found);
        }
        let within = |path: &TreePath| is_within(path, &submodules);
        let came = &self.modules.files;
        let there = walked.tree.iter().filter(|(path, _)| within(path));
        let other = there.filter(|(path, entry)| came.get(*path) != Some(*entry));
        let other: Vec<(&TreePath, &Entry)> = other.collect();
        let new = other.iter().filter(|(path, _)| !came.contains_key(*path));
        let new: Vec<TreePath> = new.map(|(path, _)| (*path).clone()).collect();
        let mut scratch = self.modules.ignored(&self.repo, &new, &self.work)?;
        let contract = &plan.contract;
        scratch.retain(|path| {
            let standing = path_standing(path, &contract.allowed_paths, &contract.forbidden_paths);
            standing != PathStanding::Forbidden
        });
        for (path, entry) in other {
            if scratch.contains(path) {
                found.scratch.count += 1;
                found.scratch.bytes += entry.bytes;
            } else {
                found.odd.push(path.clone());
            }
        }
        let gone = came.keys().filter(|path| !walked.tree.contains_key(*path));
        found.odd.extend(gone.cloned());
        walked.tree.retain(|path, _| !within(path));
        Ok(found)
    }

    fn commit(&self, tree: &Tree, changes: &[Change]) -> Result<Commit, WorkspaceError> {
        let (mut edits, changed) = (Vec::new(), self.copy.changed_dir());
        for change in changes {
            let edit = match tree.get(&change.path) {
                None => Edit::Delete,
                Some(entry) => {
                    let content = Box::new(Content::of(&changed, &change.path, entry.kind));
                    Edit::Write {
                        kind: entry.kind,
                        bytes: entry.bytes,
                        content,
                    }
                }
            };
            edits.push((&change.path, edit));
        }
        Ok(self.repo.import_result(&self.baseline_commit, edits)?)
    }

    /// Looks the patch over for secrets and puts it, or its tombstone, into the bundle.
    fn keep_patch(
        &self,
        bundle: &mut OpenBundle,
        patch: &Path,
        files: u64,
    ) -> Result<(PatchApplied, Option<Finding>), WorkspaceError> {
        let secrets = bundle.secrets.clone();
        let mut scan = secrets.scan_patch();
        let found =
            files::scan_file(patch, |chunk| scan.push(chunk)).map_err(WorkspaceError::Io)?;
        let PatchHits { mut hits, private } = scan.finish();
        hits.private = self.not_in_baseline(&private)?;
        if hits.paths > 0 {
            bundle.warn(format!(
                "the patch says in added lines where your repository or home is ({} times); patches are never altered",
                hits.paths
            ));
        }
        let applied = PatchApplied {
            sha256: found.sha256,
            files,
            bytes: found.bytes,
        };
        if hits.total() > 0 {
            bundle.write(bundle::PATCH, PATCH_TOMBSTONE)?;
            let detail = format!(
                "{}: {} known value(s), {} token(s) and {} private value(s) of the endpoint in added lines",
                bundle::PATCH,
                hits.known,
                hits.shapes,
                hits.private
            );
            return Ok((
                applied,
                Some(Finding {
                    code: Code::SecretLeak,
                    detail: Some(detail),
                }),
            ));
        }
        let mut target = bundle.create(bundle::PATCH)?;
        let copied =
            fs::File::open(patch).and_then(|mut source| std::io::copy(&mut source, &mut target));
        copied.map_err(|error| EvidenceError::cannot_write(bundle::PATCH, &error))?;
        Ok((applied, None))
    }

    /// How many of these values no file of the baseline holds.
    fn not_in_baseline(&self, private: &BTreeSet<Vec<u8>>) -> Result<u64, WorkspaceError> {
        let mut missing = private.clone();
        let Some(longest) = missing.iter().map(|value| value.len()).max() else {
            return Ok(0);
        };
        self.repo
            .each_file(&self.baseline_commit, &|_| true, &mut |_, _, content| {
                // In pieces that overlap by the longest value: a file may be of any size.
                let (mut window, mut piece) = (Vec::new(), vec![0; 1 << 16]);
                while !missing.is_empty() {
                    let read = match content.read(&mut piece)? {
                        0 => break,
                        read => read,
                    };
                    window.extend_from_slice(&piece[..read]);
                    missing.retain(|value| memchr::memmem::find(&window, value).is_none());
                    window.drain(..window.len().saturating_sub(longest));
                }
                Ok(())
            })?;
        Ok(missing.len() as u64)
    }

    /// Setup may only have made what the ignore rules cover: anything else would be taken for the
    /// engine's.
    pub fn check_setup(&self, plan: &Plan) -> Result<(), WorkspaceError> {
        if plan.contract.setup.is_empty() {
            return Ok(());
        }
        let mut walked = self.walk().map_err(WorkspaceError::Io)?;
        let misplaced = self.in_submodules(plan, &mut walked)?.odd;
        let changes = tree::tree_changes(self.baseline(), &walked.tree);
        let scratch = self.scratch(plan, &changes, &walked.tree)?;
        let names = |which: &dyn Fn(&TreePath) -> bool| -> Vec<String> {
            let paths = changes.iter().map(|change| &change.path);
            paths
                .filter(|path| which(path))
                .map(ToString::to_string)
                .collect()
        };
        let mut changed = names(&|path| !scratch.contains(path));
        changed.extend(misplaced.iter().map(ToString::to_string));
        // The plan could not know them, so nothing hides them; an engine would take their orders.
        let orders = names(&masks::is_agent_config_at_top);
        match (changed.is_empty(), orders.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err(WorkspaceError::SetupConfigured(orders)),
            (false, _) => Err(WorkspaceError::SetupChanged(changed)),
        }
    }

    /// The workspace once more, after verification: nobody may have touched it since.
    pub fn unchanged_since(&self, measured: &Measured) -> Result<Option<Finding>, WorkspaceError> {
        let mut now = self.walk().map_err(WorkspaceError::Io)?;
        let submodules = self.submodules();
        if !submodules.is_empty() {
            now.tree.retain(|path, _| !is_within(path, &submodules));
        }
        let changed = tree::tree_changes(&measured.everything, &now.tree);
        Ok((!changed.is_empty()).then(|| {
            let paths = changed
                .iter()
                .take(10)
                .map(|c| c.path.to_string())
                .collect::<Vec<_>>()
                .join(", ");
            Finding {
                code: Code::DirtyEndingTree,
                detail: Some(format!("changed after measurement: {paths}")),
            }
        }))
    }
}

/// Does a path lie where a submodule belongs? A file or link in the place of a directory around one
/// hides it just as well.
fn is_within(path: &TreePath, submodules: &[&TreePath]) -> bool {
    let at_or_below = |path: &TreePath, place: &TreePath| {
        let rest = path.as_bytes().strip_prefix(place.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let mut all = submodules.iter();
    all.any(|module| at_or_below(path, module) || at_or_below(module, path))
}

fn misplaced(paths: &[TreePath]) -> Option<Finding> {
    let names: Vec<String> = paths.iter().take(10).map(ToString::to_string).collect();
    let detail = format!("changed where a submodule belongs: {}", names.join(", "));
    (!paths.is_empty()).then_some(Finding {
        code: Code::DirtyEndingTree,
        detail: Some(detail),
    })
}

/// What git refuses as too large to apply.
const MAX_PATCH: u64 = 1023 << 20;

fn oversize(bytes: u64) -> Option<Finding> {
    let detail =
        format!("the patch has {bytes} bytes; at most {MAX_PATCH} can be applied and verified");
    (bytes > MAX_PATCH).then_some(Finding {
        code: Code::ResourceLimit,
        detail: Some(detail),
    })
}

/// State that is neither patch nor scratch. The engine's git directory is only asked which names
/// exist.
fn unfinished_work(walked: &Walked, unfinished: &[&str], contract: &Contract) -> Vec<Finding> {
    let mut found = Vec::new();
    // Anywhere else they are changes out of scope; here nothing else would say that the patch is
    // not all there is.
    let allowed = |path: &&TreePath| {
        let standing = path_standing(path, &contract.allowed_paths, &contract.forbidden_paths);
        standing == PathStanding::Allowed
    };
    let unrecordable: Vec<TreePath> = walked
        .unrecordable
        .iter()
        .filter(allowed)
        .cloned()
        .collect();
    if !unfinished.is_empty() {
        found.push(format!("unfinished in .git: {}", unfinished.join(", ")));
    }
    for (what, paths) in [
        (
            "nested repository, or a name git keeps for itself",
            &walked.nested_repositories,
        ),
        ("pipe, socket or device", &unrecordable),
        ("unreadable", &walked.unreadable),
        ("too large to measure", &walked.too_large),
    ] {
        if !paths.is_empty() {
            let list = paths
                .iter()
                .take(10)
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            found.push(format!("{what}: {list}"));
        }
    }
    match found.is_empty() {
        true => Vec::new(),
        false => vec![Finding {
            code: Code::DirtyEndingTree,
            detail: Some(found.join("; ")),
        }],
    }
}

fn all_allowed(contract: &Contract, changes: &[Change]) -> bool {
    let (allowed, forbidden) = (&contract.allowed_paths, &contract.forbidden_paths);
    let is_allowed =
        |change: &Change| path_standing(&change.path, allowed, forbidden) == PathStanding::Allowed;
    changes.iter().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_git_would_refuse_is_a_limit_reached() {
        assert_eq!(oversize(MAX_PATCH), None);
        assert_eq!(
            oversize(MAX_PATCH + 1).map(|finding| finding.code),
            Some(Code::ResourceLimit)
        );
    }
}
