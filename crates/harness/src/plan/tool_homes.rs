//! What tools keep in the operator's home, as a plan needs it: called for by the repository's files
//! or by a command, found, looked at and decided about (`core/workspace/tool_home/`).

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::Granted;
use cto_core::containment::mounts::stand::Stand;
use cto_core::gate::HostFacts;
use cto_core::gate::plan::Environment;
use cto_core::task::contract::Contract;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{EnvironmentKind, EnvironmentUse};
use cto_core::workspace::tool_home::{
    InHome, PartFacts, TOOL_HOMES, ToolHome, decide_part, matches, maven,
};
use cto_core::workspace::tree::Tree;

use crate::host::places::Places;
use crate::host::{Env, Home};
use crate::plan::source::SourceView;
use crate::workspace::environments::homes;
use crate::workspace::environments::probe;
use crate::workspace::environments::state;
use crate::workspace::on_disk::locate;

/// What a look needs to know.
pub struct LookAtHomes<'a> {
    pub contract: &'a Contract,
    pub tree: &'a Tree,
    pub view: &'a SourceView,
    pub host: &'a HostFacts,
    pub env: &'a Env,
    pub home: &'a Home,
    pub places: &'a Places,
}

impl LookAtHomes<'_> {
    /// Everything that is called for and there, carried or not.
    pub fn gather(&self) -> Vec<Environment> {
        let called_for = |row: &&ToolHome| row.is_called_for(self.tree.keys(), self.commands());
        let rows = TOOL_HOMES.iter().filter(called_for);
        rows.flat_map(|row| self.parts_of(row)).collect()
    }

    fn commands(&self) -> impl Iterator<Item = &str> {
        let commands = [
            &self.contract.setup,
            &self.contract.verification_commands,
            &self.contract.hidden_verification.commands,
        ];
        commands.into_iter().flatten().map(String::as_str)
    }

    fn parts_of(&self, row: &ToolHome) -> Vec<Environment> {
        let variable = |name: &str| {
            let typed = self.contract.variables.get(name).cloned();
            typed.or_else(|| Some(self.env.get(name)?.to_str()?.to_owned()))
        };
        let Some(named) = row.place(variable) else {
            return Vec::new();
        };
        let root = self.places.look(&named).path;
        let parts = row
            .parts
            .iter()
            .flat_map(|pattern| named_parts(&root, pattern));
        parts.map(|part| self.decide(row, &root, &part)).collect()
    }

    fn decide(&self, row: &ToolHome, root: &Path, part: &str) -> Environment {
        let (wholly, top) = (part.is_empty(), &self.view.repo.top);
        let place = if wholly {
            root.to_owned()
        } else {
            root.join(part)
        };
        let own = (row.kind == EnvironmentKind::MavenHome && part == homes::PACKAGES)
            .then(|| self.built_by_maven());
        let own_known = !matches!(own, Some(None));
        let covered = row.covered.iter().map(PathBuf::from);
        let built = own.flatten().unwrap_or_default();
        let built = built.iter().map(|path| locate(Path::new(""), path));
        let covered: Vec<PathBuf> = covered
            .chain(built)
            .map(|path| place.join(path))
            .filter(|dir| fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()))
            .collect();
        let granted = self.granted(row, root, &place);
        let mut facts = PartFacts {
            in_repository: place.starts_with(top) || top.starts_with(root),
            granted: granted.is_some(),
            readable: true,
            foreign: false,
            own_known,
            overlay: self.host.overlay,
            files: 0,
            bytes: 0,
            hidden_files: 0,
        };
        let mut names = None;
        if let (Some(granted), true) = (&granted, !facts.in_repository) {
            names = homes::look(&place, &covered).ok();
            facts.readable = names.as_ref().is_some_and(|names| names.readable);
            if let Some(names) = &names {
                facts.foreign = names.foreign;
                facts.files = names.files;
                facts.hidden_files = names.hidden.len() as u64;
                facts.overlay &= !names.other_group && probe::can_be_below(granted, self.home);
            }
            // Only a copy needs to know how large it will be.
            if !facts.overlay {
                facts.bytes = state::look(&place).map_or(u64::MAX, |state| state.bytes);
            }
        }
        let (carried, why) = decide_part(&facts);
        let target = place.clone();
        Environment {
            record: EnvironmentUse {
                path: TreePath::new(self.places.shorten(&place).into_bytes()),
                kind: row.kind,
                carried,
                why: why.map(str::to_owned),
                files: facts.files,
                bytes: facts.bytes,
                hidden: facts.hidden_files,
                state: names.as_ref().map(|names| names.digest),
            },
            source: granted.filter(|_| why.is_none()),
            hidden: names.map(|names| names.hidden).unwrap_or_default(),
            also: Vec::new(),
            in_home: Some(InHome {
                target,
                around: (!wholly).then(|| root.to_owned()),
                covered,
            }),
        }
    }

    /// Leave to show a part at its own path, where that is one at which a jail can have it.
    fn granted(&self, row: &ToolHome, root: &Path, place: &Path) -> Option<Granted> {
        let fits = |dir: &Path| self.places.stand(dir) == Stand::Own(dir.to_owned());
        // Maven's variable is a list of words.
        let whole = row.kind != EnvironmentKind::MavenHome
            || !root
                .to_str()
                .is_none_or(|text| text.contains(char::is_whitespace));
        if !whole || !fits(root) || !fits(place) {
            return None;
        }
        self.places.named(place, false, &[]).ok()
    }

    /// What the repository builds itself, by the files that are copied and not by those of the work
    /// tree; none where they do not say so.
    fn built_by_maven(&self) -> Option<BTreeSet<TreePath>> {
        let mut texts = Vec::new();
        let mut take = |path: &TreePath, _, content: &mut dyn Read| {
            texts.push((path.clone(), homes::description(content)?));
            Ok(())
        };
        let (repo, tree) = (&self.view.repo, &self.view.look.tree);
        repo.files_of(tree, &maven::counts, &mut take).ok()?;
        let texts = texts.iter().map(|(path, text)| (path, text.as_deref()));
        let given = self.contract.variables.get("MAVEN_ARGS");
        let given = given.map(|words| format!("mvn {words}"));
        let commands = self.commands().chain(given.as_deref());
        maven::own(texts, self.tree.keys(), commands)
    }
}

/// The parts of a directory that a name of the table means, as far as they are there.
fn named_parts(root: &Path, pattern: &str) -> Vec<String> {
    let is_dir = |part: &str| {
        let place = root.join(part);
        fs::symlink_metadata(place).is_ok_and(|meta| meta.is_dir())
    };
    if !pattern.ends_with('*') {
        let part = pattern.to_owned();
        return Some(part).filter(|part| is_dir(part)).into_iter().collect();
    }
    let names = fs::read_dir(root).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name());
    let named = names.filter(|name| matches(pattern, name.as_bytes()));
    let mut parts: Vec<String> = named
        .filter_map(|name| name.into_string().ok())
        .filter(|part| is_dir(part))
        .collect();
    parts.sort();
    parts
}
