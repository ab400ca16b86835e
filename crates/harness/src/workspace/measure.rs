//! The workspace of a run, and the truth about it: our own walk, our own git directory.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use cto_core::bundle;
use cto_core::containment::Containment;
use cto_core::containment::guard;
use cto_core::run::event::{DiffChecked, Event, PatchApplied, ScratchCount};
use cto_core::run::judge;
use cto_core::run::trace::TraceOutcome;
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::paths::{PathStanding, TreePath, path_standing};
use cto_core::workspace::change::{Change, ChangeKind};
use cto_core::workspace::checkout::WorkspaceKind;
use cto_core::workspace::tree::{self, Tree};

use crate::evidence::OpenBundle;
use crate::host::files;
use crate::run::{Execution, Stop};
use crate::task::cases::FixtureFile;
use crate::workspace::checkout::{self, Checkout, Wanted};
use crate::workspace::git::{self, Commit, Edit, HarnessRepo, SourceRepo};
use crate::workspace::on_disk::{self, Content, Walked};
use crate::workspace::overlay::Overlay;
use crate::workspace::private_copy::PrivateCopy;

const PATCH_TOMBSTONE: &[u8] = b"withheld by CTO Harness: this patch held a secret (secret_leak)\n";

/// A private copy with a baseline that only the harness holds.
pub struct Workspace {
    copy: PrivateCopy,
    work: PathBuf,
    repo: HarnessRepo,
    baseline_commit: Commit,
    start: Start,
    /// How it was made, in words.
    pub made: &'static str,
}

/// Where fresh copies of the baseline come from.
enum Start {
    /// Files of a case, in memory.
    Fixture {
        files: Vec<FixtureFile>,
        baseline: Tree,
    },
    /// The baseline commit in the harness's own repository.
    Commit {
        submodules: Vec<TreePath>,
        baseline: Tree,
    },
    /// A cached checkout, to put overlays on.
    Checkout(Arc<Checkout>),
}

impl Start {
    fn baseline(&self) -> &Tree {
        match self {
            Self::Fixture { baseline, .. } | Self::Commit { baseline, .. } => baseline,
            Self::Checkout(checkout) => &checkout.manifest.tree,
        }
    }
}

/// Where the overlay of a run's workspace lies in its work directory.
const OVERLAY: &str = "overlay";
/// The plain copy there, and a kept workspace laid out for a person.
pub const PLAIN: &str = "workspace";

/// What was found after the engine had ended.
pub struct Measured {
    /// The result: baseline plus changes, without scratch.
    pub tree: Tree,
    pub changes: Vec<Change>,
    pub patch: PathBuf,
    pub findings: Vec<Finding>,
    /// No change lies outside the contract's scope.
    pub in_scope: bool,
    /// Git can apply it; beyond its limit nothing can be verified.
    pub can_be_applied: bool,
    everything: Tree,
}

impl Workspace {
    pub fn prepare(execution: &Execution<'_>) -> Result<Self, Stop> {
        crate::host::make_private_dir(&execution.work).map_err(Stop::Workspace)?;
        let workspace = match (execution.source, execution.plan.workspace) {
            (Some(source), WorkspaceKind::Overlay) => Self::over_checkout(execution, source)?,
            (source, _) => Self::plain(execution, source)?,
        };
        if execution.plan.containment != Containment::None {
            workspace.copy.hand_over().map_err(Stop::Workspace)?;
        }
        Ok(workspace)
    }

    fn plain(execution: &Execution<'_>, source: Option<&SourceRepo>) -> Result<Self, Stop> {
        let dir = execution.work.join(PLAIN);
        let repo = HarnessRepo::init(&execution.git, &execution.work.join("harness.git"))?;
        let (baseline_commit, start) = match source {
            Some(source) => {
                let (baseline, commit, submodules) =
                    checkout::copy_head(source, &repo, &dir, &wanted(execution))?;
                let submodules = submodules.into_iter().map(|module| module.path).collect();
                (
                    commit,
                    Start::Commit {
                        submodules,
                        baseline,
                    },
                )
            }
            None => lay_out_fixture(execution, &repo, &dir)?,
        };
        repo.furnish(&dir)?;
        repo.look_past(
            &dir,
            &dir.join(".git/index"),
            &guard::paths_within(start.baseline(), &execution.plan.guard.masked),
        )?;
        let (copy, work) = (PrivateCopy::Plain(dir), execution.work.clone());
        Ok(Self {
            copy,
            work,
            repo,
            baseline_commit,
            start,
            made: "copy",
        })
    }

