//! This machine as the harness knows it: clock, randomness, environment, files, and where state
//! lives. Nothing else reads them.
//!
//! - `mod.rs` time, random names, `Env`, `Home`, the program itself
//! - `files.rs` reading, hashing and removing files; `digest_cache.rs` digests of programs, kept
//! - `settings.rs` the config file; `toolchains/` which programs a jail can be shown, `places/`
//!   which places; `programs.rs` which may run outside one; `way.rs` who could have written what a
//!   path leads to
//! - `failure.rs` the shape of every error and its exit code; `workers.rs` the one pool of threads
//! - `repositories.rs` where those of earlier runs lie
//! - `dumps.rs` keeps secrets out of core dumps; `cpus.rs` how many are used; `accounts.rs` what a command cost; `probes.rs` what this host can do, found out by trying
//!
//! Imports no other room. Imported by every room.

pub mod accounts;
pub mod cpus;
pub mod digest_cache;
pub mod dumps;
pub mod failure;
pub mod files;
pub mod places;
pub mod probes;
pub mod programs;
pub mod repositories;
pub mod settings;
pub mod toolchains;
pub mod way;
pub mod workers;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cto_core::operator::settings::{Config, Layers, Source};
use cto_core::values::digest::Digest;
use cto_core::values::time::Utc;

use crate::host::failure::Failure;

/// What reads every command of a contract, on the host as in a jail.
pub const SHELL: &str = "/bin/sh";

/// Wall-clock time, for display and freshness; order never comes from it.
pub fn now() -> Utc {
    let millis = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        });
    to_utc(millis)
}

/// A file time, as the evidence records it.
pub fn file_time(time: SystemTime) -> Utc {
    let millis = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    to_utc(millis)
}

fn to_utc(millis: i64) -> Utc {
    // Years 1 to 9998 as milliseconds: whatever a broken clock says is brought into range, not
    // refused.
    let clamped = millis.clamp(-62_135_596_800_000, 253_370_764_800_000);
    Utc::from_millis(clamped).unwrap_or_else(|_| unreachable_time())
}

fn unreachable_time() -> Utc {
    // The clamp above keeps every value in jiff's range; the epoch is the honest "unknown".
    match Utc::from_millis(0) {
        Ok(epoch) => epoch,
        Err(_) => std::process::abort(),
    }
}

/// In ASCII order, without letters that look alike.
const ALPHABET: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";

/// Random lower-case letters and digits, from the kernel.
pub fn random_name(length: usize) -> Result<String, Failure> {
    let mut bytes = vec![0u8; length];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::internal("no_randomness", "the kernel gave no random bytes").because(&error)
    })?;
    Ok(bytes
        .iter()
        .map(|b| char::from(ALPHABET[usize::from(b % 32)]))
        .collect())
}

/// Begins the name of a directory below `work/` that goes with the process that made it.
pub const LOOK: &str = "look-";

/// A name for one. What a process that is gone left under such a name is swept.
pub fn look_name() -> Result<String, Failure> {
    Ok(format!("{LOOK}{}-{}", std::process::id(), random_name(12)?))
}

/// The ending of a run id: two digits for the millisecond, so that names sort in time, and six of
/// chance.
pub fn run_suffix(started: Utc) -> Result<String, Failure> {
    let millis = usize::try_from(started.as_millis().rem_euclid(1000)).unwrap_or(0);
    let digit = |n: usize| char::from(ALPHABET[n % 32]);
    Ok(format!(
        "{}{}{}",
        digit(millis / 32),
        digit(millis),
        random_name(6)?
    ))
}

/// The operator's environment, read once at the start.
#[derive(Clone, Default)]
pub struct Env {
    variables: BTreeMap<OsString, OsString>,
    /// Which programs were settled on, once for the whole process.
    pub settled: programs::Settled,
}

impl Env {
    pub fn of_process() -> Self {
        Self::of(std::env::vars_os().collect())
    }

    /// An environment made by hand.
    #[cfg(test)]
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self::of(
            pairs
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect(),
        )
    }

    fn of(variables: BTreeMap<OsString, OsString>) -> Self {
        Self {
            variables,
            settled: programs::Settled::default(),
        }
    }

    /// Of the variables these alone; what was settled stays.
    pub fn only(&self, names: &[&str]) -> Self {
        let mut env = self.clone();
        env.variables
            .retain(|name, _| names.iter().any(|kept| name == kept));
        env
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The same with these directories before every other that is searched for programs.
    pub fn searching_first<'p>(&self, dirs: impl Iterator<Item = &'p Path>) -> Self {
        let mut path = OsString::new();
        for dir in dirs {
            path.push(dir);
            path.push(":");
        }
        path.push(self.get("PATH").unwrap_or_default());
        let mut env = self.clone();
        env.variables.insert("PATH".into(), path);
        env
    }

    /// Where a program that runs in a jail is, by PATH: a regular file someone may execute. What
    /// runs outside one comes from `programs.rs`.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(self.get("PATH")?)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .find(|path| {
                path.metadata()
                    .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
            })
    }
}

