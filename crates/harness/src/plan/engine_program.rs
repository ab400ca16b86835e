//! The program of an engine that is not this binary: which file it really is, and what a jail must
//! be shown of it. Nothing is run to find out.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use cto_core::containment::mounts::{Granted, is_system, needed};
use cto_core::engine::manifest::{Manifest, Program};
use cto_core::gate::{
    Binary, EngineUse, HostFacts, LaneFacts, Packages, PinnedFile, PinnedPackages,
};
use cto_core::values::digest::Digest;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::paths::TreePath;

use crate::host::places::Places;
use crate::host::toolchains;
use crate::host::{Env, Home, digest_cache};
use crate::records::{interpreter, package_version, packages, packages_root};
use crate::task::request::Request;

/// Resolves an admitted file, or says what is missing.
pub fn resolve(
    path: &Path,
    manifest: &Manifest,
    env: &Env,
    home: &Home,
) -> Result<EngineUse, String> {
    let Some(invocation) = &manifest.invocation else {
        return Err("the engine's manifest does not say how it is started".to_owned());
    };
    let real = path
        .canonicalize()
        .map_err(|error| format!("the admitted program is no longer at its path: {error}"))?;
    let interpreter = invocation
        .interpreter
        .as_deref()
        .map(|name| interpreter::find(name, manifest, &real, env, home).map(|found| (name, found)))
        .transpose()?;
    // What makes an environment's Python its own is its link: it is found in the environment.
    let by_link = toolchains::environment_around(&real).is_none();
    let own = interpreter.as_ref().filter(|_| by_link);
    let own = own.map(|(name, found)| (*name, found.path.clone()));
    let needs = needed::found_first(own, toolchains::of_system);
    let interpreter = interpreter.and_then(|(_, found)| found.shown);
    let packages = packages_root(manifest, &real);
    let places = Places::of(env, home);
    // A record names it: what counts is the file itself, whatever link led to it.
    let shown = match packages {
        Some(root) if is_system(&root) => None,
        Some(root) => Some(places.packages(&real, &root)),
        None if is_system(&real) => None,
        None => Some(places.file(&real)),
    };
    let shown = shown.transpose().map_err(|refused| refused.to_string())?;
    let mut mounts: Vec<Granted> = shown.into_iter().collect();
    // An environment is nothing without the Python it was made from.
    if let Some(root) = toolchains::environment_around(&real) {
        let base = toolchains::base_of(&root, &mounts, &places)?;
        mounts.extend(base);
    }
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or("the engine lies below a directory whose name is not UTF-8")
    };
    Ok(EngineUse {
        version: invocation
            .version_file
            .as_deref()
            .and_then(|name| package_version(&real, name)),
        program: text(&real)?,
        mounts,
        packages: None,
        files: Vec::new(),
        interpreter,
        needs,
    })
}

/// The packages around the program, as the gates saw them.
pub fn pinned(manifest: &Manifest, lane: &LaneFacts, program: &Path) -> Option<PinnedPackages> {
    let Packages::Found {
        sha256, state, id, ..
    } = lane.packages
    else {
        return None;
    };
    packages_root(manifest, program).map(|root| PinnedPackages {
        root,
        sha256,
        state,
        id,
    })
}

/// Its name alone: a bundle goes to strangers.
fn named(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    TreePath::new(name.as_encoded_bytes()).to_string()
}

/// The program and its interpreter, each still the file that the gates saw.
pub fn pinned_files(
    manifest: &Manifest,
    lane: &LaneFacts,
    program: &Path,
    env: &Env,
    home: &Home,
) -> Result<Vec<PinnedFile>, String> {
    let record = lane.executable.known();
    let name = record.and_then(|record| record.interpreter.as_deref());
    let interpreter = match (name, lane.interpreter_sha256()) {
        (Some(name), Some(sha256)) => {
            let found = interpreter::find(name, manifest, program, env, home)?;
            Some((found.path, sha256))
        }
        _ => None,
    };
    let program = lane
        .binary_sha256()
        .map(|sha256| (program.to_owned(), sha256));
    let pin = |(path, sha256): (PathBuf, Digest)| {
        let looked = digest_cache::state_and_id(&path)
            .and_then(|state| Ok((state, digest_cache::digest(home, &path)?)));
        match looked {
            Ok(((state, id), now)) if now == sha256 => Ok(PinnedFile {
                path,
                sha256,
                state,
                id,
            }),
            _ => Err(format!("{} changed just now", named(&path))),
        }
    };
    program.into_iter().chain(interpreter).map(pin).collect()
}

/// What of the program, its interpreter and its packages is not as the gates saw it. What was shown to the jail is what was
/// verified only if nothing is.
fn changed_since(engine: &EngineUse, home: &Home) -> Option<String> {
    let is_other = |file: &&PinnedFile| {
        let same = digest_cache::state(&file.path).is_ok_and(|state| state == file.state);
        !same || digest_cache::digest(home, &file.path).ok() != Some(file.sha256)
    };
    if let Some(file) = engine.files.iter().find(is_other) {
        return Some(format!("{} changed while it ran", named(&file.path)));
    }
    packages::changed_since(home, engine.packages.as_ref()?)
}

