//! `cto diff`: exactly the verified bytes for programs, a tamed view for people.

use std::fs;
use std::process::{Command, Stdio};

use cto_testkit::{Bundle, Case, House, ORACLE, append, script, shell, without_styles, write};

use crate::house;
use crate::passed;

const NASTY: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\u{202e}right\n";

/// A run that changes many things, and the workspace it began with.
fn busy() -> (House, Bundle) {
    let house = house();
    let case = Case::new("busy")
        .allowed("[\"answer.txt\", \"new/\", \"tool.sh\", \"gone.txt\", \"link\"]");
    let case = case
        .file("workspace/tool.sh", "#!/bin/sh\n")
        .file("workspace/gone.txt", "a\nb\nc\n");
    let case = house.case(&case.file("workspace/link", "text\n"));
    let steps = script(&[
        write("answer.txt", "right\n"),
        append("answer.txt", NASTY),
        write("new/+++ b", "--- a\n+++ b\n@@ -1 +1 @@\n"),
        shell(
            "printf 'a\\000b\\377' > new/binary; chmod +x tool.sh; rm gone.txt link; ln -s answer.txt link",
        ),
        shell("printf 'no newline' > new/$(printf 'tab\\there')"),
    ]);
    let (_, bundle) = house.run(&case, &steps, &[]);
    (house, bundle)
}

