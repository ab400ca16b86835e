//! What a baseline depends on, gathered from the plan and from this host: its key. Where it cannot all
//! be known, no baseline is.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::checks::known_baseline::BaselineParts;
use cto_core::checks::test_ids::baseline::on_the_baseline;
use cto_core::containment::Containment;
use cto_core::containment::mounts::Granted;
use cto_core::containment::mounts::search::{Offer, Part};
use cto_core::gate::plan::Plan;
use cto_core::task::contract::Runner;
use cto_core::values::digest::Digest;
use cto_core::workspace::environment::StateDigest;

use super::kept::{self, Known};
use super::test_names;
use crate::evidence::secrets::Secrets;
use crate::host;
use crate::run::execution::Execution;
use crate::workspace::environments::state::{self, seen_of};
use crate::workspace::of_run::Workspace;

/// The key of a run's baseline, and a kept one where there is one.
#[derive(Default)]
pub struct Baseline {
    pub key: Option<Digest>,
    pub known: Option<Known>,
}

impl Baseline {
    /// Looks for a baseline that ran before. Only where processes are contained is it certain that
    /// nothing but this program could have written it.
    pub fn look(execution: &Execution<'_>, workspace: &Workspace, secrets: &Secrets) -> Self {
        let (plan, memory) = (execution.plan, execution.baseline);
        let Some(runner) = plan.contract.compared_runner() else {
            return Self::default();
        };
        if plan.containment == Containment::None || memory == BaselineMemory::None {
            return Self::default();
        }
        let key = parts(execution, workspace, runner).and_then(|parts| parts.key().ok());
        let known = key
            .filter(|_| memory == BaselineMemory::Use)
            .and_then(|key| kept::find(execution.home, &key, host::now(), secrets));
        Self { key, known }
    }

    /// For people: since when it is known.
    pub fn words(&self) -> Option<String> {
        let known = self.known.as_ref()?;
        Some(format!("baseline known since {}", known.kept.made_at))
    }
}

/// What a run does with kept baselines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaselineMemory {
    /// It neither uses nor keeps one.
    None,
    /// It runs its own and keeps it.
    Renew,
    Use,
}

fn parts(
    execution: &Execution<'_>,
    workspace: &Workspace,
    runner: Runner,
) -> Option<BaselineParts> {
    let plan = execution.plan;
    let contract = &plan.contract;
    let mut inputs = BTreeMap::new();
    for input in &plan.inputs {
        let state = state::look(input.source.path()).ok()?;
        inputs.insert(input.path.clone(), state.digest);
    }
    let told = plan.search.env.iter();
    let variables = told.chain(&contract.variables).chain(&plan.tools);
    let source = plan.source.iter();
    Some(BaselineParts {
        binary: execution.own,
        host: host_state()?,
        tree: workspace.baseline_digest(),
        git: source
            .flat_map(|look| {
                let status = format!("{:?}", look.status);
                [look.tree.clone(), look.head.clone(), status]
            })
            .chain(workspace.beside_the_tree())
            .collect(),
        setup: contract.setup.clone(),
        commands: on_the_baseline(
            runner,
            &contract.verification_commands,
            &contract.recognised,
        ),
        runner,
        kit: test_names::kit(&contract.runners()),
        environments: plan.environment_uses(),
        inputs,
        toolchains: plan
            .toolchains
            .iter()
            .map(|toolchain| toolchain.record.clone())
            .collect(),
        search: search(plan)?,
        shown: shown(plan)?,
        variables: variables
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        limits: plan.limits,
        containment: plan.containment,
        masked: plan.guard.masked.clone(),
        trace: contract.trace,
        workspace: format!("{:?}", plan.workspace),
        stand: plan.stand.path().to_str()?.to_owned(),
    })
}

