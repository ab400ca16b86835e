//! Programs that live outside the system directories: resolved to what a jail must be shown of
//! them, without running any of them. A jail without HOME would otherwise silently use another
//! version (`docs/decisions/0003-toolchains-in-a-jail.md`); what may be shown is decided in core (0025).

pub mod search;
pub mod shelf;
mod shims;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::{Granted, Refused, is_system};
use cto_core::gate::ToolchainUse;
use cto_core::run::event::Toolchain;
use cto_core::task::program::{BoundProgram, PlaceSeen, ProgramPlace, version_in};

use self::shims::behind_the_shim;
use crate::host::places::Places;
use crate::host::{Env, Home, digest_cache, files};

/// What makes a directory an environment of Python.
const PYVENV: &str = "pyvenv.cfg";
/// Where programs of the system are looked for, on the host as in a jail.
pub const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Where a jail looks for programs by itself.
const SEARCHED: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// What became of one program name.
#[derive(Debug)]
pub enum Resolved {
    Missing,
    /// Visible as it is.
    System(PathBuf),
    Toolchain(ToolchainUse),
    /// Found, but a jail cannot be shown it safely.
    Unusable(String),
}

/// Resolves a name by the operator's PATH.
pub fn resolve(name: &str, env: &Env, home: &Home) -> Resolved {
    resolve_beside(name, &[], &Places::of(env, home), env, home)
}

/// The file that PATH has by a name, behind the stand-in of a version manager; links are not followed.
pub fn program_named(name: &str, env: &Env) -> Result<Option<PathBuf>, String> {
    let found = env.find_program(name);
    found
        .map(|found| behind_the_shim(name, &found, env))
        .transpose()
}

/// What the system itself has by a name, the real file.
pub fn of_system(name: &str) -> Option<PathBuf> {
    let mut found = SEARCHED.iter().map(|dir| Path::new(dir).join(name));
    let real = found.find(|path| path.is_file())?.canonicalize().ok()?;
    is_system(&real).then_some(real)
}

/// A program that was found, and what shows it.
pub struct Found<'a> {
    pub name: &'a str,
    pub program: &'a Path,
    pub mounts: &'a [Granted],
    /// What the operator has shown beside PATH.
    pub named: &'a [Granted],
}

/// What binds a program that a jail is shown: which file it is, and what else came with it. There is
/// nothing of the latter for one of the system, which is visible as it is.
pub fn record(
    found: &Found<'_>,
    env: &Env,
    home: &Home,
) -> Result<(BoundProgram, Option<Toolchain>), String> {
    let (name, program) = (found.name, found.program);
    let unreadable = |error: io::Error| format!("{name} cannot be read: {error}");
    let real = program.canonicalize().map_err(unreadable)?;
    let sha256 = digest_cache::digest(home, &real).map_err(unreadable)?;
    let is_named = |granted: &Granted| real.starts_with(granted.path());
    let seen = PlaceSeen {
        is_system: is_system(program) && is_system(&real),
        is_environment: program.parent().is_some_and(search::is_environment),
        is_named: found.named.iter().any(is_named),
        is_in_directory: found.mounts.iter().any(Granted::is_dir),
    };
    let bound = BoundProgram {
        name: name.to_owned(),
        place: ProgramPlace::of(seen),
        // A directory around an environment is a project, and names its version at best.
        version: version_in(&real).filter(|_| !seen.is_environment && seen.is_in_directory),
        sha256,
    };
    if seen.is_system {
        return Ok((bound, None));
    }
    // A link of an environment is what makes the difference.
    let shown = if seen.is_environment { program } else { &real };
    let mounts = found.mounts.iter().skip(1);
    let mut also: Vec<String> = mounts
        .map(|granted| shorten(granted.target(), env))
        .collect();
    also.dedup();
    let outside = Toolchain {
        name: name.to_owned(),
        program: shorten(shown, env),
        sha256,
        also,
    };
    Ok((bound, Some(outside)))
}

