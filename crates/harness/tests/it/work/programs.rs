//! Programs outside a jail: no git but one of the system or of the operator's choice is ever
//! started, wherever on `PATH` another one lies.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use cto_testkit::{Answer, Bundle, House, ORACLE, Repo, is_root, script, shell};

use crate::house;

const SYSTEM: &str = "/usr/bin:/bin";

/// A program that leaves a line wherever it is started, and then does what git does.
fn plant(house: &House, place: &Path) {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let text = format!(
        "#!/bin/sh\necho \"$0 $*\" >> {}\nexec /usr/bin/git \"$@\"\n",
        told(house).display()
    );
    fs::write(place, text).unwrap();
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
}

fn told(house: &House) -> PathBuf {
    house.root().join("started")
}

fn started(house: &House) -> Vec<String> {
    let text = fs::read_to_string(told(house)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn cto(house: &House, path: &str, dir: &Path, args: &[&str]) -> Answer {
    let mut command = house.command(args);
    Answer::of(&command.env("PATH", path).current_dir(dir).output().unwrap())
}

/// Every command that uses git, and some that need not.
fn every_command(house: &House, repo: &Repo, path: &str, dir: &Path) {
    let script = house.script("right", &script(&[shell("echo right > answer.txt")]));
    let case = house.case(&cto_testkit::Case::new("plain"));
    let say = |args: &[&str]| {
        let answer = cto(house, path, dir, args);
        assert_eq!(started(house), Vec::<String>::new(), "{args:?} with {path}");
        answer
    };
    let tried = say(&[
        "try",
        "--repo",
        repo.path(),
        "--task",
        "x",
        "--allow",
        "answer.txt",
        "--test",
        "grep -qx right answer.txt",
        "--script",
        &script,
        "--json",
    ]);
    assert_eq!(tried.code, Some(0), "{path}: {tried:?}");
    let bundle = Bundle::at(tried.json()["bundle"].as_str().unwrap());
    let run = bundle.run_id();
    let git = &bundle.report()["git"];
    assert_eq!(git["place"], "system", "{git}");
    assert!(
        git["version"]
            .as_str()
            .is_some_and(|version| version.starts_with('2'))
    );
    assert!(git["sha256"].as_str().is_some_and(|text| text.len() >= 64));
    let played = say(&["run", &case, "--script", &script, "--json"]);
    assert!(played.json()["bundle"].is_string(), "{played:?}");
    for args in [
        &["apply", &run, "--check"][..],
        &["apply", &run],
        &["diff", &run],
        &["show", &run],
        &["runs"],
        &["verify", &run],
        &["replay", &run],
        &["case", "check", &case],
        &["contract", &case],
        &["doctor"],
        &["recover"],
        &["exec", "--", "true"],
    ] {
        say(args);
    }
    repo.git(&["checkout", "-q", "."]);
}

#[test]
fn a_git_that_a_repository_brings_is_never_started() {
    let house = house();
    let repo = Repo::new(&house, "project");
    repo.write(".gitignore", "venv/\nnode_modules/\nbin/\n");
    repo.commit("more");
    let at = |name: &str| PathBuf::from(repo.path()).join(name);
    for name in ["venv/bin/git", "node_modules/.bin/git", "bin/git"] {
        plant(&house, &at(name));
    }
    fs::write(at("venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    let system = SYSTEM;
    let elsewhere = house.root().join("elsewhere");
    symlink(at("venv/bin"), elsewhere.join("looks-like-bin")).unwrap();
    for (path, dir) in [
        (
            format!("{}:{system}", at("venv/bin").display()),
            repo.path(),
        ),
        (
            format!("{}:{system}", elsewhere.join("looks-like-bin").display()),
            elsewhere.to_str().unwrap(),
        ),
        (
            format!(
                "{}:.:bin::{}:{system}",
                at("node_modules/.bin").display(),
                at("bin").display()
            ),
            repo.path(),
        ),
    ] {
        every_command(&house, &repo, &path, Path::new(dir));
    }
}

#[test]
fn a_git_of_someone_else_is_never_started() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let at = |name: &str| house.root().join(name);
    for name in ["open/git", "group/git", "theirs/git", "own/git"] {
        plant(&house, &at(name));
    }
    fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(at("group"), fs::Permissions::from_mode(0o775)).unwrap();
    if is_root() {
        chown(at("group"), None, Some(4242)).unwrap();
        chown(at("theirs"), Some(4242), None).unwrap();
    }
    let path = ["open", "group", "theirs", "own"]
        .map(|name| at(name).display().to_string())
        .join(":");
    every_command(&house, &repo, &format!("{path}:{SYSTEM}"), &at("elsewhere"));
}

#[test]
fn a_directory_that_looks_like_the_systems_vouches_for_nothing() {
    // Only root can put a link there, and then it is one of root's own making; what it leads to is
    // looked at all the same.
    if !is_root() {
        return;
    }
    let house = house();
    let repo = Repo::new(&house, "project");
    let lab = tempfile::Builder::new()
        .prefix("cto-programs-")
        .tempdir_in("/opt");
    let Ok(lab) = lab else { return };
    fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let inside = PathBuf::from(repo.path()).join("tools/git");
    plant(&house, &inside);
    repo.write(".gitignore", "tools/\n");
    repo.commit("more");
    let at = |name: &str| lab.path().join(name);
    // A link to the file, one to its directory, an environment, and a repository of their own.
    fs::create_dir(at("link")).unwrap();
    symlink(&inside, at("link/git")).unwrap();
    symlink(inside.parent().unwrap(), at("dir")).unwrap();
    plant(&house, &at("venv/bin/git"));
    fs::write(at("venv/pyvenv.cfg"), "").unwrap();
    plant(&house, &at("other/bin/git"));
    fs::create_dir(at("other/.git")).unwrap();
    plant(&house, &at("team/git"));
    fs::set_permissions(at("team"), fs::Permissions::from_mode(0o2775)).unwrap();
    chown(at("team"), None, Some(4242)).unwrap();
    let path = ["link", "dir", "venv/bin", "other/bin", "team"]
        .map(|name| at(name).display().to_string())
        .join(":");
    let elsewhere = house.root().join("elsewhere");
    every_command(&house, &repo, &format!("{path}:{SYSTEM}"), &elsewhere);
    // The current directory, below a directory of the system's.
    plant(&house, &at("work/bin/git"));
    let path = format!("{}:{SYSTEM}", at("work/bin").display());
    every_command(&house, &repo, &path, &at("work"));
}

#[test]
fn the_operator_may_name_a_git_of_their_own() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let own = house.root().join("tools/git");
    plant(&house, &own);
    let config = house.root().join("home/.config/cto/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let set = |path: &str| fs::write(&config, format!("git = {path:?}\n")).unwrap();
    let try_it = || {
        let script = house.script("right", ORACLE);
        house.cto(&[
            "try",
            "--repo",
            repo.path(),
            "--task",
            "x",
            "--allow",
            "answer.txt",
            "--test",
            "grep -qx right answer.txt",
            "--script",
            &script,
            "--json",
        ])
    };
    set(own.to_str().unwrap());
    let answer = try_it();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(started(&house).len() > 3, "{:?}", started(&house));
    let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
    assert_eq!(bundle.report()["git"]["place"], "given");
    fs::remove_file(told(&house)).unwrap();

    let inside = PathBuf::from(repo.path()).join("tools/git");
    plant(&house, &inside);
    let linked = house.root().join("tools/linked");
    symlink(&inside, &linked).unwrap();
    plant(&house, &house.root().join("open/git"));
    fs::set_permissions(house.root().join("open"), fs::Permissions::from_mode(0o777)).unwrap();
    for (path, word) in [
        (inside.display().to_string(), "in the repository"),
        (linked.display().to_string(), "in the repository"),
        (
            format!("{}/open/git", house.root().display()),
            "everybody may write",
        ),
        (
            format!("{}/elsewhere/git", house.root().display()),
            "cannot be looked at",
        ),
        (
            format!("{}/tools", house.root().display()),
            "no regular file",
        ),
    ] {
        set(&path);
        let answer = try_it();
        assert_eq!(answer.code, Some(3), "{path}: {answer:?}");
        assert!(answer.stdout.contains(word), "{path}: {answer:?}");
        assert_eq!(started(&house), Vec::<String>::new(), "{path}");
    }
    for relative in ["git", "./git", "~/git", "/usr/../usr/bin/git"] {
        set(relative);
        let answer = try_it();
        assert_eq!(answer.code, Some(2), "{relative}: {answer:?}");
        assert!(
            answer.stdout.contains("absolute path of a program"),
            "{answer:?}"
        );
    }
}
