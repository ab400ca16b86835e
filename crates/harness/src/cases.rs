//! Cases: the built-in ones inside the binary, and directories of the operator's own.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cto_core::digest::Digest;
use cto_core::ids::CaseId;
use cto_core::scope::TreePath;
use cto_core::tree::{Entry, FileKind, Tree};
use include_dir::{Dir, include_dir};

use crate::failure::Failure;
use crate::files;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../cases");

/// Beside `case.toml`: directories too large or too local to copy.
const INPUTS: &str = "inputs";

pub const DEFAULT_CASE: &str = "r1-string-slugify";
const MAX_FILE: u64 = 64 << 20;

/// A case as loaded: its text, its workspace, what the engine never sees, and its scripts.
#[derive(Clone, Debug)]
pub struct Case {
    /// From the directory name; the contract's own id is checked separately.
    pub id: CaseId,
    /// Ships with this binary.
    pub built_in: bool,
    /// Where the case keeps what is only mounted, never copied.
    pub inputs: Option<PathBuf>,
    /// How errors name the case file: relative, never a path of this machine.
    pub label: String,
    pub text: Vec<u8>,
    pub workspace: Vec<FixtureFile>,
    pub hidden: Vec<FixtureFile>,
    pub scripts: BTreeMap<String, Vec<u8>>,
    /// Other files beside `case.toml`, e.g. a control patch.
    pub beside: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Debug)]
pub struct FixtureFile {
    pub path: TreePath,
    pub executable: bool,
    pub bytes: Vec<u8>,
}

impl FixtureFile {
    pub fn entry(&self) -> Entry {
        let kind = if self.executable { FileKind::Executable } else { FileKind::Regular };
        Entry { kind, bytes: self.bytes.len() as u64, sha256: Digest::of(&self.bytes) }
    }
}

impl Case {
    pub fn baseline(&self) -> Tree {
        self.workspace.iter().map(|file| (file.path.clone(), file.entry())).collect()
    }

    pub fn hidden_digests(&self) -> BTreeMap<String, Digest> {
        self.hidden.iter().map(|file| (file.path.to_string(), Digest::of(&file.bytes))).collect()
    }
}

/// Finds a case: a path to a directory, a name under `--cases`, or a built-in one.
pub fn find(name: &str, cases_dir: Option<&Path>) -> Result<Case, Failure> {
    if name.contains('/') || name == "." {
        return from_directory(Path::new(name));
    }
    let unknown = |place: &str, known: Vec<String>| {
        Failure::usage("unknown_case", format!("no case is called {name:?}"))
            .at(place)
            .so("nothing ran")
            .hint(format!("known cases: {}", known.join(", ")))
    };
    match cases_dir {
        Some(dir) if name.parse::<CaseId>().is_ok() && dir.join(name).join("case.toml").exists() => {
            from_directory(&dir.join(name))
        }
        Some(dir) => Err(unknown("--cases", names_in(dir))),
        None => built_in(name)?.ok_or_else(|| unknown("built-in cases", built_in_names())),
    }
}

