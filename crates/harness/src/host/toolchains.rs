//! Programs that live outside the system directories: resolved to what a jail must be shown of
//! them, without running any of them. A jail without HOME would otherwise silently use another
//! version (`docs/decisions/0003-toolchains-in-a-jail.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cto_core::gate::ToolchainUse;
use cto_core::run::event::Toolchain;

use crate::host::digest_cache;
use crate::host::{Env, Home};

/// Where programs of the system are looked for, on the host as in a jail.
pub const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Always visible in a jail.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
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

/// Visible in a jail without being shown.
pub fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
}

pub fn resolve(name: &str, env: &Env, home: &Home) -> Resolved {
    let Some(found) = env.find_program(name) else {
        return Resolved::Missing;
    };
    let real = match behind_the_shim(name, &found, env) {
        Ok(path) => path,
        Err(why) => return Resolved::Unusable(why),
    };
    let named = real;
    let Ok(real) = named.canonicalize() else {
        return Resolved::Missing;
    };
    let unreadable = |error| Resolved::Unusable(format!("{name} cannot be read: {error}"));
    let is_system = [&real, &found]
        .into_iter()
        .all(|path| SYSTEM.iter().any(|dir| path.starts_with(dir)));
    let registry = cargo_registry(name, env);
    let (program, bin, mut mounts) = match virtual_env(&named, env, home) {
        Some((root, base)) => (
            named.clone(),
            named.parent().map(Path::to_owned),
            [Some(root), base].into_iter().flatten().collect(),
        ),
        None if is_system => match (not_searched(&named), &registry) {
            (None, None) => {
                return match std::fs::File::open(&real) {
                    Ok(_) => Resolved::System(real),
                    Err(error) => unreadable(error),
                };
            }
            (bin, _) => (real.clone(), bin, Vec::new()),
        },
        None => (
            real.clone(),
            real.parent().map(Path::to_owned),
            vec![installation_root(&real, env, home)],
        ),
    };
    let sha256 = match digest_cache::digest(home, &real) {
        Ok(digest) => digest,
        Err(error) => return unreadable(error),
    };
    let own = mounts.len().min(1);
    let mut told = BTreeMap::new();
    if let Some((cargo_home, registry)) = registry {
        mounts.push(registry);
        // No network in a jail: said at once, instead of after a time-out.
        told.insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
        told.insert("CARGO_HOME".to_owned(), cargo_home.display().to_string());
    }
    let texts: Option<Vec<String>> = mounts
        .iter()
        .map(|path| path.to_str().map(str::to_owned))
        .collect();
    let (Some(texts), true) = (texts, bin.as_ref().is_none_or(|bin| bin.to_str().is_some())) else {
        return Resolved::Unusable(format!(
            "{name} lies below a directory whose name is not UTF-8"
        ));
    };
    let also = mounts
        .iter()
        .skip(own)
        .map(|path| shorten(path, env))
        .collect();
    Resolved::Toolchain(ToolchainUse {
        record: Toolchain {
            name: name.to_owned(),
            program: shorten(&program, env),
            sha256,
            also,
        },
        bin: bin.map(|bin| bin.display().to_string()),
        mounts: texts,
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
/// difference.
fn virtual_env(program: &Path, env: &Env, home: &Home) -> Option<(PathBuf, Option<PathBuf>)> {
    let root = program
        .parent()
        .filter(|dir| dir.ends_with("bin"))?
        .parent()?;
    let config = std::fs::read_to_string(root.join("pyvenv.cfg")).ok()?;
    let value = config
        .lines()
        .find_map(|line| line.strip_prefix("home")?.trim_start().strip_prefix('='))?;
    let base = Path::new(value.trim())
        .join("python3")
        .canonicalize()
        .ok()?;
    let is_system = SYSTEM.iter().any(|dir| base.starts_with(dir));
    Some((
        root.to_owned(),
        (!is_system).then(|| installation_root(&base, env, home)),
    ))
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

/// What a jail must be shown of a program that is named by its path; nothing of what it has anyway.
pub fn shown_for(real: &Path, env: &Env, home: &Home) -> Option<PathBuf> {
    let is_system = SYSTEM.iter().any(|dir| real.starts_with(dir));
    (!is_system).then(|| package_root(real).unwrap_or_else(|| installation_root(real, env, home)))
}

/// A script of an npm package needs the modules it was installed with.
fn package_root(real: &Path) -> Option<PathBuf> {
    real.ancestors()
        .filter(|dir| dir.ends_with("node_modules"))
        .last()
        .map(Path::to_owned)
}

/// `<root>/bin/<program>` shows `<root>`; anything that would show a home or our state shows one
/// file.
fn installation_root(real: &Path, env: &Env, home: &Home) -> PathBuf {
    let in_bin = real
        .parent()
        .filter(|dir| dir.ends_with("bin"))
        .and_then(Path::parent);
    let too_wide = |root: &Path| {
        let kept: [Option<PathBuf>; 3] = [
            env.path("HOME"),
            Some(home.root.clone()),
            Some(home.runs.clone()),
        ];
        // Tools of a user share these with keyrings and registry tokens.
        let personal = [".local", ".cargo", ".config"]
            .map(|name| env.path("HOME").map(|home| home.join(name)));
        let personal = personal
            .into_iter()
            .chain([env.path("CARGO_HOME")])
            .flatten();
        root == Path::new("/")
            || personal
                .into_iter()
                .any(|dir| dir.canonicalize().is_ok_and(|dir| dir == root))
            || kept.iter().flatten().any(|dir| dir.starts_with(root))
    };
    match in_bin {
        Some(root) if !too_wide(root) => root.to_owned(),
        _ => real.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Lab {
        dir: tempfile::TempDir,
    }

    impl Lab {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
            }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.dir.path().join(path)
        }

        fn program(&self, path: &str) {
            std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            std::fs::write(self.at(path), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(0o755))
                .unwrap();
        }

        fn resolve(&self, name: &str, path: &[&str]) -> Resolved {
            let path = path
                .iter()
                .map(|p| self.at(p).display().to_string())
                .collect::<Vec<_>>()
                .join(":");
            let home = self.dir.path().display().to_string();
            let env =
                Env::from_pairs(&[("HOME", &home), ("PATH", &format!("{path}:/usr/bin:/bin"))]);
            let state = Home {
                root: self.at(".local/state/cto"),
                runs: self.at(".local/state/cto/harness-runs"),
            };
            resolve(name, &env, &state)
        }
    }

    fn mount(resolved: Resolved) -> String {
        match resolved {
            Resolved::Toolchain(toolchain) => toolchain.mounts[0].clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pyenv_shim_leads_to_its_version() {
        let lab = Lab::new();
        lab.program(".pyenv/shims/python3");
        lab.program(".pyenv/versions/3.11.7/bin/python3");
        std::fs::write(lab.at(".pyenv/version"), "3.11.7\n").unwrap();
        assert_eq!(
            mount(lab.resolve("python3", &[".pyenv/shims"])),
            lab.at(".pyenv/versions/3.11.7")
                .canonicalize()
                .unwrap()
                .display()
                .to_string()
        );
        std::fs::write(lab.at(".pyenv/version"), "9.9\n").unwrap();
        assert!(matches!(
            lab.resolve("nosuch", &[".pyenv/shims"]),
            Resolved::Missing
        ));
    }

    #[test]
    fn a_rustup_link_leads_to_its_toolchain() {
        let lab = Lab::new();
        lab.program(".cargo/bin/rustup");
        symlink("rustup", lab.at(".cargo/bin/cargo")).unwrap();
        lab.program(".rustup/toolchains/stable-x/bin/cargo");
        std::fs::write(
            lab.at(".rustup/settings.toml"),
            "default_toolchain = \"stable\"\n",
        )
        .unwrap();
        let want = lab
            .at(".rustup/toolchains/stable-x")
            .canonicalize()
            .unwrap()
            .display()
            .to_string();
        assert_eq!(mount(lab.resolve("cargo", &[".cargo/bin"])), want);
        std::fs::write(
            lab.at(".rustup/settings.toml"),
            "default_toolchain = \"nightly\"\n",
        )
        .unwrap();
        assert!(matches!(
            lab.resolve("cargo", &[".cargo/bin"]),
            Resolved::Unusable(_)
        ));
    }

    #[test]
    fn a_virtual_environment_keeps_its_link_and_brings_its_base() {
        let lab = Lab::new();
        lab.program("opt/python/bin/python3");
        lab.program("project/.venv/bin/pytest");
        symlink(
            lab.at("opt/python/bin/python3"),
            lab.at("project/.venv/bin/python3"),
        )
        .unwrap();
        std::fs::write(
            lab.at("project/.venv/pyvenv.cfg"),
            format!("home = {}\n", lab.at("opt/python/bin").display()),
        )
        .unwrap();
        for name in ["python3", "pytest"] {
            let Resolved::Toolchain(found) = lab.resolve(name, &["project/.venv/bin"]) else {
                panic!("{name}")
            };
            let want = |path: &str| lab.at(path).display().to_string();
            assert_eq!(
                found.mounts,
                [
                    want("project/.venv"),
                    lab.at("opt/python")
                        .canonicalize()
                        .unwrap()
                        .display()
                        .to_string()
                ]
            );
            assert_eq!(found.bin, Some(want("project/.venv/bin")));
            assert_eq!(found.record.also.len(), 1);
        }
    }

    #[test]
    fn cargo_is_shown_fetched_crates_and_nothing_else_of_its_home() {
        let lab = Lab::new();
        lab.program("rust/bin/cargo");
        std::fs::create_dir_all(lab.at(".cargo/registry")).unwrap();
        std::fs::write(lab.at(".cargo/credentials.toml"), "secret").unwrap();
        let Resolved::Toolchain(found) = lab.resolve("cargo", &["rust/bin"]) else {
            panic!()
        };
        assert_eq!(
            found.mounts[1..],
            [lab.at(".cargo/registry").display().to_string()]
        );
        assert_eq!(
            found.env["CARGO_HOME"],
            lab.at(".cargo").display().to_string()
        );
        lab.program("rust/bin/other");
        let Resolved::Toolchain(other) = lab.resolve("other", &["rust/bin"]) else {
            panic!()
        };
        assert!(other.mounts.len() == 1 && other.env.is_empty());
    }

    #[test]
    fn a_home_is_never_shown_whole() {
        let lab = Lab::new();
        lab.program("bin/tool");
        lab.program(".local/bin/tool2");
        lab.program(".nvm/v20/bin/node2");
        lab.program(".cargo/bin/tool3");
        let real = |path: &str| lab.at(path).canonicalize().unwrap().display().to_string();
        assert_eq!(
            mount(lab.resolve("tool", &["bin"])),
            real("bin/tool"),
            "root would be HOME"
        );
        assert_eq!(
            mount(lab.resolve("tool2", &[".local/bin"])),
            real(".local/bin/tool2"),
            "root would hold our state"
        );
        assert_eq!(
            mount(lab.resolve("tool3", &[".cargo/bin"])),
            real(".cargo/bin/tool3"),
            "root would hold registry tokens"
        );
        assert_eq!(
            mount(lab.resolve("node2", &[".nvm/v20/bin"])),
            real(".nvm/v20")
        );
    }

    #[test]
    fn a_program_below_usr_is_searched_for_where_it_lies() {
        for (program, dir) in [
            ("/usr/bin/python3", None),
            ("/usr/local/bin/cargo", None),
            (
                "/usr/local/rustup/toolchains/stable-x/bin/cargo",
                Some("/usr/local/rustup/toolchains/stable-x/bin"),
            ),
        ] {
            assert_eq!(not_searched(Path::new(program)), dir.map(PathBuf::from));
        }
    }

    #[test]
    fn system_programs_need_nothing_and_homes_are_not_named() {
        let lab = Lab::new();
        assert!(matches!(lab.resolve("sh", &[]), Resolved::System(_)));
        assert!(matches!(
            lab.resolve("surely-not-there", &[]),
            Resolved::Missing
        ));
        lab.program(".nvm/v20/bin/node2");
        let Resolved::Toolchain(found) = lab.resolve("node2", &[".nvm/v20/bin"]) else {
            panic!()
        };
        assert!(found.record.program.ends_with(".nvm/v20/bin/node2"));
    }
}