/// What is in a granted place needs no other.
fn in_shown(named: &Path, real: &Path, shown: &[Granted]) -> bool {
    let holds = |granted: &&Granted| real.starts_with(granted.path()) && !granted.writable();
    !is_system(named) && shown.iter().any(|granted| holds(&granted))
}

/// The same for a jail that is shown some places already.
pub fn resolve_beside(
    name: &str,
    shown: &[Granted],
    places: &Places,
    env: &Env,
    home: &Home,
) -> Resolved {
    let Some(found) = env.find_program(name) else {
        return Resolved::Missing;
    };
    let named = match behind_the_shim(name, &found, env) {
        Ok(path) => path,
        Err(why) => return Resolved::Unusable(why),
    };
    let Ok(real) = named.canonicalize() else {
        return Resolved::Missing;
    };
    let unreadable = |error| Resolved::Unusable(format!("{name} cannot be read: {error}"));
    let is_system = is_system(&real) && is_system(&found);
    let registry = cargo_registry(env).filter(|_| name == "cargo");
    let (program, bin, mut mounts) = match virtual_env(&named, shown, places) {
        Some(Ok(mounts)) => (named.clone(), named.parent().map(Path::to_owned), mounts),
        Some(Err(why)) => return Resolved::Unusable(format!("{name}: {why}")),
        None if is_system => match (not_searched(&named), &registry) {
            (None, None) => {
                return match std::fs::File::open(&real) {
                    Ok(_) => Resolved::System(real),
                    Err(error) => unreadable(error),
                };
            }
            (bin, _) => (real.clone(), bin, Vec::new()),
        },
        None if in_shown(&named, &real, shown) => (real.clone(), dir_of(&named, &real), Vec::new()),
        None => match places.program(&named) {
            Ok(granted) => {
                let bin = match &granted {
                    Some(granted) if granted.is_dir() => dir_in(granted, &named, &real),
                    _ => real.parent().map(Path::to_owned),
                };
                (real.clone(), bin, granted.into_iter().collect())
            }
            Err(refused) => return Resolved::Unusable(format!("{name}: {refused}")),
        },
    };
    let sha256 = match digest_cache::digest(home, &real) {
        Ok(digest) => digest,
        Err(error) => return unreadable(error),
    };
    let own = mounts.len().min(1);
    let mut told = BTreeMap::new();
    if let Some((cargo_home, registry)) = registry
        && let Ok(granted) = places.named(&registry, false, &[])
    {
        mounts.push(granted.under(&registry));
        // No network in a jail: said at once, instead of after a time-out.
        told.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
        told.insert("CARGO_HOME".to_owned(), cargo_home.display().to_string());
    }
    let readable = |path: &Path| path.to_str().is_some();
    if !bin.iter().all(|bin| readable(bin)) || !mounts.iter().all(|found| readable(found.target()))
    {
        return Resolved::Unusable(format!(
            "{name} lies below a directory whose name is not UTF-8"
        ));
    }
    let also = mounts[own..]
        .iter()
        .map(|granted| shorten(granted.target(), env))
        .collect();
    Resolved::Toolchain(ToolchainUse {
        record: Toolchain {
            name: name.to_owned(),
            program: shorten(&program, env),
            sha256,
            also,
        },
        bin: bin.map(|bin| bin.display().to_string()),
        mounts,
        env: told,
    })
}

/// The directory that has a program by the name it was found by: what an installation has in `bin` is
/// often a link to a file of another name.
fn dir_in(granted: &Granted, named: &Path, real: &Path) -> Option<PathBuf> {
    let dir = dir_of(named, real)?;
    match dir.starts_with(granted.path()) {
        true => Some(dir),
        false => real.parent().map(Path::to_owned),
    }
}

fn dir_of(named: &Path, real: &Path) -> Option<PathBuf> {
    let dir = named.parent().and_then(|dir| dir.canonicalize().ok());
    dir.or_else(|| real.parent().map(Path::to_owned))
}

