use std::collections::{BTreeMap, BTreeSet};

use super::python::Form;
use super::*;
use crate::checks::runner_output::Heard;
use crate::checks::test_ids::Tally;

#[path = "chosen_tests.rs"]
mod chosen;

fn paths(names: &[&str]) -> Vec<TreePath> {
    names.iter().map(|name| TreePath::new(*name)).collect()
}

fn kit(runner: Runner, names: &[&str]) -> Kit {
    control_kit(runner, "k9", &paths(names), &[])
}

fn touched(kit: &Kit) -> Vec<String> {
    let path = |edit: &Edit| match edit {
        Edit::Create { path, .. } => path.clone(),
        Edit::Append { path, .. } => path.to_string(),
    };
    kit.edits.iter().map(path).collect()
}

/// Where failing tests are; files of its own are `OWN`.
fn places(kit: &Kit) -> Vec<String> {
    let place = |edit: &Edit| match edit {
        Edit::Create { path, .. } => {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            let start = if name.ends_with(".py") { "test_" } else { "" };
            assert!(name.starts_with(start) && name.len() > start.len() + 8);
            format!("{dir}/OWN").trim_start_matches('/').to_owned()
        }
        Edit::Append { path, .. } => path.to_string(),
    };
    kit.edits.iter().map(place).collect()
}

/// Every added test, as a runner of Python calls it.
fn ids(kit: &Kit) -> Vec<(String, usize, Form)> {
    let places = kit.places.iter().enumerate();
    let of = places.flat_map(|(at, place)| place.tests.iter().map(move |test| (at, test)));
    of.map(|(at, test)| (format!("a.py::{}", test.name), at, test.form))
        .collect()
}

/// The kind of the test with this id.
fn kind(kit: &Kit, id: &str) -> &'static str {
    let name = id.rsplit("::").next().unwrap();
    let mut tests = kit.places.iter().flat_map(|place| &place.tests);
    tests.find(|test| test.name == name).unwrap().kind
}

fn same(one: &Test, other: &Test) -> bool {
    (one.form, one.kind) == (other.form, other.kind)
}

const FAILED: (Tally, u64) = (
    Tally {
        passed: 0,
        failed: 1,
        skipped: 0,
    },
    0,
);
const ERRORED: (Tally, u64) = (FAILED.0, 1);
const PASSED: (Tally, u64) = (
    Tally {
        passed: 1,
        failed: 0,
        skipped: 0,
    },
    0,
);
const SKIPPED: (Tally, u64) = (
    Tally {
        passed: 0,
        failed: 0,
        skipped: 1,
    },
    0,
);

/// What a runner says; a test for which `what` has nothing did not come.
fn heard(kit: &Kit, what: impl Fn(&str, usize, Form) -> Option<(Tally, u64)>) -> Vec<Heard> {
    let mut said = Heard::default();
    for (id, at, form) in ids(kit) {
        if let Some((tally, errored)) = what(&id, at, form) {
            if errored > 0 {
                said.errored.insert(id.clone(), errored);
            }
            said.ids.insert(id, tally);
        }
    }
    said.ids.insert("a.py::test_of_theirs".into(), PASSED.0);
    vec![said]
}

fn is_believed(count: Count) -> bool {
    count
        .reported
        .is_some_and(|reported| reported >= count.expected)
}

#[test]
fn cargo_control_reaches_every_package_and_crate() {
    let kit = kit(
        Runner::Cargo,
        &[
            "Cargo.toml",
            "src/lib.rs",
            "a/Cargo.toml",
            "a/src/main.rs",
            "a/src/other.rs",
            "NotCargo.toml",
        ],
    );
    let want = ["tests/OWN", "src/lib.rs", "a/tests/OWN", "a/src/main.rs"];
    assert_eq!(places(&kit), want);
}

#[test]
fn cargo_control_goes_where_a_command_chooses_test_programs() {
    let tree = [
        "Cargo.toml",
        "tests/a.rs",
        "tests/b.rs",
        "p/tests/c.rs",
        "tests/d.rs",
    ];
    let commands = [
        "cargo test --test a --test=b".to_owned(),
        "cargo test -p p --test 'c'".into(),
    ];
    let kit = control_kit(Runner::Cargo, "k9", &tree.map(TreePath::new), &commands);
    let want = ["tests/OWN", "tests/a.rs", "tests/b.rs", "p/tests/c.rs"];
    assert_eq!(places(&kit), want);
    let runs = |name: &str| format!("     Running tests/{name}.rs (target/debug/deps/x-1)\n");
    let red = "test result: FAILED. 1 passed; 9 failed; 0 ignored\n";
    let green = "test result: ok. 1 passed; 0 failed; 0 ignored\n";
    for (output, honest) in [
        (runs("a") + red + &runs("b") + red, true),
        (runs("a") + red + &runs("b") + green, false),
        (runs("a") + green, false),
        (runs("a") + red + &runs("d") + green, true),
    ] {
        assert_eq!(is_believed(kit.count(&[], &output)), honest, "{output}");
    }
}

