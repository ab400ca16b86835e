//! The copy stands where the repository stands, in every jail; a bundle does not say where that is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use cto_testkit::{Bundle, House, Repo, script, shell, write};

use super::{TEST, fix, passes, try_with};
use crate::{assert_good, house};

/// The plan's one line.
fn summary(bundle: &Bundle) -> String {
    let plan = bundle.event("plan.updated").unwrap();
    plan["summary"].as_str().unwrap().to_owned()
}

fn assert_nowhere(bundle: &Bundle, house: &House) {
    let root = house.root().to_str().unwrap();
    let found: Vec<String> = bundle
        .anywhere(root)
        .into_iter()
        .filter(|name| name != "patch.diff")
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

/// Every place at which people keep repositories.
#[test]
fn engine_and_checks_work_at_the_repositorys_own_path() {
    for place in [
        "plain",
        "a place/with spaces",
        "home/deep/er",
        "ünïcode",
        "it's",
    ] {
        let house = house();
        let repo = Repo::new(&house, place);
        repo.write("here", &format!("{}\n", repo.path()));
        repo.commit("says where it is");
        let same = "test \"$(pwd -P)\" = \"$(cat here)\"";
        let steps = script(&[
            shell(&format!("{same} && echo engine in $PWD/src")),
            shell("cp answer.txt \"$(cat here)/answer.bak\" && rm answer.bak"),
            write("answer.txt", "right\n"),
        ]);
        let test = format!("{same} && echo check in $PWD/src && {TEST}");
        let (answer, bundle) = try_with(&house, &repo, &steps, &["--test", &test]);
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(0), "{place}: {answer:?} {log}");
        assert!(log.contains("check in {repo}/src"), "{place}: {log}");
        let said = bundle.text("backend/stdout.log");
        assert!(said.contains("engine in {repo}/src"), "{place}: {said}");
        let ended = bundle.event("engine.ended").unwrap();
        assert_eq!(ended["stdout"]["paths_replaced"], 1, "{place}: {ended}");
        assert_eq!(ended["stdout"]["redactions"], 0, "{place}");
        assert!(summary(&bundle).contains("a repository at its own path;"));
        assert_nowhere(&bundle, &house);
        assert_good(&bundle);
    }
}