    fn over_checkout(execution: &Execution<'_>, source: &SourceRepo) -> Result<Self, Stop> {
        let (checkout, made) = match &execution.checkout {
            Some(known) => (known.clone(), "overlay, checkout known"),
            None => match Checkout::find_or_make(
                execution.home,
                &execution.git,
                source,
                &wanted(execution),
            )? {
                (found, false) => (Arc::new(found), "overlay, checkout known"),
                (new, true) => (Arc::new(new), "overlay, checkout made"),
            },
        };
        // Its name is git's tree id; that the contract means the same tree is asked once more.
        if execution.plan.contract.start_tree.known() != Some(&checkout.manifest.start_tree) {
            return Err(Stop::Finding(
                "the cached checkout is not the tree of the contract".into(),
                Code::Interrupted,
            ));
        }
        let repo = HarnessRepo::beside(
            &execution.git,
            &execution.work.join("harness.git"),
            &checkout.objects(),
        )?;
        let overlay = Overlay::fresh(checkout.clone(), &execution.work.join(OVERLAY))
            .map_err(Stop::Workspace)?;
        let masked = guard::paths_within(&checkout.manifest.tree, &execution.plan.guard.masked);
        if !masked.is_empty() {
            let hide =
                |dir: &Path| repo.look_past(&checkout.files(), &dir.join(".git/index"), &masked);
            overlay
                .edit(&[TreePath::new(".git/index")], hide)
                .map_err(Stop::Workspace)??;
        }
        let (copy, work, baseline_commit) = (
            PrivateCopy::Over(overlay),
            execution.work.clone(),
            checkout.commit(),
        );
        Ok(Self {
            copy,
            work,
            repo,
            baseline_commit,
            start: Start::Checkout(checkout),
            made,
        })
    }

    pub fn copy(&self) -> &PrivateCopy {
        &self.copy
    }

    pub fn repo(&self) -> &HarnessRepo {
        &self.repo
    }

    pub fn baseline(&self) -> &Tree {
        self.start.baseline()
    }

    fn submodules(&self) -> Vec<&TreePath> {
        match &self.start {
            Start::Fixture { .. } => Vec::new(),
            Start::Commit { submodules, .. } => submodules.iter().collect(),
            Start::Checkout(checkout) => checkout
                .manifest
                .submodules
                .iter()
                .map(|(path, _)| path)
                .collect(),
        }
    }

    /// Walks, compares, commits and diffs; emits `patch.applied` and `git.diff.checked`.
    pub fn measure(
        &self,
        bundle: &mut OpenBundle,
        execution: &Execution<'_>,
    ) -> Result<Measured, Stop> {
        let since = Instant::now();
        // Nothing records the mode of the top; closed, it would only hide what there is to judge.
        fs::set_permissions(self.copy.changed_dir(), Permissions::from_mode(0o755))
            .map_err(Stop::Workspace)?;
        let mut walked = self.copy.walk().map_err(Stop::Workspace)?;
        let misplaced = self.in_submodules(&mut walked);
        let mut recorded = tree::tree_changes(self.baseline(), &walked.tree);
        let scratch = self.scratch(execution, &recorded)?;
        recorded.retain(|change| !scratch.contains(&change.path));
        let mut count = ScratchCount::default();
        let mut tree = walked.tree.clone();
        for entry in scratch.iter().filter_map(|path| tree.remove(path)) {
            count.count += 1;
            count.bytes += entry.bytes;
        }
        let result = self.commit(&tree, &recorded)?;
        let patch = self.work.join("patch.diff");
        self.repo.diff(&self.baseline_commit, &result, &patch)?;
        let mut changes = recorded;
        changes.extend(walked.unrecordable.iter().map(|path| Change {
            path: path.clone(),
            kind: ChangeKind::Unrecordable,
        }));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let (applied, withheld) = self.keep_patch(bundle, &patch, changes.len() as u64)?;
        let oversize = oversize(applied.bytes);
        bundle.emit(Event::PatchApplied(applied))?;

        let mut diff = DiffChecked {
            baseline_tree: self.baseline_commit.tree.clone(),
            result_tree: result.tree,
            result_commit: result.commit,
            changes: changes.clone(),
            scratch: count,
            blockers: Vec::new(),
        };
        let ended_well = judge::engine_ended_well(&bundle.folded().facts);
        diff.blockers = judge::diff_blockers(&execution.plan.contract, &diff, ended_well)
            .iter()
            .map(|b| b.code)
            .collect();
        let contract = &execution.plan.contract;
        let in_scope = changes.iter().all(|change| {
            path_standing(
                &change.path,
                &contract.allowed_paths,
                &contract.forbidden_paths,
            ) == PathStanding::Allowed
        });
        bundle.emit(Event::GitDiffChecked(diff))?;
        bundle.trace(
            "workspace.measure",
            TraceOutcome::Ok,
            since,
            Some(format!("{} changed", changes.len())),
        )?;
        let unfinished = self
            .copy
            .in_dot_git(git::UNFINISHED.into_iter().chain(["refs/stash"]));
        let mut findings = leftovers(&walked, &unfinished);
        findings.extend(misplaced);
        findings.extend(withheld);
        let can_be_applied = oversize.is_none();
        findings.extend(oversize);
        Ok(Measured {
            tree,
            changes,
            patch,
            findings,
            in_scope,
            can_be_applied,
            everything: walked.tree,
        })
    }

