//! Cases and scripts as nobody should write them: every one is refused with a type and a place, or
//! taken as it is. Nothing hangs, nothing panics, nothing runs by accident.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_testkit::{Answer, Case, House, ORACLE, is_root, skip};

use crate::assert_good;
use crate::house;

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A large file that takes no room.
fn hole(path: &Path, bytes: u64) {
    File::create(path).unwrap().set_len(bytes).unwrap();
}

/// Refused by every command that reads a case, before anything is written.
fn refused(house: &House, case: &str, code: &str) -> Answer {
    let mut last = None;
    for command in [
        &["run", case][..],
        &["contract", case],
        &["cases", "show", case],
    ] {
        let answer = house.cto(command);
        assert!(!answer.panicked(), "{command:?}: {answer:?}");
        assert_eq!(answer.code, Some(2), "{command:?}: {answer:?}");
        assert!(
            answer.stderr.contains(&format!("error[{code}]")),
            "{command:?}: {answer:?}"
        );
        let json = house.cto(&[command, &["--json"]].concat()).json();
        assert_eq!(json["error"]["code"].as_str(), Some(code), "{command:?}");
        last = Some(answer);
    }
    assert!(house.run_dirs().is_empty(), "{case} left a bundle");
    last.unwrap()
}

/// A fresh case with something odd in it.
fn with(what: &str, place: &str, put: impl FnOnce(&Path)) -> (House, String) {
    let house = house();
    let dir = house.case(&Case::new("quick").file("hidden/x", "").hidden("[\"true\"]"));
    let path = Path::new(&dir).join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    put(&path);
    assert!(path.symlink_metadata().is_ok(), "{what} is not there");
    (house, dir)
}

#[test]
fn only_files_and_directories() {
    for place in [
        "workspace/odd",
        "workspace/deep/er/odd",
        "hidden/odd",
        "scripts/odd.toml",
        "odd",
    ] {
        for (what, put) in [
            ("a pipe", &fifo as &dyn Fn(&Path)),
            ("a loop", &|path: &Path| symlink(path, path).unwrap()),
            ("a link out", &|path: &Path| {
                symlink("/etc/passwd", path).unwrap()
            }),
            ("a link to nowhere", &|path: &Path| {
                symlink("/nonexistent", path).unwrap()
            }),
            ("a socket", &|path: &Path| {
                drop(UnixListener::bind(path).unwrap())
            }),
        ] {
            let (house, dir) = with(what, place, put);
            let answer = refused(&house, &dir, "unreadable_case");
            assert!(
                answer.stderr.contains("only regular files and directories"),
                "{place} {what}: {answer:?}"
            );
            assert!(answer.stderr.contains(place), "{place} {what}: {answer:?}");
            let checked = house.cto(&["case", "check", &dir, "--static"]);
            assert!(
                checked.code == Some(1) && checked.stdout.contains("✗ files"),
                "{place} {what}: {checked:?}"
            );
        }
    }
}

#[test]
fn devices_are_refused() {
    if !is_root() {
        return skip("only root can make a device");
    }
    let (house, dir) = with("a device", "workspace/zero", |path| {
        assert!(
            Command::new("mknod")
                .arg(path)
                .args(["c", "1", "5"])
                .status()
                .unwrap()
                .success()
        );
    });
    refused(&house, &dir, "unreadable_case");
}

#[test]
fn a_case_file_is_a_plain_file() {
    for (what, put) in [
        ("a pipe", &fifo as &dyn Fn(&Path)),
        ("a directory", &|path: &Path| fs::create_dir(path).unwrap()),
        ("a loop", &|path: &Path| symlink(path, path).unwrap()),
        ("a link", &|path: &Path| {
            symlink("/etc/hostname", path).unwrap()
        }),
    ] {
        let house = house();
        let dir = house.case(&Case::new("quick"));
        let path = Path::new(&dir).join("case.toml");
        fs::remove_file(&path).unwrap();
        put(&path);
        let answer = refused(&house, &dir, "unreadable_case");
        assert!(
            answer.stderr.contains("case.toml is not a regular file"),
            "{what}: {answer:?}"
        );
    }
    let house = house();
    let dir = house.case(&Case::new("quick"));
    fs::remove_file(Path::new(&dir).join("case.toml")).unwrap();
    refused(&house, &dir, "unknown_case");
    refused(
        &house,
        &format!("{dir}/scripts/oracle.toml"),
        "unknown_case",
    );
}

#[test]
fn more_than_fits() {
    for (place, bytes) in [
        ("case.toml", (1 << 20) + 1),
        ("scripts/big.toml", (16 << 20) + 1),
        ("workspace/big", (64 << 20) + 1),
        ("hidden/big", 1 << 40),
    ] {
        let (house, dir) = with("a hole", place, |path| hole(path, bytes));
        let answer = refused(&house, &dir, "unreadable_case");
        assert!(
            answer.stderr.contains("larger than") && answer.stderr.contains(place),
            "{answer:?}"
        );
    }
}

