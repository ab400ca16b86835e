//! Records on disk: where each is looked for, and how one is changed.
//!
//! - `mod.rs` the store; `together.rs` several records at once; `gather.rs` everything the gates must know of an engine
//! - `proofs.rs` proofs of stages, found in bundles, `proof_pointers.rs` where they were found before;
//!   `identity.rs` a program asked who it is
//! - `targets.rs` repositories that may be changed; `sources.rs` one that is copied
//! - `gate.rs` the gate record: who opened an engine, and whether that still counts
//! - `examine.rs` a program that is about to be admitted; `package.rs` what its package says of it
//! - `interpreter.rs` what runs it: beside its packages, then on PATH
//! - `own_config.rs` what the agent was told already
//! - `packages/` everything it was installed with, pinned and compared
//!
//! A flag, then the variable, then `<state home>/records/<engine>/`, of a target `records/targets/`. Only an operator's command
//! writes here, and what was there before stays beside it, numbered.
//! Imports host, task, evidence, supervise and bundles. Imported by plan, proof and cli.

pub mod examine;
pub mod gate;
pub mod identity;
pub mod interpreter;
pub mod own_config;
pub mod packages;
pub mod sources;
pub mod targets;

mod gather;
mod package;
mod proof_pointers;
mod proofs;
mod together;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::containment::ownership;
use cto_core::records::{Found, Issue, MAX_RECORD, Record, RecordKind};
use cto_core::values::ids::EngineId;

pub use gather::{
    base_url, credential_way, gather, gather_with_proofs, glance, is_temporary, look_at, program,
    protocol,
};
pub use package::{Installed, installed, package_version, packages_root};
pub use proofs::{Wanted, point_at, proofs, proofs_for};
pub use together::Held;

use crate::host::failure::Failure;
use crate::host::files;
use crate::host::{self, Home, way};

const HISTORY: &str = "history";

/// The records of one engine.
pub struct RecordStore {
    dir: PathBuf,
}

/// A record that was written, and where the one before it went.
#[derive(Debug)]
pub struct Written {
    pub path: PathBuf,
    pub previous: Option<PathBuf>,
}

impl RecordStore {
    pub fn of(home: &Home, engine: &EngineId) -> Self {
        Self {
            dir: home.root.join("records").join(engine.as_str()),
        }
    }

    pub fn path(&self, kind: RecordKind) -> PathBuf {
        self.dir.join(format!("{}.json", kind.as_str()))
    }

