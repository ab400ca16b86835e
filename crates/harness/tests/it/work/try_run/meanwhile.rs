//! The owner of a repository works on while a try runs on a copy of it: that is said, and fails nothing.
//! What the patch touches is still checked when it is applied.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cto_testkit::{Bundle, Forged, House, Repo, copy_dir, script, shell, wait_until, write};

use super::{Done, fix, passes};
use crate::{assert_bad, assert_good, house};

const WAIT: &str = "while ! test -e .git/go; do sleep 0.01; done";

/// A try whose engine waits until [`Waiting::go_on`]; only a plain copy can be reached from here.
struct Waiting {
    child: Child,
    workspace: PathBuf,
}

impl Waiting {
    fn start(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> Self {
        let before = house.work_entries();
        let steps = script(&[&[shell(WAIT)], steps].concat());
        let child = house.start_try(repo, &steps, more);
        let mut found = None;
        let waits = wait_until(|| {
            let entries = house.work_entries();
            let new = entries
                .iter()
                .find(|name| name.contains("-try-") && !before.contains(name));
            found = new.map(|name| house.state().join("work").join(name).join("workspace"));
            found
                .as_ref()
                .is_some_and(|work| work.join(".git/index").exists())
        });
        assert!(waits, "the try never began");
        // The engine has begun once its log is there: everything was looked at before.
        let workspace = found.unwrap();
        let name = workspace.parent().unwrap().file_name().unwrap().to_owned();
        let log = house.runs_dir().join(name).join("events.normalized.jsonl");
        let begun = || fs::read_to_string(&log).is_ok_and(|text| text.contains("engine.started"));
        assert!(wait_until(begun), "the engine never began");
        Self { child, workspace }
    }

    fn go_on(&self) {
        fs::write(self.workspace.join(".git/go"), "").unwrap();
    }

    /// Its exit code, and its bundle.
    fn end(mut self, house: &House) -> (Option<i32>, Bundle) {
        self.go_on();
        let code = self.child.wait().unwrap().code();
        let name = self.workspace.parent().unwrap().file_name().unwrap();
        (code, Bundle::at(house.runs_dir().join(name)))
    }
}

/// What an owner does, how it is called, and how it is told.
type Told<'a> = (&'a str, &'a dyn Fn(&Repo), &'a str);

fn right() -> Vec<String> {
    vec![write("answer.txt", "right\n")]
}

fn copying() -> House {
    house().with("CTO_TEST_WORKSPACE", "copy")
}

#[test]
fn an_owner_works_on_and_the_patch_applies() {
    let changes: [Told<'_>; 12] = [
        ("nothing", &|_| {}, "untouched"),
        (
            "edited",
            &|repo| repo.write("src/keep.txt", "edited\n"),
            "you changed 1 file meanwhile",
        ),
        (
            "two new files",
            &|repo| {
                repo.write("notes.txt", "n\n");
                repo.write("src/more.txt", "m\n");
            },
            "you changed 2 files meanwhile",
        ),
        (
            "a file is gone",
            &|repo| fs::remove_file(repo.at("src/keep.txt")).unwrap(),
            "you changed 1 file meanwhile",
        ),
        (
            "committed",
            &|repo| {
                repo.write("notes.txt", "n\n");
                repo.commit("meanwhile");
            },
            "you changed 1 file and moved HEAD meanwhile",
        ),
        (
            "an empty commit",
            &|repo| {
                repo.git(&["commit", "-q", "--allow-empty", "-m", "meanwhile"]);
            },
            "you moved HEAD meanwhile",
        ),
        (
            "a branch",
            &|repo| {
                repo.git(&["branch", "meanwhile"]);
            },
            "you changed its refs, index or configuration meanwhile",
        ),
        (
            "a tag",
            &|repo| {
                repo.git(&["tag", "v1"]);
            },
            "you changed its refs, index or configuration meanwhile",
        ),
        (
            "fetched",
            &|repo| {
                let other = repo.dir.with_file_name("elsewhere");
                copy_dir(&repo.dir, &other);
                let other = Repo { dir: other };
                other.git(&["commit", "-q", "--allow-empty", "-m", "theirs"]);
                repo.git(&["fetch", "-q", other.path(), "main:refs/remotes/origin/main"]);
            },
            "you changed its refs, index or configuration meanwhile",
        ),
        (
            "another branch checked out",
            &|repo| {
                repo.git(&["checkout", "-q", "-b", "other"]);
            },
            "you changed its refs, index or configuration meanwhile",
        ),
        (
            "amended, and collected",
            &|repo| {
                repo.git(&["commit", "-q", "--amend", "-m", "said better"]);
                repo.git(&["reflog", "expire", "--expire=now", "--all"]);
                repo.git(&["gc", "-q", "--prune=now"]);
            },
            "you moved HEAD meanwhile",
        ),
        (
            "configured, hooked, told not to look",
            &|repo| {
                repo.git(&["config", "core.fsmonitor", "false"]);
                repo.program(".git/hooks/pre-push", "#!/bin/sh\n");
                repo.git(&["update-index", "--assume-unchanged", "src/keep.txt"]);
            },
            "you changed its refs, index or configuration meanwhile",
        ),
    ];
    for (name, change, words) in changes {
        let house = copying();
        let repo = Repo::new(&house, "watched");
        let waiting = Waiting::start(&house, &repo, &right(), &[]);
        change(&repo);
        let after = repo.bytes();
        let (code, bundle) = waiting.end(&house);
        assert_eq!(code, Some(0), "{name}: {}", bundle.report()["blockers"]);
        assert_good(&bundle);
        assert_eq!(repo.bytes(), after, "{name}: only its owner writes");
        let source = bundle.json("source.json");
        let changed = words != "untouched";
        assert_eq!(source["judged"], false, "{name}");
        assert_eq!(source["source_repository_mutated"], changed, "{name}");
        assert!(source["source_head_after"].is_string(), "{name}");
        assert!(source["source_fingerprint_after"].is_string(), "{name}");
        let shown = house.cto(&["show"]).stdout;
        assert!(shown.contains(words), "{name}: {shown}");
        let page = bundle.text("report.md");
        assert!(page.contains(words), "{name}: {page}");
        let applied = house.cto(&["apply", &bundle.run_id()]);
        assert_eq!(applied.code, Some(0), "{name}: {applied:?}");
        assert_eq!(repo.read("answer.txt"), "right\n", "{name}");
    }
}

