//! What lands, in every kind of repository that people have.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use cto_core::workspace::landing::refusal::Reason;

use super::refusals::refused;
use super::*;

#[test]
fn a_commit_lands_with_its_files_and_is_told_by_trailers() {
    let lab = Lab::new();
    lab.write("untracked", "mine\n");
    let head = lab.git(&["rev-parse", "HEAD"]);
    let landed = lab
        .land_as(|order| order.approval = Some("request-1"))
        .unwrap();
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), landed.commit);
    assert_eq!(lab.git(&["rev-parse", "HEAD^"]), head);
    assert_eq!(lab.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let body = lab.git(&["log", "-1", "--format=%an <%ae> %at%n%(trailers)"]);
    let want = format!(
        "CTO Harness <harness@cto.invalid> 1700000000\nCto-Run: {RUN}\nCto-Approval: request-1"
    );
    assert_eq!(body.trim_end(), want);
    assert!(lab.git(&["reflog", "-1", "main"]).contains("cto: land"));
    let mode = |name: &str| fs::metadata(lab.repo().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("a"), mode("src/deep/b") & 0o100), (0o640, 0o100));
    assert_eq!(
        fs::read_dir(lab.home().journal()).unwrap().count(),
        1,
        "not settled yet"
    );
    landed.settled().unwrap();
    fs::remove_file(lab.repo().join("untracked")).unwrap();
    lab.assert_landed("landed");
}

/// Nothing but the commit is new then, and it is brought all the same.
#[test]
fn a_change_whose_files_were_there_before_lands_again() {
    let lab = Lab::new();
    let head = lab.git(&["rev-parse", "HEAD"]);
    let first = lab.land_as(|_| ()).unwrap();
    let before = first.commit.clone();
    first.settled().unwrap();
    lab.git(&["reset", "-q", "--hard", &head]);
    fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let later = |order: &mut Order<'_>| {
        order.when = Utc::from_millis(order.when.as_millis() + 60_000).unwrap();
    };
    let again = lab.land_as(later).unwrap();
    assert_ne!(again.commit, before);
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), again.commit);
    again.settled().unwrap();
    lab.assert_landed("landed again");
}

#[test]
fn the_same_order_makes_the_same_commit_and_looking_changes_nothing() {
    let lab = Lab::new();
    let before = lab.bytes();
    let name = || lab.prepare().unwrap().commit;
    let one = name();
    let two = name();
    assert_eq!(one, two);
    assert_eq!(lab.bytes(), before);
    assert_eq!(lab.land().unwrap().commit, one);
}

#[test]
fn a_branch_is_one_ref_and_nothing_else() {
    let lab = Lab::new();
    lab.write("a", "my own work\n");
    lab.git(&["checkout", "-q", "--detach"]);
    let (work, index) = (
        lab.work_bytes(),
        fs::read(lab.repo().join(".git/index")).unwrap(),
    );
    let branch = |order: &mut Order<'_>| order.way = Way::Branch;
    let landed = lab.land_as(branch).unwrap();
    let name = format!("refs/heads/cto/{RUN}");
    assert_eq!(landed.branch, name);
    assert_eq!(lab.git(&["rev-parse", &name]), landed.commit);
    assert_eq!(lab.git(&["show", &format!("{name}:a")]), "new");
    landed.settled().unwrap();
    assert_eq!(lab.work_bytes(), work);
    assert_eq!(fs::read(lab.repo().join(".git/index")).unwrap(), index);
    lab.assert_tidy("branch");
    let again = lab.with_order(branch, prepare).unwrap();
    assert!(again.is_landed, "the same again is there already");
    drop(again);
    let other = lab.land_as(|order| {
        branch(order);
        order.words = "Something else";
    });
    assert!(refused(other).contains(&Reason::BranchTaken));
}

#[test]
fn no_hook_and_no_filter_runs_and_other_work_stays() {
    let lab = Lab::new();
    let hooks = lab.repo().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "post-merge",
    ] {
        fs::write(
            hooks.join(hook),
            "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../ran\"\n",
        )
        .unwrap();
        fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = lab.dir.join("monitor");
    fs::write(
        &monitor,
        format!("#!/bin/sh\ntouch {}/ran\n", lab.repo().display()),
    )
    .unwrap();
    fs::set_permissions(&monitor, fs::Permissions::from_mode(0o755)).unwrap();
    lab.write("other", "stashed\n");
    lab.git(&["stash", "-q"]);
    lab.write("staged", "staged\n");
    lab.git(&["add", "staged"]);
    lab.write("other", "uncommitted\n");
    let stash = lab.git(&["stash", "list"]);
    fs::remove_file(lab.repo().join("ran")).ok();
    lab.git(&["config", "core.fsmonitor", monitor.to_str().unwrap()]);
    lab.git(&["config", "filter.evil.smudge", "touch ran; cat"]);
    fs::remove_file(lab.repo().join("ran")).ok();
    lab.land().unwrap().settled().unwrap();
    assert!(!lab.repo().join("ran").exists());
    lab.git(&["config", "--unset", "core.fsmonitor"]);
    assert_eq!(lab.git(&["stash", "list"]), stash);
    assert_eq!(lab.git(&["status", "--porcelain"]), " M other\nA  staged");
    assert_eq!(
        lab.git(&["show", "--format=", "--name-only", "HEAD"])
            .lines()
            .count(),
        7
    );
}

