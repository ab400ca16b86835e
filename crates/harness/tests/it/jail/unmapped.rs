//! A directory whose file system cannot show it as a jail's own, as that of a container often
//! cannot: refused by name before anything ran, and `cto doctor` knows it before `cto exec` does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use cto_testkit::{is_root, skip};
use serde_json::Value;

use super::shown::{assert_refused, said};
use crate::fixtures::people::{Person, UNPRIVILEGED, people};

/// `odd` becomes an overlay, as the root of a container is: one of memory, and one of the disk.
const OVERLAYS: [&str; 2] = [
    "mount -t tmpfs none layers && mkdir layers/l layers/u layers/w && \
     mount -t overlay overlay -o lowerdir=layers/l,upperdir=layers/u,workdir=layers/w odd",
    "rm -rf layers/* && mkdir layers/l layers/u layers/w && \
     mount -t overlay overlay -o lowerdir=layers/l,upperdir=layers/u,workdir=layers/w odd",
];
/// A workspace, one of another user's, and something to be kept in each.
const FILES: &str = "mkdir odd/ws odd/theirs odd/home && git init -q odd/ws && echo before > odd/ws/file && \
                     chown -R 65534:65534 odd/theirs && chmod 755 odd";

/// Root, and a place for mounts that is not below `/tmp`.
fn root_and_place() -> Option<(Person, tempfile::TempDir)> {
    if !is_root() {
        skip("only root can mount, and only root's jails need the map");
        return None;
    }
    let root = people().into_iter().find(|person| !person.as_user)?;
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for dir in ["layers", "odd", "plain/below"] {
        fs::create_dir_all(place.path().join(dir)).unwrap();
    }
    Some((root, place))
}

/// A shell line in mounts that exist for it alone; `$cto` is the program.
fn line(root: &Person, place: &Path, mounts: &str, line: &str) -> Output {
    let line = format!("{mounts} && {FILES} && {line}");
    Command::new("unshare")
        .args(["-m", "sh", "-c", &line])
        .current_dir(place)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", root.at("home"))
        .env("cto", root.at("cto"))
        .output()
        .unwrap()
}

/// Those that can be mounted here.
fn overlays(root: &Person, place: &Path) -> Vec<&'static str> {
    let can = |mounts: &&str| {
        let output = line(root, place, mounts, "true");
        if !output.status.success() {
            skip(&format!("no overlay can be mounted: {}", said(&output)));
        }
        output.status.success()
    };
    OVERLAYS.into_iter().filter(can).collect()
}

#[test]
fn a_directory_that_cannot_be_a_jails_own_is_refused_by_name() {
    let Some((root, place)) = root_and_place() else {
        return;
    };
    let at = |name: &str| place.path().join(name).display().to_string();
    for mounts in overlays(&root, place.path()) {
        for (flags, dir, hint) in [
            ("cd odd/ws && $cto exec", "odd/ws", "another file system"),
            ("$cto exec --workspace odd/ws", "odd/ws", "ordinary user"),
            (
                "$cto exec --workspace odd/theirs",
                "odd/theirs",
                "uid 65534",
            ),
            (
                "$cto exec --workspace plain --allow odd/ws",
                "odd/ws",
                "another file system",
            ),
            (
                "$cto exec --workspace plain --tmp odd/ws",
                "odd/ws",
                "another file system",
            ),
            (
                "mount --bind odd plain/below && $cto exec --workspace plain",
                "plain/below",
                "unmount",
            ),
        ] {
            // The command would leave a mark wherever it may write.
            let run = format!(
                "({flags} -- sh -c 'touch ran /tmp/ran {odd}/ran; true'); code=$?; \
                 find {odd} {plain} -name ran -o -name commondir -o -name file ! -user 0; cat {odd}/file; exit $code",
                odd = at("odd/ws"),
                plain = at("plain"),
            );
            let output = line(&root, place.path(), mounts, &run);
            assert_refused(&root, &output, "unmappable_directory", &at(dir));
            let text = said(&output);
            assert!(text.contains("(overlay)"), "{flags}: {text}");
            assert!(text.contains("so: nothing ran"), "{flags}: {text}");
            let (_, said_hint) = text.split_once("hint: ").unwrap();
            assert!(said_hint.contains(hint), "{flags}: {text}");
            assert_eq!(output.stdout, b"before\n", "{flags}: {text}");
        }
    }
}

#[test]
fn the_doctor_looks_where_exec_would_work() {
    let Some((root, place)) = root_and_place() else {
        return;
    };
    for mounts in overlays(&root, place.path()) {
        let tell = |run: &str| {
            let output = line(&root, place.path(), mounts, run);
            assert!(output.status.success(), "{mounts}: {}", said(&output));
            String::from_utf8(output.stdout).unwrap()
        };
        let text = tell("cd odd/ws && $cto doctor");
        assert!(text.starts_with("CONTAINED EXCEPT HERE  "), "{text}");
        let place = place.path().join("odd/ws").display().to_string();
        let (_, problem) = text.split_once("problem: ").unwrap();
        let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(problem.contains(&format!("{place} (overlay)")), "{problem}");
        assert!(problem.contains("another file system"), "{problem}");
        let document: Value =
            serde_json::from_str(&tell("cd odd/ws && $cto --json doctor")).unwrap();
        assert_eq!(document["containment"], "contained");
        assert_eq!(document["here"]["exec"], "refused");
        let error = &document["here"]["error"];
        assert_eq!(error["code"], "unmappable_directory");
        assert_eq!(error["where"], place);
        assert_eq!(error["exit_code"], 125);
        let text = tell("cd plain && $cto doctor && $cto exec -- true");
        assert!(text.starts_with("CONTAINED  "), "{text}");
        assert!(!text.contains("problem: "), "{text}");
    }
}

#[test]
fn an_ordinary_user_and_a_run_need_no_such_view() {
    let Some((root, place)) = root_and_place() else {
        return;
    };
    for mounts in overlays(&root, place.path()) {
        let user = format!("setpriv --reuid {UNPRIVILEGED} --regid {UNPRIVILEGED} --clear-groups");
        if people().iter().any(|person| person.as_user) {
            let run = format!(
                "cd odd/theirs && HOME=$PWD/h && export HOME && mkdir h work && chown 65534:65534 h work && \
                 cd work && {user} $cto exec -- sh -c 'echo made > made' && stat -c %u made"
            );
            let output = line(&root, place.path(), mounts, &run);
            assert_eq!(output.stdout, b"65534\n", "{mounts}: {}", said(&output));
        }
        let output = line(
            &root,
            place.path(),
            mounts,
            "cd odd/ws && $cto --home ../home/state run sh-word-count",
        );
        assert!(output.status.success(), "{mounts}: {}", said(&output));
    }
}
