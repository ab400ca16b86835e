//! The journal of one landing. It is on disk before the first byte of a repository changes, and it is
//! dropped when what follows from the landing is sealed. It names the repository by digest and identity:
//! where that lies, the state home knows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Way;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::paths::TreePath;
use crate::values::time::Utc;
use crate::workspace::tree::{Entry, FileKind};

/// The only version there is. Another one is left to the program that wrote it.
pub const VERSION: u32 = 1;

/// What is landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    Landing,
    Revert,
}

/// How far a landing is known to have come. What is really there is looked at, whatever stands here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Nothing of the repository is changed yet.
    Prepared,
    /// The paths are in place, and the new index is made.
    Installing,
    /// The repository is as it will be: `end` says how.
    Ended,
}

/// How a landing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The commit is where it should be.
    Landed,
    /// The repository is as it was.
    Undone,
    /// Somebody went on working before anything was recovered: what they have is left to them.
    Left,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    pub schema_version: u32,
    /// Random: every name of ours in the repository has it.
    pub id: String,
    pub deed: Deed,
    pub way: Way,
    pub run_id: RunId,
    pub written_at: Utc,
    pub target: Target,
    /// The whole name of the ref that moves.
    pub branch: String,
    /// What it named before; null for one that is new.
    pub old_commit: Option<String>,
    pub new_commit: String,
    pub paths: Vec<PathChange>,
    /// None where no work tree is touched.
    pub index: Option<IndexChange>,
    /// The objects of the one commit, by the name of their pack; null where they were there already.
    pub pack: Option<String>,
    /// Does a settlement follow? Then the journal stays until that is sealed.
    pub awaits_settlement: bool,
    pub step: Step,
    pub end: Option<End>,
}

/// Which repository. A directory made anew at its path is another one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Of the path of its work tree.
    pub path_sha256: Digest,
    /// Of the path of its git directory.
    pub git_dir_sha256: Digest,
    /// The number of its git directory, and when that was made.
    pub git_dir_inode: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathChange {
    pub path: TreePath,
    /// Null where there was nothing.
    pub old: Option<Held>,
    /// Null where nothing will be.
    pub new: Option<Held>,
}

/// One side of a path: what git names it, and what lies in the work tree for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Held {
    pub mode: String,
    pub blob: String,
    /// Of the file's bytes or the link's text, as they lie in the work tree.
    pub sha256: Digest,
    pub bytes: u64,
    /// What the work tree has for it: where git looks at no modes or makes no links, not what `mode` says.
    pub on_disk: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Regular,
    Executable,
    Symlink,
}

impl From<FileKind> for Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Regular => Self::Regular,
            FileKind::Executable => Self::Executable,
            FileKind::Symlink => Self::Symlink,
        }
    }
}

impl From<Kind> for FileKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Regular => Self::Regular,
            Kind::Executable => Self::Executable,
            Kind::Symlink => Self::Symlink,
        }
    }
}