/// What lies beside the repository is not there, and nothing can be put there.
#[test]
fn nothing_else_of_the_way_is_shown() {
    let house = house();
    let repo = Repo::new(&house, "home/code/app");
    fs::write(house.root().join("home/.secret"), "s").unwrap();
    fs::write(house.root().join("home/code/beside"), "s").unwrap();
    let looks =
        "for up in .. ../.. ../../..; do ls -A $up; touch $up/new 2>&1; done; ls -ld .. ../..";
    let steps = script(&[shell(looks), write("answer.txt", "right\n")]);
    let test = format!("{looks}; {TEST}");
    let (answer, bundle) = try_with(&house, &repo, &steps, &["--test", &test]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for said in [bundle.text("backend/stdout.log"), bundle.text("test.log")] {
        let listed: Vec<&str> = said
            .lines()
            .filter(|line| ["app", "code", "home"].contains(&line.trim()))
            .collect();
        assert!(listed.len() >= 3, "{said}");
        assert!(
            !said.contains("beside") && !said.contains(".secret"),
            "{said}"
        );
        assert!(said.contains("drwxr-xr-x"), "{said}");
    }
    assert!(!house.root().join("home/code/new").exists());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_good(&bundle);
}

/// The neutral path, and the plan says why.
#[test]
fn where_the_own_path_cannot_be_used_it_is_the_neutral_one() {
    let here = format!("test \"$(pwd -P)\" = /workspace && {TEST}");
    let raw = OsStr::from_bytes(b"not-\xff-utf8");
    let line = OsStr::new("new\nline");
    for (name, why) in [
        (OsStr::new("home"), "too near to your home"),
        (OsStr::new("."), "too near to your home"),
        (
            OsStr::new("state/inside"),
            "where the harness keeps its state",
        ),
        (line, "holds control characters"),
        (raw, "is not UTF-8"),
    ] {
        let house = house();
        let repo = Repo::new(&house, "first");
        let dir = house.root().join(name);
        repo.write(".gitignore", "/*\n");
        repo.commit("nothing else");
        fs::create_dir_all(&dir).unwrap();
        for file in [".git", "answer.txt", "src", ".gitignore"] {
            fs::rename(repo.at(file), dir.join(file)).unwrap();
        }
        let file = house.script("fix", &fix());
        let output = house
            .command(&["try", "--task", "Make the answer right", "--from-head"])
            .args(["--allow", "answer.txt", "--test", &here, "--json"])
            .args(["--script", &file, "--repo"])
            .arg(&dir)
            .output()
            .unwrap();
        let answer = cto_testkit::Answer::of(&output);
        assert_eq!(answer.code, Some(0), "{name:?}: {answer:?}");
        let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
        let summary = summary(&bundle);
        assert!(
            summary.contains("at /workspace since its own path") && summary.contains(why),
            "{name:?}: {summary}"
        );
        assert_nowhere(&bundle, &house);
        assert_good(&bundle);
        let applied = house.cto(&["apply", &bundle.run_id()]);
        assert_eq!(applied.code, Some(0), "{name:?}: {applied:?}");
        let text = fs::read_to_string(dir.join("answer.txt")).unwrap();
        assert_eq!(text, "right\n", "{name:?}");
    }
}

/// A guard: cases have no path of their own.
#[test]
fn a_case_stands_where_it_always_stood() {
    let house = house();
    let case = house.case(&cto_testkit::Case::new("neutral"));
    let steps = script(&[shell("test \"$(pwd -P)\" = /workspace && echo neutral")]);
    let (_, bundle) = house.run(&case, &steps, &[]);
    assert!(bundle.text("backend/stdout.log").contains("neutral"));
    assert!(!summary(&bundle).contains("path"));
}

/// Two clones are one task; the contract tells them apart.
#[test]
fn two_clones_have_one_task_digest() {
    let house = house();
    let first = Repo::new(&house, "one/app");
    let second = Repo {
        dir: house.root().join("two/other-name"),
    };
    fs::create_dir_all(house.root().join("two")).unwrap();
    first.git(&["clone", "-q", first.path(), second.path()]);
    let bundles = [&first, &second].map(|repo| try_with(&house, repo, &fix(), &[]).1);
    let [one, two] = bundles.each_ref().map(Bundle::report);
    assert_eq!(one["task_digest"], two["task_digest"]);
    assert_ne!(one["contract_digest"], two["contract_digest"]);
    for (bundle, repo) in bundles.iter().zip([&first, &second]) {
        let (source, contract) = (bundle.json("source.json"), bundle.json("contract.json"));
        let named = &source["repository"];
        assert_eq!(named, &contract["lane"]["repository"]);
        assert_eq!(
            named["name"],
            repo.dir.file_name().unwrap().to_str().unwrap()
        );
        let sha256 = cto_testkit::sha256_hex(repo.dir.as_os_str().as_bytes());
        assert_eq!(named["path_sha256"].as_str().unwrap(), sha256);
        assert_eq!(source["record"].get("path"), None);
        assert_nowhere(bundle, &house);
        assert_good(bundle);
    }
}

/// A hostile engine says it in pieces, in escapes and in files.
#[test]
fn a_path_in_pieces_or_in_files_gets_its_name() {
    let house = house();
    let repo = Repo::new(&house, "home/a b");
    let half = repo.path().len() / 2;
    let (one, two) = repo.path().split_at(half);
    let steps = script(&[
        shell(&format!(
            "printf '%s' '{one}'; sleep 0.2; printf '%s/x\\n' '{two}'"
        )),
        shell(
            "printf '%s' \"$PWD\"; sleep 0.2; printf '2 %s.\\n' \"$PWD\"; printf '%s-old\\n' \"$PWD\"",
        ),
        shell(&format!(
            "echo 'file://{}/y'",
            repo.path().replace(' ', "%20")
        )),
        shell("echo \"saw $PWD/z\" > $HOME/notes.txt; ln -s \"$PWD/z\" $HOME/link"),
        shell("printf 'bin\\0%s' not-the-path > $HOME/binary"),
        write("answer.txt", "right\n"),
    ]);
    let (answer, bundle) = try_with(&house, &repo, &steps, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let said = bundle.text("backend/stdout.log");
    for want in [
        "{repo}/x\n",
        "~/a b2 {repo}.\n~/a b-old\n",
        "file://{repo}/y\n",
    ] {
        assert!(said.contains(want), "{want}: {said}");
    }
    let unpacked = house.root().join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let tar = Command::new("tar")
        .arg("-xf")
        .arg(bundle.dir.join("backend/scratch.tar"))
        .arg("-C")
        .arg(&unpacked)
        .status();
    assert!(tar.unwrap().success());
    let notes = fs::read_to_string(unpacked.join("home/notes.txt")).unwrap();
    assert_eq!(notes, "saw {repo}/z\n");
    let link = fs::read_link(unpacked.join("home/link")).unwrap();
    assert_eq!(link, Path::new("{repo}/z"));
    assert_nowhere(&bundle, &house);
    assert_good(&bundle);
}

/// Patches are what they are.
#[test]
fn an_added_line_with_the_path_is_a_warning() {
    let house = house();
    let repo = Repo::new(&house, "home/app");
    let line = format!("right {}/x\n", repo.path());
    let steps = script(&[write("answer.txt", &line)]);
    let (answer, bundle) = try_with(
        &house,
        &repo,
        &steps,
        &["--test", "grep -q right answer.txt"],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(bundle.text("patch.diff").contains(&line));
    let warnings = bundle.report()["engine"]["warnings"].to_string();
    assert!(
        warnings.contains("where your repository or home is"),
        "{warnings}"
    );
    assert_nowhere(&bundle, &house);
    assert_good(&bundle);
    // What was there before says nothing new.
    repo.write("answer.txt", &format!("wrong {}\n", repo.path()));
    repo.commit("names itself");
    let (_, bundle) = try_with(&house, &repo, &fix(), &[]);
    assert!(bundle.report()["engine"]["warnings"].is_null());
}

/// What the operator typed stays as it was typed, and the bundle is whole all the same.
#[test]
fn a_command_that_names_the_path_is_the_operators_word() {
    let house = house();
    let repo = Repo::new(&house, "home/app");
    let test = format!("grep -qx right {}/answer.txt", repo.path());
    let bundle = passes(&house, &repo, &fix(), &["--test", &test]);
    assert_good(&bundle);
}

/// `cto apply` asks the state home, and believes nothing it cannot check.
#[test]
fn apply_finds_the_repository_through_the_state_home() {
    let house = house();
    let repo = Repo::new(&house, "home/app");
    let (_, bundle) = try_with(&house, &repo, &fix(), &[]);
    let shown = house.cto(&["show", "last"]);
    assert!(shown.stdout.contains("~/app at "), "{}", shown.stdout);
    let sha256 = cto_testkit::sha256_hex(repo.path().as_bytes());
    let known = house.state().join("repositories").join(&sha256);
    assert_eq!(fs::read_to_string(&known).unwrap(), repo.path());
    let check = || house.cto(&["apply", &bundle.run_id(), "--check"]);
    assert_eq!(check().code, Some(0));
    // Somebody else's path under this name, nothing at all, and a stranger's state home.
    let other = Repo::new(&house, "home/other");
    for forged in [other.path(), "", "/"] {
        fs::write(&known, forged).unwrap();
        let answer = check();
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert!(answer.stderr.contains("no_repository") || answer.stdout.contains("no_repository"));
        assert!(answer.stderr.contains("--repo DIR"), "{answer:?}");
    }
    fs::remove_file(&known).unwrap();
    assert_eq!(check().code, Some(3));
    let shown = house.cto(&["show", "last"]);
    assert!(shown.stdout.contains("app at "), "{}", shown.stdout);
    assert!(!shown.stdout.contains("~/app"), "{}", shown.stdout);
    assert_eq!(
        house
            .cto(&["apply", &bundle.run_id(), "--repo", repo.path(), "--check"])
            .code,
        Some(0)
    );
    // Another repository came to the same place.
    fs::write(&known, repo.path()).unwrap();
    fs::rename(&repo.dir, house.root().join("home/moved")).unwrap();
    assert_eq!(check().code, Some(3));
    fs::rename(&other.dir, &repo.dir).unwrap();
    repo.write("more", "x");
    repo.git(&["checkout", "-q", "--orphan", "new"]);
    repo.write("answer.txt", "another\n");
    repo.commit("another one");
    let answer = check();
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(repo.read("answer.txt"), "another\n");
    assert_good(&bundle);
}

/// A directory on the way is exchanged for a link while the run is under way. A guard: a neutral path
/// was never on that way.
#[test]
fn a_way_that_is_exchanged_leads_nowhere() {
    let house = house();
    let repo = Repo::new(&house, "way/app");
    let (way, aside) = (house.root().join("way"), house.root().join("aside"));
    let bait = house.root().join("bait/app");
    fs::create_dir_all(&bait).unwrap();
    fs::write(bait.join("bait"), "not for a jail").unwrap();
    let steps = script(&[
        shell("ls -A . ..; sleep 1; ls -A . .."),
        write("answer.txt", "right\n"),
    ]);
    let exchange = {
        let (way, aside, bait, runs) = (
            way.clone(),
            aside.clone(),
            bait.parent().unwrap().to_owned(),
            house.runs_dir(),
        );
        std::thread::spawn(move || {
            let started = |dir: &Path| {
                let events = fs::read_dir(dir).into_iter().flatten().flatten();
                events
                    .filter_map(|entry| {
                        fs::read_to_string(entry.path().join("events.normalized.jsonl")).ok()
                    })
                    .any(|text| text.contains("engine.started"))
            };
            while !started(&runs) {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            fs::rename(&way, &aside).unwrap();
            std::os::unix::fs::symlink(&bait, &way).unwrap();
        })
    };
    let (_, bundle) = try_with(
        &house,
        &repo,
        &steps,
        &["--test", &format!("ls -A; {TEST}")],
    );
    exchange.join().unwrap();
    assert!(!bundle.text("backend/stdout.log").contains("bait"));
    assert!(!bundle.text("test.log").contains("bait"));
    // What became of the way is said, and nothing of it was in the run.
    let source = bundle.json("source.json");
    assert_eq!(source["source_repository_mutated"], true);
    assert!(bait.join("bait").exists() && fs::read_dir(&bait).unwrap().count() == 1);
    assert_good(&bundle);
}

/// An editable install writes where the repository stands.
#[test]
fn an_editable_install_of_a_src_layout() {
    let house = house();
    let repo = Repo::new(&house, "home/project");
    repo.write(
        "setup.py",
        "from setuptools import setup\nsetup(name='counted', version='1', package_dir={'': 'src'}, packages=['counted'])\n",
    );
    repo.write("src/counted/__init__.py", "ANSWER = 1\n");
    repo.write(
        "tests/test_it.py",
        "import unittest, counted\n\nclass Two(unittest.TestCase):\n    def test_two(self):\n        print('imported', counted.__file__)\n        self.assertEqual(counted.ANSWER, 2)\n",
    );
    repo.write(".gitignore", "*.egg-info/\n__pycache__/\n");
    repo.commit("a bug");
    let venv = house.root().join("home/venv");
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
    };
    run(Command::new("python3")
        .args(["-m", "venv", "--system-site-packages"])
        .arg(&venv));
    run(Command::new(venv.join("bin/python3"))
        .args(["setup.py", "-q", "develop", "--no-deps"])
        .current_dir(&repo.dir));
    let path = std::env::var("PATH").unwrap();
    let house = house.with("PATH", &format!("{}/bin:{path}", venv.display()));
    let test = "python3 -m unittest discover -s tests";
    let (allow, red) = (["--allow", "src", "--test", test], "ANSWER = 3\n");
    for (text, code) in [("ANSWER = 2\n", 0), (red, 1)] {
        let steps = script(&[write("src/counted/__init__.py", text)]);
        let (answer, bundle) = try_with(&house, &repo, &steps, &allow);
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(code), "{answer:?} {log}");
        assert!(
            log.contains("imported {repo}/src/counted/__init__.py"),
            "{log}"
        );
        assert_nowhere(&bundle, &house);
        assert_good(&bundle);
    }
}

/// A script whose first line names an interpreter of the repository.
#[test]
fn the_first_line_of_a_script_fits() {
    let house = house();
    let repo = Repo::new(&house, "home/app");
    repo.program("tools/interpret", "#!/bin/sh\nexec /bin/sh \"$@\"\n");
    repo.program(
        "run-tests",
        &format!("#!{}/tools/interpret\n{TEST}\n", repo.path()),
    );
    repo.commit("scripts");
    let bundle = passes(&house, &repo, &fix(), &["--test", "./run-tests"]);
    assert_good(&bundle);
}
