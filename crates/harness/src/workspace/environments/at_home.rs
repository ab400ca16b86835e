//! Environments laid out in a copy by what it holds: what a tool would take for made of that, and is
//! not, stays at home.

use std::collections::BTreeSet;
use std::io;

use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::EnvironmentKind;
use cto_core::workspace::times::at_home::AtHome;
use cto_core::workspace::times::compiled::may_be_made_of;
use cto_core::workspace::times::links::{Links, stays_in_copy};
use cto_core::workspace::times::{Differences, Reach};
use cto_core::workspace::tool_home::maven;
use cto_core::workspace::tree::{FileKind, Tree};

use crate::workspace::environments::homes::{self, Built};
use crate::workspace::environments::{Environments, Laid, One};
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;
use crate::workspace::private_copy::PrivateCopy;

impl Environments {
    /// How far a name that came or went is felt.
    pub fn reach(&self) -> Reach {
        let carried = self.carried();
        Reach::of(carried.all.iter().map(|one| one.environment.record.kind))
    }

    /// The compiled modules among them.
    fn modules(&self) -> Vec<TreePath> {
        let is_module =
            |one: &&One| one.environment.record.kind == EnvironmentKind::ExtensionModule;
        let carried = self.carried();
        let modules = carried.all.iter().filter(is_module);
        modules
            .map(|one| one.environment.record.path.clone())
            .collect()
    }
}

impl Workspace {
    /// Lays every environment out for one jail in a copy that holds `measured`, or the baseline.
    pub fn lay(&self, copy: &PrivateCopy, measured: Option<&Measured>) -> io::Result<Laid> {
        let at_home = self.at_home(copy, measured);
        let built = self.built_by_maven(measured);
        self.environments().lay(copy, &at_home, &built)
    }

    /// The same once more for the next jail in the same copy.
    pub fn lay_again(
        &self,
        copy: &PrivateCopy,
        before: &Laid,
        measured: Option<&Measured>,
    ) -> io::Result<Laid> {
        let at_home = self.at_home(copy, measured);
        let built = self.built_by_maven(measured);
        self.environments()
            .lay_again(copy, before, &at_home, &built)
    }

    /// What the files that a change made or changed let Maven build. They are read as they were
    /// measured: whoever ran in the copy since had no part in them.
    fn built_by_maven(&self, measured: Option<&Measured>) -> Built {
        let changes = measured.iter().flat_map(|measured| &measured.changes);
        let changed: BTreeSet<&TreePath> = changes
            .map(|change| &change.path)
            .filter(|path| maven::counts(path))
            .collect();
        let Some(measured) = measured.filter(|_| !changed.is_empty()) else {
            return Some(BTreeSet::new());
        };
        let mut texts = Vec::new();
        let mut take = |path: &TreePath, _, content: &mut dyn io::Read| {
            texts.push((path.clone(), homes::description(content)?));
            Ok(())
        };
        let wanted = |path: &TreePath| changed.contains(path);
        self.repo
            .each_file(&measured.commit, &wanted, &mut take)
            .ok()?;
        let texts = texts.iter().map(|(path, text)| (path, text.as_deref()));
        maven::own(texts, measured.tree.keys(), [])
    }

    fn at_home(&self, copy: &PrivateCopy, measured: Option<&Measured>) -> AtHome {
        let Some(work_tree) = &self.work_tree else {
            return AtHome::default();
        };
        let tree = measured.map_or(self.baseline(), |measured| &measured.tree);
        let found = Differences::of(work_tree, self.baseline(), tree);
        AtHome {
            by_times: self.leads_away(copy, tree, &found),
            compiled: self.made_of(&found),
        }
    }

    /// A link that is not the same, and leads into an environment or out of the copy.
    fn leads_away(
        &self,
        copy: &PrivateCopy,
        tree: &Tree,
        found: &Differences<'_>,
    ) -> Option<TreePath> {
        if found.links.is_empty() {
            return None;
        }
        let all = tree.iter();
        let links: Links = all
            .filter(|(_, entry)| entry.kind == FileKind::Symlink)
            .map(|(path, entry)| (path.clone(), copy.link_text(path, entry)))
            .collect();
        let places: BTreeSet<TreePath> = self.environments().places().keys().cloned().collect();
        let mut others = found.links.iter().filter(|path| links.contains_key(**path));
        let away = others.find(|path| !stays_in_copy(path, &links, &places));
        away.map(|path| (*path).clone())
    }

    /// Something that is not the same, and of which compiled modules may have been made.
    fn made_of(&self, found: &Differences<'_>) -> Option<TreePath> {
        let modules = self.environments().modules();
        if modules.is_empty() {
            return None;
        }
        let modules: Vec<&TreePath> = modules.iter().collect();
        let is_package = |dir: &[u8]| {
            let sign = TreePath::new([dir, b"/__init__.py"].concat());
            self.baseline().contains_key(&sign)
        };
        let mut paths = found.paths().into_iter();
        let source = paths.find(|path| may_be_made_of(path, &modules, is_package));
        source.cloned()
    }
}
