//! Stand-ins that version managers put on PATH: which program is behind one, found by the
//! manager's own files. None of them is ever run.

use std::path::{Path, PathBuf};

use crate::host::Env;

/// Version managers put a stand-in on PATH; the real program is found by their own files.
pub(super) fn behind_the_shim(name: &str, found: &Path, env: &Env) -> Result<PathBuf, String> {
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
