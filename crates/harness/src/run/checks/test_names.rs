//! Hearing which tests ran: a Python process is given a module that names them in a file beside its
//! output, a node process a module that has its runner leave a report; cargo and go are heard by what they
//! print. The command itself stays as the contract has it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cto_core::checks::runner_output::{Heard, RunnerOutput, Voice};
use cto_core::checks::runners::kits::entry::{self, Purpose};
use cto_core::checks::runners::report;
use cto_core::checks::test_ids::Runs;
use cto_core::checks::test_ids::whole::{Programs, Whole};
use cto_core::task::contract::Runner;
use cto_core::values::digest::Digest;

use crate::evidence::secrets::Secrets;
use crate::host;
use crate::host::files;
use crate::supervise::Stream;
use crate::supervise::launch::Launch;

const MODULE: &str = include_str!("test_names.py");
/// The line of the module that says whether early stops are lifted.
const STOPS: &str = "GO_ON = False\n";
/// In a scratch directory; the module must have this name to be found at all.
const DIR: &str = "witness";
const FILE: &str = "sitecustomize.py";
const IDS: &str = "ids";
/// The module removes it when a name could not be written.
const ALL: &str = "all";
/// The kit of node runners, and where they report to.
const KIT: &str = "kit";
const REPORTS: &str = "reports";
/// More than this names no tests.
const MAX_IDS: u64 = 64 << 20;
/// More files than this are no reports.
const MAX_REPORTS: usize = 4096;

/// The runners that are listened to.
pub type Runners = BTreeSet<Runner>;

fn python(runners: &Runners) -> bool {
    runners.iter().any(|runner| runner.is_python())
}

fn javascript(runners: &Runners) -> bool {
    runners.iter().any(|runner| runner.is_javascript())
}

/// The module for Python, told in its own text to lift early stops.
fn module(purpose: Purpose<'_>) -> String {
    match purpose {
        Purpose::Check => MODULE.to_owned(),
        Purpose::Baseline | Purpose::Control(_) => MODULE.replace(STOPS, "GO_ON = True\n"),
    }
}

/// What is added to hear the runners.
pub fn kit(runners: &Runners) -> Digest {
    let mut text = String::new();
    if python(runners) {
        text.push_str(&module(Purpose::Baseline));
    }
    if javascript(runners) {
        entry::files(Purpose::Baseline)
            .iter()
            .for_each(|(_, file)| text.push_str(file));
    }
    Digest::of(text.as_bytes())
}

/// Lays the modules into a scratch directory, before it is handed to the uid that will use it.
pub fn lay_out(scratch: &Path, runners: &Runners, purpose: Purpose<'_>) -> io::Result<()> {
    if python(runners) {
        let dir = scratch.join(DIR);
        host::make_private_dir(&dir)?;
        std::fs::File::create_new(dir.join(ALL))?;
        std::fs::File::create_new(dir.join(FILE))?.write_all(module(purpose).as_bytes())?;
    }
    if javascript(runners) {
        let dir = scratch.join(KIT);
        host::make_private_dir(&dir)?;
        for (name, text) in entry::files(purpose) {
            std::fs::File::create_new(dir.join(name))?.write_all(text.as_bytes())?;
        }
        host::make_private_dir(&scratch.join(REPORTS))?;
    }
    Ok(())
}

/// Tells a process where the modules are. `inside` is the scratch directory as the process knows it.
pub fn announce(launch: &mut Launch, inside: &Path, runners: &Runners) {
    if python(runners) {
        let dir = inside.join(DIR);
        launch
            .env
            .insert("CTO_TEST_IDS".into(), dir.join(IDS).into_os_string());
        launch.env.insert("PYTHONPATH".into(), dir.into_os_string());
    }
    let told = launch.env.iter();
    let told: BTreeMap<String, String> = told
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
        .collect();
    let (kit, reports) = (inside.join(KIT), inside.join(REPORTS));
    let (kit, reports) = (kit.to_string_lossy(), reports.to_string_lossy());
    for (name, value) in entry::variables(runners, &kit, &reports, &told) {
        launch.env.insert(name.into(), value.into());
    }
}

/// On the untouched copy and in the control nothing may keep the tests behind a failure from being named: no
/// early stop of a configuration, and on the untouched copy no file that cannot be loaded. Words of the user
/// stay, and those of the command count more: what they say is cut out of it (`test_ids/baseline.rs`).
pub fn go_on(launch: &mut Launch, runners: &Runners, purpose: Purpose<'_>) {
    const OPTIONS: &str = "PYTEST_ADDOPTS";
    let more = match purpose {
        Purpose::Check => return,
        Purpose::Baseline => " --maxfail=0 --continue-on-collection-errors",
        // Nobody reads why a test failed that was written to fail, and there are hundreds.
        Purpose::Control(_) => " --maxfail=0 --tb=no",
    };
    if runners.contains(&Runner::Pytest) {
        let mut options = launch.env.get(OsStr::new(OPTIONS)).cloned();
        let options = options.get_or_insert_default();
        options.push(more);
        launch.env.insert(OPTIONS.into(), options.clone());
    }
}

