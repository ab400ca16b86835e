//! The program of an engine that is not this binary: which file it really is, and what a jail must
//! be shown of it. Nothing is run to find out.

use std::path::{Path, PathBuf};

use cto_core::containment::mounts::is_system;
use cto_core::engine::manifest::Invocation;
use cto_core::gate::EngineUse;

use crate::host::places::Places;
use crate::host::toolchains::{self, Resolved};
use crate::host::{Env, Home};
use crate::records::package_version;

/// Resolves an admitted file, or says what is missing.
pub fn resolve(
    path: &Path,
    invocation: &Invocation,
    env: &Env,
    home: &Home,
) -> Result<EngineUse, String> {
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
    let packages = invocation
        .packages
        .as_deref()
        .and_then(|name| outermost(&real, name));
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
        interpreter,
    })
}

/// The outermost directory of that name above a file: packages lie in each other.
fn outermost(file: &Path, name: &str) -> Option<PathBuf> {
    file.ancestors()
        .skip(1)
        .filter(|dir| dir.file_name().is_some_and(|have| have == name))
        .last()
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::engine::manifest::Manifest;

    fn invocation() -> Invocation {
        let mut invocation = Manifest::parse("pi", include_str!("../../../../engines/pi.toml"))
            .unwrap()
            .invocation
            .unwrap();
        // What this machine has of Node is not asked here.
        invocation.interpreter = None;
        invocation
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
            &invocation(),
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
        let found = resolve(&alone, &invocation(), &Env::default(), &home).unwrap();
        assert_eq!((found.mounts.len(), found.version), (1, None));
        assert_eq!(found.mounts[0].path(), alone.canonicalize().unwrap());
        assert!(
            resolve(
                &dir.path().join("gone"),
                &invocation(),
                &Env::default(),
                &home
            )
            .unwrap_err()
            .contains("no longer")
        );
        let wanting = Invocation {
            interpreter: Some("surely-not-there".into()),
            ..invocation()
        };
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
                &invocation(),
                &Env::default(),
                &home
            )
            .is_err()
        );
    }
}