#[test]
fn a_path_of_the_patch_that_its_owner_edited_is_not_written_over() {
    let changes: [Done<'_>; 3] = [
        ("edited", &|repo| repo.write("answer.txt", "mine\n")),
        ("committed", &|repo| {
            repo.write("answer.txt", "mine\n");
            repo.commit("mine");
        }),
        ("removed", &|repo| {
            fs::remove_file(repo.at("answer.txt")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let house = copying();
        let repo = Repo::new(&house, "watched");
        let waiting = Waiting::start(&house, &repo, &right(), &[]);
        change(&repo);
        let after = repo.bytes();
        let (code, bundle) = waiting.end(&house);
        assert_eq!(code, Some(0), "{name}: {}", bundle.report()["blockers"]);
        let applied = house.cto(&["apply", &bundle.run_id(), "--json"]);
        assert_eq!(applied.code, Some(3), "{name}: {applied:?}");
        assert!(applied.stdout.contains("dirty_path"), "{name}: {applied:?}");
        assert_eq!(repo.bytes(), after, "{name}");
    }
}

#[test]
fn two_tries_and_an_apply_on_one_repository() {
    let house = copying();
    let repo = Repo::new(&house, "shared");
    repo.write("second.txt", "wrong\n");
    repo.commit("two things to do");
    let first = Waiting::start(&house, &repo, &right(), &[]);
    let more = [
        "--allow",
        "second.txt",
        "--test",
        "grep -qx right second.txt",
    ];
    let second = Waiting::start(&house, &repo, &[write("second.txt", "right\n")], &more);
    repo.write("notes.txt", "typed meanwhile\n");
    repo.commit("notes");
    let (code, one) = first.end(&house);
    assert_eq!(code, Some(0), "{}", one.report()["blockers"]);
    let applied = house.cto(&["apply", &one.run_id()]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    repo.commit("the first, taken over while the second runs");
    let (code, two) = second.end(&house);
    assert_eq!(code, Some(0), "{}", two.report()["blockers"]);
    assert_good(&two);
    let applied = house.cto(&["apply", &two.run_id()]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    for name in ["answer.txt", "second.txt"] {
        assert_eq!(repo.read(name), "right\n", "{name}");
    }
    assert_eq!(repo.read("notes.txt"), "typed meanwhile\n");
}

/// What a shell line writes down of a try is no change that somebody forgot to commit.
#[test]
fn what_is_printed_may_be_written_down_in_the_repository() {
    let house = house();
    let repo = Repo::new(&house, "loud");
    for line in [
        "\"$@\" 2>&1 | tee log",
        "\"$@\" > log",
        "\"$@\" > log 2> errors",
        "\"$@\" 2>&1 | cat | tee src/log > log",
    ] {
        let attempt = house.try_command(&repo, &fix(), &[]);
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", line, "sh"]);
        shell.arg(attempt.get_program()).args(attempt.get_args());
        shell.env_clear().current_dir(&repo.dir);
        for (name, value) in attempt.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let ended = shell.stdout(Stdio::null()).output().unwrap();
        let bundle = Bundle::at(house.run_dirs().pop().unwrap());
        let said = bundle.report()["blockers"].to_string();
        assert_eq!(ended.status.code(), Some(0), "{line}: {said} {ended:?}");
        assert_good(&bundle);
        for name in ["log", "errors", "src/log"] {
            let _ = fs::remove_file(repo.at(name));
        }
    }
    // What lies there and nobody writes to is somebody's work.
    repo.write("log", "");
    let (answer, bundle) = house.try_on(&repo, &fix(), &[]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(bundle.codes(), ["dirty_starting_tree"]);
}

/// Who says by himself that a change is nobody's business is found out.
#[test]
fn a_change_is_a_note_only_where_containment_was_proven() {
    let house = copying();
    let repo = Repo::new(&house, "forged");
    let waiting = Waiting::start(&house, &repo, &right(), &[]);
    repo.write("src/keep.txt", "edited\n");
    let (code, bundle) = waiting.end(&house);
    assert_eq!(code, Some(0), "{}", bundle.report()["blockers"]);
    let text = bundle.text("source.json");
    for (from, to) in [
        ("\"judged\": false", "\"judged\": true"),
        ("\"judged\": false,", ""),
        (
            "\"source_repository_mutated\": true",
            "\"source_repository_mutated\": false",
        ),
        ("\"source_files_changed\": 1", "\"source_files_changed\": 0"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let forged = Forged::copy_of(&bundle);
        forged
            .put("source.json", text.replace(from, to).as_bytes())
            .reseal();
        assert_bad(&forged.bundle(), &format!("{from} became {to}"));
    }
    for (what, edit) in [
        ("mutated", serde_json::json!(false)),
        ("files", serde_json::json!(7)),
        ("judged", serde_json::json!(true)),
    ] {
        let forged = Forged::copy_of(&bundle);
        forged.edit_report(|report| report["source"][what] = edit);
        assert_bad(&forged.reseal().bundle(), what);
    }
    // One jail that proved nothing, and everything is judged as ever.
    let containment = bundle.text("containment.json");
    let forged = Forged::copy_of(&bundle);
    let unproven = containment.replacen("\"enforced\": true", "\"enforced\": false", 1);
    assert_ne!(unproven, containment);
    forged.put("containment.json", unproven.as_bytes()).reseal();
    assert_bad(&forged.bundle(), "a layer that was not enforced");
}

/// A repository that is gone when its second look comes ends no run without a verdict.
#[test]
fn a_repository_that_goes_away_is_a_typed_end() {
    let changes: [Done<'_>; 4] = [
        ("moved", &|repo| {
            fs::rename(&repo.dir, repo.dir.with_file_name("away")).unwrap();
        }),
        ("removed", &|repo| fs::remove_dir_all(&repo.dir).unwrap()),
        ("without git", &|repo| {
            fs::remove_dir_all(repo.at(".git")).unwrap();
        }),
        ("without objects", &|repo| {
            fs::remove_dir_all(repo.at(".git/objects")).unwrap();
            fs::create_dir(repo.at(".git/objects")).unwrap();
        }),
    ];
    for kind in ["copy", "overlay"] {
        for (name, change) in &changes {
            let house = house().with("CTO_TEST_WORKSPACE", kind);
            let repo = Repo::new(&house, "leaving");
            let test = "echo waiting; sleep 1; grep -qx right answer.txt";
            let mut child = house.start_try(&repo, &fix(), &["--test", test]);
            let log = || Some(house.run_dirs().pop()?.join("test.log"));
            let waits = || {
                let found = log().and_then(|log| fs::read_to_string(log).ok());
                found.is_some_and(|text| text.contains("\nwaiting"))
            };
            assert!(wait_until(waits), "{kind}, {name}");
            change(&repo);
            let code = child.wait().unwrap().code();
            let bundle = Bundle::at(house.run_dirs().pop().unwrap());
            let said = bundle.report()["blockers"].to_string();
            assert_eq!(code, Some(0), "{kind}, {name}: {said}");
            assert_good(&bundle);
            assert_eq!(
                bundle.json("source.json")["judged"],
                false,
                "{kind}, {name}"
            );
            let words = "you moved, removed or closed it meanwhile";
            let shown = house.cto(&["show"]).stdout;
            assert!(shown.contains(words), "{kind}, {name}: {shown}");
            let applied = house.cto(&["apply", &bundle.run_id()]);
            assert_eq!(applied.code, Some(3), "{kind}, {name}: {applied:?}");
            assert!(house.work_entries().is_empty(), "{kind}, {name}");
        }
    }
}

#[test]
fn an_untouched_repository_is_said_to_be_untouched() {
    let house = house();
    let repo = Repo::new(&house, "quiet");
    let bundle = passes(&house, &repo, &fix(), &[]);
    assert_eq!(bundle.json("source.json")["judged"], false);
    assert!(bundle.text("report.md").contains("copied: untouched."));
}
