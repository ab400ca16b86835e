//! The config file on disk: which one it is, whether it may be believed, and its content.
//!
//! It lives in the operator's configuration directory and nowhere else. It is never looked for in
//! the current directory or in a repository: an agent could have written it there.

use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cto_core::operator::settings::{self, Config, Issue};

use crate::host::Env;
use crate::host::failure::Failure;
use crate::host::files;

const MAX_FILE: u64 = 64 << 10;
/// Names another file; this value names none.
pub const VARIABLE: &str = "CTO_CONFIG";
const NO_FILE: &str = "/dev/null";

/// What was found, before anything is made of it.
#[derive(Default, Clone)]
pub struct Loaded {
    /// Where the file is or would be.
    pub path: Option<PathBuf>,
    pub exists: bool,
    pub config: Config,
}

/// Where the config file is or would be; none where there is no place for one.
pub fn path(env: &Env) -> Result<Option<PathBuf>, Failure> {
    if let Some(named) = env.path(VARIABLE) {
        return if named == Path::new(NO_FILE) {
            Ok(None)
        } else {
            absolute(VARIABLE, named).map(Some)
        };
    }
    Ok(operators_directory(env)?.map(|dir| dir.join("config.toml")))
}

/// The operator's configuration directory; none where there is no place for one.
pub fn operators_directory(env: &Env) -> Result<Option<PathBuf>, Failure> {
    let home = match (env.path("XDG_CONFIG_HOME"), env.path("HOME")) {
        (Some(dir), _) => absolute("XDG_CONFIG_HOME", dir)?,
        (None, Some(user)) => absolute("HOME", user)?.join(".config"),
        (None, None) => return Ok(None),
    };
    Ok(Some(home.join("cto")))
}

fn absolute(name: &str, path: PathBuf) -> Result<PathBuf, Failure> {
    match path.is_absolute() {
        true => Ok(path),
        false => Err(Failure::usage(
            "config_relative",
            format!("{name} must name an absolute path"),
        )
        .at(path.display().to_string())
        .reason("a relative one would be read from the current directory, where an agent may have written it")
        .so("nothing ran")),
    }
}

/// Finds, reads and checks the config file. A file that is not there sets nothing; a broken one
/// stops everything.
pub fn load(env: &Env) -> Result<Loaded, Failure> {
    let Some(path) = path(env)? else {
        return Ok(Loaded::default());
    };
    let named = env.get(VARIABLE).is_some();
    let bytes = match path.canonicalize() {
        Ok(real) => trusted(&path, &real)?,
        // A directory this user may not even look into holds nothing of theirs.
        Err(error)
            if !named && matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) =>
        {
            return Ok(Loaded {
                path: Some(path),
                ..Loaded::default()
            });
        }
        Err(error) => return Err(unreadable(&path).because(&error)),
    };
    let config = settings::parse_config(&path.display().to_string(), &bytes)
        .map_err(|issues| invalid(&path, &issues))?;
    Ok(Loaded {
        path: Some(path),
        exists: true,
        config,
    })
}

/// Reads any file as a config file, for `cto config check FILE`.
pub fn check(path: &Path) -> Result<Result<Config, Vec<Issue>>, Failure> {
    let bytes =
        files::read_limited(path, MAX_FILE).map_err(|error| unreadable(path).because(&error))?;
    Ok(settings::parse_config(&path.display().to_string(), &bytes))
}

pub fn invalid(path: &Path, issues: &[Issue]) -> Failure {
    let mut failure = Failure::usage("config_invalid", "the config file is not valid")
        .at(path.display().to_string())
        .so("nothing ran")
        .hint(format!(
            "correct it, or use none with {VARIABLE}={NO_FILE}; `cto help config` lists every key"
        ));
    failure.because = issues.iter().map(ToString::to_string).collect();
    failure
}

fn unreadable(path: &Path) -> Failure {
    Failure::usage("config_unreadable", "the config file cannot be read")
        .at(path.display().to_string())
        .so("nothing ran")
        .hint(format!(
            "correct its place or mode, or use none with {VARIABLE}={NO_FILE}"
        ))
}

/// The bytes of a file only the operator can have written.
fn trusted(path: &Path, real: &Path) -> Result<Vec<u8>, Failure> {
    let untrusted = |why: String| {
        Failure::usage(
            "config_untrusted",
            "the config file could have been written by someone else",
        )
        .at(path.display().to_string())
        .reason(why)
        .so("nothing ran")
        .hint(format!(
            "make it your own file, writable by you alone, or use none with {VARIABLE}={NO_FILE}"
        ))
    };
    for place in [path, real] {
        if let Some(repository) = place
            .ancestors()
            .skip(1)
            .find(|dir| dir.join(".git").symlink_metadata().is_ok())
        {
            return Err(untrusted(format!(
                "it is in a repository, {}",
                repository.display()
            )));
        }
    }
    let file = files::open_regular(real).map_err(|error| unreadable(path).because(&error))?;
    let meta = file
        .metadata()
        .map_err(|error| unreadable(path).because(&error))?;
    if meta.uid() != 0 && meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(untrusted(format!("it belongs to user {}", meta.uid())));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(untrusted(format!(
            "others may write it (mode {:03o})",
            meta.mode() & 0o777
        )));
    }
    files::read_open(file, MAX_FILE).map_err(|error| unreadable(path).because(&error))
}

/// A directory as the file names it: `~/` is the operator's home.
pub fn directory(value: &str, env: &Env) -> Result<PathBuf, Failure> {
    let Some(below) = value.strip_prefix('~') else {
        return Ok(PathBuf::from(value));
    };
    let user = env
        .path("HOME")
        .filter(|home| home.is_absolute())
        .ok_or_else(|| {
            Failure::usage(
                "no_home",
                "the config file names a directory below `~`, and HOME is not set",
            )
            .so("nothing ran")
        })?;
    Ok(user.join(below.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pairs: &[(&str, &str)]) -> Result<Option<PathBuf>, &'static str> {
        path(&Env::from_pairs(pairs)).map_err(|failure| failure.code)
    }

    #[test]
    fn the_place_is_never_relative() {
        assert_eq!(
            at(&[("HOME", "/h")]),
            Ok(Some("/h/.config/cto/config.toml".into()))
        );
        assert_eq!(
            at(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]),
            Ok(Some("/x/cto/config.toml".into()))
        );
        assert_eq!(
            at(&[("XDG_CONFIG_HOME", "/x"), (VARIABLE, "/c.toml")]),
            Ok(Some("/c.toml".into()))
        );
        assert_eq!(at(&[("HOME", "/h"), (VARIABLE, "/dev/null")]), Ok(None));
        assert_eq!(at(&[]), Ok(None));
        for name in [VARIABLE, "XDG_CONFIG_HOME", "HOME"] {
            assert_eq!(at(&[(name, "cto.toml")]), Err("config_relative"), "{name}");
        }
    }

    #[test]
    fn a_tilde_is_the_operators_home() {
        let env = Env::from_pairs(&[("HOME", "/h")]);
        for (value, want) in [("~/a/b", "/h/a/b"), ("~", "/h/"), ("/x", "/x")] {
            assert_eq!(directory(value, &env).unwrap(), Path::new(want));
        }
        assert_eq!(
            directory("~/a", &Env::default()).unwrap_err().code,
            "no_home"
        );
    }
}
