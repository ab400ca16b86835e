//! A repository in every check: what is asked of git there, what never comes along, and that nobody
//! reads what a check made of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cto_testkit::{Bundle, Case, House, ORACLE, Repo, script, shell, skip, write};

use super::{KINDS, RIGHT, passed, right, tried};
use crate::assert_good;
use crate::house;

/// What the first check said after a word.
fn said(bundle: &Bundle, word: &str) -> String {
    let log = bundle.text("test.log");
    let mut lines = log.lines().filter_map(|line| line.strip_prefix(word));
    lines.next().unwrap_or_default().trim().to_owned()
}

/// With a tag, a history, files that engines are not shown, and an owner who has settings.
fn tagged(house: &House) -> Repo {
    let repo = Repo::new(house, "tagged");
    repo.write("old.txt", "of history alone\n");
    repo.write("gone.txt", "goes\n");
    repo.write("control.txt", "fine\n");
    repo.write(".env", "PASSWORD=hidden\n");
    repo.write(".claude/a [1].md", "orders\n");
    repo.git(&["add", "-A", "-f"]);
    repo.commit("more");
    repo.git(&["tag", "-a", "-m", "one", "v1.2.0"]);
    repo.git(&["rm", "-q", "old.txt"]);
    repo.commit("less");
    repo.git(&["tag", "latest"]);
    repo.git(&["config", "alias.owners", "!false"]);
    repo.git(&["config", "remote.origin.url", "https://user:word@host/x"]);
    repo.program(".git/hooks/pre-commit", "#!/bin/sh\nfalse\n");
    repo
}

#[test]
fn a_check_finds_one_commit_the_change_staged_and_the_nearest_tags() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = tagged(&house);
        let id = |what: &str| repo.git(&["rev-parse", what]).trim().to_owned();
        let kept_out = [
            "v1.2.0:old.txt",
            "v1.2.0:.env",
            "HEAD:.claude/a [1].md",
            "HEAD",
        ]
        .map(id);
        let ask = format!(
            "echo cached: $(git diff --cached --name-status); echo unstaged: $(git diff --name-only); \
             echo plumbing: $(git diff-files --name-only); echo files: $(git ls-files); \
             echo commits: $(git rev-list --all --count); echo status: $(git status --porcelain); \
             echo describe: $(git describe) $(git describe --tags) $(git describe --dirty); \
             for id in {}; do git cat-file -e $id 2>/dev/null && echo leaked: $id; done; \
             echo owners: $(git config --local --list | grep -E 'alias|remote') $(ls .git/hooks); \
             echo there: $(cat .env .claude/*); \
             echo stash: $(git stash -q && cat answer.txt && git stash pop -q --index && cat answer.txt); \
             git commit -qm mine && echo mine: $(git rev-list --count HEAD); {RIGHT}",
            kept_out.join(" ")
        );
        let steps = [right(), write("new.txt", "new\n"), shell("rm gone.txt")];
        let (answer, bundle) = tried(&house, &repo, &steps, &["--test", &ask]);
        passed(kind, &answer, &bundle);
        for (word, wanted) in [
            ("cached: ", "M answer.txt D gone.txt A new.txt"),
            ("status: ", "M answer.txt D gone.txt A new.txt"),
            ("unstaged:", ""),
            ("plumbing:", ""),
            (
                "files: ",
                ".env .gitignore answer.txt control.txt new.txt src/keep.txt",
            ),
            ("commits: ", "1"),
            ("describe: ", "v1.2.0 v1.2.0 v1.2.0-dirty"),
            ("leaked:", ""),
            ("owners:", ""),
            ("there:", "PASSWORD=hidden orders"),
            ("stash: ", "wrong right"),
        ] {
            assert_eq!(said(&bundle, word), wanted, "{kind}: {word}");
        }
        // By whom, the jail says.
        assert_eq!(said(&bundle, "mine: "), "2", "{kind}");
        assert!(repo.git(&["status", "--porcelain"]).is_empty(), "{kind}");
    }
}

/// One test that knows whether its change is staged, in check, control and baseline alike.
#[test]
fn hidden_checks_control_and_baseline_have_one_too() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = Repo::new(&house, "python");
        let test = "import subprocess, unittest\n\
             class T(unittest.TestCase):\n    \
               def test_git(self):\n        \
                 ask = lambda *a: subprocess.check_output(['git', *a], text=True).split()\n        \
                 staged = 'answer.txt' in ask('diff', '--cached', '--name-only')\n        \
                 self.assertEqual(staged, open('answer.txt').read() == 'right\\n')\n        \
                 self.assertEqual(ask('rev-list', '--all', '--count'), ['1'])\n        \
                 self.assertIn('src/keep.txt', ask('ls-files'))\n";
        repo.write("test_git.py", test);
        repo.commit("a test");
        let more = ["--test", "python3 -m unittest"];
        let (answer, bundle) = house.try_on(&repo, &script(&[right()]), &more);
        passed(kind, &answer, &bundle);
        let ids = bundle.text("test-ids.json");
        assert!(ids.contains("test_git"), "{kind}: {ids}");
    }
    let house = house();
    let staged = "test \\\"$(git diff --cached --name-only)\\\" = answer.txt";
    let commands = format!("[\"{RIGHT} && {staged}\"]");
    let hidden = Case::new("hidden")
        .commands(&commands)
        .hidden(&commands)
        .file("hidden/x.txt", "");
    let case = house.case(&hidden);
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    passed("case", &answer, &bundle);
    assert!(bundle.text("test.log").contains("== hidden checks =="));
}

