//! `cto.db`: a mirror of the sealed bundles, so that a hundred thousand of them can be asked at
//! once.
//!
//! The bundles are the truth. The mirror may be deleted, damaged, locked or of another version:
//! then it is filled again or passed by, and the answer is the same, only slower. Nothing here is
//! used by a run but [`ingest`], which cannot fail it. Reads bundles and writes nothing but its own
//! file. Why it may be believed is in `docs/decisions/0007-index.md`.
//!
//! - this file: what a list asks; `bundles.rs` reads bundles; `store.rs` the database; `rows.rs`
//!   its rows

mod bundles;
mod rows;
mod store;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use cto_core::operator::listing::{Filter, Listed};
use cto_core::values::ids::RunId;

pub use bundles::{Found, Look, Record, read, read_many};
pub use store::IndexError;

use crate::bundles::runs_root::{Entry, RunsRoot, unreadable_root};
use crate::host::failure::Failure;
use crate::host::{self, Home};
use store::{KnownName, KnownRoot, Store};

/// So many of the newest runs are looked at every time, changed or not. Up to this size of a root
/// nothing rests on times or on the mirror being whole.
const ALWAYS_CHECKED: usize = 1_000;

/// How long a list waits for another writer before it reads the bundles themselves.
const READER_PATIENCE: Duration = Duration::from_millis(500);

/// How long a run waits, at its very end, to be entered. The next list finds it anyway.
const WRITER_PATIENCE: Duration = Duration::from_millis(20);

/// A root that changes faster than this many looks is read without the index.
const ROUNDS: usize = 8;

/// Up to so many runs that are shown are read and their seals checked every time, whatever the index
/// says of them. Beyond that it is believed that a report it has seen sealed still is.
const READ_AFRESH: usize = 100;

/// What the index is called; the second where another program has taken the first.
const NAMES: [&str; 2] = ["cto.db", "cto-harness.db"];

/// What to list.
pub struct Question<'a> {
    pub filter: &'a Filter,
    pub limit: usize,
    /// Forget what is known of this root and read every bundle.
    pub reindex: bool,
}

pub struct Listing {
    /// Newest first, no more than asked for.
    pub runs: Vec<Listed>,
    /// How many match in all.
    pub total: usize,
    /// Why the index was of no use, when it was not.
    pub bypassed: Option<IndexError>,
}

/// Lists runs, through the index where it can be used. `many` is called before many bundles are
/// read.
pub fn list(
    home: &Home,
    question: &Question<'_>,
    many: &mut dyn FnMut(usize),
) -> Result<Listing, Failure> {
    let Some(root) = RunsRoot::open(home)? else {
        return Ok(Listing {
            runs: Vec::new(),
            total: 0,
            bypassed: None,
        });
    };
    match through_index(home, &root, question, many) {
        Ok(listing) => Ok(listing),
        Err(why) => {
            let listing = without_index(&root, question, many)
                .map_err(|error| unreadable_root(home, &error))?;
            Ok(Listing {
                bypassed: Some(why),
                ..listing
            })
        }
    }
}

/// Enters a run that was just sealed. Whatever goes wrong is left to the next list.
pub fn ingest(home: &Home, run_id: &RunId) {
    let enter = || -> Result<(), IndexError> {
        let Ok(Some(root)) = RunsRoot::open(home) else {
            return Ok(());
        };
        let mut store = open(home, WRITER_PATIENCE)?;
        store.prepare()?;
        let found = root
            .entry(run_id)
            .and_then(|entry| read(&root, &entry, Look::Seal));
        let change = store.begin()?;
        let known = change.root(root.path.as_os_str().as_bytes(), is_gone)?;
        if let Some(found) = found {
            change.writer(known.id)?(&found.record)?;
        }
        change.commit()
    };
    let _ = enter();
}

/// The file, by a path without links and by the first name that is free or ours. Bundles of somebody
/// else may be listed where no state is yet.
fn open(home: &Home, patience: Duration) -> Result<Store, IndexError> {
    host::make_private_dir(&home.root)?;
    let root = home.root.canonicalize()?;
    let [first, second] = NAMES;
    match Store::open(&root.join(first), patience) {
        Err(IndexError::NotOurs(_)) => Store::open(&root.join(second), patience),
        opened => opened,
    }
}

