//! Work trees with files of Git LFS: pointers in copies, contents beside their owner, and a filter
//! program that is never started.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cto_testkit::{Answer, Bundle, House, Repo, write};

use super::{RIGHT, passed, right};
use crate::house;

const CONTENT: &str = "contents, as large as you like\n";
const RULE: &str = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
/// What makes a pointer of a file.
const CLEAN: &str = "#!/bin/sh\nt=$(mktemp)\ncat > $t\nprintf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $(sha256sum < $t | cut -d' ' -f1) $(stat -c %s $t)\nrm $t\n";

/// A repository with a large file, whose filter says from now on that it was started.
fn large(house: &House, private: bool) -> Repo {
    let repo = Repo::new(house, "large");
    let (filter, ran) = (house.root().join("filter"), house.root().join("ran"));
    let program = |text: &str| {
        fs::write(&filter, text).unwrap();
        fs::set_permissions(&filter, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(CLEAN);
    for how in ["clean", "smudge"] {
        let name = format!("filter.lfs.{how}");
        repo.git(&["config", &name, filter.to_str().unwrap()]);
    }
    repo.git(&["config", "filter.lfs.required", "true"]);
    let rules = if private {
        fs::create_dir_all(repo.at(".git/info")).unwrap();
        ".git/info/attributes"
    } else {
        ".gitattributes"
    };
    repo.write(rules, RULE);
    repo.write("control.txt", "fine\n");
    repo.write("data/a b.bin", CONTENT);
    repo.commit("a large file");
    assert!(
        repo.git(&["show", "HEAD:data/a b.bin"])
            .contains("oid sha256:")
    );
    program(&format!("#!/bin/sh\ntouch '{}'\nfalse\n", ran.display()));
    repo
}

fn tried(house: &House, repo: &Repo, steps: &[String]) -> (Answer, Bundle) {
    let test = format!(
        "grep -q '^oid sha256:' 'data/a b.bin' && test -z \"$(git diff --name-only)\" && {RIGHT}"
    );
    super::tried(house, repo, steps, &["--test", &test])
}

fn apply(house: &House, repo: &Repo, bundle: &Bundle) -> Answer {
    let run = bundle.report()["run_id"].as_str().unwrap().to_owned();
    house.cto(&["apply", &run, "--repo", repo.path()])
}

#[test]
fn a_work_tree_with_contents_is_clean_and_can_be_applied_to() {
    for private in [false, true] {
        for touched in [false, true] {
            let house = house();
            let repo = large(&house, private);
            if touched {
                // The same bytes, and nothing that the index knows of them.
                fs::remove_file(repo.at("data/a b.bin")).unwrap();
                repo.write("data/a b.bin", CONTENT);
            }
            let (answer, bundle) = tried(&house, &repo, &[right()]);
            let what = format!("private {private}, touched {touched}");
            passed(&what, &answer, &bundle);
            assert_eq!(bundle.changed_files(), ["answer.txt"], "{what}");
            let applied = apply(&house, &repo, &bundle);
            assert_eq!(applied.code, Some(0), "{what}: {applied:?}");
            assert_eq!(repo.read("answer.txt"), "right\n", "{what}");
            assert_eq!(repo.read("data/a b.bin"), CONTENT, "{what}");
            assert!(!house.root().join("ran").exists(), "{what}");
        }
    }
}

/// By its bytes, whatever its size, time or mode.
#[test]
fn what_its_owner_changed_of_a_large_file_is_a_change() {
    let other = CONTENT.replace("contents", "CONTENTS");
    for what in ["bytes", "mode", "link", "no attribute"] {
        let house = house();
        let repo = large(&house, false);
        let file = repo.at("data/a b.bin");
        match what {
            "bytes" => fs::write(&file, &other).unwrap(),
            "mode" => fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap(),
            "link" => {
                fs::write(house.root().join("same"), CONTENT).unwrap();
                fs::remove_file(&file).unwrap();
                std::os::unix::fs::symlink(house.root().join("same"), &file).unwrap();
            }
            _ => {
                repo.write(".gitattributes", "*.other filter=lfs\n");
                fs::remove_file(&file).unwrap();
                repo.write("data/a b.bin", CONTENT);
            }
        }
        let (answer, bundle) = tried(&house, &repo, &[right()]);
        assert_eq!(
            (answer.code, bundle.codes()),
            (Some(3), vec!["dirty_starting_tree".to_owned()]),
            "{what}"
        );
        assert!(!house.root().join("ran").exists(), "{what}");
    }
}

/// A patch of a pointer says nothing about contents: those are not thrown away for it.
#[test]
fn contents_are_never_replaced_by_a_pointer() {
    let house = house();
    let repo = large(&house, false);
    let pointer = repo.git(&["show", "HEAD:data/a b.bin"]);
    let changed = pointer.replace("size ", "size 1");
    let steps = [right(), write("data/a b.bin", &changed)];
    let (answer, bundle) = tried(&house, &repo, &steps);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let applied = apply(&house, &repo, &bundle);
    assert_ne!(applied.code, Some(0), "{applied:?}");
    assert_eq!(repo.read("data/a b.bin"), CONTENT);
    assert_eq!(repo.read("answer.txt"), "wrong\n");
    assert!(!house.root().join("ran").exists());
}
