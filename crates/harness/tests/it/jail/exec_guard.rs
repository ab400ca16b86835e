//! `cto exec` works in a directory of the operator's own: nothing in it that gives orders to git,
//! agents or editors is changed by the command, and nothing of the kind is left behind by it.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::shown::said;
use crate::fixtures::people::{Person, UNPRIVILEGED, people};

/// A repository with a nested one, as the person's own.
struct OwnRepository {
    person: Person,
    _place: tempfile::TempDir,
    root: PathBuf,
}

impl OwnRepository {
    fn of(person: Person) -> Self {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = place.path().join("work");
        for dir in ["", "deep/er/nested"] {
            let dir = root.join(dir);
            fs::create_dir_all(&dir).unwrap();
            assert!(git(&dir, &["init", "-q"]).success());
        }
        let own = Self {
            person,
            _place: place,
            root,
        };
        own.hand_over();
        own
    }

    fn hand_over(&self) {
        let above = self.root.parent().unwrap();
        let mode = Command::new("chmod").arg("755").arg(above).status();
        assert!(mode.unwrap().success());
        if self.person.as_user {
            let owner = format!("{UNPRIVILEGED}:{UNPRIVILEGED}");
            let mut chown = Command::new("chown");
            let given = chown.args(["-R", &owner]).arg(&self.root).status();
            assert!(given.unwrap().success());
        }
    }

    fn exec(&self, flags: &[&str], line: &str) -> std::process::Output {
        let workspace = self.root.display().to_string();
        let start = ["exec", "--workspace", &workspace];
        let shell = ["--", "sh", "-c", line];
        self.person.cto(&[&start[..], flags, &shell[..]].concat())
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }

    fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }
}

fn git(dir: &Path, args: &[&str]) -> std::process::ExitStatus {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "-c", "user.name=n"]);
    command.args(["-c", "user.email=e@example.org"]);
    command.args(args).current_dir(dir).status().unwrap()
}

fn repositories() -> impl Iterator<Item = OwnRepository> {
    people().into_iter().map(OwnRepository::of)
}

#[test]
fn what_git_takes_orders_from_cannot_be_changed() {
    for own in repositories() {
        let config = own.read(".git/config");
        let nested = own.read("deep/er/nested/.git/config");
        for (line, planted) in [
            ("echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
            (
                "rm -r .git/hooks; mkdir -p .git/hooks; echo x > .git/hooks/x",
                ".git/hooks/x",
            ),
            ("git config core.fsmonitor evil", ".git/config.lock"),
            ("echo '[core] fsmonitor=evil' >> .git/config", "-"),
            ("mv .git old; mkdir .git", "old"),
            (
                "echo '[core] fsmonitor=evil' >> deep/er/nested/.git/config",
                "-",
            ),
            ("mv deep/er d; mkdir -p deep/er/nested/.git", "deep/d"),
            ("mv deep d2; mkdir -p deep/er/nested/.git", "d2"),
            ("mkdir evil; echo ../evil > .git/commondir", "-"),
            (
                "echo '* filter=x' > .git/info/attributes",
                ".git/info/attributes",
            ),
        ] {
            let output = own.exec(&[], line);
            assert!(!own.has(planted), "{line}: {}", said(&output));
            assert_eq!(own.read(".git/config"), config, "{line}");
            assert_eq!(own.read("deep/er/nested/.git/config"), nested, "{line}");
            assert!(!own.has(".git/commondir"), "{line}: a stand-in was left");
        }
    }
}

#[test]
fn honest_work_with_git_stays_possible() {
    for own in repositories() {
        let who = "-c user.name=n -c user.email=e@example.org";
        let line = format!("echo x > f && git add f && git {who} commit -q -m m && git status");
        let output = own.exec(&[], &line);
        assert!(output.status.success(), "{}", said(&output));
        assert!(!said(&output).contains("held back"), "{}", said(&output));
        assert!(git(&own.root, &["rev-parse", "-q", "HEAD"]).success());
    }
}

#[test]
fn what_came_up_is_put_aside_and_named() {
    for own in repositories() {
        let line = "echo {} > .mcp.json; mkdir -p .claude a/b .vscode; echo {} > .claude/s.json; \
                    echo {} > a/b/.MCP.json; echo {} > .vscode/tasks.json; \
                    git init -q a/new; git init -q --bare a/bare; echo x > fine.txt; exit 7";
        let output = own.exec(&[], line);
        assert_eq!(output.status.code(), Some(7), "{}", said(&output));
        for name in [
            ".mcp.json",
            ".claude",
            "a/b/.MCP.json",
            ".vscode/tasks.json",
            "a/new/.git",
            "a/bare/HEAD",
        ] {
            assert!(!own.has(name), "{name}: {}", said(&output));
            assert!(own.has(&format!("{name}.held")), "{name}");
            assert!(
                said(&output).contains(&format!("held back: {name}")),
                "{name}"
            );
        }
        assert!(own.has("fine.txt") && own.has(".vscode"));
        // A second time nothing is overwritten.
        own.exec(&[], "echo second > .mcp.json");
        assert_eq!(own.read(".mcp.json.held"), "{}\n");
        assert_eq!(own.read(".mcp.json.held-2"), "second\n");
    }
}

#[test]
fn configuration_that_was_there_stays_as_it_was() {
    for own in repositories() {
        fs::create_dir_all(own.root.join("sub/.claude")).unwrap();
        for name in [".mcp.json", "sub/.claude/settings.json"] {
            fs::write(own.root.join(name), "mine").unwrap();
        }
        own.hand_over();
        for line in [
            "echo evil > .mcp.json; rm -f .mcp.json",
            "mv .mcp.json x; echo evil > .mcp.json",
            "rm -rf sub/.claude; mv sub other; mkdir -p sub/.claude; echo evil > sub/.claude/settings.json",
        ] {
            let output = own.exec(&[], line);
            for name in [".mcp.json", "sub/.claude/settings.json"] {
                assert_eq!(own.read(name), "mine", "{line}: {}", said(&output));
            }
        }
        let output = own.exec(&["--no-guard"], "echo evil > .mcp.json");
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(own.read(".mcp.json"), "evil\n");
    }
}

#[test]
fn a_socket_in_the_workspace_leads_nowhere() {
    for own in repositories() {
        let path = own.root.join("deep/agent.sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mode = Command::new("chmod").arg("777").arg(&path).status();
        assert!(mode.unwrap().success());
        let connect = "import socket; socket.socket(socket.AF_UNIX).connect('deep/agent.sock')";
        let output = own.exec(&[], &format!("python3 -c \"{connect}\""));
        assert!(!output.status.success(), "{}", said(&output));
        assert!(listener.accept().is_err(), "{}", own.person.name);
    }
}
