//! What the files around a program say of it: the package it belongs to and the lock file it was
//! installed by. Claims, all of them: whoever wrote the package wrote them. Nothing is run.

use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;

use crate::host::files;

/// A file that names a version is short.
const MAX_VERSION_FILE: u64 = 1 << 20;

/// The directory of packages that a program comes with: the outermost of that name above it, for
/// packages lie in each other. It is what a jail is shown, and what an admission pins.
pub fn packages_root(manifest: &Manifest, program: &Path) -> Option<PathBuf> {
    let name = manifest.invocation.as_ref()?.packages.as_deref()?;
    program
        .ancestors()
        .skip(1)
        .filter(|dir| dir.file_name().is_some_and(|have| have == name))
        .last()
        .map(Path::to_owned)
}

/// The version that the nearest such file above the program names.
pub fn package_version(program: &Path, name: &str) -> Option<String> {
    let file = program
        .ancestors()
        .skip(1)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())?;
    let bytes = files::read_limited(&file, MAX_VERSION_FILE).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let version = value.get("version")?.as_str()?;
    let plain = version.len() <= 64 && version.bytes().all(|b| b.is_ascii_graphic());
    plain.then(|| version.to_owned())
}

/// What the nearest package above a program says it needs of an interpreter, in its own words.
pub fn wanted(program: &Path, interpreter: &str) -> Option<String> {
    let file = program
        .ancestors()
        .skip(1)
        .map(|dir| dir.join("package.json"))
        .find(|file| file.is_file())?;
    let bytes = files::read_limited(&file, MAX_VERSION_FILE).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let wanted = value.get("engines")?.get(interpreter)?.as_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || " .<>=^~|*-".contains(c);
    let is_range = wanted.len() <= 64 && wanted.chars().all(plain) && !wanted.is_empty();
    is_range.then(|| wanted.to_owned())
}
