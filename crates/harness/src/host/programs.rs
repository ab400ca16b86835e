//! Programs that run outside every jail: found, looked at, and from then on named by the very file
//! that was looked at. Where one may come from is decided in core (`containment/outside.rs`).
//!
//! Every directory on the way to it can be written by root and the operator alone, so nobody else
//! can exchange it between the look and the start.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cto_core::containment::outside::{
    ALWAYS_SEARCHED, Named, PassedOver, PlaceClass, Surroundings, is_told, leads_into_work,
    may_be_searched, may_run,
};

use cto_gateway::operator_program::OperatorProgram;

use crate::host::{Env, Home, way};

/// A program that may run outside a jail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    path: PathBuf,
    class: PlaceClass,
}

impl Program {
    /// The file itself, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn class(&self) -> PlaceClass {
        self.class
    }
}

/// Why there is no program: what was looked at, and why each was passed over.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct NoProgram {
    name: String,
    passed_over: Vec<(PathBuf, PassedOver)>,
}

impl fmt::Display for NoProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} was found that may run outside a jail", self.name)?;
        for (place, why) in &self.passed_over {
            write!(f, "; {}: {why}", place.display())?;
        }
        Ok(())
    }
}

/// What was settled about programs, once for the whole process.
#[derive(Clone, Default)]
pub struct Settled {
    /// `git` of the config file.
    pub git_setting: Option<PathBuf>,
    git: Arc<OnceLock<Result<Program, NoProgram>>>,
}

/// The git of this process.
pub fn git(env: &Env, home: &Home) -> Result<Program, NoProgram> {
    env.settled
        .git
        .get_or_init(|| {
            let around = around(env, Some(home));
            match &env.settled.git_setting {
                Some(path) => given("git", path, &around),
                None => search("git", env.get("PATH"), &around),
            }
        })
        .clone()
}

/// What signs with the operator's own SSH key.
pub fn ssh_keygen(env: &Env, home: &Home) -> Result<Program, NoProgram> {
    search("ssh-keygen", env.get("PATH"), &around(env, Some(home)))
}

/// A program the operator named by its absolute path.
pub fn operators(path: &Path, env: &Env, home: &Home) -> Result<Program, NoProgram> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    given(&name.to_string_lossy(), path, &around(env, Some(home)))
}

/// A program of the operator and its arguments, ready to be started.
pub fn to_start(words: &[String], env: &Env, home: &Home) -> Result<OperatorProgram, NoProgram> {
    let (program, arguments) = words.split_first().ok_or_else(|| NoProgram {
        name: "program".into(),
        passed_over: Vec::new(),
    })?;
    Ok(OperatorProgram {
        path: operators(Path::new(program), env, home)?.path,
        arguments: arguments.iter().map(Into::into).collect(),
        environment: operators_variables(env, home),
    })
}

/// The operator's variables for a program of theirs: those of a list, as far as they do not lead
/// into a repository, an environment, the current directory or our state; and a clean `PATH`.
pub fn operators_variables(env: &Env, home: &Home) -> Vec<(OsString, OsString)> {
    let around = around(env, Some(home));
    let may_be_told = |name: &OsStr| name.to_str().is_some_and(is_told);
    let mut told: Vec<(OsString, OsString)> = env
        .iter()
        .filter(|(name, value)| may_be_told(name) && !names_work(value, &around))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    told.push(("PATH".into(), clean_path(env, home)));
    told
}

/// Does any absolute path in a value lead into work, wherever in it the path begins? Of one that is
/// not there its nearest ancestor is asked. What a shell would have to spell out is not guessed at.
fn names_work(value: &OsStr, around: &Surroundings) -> bool {
    let is_end = |byte: &u8| b":;,= \t\n\"'".contains(byte);
    let leads = |path: &[u8]| {
        Path::new(OsStr::from_bytes(path))
            .ancestors()
            .find_map(|place| way::walk(place).ok())
            .is_some_and(|way| leads_into_work(&way, around))
    };
    let bytes = value.as_bytes();
    bytes.iter().any(|byte| b"~$`".contains(byte))
        || bytes.split(is_end).any(|word| {
            let slashes = word.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            slashes.into_iter().any(|(at, _)| leads(&word[at..]))
        })
}

/// The operator's `PATH` without directories that a jailed command, a dependency or another user
/// could have put a program into.
pub fn clean_path(env: &Env, home: &Home) -> OsString {
    cleaned(env, &around(env, Some(home)))
}

