//! The engine registry: one list for help, validation and dispatch. The operator's own engines are
//! read once, by `own_engines.rs`; what was read is what is used.

use std::io::{self, IsTerminal};

use cto_core::engine::manifest::Manifest;
use cto_core::engine::profile::Profile;
use cto_core::engine::registry::{Named, Registry};
use cto_core::gate::opening::{Asked, Desk, Variable};
use cto_core::values::ids::EngineId;
use include_dir::{Dir, include_dir};

use crate::host::Env;
use crate::host::failure::Failure;
use crate::task::own_engines::{self, OwnDirectory};

static MANIFESTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../engines");

/// The engines of the house, `fake` first.
pub fn all() -> Result<Vec<Manifest>, Failure> {
    let mut manifests = MANIFESTS
        .files()
        .map(|file| {
            let name = file.path().display().to_string();
            Manifest::parse(&name, file.contents_utf8().unwrap_or_default())
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            Failure::internal("bad_manifest", "an engine manifest is broken").because(&error)
        })?;
    manifests.sort_by(|a, b| (a.is_gated(), &a.id).cmp(&(b.is_gated(), &b.id)));
    Ok(manifests)
}

/// The profiles of the house.
pub fn profiles() -> Result<Vec<Profile>, Failure> {
    let dir = MANIFESTS.get_dir("profiles");
    let files = dir.into_iter().flat_map(|dir| dir.files());
    let read = |file: &include_dir::File<'_>| {
        let name = file.path().display().to_string();
        Profile::parse(&name, file.contents_utf8().unwrap_or_default())
    };
    files
        .map(read)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|why| {
            Failure::internal("bad_profile", "a profile of the house is broken").reason(why)
        })
}

/// The profile of this name.
pub fn profile(id: &str) -> Result<Profile, Failure> {
    let all = profiles()?;
    let known: Vec<String> = all.iter().map(|one| one.id.clone()).collect();
    let found = all.into_iter().find(|one| one.id == id);
    found.ok_or_else(|| {
        Failure::usage("unknown_profile", format!("no profile is called {id:?}"))
            .so("nothing ran")
            .hint(format!("known profiles: {}", known.join(", ")))
    })
}

/// An engine of the house. What somebody typed is looked for in a registry: [`named`].
pub fn find(id: &str) -> Result<Manifest, Failure> {
    named(&Registry::new(all()?, Vec::new(), Vec::new()), id)
}

/// Every engine: those of the house, and the operator's own of this directory.
pub fn load(own: Option<&OwnDirectory>) -> Result<Registry, Failure> {
    let house = all()?;
    let (found, broken) = match own {
        Some(dir) => own_engines::read(dir, &house)?,
        None => (Vec::new(), Vec::new()),
    };
    Ok(Registry::new(house, found, broken))
}

/// The engine of this name, or what is wrong with it.
pub fn named(registry: &Registry, id: &str) -> Result<Manifest, Failure> {
    match registry.named(id) {
        Named::Known(manifest) => Ok(manifest.clone()),
        Named::Broken(broken) => Err(Failure::usage(
            "manifest_invalid",
            format!("the manifest of {id} cannot be used"),
        )
        .at(&broken.file)
        .reason(&broken.why)
        .so("nothing ran; other engines are as they were")
        .hint(format!("correct it; `cto engines check {id}` looks again"))),
        Named::Unknown => {
            let known = registry.all().map(|(_, manifest)| manifest.id.as_str());
            let known = known.collect::<Vec<_>>().join(", ");
            Err(
                Failure::usage("unknown_engine", format!("no engine is called {id:?}"))
                    .so("nothing ran")
                    .hint(format!("known engines: {known}")),
            )
        }
    }
}

/// What this command says of an engine's gate: its own variable, the flag, and whether somebody
/// sits there. Nothing else opens an engine; a record is looked for later.
pub fn asked(manifest: &Manifest, allowed: &[EngineId], env: &Env) -> Asked {
    let name = manifest.gated_by_env.as_deref();
    let value = name.and_then(|name| env.get(name));
    Asked::Command {
        // What is no text is not `1`.
        variable: Variable::read(value.map(|value| value.to_str().unwrap_or("?"))),
        flag: allowed.contains(&manifest.id),
        desk: desk(env),
    }
}

/// Where this process was started.
fn desk(env: &Env) -> Desk {
    Desk {
        input: io::stdin().is_terminal(),
        output: io::stdout().is_terminal(),
        error: io::stderr().is_terminal(),
        own_job: rustix::process::getpgrp() == rustix::process::getpid(),
        ci: env.get("CI").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use cto_core::gate::opening::decide;

    use super::*;

    #[test]
    fn fake_is_first_and_the_only_open_engine() {
        let all = all().unwrap();
        assert_eq!(all[0].id.as_str(), "fake");
        let open: Vec<_> = all
            .iter()
            .filter(|m| !m.is_gated())
            .map(|m| m.id.as_str())
            .collect();
        assert_eq!(open, ["fake"]);
        for manifest in &all[1..] {
            let said = |env: &Env, allowed: &[EngineId]| {
                let asked = asked(manifest, allowed, env);
                decide(&manifest.id, &asked, None).is_open()
            };
            let name = manifest.gated_by_env.as_deref().unwrap();
            let allowed = std::slice::from_ref(&manifest.id);
            for (value, alone, with_flag) in
                [("", false, true), ("1", true, true), ("0", false, false)]
            {
                let env = Env::from_pairs(&[(name, value)]);
                assert_eq!(said(&env, &[]), alone, "{name}={value}");
                assert_eq!(said(&env, allowed), with_flag, "{name}={value}");
            }
        }
    }
}
