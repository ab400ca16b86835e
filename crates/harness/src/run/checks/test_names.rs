//! Hearing which tests ran: a Python process is given a module that names them in a file beside its
//! output; cargo and node are heard by what they print. The command itself stays as the contract
//! has it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cto_core::checks::runner_output::{Heard, RunnerOutput, Voice};
use cto_core::checks::test_ids::whole::{Programs, Whole};
use cto_core::task::contract::Runner;
use cto_core::values::digest::Digest;

use crate::evidence::secrets::Secrets;
use crate::host;
use crate::host::files;
use crate::supervise::Stream;
use crate::supervise::launch::Launch;

const MODULE: &str = include_str!("test_names.py");
/// In a scratch directory; the module must have this name to be found at all.
const DIR: &str = "witness";
const FILE: &str = "sitecustomize.py";
const IDS: &str = "ids";
/// The module removes it when a name could not be written.
const ALL: &str = "all";
/// More than this names no tests.
const MAX_IDS: u64 = 64 << 20;

/// What is added to hear a runner.
pub fn kit(runner: Runner) -> Digest {
    let module = if is_python(runner) { MODULE } else { "" };
    Digest::of(module.as_bytes())
}

/// Lays the module into a scratch directory, before it is handed to the uid that will use it.
pub fn lay_out(scratch: &Path, runner: Runner) -> io::Result<()> {
    if !is_python(runner) {
        return Ok(());
    }
    let dir = scratch.join(DIR);
    host::make_private_dir(&dir)?;
    std::fs::File::create_new(dir.join(ALL))?;
    std::fs::File::create_new(dir.join(FILE))?.write_all(MODULE.as_bytes())
}

/// Tells a process where the module is. `inside` is the scratch directory as the process knows it.
pub fn announce(launch: &mut Launch, inside: &Path, runner: Runner) {
    if is_python(runner) {
        let dir = inside.join(DIR);
        launch
            .env
            .insert("CTO_TEST_IDS".into(), dir.join(IDS).into_os_string());
        launch.env.insert("PYTHONPATH".into(), dir.into_os_string());
    }
}

/// On the untouched copy a file that cannot be loaded must not keep the tests of others from being named.
/// That run decides nothing.
pub fn go_on(launch: &mut Launch, runner: Runner) {
    const OPTIONS: &str = "PYTEST_ADDOPTS";
    if runner == Runner::Pytest {
        let mut options = launch.env.get(OsStr::new(OPTIONS)).cloned();
        let options = options.get_or_insert_default();
        options.push(" --continue-on-collection-errors");
        launch.env.insert(OPTIONS.into(), options.clone());
    }
}

fn is_python(runner: Runner) -> bool {
    matches!(runner, Runner::Unittest | Runner::Pytest)
}

/// One command being listened to.
pub struct Witness {
    output: RunnerOutput,
    dir: PathBuf,
    is_python: bool,
}

impl Witness {
    pub fn new(runner: Runner, scratch: &Path) -> Self {
        Self {
            output: RunnerOutput::new(runner),
            dir: scratch.join(DIR),
            is_python: is_python(runner),
        }
    }

    pub fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        let voice = match stream {
            Stream::Stdout => Voice::Stdout,
            Stream::Stderr => Voice::Stderr,
        };
        self.output.feed(voice, bytes);
    }

    /// The file was made by code under test: no link is followed, and what cannot be read names
    /// nothing.
    pub fn finish(self, secrets: &Secrets) -> Heard {
        let in_place = std::fs::symlink_metadata(&self.dir).is_ok_and(|meta| meta.is_dir());
        let file = in_place.then(|| self.dir.join(IDS));
        let said = file
            .and_then(|ids| files::read_limited(&ids, MAX_IDS).ok())
            .unwrap_or_default();
        let said = self.output.finish(&said);
        let all = self.dir.join(ALL);
        let mut clean = Heard {
            lost: self.is_python && in_place && std::fs::symlink_metadata(all).is_err(),
            whole: redacted_whole(said.whole, secrets),
            ..Heard::default()
        };
        let redacted = |id: String| redacted(&id, secrets);
        for (id, tally) in said.ids {
            clean.ids.entry(redacted(id)).or_default().merge(tally);
        }
        for (id, count) in said.errored {
            *clean.errored.entry(redacted(id)).or_default() += count;
        }
        clean
    }
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