    /// Earlier versions, the oldest first.
    pub fn history(&self, kind: RecordKind) -> io::Result<Vec<PathBuf>> {
        let beginning = format!("{}.", kind.as_str());
        let mut found: Vec<PathBuf> = match fs::read_dir(self.dir.join(HISTORY)) {
            Ok(entries) => entries
                .collect::<io::Result<Vec<_>>>()?
                .into_iter()
                .map(|entry| entry.path())
                .collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        found.retain(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(&beginning))
        });
        found.sort();
        Ok(found)
    }

    fn next_of_history(&self, kind: RecordKind) -> io::Result<String> {
        let number = self.history(kind)?.len() + 1;
        Ok(format!("{}.{number:06}.json", kind.as_str()))
    }

    /// Puts a record in its place, whole or not at all; the one before it is kept.
    pub fn write(&self, kind: RecordKind, bytes: &[u8]) -> Result<Written, Failure> {
        self.put(kind, bytes).map_err(|error| {
            Failure::internal("record_unwritable", "the record could not be written")
                .at(self.path(kind).display().to_string())
                .because(&error)
                .so("what was on record before still is")
        })
    }

    /// Takes a record out of its place, whatever it holds; it is kept beside the others. None where
    /// there was none.
    pub fn end(&self, kind: RecordKind) -> Result<Option<PathBuf>, Failure> {
        self.take_out(kind).map_err(|error| {
            Failure::internal("record_unwritable", "the record could not be ended")
                .at(self.path(kind).display().to_string())
                .because(&error)
                .so("it is still there and still counts")
        })
    }

    fn take_out(&self, kind: RecordKind) -> io::Result<Option<PathBuf>> {
        let path = self.path(kind);
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let _held = self.held()?;
        self.recover()?;
        let kept = self.dir.join(HISTORY).join(self.next_of_history(kind)?);
        fs::rename(&path, &kept)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(Some(kept))
    }

    fn put(&self, kind: RecordKind, bytes: &[u8]) -> io::Result<Written> {
        let _held = self.held()?;
        self.recover()?;
        host::make_private_dir(&self.dir.join(HISTORY))?;
        let path = self.path(kind);
        let previous = match path.symlink_metadata() {
            Ok(_) => {
                let kept = self.dir.join(HISTORY).join(self.next_of_history(kind)?);
                fs::hard_link(&path, &kept)?;
                Some(kept)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let part = self
            .dir
            .join(format!(".{}.{}.part", kind.as_str(), std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(Written { path, previous })
    }
}

/// Reads a record. A file that is not there is no record; one that cannot be read, or that anybody
/// but root and the operator could have written, is one that cannot be believed. It is opened once:
/// what is looked at is what is read.
pub fn find<T: Record>(path: &Path) -> Found<T> {
    let invalid = |problem: String| Found::Invalid(vec![Issue::new("record", problem)]);
    match believed(path, MAX_RECORD as u64) {
        Ok(bytes) => Found::of(&path.display().to_string(), &bytes, host::now()),
        Err(NotBelieved::Missing) => Found::Missing,
        Err(NotBelieved::Because(why)) => invalid(why),
    }
}

/// Why a file is not read.
pub(crate) enum NotBelieved {
    Missing,
    Because(String),
}

/// The bytes of a file that only root and the operator could have written; why not, otherwise.
pub fn believed_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    believed(path, most).map_err(|error| match error {
        NotBelieved::Missing => "it is not there".to_owned(),
        NotBelieved::Because(why) => format!("it {why}"),
    })
}

fn unreadable(error: io::Error) -> NotBelieved {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => NotBelieved::Missing,
        _ => NotBelieved::Because(format!("cannot be read: {error}")),
    }
}

fn believed(path: &Path, most: u64) -> Result<Vec<u8>, NotBelieved> {
    files::read_open(open_believed(path)?, most).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => NotBelieved::Because(format!("is larger than {most} bytes")),
        _ => unreadable(error),
    })
}

