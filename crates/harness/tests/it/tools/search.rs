//! Programs as in the operator's own shell: by PATH, in its order, whichever program of a command
//! asks for them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use cto_testkit::{is_root, skip};

use super::{CHECK, Lab, executable};
use crate::fixtures::rust::with_own_rust;
use crate::house;

/// Ways to start a program that is not the first word.
fn behind(program: &str) -> Vec<String> {
    vec![
        "make test".into(),
        format!("sh -c '{program}'"),
        format!("sh -c 'true && {program}'"),
        format!("env X=1 {program}"),
        format!("timeout 60 {program}"),
        format!("X=1 {program}"),
        "./t.sh".into(),
    ]
}

/// A repository that starts a program by a Makefile and by a script.
fn lab_starting(program: &str) -> Lab {
    lab_in(Lab::new(), program)
}

fn lab_in(lab: Lab, program: &str) -> Lab {
    lab.repo.write("Makefile", &format!("test:\n\t{program}\n"));
    lab.repo.program("t.sh", &format!("#!/bin/sh\n{program}\n"));
    lab.repo.commit("ways to test");
    lab
}

fn all_pass(lab: &Lab, dirs: &[&Path], program: &str) {
    for test in behind(program) {
        lab.passes(dirs, &test, &[]);
    }
}

#[test]
fn an_active_environment_of_the_repository_comes_along() {
    let lab = lab_starting("checker");
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(&lab.repo.dir)
        .status();
    assert!(made.unwrap().success());
    let python = lab.repo.at(".venv/bin/python3");
    let text = format!(
        "#!{}\nimport sys\nassert '.venv' in sys.prefix\nsys.exit('2' not in open('answer').read())\n",
        python.display()
    );
    executable(&lab.repo.at(".venv/bin/checker"), &text);
    all_pass(&lab, &[&lab.repo.at(".venv/bin")], "checker");
}

#[test]
fn links_that_a_package_manager_makes_are_followed() {
    let lab = lab_starting("eslint");
    let root = ".nvm/versions/node/v20.11.0";
    lab.program(&format!("{root}/bin/node"), "#!/bin/sh\nexec sh \"$1\"\n");
    let script = "#!/usr/bin/env node\ngrep -q 2 answer\n";
    lab.program(
        &format!("{root}/lib/node_modules/eslint/bin/eslint.js"),
        script,
    );
    let bin = lab.home(root).join("bin");
    symlink(
        "../lib/node_modules/eslint/bin/eslint.js",
        bin.join("eslint"),
    )
    .unwrap();
    all_pass(&lab, &[&bin], "eslint");
    // Packages beside a project, by PATH alone.
    let lab = lab_starting("eslint");
    lab.program("kit/node_modules/eslint/cli.js", CHECK);
    fs::create_dir_all(lab.home("kit/node_modules/.bin")).unwrap();
    symlink("../eslint/cli.js", lab.home("kit/node_modules/.bin/eslint")).unwrap();
    all_pass(&lab, &[&lab.home("kit/node_modules/.bin")], "eslint");
}

#[test]
fn behind_stand_ins_of_a_version_manager_are_its_versions() {
    // The system's own Python knows no such word.
    let chosen = "python3 --of-the-manager";
    let lab = lab_starting(chosen);
    lab.program(".pyenv/shims/python3", "#!/bin/sh\nexit 9\n");
    for (version, text) in [("3.11.7", CHECK), ("3.9.1", "#!/bin/sh\nexit 8\n")] {
        lab.program(&format!(".pyenv/versions/{version}/bin/python3"), text);
        lab.program(
            &format!(".pyenv/versions/{version}/lib/python3.11/os.py"),
            "",
        );
    }
    lab.program(".pyenv/version", "3.11.7\n");
    let shims = lab.home(".pyenv/shims");
    all_pass(&lab, &[&shims], chosen);
    let bundle = lab.passes(&[&shims], "make test", &[]);
    let shown = bundle.text("containment.json");
    assert!(
        shown.contains("versions/3.11.7") && !shown.contains("shims\""),
        "{shown}"
    );
    // What the repository chooses goes first, as in the manager.
    lab.program(".pyenv/version", "3.9.1\n");
    lab.repo.write(".python-version", "3.11.7\n");
    lab.repo.commit("a version");
    lab.passes(&[&shims], "make test", &[]);
    // A choice that leads elsewhere is no choice.
    lab.program("docs/bin/python3", CHECK);
    lab.repo.write(".python-version", "../../docs\n");
    lab.repo.commit("another");
    let bundle = lab.passes(&[&shims], "grep -q 2 answer", &[]);
    assert!(!bundle.text("containment.json").contains("docs"));
}

