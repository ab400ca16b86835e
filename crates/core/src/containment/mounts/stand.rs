//! Where a jail shows the private copy: at the path of the repository it was made from, so that
//! whatever holds that path fits (editable installs, first lines of scripts, build output); or,
//! where that path cannot be used or there is no repository, at a neutral one.
//!
//! Nothing of the host is shown by it: what is mounted there is the copy. But it must neither cover
//! what a jail needs nor take the place of what every jail is kept from.

use std::fmt;
use std::path::{Path, PathBuf};

use super::system::{SOURCES, SYSTEM};
use super::{House, Kept, Place, Refused, is_system};

/// Where the copy stands if nothing says otherwise.
pub const NEUTRAL: &str = "/workspace";
/// Where a jail shows its scratch directory.
pub const SCRATCH: &str = "/scratch";
/// Where it shows the engine's own program.
pub const ENGINE: &str = "/engine";
/// Where it shows the links to the programs that run the engine, which its PATH begins with.
pub const ENGINE_PROGRAMS: &str = "/engine/programs";
/// Where it shows the directories of ours that stand in PATH for directories of the operator's.
pub const PROGRAMS: &str = "/programs";
/// Where it has stand-ins of programs that only publish.
pub const STAND_INS_DIR: &str = "/refused";

/// A jail's own, with everything below.
const JAILS_WHOLLY: [&str; 6] = [
    "/etc",
    SCRATCH,
    ENGINE,
    PROGRAMS,
    STAND_INS_DIR,
    "/run/lower",
];
/// A jail's own, but people work below it.
const JAILS_AROUND: [&str; 5] = ["/tmp", "/var/tmp", "/dev/shm", "/run/empty", "/home"];
/// Bytes of a path: names below it need room as well.
const LONGEST: usize = 1024;

/// Where the copy stands in every jail of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Stand {
    /// The files have no path of their own: a case brings them.
    #[default]
    Neutral,
    /// Where the repository stands.
    Own(PathBuf),
    /// At the neutral path, because the repository's cannot be used.
    Instead(Unfit),
}

/// Why the copy cannot stand at the repository's own path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    NotUtf8,
    TooLong,
    Control,
    /// It is no directory without a link on the way.
    Moved,
    /// At, above or below what a jail makes for itself.
    JailsOwn,
    /// At, above or below what every jail sees of the system.
    System,
    /// At or above a home, or near anything else that is kept from jails.
    Kept(Kept),
}

impl Stand {
    /// The copy of the repository at this place.
    pub fn of(place: &Place, house: &House) -> Self {
        match unfit(place, house) {
            None => Self::Own(place.path.clone()),
            Some(why) => Self::Instead(why),
        }
    }

    /// As processes in the jail know it.
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(path) => path,
            Self::Neutral | Self::Instead(_) => Path::new(NEUTRAL),
        }
    }

    /// For the plan. It names no path of the host: a bundle goes to strangers.
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Neutral => None,
            Self::Own(_) => Some("at its own path".into()),
            Self::Instead(why) => Some(format!("at {NEUTRAL} since its own path {why}")),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => out.write_str("is not UTF-8"),
            Self::TooLong => write!(out, "is longer than {LONGEST} bytes"),
            Self::Control => out.write_str("holds control characters"),
            Self::Moved => out.write_str("is no directory any more"),
            Self::JailsOwn => out.write_str("is one that every jail has for itself"),
            Self::System => out.write_str("belongs to the system"),
            Self::Kept(kept) => write!(out, "is too near to {}", kept.name()),
        }
    }
}

fn unfit(place: &Place, house: &House) -> Option<Unfit> {
    let path = place.path.as_path();
    let Some(text) = path.to_str() else {
        return Some(Unfit::NotUtf8);
    };
    if text.len() > LONGEST {
        return Some(Unfit::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Some(Unfit::Control);
    }
    if !place.links.is_empty() || place.own_step().is_none() || !path.is_absolute() {
        return Some(Unfit::Moved);
    }
    let covers = |dir: &&str| Path::new(dir).starts_with(path);
    let below = |dir: &&str| path.starts_with(dir);
    if JAILS_AROUND.iter().chain(&JAILS_WHOLLY).any(&covers) || JAILS_WHOLLY.iter().any(below) {
        return Some(Unfit::JailsOwn);
    }
    let of_people = SOURCES
        .iter()
        .any(|dir| path.starts_with(dir) && path != Path::new(dir));
    if SYSTEM.iter().any(covers) || (is_system(path) && !of_people) {
        return Some(Unfit::System);
    }
    match house.keep_away(place) {
        Ok(()) => None,
        Err(Refused::Exposes(kept, _)) => Some(Unfit::Kept(kept)),
        Err(_) => Some(Unfit::System),
    }
}

#[cfg(test)]
#[path = "stand_tests.rs"]
mod tests;
