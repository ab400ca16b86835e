//! The jail, tried for real: as root and as an ordinary user, by the same tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cto_testkit::{skip, wait_until};

use crate::fixtures::people::{Person, alive, people};

#[test]
fn codes_are_passed_on() {
    for person in people() {
        for (line, code) in [
            ("exit 0", 0),
            ("exit 7", 7),
            ("kill -9 $$", 137),
            ("kill -TERM $$", 143),
        ] {
            assert_eq!(person.jailed(line).0, Some(code), "{}: {line}", person.name);
        }
        assert_eq!(
            person
                .cto(&["exec", "--", "surely-not-there"])
                .status
                .code(),
            Some(127),
            "{}",
            person.name
        );
        assert_eq!(
            person
                .cto(&["exec", "--workspace", "/nonexistent", "--", "true"])
                .status
                .code(),
            Some(125),
            "{}",
            person.name
        );
    }
}

#[test]
fn the_workspace_is_writable_and_stays_its_owners() {
    for person in people() {
        let (code, text) =
            person.jailed("echo hi > made && mkdir d && mv made d/moved && cat d/moved");
        assert_eq!((code, text.as_str()), (Some(0), "hi\n"), "{}", person.name);
        let (made, dir) = (
            person.at("ws/d/moved").metadata().unwrap(),
            person.at("ws").metadata().unwrap(),
        );
        assert_eq!(
            std::os::unix::fs::MetadataExt::uid(&made),
            std::os::unix::fs::MetadataExt::uid(&dir),
            "{}",
            person.name
        );
    }
}

#[test]
fn nothing_else_of_the_host_is_there() {
    for person in people() {
        fs::write(person.at("outside/secret"), "secret").unwrap();
        let outside = person.at("outside").display().to_string();
        for line in [
            format!("cat {outside}/secret"),
            format!("touch {outside}/x"),
            format!("ls {}", person.at("home").display()),
            "touch /usr/x".into(),
            "touch /etc/x".into(),
            "touch /x".into(),
            "cat /etc/shadow".into(),
            "ls /root /home /var /sys /run/user".into(),
            "cat /proc/sys/kernel/hostname".into(),
            "echo x > /proc/sysrq-trigger && cat /proc/sysrq-trigger /nonexistent".into(),
            "mknod n c 1 3".into(),
            "chmod u+s .".into(),
            "mount -t tmpfs t /tmp".into(),
            "unshare -U true".into(),
        ] {
            let (code, text) = person.jailed(&line);
            assert_ne!(code, Some(0), "{}: {line}: {text}", person.name);
        }
        assert!(!person.at("outside/x").exists());
        let (_, env) = person.jailed("env; id -u; hostname; ls /proc | grep -c '^[0-9]'");
        assert!(
            !env.contains("do-not-show-me") && !env.lines().any(|line| line == "0"),
            "{}: {env}",
            person.name
        );
        assert!(env.contains("\ncto\n"), "{}: {env}", person.name);
    }
}

#[test]
fn declared_paths_are_there_and_no_more() {
    for person in people() {
        fs::write(person.at("outside/file"), "shown").unwrap();
        let outside = person.at("outside").display().to_string();
        let file = format!("{outside}/file");
        let ro = person.cto(&["exec", "--ro", &file, "--", "cat", &file]);
        assert_eq!(ro.stdout, b"shown", "{}", person.name);
        let write = format!("echo x > {file}");
        assert_ne!(
            person
                .cto(&["exec", "--ro", &outside, "--", "sh", "-c", &write])
                .status
                .code(),
            Some(0),
            "{}",
            person.name
        );
        let allowed = format!("echo x > {outside}/new");
        let output = person.cto(&["exec", "--allow", &outside, "--", "sh", "-c", &allowed]);
        assert!(output.status.success(), "{}: {output:?}", person.name);
        let env = person.cto(&[
            "exec",
            "--env-secret",
            "SECRET_THING",
            "--",
            "sh",
            "-c",
            "echo $SECRET_THING",
        ]);
        assert_eq!(
            env.stdout, b"do-not-show-me-123\n",
            "{}: named on purpose",
            person.name
        );
        assert_eq!(
            person
                .cto(&["exec", "--env", "NOT_SET", "--", "true"])
                .status
                .code(),
            Some(125)
        );
    }
}

#[test]
fn the_harness_state_is_never_shown() {
    for person in people() {
        fs::create_dir_all(person.at("home/.local/state/cto")).unwrap();
        for flag in ["--workspace", "--ro", "--allow"] {
            for path in ["home", "home/.local/state/cto", ""] {
                let place = person.at(path).display().to_string();
                let output = person.cto(&["exec", flag, &place, "--", "true"]);
                assert_eq!(
                    output.status.code(),
                    Some(125),
                    "{}: {flag} {path:?}",
                    person.name
                );
                assert!(
                    String::from_utf8_lossy(&output.stderr).contains("state_exposed"),
                    "{}",
                    person.name
                );
            }
        }
    }
}

#[test]
fn standard_streams_work() {
    use std::io::Write;
    for person in people() {
        // Reopening a pipe needs its owner, and here the other person's pipes are ours.
        let line = if person.as_user {
            "cat; echo out; echo err >&2"
        } else {
            "cat; echo out > /dev/stdout; echo err > /dev/stderr"
        };
        let mut child = person
            .command(&["exec", "--", "sh", "-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"in\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"in\nout\n"[..], &b"err\n"[..]),
            "{}",
            person.name
        );
    }
}

