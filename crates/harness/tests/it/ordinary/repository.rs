//! Git where people use it: a repository in every check, and work trees whose files are not byte for
//! byte what git keeps of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cto_testkit::{Answer, Bundle, Case, House, ORACLE, Repo, script, shell, skip, write};

use crate::assert_good;
use crate::house;

const CONTROL: &str = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n";

fn tried(house: &House, repo: &Repo, steps: &[String], test: &str) -> (Answer, Bundle) {
    let file = house.script("steps", &script(steps));
    let control = house.script("control", CONTROL);
    let test = format!("{test}; grep -qx fine control.txt");
    let args = [
        "try",
        "--repo",
        repo.path(),
        "--task",
        "Make it right",
        "--allow",
        ".",
        "--test",
        &test,
        "--control",
        &control,
        "--script",
        &file,
        "--json",
    ];
    house.run_args(&args)
}

/// What the check itself said, each line once.
fn said(bundle: &Bundle, word: &str) -> Vec<String> {
    let log = bundle.text("test.log");
    let lines = log.lines().filter_map(|line| line.strip_prefix(word));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.dedup();
    lines
}

fn tagged(house: &House) -> Repo {
    let repo = Repo::new(house, "tagged");
    repo.write("old.txt", "of history alone\n");
    repo.write("gone.txt", "goes\n");
    repo.write("control.txt", "fine\n");
    repo.write(".env", "PASSWORD=hidden\n");
    repo.git(&["add", "-A", "-f"]);
    repo.commit("more");
    repo.git(&["tag", "-a", "-m", "one", "v1.2.0"]);
    repo.git(&["rm", "-q", "old.txt"]);
    repo.commit("less");
    repo.git(&["tag", "latest"]);
    repo
}

#[test]
fn a_check_finds_one_commit_the_change_staged_and_the_nearest_tags() {
    let house = house();
    let repo = tagged(&house);
    let id = |what: &str| repo.git(&["rev-parse", what]).trim().to_owned();
    let (history, masked) = (id("v1.2.0:old.txt"), id("HEAD:.env"));
    let ask = format!(
        "echo cached: $(git diff --cached --name-status); echo unstaged: $(git diff --name-only); \
         echo files: $(git ls-files); echo commits: $(git rev-list --all --count); \
         echo describe: $(git describe) $(git describe --tags); echo status: $(git status --short); \
         for id in {history} {masked}; do git cat-file -e $id 2>/dev/null && echo leaked: $id; done; \
         echo stash: $(git stash -q && cat answer.txt && git stash pop -q --index && cat answer.txt)"
    );
    let steps = [
        write("answer.txt", "right\n"),
        write("new.txt", "new\n"),
        shell("rm gone.txt"),
    ];
    let (answer, bundle) = tried(&house, &repo, &steps, &ask);
    let log = bundle.text("test.log");
    assert_eq!(answer.code, Some(0), "{answer:?} {log}");
    let first = |word: &str| said(&bundle, word).first().cloned().unwrap_or_default();
    assert_eq!(
        first("cached: "),
        "M answer.txt D gone.txt A new.txt",
        "{log}"
    );
    assert_eq!(first("unstaged:"), "", "{log}");
    assert_eq!(
        first("status: "),
        "M answer.txt D gone.txt A new.txt",
        "{log}"
    );
    assert_eq!(
        first("files: "),
        ".env .gitignore answer.txt control.txt new.txt src/keep.txt",
        "{log}"
    );
    assert_eq!(first("commits: "), "1", "{log}");
    assert_eq!(first("describe: "), "v1.2.0 latest", "{log}");
    assert_eq!(first("stash: "), "wrong right", "{log}");
    assert!(said(&bundle, "leaked:").is_empty(), "{log}");
    assert_good(&bundle);
}

/// Built-in cases have no repository; their checks have one all the same.
#[test]
fn a_case_has_one_too_and_what_becomes_of_it_is_nobodys_business() {
    let house = house();
    let right = "grep -qx right answer.txt && grep -qx fine control.txt";
    for (name, line) in [
        (
            "asked",
            "test \"$(git diff --cached --name-only)\" = answer.txt && test -z \"$(git diff --name-only -- keep.txt)\" && git ls-files | grep -qx keep.txt",
        ),
        ("removed", "rm -rf .git"),
        (
            "ruined",
            "git config core.fsmonitor 'touch /tmp/ran; false' && git config core.hooksPath /tmp && echo x > .git/index && rm -rf .git/objects",
        ),
        ("replaced", "rm -rf .git && ln -s /etc .git"),
    ] {
        let command = serde_json::to_string(&format!("{line} && {right}")).unwrap();
        let case = house.case(&Case::new(name).commands(&format!("[{command}]")));
        let (answer, bundle) = house.run(&case, ORACLE, &[]);
        assert_eq!(
            answer.code,
            Some(0),
            "{name}: {answer:?} {}",
            bundle.text("test.log")
        );
        assert_good(&bundle);
    }
}

#[test]
fn setuptools_scm_finds_a_version() {
    let there = Command::new("/usr/bin/python3")
        .args(["-c", "import setuptools_scm"])
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        return skip("setuptools-scm is not installed for the whole system");
    }
    let house = house();
    let repo = tagged(&house);
    let ask = "echo version: $(/usr/bin/python3 -c 'import setuptools_scm; print(setuptools_scm.get_version())')";
    let (answer, bundle) = tried(&house, &repo, &[write("answer.txt", "right\n")], ask);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let version = said(&bundle, "version: ");
    assert!(version[0].starts_with("1.2."), "{version:?}");
}

/// How a work tree can differ from its blobs and be clean for its owner.
fn odd_work_trees() -> Vec<(&'static str, fn(&Repo))> {
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
            " M answer.txt\n?? new.txt\n",
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
