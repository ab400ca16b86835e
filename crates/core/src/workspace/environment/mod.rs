//! Environments: ignored directories of somebody's work tree that their commands cannot do without.
//! Which they are, by name and by signs of their own, and how a private copy gets each: one table,
//! one decision.
//!
//! Output that tools make without noticing what was deleted (`build`, `dist`, `out`, objects,
//! `__pycache__`) is in no row: only an operator who names it has it carried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::digest::{Digest, Hasher};
use crate::values::paths::TreePath;

/// What an environment is. `named` is what the operator says it is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentKind {
    PythonVenv,
    NodeModules,
    CargoTarget,
    Tox,
    Nox,
    Eggs,
    /// Metadata of a package that is installed from where it stands.
    EggInfo,
    /// A file that the project's own build writes and its code reads.
    GeneratedFile,
    /// Compiled code beside its source.
    ExtensionModule,
    Named,
    /// What Go compiled, by what it was made of; in the home, as are the rest.
    GoBuilds,
    GoModules,
    UvCache,
    MavenHome,
    GradleHome,
}

impl EnvironmentKind {
    pub fn words(self) -> &'static str {
        match self {
            Self::PythonVenv => "Python environment",
            Self::NodeModules => "node packages",
            Self::CargoTarget => "cargo's build",
            Self::Tox => "tox's environments",
            Self::Nox => "nox's environments",
            Self::Eggs => "eggs for a build",
            Self::EggInfo => "metadata of an editable install",
            Self::GeneratedFile => "a generated file",
            Self::ExtensionModule => "an extension module",
            Self::Named => "named by you",
            Self::GoBuilds => "Go's builds",
            Self::GoModules => "Go's modules",
            Self::UvCache => "uv's cache",
            Self::MavenHome => "Maven's packages",
            Self::GradleHome => "Gradle's packages",
        }
    }

    /// A tool keeps it in its user's home, for all projects (`tool_home/`).
    pub fn is_of_home(self) -> bool {
        matches!(
            self,
            Self::GoBuilds | Self::GoModules | Self::UvCache | Self::MavenHome | Self::GradleHome
        )
    }

    /// A tool takes what lies in it for new or old by the times of files: compilers keep what they
    /// know of the last build in `node_modules` too.
    pub fn is_judged_by_times(self) -> bool {
        matches!(
            self,
            Self::CargoTarget | Self::Named | Self::NodeModules | Self::Tox | Self::Nox
        )
    }
}

/// Names that are looked for beside and in a directory to know what it is.
pub const SIGNS_WITHIN: [&str; 2] = ["pyvenv.cfg", "CACHEDIR.TAG"];
pub const SIGN_BESIDE: &str = "Cargo.toml";

/// What is known of a name without looking further.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signs {
    pub is_dir: bool,
    /// `pyvenv.cfg` in it.
    pub pyvenv: bool,
    /// `CACHEDIR.TAG` in it.
    pub cache_tag: bool,
    /// `Cargo.toml` beside it.
    pub cargo_beside: bool,
}

/// May this name be in the table at all? Asked before anything of it is looked at.
pub fn may_be_environment(name: &[u8]) -> bool {
    let signs = Signs {
        is_dir: true,
        pyvenv: true,
        cache_tag: true,
        cargo_beside: true,
    };
    let file = Signs::default();
    !is_output(name) && (kind_of(name, signs).is_some() || kind_of(name, file).is_some())
}

/// The row of the table that a name and its signs belong to.
pub fn kind_of(name: &[u8], signs: Signs) -> Option<EnvironmentKind> {
    use EnvironmentKind as K;
    if is_output(name) {
        return None;
    }
    if !signs.is_dir {
        return match name {
            b"_version.py" => Some(K::GeneratedFile),
            _ if name.ends_with(b".egg-info") => Some(K::EggInfo),
            _ if is_extension_module(name) => Some(K::ExtensionModule),
            _ => None,
        };
    }
    match name {
        b"node_modules" => Some(K::NodeModules),
        b"target" if signs.cache_tag || signs.cargo_beside => Some(K::CargoTarget),
        b".tox" => Some(K::Tox),
        b".nox" => Some(K::Nox),
        b".eggs" => Some(K::Eggs),
        _ if name.ends_with(b".egg-info") => Some(K::EggInfo),
        _ if signs.pyvenv => Some(K::PythonVenv),
        _ => None,
    }
}

/// Output that is taken for new although what it was made of is gone.
const OUTPUT: [&[u8]; 8] = [
    b"build",
    b"dist",
    b"out",
    b".next",
    b"__pycache__",
    b"obj",
    b"objects",
    b"_build",
];

