//! `cto setup` with the real binary: from an agent and an endpoint to proven stages, at a terminal
//! and in a script, as whoever runs the tests and as an ordinary user.
//!
//! - this file: the lab; `scripts.rs` by flags; `terminal.rs` at a terminal; `real_pi.rs` with the real agent

mod real_pi;
mod scripts;
mod terminal;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Child;

use cto_testkit::{Answer, wait_until};

use crate::fixtures::people::{Person, UNPRIVILEGED};

/// A scripted model in a person's own place; ended when dropped.
struct Endpoint {
    child: Child,
    url: String,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn endpoint(person: &Person, name: &str, scenario: &str) -> Endpoint {
    let at = |end: &str| person.at(&format!("ws/{name}{end}"));
    put(person, &format!("ws/{name}.toml"), scenario, 0o644);
    let _ = fs::remove_file(at(".port"));
    let text = |path: PathBuf| path.display().to_string();
    let child = person
        .command(&[
            "__model",
            &text(at(".toml")),
            "--port-file",
            &text(at(".port")),
        ])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_until(|| at(".port").exists()), "it does not listen");
    let port = fs::read_to_string(at(".port")).unwrap();
    Endpoint {
        child,
        url: format!("http://127.0.0.1:{port}/v1"),
    }
}

/// A file of the person's own.
fn put(person: &Person, name: &str, text: &str, mode: u32) -> String {
    let path = person.at(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    own(person, &path);
    own(person, path.parent().unwrap());
    path.display().to_string()
}

fn own(person: &Person, path: &Path) {
    if person.as_user {
        let owner = UNPRIVILEGED.parse().unwrap();
        chown(path, Some(owner), Some(owner)).unwrap();
    }
}

/// A program that says it is codex, which this version does not start: all but stage 2 can be seen.
fn codex(person: &Person) -> String {
    put(
        person,
        "ws/bin/codex",
        "#!/bin/sh\necho 'codex 1.2.3'\n",
        0o755,
    )
}

fn records(person: &Person, engine: &str) -> Vec<String> {
    let dir = person.at(&format!("home/state/records/{engine}"));
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort();
    names
}

/// Does any file of the person's home hold this?
fn held(person: &Person, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![person.at("home")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                pending.push(path);
            } else if fs::read(&path)
                .unwrap_or_default()
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                found.push(path);
            }
        }
    }
    found
}

/// A setup without a terminal.
fn by_flags(person: &Person, args: &[&str], variables: &[(&str, &str)]) -> Answer {
    let mut command = person.command(&[&["setup"], args].concat());
    command.env("CTO_STATE_DIR", person.at("home/state"));
    command.envs(variables.iter().copied());
    Answer::of(&command.output().unwrap())
}
