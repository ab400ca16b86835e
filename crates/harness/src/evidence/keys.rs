//! `<state home>/keys/`: the key this machine signs with, and whose signatures count on it.
//!
//! No jail is ever shown the state home, so no engine reaches a key. Everything is written whole
//! under another name first; of any number of first runs at once exactly one key is kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cto_core::bundle::attest::key::{KeyError, pem, pem_body};
use cto_core::bundle::attest::trust::RecordError;
use cto_core::bundle::attest::{KeyRecord, KeySource, KeyState, PublicKey, Trust};
use cto_core::containment::ownership::Stranger;
use cto_core::values::digest::Digest;
use cto_core::values::json::{self, JsonError};
use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};

use crate::evidence::signers;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::{self, Home, way};

const PRIVATE: &str = "machine.pem";
const CHOICE: &str = "signer.json";
const KNOWN: &str = "known";
const LOCK: &str = ".lock";
const MAX_FILE: u64 = 64 << 10;
const PRIVATE_LABEL: &str = "PRIVATE KEY";
/// DER of an Ed25519 private key (PKCS #8, RFC 8410), up to the 32 bytes of the seed.
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("{} could not be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} could not be written", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error("{} is not an Ed25519 private key", .0.display())]
    NotAKey(PathBuf),
    #[error("{} can be read by others (mode {mode:o})", path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} could hold keys of someone else: {stranger}", dir.display())]
    NotOurs { dir: PathBuf, stranger: Stranger },
    #[error("{} lies at or below a repository, whose author could name what signs", .0.display())]
    InRepository(PathBuf),
    #[error("{} is not the record of a key", .0.display())]
    Record(PathBuf, #[source] RecordError),
    #[error("{} does not say which key signs", .0.display())]
    Choice(PathBuf, #[source] JsonError),
    #[error("{} {source}", path.display())]
    Public { path: PathBuf, source: KeyError },
    #[error("key {0} no longer signs: it was rotated or revoked")]
    Retired(String),
    #[error("no key here begins with {0:?}")]
    Unknown(String),
    #[error("{1} keys begin with {0:?}")]
    Ambiguous(String, usize),
    #[error("the key was revoked and cannot be trusted again")]
    Revoked,
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("the kernel gave no random bytes")]
    Random(#[source] getrandom::Error),
}

impl KeysError {
    /// For the command line: what could not be done with keys.
    pub fn failure(&self) -> Failure {
        let failure = match self {
            Self::Unknown(_) | Self::Ambiguous(..) | Self::Public { .. } | Self::Revoked => {
                Failure::usage("bad_key", "the key cannot be used")
                    .hint("`cto keys` lists the keys known here")
            }
            Self::Open { path, .. } => {
                Failure::internal("key_exposed", "the signing key is not private").hint(format!(
                    "if nobody else read it: chmod 600 {}; otherwise `cto keys rotate`",
                    path.display()
                ))
            }
            Self::NotOurs { .. } | Self::InRepository(_) => Failure::blocked(
                "keys_not_private",
                "the keys are not believed",
            )
            .hint(
                "choose a state directory of your own with --home DIR, outside of every repository",
            ),
            _ => Failure::internal("keys_unusable", "the keys cannot be used"),
        };
        failure.because(self)
    }
}

/// Which key signs what this machine seals.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Choice {
    /// The key made here on first use.
    Machine,
    /// An OpenSSH private key of the operator, not encrypted.
    Ssh { file: PathBuf },
    /// A program of the operator that holds the key.
    Command {
        argv: Vec<String>,
        public_key: String,
    },
}

/// The directory of keys.
#[derive(Clone, Debug)]
pub struct KeyStore {
    dir: PathBuf,
    /// The state home.
    root: PathBuf,
}

impl KeyStore {
    pub fn of(home: &Home) -> Self {
        Self::below(&home.root)
    }

    /// The store of the state home at this path.
    pub fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            dir: root.join("keys"),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state home it lies in.
    pub fn home(&self) -> Home {
        let root = self.dir.parent().unwrap_or(&self.dir).to_owned();
        Home {
            runs: root.join("harness-runs"),
            root,
        }
    }

    fn prepare(&self) -> Result<(), KeysError> {
        let known = self.dir.join(KNOWN);
        host::make_private_dir(&known).map_err(|error| KeysError::Write(known, error))?;
        self.is_ours()
    }

