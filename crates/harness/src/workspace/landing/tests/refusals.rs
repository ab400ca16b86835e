//! What is not safe, and what changes between the look and the landing.

use std::os::unix::fs::symlink;

use cto_core::workspace::landing::refusal::Reason;

use super::*;

pub fn refused(result: Result<Landed, LandingError>) -> Vec<Reason> {
    match result {
        Err(LandingError::Refused(all)) => all.into_iter().map(|refusal| refusal.reason).collect(),
        Err(other) => panic!("{other}: {other:?}"),
        Ok(landed) => panic!("{landed:?}"),
    }
}

pub type Make = fn(&Lab);

/// Not one byte of the repository is another.
#[test]
fn what_is_not_safe_is_refused_with_its_reason() {
    let rows: [(Reason, Make); 19] = [
        (Reason::HeadDetached, |lab| {
            drop(lab.git(&["checkout", "-q", "--detach"]))
        }),
        (Reason::Unfinished, |lab| lab.write(".git/MERGE_HEAD", "x")),
        (Reason::Unfinished, |lab| {
            fs::create_dir(lab.repo().join(".git/rebase-merge")).unwrap()
        }),
        (Reason::Locked, |lab| lab.write(".git/index.lock", "")),
        (Reason::Maintenance, |lab| {
            lab.write(".git/gc.pid", "1 elsewhere")
        }),
        (Reason::Maintenance, |lab| {
            lab.write(".git/objects/maintenance.lock", "")
        }),
        (Reason::Dirty, |lab| lab.write("a", "mine\n")),
        (Reason::Dirty, |lab| lab.write("new/dir/c", "in the way\n")),
        (Reason::Dirty, |lab| {
            lab.write("a", "staged\n");
            lab.git(&["add", "a"]);
            lab.write("a", "old\n");
        }),
        (Reason::Dirty, |lab| {
            lab.git(&["update-index", "--assume-unchanged", "a"]);
            lab.write("a", "hidden\n");
        }),
        (Reason::Link, |lab| {
            fs::rename(lab.repo().join("src"), lab.repo().join("real")).unwrap();
            symlink("real", lab.repo().join("src")).unwrap();
        }),
        (Reason::Filter, |lab| {
            lab.write(".git/info/attributes", "a filter=evil\n");
            lab.git(&["config", "filter.evil.clean", "touch ran; cat"]);
            lab.git(&["config", "filter.evil.smudge", "touch ran; cat"]);
        }),
        (Reason::Filter, |lab| {
            lab.write(".git/info/attributes", "a filter=lfs diff=lfs -text\n")
        }),
        (Reason::Encoding, |lab| {
            lab.write(".git/info/attributes", "a working-tree-encoding=UTF-16\n")
        }),
        (Reason::Keywords, |lab| {
            lab.write(".git/info/attributes", "a ident\n")
        }),
        (Reason::Sparse, |lab| {
            drop(lab.git(&["config", "core.sparseCheckout", "true"]))
        }),
        (Reason::PartialClone, |lab| {
            drop(lab.git(&["config", "remote.origin.promisor", "true"]))
        }),
        (Reason::SharedBranch, |lab| {
            lab.git(&["worktree", "add", "-q", "-f", "../linked", "main"]);
        }),
        (Reason::CaseClash, |lab| {
            lab.git(&["config", "core.ignoreCase", "true"]);
            lab.write("LINK", "x\n");
            lab.git(&["add", "LINK"]);
        }),
    ];
    for (number, (reason, make)) in rows.into_iter().enumerate() {
        let lab = Lab::new();
        make(&lab);
        let before = lab.bytes();
        let found = refused(lab.land());
        assert!(found.contains(&reason), "{number} {reason:?}: {found:?}");
        assert_eq!(lab.bytes(), before, "{number} {reason:?}");
        assert!(lab.recover().is_empty(), "{number}");
    }
}

