//! Stand-ins that version managers put on PATH: which programs are behind them, found by the
//! manager's own files and variables, as the manager would find them. None of them is ever run, and
//! none is shown.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::host::{Env, files};

/// A file that names a version is short.
const MOST: u64 = 64 << 10;

/// Managers that keep a directory of versions of one language: what its own directory is called,
/// which variable chooses, and which file of a repository.
const OF_ONE_LANGUAGE: [(&str, &str, &str); 3] = [
    ("rbenv", "RBENV_VERSION", ".ruby-version"),
    ("nodenv", "NODENV_VERSION", ".node-version"),
    ("pyenv", "PYENV_VERSION", ".python-version"),
];

/// The real program behind a stand-in; anything else is itself.
pub(super) fn behind_the_shim(name: &str, found: &Path, env: &Env) -> Result<PathBuf, String> {
    let dir = found.parent().unwrap_or(Path::new("/"));
    if dir.ends_with("shims") {
        let chosen = directories(dir, None, env);
        let program = chosen
            .iter()
            .map(|bin| bin.join(name))
            .find(|at| at.exists());
        let after = || without(dir, name, env);
        return program.or_else(after).ok_or_else(|| {
            format!("{name} is a stand-in of a version manager, and no installed version was found behind it")
        });
    }
    match is_rustup(found) {
        true => rustup_bin(None, env)
            .map(|bin| bin.join(name))
            .map_err(|why| format!("{name}: {why}")),
        false => Ok(found.to_owned()),
    }
}

