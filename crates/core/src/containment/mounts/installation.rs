//! What an installation is: a table of the files it has of its own, and of where managers of
//! versions put it. A directory with a `bin` in it is none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What was looked for below a directory, and what of it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signs {
    pub root: PathBuf,
    /// Patterns of [`MARKS`] that something matches.
    pub marks: BTreeSet<&'static str>,
    /// Hidden names in it; none where they could not be listed.
    pub hidden: Option<Vec<String>>,
}

/// A directory that is an installation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Installation {
    pub kind: &'static str,
    pub root: PathBuf,
    /// It stands for itself: an environment or packages need something else to run.
    pub is_base: bool,
    /// The directory of the manager that put it there, which may be a clone of its own.
    pub manager: Option<PathBuf>,
    /// Its path says so as well, not its files alone.
    pub by_path: bool,
}

const CONDA: &str = "conda-meta/history";
const PYTHON_LIBRARY: &str = "lib/python3.*/os.py";
const PYPY_LIBRARY: &str = "lib/pypy3.*/os.py";
const PYTHON: &str = "bin/python3";
const ENVIRONMENT: &str = "pyvenv.cfg";
const PACKAGES: &str = "lib/python3.*/site-packages";
const RUST_LIBRARY: &str = "lib/rustlib";
const RUSTC: &str = "bin/rustc";
const CARGO: &str = "bin/cargo";
const NODE: &str = "bin/node";
const NODE_HEADER: &str = "include/node/node_version.h";
const NPM: &str = "lib/node_modules/npm/package.json";
const RECEIPT: &str = "INSTALL_RECEIPT.json";
const SHIMS: &str = "../../../shims";
const BIN: &str = "bin";
const GO_VERSION: &str = "VERSION";
const GO: &str = "bin/go";
const GO_LIBRARY: &str = "src/runtime";
const JAVA_RELEASE: &str = "release";
const JAVA: &str = "bin/java";
const JAVA_LIBRARY: &str = "lib/modules";
const RUBY: &str = "bin/ruby";
const RUBY_LIBRARY: &str = "lib/ruby";

/// Everything that is ever looked for. A `*` stands for the rest of one name.
pub const MARKS: [&str; 23] = [
    CONDA,
    PYTHON_LIBRARY,
    PYPY_LIBRARY,
    PYTHON,
    ENVIRONMENT,
    PACKAGES,
    RUST_LIBRARY,
    RUSTC,
    CARGO,
    NODE,
    NODE_HEADER,
    NPM,
    RECEIPT,
    SHIMS,
    BIN,
    GO_VERSION,
    GO,
    GO_LIBRARY,
    JAVA_RELEASE,
    JAVA,
    JAVA_LIBRARY,
    RUBY,
    RUBY_LIBRARY,
];

struct Row {
    kind: &'static str,
    /// How its path ends; `*` is any name.
    ends: &'static [&'static str],
    marks: &'static [&'static str],
    /// How many names above it its manager lies.
    manager: Option<usize>,
    is_base: bool,
}

const fn row(
    kind: &'static str,
    ends: &'static [&'static str],
    marks: &'static [&'static str],
) -> Row {
    Row {
        kind,
        ends,
        marks,
        manager: None,
        is_base: true,
    }
}

const fn managed(row: Row, above: usize) -> Row {
    Row {
        manager: Some(above),
        ..row
    }
}

const fn needing(row: Row) -> Row {
    Row {
        is_base: false,
        ..row
    }
}

/// The first that fits is what it is.
const TABLE: &[Row] = &[
    needing(row(
        "a Python environment",
        &[],
        &[ENVIRONMENT, BIN, PACKAGES],
    )),
    managed(row("a Homebrew keg", &["Cellar", "*", "*"], &[RECEIPT]), 3),
    row("a conda installation", &["miniconda3"], &[CONDA, BIN]),
    row("a conda installation", &["miniforge3"], &[CONDA, BIN]),
    row("a conda installation", &["mambaforge"], &[CONDA, BIN]),
    row("a conda installation", &["anaconda3"], &[CONDA, BIN]),
    row("a conda installation", &["envs", "*"], &[CONDA, BIN]),
    row("a conda installation", &[], &[CONDA, BIN]),
    managed(
        row(
            "a pyenv version",
            &["versions", "*"],
            &[PYTHON, PYTHON_LIBRARY],
        ),
        2,
    ),
    row(
        "a uv Python",
        &["uv", "python", "*"],
        &[PYTHON, PYTHON_LIBRARY],
    ),
    managed(
        row("an nvm version", &["versions", "node", "*"], &[NODE]),
        3,
    ),
    managed(
        row(
            "a version of asdf or mise",
            &["installs", "*", "*"],
            &[BIN, SHIMS],
        ),
        3,
    ),
    row(
        "a rustup toolchain",
        &["toolchains", "*"],
        &[CARGO, RUST_LIBRARY],
    ),
    row("a Python", &[], &[PYTHON, PYTHON_LIBRARY]),
    row("a PyPy", &[], &[BIN, PYPY_LIBRARY]),
    row("a Rust toolchain", &[], &[RUSTC, RUST_LIBRARY]),
    row("a Node", &[], &[NODE, NODE_HEADER]),
    row("a Node", &[], &[NODE, NPM]),
    row("a Go", &[], &[GO_VERSION, GO, GO_LIBRARY]),
    row("a Java", &[], &[JAVA_RELEASE, JAVA, JAVA_LIBRARY]),
    row("a Ruby", &[], &[RUBY, RUBY_LIBRARY]),
];