#[test]
fn the_door_leads_out_and_nothing_else_does() {
    let script = "import os,socket,sys\n\
        host,port=os.environ['CTO_DOOR'].split(':')\n\
        assert os.environ['CTO_DOOR_URL']==f'http://{host}:{port}/v1'\n\
        s=socket.create_connection((host,int(port)));s.sendall(b'ping');print(s.recv(9).decode())\n\
        for target in [('192.0.2.1',9),('127.0.0.1',1)]:\n\
        \ttry: socket.create_connection(target,1); print('REACHED',target)\n\
        \texcept OSError: pass\n";
    for person in people() {
        let output = person.cto(&["__echo-door", "python3", "-c", script]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "ping\n",
            "{}: {output:?}",
            person.name
        );
    }
}

#[test]
fn a_bundle_that_may_not_be_read_is_said_so() {
    let people: Vec<Person> = people().into_iter().filter(|p| p.as_user).collect();
    if people.is_empty() {
        skip("only root can become another user");
    }
    for person in people {
        fs::create_dir(person.at("closed")).unwrap();
        fs::set_permissions(person.at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let output = person.cto(&["verify", &person.at("closed").display().to_string()]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("unreadable_bundle"),
            "{output:?}"
        );
    }
}

#[test]
fn children_that_hide_in_sessions_end_with_the_command() {
    for person in people() {
        let word = format!(
            "7531.{}",
            person.at("").display().to_string().len() + usize::from(person.as_user) * 1000
        );
        let line = format!("for i in 1 2 3 4 5; do setsid sleep {word} & done; sleep 0.1; exit 3");
        assert_eq!(person.jailed(&line).0, Some(3), "{}", person.name);
        assert_eq!(alive(&word), 0, "{}", person.name);
    }
}

#[test]
fn killing_the_harness_ends_everything_inside() {
    for (index, person) in people().into_iter().enumerate() {
        let word = format!("864{index}.25");
        let line = format!(
            "trap '' TERM HUP INT; for i in 1 2 3; do setsid sleep {word} & done; sleep {word}"
        );
        let mut child = person
            .command(&["exec", "--", "sh", "-c", &line])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(
            wait_until(|| alive(&word) >= 4),
            "{}: nothing started",
            person.name
        );
        // `setpriv` replaces itself, so the child is the harness either way.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            wait_until(|| alive(&word) == 0),
            "{}: {} left",
            person.name,
            alive(&word)
        );
    }
}

#[test]
fn many_jails_leave_nothing_behind() {
    // A mount that leaked out of a jail would lie where the jail built its root; others come and go
    // with other tests.
    let of_a_jail = |point: &str| {
        ["/tmp/usr", "/tmp/proc", "/tmp/dev", "/tmp/etc"]
            .iter()
            .any(|dir| point.starts_with(dir))
            || point == "/tmp"
    };
    let mounts = || {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .filter(|point| of_a_jail(point))
            .count()
    };
    let temps = || {
        fs::read_dir(std::env::temp_dir())
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().contains("canary"))
            .count()
    };
    let before = (mounts(), temps());
    for person in people() {
        for _ in 0..10 {
            assert_eq!(person.jailed("true").0, Some(0), "{}", person.name);
        }
        let children: Vec<_> = (0..8)
            .map(|_| {
                person
                    .command(&["exec", "--", "sh", "-c", "sleep 0.2"])
                    .spawn()
                    .unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "{}", person.name);
        }
    }
    assert_eq!((mounts(), temps()), before);
}

#[test]
fn a_run_says_what_contained_it() {
    for person in people() {
        let output = person.cto(&["run", "--json"]);
        assert!(output.status.success(), "{}: {output:?}", person.name);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["report"]["containment"], "strict", "{}", person.name);
        let bundle = PathBuf::from(answer["bundle"].as_str().unwrap());
        let shown: serde_json::Value =
            serde_json::from_slice(&fs::read(bundle.join("containment.json")).unwrap()).unwrap();
        assert_eq!(
            (&shown["enforced"], &shown["survivors"]),
            (&"strict".into(), &0.into()),
            "{}",
            person.name
        );
        assert!(
            shown["processes"].as_array().unwrap().len() >= 3,
            "engine, check and control: {}",
            person.name
        );
        for file in ["test.log", "backend/stdout.log"] {
            let text = fs::read_to_string(bundle.join(file)).unwrap();
            assert!(
                !text.contains(person.at("").to_str().unwrap().trim_end_matches('/')),
                "{}: {file} names a path of the host",
                person.name
            );
        }
    }
}

/// As root the jail's processes are somebody else: what is made for them must be theirs to read, also where the
/// operator's files are for nobody.
#[test]
fn a_jail_is_built_under_any_umask_and_what_runs_there_keeps_it() {
    for person in people() {
        let closed = |args: &[&str]| {
            let plain = person.command(args);
            let envs = plain.get_envs();
            let mut closed = Command::new("sh");
            closed
                .args(["-c", "umask 077; exec \"$@\"", "sh"])
                .arg(plain.get_program())
                .args(plain.get_args())
                .env_clear()
                .envs(envs.filter_map(|(name, value)| Some((name, value?))))
                .current_dir(person.at("ws"))
                .stdin(Stdio::null());
            closed.output().unwrap()
        };
        let line = "cat /etc/passwd > /dev/null && umask";
        let output = closed(&["exec", "--", "sh", "-c", line]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {said}", person.name);
        let inside = String::from_utf8_lossy(&output.stdout);
        assert_eq!(inside.trim(), "0077", "{}", person.name);
        let run = closed(&["run"]);
        let said = String::from_utf8_lossy(&run.stdout);
        assert_eq!(run.status.code(), Some(0), "{}: {said}", person.name);
    }
}