/// Every place that is searched for programs, and every program that is offered by itself.
fn search(plan: &Plan) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for part in &plan.search.parts {
        match part {
            Part::Dir { dir, .. } => lines.push(format!("dir {}", dir.to_str()?)),
            Part::Ours(offers) => {
                lines.push("ours".to_owned());
                for (name, offer) in offers {
                    lines.push(match offer {
                        Offer::Link { to, .. } => format!("{name} {}", to.to_str()?),
                        Offer::Choice { text, .. } => format!("{name} {text}"),
                        Offer::NotShown(why) => format!("{name} not shown: {why}"),
                    });
                }
            }
        }
    }
    for dir in &plan.search.last {
        lines.push(format!("last {}", dir.to_str()?));
    }
    Some(lines)
}

/// What of the host the commands are shown beyond the system. Files in it are not read: a package
/// that comes or goes changes a directory near its top.
fn shown(plan: &Plan) -> Option<BTreeMap<String, Digest>> {
    const DEPTH: usize = 4;
    let granted = plan
        .toolchains
        .iter()
        .flat_map(|toolchain| &toolchain.mounts)
        .chain(plan.search.mounts())
        .chain(plan.environments.iter().flat_map(|found| &found.also));
    let place = |granted: &Granted| {
        let (path, target) = (granted.path().to_str()?, granted.target().to_str()?);
        Some((
            format!("{path} at {target}"),
            directories(granted.path(), DEPTH)?,
        ))
    };
    granted.map(place).collect()
}

/// What package managers write when something of the system comes or goes. Programs that the commands
/// name are bound by their bytes.
const SYSTEM: [&str; 8] = [
    "/var/lib/dpkg/status",
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
    "/var/lib/pacman/local",
    "/lib/apk/db/installed",
    "/etc/alternatives",
    "/usr/lib/node_modules",
    "/usr/local/lib/node_modules",
];
/// What people put beside the system, and every jail has: programs there are started by others, whose
/// names no command holds. Every entry counts.
const BESIDE: [&str; 2] = ["/usr/local/bin", "/usr/local/lib"];
/// Where packages of the system's Pythons lie.
const PYTHONS: [&str; 2] = ["/usr/lib", "/usr/local/lib"];
const PACKAGES: [&str; 2] = ["dist-packages", "site-packages"];

fn host_state() -> Option<Digest> {
    let kernel = rustix::system::uname();
    let user = rustix::process::geteuid().as_raw();
    let mut text = format!(
        "{:?} {:?} {:?} {user}\n",
        kernel.release(),
        kernel.version(),
        kernel.machine()
    );
    let mut places: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    for dir in PYTHONS {
        let pythons = entries(Path::new(dir))?;
        let pythons = pythons
            .iter()
            .filter(|entry| entry.file_name().as_bytes().starts_with(b"python3"));
        places.extend(pythons.flat_map(|python| PACKAGES.map(|name| python.path().join(name))));
    }
    places.sort_unstable();
    for place in places {
        let state = directories(&place, 0)?.to_hex();
        text.push_str(&format!("{} {state}\n", place.display()));
    }
    for place in BESIDE {
        text.push_str(&format!("{place} {}\n", listed(Path::new(place))?.to_hex()));
    }
    Some(Digest::of(text.as_bytes()))
}

