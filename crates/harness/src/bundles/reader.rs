//! Reading bundles, ours and strangers'. Nothing here writes, and nothing here is used by a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::run::chain::{self, EventLine};
use cto_core::task::source::CopiedRepo;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::verify::seal::{self, SealedBy};

use crate::bundles::runs_root::{RunsRoot, unreadable_root};
use crate::evidence::{Liveness, liveness};
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::files;

/// Documents larger than this are not ours.
pub const MAX_DOCUMENT: u64 = 64 << 20;

/// A small document of a bundle, as it stands.
pub fn document(dir: &Path, name: &str) -> io::Result<Vec<u8>> {
    files::read_limited(&dir.join(name), MAX_DOCUMENT)
}

/// A report that its seal bears out, and who sealed it. That the rest of the bundle is as it was is
/// not asked here: `verifier` does.
pub struct SealedReport {
    pub report: Report,
    pub sealed_by: SealedBy,
}

/// The report, if it is the one that was sealed, under the name it was sealed for.
pub fn sealed_report(dir: &Path) -> Result<SealedReport, Failure> {
    let bytes = report_bytes(dir)?;
    let report = parsed(dir, &bytes)?;
    let broken = |why: String| {
        let mut failure = Failure::usage(
            "seal_broken",
            "the report is not what was sealed, so its verdict is not shown",
        )
        .at(dir.display().to_string())
        .reason(why)
        .hint("`cto verify` lists what is wrong with the bundle");
        failure.exits_with = Some(1);
        failure
    };
    let attestation = document(dir, bundle::ATTESTATION)
        .map_err(|error| broken(format!("attestation.json cannot be read: {error}")))?;
    let sealed_by =
        seal::sealed_by(&bytes, &attestation).map_err(|error| broken(error.to_string()))?;
    let name = dir.file_name().and_then(|name| name.to_str());
    let named = name.and_then(|name| name.parse::<RunId>().ok());
    if named.is_some_and(|named| named != report.run_id) {
        return Err(broken(format!(
            "it is the report of {}, under the name of another run",
            report.run_id
        )));
    }
    Ok(SealedReport { report, sealed_by })
}

/// A document of a bundle, if it is the one its report holds the digest of.
pub fn digested(dir: &Path, report: &Report, name: &str) -> Option<Vec<u8>> {
    document(dir, name)
        .ok()
        .filter(|bytes| report.artifact_digests.get(name) == Some(&Digest::of(bytes)))
}

/// A report as written. Reading it proves nothing.
pub fn report(dir: &Path) -> Result<Report, Failure> {
    parsed(dir, &report_bytes(dir)?)
}

fn report_bytes(dir: &Path) -> Result<Vec<u8>, Failure> {
    document(dir, bundle::REPORT).map_err(|error| {
        Failure::usage("unreadable_report", "the report cannot be read")
            .at(dir.join(bundle::REPORT).display().to_string())
            .because(&error)
    })
}

fn parsed(dir: &Path, bytes: &[u8]) -> Result<Report, Failure> {
    cto_core::values::json::read(bytes).map_err(|error| {
        Failure::usage(
            "unreadable_report",
            "the report is not one this version can read",
        )
        .at(dir.join(bundle::REPORT).display().to_string())
        .because(&error)
        .hint("`cto verify` says what is wrong with the bundle")
    })
}

/// Where the copy came from, in bundles of runs that copied a repository.
pub fn source(dir: &Path, report: &Report) -> Option<CopiedRepo> {
    cto_core::values::json::read(&digested(dir, report, bundle::SOURCE)?).ok()
}

/// The events of a bundle, chain checked from the contract its report names to the end it names.
pub fn event_lines(dir: &Path, report: &Report) -> Result<Vec<EventLine>, Failure> {
    let bad = |error: &dyn std::error::Error| {
        Failure::usage("unreadable_events", "the events cannot be read")
            .at(dir.join(bundle::EVENTS).display().to_string())
            .because(error)
    };
    let bytes = files::read_limited(&dir.join(bundle::EVENTS), MAX_DOCUMENT)
        .map_err(|error| bad(&error))?;
    let start = chain::chain_start(&report.run_id, &report.contract_digest);
    let lines = chain::read_chain(&bytes, start, &report.run_id).map_err(|error| bad(&error))?;
    match lines.last().map_or(start, |line| line.hash) == report.events.head {
        true => Ok(lines),
        false => Err(Failure::usage(
            "unreadable_events",
            "the events are not those of the report",
        )
        .at(dir.join(bundle::EVENTS).display().to_string())),
    }
}

