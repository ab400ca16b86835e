//! Submodules come along when they are checked out, from this repository's own git directory and
//! from nowhere else.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

use cto_testkit::{Answer, Bundle, House, Repo, script, shell};

use super::{KINDS, RIGHT, passed, right, tried};
use crate::assert_good;
use crate::fixtures::people::people;
use crate::house;

/// All of the workspace can be written, so that what is done there is measured and not refused.
const CONTAINED: &[&str] = &["--contain", "contained"];

fn warnings(bundle: &Bundle) -> String {
    bundle.report()["engine"]["warnings"].to_string()
}

/// `libs/inner` with `deep` in it, both checked out.
fn outer(house: &House) -> Repo {
    let (deep, inner) = (Repo::new(house, "deep"), Repo::new(house, "inner"));
    deep.write("deep.txt", "deep\n");
    deep.commit("deep");
    inner.program("run.sh", "#!/bin/sh\necho inner\n");
    inner.write(".env", "PASSWORD=hidden\n");
    inner.write(".claude/orders.md", "orders\n");
    symlink("run.sh", inner.at("link")).unwrap();
    inner.git(&["add", "-A", "-f"]);
    inner.commit("inner");
    inner.git(&["submodule", "--quiet", "add", deep.path(), "deep"]);
    inner.commit("with deep");
    let repo = Repo::new(house, "outer");
    repo.write("control.txt", "fine\n");
    repo.write("libs/beside.txt", "beside\n");
    repo.git(&["submodule", "--quiet", "add", inner.path(), "libs/inner"]);
    repo.git(&["submodule", "--quiet", "update", "--init", "--recursive"]);
    repo.commit("a submodule");
    repo
}

#[test]
fn what_is_checked_out_comes_along() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = outer(&house);
        // What its owner did there is not what HEAD names.
        repo.write("libs/inner/answer.txt", "owner's\n");
        repo.write("libs/inner/untracked.txt", "owner's\n");
        let there = "grep -qx wrong libs/inner/answer.txt && test \"$(libs/inner/link)\" = inner \
             && grep -qx deep libs/inner/deep/deep.txt && grep -qx beside libs/beside.txt \
             && test ! -e libs/inner/untracked.txt && test ! -e libs/inner/.git";
        let masked = "test ! -s libs/inner/.env && test ! -s libs/inner/.claude/orders.md";
        let clean = "test -z \"$(git status --porcelain libs)\"";
        let test = format!(
            "{there} && {masked} && {clean} && echo built > libs/inner/built && rm -r libs/inner/deep && {RIGHT}"
        );
        let look = shell(&format!("{there} && {masked} && {clean}"));
        let (answer, bundle) = tried(&house, &repo, &[look, right()], &["--test", &test]);
        passed(kind, &answer, &bundle);
        assert_eq!(bundle.changed_files(), ["answer.txt"], "{kind}");
        assert_eq!(warnings(&bundle), "null", "{kind}");
        let run = bundle.report()["run_id"].as_str().unwrap().to_owned();
        let applied = house.cto(&["apply", &run, "--repo", repo.path()]);
        assert_eq!(applied.code, Some(0), "{kind}: {applied:?}");
        assert_eq!(repo.read("libs/inner/answer.txt"), "owner's\n", "{kind}");
    }
}

/// For root and for an ordinary user.
#[test]
fn whoever_asks_has_git_and_submodules_in_the_checks() {
    for person in people() {
        let root = person.at("home");
        let at = |name: &str| Repo {
            dir: root.join(name),
        };
        let (inner, repo) = (at("inner"), at("repo"));
        for made in [&inner, &repo] {
            fs::create_dir_all(&made.dir).unwrap();
            made.git(&["init", "-q", "-b", "main"]);
            made.write("answer.txt", "wrong\n");
            made.commit("start");
        }
        repo.git(&["submodule", "--quiet", "add", inner.path(), "module"]);
        repo.commit("a submodule");
        repo.git(&["tag", "v1.0"]);
        let steps = root.join("steps.toml");
        fs::write(&steps, script(&[right()])).unwrap();
        let owner = root.metadata().unwrap();
        let owner = format!("{}:{}", owner.uid(), owner.gid());
        let mut chown = Command::new("chown");
        chown.args(["-Rh", &owner]).arg(&root).status().unwrap();
        let test = "grep -qx wrong module/answer.txt && test \"$(git describe --tags)\" = v1.0 \
             && test \"$(git status -s)\" = 'M  answer.txt' && grep -qx right answer.txt";
        let steps = steps.to_str().unwrap();
        for kind in KINDS {
            let mut command = person.command(&[
                "try",
                "--repo",
                repo.path(),
                "--task",
                "x",
                "--script",
                steps,
                "--json",
                "--allow",
                "answer.txt",
                "--test",
                test,
            ]);
            command
                .env("CTO_STATE_DIR", root.join("state"))
                .env("CTO_TEST_WORKSPACE", kind);
            let (answer, bundle) = Answer::of(&command.output().unwrap()).with_bundle();
            passed(&format!("{}: {kind}", person.name), &answer, &bundle);
            assert_eq!(warnings(&bundle), "null", "{}: {kind}", person.name);
        }
    }
}