/// The same for a process of a run, which knows nothing of the state home.
pub fn clean_path_of_run(env: &Env) -> OsString {
    cleaned(env, &around(env, None))
}

fn cleaned(env: &Env, around: &Surroundings) -> OsString {
    let dirs = std::env::split_paths(env.get("PATH").unwrap_or_default());
    joined(dirs.filter(|dir| is_clean(dir, around)))
}

/// The directories of the system, for what git itself starts.
pub fn system_path() -> &'static OsStr {
    static FOUND: OnceLock<OsString> = OnceLock::new();
    FOUND.get_or_init(|| {
        let around = Surroundings::default();
        let dirs = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        joined(dirs.into_iter().filter(|dir| is_clean(dir, &around)))
    })
}

/// Why a directory is not one to start programs from, if it is not.
pub fn unclean(dir: &Path, env: &Env, home: &Home) -> Option<PassedOver> {
    match way::walk(dir) {
        Ok(way) => may_be_searched(&way, &around(env, Some(home))).err(),
        Err(error) => Some(PassedOver::Unreadable(error.to_string())),
    }
}

fn is_clean(dir: &Path, around: &Surroundings) -> bool {
    way::walk(dir).is_ok_and(|way| may_be_searched(&way, around).is_ok())
}

fn joined(dirs: impl Iterator<Item = PathBuf>) -> OsString {
    let mut path = OsString::new();
    for dir in dirs {
        if !path.is_empty() {
            path.push(":");
        }
        path.push(dir);
    }
    // Without any the C library would choose, and one of its choices is the current directory.
    match path.is_empty() {
        true => "/usr/bin:/bin".into(),
        false => path,
    }
}

fn around(env: &Env, home: Option<&Home>) -> Surroundings {
    let real = |path: PathBuf| path.canonicalize().ok();
    Surroundings {
        current: std::env::current_dir().ok().and_then(real),
        home: env.path("HOME").and_then(real),
        state: home
            .into_iter()
            .flat_map(|home| [home.root.clone(), home.runs.clone()])
            .filter_map(real)
            .collect(),
    }
}

fn given(name: &str, path: &Path, around: &Surroundings) -> Result<Program, NoProgram> {
    look(Named::ByOperator, path, around).map_err(|why| NoProgram {
        name: name.to_owned(),
        passed_over: vec![(path.to_owned(), why)],
    })
}

/// The first program of that name that may run. What is only not there is not worth a word.
fn search(name: &str, path: Option<&OsStr>, around: &Surroundings) -> Result<Program, NoProgram> {
    let mut passed_over: Vec<(PathBuf, PassedOver)> = Vec::new();
    let named = std::env::split_paths(path.unwrap_or_default());
    for dir in named.chain(ALWAYS_SEARCHED.map(PathBuf::from)) {
        let candidate = dir.join(name);
        if candidate.symlink_metadata().is_err()
            || passed_over.iter().any(|(place, _)| *place == candidate)
        {
            continue;
        }
        match look(Named::BySearch, &candidate, around) {
            Ok(program) => return Ok(program),
            Err(why) => passed_over.push((candidate, why)),
        }
    }
    Err(NoProgram {
        name: name.to_owned(),
        passed_over,
    })
}

