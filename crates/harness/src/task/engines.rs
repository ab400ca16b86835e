//! The engine registry: one list for help, validation and dispatch.

use cto_core::engine::manifest::Manifest;
use cto_core::values::ids::EngineId;
use include_dir::{Dir, include_dir};

use crate::host::Env;
use crate::host::failure::Failure;

static MANIFESTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../engines");

/// Every engine this binary knows, `fake` first.
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

pub fn find(id: &str) -> Result<Manifest, Failure> {
    let all = all()?;
    let known = all
        .iter()
        .map(|manifest| manifest.id.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    all.into_iter()
        .find(|manifest| manifest.id.as_str() == id)
        .ok_or_else(|| {
            Failure::usage("unknown_engine", format!("no engine is called {id:?}"))
                .so("nothing ran")
                .hint(format!("known engines: {known}"))
        })
}

/// Opened by its own variable or by naming it on the command line; nothing else opens an engine.
pub fn is_opened(manifest: &Manifest, allowed: &[EngineId], env: &Env) -> bool {
    allowed.contains(&manifest.id)
        || manifest
            .gated_by_env
            .as_deref()
            .is_some_and(|name| env.is_on(name))
}

#[cfg(test)]
mod tests {
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
            assert!(
                !is_opened(manifest, &[], &Env::default()),
                "{}",
                manifest.id
            );
            assert!(is_opened(
                manifest,
                std::slice::from_ref(&manifest.id),
                &Env::default()
            ));
        }
    }
}
