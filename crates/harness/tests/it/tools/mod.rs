//! The programs a run is shown: found as in the operator's own shell, named by flag, or refused; and
//! what that never shows.

mod asked;
mod missing;
mod named;
mod search;
mod started;
mod versions;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cto_testkit::{Answer, Bundle, House, Repo, script, write};

use crate::house;

/// A repository whose `answer` has to become 2, in a house with a home to install things in.
pub struct Lab {
    pub house: House,
    pub repo: Repo,
    /// What `fake` plays.
    pub change: String,
}

impl Lab {
    pub fn new() -> Self {
        Self::of(house())
    }

    pub fn of(house: House) -> Self {
        let repo = Repo::new(&house, "project");
        repo.write(".gitignore", "/.venv/\n/node_modules/\n__pycache__/\n");
        repo.write("answer", "1\n");
        repo.commit("a bug");
        let change = house.script("two", &script(&[write("answer", "2\n")]));
        Self {
            house,
            repo,
            change,
        }
    }

    pub fn home(&self, path: &str) -> PathBuf {
        self.house.root().join("home").join(path)
    }

    /// A program in the home, with the directories it needs.
    pub fn program(&self, path: &str, text: &str) -> PathBuf {
        let place = self.home(path);
        executable(&place, text);
        place
    }

    /// A run of one test command by somebody with this PATH before the system's.
    pub fn run(&self, dirs: &[&Path], test: &str, more: &[&str]) -> (Answer, Bundle) {
        let answer = self.cto(dirs, test, more, &[]);
        let dir = answer.json()["bundle"].as_str().map(PathBuf::from);
        let dir = dir.unwrap_or_else(|| panic!("no bundle: {answer:?}"));
        (answer, Bundle::at(dir))
    }

    pub fn cto(
        &self,
        dirs: &[&Path],
        test: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Answer {
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(Path::new);
        let path = std::env::join_paths(dirs.iter().copied().chain(system)).unwrap();
        let words = [
            "try",
            "--repo",
            self.repo.path(),
            "--task",
            "Two",
            "--allow",
            "answer",
            "--script",
            &self.change,
            "--json",
            "--test",
            test,
        ];
        let mut command = self.house.command(&[&words[..], more].concat());
        command.env("PATH", path);
        command.envs(variables.iter().copied());
        Answer::of(&command.output().unwrap())
    }

    /// The same, and it passes.
    pub fn passes(&self, dirs: &[&Path], test: &str, more: &[&str]) -> Bundle {
        let (answer, bundle) = self.run(dirs, test, more);
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(0), "{test}: {} {log}", answer.stderr);
        bundle
    }

    /// The same, and it is blocked for want of a program, with these words.
    pub fn blocked(&self, dirs: &[&Path], test: &str, more: &[&str], words: &[&str]) -> Bundle {
        let (answer, bundle) = self.run(dirs, test, more);
        assert_eq!(answer.code, Some(3), "{test}: {answer:?}");
        assert_eq!(bundle.codes(), ["toolchain_unavailable"], "{test}");
        let said = bundle.report()["blockers"][0]["detail"].to_string();
        for word in words {
            assert!(said.contains(word), "{test}: {word}: {said}");
        }
        bundle
    }
}

pub fn executable(place: &Path, text: &str) {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text).unwrap();
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A check that is green when the answer is 2.
pub const CHECK: &str = "#!/bin/sh\ngrep -q 2 answer\n";
