//! What the files around a program say of it: the package it belongs to and the lock file it was
//! installed by. Claims, all of them: whoever wrote the package wrote them. Nothing is run.

use std::fs;
use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::operator::setup::package::{Lock, Locks, MAX_LOCK, NoIntegrity, Package, integrity};

use crate::host::files;
use crate::host::toolchains;

/// A file that names a version is short.
const MAX_VERSION_FILE: u64 = 1 << 20;
const PACKAGE_FILE: &str = "package.json";
/// As a manifest names the Python environment around its program: by the file that makes it one.
pub const PYTHON_ENVIRONMENT: &str = "pyvenv.cfg";
/// How pip ends the name of what it writes beside a distribution.
const DIST_INFO: &str = ".dist-info";
/// More names are looked at in no directory.
const MOST_NAMES: usize = 20_000;

/// A program's package, and what its lock file names for it as far as the installed tree agrees.
#[derive(Debug)]
pub struct Installed {
    pub package: Package,
    pub integrity: Result<String, NoIntegrity>,
}

/// Looks for the package above a program, in a tree of packages of this name.
pub fn installed(program: &Path, packages: Option<&str>) -> Option<Installed> {
    let (root, package) = program.ancestors().skip(1).find_map(|dir| {
        let bytes = files::read_limited(&dir.join(PACKAGE_FILE), MAX_VERSION_FILE).ok()?;
        Some((dir, Package::read(&bytes)?))
    })?;
    // The outermost, as a jail is shown it.
    let is_tree = |dir: &&Path| packages.is_some_and(|name| dir.ends_with(name));
    let tree = root.ancestors().skip(1).filter(is_tree).last();
    let top = tree.and_then(Path::parent);
    let place = top.and_then(|top| root.strip_prefix(top).ok()?.to_str());
    let lock = |file: Option<PathBuf>| Lock::read(&files::read_limited(&file?, MAX_LOCK).ok()?);
    let locks = Locks {
        installed: lock(tree.map(|tree| tree.join(".package-lock.json"))),
        project: lock(top.map(|top| top.join("package-lock.json"))),
    };
    let integrity = integrity(&package, place, &locks, &|place| {
        // A lock file names places; it leads nowhere else.
        let is_plain = !place.split('/').any(|part| matches!(part, "" | "." | ".."));
        let dir = top.filter(|_| is_plain)?.join(place);
        let bytes = files::read_limited(&dir.join(PACKAGE_FILE), MAX_VERSION_FILE).ok()?;
        version_in(&bytes)
    });
    Some(Installed { package, integrity })
}

fn version_in(bytes: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let version = value.get("version")?.as_str()?;
    is_plain(version).then(|| version.to_owned())
}

fn is_plain(version: &str) -> bool {
    (1..=64).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_graphic())
}

/// The directory of packages that a program comes with: the outermost of that name above it, for
/// packages lie in each other; or the Python environment around it. It is what a jail is shown, and
/// what an admission pins.
pub fn packages_root(manifest: &Manifest, program: &Path) -> Option<PathBuf> {
    let name = manifest.invocation.as_ref()?.packages.as_deref()?;
    if name == PYTHON_ENVIRONMENT {
        return toolchains::environment_around(program);
    }
    program
        .ancestors()
        .skip(1)
        .filter(|dir| dir.file_name().is_some_and(|have| have == name))
        .last()
        .map(Path::to_owned)
}

/// The version that the nearest such file above the program names; of a distribution of Python, the
/// one that is installed in the environment around it.
pub fn package_version(program: &Path, name: &str) -> Option<String> {
    if let Some(distribution) = name.strip_suffix(DIST_INFO) {
        return distribution_version(&toolchains::environment_around(program)?, distribution);
    }
    let file = program
        .ancestors()
        .skip(1)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())?;
    version_in(&files::read_limited(&file, MAX_VERSION_FILE).ok()?)
}

/// What pip wrote beside a distribution: `NAME-VERSION.dist-info`. Two of them say nothing.
fn distribution_version(environment: &Path, name: &str) -> Option<String> {
    let libraries = names_in(&environment.join("lib"))?;
    let mut found = libraries
        .iter()
        .filter(|library| library.starts_with("python3."))
        .filter_map(|library| {
            names_in(&environment.join("lib").join(library).join("site-packages"))
        })
        .flatten()
        .filter_map(|entry| {
            let version = entry.strip_prefix(name)?.strip_prefix('-')?;
            version.strip_suffix(DIST_INFO).map(str::to_owned)
        })
        .filter(|version| is_plain(version) && !version.contains('-'));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn names_in(dir: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(dir).ok()?.take(MOST_NAMES);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.collect())
}