#[test]
fn a_silenced_test_program_lowers_the_count() {
    let kit = kit(Runner::Cargo, &["Cargo.toml", "src/lib.rs"]);
    let unit = "     Running unittests src/lib.rs (target/debug/deps/x-1)\n";
    let own = format!(
        "     Running {} (target/debug/deps/own-1)\n",
        touched(&kit)[0]
    );
    let red = "test result: FAILED. 1 passed; 9 failed; 0 ignored\n";
    for (output, honest) in [
        (format!("{unit}{red}"), true),
        (format!("{own}{red}"), true),
        (format!("{unit}{red}{own}{red}"), true),
        (format!("{unit}{own}{red}"), false),
        (format!("{unit}{own}"), false),
        (
            "Summary [ 0.1s] 11 tests run: 2 passed, 9 failed, 0 skipped".to_owned(),
            true,
        ),
    ] {
        assert_eq!(is_believed(kit.count(&[], &output)), honest, "{output}");
    }
}

#[test]
fn counts_are_read_from_the_last_summary() {
    let cargo =
        "test result: ok. 3 passed; 0 failed; x\ntest result: FAILED. 0 passed; 2 failed;\n";
    for (runner, output, want) in [
        (Runner::Cargo, cargo, Some(2)),
        (Runner::Unittest, "OK\n", None),
        (Runner::Unittest, "FAILED (failures=50)\n", Some(0)),
        (Runner::Pytest, "2 passed in 0.1s\n", None),
        (
            Runner::Pytest,
            "=== 50 failed, 2 passed in 0.1s ===\n",
            Some(0),
        ),
        (Runner::Pytest, "2 failed to start\n", None),
    ] {
        assert_eq!(
            kit(runner, &[]).count(&[], output).reported,
            want,
            "{output}"
        );
    }
}

#[test]
fn python_control_reaches_every_test_module() {
    let names = [
        "strings.py",
        "test_strings.py",
        "tests/unit_test.py",
        "data.txt",
    ];
    let own = "OWN";
    assert_eq!(
        places(&kit(Runner::Unittest, &names)),
        [own, "test_strings.py", "tests/unit_test.py"]
    );
    // Where pytest is told where to look, a file of its own is there.
    assert_eq!(
        places(&kit(Runner::Pytest, &names)),
        [own, "tests/OWN", "test_strings.py", "tests/unit_test.py"]
    );
    let deep: Vec<String> = (0..20).map(|n| format!("d{n}/test_a.py")).collect();
    let deep: Vec<&str> = deep.iter().map(String::as_str).collect();
    assert_eq!(
        touched(&kit(Runner::Pytest, &deep)).len(),
        1 + DIRECTORIES + 20
    );
}

