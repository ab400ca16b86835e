//! Why a place is not shown to a jail, in words.

use std::fmt;
use std::path::PathBuf;

use super::Kept;
use super::installation::Mixed;

/// What is wrong with the place a file in a jail's reach names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// Its own files do not say that it is an installation.
    NotKnown,
    /// Somebody else owns it, or a directory above it.
    Owner(PathBuf),
    /// Others may write to it, or to a directory above it.
    Open(PathBuf),
    /// It lies at or below a repository.
    Repository(PathBuf),
    /// It would be an installation, but holds a name that none has.
    Mixed(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    Missing(PathBuf),
    /// It holds, or lies in, what is kept from every jail.
    Exposes(Kept, PathBuf),
    /// What is kept from every jail lies in what every jail is shown.
    InSystem(Kept, PathBuf),
    /// Every jail makes its own.
    JailsOwn(PathBuf),
    /// The host runs by it.
    HostsOwn(PathBuf),
    /// A program's directory that is no installation.
    NoInstallation(PathBuf),
    /// A program's installation that is somebody's directory as well.
    Mixed(Mixed),
    /// A file that a jail could have written names it.
    Wish {
        file: PathBuf,
        target: PathBuf,
        flaw: Flaw,
    },
    /// The harness wanted to hand over what it did not make.
    NotOurs(PathBuf),
}

impl Refused {
    /// The name of the failure, where nothing but a mount was asked for.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Exposes(..) | Self::InSystem(..) => "state_exposed",
            Self::Wish { .. } | Self::NoInstallation(_) | Self::Mixed(_) => "toolchain_unavailable",
            Self::Missing(_) | Self::JailsOwn(_) | Self::HostsOwn(_) | Self::NotOurs(_) => {
                "bad_path"
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(out, "{} is not there", path.display()),
            Self::Exposes(kept, path) => write!(out, "{} {}", path.display(), kept.exposed()),
            Self::InSystem(kept, path) => write!(
                out,
                "{}, {}, lies in the system, which every command in a jail may read",
                path.display(),
                kept.name()
            ),
            Self::JailsOwn(path) => write!(
                out,
                "{} cannot be shown: a jail provides its own /proc, /dev, /sys, /etc and /tmp",
                path.display()
            ),
            Self::HostsOwn(path) => write!(
                out,
                "{} belongs to the system, which no command in a jail may write",
                path.display()
            ),
            Self::NoInstallation(path) => write!(
                out,
                "{} is no installation that is known by its files",
                path.display()
            ),
            Self::Mixed(Mixed { kind, root, hidden }) => write!(
                out,
                "{root} looks like {kind} but holds {hidden}, which no installation does: it may be somebody's directory",
                root = root.display()
            ),
            Self::Wish { file, target, flaw } => {
                let (file, target) = (file.display(), target.display());
                write!(out, "{file} leads to {target}, ")?;
                match flaw {
                    Flaw::NotKnown => write!(
                        out,
                        "which is no installation that is known by its files, and a command in a jail could have written {file}"
                    ),
                    Flaw::Mixed(name) => {
                        write!(out, "which holds {name}, a name that no installation has")
                    }
                    Flaw::Owner(path) => {
                        write!(out, "and {} belongs to somebody else", path.display())
                    }
                    Flaw::Open(path) => write!(out, "and others may write to {}", path.display()),
                    Flaw::Repository(path) => {
                        write!(out, "which lies in the repository {}", path.display())
                    }
                }
            }
            Self::NotOurs(path) => write!(
                out,
                "{} was not made by the harness for a jail",
                path.display()
            ),
        }
    }
}

impl Kept {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::State => "where the harness keeps its state",
            Self::Config => "the harness's own configuration",
            Self::Home => "your home",
            Self::OtherHome => "somebody's home",
            Self::Runtime => "what the host keeps for its own processes",
        }
    }

    fn exposed(self) -> &'static str {
        match self {
            Self::State => "would show the harness's own state to the command",
            Self::Config => "would show the harness's own configuration to the command",
            Self::Home => "would show your whole home to the command",
            Self::OtherHome => "would show somebody's home to the command",
            Self::Runtime => {
                "would show what the kernel and the host keep for their own processes to the command"
            }
        }
    }
}
