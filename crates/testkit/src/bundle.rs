//! A bundle as any stranger reads it: files and JSON, no types of the project.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

pub struct Bundle {
    pub dir: PathBuf,
}

impl Bundle {
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn run_id(&self) -> String {
        self.dir.file_name().unwrap().to_string_lossy().into_owned()
    }

    pub fn has(&self, name: &str) -> bool {
        self.dir.join(name).is_file()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.join(name))
            .unwrap_or_else(|error| panic!("{name} of {}: {error}", self.dir.display()))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn report(&self) -> Value {
        self.json("report.json")
    }

    pub fn lines(&self, name: &str) -> Vec<Value> {
        self.text(name)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn events(&self) -> Vec<Value> {
        self.lines("events.normalized.jsonl")
    }

    pub fn event_types(&self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| event["type"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The data of the first event of a type.
    pub fn event(&self, name: &str) -> Option<Value> {
        self.events()
            .into_iter()
            .find(|event| event["type"] == name)
            .map(|event| event["data"].clone())
    }

    /// Actions of the trace, in order.
    pub fn actions(&self) -> Vec<String> {
        self.lines("trace.jsonl")
            .iter()
            .map(|line| line["action"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub fn status(&self) -> String {
        self.report()["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Blocker codes, in order.
    pub fn codes(&self) -> Vec<String> {
        let report = self.report();
        let blockers = report["blockers"].as_array().unwrap();
        blockers
            .iter()
            .map(|blocker| blocker["code"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub fn has_code(&self, code: &str) -> bool {
        self.codes().iter().any(|found| found == code)
    }

    pub fn changed_files(&self) -> Vec<String> {
        let report = self.report();
        let files = report["changed_files"].as_array().unwrap();
        files
            .iter()
            .map(|file| file.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Names of every file, sorted.
    pub fn names(&self) -> Vec<String> {
        files_below(&self.dir)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    /// Does any file hold these bytes?
    pub fn anywhere(&self, needle: &str) -> Vec<String> {
        let holds = |name: &String| {
            self.bytes(name)
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        };
        self.names().into_iter().filter(holds).collect()
    }
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Every entry below a directory that is not a directory, with a digest of its content or link
/// text.
pub fn files_below(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() {
                found.push((name, sha256_hex(&fs::read(&path).unwrap_or_default())));
            } else {
                found.push((name, format!("{kind:?}")));
            }
        }
    }
    found.sort();
    found
}

pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), &target).unwrap()),
        }
    }
}
