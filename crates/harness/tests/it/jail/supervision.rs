//! Who dies first does not matter: limits hold, nothing goes on; and what is counted per user is
//! not used up from inside.

use std::fs;
use std::process::{Command, Stdio};

use cto_testkit::{skip, wait_until};

use crate::fixtures::people::{UNPRIVILEGED, alive, people};

/// The children of a process.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn the_end_of_any_process_on_the_way_in_is_the_end_of_all() {
    for (number, person) in people().into_iter().enumerate() {
        // The outer process, pid 1, the command itself.
        for depth in 0..3 {
            let mark = format!("61{number}{depth}.25");
            let mut cto = person
                .command(&["exec", "--", "sh", "-c", &format!("sleep {mark}; true")])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let word = format!("sleep\u{0}{mark}");
            assert!(wait_until(|| alive(&word) > 0), "{}", person.name);
            let mut victim = cto.id();
            for _ in 0..=depth {
                // What only held a map of owners came before it, and is gone.
                victim = *children(victim).last().unwrap();
            }
            kill(victim, "KILL");
            let mut code = None;
            let ended = wait_until(|| {
                code = cto.try_wait().unwrap();
                code.is_some()
            });
            let left = alive(&word);
            if !ended {
                kill(cto.id(), "KILL");
                let _ = cto.wait();
            }
            assert!(ended, "{}: {depth}: goes on unwatched", person.name);
            assert_eq!(left, 0, "{}: {depth}", person.name);
            assert_ne!(code.unwrap().code(), Some(0), "{}: {depth}", person.name);
        }
    }
}

#[test]
fn watches_of_the_operator_are_not_used_up() {
    const TAKE: &str = "import ctypes, time
c = ctypes.CDLL(None)
n = 0
while n < 100000 and c.inotify_init() >= 0: n += 1
print('took', n, flush=True)
time.sleep(600)";
    const ONE: &str =
        "import ctypes, sys; sys.exit(0 if ctypes.CDLL(None).inotify_init() >= 0 else 1)";
    let Some(person) = people().into_iter().find(|person| person.as_user) else {
        return skip("only root can become another user");
    };
    fs::write(person.at("ws/take.py"), TAKE).unwrap();
    let mut cto = person
        .command(&["exec", "--", "python3", "take.py"])
        .stdout(fs::File::create(person.at("ws/took")).unwrap())
        .spawn()
        .unwrap();
    let took = wait_until(|| {
        fs::read_to_string(person.at("ws/took")).is_ok_and(|text| text.contains("took"))
    });
    let outside = Command::new("setpriv")
        .args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED])
        .args(["--clear-groups", "python3", "-c", ONE])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .status()
        .unwrap();
    kill(cto.id(), "TERM");
    let _ = cto.wait();
    assert!(took);
    assert!(outside.success(), "none is left");
}

#[test]
fn limits_of_pid_1_stay_its_own() {
    const TRY: &str = "import resource as r
for name in 'AS DATA STACK FSIZE NPROC SIGPENDING CPU NOFILE'.split():
    try: r.prlimit(1, getattr(r, 'RLIMIT_' + name), (0, 0)); print(name, 'taken')
    except PermissionError: pass
r.prlimit(1, r.RLIMIT_NOFILE)
r.prlimit(0, r.RLIMIT_FSIZE, (4096, 4096))
print('own', r.getrlimit(r.RLIMIT_FSIZE)[0])";
    for person in people() {
        fs::write(person.at("ws/try.py"), TRY).unwrap();
        let output = person.cto(&["exec", "--", "python3", "try.py"]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "own 4096\n",
            "{}: {output:?}",
            person.name
        );
        // The old way of asking names nobody; with a number that is only 1 in its lower half it is
        // the same call.
        let line = "prlimit --pid 1 --cpu=0:0 && echo taken; prlimit --pid 1 --nofile=0:0 && echo taken; true";
        let (code, shown) = person.jailed(line);
        assert!(
            code == Some(0) && !shown.contains("taken"),
            "{}: {shown}",
            person.name
        );
    }
}
