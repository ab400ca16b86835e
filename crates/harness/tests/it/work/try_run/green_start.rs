//! `--baseline green`: a red start stops before the engine, a green one is the baseline of the run; and what
//! stands beside a red check says whether it was red before.

use cto_testkit::{Answer, Bundle, House, Repo, script, write};

use crate::checks::pytest_attacks::pytest_bin;
use crate::fixtures::project::{BUG, FIXED, UNITTEST};
use crate::fixtures::rust::with_own_rust;
use crate::{assert_good, house};

/// A small project: its name, its test command, its files with a bug, and the file without.
type Kind = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    (&'static str, &'static str),
);

const RUST: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn two() {\n        assert_eq!(super::double(2), 4);\n    }\n}\n";

/// Runners with names, and one that nobody knows: there the exit code is all.
const KINDS: [Kind; 4] = [
    (
        "unittest",
        "python3 -m unittest",
        UNITTEST.files,
        UNITTEST.fix,
    ),
    (
        "pytest",
        "pytest -q",
        &[
            ("app.py", BUG),
            (
                "test_app.py",
                "from app import double\n\n\ndef test_two():\n    assert double(2) == 4\n",
            ),
        ],
        ("app.py", FIXED),
    ),
    (
        "cargo",
        "cargo test --offline",
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n",
            ),
            ("src/lib.rs", "mod sums;\n"),
            ("src/sums.rs", "broken"),
        ],
        ("src/sums.rs", "fixed"),
    ),
    (
        "make",
        "make test",
        &[
            ("Makefile", "test:\n\tgrep -qx right state.txt\n"),
            ("state.txt", "wrong\n"),
        ],
        ("state.txt", "right\n"),
    ),
];

fn text(kind: &str, text: &str) -> String {
    match (kind, text) {
        ("cargo", "broken") => format!("pub fn double(n: u8) -> u8 {{\n    n\n}}\n{RUST}"),
        ("cargo", "fixed") => format!("pub fn double(n: u8) -> u8 {{\n    2 * n\n}}\n{RUST}"),
        (_, text) => text.to_owned(),
    }
}

fn repository(house: &House, (name, _, files, fix): &Kind, green: bool) -> Repo {
    let repo = Repo::new(house, &format!("{name}-{green}"));
    for (path, bug) in *files {
        repo.write(path, &text(name, bug));
    }
    if green {
        repo.write(fix.0, &text(name, fix.1));
    }
    repo.write(".gitignore", "target/\n__pycache__/\n.pytest_cache/\n");
    repo.commit("a project");
    repo
}

fn attempt(
    house: &House,
    repo: &Repo,
    kind: &Kind,
    steps: &str,
    more: &[&str],
) -> (Answer, Bundle) {
    let asked = [&["--test", kind.1, "--allow", "."], more].concat();
    house.try_on(repo, steps, &asked)
}