/// Where state lives.
#[derive(Clone, Debug)]
pub struct Home {
    pub root: PathBuf,
    pub runs: PathBuf,
}

impl Home {
    /// First that applies: `--home`, `CTO_STATE_DIR`, an existing Hermes profile, `CTO_HOME`, the
    /// config file, XDG state. None of them may lie in a repository.
    pub fn find(
        home: Option<PathBuf>,
        runs: Option<PathBuf>,
        env: &Env,
        config: &Config,
    ) -> Result<Self, Failure> {
        Self::with_sources(home, runs, env, config).map(|(found, _)| found)
    }

    /// Also says where root and runs came from.
    pub fn with_sources(
        home: Option<PathBuf>,
        runs: Option<PathBuf>,
        env: &Env,
        config: &Config,
    ) -> Result<(Self, [Source; 2]), Failure> {
        let user = env.path("HOME");
        let variable = |name: &'static str| {
            env.path(name)
                .map(|dir| (Source::Environment { name }, dir))
        };
        let hermes = env
            .path("HERMES_HOME")
            .or_else(|| user.as_ref().map(|home| home.join(".hermes")))
            .map(|dir| (Source::Profile, dir.join("profiles/cto-planb")))
            .filter(|(_, dir)| dir.is_dir());
        let given = |key: &str| {
            config
                .get(key)
                .map(|given| settings::directory(&given.value, env).map(|dir| (given.line, dir)))
                .transpose()
        };
        let xdg = env
            .path("XDG_STATE_HOME")
            .or_else(|| user.as_ref().map(|home| home.join(".local/state")))
            .map(|dir| dir.join("cto"));
        let chosen = Layers {
            flag: home,
            environment: variable("CTO_STATE_DIR")
                .or(hermes)
                .or_else(|| variable("CTO_HOME")),
            config: given("home")?,
            default: xdg,
        }
        .choose("home");
        let (from, root) = chosen.ok_or_else(|| {
            Failure::usage("no_state_home", "there is no place for state")
                .reason("neither HOME nor XDG_STATE_HOME is set")
                .hint("give one with --home DIR or CTO_STATE_DIR")
        })?;
        let root = absolute(&root)?;
        let user = user.as_deref().map(absolute).transpose()?;
        way::state::is_in_no_repository(&root, user.as_deref())?;
        let layers = Layers {
            flag: runs,
            environment: variable("CTO_RUNS_DIR"),
            config: given("runs_dir")?,
            default: None,
        };
        let (runs_from, runs) = layers
            .choose("runs_dir")
            .unwrap_or_else(|| (Source::Default, root.join("harness-runs")));
        Ok((
            Self {
                runs: absolute(&runs)?,
                root,
            },
            [from, runs_from],
        ))
    }

    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    pub fn digests(&self) -> PathBuf {
        self.cache().join("digests")
    }

    /// One file a live run, so that recovery need not scan every bundle.
    pub fn open_runs(&self) -> PathBuf {
        self.root.join("open")
    }

    /// Landings in people's repositories that are not settled yet, a file each.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Where repositories of earlier runs lie, a file each.
    pub fn repositories(&self) -> PathBuf {
        self.root.join("repositories")
    }

    /// What repositories are tried with, a file each.
    pub fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// Makes the directories a run needs, private to this user.
    pub fn create(&self) -> Result<(), Failure> {
        // A group may share bundles, which are signed; what else lies here is for nobody.
        let own = [(&self.root, Some(self.root.as_path())), (&self.runs, None)];
        for (dir, own) in own {
            make(dir)?;
            // Before anything is made in it.
            way::state::is_ours(dir, own)?;
        }
        make(&self.work())?;
        make(&self.open_runs())?;
        // Only faster, where it is heard.
        files::spread_below(&self.work());
        Ok(())
    }
}

