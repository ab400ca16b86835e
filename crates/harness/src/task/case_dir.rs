//! Reading a case from a directory of the operator's: regular files and directories, nothing else,
//! no more than fits, and every refusal with its place. What the files mean is decided elsewhere.

use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::host::failure::Failure;
use crate::host::files;
use crate::task::cases::{CASE_FILE, Case, Loader};

/// Directories beside the case file that are not read: what is too large or too local to copy, and
/// the history of the case itself.
const NOT_READ: [&str; 2] = [INPUTS, ".git"];
const INPUTS: &str = "inputs";

const MAX_CASE_FILE: u64 = 1 << 20;
const MAX_FILE: u64 = 64 << 20;
const MAX_TOTAL: u64 = 1 << 30;
const MAX_FILES: usize = 100_000;

/// A script or a file that `--script` names.
pub const MAX_SCRIPT: u64 = 16 << 20;

pub fn read(dir: &Path) -> Result<Case, Failure> {
    let case_file = dir.join(CASE_FILE);
    match case_file.symlink_metadata() {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err(refused(&case_file, "case.toml is not a regular file")),
        Err(error) if is_absent(&error) => {
            return Err(Failure::usage(
                "unknown_case",
                format!("{} is not a case: it has no case.toml", dir.display()),
            )
            .so("nothing ran")
            .hint(
                "`cto cases` lists the built-in cases; `cto case new NAME` begins one of your own",
            ));
        }
        Err(error) => return Err(unreadable(&case_file, &error)),
    }
    let real = dir
        .canonicalize()
        .map_err(|error| unreadable(dir, &error))?;
    let name = real
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    // A case with an unusable directory name still gets a run id, and its contract error a bundle.
    let id = name
        .parse()
        .or_else(|_| "unnamed-case".parse())
        .map_err(|error| unreadable(dir, &error))?;
    let mut walk = Walk {
        root: &real,
        loader: Loader::default(),
        files: 0,
        bytes: 0,
        pending: vec![PathBuf::new()],
    };
    while let Some(below) = walk.pending.pop() {
        walk.directory(&below)?;
    }
    let case = walk
        .loader
        .finish(id, false, format!("{name}/{CASE_FILE}"))?;
    Ok(Case {
        inputs: Some(real.join(INPUTS)),
        ..case
    })
}

/// Names of the directories below `dir` that hold a case file, in order.
pub fn names_in(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let bad = |place: &Path, error: &io::Error| {
        Failure::usage(
            "bad_cases_directory",
            "the directory of cases cannot be read",
        )
        .at(place.display().to_string())
        .because(error)
        .so("nothing ran")
        .hint("--cases names a directory that holds one directory a case")
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|error| bad(dir, &error))? {
        let name = PathBuf::from(entry.map_err(|error| bad(dir, &error))?.file_name());
        match dir.join(&name).join(CASE_FILE).symlink_metadata() {
            Ok(_) => names.push(name),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(bad(&dir.join(&name), &error)),
        }
    }
    names.sort();
    Ok(names)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::usage("unreadable_case", "the case cannot be read")
        .at(path.display().to_string())
        .because(error)
        .so("nothing ran")
}

fn refused(path: &Path, why: impl Into<String>) -> Failure {
    Failure::usage("unreadable_case", why)
        .at(path.display().to_string())
        .so("nothing ran")
}

struct Walk<'a> {
    root: &'a Path,
    loader: Loader,
    files: usize,
    bytes: u64,
    pending: Vec<PathBuf>,
}

impl Walk<'_> {
    fn directory(&mut self, below: &Path) -> Result<(), Failure> {
        let here = self.root.join(below);
        for entry in std::fs::read_dir(&here).map_err(|error| unreadable(&here, &error))? {
            let entry = entry.map_err(|error| unreadable(&here, &error))?;
            let (path, relative) = (entry.path(), below.join(entry.file_name()));
            if NOT_READ.iter().any(|name| relative == Path::new(name)) {
                continue;
            }
            let meta = path
                .symlink_metadata()
                .map_err(|error| unreadable(&path, &error))?;
            let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
            if relative.components().any(is_git) {
                return Err(refused(
                    &path,
                    "a case may not hold git metadata: every copy gets its own",
                ));
            }
            match (meta.is_dir(), meta.is_file()) {
                (true, _) => self.pending.push(relative),
                (_, true) => self.file(&path, &relative, &meta)?,
                (false, false) => {
                    return Err(refused(
                        &path,
                        "a case may hold only regular files and directories",
                    ));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, relative: &Path, meta: &Metadata) -> Result<(), Failure> {
        let limit = match () {
            () if relative == Path::new(CASE_FILE) => MAX_CASE_FILE,
            () if relative.starts_with("scripts") => MAX_SCRIPT,
            () => MAX_FILE,
        };
        let bytes = files::read_limited(path, limit).map_err(|error| unreadable(path, &error))?;
        self.files += 1;
        self.bytes += bytes.len() as u64;
        if self.files > MAX_FILES || self.bytes > MAX_TOTAL {
            let most = format!(
                "a case may hold {MAX_FILES} files and {} MiB",
                MAX_TOTAL >> 20
            );
            return Err(refused(self.root, most).hint("put what is too large to copy into inputs/"));
        }
        let executable = meta.permissions().mode() & 0o100 != 0;
        self.loader
            .take(relative.as_os_str().as_bytes(), executable, bytes)
            .map_err(|error| refused(path, error.to_string()))
    }
}
