//! Start marks of the kit, and which of the runs they begin left a report.
//!
//! A runner process writes its mark before anything of the project is loaded, and its report when it is
//! done. A mark without a report is a run that did not come to its end: `process.exit(0)` somewhere in
//! the code, whatever the exit code says.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Report, Unreadable, read};
use crate::checks::test_ids::whole::{FileEnd, FileEnds};
use crate::checks::test_ids::{Runs, TestIds};
use crate::task::runner::Runner;

/// A start mark.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct Begun {
    runner: String,
}

/// One run of a runner, as the kit saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    pub runner: Runner,
    /// None: it began, and left nothing.
    pub report: Result<Report, Option<Unreadable>>,
}

/// Everything the kit left in its directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reported {
    pub runs: Vec<Run>,
    /// Files that belong to no start: somebody else wrote them.
    pub stray: Vec<String>,
}

impl Reported {
    /// What `go test` printed, for a command that may have used it.
    pub fn printed_by_go(&mut self, output: &[u8]) {
        let report = match read(Runner::Go, output, "") {
            Err(Unreadable::Form) => return,
            report => report.map_err(Some),
        };
        self.runs.push(Run {
            runner: Runner::Go,
            report,
        });
    }

    /// How many began, and which of them did not come to their end, in words.
    pub fn runs(&self) -> Runs {
        let without = self.runs.iter().filter_map(|run| match &run.report {
            Ok(_) => None,
            Err(None) => Some(format!("{} began and left no report", run.runner)),
            Err(Some(error)) => Some(format!(
                "{} left a report that does not count: {error}",
                run.runner
            )),
        });
        let stray = self.stray.iter();
        let stray =
            stray.map(|name| format!("{name:?} lies among the reports, and no runner left it"));
        let reports = self.runs.iter().filter_map(|run| run.report.as_ref().ok());
        Runs {
            began: self.runs.len() as u64,
            unfinished: without.chain(stray).collect(),
            broken: reports.flat_map(|report| report.broken.clone()).collect(),
        }
    }

    /// Files none of whose tests came, where the runner names files.
    pub fn files(&self) -> FileEnds {
        let mut ends = FileEnds::new();
        for run in &self.runs {
            let Ok(report) = &run.report else { continue };
            if matches!(run.runner, Runner::Mocha | Runner::Ava | Runner::Tape) {
                continue;
            }
            // Of Go it is packages, which say more than their name only where they left early.
            let named = |file: &&String| run.runner != Runner::Go || !file.contains(' ');
            let broken = report.broken.iter().filter(named);
            let broken = broken.map(|file| (file, FileEnd::NotLoaded));
            let empty = report.without_tests.iter();
            let empty = empty.filter(|_| run.runner != Runner::Go);
            let empty = empty.map(|file| (file, FileEnd::NoTest));
            ends.extend(broken.chain(empty).map(|(file, end)| (file.clone(), end)));
        }
        ends
    }

    /// All tests of all runs, by file and name.
    pub fn counted(&self) -> TestIds {
        let mut all = TestIds::new();
        for run in &self.runs {
            let Ok(report) = &run.report else { continue };
            let ids = match run.runner {
                Runner::Ava => report.without_file_before_title().counted(),
                _ => report.counted(),
            };
            for (id, tally) in ids {
                all.entry(id).or_default().merge(tally);
            }
        }
        all
    }
}

/// Pairs marks with reports. `files` are those of the kit's directory, by name; `root` is the directory
/// of the tree as the runners knew it.
pub fn hear(files: &BTreeMap<String, Vec<u8>>, root: &str) -> Reported {
    let mut heard = Reported::default();
    for (name, bytes) in files {
        let Some(id) = name.strip_suffix(".start") else {
            let of_a_start = name.rsplit_once('.').is_some_and(|(id, end)| {
                end == "report" && files.contains_key(&format!("{id}.start"))
            });
            if !of_a_start && !name.ends_with(".part") {
                heard.stray.push(name.clone());
            }
            continue;
        };
        let begun = serde_json::from_slice::<Begun>(bytes).ok();
        let Some(runner) = begun.and_then(|begun| Runner::parse(&begun.runner)) else {
            heard.stray.push(name.clone());
            continue;
        };
        let report = match files.get(&format!("{id}.report")) {
            Some(bytes) => read(runner, bytes, root).map_err(Some),
            None => Err(None),
        };
        heard.runs.push(Run { runner, report });
    }
    heard
}
