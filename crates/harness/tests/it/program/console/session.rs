//! A person at a terminal, in a home of their own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cto_testkit::{Answer, watch};
use tempfile::TempDir;

use super::masks::as_seen;
use super::repository;

/// A person at a terminal, in a home of their own.
pub struct Session {
    _root: TempDir,
    pub home: PathBuf,
    pub cwd: PathBuf,
    pub code: i32,
}

impl Session {
    pub fn begin() -> Self {
        // A short path, whatever TMPDIR says: tables are cut where a path does not fit.
        let root = tempfile::Builder::new()
            .prefix("cto-")
            .tempdir_in("/tmp")
            .unwrap();
        let path = root.path().canonicalize().unwrap();
        let home = path.join("home");
        fs::create_dir(&home).unwrap();
        fs::create_dir(path.join("bin")).unwrap();
        std::os::unix::fs::symlink(crate::program(), path.join("bin/cto")).unwrap();
        let me = "[user]\n\tname = Me\n\temail = me@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(home.join(".gitconfig"), me).unwrap();
        fs::copy(
            repository().join("packaging/verify.py"),
            home.join("verify.py"),
        )
        .unwrap();
        Self {
            _root: root,
            cwd: home.clone(),
            home,
            code: 0,
        }
    }

    /// A shell with nothing of this machine's environment but what is on `PATH`.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(script)
            .env_clear()
            .stdin(Stdio::null())
            .current_dir(&self.cwd);
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
        let bin = self.home.with_file_name("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.env("HOME", &self.home).env("PAGER", "cat");
        let kind = std::env::var_os("CTO_TEST_WORKSPACE");
        command.envs(kind.map(|kind| ("CTO_TEST_WORKSPACE", kind)));
        command
    }

    /// Types one command; where it leaves off and how it ended is where the next one begins.
    pub fn types(&mut self, command: &str) -> Vec<String> {
        let note = self.home.with_file_name("cwd");
        let (code, file) = (self.code, note.display());
        let script = format!("(exit {code})\n{command}\ncode=$?; pwd > '{file}'; exit $code");
        let Answer { code, stdout, .. } = watch(self.shell(&script), 100);
        self.code = code.unwrap_or(-1);
        // A block that ended early (`set -e`) leaves no note.
        if let Ok(cwd) = fs::read_to_string(&note) {
            self.cwd = cwd.trim_end().into();
        }
        as_seen(&stdout, self.home.to_str().unwrap())
    }
}

#[test]
pub fn a_session_remembers_where_it_is_and_how_it_ended() {
    let mut session = Session::begin();
    assert_eq!(session.types("mkdir a && cd a && false"), [""; 0]);
    assert_eq!(
        session.types("echo $?; pwd; echo no >&2"),
        ["1", "~/a", "no"]
    );
}