/// Moved by its name it would be a branch of its own, and the one that it stood for would stay behind.
#[test]
fn a_branch_that_stands_for_another_is_not_moved() {
    let lab = Lab::new();
    lab.git(&["branch", "real"]);
    lab.git(&["symbolic-ref", "refs/heads/main", "refs/heads/real"]);
    let before = lab.bytes();
    let refused = lab.land();
    assert!(
        matches!(refused, Err(LandingError::Symbolic(_))),
        "{refused:?}"
    );
    assert_eq!(lab.bytes(), before);
}

#[test]
fn only_the_commit_and_the_branch_that_were_meant() {
    let lab = Lab::new();
    let head: &'static str = lab.git(&["rev-parse", "HEAD"]).leak();
    lab.write("later", "x\n");
    lab.git(&["add", "later"]);
    lab.git(&["commit", "-q", "-m", "later"]);
    let before = lab.bytes();
    assert_eq!(
        refused(lab.land_as(|order| order.head = Some(head))),
        [Reason::HeadMoved]
    );
    assert_eq!(
        refused(lab.land_as(|order| order.branch = Some("work"))),
        [Reason::OtherBranch]
    );
    assert_eq!(lab.bytes(), before);
    // A later commit that left the paths alone is no hindrance where none is named.
    lab.land().unwrap().settled().unwrap();
    lab.assert_landed("on a later commit");
    let lab = Lab::new();
    lab.write("a", "committed since\n");
    lab.git(&["commit", "-q", "-a", "-m", "since"]);
    assert!(matches!(lab.land(), Err(LandingError::Changed(_))));
    let lab = Lab::new();
    lab.write("untracked", "x\n");
    assert_eq!(
        refused(lab.land_as(|order| order.clean = Clean::Everything)),
        [Reason::Dirty]
    );
}

#[test]
fn what_changes_between_the_look_and_the_landing_is_seen_under_the_lock() {
    let rows: [(&str, Make); 6] = [
        ("a commit", |lab| {
            lab.write("later", "x\n");
            lab.git(&["add", "later"]);
            lab.git(&["commit", "-q", "-m", "later"]);
        }),
        ("a dirty file", |lab| lab.write("a", "typed just now\n")),
        ("another branch", |lab| {
            drop(lab.git(&["checkout", "-q", "-b", "work"]))
        }),
        ("a link", |lab| {
            fs::rename(lab.repo().join("src"), lab.repo().join("real")).unwrap();
            symlink("real", lab.repo().join("src")).unwrap();
        }),
        ("attributes", |lab| {
            lab.write(".git/info/attributes", "a filter=evil\n")
        }),
        ("another git", |lab| lab.write(".git/index.lock", "")),
    ];
    for (name, make) in rows {
        let lab = Lab::new();
        let ready = lab.prepare().unwrap();
        make(&lab);
        let before = lab.bytes();
        let ended = ready.land(&Cancel::never().unwrap());
        assert!(
            matches!(ended, Err(LandingError::Moved)),
            "{name}: {ended:?}"
        );
        assert_eq!(lab.bytes(), before, "{name}");
        assert!(lab.recover().is_empty(), "{name}");
    }
    // The branch alone, which needs no index lock.
    let lab = Lab::new();
    let ready = lab.prepare().unwrap();
    let other = lab.git(&["commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}"]);
    lab.git(&["update-ref", "refs/heads/main", &other]);
    let before = lab.work_bytes();
    let ended = ready.land(&Cancel::never().unwrap());
    assert!(matches!(ended, Err(LandingError::Git(_))), "{ended:?}");
    assert_eq!(lab.git(&["rev-parse", "main"]), other);
    assert_eq!(lab.work_bytes(), before);
    lab.assert_tidy("a branch that moved");
}

/// Of two at once one lands.
#[test]
fn only_one_cto_is_at_work_in_a_repository() {
    let lab = Lab::new();
    let ready = lab.prepare().unwrap();
    assert!(matches!(lab.prepare(), Err(LandingError::Busy)));
    ready
        .land(&Cancel::never().unwrap())
        .unwrap()
        .settled()
        .unwrap();
    lab.assert_landed("after the other");
}