/// A look at all of that once the engine has ended, beside whatever else is done then.
pub struct LookAgain(Looking);

enum Looking {
    Beside(JoinHandle<Option<String>>),
    Done(Option<String>),
}

impl LookAgain {
    /// Begins it. Without a thread it is taken at once.
    pub fn begin(engine: &EngineUse, home: &Home) -> Self {
        let (then, home_of_run) = (engine.clone(), home.clone());
        let beside = thread::Builder::new()
            .name("engine files".into())
            .spawn(move || changed_since(&then, &home_of_run));
        Self(match beside {
            Ok(handle) => Looking::Beside(handle),
            Err(_) => Looking::Done(changed_since(engine, home)),
        })
    }

    /// What is not as the gates saw it; a look that did not end saw nothing.
    pub fn changed(self) -> Option<String> {
        match self.0 {
            Looking::Done(changed) => changed,
            Looking::Beside(handle) => handle
                .join()
                .unwrap_or_else(|_| Some("its files could not be looked at again".into())),
        }
    }
}

/// The program of an engine that is not this binary. What is missing of it is missing of the lane.
pub fn find(
    request: &Request,
    lane: &MaybeKnown<LaneFacts>,
    env: &Env,
    home: &Home,
    facts: &mut HostFacts,
) {
    let manifest = &request.manifest;
    let invocation = manifest.invocation.as_ref();
    if !invocation.is_some_and(|own| own.program == Program::Admitted) {
        return;
    }
    let found = match lane.known().map(|lane| (lane, &lane.binary)) {
        Some((lane, Binary::Found { path, .. })) => {
            let path = Path::new(path);
            let files = pinned_files(manifest, lane, path, env, home);
            files.and_then(|files| {
                resolve(path, manifest, env, home).map(|engine| EngineUse {
                    packages: pinned(manifest, lane, path),
                    files,
                    ..engine
                })
            })
        }
        _ => Err("no admitted program is there to be run".to_owned()),
    };
    match found {
        Ok(engine) => facts.engine = Some(engine),
        Err(why) => facts.lane_missing.push(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(interpreter: Option<&str>) -> Manifest {
        let text = include_str!("../../../../engines/pi.toml");
        let mut manifest = Manifest::parse("pi", text).unwrap();
        let invocation = manifest.invocation.as_mut().unwrap();
        // What this machine has of Node is not asked here.
        invocation.interpreter = interpreter.map(str::to_owned);
        manifest
    }

    fn lab() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("opt/node_modules/@x/pi");
        std::fs::create_dir_all(package.join("node_modules/inner/dist")).unwrap();
        std::fs::create_dir_all(package.join("dist")).unwrap();
        std::fs::write(package.join("dist/cli.js"), "#!/usr/bin/env node\n").unwrap();
        std::fs::write(
            package.join("package.json"),
            r#"{"name": "pi", "version": "0.74.2"}"#,
        )
        .unwrap();
        std::fs::create_dir_all(dir.path().join("opt/bin")).unwrap();
        std::os::unix::fs::symlink(
            "../node_modules/@x/pi/dist/cli.js",
            dir.path().join("opt/bin/pi"),
        )
        .unwrap();
        let home = Home {
            root: dir.path().join("state"),
            runs: dir.path().join("state/harness-runs"),
        };
        (dir, home)
    }

    #[test]
    fn a_package_is_shown_with_everything_it_was_installed_with() {
        let (dir, home) = lab();
        let found = resolve(
            &dir.path().join("opt/bin/pi"),
            &manifest(None),
            &Env::default(),
            &home,
        )
        .unwrap();
        let real = dir.path().canonicalize().unwrap();
        assert_eq!(
            found.program,
            real.join("opt/node_modules/@x/pi/dist/cli.js")
                .display()
                .to_string()
        );
        assert_eq!(found.mounts.len(), 1);
        assert_eq!(found.mounts[0].path(), real.join("opt/node_modules"));
        assert_eq!(found.version.as_deref(), Some("0.74.2"));
    }

    #[test]
    fn a_program_without_packages_is_shown_alone_and_a_missing_one_is_named() {
        let (dir, home) = lab();
        let alone = dir.path().join("pi");
        std::fs::write(&alone, "x").unwrap();
        let found = resolve(&alone, &manifest(None), &Env::default(), &home).unwrap();
        assert_eq!((found.mounts.len(), found.version), (1, None));
        assert_eq!(found.mounts[0].path(), alone.canonicalize().unwrap());
        assert!(
            resolve(
                &dir.path().join("gone"),
                &manifest(None),
                &Env::default(),
                &home
            )
            .unwrap_err()
            .contains("no longer")
        );
        let wanting = manifest(Some("surely-not-there"));
        assert!(
            resolve(&alone, &wanting, &Env::default(), &home)
                .unwrap_err()
                .contains("surely-not-there")
        );
    }

    #[test]
    fn our_own_state_is_never_shown() {
        let (dir, _) = lab();
        let home = Home {
            root: dir.path().join("opt/node_modules/state"),
            runs: dir.path().join("runs"),
        };
        assert!(
            resolve(
                &dir.path().join("opt/bin/pi"),
                &manifest(None),
                &Env::default(),
                &home
            )
            .is_err()
        );
    }
}
