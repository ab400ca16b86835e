//! What a command chooses: directories, single tests, test programs.

use super::*;

#[test]
fn cargo_control_knows_both_layouts_and_patterns() {
    let tree = [
        "tests/it/main.rs",
        "tests/it/other.rs",
        "tests/it_more.rs",
        "p/tests/own_tests/main.rs",
        "p/tests/own_tests/tests/main.rs",
        "tests/b.rs",
        "my_tests/it.rs",
    ];
    for (command, want) in [
        ("cargo test --test it", vec!["tests/it/main.rs"]),
        (
            "cargo test --test 'it*'",
            vec!["tests/it/main.rs", "tests/it_more.rs"],
        ),
        ("cargo test --test=?", vec!["tests/b.rs"]),
        (
            "cargo test --test own_tests",
            vec!["p/tests/own_tests/main.rs"],
        ),
        ("cargo test --test *o*s", vec!["p/tests/own_tests/main.rs"]),
        ("cargo test --test none", vec![]),
    ] {
        let commands = [command.to_owned()];
        let kit = control_kit(Runner::Cargo, "k9", &tree.map(TreePath::new), &commands);
        assert_eq!(touched(&kit), want, "{command}");
        let runs = want
            .iter()
            .map(|path| path.trim_start_matches("p/"))
            .map(|path| format!("     Running {path} (target/debug/deps/x-1)\n"));
        let output: String = runs.collect();
        let expected = kit.count(&[], &output).expected;
        assert_eq!(expected, 9 * want.len().max(1) as u64, "{command}");
    }
}

/// Whatever else a repository has, what a command names has every kind of test.
#[test]
fn a_directory_that_a_command_names_has_all() {
    let others = (0..40).map(|n| format!("a{n}/test_{n}.py"));
    let few = (0..2).map(|n| format!("plugins/t/tests/test_{n}.py"));
    let many = (0..9).map(|n| format!("plugins/u/x{n}/test_{n}.py"));
    let names: Vec<String> = others.chain(few).chain(many).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (command, dir, own, whole) in [
        ("pytest plugins/t/tests", "plugins/t/tests/", true, true),
        (
            "pytest ./plugins/t/tests/ -q",
            "plugins/t/tests/",
            true,
            true,
        ),
        ("cd plugins/t && pytest", "plugins/t/", true, true),
        ("(cd 'plugins/t'; pytest tests)", "plugins/t/", true, true),
        ("pytest plugins/u", "plugins/u/", true, false),
        ("pytest", "plugins/t/", false, false),
        ("pytest .", "plugins/t/", false, false),
        ("pytest --ignore plugins/t", "plugins/t/", false, false),
        ("pytest --ignore=plugins/t", "plugins/t/", false, false),
    ] {
        let commands = [command.to_owned()];
        let kit = control_kit(Runner::Pytest, "k9", &paths(&names), &commands);
        let all = &kit.places[0].tests;
        let is_in = |place: &&Place| place.path.starts_with(dir);
        let (ours, theirs): (Vec<&Place>, Vec<&Place>) = (kit.places.iter())
            .filter(is_in)
            .partition(|place| !names.contains(&place.path.as_str()));
        assert_eq!(!ours.is_empty(), own, "{command}");
        let is_whole = theirs.iter().all(|place| place.tests.len() == all.len());
        assert_eq!(is_whole, whole, "{command}");
        if own {
            for test in all {
                let times = theirs
                    .iter()
                    .filter(|place| place.tests.iter().any(|other| same(test, other)));
                assert!(times.count() >= 2, "{command}: {test:?}");
            }
        }
    }
}

/// A change without a `conftest.py` has no part in it.
#[test]
fn what_the_project_leaves_out_may_be_left_out() {
    let tree = ["tests/test_top.py", "tests/x/test_a.py"];
    let kit = control_kit(Runner::Pytest, "k9", &paths(&tree), &["pytest".to_owned()]);
    let mut said = Heard::default();
    for place in &kit.places {
        if place.path == "tests/test_top.py" {
            for test in &place.tests {
                let id = format!("{}::{}", place.path, test.name);
                said.ids.insert(id, FAILED.0);
            }
        }
    }
    said.ids
        .insert("tests/x/test_a.py::test_x".to_owned(), PASSED.0);
    let said = [said];
    assert!(!is_believed(kit.count(&said, "")));
    assert!(is_believed(
        kit.with_the_projects_own_choice().count(&said, "")
    ));
}

/// A file whose other tests ran was not left out: what drops ours there is seen.
#[test]
fn a_file_whose_own_tests_ran_was_searched() {
    let tree = [
        "tests/test_top.py",
        "tests/x/test_a.py",
        "b/tests/x/test_a.py",
        "tests/testutil.py",
    ];
    // What came: for each place whether ours did, and the ids of others.
    let count = |command: &str, root: &str, ours: &[&str], others: &[(&str, Tally)]| {
        let commands = [command.to_owned()];
        let kit = control_kit(Runner::Pytest, "k9", &paths(&tree), &commands);
        let mut said = Heard::default();
        for place in &kit.places {
            let Some(file) = place
                .path
                .strip_prefix(root)
                .filter(|_| ours.contains(&place.path.as_str()))
            else {
                continue;
            };
            for test in &place.tests {
                let id = format!("{file}::{}", test.name);
                said.ids.insert(id, FAILED.0);
            }
        }
        let others = others.iter().map(|(id, tally)| ((*id).to_owned(), *tally));
        said.ids.extend(others);
        is_believed(kit.count(&[said], ""))
    };
    let (ran, red, off) = (PASSED.0, FAILED.0, SKIPPED.0);
    let (top, below) = ("tests/test_top.py", "tests/x/test_a.py");
    for (what, command, root, ours, others, want) in [
        (
            "both",
            "pytest",
            "",
            vec![top, below],
            vec![("tests/x/test_a.py::test_x", ran)],
            true,
        ),
        (
            "dropped",
            "pytest",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", ran)],
            false,
        ),
        (
            "chosen by a word",
            "python -m pytest -k slug",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", ran)],
            true,
        ),
        (
            "chosen by a mark",
            "pytest -q -m 'unit'",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", ran)],
            true,
        ),
        (
            "the -m is Python's",
            "python -m pytest",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", ran)],
            false,
        ),
        (
            "dropped, red",
            "pytest",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", red)],
            false,
        ),
        (
            "dropped in a class",
            "pytest",
            "",
            vec![top],
            vec![("tests/x/test_a.py::T::test_x", ran)],
            false,
        ),
        (
            "not selected",
            "pytest tests/test_top.py",
            "",
            vec![top],
            vec![],
            true,
        ),
        (
            "skipped as a whole",
            "pytest",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", off)],
            true,
        ),
        (
            "chosen singly",
            "pytest tests/test_top.py tests/x/test_a.py::test_x",
            "",
            vec![top],
            vec![("tests/x/test_a.py::test_x", ran)],
            true,
        ),
        (
            "a doc test",
            "pytest",
            "",
            vec![top],
            vec![("tests/x/test_a.py::tests.x.test_a.f", ran)],
            true,
        ),
        (
            "no file of tests",
            "pytest",
            "",
            vec![top],
            vec![("tests/testutil.py::mypy", ran)],
            true,
        ),
        (
            "another root",
            "cd b && pytest",
            "b/",
            vec!["b/tests/x/test_a.py"],
            vec![("tests/x/test_a.py::test_x", ran)],
            true,
        ),
    ] {
        assert_eq!(count(command, root, &ours, &others), want, "{what}");
    }
}