fn is_gone(root: &[u8]) -> bool {
    let path = PathBuf::from(OsString::from_vec(root.to_owned()));
    path.symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Every bundle that could be in the answer, read now.
fn without_index(
    root: &RunsRoot,
    question: &Question<'_>,
    many: &mut dyn FnMut(usize),
) -> io::Result<Listing> {
    let mut entries = root.entries()?;
    entries.sort_by_cached_key(|entry| std::cmp::Reverse(entry.run_id.sort_key()));
    let mut total = entries.len();
    let asks_nothing = *question.filter == Filter::default();
    if asks_nothing {
        entries.truncate(question.limit);
    }
    many(entries.len());
    let mut runs: Vec<Listed> = Vec::new();
    read_many(root, &entries, Look::Seal, |found| {
        if question.filter.matches(&found.record.listed) {
            runs.push(found.record.listed);
        }
    });
    if !asks_nothing {
        total = runs.len();
    }
    runs.sort_by_cached_key(|run| std::cmp::Reverse(run.run_id.sort_key()));
    runs.truncate(question.limit);
    Ok(Listing {
        runs,
        total,
        bypassed: None,
    })
}

fn through_index(
    home: &Home,
    root: &RunsRoot,
    question: &Question<'_>,
    many: &mut dyn FnMut(usize),
) -> Result<Listing, IndexError> {
    let mut store = open(home, READER_PATIENCE)?;
    let answer = store.prepare().and_then(|()| {
        Mirror {
            store: &mut store,
            root,
        }
        .answer(question, many)
    });
    match answer {
        Err(IndexError::Damaged(_)) => {
            store.reset()?;
            Mirror {
                store: &mut store,
                root,
            }
            .answer(question, many)
        }
        answer => answer,
    }
}

/// The index of one runs root.
struct Mirror<'a> {
    store: &'a mut Store,
    root: &'a RunsRoot,
}

/// What is to be done before the index may be asked.
#[derive(Default)]
struct Behind {
    /// Forget everything first.
    all: bool,
    /// Names have to be read again.
    names: bool,
    /// Runs known to be no longer what is written of them.
    runs: Vec<RunId>,
}

impl Behind {
    fn is_nothing(&self) -> bool {
        !self.all && !self.names && self.runs.is_empty()
    }
}

