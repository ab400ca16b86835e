//! Nothing is typed twice: proposals, questions, what is remembered, and what never is.

use std::fs;
use std::path::Path;
use std::process::Command;

use cto_testkit::{Answer, Bundle, House, Repo, converse, script, write};

use crate::{assert_good, house};

/// Code with a mistake, its tests, and a Makefile that runs them. Nothing of it is quick to guess but by its files.
fn project(house: &House, name: &str) -> Repo {
    let repo = Repo::new(house, name);
    repo.write("src/app.sh", "echo wrong\n");
    repo.write("src/tests/check.sh", "test \"$(sh src/app.sh)\" = right\n");
    repo.write("Makefile", "all:\n\ntest: all\n\tsh src/tests/check.sh\n");
    repo.commit("a project");
    repo
}

fn repair(house: &House) -> String {
    let steps = script(&[write("src/app.sh", "echo right\n")]);
    house.script("repair", &steps)
}

/// `cto try` of somebody who types nothing but the task, and what else is given here.
fn bare(house: &House, repo: &Repo, more: &[&str]) -> Command {
    let script = repair(house);
    let mut command = house.command(&["try", "--task", "Say right", "--script", &script]);
    command.args(more).current_dir(&repo.dir);
    command
}

fn typed(house: &House, dir: &Path, args: &[&str]) -> Answer {
    Answer::of(&house.command(args).current_dir(dir).output().unwrap())
}

fn run_bare(house: &House, repo: &Repo, more: &[&str]) -> Answer {
    Answer::of(&bare(house, repo, more).output().unwrap())
}

fn newest(house: &House) -> Bundle {
    Bundle::at(house.run_dirs().pop().unwrap())
}

fn memory(house: &House) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(house.state().join("projects"));
    let files = files.into_iter().flatten().flatten();
    files.map(|file| file.path()).collect()
}

#[test]
fn without_a_terminal_the_proposal_comes_as_flags_to_paste() {
    let house = house();
    let repo = project(&house, "paste");
    let before = repo.bytes();
    let refused = run_bare(&house, &repo, &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("not_told"), "{refused:?}");
    assert!(
        refused.stderr.contains("make test  (from Makefile)"),
        "{refused:?}"
    );
    assert!(house.run_dirs().is_empty() && memory(&house).is_empty());
    assert_eq!(repo.bytes(), before);
    let flags = refused.stderr.trim_end().lines().last().unwrap();
    assert!(
        flags.starts_with("--test 'make test' --allow src/"),
        "{flags}"
    );
    let line = format!(
        "exec \"$0\" try --task 'Say right' --script '{}' {flags}",
        repair(&house)
    );
    let mut shell = Command::new("sh");
    let state = house.state();
    shell.args(["-c", &line]).arg(crate::program());
    shell.env("HOME", house.root().join("home"));
    shell.env("CTO_STATE_DIR", state).current_dir(&repo.dir);
    let pasted = Answer::of(&shell.output().unwrap());
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    let bundle = newest(&house);
    assert_good(&bundle);
    let contract = bundle.json("contract.json");
    assert_eq!(contract["allowed_paths"], serde_json::json!(["src/"]));
    let forbidden = contract["forbidden_paths"].to_string();
    assert!(forbidden.contains("*/tests/"), "{forbidden}");
    // As a document too; and what is typed is not remembered by itself.
    let document = run_bare(&house, &repo, &["--json"]).json();
    assert_eq!(document["error"]["code"], "not_told");
    assert!(document["error"]["hint"].as_str().unwrap().ends_with(flags));
    assert!(memory(&house).is_empty());
}

