//! What in a directory of the operator's own gives orders to programs that come by later: git's
//! configuration and hooks, configuration for agents and editors; and sockets, which lead to
//! processes outside. `cto exec` works in such a directory itself, not in a copy.

use std::collections::BTreeSet;

use crate::containment::guard::Guard;
use crate::containment::masks;
use crate::values::paths::TreePath;

/// What of a git directory makes git run a program, or look elsewhere.
pub const GIT_PROTECTED: [&str; 5] = ["commondir", "config", "config.worktree", "hooks", "info"];
/// The same for a linked work tree's part of it.
pub const LINKED_PROTECTED: [&str; 3] = ["commondir", "config.worktree", "gitdir"];
/// Where a git directory keeps those of submodules and of linked work trees.
const GIT_WITHIN: [&[u8]; 2] = [b"modules", b"worktrees"];

/// What a look at a directory tells of one name in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    Dir,
    Socket,
    /// A file, a link, or anything else.
    Other,
}

/// Why a place matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Orders {
    /// A git directory, under whatever name.
    Git,
    /// The part of one that belongs to a linked work tree.
    LinkedTree,
    /// Configuration, or a file that leads git elsewhere: programs do what it says.
    Config,
    /// A process outside answers there.
    Socket,
}

/// What a name in a directory means. `path` is relative to the workspace.
pub fn orders_of(path: &TreePath, kind: EntryKind) -> Option<Orders> {
    let mut above = path.as_bytes().rsplit(|byte| *byte == b'/');
    let name = above.next().unwrap_or_default();
    let is = |part: Option<&[u8]>, text: &[u8]| part.is_some_and(|p| p.eq_ignore_ascii_case(text));
    if kind == EntryKind::Socket {
        Some(Orders::Socket)
    } else if name.eq_ignore_ascii_case(b".git") {
        Some(match kind {
            EntryKind::Dir => Orders::Git,
            _ => Orders::Config,
        })
    } else if is(above.next(), b"worktrees") && is(above.next(), b".git") {
        Some(Orders::LinkedTree)
    } else {
        masks::gives_orders(path).then_some(Orders::Config)
    }
}

/// Git takes any directory with these names in it for one of its own; among the submodules of a git
/// directory a configuration is enough, since the rest can be added.
pub fn is_git_dir<'n>(path: &TreePath, names: impl IntoIterator<Item = &'n [u8]>) -> bool {
    const MARKS: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];
    let names: BTreeSet<&[u8]> = names.into_iter().collect();
    let parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
    let among_submodules = parts
        .windows(2)
        .any(|pair| pair[0].eq_ignore_ascii_case(b".git") && pair[1] == b"modules");
    MARKS.iter().all(|mark| names.contains(mark))
        || among_submodules && names.contains(b"config".as_slice())
}

/// Whether a look goes into a directory: not into what is closed as a whole, and in a git directory
/// only to where others lie.
pub fn is_looked_into(name: &[u8], orders: Option<Orders>, around_is_git: bool) -> bool {
    match orders {
        Some(Orders::Config | Orders::LinkedTree | Orders::Socket) => false,
        Some(Orders::Git) => true,
        None => !around_is_git || GIT_WITHIN.contains(&name),
    }
}

/// A place that matters, and what of it exists and must stay as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub path: TreePath,
    pub orders: Orders,
    /// Of a git directory: the protected names in it that are there.
    pub protected: Vec<&'static str>,
}

/// How these places are protected: nothing of them can be written, and no directory around them can
/// be renamed so that its name becomes free.
pub fn guard_of(places: &[Place]) -> Guard {
    let mut open = BTreeSet::new();
    let mut guard = Guard::default();
    for place in places {
        let bytes = place.path.as_bytes();
        open.extend(masks::directories(bytes).map(TreePath::new));
        match place.orders {
            Orders::Git | Orders::LinkedTree => {
                // The workspace itself may be one; it is a mount already.
                let within = |name: &&str| match bytes {
                    b"" => TreePath::new(*name),
                    _ => TreePath::new([bytes, b"/", name.as_bytes()].concat()),
                };
                guard.read_only.extend(place.protected.iter().map(within));
                if !bytes.is_empty() {
                    open.insert(place.path.clone());
                }
            }
            Orders::Config => guard.read_only.push(place.path.clone()),
            Orders::Socket => guard.masked.push(place.path.clone()),
        }
    }
    guard.open = open.into_iter().collect();
    guard
}

