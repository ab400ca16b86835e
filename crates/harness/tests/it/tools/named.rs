//! `--toolchain PATH`: what the operator names is shown, said, and never what is kept from jails.

use std::fs;
use std::os::unix::fs::symlink;

use super::{CHECK, Lab, executable};
use crate::fixtures::people::people;
use crate::jail::shown::{assert_refused, own, put, said};

#[test]
fn a_place_that_is_no_installation_is_shown_when_it_is_named() {
    let lab = Lab::new();
    // It needs what lies beside it.
    let tool = "#!/bin/sh\nexec sh \"$(dirname \"$0\")\"/../lib/check\n";
    lab.program("my/kit/bin/checker", tool);
    lab.program("my/kit/lib/check", CHECK);
    let kit = lab.home("my/kit");
    let bundle = lab.passes(&[], "checker", &["--toolchain", kit.to_str().unwrap()]);
    for file in ["containment.json", "events.normalized.jsonl"] {
        let text = bundle.text(file);
        assert!(text.contains("named by the operator"), "{file}: {text}");
        assert!(text.contains("~/my/kit"), "{file}: {text}");
    }
    let contract = bundle.json("contract.json");
    assert_eq!(contract["lane"]["toolchains"][0], "~/my/kit");
    // Nobody makes it another program afterwards.
    let other = serde_json::json!("0".repeat(64));
    let forged = cto_testkit::Forged::copy_of(&bundle);
    forged.edit_event("plan.updated", |plan| {
        plan["toolchains"][0]["sha256"] = other.clone();
    });
    forged.edit_report(|report| report["toolchains"][0]["sha256"] = other);
    let found = crate::assert_bad(&forged.reseal().bundle(), "another program");
    let problems = format!("{:?}", found.problems);
    assert!(problems.contains("binds another checker"), "{problems}");
    // It is part of what an approval binds, and no part of the task.
    let plain = lab.passes(&[], "sh -c 'grep -q 2 answer'", &[]);
    assert!(plain.json("contract.json")["lane"]["toolchains"].is_null());
    // A single file, and a directory of programs without a `bin`.
    lab.program("one/checker", CHECK);
    for place in ["one/checker", "one"] {
        let place = lab.home(place).display().to_string();
        lab.passes(&[], "checker", &["--toolchain", &place]);
    }
    lab.blocked(&[], "checker", &[], &["not found on PATH: checker"]);
}

#[test]
fn a_name_that_the_operator_typed_does_not_show_what_is_kept() {
    let lab = Lab::new();
    lab.program("bin/checker", CHECK);
    lab.program("docs/checker", CHECK);
    lab.program(".config/cto/x", "");
    fs::create_dir_all(lab.house.state()).unwrap();
    symlink(lab.home("docs"), lab.repo.at("answer.d")).unwrap();
    let home = lab.home("").display().to_string();
    let dir = |path: &std::path::Path| path.display().to_string();
    for (place, word) in [
        (home.clone(), "your whole home"),
        (format!("{home}/bin/.."), "your whole home"),
        (dir(lab.house.root()), "your whole home"),
        ("/".into(), ""),
        ("/home".into(), "somebody's home"),
        ("/proc/self".into(), ""),
        ("/run".into(), ""),
        (dir(&lab.house.state()), "state"),
        (dir(&lab.house.state().join("keys")), "state"),
        (dir(&lab.home(".config/cto")), "configuration"),
        (dir(&lab.repo.dir), "repository"),
        (dir(&lab.repo.at("src")), "repository"),
        (dir(&lab.repo.at("answer.d")), "leads to"),
        (dir(&lab.home("none")), "is not there"),
    ] {
        let more = ["--toolchain", &place];
        let (answer, bundle) = lab.run(&[&lab.home("bin")], "grep -q 2 answer", &more);
        assert_eq!(answer.code, Some(3), "{place}: {answer:?}");
        assert_eq!(bundle.codes(), ["toolchain_unavailable"], "{place}");
        let said = bundle.report()["blockers"][0]["detail"].to_string();
        assert!(
            said.contains("--toolchain") && said.contains(word),
            "{said}"
        );
    }
}

#[test]
fn an_installation_with_a_strange_name_in_it_is_named_and_not_cut_down() {
    let lab = Lab::new();
    for name in [".aws", ".git-credentials", ".my notes"] {
        let root = format!("mixed{name}");
        lab.program(&format!("{root}/bin/python3"), CHECK);
        lab.program(&format!("{root}/lib/python3.12/os.py"), "");
        lab.program(&format!("{root}/{name}"), "private");
        let (bin, place) = (lab.home(&root).join("bin"), lab.home(&root));
        lab.blocked(&[&bin], "python3", &[], &[name, "mixed", "a Python"]);
        let bundle = lab.passes(
            &[&bin],
            "python3",
            &["--toolchain", place.to_str().unwrap()],
        );
        assert!(
            bundle
                .text("containment.json")
                .contains("named by the operator")
        );
    }
}

#[test]
fn exec_refuses_an_installation_with_a_strange_name_in_it() {
    for person in people() {
        for name in [".aws", ".netrc", ".ssh"] {
            put(&person, "home/mixed/bin/python3", "#!/bin/sh\nexit 0\n");
            put(&person, "home/mixed/lib/python3.12/os.py", "");
            put(&person, &format!("home/mixed/{name}/x"), "");
            own(&person, "home");
            let path = format!("{}:/usr/bin:/bin", person.at("home/mixed/bin").display());
            let mut command = person.command(&["exec", "--", "python3"]);
            let output = command.env("PATH", &path).output().unwrap();
            assert_refused(&person, &output, "toolchain_unavailable", name);
            // Typed, it is shown as it is.
            let mixed = person.at("home/mixed").display().to_string();
            let mut command = person.command(&["exec", "--ro", &mixed, "--", "python3"]);
            let output = command.env("PATH", &path).output().unwrap();
            assert!(
                output.status.success(),
                "{}: {}",
                person.name,
                said(&output)
            );
            fs::remove_dir_all(person.at("home/mixed")).unwrap();
        }
    }
}

#[test]
fn there_is_no_run_while_home_or_state_lies_in_the_system() {
    let lab = Lab::new();
    executable(&lab.house.root().join("x"), CHECK);
    for variable in ["HOME", "CTO_STATE_DIR", "XDG_CONFIG_HOME"] {
        for place in [
            "/usr/share/none-here",
            "/usr/src/app",
            "/etc/ssl/certs/none-here",
        ] {
            let answer = lab.cto(&[], "grep -q 2 answer", &[], &[(variable, place)]);
            assert_eq!(answer.code, Some(2), "{variable}={place}: {answer:?}");
            assert_eq!(
                answer.json()["error"]["code"],
                "state_exposed",
                "{answer:?}"
            );
            assert!(!std::path::Path::new(place).exists(), "{place}");
        }
    }
}
