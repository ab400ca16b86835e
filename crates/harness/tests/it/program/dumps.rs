//! No core dump of a process that may hold a secret.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use cto_testkit::wait_until;

use crate::fixtures::people::people;

const KEY: &str = "sk-held-in-memory-and-nowhere-else";

/// What the kernel says about a process: the limit of its dumps.
fn core_limit(child: &Child) -> String {
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap_or_default();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    line.unwrap_or_default()
        .split_whitespace()
        .skip(4)
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_process_that_holds_a_key_leaves_no_dump() {
    for person in people() {
        let inner = person.command(&["exec", "--", "sleep", "60"]);
        // As much as the system allows, so that only the program itself can say no.
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -S -c $(ulimit -H -c); exec \"$@\"", "sh"])
            .arg(inner.get_program())
            .args(inner.get_args())
            .env_clear()
            .envs(
                inner
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("OPENAI_API_KEY", KEY)
            .current_dir(person.at("ws"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // A process that is not dumpable has root's `/proc`, whoever runs it.
        let owner = || {
            let place = format!("/proc/{}/environ", child.id());
            fs::metadata(place).map(|meta| meta.uid()).ok()
        };
        let closed = wait_until(|| {
            ["1 1", "0 0"].contains(&core_limit(&child).as_str()) && owner() == Some(0)
        });
        assert!(
            closed,
            "{}: {} {:?}",
            person.name,
            core_limit(&child),
            owner()
        );
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(6), "{}: {status:?}", person.name);
        assert!(!status.core_dumped(), "{}: {status:?}", person.name);
        for entry in fs::read_dir(person.at("ws")).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().contains("core"), "{name:?}");
        }
    }
}
