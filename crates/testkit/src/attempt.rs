//! `cto try` as tests type it: what a test does not say has a value that fits [`Repo::new`].

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bundle::Bundle;
use crate::house::{Answer, House};
use crate::repo::Repo;

/// Green once the answer of [`Repo::new`] is right.
const TEST: &str = "grep -qx right answer.txt";

impl House {
    /// A try on a repository by a scripted engine that plays these steps, not started yet.
    pub fn try_command(&self, repo: &Repo, steps: &str, more: &[&str]) -> Command {
        // A name of its own: a try that was started before may be about to read its script.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let script = self.script(&format!("try-{number}"), steps);
        let mut command = self.command(&["try"]);
        for (flag, value) in [
            ("--repo", repo.path()),
            ("--task", "Make the answer right"),
            ("--allow", "answer.txt"),
            ("--test", TEST),
            ("--script", &script),
        ] {
            if !more.contains(&flag) {
                command.args([flag, value]);
            }
        }
        command.args(more);
        command
    }

    /// The same, started and left running, its output thrown away.
    pub fn start_try(&self, repo: &Repo, steps: &str, more: &[&str]) -> Child {
        let mut command = self.try_command(repo, steps, more);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// The same, run to its end, and the bundle it left.
    pub fn try_on(&self, repo: &Repo, steps: &str, more: &[&str]) -> (Answer, Bundle) {
        let mut command = self.try_command(repo, steps, more);
        Answer::of(&command.arg("--json").output().unwrap()).with_bundle()
    }
}