#[test]
fn a_terminal_is_asked_twice_and_never_again() {
    let house = house();
    let repo = project(&house, "asked");
    let asked = converse(bare(&house, &repo, &[]), "\n\n");
    assert_eq!(asked.code, Some(0), "{}", asked.stdout);
    let order = [
        "Which command tests this repository?",
        "make test  (from Makefile)",
        "What may change?",
        "src/",
        "tests/",
        "Remembered.",
        "PASS",
    ];
    let mut rest = asked.stdout.as_str();
    for words in order {
        let at = rest.find(words);
        rest = at.map_or_else(|| panic!("{words}: {}", asked.stdout), |at| &rest[at..]);
    }
    let contract = newest(&house).json("contract.json");
    assert_eq!(
        contract["verification_commands"],
        serde_json::json!(["make test"])
    );
    let file = memory(&house).pop().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // With and without a terminal, from below, and after another commit.
    repo.write("notes.txt", "more\n");
    repo.commit("later");
    for again in [
        converse(bare(&house, &repo, &[]), ""),
        run_bare(&house, &repo, &[]),
        Answer::of(
            &bare(&house, &repo, &[])
                .current_dir(repo.at("src"))
                .output()
                .unwrap(),
        ),
    ] {
        assert_eq!(again.code, Some(0), "{again:?}");
        let all = format!("{}{}", again.stdout, again.stderr);
        assert!(!all.contains("Which command"), "{all}");
        assert!(
            all.contains("remembered, from Makefile: --test 'make test'"),
            "{all}"
        );
        assert_good(&newest(&house));
        let same = newest(&house).json("contract.json");
        for key in ["verification_commands", "allowed_paths", "forbidden_paths"] {
            assert_eq!(same[key], contract[key], "{key}");
        }
    }
    let document = run_bare(&house, &repo, &["--json"]);
    assert_eq!(document.stderr, "");
    assert_eq!(
        document.json()["remembered"]["test"],
        serde_json::json!(["make test"])
    );
}

#[test]
fn answers_may_be_others_and_none_is_no_answer() {
    let house = house();
    let repo = project(&house, "other");
    for (typed, code) in [
        ("", Some(2)),
        ("make \u{1b}[A\n", Some(2)),
        ("\n../x\n", Some(2)),
    ] {
        // The end of what is typed is the end of input.
        let refused = converse(bare(&house, &repo, &[]), &format!("{typed}\u{4}"));
        assert_eq!(refused.code, code, "{typed:?}: {}", refused.stdout);
        assert!(memory(&house).is_empty(), "{typed:?}");
    }
    let answer = converse(
        bare(&house, &repo, &[]),
        "sh src/tests/check.sh\nsrc/app.sh src/new.sh\n",
    );
    assert_eq!(answer.code, Some(0), "{}", answer.stdout);
    let contract = newest(&house).json("contract.json");
    let want = serde_json::json!(["src/app.sh", "src/new.sh"]);
    assert_eq!(contract["allowed_paths"], want);
    // Only what is missing is asked for.
    typed_ok(&house, &repo, &["project", "forget"]);
    let answer = converse(bare(&house, &repo, &["--test", "make test"]), "\n");
    assert_eq!(answer.code, Some(0), "{}", answer.stdout);
    assert!(
        !answer.stdout.contains("Which command"),
        "{}",
        answer.stdout
    );
    let shown = typed_ok(&house, &repo, &["project", "show", "--json"]).json();
    assert!(shown["remembered"]["test"].is_null(), "{shown}");
    assert_eq!(
        shown["remembered"]["allow"]["values"],
        serde_json::json!(["src/"])
    );
}

fn typed_ok(house: &House, repo: &Repo, args: &[&str]) -> Answer {
    let answer = typed(house, &repo.dir, args);
    assert_eq!(answer.code, Some(0), "{args:?}: {answer:?}");
    answer
}

#[test]
fn another_repository_at_the_same_path_is_asked_anew() {
    let house = house();
    let repo = project(&house, "place");
    typed_ok(
        &house,
        &repo,
        &["project", "set", "--test", "make test", "--allow", "src"],
    );
    assert_eq!(run_bare(&house, &repo, &[]).code, Some(0));
    // The same files by another first commit, and then the same commits in another git directory.
    let aside = house.root().join("aside");
    fs::rename(&repo.dir, &aside).unwrap();
    let other = project(&house, "place");
    other.write("more", "x");
    other.commit("another history");
    let refused = run_bare(&house, &other, &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("of another repository"),
        "{refused:?}"
    );
    let shown = typed_ok(&house, &other, &["project", "show", "--json"]).json();
    assert_eq!(shown["of_another_repository"], true);
    assert_eq!(shown["remembered"], serde_json::json!({}));
    fs::remove_dir_all(&other.dir).unwrap();
    let clone = ["clone", "-q", aside.to_str().unwrap(), repo.path()];
    assert!(Command::new("git").args(clone).status().unwrap().success());
    assert_eq!(run_bare(&house, &repo, &[]).code, Some(2));
    // What is answered for it stands in the place of what was remembered of the other.
    let set = ["project", "set", "--test", "sh src/tests/check.sh"];
    typed_ok(&house, &repo, &set);
    let shown = typed_ok(&house, &repo, &["project", "show", "--json"]).json();
    assert!(shown["remembered"]["allow"].is_null(), "{shown}");
    // A history that is rewritten, but for its beginning, is the same repository.
    repo.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let shown = typed_ok(&house, &repo, &["project", "show", "--json"]).json();
    assert_eq!(shown["of_another_repository"], false, "{shown}");
    assert_eq!(memory(&house).len(), 1);
    // Cloned anew it is another, also where the file system gives out the same number again.
    fs::remove_dir_all(&repo.dir).unwrap();
    assert!(Command::new("git").args(clone).status().unwrap().success());
    let shown = typed_ok(&house, &repo, &["project", "show", "--json"]).json();
    assert_eq!(shown["of_another_repository"], true, "{shown}");
}

