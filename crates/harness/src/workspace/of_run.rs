//! The workspace of one run: a private copy for the engine, its baseline in a git directory that
//! only the harness holds, and fresh copies for checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cto_core::containment::Containment;
use cto_core::containment::masks;
use cto_core::gate::plan::{Environment, Plan};
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::checkout::WorkspaceKind;
use cto_core::workspace::times::{Time, WorkTree};
use cto_core::workspace::tree::{self, FileKind, Tree};

use crate::host::programs::Program;
use crate::host::{self, Home};
use crate::task::cases::{Case, FixtureFile};
use crate::workspace::WorkspaceError;
use crate::workspace::checkout::{self, Checkout, Wanted};
use crate::workspace::checks_git::{BELOW, ChecksGit, beside_tags};
use crate::workspace::environments::copying::set_time;
use crate::workspace::environments::{Environments, FirstLook, Laid, Live};
use crate::workspace::git::{Commit, HarnessRepo, ModuleFiles, SourceRepo, Submodule};
use crate::workspace::measure::Measured;
use crate::workspace::on_disk::{self, Apart, Bounds, Walked};
use crate::workspace::overlay::Overlay;
use crate::workspace::private_copy::PrivateCopy;
use crate::workspace::stamping;
use crate::workspace::work_tree::{self, LookAtTree};

/// A private copy with a baseline that only the harness holds.
pub struct Workspace {
    pub(super) copy: PrivateCopy,
    pub(super) work: PathBuf,
    pub(super) repo: HarnessRepo,
    pub(super) baseline_commit: Commit,
    pub(super) start: Start,
    pub(super) checks_git: ChecksGit,
    pub(super) modules: ModuleFiles,
    pub(super) environments: Environments,
    /// The work tree, where times of its files matter.
    pub(super) work_tree: Option<WorkTree>,
    /// When the files of plain copies were written, as the git directory kept for them knows it.
    dated: Time,
    /// How those of the engine's copy were laid out; its setup works with the same.
    laid: Laid,
    /// How it was made, in words.
    pub made: &'static str,
}

/// Where fresh copies of the baseline come from.
pub(super) enum Start {
    /// Files of a case, in memory.
    Fixture {
        files: Vec<FixtureFile>,
        baseline: Tree,
    },
    /// The baseline commit in the harness's own repository.
    Commit {
        submodules: Vec<Submodule>,
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

/// What stands in some files.
pub type Contents = BTreeMap<TreePath, (FileKind, Vec<u8>)>;

/// Where the overlay of a run's workspace lies in its work directory.
pub(super) const OVERLAY: &str = "overlay";
/// The plain copy there, and a kept workspace laid out for a person.
pub const PLAIN: &str = "workspace";

/// What a workspace is made from: a plan, the files it names, and where they are put.
pub struct MadeFrom<'a> {
    pub case: &'a Case,
    pub plan: &'a Plan,
    /// The repository to copy; without one the case brings the files.
    pub source: Option<&'a SourceRepo>,
    /// The cached checkout of the source, where planning found one.
    pub checkout: Option<Arc<Checkout>>,
    /// When planning looked at environments.
    pub looked: Option<&'a FirstLook>,
    pub home: &'a Home,
    /// The run's directory below `work/`.
    pub work: &'a Path,
    pub git: &'a Program,
}

impl Workspace {
    pub fn prepare(from: &MadeFrom<'_>) -> Result<Self, WorkspaceError> {
        host::make_private_dir(from.work).map_err(WorkspaceError::Io)?;
        let (tags, made) = beside_tags(from.source, || match (from.source, from.plan.workspace) {
            (Some(source), WorkspaceKind::Overlay) => Self::over_checkout(from, source),
            (source, _) => Self::plain(from, source),
        });
        let mut workspace = made?;
        workspace.checks_git = ChecksGit::of(from, workspace.baseline(), tags);
        if let Some(source) = from.source {
            let named = workspace.named_submodules();
            let modules = source.lay_out_submodules(named, &from.work.join("modules"));
            workspace.modules = modules.map_err(WorkspaceError::Io)?;
            workspace.lay_modules(&workspace.copy)?;
        }
        let found = &from.plan.environments;
        workspace.environments =
            Environments::prepare(found, from.looked, from.work).map_err(WorkspaceError::Io)?;
        workspace.laid = workspace
            .lay(&workspace.copy, None)
            .map_err(WorkspaceError::Io)?;
        workspace
            .stamp(
                &workspace.copy,
                &workspace.laid,
                None,
                &BTreeSet::new(),
                &Live::default(),
            )
            .map_err(WorkspaceError::Io)?;
        if from.plan.containment != Containment::None {
            workspace.copy.hand_over().map_err(WorkspaceError::Io)?;
        }
        Ok(workspace)
    }