fn is_output(name: &[u8]) -> bool {
    OUTPUT.contains(&name)
}

/// `_speed.cpython-312-x86_64-linux-gnu.so`, `_speed.abi3.so`; a plain `libx.so` is an object.
fn is_extension_module(name: &[u8]) -> bool {
    let stem = name.strip_suffix(b".so");
    stem.is_some_and(|stem| {
        let tag = stem.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        stem.contains(&b'.') && (tag.starts_with(b"cpython-") || tag == b"abi3")
    })
}

/// Lists of what a project depends on: where one changed, the environment is the old one.
pub fn is_dependency_list(path: &TreePath) -> bool {
    const NAMES: [&[u8]; 20] = [
        b"pyproject.toml",
        b"setup.py",
        b"setup.cfg",
        b"tox.ini",
        b"noxfile.py",
        b"Pipfile",
        b"Pipfile.lock",
        b"poetry.lock",
        b"uv.lock",
        b"pdm.lock",
        b"package.json",
        b"package-lock.json",
        b"npm-shrinkwrap.json",
        b"yarn.lock",
        b"pnpm-lock.yaml",
        b"Cargo.toml",
        b"Cargo.lock",
        b"go.mod",
        b"go.sum",
        b"pom.xml",
    ];
    let bytes = path.as_bytes();
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes);
    let requirements = name.starts_with(b"requirements") && name.ends_with(b".txt");
    requirements || NAMES.contains(&name)
}

/// Up to this it is copied: then it can be removed and renamed as a whole.
pub const MOST_COPIED_FILES: u64 = 2_000;
pub const MOST_COPIED_BYTES: u64 = 20 << 20;
/// More is not looked at.
pub const MOST_FILES: u64 = 2_000_000;
/// Masks that are mounts of their own, where nothing can be put above a file.
pub const MOST_HIDDEN: u64 = 2_000;

/// What is known of one environment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EnvironmentFacts {
    pub kind: EnvironmentKind,
    /// Git ignores it, or the operator named it.
    pub ignored: bool,
    /// It, or something on the way to it, is a link.
    pub is_link: bool,
    /// The operator said that it is not to be carried.
    pub taken_away: bool,
    /// It overlaps with what an engine is not shown.
    pub hidden: bool,
    /// A jail may be shown it.
    pub granted: bool,
    /// All of it could be looked at, and it stayed as it was meanwhile.
    pub readable: bool,
    /// The Python it is based on is not there.
    pub python_gone: bool,
    /// It holds something of another owner.
    pub foreign: bool,
    /// The contract forbids changing it.
    pub forbidden: bool,
    /// Something in it is younger than now.
    pub from_the_future: bool,
    pub files: u64,
    pub bytes: u64,
    /// Files in it that no jail is shown.
    pub hidden_files: u64,
    /// A jail of this host can have it below an overlay.
    pub overlay: bool,
}

/// How a private copy gets an environment.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    /// Files of its own, with the times of the originals.
    Copied,
    /// Below an overlay: what is written goes elsewhere and is thrown away.
    Overlay,
    ReadOnly,
    Not,
}

/// The decision, and what is to be said about it.
pub fn decide_environment(facts: &EnvironmentFacts) -> (Carried, Option<&'static str>) {
    let not = |why| (Carried::Not, Some(why));
    let read_only = |why| (Carried::ReadOnly, Some(why));
    if facts.taken_away {
        return not("you said so");
    }
    if facts.is_link {
        return not("it is a link, or lies behind one");
    }
    if !facts.ignored {
        return not("git does not ignore it");
    }
    if facts.hidden {
        return not("it lies in a place that an engine is not shown");
    }
    if !facts.readable {
        return not("it could not be read as a whole, or changed meanwhile");
    }
    if !facts.granted {
        return not("a jail may not be shown it");
    }
    if facts.files > MOST_FILES {
        return not("it has too many files");
    }
    if facts.python_gone {
        return not("the Python it is based on is not there, or cannot be shown");
    }
    if facts.from_the_future && facts.kind.is_judged_by_times() {
        return not("files in it are younger than now, so a tool would take old output for new");
    }
    let why_not_written = if facts.foreign {
        Some("it holds files of another owner")
    } else if facts.forbidden {
        Some("the contract forbids changing it")
    } else {
        None
    };
    let small = facts.files <= MOST_COPIED_FILES && facts.bytes <= MOST_COPIED_BYTES;
    match why_not_written {
        None if small => (Carried::Copied, None),
        None if facts.overlay => (Carried::Overlay, None),
        _ if facts.hidden_files > MOST_HIDDEN => {
            not("too many files in it would have to be hidden")
        }
        None => read_only("this host has no overlays for it"),
        Some(why) => read_only(why),
    }
}