/// A right answer, and beside it a change that no patch can hold.
fn fails_and_is_named(house: &House, repo: &Repo, change: &str, named: &str) {
    let more = [CONTAINED, &["--test", RIGHT]].concat();
    let (answer, bundle) = tried(house, repo, &[right(), shell(change)], &more);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(1), vec!["dirty_ending_tree".to_owned()]),
        "{change}"
    );
    let said = bundle.report()["blockers"].to_string();
    assert!(said.contains(named), "{change}: {said}");
    assert_good(&bundle);
}

#[test]
fn a_change_inside_one_fails_and_is_named() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = outer(&house);
        for (change, named) in [
            ("echo x >> libs/inner/answer.txt", "libs/inner/answer.txt"),
            ("rm libs/inner/deep/deep.txt", "libs/inner/deep/deep.txt"),
            ("echo x > libs/inner/new.txt", "libs/inner/new.txt"),
            ("chmod -x libs/inner/run.sh", "libs/inner/run.sh"),
            ("rm -r libs/inner", "libs/inner/answer.txt"),
            ("rm -r libs/inner; echo x > libs/inner", "libs/inner"),
        ] {
            fails_and_is_named(&house, &repo, change, named);
        }
    }
}

/// What somebody puts where a submodule belongs.
type Way<'a> = (&'a str, &'a dyn Fn(&Repo));

/// Whatever stands where a submodule belongs, nothing from outside this repository is read for it.
#[test]
fn nothing_leads_out_of_the_repository() {
    let house = house();
    let other = Repo::new(&house, "other");
    other.write("private.txt", "of another repository\n");
    other.commit("private");
    let commit = other.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let git_dir = other.at(".git").display().to_string();
    let point = |repo: &Repo, to: &str| {
        fs::create_dir_all(repo.at("module")).unwrap();
        fs::write(repo.at("module/.git"), format!("gitdir: {to}\n")).unwrap();
    };
    let ways: [Way<'_>; 8] = [
        ("not checked out", &|_| {}),
        ("absolute", &|repo| point(repo, &git_dir)),
        ("relative", &|repo| point(repo, "../../other/.git")),
        ("dots behind modules", &|repo| {
            point(repo, "../.git/modules/../../../other/.git");
        }),
        ("modules themselves", &|repo| point(repo, "../.git/modules")),
        ("a link among modules", &|repo| {
            fs::create_dir_all(repo.at(".git/modules")).unwrap();
            symlink(&git_dir, repo.at(".git/modules/module")).unwrap();
            point(repo, "../.git/modules/module");
        }),
        ("a link for a git directory", &|repo| {
            fs::create_dir_all(repo.at("module")).unwrap();
            symlink(&git_dir, repo.at("module/.git")).unwrap();
        }),
        ("a link to objects", &|repo| {
            fs::create_dir_all(repo.at("module/.git")).unwrap();
            symlink(other.at(".git/objects"), repo.at("module/.git/objects")).unwrap();
        }),
    ];
    for (what, lead) in ways {
        let repo = Repo::new(&house, &what.replace(' ', "-"));
        repo.write("control.txt", "fine\n");
        repo.write(
            ".gitmodules",
            "[submodule \"../../other\"]\n\tpath = module\n\turl = ../other\n",
        );
        repo.git(&["add", "-A"]);
        let entry = format!("160000,{commit},module");
        repo.git(&["update-index", "--add", "--cacheinfo", &entry]);
        repo.git(&["commit", "-q", "-m", "a submodule"]);
        lead(&repo);
        let test = format!("test -z \"$(ls -A module)\" && {RIGHT}");
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", &test]);
        passed(what, &answer, &bundle);
        let said = warnings(&bundle);
        assert!(said.contains("submodule module"), "{what}: {said}");
    }
}