/// Is nothing there? Anything else that keeps a place from being looked at is no answer.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// What a directory holds. One that this user may not read, no command of the run reads either.
fn entries(dir: &Path) -> Option<Vec<DirEntry>> {
    match fs::read_dir(dir) {
        Ok(found) => found.collect::<io::Result<_>>().ok(),
        Err(error) if is_absent(&error) => Some(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(Vec::new()),
        Err(_) => None,
    }
}

/// What the kernel says of a directory and of all that lies in it, and of what links there lead to.
fn listed(dir: &Path) -> Option<Digest> {
    let mut digest = StateDigest::default();
    match fs::metadata(dir) {
        Ok(meta) => digest.take(b"", &seen_of(&meta)),
        Err(error) if is_absent(&error) => return Some(digest.finish()),
        Err(_) => return None,
    }
    let mut found = entries(dir)?;
    found.sort_unstable_by_key(DirEntry::file_name);
    for entry in found {
        let name = entry.file_name();
        digest.take(name.as_bytes(), &seen_of(&entry.metadata().ok()?));
        match fs::metadata(entry.path()) {
            Ok(meta) => digest.take(b"/", &seen_of(&meta)),
            Err(error) if is_absent(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(_) => return None,
        }
    }
    Some(digest.finish())
}

/// What the kernel says of a place and of the directories in it, down to some depth.
fn directories(root: &Path, depth: usize) -> Option<Digest> {
    /// What has more is known by the first of them.
    const MOST: usize = 4096;
    let mut digest = StateDigest::default();
    let mut pending = vec![(PathBuf::new(), 0)];
    let mut count = 0;
    while let Some((path, at)) = pending.pop() {
        let place = root.join(&path);
        let meta = match fs::symlink_metadata(&place) {
            Ok(meta) => meta,
            Err(error) if is_absent(&error) => continue,
            Err(_) => return None,
        };
        digest.take(path.as_os_str().as_bytes(), &seen_of(&meta));
        count += 1;
        if at >= depth || count > MOST || !meta.is_dir() {
            continue;
        }
        // What Python compiled says nothing that its source does not.
        let dirs = entries(&place)?.into_iter().filter(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != "__pycache__"
        });
        let mut names: Vec<PathBuf> = dirs.map(|entry| path.join(entry.file_name())).collect();
        names.sort_unstable();
        pending.extend(names.into_iter().map(|path| (path, at + 1)));
    }
    Some(digest.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_near_the_top_is_seen() {
        let house = tempfile::tempdir().unwrap();
        let top = house.path().join("python");
        let packages = top.join("lib/python3/site-packages");
        fs::create_dir_all(packages.join("one/deep")).unwrap();
        let first = directories(&top, 4);
        assert!(first.is_some());
        assert_eq!(directories(&top, 4), first);
        fs::create_dir(packages.join("two")).unwrap();
        let second = directories(&top, 4);
        assert_ne!(second, first);
        fs::remove_dir(packages.join("two")).unwrap();
        assert_ne!(directories(&top, 4), second);
        let before = directories(&top, 4);
        fs::write(packages.join("one/deep/too.py"), "").unwrap();
        assert_eq!(
            directories(&top, 4),
            before,
            "below that nothing is looked at"
        );
    }

    #[test]
    fn every_program_beside_the_system_is_seen() {
        let house = tempfile::tempdir().unwrap();
        let bin = house.path().join("bin");
        let none = listed(&bin).unwrap();
        fs::create_dir(&bin).unwrap();
        let (tool, link) = (bin.join("tool"), bin.join("link"));
        let elsewhere = house.path().join("elsewhere");
        let mut states = vec![none, listed(&bin).unwrap()];
        let mut now = |what: &str| {
            let state = listed(&bin).unwrap();
            assert_eq!(listed(&bin), Some(state));
            assert!(!states.contains(&state), "{what}");
            states.push(state);
        };
        fs::write(&tool, "1").unwrap();
        now("a program");
        // Written over in its place: the directory stays what it was.
        fs::write(&tool, "22").unwrap();
        now("other bytes");
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        now("a link to nothing");
        fs::write(&elsewhere, "1").unwrap();
        now("what it leads to");
        fs::write(&elsewhere, "22").unwrap();
        now("other bytes there");
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_nothing() {
        let house = tempfile::tempdir().unwrap();
        let (absent, file) = (house.path().join("absent"), house.path().join("file"));
        fs::write(&file, "").unwrap();
        assert!(directories(&absent, 0).is_some());
        assert!(directories(&file.join("below"), 0).is_some());
        // A name that no file system takes, and a link that leads to itself.
        let long = house.path().join("x".repeat(300));
        let round = house.path().join("round");
        std::os::unix::fs::symlink(&round, &round).unwrap();
        for place in [long.clone(), long.join("below"), round.join("below")] {
            assert_eq!(directories(&place, 0), None, "{}", place.display());
            assert_eq!(listed(&place), None, "{}", place.display());
        }
        assert!(host_state().is_some());
    }
}