fn look(named: Named, path: &Path, around: &Surroundings) -> Result<Program, PassedOver> {
    if !path.is_absolute() {
        return Err(PassedOver::Relative);
    }
    let unreadable = |error: std::io::Error| PassedOver::Unreadable(error.to_string());
    let named_in = path
        .parent()
        .map(Path::canonicalize)
        .transpose()
        .map_err(unreadable)?;
    let steps = way::walk(path).map_err(unreadable)?;
    let class = may_run(named, named_in.as_deref(), &steps, around)?;
    let program = steps.last().ok_or(PassedOver::NotAFile)?;
    Ok(Program {
        path: program.path.clone(),
        class,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    struct Lab {
        dir: tempfile::TempDir,
        home: Home,
    }

    impl Lab {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = Home {
                root: dir.path().join("state"),
                runs: dir.path().join("state/runs"),
            };
            fs::create_dir_all(&home.runs).unwrap();
            Self { dir, home }
        }

        fn program(&self, name: &str) -> PathBuf {
            let path = self.dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\nexit 7\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn env(&self, path: &str) -> Env {
            Env::from_pairs(&[("PATH", path), ("HOME", "/nonexistent")])
        }

        fn given(&self, path: &Path) -> Result<Program, NoProgram> {
            operators(path, &self.env("/usr/bin"), &self.home)
        }
    }

    #[test]
    fn the_systems_git_is_found_whatever_comes_before_it() {
        let lab = Lab::new();
        lab.program("repo/venv/bin/git");
        lab.program("open/git");
        let at = |name: &str| lab.dir.path().join(name).display().to_string();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        for path in [
            format!("{}:/usr/bin", at("repo/venv/bin")),
            format!(".::{}:/bin:/usr/bin", at("open")),
            format!("venv/bin:{}", at("repo/venv/bin")),
            String::new(),
        ] {
            let found = git(&lab.env(&path), &lab.home).unwrap();
            assert!(found.path().starts_with("/usr"), "{path}: {found:?}");
            let cleaned = clean_path(&lab.env(&path), &lab.home);
            assert!(!cleaned.to_string_lossy().contains("open"), "{cleaned:?}");
        }
    }

    #[test]
    fn what_the_operator_names_is_theirs_alone() {
        let lab = Lab::new();
        let good = lab.program("tools/git");
        assert_eq!(lab.given(&good).unwrap().class(), PlaceClass::Given);
        let linked = lab.dir.path().join("tools/link");
        symlink(&good, &linked).unwrap();
        let real = good.canonicalize().unwrap();
        assert_eq!(lab.given(&linked).unwrap().path(), real);
        let refused = |path: &Path, word: &str| {
            let said = lab.given(path).unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        };
        refused(Path::new("tools/git"), "no absolute path");
        refused(&lab.dir.path().join("none"), "cannot be looked at");
        refused(lab.dir.path(), "no regular file");
        refused(&lab.program("state/copies/git"), "keeps its state");
        let open = lab.program("open/git");
        fs::set_permissions(open.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        refused(&open, "everybody may write");
        let plain = lab.program("plain/git");
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
        refused(&plain, "nobody may execute");
        let ours = lab.program("repo/bin/git");
        fs::create_dir(lab.dir.path().join("repo/.git")).unwrap();
        refused(&ours, "in the repository");
        let way_in = lab.dir.path().join("tools/in");
        symlink(&ours, &way_in).unwrap();
        refused(&way_in, "in the repository");
        if rustix::process::geteuid().is_root() {
            let theirs = lab.program("theirs/git");
            chown(theirs.parent().unwrap(), Some(4242), None).unwrap();
            refused(&theirs, "belongs to user 4242");
        }
    }

    #[test]
    fn a_program_of_the_operator_loads_nothing_from_a_repository() {
        let lab = Lab::new();
        fs::create_dir_all(lab.dir.path().join("repo/.git")).unwrap();
        fs::create_dir_all(lab.dir.path().join("lib")).unwrap();
        let repo = lab.dir.path().join("repo").display().to_string();
        let lib = lab.dir.path().join("lib").display().to_string();
        let env = Env::from_pairs(&[
            ("HOME", "/nonexistent"),
            ("PATH", &format!("{repo}/bin:/usr/bin:{repo}")),
            ("PYTHONPATH", &format!("{lib}:{repo}/src")),
            ("NODE_OPTIONS", &format!("--require={repo}/not/there.js")),
            ("LD_PRELOAD", &format!("{repo}/x.so")),
            ("PWD", &repo),
            ("PERL5LIB", &lib),
            ("PERL5OPT", &format!("-I{repo}/lib -MEvil")),
            ("BASH_ENV", "$HOME/repo/x.sh"),
            ("XDG_CONFIG_HOME", &format!("-x{repo}/config")),
            ("XDG_DATA_HOME", "~/repo"),
            ("TMPDIR", "/tmp"),
            ("VAULT_ADDR", "https://vault.example.invalid:8200/v1"),
        ]);
        let told = operators_variables(&env, &lab.home);
        let names: Vec<&str> = told.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, ["HOME", "TMPDIR", "VAULT_ADDR", "PATH"]);
        assert_eq!(told.last().unwrap().1, "/usr/bin");
    }

    #[test]
    fn the_answer_is_given_once() {
        let lab = Lab::new();
        let mut env = lab.env("/usr/bin");
        let first = git(&env, &lab.home);
        env.settled.git_setting = Some("/nonexistent/git".into());
        assert_eq!(git(&env, &lab.home), first);
    }
}