/// What the nearest package above a program says it needs of an interpreter, in its own words.
pub fn wanted(program: &Path, interpreter: &str) -> Option<String> {
    let file = program
        .ancestors()
        .skip(1)
        .map(|dir| dir.join(PACKAGE_FILE))
        .find(|file| file.is_file())?;
    let bytes = files::read_limited(&file, MAX_VERSION_FILE).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let wanted = value.get("engines")?.get(interpreter)?.as_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || " .<>=^~|*-".contains(c);
    let is_range = wanted.len() <= 64 && wanted.chars().all(plain) && !wanted.is_empty();
    is_range.then(|| wanted.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_environment_is_found_around_its_programs() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let site = "venv/lib/python3.11/site-packages";
        for name in ["venv/bin", "venv/bin/deep", "other/bin"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::create_dir_all(at(site).join("my_agent-1.2.3.dist-info")).unwrap();
        fs::create_dir_all(at(site).join("my_agent_more-9.dist-info")).unwrap();
        fs::write(at("venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        let text = "id = \"x\"\ntitle = \"x\"\ngated_by_env = \"CTO_HARNESS_ALLOW_X\"\ndefault_stage = 1\n[invocation]\nprogram = \"admitted\"\ndialect = \"plain\"\nargv = []\npackages = \"pyvenv.cfg\"\n";
        let manifest = Manifest::parse("x", text).unwrap();
        let root = |name: &str| packages_root(&manifest, &at(name));
        assert_eq!(root("venv/bin/agent"), Some(at("venv")));
        // Only what an environment has among its programs is one of its programs.
        assert_eq!(root("venv/bin/deep/agent"), None);
        assert_eq!(root("other/bin/agent"), None);
        let version = |name: &str| package_version(&at("venv/bin/agent"), name);
        assert_eq!(version("my_agent.dist-info").as_deref(), Some("1.2.3"));
        assert_eq!(version("my.dist-info"), None);
        assert_eq!(version("none.dist-info"), None);
        fs::create_dir_all(at(site).join("my_agent-1.3.dist-info")).unwrap();
        assert_eq!(version("my_agent.dist-info"), None, "two say nothing");
    }

    #[test]
    fn a_package_is_found_with_its_lock_file_and_compared_with_its_tree() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let put = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        let sum = format!("sha512-{}==", "a".repeat(86));
        let program = at("node_modules/@x/pi/dist/cli.js");
        put("node_modules/@x/pi/dist/cli.js", "");
        assert!(installed(&program, Some("node_modules")).is_none());
        // A file that only says how modules are read names no package.
        put(
            "node_modules/@x/pi/dist/package.json",
            r#"{"type": "module"}"#,
        );
        put(
            "node_modules/@x/pi/package.json",
            r#"{"name": "@x/pi", "version": "1.2.3", "license": "MIT"}"#,
        );
        let look = || installed(&program, Some("node_modules")).unwrap().integrity;
        assert_eq!(look(), Err(NoIntegrity::NoLock));
        put(
            "node_modules/dep/package.json",
            r#"{"name": "dep", "version": "2.0.0"}"#,
        );
        let lock = format!(
            r#"{{"packages": {{"node_modules/@x/pi": {{"version": "1.2.3", "integrity": "{sum}"}}, "node_modules/dep": {{"version": "2.0.0"}}}}}}"#
        );
        put("node_modules/.package-lock.json", &lock);
        assert_eq!(look(), Ok(sum.clone()));
        assert_eq!(
            installed(&program, None).unwrap().integrity,
            Err(NoIntegrity::NotInstalled)
        );
        put(
            "node_modules/dep/package.json",
            r#"{"name": "dep", "version": "2.0.1"}"#,
        );
        assert_eq!(
            look(),
            Err(NoIntegrity::OtherTree("node_modules/dep".into()))
        );
        fs::remove_file(at("node_modules/.package-lock.json")).unwrap();
        put("package-lock.json", &lock.replace("2.0.0", "2.0.1"));
        assert_eq!(look(), Ok(sum));
        put("secret/package.json", r#"{"version": "2.0.0"}"#);
        put(
            "package-lock.json",
            &lock.replace("node_modules/dep", "node_modules/../secret"),
        );
        assert!(matches!(look(), Err(NoIntegrity::OtherTree(_))));
    }
}
