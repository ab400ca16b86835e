//! Bundles on disk, as the index sees them: one short look at each, many at a time.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cto_core::bundle;
use cto_core::operator::listing::{Listed, ListedState, ReportHead, mentioned_runs};
use cto_core::values::ids::RunId;
use cto_core::verify::seal;
use rustix::fs::AtFlags;
use serde::Serialize;

use crate::bundles::runs_root::{Entry, RunsRoot};
use crate::evidence::{Liveness, liveness};
use crate::host::files;
use crate::host::workers;

/// Documents larger than this are not ours.
const MAX_DOCUMENT: u64 = 64 << 20;

/// Reading is mostly waiting for the kernel: two threads keep it busy, more only fight over it.
const READERS: usize = 2;

/// Below this, threads cost more than they bring.
const FEW: usize = 64;

/// How closely a bundle is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// What its report says.
    Report,
    /// And whether its seal bears that out.
    Seal,
}

/// A run as it was found, and how to tell later that it is still the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Record {
    pub listed: Listed,
    pub inode: u64,
    pub is_own_directory: bool,
    /// What the kernel said of the report that was read, and of a seal that did not fit it.
    pub stamp: Option<String>,
}

impl Record {
    /// May become something else without a change in the runs root: it is looked at every time.
    pub fn is_volatile(&self) -> bool {
        let is_remembered = matches!(
            self.listed.state,
            ListedState::Sealed(_) | ListedState::Broken(_)
        );
        !is_remembered || !self.is_own_directory
    }

    /// Is it known whether its seal bears it out?
    pub fn is_checked(&self) -> bool {
        self.listed
            .summary()
            .is_none_or(|summary| summary.sealed_by.is_some())
    }

    /// Is the report that was read still the one that is there?
    pub fn is_current(&self, root: &RunsRoot) -> bool {
        let run_id = &self.listed.run_id;
        let report = file_stamp(root, run_id, bundle::REPORT);
        let now = match &self.listed.state {
            ListedState::Broken(_) => report.map(|report| with_seal(root, run_id, &report)),
            _ => report,
        };
        now.is_some() && now == self.stamp
    }
}

