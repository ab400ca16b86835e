//! The program of an engine that is not this binary: which file it really is, and what a jail must
//! be shown of it. Nothing is run to find out.

use std::path::Path;
use std::thread::{self, JoinHandle};

use cto_core::containment::mounts::is_system;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::{EngineUse, LaneFacts, Packages, PinnedPackages};

use crate::host::places::Places;
use crate::host::toolchains::{self, Resolved};
use crate::host::{Env, Home};
use crate::records::{package_version, packages, packages_root};

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
    let interpreter = match invocation
        .interpreter
        .as_deref()
        .map(|name| (name, toolchains::resolve(name, env, home)))
    {
        None | Some((_, Resolved::System(_))) => None,
        Some((_, Resolved::Toolchain(found))) => Some(found),
        Some((name, Resolved::Missing)) => {
            return Err(format!(
                "{name} was not found on PATH, and the engine is written for it"
            ));
        }
        Some((_, Resolved::Unusable(why))) => return Err(why),
    };
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
        mounts: shown.into_iter().collect(),
        packages: None,
        interpreter,
    })
}

/// The packages around the program, as the gates saw them.
pub fn pinned(manifest: &Manifest, lane: &LaneFacts, program: &Path) -> Option<PinnedPackages> {
    let Packages::Found { sha256, state, .. } = lane.packages else {
        return None;
    };
    packages_root(manifest, program).map(|root| PinnedPackages {
        root,
        sha256,
        state,
    })
}

/// A look at the packages once the engine has ended, beside whatever else is done then.
pub struct LookAgain(Looking);

enum Looking {
    Beside(JoinHandle<Option<String>>),
    Done(Option<String>),
}

impl LookAgain {
    /// Begins it, where there are packages. Without a thread it is taken at once.
    pub fn begin(engine: &EngineUse, home: &Home) -> Option<Self> {
        let then = engine.packages.clone()?;
        let (pinned, home_of_run) = (then.clone(), home.clone());
        let beside = thread::Builder::new()
            .name("packages".into())
            .spawn(move || packages::changed_since(&home_of_run, &pinned));
        Some(Self(match beside {
            Ok(handle) => Looking::Beside(handle),
            Err(_) => Looking::Done(packages::changed_since(home, &then)),
        }))
    }

    /// What of the packages is not as the gates saw it. What was shown to the jail is what was verified
    /// only if nothing is; a look that did not end saw nothing.
    pub fn changed(self) -> Option<String> {
        match self.0 {
            Looking::Done(changed) => changed,
            Looking::Beside(handle) => handle
                .join()
                .unwrap_or_else(|_| Some("its packages could not be looked at again".into())),
        }
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
