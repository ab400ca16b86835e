//! What else `cto exec` is told: variables, and a `/tmp` that stays.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::shown::{assert_refused, said};
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
        let output = person.cto(&["exec", "--tmp", &kept, "--", "true"]);
        assert_refused(&person, &output, "bad_path", "/tmp");
    }
}
