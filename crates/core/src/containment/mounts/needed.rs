//! The programs that run an engine, and whether its jail shows them as they were verified. They are found
//! by name in a directory of ours, first on the engine's PATH: no environment of a repository and no
//! toolchain of a task stands before them. What a run mounts for its task never covers them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::{Id, is_system};

/// What agents start by name, whatever they are written in; the system's, where it has them.
pub const HELPERS: [&str; 3] = ["bash", "git", "sh"];

/// What an engine finds first, by name: what runs it, and what agents start of the system.
pub fn found_first(
    interpreter: Option<(&str, PathBuf)>,
    of_system: impl Fn(&str) -> Option<PathBuf>,
) -> BTreeMap<String, PathBuf> {
    let helper = |name: &&str| Some(((*name).to_owned(), of_system(name)?));
    let mut found: BTreeMap<String, PathBuf> = HELPERS.iter().filter_map(helper).collect();
    found.retain(|_, path| is_system(path));
    found.extend(interpreter.map(|(name, path)| (name.to_owned(), path)));
    found
}

/// A file or tree that a gate let pass.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    pub path: &'a Path,
    pub id: Id,
    /// Everything below it was looked at, too.
    pub whole: bool,
}

/// One mount of a jail; later ones cover earlier ones.
#[derive(Clone, Copy, Debug)]
pub struct Shows<'a> {
    pub source: &'a Path,
    pub target: &'a Path,
    pub id: Id,
    /// Read-only, and no layer over something else.
    pub plain: bool,
}

/// Why a jail would run something else than what was verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unlike {
    /// Something of the task or the repository lies there.
    Covered(PathBuf),
    /// It is shown by nothing.
    NotShown(PathBuf),
    /// Another one came to its place since it was looked at.
    Exchanged(PathBuf),
}

impl fmt::Display for Unlike {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its name alone: a bundle goes to strangers.
        let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
        match self {
            Self::Covered(path) => write!(
                out,
                "{} lies where the task or the repository has files of its own; install the engine elsewhere",
                name(path)
            ),
            Self::NotShown(path) => write!(out, "{} is not shown to its jail", name(path)),
            Self::Exchanged(path) => write!(
                out,
                "{} was exchanged for another one since it was looked at",
                name(path)
            ),
        }
    }
}

/// What is not shown as it was verified, in a jail with these mounts.
pub fn unlike(verified: &Verified<'_>, mounts: &[Shows<'_>]) -> Option<Unlike> {
    let path = verified.path;
    let same = |shows: &Shows<'_>| {
        let rest = path.strip_prefix(shows.target);
        rest.is_ok_and(|rest| shows.source.join(rest) == path) && shows.plain
    };
    let over = mounts
        .iter()
        .rposition(|shows| path.starts_with(shows.target));
    let after = match over.map(|at| (at, &mounts[at])) {
        Some((_, shows)) if !same(shows) => return Some(Unlike::Covered(path.to_owned())),
        Some((_, shows)) if shows.target == path && shows.id != verified.id => {
            return Some(Unlike::Exchanged(path.to_owned()));
        }
        Some((at, _)) => at + 1,
        None if is_system(path) => 0,
        None => return Some(Unlike::NotShown(path.to_owned())),
    };
    let below = |shows: &&Shows<'_>| {
        let own = shows.plain && shows.source == shows.target;
        shows.target.starts_with(path) && shows.target != path && !own
    };
    let hole = mounts[after..].iter().find(below);
    hole.filter(|_| verified.whole)
        .map(|shows| Unlike::Covered(shows.target.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(inode: u64) -> Id {
        Id { device: 1, inode }
    }

    fn shows<'a>(source: &'a str, target: &'a str) -> Shows<'a> {
        Shows {
            source: Path::new(source),
            target: Path::new(target),
            id: id(1),
            plain: true,
        }
    }

    fn tree(path: &str) -> Verified<'_> {
        Verified {
            path: Path::new(path),
            id: id(1),
            whole: true,
        }
    }

    #[test]
    fn what_runs_an_engine_is_found_before_anything_of_that_name() {
        let system = |name: &str| match name {
            "git" => Some(PathBuf::from("/usr/bin/git")),
            // What PATH leads to is no program of the system.
            "sh" => Some(PathBuf::from("/home/me/repo/.venv/bin/sh")),
            _ => None,
        };
        let node = PathBuf::from("/opt/node/bin/node");
        let found = found_first(Some(("node", node.clone())), system);
        let want = [
            ("git".to_owned(), PathBuf::from("/usr/bin/git")),
            ("node".to_owned(), node),
        ];
        assert_eq!(found, BTreeMap::from(want));
        assert!(found_first(None, |_| None).is_empty());
    }

    #[test]
    fn a_verified_tree_is_shown_as_it_is_or_not_at_all() {
        let own = shows("/opt/pi", "/opt/pi");
        let covered = |path: &str| Some(Unlike::Covered(path.into()));
        let said = |mounts: &[Shows<'_>]| unlike(&tree("/opt/pi"), mounts);
        assert_eq!(said(&[own]), None);
        assert_eq!(said(&[shows("/opt", "/opt")]), None);
        assert_eq!(said(&[]), Some(Unlike::NotShown("/opt/pi".into())));
        // The copy of a repository stands around it, a task mounts at it or below it.
        assert_eq!(said(&[shows("/mine/copy", "/opt")]), covered("/opt/pi"));
        assert_eq!(
            said(&[own, shows("/mine/copy", "/opt")]),
            covered("/opt/pi")
        );
        assert_eq!(
            said(&[own, shows("/tools/x", "/opt/pi")]),
            covered("/opt/pi")
        );
        let below = shows("/tools/x", "/opt/pi/lib/x");
        assert_eq!(said(&[own, below]), covered("/opt/pi/lib/x"));
        assert_eq!(said(&[below, own]), None, "the tree covers it");
        assert_eq!(said(&[own, shows("/opt/pi/lib", "/opt/pi/lib")]), None);
        assert_eq!(said(&[own, shows("/x", "/opt/pi-more")]), None);
        // A layer that somebody writes to.
        let layer = Shows {
            plain: false,
            ..own
        };
        assert_eq!(said(&[layer]), covered("/opt/pi"));
        assert_eq!(said(&[own, layer]), covered("/opt/pi"));
    }

    #[test]
    fn a_file_is_what_was_looked_at_and_the_systems_needs_no_mount() {
        let node = Verified {
            whole: false,
            ..tree("/usr/bin/node")
        };
        assert_eq!(unlike(&node, &[]), None);
        assert_eq!(unlike(&node, &[shows("/x", "/home/me/repo")]), None);
        let own = shows("/opt/pi", "/opt/pi");
        let other = Verified {
            id: id(2),
            ..tree("/opt/pi")
        };
        assert_eq!(
            unlike(&other, &[own]),
            Some(Unlike::Exchanged("/opt/pi".into()))
        );
        // Of what lies in a tree that is shown, the tree is what is mounted.
        let inside = Verified {
            whole: false,
            id: id(2),
            path: Path::new("/opt/pi/cli.js"),
        };
        assert_eq!(unlike(&inside, &[own]), None);
    }
}
