//! Environments of the operator's work tree, as a plan needs them: found, looked at and decided
//! about (`core/workspace/environment.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cto_core::containment::environment_masks::{is_hidden_in_environment, overlaps_masked};
use cto_core::containment::guard::Decision;
use cto_core::containment::mounts::Granted;
use cto_core::gate::HostFacts;
use cto_core::gate::plan::Environment;
use cto_core::task::contract::Contract;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{
    Carried, EnvironmentFacts, EnvironmentKind, EnvironmentUse, MOST_COPIED_BYTES,
    MOST_COPIED_FILES, decide_environment,
};
use cto_core::workspace::times::Time;
use cto_core::workspace::tools::tool_variables;

use crate::host::files;
use crate::host::places::Places;
use crate::host::toolchains::base_of;
use crate::host::{Env, Home};
use crate::plan::Planned;
use crate::plan::tool_homes::LookAtHomes;
use crate::task::request::{EnvironmentChoice, Request};
use crate::workspace::environments::FirstLook;
use crate::workspace::environments::find::{self, Candidate};
use crate::workspace::environments::probe;
use crate::workspace::environments::state::{self, State};
use crate::workspace::on_disk::locate;

/// Something to be decided about: what the table found, or what the operator named.
struct Wanted {
    candidate: Candidate,
    place: PathBuf,
    named: bool,
    ignored: bool,
}

/// Everything that was found, carried or not. Without a jail there is nothing to carry into.
pub fn gather(
    planned: &mut Planned,
    request: &Request,
    host: &HostFacts,
    env: &Env,
    home: &Home,
    decided: &Decision,
) -> (Vec<Environment>, FirstLook) {
    let mut looked = FirstLook {
        since: Instant::now(),
        newest: BTreeMap::new(),
    };
    let (Some(choice), Some(tree), Some(contract)) = (
        &request.environments,
        planned.tree.take(),
        planned.contract.valid(),
    ) else {
        return (Vec::new(), looked);
    };
    let Some(view) = planned
        .source
        .as_ref()
        .filter(|_| host.jail_missing.is_empty())
    else {
        return (Vec::new(), looked);
    };
    let top = &view.repo.top;
    let mut wanted: Vec<Wanted> = Vec::new();
    for input in &host.inputs {
        let place = input.source.path().to_owned();
        // A single file stays what it was: shown, and not written.
        if place.is_dir() {
            let kind = find::kind_at(&place).unwrap_or(EnvironmentKind::Named);
            wanted.push(Wanted {
                candidate: Candidate {
                    path: TreePath::new(input.path.as_bytes()),
                    kind,
                    is_link: false,
                },
                place,
                named: true,
                ignored: true,
            });
        }
    }
    if !choice.cold {
        let mut found = find::candidates(top, &tree);
        found.retain(|found| {
            !wanted
                .iter()
                .any(|named| named.candidate.path == found.path)
        });
        let ignored = ignored_of(&found, view);
        wanted.extend(found.into_iter().map(|candidate| Wanted {
            place: locate(top, &candidate.path),
            named: false,
            ignored: ignored.contains(&candidate.path),
            candidate,
        }));
    }
    wanted.sort_by(|one, other| one.candidate.path.cmp(&other.candidate.path));
    let places = Places::of(env, home);
    let in_homes = match choice.cold {
        true => Vec::new(),
        false => LookAtHomes {
            contract,
            tree: &tree,
            view,
            host,
            env,
            home,
            places: &places,
        }
        .gather(),
    };
    let look = Look {
        choice,
        contract,
        masked: &decided.guard.masked,
        overlay: host.overlay,
        places,
        home,
    };
    let of_tree = wanted
        .iter()
        .map(|wanted| look.decide(wanted, &mut looked.newest));
    let found = of_tree.chain(in_homes).collect();
    (found, looked)
}

/// Variables for tools in jails of a run that copies somebody's own repository.
pub fn tools(planned: &Planned, request: &Request) -> BTreeMap<String, String> {
    const MOST: u64 = 1 << 20;
    let (Some(_), Some(view), Some(contract)) = (
        &request.environments,
        &planned.source,
        planned.contract.valid(),
    ) else {
        return BTreeMap::new();
    };
    let text = files::read_limited(&view.repo.top.join("tox.ini"), MOST).ok();
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let carried = planned
        .environments
        .iter()
        .filter(|found| found.record.is_carried());
    let homes: BTreeSet<(EnvironmentKind, String)> = carried
        .filter_map(|found| Some((found.record.kind, found.in_home.as_ref()?)))
        .map(|(kind, place)| (kind, place.root().display().to_string()))
        .collect();
    let homes: Vec<_> = homes.into_iter().collect();
    tool_variables(text.as_deref(), &homes, &contract.variables)
}