fn make(dir: &Path) -> Result<(), Failure> {
    make_private_dir(dir).map_err(|error| {
        Failure::internal("state_unwritable", "the state directory cannot be made")
            .at(dir.display().to_string())
            .because(&error)
            .so("no bundle could be written, so nothing ran")
            .hint("choose another place with --home DIR or --runs-dir DIR")
    })
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    way::from_root(path).map_err(|error| {
        Failure::usage("bad_path", "a directory cannot be made absolute")
            .at(path.display().to_string())
            .because(&error)
    })
}

pub fn make_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// This binary, which is also the `fake` engine.
pub struct OwnProgram {
    pub path: PathBuf,
    pub sha256: Digest,
}

impl OwnProgram {
    pub fn find(home: &Home) -> Result<Self, Failure> {
        let unreadable = |error: io::Error| {
            Failure::internal("own_program", "this program cannot read itself").because(&error)
        };
        let path = std::env::current_exe().map_err(unreadable)?;
        let sha256 = crate::host::digest_cache::digest(home, &path).map_err(unreadable)?;
        Ok(Self { path, sha256 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env::from_pairs(pairs)
    }

    #[test]
    fn state_home_order() {
        let dir = tempfile::tempdir().unwrap();
        let user = dir.path().to_str().unwrap();
        let root = |pairs: &[(&str, &str)]| {
            Home::find(None, None, &env(pairs), &Config::default())
                .unwrap()
                .root
        };
        assert_eq!(root(&[("HOME", user)]), dir.path().join(".local/state/cto"));
        assert_eq!(
            root(&[("HOME", user), ("XDG_STATE_HOME", "/x")]),
            Path::new("/x/cto")
        );
        assert_eq!(root(&[("HOME", user), ("CTO_HOME", "/c")]), Path::new("/c"));
        std::fs::create_dir_all(dir.path().join(".hermes/profiles/cto-planb")).unwrap();
        let hermes = dir.path().join(".hermes/profiles/cto-planb");
        assert_eq!(root(&[("HOME", user), ("CTO_HOME", "/c")]), hermes);
        assert_eq!(
            root(&[("HOME", user), ("CTO_STATE_DIR", "/s")]),
            Path::new("/s")
        );
        let none = Config::default();
        let flagged = Home::find(
            Some("/f".into()),
            Some("/r".into()),
            &env(&[("CTO_STATE_DIR", "/s")]),
            &none,
        )
        .unwrap();
        assert_eq!(
            (flagged.root.as_path(), flagged.runs.as_path()),
            (Path::new("/f"), Path::new("/r"))
        );
        assert!(Home::find(None, None, &env(&[]), &none).is_err());
    }

    #[test]
    fn a_config_file_comes_after_every_variable_and_before_the_default() {
        let config = cto_core::operator::settings::parse_config(
            "c",
            b"home = \"/conf\"\nruns_dir = \"~/runs\"\n",
        )
        .unwrap();
        let found =
            |pairs: &[(&str, &str)]| Home::with_sources(None, None, &env(pairs), &config).unwrap();
        let (home, sources) = found(&[("HOME", "/nowhere")]);
        assert_eq!(
            (home.root.as_path(), home.runs.as_path()),
            (Path::new("/conf"), Path::new("/nowhere/runs"))
        );
        assert_eq!(
            sources,
            [Source::Config { line: 1 }, Source::Config { line: 2 }]
        );
        let (home, sources) = found(&[
            ("HOME", "/nowhere"),
            ("CTO_HOME", "/c"),
            ("CTO_RUNS_DIR", "/r"),
        ]);
        assert_eq!(
            (home.root.as_path(), home.runs.as_path()),
            (Path::new("/c"), Path::new("/r"))
        );
        assert_eq!(
            sources,
            [
                Source::Environment { name: "CTO_HOME" },
                Source::Environment {
                    name: "CTO_RUNS_DIR"
                }
            ]
        );
        let (home, _) =
            Home::with_sources(Some("/f".into()), None, &env(&[("HOME", "/n")]), &config).unwrap();
        assert_eq!(home.root, Path::new("/f"));
    }

    #[test]
    fn suffixes_sort_by_time_within_a_second() {
        let at = |millis: i64| {
            run_suffix(Utc::from_millis(1_767_323_045_000 + millis).unwrap()).unwrap()
        };
        let names: Vec<String> = [0, 1, 31, 32, 500, 999].into_iter().map(at).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_ne!(at(7), at(7));
    }

    #[test]
    fn programs_are_regular_executable_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plain"), "").unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let env = env(&[(
            "PATH",
            &format!("relative:{}:/bin:/usr/bin", dir.path().display()),
        )]);
        assert!(env.find_program("sh").is_some());
        assert!(env.find_program("plain").is_none() && env.find_program("folder").is_none());
    }
}
