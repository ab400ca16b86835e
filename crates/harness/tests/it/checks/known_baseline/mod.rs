//! A baseline that ran before is not run again for a week, is in the bundle whole, and fails nobody
//! by itself.

mod beside;
mod entries;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cto_testkit::{Answer, Bundle, House, Repo, script, write};
use serde_json::Value;

use crate::fixtures::people::houses;
use crate::fixtures::project::{BUG, FIXED, MORE, TESTS, UNITTEST};
use crate::{assert_good, house};

const TEST: &str = "python3 -m unittest";

/// A repository whose tests are green.
fn repository(house: &House, name: &str) -> Repo {
    let repo = Repo::new(house, name);
    for (path, text) in UNITTEST.files {
        repo.write(path, text);
    }
    repo.write("app.py", FIXED);
    repo.commit("no bug");
    house.hand_over(&repo.dir);
    repo
}

fn fix() -> String {
    script(&[write("app.py", &format!("{FIXED}\n# Said again.\n"))])
}

fn attempt(house: &House, repo: &Repo, steps: &str, more: &[&str]) -> (Answer, Bundle) {
    let asked = [&["--test", TEST, "--allow", ".", "--jobs", "1"], more].concat();
    house.try_on(repo, steps, &asked)
}

fn passing(house: &House, repo: &Repo, more: &[&str]) -> Bundle {
    let (answer, bundle) = attempt(house, repo, &fix(), more);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
    bundle
}

fn verification(bundle: &Bundle) -> Value {
    bundle.event("verification.completed").unwrap()
}

/// How often the commands ran on the baseline, as every part of the evidence tells it.
fn baselines(bundle: &Bundle) -> usize {
    let done = verification(bundle);
    let ran = done["baseline_checks"].as_array().map_or(0, Vec::len);
    let jails = bundle.json("containment.json");
    let jails = jails["processes"].as_array().unwrap().iter();
    let jailed = jails.filter(|jail| {
        let name = jail["process"].as_str().unwrap();
        name.starts_with("baseline check")
    });
    assert_eq!(jailed.count(), ran);
    let log = bundle.text("test.log");
    let framed = log.lines().filter(|line| line.ends_with(" baseline]"));
    assert_eq!(framed.count(), ran, "{log}");
    let relied = done["relied"].is_object();
    assert_eq!(bundle.has("relied/baseline.json"), relied);
    assert_eq!(bundle.has("relied/baseline.log"), relied);
    assert_eq!(bundle.report()["baseline_relied"], done["relied"]);
    assert!(relied == (ran == 0), "one or the other: {done}");
    ran
}

fn kept(house: &House) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(house.state().join("cache/baselines")) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn only_kept(house: &House) -> PathBuf {
    let found = kept(house);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// A kept baseline with another document, as whole as it was before.
fn edit_kept(file: &PathBuf, edit: impl FnOnce(&mut Value)) {
    let bytes = fs::read(file).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let (mark, length) = head.rsplit_once(' ').unwrap();
    let (document, log) = bytes[end + 1..].split_at(length.parse().unwrap());
    let mut value: Value = serde_json::from_slice(document).unwrap();
    edit(&mut value);
    let document = serde_json::to_vec_pretty(&value).unwrap();
    let mut forged = format!("{mark} {}\n", document.len()).into_bytes();
    forged.extend(document);
    forged.extend(log);
    fs::write(file, forged).unwrap();
}

#[test]
fn the_second_try_runs_no_baseline_and_its_bundle_needs_no_other() {
    houses().iter().for_each(twice);
}

fn twice(house: &House) {
    let repo = repository(house, "twice");
    let first = passing(house, &repo, &[]);
    assert_eq!(baselines(&first), 1);
    let file = only_kept(house);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));

    let second = passing(house, &repo, &[]);
    assert_eq!(baselines(&second), 0);
    let relied = &verification(&second)["relied"];
    assert_eq!(relied["run_id"], first.run_id());
    let tests = &verification(&second)["tests"];
    assert_eq!(
        (&tests["baseline_ids"], &tests["missing_count"]),
        (&4.into(), &0.into())
    );
    assert_eq!(
        second.json("test-ids.json")["commands"][0]["baseline"],
        first.json("test-ids.json")["commands"][0]["baseline"]
    );
    let since = relied["made_at"].as_str().unwrap();
    assert!(second.text("relied/baseline.log").contains("Ran 4 tests"));
    assert!(
        second
            .text("report.md")
            .contains(&format!("baseline: known since {since}"))
    );
    let shown = house.cto(&["show", &second.run_id()]);
    assert!(shown.stdout.contains("baseline known since"), "{shown:?}");

    // Somebody else, who has nothing but the bundle.
    let away = crate::house();
    let there = away.root().join(second.run_id());
    cto_testkit::copy_dir(&second.dir, &there);
    assert_good(&Bundle::at(&there));

    // Who wants it anew gets it, and then that one is known.
    let third = passing(house, &repo, &["--fresh-baseline"]);
    assert_eq!(baselines(&third), 1);
    let fourth = passing(house, &repo, &[]);
    assert_eq!(verification(&fourth)["relied"]["run_id"], third.run_id());
}

