//! What else `cto exec` is told: variables, a `/tmp` that stays, a home below the system or under
//! another name.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use cto_testkit::{is_root, skip};

use super::shown::{SECRET, assert_refused, own, put, said};
use crate::fixtures::people::{UNPRIVILEGED, people};

#[test]
fn a_secret_among_the_variables_is_named_as_one() {
    for person in people() {
        for (name, value) in [
            ("OPENAI_API_KEY", "x"),
            ("PLAIN", "ghp_0123456789abcdefghij0123"),
            ("DATABASE_URL", "postgres://me:word@host/db"),
        ] {
            let run = |flag: &str| {
                let line = format!("echo \"[${name}]\"");
                let mut command = person.command(&["exec", flag, name, "--", "sh", "-c", &line]);
                command.env(name, value).output().unwrap()
            };
            let output = run("--env");
            assert!(
                !said(&output).contains(value) || value == "x",
                "{}",
                said(&output)
            );
            assert_refused(&person, &output, "secret_variable", "--env-secret");
            assert_eq!(
                run("--env-secret").stdout,
                format!("[{value}]\n").as_bytes()
            );
        }
    }
}

#[test]
fn a_private_tmp_is_kept_between_calls() {
    for person in people() {
        // Not below /tmp, which is what is kept.
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["t", "ws"] {
            let dir = place.path().join(name);
            fs::create_dir(&dir).unwrap();
            let owner = person.as_user.then(|| UNPRIVILEGED.parse().unwrap());
            std::os::unix::fs::chown(&dir, owner, owner).unwrap();
        }
        let path = |name: &str| place.path().join(name).display().to_string();
        let (kept, ws) = (path("t"), path("ws"));
        let run = |line: &str| {
            let shell = ["--", "sh", "-c", line];
            person.cto(&[&["exec", "--tmp", &kept, "--workspace", &ws], &shell[..]].concat())
        };
        let output = run("echo once > /tmp/kept && mktemp && pwd");
        assert!(
            output.status.success(),
            "{}: {}",
            person.name,
            said(&output)
        );
        assert_eq!(run("cat /tmp/kept").stdout, b"once\n", "{}", person.name);
        assert_ne!(person.jailed("cat /tmp/kept").0, Some(0), "{}", person.name);
        use std::os::unix::fs::MetadataExt;
        let owner = |name: &str| place.path().join(name).metadata().unwrap().uid();
        assert_eq!(owner("t/kept"), owner("t"), "{}", person.name);
        let home = person.at("home").display().to_string();
        let output = person.cto(&["exec", "--tmp", &home, "--", "true"]);
        assert_refused(&person, &output, "state_exposed", "");
        let below = tempfile::tempdir_in("/tmp").unwrap();
        let owner = person.as_user.then(|| UNPRIVILEGED.parse().unwrap());
        std::os::unix::fs::chown(below.path(), owner, owner).unwrap();
        let ws = below.path().display().to_string();
        let output = person.cto(&["exec", "--tmp", &kept, "--workspace", &ws, "--", "true"]);
        assert_refused(&person, &output, "bad_path", "/tmp");
    }
}

#[test]
fn there_is_no_jail_while_home_or_state_lies_in_the_system() {
    for person in people() {
        for variable in ["HOME", "CTO_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            for place in [
                "/usr/share/none-here",
                "/usr/src/app",
                "/etc/ssl/certs/none-here",
            ] {
                let mut command = person.command(&["exec", "--", "true"]);
                let output = command.env(variable, place).output().unwrap();
                assert_refused(&person, &output, "state_exposed", place);
            }
        }
    }
}

#[test]
fn a_tmp_that_is_refused_is_not_made() {
    for person in people() {
        fs::create_dir_all(person.at("ws/sub")).unwrap();
        symlink(person.at("home/.ssh"), person.at("ws/link")).unwrap();
        own(&person, "ws");
        for path in [
            "home/.config/cto/tmp",
            "home/.local/state/cto/tmp",
            "ws/link/tmp",
        ] {
            let place = person.at(path).display().to_string();
            let output = person.cto(&["exec", "--tmp", &place, "--", "true"]);
            assert_eq!(output.status.code(), Some(125), "{}", said(&output));
            assert!(!person.at(path).exists(), "{}: {path}", person.name);
        }
    }
}

#[test]
fn a_bind_mount_of_state_or_home_is_seen_for_what_it_is() {
    if !is_root() {
        return skip("only root can mount");
    }
    for person in people() {
        put(&person, "home/.local/state/cto/keys/k", SECRET);
        own(&person, "home");
        fs::create_dir_all(person.at("outside/mnt/k")).unwrap();
        own(&person, "outside");
        for (of, shown) in [
            ("home/.local/state/cto/keys", "outside/mnt/k"),
            ("home/.local/state/cto/keys", "outside/mnt"),
            ("home", "outside/mnt/k"),
            ("home", "outside"),
            ("home/.local", "outside/mnt"),
        ] {
            let (of, at) = (person.at(of), person.at("outside/mnt/k"));
            let inner = person.command(&["exec", "--ro"]);
            let mut words: Vec<String> = vec![inner.get_program().to_string_lossy().into()];
            words.extend(
                inner
                    .get_args()
                    .map(|arg| arg.to_string_lossy().into_owned()),
            );
            let shown = person.at(shown).display().to_string();
            let line = format!(
                "mount --bind {} {} && exec {} {shown} -- cat {}/k",
                of.display(),
                at.display(),
                words.join(" "),
                at.display()
            );
            let mut command = std::process::Command::new("unshare");
            command
                .args(["-m", "sh", "-c", &line])
                .current_dir(person.at("ws"));
            command
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("HOME", person.at("home"));
            assert_refused(&person, &command.output().unwrap(), "state_exposed", "");
        }
    }
}