#[test]
fn typed_flags_win_and_some_are_never_remembered() {
    let house = house();
    let repo = project(&house, "wins");
    let set = [
        "project",
        "set",
        "--test",
        "false",
        "--allow",
        "Makefile",
        "--forbid",
        "src/app.sh",
    ];
    typed_ok(&house, &repo, &set);
    let more = ["--test", "make test", "--allow", "src/app.sh"];
    let answer = run_bare(&house, &repo, &more);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let contract = newest(&house).json("contract.json");
    assert_eq!(
        contract["verification_commands"],
        serde_json::json!(["make test"])
    );
    let forbidden = contract["forbidden_paths"].as_array();
    assert!(forbidden.is_none_or(Vec::is_empty), "{contract}");
    // A scope that is typed alone leaves the command that is remembered.
    let red = run_bare(&house, &repo, &["--allow", "src", "--json"]);
    assert_eq!(red.code, Some(1), "{red:?}");
    assert_eq!(
        red.json()["remembered"],
        serde_json::json!({"test": ["false"]})
    );
    for never in [
        ["--engine", "pi"],
        ["--allow-engine", "pi"],
        ["--env", "A=1"],
        ["--toolchain", "/usr"],
        ["--accept-unproven", "because"],
        ["--unchecked", "because"],
        ["--script", "x"],
        ["--control", "x"],
    ] {
        let refused = typed(
            &house,
            &repo.dir,
            &[&["project", "set"][..], &never].concat(),
        );
        assert_eq!(refused.code, Some(2), "{never:?}: {refused:?}");
    }
    for bad in [
        ["--allow", "/etc"],
        ["--allow", "../x"],
        ["--test", "a\u{1b}b"],
        ["--runner", "no"],
    ] {
        let refused = typed(&house, &repo.dir, &[&["project", "set"][..], &bad].concat());
        assert_eq!(refused.code, Some(2), "{bad:?}: {refused:?}");
    }
    // None of it is in the document, whatever somebody writes there.
    let file = memory(&house).pop().unwrap();
    let good = fs::read_to_string(&file).unwrap();
    for key in ["engine", "env", "toolchain", "accept_unproven", "unchecked"] {
        assert!(!good.contains(&format!("\"{key}\"")), "{good}");
        fs::write(&file, good.replace("\"test\"", &format!("\"{key}\""))).unwrap();
        let refused = run_bare(&house, &repo, &more);
        assert_eq!(refused.code, Some(2), "{key}: {refused:?}");
        assert!(refused.stderr.contains("project_unreadable"), "{refused:?}");
        assert!(refused.stderr.contains("cto project forget"), "{refused:?}");
    }
    let forgotten = typed_ok(&house, &repo, &["project", "forget", "--json"]).json();
    assert_eq!(forgotten["forgotten"], true);
    assert_eq!(run_bare(&house, &repo, &more).code, Some(0));
    let forgotten = typed_ok(&house, &repo, &["project", "forget", "--json"]).json();
    assert_eq!(forgotten["forgotten"], false);
}