#[test]
fn too_many_and_too_much() {
    let (house, dir) = with("many holes", "workspace/holes/0", |path| {
        for number in 0..17 {
            hole(&path.with_file_name(number.to_string()), 64 << 20);
        }
    });
    let answer = house.cto(&["contract", &dir]);
    assert!(
        answer.code == Some(2)
            && answer
                .stderr
                .contains("a case may hold 100000 files and 1024 MiB"),
        "{answer:?}"
    );
}

#[test]
fn text_that_is_no_case_file() {
    let house = house();
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for (what, text) in [
        ("nothing", &b""[..]),
        ("a NUL", b"a = 1\0"),
        ("half a table", b"[limits\n"),
        ("half a text", b"title = \"\"\"\n"),
        ("the wrong types", b"schema_version = \"1\"\ntitle = 3\n"),
        ("a large number", b"schema_version = 99999999999999999999\n"),
        ("a byte order mark alone", b"\xef\xbb\xbf"),
        ("UTF-16", b"\xff\xfes\0c\0"),
        ("an endless nest", deep.as_bytes()),
    ] {
        let dir = house.case(&Case::new("quick"));
        fs::write(Path::new(&dir).join("case.toml"), text).unwrap();
        let answer = house.cto(&["contract", &dir]);
        assert!(!answer.panicked(), "{what}: {answer:?}");
        assert!(
            answer.code == Some(2) && answer.stderr.contains("quick/case.toml:"),
            "{what}: {answer:?}"
        );
        assert!(
            answer.stderr.len() < 2000,
            "{what}: the whole file is printed"
        );
        let (run, bundle) = house.run_args(&["run", &dir, "--json"]);
        assert_eq!(
            (run.code, bundle.codes()),
            (Some(3), vec!["contract_invalid".to_owned()]),
            "{what}"
        );
        assert_good(&bundle);
    }
}

