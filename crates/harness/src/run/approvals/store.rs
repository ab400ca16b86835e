//! `<state home>/operator/`: requests, the answers to them, and that they were used. Append-only: every file is
//! made whole under a name nobody has, and nothing here edits or removes one. No jail is shown the state home.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cto_core::bundle::approval::ExecutionRequest;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::json;
use cto_core::values::time::Utc;
use serde::{Deserialize, Serialize};

use crate::evidence::keys::put_new;
use crate::host::{self, Home};
use crate::records::believed_file;

/// A request holds a page; nothing here is larger.
const MAX_FILE: u64 = 1 << 20;
const STORE: &str = "store.json";
const REQUEST: &str = "request.json";
const ASKED_WITH: &str = "asked-with.json";
const ANSWER: &str = "answer.json";
const USED: &str = "used.json";

/// Which store this is: an answer given for another one counts for nothing here.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    schema_version: u32,
    store_id: Digest,
    created_at: Utc,
}

/// What was said: the very bytes that were signed, and the signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub record: String,
    pub signature: String,
}

/// That an approval was used, by which run and when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub run_id: RunId,
    pub used_at: Utc,
}

pub struct Store {
    dir: PathBuf,
}

impl Store {
    pub fn of(home: &Home) -> Self {
        Self {
            dir: home.root.join("operator"),
        }
    }

    /// The id of this store, made on first use: of any number of first uses exactly one is kept.
    pub fn id(&self) -> io::Result<Digest> {
        let path = self.dir.join(STORE);
        if path.symlink_metadata().is_err() {
            host::make_private_dir(&self.dir)?;
            let mut random = [0u8; 32];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            let identity = Identity {
                schema_version: 1,
                store_id: Digest::of(&random),
                created_at: host::now(),
            };
            put_new(&path, &json::pretty(&identity).map_err(io::Error::other)?)?;
        }
        let identity: Identity = self.read(&path)?.ok_or(ErrorKind::NotFound)?;
        Ok(identity.store_id)
    }

    fn at(&self, id: &RunId, name: &str) -> PathBuf {
        self.dir.join("requests").join(id.as_str()).join(name)
    }