/// The directory of a program that a jail can see, where it does not look for programs by itself:
/// official Rust images keep cargo below `/usr/local/rustup`.
fn not_searched(program: &Path) -> Option<PathBuf> {
    let dir = program.parent()?;
    let is_searched = SEARCHED.iter().any(|searched| dir == Path::new(searched));
    (!is_searched).then(|| dir.to_owned())
}

/// The Python environment that a program is one of the programs of.
pub fn environment_around(program: &Path) -> Option<PathBuf> {
    let bin = program.parent().filter(|dir| dir.ends_with("bin"))?;
    let root = bin.parent()?;
    let is_one = std::fs::symlink_metadata(root.join(PYVENV)).is_ok_and(|meta| meta.is_file());
    is_one.then(|| root.to_owned())
}

/// A program of a Python virtual environment: the environment, and the installation it is based on
/// where that is not the system's. The link in `bin/` must not be followed: it is what makes the
/// difference. What its configuration names is a wish: a command in a jail could have written it.
fn virtual_env(
    program: &Path,
    shown: &[Granted],
    places: &Places,
) -> Option<Result<Vec<Granted>, String>> {
    let root = program
        .parent()
        .filter(|dir| dir.ends_with("bin"))?
        .parent()?;
    let config = root.join(PYVENV);
    std::fs::symlink_metadata(&config).ok()?;
    Some(based_on(root, &config, shown, places))
}

fn based_on(
    root: &Path,
    config: &Path,
    shown: &[Granted],
    places: &Places,
) -> Result<Vec<Granted>, String> {
    base_python(config)?;
    let environment = places.environment(root);
    let environment = environment.map_err(|refused| refused.to_string())?;
    let mut known = shown.to_vec();
    known.push(environment.clone());
    let mut all = vec![environment];
    all.extend(base_of(root, &known, places)?);
    Ok(all)
}

/// What an environment needs besides itself: the installation it is based on, under every name it
/// uses for it. `known` is what is shown already, the environment with it.
pub fn base_of(root: &Path, known: &[Granted], places: &Places) -> Result<Vec<Granted>, String> {
    let config = root.join(PYVENV);
    let python = base_python(&config)?;
    let wish = places.wish(&config, &python, known);
    let Some(base) = wish.map_err(|refused: Refused| refused.to_string())? else {
        return Ok(Vec::new());
    };
    let mut shown = vec![base.clone()];
    for way in [python, root.join("bin/python3"), root.join("bin/python")] {
        for other in places.other_names(&base, &way) {
            if !shown.contains(&other) {
                shown.push(other);
            }
        }
    }
    Ok(shown)
}

/// The Python that the configuration of an environment names.
fn base_python(config: &Path) -> Result<PathBuf, String> {
    const MOST: u64 = 64 << 10;
    let unusable = |why: &str| format!("{}: {why}", config.display());
    let bytes = files::read_limited(config, MOST).map_err(|error| unusable(&error.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    let key = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().to_owned();
        key.trim().eq_ignore_ascii_case("home").then_some(value)
    };
    let base = text
        .lines()
        .find_map(key)
        .ok_or_else(|| unusable("it does not say on which Python the environment is based"))?;
    let python = Path::new(&base).join("python3");
    if !python.is_absolute() || !python.is_file() {
        return Err(unusable(&format!("{base:?} has no Python in it")));
    }
    Ok(python)
}

/// Crates that were fetched before, for builds without a network: where cargo looks, and what it is
/// shown. Nothing else of cargo's home, which also keeps credentials.
fn cargo_registry(env: &Env) -> Option<(PathBuf, PathBuf)> {
    let cargo_home = env
        .path("CARGO_HOME")
        .or_else(|| env.path("HOME").map(|home| home.join(".cargo")))?;
    let registry = cargo_home.join("registry");
    (cargo_home.is_absolute() && registry.is_dir()).then_some((cargo_home, registry))
}

/// The operator's home as `~`: a bundle goes to strangers.
pub fn shorten(path: &Path, env: &Env) -> String {
    match env
        .path("HOME")
        .and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned))
    {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
#[path = "toolchains_tests.rs"]
mod tests;
