//! An engine's own folder in its workspace: files written there before it starts, and hidden from its git. Scratch by
//! name: in neither the tree it starts from nor any object of git.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cto_core::engine::manifest::{Invocation, fill};
use cto_core::values::blocker::Code;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::Tree;

use crate::run::execution::Stop;

/// Lays out what the manifest has for the workspace. `changed` is where everything lies that differs from the
/// baseline; nothing of the engine runs yet, but a setup of the repository's may have.
pub fn lay_out(
    invocation: &Invocation,
    baseline: &Tree,
    changed: &Path,
    values: &BTreeMap<&'static str, String>,
) -> Result<(), Stop> {
    if invocation.workspace_files.is_empty() {
        return Ok(());
    }
    let own = &invocation.workspace_scratch;
    let tracked = |path: &&TreePath| own.iter().any(|rule| rule.covers(path));
    if let Some(path) = baseline.keys().find(tracked) {
        return Err(taken(format!(
            "the repository tracks {path}, and this engine keeps its own files there"
        )));
    }
    for rule in own {
        let top = rule.as_str().split('/').next().unwrap_or_default();
        if fs::symlink_metadata(changed.join(top)).is_ok() {
            return Err(taken(format!(
                "setup made {top}, and this engine keeps its own files there"
            )));
        }
    }
    write_files(invocation, changed, values)
        .and_then(|()| hide_from_git(invocation, changed))
        .map_err(Stop::Workspace)
}

fn taken(detail: String) -> Stop {
    Stop::LateGate {
        gate: "contract",
        code: Code::ContractInvalid,
        detail,
    }
}

fn write_files(
    invocation: &Invocation,
    changed: &Path,
    values: &BTreeMap<&'static str, String>,
) -> io::Result<()> {
    // A token belongs to the environment: no file is ever given one.
    let mut values = values.clone();
    values.remove("token");
    for file in &invocation.workspace_files {
        let path = changed.join(fill::template(&file.path, &values));
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let text = fill::file(file.format, &file.text, &values);
        let mut target = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&path)?;
        target.write_all(text.trim_start_matches('\n').as_bytes())?;
    }
    Ok(())
}

/// Through `info/exclude`, which the jail makes read-only: an ignore file would be a change of the tree.
fn hide_from_git(invocation: &Invocation, changed: &Path) -> io::Result<()> {
    let mut place = changed.to_owned();
    for name in [".git", "info"] {
        place.push(name);
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                return Err(io::Error::other(
                    "the workspace has no git directory of its own",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&place)?,
            Err(error) => return Err(error),
        }
    }
    let exclude = place.join("exclude");
    // Whatever it is, it is not written through.
    match fs::remove_file(&exclude) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let rules = invocation.workspace_scratch.iter();
    // What is in the folder, not the folder: with that, `git add -A -- ':!.case/'` fails and adds nothing.
    let lines = rules.map(|rule| match rule.as_str() {
        dir if dir.ends_with('/') => format!("/{dir}*\n"),
        file => format!("/{file}\n"),
    });
    let lines: String = lines.collect();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(exclude)?;
    file.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::engine::manifest::Manifest;
    use cto_core::values::digest::Digest;
    use cto_core::workspace::tree::{Entry, FileKind};

    fn case() -> Invocation {
        let text = include_str!("../../../../../engines/case.toml");
        Manifest::parse("case.toml", text)
            .unwrap()
            .invocation
            .unwrap()
    }

    fn values() -> BTreeMap<&'static str, String> {
        [
            "attempt",
            "workspace",
            "task",
            "title",
            "verification",
            "now",
            "token",
        ]
        .map(|name| (name, format!("{name}-value")))
        .into()
    }

    #[test]
    fn files_are_there_and_hidden_and_hold_no_token() {
        let dir = tempfile::tempdir().unwrap();
        lay_out(&case(), &Tree::new(), dir.path(), &values()).unwrap();
        let task = dir
            .path()
            .join(".case/tasks/active/attempt-value.task.json");
        let task: serde_json::Value = serde_json::from_slice(&fs::read(task).unwrap()).unwrap();
        assert_eq!(
            (&task["status"], &task["id"]),
            (&"active".into(), &"attempt-value".into())
        );
        let page = dir.path().join(".case/tasks/active/attempt-value.md");
        assert_eq!(fs::read_to_string(page).unwrap(), "task-value");
        let exclude = fs::read_to_string(dir.path().join(".git/info/exclude")).unwrap();
        assert_eq!(exclude, "/.case/*\n");
    }

    #[test]
    fn a_repository_or_a_setup_that_has_the_folder_is_refused() {
        let entry = Entry {
            kind: FileKind::Regular,
            bytes: 0,
            sha256: Digest::of(b""),
        };
        let tracked = Tree::from([(TreePath::new(".case/x"), entry)]);
        let dir = tempfile::tempdir().unwrap();
        let refused = |baseline: &Tree| match lay_out(&case(), baseline, dir.path(), &values()) {
            Err(Stop::LateGate { code, detail, .. }) => (code, detail),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&tracked).0, Code::ContractInvalid);
        std::os::unix::fs::symlink("/nowhere", dir.path().join(".case")).unwrap();
        assert!(refused(&Tree::new()).1.contains("setup made .case"));
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/nowhere", other.path().join(".git")).unwrap();
        assert!(lay_out(&case(), &Tree::new(), other.path(), &values()).is_err());
    }
}
