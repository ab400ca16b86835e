//! Which paths of a workspace the kernel protects while an engine works: which become read-only
//! mounts, which stay writable, and which files of the repository are hidden from the engine.
//!
//! A directory stays open when something below it is allowed, so that editors can write a new file
//! and rename it, and builds can leave files. Everything else that exists in an open directory is
//! covered by a read-only mount of itself; an open directory that holds such a mount is a mount as
//! well, because a directory that can be renamed takes its mounts along and leaves its name free.
//! So is every directory around a masked place, under either policy: renamed, it would carry bytes
//! into the patch that the engine was not shown.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::containment::Containment;
use crate::containment::masks::{self, Masks};
use crate::values::paths::{PathRule, PathStanding, TreePath, path_standing};
use crate::workspace::tree::Tree;

/// Mounts beyond which a jail would take too long to enter; then the plan says `contained`.
pub const MOUNT_CAP: usize = 4096;

/// The protected places of one workspace. Paths are relative to it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Guard {
    /// Directories that stay writable and cannot be moved away; parents before children.
    pub open: Vec<TreePath>,
    /// Files, links and whole directories that cannot be changed.
    pub read_only: Vec<TreePath>,
    /// Configuration of agents and secrets that came with the repository: an empty place is shown
    /// instead.
    pub masked: Vec<TreePath>,
    /// The same, but the contract allows it by name, so it is shown.
    pub shown: Vec<TreePath>,
}

impl Guard {
    pub fn mounts(&self) -> usize {
        self.open.len() + self.read_only.len() + self.masked.len()
    }

    /// Keeps every directory around a masked place where it is, unless it cannot be changed anyway.
    /// The entry mounts parents first, so the list is in order.
    fn hold_around_masks(&mut self) {
        let closed: BTreeSet<&TreePath> = self.read_only.iter().collect();
        let mut open: BTreeSet<TreePath> = std::mem::take(&mut self.open).into_iter().collect();
        for place in &self.masked {
            let around = masks::directories(place.as_bytes()).map(TreePath::new);
            open.extend(around.take_while(|dir| !closed.contains(dir)));
        }
        self.open = open.into_iter().collect();
    }
}

/// What containment a workspace gets, and what protects it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    pub policy: Containment,
    pub guard: Guard,
    /// Why it is less than what was asked for.
    pub fallback: Option<String>,
}

/// From what was asked for and what the tree holds to what will be enforced.
pub fn decide_guard(
    asked: Containment,
    tree: &Tree,
    allowed: &[PathRule],
    forbidden: &[PathRule],
    inputs: &[PathRule],
) -> Decision {
    let Masks { masked, mut shown } = masks::decide_masks(tree, allowed, forbidden);
    shown.extend(masks::telling_inputs(inputs));
    let mut masks = Guard {
        masked,
        shown,
        ..Guard::default()
    };
    if asked != Containment::Strict {
        masks.hold_around_masks();
        return Decision {
            policy: asked,
            guard: masks,
            fallback: None,
        };
    }
    let mut guard = masks.clone();
    let paths: Vec<&TreePath> = tree.keys().collect();
    let scope = Scope { allowed, forbidden };
    scope.close_siblings(&paths, 0, &mut guard);
    guard.hold_around_masks();
    masks.hold_around_masks();
    match guard.mounts() {
        count if count > MOUNT_CAP => {
            let why = format!("strict would need {count} mounts, at most {MOUNT_CAP} are made");
            Decision {
                policy: Containment::Contained,
                guard: masks,
                fallback: Some(why),
            }
        }
        _ => Decision {
            policy: Containment::Strict,
            guard,
            fallback: None,
        },
    }
}

struct Scope<'a> {
    allowed: &'a [PathRule],
    forbidden: &'a [PathRule],
}

/// What a contract says about a directory as a whole.
enum Below {
    /// Nothing below may change.
    Closed,
    /// Some of it may.
    Open,
    /// All of it may.
    Free,
}

impl Scope<'_> {
    fn below(&self, dir: &TreePath) -> Below {
        let whole = |rules: &[PathRule]| rules.iter().any(|rule| rule.covers_all_below(dir));
        let some = |rules: &[PathRule]| rules.iter().any(|rule| rule.reaches_below(dir));
        if whole(self.forbidden) || !some(self.allowed) {
            Below::Closed
        } else if whole(self.allowed) && !some(self.forbidden) {
            Below::Free
        } else {
            Below::Open
        }
    }

    /// Goes through one directory: `paths` are all below it, in order, and agree in their first
    /// `depth` bytes.
    fn close_siblings(&self, paths: &[&TreePath], depth: usize, guard: &mut Guard) {
        let mut rest = paths;
        while let Some(first) = rest.first() {
            let below = &first.as_bytes()[depth..];
            let Some(length) = below.iter().position(|byte| *byte == b'/') else {
                if path_standing(first, self.allowed, self.forbidden) != PathStanding::Allowed {
                    guard.read_only.push((*first).clone());
                }
                rest = &rest[1..];
                continue;
            };
            let inside = depth + length + 1;
            let name = &first.as_bytes()[..inside];
            let (here, after) = rest.split_at(
                rest.iter()
                    .position(|p| !p.as_bytes().starts_with(name))
                    .unwrap_or(rest.len()),
            );
            let dir = TreePath::new(&name[..inside - 1]);
            match self.below(&dir) {
                Below::Free => {}
                Below::Closed => guard.read_only.push(dir),
                Below::Open => {
                    let before = guard.mounts();
                    self.close_siblings(here, inside, guard);
                    if guard.mounts() > before {
                        guard.open.push(dir);
                    }
                }
            }
            rest = after;
        }
    }
}

/// What protects the files of hidden checks while the last of these commands runs, after the others did. What is
/// checked can change none of them. Only a command that names a file and takes it away itself, so that what it checks
/// cannot read it either, has it as it is, and so have those after it.
pub fn guard_hidden<'a>(
    commands: &[String],
    files: impl Iterator<Item = (&'a TreePath, &'a [u8])>,
) -> Guard {
    let mut guard = Guard::default();
    let mut open = BTreeSet::new();
    for (path, bytes) in files {
        if commands.iter().any(|c| takes_away(c, path, bytes)) {
            continue;
        }
        open.extend(masks::directories(path.as_bytes()).map(TreePath::new));
        guard.read_only.push(path.clone());
    }
    guard.open = open.into_iter().collect();
    guard
}

/// Does this command remove the file, or start it so that it removes itself?
fn takes_away(command: &str, path: &TreePath, bytes: &[u8]) -> bool {
    const OF_ITSELF: [&str; 12] = [
        "os.remove(__file__",
        "os.unlink(__file__",
        "Path(__file__).unlink(",
        "rmSync(__filename",
        "unlinkSync(__filename",
        "rmSync(import.meta.filename",
        "File.delete(__FILE__",
        "unlink(__FILE__",
        "rm \"$0\"",
        "rm -f \"$0\"",
        "rm -- \"$0\"",
        "rm -f -- \"$0\"",
    ];
    let path = path.to_string();
    let signs = |c: char| c.is_whitespace() || ";&|()\"'".contains(c);
    let words: Vec<&str> = command.split(signs).collect();
    let is_named = |word: &&str| word.trim_start_matches("./") == path;
    let removes = words
        .iter()
        .position(|word| ["rm", "unlink"].contains(word));
    let by_command = removes.is_some_and(|at| words[at..].iter().any(is_named));
    let text = String::from_utf8_lossy(bytes);
    by_command || words.iter().any(is_named) && OF_ITSELF.iter().any(|words| text.contains(words))
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