    /// A file of the store that only root and the operator could have written.
    fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        believed_file(path, MAX_FILE)
            .map(Some)
            .map_err(io::Error::other)
    }

    fn read<T: for<'d> Deserialize<'d>>(&self, path: &Path) -> io::Result<Option<T>> {
        let Some(bytes) = Self::bytes(path)? else {
            return Ok(None);
        };
        json::read(&bytes).map(Some).map_err(io::Error::other)
    }

    /// Keeps a request, with what it was asked with: that stays here and travels nowhere.
    pub fn put_request<T: Serialize>(
        &self,
        request: &ExecutionRequest,
        asked_with: &T,
    ) -> io::Result<bool> {
        let id = &request.request_id;
        host::make_private_dir(&self.dir.join("requests").join(id.as_str()))?;
        let words = json::pretty(asked_with).map_err(io::Error::other)?;
        let bytes = request.to_bytes().map_err(io::Error::other)?;
        // The request last: one without it is none.
        Ok(put_new(&self.at(id, ASKED_WITH), &words)? && put_new(&self.at(id, REQUEST), &bytes)?)
    }

    /// The bytes of a request.
    pub fn request(&self, id: &RunId) -> io::Result<Option<Vec<u8>>> {
        Self::bytes(&self.at(id, REQUEST))
    }

    pub fn asked_with<T: for<'d> Deserialize<'d>>(&self, id: &RunId) -> io::Result<Option<T>> {
        self.read(&self.at(id, ASKED_WITH))
    }

    /// Keeps the one answer to a request; false where there is one already.
    pub fn put_answer(&self, id: &RunId, answer: &Kept) -> io::Result<bool> {
        let bytes = json::pretty(answer).map_err(io::Error::other)?;
        put_new(&self.at(id, ANSWER), &bytes)
    }

    pub fn answer(&self, id: &RunId) -> io::Result<Option<Kept>> {
        self.read(&self.at(id, ANSWER))
    }

    /// Uses an approval up. Of any number of runs exactly one is told so, and no crash gives it back.
    pub fn use_up(&self, id: &RunId, run_id: &RunId, now: Utc) -> io::Result<bool> {
        let used = Used {
            run_id: run_id.clone(),
            used_at: now,
        };
        let bytes = json::pretty(&used).map_err(io::Error::other)?;
        put_new(&self.at(id, USED), &bytes)
    }

    /// Whether it was used, whatever lies there; by whom, where that can be read.
    pub fn used(&self, id: &RunId) -> Option<Option<Used>> {
        let path = self.at(id, USED);
        path.symlink_metadata().ok()?;
        Some(self.read(&path).ok().flatten())
    }

    /// Every request, the newest first.
    pub fn all(&self) -> io::Result<Vec<RunId>> {
        let entries = match fs::read_dir(self.dir.join("requests")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = entries.collect::<io::Result<Vec<_>>>()?.into_iter();
        let ids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<RunId>().ok());
        let mut ids: Vec<RunId> = ids.collect();
        ids.sort_by_key(|id| std::cmp::Reverse(id.sort_key()));
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn store(dir: &Path) -> Store {
        let home = Home {
            root: dir.join("state"),
            runs: dir.join("runs"),
        };
        Store::of(&home)
    }

    /// The name of a request or run, one for each number.
    fn named(number: usize) -> RunId {
        format!("20260102T030405Z-demo-{number:04}")
            .parse()
            .unwrap()
    }

    #[test]
    fn of_racing_runs_exactly_one_uses_an_approval() {
        const ROUNDS: usize = 1000;
        let temp = tempfile::tempdir().unwrap();
        let store = store(temp.path());
        for round in 0..ROUNDS {
            let id = named(round);
            host::make_private_dir(&store.dir.join("requests").join(id.as_str())).unwrap();
            let (won, begin) = (AtomicUsize::new(0), std::sync::Barrier::new(2));
            std::thread::scope(|scope| {
                for number in 0..2 {
                    let (store, id, won, begin) = (&store, &id, &won, &begin);
                    scope.spawn(move || {
                        begin.wait();
                        if store.use_up(id, &named(number), host::now()).unwrap() {
                            won.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
            });
            assert_eq!(won.into_inner(), 1, "round {round}");
            assert!(store.used(&id).flatten().is_some());
        }
    }

    #[test]
    fn a_store_has_one_id_and_keeps_what_it_was_given_first() {
        let temp = tempfile::tempdir().unwrap();
        let store = store(temp.path());
        let ids: Vec<Digest> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| store.id().unwrap()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        let id = named(1);
        host::make_private_dir(&store.dir.join("requests").join(id.as_str())).unwrap();
        let kept = |text: &str| Kept {
            record: text.into(),
            signature: "s".into(),
        };
        assert!(store.put_answer(&id, &kept("first")).unwrap());
        assert!(!store.put_answer(&id, &kept("second")).unwrap());
        assert_eq!(store.answer(&id).unwrap(), Some(kept("first")));
    }

    #[test]
    fn what_somebody_else_could_have_put_there_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let store = store(temp.path());
        let id = named(1);
        let dir = store.dir.join("requests").join(id.as_str());
        host::make_private_dir(&dir).unwrap();
        let answer = dir.join(ANSWER);
        fs::write(
            temp.path().join("planted"),
            b"{\"record\":\"r\",\"signature\":\"s\"}",
        )
        .unwrap();
        std::os::unix::fs::symlink(temp.path().join("planted"), &answer).unwrap();
        assert!(store.answer(&id).is_err(), "a link");
        fs::remove_file(&answer).unwrap();
        fs::copy(temp.path().join("planted"), &answer).unwrap();
        assert!(store.answer(&id).unwrap().is_some());
        fs::set_permissions(&answer, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(store.answer(&id).is_err(), "writable by others");
        fs::set_permissions(&answer, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&answer, b"{\"record\":\"r\"").unwrap();
        assert!(store.answer(&id).is_err(), "cut off");
        std::os::unix::fs::symlink("/nonexistent", dir.join(USED)).unwrap();
        assert!(
            !store.use_up(&id, &named(2), host::now()).unwrap(),
            "used, whatever it is"
        );
        assert_eq!(store.used(&id), Some(None));
    }
}