/// What managers that may be clones are called. Any other directory that holds `versions` is
/// somebody's repository.
const MANAGERS: [&str; 10] = [
    ".pyenv",
    "pyenv",
    ".nvm",
    "nvm",
    ".asdf",
    "asdf",
    "mise",
    ".linuxbrew",
    "linuxbrew",
    "homebrew",
];

/// Hidden names an installation has. One with any other is somebody's directory as well.
const HIDDEN: [&str; 10] = [
    ".gitignore",
    ".gitattributes",
    ".lock",
    ".DS_Store",
    ".messages.txt",
    ".brew",
    ".bottle",
    ".condarc",
    ".nonadmin",
    ".mise.backend",
];

/// Files of installations that hold tokens: not shown although what they lie in is.
pub const TOKENS: [&str; 9] = [
    "credentials.toml",
    "credentials",
    ".npmrc",
    "etc/npmrc",
    "lib/node_modules/npm/npmrc",
    "pip.conf",
    "etc/pip.conf",
    ".pypirc",
    ".netrc",
];

/// A directory that would be an installation, were it not for a name in it that none has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mixed {
    pub kind: &'static str,
    pub root: PathBuf,
    /// The first such name.
    pub hidden: String,
}

/// What a directory is, by its own files; none where they do not say.
pub fn recognise(signs: &Signs) -> Option<Installation> {
    let known = by_its_files(signs)?;
    match stands_alone(&known) || (signs.hidden.is_some() && strange(signs).is_none()) {
        true => Some(known),
        false => None,
    }
}

/// An installation that is somebody's directory as well, by a hidden name in it.
pub fn mixed(signs: &Signs) -> Option<Mixed> {
    let known = by_its_files(signs).filter(|known| !stands_alone(known))?;
    let hidden = strange(signs)?.to_owned();
    Some(Mixed {
        kind: known.kind,
        root: known.root,
        hidden,
    })
}

/// Kinds whose path says everything: what else lies there is part of them.
fn stands_alone(known: &Installation) -> bool {
    in_nix_store(&known.root) || known.root.ends_with("node_modules")
}

/// The first hidden name that no installation has.
fn strange(signs: &Signs) -> Option<&str> {
    let names = signs.hidden.as_ref()?.iter().map(String::as_str);
    names.filter(|name| !HIDDEN.contains(name)).min()
}

fn by_its_files(signs: &Signs) -> Option<Installation> {
    let found = |kind, is_base, manager, by_path| {
        let root = signs.root.clone();
        Some(Installation {
            kind,
            root,
            is_base,
            manager,
            by_path,
        })
    };
    if in_nix_store(&signs.root) {
        return found("a Nix store path", true, None, true);
    }
    if signs.root.ends_with("node_modules") {
        return found("packages of npm", false, None, true);
    }
    let fits = |row: &&Row| {
        ends_with(&signs.root, row.ends) && row.marks.iter().all(|mark| signs.marks.contains(mark))
    };
    let row = TABLE.iter().find(fits)?;
    let manager = row
        .manager
        .and_then(|above| signs.root.ancestors().nth(above))
        .filter(|dir| MANAGERS.iter().any(|name| dir.ends_with(name)))
        .map(Path::to_owned);
    found(row.kind, row.is_base, manager, !row.ends.is_empty())
}

/// Where the installation of a program may begin, nearest first; packages of npm come last, the
/// outermost of them, because packages lie in each other.
pub fn candidates(program: &Path) -> Vec<PathBuf> {
    const DEEPEST: usize = 8;
    let is_packages = |dir: &&Path| dir.ends_with("node_modules");
    let packages = program.ancestors().filter(is_packages).last();
    let mut found: Vec<PathBuf> = program
        .ancestors()
        .skip(1)
        .take(DEEPEST)
        .filter(|dir| dir.parent().is_some() && !is_packages(dir))
        .map(Path::to_owned)
        .collect();
    found.extend(packages.map(Path::to_owned));
    found
}

fn in_nix_store(path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix("/nix/store") else {
        return false;
    };
    let mut parts = rest.components();
    let name = parts.next().and_then(|part| part.as_os_str().to_str());
    let hashed = |name: &str| {
        let (hash, rest) = name.split_once('-').unwrap_or((name, ""));
        hash.len() == 32 && !rest.is_empty() && hash.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    name.is_some_and(hashed) && parts.next().is_none()
}

fn ends_with(path: &Path, pattern: &[&str]) -> bool {
    let names: Vec<_> = path.components().rev().take(pattern.len()).collect();
    names.len() == pattern.len()
        && names
            .iter()
            .zip(pattern.iter().rev())
            .all(|(name, want)| *want == "*" || name.as_os_str() == *want)
}

#[cfg(test)]
#[path = "installation_tests.rs"]
mod tests;
