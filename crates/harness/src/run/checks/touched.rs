//! What the change did to tests and to what runs them; and tracked files that setup or a check wrote to:
//! what was measured must be what was checked, and what will be applied.

use std::collections::BTreeSet;

use cto_core::checks::names::inline_tests::inline_tests_changed;
use cto_core::checks::names::rewrites::{Rewrite, Writer, rewrite};
use cto_core::checks::names::test_files::{self, Names};
use cto_core::checks::runners::otherwise;
use cto_core::run::event::VerificationCompleted;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::change::Change;
use cto_core::workspace::tree::{FileKind, Tree};

use super::session::Session;
use crate::plan::runners::text;
use crate::run::execution::Stop;
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Contents;
use crate::workspace::private_copy::PrivateCopy;

/// A new run is sealed by the newest rules.
const NAMES: Names = Names::Broader;

/// What is no longer as it was measured, and who wrote to it.
#[derive(Default)]
pub(super) struct Rewritten {
    pub by_setup: BTreeSet<TreePath>,
    pub by_checks: BTreeSet<TreePath>,
    /// What the same commands wrote to where nothing was changed, once that is known.
    pub on_the_baseline: BTreeSet<TreePath>,
}

impl Rewritten {
    /// Would this be held against the change, if the baseline were not asked?
    pub fn wants_the_baseline(&self, measured: &Tree) -> bool {
        let code = |path: &TreePath| {
            rewrite(path, kind_of(path, measured), Writer::Check, false) == Rewrite::Untrusted
        };
        self.by_checks.iter().any(code)
    }

    pub fn take_over(&mut self, other: Self) {
        self.by_setup.extend(other.by_setup);
        self.by_checks.extend(other.by_checks);
        self.on_the_baseline.extend(other.on_the_baseline);
    }

    /// What each of them means.
    pub fn tell(&self, done: &mut VerificationCompleted, measured: &Tree) {
        let by_setup = self.by_setup.iter().map(|path| (path, Writer::Setup));
        let by_checks = self.by_checks.difference(&self.by_setup);
        let all = by_setup.chain(by_checks.map(|path| (path, Writer::Check)));
        let (mut untrusted, mut named) = (BTreeSet::new(), BTreeSet::new());
        for (path, writer) in all {
            let kind = kind_of(path, measured);
            match rewrite(path, kind, writer, self.on_the_baseline.contains(path)) {
                Rewrite::Untrusted => untrusted.insert(path.clone()),
                Rewrite::Named => named.insert(path.clone()),
                Rewrite::Scratch => false,
            };
        }
        done.rewritten_test_files = untrusted.into_iter().collect();
        done.rewritten_files = named.into_iter().collect();
    }
}

/// What is not in the tree was not measured as anything else.
fn kind_of(path: &TreePath, measured: &Tree) -> FileKind {
    measured
        .get(path)
        .map_or(FileKind::Regular, |entry| entry.kind)
}

impl Session<'_> {
    /// What is known before anything ran.
    pub(super) fn begun(&self) -> Result<VerificationCompleted, Stop> {
        let baseline = self.workspace.baseline();
        let changed = || self.measured.changes.iter().map(|change| &change.path);
        let is_named = |path: &&TreePath| {
            test_files::is_runner_config(NAMES, path)
                || (baseline.contains_key(*path) && test_files::is_test_file(NAMES, path))
        };
        let inline = self.changed_inline_tests()?;
        let is_named = |path: &&TreePath| is_named(path) || inline.contains(path);
        Ok(VerificationCompleted {
            tree: Some(self.measured.digest),
            changed_test_files: changed().filter(is_named).cloned().collect(),
            runner_takeovers: test_files::runner_takeovers(
                NAMES,
                changed(),
                &self.execution.plan.contract.allowed_paths,
            ),
            recognised_otherwise: self.recognised_otherwise(),
            ..VerificationCompleted::nothing(Digest::of(b""))
        })
    }

    /// Commands that the change made into others.
    fn recognised_otherwise(&self) -> Vec<String> {
        let contract = &self.execution.plan.contract;
        let changes = self.measured.changes.iter();
        let changed: Vec<String> = changes
            .map(|change| String::from_utf8_lossy(change.path.as_bytes()).into_owned())
            .collect();
        let look = |of: Option<&Measured>, path: &TreePath| {
            let found = self.workspace.contents(of, &|other| other == path);
            match found.ok()?.remove(path)? {
                (FileKind::Symlink, _) => None,
                (_, bytes) => text(bytes),
            }
        };
        let mut before = |path: &str| look(None, &TreePath::new(path.as_bytes()));
        let mut after = |path: &str| {
            let path = TreePath::new(path.as_bytes());
            // What did not change is as it was.
            let is_it = |change: &Change| change.path == path;
            let measured = self.measured.changes.iter().any(is_it);
            look(measured.then_some(self.measured), &path)
        };
        otherwise(contract, &changed, &mut before, &mut after)
    }

    /// Changed files of Rust in which tests stand that are not as they were.
    fn changed_inline_tests(&self) -> Result<BTreeSet<TreePath>, Stop> {
        let baseline = self.workspace.baseline();
        let changes = self.measured.changes.iter().map(|change| &change.path);
        let rust =
            |path: &&TreePath| path.as_bytes().ends_with(b".rs") && baseline.contains_key(*path);
        let changed: BTreeSet<&TreePath> = changes.filter(rust).collect();
        if changed.is_empty() {
            return Ok(BTreeSet::new());
        }
        let wanted = |path: &TreePath| changed.contains(path);
        let before = self.workspace.contents(None, &wanted)?;
        let after = self.workspace.contents(Some(self.measured), &wanted)?;
        let differ = |path: &&&TreePath| {
            let text = |of: &Contents| of.get(**path).map(|(_, bytes)| bytes.clone());
            let (before, after) = (text(&before), text(&after));
            inline_tests_changed(&before.unwrap_or_default(), &after.unwrap_or_default())
        };
        Ok(changed
            .iter()
            .filter(differ)
            .map(|path| (*path).clone())
            .collect())
    }

    /// Files of a tree that a copy no longer holds as they were.
    pub(super) fn no_longer(copy: &PrivateCopy, tree: &Tree) -> BTreeSet<TreePath> {
        copy.no_longer(tree).into_iter().collect()
    }
}
