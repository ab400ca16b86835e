//! What tools keep in the home comes along where the repository calls for it, can be written, is
//! thrown away, and shows neither settings nor what the code was before.

use std::fs;
use std::path::Path;
use std::process::Command;

use cto_testkit::{files_below, shell, skip, write};

use super::*;
use crate::fixtures::people::houses;

fn right() -> String {
    write("answer.txt", "right\n")
}

/// Files of the house's own home.
fn keep(house: &House, files: &[(&str, &str)]) {
    let home = house.root().join("home");
    for (path, text) in files {
        let place = home.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    house.hand_over(&home);
}

fn repo_with(house: &House, files: &[(&str, &str)]) -> Repo {
    let repo = Repo::new(house, "kept");
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.commit("a project");
    house.hand_over(&repo.dir);
    repo
}

const POM: &str =
    "<project>\n<groupId>org.acme</groupId>\n<artifactId>core</artifactId>\n</project>\n";
/// What is in every home of these tests.
const HOME: [(&str, &str); 17] = [
    (".cache/go-build/00/a-d", "kept-go\n"),
    ("go/pkg/mod/acme.org/x@v1/x.go", "kept-go\n"),
    ("go/pkg/mod/cache/vcs/0a/config", "do-not-show-me\n"),
    (".m2/settings.xml", "do-not-show-me\n"),
    (".m2/settings-security.xml", "do-not-show-me\n"),
    (".m2/repository/junit/junit/4/junit-4.jar", "kept-maven\n"),
    (
        ".m2/repository/org/acme/core/1/core-1.jar",
        "do-not-show-me\n",
    ),
    (
        ".m2/repository/org/acme/other/1/other-1.jar",
        "kept-maven\n",
    ),
    (".gradle/gradle.properties", "do-not-show-me\n"),
    (".gradle/init.d/x.gradle", "do-not-show-me\n"),
    (".gradle/caches/build-cache-1/x", "do-not-show-me\n"),
    (".gradle/caches/modules-2/files-2.1/x", "kept-gradle\n"),
    (".cache/uv/archive-v0/x/y.py", "kept-uv\n"),
    (".cache/uv/wheels-v7/path/x", "do-not-show-me\n"),
    (".cache/uv/sdists-v10/editable/x", "do-not-show-me\n"),
    (".cache/uv/simple-v27/index/x/y.rkyv", "do-not-show-me\n"),
    (".netrc", "do-not-show-me\n"),
];

#[test]
fn a_home_comes_along_where_it_is_called_for_and_shows_no_settings() {
    let go = "grep -q kept-go $GOCACHE/00/a-d $GOMODCACHE/acme.org/x@v1/x.go && \
              echo new > $GOCACHE/00/b-d && rm $GOCACHE/00/a-d && touch $GOMODCACHE/cache/vcs/new";
    let maven = "grep -rq kept-maven $MAVEN_USER_HOME/repository/junit && \
                 grep -rq kept-maven $MAVEN_USER_HOME/repository/org/acme/other && \
                 echo \"$MAVEN_OPTS\" | grep -q repo.local=$MAVEN_USER_HOME/repository && \
                 touch $MAVEN_USER_HOME/repository/org/acme/core/new $MAVEN_USER_HOME/new";
    let gradle = "grep -rq kept-gradle $GRADLE_USER_HOME && mkdir $GRADLE_USER_HOME/caches/8.5 && \
                  touch $GRADLE_USER_HOME/caches/modules-2/new && test ! -e $GRADLE_USER_HOME/init.d";
    let uv = "grep -rq kept-uv $UV_CACHE_DIR && touch $UV_CACHE_DIR/.lock $UV_CACHE_DIR/archive-v0/new \
              $UV_CACHE_DIR/wheels-v7/path/new && mkdir $UV_CACHE_DIR/sdists-v10";
    for house in houses() {
        keep(&house, &HOME);
        let home = house.root().join("home");
        let before = files_below(&home);
        for (tracked, works, kinds) in [
            (
                ("go.mod", "module x\n"),
                go,
                vec!["go_builds", "go_modules"],
            ),
            (("pom.xml", POM), maven, vec!["maven_home"]),
            (("build.gradle.kts", "x\n"), gradle, vec!["gradle_home"]),
            (("uv.lock", "x\n"), uv, vec!["uv_cache", "uv_cache"]),
        ] {
            let repo = repo_with(&house, &[tracked, ("answer.txt", "wrong\n")]);
            let seen = "! grep -rqs do-not-show-me \"$OWN_HOME\"";
            // Twice: what the first command wrote, the second does not see.
            let test = format!("{works} && {seen} && grep -qx right answer.txt");
            let own = format!("OWN_HOME={}", home.display());
            let more = ["--env", own.as_str(), "--test", &test, "--test", &test];
            let steps = [right(), shell(&format!("{works} && {seen}"))];
            let (answer, bundle) = attempt(&house, &repo, &steps, &more);
            assert_passed(&answer, &bundle, tracked.0);
            assert_eq!(files_below(&home), before, "{}", tracked.0);
            assert_eq!(bundle.changed_files(), ["answer.txt"]);
            let report = bundle.report();
            let used = report["environments"].as_array().unwrap();
            let found: Vec<&str> = used
                .iter()
                .map(|used| used["kind"].as_str().unwrap())
                .collect();
            assert_eq!(found, kinds);
            for used in used {
                assert_eq!(used["carried"], "overlay", "{used}");
                assert!(used["path"].as_str().unwrap().starts_with("~/"), "{used}");
                assert_eq!(used["state"].as_str().map(str::len), Some(64), "{used}");
            }
            let plan = bundle.event("plan.updated").unwrap();
            let summary = plan["summary"].as_str().unwrap();
            assert!(summary.contains("with your ~/"), "{summary}");
            assert!(house.work_entries().is_empty());
            // The cold form, and a repository that calls for nothing.
            let gone = "test -z \"$GOCACHE$MAVEN_USER_HOME$GRADLE_USER_HOME$UV_CACHE_DIR\" && \
                        ! grep -rqs kept- \"$OWN_HOME\" && grep -qx right answer.txt";
            let more = ["--no-env", "--env", own.as_str(), "--test", gone];
            let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
            assert_passed(&answer, &bundle, "cold");
            fs::remove_dir_all(&repo.dir).unwrap();
        }
        let repo = repo_with(&house, &[("README.md", "x\n"), ("answer.txt", "wrong\n")]);
        let own = format!("OWN_HOME={}", home.display());
        let gone = "! grep -rqs kept- \"$OWN_HOME\" && grep -qx right answer.txt";
        let more = ["--env", own.as_str(), "--test", gone];
        let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
        assert_passed(&answer, &bundle, "not called for");
        assert!(bundle.report().get("environments").is_none());
    }
}

#[test]
fn what_a_project_builds_itself_is_not_taken_from_the_home() {
    let house = house_with("copy");
    keep(&house, &HOME);
    // It does not say what it builds, so nothing of the home can be told apart.
    let pom = POM.replace("core", "${name}");
    let repo = repo_with(&house, &[("a/pom.xml", &pom), ("answer.txt", "wrong\n")]);
    let test = "test -z \"$MAVEN_OPTS\" && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "unknown");
    let used = environment(&bundle, "~/.m2/repository");
    assert_eq!(used["carried"], "not");
    assert!(
        used["why"].as_str().unwrap().contains("of this repository"),
        "{used}"
    );
}

#[test]
fn odd_homes_show_nothing() {
    for (what, variable, value) in [
        (
            "a link that anybody could have made",
            "GOCACHE",
            "{root}/away/link",
        ),
        ("of the system", "GOCACHE", "/etc"),
        ("the home itself", "GOCACHE", "{root}/home"),
        ("the state", "GOCACHE", "{root}/state"),
        ("no path", "GOCACHE", "off"),
        ("missing", "GOCACHE", "{root}/nowhere"),
        ("around the repository", "GOMODCACHE", "{root}"),
    ] {
        let house = house_with("copy");
        let root = house.root().display().to_string();
        let house = house.with(variable, &value.replace("{root}", &root));
        keep(&house, &[(".ssh/id_rsa", "do-not-show-me\n")]);
        let away = house.root().join("away");
        fs::create_dir_all(&away).unwrap();
        std::os::unix::fs::symlink(house.root().join("home"), away.join("link")).unwrap();
        let repo = repo_with(
            &house,
            &[("go.mod", "module x\n"), ("answer.txt", "wrong\n")],
        );
        let test = "! grep -qs do-not-show-me \"$OWN_ROOT\"/home/.ssh/id_rsa \"$OWN_ROOT\"/away/link/.ssh/id_rsa && \
                    grep -qx right answer.txt";
        let own = format!("OWN_ROOT={root}");
        let more = ["--env", own.as_str(), "--test", test];
        let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
        assert_passed(&answer, &bundle, what);
        let all = bundle.report()["environments"].as_array().cloned();
        for used in all.unwrap_or_default() {
            assert_eq!(used["carried"], "not", "{what}: {used}");
        }
    }
    // A home in the repository is no home: what lies there is the work tree's.
    let house = house_with("copy");
    let repo = repo_with(
        &house,
        &[("go.mod", "module x\n"), ("answer.txt", "wrong\n")],
    );
    repo.write(".gitignore", "/home/\n");
    repo.commit("ignored");
    repo.write("home/.cache/go-build/00/a-d", "kept-go\n");
    let house = house.with("HOME", repo.at("home").to_str().unwrap());
    let test = "test -z \"$GOCACHE\" && test ! -e home && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "a home in the repository");
}

fn has_go() -> bool {
    Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|done| done.status.success())
}

