//! Work trees whose files are not byte for byte what git keeps of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use cto_testkit::{Answer, Bundle, House, Repo, files_below, script, shell, write};

use super::CONTROL;
use crate::house;

fn tried(house: &House, repo: &Repo, steps: &[String], test: &str) -> (Answer, Bundle) {
    let control = house.script("control", CONTROL);
    let test = format!("{test} && grep -qx fine control.txt");
    let more = ["--allow", ".", "--test", &test, "--control", &control];
    house.try_on(repo, &script(steps), &more)
}

/// What makes a work tree odd, and its name.
type Oddity = (&'static str, fn(&Repo));

/// How a work tree can differ from its blobs and be clean for its owner.
fn odd_work_trees() -> Vec<Oddity> {
    fn lines(repo: &Repo, end: &str) {
        for name in ["answer.txt", "control.txt", "other.txt"] {
            let text = if name == "control.txt" {
                "fine"
            } else {
                "wrong"
            };
            repo.write(name, &format!("{text}{end}"));
        }
    }
    vec![
        ("modes", |repo| {
            lines(repo, "\n");
            repo.commit("start");
            repo.git(&["config", "core.fileMode", "false"]);
            for name in ["answer.txt", "other.txt"] {
                fs::set_permissions(repo.at(name), fs::Permissions::from_mode(0o755)).unwrap();
            }
        }),
        ("autocrlf", |repo| {
            repo.git(&["config", "core.autocrlf", "true"]);
            lines(repo, "\r\n");
            repo.commit("start");
        }),
        ("attributes", |repo| {
            repo.write(".gitattributes", "*.txt text eol=crlf\n");
            lines(repo, "\r\n");
            repo.commit("start");
        }),
        ("private attributes", |repo| {
            fs::create_dir_all(repo.at(".git/info")).unwrap();
            repo.write(".git/info/attributes", "*.txt text eol=crlf\n");
            lines(repo, "\r\n");
            repo.commit("start");
        }),
    ]
}

#[test]
fn a_work_tree_that_is_clean_for_its_owner_is_clean_and_can_be_applied_to() {
    for (what, make) in odd_work_trees() {
        let house = house();
        let repo = Repo::new(&house, "odd");
        make(&repo);
        // Younger than the index: nothing is clean by its time alone.
        repo.git(&["status", "--short"]);
        let text = repo.read("answer.txt");
        fs::remove_file(repo.at("answer.txt")).unwrap();
        repo.write("answer.txt", &text);
        if what == "modes" {
            fs::set_permissions(repo.at("answer.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{what}");
        let steps = [write("answer.txt", "right\n"), write("new.txt", "new\n")];
        let (answer, bundle) = tried(&house, &repo, &steps, "grep -qx right answer.txt");
        assert_eq!(answer.code, Some(0), "{what}: {answer:?}");
        let run = bundle.report()["run_id"].as_str().unwrap().to_owned();
        let applied = house.cto(&["apply", &run, "--repo", repo.path()]);
        assert_eq!(applied.code, Some(0), "{what}: {applied:?}");
        let ends = if what == "modes" { "\n" } else { "\r\n" };
        assert_eq!(repo.read("answer.txt"), format!("right{ends}"), "{what}");
        assert_eq!(repo.read("new.txt"), format!("new{ends}"), "{what}");
        assert_eq!(
            repo.git(&["status", "--porcelain"]),
            " M answer.txt\n?? new.txt",
            "{what}"
        );
        let mode = fs::metadata(repo.at("answer.txt"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o111 != 0, what == "modes", "{what}");
        let again = house.cto(&["apply", &run, "--repo", repo.path()]);
        assert!(again.code == Some(0), "{what}: {again:?}");
    }
}

/// What its owner changed is no less changed where files are converted.
#[test]
fn a_real_change_is_never_taken_for_a_difference_of_form() {
    for (what, make) in odd_work_trees() {
        let house = house();
        let repo = Repo::new(&house, "odd");
        make(&repo);
        let (answer, bundle) = tried(
            &house,
            &repo,
            &[write("answer.txt", "right\n")],
            "grep -qx right answer.txt",
        );
        assert_eq!(answer.code, Some(0), "{what}: {answer:?}");
        let run = bundle.report()["run_id"].as_str().unwrap().to_owned();
        repo.write("answer.txt", "mine!\r\n");
        let refused = house.cto(&["apply", &run, "--repo", repo.path()]);
        assert_ne!(refused.code, Some(0), "{what}: {refused:?}");
        assert_eq!(repo.read("answer.txt"), "mine!\r\n", "{what}");
    }
}

/// Every file but git's own: what it is, whether it can be run, and what it says.
fn laid_out(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let names = files_below(dir).into_iter().map(|(name, _)| name);
    for name in names.filter(|name| !name.starts_with(".git/")) {
        let place = dir.join(&name);
        let meta = fs::symlink_metadata(&place).unwrap();
        let said = match meta.is_symlink() {
            true => format!("-> {}", fs::read_link(&place).unwrap().display()),
            false => fs::read_to_string(&place).unwrap(),
        };
        let runs = meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        found.push(format!("{name} {runs} {said:?}"));
    }
    found
}

/// Where git makes no links or looks at no modes, what a patch leaves is what git itself leaves.
#[test]
fn links_and_modes_are_left_as_the_owners_git_leaves_them() {
    let change = "ln -s answer.txt new-link; ln -sfn src changed; rm gone; rm text && ln -s src text; \
                  rm file && printf file > file; chmod +x plain; chmod -x runs; echo more >> both; \
                  chmod +x both; echo right > answer.txt; echo x > tool; chmod +x tool; rm kept && ln -s b kept";
    for settings in [
        &["core.symlinks"][..],
        &["core.fileMode"],
        &["core.symlinks", "core.fileMode"],
        &[],
    ] {
        let house = house();
        let repo = Repo::new(&house, "project");
        repo.write("control.txt", "fine\n");
        for name in ["changed", "gone", "file", "untouched", "kept"] {
            symlink("answer.txt", repo.at(name)).unwrap();
        }
        for name in ["text", "plain", "both"] {
            repo.write(name, "some\n");
        }
        repo.program("runs", "#!/bin/sh\n");
        repo.commit("links");
        for setting in settings {
            repo.git(&["config", setting, "false"]);
        }
        if settings.contains(&"core.symlinks") {
            // As a clone has them there; one was put back by hand.
            for name in ["changed", "gone", "file", "untouched"] {
                fs::remove_file(repo.at(name)).unwrap();
                repo.git(&["checkout", "-q", name]);
                assert!(repo.at(name).is_file() && !repo.at(name).is_symlink());
            }
        }
        assert_eq!(repo.git(&["status", "--porcelain"]), "", "{settings:?}");
        let (answer, bundle) = tried(
            &house,
            &repo,
            &[shell(change)],
            "grep -qx right answer.txt && test -L new-link && test -x tool",
        );
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(0), "{settings:?}: {answer:?} {log}");
        let twin = Repo {
            dir: house.root().join("twin"),
        };
        let mut copy = Command::new("cp");
        copy.args(["-a", repo.path(), twin.path()]);
        assert!(copy.status().unwrap().success());
        // Its files are not those its index knows.
        twin.git(&["status", "--porcelain"]);
        let patch = bundle.dir.join("patch.diff");
        twin.git(&["apply", "--index", patch.to_str().unwrap()]);
        let applied = house.cto(&["apply", &bundle.run_id()]);
        assert_eq!(applied.code, Some(0), "{settings:?}: {applied:?}");
        assert_eq!(laid_out(&repo.dir), laid_out(&twin.dir), "{settings:?}");
        let again = house.cto(&["apply", &bundle.run_id(), "--json"]);
        assert_eq!(again.json()["was_applied_before"], true, "{settings:?}");
    }
}

/// A text in the place of a link is still its owner's where they changed it.
#[test]
fn a_text_that_stands_for_a_link_is_not_overwritten_when_it_says_something_else() {
    let house = house();
    let repo = Repo::new(&house, "project");
    repo.write("control.txt", "fine\n");
    symlink("answer.txt", repo.at("link")).unwrap();
    repo.commit("a link");
    repo.git(&["config", "core.symlinks", "false"]);
    let change = [shell("ln -sfn src link; echo right > answer.txt")];
    let (answer, bundle) = tried(&house, &repo, &change, "grep -qx right answer.txt");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for text in ["mine", "answer.txt\r\n", "answer.txt\n"] {
        fs::remove_file(repo.at("link")).unwrap();
        repo.write("link", text);
        let refused = house.cto(&["apply", &bundle.run_id(), "--json"]);
        assert_eq!(refused.json()["error"]["code"], "dirty_path", "{text:?}");
        assert_eq!(repo.read("link"), text);
        assert_eq!(repo.read("answer.txt"), "wrong\n");
    }
}