/// What one command does with it, the next one does not find; nobody follows it anywhere.
#[test]
fn whatever_a_check_makes_of_it_is_read_by_nobody() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = tagged(&house);
        let victim = house.root().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("index"), "mine\n").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o755)).unwrap();
        let away = format!("rm -rf .git; ln -s {} .git", victim.display());
        let asked = format!(
            "test -d .git -a ! -L .git && test \"$(git diff --cached --name-only)\" = answer.txt \
             && test -z \"$(git diff --name-only)$(git config core.fsmonitor)\" \
             && test \"$(git describe)\" = v1.2.0 && {RIGHT}"
        );
        for ruin in [
            "git config core.fsmonitor 'touch ran; false'; git config core.hooksPath /tmp; git tag -f v1.2.0 HEAD; git tag v9",
            "git add -A; git commit -qm mine; git update-index --assume-unchanged answer.txt",
            "echo x > .git/index; rm -rf .git/objects",
            "rm -rf .git",
            "rm -rf .git; echo gitdir: /tmp/else > .git",
            "rm -rf .git; mkfifo .git",
            "rm .git/index; mkfifo .git/index .git/config.lock; chmod 000 .git",
            &away,
        ] {
            let first = format!("{ruin}; {RIGHT}");
            let more = ["--test", &first, "--test", &asked];
            let (answer, bundle) = tried(&house, &repo, &[right()], &more);
            passed(&format!("{kind}: {ruin}"), &answer, &bundle);
            let changes = &bundle.report()["observed"]["changes"];
            assert_eq!(changes.as_array().unwrap().len(), 1, "{kind}: {ruin}");
        }
        let mode = fs::metadata(&victim).unwrap().permissions().mode() & 0o777;
        let left: Vec<_> = fs::read_dir(&victim).unwrap().collect();
        assert_eq!((mode, left.len()), (0o755, 1), "{kind}");
        assert_eq!(fs::read(victim.join("index")).unwrap(), b"mine\n", "{kind}");
    }
}

/// A formatter and then a look at what it did are two commands in many projects.
#[test]
fn what_one_command_writes_over_the_next_one_sees() {
    for kind in KINDS {
        for environment in [false, true] {
            let house = house().with("CTO_TEST_WORKSPACE", kind);
            let repo = tagged(&house);
            repo.write(".gitignore", "*.log\nnode_modules/\n");
            repo.git(&["commit", "-q", "-n", "-a", "-m", "ignored"]);
            if environment {
                repo.write("node_modules/x/index.js", "1\n");
            }
            let what = format!("{kind}, {environment}");
            // As many letters, and within the second.
            let other = "tr a-z b-za < answer.txt > x.log; cat x.log > answer.txt";
            let more = [
                "--test",
                RIGHT,
                "--test",
                other,
                "--test",
                "git diff --exit-code",
            ];
            let (answer, bundle) = tried(&house, &repo, &[right()], &more);
            assert_ne!(answer.code, Some(0), "{what}: {}", bundle.text("test.log"));
            // What is made of a file is older than what was written over it later.
            let over = "touch made.log; sleep 0.02; cat answer.txt > x.log; cat x.log > answer.txt";
            let same = format!("{over}; {RIGHT}");
            let newer = format!("test answer.txt -nt made.log && {RIGHT}");
            let more = ["--test", &same, "--test", &newer];
            let (answer, bundle) = tried(&house, &repo, &[right()], &more);
            passed(&what, &answer, &bundle);
        }
    }
}

#[test]
fn setup_may_commit_and_tag() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = tagged(&house);
        let setup = "git commit -q --allow-empty -m setup && git tag -f v2.0.0 && git gc -q";
        let ask = format!("git describe --tags | grep -q v2.0.0 && {RIGHT}");
        // Twice in the same copy: what setup did is there for both.
        let more = ["--setup", setup, "--test", &ask, "--test", &ask];
        let (answer, bundle) = tried(&house, &repo, &[right()], &more);
        passed(kind, &answer, &bundle);
        let changes = bundle.report()["observed"]["changes"].clone();
        assert_eq!(changes[0]["path"], "answer.txt", "{kind}");
        assert_eq!(changes.as_array().unwrap().len(), 1, "{kind}");
    }
}