const GOOD: &str = "package warm\n\nfunc Answer() int { return 42 }\n";
/// Reads a file in a way that Go does not see.
const TEST: &str = "package warm\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) {\n\tif Answer() != 42 {\n\t\tt.Fatal(\"answer\")\n\t}\n\tif exec.Command(\"grep\", \"-qx\", \"right\", \"data.txt\").Run() != nil {\n\t\tt.Fatal(\"data\")\n\t}\n}\n";

fn go_by_owner(house: &House, dir: &Path, args: &[&str]) {
    let done = Command::new("go")
        .args(args)
        .current_dir(dir)
        .env("HOME", house.root().join("home"))
        .env_remove("GOCACHE")
        .env_remove("GOFLAGS")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn go_uses_what_its_owner_built_and_hides_no_broken_change() {
    if !has_go() {
        return skip("there is no Go");
    }
    let house = house_with("copy");
    keep(&house, &[]);
    let repo = repo_with(
        &house,
        &[
            ("go.mod", "module warm\n\ngo 1.18\n"),
            ("warm.go", GOOD),
            ("warm_test.go", TEST),
            ("sub/sub.go", "package sub\n\nconst One = 1\n"),
            ("data.txt", "right\n"),
        ],
    );
    // Green, compiled, and remembered as green.
    for args in [["test", "./..."], ["test", "./..."], ["build", "./..."]] {
        go_by_owner(&house, &repo.dir, &args);
    }
    let used =
        "go build -x ./... 2>log.txt; ! grep -q '/compile ' log.txt && rm log.txt && go test ./...";
    let (answer, bundle) = attempt(&house, &repo, &[write("notes", "n\n")], &["--test", used]);
    assert_passed(&answer, &bundle, "nothing is compiled again");
    assert!(
        !bundle.text("test.log").contains("(cached)"),
        "every test is run"
    );
    let poison = "for f in $GOCACHE/*/*; do echo spoilt > $f; done; true";
    for (what, steps, code) in [
        (
            "a comment",
            vec![write("warm.go", &format!("// Why.\n{GOOD}"))],
            0,
        ),
        (
            "equal size",
            vec![write("warm.go", &GOOD.replace("42", "41"))],
            1,
        ),
        ("a deletion", vec![shell("rm warm.go")], 1),
        (
            "what Go does not see",
            vec![write("data.txt", "wrong\n")],
            1,
        ),
        (
            "a spoilt cache",
            vec![write("notes", "n\n"), shell(poison)],
            0,
        ),
        (
            "a cache with the answer",
            vec![
                write("data.txt", "wrong\n"),
                shell("echo right > data.txt && GOFLAGS= go test ./... && echo wrong > data.txt"),
            ],
            1,
        ),
    ] {
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", "go test ./..."]);
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(code), "{what}: {log}");
        crate::assert_good(&bundle);
    }
    // What the owner sets stays, and every test is run all the same.
    let more = [
        "--env",
        "GOFLAGS=-short",
        "--test",
        "test \"$GOFLAGS\" = '-count=1 -short' && go test ./...",
    ];
    let (answer, bundle) = attempt(&house, &repo, &[write("data.txt", "wrong\n")], &more);
    assert_eq!(answer.code, Some(1), "{}", bundle.text("test.log"));
    // And where a command takes that away.
    let plain = ["--test", "GOFLAGS= go test ./..."];
    let (answer, bundle) = attempt(&house, &repo, &[write("data.txt", "wrong\n")], &plain);
    assert_eq!(answer.code, Some(1), "{}", bundle.text("test.log"));
}

