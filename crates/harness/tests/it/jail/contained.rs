//! The jail, tried for real: as root and as an ordinary user, by the same tests.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cto_testkit::{is_root, wait_until};

/// Whoever runs the jail in a test.
pub struct Person {
    pub name: &'static str,
    dir: tempfile::TempDir,
    as_user: bool,
}

const UNPRIVILEGED: &str = "65534";

impl Person {
    fn new(name: &'static str, as_user: bool) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("cto-jail-")
            .tempdir()
            .unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The test binary's directory may be closed to others.
        fs::copy(env!("CARGO_BIN_EXE_cto"), dir.path().join("cto")).unwrap();
        for sub in ["ws", "home", "outside"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
            if as_user {
                let owner = UNPRIVILEGED.parse().unwrap();
                std::os::unix::fs::chown(dir.path().join(sub), Some(owner), Some(owner)).unwrap();
            }
        }
        Self { name, dir, as_user }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// `cto` as this person, in their workspace, with nothing of this machine's environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = match self.as_user {
            true => {
                let mut command = Command::new("setpriv");
                command
                    .args([
                        "--reuid",
                        UNPRIVILEGED,
                        "--regid",
                        UNPRIVILEGED,
                        "--clear-groups",
                    ])
                    .arg(self.at("cto"));
                command
            }
            false => Command::new(self.at("cto")),
        };
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.at("home"))
            .env("SECRET_THING", "do-not-show-me-123")
            .current_dir(self.at("ws"))
            .stdin(Stdio::null());
        command
    }

    pub fn cto(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// A shell line in the jail.
    pub fn jailed(&self, line: &str) -> (Option<i32>, String) {
        let output = self.cto(&["exec", "--", "sh", "-c", line]);
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.code(), text)
    }
}

/// Root tries both ways; an ordinary user has only one. With `REQUIRE_JAIL=1` a host that cannot is
/// a failure.
pub fn people() -> Vec<Person> {
    let mut people = vec![Person::new("whoever runs the tests", false)];
    if is_root() {
        people.push(Person::new("an ordinary user", true));
    }
    people.retain(|person| {
        let doctor = person.cto(&["doctor"]);
        let can = doctor.status.success();
        assert!(
            can || std::env::var_os("REQUIRE_JAIL").is_none(),
            "{}: {}",
            person.name,
            String::from_utf8_lossy(&doctor.stdout)
        );
        can
    });
    people
}

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
            "--env",
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
    for person in people().into_iter().filter(|person| person.as_user) {
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

/// Processes whose command line holds this word, zombies left out.
pub fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| {
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let line = read("cmdline");
            let holds = line.windows(word.len()).any(|part| part == word.as_bytes());
            holds && !String::from_utf8_lossy(&read("status")).contains("State:\tZ")
        })
        .count()
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

/// A port of this host, a process, a file: what the attacks are pointed at.
pub struct Targets {
    _listener: TcpListener,
    sleeper: std::process::Child,
    shm: String,
    pub dir: PathBuf,
    port: u16,
}

impl Targets {
    pub fn new(dir: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let made = Command::new("ipcmk").args(["-M", "64"]).output().unwrap();
        let shm = String::from_utf8_lossy(&made.stdout)
            .rsplit(' ')
            .next()
            .unwrap()
            .trim()
            .to_owned();
        fs::write(dir.join("secret"), "secret").unwrap();
        fs::create_dir(dir.join("under")).unwrap();
        Self {
            _listener: listener,
            sleeper,
            shm,
            dir: dir.to_owned(),
            port,
        }
    }

    /// What an attack is told.
    pub fn argument(&self, attack: &str) -> String {
        let path = |name: &str| self.dir.join(name).display().to_string();
        match attack {
            "read-file" => path("secret"),
            "write-file" => path("written"),
            "mount" => path("under"),
            "signal" => self.sleeper.id().to_string(),
            "shared-memory" => self.shm.clone(),
            "host-name" => fs::read_to_string("/proc/sys/kernel/hostname")
                .unwrap()
                .trim()
                .to_owned(),
            "connect" => format!("127.0.0.1:{}", self.port),
            _ => String::new(),
        }
    }

    /// Undoes what an attack that got through did to the host, and says whether the host saw it.
    pub fn seen_by_host(&self, attack: &str) -> bool {
        if attack != "mount" {
            return true;
        }
        let seen = self.dir.join("under/attack").exists();
        if seen {
            assert!(
                Command::new("umount")
                    .arg(self.dir.join("under"))
                    .status()
                    .unwrap()
                    .success()
            );
        }
        seen
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let _ = Command::new("ipcrm").args(["-m", &self.shm]).output();
    }
}