#[test]
fn kinds_of_repositories_that_people_have() {
    let clone = |words: &'static [&'static str]| {
        move || {
            let origin = Lab::new();
            let url = format!("file://{}", origin.repo().display());
            fs::rename(origin.repo(), origin.dir.join("origin")).unwrap();
            let url = url.replace("/repo", "/origin");
            git_in(
                &origin.dir,
                &[&["clone", "-q"], words, &[&url, "repo"]].concat(),
            );
            origin
        }
    };
    let configured = |pairs: &'static [(&'static str, &'static str)]| {
        move || {
            let lab = Lab::new();
            for (name, value) in pairs {
                lab.git(&["config", name, value]);
            }
            lab
        }
    };
    type Made = Box<dyn Fn() -> Lab>;
    let kinds: [(&str, Made); 8] = [
        (
            "sha256",
            Box::new(|| Lab::with(&["-b", "main", "--object-format=sha256"])),
        ),
        ("shallow", Box::new(clone(&["--depth=1"]))),
        ("alternates", Box::new(clone(&["--shared", "--no-local"]))),
        ("modes", Box::new(configured(&[("core.fileMode", "false")]))),
        (
            "split index",
            Box::new(|| {
                let lab = Lab::new();
                lab.git(&["update-index", "--split-index"]);
                lab
            }),
        ),
        (
            "index of version 4",
            Box::new(|| {
                let lab = Lab::new();
                lab.git(&["update-index", "--index-version", "4"]);
                lab
            }),
        ),
        (
            "read-only",
            Box::new(|| {
                let lab = Lab::new();
                fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o444))
                    .unwrap();
                lab
            }),
        ),
        (
            "packed",
            Box::new(|| {
                let lab = Lab::new();
                lab.git(&["gc", "-q"]);
                lab
            }),
        ),
    ];
    for (name, make) in kinds {
        let lab = make();
        let landed = lab
            .land()
            .unwrap_or_else(|error| panic!("{name}: {error} {error:?}"));
        landed.settled().unwrap();
        lab.assert_landed(name);
        lab.git(&["gc", "-q", "--prune=now"]);
        assert_eq!(
            lab.git(&["log", "-1", "--format=%s"]),
            "Make it right",
            "{name}"
        );
    }
}

/// Line ends as the owner's git has them, in the work tree and in the commit.
#[test]
fn line_ends_are_the_owners() {
    let lab = Lab::new();
    lab.git(&["config", "core.autocrlf", "true"]);
    for name in ["a", "gone", "other", "turns", "src/deep/b"] {
        fs::remove_file(lab.repo().join(name)).unwrap();
    }
    lab.git(&["checkout", "-q", "."]);
    assert_eq!(lab.read("a"), "old\r\n");
    lab.land().unwrap().settled().unwrap();
    assert_eq!(
        (lab.read("a"), lab.git(&["show", "HEAD:a"])),
        ("new\r\n".into(), "new".into())
    );
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    lab.assert_tidy("line ends");
}

#[test]
fn a_linked_work_tree_has_its_own_lock_and_index() {
    let lab = Lab::new();
    lab.git(&["branch", "work"]);
    lab.git(&["worktree", "add", "-q", "../linked", "work"]);
    let main = lab.work_bytes();
    let linked: &'static Path = Box::leak(lab.dir.join("linked").into_boxed_path());
    lab.land_as(|order| order.repository = linked)
        .unwrap()
        .settled()
        .unwrap();
    assert_eq!(lab.work_bytes(), main);
    assert_eq!(git_in(linked, &["status", "--porcelain"]), "");
    assert_eq!(
        git_in(linked, &["log", "-1", "--format=%s"]),
        "Make it right"
    );
    assert_eq!(lab.git(&["log", "-1", "--format=%s", "main"]), "start");
    lab.assert_tidy("linked");
}

#[test]
fn a_submodule_elsewhere_stays_and_one_on_the_way_is_refused() {
    let lab = Lab::new();
    let other = lab.dir.join("other");
    fs::create_dir(&other).unwrap();
    git_in(&other, &["init", "-q"]);
    git_in(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let url = other.to_str().unwrap();
    lab.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "module",
    ]);
    lab.git(&["commit", "-q", "-m", "module"]);
    lab.land().unwrap().settled().unwrap();
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    let inside = lab.land_as(|order| {
        if let Change::Patch { paths, .. } = &mut order.change {
            *paths = [TreePath::new("module/x")].into();
        }
    });
    assert!(
        matches!(
            inside,
            Err(LandingError::Refused(_) | LandingError::Changed(_))
        ),
        "{inside:?}"
    );
}

#[test]
fn a_commit_is_taken_back_by_another() {
    let lab = Lab::new();
    let landed = lab.land().unwrap();
    let commit = landed.commit.clone();
    landed.settled().unwrap();
    lab.write("later", "x\n");
    lab.git(&["add", "later"]);
    lab.git(&["commit", "-q", "-m", "later"]);
    let undo = |order: &mut Order<'_>| {
        order.words = "Take it back";
    };
    let back = lab.with_order(undo, |order| {
        let order = Order {
            change: Change::Undo { commit: &commit },
            users_home: None,
            author: Who::harness(),
            committer: Who::harness(),
            ..*order
        };
        land(&order, &Cancel::never().unwrap())
    });
    back.unwrap().settled().unwrap();
    assert_eq!(
        (lab.read("a"), lab.read("turns"), lab.read("later")),
        ("old\n".into(), "t\n".into(), "x\n".into())
    );
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert!(
        lab.git(&["log", "-1", "--format=%(trailers)"])
            .contains(&format!("Cto-Reverts: {commit}"))
    );
    assert_eq!(lab.git(&["diff", "--name-only", "HEAD~3", "HEAD"]), "later");
    lab.assert_tidy("reverted");
}