    fn plain(from: &MadeFrom<'_>, source: Option<&SourceRepo>) -> Result<Self, WorkspaceError> {
        let dir = from.work.join(PLAIN);
        let format = source.map(|source| source.format).unwrap_or_default();
        let repo = HarnessRepo::init(from.git, &from.work.join("harness.git"), format)?;
        let (mut work_tree, dated) = (None, on_disk::some_time_ago());
        let (baseline_commit, start) = match source {
            Some(source) => {
                let (baseline, commit, submodules) =
                    checkout::copy_head(source, &repo, &dir, &wanted(from))?;
                on_disk::date(&dir, &baseline, dated).map_err(WorkspaceError::Io)?;
                if let Some(look) = timed(from).map(|top| work_tree::look(top, &baseline)) {
                    let same = look.read(&baseline);
                    look.give_times(&dir, &same).map_err(WorkspaceError::Io)?;
                    work_tree = Some(known(from, look, &same, &baseline));
                }
                (
                    commit,
                    Start::Commit {
                        submodules,
                        baseline,
                    },
                )
            }
            None => {
                let laid_out = lay_out_fixture(from, &repo, &dir)?;
                on_disk::date(&dir, laid_out.1.baseline(), dated).map_err(WorkspaceError::Io)?;
                laid_out
            }
        };
        let masked = masks::seen_of_masked(start.baseline(), &from.plan.guard.masked);
        repo.furnish(&dir, &baseline_commit, &masked)?;
        repo.keep_below(&dir, &from.work.join(BELOW))?;
        if from.plan.contract.branch_policy.is_some() {
            repo.put_on_work_branch(&dir)?;
        }
        let (copy, work) = (PrivateCopy::Plain(dir), from.work.to_owned());
        Ok(Self {
            copy,
            work,
            repo,
            baseline_commit,
            start,
            checks_git: ChecksGit::default(),
            modules: ModuleFiles::default(),
            environments: Environments::default(),
            work_tree,
            dated,
            laid: Laid::default(),
            made: "copy",
        })
    }

    fn over_checkout(from: &MadeFrom<'_>, source: &SourceRepo) -> Result<Self, WorkspaceError> {
        let (checkout, made) = match &from.checkout {
            Some(known) if timed(from).is_none() => (known.clone(), "overlay, checkout known"),
            _ => match Checkout::find_or_make(from.home, from.git, source, &wanted(from))? {
                (found, false) => (Arc::new(found), "overlay, checkout known"),
                (new, true) => (Arc::new(new), "overlay, checkout made"),
            },
        };
        // Its name is git's tree id; that the contract means the same tree, and the plan the same
        // masks, is asked once more.
        if from.plan.contract.start_tree.known() != Some(&checkout.manifest.start_tree)
            || from.plan.guard.masked != checkout.manifest.masked
        {
            return Err(WorkspaceError::Differs(
                "the cached checkout is not the tree of the contract",
            ));
        }
        let work_tree = timed(from).map(|top| {
            let look = work_tree::look(top, &checkout.manifest.tree);
            match &checkout.times {
                Some((state, same)) if *state == look.key => {
                    known(from, look, same, &checkout.manifest.tree)
                }
                // Somebody touched it since: then nothing in the copy is old.
                _ => WorkTree::default(),
            }
        });
        let repo = HarnessRepo::beside(
            from.git,
            &from.work.join("harness.git"),
            &checkout.objects(),
            source.format,
        )?;
        let overlay = Overlay::fresh(checkout.clone(), &from.work.join(OVERLAY))
            .map_err(WorkspaceError::Io)?;
        let (copy, work, baseline_commit) = (
            PrivateCopy::Over(overlay),
            from.work.to_owned(),
            checkout.commit(),
        );
        Ok(Self {
            copy,
            work,
            repo,
            baseline_commit,
            start: Start::Checkout(checkout),
            checks_git: ChecksGit::default(),
            modules: ModuleFiles::default(),
            environments: Environments::default(),
            work_tree,
            dated: (0, 0),
            laid: Laid::default(),
            made,
        })
    }

    pub fn copy(&self) -> &PrivateCopy {
        &self.copy
    }

    /// How the engine's copy got the environments.
    pub fn laid(&self) -> &Laid {
        &self.laid
    }

