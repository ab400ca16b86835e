//! Kept checkouts: made once, used by many, never changed, gone when there are too many.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{Repo, files_below, shell, write};

use super::{CONTAINED, KINDS, checkouts, entries, house_with, made, right, try_it};
use crate::assert_good;

#[test]
fn a_second_run_starts_from_the_checkout_of_the_first_and_leaves_it_alone() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    let (answer, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
    );
    assert_eq!(made(&bundle), "overlay, checkout made");
    assert!(
        bundle.event("plan.updated").unwrap()["summary"]
            .as_str()
            .unwrap()
            .contains("overlay")
    );
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    let kept = entries(&checkouts(&house));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].starts_with(&format!("{tree}-2-")), "{kept:?}");
    let before = files_below(&checkouts(&house));
    let hostile = "rm -rf src .git; echo x > src; chmod 777 .; for f in *; do echo x >> $f; chmod 600 $f; done; ln answer.txt two";
    for (steps, status) in [
        (vec![right()], "pass"),
        (vec![right(), shell(hostile)], "fail"),
    ] {
        let (_, bundle) = try_it(&house, &repo, &steps, CONTAINED);
        assert_eq!(
            (made(&bundle).as_str(), bundle.status().as_str()),
            ("overlay, checkout known", status)
        );
        assert_eq!(
            files_below(&checkouts(&house)),
            before,
            "nobody writes to a checkout"
        );
        assert_good(&bundle);
    }
    assert!(house.work_entries().is_empty());
    repo.write("src/keep.txt", "kept\n");
    repo.commit("another tree");
    let (_, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(
        (made(&bundle).as_str(), entries(&checkouts(&house)).len()),
        ("overlay, checkout made", 2)
    );
}

#[test]
fn the_size_of_a_repository_decides() {
    let house = house_with("neither");
    let repo = Repo::new(&house, "project");
    let (_, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(made(&bundle), "copy", "a few files are copied sooner");
    for number in 0..300 {
        repo.write(&format!("many/{number}.txt"), "x\n");
    }
    repo.commit("many");
    let (answer, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(
        (answer.code, made(&bundle).as_str()),
        (Some(0), "overlay, checkout made"),
        "{answer:?}"
    );
}

#[test]
fn a_torn_checkout_is_made_anew_and_a_half_made_one_never_counts() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    try_it(&house, &repo, &[right()], &[]);
    let entry = checkouts(&house).join(&entries(&checkouts(&house))[0]);
    let manifest = fs::read(entry.join("manifest")).unwrap();
    let half = checkouts(&house).join("aside-4194305-left");
    fs::create_dir(&half).unwrap();
    for torn in [manifest[..manifest.len() / 2].to_vec(), Vec::new()] {
        fs::write(entry.join("manifest"), torn).unwrap();
        let (answer, bundle) = try_it(&house, &repo, &[right()], &[]);
        assert_eq!(
            (answer.code, made(&bundle).as_str()),
            (Some(0), "overlay, checkout made"),
            "{answer:?}"
        );
        assert_eq!(
            fs::read(entry.join("manifest")).unwrap(),
            manifest,
            "the same tree gives the same manifest"
        );
    }
    assert_eq!(
        entries(&checkouts(&house)).len(),
        1,
        "what a dead process left half made is swept"
    );
}

#[test]
fn git_need_not_read_every_file_to_see_that_nothing_changed() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    // This question does not look into files: whatever the index does not know the times of is
    // taken for changed.
    let asks = shell("git diff-files --quiet && printf 'right\\n' > answer.txt");
    let (answer, bundle) = try_it(&house, &repo, &[asks], &[]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("backend/stderr.log")
    );
}

#[test]
fn of_two_who_make_a_checkout_at_once_one_wins_and_both_use_it() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    let children: Vec<_> = (0..3)
        .map(|_| house.start_try(&repo, &right(), &["--test", "true"]))
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(entries(&checkouts(&house)).len(), 1);
}

#[test]
fn an_unused_checkout_goes_when_there_are_too_many() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    try_it(&house, &repo, &[right()], &[]);
    let first = entries(&checkouts(&house)).remove(0);
    for number in 0..9 {
        fs::create_dir(checkouts(&house).join(format!("{number:040}-1"))).unwrap();
    }
    repo.write("src/keep.txt", "kept\n");
    repo.commit("another tree");
    try_it(&house, &repo, &[right()], &[]);
    let left = entries(&checkouts(&house));
    assert!(left.len() == 8 && left.contains(&first), "{left:?}");
    let doctor = house.cto(&["doctor", "--json"]);
    assert_eq!(doctor.json()["checkouts"]["count"], 8);
}

#[test]
fn a_kept_workspace_is_there_to_be_looked_into() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let steps = [
            write("answer.txt", "wrong again\n"),
            shell("rm src/keep.txt; mkdir -p new; echo x > new/file.txt"),
        ];
        let (answer, bundle) = try_it(&house, &repo, &steps, &["--keep", "--allow", "."]);
        assert_eq!(bundle.status(), "fail", "{kind}");
        let dir = PathBuf::from(
            answer.json()["workspace"]
                .as_str()
                .unwrap_or_else(|| panic!("{kind}: {answer:?}")),
        );
        assert_eq!(
            fs::read_to_string(dir.join("answer.txt")).unwrap(),
            "wrong again\n",
            "{kind}"
        );
        assert!(
            dir.join("new/file.txt").is_file() && !dir.join("src/keep.txt").exists(),
            "{kind}"
        );
        assert!(
            dir.join(".git/HEAD").is_file() && dir.join(".gitignore").is_file(),
            "{kind}"
        );
    }
}
