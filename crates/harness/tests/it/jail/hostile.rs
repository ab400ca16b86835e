//! `cto matrix --hostile`: green for root and for an ordinary user; and every attack of the kit
//! gets through where nothing stands in its way, so that being stopped means something.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

use cto_core::proof::matrix::{self, MatrixReport, RowVerdict};
use cto_harness::doubles::hostile::attacks;
use cto_testkit::{is_root, skip};

use crate::fixtures::people::{Person, people};
use crate::house;

fn green(person: &Person) {
    let tmp = person.at("ws").display().to_string();
    let output = person
        .command(&["matrix", "--hostile", "--json"])
        .env("TMPDIR", &tmp)
        .output()
        .unwrap();
    let report: MatrixReport = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: {}",
            person.name,
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let wrong: Vec<String> = report
        .rows
        .iter()
        .flat_map(|row| {
            row.wrong()
                .map(|w| format!("{}: {w:?}", row.row))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{}: {wrong:#?}", person.name);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}: {:?}",
        person.name,
        report.counts
    );
    assert_eq!(
        report.rows.len(),
        matrix::attack_matrix().unwrap().rows.len(),
        "{}",
        person.name
    );
    for row in report
        .rows
        .iter()
        .filter(|row| row.verdict == RowVerdict::NotApplicable)
    {
        let reason = row.reason.clone().unwrap_or_default();
        assert!(
            reason.ends_with("is not a program of this system"),
            "{}: {}: {reason}",
            person.name,
            row.row
        );
    }
    assert!(
        fs::read_dir(person.at("ws")).unwrap().next().is_none(),
        "{}: something was left behind",
        person.name
    );
}

#[test]
fn the_kit_is_green_for_whoever_runs_the_tests() {
    people().iter().take(1).for_each(green);
}

#[test]
fn the_kit_is_green_for_an_ordinary_user() {
    let people = people();
    if people.len() < 2 {
        skip("only root can become another user");
    }
    people.iter().skip(1).for_each(green);
}

#[test]
fn rows_of_the_kit_are_chosen_by_name_or_theme() {
    let house = house();
    let chosen = |row: &str| {
        let answer = house.cto(&[
            "matrix",
            "--hostile",
            "--engine",
            "codex",
            "--row",
            row,
            "--json",
        ]);
        let rows: Vec<String> = answer.json()["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["theme"].as_str().unwrap().to_owned())
            .collect();
        (answer.code, rows)
    };
    assert_eq!(chosen("mounts"), (Some(3), vec!["namespaces".to_owned()]));
    let (code, git) = chosen("git");
    assert!(
        code == Some(3) && git.len() > 8 && git.iter().all(|theme| theme == "git"),
        "{git:?}"
    );
    for args in [
        &["matrix", "--hostile", "--row", "no-diff"][..],
        &["matrix", "--row", "mounts"],
    ] {
        let answer = house.cto(args);
        assert!(
            answer.code == Some(2) && answer.stderr.contains("unknown_row"),
            "{answer:?}"
        );
    }
}

/// What each attack gets through to with all of root's power. Nothing here touches what is not this
/// test's own.
fn targets(dir: &Path) -> Vec<(&'static str, String)> {
    let at = |name: &str| dir.join(name).display().to_string();
    let file = |name: &str| {
        fs::write(dir.join(name), "something").unwrap();
        at(name)
    };
    vec![
        ("read-file", file("r")),
        ("read-some", file("rs")),
        ("list-directory", dir.display().to_string()),
        ("write-file", at("w")),
        ("append-to-file", file("a")),
        ("open-for-writing", file("o")),
        ("truncate-file", file("t")),
        ("remove-file", file("rm")),
        ("make-directory", at("d")),
        ("rename-onto", file("ro")),
        ("rename-away", file("ra")),
        ("hard-link", file("h")),
        ("read-through-link", file("rl")),
        ("write-through-link", at("wl")),
        ("change-mode", file("m")),
        ("change-owner", file("co")),
        ("change-times", file("ct")),
        ("set-attribute", file("x")),
        ("set-id-bit", "4755".into()),
        ("device-node", "c 1 3".into()),
        ("file-capability", String::new()),
        ("hold-capabilities", "CapEff".into()),
        ("gain-privileges", String::new()),
        ("become-uid", "65534".into()),
        ("raise-limit", "files".into()),
        ("spare-from-oom", "self".into()),
        ("new-namespace", "net".into()),
        ("join-namespace", "/proc/self/ns/uts".into()),
        ("change-root", "/".into()),
        ("other-family", String::new()),
        ("open-socket", "17 3 768".into()),
        ("netlink-protocol", String::new()),
        ("resolve-name", "localhost".into()),
        ("call", "ptrace".into()),
        ("run-from-memory", at("memory")),
        ("allocate-mib", "16".into()),
        ("fill-mib", format!("{} 1", dir.display())),
        ("open-files", "50".into()),
        ("start-processes", "3".into()),
    ]
}

/// With a mount namespace of its own around it, so that nothing of the host is mounted over.
const MOUNTS: [(&str, &str); 6] = [
    ("mount-tmpfs", "true"),
    ("mount-proc", "true"),
    ("bind-mount", "true"),
    ("unmount", "mount -t tmpfs t \"$1\""),
    (
        "remount-writable",
        "mount -t tmpfs t \"$1\" && mount -o remount,bind,ro \"$1\"",
    ),
    ("set-host-name", "true"),
];

fn gets_through(command: &mut Command, dir: &Path) -> bool {
    let output = command
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .any(|line| line.ends_with(": THROUGH"))
}

/// The capability to raise limits, number 24.
fn holds_sys_resource() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let held = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .unwrap()
        .trim();
    u64::from_str_radix(held, 16).unwrap() & (1 << 24) != 0
}

#[test]
fn every_attack_gets_through_where_nothing_stands_in_its_way() {
    if !is_root() {
        return skip("only root gets every attack through where nothing stands in its way");
    }
    let dir = tempfile::tempdir().unwrap();
    let program = crate::program();
    let program = program.to_str().unwrap();
    let may_raise_limits = holds_sys_resource();
    let mut tried = BTreeSet::new();
    let mut stopped = Vec::new();
    let mut note = |name: &str, through: bool| {
        tried.insert(name.to_owned());
        // Root of a container may not have this one.
        let excused = !may_raise_limits && ["raise-limit", "spare-from-oom"].contains(&name);
        if !through && !excused {
            stopped.push(name.to_owned());
        }
    };
    for (name, target) in targets(dir.path()) {
        note(
            name,
            gets_through(
                Command::new(program).args(["__hostile", name, &target]),
                dir.path(),
            ),
        );
    }
    for (name, prepare) in MOUNTS {
        let place = dir.path().join(name);
        fs::create_dir(&place).unwrap();
        let line = format!("{prepare} && exec \"$0\" __hostile {name} \"$1\"");
        let target = if name == "set-host-name" {
            Path::new("hostile")
        } else {
            place.as_path()
        };
        note(
            name,
            gets_through(
                Command::new("unshare")
                    .args(["-m", "-u", "sh", "-c", &line, program])
                    .arg(target),
                dir.path(),
            ),
        );
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let _path = UnixListener::bind(dir.path().join("socket")).unwrap();
    let word = format!("hostile-test-{}", std::process::id());
    let _name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&word).unwrap()).unwrap();
    let mut victim = Command::new("sh")
        .args(["-c", "read x", &word])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    for (name, target) in [
        ("connect-tcp", port.local_addr().unwrap().to_string()),
        ("send-datagram", datagrams.local_addr().unwrap().to_string()),
        (
            "connect-path",
            dir.path().join("socket").display().to_string(),
        ),
        ("connect-abstract", word.clone()),
        ("see-process", word.clone()),
        ("signal-process", victim.id().to_string()),
    ] {
        note(
            name,
            gets_through(
                Command::new(program).args(["__hostile", name, &target]),
                dir.path(),
            ),
        );
    }
    victim.wait().unwrap();
    let line = "exec 9< /dev/null; exec \"$0\" __hostile inherit-descriptors";
    note(
        "inherit-descriptors",
        gets_through(Command::new("sh").args(["-c", line, program]), dir.path()),
    );
    assert_eq!(stopped, Vec::<String>::new());
    // Only a mount namespace whose root was built for it can be pivoted; the layers test has it.
    let all: BTreeSet<String> = attacks()
        .map(|attack| attack.name.to_owned())
        .filter(|name| name != "pivot-root")
        .collect();
    assert_eq!(tried, all);
}

#[test]
fn a_line_that_is_no_attack_is_refused() {
    assert_eq!(house().cto(&["__hostile", "no-such-attack"]).code, Some(64));
}
