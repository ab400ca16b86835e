//! Programs outside a jail: no git but one of the system or of the operator's choice is ever
//! started, wherever on `PATH` another one lies.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use cto_testkit::{Answer, House, ORACLE, Repo, is_root, skip};

use crate::fixtures::people::houses;

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

/// A repository of whoever lives in the house.
fn project(house: &House) -> Repo {
    let repo = Repo::new(house, "project");
    repo.write(".gitignore", "venv/\nnode_modules/\nbin/\ntools/\n");
    repo.commit("more");
    repo
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
    let script = house.script("right", ORACLE);
    let case = house.case(&cto_testkit::Case::new("plain"));
    let say = |args: &[&str]| {
        let answer = cto(house, path, dir, args);
        assert_eq!(started(house), Vec::<String>::new(), "{args:?} with {path}");
        answer
    };
    let mut command = house.try_command(repo, ORACLE, &["--json"]);
    command.env("PATH", path).current_dir(dir);
    let (tried, bundle) = Answer::of(&command.output().unwrap()).with_bundle();
    assert_eq!(started(house), Vec::<String>::new(), "try with {path}");
    assert_eq!(tried.code, Some(0), "{path}: {tried:?}");
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
    repo.write("answer.txt", "wrong\n");
}

#[test]
fn a_git_that_a_repository_brings_is_never_started() {
    for house in houses() {
        let repo = project(&house);
        for name in ["venv/bin/git", "node_modules/.bin/git", "bin/git"] {
            plant(&house, &repo.at(name));
        }
        fs::write(repo.at("venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        let elsewhere = house.root().join("elsewhere");
        symlink(repo.at("venv/bin"), elsewhere.join("looks-like-bin")).unwrap();
        house.hand_over(house.root());
        let bin = |name: &str| repo.at(name).display().to_string();
        for (path, dir) in [
            (bin("venv/bin"), repo.dir.as_path()),
            (
                elsewhere.join("looks-like-bin").display().to_string(),
                &elsewhere,
            ),
            (
                format!("{}:.:bin::{}", bin("node_modules/.bin"), bin("bin")),
                &repo.dir,
            ),
        ] {
            every_command(&house, &repo, &format!("{path}:{SYSTEM}"), dir);
        }
    }
}

#[test]
fn a_git_of_someone_else_is_never_started() {
    for house in houses() {
        let repo = project(&house);
        let at = |name: &str| house.root().join(name);
        for name in ["open/git", "group/git", "theirs/git", "own/git"] {
            plant(&house, &at(name));
        }
        house.hand_over(house.root());
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
}

#[test]
fn a_directory_that_looks_like_the_systems_vouches_for_nothing() {
    // Only root can put a link there, and then it is one of root's own making; what it leads to is
    // looked at all the same.
    if !is_root() {
        return skip("only root can put a link into a directory of the system");
    }
    for house in houses() {
        let repo = project(&house);
        let lab = tempfile::Builder::new()
            .prefix("cto-programs-")
            .tempdir_in("/opt");
        let Ok(lab) = lab else { return };
        fs::set_permissions(lab.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let inside = repo.at("tools/git");
        plant(&house, &inside);
        house.hand_over(house.root());
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
}

#[test]
fn the_operator_may_name_a_git_of_their_own() {
    for house in houses() {
        let repo = project(&house);
        let at = |name: &str| house.root().join(name);
        plant(&house, &at("tools/git"));
        plant(&house, &repo.at("tools/git"));
        symlink(repo.at("tools/git"), at("tools/linked")).unwrap();
        plant(&house, &at("open/git"));
        let config = at("home/.config/cto/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        house.hand_over(house.root());
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        let try_with = |path: &str| {
            fs::write(&config, format!("git = {path:?}\n")).unwrap();
            house.hand_over(&config);
            let mut command = house.try_command(&repo, ORACLE, &["--json"]);
            Answer::of(&command.output().unwrap())
        };
        let (answer, bundle) = try_with(at("tools/git").to_str().unwrap()).with_bundle();
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(started(&house).len() > 3, "{:?}", started(&house));
        assert_eq!(bundle.report()["git"]["place"], "given");
        fs::remove_file(told(&house)).unwrap();

        for (place, word) in [
            (repo.at("tools/git"), "in the repository"),
            (at("tools/linked"), "in the repository"),
            (at("open/git"), "everybody may write"),
            (at("elsewhere/git"), "cannot be looked at"),
            (at("tools"), "no regular file"),
        ] {
            let answer = try_with(place.to_str().unwrap());
            assert_eq!(answer.code, Some(3), "{place:?}: {answer:?}");
            assert!(answer.stdout.contains(word), "{place:?}: {answer:?}");
            assert_eq!(started(&house), Vec::<String>::new(), "{place:?}");
        }
        for relative in ["git", "./git", "~/git", "/usr/../usr/bin/git"] {
            let answer = try_with(relative);
            assert_eq!(answer.code, Some(2), "{relative}: {answer:?}");
            assert!(
                answer.stdout.contains("absolute path of a program"),
                "{answer:?}"
            );
        }
    }
}