pub fn built_in_names() -> Vec<String> {
    BUILT_IN.dirs().map(|dir| dir.path().display().to_string()).collect()
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("case.toml").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn built_in(name: &str) -> Result<Option<Case>, Failure> {
    let Some(dir) = BUILT_IN.get_dir(name) else { return Ok(None) };
    let mut loader = Loader::default();
    embedded(dir, dir.path(), &mut loader);
    let id = name.parse().map_err(|error| Failure::internal("bad_built_in", "a built-in case has a bad name").because(&error))?;
    loader.finish(id, true, format!("cases/{name}/case.toml")).map(Some)
}

fn embedded(dir: &Dir<'_>, root: &Path, loader: &mut Loader) {
    for file in dir.files() {
        if let Ok(path) = file.path().strip_prefix(root) {
            loader.take(path.as_os_str().as_bytes(), false, file.contents().to_vec());
        }
    }
    for sub in dir.dirs() {
        embedded(sub, root, loader);
    }
}

fn from_directory(dir: &Path) -> Result<Case, Failure> {
    let unreadable = |path: &Path, error: &dyn std::error::Error| {
        Failure::usage("unreadable_case", "the case cannot be read")
            .at(path.display().to_string())
            .because(error)
            .so("nothing ran")
    };
    if !dir.join("case.toml").is_file() {
        return Err(
            Failure::usage("unknown_case", format!("{} is not a case: it has no case.toml", dir.display())).so("nothing ran")
        );
    }
    let real = dir.canonicalize().map_err(|error| unreadable(dir, &error))?;
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A case with an unusable directory name still gets a run id, and its contract error a bundle.
    let id = name.parse().or_else(|_| "unnamed-case".parse()).map_err(|error| unreadable(dir, &error))?;
    let mut loader = Loader::default();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let here = real.join(&below);
        for entry in std::fs::read_dir(&here).map_err(|error| unreadable(&here, &error))? {
            let entry = entry.map_err(|error| unreadable(&here, &error))?;
            let (path, relative) = (entry.path(), below.join(entry.file_name()));
            let meta = path.symlink_metadata().map_err(|error| unreadable(&path, &error))?;
            if relative == Path::new(INPUTS) {
                continue;
            }
            if meta.is_dir() {
                pending.push(relative);
            } else if meta.is_file() {
                let bytes = files::read_limited(&path, MAX_FILE).map_err(|error| unreadable(&path, &error))?;
                loader.take(relative.as_os_str().as_bytes(), meta.permissions().mode() & 0o100 != 0, bytes);
            } else {
                return Err(Failure::usage("unreadable_case", "a case may hold only files and directories")
                    .at(path.display().to_string())
                    .so("nothing ran"));
            }
        }
    }
    let case = loader.finish(id, false, format!("{name}/case.toml"))?;
    Ok(Case { inputs: Some(real.join(INPUTS)), ..case })
}

#[derive(Default)]
struct Loader {
    text: Option<Vec<u8>>,
    workspace: Vec<FixtureFile>,
    hidden: Vec<FixtureFile>,
    scripts: BTreeMap<String, Vec<u8>>,
    beside: BTreeMap<String, Vec<u8>>,
}

impl Loader {
    fn take(&mut self, path: &[u8], executable: bool, bytes: Vec<u8>) {
        let fixture = |path: &[u8], bytes| FixtureFile { path: TreePath::new(path), executable, bytes };
        if path == b"case.toml" {
            self.text = Some(bytes);
        } else if let Some(inner) = path.strip_prefix(b"workspace/") {
            self.workspace.push(fixture(inner, bytes));
        } else if let Some(inner) = path.strip_prefix(b"hidden/") {
            self.hidden.push(fixture(inner, bytes));
        } else if let Some(name) = path.strip_prefix(b"scripts/").and_then(|name| name.strip_suffix(b".toml")) {
            self.scripts.insert(String::from_utf8_lossy(name).into_owned(), bytes);
        } else {
            self.beside.insert(String::from_utf8_lossy(path).into_owned(), bytes);
        }
    }

    fn finish(mut self, id: CaseId, built_in: bool, label: String) -> Result<Case, Failure> {
        self.workspace.sort_by(|a, b| a.path.cmp(&b.path));
        self.hidden.sort_by(|a, b| a.path.cmp(&b.path));
        let text = self.text.ok_or_else(|| Failure::usage("unknown_case", format!("{id} has no case.toml")).so("nothing ran"))?;
        Ok(Case {
            id,
            built_in,
            inputs: None,
            label,
            text,
            workspace: self.workspace,
            hidden: self.hidden,
            scripts: self.scripts,
            beside: self.beside,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_case_is_whole() {
        assert!(built_in_names().contains(&DEFAULT_CASE.to_owned()));
        for name in built_in_names() {
            let case = find(&name, None).unwrap();
            let parsed = cto_core::case_file::parse(&case.label, &case.text).unwrap();
            assert_eq!(parsed.task_id, case.id);
            assert!(!case.workspace.is_empty() && !case.hidden.is_empty(), "{name}");
            for script in ["oracle", "nop", "cheat"] {
                assert!(case.scripts.contains_key(script), "{name} has no {script}");
            }
        }
    }

    #[test]
    fn unknown_cases_are_usage_errors() {
        for name in ["nope", "../x", "./nope", "R1"] {
            assert_eq!(find(name, None).unwrap_err().exit_code(), 2, "{name}");
        }
    }
}