/// Those that git ignores: as a directory, or by what they say of everything in them.
fn ignored_of(found: &[Candidate], view: &super::SourceView) -> Vec<TreePath> {
    let inside = |path: &TreePath| TreePath::new([path.as_bytes(), b"/x"].concat());
    let asked: Vec<TreePath> = found
        .iter()
        .filter(|found| !found.is_link)
        .flat_map(|found| [found.path.clone(), inside(&found.path)])
        .collect();
    if asked.is_empty() {
        return Vec::new();
    }
    // Git that gives no answer leaves everything at home.
    let answer = view.repo.ignored(view.excludes.as_deref(), &asked);
    let ignored = answer.unwrap_or_default();
    let is = |path: &TreePath| ignored.contains(path) || ignored.contains(&inside(path));
    found
        .iter()
        .map(|found| found.path.clone())
        .filter(is)
        .collect()
}

struct Look<'a> {
    choice: &'a EnvironmentChoice,
    contract: &'a Contract,
    masked: &'a [TreePath],
    overlay: bool,
    places: Places,
    home: &'a Home,
}

impl Look<'_> {
    /// Decides about one, and tells the youngest time in it where it was looked at.
    fn decide(&self, wanted: &Wanted, newest: &mut BTreeMap<TreePath, Time>) -> Environment {
        let Candidate {
            path,
            kind,
            is_link,
        } = &wanted.candidate;
        let by_name = !wanted.named && is_hidden_in_environment(path);
        let mut facts = EnvironmentFacts {
            kind: *kind,
            ignored: wanted.ignored,
            is_link: *is_link,
            taken_away: self.choice.without.contains(path),
            hidden: by_name || overlaps_masked(path, self.masked),
            granted: true,
            readable: true,
            python_gone: false,
            foreign: false,
            forbidden: self.is_forbidden(path),
            from_the_future: false,
            files: 0,
            bytes: 0,
            hidden_files: 0,
            overlay: self.overlay,
        };
        // Nothing of it is looked at that would not be carried anyway.
        let (mut state, mut granted, mut also) = (None, None, Vec::new());
        if decide_environment(&facts).0 != Carried::Not {
            state = state::look(&wanted.place).ok();
            granted = self.places.named(&wanted.place, false, &[]).ok();
            (facts.readable, facts.granted) = (
                state.as_ref().is_some_and(|state| state.readable),
                granted.is_some(),
            );
            newest.extend(state.iter().map(|state| (path.clone(), state.newest)));
            if let (Some(state), Some(granted)) = (&state, &granted) {
                self.measured(&mut facts, state, granted);
            }
            if *kind == EnvironmentKind::PythonVenv {
                match self.base(&wanted.place, granted.as_ref()) {
                    Ok(base) => also.extend(base),
                    Err(_) => facts.python_gone = true,
                }
            }
        }
        let (carried, why) = decide_environment(&facts);
        let is_carried = carried != Carried::Not;
        Environment {
            record: EnvironmentUse {
                path: path.clone(),
                kind: *kind,
                carried,
                why: why.map(str::to_owned),
                files: facts.files,
                bytes: facts.bytes,
                hidden: facts.hidden_files,
                state: state.as_ref().map(|state| state.digest),
            },
            source: granted.filter(|_| is_carried),
            hidden: state.map(|state| state.hidden).unwrap_or_default(),
            also: if is_carried { also } else { Vec::new() },
            in_home: None,
        }
    }

    fn measured(&self, facts: &mut EnvironmentFacts, state: &State, granted: &Granted) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = (
            i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            i64::from(now.subsec_nanos()),
        );
        (facts.files, facts.bytes) = (state.files, state.bytes);
        facts.hidden_files = state.hidden.len() as u64;
        facts.foreign = state.foreign;
        facts.from_the_future = state.newest > now;
        let large = state.files > MOST_COPIED_FILES || state.bytes > MOST_COPIED_BYTES;
        // A group that the jail does not have could not be given to what is changed.
        facts.overlay = self.overlay
            && !state.other_group
            && (!large || state.foreign || probe::can_be_below(granted, self.home));
    }

    /// What a Python environment is based on, where that is not part of the system.
    fn base(&self, place: &Path, granted: Option<&Granted>) -> Result<Vec<Granted>, String> {
        let known: Vec<Granted> = granted.cloned().into_iter().collect();
        base_of(place, &known, &self.places)
    }

    fn is_forbidden(&self, path: &TreePath) -> bool {
        let rules = &self.contract.forbidden_paths;
        rules.iter().any(|rule| {
            rule.covers(path) || rule.covers_all_below(path) || rule.reaches_below(path)
        })
    }
}
