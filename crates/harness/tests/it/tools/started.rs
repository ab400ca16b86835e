//! `cto exec` finds programs as a run does, whichever program of its command asks for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

use super::{CHECK, Lab, executable};
use crate::fixtures::people::{Person, people};
use crate::jail::shown::{own, put, said};

/// `cto exec` in `ws` by somebody with these directories before the system's.
fn exec(person: &Person, dirs: &[&str], words: &[&str]) -> Output {
    let mut path: Vec<String> = dirs
        .iter()
        .map(|dir| person.at(dir).display().to_string())
        .collect();
    path.push("/usr/local/bin:/usr/bin:/bin".into());
    let mut command = person.command(&[&["exec", "--"], words].concat());
    command.env("PATH", path.join(":")).output().unwrap()
}

const NODE: &str = "home/.nvm/versions/node/v20.1.0";

/// An installation with a tool, and ways to start it.
fn installed(person: &Person) {
    put(person, &format!("{NODE}/bin/node"), "#!/bin/sh\nexit 0\n");
    put(
        person,
        &format!("{NODE}/bin/eslint"),
        "#!/bin/sh\necho linted\n",
    );
    put(person, "ws/Makefile", "test:\n\t@eslint .\n");
    put(person, "ws/t.sh", "#!/bin/sh\neslint .\n");
    own(person, "home");
    own(person, "ws");
}

#[test]
fn a_program_behind_another_is_found() {
    for person in people() {
        installed(&person);
        let bin = format!("{NODE}/bin");
        for words in [
            &["make", "test"][..],
            &["sh", "-c", "true && eslint ."],
            &["env", "X=1", "eslint", "."],
            &["timeout", "60", "eslint", "."],
            &["./t.sh"],
            &["eslint", "."],
        ] {
            let output = exec(&person, &[&bin], words);
            let text = said(&output);
            assert_eq!(
                output.stdout, b"linted\n",
                "{} {words:?}: {text}",
                person.name
            );
            assert!(output.status.success(), "{} {words:?}: {text}", person.name);
            let is_said = text.contains("shown read-only: ~/.nvm/versions/node/v20.1.0");
            assert_eq!(is_said, words[0] == "eslint", "{text}");
        }
        // Without it nothing is found, and nobody pretends.
        let output = exec(&person, &[], &["make", "test"]);
        assert!(!output.status.success(), "{}", said(&output));
    }
}

#[test]
fn links_of_ours_stand_in_its_path_and_go_with_it() {
    for person in people() {
        installed(&person);
        fs::create_dir_all(person.at("home/bin")).unwrap();
        fs::copy("/usr/bin/echo", person.at("home/bin/says")).unwrap();
        symlink(
            person.at(NODE).join("bin/eslint"),
            person.at("home/bin/lint"),
        )
        .unwrap();
        put(&person, "home/bin/eslint", "#!/bin/sh\necho mine\n");
        put(&person, "home/bin/private", "#!/bin/sh\necho private\n");
        own(&person, "home");
        let dirs = ["home/bin", &format!("{NODE}/bin")];
        let output = exec(&person, &dirs, &["sh", "-c", "says hello; lint"]);
        assert_eq!(output.stdout, b"hello\nlinted\n", "{}", said(&output));
        // A script is shown when it is typed, and is no other program's in silence.
        let output = exec(&person, &dirs, &["sh", "-c", "private; eslint"]);
        let text = said(&output);
        assert!(output.stdout.is_empty(), "{}: {text}", person.name);
        assert!(text.contains("eslint is not shown to this jail"), "{text}");
        assert!(text.contains("--ro ~/bin/eslint"), "{text}");
        let output = exec(&person, &dirs, &["private"]);
        assert_eq!(output.stdout, b"private\n", "{}", said(&output));
        let shown = person.at("home/bin/eslint").display().to_string();
        let mut command = person.command(&["exec", "--ro", &shown, "--", "sh", "-c", "eslint"]);
        let path = person.at("home/bin").display().to_string() + ":/usr/bin:/bin";
        let output = command.env("PATH", path).output().unwrap();
        assert_eq!(output.stdout, b"mine\n", "{}", said(&output));
        let work = fs::read_dir(person.at("home/.local/state/cto/work")).unwrap();
        let left = work.count();
        assert_eq!(left, 0, "{}: links stay behind", person.name);
    }
}

#[test]
fn what_it_may_write_is_nothing_to_find_programs_in() {
    for person in people() {
        installed(&person);
        put(&person, "ws/bin/eslint", "#!/bin/sh\necho planted\n");
        own(&person, "ws");
        let dirs = ["ws/bin", &format!("{NODE}/bin")];
        let output = exec(&person, &dirs, &["sh", "-c", "eslint"]);
        assert_eq!(output.stdout, b"linted\n", "{}", said(&output));
    }
}

#[test]
fn a_contract_binds_the_programs_its_commands_name() {
    let lab = Lab::new();
    lab.program(".nvm/versions/node/v20.1.0/bin/node", "");
    let tool = lab.program(".nvm/versions/node/v20.1.0/bin/checker", CHECK);
    let bin = lab.home(".nvm/versions/node/v20.1.0/bin");
    let run = |test: &str| {
        let bundle = lab.passes(&[&bin], test, &[]);
        let text = bundle.text("contract.json");
        let home = lab.home("").display().to_string();
        assert!(!text.contains(home.trim_end_matches('/')), "{text}");
        let report = bundle.report();
        let digest = |name: &str| report[name].as_str().unwrap().to_owned();
        let programs = bundle.json("contract.json")["lane"]["programs"].clone();
        (programs, digest("task_digest"), digest("contract_digest"))
    };
    let find = |programs: &serde_json::Value, name: &str| {
        let mut all = programs.as_array().unwrap().iter();
        all.find(|program| program["name"] == name).cloned()
    };
    for test in ["checker", "env X=1 checker", "sh -c 'true && checker'"] {
        let (programs, ..) = run(test);
        let bound = find(&programs, "checker").unwrap();
        assert_eq!(bound["place"], "installation", "{test}");
        assert_eq!(bound["version"], "20.1.0", "{test}");
        assert_eq!(bound["sha256"], cto_testkit::sha256_hex(CHECK.as_bytes()));
    }
    let (programs, ..) = run("env X=1 checker");
    assert_eq!(find(&programs, "env").unwrap()["place"], "system");
    assert!(find(&programs, "node").is_none(), "nobody names it");
    // Another program is another contract for the same task.
    let before = run("checker");
    assert_eq!(
        (&before.1, &before.2),
        (&run("checker").1, &run("checker").2)
    );
    executable(&tool, &format!("{CHECK}# another\n"));
    let after = run("checker");
    assert_eq!(before.1, after.1);
    assert_ne!(before.2, after.2);
}
