//! A look at this host: what the harness starts by itself, the programs a contract names, and what it
//! has put beside its files.

use std::path::{Path, PathBuf};

use cto_core::containment::mounts::Granted;
use cto_core::gate::{self, HostFacts, InputUse, ToolchainUse};
use cto_core::task::contract::ContractDocument;

use super::{asked_of, confine, inputs};
use crate::host::places::Places;
use crate::host::toolchains::search::{self, Located, Wanted};
use crate::host::toolchains::{self, Found};
use crate::host::{self, Env, Home, failure, probes, programs};
use crate::task::request::Request;
use crate::workspace::{git, overlay};

/// What the harness starts by itself, whatever the contract says.
fn lane_missing(env: &Env, home: &Home) -> Vec<String> {
    let shell = Path::new(host::SHELL);
    let no_git = match programs::git(env, home) {
        Err(none) => Some(none.to_string()),
        Ok(git) => match git::own_programs(&git) {
            Err(error) => Some(failure::chain(&error)),
            Ok(dir) => programs::unclean(&dir, env, home)
                .map(|why| format!("git's own programs in {}: {why}", dir.display())),
        },
    };
    let no_shell = (!shell.is_file()).then(|| format!("{} is not there", shell.display()));
    [no_git, no_shell].into_iter().flatten().collect()
}

/// A place the operator has shown to the jails of this run.
fn named(path: &Path, request: &Request, places: &Places) -> Result<Granted, String> {
    let place = places
        .named(path, false, &[])
        .map_err(|refused| refused.to_string())?;
    let source = request.source.as_ref();
    let source = source.map(|source| places.look(&source.path).path);
    let near =
        |source: PathBuf| source.starts_with(place.path()) || place.path().starts_with(&source);
    if source.is_some_and(near) {
        return Err("it lies in the repository that is copied, or holds it; what git ignores of it is shown by --input".into());
    }
    let text = place.path().to_str();
    if text.is_none_or(|text| text.contains([':', '\n'])) {
        return Err("its real name is not UTF-8, or holds a colon".into());
    }
    // By the name it was typed by it is found.
    Ok(place.under(path))
}

/// Looks for programs as the operator's shell would: for a repository every one, for a case those it
/// names.
fn look_for_programs(
    facts: &mut HostFacts,
    contract: &ContractDocument,
    request: &Request,
    places: &Places,
    (env, home): (&Env, &Home),
) {
    let mut shown = Vec::new();
    for path in &request.toolchains {
        match named(path, request, places) {
            Ok(granted) => shown.push(granted),
            Err(why) => {
                let typed = places.shorten(path);
                facts.refused.push(format!("--toolchain {typed}: {why}"));
            }
        }
    }
    let Some(contract) = contract.valid() else {
        return;
    };
    let (needed, words) = (
        gate::programs_needed(contract),
        gate::programs_named(contract),
    );
    let chosen = gate::toolchains_chosen(contract);
    let source = request.source.as_ref();
    let wanted = Wanted {
        names: source.is_none().then_some(&words),
        repo: source.map(|source| source.path.as_path()),
        named: &shown,
        shown: &[],
        flag: "--toolchain",
        chosen: &chosen,
    };
    facts.search = search::search(&wanted, places, env);
    for name in &words {
        let is_needed = needed.contains(name);
        let place = match search::locate(&facts.search, name) {
            Located::Missing => None,
            Located::NotShown(why) => {
                if is_needed {
                    facts.unusable.push(format!("{name}: {why}"));
                }
                Some(name.clone())
            }
            Located::At(path, mounts) => {
                let found = Found {
                    name,
                    program: &path,
                    mounts,
                    named: &shown,
                };
                match toolchains::record(&found, env, home) {
                    Ok((bound, outside)) => {
                        facts.bound.push(bound);
                        let place = outside.as_ref().map(|record| record.program.clone());
                        facts.toolchains.extend(outside.map(ToolchainUse::bound));
                        Some(place.unwrap_or_else(|| path.display().to_string()))
                    }
                    Err(why) => {
                        facts.unusable.extend(is_needed.then_some(why));
                        Some(name.clone())
                    }
                }
            }
        };
        if is_needed {
            facts.programs.insert(name.clone(), place);
        }
    }
    for name in &chosen {
        let unknown = facts.search.not_shown.get(&format!("+{name}"));
        facts.unusable.extend(unknown.cloned());
    }
}

/// What there is of programs alone.
pub(super) fn programs(
    contract: &ContractDocument,
    request: &Request,
    env: &Env,
    home: &Home,
) -> HostFacts {
    let mut facts = HostFacts::default();
    let places = Places::of(env, home);
    look_for_programs(&mut facts, contract, request, &places, (env, home));
    facts
}

/// What this host has of what the contract needs.
pub(super) fn look(
    contract: &ContractDocument,
    request: &Request,
    env: &Env,
    home: &Home,
) -> HostFacts {
    let mut facts = HostFacts {
        jail_missing: probes::missing_containment(home),
        lane_missing: lane_missing(env, home),
        ..HostFacts::default()
    };
    // Only a repository is ever put below an overlay.
    facts.overlay =
        request.source.is_some() && facts.jail_missing.is_empty() && overlay::probe::works(home);
    let places = Places::of(env, home);
    look_for_programs(&mut facts, contract, request, &places, (env, home));
    for rule in contract
        .valid()
        .map(|contract| contract.inputs.as_slice())
        .unwrap_or_default()
    {
        let path = rule.as_str().trim_end_matches('/');
        let found = request
            .case
            .inputs
            .as_deref()
            .and_then(|dir| inputs::input_at(dir, path));
        let granted = found.map(|found| places.named(&found, false, &[]));
        let path = path.to_owned();
        match granted {
            Some(Ok(source)) => facts.inputs.push(InputUse { source, path }),
            Some(Err(refused)) => facts
                .refused
                .push(format!("the input {path:?} cannot be shown: {refused}")),
            None => facts
                .refused
                .push(format!("the input {path:?} is not there, or is a link")),
        }
    }
    // A repository's files are not known yet; those of a case are.
    if let (None, Some(contract)) = (&request.source, contract.valid()) {
        let tree = request.case.baseline();
        let masked = confine(asked_of(request, contract), contract, &tree)
            .guard
            .masked;
        let misplaced = inputs::out_of_place(contract, &tree, &masked);
        facts.refused.extend(misplaced);
    }
    facts
}