#[test]
fn names_of_tags_are_taken_over_as_they_are_or_not_at_all() {
    let house = house();
    let repo = tagged(&house);
    for name in repo.git(&["tag"]).lines() {
        repo.git(&["tag", "-d", name]);
    }
    let ask = format!("printf 'tag: %s\\n' \"$(git describe --tags)\"; {RIGHT}");
    for (name, comes) in [
        ("a/b/c-1.0", true),
        ("$(touch${IFS}ran)", true),
        ("v1';echo\"x", true),
        ("veröffentlicht", true),
        ("-delete", false),
        ("HEAD", true),
    ] {
        let reference = format!("refs/tags/{name}");
        repo.git(&["update-ref", &reference, "HEAD"]);
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", &ask]);
        passed(name, &answer, &bundle);
        let wanted = if comes { name } else { "" };
        assert_eq!(said(&bundle, "tag: "), wanted);
        repo.git(&["update-ref", "-d", &reference]);
    }
    // Written past git, where no git would write it.
    let head = repo.git(&["rev-parse", "HEAD"]);
    let head = head.trim();
    for line in ["../../HEAD", "a b", "a\n^0000", "v1..2", "x.lock"] {
        let lines = format!("# pack-refs with: peeled \n{head} refs/tags/{line}\n");
        fs::write(repo.at(".git/packed-refs"), lines).unwrap();
        let asked = format!("test ! -s .git/packed-refs && git status -s && {RIGHT}");
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", &asked]);
        // Git itself may call such a repository broken; then nothing runs.
        if answer.code == Some(0) {
            assert_good(&bundle);
        }
        assert!(matches!(answer.code, Some(0 | 3)), "{line}: {answer:?}");
    }
}

#[test]
fn setuptools_scm_finds_a_version() {
    let house = house();
    let repo = tagged(&house);
    repo.write(".gitignore", "*.log\n/lib/\n");
    repo.write(
        "pyproject.toml",
        "[project]\nname = \"x\"\ndynamic = [\"version\"]\n[tool.setuptools_scm]\n",
    );
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-n", "-m", "a project"]);
    repo.git(&["tag", "v1.3.0"]);
    let installed = Command::new("python3")
        .args(["-m", "pip", "install", "-q", "--target"])
        .arg(repo.at("lib"))
        .arg("setuptools-scm")
        .output();
    if !installed.is_ok_and(|output| output.status.success()) {
        return skip("setuptools-scm cannot be installed");
    }
    let ask = format!(
        "echo version: $(PYTHONPATH=lib python3 -c 'import setuptools_scm; print(setuptools_scm.get_version())'); {RIGHT}"
    );
    let more = ["--input", "lib", "--test", &ask];
    let (answer, bundle) = tried(&house, &repo, &[right()], &more);
    passed("setuptools-scm", &answer, &bundle);
    let version = said(&bundle, "version: ");
    assert!(version.starts_with("1.3.1.dev"), "{version}");
}

/// A git that writes down what it is asked, and answers one kind of question never.
fn slow_git(house: &House, never: &str) {
    let (told, config) = (
        house.root().join("told"),
        house.root().join("home/.config/cto/config.toml"),
    );
    let git = house.root().join("tools/git");
    for place in [&config, &git] {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
    }
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *\" describe \"*) echo \"$*\" >> {told:?};; esac\n\
         case \"$*\" in {never}) exec sleep 3600;; esac\nexec /usr/bin/git \"$@\"\n"
    );
    fs::write(&git, text).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&config, format!("git = {:?}\n", git.to_str().unwrap())).unwrap();
}

/// How often history was walked.
fn described(house: &House) -> usize {
    let told = fs::read_to_string(house.root().join("told"));
    told.unwrap_or_default().lines().count()
}

#[test]
fn history_is_walked_once_where_the_nearest_tag_is_all_that_is_asked_for() {
    let ask = format!("printf 'tag: %s\\n' \"$(git describe --tags)\"; {RIGHT}");
    for (tags, walks, wanted) in [
        (&[&["tag", "-a", "-m", "x", "v1.2.0"][..]][..], 1, "v1.2.0"),
        // No other than this one, with a note or with a number, is near.
        (&[&["tag", "latest"]], 3, "latest"),
        (&[&["tag", "v1"]], 2, "v1"),
        (&[], 0, ""),
    ] {
        let house = house();
        let repo = Repo::new(&house, "tagged");
        repo.write("control.txt", "fine\n");
        repo.commit("more");
        tags.iter().for_each(|args| drop(repo.git(args)));
        slow_git(&house, "never");
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", &ask]);
        passed(wanted, &answer, &bundle);
        assert_eq!(said(&bundle, "tag: "), wanted);
        assert_eq!(described(&house), walks, "{wanted}");
    }
}

/// Nobody waits for ever for a name.
#[test]
fn a_walk_without_end_costs_a_tag_and_no_more() {
    let ask = format!("printf 'tag: %s\\n' \"$(git describe --tags 2>/dev/null)\"; {RIGHT}");
    for (never, wanted) in [
        ("*\" describe --abbrev=0 \"[0-9a-f]*", "latest"),
        ("*\" describe \"*", ""),
    ] {
        let house = house();
        let repo = Repo::new(&house, "tagged");
        repo.write("control.txt", "fine\n");
        repo.commit("more");
        repo.git(&["tag", "latest"]);
        slow_git(&house, never);
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", &ask]);
        passed(never, &answer, &bundle);
        assert_eq!(said(&bundle, "tag: "), wanted, "{never}");
    }
}
