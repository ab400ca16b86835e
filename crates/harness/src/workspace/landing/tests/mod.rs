//! Landings in real repositories: `lands.rs` that do, `refusals.rs` that are refused, `killed.rs` that are
//! killed at every step.

mod killed;
mod lands;
mod refusals;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;
use crate::host::Env;

const STOP: &str = "CTO_LANDING_TEST_STOP";
const PLACE: &str = "CTO_LANDING_TEST_PLACE";

/// Where a test said so, the process is gone as if by SIGKILL.
pub fn passed(step: &'static str) {
    if std::env::var(STOP).is_ok_and(|stop| stop == step) {
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    }
}

const RUN: &str = "20260102T030405Z-case-23abcdef";

/// A repository, a state home, and a patch that changes, adds, removes, links and turns a file into a
/// directory.
struct Lab {
    dir: PathBuf,
    _held: Option<tempfile::TempDir>,
}

fn git_in(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "owner");
        command.env(format!("GIT_{who}_EMAIL"), "owner@example.invalid");
    }
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {error}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

impl Lab {
    fn new() -> Self {
        Self::with(&["-b", "main"])
    }

    fn with(init: &[&str]) -> Self {
        let held = tempfile::tempdir().unwrap();
        let lab = Self {
            dir: held.path().canonicalize().unwrap(),
            _held: Some(held),
        };
        fs::create_dir(lab.repo()).unwrap();
        lab.git(&[&["init", "-q"], init].concat());
        for (name, text) in [
            ("a", "old\n"),
            ("gone", "x\n"),
            ("src/deep/b", "b\n"),
            ("src/deep/beside", "stays\n"),
            ("src/above", "stays\n"),
            ("turns", "t\n"),
            ("other", "o\n"),
        ] {
            lab.write(name, text);
        }
        fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "start"]);
        lab.change();
        let patch = lab.git(&[
            "diff",
            "--cached",
            "--full-index",
            "--binary",
            "--no-renames",
        ]);
        fs::write(lab.dir.join("patch"), patch + "\n").unwrap();
        lab.git(&["reset", "-q", "--hard"]);
        lab.git(&["clean", "-qfd"]);
        fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(lab.dir.join("tree"), lab.git(&["rev-parse", "HEAD^{tree}"])).unwrap();
        lab
    }

    fn change(&self) {
        self.write("a", "new\n");
        self.write("new/dir/c", "c\n");
        for gone in ["gone", "turns"] {
            fs::remove_file(self.repo().join(gone)).unwrap();
        }
        self.write("turns/into", "a directory\n");
        symlink("a", self.repo().join("link")).unwrap();
        let tool = self.repo().join("src/deep/b");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
        self.git(&["add", "-A"]);
    }

    fn repo(&self) -> PathBuf {
        self.dir.join("repo")
    }

    fn home(&self) -> Home {
        Home {
            root: self.dir.join("state"),
            runs: self.dir.join("runs"),
        }
    }

    fn write(&self, name: &str, text: &str) {
        let place = self.repo().join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.repo().join(name)).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.repo(), args)
    }

    /// Every file with its bytes, `.git` too.
    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut pending) = (BTreeMap::new(), vec![self.repo()]);
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).unwrap().flatten() {
                let meta = fs::symlink_metadata(entry.path()).unwrap();
                if meta.is_dir() {
                    pending.push(entry.path());
                } else if meta.is_symlink() {
                    let text = fs::read_link(entry.path()).unwrap();
                    found.insert(entry.path(), text.as_os_str().as_bytes().to_vec());
                } else {
                    found.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
        found
    }

    fn work_bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut bytes = self.bytes();
        bytes.retain(|path, _| !path.starts_with(self.repo().join(".git")));
        bytes
    }

    fn with_order<T>(
        &self,
        make: impl FnOnce(&mut Order<'_>),
        then: impl FnOnce(&Order<'_>) -> T,
    ) -> T {
        let (home, run) = (self.home(), RUN.parse().unwrap());
        home.create().unwrap();
        let git = host::programs::git(&Env::default(), &home).unwrap();
        let (repo, aside) = (self.repo(), self.dir.join("aside"));
        host::make_private_dir(&aside).unwrap();
        let bytes = fs::read(self.dir.join("patch")).unwrap();
        let tree = fs::read_to_string(self.dir.join("tree")).unwrap();
        let paths = [
            "a",
            "gone",
            "link",
            "new/dir/c",
            "src/deep/b",
            "turns",
            "turns/into",
        ];
        let mut order = Order {
            git: &git,
            home: &home,
            repository: &repo,
            only: None,
            users_home: None,
            way: Way::Merge,
            change: Change::Patch {
                tree: &tree,
                bytes: &bytes,
                paths: paths.map(TreePath::new).into(),
            },
            branch: None,
            head: None,
            clean: Clean::Paths,
            run: &run,
            approval: None,
            words: "Make it right",
            author: Who::harness(),
            committer: Who::harness(),
            when: Utc::from_millis(1_700_000_000_000).unwrap(),
            awaits_settlement: false,
            aside: &aside,
        };
        make(&mut order);
        then(&order)
    }

    fn prepare(&self) -> Result<Ready, LandingError> {
        self.with_order(|_| {}, prepare)
    }

    fn land(&self) -> Result<Landed, LandingError> {
        self.land_as(|_| {})
    }

    fn land_as(&self, make: impl FnOnce(&mut Order<'_>)) -> Result<Landed, LandingError> {
        self.with_order(make, |order| land(order, &Cancel::never().unwrap()))
    }

    fn recover(&self) -> Vec<recover::Recovered> {
        recover::landings(&self.home(), &Env::default())
    }

    /// Nothing of ours is left, and git finds nothing wrong.
    fn assert_tidy(&self, when: &str) {
        for path in self.bytes().keys() {
            let name = path.display().to_string();
            assert!(
                !name.contains("cto-") && !name.ends_with(".keep") && !name.ends_with(".lock"),
                "{when}: {name}"
            );
        }
        self.git(&["fsck", "--strict", "--no-dangling"]);
        let journals = fs::read_dir(self.home().journal())
            .into_iter()
            .flatten()
            .count();
        assert_eq!(journals, 0, "{when}");
    }

    fn assert_landed(&self, when: &str) {
        assert_eq!(self.git(&["status", "--porcelain"]), "", "{when}");
        assert_eq!(self.read("a"), "new\n", "{when}");
        assert_eq!(self.read("turns/into"), "a directory\n", "{when}");
        assert!(!self.repo().join("gone").exists(), "{when}");
        assert_eq!(
            self.git(&["log", "-1", "--format=%s"]),
            "Make it right",
            "{when}"
        );
        self.assert_tidy(when);
    }
}