/// A result that puts a link on the way to a submodule gets no file of it behind that link.
#[test]
fn no_file_is_put_behind_a_link_of_the_result() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = outer(&house);
        let victim = house.root().join("victim");
        fs::create_dir(&victim).unwrap();
        let change = format!("rm -rf libs; ln -s {} libs", victim.display());
        let more = [CONTAINED, &["--test", RIGHT]].concat();
        let (answer, bundle) = tried(&house, &repo, &[right(), shell(&change)], &more);
        assert_eq!(answer.code, Some(1), "{kind}: {answer:?}");
        assert_good(&bundle);
        let left: Vec<_> = fs::read_dir(&victim).unwrap().collect();
        assert!(left.is_empty(), "{kind}: {left:?}");
    }
}

/// What a build leaves in a submodule is no change of it where its own rules say so, as at home.
#[test]
fn what_a_submodule_ignores_is_scratch_there_and_nothing_else_is() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let (deep, inner) = (Repo::new(&house, "deep"), Repo::new(&house, "inner"));
        deep.write("deep.txt", "deep\n");
        deep.commit("deep");
        inner.write(".gitignore", "*.o\n/out/\n!keep.o\n");
        inner.write("sub/.gitignore", "made-*\n");
        inner.write("tracked.o", "tracked\n");
        inner.git(&["add", "-A", "-f"]);
        inner.commit("rules");
        inner.git(&["submodule", "--quiet", "add", deep.path(), "deep"]);
        inner.commit("with deep");
        let repo = Repo::new(&house, "outer");
        repo.write("control.txt", "fine\n");
        repo.write(".gitignore", "*.log\n*.outer\n");
        repo.git(&["submodule", "--quiet", "add", inner.path(), "libs/inner"]);
        repo.git(&["submodule", "--quiet", "update", "--init", "--recursive"]);
        repo.commit("a submodule");
        let built = "cd libs/inner && echo o > x.o && mkdir -p out/a sub && echo o > out/a/b && \
                     echo o > sub/made-1 && echo o > sub/y.o && echo o > deep/z.log";
        let clean = "git -C libs/inner status --porcelain";
        let setup = format!("({built})");
        let test = format!("({built}) && {RIGHT}");
        let steps = [shell(built), right()];
        let more = [CONTAINED, &["--test", &test, "--setup", &setup]].concat();
        let (answer, bundle) = tried(&house, &repo, &steps, &more);
        passed(&format!("{kind}: {clean}"), &answer, &bundle);
        assert_eq!(bundle.changed_files(), ["answer.txt"], "{kind}");
        let scratch = &bundle.event("git.diff.checked").unwrap()["scratch"];
        assert!(scratch["count"].as_u64().unwrap() >= 5, "{kind}: {scratch}");
        for (change, named) in [
            ("echo x >> libs/inner/tracked.o", "libs/inner/tracked.o"),
            ("rm libs/inner/tracked.o", "libs/inner/tracked.o"),
            ("echo x > libs/inner/keep.o", "libs/inner/keep.o"),
            ("echo x > libs/inner/made-1", "libs/inner/made-1"),
            // Rules of one repository say nothing in another.
            ("echo x > libs/inner/x.outer", "libs/inner/x.outer"),
            ("echo x > libs/inner/deep/x.o", "libs/inner/deep/x.o"),
            // Nor do rules that came with the change.
            (
                "echo '*' > libs/inner/sub/.gitignore; echo x > libs/inner/sub/z",
                "libs/inner/sub/z",
            ),
        ] {
            fails_and_is_named(&house, &repo, change, named);
        }
        // A forbidden path is no scratch, whatever ignores it.
        let more = [CONTAINED, &["--test", RIGHT, "--forbid", "libs/inner/out/"]].concat();
        let change = shell("mkdir -p libs/inner/out && echo x > libs/inner/out/a");
        let (answer, bundle) = tried(&house, &repo, &[right(), change], &more);
        assert_eq!(answer.code, Some(1), "{kind}: {answer:?}");
        assert_good(&bundle);
    }
}
