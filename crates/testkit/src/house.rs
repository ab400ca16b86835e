//! A private home, a clean environment, and the real `cto` in it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::bundle::Bundle;
use crate::case::Case;
use crate::forger::{Forged, canonical};
use crate::signer::{self, PAYLOAD_TYPE, TestKey};

/// Everything one test may touch. Removed when dropped.
pub struct House {
    root: TempDir,
    program: PathBuf,
    vars: Vec<(String, String)>,
    /// Who lives here, where it is not whoever runs the tests.
    lodger: Option<u32>,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl House {
    /// `program` is the binary that the calling test tests.
    pub fn new(program: &Path) -> Self {
        let root = tempfile::Builder::new()
            .prefix("cto-house-")
            .tempdir()
            .unwrap();
        for dir in ["home", "cases", "scripts", "elsewhere"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self {
            root,
            program: program.to_owned(),
            vars: Vec::new(),
            lodger: None,
        }
    }

    /// The same house with somebody else living in it, whom every command is run by. Only root can
    /// let one in.
    pub fn let_to(mut self, uid: u32) -> Self {
        // The directory of the binary may be closed to others.
        let own = self.root().join("cto");
        fs::copy(&self.program, &own).unwrap();
        self.program = own;
        self.lodger = Some(uid);
        fs::set_permissions(self.root(), fs::Permissions::from_mode(0o755)).unwrap();
        self.hand_over(self.root());
        self
    }

    /// Gives a tree that a test made to whoever lives here.
    pub fn hand_over(&self, tree: &Path) {
        if let Some(uid) = self.lodger {
            let mut chown = Command::new("chown");
            chown.args(["-hR", &format!("{uid}:{uid}")]).arg(tree);
            assert!(chown.status().unwrap().success());
        }
    }

    /// One more variable for every command of this house.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    pub fn runs_dir(&self) -> PathBuf {
        self.state().join("harness-runs")
    }

    /// The real binary with nothing of this machine's environment but `PATH`.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = match self.lodger {
            None => Command::new(&self.program),
            Some(uid) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={uid}"));
                command.arg(format!("--regid={uid}"));
                command.arg("--clear-groups").arg(&self.program);
                command
            }
        };
        command
            .args(args)
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            )
            .env("HOME", self.root().join("home"))
            .env("CTO_STATE_DIR", self.state())
            // So that a whole suite can be run with either kind of workspace.
            .envs(std::env::var_os("CTO_TEST_WORKSPACE").map(|kind| ("CTO_TEST_WORKSPACE", kind)))
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .current_dir(self.root().join("elsewhere"))
            .stdin(Stdio::null());
        command
    }

    pub fn cto(&self, args: &[&str]) -> Answer {
        Answer::of(&self.command(args).output().unwrap())
    }

    /// Starts a command and leaves it running, its output thrown away.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Makes a case directory that checks with `grep` and so starts no interpreter.
    pub fn case(&self, case: &Case) -> String {
        let dir = self.root().join("cases").join(&case.name);
        case.write(&dir);
        dir.display().to_string()
    }

    /// Writes a script for the `fake` engine.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.root().join("scripts").join(format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Runs a case with a script and returns the answer with the bundle it left.
    pub fn run(&self, case: &str, script: &str, more: &[&str]) -> (Answer, Bundle) {
        let number = self.run_dirs().len();
        let script = self.script(&format!("script-{number}"), script);
        let mut args = vec!["run", case, "--script", &script, "--json"];
        args.extend(more);
        self.run_args(&args)
    }

    /// Runs any command line that prints a run as JSON.
    pub fn run_args(&self, args: &[&str]) -> (Answer, Bundle) {
        self.cto(args).with_bundle()
    }

    /// A run directory that lists like a sealed one: the report of another run under a new id,
    /// edited, with its sums, and sealed by the key of this house.
    pub fn plant(&self, like: &Bundle, run_id: &str, edit: impl FnOnce(&mut Value)) -> PathBuf {
        let dir = self.runs_dir().join(run_id);
        fs::create_dir_all(&dir).unwrap();
        let mut report = like.report();
        let (stamp, rest) = run_id.split_once('-').unwrap();
        let (d, t) = (&stamp[..8], &stamp[9..15]);
        let started = format!(
            "{}-{}-{}T{}:{}:{}.000Z",
            &d[..4],
            &d[4..6],
            &d[6..],
            &t[..2],
            &t[2..4],
            &t[4..]
        );
        for (key, value) in [
            ("run_id", run_id),
            ("case_id", rest.rsplit_once('-').unwrap().0),
            ("run_started_at", &started),
        ] {
            report[key] = value.into();
        }
        edit(&mut report);
        fs::write(
            dir.join("report.json"),
            serde_json::to_vec_pretty(&report).unwrap(),
        )
        .unwrap();
        let planted = Forged::at(dir.clone());
        planted.resum();
        let key = TestKey::of_state(&self.state());
        let statement = signer::verdict(&planted.bundle(), &key, Value::Object(Map::new()));
        let envelope = key.envelope(PAYLOAD_TYPE, &canonical(&statement));
        planted.put("attestation.json", &canonical(&envelope));
        dir
    }

    /// Every run directory, sealed or not, oldest first.
    pub fn run_dirs(&self) -> Vec<PathBuf> {
        let mut dirs: Vec<PathBuf> = fs::read_dir(self.runs_dir())
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        dirs.sort();
        dirs
    }

    /// What is below `work/`: nothing, once a run has ended.
    pub fn work_entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.state().join("work"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Names and digests of everything outside the state directory.
    pub fn outside(&self) -> Vec<(String, String)> {
        crate::bundle::files_below(self.root())
            .into_iter()
            .filter(|(name, _)| !name.starts_with("state/"))
            .collect()
    }
}

impl Answer {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output as the one JSON document it must be.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON: {error}: {self:?}"))
    }

    /// With the bundle it names.
    pub fn with_bundle(self) -> (Self, Bundle) {
        let dir = self.json()["bundle"].as_str().map(PathBuf::from);
        let dir = dir.unwrap_or_else(|| panic!("no bundle was named: {self:?}"));
        (self, Bundle::at(dir))
    }

    /// Did the program die of a bug rather than answer?
    pub fn panicked(&self) -> bool {
        self.code.is_none() || self.code == Some(101) || self.stderr.contains("panicked at")
    }
}

/// Waits for something to become true; false when it did not within ten seconds.
pub fn wait_until(mut is_true: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if is_true() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// Says that a test, or a part of it, does not run here. In a fixed form, because `scripts/test`
/// lists these lines at its end.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Root may mount and is refused nothing; some tests need one, some the other.
pub fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}