    /// What was put where a submodule belongs: no patch of this repository can carry it.
    fn in_submodules(&self, walked: &mut Walked) -> Option<Finding> {
        let submodules = self.submodules();
        if submodules.is_empty() {
            return None;
        }
        let within = |path: &TreePath| {
            submodules.iter().any(|module| {
                let rest = path.as_bytes().strip_prefix(module.as_bytes());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
        };
        let found: Vec<String> = walked
            .tree
            .keys()
            .filter(|path| within(path))
            .take(10)
            .map(ToString::to_string)
            .collect();
        walked.tree.retain(|path, _| !within(path));
        let detail = format!("written where a submodule belongs: {}", found.join(", "));
        (!found.is_empty()).then_some(Finding {
            code: Code::DirtyEndingTree,
            detail: Some(detail),
        })
    }

    /// New paths the baseline's ignore rules cover, and the engine's own folders. Forbidden paths
    /// are never scratch.
    fn scratch(
        &self,
        execution: &Execution<'_>,
        changes: &[Change],
    ) -> Result<BTreeSet<TreePath>, Stop> {
        let added = |change: &&Change| change.kind == ChangeKind::Added;
        let new: Vec<TreePath> = changes
            .iter()
            .filter(added)
            .map(|change| change.path.clone())
            .collect();
        let own = &execution.plan.invocation.workspace_scratch;
        let (mut scratch, new): (Vec<_>, Vec<_>) = new
            .into_iter()
            .partition(|path| own.iter().any(|rule| rule.covers(path)));
        scratch.extend(self.ignored(&new)?);
        let contract = &execution.plan.contract;
        scratch.retain(|path| {
            path_standing(path, &contract.allowed_paths, &contract.forbidden_paths)
                != PathStanding::Forbidden
        });
        Ok(scratch.into_iter().collect())
    }

    fn ignored(&self, new: &[TreePath]) -> Result<Vec<TreePath>, Stop> {
        if new.is_empty() || !self.baseline().keys().any(on_disk::holds_rules) {
            return Ok(Vec::new());
        }
        // The engine may have changed its own rules: ask a copy that holds the baseline's.
        let rules = match &self.start {
            Start::Checkout(checkout) => checkout.rules(),
            Start::Fixture { .. } | Start::Commit { .. } => self.work.join("rules"),
        };
        if !rules.exists() {
            self.fresh_copy(&rules, &on_disk::holds_rules)?;
        }
        Ok(self.repo.ignored(&rules, new)?)
    }

    fn commit(&self, tree: &Tree, changes: &[Change]) -> Result<Commit, Stop> {
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
    ) -> Result<(PatchApplied, Option<Finding>), Stop> {
        let secrets = bundle.secrets.clone();
        let mut scan = secrets.scan_patch();
        let found = files::scan_file(patch, |chunk| scan.push(chunk)).map_err(Stop::Workspace)?;
        let hits = scan.finish();
        let applied = PatchApplied {
            sha256: found.sha256,
            files,
            bytes: found.bytes,
        };
        if hits.total() > 0 {
            bundle.write(bundle::PATCH, PATCH_TOMBSTONE)?;
            let detail = format!(
                "{}: {} known value(s), {} token(s) in added lines",
                bundle::PATCH,
                hits.known,
                hits.shapes
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
        copied.map_err(|error| crate::run::write_error(bundle::PATCH, &error))?;
        Ok((applied, None))
    }

    /// The files of the baseline that are `wanted`, where nobody has been.
    fn fresh_copy(&self, dir: &Path, wanted: &dyn Fn(&TreePath) -> bool) -> Result<(), Stop> {
        if let Start::Fixture { files, .. } = &self.start {
            let files: Vec<&FixtureFile> = files.iter().filter(|file| wanted(&file.path)).collect();
            return on_disk::lay_out(dir, files, false).map_err(Stop::Workspace);
        }
        fs::create_dir(dir).map_err(Stop::Workspace)?;
        self.repo
            .each_file(&self.baseline_commit, wanted, &mut |path, kind, content| {
                on_disk::write_entry(dir, path, kind, content).map(drop)
            })?;
        checkout::empty_directories(dir, self.submodules()).map_err(Stop::Workspace)
    }

    /// The baseline alone where nobody has been, by the same way as the workspace, without a
    /// `.git`.
    pub fn untouched(&self, name: &str) -> Result<PrivateCopy, Stop> {
        let dir = self.work.join(name);
        match &self.start {
            Start::Checkout(checkout) => Overlay::of_files(checkout.clone(), &dir)
                .map(PrivateCopy::Over)
                .map_err(Stop::Workspace),
            Start::Fixture { .. } | Start::Commit { .. } => {
                self.fresh_copy(&dir, &|_| true)?;
                Ok(PrivateCopy::Plain(dir))
            }
        }
    }

    /// A fresh copy of the baseline with the patch applied, proven equal to what was measured.
    pub fn pristine(
        &self,
        name: &str,
        measured: &Measured,
    ) -> Result<Result<PrivateCopy, String>, Stop> {
        let copy = self.untouched(name)?;
        let touched: Vec<TreePath> = measured
            .changes
            .iter()
            .map(|change| change.path.clone())
            .collect();
        let applied = copy
            .edit(&touched, |dir| self.repo.apply(dir, &[&measured.patch]))
            .map_err(Stop::Workspace)?;
        if let Err(error) = applied {
            return Ok(Err(format!(
                "the patch does not apply to a pristine copy: {error}"
            )));
        }
        let walked = copy.walk().map_err(Stop::Workspace)?;
        Ok(match walked.tree == measured.tree {
            true => Ok(copy),
            false => Err("the patched pristine copy is not the tree that was measured".into()),
        })
    }

    /// Setup may only have made what the ignore rules cover: anything else would be taken for the
    /// engine's.
    pub fn check_setup(&self, execution: &Execution<'_>) -> Result<(), Stop> {
        if execution.plan.contract.setup.is_empty() {
            return Ok(());
        }
        let walked = self.copy.walk().map_err(Stop::Workspace)?;
        let changes = tree::tree_changes(self.baseline(), &walked.tree);
        let scratch = self.scratch(execution, &changes)?;
        let changed: Vec<String> = changes
            .into_iter()
            .filter(|change| !scratch.contains(&change.path))
            .map(|change| change.path.to_string())
            .collect();
        match changed.is_empty() {
            true => Ok(()),
            false => {
                let detail = format!(
                    "setup changed paths that are not ignored: {}",
                    changed.join(", ")
                );
                Err(Stop::LateGate {
                    gate: "setup",
                    code: Code::ToolchainUnavailable,
                    detail,
                })
            }
        }
    }

    /// The workspace once more, after verification: nobody may have touched it since.
    pub fn unchanged_since(&self, measured: &Measured) -> Result<Option<Finding>, Stop> {
        let mut now = self.copy.walk().map_err(Stop::Workspace)?;
        self.in_submodules(&mut now);
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

fn lay_out_fixture(
    execution: &Execution<'_>,
    repo: &HarnessRepo,
    dir: &Path,
) -> Result<(Commit, Start), Stop> {
    let fixture = &execution.case.workspace;
    on_disk::lay_out(dir, fixture, false).map_err(Stop::Workspace)?;
    let files = fixture
        .iter()
        .map(|file| (&file.path, Edit::inline(file.entry().kind, &file.bytes)));
    let commit = repo.import_baseline(files)?;
    Ok((
        commit,
        Start::Fixture {
            files: fixture.clone(),
            baseline: execution.case.baseline(),
        },
    ))
}

/// The tree the contract was resolved for.
fn wanted<'a>(execution: &'a Execution<'_>) -> Wanted<'a> {
    Wanted {
        git_tree: execution.plan.source.as_ref().map_or("", |look| &look.tree),
        start_tree: execution.plan.contract.start_tree.known(),
    }
}

/// Lays a kept workspace out as plain files, where it is an overlay; the checkout below it stays as
/// it is.
pub fn lay_out_kept(checkout: Arc<Checkout>, work: &Path) -> std::io::Result<()> {
    let (overlay, aside) = (
        Overlay::at(checkout, &work.join(OVERLAY)),
        work.join("laying-out"),
    );
    overlay.lay_out(&aside)?;
    fs::rename(aside, work.join(PLAIN))
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
fn leftovers(walked: &Walked, unfinished: &[&str]) -> Vec<Finding> {
    let mut found = Vec::new();
    if !unfinished.is_empty() {
        found.push(format!("unfinished in .git: {}", unfinished.join(", ")));
    }
    for (what, paths) in [
        ("nested repository", &walked.nested_repositories),
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
