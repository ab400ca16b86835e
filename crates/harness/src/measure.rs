//! The workspace of a run, and the truth about it: our own walk, our own git directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::blocker::Code;
use cto_core::bundle;
use cto_core::containment::Containment;
use cto_core::event::{Change, ChangeKind, DiffChecked, Event, Finding, PatchApplied, ScratchCount};
use cto_core::guard;
use cto_core::judge;
use cto_core::scope::{PathStanding, TreePath, standing};
use cto_core::trace::TraceOutcome;
use cto_core::tree::{self, Tree};

use crate::cases::FixtureFile;
use crate::evidence::OpenBundle;
use crate::files;
use crate::git::{self, Commit, Edit, HarnessRepo, SourceRepo, Submodule};
use crate::jail;
use crate::run::{Execution, Stop};
use crate::workspace::{self, Content, Walked};

const PATCH_TOMBSTONE: &[u8] = b"withheld by CTO Harness: this patch held a secret (secret_leak)\n";

/// A private copy with a baseline that only the harness holds.
pub struct Workspace {
    dir: PathBuf,
    work: PathBuf,
    repo: HarnessRepo,
    baseline: Tree,
    baseline_commit: Commit,
    start: Start,
}

/// Where fresh copies of the baseline come from.
enum Start {
    /// Files of a case, in memory.
    Fixture(Vec<FixtureFile>),
    /// The baseline commit in the harness's own repository.
    Commit { submodules: Vec<Submodule> },
}

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
        let dir = execution.work.join("workspace");
        let repo = HarnessRepo::init(&execution.git, &execution.work.join("harness.git"))?;
        let (baseline, baseline_commit, start) = match execution.source {
            Some(source) => copy_source(execution, source, &repo, &dir)?,
            None => lay_out_fixture(execution, &repo, &dir)?,
        };
        repo.furnish(&dir)?;
        repo.look_past(&dir, &guard::within(&baseline, &execution.plan.guard.masked))?;
        if execution.plan.containment != Containment::None {
            jail::hand_over(&dir).map_err(Stop::Workspace)?;
        }
        Ok(Self { dir, work: execution.work.clone(), repo, baseline, baseline_commit, start })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn repo(&self) -> &HarnessRepo {
        &self.repo
    }

    pub fn baseline(&self) -> &Tree {
        &self.baseline
    }

    /// Walks, compares, commits and diffs; emits `patch.applied` and `git.diff.checked`.
    pub fn measure(&self, bundle: &mut OpenBundle, execution: &Execution<'_>) -> Result<Measured, Stop> {
        let since = Instant::now();
        let mut walked = workspace::walk(&self.dir).map_err(Stop::Workspace)?;
        let misplaced = self.in_submodules(&mut walked);
        let scratch = self.scratch(execution, &walked)?;
        let mut count = ScratchCount::default();
        let mut tree = Tree::new();
        for (path, entry) in &walked.tree {
            if scratch.contains(path) {
                count.count += 1;
                count.bytes += entry.bytes;
            } else {
                tree.insert(path.clone(), *entry);
            }
        }
        let recorded = tree::changes(&self.baseline, &tree);
        let result = self.commit(&tree, &recorded)?;
        let patch = self.work.join("patch.diff");
        self.repo.diff(&self.baseline_commit, &result, &patch)?;
        let mut changes = recorded;
        changes.extend(walked.unrecordable.iter().map(|path| Change { path: path.clone(), kind: ChangeKind::Unrecordable }));
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
        diff.blockers = judge::diff_blockers(&execution.plan.contract, &diff, ended_well).iter().map(|b| b.code).collect();
        let contract = &execution.plan.contract;
        let in_scope = changes
            .iter()
            .all(|change| standing(&change.path, &contract.allowed_paths, &contract.forbidden_paths) == PathStanding::Allowed);
        bundle.emit(Event::GitDiffChecked(diff))?;
        bundle.trace("workspace.measure", TraceOutcome::Ok, since, Some(format!("{} changed", changes.len())))?;
        let mut findings = leftovers(&walked, &self.dir.join(".git"));
        findings.extend(misplaced);
        findings.extend(withheld);
        let can_be_applied = oversize.is_none();
        findings.extend(oversize);
        Ok(Measured { tree, changes, patch, findings, in_scope, can_be_applied, everything: walked.tree })
    }

    /// What was put where a submodule belongs: no patch of this repository can carry it.
    fn in_submodules(&self, walked: &mut Walked) -> Option<Finding> {
        let Start::Commit { submodules } = &self.start else { return None };
        let within = |path: &TreePath| {
            submodules.iter().any(|module| {
                let rest = path.as_bytes().strip_prefix(module.path.as_bytes());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
        };
        let found: Vec<String> = walked.tree.keys().filter(|path| within(path)).take(10).map(ToString::to_string).collect();
        walked.tree.retain(|path, _| !within(path));
        let detail = format!("written where a submodule belongs: {}", found.join(", "));
        (!found.is_empty()).then_some(Finding { code: Code::DirtyEndingTree, detail: Some(detail) })
    }

    /// New paths the baseline's ignore rules cover, and the engine's own folders. Forbidden paths are never scratch.
    fn scratch(&self, execution: &Execution<'_>, walked: &Walked) -> Result<Vec<TreePath>, Stop> {
        let new: Vec<TreePath> = walked.tree.keys().filter(|path| !self.baseline.contains_key(*path)).cloned().collect();
        let own = &execution.plan.invocation.workspace_scratch;
        let (mut scratch, new): (Vec<_>, Vec<_>) = new.into_iter().partition(|path| own.iter().any(|rule| rule.covers(path)));
        scratch.extend(self.ignored(&new)?);
        let contract = &execution.plan.contract;
        scratch.retain(|path| standing(path, &contract.allowed_paths, &contract.forbidden_paths) != PathStanding::Forbidden);
        Ok(scratch)
    }

    fn ignored(&self, new: &[TreePath]) -> Result<Vec<TreePath>, Stop> {
        let has_rules = self.baseline.keys().any(|path| path.as_bytes().ends_with(b".gitignore"));
        if new.is_empty() || !has_rules {
            return Ok(Vec::new());
        }
        // The engine may have changed its own rules: ask a copy that holds the baseline's.
        let rules = self.work.join("rules");
        if !rules.exists() {
            self.fresh_copy(&rules, &|path| path.as_bytes().ends_with(b".gitignore"))?;
        }
        Ok(self.repo.ignored(&rules, new)?)
    }

    fn commit(&self, tree: &Tree, changes: &[Change]) -> Result<Commit, Stop> {
        let mut edits = Vec::new();
        for change in changes {
            let edit = match tree.get(&change.path) {
                None => Edit::Delete,
                Some(entry) => {
                    let content = Box::new(Content::of(&self.dir, &change.path, entry.kind));
                    Edit::Write { kind: entry.kind, bytes: entry.bytes, content }
                }
            };
            edits.push((&change.path, edit));
        }
        Ok(self.repo.import_result(&self.baseline_commit, edits)?)
    }

    /// Looks the patch over for secrets and puts it, or its tombstone, into the bundle.
    fn keep_patch(&self, bundle: &mut OpenBundle, patch: &Path, files: u64) -> Result<(PatchApplied, Option<Finding>), Stop> {
        let secrets = bundle.secrets.clone();
        let mut scan = secrets.scan_patch();
        let found = files::scan_file(patch, |chunk| scan.push(chunk)).map_err(Stop::Workspace)?;
        let hits = scan.finish();
        let applied = PatchApplied { sha256: found.sha256, files, bytes: found.bytes };
        if hits.total() > 0 {
            bundle.write(bundle::PATCH, PATCH_TOMBSTONE)?;
            let detail = format!("{}: {} known value(s), {} token(s) in added lines", bundle::PATCH, hits.known, hits.shapes);
            return Ok((applied, Some(Finding { code: Code::SecretLeak, detail: Some(detail) })));
        }
        let mut target = bundle.create(bundle::PATCH)?;
        let copied = fs::File::open(patch).and_then(|mut source| std::io::copy(&mut source, &mut target));
        copied.map_err(|error| crate::run::write_error(bundle::PATCH, &error))?;
        Ok((applied, None))
    }

    /// The files of the baseline that are `wanted`, where nobody has been.
    fn fresh_copy(&self, dir: &Path, wanted: &dyn Fn(&TreePath) -> bool) -> Result<(), Stop> {
        match &self.start {
            Start::Fixture(files) => {
                let files: Vec<&FixtureFile> = files.iter().filter(|file| wanted(&file.path)).collect();
                workspace::lay_out(dir, files, false).map_err(Stop::Workspace)
            }
            Start::Commit { submodules } => {
                fs::create_dir(dir).map_err(Stop::Workspace)?;
                self.repo.each_file(&self.baseline_commit, wanted, &mut |path, kind, content| {
                    workspace::write_entry(dir, path, kind, content).map(drop)
                })?;
                empty_directories(dir, submodules)
            }
        }
    }

    /// A fresh copy of the baseline alone.
    pub fn untouched(&self, name: &str) -> Result<PathBuf, Stop> {
        let dir = self.work.join(name);
        self.fresh_copy(&dir, &|_| true)?;
        Ok(dir)
    }

    /// A fresh copy of the baseline with the patch applied, proven equal to what was measured.
    pub fn pristine(&self, name: &str, measured: &Measured) -> Result<Result<PathBuf, String>, Stop> {
        let dir = self.work.join(name);
        self.fresh_copy(&dir, &|_| true)?;
        if let Err(error) = self.repo.apply(&dir, &[&measured.patch]) {
            return Ok(Err(format!("the patch does not apply to a pristine copy: {error}")));
        }
        let walked = workspace::walk(&dir).map_err(Stop::Workspace)?;
        Ok(match walked.tree == measured.tree {
            true => Ok(dir),
            false => Err("the patched pristine copy is not the tree that was measured".into()),
        })
    }

    /// Setup may only have made what the ignore rules cover: anything else would be taken for the engine's.
    pub fn check_setup(&self, execution: &Execution<'_>) -> Result<(), Stop> {
        if execution.plan.contract.setup.is_empty() {
            return Ok(());
        }
        let walked = workspace::walk(&self.dir).map_err(Stop::Workspace)?;
        let scratch = self.scratch(execution, &walked)?;
        let changed: Vec<String> = tree::changes(&self.baseline, &walked.tree)
            .into_iter()
            .filter(|change| !scratch.contains(&change.path))
            .map(|change| change.path.to_string())
            .collect();
        match changed.is_empty() {
            true => Ok(()),
            false => {
                let detail = format!("setup changed paths that are not ignored: {}", changed.join(", "));
                Err(Stop::LateGate { gate: "setup", code: Code::ToolchainUnavailable, detail })
            }
        }
    }

    /// The workspace once more, after verification: nobody may have touched it since.
    pub fn unchanged_since(&self, measured: &Measured) -> Result<Option<Finding>, Stop> {
        let mut now = workspace::walk(&self.dir).map_err(Stop::Workspace)?;
        self.in_submodules(&mut now);
        let changed = tree::changes(&measured.everything, &now.tree);
        Ok((!changed.is_empty()).then(|| {
            let paths = changed.iter().take(10).map(|c| c.path.to_string()).collect::<Vec<_>>().join(", ");
            Finding { code: Code::DirtyEndingTree, detail: Some(format!("changed after measurement: {paths}")) }
        }))
    }
}

fn lay_out_fixture(execution: &Execution<'_>, repo: &HarnessRepo, dir: &Path) -> Result<(Tree, Commit, Start), Stop> {
    let fixture = &execution.case.workspace;
    workspace::lay_out(dir, fixture, false).map_err(Stop::Workspace)?;
    let files = fixture.iter().map(|file| (&file.path, Edit::inline(file.entry().kind, &file.bytes)));
    let commit = repo.import_baseline(files)?;
    Ok((execution.case.baseline(), commit, Start::Fixture(fixture.clone())))
}

/// Copies the source's HEAD, and proves by git's own tree id that the copy is exactly that.
fn copy_source(
    execution: &Execution<'_>,
    source: &SourceRepo,
    repo: &HarnessRepo,
    dir: &Path,
) -> Result<(Tree, Commit, Start), Stop> {
    let differs = || Stop::Finding("the copy is not what HEAD of the source holds".into(), Code::Interrupted);
    fs::create_dir(dir).map_err(Stop::Workspace)?;
    let mut tree = Tree::new();
    let submodules: Vec<Submodule> = source.each_file(&mut |path, kind, content| {
        let entry = workspace::write_entry(dir, path, kind, content)?;
        tree.insert(path.clone(), entry);
        Ok(())
    })?;
    if execution.plan.contract.start_tree.known() != Some(&tree::digest(&tree)) {
        return Err(differs());
    }
    let mut edits = Vec::new();
    for (path, entry) in &tree {
        let content = Box::new(Content::of(dir, path, entry.kind));
        edits.push((path, Edit::Write { kind: entry.kind, bytes: entry.bytes, content }));
    }
    edits.extend(submodules.iter().map(|module| (&module.path, Edit::Submodule { commit: &module.commit })));
    let commit = repo.import_baseline(edits)?;
    let wanted = execution.plan.source.as_ref().map(|look| &look.tree);
    if wanted != Some(&commit.tree) {
        return Err(differs());
    }
    empty_directories(dir, &submodules)?;
    Ok((tree, commit, Start::Commit { submodules }))
}

/// As git itself leaves a submodule that is not checked out.
fn empty_directories(dir: &Path, submodules: &[Submodule]) -> Result<(), Stop> {
    for module in submodules {
        let place = workspace::locate(dir, &module.path);
        workspace::make_parent(dir, &place).and_then(|()| fs::create_dir(&place)).map_err(Stop::Workspace)?;
    }
    Ok(())
}

/// What git refuses as too large to apply.
const MAX_PATCH: u64 = 1023 << 20;

fn oversize(bytes: u64) -> Option<Finding> {
    let detail = format!("the patch has {bytes} bytes; at most {MAX_PATCH} can be applied and verified");
    (bytes > MAX_PATCH).then_some(Finding { code: Code::ResourceLimit, detail: Some(detail) })
}

/// State that is neither patch nor scratch. The engine's git directory is only asked which names exist.
fn leftovers(walked: &Walked, dot_git: &Path) -> Vec<Finding> {
    let mut found = Vec::new();
    let names = git::UNFINISHED.into_iter().chain(["refs/stash"]);
    let unfinished: Vec<&str> = names.filter(|name| fs::symlink_metadata(dot_git.join(name)).is_ok()).collect();
    if !unfinished.is_empty() {
        found.push(format!("unfinished in .git: {}", unfinished.join(", ")));
    }
    for (what, paths) in [
        ("nested repository", &walked.nested_repositories),
        ("unreadable", &walked.unreadable),
        ("too large to measure", &walked.too_large),
    ] {
        if !paths.is_empty() {
            let list = paths.iter().take(10).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            found.push(format!("{what}: {list}"));
        }
    }
    match found.is_empty() {
        true => Vec::new(),
        false => vec![Finding { code: Code::DirtyEndingTree, detail: Some(found.join("; ")) }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_git_would_refuse_is_a_limit_reached() {
        assert_eq!(oversize(MAX_PATCH), None);
        assert_eq!(oversize(MAX_PATCH + 1).map(|finding| finding.code), Some(Code::ResourceLimit));
    }
}