/// Opens a file that nobody but root and the operator could have written.
pub(crate) fn open_believed(path: &Path) -> Result<File, NotBelieved> {
    let because = |why: String| NotBelieved::Because(why);
    let path = std::path::absolute(path).map_err(unreadable)?;
    if path.symlink_metadata().map_err(unreadable)?.is_symlink() {
        return Err(because("is a link; a record is a file of its own".into()));
    }
    let mut steps = way::walk(&path).map_err(unreadable)?;
    let Some(last) = steps.pop() else {
        return Err(NotBelieved::Missing);
    };
    // The directories hold still, so this is the file that was named; what counts are its own
    // owner and mode, once it is open.
    let file = files::open_regular(&last.path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    steps.push(way::open_step(&last.path, &meta));
    if let Some(stranger) = ownership::stranger(&steps) {
        return Err(because(format!(
            "could have been written by someone else: {stranger}"
        )));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_changed_record_leaves_the_old_one_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home {
            root: dir.path().join("state"),
            runs: dir.path().join("runs"),
        };
        let store = RecordStore::of(&home, &"pi".parse().unwrap());
        assert!(store.history(RecordKind::Model).unwrap().is_empty());
        assert!(
            store
                .write(RecordKind::Model, b"one")
                .unwrap()
                .previous
                .is_none()
        );
        for (text, before) in [("two", "one"), ("three", "two")] {
            let written = store.write(RecordKind::Model, text.as_bytes()).unwrap();
            assert_eq!(
                fs::read_to_string(written.previous.unwrap()).unwrap(),
                before
            );
            assert_eq!(fs::read_to_string(&written.path).unwrap(), text);
            assert_eq!(
                written.path.metadata().unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        let ended = store.end(RecordKind::Model).unwrap().unwrap();
        assert_eq!(fs::read_to_string(ended).unwrap(), "three");
        assert!(!store.path(RecordKind::Model).exists());
        assert_eq!(store.end(RecordKind::Model).unwrap(), None, "nothing left");
        store.write(RecordKind::Decision, b"x").unwrap();
        assert_eq!(store.history(RecordKind::Model).unwrap().len(), 3);
        assert_eq!(
            home.root
                .join("records")
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
    }

    #[test]
    fn a_record_anybody_may_change_is_not_believed() {
        use cto_core::records::ModelDecision;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d.json");
        assert!(matches!(find::<ModelDecision>(&path), Found::Missing));
        fs::write(&path, br#"{"decision_status":"not_decided"}"#).unwrap();
        assert!(matches!(find::<ModelDecision>(&path), Found::Known(_)));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(find::<ModelDecision>(&path), Found::Invalid(_)));
        assert!(matches!(
            find::<ModelDecision>(dir.path()),
            Found::Invalid(_)
        ));
    }

    #[test]
    fn what_was_looked_at_is_what_is_read_whatever_takes_its_name() {
        use std::sync::atomic::{AtomicBool, Ordering};

        use cto_core::records::ModelDecision;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let good = br#"{"decision_status":"not_decided"}"#;
        let lie = br#"{"decision_status":"not_decided","approval_source":"a stranger"}"#;
        fs::create_dir(at("open")).unwrap();
        fs::write(at("open/lie"), lie).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(at("d"), good).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // A link, a file that anybody may write, and the good one again.
                    symlink(at("open/lie"), at("next")).unwrap();
                    fs::rename(at("next"), at("d")).unwrap();
                    fs::write(at("next"), lie).unwrap();
                    fs::set_permissions(at("next"), fs::Permissions::from_mode(0o666)).unwrap();
                    fs::rename(at("next"), at("d")).unwrap();
                    fs::write(at("next"), good).unwrap();
                    fs::rename(at("next"), at("d")).unwrap();
                }
            });
            for _ in 0..2000 {
                if let Found::Known(found) = find::<ModelDecision>(&at("d")) {
                    assert_eq!(found.record.approval_source, None);
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_record_someone_else_could_have_written_is_not_believed() {
        use cto_core::records::ModelDecision;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let put = |name: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), br#"{"decision_status":"not_decided"}"#).unwrap();
        };
        let mode = |name: &str, mode| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        let said = |name: &str| match find::<ModelDecision>(&at(name)) {
            Found::Known(_) => "believed".to_owned(),
            Found::Missing => "missing".to_owned(),
            Found::Invalid(issues) => issues[0].to_string(),
        };
        for name in [
            "good/d",
            "open/d",
            "sticky/d",
            "upper/in/d",
            "group/d",
            "shared/d",
        ] {
            put(name);
            assert_eq!(said(name), "believed", "{name}");
        }
        mode("open", 0o777);
        assert!(said("open/d").contains("everybody may write"));
        mode("sticky", 0o1777);
        assert!(said("sticky/d").contains("everybody may write"));
        mode("upper", 0o777);
        assert!(said("upper/in/d").contains("everybody may write"));
        symlink(at("good/d"), at("good/link")).unwrap();
        assert!(said("good/link").contains("is a link"));
        symlink(at("good"), at("way")).unwrap();
        assert_eq!(said("way/d"), "believed", "a directory may have two names");
        symlink(at("open"), at("good/out")).unwrap();
        assert!(said("good/out/d").contains("everybody may write"));
        if rustix::process::geteuid().is_root() {
            mode("group/d", 0o660);
            chown(at("group/d"), None, Some(4242)).unwrap();
            assert!(said("group/d").contains("its group may write"));
            mode("shared", 0o770);
            chown(at("shared"), None, Some(4242)).unwrap();
            assert!(said("shared/d").contains("its group may write"));
            put("theirs/d");
            chown(at("theirs/d"), Some(4242), None).unwrap();
            assert!(said("theirs/d").contains("belongs to user 4242"));
            put("house/d");
            chown(at("house"), Some(4242), None).unwrap();
            assert!(said("house/d").contains("belongs to user 4242"));
        }
    }
}
