//! Which paths of a workspace the kernel protects while an engine works: which become read-only
//! mounts, which stay writable, and which files of the repository are hidden from the engine.
//!
//! A directory stays open when something below it is allowed, so that editors can write a new file
//! and rename it, and builds can leave files. Everything else that exists in an open directory is
//! covered by a read-only mount of itself; an open directory that holds such a mount is a mount as
//! well, because a directory that can be renamed takes its mounts along and leaves its name free.

use serde::{Deserialize, Serialize};

use crate::containment::Containment;
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
    /// Configuration of agents that came with the repository: an empty place is shown instead.
    pub masked: Vec<TreePath>,
    /// The same, but the contract allows changing it, so it is shown.
    pub shown: Vec<TreePath>,
}

impl Guard {
    pub fn mounts(&self) -> usize {
        self.open.len() + self.read_only.len() + self.masked.len()
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
) -> Decision {
    let (masked, shown) = agent_config(tree, allowed);
    let masks = Guard {
        masked,
        shown,
        ..Guard::default()
    };
    if asked != Containment::Strict {
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
    // Found on the way back up; the entry mounts parents first.
    guard.open.sort();
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

/// The files of a tree that lie at or below one of these places.
pub fn paths_within(tree: &Tree, places: &[TreePath]) -> Vec<TreePath> {
    let below = |path: &[u8], place: &[u8]| {
        path.strip_prefix(place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let inside = |path: &&TreePath| {
        places
            .iter()
            .any(|place| below(path.as_bytes(), place.as_bytes()))
    };
    if places.is_empty() {
        Vec::new()
    } else {
        tree.keys().filter(inside).cloned().collect()
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

/// Directories agents and editors take orders from, at any depth.
const CONFIG_DIRS: [&[u8]; 11] = [
    b".claude",
    b".codex",
    b".pi",
    b".cursor",
    b".gemini",
    b".qwen",
    b".opencode",
    b".continue",
    b".windsurf",
    b".zed",
    b".devcontainer",
];
/// Files of that kind, at any depth.
const CONFIG_FILES: [&[u8]; 4] = [
    b".mcp.json",
    b"opencode.json",
    b"opencode.jsonc",
    b".aider.conf.yml",
];
/// In a `.vscode` directory: what an editor runs or is told to run.
const EDITOR_FILES: [&[u8]; 4] = [b"tasks.json", b"launch.json", b"settings.json", b"mcp.json"];
/// Read by runtimes in their working directory, which is the top of the workspace.
const TOP_FILES: [&[u8]; 4] = [b".env", b".env.local", b".envrc", b"bunfig.toml"];

/// Where agent configuration lies in this tree: what is masked, and what the contract allows to
/// change.
fn agent_config(tree: &Tree, allowed: &[PathRule]) -> (Vec<TreePath>, Vec<TreePath>) {
    let mut found: Vec<TreePath> = tree.keys().filter_map(config_place).collect();
    found.dedup();
    let may_change = |path: &TreePath| {
        allowed
            .iter()
            .any(|rule| rule.covers(path) || rule.reaches_below(path))
    };
    found.into_iter().partition(|path| !may_change(path))
}

/// The file, or the directory around it, that is agent configuration.
fn config_place(path: &TreePath) -> Option<TreePath> {
    let bytes = path.as_bytes();
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'/').collect();
    let up_to = |count: usize| Some(TreePath::new(parts[..count].join(&b'/')));
    let (name, dirs) = parts.split_last()?;
    if let Some(at) = dirs.iter().position(|part| CONFIG_DIRS.contains(part)) {
        return up_to(at + 1);
    }
    let of_editor = dirs.last() == Some(&&b".vscode"[..]) && EDITOR_FILES.contains(name);
    let at_top = dirs.is_empty() && TOP_FILES.contains(name);
    // A link in the place of a directory is as good as the directory.
    let alone = CONFIG_FILES.contains(name) || CONFIG_DIRS.contains(name);
    (of_editor || at_top || alone).then(|| path.clone())
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
