//! Which runner a name, a file or a command of a document belongs to, where commands use several.

use std::collections::BTreeSet;

use super::TestIdDocument;
use super::of_file::files_of;
use crate::task::contract::Runner;
use crate::values::paths::TreePath;

impl TestIdDocument {
    /// The runners of one command; up to rules 6 there is one for all.
    pub(super) fn runners_of(&self, index: usize) -> BTreeSet<Runner> {
        let own = self.runners.get(index).cloned();
        own.unwrap_or_else(|| BTreeSet::from([self.runner]))
    }

    fn all_runners(&self) -> BTreeSet<Runner> {
        let all: BTreeSet<Runner> = self.runners.iter().flatten().copied().collect();
        match all.is_empty() {
            true => BTreeSet::from([self.runner]),
            false => all,
        }
    }

    /// The runner whose language a file is written in.
    pub fn runner_of(&self, path: &TreePath) -> Runner {
        let mut all = self.all_runners().into_iter();
        all.find(|runner| is_written_for(*runner, path))
            .unwrap_or(self.runner)
    }

    /// The files a name may stand for, whichever runner has said it. A package of Go has no end by
    /// which it is known: it is asked for last.
    pub(super) fn files_of<'a>(&self, name: &str, tree: &[&'a TreePath]) -> Vec<&'a TreePath> {
        let all = self.all_runners();
        let (go, others): (Vec<Runner>, Vec<Runner>) =
            all.into_iter().partition(|runner| *runner == Runner::Go);
        let of = |runner: Runner| files_of(runner, name, tree);
        let found: BTreeSet<&TreePath> = others.into_iter().flat_map(of).collect();
        match found.is_empty() {
            true => go.into_iter().flat_map(of).collect(),
            false => found.into_iter().collect(),
        }
    }
}

fn is_written_for(runner: Runner, path: &TreePath) -> bool {
    let mut parts = path.as_bytes().rsplit(|byte| *byte == b'.');
    let end = parts.next().unwrap_or_default();
    match runner {
        Runner::Unittest | Runner::Pytest => end == b"py",
        Runner::Cargo => end == b"rs",
        Runner::Go => end == b"go",
        _ => matches!(
            end,
            b"js" | b"mjs" | b"cjs" | b"jsx" | b"ts" | b"mts" | b"cts" | b"tsx"
        ),
    }
}

#[cfg(test)]
#[path = "by_runner_tests.rs"]
mod tests;