/// What the output of a failed command says it could not do to a directory that is a mount.
pub fn refused_by_overlay(output: &str) -> Option<&'static str> {
    let said = |words: &[&str]| words.iter().any(|word| output.contains(word));
    if said(&["EBUSY", "Device or resource busy", "os error 16"]) {
        Some("a directory was busy (EBUSY)")
    } else if said(&["EXDEV", "cross-device link", "os error 18"]) {
        Some("a name could not be moved (EXDEV)")
    } else {
        None
    }
}

/// One environment, as plan and report name it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentUse {
    /// Its place in the repository; of what a tool keeps in the home, `~/…`.
    pub path: TreePath,
    pub kind: EnvironmentKind,
    pub carried: Carried,
    /// Why it is not there, or cannot be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub files: u64,
    /// Nothing where it is of the home and below an overlay: then nobody asked each file.
    pub bytes: u64,
    /// Files in it that no process was shown: their names say that they hold secrets, or orders.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// Of path, size, times and inode of everything in it, when the run was planned; of what a
    /// tool keeps in the home, of every name, and of the times of directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EnvironmentUse {
    pub fn is_carried(&self) -> bool {
        self.carried != Carried::Not
    }

    /// As a person would write it: a directory ends with a slash.
    pub fn name(&self) -> String {
        let is_file = matches!(
            self.kind,
            EnvironmentKind::GeneratedFile | EnvironmentKind::ExtensionModule
        );
        match is_file {
            true => self.path.to_string(),
            false => format!("{}/", self.path),
        }
    }

    /// One line: what it is, how much, and how it came along.
    pub fn line(&self) -> String {
        let how = match self.carried {
            Carried::Copied => "copied",
            Carried::Overlay => "below an overlay, so it cannot be removed or renamed as a whole",
            Carried::ReadOnly => "read-only",
            Carried::Not => "NOT carried",
        };
        let why = self
            .why
            .as_ref()
            .map_or_else(String::new, |why| format!(": {why}"));
        let files = match self.files {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        format!(
            "{} ({}, {files}; {how}{why})",
            self.name(),
            self.kind.words()
        )
    }
}

/// `with your target/, .venv/`, for the line of a verdict; nothing where none was carried.
pub fn with_your(environments: &[EnvironmentUse]) -> Option<String> {
    const NAMED: usize = 4;
    let carried: Vec<String> = environments
        .iter()
        .filter(|used| used.is_carried())
        .map(EnvironmentUse::name)
        .collect();
    let more = match carried.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = carried.iter().take(NAMED).cloned().collect::<Vec<_>>();
    (!carried.is_empty()).then(|| format!("with your {}{more}", named.join(", ")))
}

/// Everything that was seen of one entry of an environment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    pub mode: u32,
    pub size: u64,
    pub inode: u64,
    /// Seconds and nanoseconds.
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

/// The state of an environment, entry by entry in the order of a walk that sorts names: two walks
/// that found the same give the same digest.
#[derive(Default)]
pub struct StateDigest(Hasher);

impl StateDigest {
    pub fn take(&mut self, path: &[u8], seen: &Seen) {
        // In one piece: there are many thousand, and each piece costs more than its bytes.
        let mut piece = [0; 61];
        let (modified, changed) = (seen.modified, seen.changed);
        let fields: [&[u8]; 9] = [
            b"e",
            &seen.mode.to_le_bytes(),
            &seen.size.to_le_bytes(),
            &seen.inode.to_le_bytes(),
            &modified.0.to_le_bytes(),
            &modified.1.to_le_bytes(),
            &changed.0.to_le_bytes(),
            &changed.1.to_le_bytes(),
            &(path.len() as u64).to_le_bytes(),
        ];
        let bytes = fields.into_iter().flatten();
        piece
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        self.0.update(&piece);
        self.0.update(path);
    }

    /// A directory, and the state of what lies directly in it.
    pub fn take_directory(&mut self, path: &[u8], entries: &Digest) {
        self.0.update(b"d");
        self.0.update(&entries.to_bytes());
        self.sized(path);
    }

    /// A name of a store in which names are made of content.
    pub fn take_name(&mut self, path: &[u8]) {
        self.0.update(b"n");
        self.sized(path);
    }

    fn sized(&mut self, path: &[u8]) {
        // The length first, so that no name can imitate the next entry.
        self.0.update(&(path.len() as u64).to_le_bytes());
        self.0.update(path);
    }

    pub fn finish(self) -> Digest {
        self.0.finish()
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
