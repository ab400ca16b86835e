//! Work trees whose files are not byte for byte what git keeps of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cto_testkit::{Answer, Bundle, House, Repo, script, write};

use super::CONTROL;
use crate::house;

fn tried(house: &House, repo: &Repo, steps: &[String], test: &str) -> (Answer, Bundle) {
    let control = house.script("control", CONTROL);
    let test = format!("{test}; grep -qx fine control.txt");
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