    pub fn environments(&self) -> &Environments {
        &self.environments
    }

    /// What is in the engine's copy, without what was put there and is no part of the tree.
    pub(super) fn walk(&self) -> io::Result<Walked> {
        self.walk_within(Bounds::default())
    }

    /// The same for no more than this.
    pub(super) fn walk_within(&self, bounds: Bounds) -> io::Result<Walked> {
        self.copy.walk(self.environments.places(), bounds)
    }

    pub fn repo(&self) -> &HarnessRepo {
        &self.repo
    }

    pub fn baseline(&self) -> &Tree {
        self.start.baseline()
    }

    /// The digest of the baseline.
    pub fn baseline_digest(&self) -> Digest {
        match &self.start {
            Start::Checkout(checkout) => checkout.manifest.start_tree,
            Start::Fixture { baseline, .. } | Start::Commit { baseline, .. } => {
                tree::tree_digest(baseline)
            }
        }
    }

    pub(super) fn submodules(&self) -> Vec<&TreePath> {
        match &self.start {
            Start::Fixture { .. } => Vec::new(),
            Start::Commit { submodules, .. } => {
                submodules.iter().map(|module| &module.path).collect()
            }
            Start::Checkout(checkout) => checkout
                .manifest
                .submodules
                .iter()
                .map(|(path, _)| path)
                .collect(),
        }
    }

    fn named_submodules(&self) -> Vec<Submodule> {
        let of = |(path, commit): &(TreePath, String)| Submodule {
            path: path.clone(),
            commit: commit.clone(),
        };
        match &self.start {
            Start::Fixture { .. } => Vec::new(),
            Start::Commit { submodules, .. } => submodules.clone(),
            Start::Checkout(checkout) => checkout.manifest.submodules.iter().map(of).collect(),
        }
    }

