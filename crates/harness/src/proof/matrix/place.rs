//! Where a row runs: a place of its own with everything it could reach, looked at before and after.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cto_core::proof::matrix::BundleSeen;
use cto_core::values::digest::Digest;

use crate::bundles::verifier;
use crate::evidence::keys::KeyStore;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::programs::Program;
use crate::host::{self, Env, Home};
use crate::task::cases::FixtureFile;
use crate::workspace::git::{HarnessRepo, ObjectFormat};
use crate::workspace::on_disk;

/// The directories of one row.
pub struct Place {
    pub root: PathBuf,
}

/// What stands around a row that it has no business with.
const BYSTANDERS: [(&str, &str); 4] = [
    ("home/.gitconfig", "[user]\n\tname = somebody else\n"),
    ("home/.ssh/id_ed25519", "not a key\n"),
    ("home/project/README.md", "not yours\n"),
    ("cwd/notes.txt", "not yours\n"),
];

/// What a state home holds for its own convenience and makes anew when it is gone: no evidence.
const REBUILDABLE: [&str; 2] = ["state/cache", "state/cto.db"];

/// The key of the place, made by its first run and named in every bundle it signed.
const KEYS: &str = "state/keys";

/// Where the source of the place is, noted by its first run.
const REPOSITORIES: &str = "state/repositories";

/// What somebody who is asked leaves there: their store, the record of signers, and the key.
const DESK: [&str; 3] = ["state/operator", "state/records", "state/desk"];

/// The state home itself, once it was used.
const FURNITURE: [&str; 4] = ["state", "state/harness-runs", "state/open", "state/work"];

/// A directory nobody else has.
pub fn make_root(env: &Env) -> Result<PathBuf, Failure> {
    let base = env
        .path("TMPDIR")
        .filter(|dir| dir.is_absolute())
        .unwrap_or_else(|| "/tmp".into());
    let root = base.join(format!("cto-matrix-{}", host::random_name(10)?));
    std::fs::DirBuilder::new()
        .create(&root)
        .and_then(|()| host::make_private_dir(&root))
        .map_err(|error| {
            Failure::internal(
                "no_temporary_directory",
                "no place for the rows can be made",
            )
            .at(root.display().to_string())
            .because(&error)
            .so("nothing ran")
            .hint("set TMPDIR to a directory you may write to")
        })?;
    Ok(root)
}

/// How many commits a repository that is made here has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    One,
    History,
}

/// A repository with these files in its last commit.
pub fn make_repository(
    git: &Program,
    at: &Path,
    committed: &[FixtureFile],
    past: Past,
) -> io::Result<()> {
    let bare = at.with_extension("git");
    on_disk::lay_out(at, committed, false)?;
    let repo = HarnessRepo::init(git, &bare, ObjectFormat::default()).map_err(io::Error::other)?;
    repo.import_start(committed, past == Past::History)
        .and_then(|start| repo.furnish(at, &start, &[]))
        .map_err(io::Error::other)?;
    // As a person's own has none.
    fs::remove_file(at.join(".git/commondir"))?;
    files::remove_tree(&bare)
}

impl Place {
    pub fn make(root: PathBuf) -> io::Result<Self> {
        for dir in ["home", "cwd", "tmp", "nothing"] {
            host::make_private_dir(&root.join(dir))?;
        }
        for (name, text) in BYSTANDERS {
            let path = root.join(name);
            path.parent().map_or(Ok(()), host::make_private_dir)?;
            fs::write(path, text)?;
        }
        Ok(Self { root })
    }

    /// A repository with these files in one commit, and then some that are in none.
    pub fn make_source(
        &self,
        git: &Program,
        committed: &[FixtureFile],
        dirt: &BTreeMap<String, String>,
    ) -> io::Result<()> {
        let source = self.at("source");
        make_repository(git, &source, committed, Past::One)?;
        dirt.iter()
            .try_for_each(|(name, text)| fs::write(source.join(name), text))
    }

    /// The config file of whoever runs the row.
    pub fn configure(&self, text: &str) -> io::Result<()> {
        let dir = self.at("home/.config/cto");
        host::make_private_dir(&dir)?;
        fs::write(dir.join("config.toml"), text)
    }

    /// The state home of the row.
    pub fn home(&self) -> Home {
        Home {
            root: self.at("state"),
            runs: self.at("state/harness-runs"),
        }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Every run the row left.
    pub fn bundles(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at("state/harness-runs"))
            .into_iter()
            .flatten()
            .flatten();
        let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        dirs.sort();
        dirs
    }

    pub fn look(&self) -> io::Result<Look> {
        let mut look = Look::default();
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            for entry in fs::read_dir(self.root.join(&below))? {
                let relative = below.join(entry?.file_name());
                let (path, name) = (self.root.join(&relative), relative.display().to_string());
                let meta = fs::symlink_metadata(&path)?;
                let content = if is_expected(&name) {
                    // May change, so it need not be read, however large it was made.
                    Digest::of(b"")
                } else if meta.is_file() {
                    files::digest_file(&path)?.sha256
                } else if meta.is_symlink() {
                    Digest::of(fs::read_link(&path)?.as_os_str().as_encoded_bytes())
                } else {
                    Digest::of(b"")
                };
                if meta.is_dir() {
                    pending.push(relative);
                }
                look.0.insert(
                    name,
                    (meta.mode(), (meta.mtime(), meta.mtime_nsec()), content),
                );
            }
        }
        Ok(look)
    }
}