/// Names that are odd and legal: they are data, and arrive as they are.
#[test]
fn odd_names_are_carried_along() {
    let (house, dir) = with("odd names", "workspace/-rf", |path| {
        let names: [&[u8]; 7] = [
            b"-rf",
            b"new\nline",
            b"\xff\xfe",
            b"tab\t\"quote\\",
            b" ",
            b"*",
            "ü\u{202e}".as_bytes(),
        ];
        for name in names {
            fs::write(path.with_file_name(OsStr::from_bytes(name)), "odd").unwrap();
        }
        fs::create_dir(path.with_file_name("--")).unwrap();
        fs::write(
            path.with_file_name("--").join(OsStr::from_bytes(b"\x80")),
            "odd",
        )
        .unwrap();
        fs::write(
            path.parent()
                .unwrap()
                .with_file_name("hidden")
                .join(OsStr::from_bytes(b"\xff\n")),
            "odd",
        )
        .unwrap();
    });
    let (answer, bundle) = house.run_args(&["run", &dir, "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    assert_good(&bundle);
}

#[test]
fn names_that_must_be_called_by_name() {
    for place in [&b"scripts/\xff.toml"[..], b"\xff"] {
        let house = house();
        let dir = house.case(&Case::new("quick"));
        fs::write(Path::new(&dir).join(OsStr::from_bytes(place)), "").unwrap();
        let answer = refused(&house, &dir, "unreadable_case");
        assert!(answer.stderr.contains("is not UTF-8"), "{answer:?}");
    }
}

#[test]
fn git_metadata_is_refused_and_the_history_of_a_case_left_alone() {
    for place in [
        "workspace/.git/config",
        "workspace/sub/.GIT",
        "hidden/.git/HEAD",
    ] {
        let (house, dir) = with("git", place, |path| fs::write(path, "").unwrap());
        let answer = refused(&house, &dir, "unreadable_case");
        assert!(
            answer.stderr.contains("git metadata"),
            "{place}: {answer:?}"
        );
    }
    let (house, dir) = with("its own history", ".git/objects/x", fifo);
    assert_eq!(house.cto(&["run", &dir]).code, Some(0));
}

/// A name is text from outside: it must not steer the terminal of whoever reads the refusal.
#[test]
fn a_refusal_steers_no_terminal() {
    let (house, dir) = with("an escape", "workspace/\u{1b}[2Jx\rerror", fifo);
    let answer = house.cto(&["run", &dir]);
    assert_eq!(answer.code, Some(2));
    assert!(!answer.stderr.contains(['\u{1b}', '\r']), "{answer:?}");
    let listed = house.cto(&["case", "check", &dir, "--static"]);
    assert!(!listed.stdout.contains(['\u{1b}', '\r']), "{listed:?}");
}

#[test]
fn directories_with_odd_names_are_cases_all_the_same() {
    let house = house();
    let dir = PathBuf::from(house.case(&Case::new("quick")));
    for name in [&b"With Space"[..], b"-dash", b"new\nline", b"\xff"] {
        let odd = dir.with_file_name(OsStr::from_bytes(name));
        fs::rename(&dir, &odd).unwrap();
        let all = dir.parent().unwrap().display().to_string();
        let answer = house.cto(&["run", "--all", "--cases", &all, "--json"]);
        assert!(
            !answer.panicked() && matches!(answer.code, Some(0 | 3)),
            "{name:?}: {answer:?}"
        );
        let listed = house.cto(&["cases", "--cases", &all]);
        assert!(
            listed.code == Some(0) && !listed.stdout.contains('\u{1b}'),
            "{listed:?}"
        );
        let checked = house.cto(&["case", "check", "--static", "--cases", &all]);
        assert!(
            checked.code == Some(1) && checked.stdout.contains("✗ name"),
            "{name:?}: {checked:?}"
        );
        fs::rename(&odd, &dir).unwrap();
    }
}

#[test]
fn a_directory_of_cases_that_is_none() {
    let house = house();
    let file = house.root().join("elsewhere/file");
    fs::write(&file, "").unwrap();
    let pipe = house.root().join("elsewhere/pipe");
    fifo(&pipe);
    let ring = house.root().join("elsewhere/ring");
    symlink(&ring, &ring).unwrap();
    for (place, code) in [
        (file, "bad_cases_directory"),
        (pipe, "bad_cases_directory"),
        (ring, "bad_cases_directory"),
        (house.root().join("nowhere"), "bad_cases_directory"),
        (house.root().join("home"), "no_cases"),
    ] {
        let place = place.display().to_string();
        for command in [&["run", "--all"][..], &["cases"], &["case", "check"]] {
            let answer = house.cto(&[command, &["--cases", &place]].concat());
            assert!(
                answer.code == Some(2) && answer.stderr.contains(code),
                "{command:?} {place}: {answer:?}"
            );
        }
        for command in [
            &["run", "x"][..],
            &["contract", "x"],
            &["cases", "show", "x"],
            &["case", "check", "x"],
        ] {
            let answer = house.cto(&[command, &["--cases", &place]].concat());
            assert_eq!(answer.code, Some(2), "{command:?} {place}: {answer:?}");
        }
    }
    assert!(house.run_dirs().is_empty());
}

#[test]
fn what_may_not_be_read_is_said_so() {
    if is_root() {
        return skip("root may read everything");
    }
    for place in [
        "",
        "workspace",
        "hidden",
        "case.toml",
        "workspace/answer.txt",
    ] {
        let (house, dir) = with("nothing", "hidden/x", |_| {});
        let closed = Path::new(&dir).join(place);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        refused(&house, &dir, "unreadable_case");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn scripts_that_cannot_be_played() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let place = house.root().join("scripts");
    fifo(&place.join("pipe"));
    fs::create_dir(place.join("directory")).unwrap();
    hole(&place.join("large"), 17 << 20);
    fs::write(place.join("bytes"), b"silent = true # \xff").unwrap();
    fs::write(place.join("nest"), format!("a = {}", "[".repeat(200_000))).unwrap();
    fs::write(place.join("line"), format!("{} = 1", "x".repeat(200_000))).unwrap();
    symlink(place.join("ring"), place.join("ring")).unwrap();
    symlink("pipe", place.join("to-pipe")).unwrap();
    for (name, code, why) in [
        ("pipe", "unreadable_script", "not a regular file"),
        ("to-pipe", "unreadable_script", "not a regular file"),
        ("directory", "unreadable_script", "not a regular file"),
        ("large", "unreadable_script", "larger than 16777216 bytes"),
        ("ring", "unreadable_script", ""),
        (
            "missing",
            "unreadable_script",
            "scripts of this case: oracle",
        ),
        ("bytes", "bad_script", "is not UTF-8"),
        ("nest", "bad_script", "line 1, column"),
        ("line", "bad_script", "line 1, column"),
    ] {
        let script = place.join(name).display().to_string();
        let answer = house.cto(&["run", &case, "--script", &script]);
        assert!(
            !answer.panicked() && answer.code == Some(2),
            "{name}: {answer:?}"
        );
        assert!(
            answer.stderr.contains(code)
                && answer.stderr.contains(why)
                && answer.stderr.len() < 2000,
            "{name}: {answer:?}"
        );
    }
    for device in ["/dev/zero", "/dev/tty", "", "/"] {
        assert_eq!(
            house.cto(&["run", &case, "--script", device]).code,
            Some(2),
            "{device}"
        );
    }
    // A try has no scripts of its own: the hint says what can be named.
    let repo = cto_testkit::Repo::new(&house, "tried");
    let missing = place.join("missing").display().to_string();
    let asked = ["try", "--repo", repo.path(), "--task", "t", "--allow", "."];
    let asked = [&asked[..], &["--test", "true", "--script", &missing]].concat();
    let answer = house.cto(&asked);
    assert!(answer.stderr.contains("git diff > FILE"), "{answer:?}");
    assert!(house.run_dirs().is_empty());
    // A link of the operator's is as good as the file.
    fs::write(place.join("good"), ORACLE).unwrap();
    symlink("good", place.join("link")).unwrap();
    let (answer, _) = house.run_args(&[
        "run",
        &case,
        "--script",
        &place.join("link").display().to_string(),
        "--json",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}
