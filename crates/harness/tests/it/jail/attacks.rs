//! Attacks on the jail and on the harness around it, each tried for real: none may succeed.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cto_testkit::{Case, House, script, shell, wait_until};

use crate::fixtures::people::{alive, people};
use crate::house;

/// Takes from pid 1 what it needs for waiting, makes it wait anew, and stays.
const HOBBLE: &str = "import os, resource, sys, time\n\
    try:\n\
    \tresource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))\n\
    except PermissionError:\n\
    \tpass\n\
    if os.fork() == 0:\n\
    \tif os.fork() == 0:\n\
    \t\ttime.sleep(0.1)\n\
    \tos._exit(0)\n\
    os.wait()\n\
    open('hobbled', 'w').close()\n\
    time.sleep(600)\n";

#[test]
fn hindering_pid_1_does_not_outlive_the_harness() {
    for (index, person) in people().into_iter().enumerate() {
        let word = format!("hobbled-{index}-{}", std::process::id());
        let mut command = person.command(&["exec", "--", "python3", "-c", HOBBLE, &word]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(
            wait_until(|| person.at("ws/hobbled").exists()),
            "{}: never started",
            person.name
        );
        std::thread::sleep(Duration::from_millis(300));
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
fn hindering_pid_1_does_not_hold_a_run_beyond_its_limit() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let hobble = shell(&format!("python3 -c \"{HOBBLE}\""));
    let since = Instant::now();
    let mut child = house
        .command(&[
            "run",
            &case,
            "--script",
            &house.script("hobble", &script(&[hobble])),
            "--timeout",
            "2",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ended = wait_until(|| child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    assert!(
        ended && since.elapsed() < Duration::from_secs(20),
        "still running after {:?}",
        since.elapsed()
    );
    assert_ne!(child.wait().unwrap().code(), Some(0));
}

/// Python tests with a directory the engine may change, and hidden checks that go into it.
fn python_case(house: &House) -> String {
    let case = Case::new("links")
        .allowed("[\"answer.txt\", \"test_a.py\", \"sub/\"]")
        .commands("[\"python3 -m unittest; true\"]")
        .control("{ runner = \"unittest\" }")
        .hidden("[\"true\"]")
        .file("hidden/sub/deep/check.py", "pass\n")
        .file("workspace/sub/x", "x\n")
        .file("workspace/test_a.py", "import unittest\n");
    house.case(&case)
}

#[test]
fn the_harness_follows_no_link_an_engine_left() {
    let house = house();
    let case = python_case(&house);
    let outside = tempfile::tempdir().unwrap();
    let at = |name: &str| outside.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    fs::create_dir(at("dir")).unwrap();
    let (victim, dir) = (at("victim"), at("dir"));
    for line in [
        format!("rm test_a.py && ln -s {} test_a.py", victim.display()),
        format!("ln -s {} sub/deep", dir.display()),
        format!(
            "mkdir sub/deep && ln -s {} sub/deep/check.py",
            victim.display()
        ),
        format!("ln -s {} sub/deep", victim.display()),
    ] {
        let (answer, bundle) = house.run(&case, &script(&[shell(&line)]), &[]);
        assert!(
            !answer.panicked() && bundle.status() != "pass",
            "{line}: {answer:?}"
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{line}");
        assert!(
            is_empty(&dir),
            "{line}: something was written outside the copy"
        );
        crate::assert_good(&bundle);
    }
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn a_file_full_of_holes_does_not_hold_a_run() {
    let house = house();
    let case = python_case(&house);
    let since = Instant::now();
    let (answer, bundle) = house.run(
        &case,
        &script(&[shell("truncate -s 4T sub/big; echo y > sub/x")]),
        &[],
    );
    assert!(
        since.elapsed() < Duration::from_secs(20) && !answer.panicked(),
        "{:?} {answer:?}",
        since.elapsed()
    );
    assert!(
        bundle.status() != "pass" && bundle.has_code("dirty_ending_tree"),
        "{:?}",
        bundle.codes()
    );
    crate::assert_good(&bundle);
}

#[test]
fn a_flood_of_endings_is_bounded() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let line = "echo right > answer.txt; yes '{\"type\":\"result\",\"status\":\"s\",\"summary\":\"s\"}' | head -n 5000";
    let (answer, bundle) = house.run(&case, &script(&[shell(line)]), &[]);
    assert!(
        !answer.panicked() && bundle.events().len() < 2_200,
        "{} events",
        bundle.events().len()
    );
    crate::assert_good(&bundle);
}

/// Shell lines that print `THROUGH` when they succeed. `OUT` is a directory of the host's, `PID` a
/// process of it.
const TRICKS: &[(&str, &str)] = &[
    (
        "walk up through pid 1's root",
        "cat /proc/1/root/OUT/secret && echo THROUGH",
    ),
    (
        "walk up through pid 1's cwd",
        "ls /proc/1/cwd/ && echo THROUGH",
    ),
    (
        "look at pid 1's descriptors",
        "ls /proc/1/fd/ && echo THROUGH",
    ),
    (
        "read pid 1's environment",
        "cat /proc/1/environ && echo THROUGH",
    ),
    (
        "write through pid 1's program",
        "echo x >> /proc/1/exe && echo THROUGH",
    ),
    (
        "climb out by ..",
        "cat ../../../../../../../OUT/secret && echo THROUGH",
    ),
    (
        "follow a link out",
        "ln -s OUT/secret l; cat l && echo THROUGH",
    ),
    ("hard link from outside", "ln OUT/secret h && echo THROUGH"),
    (
        "the program that was started",
        "echo x >> /proc/self/exe && echo THROUGH",
    ),
    ("remount the root", "mount -o remount,rw / && echo THROUGH"),
    ("unmount a mask", "umount /proc/sys && echo THROUGH"),
    (
        "set-uid by install",
        "install -m 4755 /bin/true s; test -u s && echo THROUGH",
    ),
    (
        "set-uid by cp",
        "cp -p /bin/su s; test -u s && echo THROUGH",
    ),
    (
        "set-uid by tar",
        "touch s; tar --mode=6755 -cf t s; rm s; tar -xpf t; test -u s && echo THROUGH",
    ),
    (
        "set-gid on a file",
        "touch g; chmod 2777 g; test -g g && echo THROUGH",
    ),
    (
        "set-uid by umask and mkdir",
        "umask 0; mkdir -m 6777 g2; test -u g2 && echo THROUGH",
    ),
    (
        "a file capability",
        "cp /bin/true c; setcap cap_sys_admin+ep c && echo THROUGH",
    ),
    ("a device node", "mknod d b 7 0 && echo THROUGH"),
    ("a new user namespace", "unshare -r true && echo THROUGH"),
    ("another namespace", "nsenter -t 1 -m true && echo THROUGH"),
    ("signal pid 1", "kill -KILL 1 && echo THROUGH"),
    ("stop pid 1", "kill -STOP 1 && echo THROUGH"),
    (
        "signal a process of the host",
        "kill -0 PID && echo THROUGH",
    ),
    (
        "a terminal of the host",
        "echo x > /dev/tty && echo THROUGH",
    ),
    (
        "another pts",
        "ls /dev/pts | grep -q '^[0-9]' && echo THROUGH",
    ),
    (
        "spare pid 1 from running out",
        "echo 0 > /proc/1/oom_score_adj && echo THROUGH",
    ),
    (
        "write the kernel's settings",
        "echo x > /proc/sys/kernel/core_pattern && echo THROUGH",
    ),
];

/// The same for what a shell cannot say: Python, where every line that does not raise is a success.
/// A call that complains of its arguments was not refused.
const CALLS: &[(&str, &str)] = &[
    ("clone3", "sys(435, 0, 0)"),
    ("openat2", "sys(437, -100, b'.', 0, 24)"),
    ("unshare of a time namespace", "sys(272, 0x80)"),
    ("setns by pidfd", "sys(308, os.pidfd_open(1), 0x20000)"),
    ("a descriptor of pid 1", "sys(438, os.pidfd_open(1), 10, 0)"),
    ("ptrace of pid 1", "sys(101, 16, 1, 0, 0)"),
    ("io_uring", "sys(425, 1, b'\\0' * 200)"),
    ("bpf", "sys(321, 0, b'\\0' * 64, 64)"),
    ("keyctl", "sys(250, 0, -3, 1)"),
    ("userfaultfd", "sys(323, 1)"),
    ("perf", "sys(298, b'\\0' * 128, 0, -1, -1, 0)"),
    ("an x32 call", "sys(0x40000000 + 39)"),
    (
        "fchmodat2 of a set-uid bit",
        "open('f', 'w'); sys(452, -100, b'f', 0o4755, 0)",
    ),
    ("creat of a set-uid file", "sys(85, b'f2', 0o4755)"),
    (
        "mknodat of a set-uid file",
        "sys(259, -100, b'f3', 0o104755, 0)",
    ),
    ("a file handle", "sys(304, 0, b'\\0' * 64, 0)"),
    ("open_tree_attr", "sys(467, -100, b'/', 1, 0, 0)"),
    ("vsock", "socket.socket(40, 1)"),
    ("packet socket", "socket.socket(17, 3)"),
    ("old packet socket", "socket.socket(2, 10)"),
    ("raw socket", "socket.socket(2, 3, 1)"),
    ("kernel crypto socket", "socket.socket(38, 5)"),
    ("audit netlink", "socket.socket(16, 3, 9)"),
    ("a pair of another family", "socket.socketpair(30, 5)"),
    ("a way out", "socket.socket(2, 2).connect(('192.0.2.1', 9))"),
    (
        "typing into a terminal",
        "import fcntl; fcntl.ioctl(os.openpty()[1], 0x5412, b'x')",
    ),
];

const PRELUDE: &str = "import ctypes, os, socket\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    def sys(*a):\n\
    \tr = libc.syscall(*a)\n\
    \tif r < 0 and ctypes.get_errno() in (1, 13, 38): raise OSError('refused')\n\
    \treturn r\n\
    def attempt(name, line):\n\
    \ttry: exec(line, globals())\n\
    \texcept Exception: return\n\
    \tprint('THROUGH', name)\n";

#[test]
fn an_inherited_descriptor_goes_no_further() {
    for person in people() {
        fs::write(person.at("outside/secret"), "secret").unwrap();
        let line =
            "exec 9< ../outside/secret; exec \"$0\" exec -- sh -c 'cat <&9 || cat /proc/*/fd/9'";
        let mut command = person.command(&[]);
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let cto = args.last().cloned().unwrap_or(program);
        command = std::process::Command::new("sh");
        command
            .args(["-c", line])
            .arg(cto)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", person.at("home"));
        let output = command.current_dir(person.at("ws")).output().unwrap();
        assert!(
            !output.status.success() && !output.stdout.starts_with(b"secret"),
            "{}: {output:?}",
            person.name
        );
    }
}

#[test]
fn known_tricks_do_not_work() {
    for person in people() {
        fs::write(person.at("outside/secret"), "secret").unwrap();
        let outside = person.at("outside").display().to_string();
        let pid = std::process::id().to_string();
        for (what, line) in TRICKS {
            let line = line.replace("OUT", &outside).replace("PID", &pid);
            let (_, text) = person.jailed(&line);
            assert!(
                !text.lines().any(|line| line == "THROUGH"),
                "{}: {what}: {text}",
                person.name
            );
        }
        let calls: String = CALLS
            .iter()
            .map(|call| format!("attempt({:?}, {:?})\n", call.0, call.1))
            .collect();
        let output = person.cto(&[
            "exec",
            "--",
            "python3",
            "-c",
            &format!("{PRELUDE}{calls}print('tried')"),
        ]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "tried\n",
            "{}: {output:?}",
            person.name
        );
    }
}
