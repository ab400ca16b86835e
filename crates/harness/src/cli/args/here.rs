//! Paths as they are typed: they count from the current directory, or from the directory that is named in
//! its place.

use std::path::{Component, Path, PathBuf};

use crate::host::failure::Failure;

/// Where somebody stands in a repository.
pub struct Here {
    /// Names from the top of the work tree to the current directory.
    below: Vec<String>,
}

/// The top of the work tree around a directory, by its `.git`, without links.
pub fn top_of(dir: &Path) -> Option<PathBuf> {
    let real = dir.canonicalize().ok()?;
    let top = real
        .ancestors()
        .find(|above| above.join(".git").symlink_metadata().is_ok());
    top.map(Path::to_owned)
}

impl Here {
    /// `repository` as it was named: the current directory, if nothing was.
    pub fn of(repository: &Path) -> Self {
        let here = repository.canonicalize().ok();
        let top = top_of(repository);
        Self::between(top.as_deref(), here.as_deref())
    }

    fn between(top: Option<&Path>, here: Option<&Path>) -> Self {
        let below = here
            .zip(top)
            .and_then(|(here, top)| here.strip_prefix(top).ok());
        let names = below.into_iter().flat_map(Path::components);
        Self {
            below: names
                .map(|name| name.as_os_str().to_string_lossy().into_owned())
                .collect(),
        }
    }

    /// The same paths, counted from the top.
    pub fn seen_at_top(&self, flag: &str, typed: &[String]) -> Result<Vec<String>, Failure> {
        typed.iter().map(|path| self.one(flag, path)).collect()
    }

    fn one(&self, flag: &str, typed: &str) -> Result<String, Failure> {
        let climbs = Path::new(typed)
            .components()
            .any(|part| part == Component::ParentDir);
        if (self.below.is_empty() && !climbs) || Path::new(typed).is_absolute() {
            return Ok(typed.to_owned());
        }
        let mut names = self.below.clone();
        for part in typed.split('/').filter(|part| !matches!(*part, "" | ".")) {
            match part {
                ".." if names.pop().is_none() => {
                    let what = format!("{flag} {typed:?} leads out of the repository");
                    return Err(Failure::usage("bad_path", what)
                        .so("nothing ran")
                        .hint("paths count from the current directory, or from --repo DIR"));
                }
                ".." => {}
                name => names.push(name.to_owned()),
            }
        }
        let slash = if typed.ends_with('/') { "/" } else { "" };
        Ok(match names.is_empty() {
            true => ".".to_owned(),
            false => format!("{}{slash}", names.join("/")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_count_from_where_one_stands() {
        let at = |here: &str| Here::between(Some(Path::new("/r")), Some(Path::new(here)));
        for (here, typed, want) in [
            ("/r", "src", "src"),
            ("/r", "./src/", "./src/"),
            ("/r", ".", "."),
            ("/r/sub", "src", "sub/src"),
            ("/r/sub", "./src/", "sub/src/"),
            ("/r/sub", ".", "sub"),
            ("/r/sub", "..", "."),
            ("/r/sub/deep", "../x/", "sub/x/"),
            ("/r/sub", "../*.py", "*.py"),
            ("/elsewhere", "src", "src"),
            ("/r/sub", "/etc", "/etc"),
        ] {
            assert_eq!(
                at(here).one("--allow", typed).ok().as_deref(),
                Some(want),
                "{here} {typed}"
            );
        }
        for (here, typed) in [("/r", "../x"), ("/r/sub", "../../x"), ("/elsewhere", "..")] {
            assert!(at(here).one("--allow", typed).is_err(), "{here} {typed}");
        }
    }
}
