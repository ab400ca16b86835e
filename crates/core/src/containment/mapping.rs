//! A directory whose file system cannot show it as a jail's own: why nothing runs there, and what
//! to do.
//!
//! Root's jails have a uid that owns nothing. A directory of the host is theirs only in a view in
//! which its owner's files look like their own, and the file system must have such views. Without
//! one, what is left is a jail as root, a change of owners, or copies in and out behind the
//! operator's back: none of them happens.

use std::path::{Path, PathBuf};

use crate::containment::mounts::Mounted;

/// A try that the kernel refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unmapped {
    pub dir: PathBuf,
    /// The uid the directory belongs to, where it could be asked.
    pub owner: Option<u32>,
    /// The file systems that may have refused: where each is mounted, and its kind. Without a list
    /// of mounts there are none.
    pub refused_by: Vec<(PathBuf, String)>,
    /// One that is mounted below the directory refused, not its own.
    pub is_below: bool,
    /// The kernel's word.
    pub error: String,
}

/// The file systems in question: the directory's own, or those that are mounted below it.
pub fn in_question(dir: &Path, is_below: bool, table: &[Mounted]) -> Vec<(PathBuf, String)> {
    let named = |mount: &Mounted| (mount.point.clone(), mount.kind.clone());
    if is_below {
        let below = |mount: &&Mounted| mount.point != dir && mount.point.starts_with(dir);
        return table.iter().filter(below).map(named).collect();
    }
    // Of mounts on one another the last one is seen.
    let around = table.iter().filter(|mount| dir.starts_with(&mount.point));
    around
        .max_by_key(|mount| mount.point.components().count())
        .map(named)
        .into_iter()
        .collect()
}

impl Unmapped {
    /// Which file system cannot do what.
    pub fn what(&self) -> String {
        let dir = self.dir.display();
        let kinds: Vec<String> = self
            .refused_by
            .iter()
            .map(|(_, kind)| kind.clone())
            .collect();
        let places = self.refused_by.iter();
        let places: Vec<String> = places
            .map(|(point, kind)| format!("{} ({kind})", point.display()))
            .collect();
        match (self.is_below, places.as_slice()) {
            (false, []) => format!("the file system of {dir} cannot show it as a jail's own"),
            (false, _) => format!(
                "the file system of {dir} ({}) cannot show it as a jail's own",
                kinds.join(", ")
            ),
            (true, []) => {
                format!("a file system mounted below {dir} cannot be shown as a jail's own")
            }
            (true, [one]) => format!("what is mounted at {one} cannot be shown as a jail's own"),
            (true, many) => format!(
                "what is mounted below {dir} cannot all be shown as a jail's own: {}",
                many.join(", ")
            ),
        }
    }

    /// What the kernel said, and why there is no other way.
    pub fn because(&self) -> [String; 2] {
        [
            format!(
                "a mount with its owner mapped to the jail's uid: {}",
                self.error
            ),
            "a jail of root's never has uid 0, and no file changes its owner for one".to_owned(),
        ]
    }

    pub fn fix(&self) -> String {
        let elsewhere = match self.is_below {
            false => "work in a directory on another file system (in a container: a volume)",
            true => "unmount it, or work in a directory with nothing mounted below it",
        };
        match self.owner {
            Some(uid) if uid != 0 => format!(
                "run cto as the user the directory belongs to (uid {uid}), who needs no such view; or \
                 {elsewhere}"
            ),
            _ => format!(
                "{elsewhere}; or run cto as an ordinary user in a directory of that user's, who needs \
                 no such view"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(point: &str, kind: &str) -> Mounted {
        Mounted {
            point: point.into(),
            device: (0, 1),
            root: "/".into(),
            kind: kind.into(),
        }
    }

    fn names(dir: &str, is_below: bool, table: &[Mounted]) -> Vec<String> {
        let found = in_question(Path::new(dir), is_below, table);
        let name = |(point, kind): (PathBuf, String)| format!("{} {kind}", point.display());
        found.into_iter().map(name).collect()
    }

    #[test]
    fn the_nearest_mount_around_is_the_one_and_the_last_of_several() {
        let table = [
            mounted("/", "ext4"),
            mounted("/w", "xfs"),
            mounted("/w", "overlay"),
            mounted("/w/sub", "fuse.x"),
            mounted("/wide", "nfs4"),
        ];
        assert_eq!(names("/w/a", false, &table), ["/w overlay"]);
        assert_eq!(names("/w", false, &table), ["/w overlay"]);
        assert_eq!(names("/w/sub/a", false, &table), ["/w/sub fuse.x"]);
        assert_eq!(names("/width", false, &table), ["/ ext4"]);
        assert_eq!(names("/w", true, &table), ["/w/sub fuse.x"]);
        assert!(names("/w/sub", true, &table).is_empty());
        assert!(names("/w", false, &[]).is_empty());
    }

    #[test]
    fn every_refusal_names_the_place_the_reason_and_a_way_out() {
        for owner in [None, Some(0), Some(1000)] {
            for is_below in [false, true] {
                for by in [&[][..], &["/w/a"], &["/w/a", "/w/b"]] {
                    let unmapped = Unmapped {
                        dir: "/w".into(),
                        owner,
                        refused_by: by.iter().map(|p| (p.into(), "odd".into())).collect(),
                        is_below,
                        error: "Invalid argument".into(),
                    };
                    let (what, fix) = (unmapped.what(), unmapped.fix());
                    assert!(what.contains("/w"), "{what}");
                    assert_eq!(what.contains("odd"), !by.is_empty(), "{what}");
                    let [kernel, rule] = unmapped.because();
                    assert!(kernel.contains("Invalid argument"), "{kernel}");
                    assert!(rule.contains("uid 0"), "{rule}");
                    assert_eq!(fix.contains("uid 1000"), owner == Some(1000), "{fix}");
                    assert!(
                        fix.contains("ordinary user") || owner == Some(1000),
                        "{fix}"
                    );
                    assert_eq!(fix.contains("unmount"), is_below, "{fix}");
                    assert_eq!(fix.contains("volume"), !is_below, "{fix}");
                }
            }
        }
    }
}