#[test]
fn piped_bytes_are_the_patch_and_git_takes_them() {
    let (house, bundle) = busy();
    for args in [
        &["diff"][..],
        &["diff", "--raw"],
        &["diff", &bundle.run_id()],
        &["diff", "--raw", "--color", "always"],
    ] {
        let output = house.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(
            output.stdout == bundle.bytes("patch.diff"),
            "{args:?}: not the patch"
        );
    }
    let forced = house
        .command(&["diff"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(
        forced.stdout == bundle.bytes("patch.diff"),
        "a variable for colours broke a pipe"
    );

    // The way a person would use it.
    let work = house.root().join("elsewhere/work");
    cto_testkit::copy_dir(&house.root().join("cases/busy/workspace"), &work);
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(args)
            .current_dir(&work)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", house.root());
        git
    };
    assert!(git(&["init", "-q"]).status().unwrap().success());
    let mut cto = house
        .command(&["diff"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let applied = git(&["apply"])
        .stdin(cto.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(
        applied.status.success(),
        "{}",
        String::from_utf8_lossy(&applied.stderr)
    );
    cto.wait().unwrap();
    assert!(
        fs::read_to_string(work.join("answer.txt"))
            .unwrap()
            .starts_with("right\n")
    );
    assert!(!work.join("gone.txt").exists() && work.join("link").is_symlink());

    // Our numbers are git's.
    let numstat = git(&["apply", "--numstat", "-"])
        .stdin(fs::File::open(bundle.dir.join("patch.diff")).unwrap())
        .output()
        .unwrap();
    let count = |column: usize| {
        let text = String::from_utf8_lossy(&numstat.stdout).into_owned();
        text.lines()
            .filter_map(|line| line.split('\t').nth(column)?.parse::<u64>().ok())
            .sum::<u64>()
    };
    let json = house.cto(&["diff", "--json"]).json();
    assert_eq!(
        (json["added"].as_u64(), json["removed"].as_u64()),
        (Some(count(0)), Some(count(1)))
    );
}

#[test]
fn a_terminal_sees_colours_and_no_control_characters() {
    let (house, _) = busy();
    for args in [&["diff"][..], &["diff", "--stat"], &["diff", "--name-only"]] {
        let answer = house.on_terminal(80, args);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let wild = |text: &str| {
            text.chars()
                .any(|c| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}')
        };
        assert!(
            !wild(&without_styles(&answer.stdout)),
            "{args:?}: {:?}",
            answer.stdout
        );
        for evil in ["\u{1b}[2J", "\u{1b}]", "\u{7}"] {
            assert!(!answer.stdout.contains(evil), "{args:?}");
        }
    }
    let drawn = house.on_terminal(80, &["diff"]).stdout;
    assert!(drawn.contains("\u{1b}[32m+right"), "{drawn}");
    assert!(
        without_styles(&drawn).contains("+^[[2J^[]0;owned^G^M<U+202E>right"),
        "{drawn}"
    );
    assert!(drawn.contains("binary content is not shown"), "{drawn}");
    let plain = house.on_terminal(80, &["diff", "--color", "never"]).stdout;
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let piped = house.cto(&["diff", "--color", "always"]).stdout;
    assert!(
        piped.contains("\u{1b}[32m+right") && piped.contains("^[[2J"),
        "{piped}"
    );
}

#[test]
fn stat_and_names() {
    let (house, bundle) = busy();
    let stat = house.cto(&["diff", "--stat"]).stdout;
    for want in [
        " answer.txt",
        "Bin new",
        " tool.sh ",
        " 0 mode",
        "3 --- deleted",
        "7 files changed, ",
    ] {
        assert!(stat.contains(want), "{want}: {stat}");
    }
    let names = house.cto(&["diff", "--name-only"]).stdout;
    let mut want = bundle.changed_files();
    want.sort();
    let mut got: Vec<&str> = names.lines().collect();
    got.sort_unstable();
    assert_eq!(got, want);
    let json = house.cto(&["diff", "--json"]).json();
    let files = json["files"].as_array().unwrap();
    assert_eq!(files.len(), 7);
    let kind = |path: &str| {
        files.iter().find(|file| file["path"] == path).unwrap()["change"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        [
            kind("answer.txt"),
            kind("tool.sh"),
            kind("gone.txt"),
            kind("link"),
            kind("new/binary")
        ],
        [
            "modified",
            "mode_changed",
            "deleted",
            "type_changed",
            "added"
        ]
    );
    assert_eq!(
        json["sha256"],
        cto_testkit::sha256_hex(&bundle.bytes("patch.diff"))
    );
}

#[test]
fn a_bundle_that_does_not_verify_shows_no_patch() {
    let (house, bundle) = passed();
    let patch = bundle.dir.join("patch.diff");
    let mut bytes = fs::read(&patch).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    fs::write(&patch, bytes).unwrap();
    for args in [
        &["diff"][..],
        &["diff", "--raw"],
        &["diff", "--stat"],
        &["diff", "--name-only"],
    ] {
        let answer = house.cto(args);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (Some(1), ""),
            "{args:?}: {answer:?}"
        );
        assert!(
            answer.stderr.starts_with("error[bundle_not_good]")
                && answer.stderr.contains("patch.diff"),
            "{answer:?}"
        );
    }
    let json = house.cto(&["diff", "--json"]);
    assert_eq!(
        (json.code, json.json()["error"]["exit_code"].as_u64()),
        (Some(1), Some(1))
    );
}

#[test]
fn a_run_without_a_pass_is_marked_and_one_without_a_change_says_so() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    house.run(&case, &script(&[write("stray.txt", "x\n")]), &[]);
    let answer = house.cto(&["diff"]);
    assert_eq!(answer.code, Some(0));
    assert!(
        answer.stderr.contains("this run is fail") && answer.stdout.contains("stray.txt"),
        "{answer:?}"
    );
    house.run(&case, &script(&[]), &[]);
    let answer = house.cto(&["diff"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""));
    assert!(answer.stderr.contains("changed nothing"), "{answer:?}");
}

#[test]
fn a_withheld_patch_and_an_unsealed_run_have_none() {
    let secret = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (_, bundle) = house.run(
        &case,
        &script(&[write("answer.txt", &format!("right\n{secret}\n"))]),
        &[],
    );
    assert!(
        bundle.text("patch.diff").starts_with("withheld"),
        "{}",
        bundle.text("patch.diff")
    );
    let answer = house.cto(&["diff"]);
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(3), ""),
        "{answer:?}"
    );
    assert!(
        answer.stderr.starts_with("error[patch_withheld]"),
        "{answer:?}"
    );
    let (_, bundle) = house.run(&case, ORACLE, &[]);
    fs::remove_file(bundle.dir.join("report.json")).unwrap();
    let answer = house.cto(&["diff"]);
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(3), ""),
        "{answer:?}"
    );
    assert!(answer.stderr.starts_with("error[no_patch]"), "{answer:?}");
}