fn detail(bundle: &Bundle) -> String {
    let report = bundle.report();
    report["blockers"][0]["detail"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_red_start_stops_before_anything_is_spent() {
    let house = with_own_rust(house());
    for kind in &KINDS {
        let (name, command, _, fix) = kind;
        if *name == "pytest" && pytest_bin().is_none() {
            continue;
        }
        let repo = repository(&house, kind, false);
        let steps = script(&[write(fix.0, &text(name, fix.1))]);
        let before = repo.bytes();
        let (answer, bundle) = attempt(&house, &repo, kind, &steps, &["--baseline", "green"]);
        assert_eq!(answer.code, Some(3), "{name}: {answer:?}");
        assert_eq!(bundle.codes(), ["baseline_red"], "{name}");
        assert_eq!(bundle.report()["process_started"], false, "{name}");
        assert_eq!(repo.bytes(), before, "{name}");
        let detail = detail(&bundle);
        assert!(detail.contains(command), "{name}: {detail}");
        if *name != "make" {
            assert!(detail.contains("1 test failed ("), "{name}: {detail}");
        }
        let events = bundle.event_types();
        assert!(
            !events.iter().any(|event| event.starts_with("engine.")),
            "{name}: {events:?}"
        );
        let gates = bundle.json("gates.json");
        let row = gates["gates"].as_array().unwrap().iter();
        let row = row.clone().find(|row| row["gate"] == "baseline").unwrap();
        assert_eq!(
            (&row["result"], &row["code"]),
            (&"blocked".into(), &"baseline_red".into())
        );
        assert_good(&bundle);
        // What was printed is a command away, and in the verdict.
        let log = house.cto(&["log", &bundle.run_id()]);
        assert_eq!(log.code, Some(0), "{name}: {log:?}");
        assert!(
            log.stdout.contains("red before the engine"),
            "{name}: {log:?}"
        );
        let shown = house.cto(&["show", &bundle.run_id()]).stdout;
        assert!(shown.contains("  said "), "{name}: {shown}");
        assert!(shown.contains("hint: nothing was spent"), "{name}: {shown}");
        // Without the flag the same start is the task.
        if *name == "unittest" {
            let (answer, _) = attempt(&house, &repo, kind, &steps, &[]);
            assert_eq!(answer.code, Some(0), "{answer:?}");
        }
    }
}

#[test]
fn a_green_start_is_the_baseline_of_the_run_and_part_of_the_contract() {
    let house = house();
    for kind in [&KINDS[0], &KINDS[3]] {
        let (name, _, _, fix) = kind;
        let repo = repository(&house, kind, true);
        let comment = match *name {
            "make" => "right\n# more\n".to_owned(),
            _ => format!("{}\n# Said again.\n", text(name, fix.1)),
        };
        let steps = script(&[write(fix.0, &comment)]);
        let green = ["--baseline", "green", "--jobs", "2"];
        let (answer, bundle) = attempt(&house, &repo, kind, &steps, &green);
        assert_eq!(
            answer.code,
            Some(0),
            "{name}: {answer:?} {}",
            bundle.text("test.log")
        );
        assert_good(&bundle);
        assert_eq!(bundle.json("contract.json")["green_start"], true, "{name}");
        let plan = bundle.event("plan.updated").unwrap();
        let summary = plan["summary"].as_str().unwrap();
        assert!(
            summary.contains("must be green before the engine"),
            "{summary}"
        );
        let done = bundle.event("verification.completed").unwrap();
        assert_eq!(
            done["baseline_checks"].as_array().unwrap().len(),
            1,
            "{name}"
        );
        let jails = bundle.json("containment.json");
        let jails = jails["processes"].as_array().unwrap().iter();
        let ran = jails.filter(|jail| {
            let process = jail["process"].as_str().unwrap();
            process.starts_with("baseline check")
        });
        assert_eq!(ran.count(), 1, "{name}: it runs once");
        let (_, other) = attempt(&house, &repo, kind, &steps, &["--jobs", "2"]);
        assert_ne!(
            bundle.report()["task_digest"],
            other.report()["task_digest"]
        );
        if *name == "unittest" {
            // It ran alone, so it is known: the next start is green without a run.
            let (answer, bundle) = attempt(&house, &repo, kind, &steps, &green);
            assert_eq!(answer.code, Some(0), "{answer:?}");
            let done = bundle.event("verification.completed").unwrap();
            assert!(done["relied"].is_object(), "{done}");
            assert_good(&bundle);
        }
    }
}

#[test]
fn beside_a_red_check_stands_what_it_was_before() {
    let house = house();
    let wrong = "def double(n):\n    return 3 * n\n";
    let worse = "def double(n):\n    return 5 + n\n";
    for (kind, green, change, want) in [
        (
            0,
            false,
            ("app.py", wrong),
            "red before the change too: the same 1 test",
        ),
        (
            0,
            false,
            ("app.py", worse),
            "red before the change too: 1 of these 2 tests",
        ),
        (0, true, ("app.py", wrong), "green before the change"),
        (
            3,
            false,
            ("state.txt", "else\n"),
            "red before the change too",
        ),
        (3, true, ("state.txt", "else\n"), "green before the change"),
    ] {
        let repo = repository(&house, &KINDS[kind], green);
        for jobs in ["1", "3"] {
            let steps = script(&[write(change.0, change.1)]);
            let (answer, bundle) = attempt(&house, &repo, &KINDS[kind], &steps, &["--jobs", jobs]);
            assert_eq!(answer.code, Some(1), "{want}: {answer:?}");
            assert_eq!(bundle.codes(), ["verification_failed"], "{want}");
            assert_good(&bundle);
            let shown = house.cto(&["show", &bundle.run_id()]).stdout;
            assert!(
                shown.lines().any(|line| line.trim() == want),
                "{want}: {shown}"
            );
            assert!(shown.contains("hint: `cto log` shows"), "{shown}");
            assert!(
                !shown.contains("case.toml") && !shown.contains("allowed_paths"),
                "{shown}"
            );
        }
        std::fs::remove_dir_all(&repo.dir).unwrap();
    }
    // A baseline that is known is not run again to say it.
    let kind = &KINDS[0];
    let repo = repository(&house, kind, true);
    let steps = script(&[write("app.py", wrong)]);
    let (_, first) = attempt(
        &house,
        &repo,
        kind,
        &steps,
        &["--jobs", "1", "--fresh-baseline"],
    );
    let ran = first.event("verification.completed").unwrap();
    assert_eq!(ran["baseline_checks"].as_array().unwrap().len(), 1);
    let (_, second) = attempt(&house, &repo, kind, &steps, &["--jobs", "1"]);
    let told = second.event("verification.completed").unwrap();
    assert!(told["relied"].is_object(), "{told}");
    assert_good(&second);
    let shown = house.cto(&["show", &second.run_id()]).stdout;
    assert!(shown.contains("green before the change"), "{shown}");
}
