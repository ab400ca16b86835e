//! Reading bundles, ours and strangers'. Nothing here writes, and nothing here is used by a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::run::chain::{self, EventLine};
use cto_core::task::source::CopiedRepo;
use cto_core::values::ids::RunId;

use crate::bundles::runs_root::{RunsRoot, unreadable_root};
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::files;

/// Documents larger than this are not ours.
pub const MAX_DOCUMENT: u64 = 64 << 20;

/// A small document of a bundle, as it stands.
pub fn document(dir: &Path, name: &str) -> io::Result<Vec<u8>> {
    files::read_limited(&dir.join(name), MAX_DOCUMENT)
}

/// A report as written. Reading it proves nothing; `verifier` does.
pub fn report(dir: &Path) -> Result<Report, Failure> {
    let bytes = files::read_limited(&dir.join(bundle::REPORT), MAX_DOCUMENT).map_err(|error| {
        Failure::usage("unreadable_report", "the report cannot be read")
            .at(dir.join(bundle::REPORT).display().to_string())
            .because(&error)
    })?;
    cto_core::values::json::read(&bytes).map_err(|error| {
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
pub fn source(dir: &Path) -> Option<CopiedRepo> {
    let bytes = files::read_limited(&dir.join(bundle::SOURCE), MAX_DOCUMENT).ok()?;
    cto_core::values::json::read(&bytes).ok()
}

/// The events of a bundle, chain checked from the contract it names.
pub fn event_lines(dir: &Path) -> Result<Vec<EventLine>, Failure> {
    let report = report(dir)?;
    let bad = |error: &dyn std::error::Error| {
        Failure::usage("unreadable_events", "the events cannot be read")
            .at(dir.join(bundle::EVENTS).display().to_string())
            .because(error)
    };
    let bytes = files::read_limited(&dir.join(bundle::EVENTS), MAX_DOCUMENT)
        .map_err(|error| bad(&error))?;
    let start = chain::chain_start(&report.run_id, &report.contract_digest);
    chain::read_chain(&bytes, start, &report.run_id).map_err(|error| bad(&error))
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

/// The run that began last, if there is one.
fn newest(home: &Home) -> Result<Vec<RunId>, Failure> {
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
