//! Programs that run outside every jail, as the operator: git, and what signs or prints a
//! credential. Where one may come from is decided here, from facts about every entry on the way to
//! it (`docs/decisions/0024-programs-outside-a-jail.md`).

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ownership::{Step, StepKind, Stranger, end, stranger};

/// The kind of place a program lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceClass {
    /// `/usr`, `/bin`, `/sbin`: what the system installs.
    System,
    UsrLocal,
    Opt,
    NixStore,
    Homebrew,
    /// Somewhere else, by an absolute path the operator gave.
    Given,
}

impl PlaceClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::UsrLocal => "usr_local",
            Self::Opt => "opt",
            Self::NixStore => "nix_store",
            Self::Homebrew => "homebrew",
            Self::Given => "given",
        }
    }
}

/// Where Homebrew installs itself; on some hosts that directory is a clone of its repository.
const HOMEBREW: [&str; 2] = ["/opt/homebrew", "/home/linuxbrew/.linuxbrew"];

/// The system directories, the longest first.
const PLACES: [(&str, PlaceClass); 8] = [
    (HOMEBREW[1], PlaceClass::Homebrew),
    (HOMEBREW[0], PlaceClass::Homebrew),
    ("/nix/store", PlaceClass::NixStore),
    ("/usr/local", PlaceClass::UsrLocal),
    ("/usr", PlaceClass::System),
    ("/opt", PlaceClass::Opt),
    ("/sbin", PlaceClass::System),
    ("/bin", PlaceClass::System),
];

/// Searched after `PATH`, so that a `PATH` without any of them finds the system's program too.
pub const ALWAYS_SEARCHED: [&str; 7] = [
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/run/current-system/sw/bin",
    "/nix/var/nix/profiles/default/bin",
    "/opt/homebrew/bin",
    "/home/linuxbrew/.linuxbrew/bin",
];

/// Directories of programs that a current directory at or above them says nothing about: no
/// workspace is one.
const PROGRAM_DIRECTORIES: [&str; 6] = [
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
];

/// Repositories that keep a system's own files, and no work of anybody.
const SYSTEM_REPOSITORIES: [&str; 4] = ["/", "/etc", HOMEBREW[0], HOMEBREW[1]];

/// How a program was named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// By its name alone, and found in a directory of `PATH` or of the system.
    BySearch,
    /// By an absolute path the operator gave.
    ByOperator,
}

/// What lies around the command that wants a program.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The current directory, without links.
    pub current: Option<PathBuf>,
    /// The operator's home, without links.
    pub home: Option<PathBuf>,
    /// Where this program keeps its state, workspaces among it, without links.
    pub state: Vec<PathBuf>,
}

/// Why a program is not run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PassedOver {
    #[error("it is no absolute path")]
    Relative,
    #[error("it cannot be looked at: {0}")]
    Unreadable(String),
    #[error("it is no regular file")]
    NotAFile,
    #[error("nobody may execute it")]
    NotExecutable,
    #[error("{} is no system directory", .0.display())]
    NoSystemDirectory(PathBuf),
    #[error("it lies in the repository {}", .0.display())]
    InRepository(PathBuf),
    #[error("it lies in the environment {}", .0.display())]
    InEnvironment(PathBuf),
    #[error("it lies below the current directory {}", .0.display())]
    BelowCurrent(PathBuf),
    #[error("it lies where this program keeps its state, {}", .0.display())]
    InState(PathBuf),
    #[error(transparent)]
    Stranger(#[from] Stranger),
}

/// The class of a system directory this path lies in, if it does.
pub fn class_of(path: &Path) -> Option<PlaceClass> {
    PLACES
        .iter()
        .find(|(place, _)| path.starts_with(place) && path != Path::new(place))
        .map(|(_, class)| *class)
}

/// May a directory be searched for programs that run outside a jail, by what lies on the way to it?
/// The search itself asks for more: [`may_run`].
pub fn may_be_searched(way: &[Step], around: &Surroundings) -> Result<(), PassedOver> {
    not_of_a_stranger(way, around)
}