#[test]
fn of_many_files_each_has_a_part_and_together_they_have_all() {
    let names: Vec<String> = (0..9).map(|n| format!("tests/test_{n}.py")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let commands = ["pytest tests/test_3.py".to_owned()];
    let kit = control_kit(Runner::Pytest, "k9", &paths(&names), &commands);
    let files = &kit.places[2..];
    let whole = kit.places[0].tests.len();
    assert_eq!(files[3].tests.len(), whole, "a file that a command names");
    assert!(files[4].tests.len() < whole / 3);
    for test in &kit.places[0].tests {
        let times = files
            .iter()
            .filter(|place| place.tests.iter().any(|other| same(test, other)))
            .count();
        assert!(times >= 2, "{test:?} comes {times} times");
    }
    let written = |place: &Place| place.tests.iter().any(|test| test.form == Form::Written);
    assert!(kit.places.iter().all(written));
}

#[test]
fn every_name_is_one_test_and_no_text_is_cut_short() {
    for runner in [Runner::Unittest, Runner::Pytest] {
        let kit = kit(runner, &["test_a.py"]);
        let all = ids(&kit);
        let distinct: BTreeSet<_> = all.iter().map(|(id, ..)| id).collect();
        assert_eq!(distinct.len(), all.len());
        for edit in &kit.edits {
            let (Edit::Create { text, .. } | Edit::Append { text, .. }) = edit;
            assert_eq!(text.matches("'''").count() % 2, 0, "{text}");
            for left in ["PYTEST", "FIXTURE", "ARGUMENT", "$1", "#1"] {
                assert!(!text.contains(left), "{text}");
            }
            let place = usize::from(matches!(edit, Edit::Append { .. }));
            for test in &kit.places[place].tests {
                let name = format!("def {}(", test.name);
                assert_eq!(text.matches(&name).count(), 1, "{name}");
            }
        }
    }
}

/// Words that a file of tests may have of itself: those of the language and of its runner.
const ORDINARY: &str = "import builtins as def assert class self object unittest TestCase pytest
    assertEqual assertNotEqual assertAlmostEqual assertTrue assertFalse assertIn assertNotIn assertIsNone assertIs
    assertIsInstance assertGreater assertRegex assertRaises fail raise AssertionError ValueError int str None True
    False exec compile test tests py rs fixture mark parametrize approx raises match warns UserWarning with pass return
    cfg mod fn assert_eq assert_ne panic parse u8 unwrap Result static Err should_panic";

fn words(kit: &Kit) -> BTreeSet<String> {
    let (paths, edits) = (touched(kit), kit.edits.iter());
    let text = |edit: &Edit| match edit {
        Edit::Create { text, .. } | Edit::Append { text, .. } => text.clone(),
    };
    let texts: Vec<String> = edits.map(text).chain(paths).collect();
    let words = texts
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
    words
        .filter(|word| word.len() > 3 && word.chars().any(char::is_alphabetic))
        .map(str::to_owned)
        .collect()
}

/// What is in the kit of every nonce could be looked for.
#[test]
fn no_word_comes_in_every_kit() {
    let trees = [
        (Runner::Unittest, vec!["app.py", "test_app.py"]),
        (Runner::Pytest, vec!["app.py", "test_app.py", "t/test_b.py"]),
        (Runner::Cargo, vec!["Cargo.toml", "src/lib.rs"]),
    ];
    for (runner, tree) in trees {
        let of = |nonce: &str| control_kit(runner, nonce, &paths(&tree), &[]);
        let mut known: BTreeSet<String> = ORDINARY.split_whitespace().map(str::to_owned).collect();
        let theirs = tree.iter().flat_map(|path| path.split(['/', '.', '_']));
        known.extend(theirs.map(str::to_owned));
        let first = words(&of("n0"));
        assert!(first.len() > 20, "{first:?}");
        // Two kits share no word; nor does one have another order of its own in every run.
        let mut orders = BTreeSet::new();
        for nonce in (1..20).map(|n| format!("n{n}")) {
            let kit = of(&nonce);
            let shared: BTreeSet<String> = words(&kit).intersection(&first).cloned().collect();
            let told: Vec<&String> = shared.difference(&known).collect();
            assert!(told.len() < 2, "{runner:?} {nonce}: {told:?}");
            let tests = kit.places.iter().flat_map(|place| &place.tests);
            orders.insert(tests.map(|test| (test.form, test.kind)).collect::<Vec<_>>());
        }
        assert!(runner == Runner::Cargo || orders.len() > 15);
    }
}

type Says = fn(&str, usize, Form) -> Option<(Tally, u64)>;

#[test]
fn what_a_control_of_pytest_is_believed_for() {
    // 0 is the own file at the top, 1 the one in tests/, 2 a test file of the project.
    let kit = kit(Runner::Pytest, &["tests/test_a.py"]);
    let rows: [(&str, bool, Says); 14] = [
        ("all are red", true, |_, _, _| Some(FAILED)),
        (
            "only the directory of tests is searched",
            true,
            |_, at, _| (at > 0).then_some(FAILED),
        ),
        ("one file is asked for", true, |_, at, _| {
            (at == 2).then_some(FAILED)
        }),
        ("a module is skipped as a whole", true, |_, at, _| {
            Some(if at == 2 { SKIPPED } else { FAILED })
        }),
        ("a fixture that no TestCase can have", true, |_, _, form| {
            Some(if form == Form::Case { ERRORED } else { FAILED })
        }),
        ("a fixture that only classes have", true, |_, _, form| {
            Some(if form == Form::Method {
                FAILED
            } else {
                ERRORED
            })
        }),
        ("a fixture of one module", true, |_, at, _| {
            Some(if at == 1 { ERRORED } else { FAILED })
        }),
        ("TestCases are switched off", true, |_, _, form| {
            (form != Form::Case).then_some(FAILED)
        }),
        ("every test stops before it began", false, |_, _, _| {
            Some(ERRORED)
        }),
        ("plain functions do nothing", false, |_, _, form| {
            Some(if form == Form::Case { FAILED } else { PASSED })
        }),
        ("plain functions are not there", false, |_, _, form| {
            (form == Form::Case).then_some(FAILED)
        }),
        ("raises is silenced", false, |kind, _, _| {
            Some(if kind == "raises" { PASSED } else { FAILED })
        }),
        ("one of them is skipped", false, |kind, _, form| {
            let one = (kind, form) == ("float", Form::Function);
            Some(if one { SKIPPED } else { FAILED })
        }),
        ("nothing came", false, |_, _, _| None),
    ];
    for (what, want, says) in rows {
        let said = heard(&kit, |id, at, form| says(kind(&kit, id), at, form));
        let count = kit.count(&said, "");
        assert_eq!(is_believed(count), want, "{what}: {count:?}");
    }
}

#[test]
fn any_single_test_that_is_not_red_is_seen() {
    for runner in [Runner::Unittest, Runner::Pytest] {
        let kit = kit(runner, &["test_a.py", "b/test_b.py"]);
        for (silent, ..) in ids(&kit) {
            for instead in [Some(PASSED), Some(SKIPPED), None] {
                let said = heard(
                    &kit,
                    |id, _, _| if id == silent { instead } else { Some(FAILED) },
                );
                let count = kit.count(&said, "");
                assert_eq!(
                    count.reported.map(|red| red + 1),
                    Some(count.expected),
                    "{silent}"
                );
            }
        }
    }
}

#[test]
fn a_searched_directory_was_searched_whole() {
    let names = [
        "strings.py",
        "test_strings.py",
        "a_test.py",
        "sub/test_more.py",
    ];
    for (runner, beside) in [(Runner::Unittest, 1), (Runner::Pytest, 2)] {
        let kit = kit(runner, &names);
        let own = kit.places[0].tests.len() as u64;
        let top = heard(&kit, |_, at, _| (at == 0).then_some(FAILED));
        assert_eq!(kit.count(&top, "").expected, own * (1 + beside));
        let last = kit.places.len() - 1;
        let sub = heard(&kit, |_, at, _| (at == last).then_some(FAILED));
        assert_eq!(kit.count(&sub, "").expected, own);
    }
}

#[test]
fn a_runner_that_is_not_heard_is_read() {
    for (runner, word, count) in [
        (Runner::Unittest, "FAIL: ", "FAILED (failures=N)"),
        (Runner::Unittest, "ERROR: ", "FAILED (failures=1, errors=N)"),
        (
            Runner::Pytest,
            "FAILED ",
            "==== N failed, 3 passed in 0.1s ====",
        ),
    ] {
        let kit = kit(runner, &["tests/test_a.py"]);
        let print = |without: &str, most: usize| {
            let named = ids(&kit)
                .into_iter()
                .map(|(id, ..)| id)
                .filter(|id| id != without);
            let lines: Vec<String> = named.map(|id| format!("{word}{id}[x] - no\n")).collect();
            let count = count.replace('N', &lines.len().min(most).to_string());
            format!("{}{count}\n", lines.concat())
        };
        let all = print("", usize::MAX);
        assert!(is_believed(kit.count(&[Heard::default()], &all)), "{all}");
        let (one, ..) = &ids(&kit)[5];
        assert!(!is_believed(kit.count(&[], &print(one, usize::MAX))));
        assert!(!is_believed(kit.count(&[], &print("", 7))));
        assert!(!is_believed(kit.count(&[], "")));
    }
    // Where each is an error, none has failed in itself.
    let kit = kit(Runner::Pytest, &[]);
    let print = |failed: fn(Form) -> bool| -> String {
        let word = |form| if failed(form) { "FAILED" } else { "ERROR" };
        let lines = ids(&kit).into_iter();
        lines
            .map(|(id, _, form)| format!("{} {id} - no\n", word(form)))
            .collect()
    };
    let errors = format!("{}90 errors in 0.1s\n", print(|_| false));
    assert!(!is_believed(kit.count(&[], &errors)));
    let mixed = print(|form| form != Form::Case);
    let mixed = format!("{mixed}27 failed, 90 errors in 0.1s\n");
    assert!(is_believed(kit.count(&[], &mixed)), "{mixed}");
}

#[test]
fn a_name_of_another_run_is_not_ours() {
    let kit = kit(Runner::Pytest, &[]);
    let mut said = heard(&kit, |_, _, _| Some(FAILED));
    let renamed: BTreeMap<_, _> = said[0]
        .ids
        .iter()
        .map(|(id, tally)| (id.replace("test_", "test_b"), *tally))
        .collect();
    said[0].ids = renamed;
    assert!(!is_believed(kit.count(&said, "")));
}

/// What stands behind a red runner in one command never begins; anything else that is silent is missed.
#[test]
fn only_a_runner_that_shares_its_command_may_be_silent() {
    let count = |expected, reported, silent| Count {
        expected,
        reported,
        silent,
    };
    let (red, silent) = (count(5, Some(5), false), count(3, Some(0), true));
    for (counts, want) in [
        (vec![(red, true), (silent, true)], (5, Some(5))),
        (vec![(red, false), (silent, false)], (8, Some(5))),
        (vec![(silent, true)], (3, Some(0))),
        (vec![(silent, true), (silent, true)], (6, Some(0))),
        (
            vec![(red, true), (count(3, Some(2), false), true)],
            (8, Some(7)),
        ),
    ] {
        let sum = Count::sum(counts).unwrap();
        assert_eq!((sum.expected, sum.reported), want);
    }
}