/// The name under which a place that came up in a jail no longer gives orders: it, or for a git
/// directory without the usual name the file that makes it one.
pub fn held_back(place: &Place) -> Option<TreePath> {
    let bytes = place.path.as_bytes();
    let named_git = bytes
        .rsplit(|byte| *byte == b'/')
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case(b".git"));
    match place.orders {
        Orders::Socket => None,
        Orders::Git if bytes.is_empty() => Some(TreePath::new("HEAD")),
        Orders::Git if !named_git => Some(TreePath::new([bytes, b"/HEAD"].concat())),
        Orders::Git | Orders::LinkedTree | Orders::Config => Some(place.path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::new(text)
    }

    #[test]
    fn names_that_give_orders() {
        let is = |text: &str, kind| orders_of(&path(text), kind);
        for text in [".git", "a/.git", "a/b/.GIT"] {
            assert_eq!(is(text, EntryKind::Dir), Some(Orders::Git), "{text}");
            assert_eq!(is(text, EntryKind::Other), Some(Orders::Config), "{text}");
        }
        for text in [
            ".mcp.json",
            "deep/down/.mcp.json",
            ".claude",
            "a/.Codex",
            ".vscode/tasks.json",
            ".envrc",
            "opencode.json",
        ] {
            assert_eq!(is(text, EntryKind::Other), Some(Orders::Config), "{text}");
        }
        for text in ["src", ".github", ".vscode", ".env", "git", "worktrees/x"] {
            assert_eq!(is(text, EntryKind::Dir), None, "{text}");
        }
        assert_eq!(is("x.sock", EntryKind::Socket), Some(Orders::Socket));
        assert_eq!(
            is(".git/worktrees/x", EntryKind::Dir),
            Some(Orders::LinkedTree)
        );
    }

    #[test]
    fn a_directory_is_gits_by_what_is_in_it() {
        let within = |at: &str, list: &[&'static str]| {
            is_git_dir(&path(at), list.iter().map(|name| name.as_bytes()))
        };
        let names = |list: &[&'static str]| within("a/b", list);
        assert!(within("a/.git/modules/m", &["config"]));
        assert!(!within("a/modules/m", &["config"]));
        assert!(names(&["HEAD", "config", "objects", "refs"]));
        for missing in ["HEAD", "objects", "refs"] {
            let rest: Vec<_> = ["HEAD", "objects", "refs"]
                .into_iter()
                .filter(|name| *name != missing)
                .collect();
            assert!(!names(&rest), "{missing}");
        }
    }

    #[test]
    fn a_look_goes_on_where_more_can_lie() {
        assert!(is_looked_into(b"src", None, false));
        assert!(is_looked_into(b".git", Some(Orders::Git), false));
        assert!(is_looked_into(b"modules", None, true));
        assert!(!is_looked_into(b"objects", None, true));
        assert!(!is_looked_into(b".claude", Some(Orders::Config), false));
    }

    #[test]
    fn places_are_closed_and_what_is_around_them_stays() {
        let place = |text, orders, protected: &[&'static str]| Place {
            path: path(text),
            orders,
            protected: protected.to_vec(),
        };
        let guard = guard_of(&[
            place("a/b/.git", Orders::Git, &["config", "hooks"]),
            place("", Orders::Git, &["config"]),
            place("c/.mcp.json", Orders::Config, &[]),
            place("run/s", Orders::Socket, &[]),
        ]);
        let texts = |list: &[TreePath]| list.iter().map(|p| p.to_string()).collect::<Vec<_>>();
        assert_eq!(texts(&guard.open), ["a", "a/b", "a/b/.git", "c", "run"]);
        assert_eq!(
            texts(&guard.read_only),
            ["a/b/.git/config", "a/b/.git/hooks", "config", "c/.mcp.json"]
        );
        assert_eq!(texts(&guard.masked), ["run/s"]);
    }

    #[test]
    fn what_came_up_is_held_back_by_the_name_that_matters() {
        let held = |text, orders| {
            let place = Place {
                path: path(text),
                orders,
                protected: Vec::new(),
            };
            held_back(&place).map(|path| path.to_string())
        };
        assert_eq!(held("a/.git", Orders::Git).as_deref(), Some("a/.git"));
        assert_eq!(held("bare", Orders::Git).as_deref(), Some("bare/HEAD"));
        assert_eq!(held("", Orders::Git).as_deref(), Some("HEAD"));
        assert_eq!(
            held(".mcp.json", Orders::Config).as_deref(),
            Some(".mcp.json")
        );
        assert_eq!(held("s", Orders::Socket), None);
    }
}