/// May this program run outside a jail? `way` is every entry on the way to it, the program last.
/// `named_in` is the directory a search found it in.
pub fn may_run(
    named: Named,
    named_in: Option<&Path>,
    way: &[Step],
    around: &Surroundings,
) -> Result<PlaceClass, PassedOver> {
    let program = end(way).ok_or(PassedOver::NotAFile)?;
    match program.kind {
        StepKind::File { executable: true } => {}
        StepKind::File { executable: false } => return Err(PassedOver::NotExecutable),
        _ => return Err(PassedOver::NotAFile),
    }
    let class = match (class_of(&program.path), named) {
        (Some(class), _) => class,
        (None, Named::ByOperator) => PlaceClass::Given,
        (None, Named::BySearch) => return Err(no_system_directory(&program.path)),
    };
    // Also the directory where it was found: a link in a directory of anybody's could lead to any
    // program of the system.
    if let Some(dir) = named_in.filter(|_| named == Named::BySearch)
        && class_of(&dir.join("program")).is_none()
    {
        return Err(PassedOver::NoSystemDirectory(dir.to_owned()));
    }
    not_of_a_stranger(way, around)?;
    Ok(class)
}

fn no_system_directory(program: &Path) -> PassedOver {
    PassedOver::NoSystemDirectory(program.parent().unwrap_or(program).to_owned())
}

/// Does this way lead into a repository, an environment, the current directory or our own state? A
/// program of the operator is told of no such place: what it loads from there is not the operator's.
/// A home that is a repository of settings is still the home.
pub fn leads_into_work(way: &[Step], around: &Surroundings) -> bool {
    let elsewhere: Vec<Step> = way
        .iter()
        .filter(|step| Some(&step.path) != around.home.as_ref())
        .cloned()
        .collect();
    !matches!(
        not_of_a_stranger(&elsewhere, around),
        Ok(()) | Err(PassedOver::Stranger(_))
    )
}

/// What a jailed command, a dependency or another user could have put there is nowhere on the way.
fn not_of_a_stranger(way: &[Step], around: &Surroundings) -> Result<(), PassedOver> {
    let is_systems = |path: &Path| SYSTEM_REPOSITORIES.iter().any(|top| path == Path::new(top));
    for step in way {
        if step.is_repository && !is_systems(&step.path) {
            return Err(PassedOver::InRepository(step.path.clone()));
        }
        if step.is_environment {
            return Err(PassedOver::InEnvironment(step.path.clone()));
        }
        if let Some(state) = around.state.iter().find(|dir| step.path.starts_with(dir)) {
            return Err(PassedOver::InState(state.clone()));
        }
        if let Some(current) = around.current.as_ref().filter(|dir| is_work(dir, around))
            && step.path.starts_with(current)
            && !is_program_directory(&step.path)
        {
            return Err(PassedOver::BelowCurrent(current.clone()));
        }
    }
    match stranger(way) {
        Some(stranger) => Err(PassedOver::Stranger(stranger)),
        None => Ok(()),
    }
}

/// Could the current directory be a workspace? The home and what lies above it never is, nor is a
/// directory that holds system directories.
fn is_work(current: &Path, around: &Surroundings) -> bool {
    let holds_home = around
        .home
        .as_ref()
        .is_some_and(|home| home.starts_with(current));
    let holds_system = PLACES
        .iter()
        .any(|(place, _)| Path::new(place).starts_with(current));
    !holds_home && !holds_system
}

fn is_program_directory(path: &Path) -> bool {
    PROGRAM_DIRECTORIES.iter().any(|dir| path.starts_with(dir))
        || HOMEBREW.iter().any(|prefix| path.starts_with(prefix))
        || path.starts_with("/nix/store")
}

/// Does a place hold programs of the system, or lie among them? No command in a jail is given one
/// to write.
pub fn is_near_programs(path: &Path) -> bool {
    let kept = PROGRAM_DIRECTORIES.iter().chain(&HOMEBREW);
    let holds = |dir: &&str| Path::new(dir).starts_with(path);
    is_program_directory(path) || kept.chain(&["/nix/store"]).any(holds)
}

/// Variables that a program of the operator's is told: who and where they are, and how password
/// stores and agents are reached. Interpreters read many others that load code; none of them is here.
const TOLD: [&str; 24] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GNUPGHOME",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_PROXY",
    "PASSWORD_STORE_DIR",
    "SHELL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "http_proxy",
    "https_proxy",
];
/// Families of such variables.
const TOLD_FAMILIES: [&str; 10] = [
    "AWS_",
    "AZURE_",
    "BW_",
    "CLOUDSDK_",
    "GOOGLE_",
    "GPG_",
    "LC_",
    "OP_",
    "VAULT_",
    "XDG_",
];

/// Whether a program of the operator's is told a variable of this name, if its value leads nowhere
/// it must not. Whoever needs another one names a script that sets it.
pub fn is_told(name: &str) -> bool {
    TOLD.contains(&name) || TOLD_FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
#[path = "outside_tests.rs"]
mod tests;