impl Held {
    /// As the work tree has it.
    pub fn entry(&self) -> Entry {
        Entry {
            kind: self.on_disk.into(),
            bytes: self.bytes,
            sha256: self.sha256,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexChange {
    /// Of the bytes of the index before.
    pub old: Digest,
    /// Of the new one, once it is made.
    pub new: Option<Digest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadJournal {
    #[error("a newer cto wrote it; recover with that one")]
    Newer,
    #[error("it is no journal of a landing")]
    Strange,
}

/// No name of ours is longer, or has other characters.
const ID_LENGTH: usize = 20;

impl Journal {
    pub fn read(bytes: &[u8]) -> Result<Self, BadJournal> {
        let value = crate::values::json::parse_strict(bytes).map_err(|_| BadJournal::Strange)?;
        let version = value.get("schema_version").and_then(|v| v.as_u64());
        if version.is_some_and(|version| version > u64::from(VERSION)) {
            return Err(BadJournal::Newer);
        }
        let journal: Self = serde_json::from_value(value).map_err(|_| BadJournal::Strange)?;
        match journal.is_sound() {
            true => Ok(journal),
            false => Err(BadJournal::Strange),
        }
    }

    /// Names become paths and arguments: each is what this program would write, and nothing else.
    fn is_sound(&self) -> bool {
        let digits = |text: &str| {
            matches!(text.len(), 40 | 64)
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let plain = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        };
        let held = |held: &Option<Held>| {
            held.as_ref().is_none_or(|held| {
                digits(&held.blob) && matches!(&*held.mode, "100644" | "100755" | "120000")
            })
        };
        let branch = self.branch.strip_prefix("refs/heads/");
        self.schema_version == VERSION
            && self.id.len() == ID_LENGTH
            && plain(&self.id)
            && branch.is_some_and(super::message::is_branch_name)
            && self.old_commit.as_deref().is_none_or(digits)
            && digits(&self.new_commit)
            && self.pack.as_deref().is_none_or(digits)
            && self
                .paths
                .iter()
                .all(|change| held(&change.old) && held(&change.new))
            && self
                .paths
                .iter()
                .all(|change| is_path_of_a_tree(&change.path))
            && (self.way == Way::Merge) == (self.index.is_some())
            && (self.step == Step::Ended) == self.end.is_some()
    }
}

/// Relative, below the top, and no part of a git directory.
fn is_path_of_a_tree(path: &TreePath) -> bool {
    let mut parts = path.as_bytes().split(|byte| *byte == b'/');
    !path.as_bytes().contains(&0)
        && parts.all(|part| {
            !matches!(part, b"" | b"." | b"..") && !crate::workspace::git_names::is_gits_own(part)
        })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn held(text: &str) -> Held {
        Held {
            mode: "100644".into(),
            blob: "a".repeat(40),
            sha256: Digest::of(text.as_bytes()),
            bytes: text.len() as u64,
            on_disk: Kind::Regular,
        }
    }

    pub fn journal() -> Journal {
        Journal {
            schema_version: VERSION,
            id: "2345678923456789abcd".into(),
            deed: Deed::Landing,
            way: Way::Merge,
            run_id: "20260102T030405Z-case-23abcdef".parse().unwrap(),
            written_at: Utc::from_millis(0).unwrap(),
            target: Target {
                path_sha256: Digest::of(b"/x"),
                git_dir_sha256: Digest::of(b"/x/.git"),
                git_dir_inode: "7-1".into(),
            },
            branch: "refs/heads/main".into(),
            old_commit: Some("1".repeat(40)),
            new_commit: "2".repeat(40),
            paths: vec![PathChange {
                path: TreePath::new("src/a"),
                old: Some(held("old")),
                new: Some(held("new")),
            }],
            index: Some(IndexChange {
                old: Digest::of(b"i"),
                new: None,
            }),
            pack: Some("3".repeat(40)),
            awaits_settlement: false,
            step: Step::Prepared,
            end: None,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = serde_json::to_vec(&journal()).unwrap();
        assert_eq!(Journal::read(&written), Ok(journal()));
    }

    #[test]
    fn a_newer_one_is_told_apart_from_nonsense() {
        let mut newer = serde_json::to_value(journal()).unwrap();
        newer["schema_version"] = 2.into();
        newer["more"] = true.into();
        let bytes = serde_json::to_vec(&newer).unwrap();
        assert_eq!(Journal::read(&bytes), Err(BadJournal::Newer));
        assert_eq!(Journal::read(b"{}"), Err(BadJournal::Strange));
        assert_eq!(Journal::read(b""), Err(BadJournal::Strange));
    }

    #[test]
    fn no_name_in_it_leads_anywhere() {
        type Spoil = fn(&mut Journal);
        let spoilt: [(&str, Spoil); 15] = [
            ("id", |j| j.id = "../../../../../../x2".into()),
            ("short id", |j| j.id = "2".into()),
            ("branch", |j| j.branch = "refs/tags/x".into()),
            ("branch up", |j| j.branch = "refs/heads/../x".into()),
            ("old", |j| j.old_commit = Some("--help".into())),
            ("new", |j| j.new_commit = "HEAD".into()),
            ("pack", |j| j.pack = Some("../x".into())),
            ("path up", |j| j.paths[0].path = TreePath::new("../x")),
            ("whole path", |j| j.paths[0].path = TreePath::new("/x")),
            ("git's", |j| j.paths[0].path = TreePath::new(".git/config")),
            ("blob", |j| {
                j.paths[0].new.as_mut().unwrap().blob = "x".into()
            }),
            ("mode", |j| {
                j.paths[0].old.as_mut().unwrap().mode = "160000".into()
            }),
            ("no index", |j| j.index = None),
            ("an end without one", |j| j.step = Step::Ended),
            ("old version", |j| j.schema_version = 0),
        ];
        for (name, spoil) in spoilt {
            let mut journal = journal();
            spoil(&mut journal);
            let bytes = serde_json::to_vec(&journal).unwrap();
            assert_eq!(Journal::read(&bytes), Err(BadJournal::Strange), "{name}");
        }
    }
}