/// One command being listened to.
pub struct Witness {
    outputs: Vec<RunnerOutput>,
    /// What go printed.
    printed: Option<Vec<u8>>,
    scratch: PathBuf,
    /// The copy as the process knows it.
    root: String,
    is_python: bool,
}

impl Witness {
    pub fn new(runners: &Runners, scratch: &Path, root: &Path) -> Self {
        let output = |runner: &Runner| RunnerOutput::new(*runner);
        let heard = runners.iter().filter(|runner| !runner.reports());
        Self {
            outputs: heard.map(output).collect(),
            printed: runners.contains(&Runner::Go).then(Vec::new),
            scratch: scratch.to_path_buf(),
            root: root.to_string_lossy().into_owned(),
            is_python: python(runners),
        }
    }

    pub fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        let voice = match stream {
            Stream::Stdout => Voice::Stdout,
            Stream::Stderr => Voice::Stderr,
        };
        for output in &mut self.outputs {
            output.feed(voice, bytes);
        }
        if let (Some(printed), Voice::Stdout) = (&mut self.printed, voice) {
            let room = (MAX_IDS as usize).saturating_sub(printed.len());
            printed.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        }
    }

    /// The files were made beside code under test: no link is followed, and what cannot be read names
    /// nothing.
    pub fn finish(self, secrets: &Secrets) -> Heard {
        let dir = self.scratch.join(DIR);
        let in_place = std::fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir());
        let file = in_place.then(|| dir.join(IDS));
        let said = file
            .and_then(|ids| files::read_limited(&ids, MAX_IDS).ok())
            .unwrap_or_default();
        let all = dir.join(ALL);
        let mut clean = Heard {
            lost: self.is_python && in_place && std::fs::symlink_metadata(all).is_err(),
            ..Heard::default()
        };
        let redacted = |id: String| redacted(&id, secrets);
        let mut reported = report::hear(&reports(&self.scratch.join(REPORTS)), &self.root);
        if let Some(printed) = &self.printed {
            reported.printed_by_go(printed);
        }
        let runs = reported.runs();
        let told = |words: Vec<String>| words.into_iter().map(redacted).collect();
        clean.runs = Runs {
            began: runs.began,
            unfinished: told(runs.unfinished),
            broken: told(runs.broken),
        };
        let whole = Whole {
            files: reported.files(),
            programs: Programs::default(),
        };
        clean.whole = redacted_whole(whole, secrets);
        for (id, tally) in reported.counted() {
            clean.ids.entry(redacted(id)).or_default().merge(tally);
        }
        for output in self.outputs {
            let said = output.finish(&said);
            clean.whole.take_over(redacted_whole(said.whole, secrets));
            for (id, tally) in said.ids {
                clean.ids.entry(redacted(id)).or_default().merge(tally);
            }
            for (id, count) in said.errored {
                *clean.errored.entry(redacted(id)).or_default() += count;
            }
        }
        clean
    }
}

/// Marks and reports by name.
fn reports(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let in_place = std::fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
    let Some(entries) = in_place.then(|| std::fs::read_dir(dir).ok()).flatten() else {
        return found;
    };
    let mut room = MAX_IDS;
    for entry in entries.flatten().take(MAX_REPORTS) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = files::read_limited(&entry.path(), room).unwrap_or_default();
        room = room.saturating_sub(bytes.len() as u64);
        found.insert(name, bytes);
    }
    found
}

fn redacted(text: &str, secrets: &Secrets) -> String {
    let (text, _) = secrets.redact(text.as_bytes());
    String::from_utf8_lossy(&text).into_owned()
}

fn redacted_whole(said: Whole, secrets: &Secrets) -> Whole {
    let all = |names: Vec<String>| names.iter().map(|name| redacted(name, secrets)).collect();
    let files = said.files.into_iter();
    let Programs {
        started,
        silent,
        silent_names,
        empty,
    } = said.programs;
    Whole {
        files: files
            .map(|(name, end)| (redacted(&name, secrets), end))
            .collect(),
        programs: Programs {
            started: all(started),
            silent,
            silent_names: all(silent_names),
            empty: all(empty),
        },
    }
}