#[test]
fn versions_of_asdf_and_mise_are_chosen_by_their_file() {
    let lab = lab_starting("lua");
    lab.program(".asdf/shims/lua", "#!/bin/sh\nexit 9\n");
    lab.program(".asdf/installs/lua/5.4.6/bin/lua", CHECK);
    lab.program(".asdf/installs/lua/5.3.0/bin/lua", "#!/bin/sh\nexit 8\n");
    lab.program(".tool-versions", "lua 5.3.0\n");
    lab.repo.write(".tool-versions", "lua 5.4.6 # this one\n");
    lab.repo.commit("versions");
    all_pass(&lab, &[&lab.home(".asdf/shims")], "lua");
}

#[test]
fn proxies_of_rustup_are_their_toolchain() {
    let own = |lab: Lab| lab_in(lab, "cargo --version && grep -q 2 answer");
    let lab = own(Lab::of(with_own_rust(house())));
    let Some(home) = std::env::var_os("HOME").map(std::path::PathBuf::from) else {
        return skip("no home");
    };
    let bin = home.join(".cargo/bin");
    if !bin.join("rustup").exists() {
        return skip("no rustup");
    }
    for test in [
        "make test",
        "cargo +stable --version && grep -q 2 answer",
        "sh -c 'rustc +stable --version' && grep -q 2 answer",
        "sh -c 'rustc --version' && grep -q 2 answer",
    ] {
        lab.passes(&[&bin], test, &[]);
    }
    let none = "cargo +no-such-toolchain --version";
    lab.blocked(&[&bin], none, &[], &["no-such-toolchain", "not installed"]);
}