    /// Whoever could write here could name a program that signs, which is run as the operator, and keys that
    /// are trusted. What is not there is nobody's.
    fn is_ours(&self) -> Result<(), KeysError> {
        let root = self.dir.parent().unwrap_or(&self.dir);
        for dir in [self.dir.join(KNOWN), self.dir.clone(), root.to_owned()] {
            match way::stranger_to(&dir, Some(root)) {
                Ok(None) => return Ok(()),
                Ok(Some(stranger)) => return Err(KeysError::NotOurs { dir, stranger }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(KeysError::Read(dir, error)),
            }
        }
        Ok(())
    }

    /// One change of the store at a time.
    fn lock(&self) -> Result<File, KeysError> {
        self.prepare()?;
        let path = self.dir.join(LOCK);
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        let file = opened.map_err(|error| KeysError::Write(path.clone(), error))?;
        file.lock().map_err(|error| KeysError::Write(path, error))?;
        Ok(file)
    }

    /// Every key known here, by id. Nothing there is nobody known.
    pub fn records(&self) -> Result<Vec<KeyRecord>, KeysError> {
        self.is_ours()?;
        let dir = self.dir.join(KNOWN);
        let mut paths: Vec<PathBuf> = match fs::read_dir(&dir) {
            Ok(entries) => entries
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| KeysError::Read(dir, error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(KeysError::Read(dir, error)),
        }
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
        paths.sort();
        paths
            .iter()
            .map(|path| read_record(path).map(|(record, _)| record))
            .collect()
    }

    pub fn trust(&self) -> Result<Trust, KeysError> {
        let mut trust = Trust::default();
        self.records()?
            .iter()
            .for_each(|record| trust.record(record));
        // Where it cannot be believed nobody approves; who is about to use it says why.
        Ok(trust.with_signers(signers::below(&self.root).unwrap_or_default()))
    }

    /// The one record whose id begins so.
    pub fn find(&self, start: &str) -> Result<KeyRecord, KeysError> {
        let mut matching: Vec<KeyRecord> = self
            .records()?
            .into_iter()
            .filter(|record| !start.is_empty() && record.key_id.to_hex().starts_with(start))
            .collect();
        match (matching.pop(), matching.len()) {
            (Some(one), 0) => Ok(one),
            (Some(_), more) => Err(KeysError::Ambiguous(start.to_owned(), more + 1)),
            (None, _) => Err(KeysError::Unknown(start.to_owned())),
        }
    }

    /// Adds a key, or leaves it as it stands.
    pub fn add(
        &self,
        key: &PublicKey,
        label: &str,
        source: KeySource,
    ) -> Result<KeyRecord, KeysError> {
        self.prepare()?;
        let path = self.record_path(key.id());
        match read_record(&path) {
            Ok((record, _)) => return Ok(record),
            Err(KeysError::Read(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let record = KeyRecord::new(key, label, source, host::now());
        match put_new(&path, &json::pretty(&record)?) {
            // Someone else added it meanwhile.
            Ok(false) => read_record(&path).map(|(record, _)| record),
            Ok(true) => Ok(record),
            Err(error) => Err(KeysError::Write(path, error)),
        }
    }

    /// Trusts a key of somebody else. A revoked one stays revoked.
    pub fn trust_key(&self, key: &PublicKey, label: &str) -> Result<KeyRecord, KeysError> {
        let _lock = self.lock()?;
        let record = self.add(key, label, KeySource::Operator)?;
        match record.state {
            KeyState::Revoked { .. } => Err(KeysError::Revoked),
            KeyState::Trusted | KeyState::Rotated { .. } => Ok(record),
        }
    }

    fn record_path(&self, id: Digest) -> PathBuf {
        self.dir.join(KNOWN).join(format!("{id}.json"))
    }

    fn set_state(&self, mut record: KeyRecord, state: KeyState) -> Result<KeyRecord, KeysError> {
        record.state = state;
        let path = self.record_path(record.key_id);
        replace(&path, &json::pretty(&record)?).map_err(|error| KeysError::Write(path, error))?;
        Ok(record)
    }

    pub fn choice(&self) -> Result<Choice, KeysError> {
        self.is_ours()?;
        let path = self.dir.join(CHOICE);
        match files::read_limited(&path, MAX_FILE) {
            Ok(bytes) => {
                let choice = json::read(&bytes).map_err(|error| KeysError::Choice(path, error))?;
                self.may_choose(&choice)?;
                Ok(choice)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Choice::Machine),
            Err(error) => Err(KeysError::Read(path, error)),
        }
    }

    /// A program or a key elsewhere is named by the operator. A repository can bring a whole state home along,
    /// and its author would name what is run.
    fn may_choose(&self, choice: &Choice) -> Result<(), KeysError> {
        if *choice == Choice::Machine {
            return Ok(());
        }
        let steps =
            way::walk(&self.dir).map_err(|error| KeysError::Read(self.dir.clone(), error))?;
        match steps.iter().any(|step| step.is_repository) {
            true => Err(KeysError::InRepository(self.dir.clone())),
            false => Ok(()),
        }
    }

    /// From now on this key signs. It is trusted here from then on.
    pub fn choose(
        &self,
        choice: &Choice,
        key: &PublicKey,
        label: &str,
    ) -> Result<KeyRecord, KeysError> {
        let _lock = self.lock()?;
        self.may_choose(choice)?;
        let record = self.own(key, label)?;
        let path = self.dir.join(CHOICE);
        replace(&path, &json::pretty(choice)?).map_err(|error| KeysError::Write(path, error))?;
        Ok(record)
    }

    /// A key that may sign here: known as our own, and neither rotated nor revoked.
    pub fn own(&self, key: &PublicKey, label: &str) -> Result<KeyRecord, KeysError> {
        let record = self.add(key, label, KeySource::Own)?;
        match record.state {
            KeyState::Trusted => Ok(record),
            KeyState::Rotated { .. } | KeyState::Revoked { .. } => {
                Err(KeysError::Retired(record.key_id.short()))
            }
        }
    }

    /// The key of this machine, made when it is first needed.
    pub fn machine_key(&self) -> Result<SigningKey, KeysError> {
        self.prepare()?;
        let path = self.dir.join(PRIVATE);
        // Twice: once it may not be there, and then someone else may have been quicker.
        for _ in 0..2 {
            match read_private(&path) {
                Err(KeysError::Read(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
                read => return read,
            }
            put_new(&path, new_private()?.as_bytes())
                .map_err(|error| KeysError::Write(path.clone(), error))?;
        }
        read_private(&path)
    }

    /// A new key signs from now on. What the old one signed still counts; it can sign nothing more.
    pub fn rotate(&self) -> Result<(Option<KeyRecord>, KeyRecord), KeysError> {
        let _lock = self.lock()?;
        let path = self.dir.join(PRIVATE);
        let old = match read_private(&path) {
            Ok(secret) => Some(self.add(&public_of(&secret)?, MACHINE_LABEL, KeySource::Own)?),
            Err(KeysError::Read(_, error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let text = new_private()?;
        let secret = parse_private(&text).ok_or_else(|| KeysError::NotAKey(path.clone()))?;
        let new = self.add(&public_of(&secret)?, MACHINE_LABEL, KeySource::Own)?;
        replace(&path, text.as_bytes()).map_err(|error| KeysError::Write(path.clone(), error))?;
        // Only now: a signature of the old key was never later than its retirement.
        let old = match old {
            Some(record) if record.state == KeyState::Trusted => {
                Some(self.set_state(record, KeyState::Rotated { at: host::now() })?)
            }
            other => other,
        };
        Ok((old, new))
    }

    /// Nothing this key signed counts any more. If it is the one that signs here, it is taken away
    /// as well.
    pub fn revoke(&self, start: &str, reason: &str) -> Result<KeyRecord, KeysError> {
        let _lock = self.lock()?;
        let record = self.find(start)?;
        if matches!(record.state, KeyState::Revoked { .. }) {
            return Ok(record);
        }
        let revoked = self.set_state(
            record,
            KeyState::Revoked {
                at: host::now(),
                reason: reason.to_owned(),
            },
        )?;
        let path = self.dir.join(PRIVATE);
        if let Ok(secret) = read_private(&path)
            && public_of(&secret)?.id() == revoked.key_id
        {
            fs::remove_file(&path).map_err(|error| KeysError::Write(path, error))?;
        }
        Ok(revoked)
    }
}

/// What the machine's own keys are called.
pub const MACHINE_LABEL: &str = "this machine";

/// A public key from a file somebody was handed.
pub fn read_public(path: &Path) -> Result<PublicKey, KeysError> {
    let bytes = files::read_limited(path, MAX_FILE)
        .map_err(|error| KeysError::Read(path.to_owned(), error))?;
    PublicKey::from_text(&String::from_utf8_lossy(&bytes)).map_err(|source| KeysError::Public {
        path: path.to_owned(),
        source,
    })
}

/// Trust in every key of a directory: public keys, or records of another store.
pub fn read_trust(dir: &Path, trust: &mut Trust) -> Result<(), KeysError> {
    let failed = |error| KeysError::Read(dir.to_owned(), error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.extension().and_then(|end| end.to_str()) {
            Some("json") => trust.record(&read_record(&path)?.0),
            Some("pem" | "pub") => trust.named(&read_public(&path)?, &path.display().to_string()),
            _ => {}
        }
    }
    Ok(())
}

fn read_record(path: &Path) -> Result<(KeyRecord, PublicKey), KeysError> {
    let bytes = files::read_limited(path, MAX_FILE)
        .map_err(|error| KeysError::Read(path.to_owned(), error))?;
    KeyRecord::read(&bytes).map_err(|error| KeysError::Record(path.to_owned(), error))
}

/// A private key, refused when others could have read it.
fn read_private(path: &Path) -> Result<SigningKey, KeysError> {
    let bytes = read_secret(path)?;
    parse_private(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| KeysError::NotAKey(path.to_owned()))
}

/// The bytes of a file only its owner can read.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, KeysError> {
    let failed = |error| KeysError::Read(path.to_owned(), error);
    let mode = files::open_regular(path)
        .and_then(|file| file.metadata())
        .map_err(failed)?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(KeysError::Open {
            path: path.to_owned(),
            mode: mode & 0o777,
        });
    }
    files::read_limited(path, MAX_FILE).map_err(failed)
}

fn parse_private(text: &str) -> Option<SigningKey> {
    let der = pem_body(text, PRIVATE_LABEL)?;
    let seed = der.strip_prefix(PKCS8_PREFIX.as_slice())?;
    Some(SigningKey::from_bytes(seed.try_into().ok()?))
}

fn new_private() -> Result<String, KeysError> {
    let mut seed = [0u8; 32];
    getrandom::fill(&mut seed).map_err(KeysError::Random)?;
    Ok(pem(
        PRIVATE_LABEL,
        &[PKCS8_PREFIX.as_slice(), &seed].concat(),
    ))
}

pub fn public_of(secret: &SigningKey) -> Result<PublicKey, KeysError> {
    PublicKey::from_bytes(&secret.verifying_key().to_bytes()).map_err(|source| KeysError::Public {
        path: PathBuf::from(PRIVATE),
        source,
    })
}

/// A whole file under a name nobody has yet; false when somebody has.
pub fn put_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let aside = write_aside(path, bytes)?;
    let placed = files::rename_new(&aside, path);
    if !matches!(placed, Ok(true)) {
        let _ = fs::remove_file(&aside);
    }
    placed.and_then(|placed| sync_parent(path).map(|()| placed))
}

pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = write_aside(path, bytes)?;
    fs::rename(&aside, path).inspect_err(|_| drop(fs::remove_file(&aside)))?;
    sync_parent(path)
}

/// The bytes on disk beside their place, readable by the owner alone from the first moment.
fn write_aside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let name = host::random_name(12).map_err(io::Error::other)?;
    let aside = path.with_extension(format!("{name}.tmp"));
    let mut new = OpenOptions::new();
    let mut file = new.write(true).create_new(true).mode(0o600).open(&aside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(&aside)))?;
    Ok(aside)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, KeyStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = KeyStore::below(dir.path());
        (dir, store)
    }

    #[test]
    fn many_first_uses_keep_one_key() {
        let (_dir, store) = store();
        let ids: Vec<Digest> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..32)
                .map(|_| {
                    scope.spawn(|| {
                        let key = public_of(&store.machine_key().unwrap()).unwrap();
                        store.own(&key, MACHINE_LABEL).unwrap().key_id
                    })
                })
                .collect();
            started
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert_eq!(store.records().unwrap().len(), 1);
        let left: Vec<_> = fs::read_dir(&store.dir)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left.len(), 2, "{left:?}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&store.dir), mode(&store.dir.join(PRIVATE))),
            (0o700, 0o600)
        );
    }

    #[test]
    fn a_key_others_can_read_is_refused() {
        let (_dir, store) = store();
        store.machine_key().unwrap();
        fs::set_permissions(store.dir.join(PRIVATE), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            store.machine_key(),
            Err(KeysError::Open { mode: 0o640, .. })
        ));
    }