#[test]
fn whatever_it_depends_on_makes_a_new_one() {
    let house = house().with("ASKED", "before");
    let repo = repository(&house, "parts");
    let more_tests = MORE.replace("test_more(", "test_other(");
    let known = |more: &[&str]| baselines(&passing(&house, &repo, more)) == 0;
    assert!(!known(&[]));
    assert!(known(&[]));
    for (what, more) in [
        ("a command", vec!["--test", "python3 -c 'import app'"]),
        ("setup", vec!["--setup", "true"]),
        ("a limit", vec!["--test-timeout", "99"]),
        ("memory", vec!["--memory", "3000"]),
        ("a variable", vec!["--env", "ASKED=after"]),
        ("tracing", vec!["--trace"]),
    ] {
        assert!(!known(&more), "{what}");
        assert!(known(&more), "{what}, again");
    }
    assert!(known(&[]), "the first is still there");
    // The tree, an environment, and its state.
    repo.write("test_third.py", &more_tests);
    repo.commit("a test");
    assert!(!known(&[]) && known(&[]), "the tree");
    repo.git(&["tag", "v1.0"]);
    assert!(!known(&[]) && known(&[]), "a tag");
    repo.write(".gitignore", "*.log\n.venv/\nnode_modules/\n");
    repo.commit("environments");
    assert!(!known(&[]) && known(&[]));
    repo.write("node_modules/x/index.js", "1\n");
    assert!(!known(&[]) && known(&[]), "an environment");
    repo.write("node_modules/x/index.js", "2\n");
    assert!(!known(&[]) && known(&[]), "its state");
    assert!(known(&["--no-env"]), "none, as before there was one");
    // A submodule: checked out, another commit of it, and at home again.
    let inner = Repo::new(&house, "inner");
    inner.write("data.txt", "1\n");
    inner.commit("one");
    repo.git(&["submodule", "--quiet", "add", inner.path(), "module"]);
    repo.commit("a submodule");
    assert!(!known(&[]) && known(&[]), "a submodule");
    repo.git(&["submodule", "--quiet", "deinit", "--force", "module"]);
    assert!(
        !known(&[]) && known(&[]),
        "not checked out, by the same tree"
    );
    repo.git(&["submodule", "--quiet", "update", "--init"]);
    assert!(known(&[]), "as it was");
    inner.write("data.txt", "2\n");
    inner.commit("two");
    let module = Repo {
        dir: repo.at("module"),
    };
    module.git(&["pull", "--quiet", "origin", "main"]);
    repo.commit("another commit of it");
    assert!(!known(&[]) && known(&[]), "another commit");
    // The same repository elsewhere.
    let moved = house.root().join("moved");
    fs::rename(&repo.dir, &moved).unwrap();
    let repo = Repo { dir: moved };
    assert_eq!(baselines(&passing(&house, &repo, &[])), 1, "its own path");
    // Another program, by one byte behind its end.
    let other = house.root().join("cto-other");
    fs::copy(crate::program(), &other).unwrap();
    let mut bytes = fs::read(&other).unwrap();
    bytes.push(0);
    fs::write(&other, bytes).unwrap();
    let asked = ["--test", TEST, "--allow", ".", "--jobs", "1", "--json"];
    let ours = house.try_command(&repo, &fix(), &asked);
    let mut theirs = Command::new(other);
    theirs.args(ours.get_args()).env_clear();
    theirs.envs(
        ours.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    theirs.current_dir(ours.get_current_dir().unwrap());
    let (answer, bundle) = Answer::of(&theirs.output().unwrap()).with_bundle();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(baselines(&bundle), 1, "the program");
}

/// Somebody planted a test in the kept baseline that never was: whoever does honest work passes.
#[test]
fn a_lost_test_is_confirmed_before_anybody_fails_for_it() {
    houses().iter().for_each(lost);
}

fn lost(house: &House) {
    let repo = repository(house, "confirmed");
    passing(house, &repo, &[]);
    let file = only_kept(house);
    for plant in [
        serde_json::json!({"passed": 1}),
        serde_json::json!({"skipped": 1}),
        serde_json::json!({"failed": 3}),
    ] {
        edit_kept(&file, |kept| {
            kept["commands"][0]["tests"]["test_app.DoubleTest.test_never"] = plant.clone();
        });
        let bundle = passing(house, &repo, &[]);
        assert_eq!(baselines(&bundle), 1, "{plant}");
        assert!(
            bundle
                .text("test.log")
                .contains("the baseline is run again")
        );
        assert!(bundle.anywhere("test_never").is_empty());
        assert_eq!(baselines(&passing(house, &repo, &[])), 0, "{plant}");
    }
    // Who really takes a test away fails, by a baseline of that very run.
    let without = TESTS.replace("test_two", "two");
    let steps = script(&[write("app.py", FIXED), write("test_app.py", &without)]);
    let (answer, bundle) = attempt(house, &repo, &steps, &[]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(bundle.codes(), ["verification_untrusted"]);
    assert_eq!(baselines(&bundle), 1);
    assert_eq!(verification(&bundle)["tests"]["missing_count"], 1);
    assert_good(&bundle);
}

/// A kept baseline that knows fewer tests can hide a loss only from whoever can write the state home;
/// what an engine, a setup or a check writes never gets there.
#[test]
fn nothing_in_a_jail_reaches_what_is_kept() {
    let house = house();
    let repo = repository(&house, "reached");
    passing(&house, &repo, &[]);
    let file = only_kept(&house);
    let before = fs::read(&file).unwrap();
    let place = file.display().to_string();
    let room = file.parent().unwrap().display().to_string();
    let reach = format!(
        "import os\nfor place in ({place:?}, {room:?}):\n    if os.path.exists(place):\n        raise SystemExit(9)\n    try:\n        os.makedirs(place)\n        open(os.path.join(place, 'x'), 'w').write('x')\n    except OSError:\n        pass\n"
    );
    let steps = script(&[
        write("app.py", &format!("{FIXED}\n{reach}")),
        cto_testkit::shell(&format!("test ! -e {place} && ! touch {place}/x")),
    ]);
    let (answer, bundle) = attempt(
        &house,
        &repo,
        &steps,
        &["--setup", &format!("test ! -e {place}")],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn tries_that_fill_one_key_at_once_leave_one_that_is_whole() {
    let house = house();
    let repo = repository(&house, "race");
    let asked = ["--test", TEST, "--allow", ".", "--jobs", "1"];
    // All scripts are written before the first is read.
    let mut commands: Vec<Command> = (0..4)
        .map(|_| house.try_command(&repo, &fix(), &asked))
        .collect();
    let quiet = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let begun: Vec<Child> = commands.iter_mut().map(quiet).collect();
    for mut child in begun {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    for dir in house.run_dirs() {
        assert_good(&Bundle::at(dir));
    }
    let file = only_kept(&house);
    assert!(fs::metadata(&file).unwrap().is_file());
    assert_eq!(baselines(&passing(&house, &repo, &[])), 0);
    // Others replace it all the time while it is used.
    let stop = std::sync::atomic::AtomicBool::new(false);
    let whole = fs::read(&file).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let aside = house.root().join("aside");
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for bytes in [&whole[..], &whole[..whole.len() / 2], b"".as_slice()] {
                    fs::write(&aside, bytes).unwrap();
                    fs::set_permissions(&aside, fs::Permissions::from_mode(0o600)).unwrap();
                    fs::rename(&aside, &file).unwrap();
                }
            }
        });
        for _ in 0..4 {
            passing(&house, &repo, &[]);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// What cannot be told twice is not kept: a baseline that was red, ran into a limit, or whose tests
/// nobody heard. And a case, which others run too, keeps none.
#[test]
fn only_a_baseline_that_was_green_is_kept() {
    let house = house();
    let repo = repository(&house, "not-kept");
    // Red: another command might stop at the first failure, and nobody can tell.
    repo.write("app.py", BUG);
    repo.commit("a bug");
    let bundle = passing(&house, &repo, &[]);
    assert_eq!(baselines(&bundle), 1);
    assert!(kept(&house).is_empty());
    let slow = "import time, app\nif app.double(2) != 4: time.sleep(600)\n";
    repo.write("test_slow.py", slow);
    repo.commit("hangs where the bug is");
    let bundle = passing(&house, &repo, &["--test-timeout", "20"]);
    assert_eq!(baselines(&bundle), 1);
    assert!(kept(&house).is_empty());

    let deaf = ["--test", "python3 -I -m unittest discover"];
    let repo = repository(&house, "deaf");
    let (answer, bundle) = house.try_on(&repo, &fix(), &[&deaf[..], &["--allow", "."]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(verification(&bundle)["tests"]["baseline_ids"], 0);
    assert!(kept(&house).is_empty());

    UNITTEST.honest(&house, "a case", &[]);
    assert!(kept(&house).is_empty());
}