impl Mirror<'_> {
    fn answer(
        &mut self,
        question: &Question<'_>,
        many: &mut dyn FnMut(usize),
    ) -> Result<Listing, IndexError> {
        let mut behind = Behind {
            all: question.reindex,
            names: question.reindex,
            runs: Vec::new(),
        };
        let mut are_names_read = false;
        for _ in 0..ROUNDS {
            self.catch_up(&behind, many)?;
            are_names_read |= behind.names;
            let Some(known) = self.store.root(self.path())? else {
                behind = Behind {
                    names: true,
                    ..Behind::default()
                };
                continue;
            };
            let newest = self.store.newest(known.id, ALWAYS_CHECKED + 1)?;
            behind = self.behind(&known, &newest, are_names_read)?;
            if !behind.is_nothing() {
                continue;
            }
            let (records, total) = match newest.len() <= ALWAYS_CHECKED {
                // All of them were just compared with the disk, so nothing has to be looked up.
                true => matching(newest, question),
                false => self
                    .store
                    .query(known.id, question.filter, question.limit)?,
            };
            behind.runs = match records.len() <= READ_AFRESH {
                true => self.misremembered(&records),
                false => self.outdated(&records),
            };
            if behind.is_nothing() && records.len() == total.min(question.limit) {
                let runs = records.into_iter().map(|record| record.listed).collect();
                return Ok(Listing {
                    runs,
                    total,
                    bypassed: None,
                });
            }
        }
        Err(IndexError::Restless)
    }

    fn path(&self) -> &[u8] {
        self.root.path.as_os_str().as_bytes()
    }

    /// Compares the index with what can be seen on the disk without reading a sealed bundle.
    fn behind(
        &self,
        known: &KnownRoot,
        newest: &[Record],
        are_names_read: bool,
    ) -> Result<Behind, IndexError> {
        let are_names_known = match newest.len() <= ALWAYS_CHECKED {
            _ if are_names_read => true,
            true => self.has_same_names(newest)?,
            false => known.token == Some(self.root.token()?.text),
        };
        if !are_names_known {
            return Ok(Behind {
                names: true,
                ..Behind::default()
            });
        }
        let mut runs = self.outdated(newest);
        let volatile = match newest.len() <= ALWAYS_CHECKED {
            true => newest
                .iter()
                .filter(|record| record.is_volatile())
                .cloned()
                .collect(),
            false => self.store.volatile(known.id)?,
        };
        for record in volatile {
            let now = self
                .root
                .entry(&record.listed.run_id)
                .and_then(|entry| read(self.root, &entry, Look::Seal));
            if now.is_none_or(|now| now.record != record) {
                runs.push(record.listed.run_id);
            }
        }
        Ok(Behind {
            runs,
            ..Behind::default()
        })
    }

    /// Whether another directory took over a name is seen in the report that is compared next.
    fn has_same_names(&self, records: &[Record]) -> Result<bool, IndexError> {
        let known: BTreeSet<&RunId> = records.iter().map(|record| &record.listed.run_id).collect();
        let entries = self.root.entries()?;
        Ok(entries.len() == known.len()
            && entries.iter().all(|entry| known.contains(&entry.run_id)))
    }

    /// Runs that are not what the index says, by their own bytes.
    fn misremembered(&self, records: &[Record]) -> Vec<RunId> {
        let is_wrong = |record: &&Record| {
            let entry = self.root.entry(&record.listed.run_id);
            let now = entry.and_then(|entry| read(self.root, &entry, Look::Seal));
            now.is_none_or(|now| now.record != **record)
        };
        let wrong = records.iter().filter(is_wrong);
        wrong.map(|record| record.listed.run_id.clone()).collect()
    }

    /// Sealed runs whose report is no longer the one that was read, or whose seal nobody has looked
    /// at yet.
    fn outdated(&self, records: &[Record]) -> Vec<RunId> {
        let stale = records.iter().filter(|record| {
            let is_as_it_was = record.is_checked() && record.is_current(self.root);
            !record.is_volatile() && !is_as_it_was
        });
        stale.map(|record| record.listed.run_id.clone()).collect()
    }

    /// Makes the index say what the disk says, in one transaction that no other writer can come
    /// between.
    fn catch_up(&mut self, behind: &Behind, many: &mut dyn FnMut(usize)) -> Result<(), IndexError> {
        if behind.is_nothing() {
            return Ok(());
        }
        let root = self.root;
        let change = self.store.begin()?;
        let known = change.root(root.path.as_os_str().as_bytes(), is_gone)?;
        if behind.all {
            change.forget_runs(known.id)?;
        }
        let mut to_read: BTreeMap<String, Entry> = BTreeMap::new();
        for run_id in &behind.runs {
            match root.entry(run_id) {
                Some(entry) => drop(to_read.insert(run_id.sort_key(), entry)),
                None => change.remove(known.id, &run_id.sort_key())?,
            }
        }
        if behind.names {
            let before = root.token()?;
            let mut seen: HashMap<String, Entry> = root
                .entries()?
                .into_iter()
                .map(|entry| (entry.run_id.sort_key(), entry))
                .collect();
            let mut gone = Vec::new();
            change.each_name(known.id, |key, name| match seen.get(key) {
                Some(entry) if KnownName::of(entry) == name => drop(seen.remove(key)),
                Some(_) => {}
                None => gone.push(key.to_owned()),
            })?;
            for key in gone {
                change.remove(known.id, &key)?;
            }
            to_read.extend(seen);
            let is_trusted = before.is_settled && root.token()?.text == before.text;
            change.set_token(known.id, is_trusted.then_some(before.text.as_str()))?;
        }
        let entries: Vec<Entry> = to_read.into_values().collect();
        many(entries.len());
        // Many that are all new are only read: their seals are looked at when they are asked for.
        let look = match behind.names && entries.len() > ALWAYS_CHECKED {
            true => Look::Report,
            false => Look::Seal,
        };
        let mut write = change.writer(known.id)?;
        let mut result = Ok(());
        read_many(root, &entries, look, |found| {
            if result.is_ok() {
                result = write(&found.record);
            }
        });
        drop(write);
        result?;
        change.commit()?;
        if entries.len() > ALWAYS_CHECKED {
            self.store.settle();
        }
        Ok(())
    }
}

/// The newest `limit` that match, and how many match in all.
fn matching(newest_first: Vec<Record>, question: &Question<'_>) -> (Vec<Record>, usize) {
    let mut records = newest_first;
    records.retain(|record| question.filter.matches(&record.listed));
    let total = records.len();
    records.truncate(question.limit);
    (records, total)
}