#[test]
fn a_command_that_is_gone_says_where_it_came_from() {
    let house = house();
    let repo = project(&house, "gone");
    typed_ok(
        &house,
        &repo,
        &[
            "project",
            "set",
            "--test",
            "no-such-program-x7 --all",
            "--allow",
            "src",
        ],
    );
    let blocked = run_bare(&house, &repo, &[]);
    assert_eq!(blocked.code, Some(3), "{blocked:?}");
    assert!(
        blocked.stdout.contains("toolchain_unavailable"),
        "{blocked:?}"
    );
    assert!(blocked.stdout.contains("cto project set"), "{blocked:?}");
    // Typed, it is the ordinary block alone.
    let blocked = run_bare(&house, &repo, &["--test", "no-such-program-x7"]);
    assert_eq!(blocked.code, Some(3), "{blocked:?}");
    assert!(!blocked.stdout.contains("cto project"), "{blocked:?}");
    let home = house.root().join("nowhere");
    for args in [["project", "show"], ["project", "set"]] {
        let refused = typed(&house, house.root(), &args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
    let forget = ["project", "forget", "--repo", home.to_str().unwrap()];
    assert_eq!(typed(&house, house.root(), &forget).code, Some(0));
}

#[test]
fn hostile_names_propose_nothing_that_steers() {
    let house = house();
    let repo = Repo::new(&house, "hostile");
    let package =
        "{\"name\": \"x\\u001b[2J\", \"scripts\": {\"test\": \"node \\u001b]0;x\\u0007\"}}";
    repo.write("package.json", package);
    repo.write("a\u{1b}[2J/x.js", "1\n");
    repo.write("b\u{202e}c/x.js", "1\n");
    repo.write("$(touch owned)/x.js", "1\n");
    repo.write("-rf/x.js", "1\n");
    repo.write("it's/x.js", "1\n");
    std::os::unix::fs::symlink("/etc/passwd", repo.at("Makefile")).unwrap();
    std::os::unix::fs::symlink("/etc", repo.at("link")).unwrap();
    repo.commit("hostile");
    let refused = run_bare(&house, &repo, &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        !refused.stderr.contains(['\u{1b}', '\u{202e}', '\u{7}']),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("Makefile"), "{refused:?}");
    let flags = refused.stderr.trim_end().lines().last().unwrap();
    let line = format!("exec \"$0\" project set {flags}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).arg(crate::program());
    shell
        .env("CTO_STATE_DIR", house.state())
        .current_dir(&repo.dir);
    let pasted = Answer::of(&shell.output().unwrap());
    assert_eq!(pasted.code, Some(0), "{flags}: {pasted:?}");
    assert!(!repo.at("owned").exists());
    let shown = typed_ok(&house, &repo, &["project", "show", "--json"]).json();
    let want = serde_json::json!(["$(touch owned)/", "-rf/", "it's/"]);
    assert_eq!(shown["remembered"]["allow"]["values"], want);
    let plain = typed_ok(&house, &repo, &["project", "show"]);
    assert!(!plain.stdout.contains('\u{1b}'), "{plain:?}");
    // A package.json that is no file, or too long, is none.
    fs::remove_file(repo.at("package.json")).unwrap();
    repo.write(
        "package.json",
        &format!("{}{}", package, " ".repeat(300 << 10)),
    );
    repo.commit("long");
    typed_ok(&house, &repo, &["project", "forget"]);
    let refused = run_bare(&house, &repo, &[]);
    assert!(refused.stderr.contains("--test COMMAND"), "{refused:?}");
}

#[test]
fn paths_are_remembered_as_they_lie_in_the_repository() {
    let house = house();
    let repo = project(&house, "below");
    let set = [
        "project",
        "set",
        "--test",
        "make test",
        "--allow",
        ".",
        "--forbid",
        "tests",
    ];
    let answer = typed(&house, &repo.at("src"), &set);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let shown = typed_ok(&house, &repo, &["project", "show", "--json"]).json();
    assert_eq!(
        shown["remembered"]["allow"]["values"],
        serde_json::json!(["src"])
    );
    assert_eq!(
        shown["remembered"]["forbid"]["values"],
        serde_json::json!(["src/tests"])
    );
    assert_eq!(run_bare(&house, &repo, &[]).code, Some(0));
}

#[test]
fn the_table_and_the_flags_are_the_same() {
    use cto_core::operator::project::fields::{FIELDS, NEVER};
    let tree = cto_harness::cli::command_tree();
    let flags = |words: &[&str]| -> Vec<String> {
        let mut command = &tree;
        for word in words {
            command = command.find_subcommand(word).unwrap();
        }
        let longs = command.get_arguments().filter_map(clap::Arg::get_long);
        longs.map(|long| format!("--{long}")).collect()
    };
    let (of_try, of_set) = (flags(&["try"]), flags(&["project", "set"]));
    for field in FIELDS {
        assert!(of_try.iter().any(|flag| flag == field.flag), "{field:?}");
        assert!(of_set.iter().any(|flag| flag == field.flag), "{field:?}");
    }
    for never in NEVER {
        assert!(of_try.iter().any(|flag| flag == never), "{never}");
        assert!(!of_set.iter().any(|flag| flag == never), "{never}");
    }
}