/// Is this the path of a directory rather than the name of a run?
pub fn is_path(name: &str) -> bool {
    (name.contains('/') || name == "." || name == "..") && Path::new(name).is_dir()
}

/// A directory that holds a bundle, wherever it is.
pub fn bundle_at(name: &str) -> Result<PathBuf, Failure> {
    let as_path = Path::new(name);
    // A directory that may not be looked into is not the same as one that holds no bundle.
    fs::read_dir(as_path)
        .and_then(|_| as_path.join(bundle::REPORT).try_exists())
        .map_err(|error| {
            Failure::usage("unreadable_bundle", format!("{name} cannot be read"))
                .because(&error)
                .hint("check who owns it and its mode")
        })?;
    let looks_like_one = [
        bundle::REPORT,
        bundle::CONTRACT,
        bundle::EVENTS,
        bundle::LOCK,
    ]
    .iter()
    .any(|file| as_path.join(file).exists());
    // A run whose writer was killed before it could write anything.
    let is_empty_run = as_path
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.parse::<RunId>().is_ok())
        && fs::read_dir(as_path).is_ok_and(|mut entries| entries.next().is_none());
    match looks_like_one || is_empty_run {
        true => Ok(as_path.to_owned()),
        false => Err(
            Failure::usage("not_a_bundle", format!("{name} is not a bundle"))
                .hint("a bundle has report.json, contract.json and events.normalized.jsonl"),
        ),
    }
}

/// Finds a run: a directory, a run id, a unique part of one, or `last`.
pub fn find(home: &Home, name: &str) -> Result<PathBuf, Failure> {
    if is_path(name) {
        return bundle_at(name);
    }
    let exact = home.runs.join(name);
    if name.parse::<RunId>().is_ok() && exact.is_dir() {
        return Ok(exact);
    }
    // Names alone answer this, read from the directory itself: nothing that checks evidence rests
    // on the index.
    let matching = match name {
        "last" => newest(home)?,
        part => run_ids(home, |candidate| {
            !part.is_empty() && candidate.contains(part)
        })?,
    };
    match matching.as_slice() {
        [one] => Ok(home.runs.join(one.as_str())),
        [] => Err(
            Failure::usage("unknown_run", format!("no run is called {name:?}"))
                .at(home.runs.display().to_string())
                .hint("`cto runs` lists them; `last` is the newest"),
        ),
        many => Err(Failure::usage(
            "ambiguous_run",
            format!("{} runs match {name:?}", many.len()),
        )
        .at(home.runs.display().to_string())
        .hint("give more of the run id")),
    }
}

/// The run of ours that began last, if there is one.
fn newest(home: &Home) -> Result<Vec<RunId>, Failure> {
    let found = newest_name(home)?;
    let is_foreign = |run: &RunId| liveness(&home.runs.join(run.as_str())) == Liveness::Foreign;
    if !found.iter().any(is_foreign) {
        return Ok(found);
    }
    // Another program keeps its runs here too: from the newest on, the first that is ours.
    let runs = all_runs(home)?;
    Ok(runs
        .into_iter()
        .rev()
        .find(|run| !is_foreign(run))
        .into_iter()
        .collect())
}

fn newest_name(home: &Home) -> Result<Vec<RunId>, Failure> {
    let mut latest = String::new();
    // Names begin with the time to the second: whatever is earlier than the latest so far cannot be
    // it.
    let candidates = run_ids(home, |name| {
        let Some(stamp) = name
            .get(..16)
            .filter(|stamp| *stamp >= latest.as_str() && name.parse::<RunId>().is_ok())
        else {
            return false;
        };
        latest.replace_range(.., stamp);
        true
    })?;
    Ok(candidates
        .into_iter()
        .max_by_key(RunId::sort_key)
        .into_iter()
        .collect())
}

/// Every run, oldest first.
pub fn all_runs(home: &Home) -> Result<Vec<RunId>, Failure> {
    let mut runs = run_ids(home, |_| true)?;
    runs.sort_by_key(RunId::sort_key);
    Ok(runs)
}

/// The ids of wanted runs, in no order.
fn run_ids(home: &Home, is_wanted: impl FnMut(&str) -> bool) -> Result<Vec<RunId>, Failure> {
    let Some(root) = RunsRoot::open(home)? else {
        return Ok(Vec::new());
    };
    let entries = root
        .entries_where(is_wanted)
        .map_err(|error| unreadable_root(home, &error))?;
    Ok(entries.into_iter().map(|entry| entry.run_id).collect())
}
