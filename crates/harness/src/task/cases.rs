//! Cases: the built-in ones inside the binary, and directories of the operator's own.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::task::case_file::{self, CaseFile, ContractIssue, TypedTask};
use cto_core::values::digest::Digest;
use cto_core::values::ids::CaseId;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{Entry, FileKind, Tree};
use include_dir::{Dir, include_dir};

use crate::host::failure::Failure;
use crate::task::case_dir;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../cases");

pub const DEFAULT_CASE: &str = "r1-string-slugify";
pub const CASE_FILE: &str = "case.toml";

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
    pub task: TaskText,
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
        let kind = if self.executable {
            FileKind::Executable
        } else {
            FileKind::Regular
        };
        Entry {
            kind,
            bytes: self.bytes.len() as u64,
            sha256: Digest::of(&self.bytes),
        }
    }
}

/// The task of a case: a file's text, words somebody typed, or what a contract says.
#[derive(Clone, Debug)]
pub enum TaskText {
    File(Vec<u8>),
    Typed(Box<TypedTask>),
    /// That of an earlier contract, to be judged again.
    Again(Box<CaseFile>),
}

impl Case {
    /// The task, or everything that is wrong with it.
    pub fn parsed(&self) -> Result<CaseFile, Vec<ContractIssue>> {
        match &self.task {
            TaskText::File(text) => case_file::parse_case(&self.label, text),
            TaskText::Typed(task) => case_file::check_typed(&self.label, task),
            TaskText::Again(task) => Ok((**task).clone()),
        }
    }

    pub fn baseline(&self) -> Tree {
        self.workspace
            .iter()
            .map(|file| (file.path.clone(), file.entry()))
            .collect()
    }

    pub fn hidden_digests(&self) -> BTreeMap<String, Digest> {
        self.hidden
            .iter()
            .map(|file| (file.path.to_string(), Digest::of(&file.bytes)))
            .collect()
    }
}

/// Finds a case: a path to a directory, a name under `--cases`, or a built-in one.
pub fn find(name: &str, cases_dir: Option<&Path>) -> Result<Case, Failure> {
    if name.contains('/') || matches!(name, "." | "..") {
        return case_dir::read(Path::new(name));
    }
    let unknown = |place: &str, known: Vec<String>| {
        Failure::usage("unknown_case", format!("no case is called {name:?}"))
            .at(place)
            .so("nothing ran")
            .hint(format!("known cases: {}", known.join(", ")))
    };
    match cases_dir {
        None => built_in(name)?.ok_or_else(|| unknown("built-in cases", built_in_names())),
        Some(dir) => {
            let known = case_dir::names_in(dir)?;
            match known.iter().any(|found| found == Path::new(name)) {
                true => case_dir::read(&dir.join(name)),
                false => Err(unknown(
                    "--cases",
                    known
                        .iter()
                        .map(|name| name.display().to_string())
                        .collect(),
                )),
            }
        }
    }
}

/// A case by the name of its directory, or why it cannot be read.
pub struct Listed {
    pub name: String,
    pub case: Result<Case, Failure>,
}

/// Every case, in order of name: the built-in ones, or those of a directory.
pub fn all(cases_dir: Option<&Path>) -> Result<Vec<Listed>, Failure> {
    let Some(dir) = cases_dir else {
        return Ok(built_in_names()
            .into_iter()
            .map(|name| Listed {
                case: find(&name, None),
                name,
            })
            .collect());
    };
    let names = case_dir::names_in(dir)?;
    if names.is_empty() {
        return Err(
            Failure::usage("no_cases", "there is no case in this directory")
                .at(dir.display().to_string())
                .so("nothing ran")
                .hint(
                    "a case is a directory with a case.toml in it; `cto case new NAME` begins one",
                ),
        );
    }
    let listed = |name: PathBuf| Listed {
        name: name.display().to_string(),
        case: case_dir::read(&dir.join(&name)),
    };
    Ok(names.into_iter().map(listed).collect())
}

pub fn built_in_names() -> Vec<String> {
    let mut names: Vec<String> = BUILT_IN
        .dirs()
        .map(|dir| dir.path().display().to_string())
        .collect();
    names.sort();
    names
}

fn built_in(name: &str) -> Result<Option<Case>, Failure> {
    let Some(dir) = BUILT_IN.get_dir(name) else {
        return Ok(None);
    };
    let mut loader = Loader::default();
    let bad = |error: &dyn std::error::Error| {
        Failure::internal("bad_built_in", "a built-in case has a bad name").because(error)
    };
    embedded(dir, dir.path(), &mut loader).map_err(|error| bad(&error))?;
    let id = name.parse().map_err(|error| bad(&error))?;
    loader
        .finish(id, true, format!("cases/{name}/{CASE_FILE}"))
        .map(Some)
}

fn embedded(dir: &Dir<'_>, root: &Path, loader: &mut Loader) -> Result<(), OddName> {
    for file in dir.files() {
        if let Ok(path) = file.path().strip_prefix(root) {
            loader.take(path.as_os_str().as_bytes(), false, file.contents().to_vec())?;
        }
    }
    dir.dirs().try_for_each(|sub| embedded(sub, root, loader))
}

/// What a case is put together from, file by file.
#[derive(Default)]
pub struct Loader {
    text: Option<Vec<u8>>,
    workspace: Vec<FixtureFile>,
    hidden: Vec<FixtureFile>,
    scripts: BTreeMap<String, Vec<u8>>,
    beside: BTreeMap<String, Vec<u8>>,
}

/// Scripts and files beside the case file are called by name; nothing may be called by two.
#[derive(Debug, thiserror::Error)]
#[error("the name of a script, or of a file beside the case file, is not UTF-8")]
pub struct OddName;

impl Loader {
    pub fn take(&mut self, path: &[u8], executable: bool, bytes: Vec<u8>) -> Result<(), OddName> {
        let named = |name: &[u8]| String::from_utf8(name.to_vec()).map_err(|_| OddName);
        let fixture = |path: &[u8], bytes| FixtureFile {
            path: TreePath::new(path),
            executable,
            bytes,
        };
        if path == CASE_FILE.as_bytes() {
            self.text = Some(bytes);
        } else if let Some(inner) = path.strip_prefix(b"workspace/") {
            self.workspace.push(fixture(inner, bytes));
        } else if let Some(inner) = path.strip_prefix(b"hidden/") {
            self.hidden.push(fixture(inner, bytes));
        } else if let Some(name) = path
            .strip_prefix(b"scripts/")
            .and_then(|name| name.strip_suffix(b".toml"))
        {
            self.scripts.insert(named(name)?, bytes);
        } else {
            self.beside.insert(named(path)?, bytes);
        }
        Ok(())
    }

    pub fn finish(mut self, id: CaseId, built_in: bool, label: String) -> Result<Case, Failure> {
        self.workspace.sort_by(|a, b| a.path.cmp(&b.path));
        self.hidden.sort_by(|a, b| a.path.cmp(&b.path));
        let text = self.text.ok_or_else(|| {
            Failure::usage("unknown_case", format!("{id} has no case.toml")).so("nothing ran")
        })?;
        Ok(Case {
            id,
            built_in,
            inputs: None,
            label,
            task: TaskText::File(text),
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
            let parsed = case.parsed().unwrap();
            assert_eq!(parsed.task_id, case.id);
            assert!(
                !case.workspace.is_empty() && !case.hidden.is_empty(),
                "{name}"
            );
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
