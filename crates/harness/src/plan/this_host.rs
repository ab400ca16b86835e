//! A look at this host: what the harness starts by itself, the programs a contract names, and what it
//! has put beside its files.

use std::path::{Path, PathBuf};

use cto_core::containment::mounts::{self, Granted};
use cto_core::gate::{self, HostFacts, InputUse, NamedPlace};
use cto_core::task::contract::ContractDocument;

use super::{confine, inputs};
use crate::host::places::Places;
use crate::host::toolchains::{self, Resolved};
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
fn named(path: &Path, request: &Request, places: &Places) -> Result<NamedPlace, String> {
    let place = places
        .named(path, false, &[])
        .map_err(|refused| refused.to_string())?;
    let source = request
        .source
        .as_ref()
        .map(|source| places.look(&source.path).path);
    let near =
        |source: PathBuf| source.starts_with(place.path()) || place.path().starts_with(&source);
    if source.is_some_and(near) {
        return Err("it lies in the repository that is copied, or holds it; what git ignores of it is shown by --input".into());
    }
    let (dir, bin) = (place.path(), place.path().join("bin"));
    let bin = match place.is_dir() {
        true if bin.is_dir() => bin.as_path(),
        true => dir,
        false => dir.parent().unwrap_or(dir),
    };
    let text = bin.to_str().filter(|text| !text.contains(':'));
    let bin = text
        .ok_or("its real name is not UTF-8, or holds a colon")?
        .to_owned();
    let place = (!mounts::is_system(place.path())).then_some(place);
    Ok(NamedPlace { place, bin })
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
    for path in &request.toolchains {
        match named(path, request, &places) {
            Ok(named) => facts.named.push(named),
            Err(why) => {
                let typed = places.shorten(path);
                facts.unusable.push(format!("--toolchain {typed}: {why}"));
            }
        }
    }
    let shown: Vec<Granted> = facts
        .named
        .iter()
        .filter_map(|named| named.place.clone())
        .collect();
    let searched = facts.named.iter().map(|named| Path::new(&named.bin));
    let env = &env.searching_first(searched);
    for name in contract
        .valid()
        .map(gate::programs_needed)
        .unwrap_or_default()
    {
        let place = match toolchains::resolve_beside(&name, &shown, &places, env, home) {
            Resolved::Missing => None,
            Resolved::System(path) => Some(path.display().to_string()),
            Resolved::Toolchain(toolchain) => {
                let program = toolchain.record.program.clone();
                facts.toolchains.push(toolchain);
                Some(program)
            }
            Resolved::Unusable(why) => {
                facts.unusable.push(why);
                Some(name.clone())
            }
        };
        facts.programs.insert(name, place);
    }
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
                .unusable
                .push(format!("the input {path:?} cannot be shown: {refused}")),
            None => facts
                .unusable
                .push(format!("the input {path:?} is not there, or is a link")),
        }
    }
    // A repository's files are not known yet; those of a case are.
    if let (None, Some(contract)) = (&request.source, contract.valid()) {
        let tree = request.case.baseline();
        let masked = confine(request.contain, contract, &tree).guard.masked;
        let misplaced = inputs::out_of_place(contract, &tree, &masked);
        facts.unusable.extend(misplaced);
    }
    facts
}
