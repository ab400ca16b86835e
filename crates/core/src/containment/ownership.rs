//! Who could have written what a path leads to: every directory, link and file on the way, and
//! whether anybody but root and the operator may change one of them.
//!
//! Facts come in as [`Step`]s; nothing is looked up here. What holds of every step holds until root
//! or the operator changes something: nobody else can exchange what was looked at for something
//! else.

use std::path::{Path, PathBuf};

/// Whose an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    Root,
    Operator,
    Other(u32),
}

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    Directory,
    Link,
    File { executable: bool },
    Special,
}

/// One entry on the way, by its physical path: no link lies before its last part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub path: PathBuf,
    pub kind: StepKind,
    pub owner: Owner,
    /// Permission bits, the sticky bit among them.
    pub mode: u32,
    /// Nobody but root and the operator is in its group, and no access list says more.
    pub group_is_private: bool,
    /// A directory that is the top of a repository.
    pub is_repository: bool,
    /// A directory that is an environment somebody activates: a virtual environment, or one of
    /// installed modules.
    pub is_environment: bool,
}

/// Why an entry could be the work of someone else.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stranger {
    #[error("{} belongs to user {uid}", path.display())]
    Owner { path: PathBuf, uid: u32 },
    #[error("everybody may write {} (mode {mode:03o})", path.display())]
    Everybody { path: PathBuf, mode: u32 },
    #[error("its group may write {} (mode {mode:03o})", path.display())]
    Group { path: PathBuf, mode: u32 },
}

const STICKY: u32 = 0o1000;

/// The first entry that someone else could have made or may change. A sticky directory that others
/// may write keeps them from the directories in it, which have owners of their own; it vouches for
/// no file and no link.
pub fn stranger(steps: &[Step]) -> Option<Stranger> {
    steps.iter().find_map(|step| {
        let path = step.path.clone();
        if let Owner::Other(uid) = step.owner {
            return Some(Stranger::Owner { path, uid });
        }
        // The mode of a link means nothing.
        if step.kind == StepKind::Link || (is_sticky(step) && !is_entered_for_a_file(step, steps)) {
            return None;
        }
        let mode = step.mode & 0o777;
        if mode & 0o002 != 0 {
            return Some(Stranger::Everybody { path, mode });
        }
        (mode & 0o020 != 0 && !step.group_is_private).then_some(Stranger::Group { path, mode })
    })
}

fn is_sticky(step: &Step) -> bool {
    step.kind == StepKind::Directory && step.mode & STICKY != 0
}

fn is_entered_for_a_file(dir: &Step, steps: &[Step]) -> bool {
    steps.iter().any(|step| {
        step.kind != StepKind::Directory && step.path.parent() == Some(dir.path.as_path())
    })
}

/// The last entry: what the path leads to.
pub fn end(steps: &[Step]) -> Option<&Step> {
    steps.last()
}

/// Is any entry at or below `place`?
pub fn touches(steps: &[Step], place: &Path) -> bool {
    steps.iter().any(|step| step.path.starts_with(place))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn dir(path: &str) -> Step {
        Step {
            path: path.into(),
            kind: StepKind::Directory,
            owner: Owner::Root,
            mode: 0o755,
            group_is_private: false,
            is_repository: false,
            is_environment: false,
        }
    }

    pub(crate) fn file(path: &str) -> Step {
        Step {
            kind: StepKind::File { executable: true },
            ..dir(path)
        }
    }

    /// The way to a program: every parent, then the file.
    pub(crate) fn way(path: &str) -> Vec<Step> {
        let path = Path::new(path);
        let mut parents: Vec<&Path> = path.ancestors().skip(1).collect();
        parents.reverse();
        let mut steps: Vec<Step> = parents
            .iter()
            .map(|parent| dir(parent.to_str().unwrap()))
            .collect();
        steps.push(file(path.to_str().unwrap()));
        steps
    }

    fn said(steps: &[Step]) -> String {
        stranger(steps).map_or_else(|| "nobody".into(), |found| found.to_string())
    }

    #[test]
    fn every_entry_counts_and_every_kind_of_writer() {
        assert_eq!(said(&way("/opt/tool/bin/x")), "nobody");
        for (at, _) in way("/opt/tool/bin/x").iter().enumerate() {
            let changed = |change: &dyn Fn(&mut Step)| {
                let mut steps = way("/opt/tool/bin/x");
                change(&mut steps[at]);
                said(&steps)
            };
            assert_eq!(changed(&|step| step.owner = Owner::Operator), "nobody");
            assert!(changed(&|step| step.owner = Owner::Other(7)).contains("user 7"));
            assert!(changed(&|step| step.mode = 0o775).contains("its group"));
            assert!(changed(&|step| step.mode = 0o757).contains("everybody"));
            let private = |mode| changed(&|step| (step.mode, step.group_is_private) = (mode, true));
            assert_eq!(private(0o775), "nobody");
            assert!(private(0o777).contains("everybody"));
        }
    }

    #[test]
    fn a_sticky_directory_vouches_for_directories_alone() {
        let mut steps = way("/tmp/own/x");
        steps[1].mode = 0o1777;
        assert_eq!(said(&steps), "nobody");
        steps[2].owner = Owner::Other(7);
        assert!(said(&steps).contains("user 7"));
        let mut steps = way("/tmp/x");
        steps[1].mode = 0o1777;
        assert!(said(&steps).contains("everybody may write /tmp"));
        // A store whose builders are a group.
        let mut steps = way("/nix/store/abc/bin/x");
        steps[2].mode = 0o1775;
        assert_eq!(said(&steps), "nobody");
        steps[2].mode = 0o775;
        assert!(said(&steps).contains("its group"));
    }

    #[test]
    fn a_link_counts_by_its_owner_and_its_directory() {
        let mut steps = way("/usr/bin/x");
        steps.insert(
            3,
            Step {
                kind: StepKind::Link,
                mode: 0o777,
                ..dir("/usr/bin/y")
            },
        );
        assert_eq!(said(&steps), "nobody");
        steps[3].owner = Owner::Other(7);
        assert!(said(&steps).contains("user 7"));
    }
}