/// Mode, time of the last change and content of everything in a place, by name.
#[derive(Default)]
pub struct Look(BTreeMap<String, (u32, (i64, i64), Digest)>);

impl Look {
    /// What is not as it was, but for the bundles and what belongs to a state home that was used.
    pub fn differences(&self, after: &Self) -> Vec<String> {
        self.differences_but(after, &[])
    }

    /// The same where somebody was asked, and answered.
    pub fn differences_beside_a_desk(&self, after: &Self) -> Vec<String> {
        self.differences_but(after, &DESK)
    }

    fn differences_but(&self, after: &Self, expected: &[&str]) -> Vec<String> {
        let below = |name: &&String| {
            let mut dirs = expected.iter().filter_map(|dir| name.strip_prefix(dir));
            dirs.any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let names = self
            .0
            .keys()
            .chain(after.0.keys().filter(|name| !self.0.contains_key(*name)));
        let mut found: Vec<String> = names
            .filter(|name| !is_expected(name) && !below(name))
            .filter_map(|name| match (self.0.get(name), after.0.get(name)) {
                (Some(before), Some(after)) if before == after => None,
                (Some(_), Some(_)) => Some(format!("{name} changed")),
                (Some(_), None) => Some(format!("{name} is gone")),
                (None, _) => Some(format!("{name} is new")),
            })
            .collect();
        found.sort();
        found
    }
}

fn is_expected(name: &str) -> bool {
    let below = |dir: &str| {
        name.strip_prefix(dir)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '-']))
    };
    FURNITURE.contains(&name)
        || REBUILDABLE.iter().any(|dir| below(dir))
        || below(KEYS)
        || below(REPOSITORIES)
        || name.starts_with("state/harness-runs/")
}

/// A bundle of a row, verified with the key of the state home it lies in: that of the row itself.
pub fn bundle_seen(dir: &Path) -> io::Result<BundleSeen> {
    let state = dir.parent().and_then(Path::parent).unwrap_or(dir);
    let trust = KeyStore::below(state).trust().map_err(io::Error::other)?;
    let (found, verification) = verifier::examine(dir, &trust)?;
    let files = bundle_files(dir)?;
    // Looked at twice, because the verifier keeps no large file: both looks saw the same bytes.
    let changed = files.iter().find(|(name, bytes)| {
        let verified = found.files.get(name.as_str());
        verified.is_some_and(|file| file.sha256 != Digest::of(bytes))
    });
    match changed {
        None => Ok(BundleSeen {
            files,
            verification,
        }),
        Some((name, _)) => Err(io::Error::other(format!(
            "{name} changed while it was looked at"
        ))),
    }
}

/// The files of a bundle by name.
fn bundle_files(dir: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    /// More than any row writes.
    const MOST: u64 = 16 << 20;
    let mut found = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let relative = below.join(entry.file_name());
            match entry.file_type()? {
                kind if kind.is_dir() => pending.push(relative),
                kind if kind.is_file() => {
                    let bytes = files::read_limited(&dir.join(&relative), MOST)?;
                    found.insert(relative.display().to_string(), bytes);
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&Place) -> io::Result<()>;

    #[test]
    fn whatever_changes_outside_the_bundle_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let make = |path: &Path| fs::create_dir_all(path);
        let rows: Vec<(&str, Change)> = vec![
            ("", |_| Ok(())),
            ("", |place| {
                fs::create_dir_all(place.at("state/harness-runs/run/backend"))
            }),
            ("", |place| fs::create_dir_all(place.at("state/work"))),
            ("", |place| {
                fs::create_dir_all(place.at("state/cache/sha256/x"))
            }),
            ("home/.gitconfig changed", |place| {
                fs::write(place.at("home/.gitconfig"), "x")
            }),
            ("home/.ssh changed, home/.ssh/id_ed25519 is gone", |place| {
                fs::remove_file(place.at("home/.ssh/id_ed25519"))
            }),
            ("home changed, home/new is new", |place| {
                fs::write(place.at("home/new"), "")
            }),
            ("tmp changed, tmp/x is new", |place| {
                fs::write(place.at("tmp/x"), "")
            }),
            ("state/work/left is new", |place| {
                fs::create_dir_all(place.at("state/work/left"))
            }),
            ("state/open/run is new", |place| {
                fs::create_dir_all(place.at("state/open"))?;
                fs::write(place.at("state/open/run"), "")
            }),
            ("", |place| fs::create_dir_all(place.at("state/keys/known"))),
            ("state/records is new", |place| {
                fs::create_dir_all(place.at("state/records"))
            }),
            ("state/cachet is new", |place| {
                fs::create_dir_all(place.at("state/cachet"))
            }),
            ("cwd/notes.txt changed", |place| {
                std::os::unix::fs::chown(place.at("cwd/notes.txt"), None, None)?;
                fs::set_permissions(
                    place.at("cwd/notes.txt"),
                    std::os::unix::fs::PermissionsExt::from_mode(0o600 | 0o4000),
                )
            }),
        ];
        for (number, (want, change)) in rows.into_iter().enumerate() {
            let root = dir.path().join(number.to_string());
            make(&root).unwrap();
            let place = Place::make(root).unwrap();
            let before = place.look().unwrap();
            change(&place).unwrap();
            assert_eq!(
                before.differences(&place.look().unwrap()).join(", "),
                want,
                "{number}"
            );
        }
    }
}