#[test]
fn single_programs_of_a_personal_directory_are_offered_and_scripts_are_not() {
    let lab = lab_starting("mygrep -q 2 answer");
    fs::create_dir_all(lab.home("bin")).unwrap();
    fs::copy("/usr/bin/grep", lab.home("bin/mygrep")).unwrap();
    lab.program("bin/script", CHECK);
    lab.program("bin/secret.txt", "private");
    fs::set_permissions(
        lab.home("bin/secret.txt"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let bin = lab.home("bin");
    all_pass(&lab, &[&bin], "mygrep -q 2 answer");
    let home = lab.home("bin").display().to_string();
    let look = format!(
        "sh -c 'mygrep -q 2 answer && ! test -e {home}/script && ! test -e {home}/secret.txt'"
    );
    let bundle = lab.passes(&[&bin], &look, &[]);
    let shown = bundle.json("containment.json")["shown_of_host"].to_string();
    let said = bundle.json("containment.json")["not_searched"].to_string();
    assert!(
        shown.contains("~/bin/mygrep") && !shown.contains("secret") && !shown.contains("script"),
        "{shown}"
    );
    assert!(said.contains("one program of it"), "{said}");
    let script = lab.home("bin/script").display().to_string();
    lab.blocked(
        &[&bin],
        "script",
        &[],
        &["a script", "--toolchain ~/bin/script"],
    );
    lab.passes(&[&bin], "script", &["--toolchain", &script]);
    lab.passes(&[&bin], "sh -c script", &["--toolchain", &script]);
}

#[test]
fn a_tool_with_an_environment_of_its_own_is_offered_by_its_link() {
    let lab = lab_starting("checker");
    let venv = ".local/share/pipx/venvs/checker";
    let place = lab.home(venv);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&place)
        .status();
    assert!(made.unwrap().success());
    let text = format!(
        "#!{}/bin/python3\nimport sys\nsys.exit('2' not in open('answer').read())\n",
        place.display()
    );
    lab.program(&format!("{venv}/bin/checker"), &text);
    fs::create_dir_all(lab.home(".local/bin")).unwrap();
    symlink(place.join("bin/checker"), lab.home(".local/bin/checker")).unwrap();
    all_pass(&lab, &[&lab.home(".local/bin")], "checker");
}

#[test]
fn of_two_tools_of_one_name_the_first_counts_and_none_takes_its_place() {
    let lab = lab_starting("tool");
    for (root, text) in [("one", CHECK), ("two", "#!/bin/sh\nexit 8\n")] {
        let root = format!(".nvm/versions/node/{root}");
        lab.program(&format!("{root}/bin/node"), "");
        lab.program(&format!("{root}/bin/tool"), text);
    }
    let bin = |root: &str| lab.home(&format!(".nvm/versions/node/{root}/bin"));
    all_pass(&lab, &[&bin("one"), &bin("two")], "tool");
    // The first is a script of the operator's: the second is another program.
    lab.program("bin/tool", "#!/bin/sh\nexit 7\n");
    let own = lab.home("bin");
    lab.blocked(&[&own, &bin("one")], "tool", &[], &["a script"]);
    let (_, bundle) = lab.run(&[&own, &bin("one")], "make test", &[]);
    assert_ne!(bundle.status(), "pass");
    let log = bundle.text("test.log");
    assert!(log.contains("tool is not shown to this jail"), "{log}");
}

#[test]
fn entries_that_others_could_write_or_that_move_are_not_searched() {
    let lab = lab_starting("checker");
    let planted = "#!/bin/sh\ntouch planted\nexit 0\n";
    for dir in ["open", "theirs", "opened/deep"] {
        lab.program(&format!("{dir}/checker"), planted);
        fs::copy("/usr/bin/true", lab.home(dir).join("mine")).unwrap();
    }
    let mode = |dir: &str, mode| {
        fs::set_permissions(lab.home(dir), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("open", 0o777);
    mode("opened", 0o777);
    executable(&lab.repo.at("checker"), planted);
    executable(&lab.repo.at("tools/checker"), planted);
    lab.repo.commit("planted");
    let good = lab.home(".nvm/versions/node/v1/bin");
    lab.program(".nvm/versions/node/v1/bin/node", "");
    lab.program(".nvm/versions/node/v1/bin/checker", CHECK);
    let mut dirs = vec![
        Path::new(".").to_owned(),
        "".into(),
        "tools".into(),
        "../project".into(),
        "/no/such/place".into(),
        lab.repo.dir.clone(),
        lab.repo.at("tools"),
        lab.home("open"),
        lab.home("opened/deep"),
    ];
    if is_root() {
        std::os::unix::fs::chown(lab.home("theirs"), Some(4242), None).unwrap();
        dirs.push(lab.home("theirs"));
    }
    dirs.push(good);
    let dirs: Vec<&Path> = dirs.iter().map(AsRef::as_ref).collect();
    all_pass(&lab, &dirs, "checker");
    let bundle = lab.passes(&dirs, "sh -c 'checker && ! command -v mine'", &[]);
    let said = bundle.text("containment.json");
    for word in [
        "no absolute path",
        "others may write to ~/open",
        "part of the repository",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("/no/such/place"), "{said}");
}

#[test]
fn no_entry_shows_the_home_a_manager_or_the_state() {
    let lab = lab_starting("checker");
    lab.program(".nvm/versions/node/v1/bin/node", "");
    lab.program(".nvm/versions/node/v1/bin/checker", CHECK);
    lab.program(".ssh/id", "private");
    lab.program(".nvm/token", "private");
    let keys = lab.house.state().join("keys");
    fs::create_dir_all(&keys).unwrap();
    fs::copy("/usr/bin/true", keys.join("native")).unwrap();
    fs::copy("/usr/bin/true", lab.home("native")).unwrap();
    fs::copy("/usr/bin/true", lab.home(".ssh/native")).unwrap();
    let link = lab.home("linked");
    symlink(&keys, &link).unwrap();
    let home = lab.home("");
    let good = lab.home(".nvm/versions/node/v1/bin");
    let dirs = [
        &home,
        &keys,
        &link,
        &lab.home(".nvm"),
        &lab.house.root().to_owned(),
        &good,
    ];
    let dirs: Vec<&Path> = dirs.iter().map(|dir| dir.as_path()).collect();
    let all = [
        home.join(".ssh/id"),
        lab.home(".nvm/token"),
        keys.join("native"),
    ];
    let tests: Vec<String> = all
        .iter()
        .map(|file| format!("! test -e {}", file.display()))
        .collect();
    lab.passes(
        &dirs,
        &format!("sh -c 'checker && {}'", tests.join(" && ")),
        &[],
    );
}

#[test]
fn odd_entries_of_path_change_nothing_and_are_said() {
    use std::os::unix::ffi::OsStrExt;
    let lab = lab_starting("checker");
    lab.program(".nvm/versions/node/v1/bin/node", "");
    lab.program(".nvm/versions/node/v1/bin/checker", CHECK);
    let good = lab.home(".nvm/versions/node/v1/bin");
    let planted = "#!/bin/sh\ntouch planted\nexit 0\n";
    // A name that is no text.
    let odd = lab.home("").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    executable(&odd.join("checker"), planted);
    // Links that lead in a circle, and one to themselves; a program that is such a link.
    symlink(lab.home("two"), lab.home("one")).unwrap();
    symlink(lab.home("one"), lab.home("two")).unwrap();
    symlink("itself", lab.home("itself")).unwrap();
    fs::create_dir_all(lab.home("bin")).unwrap();
    symlink("checker", lab.home("bin/checker")).unwrap();
    // A link to an installation whose name PATH would split: `x/bin` is the repository's.
    let split = lab.home(".nvm/versions/node/v2:x/bin");
    executable(&split.join("node"), "");
    executable(&split.join("checker"), planted);
    symlink(&split, lab.home("split")).unwrap();
    executable(&lab.repo.at("x/bin/checker"), planted);
    lab.repo.commit("planted");
    let dirs = [
        odd,
        lab.home("one"),
        lab.home("itself"),
        lab.home("bin"),
        lab.home("split"),
        good,
    ];
    let dirs: Vec<&Path> = dirs.iter().map(AsRef::as_ref).collect();
    all_pass(&lab, &dirs, "checker");
    let bundle = lab.passes(&dirs, "sh -c 'checker && test ! -e planted'", &[]);
    let said = bundle.json("containment.json")["not_searched"].to_string();
    assert!(said.matches("holds a colon").count() >= 2, "{said}");
}

#[test]
fn a_directory_of_ten_thousand_programs_is_looked_at_once() {
    let lab = lab_starting("checker");
    lab.program(".nvm/versions/node/v1/bin/node", "");
    lab.program(".nvm/versions/node/v1/bin/checker", CHECK);
    let big = lab.home("big");
    fs::create_dir_all(&big).unwrap();
    let first = big.join("p0");
    fs::copy("/usr/bin/true", &first).unwrap();
    for number in 1..10_000 {
        fs::hard_link(&first, big.join(format!("p{number}"))).unwrap();
    }
    let good = lab.home(".nvm/versions/node/v1/bin");
    let test = "sh -c 'p0 && checker && ! command -v p9999'";
    let bundle = lab.passes(&[&big, &good], test, &[]);
    let shown = bundle.json("containment.json")["shown_of_host"].to_string();
    assert_eq!(shown.matches("~/big/").count(), 256, "{shown}");
    // What is not offered is said by its name where it is asked for.
    lab.blocked(&[&big], "p9999", &[], &["more than 256 single programs"]);
}