/// The next program of that name on PATH, past a shim directory.
fn without(shims: &Path, name: &str, env: &Env) -> Option<PathBuf> {
    std::env::split_paths(env.get("PATH")?)
        .filter(|dir| dir != shims && !dir.ends_with("shims"))
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// Directories of programs that a manager's stand-ins lead to, in its order.
pub(super) fn directories(shims: &Path, repo: Option<&Path>, env: &Env) -> Vec<PathBuf> {
    let root = shims.parent().unwrap_or(Path::new("/"));
    if root.join("installs").is_dir() {
        return of_many_languages(&root.join("installs"), repo, env);
    }
    let (versions, chosen) = of_one_language(root, repo, env);
    let installed = chosen.iter().filter(|version| *version != "system");
    installed
        .map(|version| versions.join(version).join("bin"))
        .filter(|bin| bin.is_dir())
        .collect()
}

/// Does a manager leave what it has no version for to the rest of PATH?
pub(super) fn leaves_it_to_the_system(shims: &Path, repo: Option<&Path>, env: &Env) -> bool {
    let root = shims.parent().unwrap_or(Path::new("/"));
    let (_, chosen) = of_one_language(root, repo, env);
    !root.join("installs").is_dir() && (chosen.is_empty() || chosen.iter().any(|v| v == "system"))
}

/// Where versions lie, and which are chosen: by the variable, the repository, the manager.
fn of_one_language(root: &Path, repo: Option<&Path>, env: &Env) -> (PathBuf, Vec<String>) {
    let named = |name: &str| {
        root.file_name()
            .is_some_and(|dir| dir.to_string_lossy().ends_with(name))
    };
    let row = OF_ONE_LANGUAGE.iter().find(|(name, ..)| named(name));
    let (_, variable, file) = row.unwrap_or(&OF_ONE_LANGUAGE[2]);
    let root = match root.join("versions").is_dir() {
        true => root.to_owned(),
        false => env.path("PYENV_ROOT").unwrap_or_default(),
    };
    let by_variable = env
        .get(variable)
        .and_then(|v| v.to_str().map(str::to_owned));
    let by_file = || above(repo, file).and_then(|file| read(&file));
    let text = by_variable
        .or_else(by_file)
        .or_else(|| read(&root.join("version")));
    let chosen = text.unwrap_or_default();
    let chosen = chosen
        .split([':', '\n', ' '])
        .map(str::trim)
        .filter(|version| is_plain(version));
    (root.join("versions"), chosen.map(str::to_owned).collect())
}

/// asdf and mise: `.tool-versions` of the repository, of what is above it, and of the home; the
/// nearest line for a tool counts.
fn of_many_languages(installs: &Path, repo: Option<&Path>, env: &Env) -> Vec<PathBuf> {
    let above = repo
        .into_iter()
        .flat_map(Path::ancestors)
        .map(Path::to_owned);
    let mut chosen: Vec<(String, PathBuf)> = Vec::new();
    for dir in above.chain(env.path("HOME")) {
        let text = read(&dir.join(".tool-versions")).unwrap_or_default();
        for line in text.lines() {
            let words = line.split('#').next().unwrap_or_default();
            let mut words = words.split_whitespace().filter(|word| is_plain(word));
            let Some(tool) = words.next() else { continue };
            if chosen.iter().any(|(known, _)| known == tool) {
                continue;
            }
            let bins = words.map(|version| installs.join(tool).join(version).join("bin"));
            let bins = bins.filter(|bin| bin.is_dir());
            chosen.extend(bins.map(|bin| (tool.to_owned(), bin)));
        }
    }
    chosen.into_iter().map(|(_, bin)| bin).collect()
}

/// The nearest file of that name in a repository or above it.
fn above(repo: Option<&Path>, name: &str) -> Option<PathBuf> {
    let dirs = repo?.ancestors();
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn read(file: &Path) -> Option<String> {
    let bytes = files::read_limited(file, MOST).ok()?;
    String::from_utf8(bytes).ok()
}

/// One name, and nothing that leads elsewhere.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '-']) && !name.contains('/')
}

/// Is this a proxy of rustup, or rustup itself? All of them are one file.
pub(super) fn is_rustup(path: &Path) -> bool {
    let named = path
        .canonicalize()
        .is_ok_and(|real| real.file_name().is_some_and(|file| file == "rustup"));
    let same = || {
        let own = path.metadata().ok()?;
        let rustup = path.with_file_name("rustup").metadata().ok()?;
        Some(own.ino() == rustup.ino() && own.dev() == rustup.dev())
    };
    named || same().unwrap_or(false)
}

/// The programs of the toolchain that rustup would choose: by its variable, by a file of the
/// repository, or its default.
pub(super) fn rustup_bin(repo: Option<&Path>, env: &Env) -> Result<PathBuf, String> {
    let by_variable = env
        .get("RUSTUP_TOOLCHAIN")
        .and_then(|v| v.to_str().map(str::to_owned));
    let by_default = || {
        let settings: toml::Table = read(&rustup_home(env).join("settings.toml"))?
            .parse()
            .ok()?;
        Some(settings.get("default_toolchain")?.as_str()?.to_owned())
    };
    let chosen = by_variable
        .or_else(|| chosen_by_repository(repo))
        .or_else(by_default)
        .ok_or("it is a rustup link, and rustup names no default toolchain")?;
    rustup_named(&chosen, env)
}

/// The channel that `rust-toolchain.toml`, or the file from before it, names.
fn chosen_by_repository(repo: Option<&Path>) -> Option<String> {
    let dirs = repo?.ancestors();
    let text = dirs
        .flat_map(|dir| ["rust-toolchain", "rust-toolchain.toml"].map(|name| dir.join(name)))
        .find_map(|file| read(&file))?;
    let channel = |table: toml::Table| {
        let channel = table.get("toolchain")?.get("channel")?;
        channel.as_str().map(str::to_owned)
    };
    match text.parse::<toml::Table>() {
        Ok(table) => channel(table),
        Err(_) => text.lines().next().map(|line| line.trim().to_owned()),
    }
}

/// The programs of one toolchain; `stable` stands for `stable-<host>`.
pub(super) fn rustup_named(chosen: &str, env: &Env) -> Result<PathBuf, String> {
    let toolchains = rustup_home(env).join("toolchains");
    let exact = toolchains.join(chosen);
    let none = || format!("the rustup toolchain {chosen:?} is not installed");
    if !is_plain(chosen) {
        return Err(none());
    }
    if exact.is_dir() {
        return Ok(exact.join("bin"));
    }
    let entries = fs::read_dir(&toolchains).into_iter().flatten().flatten();
    let begins = |name: &str| name.starts_with(&format!("{chosen}-"));
    let fits = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(begins);
    let named = entries.filter(fits).map(|entry| entry.path()).min();
    named.map(|dir| dir.join("bin")).ok_or_else(none)
}

fn rustup_home(env: &Env) -> PathBuf {
    env.path("RUSTUP_HOME")
        .or_else(|| env.path("HOME").map(|home| home.join(".rustup")))
        .unwrap_or_default()
}

/// A script in a proxy's place: takes `+NAME` as the proxy would.
pub(super) fn choice(proxy: &str, bins: &BTreeMap<String, PathBuf>, default: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let mut text = String::from("#!/bin/sh\ncase $1 in\n");
    for (name, bin) in bins {
        let (bin, program) = (quoted(bin), quoted(&bin.join(proxy)));
        text.push_str(&format!(
            "+{name}) shift; PATH={bin}:$PATH exec {program} \"$@\";;\n"
        ));
    }
    text.push_str("+*) echo \"cto: the Rust toolchain ${1#+} is not shown to this jail\" >&2; exit 127;;\nesac\n");
    text.push_str(&format!("exec {} \"$@\"\n", quoted(&default.join(proxy))));
    text
}