fn file_stamp(root: &RunsRoot, run_id: &RunId, name: &str) -> Option<String> {
    let path = format!("{run_id}/{name}");
    let stat = root.stat(&path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(stamp(
        stat.st_ino,
        stat.st_size,
        (stat.st_ctime, stat.st_ctime_nsec as i64),
    ))
}

/// A seal that does not fit may be put right without a change of the report.
fn with_seal(root: &RunsRoot, run_id: &RunId, report: &str) -> String {
    let seal = file_stamp(root, run_id, bundle::ATTESTATION).unwrap_or_default();
    format!("{report}/{seal}")
}

/// Inode, length and change time: nobody can set the last one back, as can be done with a
/// modification time.
fn stamp(inode: u64, length: i64, (seconds, nanos): (i64, i64)) -> String {
    format!("{inode}-{length}-{seconds}.{nanos:09}")
}

/// What one look at a bundle found.
pub struct Found {
    pub record: Record,
    /// Other runs it names.
    pub refers_to: Vec<RunId>,
}

/// Looks at one bundle; `None` when it is gone.
pub fn read(root: &RunsRoot, entry: &Entry, look: Look) -> Option<Found> {
    let dir = root.path.join(entry.run_id.as_str());
    let read = read_report(root, &entry.run_id);
    let is_missing = read.as_ref().is_err_and(is_missing);
    let (state, stamp, refers_to) = match read {
        Ok((head, bytes, stamp)) if head.run_id == entry.run_id => {
            let refers_to = head.refers_to();
            let mut summary = head.summary();
            let broken = match look {
                Look::Report => None,
                Look::Seal => match sealed_by(&dir, &bytes) {
                    Ok(sealed_by) => {
                        summary.sealed_by = Some(sealed_by);
                        None
                    }
                    Err(broken) => Some(broken),
                },
            };
            match broken {
                // Taken away between two looks.
                Some(_) if !dir.is_dir() => return None,
                Some(_) if liveness(&dir) == Liveness::Foreign => {
                    (ListedState::Foreign, None, Vec::new())
                }
                None => (
                    ListedState::Sealed(Box::new(summary)),
                    Some(stamp),
                    refers_to,
                ),
                Some(why) => (
                    ListedState::Broken(why),
                    Some(with_seal(root, &entry.run_id, &stamp)),
                    mentions(root, &entry.run_id),
                ),
            }
        }
        _ if !is_missing && liveness(&dir) == Liveness::Foreign => {
            (ListedState::Foreign, None, Vec::new())
        }
        Ok(_) => (
            ListedState::Unreadable("its report is of another run".into()),
            None,
            mentions(root, &entry.run_id),
        ),
        Err(_) if is_missing => {
            let state = match liveness(&dir) {
                Liveness::Live => ListedState::Live,
                _ if !dir.is_dir() => return None,
                Liveness::Foreign => ListedState::Foreign,
                // Sealed between two looks: the next one reads it.
                Liveness::Sealed | Liveness::Interrupted => ListedState::Unsealed,
            };
            (state, None, mentions(root, &entry.run_id))
        }
        Err(error) => (
            ListedState::Unreadable(unreadable(&error)),
            None,
            mentions(root, &entry.run_id),
        ),
    };
    let listed = Listed {
        run_id: entry.run_id.clone(),
        state,
    };
    let record = Record {
        listed,
        inode: entry.inode,
        is_own_directory: entry.is_own_directory,
        stamp,
    };
    Some(Found { record, refers_to })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => "the report is not one this version can read".to_owned(),
        _ => format!("the report cannot be read: {error}"),
    }
}

/// Whose seal bears out the report that was read.
fn sealed_by(dir: &Path, report: &[u8]) -> Result<seal::SealedBy, String> {
    let attestation = files::read_limited(&dir.join(bundle::ATTESTATION), MAX_DOCUMENT)
        .map_err(|error| format!("attestation.json cannot be read: {error}"))?;
    seal::sealed_by(report, &attestation).map_err(|broken| broken.to_string())
}

fn read_report(root: &RunsRoot, run_id: &RunId) -> io::Result<(ReportHead, Vec<u8>, String)> {
    let file = files::open_regular(&root.path.join(run_id.as_str()).join(bundle::REPORT))?;
    let meta = file.metadata()?;
    if meta.len() > MAX_DOCUMENT {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
    file.take(MAX_DOCUMENT).read_to_end(&mut bytes)?;
    let head = serde_json::from_slice(&bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let stamp = stamp(
        meta.ino(),
        meta.len() as i64,
        (meta.ctime(), meta.ctime_nsec()),
    );
    Ok((head, bytes, stamp))
}

/// Without a report that can be read, every run its documents mention counts as named.
fn mentions(root: &RunsRoot, run_id: &RunId) -> Vec<RunId> {
    let dir = root.path.join(run_id.as_str());
    let documents = [bundle::REPORT, bundle::CONTRACT, bundle::EVENTS];
    let texts = documents
        .iter()
        .filter_map(|name| files::read_limited(&dir.join(name), MAX_DOCUMENT).ok());
    texts
        .flat_map(|text| mentioned_runs(&text))
        .filter(|mentioned| mentioned != run_id)
        .collect()
}

/// Looks at many bundles and hands over each on this thread, about in order; those that are gone
/// are left out.
pub fn read_many(root: &RunsRoot, entries: &[Entry], look: Look, each: impl FnMut(Found)) {
    if entries.len() <= FEW {
        return entries
            .iter()
            .filter_map(|entry| read(root, entry, look))
            .for_each(each);
    }
    workers::for_all_in_passing(READERS, entries, |entry| read(root, entry, look), each);
}
