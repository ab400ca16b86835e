//! Repositories in odd places, and what a test does to its surroundings: the right verdict, and
//! nothing of the owner's changed.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{files_below, is_root, skip, wait_until, write};

use super::*;
use crate::work::full_disks::{SmallDisk, assert_honest};

fn right() -> String {
    write("answer.txt", "right\n")
}

const TEST: &str = "grep -qx right answer.txt node_modules/pkg/tool && rm node_modules/pkg/f1 && \
                    echo x > node_modules/new";

#[test]
fn spaces_other_repositories_and_mount_points_are_places_like_others() {
    for (kind, (files, _)) in KINDS.into_iter().zip(SIZES) {
        let house = house_with(kind);
        let outer = Repo::new(&house, "outer");
        outer.write(".gitignore", "/inner/\n");
        outer.commit("another repository");
        let mounted = house.root().join("mounted");
        let disk = SmallDisk::mount_with(&mounted, "size=64m");
        let mut names = vec!["two words/and  more", "outer/inner", "quo'te\"d"];
        match disk.is_some() {
            true => names.push("mounted"),
            false => skip("nothing can be mounted here"),
        }
        for name in names {
            let repo = repo_ignoring(&house, name);
            install(&repo, "node_modules", files);
            let before = repo.bytes();
            let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", TEST]);
            assert_passed(&answer, &bundle, &format!("{kind}: {name}"));
            assert_eq!(repo.bytes(), before, "{kind}: {name}");
            assert_eq!(bundle.changed_files(), ["answer.txt"], "{kind}: {name}");
        }
    }
}

#[test]
fn a_repository_that_goes_away_during_a_run_is_said() {
    for (files, _) in SIZES {
        for what in ["moved", "removed", "exchanged"] {
            let house = house_with("copy");
            let repo = repo_ignoring(&house, "leaving");
            install(&repo, "node_modules", files);
            let before = repo.bytes();
            let test = "echo waiting-for-owner; sleep 2; grep -qx right answer.txt";
            let steps = script(&[right()]);
            let mut child = house.start_try(&repo, &steps, &["--allow", ".", "--test", test]);
            let log = || -> Option<PathBuf> { Some(house.run_dirs().pop()?.join("test.log")) };
            let waits = || {
                let found = log().and_then(|log| fs::read(log).ok()).unwrap_or_default();
                String::from_utf8_lossy(&found).contains("\nwaiting-for-owner")
            };
            assert!(wait_until(waits), "{what}");
            let aside = house.root().join("aside");
            match what {
                "removed" => fs::remove_dir_all(&repo.dir).unwrap(),
                _ => fs::rename(&repo.dir, &aside).unwrap(),
            }
            if what == "exchanged" {
                fs::create_dir(&repo.dir).unwrap();
                fs::write(repo.at("answer.txt"), "somebody else's\n").unwrap();
            }
            let code = child.wait().unwrap().code();
            let bundle = Bundle::at(house.run_dirs().pop().unwrap());
            let blockers = bundle.report()["blockers"].to_string();
            assert_eq!(code, Some(0), "{what}: {blockers}");
            let source = bundle.json("source.json");
            assert_eq!(source["source_repository_mutated"], true, "{what}");
            assert_eq!(source["judged"], false, "{what}");
            crate::assert_good(&bundle);
            assert!(house.work_entries().is_empty(), "{what}");
            match what {
                "moved" => {
                    fs::rename(&aside, &repo.dir).unwrap();
                    assert_eq!(repo.bytes(), before, "{what}");
                }
                "exchanged" => assert_eq!(repo.read("answer.txt"), "somebody else's\n"),
                _ => assert!(!repo.dir.exists(), "{what}"),
            }
        }
    }
}

#[test]
fn a_test_that_writes_everywhere_changes_nothing_of_its_owners() {
    for (files, carried) in SIZES {
        let house = house_with("overlay");
        let repo = repo_ignoring(&house, "loud");
        install(&repo, "node_modules", files);
        let home = house.root().join("home");
        fs::create_dir_all(home.join(".config")).unwrap();
        fs::write(home.join(".config/x"), "kept\n").unwrap();
        let (before, at_home) = (repo.bytes(), files_below(&home));
        let test = format!(
            "for d in .. ../.. '{}' '{}' /etc /usr /var /opt / \"$HOME\" /tmp; do \
               echo x > \"$d\"/cto-was-here; rm -rf \"$d\"/.config; done 2>/dev/null; \
             rm -rf .git node_modules/* .venv 2>/dev/null; grep -qx right answer.txt",
            home.display(),
            house.root().display()
        );
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", &test]);
        assert_passed(&answer, &bundle, carried);
        assert_eq!(repo.bytes(), before, "{carried}");
        assert_eq!(files_below(&home), at_home, "{carried}");
        for dir in [
            house.root(),
            &home,
            "/etc".as_ref(),
            "/usr".as_ref(),
            "/".as_ref(),
        ] {
            assert!(
                !dir.join("cto-was-here").exists(),
                "{carried}: {}",
                dir.display()
            );
        }
    }
}

#[test]
fn a_test_that_fills_the_disk_by_its_environment_gets_its_verdict_or_a_plain_word() {
    if !is_root() {
        return skip("only root can mount a small disk");
    }
    for (files, carried) in SIZES {
        for (what, test) in [
            ("and is red", "cat /dev/zero > node_modules/big; exit 1"),
            (
                "and goes on",
                "cat /dev/zero > node_modules/big; grep -qx right answer.txt",
            ),
            (
                "and gives it back",
                "cat /dev/zero > node_modules/big; rm node_modules/big; grep -qx right answer.txt",
            ),
        ] {
            let house = house_with("copy");
            let Some(_disk) = SmallDisk::mount_with(&house.state(), "size=24m") else {
                return skip("nothing can be mounted here");
            };
            let repo = repo_ignoring(&house, "full");
            install(&repo, "node_modules", files);
            let before = repo.bytes();
            let steps = script(&[right()]);
            let mut command =
                house.try_command(&repo, &steps, &["--allow", ".", "--test", test, "--json"]);
            let answer = Answer::of(&command.output().unwrap());
            let what = format!("{carried}: {what}");
            match answer.code {
                Some(1) if answer.stdout.contains("verification_failed") => {}
                _ => assert_honest(&answer, &house.runs_dir(), &what),
            }
            assert_eq!(repo.bytes(), before, "{what}");
            assert!(house.work_entries().is_empty(), "{what}");
        }
    }
}

#[test]
fn a_home_in_the_repository_is_no_secret_of_the_engines() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = repo_ignoring(&house, "around");
        repo.write(".gitignore", "node_modules\n/me/\n");
        repo.commit("a home in it");
        install(&repo, "node_modules", 3);
        repo.write("me/.ssh/id_rsa", "do-not-show-me\n");
        let house = house.with("HOME", repo.at("me").to_str().unwrap());
        let before = repo.bytes();
        let test = "test ! -e me && ! grep -rqs do-not-show-me . && grep -qx right answer.txt";
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
        assert_passed(&answer, &bundle, kind);
        assert_eq!(repo.bytes(), before, "{kind}");
    }
}