    /// Submodules that are empty directories in every copy, and why.
    pub fn left_out_submodules(&self) -> &[(TreePath, &'static str)] {
        &self.modules.left_out
    }

    fn lay_modules(&self, copy: &PrivateCopy) -> Result<(), WorkspaceError> {
        let laid = self.modules.lay(&copy.changed_dir());
        laid.map_err(WorkspaceError::Io)
    }

    /// The files of the baseline that are `wanted`, where nobody has been.
    pub(super) fn fresh_copy(
        &self,
        dir: &Path,
        wanted: &dyn Fn(&TreePath) -> bool,
    ) -> Result<(), WorkspaceError> {
        if let Start::Fixture { files, .. } = &self.start {
            let files: Vec<&FixtureFile> = files.iter().filter(|file| wanted(&file.path)).collect();
            return on_disk::lay_out(dir, files, false).map_err(WorkspaceError::Io);
        }
        fs::create_dir(dir).map_err(WorkspaceError::Io)?;
        self.repo
            .each_file(&self.baseline_commit, wanted, &mut |path, kind, content| {
                on_disk::write_entry(dir, path, kind, content).map(drop)
            })?;
        checkout::empty_directories(dir, self.submodules()).map_err(WorkspaceError::Io)
    }

    /// The baseline alone where nobody has been, by the same way as the workspace, without a
    /// `.git`.
    pub fn untouched(&self, name: &str) -> Result<PrivateCopy, WorkspaceError> {
        let copy = self.tree_alone(name)?;
        self.lay_modules(&copy)?;
        Ok(copy)
    }

    fn tree_alone(&self, name: &str) -> Result<PrivateCopy, WorkspaceError> {
        let dir = self.work.join(name);
        match &self.start {
            Start::Checkout(checkout) => Overlay::of_files(checkout.clone(), &dir)
                .map(PrivateCopy::Over)
                .map_err(WorkspaceError::Io),
            Start::Fixture { .. } | Start::Commit { .. } => {
                self.fresh_copy(&dir, &|_| true)?;
                on_disk::date(&dir, self.baseline(), self.dated).map_err(WorkspaceError::Io)?;
                for (path, time) in self.work_tree.iter().flat_map(|known| &known.same) {
                    set_time(&on_disk::locate(&dir, path), *time).map_err(WorkspaceError::Io)?;
                }
                Ok(PrivateCopy::Plain(dir))
            }
        }
    }

    /// Files of the baseline, or of the result, with what stands in them; of a very large one, its
    /// beginning.
    pub fn contents(
        &self,
        measured: Option<&Measured>,
        wanted: &dyn Fn(&TreePath) -> bool,
    ) -> Result<Contents, WorkspaceError> {
        const MOST: u64 = 16 << 20;
        /// More are found sooner by listing all.
        const FEW: usize = 64;
        let mut found = Contents::new();
        let mut take = |path: &TreePath, kind, content: &mut dyn Read| {
            let mut bytes = Vec::new();
            io::Read::take(&mut *content, MOST).read_to_end(&mut bytes)?;
            io::copy(content, &mut io::sink())?;
            found.insert(path.clone(), (kind, bytes));
            Ok(())
        };
        let baseline = (&self.baseline_commit, self.baseline());
        let (commit, tree) = measured.map_or(baseline, |it| (&it.commit, &it.tree));
        let files: Vec<(&str, &TreePath, FileKind)> = tree
            .iter()
            .filter(|(path, _)| wanted(path))
            .map(|(path, entry)| {
                // What did not change is asked for once.
                let same = baseline.1.get(path) == Some(entry);
                let of = if same { baseline.0 } else { commit };
                (of.tree.as_str(), path, entry.kind)
            })
            .collect();
        if files.is_empty() {
            return Ok(found);
        }
        if files.len() > FEW || !self.repo.named_files(&files, &mut take)? {
            self.repo.each_file(commit, wanted, &mut take)?;
        }
        Ok(found)
    }

    /// A fresh copy of the baseline with the patch applied, proven equal to what was measured.
    pub fn pristine(
        &self,
        name: &str,
        measured: &Measured,
    ) -> Result<Result<PrivateCopy, String>, WorkspaceError> {
        let copy = self.tree_alone(name)?;
        let touched: Vec<TreePath> = measured
            .changes
            .iter()
            .map(|change| change.path.clone())
            .collect();
        let applied = copy
            .edit(&touched, |dir| self.repo.apply(dir, &[&measured.patch]))
            .map_err(WorkspaceError::Io)?;
        if let Err(error) = applied {
            return Ok(Err(format!(
                "the patch does not apply to a pristine copy: {error}"
            )));
        }
        let walked = copy
            .walk(&Apart::new(), Bounds::default())
            .map_err(WorkspaceError::Io)?;
        if walked.tree != measured.tree {
            let why = "the patched pristine copy is not the tree that was measured";
            return Ok(Err(why.into()));
        }
        self.lay_modules(&copy)?;
        Ok(Ok(copy))
    }
}

fn lay_out_fixture(
    from: &MadeFrom<'_>,
    repo: &HarnessRepo,
    dir: &Path,
) -> Result<(Commit, Start), WorkspaceError> {
    let fixture = &from.case.workspace;
    on_disk::lay_out(dir, fixture, false).map_err(WorkspaceError::Io)?;
    let with_history = from.plan.contract.branch_policy.is_some();
    let commit = repo.import_start(fixture, with_history)?;
    Ok((
        commit,
        Start::Fixture {
            files: fixture.clone(),
            baseline: from.case.baseline(),
        },
    ))
}

/// The tree the contract was resolved for.
fn wanted<'a>(from: &'a MadeFrom<'_>) -> Wanted<'a> {
    Wanted {
        git_tree: from.plan.source.as_ref().map_or("", |look| &look.tree),
        start_tree: from.plan.contract.start_tree.known(),
        masked: &from.plan.guard.masked,
        work_tree: timed(from),
    }
}

/// The work tree, where something is carried that tools judge by times.
fn timed<'a>(from: &'a MadeFrom<'_>) -> Option<&'a Path> {
    let carried = |found: &Environment| found.record.is_carried();
    let source = from.source?;
    from.plan
        .environments
        .iter()
        .any(carried)
        .then_some(source.top.as_path())
}

/// The work tree with what it holds and the copy does not. Where git told only how many there are,
/// nothing is known of it; nor where its owner changed any of it since it was opened: what is carried
/// may have been made in between, of what it held then.
fn known(
    from: &MadeFrom<'_>,
    look: LookAtTree,
    same: &BTreeSet<TreePath>,
    baseline: &Tree,
) -> WorkTree {
    let Some(status) = from.plan.source.as_ref().map(|look| &look.status) else {
        return WorkTree::default();
    };
    let opened = from.source.map_or((0, 0), |source| source.opened);
    let too_many = status.count > status.first.len() as u64;
    if too_many || stamping::may_be_since(look.changed, opened) {
        return WorkTree::default();
    }
    let others = status.first.iter();
    let left_out = others.filter(|path| !baseline.contains_key(*path));
    look.with(same, left_out.cloned().collect())
}