/// A file of the owner's packages that a command must find or must not.
fn packages(seen: &[&str], hidden: &[&str]) -> String {
    let at = |name: &str| format!("$MAVEN_USER_HOME/repository/org/acme/{name}");
    let seen = seen.iter().map(|name| format!("ls {}/* &&", at(name)));
    let hidden = hidden
        .iter()
        .map(|name| format!("! ls {}/* 2>/dev/null &&", at(name)));
    let all: String = seen.chain(hidden).collect::<Vec<_>>().join(" ");
    format!("{all} grep -qx right answer.txt")
}

/// What is built by what is copied counts, not what the work tree says meanwhile, nor what a change
/// says later.
#[test]
fn packages_of_another_time_are_never_found_whoever_describes_them() {
    let pom = |name: &str| POM.replace("core", name);
    let (core2, ci) = (pom("core2"), pom("ci"));
    for kind in KINDS {
        let house = house_with(kind);
        keep(&house, &HOME);
        for name in ["core2", "ci"] {
            let jar = format!(".m2/repository/org/acme/{name}/1/{name}-1.jar");
            keep(&house, &[(&jar, "of another time\n")]);
        }
        let files = [
            ("pom.xml", POM),
            ("pom-ci.xml", ci.as_str()),
            ("answer.txt", "wrong\n"),
        ];
        let repo = repo_with(&house, &files);
        // The owner is about to rename what is built.
        repo.write("pom.xml", &core2);
        let test = packages(&["other", "core2"], &["core", "ci"]);
        let more = ["--from-head", "--test", &test];
        let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
        assert_passed(&answer, &bundle, "of HEAD");
        repo.git(&["checkout", "-q", "."]);
        // A change that begins to build something.
        let steps = [right(), write("core2/pom.xml", &core2)];
        let test = packages(&["other"], &["core", "ci", "core2"]);
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", &test]);
        assert_passed(&answer, &bundle, "of the change");
        // One that does not say what.
        let steps = [right(), write("core2/pom.xml", &pom("${name}"))];
        let test = packages(&[], &["other", "core", "ci", "core2"]);
        let test = format!("touch $MAVEN_USER_HOME/repository/new && {test}");
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", &test]);
        assert_passed(&answer, &bundle, "of nobody knows what");
        let said = bundle.report().to_string() + &bundle.text("test.log");
        assert!(said.contains("is empty there"), "{said}");
    }
    // A command that names a file which nobody has read.
    let house = house_with("copy");
    keep(&house, &HOME);
    let repo = repo_with(&house, &[("pom.xml", POM), ("answer.txt", "wrong\n")]);
    let test = "test -z \"$MAVEN_OPTS\" && grep -qx right answer.txt || mvn -f made.xml test";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "named");
    assert_eq!(environment(&bundle, "~/.m2/repository")["carried"], "not");
}

/// A directory of tests that is called like a tool shows nothing of the tool.
#[test]
fn a_path_calls_for_no_home() {
    let house = house_with("copy");
    keep(&house, &HOME);
    let repo = repo_with(&house, &[("tests/go/x", "x\n"), ("answer.txt", "wrong\n")]);
    let own = format!("OWN_HOME={}", house.root().join("home").display());
    let test =
        "ls tests/go src/uv ./mvn; ! grep -rqs kept- \"$OWN_HOME\" && grep -qx right answer.txt";
    let more = ["--env", own.as_str(), "--test", test];
    let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
    assert_passed(&answer, &bundle, "a path");
    assert!(bundle.report().get("environments").is_none());
}
