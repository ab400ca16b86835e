//! Programs that live outside the system directories: resolved to what a jail must be shown of
//! them, without running any of them. A jail without HOME would otherwise silently use another
//! version (`docs/decisions/0003-toolchains-in-a-jail.md`); what may be shown is decided in core (0025).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::{Granted, Refused, is_system};
use cto_core::gate::ToolchainUse;
use cto_core::run::event::Toolchain;

use crate::host::places::Places;
use crate::host::{Env, Home, digest_cache, files};

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
    let registry = cargo_registry(name, env);
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
        None => match places.program(&named) {
            Ok(granted) => (
                real.clone(),
                real.parent().map(Path::to_owned),
                granted.into_iter().collect(),
            ),
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

/// The directory of a program that a jail can see, where it does not look for programs by itself:
/// official Rust images keep cargo below `/usr/local/rustup`.
fn not_searched(program: &Path) -> Option<PathBuf> {
    let dir = program.parent()?;
    let is_searched = SEARCHED.iter().any(|searched| dir == Path::new(searched));
    (!is_searched).then(|| dir.to_owned())
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
    let config = root.join("pyvenv.cfg");
    std::fs::symlink_metadata(&config).ok()?;
    Some(based_on(root, &config, shown, places))
}

fn based_on(
    root: &Path,
    config: &Path,
    shown: &[Granted],
    places: &Places,
) -> Result<Vec<Granted>, String> {
    let python = base_python(config)?;
    let refused = |refused: Refused| refused.to_string();
    let environment = places.environment(root).map_err(refused)?;
    let mut known = shown.to_vec();
    known.push(environment.clone());
    let base = places.wish(config, &python, &known).map_err(refused)?;
    Ok([Some(environment), base].into_iter().flatten().collect())
}

/// The Python that the configuration of an environment names.
pub fn base_python(config: &Path) -> Result<PathBuf, String> {
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
fn cargo_registry(name: &str, env: &Env) -> Option<(PathBuf, PathBuf)> {
    let cargo_home = env
        .path("CARGO_HOME")
        .or_else(|| env.path("HOME").map(|home| home.join(".cargo")))?;
    let registry = cargo_home.join("registry");
    (name == "cargo" && cargo_home.is_absolute() && registry.is_dir())
        .then_some((cargo_home, registry))
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

/// Version managers put a stand-in on PATH; the real program is found by their own files.
fn behind_the_shim(name: &str, found: &Path, env: &Env) -> Result<PathBuf, String> {
    let dir = found.parent().unwrap_or(Path::new("/"));
    if dir.ends_with("shims") {
        return pyenv(name, dir, env);
    }
    let is_rustup = found
        .canonicalize()
        .is_ok_and(|real| real.file_name().is_some_and(|file| file == "rustup"));
    if is_rustup {
        rustup(name, env)
    } else {
        Ok(found.to_owned())
    }
}

fn pyenv(name: &str, shims: &Path, env: &Env) -> Result<PathBuf, String> {
    let root = shims.parent().unwrap_or(Path::new("/"));
    let root = if root.join("versions").is_dir() {
        root.to_owned()
    } else {
        env.path("PYENV_ROOT").unwrap_or_default()
    };
    let chosen = match env
        .get("PYENV_VERSION")
        .and_then(|v| v.to_str().map(str::to_owned))
    {
        Some(version) => version,
        None => std::fs::read_to_string(root.join("version")).unwrap_or_default(),
    };
    for version in chosen
        .split([':', '\n'])
        .map(str::trim)
        .filter(|v| !v.is_empty())
    {
        if version == "system" {
            return without(shims, name, env)
                .ok_or_else(|| format!("{name}: pyenv says `system`, and the system has none"));
        }
        let program = root.join("versions").join(version).join("bin").join(name);
        if program.exists() {
            return Ok(program);
        }
    }
    without(shims, name, env).ok_or_else(|| {
        format!("{name} is a pyenv shim, and no installed version was found behind it")
    })
}

/// The next program of that name on PATH, past a shim directory.
fn without(shims: &Path, name: &str, env: &Env) -> Option<PathBuf> {
    std::env::split_paths(env.get("PATH")?)
        .filter(|dir| dir != shims && !dir.ends_with("shims"))
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

fn rustup(name: &str, env: &Env) -> Result<PathBuf, String> {
    let home = env
        .path("RUSTUP_HOME")
        .or_else(|| env.path("HOME").map(|home| home.join(".rustup")))
        .unwrap_or_default();
    let from_settings = || {
        let text = std::fs::read_to_string(home.join("settings.toml")).ok()?;
        let settings: toml::Table = text.parse().ok()?;
        Some(settings.get("default_toolchain")?.as_str()?.to_owned())
    };
    let chosen = env
        .get("RUSTUP_TOOLCHAIN")
        .and_then(|v| v.to_str().map(str::to_owned))
        .or_else(from_settings);
    let Some(chosen) = chosen else {
        return Err(format!(
            "{name} is a rustup link, and rustup names no default toolchain"
        ));
    };
    let toolchains = home.join("toolchains");
    let exact = toolchains.join(&chosen);
    let dir = if exact.is_dir() {
        exact
    } else {
        // `stable` stands for `stable-<host>`.
        let entries = std::fs::read_dir(&toolchains)
            .into_iter()
            .flatten()
            .flatten();
        let mut named: Vec<PathBuf> = entries
            .filter(|entry| {
                entry
                    .file_name()
                    .to_str()
                    .is_some_and(|n| n.starts_with(&format!("{chosen}-")))
            })
            .map(|entry| entry.path())
            .collect();
        named.sort();
        named
            .into_iter()
            .next()
            .ok_or_else(|| format!("{name}: the rustup toolchain {chosen:?} is not installed"))?
    };
    Ok(dir.join("bin").join(name))
}

#[cfg(test)]
#[path = "toolchains_tests.rs"]
mod tests;