    #[test]
    fn rotation_and_revocation() {
        let (_dir, store) = store();
        let first = public_of(&store.machine_key().unwrap()).unwrap();
        store.own(&first, MACHINE_LABEL).unwrap();
        let (old, new) = store.rotate().unwrap();
        assert_eq!(old.unwrap().key_id, first.id());
        assert!(matches!(
            store.own(&first, MACHINE_LABEL),
            Err(KeysError::Retired(_))
        ));
        let second = public_of(&store.machine_key().unwrap()).unwrap();
        assert_eq!(second.id(), new.key_id);
        assert!(matches!(store.revoke("", "x"), Err(KeysError::Unknown(_))));
        store
            .revoke(&second.id().to_hex()[..20], "laptop lost")
            .unwrap();
        assert!(
            !store.dir.join(PRIVATE).exists(),
            "a revoked key must not sign again"
        );
        assert!(matches!(
            store.trust_key(&second, "again"),
            Err(KeysError::Revoked)
        ));
        let third = public_of(&store.machine_key().unwrap()).unwrap();
        assert!(third.id() != second.id());
        assert_eq!(store.records().unwrap().len(), 2);
    }

    #[test]
    fn a_broken_record_is_an_error_not_a_silence() {
        let (_dir, store) = store();
        store.prepare().unwrap();
        fs::write(store.dir.join(KNOWN).join("x.json"), "{").unwrap();
        assert!(matches!(store.trust(), Err(KeysError::Record(..))));
    }
}
