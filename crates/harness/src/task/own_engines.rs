//! The operator's own manifests: `engines/*.toml` in their configuration directory, or in the one they
//! named. Nowhere else is looked: not in the current directory, and nothing in a repository counts.
//! Each file is read once, as far as nobody else could have written it.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::engine::registry::Broken;
use cto_core::values::text::tame;

use crate::host::Env;
use crate::host::failure::Failure;
use crate::host::settings;
use crate::host::way::operator_file::{self, Privacy};

/// No manifest is larger.
pub const MAX_MANIFEST: u64 = 1 << 20;
/// No directory of them holds more names.
const MAX_FILES: usize = 1_000;
const ENDING: &str = "toml";

/// Where the operator's own manifests lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnDirectory {
    pub path: PathBuf,
    /// Somebody typed it, so it must be there.
    pub typed: bool,
}

impl OwnDirectory {
    /// The directory that was typed, or the one beside the config file; none where there is no place
    /// for one.
    pub fn find(typed: Option<&Path>, env: &Env) -> Result<Option<Self>, Failure> {
        if let Some(path) = typed {
            let path = std::path::absolute(path).map_err(|error| {
                Failure::usage("bad_path", "a directory cannot be made absolute")
                    .at(path.display().to_string())
                    .because(&error)
            })?;
            return Ok(Some(Self { path, typed: true }));
        }
        let own = settings::operators_directory(env)?;
        Ok(own.map(|dir| Self {
            path: dir.join("engines"),
            typed: false,
        }))
    }

    /// The file of an engine in it.
    pub fn file(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}.{ENDING}"))
    }
}

/// Every manifest in it, good and broken.
pub fn read(
    dir: &OwnDirectory,
    house: &[Manifest],
) -> Result<(Vec<Manifest>, Vec<Broken>), Failure> {
    let broken_place = |why: String| {
        let broken = Broken {
            id: None,
            file: tame(&dir.path.display().to_string()),
            why,
        };
        Ok((Vec::new(), vec![broken]))
    };
    let mut files = match listed(&dir.path) {
        Ok(Some(files)) => files,
        Ok(None) => {
            return broken_place(format!(
                "it holds more than {MAX_FILES} names; none of them is read"
            ));
        }
        Err(error)
            if !dir.typed
                && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            return Ok((Vec::new(), Vec::new()));
        }
        Err(error) if !dir.typed => return broken_place(format!("it cannot be read: {error}")),
        Err(error) => {
            return Err(Failure::usage(
                "no_engines_directory",
                "the directory of engines cannot be read",
            )
            .at(dir.path.display().to_string())
            .because(&error)
            .so("nothing ran")
            .hint("--engines DIR names a directory of manifests, NAME.toml each"));
        }
    };
    files.sort();
    let (mut good, mut broken) = (Vec::new(), Vec::new());
    for file in files {
        match manifest(&file, house) {
            Ok(manifest) => good.push(manifest),
            Err(why) => broken.push(Broken {
                id: stem(&file).and_then(|stem| stem.parse().ok()),
                file: tame(&file.display().to_string()),
                why,
            }),
        }
    }
    Ok((good, broken))
}

/// The manifests of a directory; none where it holds too many names. What an editor hides is none.
fn listed(dir: &Path) -> std::io::Result<Option<Vec<PathBuf>>> {
    let mut files = Vec::new();
    for (number, entry) in fs::read_dir(dir)?.enumerate() {
        if number == MAX_FILES {
            return Ok(None);
        }
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension() == Some(OsStr::new(ENDING)) {
            files.push(path);
        }
    }
    Ok(Some(files))
}

fn stem(file: &Path) -> Option<&str> {
    file.file_stem().and_then(OsStr::to_str)
}

/// One manifest, or why it is not used, with line and column where there are any.
pub fn manifest(file: &Path, house: &[Manifest]) -> Result<Manifest, String> {
    let text = operator_file::read_text(file, MAX_MANIFEST, Privacy::Public)
        .map_err(|problem| format!("it {problem}"))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem(file).unwrap_or_default();
    Manifest::parse_own(&tame(&name), stem, &text, house).map_err(|error| tame(&error.to_string()))
}

#[cfg(test)]
#[path = "own_engines_tests.rs"]
mod tests;
