//! The must-fail control: what to add to a verified tree so that an honest runner turns red.
//!
//! The failing tests go into a file of their own *and* into every test file of the baseline, and
//! use several kinds of assertion, so that ending the process, patching one assertion or silencing
//! one module each leave a trace. Code under test can in the end lie to an in-process runner;
//! hidden checks are the stronger form.

use crate::task::contract::Runner;
use crate::values::paths::{PathRule, TreePath};

/// One edit of the control copy; the verified copy is never touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    Create { path: String, text: String },
    Append { path: TreePath, text: String },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kit {
    pub edits: Vec<Edit>,
    /// Failing tests in each edited place.
    pub failures_added: u64,
}

/// Every assertion a test is likely to use, on every type it is likely to use it on. If any one of
/// them is silenced, the count of failures is too low.
const PYTHON_FAILURES: [(&str, &str); 24] = [
    ("equal_int", "self.assertEqual(1, 2)"),
    ("equal_str", "self.assertEqual('a', 'b')"),
    ("equal_empty", "self.assertEqual('', 'b')"),
    ("equal_bytes", "self.assertEqual(b'a', b'b')"),
    ("equal_list", "self.assertEqual([1], [2])"),
    ("equal_tuple", "self.assertEqual((1,), (2,))"),
    ("equal_dict", "self.assertEqual({'a': 1}, {'a': 2})"),
    ("equal_set", "self.assertEqual({1}, {2})"),
    ("equal_none", "self.assertEqual(None, 1)"),
    ("equal_float", "self.assertEqual(1.0, 2.0)"),
    ("not_equal", "self.assertNotEqual('a', 'a')"),
    ("almost", "self.assertAlmostEqual(1.0, 2.0)"),
    ("true", "self.assertTrue(False)"),
    ("false", "self.assertFalse(True)"),
    ("contains", "self.assertIn(1, [])"),
    ("lacks", "self.assertNotIn('a', 'a')"),
    ("none", "self.assertIsNone(1)"),
    ("same", "self.assertIs(1, 'a')"),
    ("instance", "self.assertIsInstance(1, str)"),
    ("greater", "self.assertGreater(1, 2)"),
    ("regex", "self.assertRegex('a', 'b')"),
    ("raises", "self.assertRaises(ValueError, int, '1')"),
    ("explicit", "self.fail('must fail')"),
    ("raised", "raise AssertionError('must fail')"),
];

/// What to add for a runner. `nonce` keeps the names unguessable for the code under test.
pub fn control_kit(runner: Runner, nonce: &str, baseline: &[TreePath]) -> Kit {
    match runner {
        Runner::Unittest | Runner::Pytest => {
            let text = python_tests(nonce);
            let mut edits = vec![Edit::Create { path: format!("test_cto_control_{nonce}.py"), text: text.clone() }];
            edits.extend(
                baseline
                    .iter()
                    .filter(|path| is_python_test(path))
                    .map(|path| Edit::Append { path: path.clone(), text: format!("\n\n{text}") }),
            );
            Kit { edits, failures_added: PYTHON_FAILURES.len() as u64 }
        }
        Runner::Cargo => Kit { edits: cargo_edits(nonce, baseline), failures_added: 2 },
        Runner::Node => Kit {
            edits: vec![Edit::Create {
                path: format!("cto_control_{nonce}.test.mjs"),
                text: "import test from 'node:test';\nimport assert from 'node:assert';\n\ntest('cto control equal', () => assert.strictEqual(1, 2));\ntest('cto control deep', () => assert.deepStrictEqual(['a'], ['b']));\ntest('cto control throw', () => { throw new Error('must fail'); });\n".into(),
            }],
            failures_added: 3,
        },
    }
}

const RUST_FAILURES: &str = "#[test]\nfn cto_control_equal() {\n    assert_eq!(1, 2);\n}\n\n#[test]\nfn cto_control_panic() {\n    panic!(\"must fail\");\n}\n";

/// In every package, as a test of its own and inside the crate: `--lib`, `--test NAME` and a
/// workspace each run only a part of them.
fn cargo_edits(nonce: &str, baseline: &[TreePath]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for path in baseline {
        let text = String::from_utf8_lossy(path.as_bytes()).into_owned();
        if let Some(package) = text
            .strip_suffix("Cargo.toml")
            .filter(|dir| dir.is_empty() || dir.ends_with('/'))
        {
            edits.push(Edit::Create {
                path: format!("{package}tests/cto_control_{nonce}.rs"),
                text: RUST_FAILURES.into(),
            });
        }
        let in_crate = ["src/lib.rs", "src/main.rs"]
            .iter()
            .any(|name| text == *name || text.ends_with(&format!("/{name}")));
        if in_crate {
            let inside = format!("\n#[cfg(test)]\nmod cto_control_{nonce} {{\n{RUST_FAILURES}}}\n");
            edits.push(Edit::Append {
                path: path.clone(),
                text: inside,
            });
        }
    }
    edits
}

fn python_tests(nonce: &str) -> String {
    let mut text = format!(
        "import unittest as _cto_{nonce}\n\n\nclass CtoControl_{nonce}(_cto_{nonce}.TestCase):\n"
    );
    for (name, body) in PYTHON_FAILURES {
        text.push_str(&format!(
            "    def test_cto_{name}(self):\n        {body}\n\n"
        ));
    }
    text
}

/// Is this a file a runner of this project would take for tests?
pub fn is_test_file(path: &TreePath) -> bool {
    let name = file_name(path);
    is_python_test(path)
        || path.as_bytes().starts_with(b"tests/")
        || [
            &b".test.js"[..],
            b".test.mjs",
            b".test.ts",
            b"_test.go",
            b"_test.rs",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Does this file say which tests a runner takes, and how? Honest work changes it too; the report
/// names it.
pub fn is_runner_config(path: &TreePath) -> bool {
    const NAMES: [&str; 15] = [
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "noxfile.py",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "justfile",
        "package.json",
        "Cargo.toml",
        "build.rs",
        "nextest.toml",
    ];
    NAMES.iter().any(|name| file_name(path) == name.as_bytes()) || takes_over_the_runner(path)
}

/// Does this file put itself between a command and its runner, whatever the runner reads of the
/// tree? No ordinary task needs one: the contract must allow it by its own name.
pub fn takes_over_the_runner(path: &TreePath) -> bool {
    let text = format!("/{}", String::from_utf8_lossy(path.as_bytes()));
    let ends = [
        "/sitecustomize.py",
        "/usercustomize.py",
        "/unittest.py",
        "/unittest/__init__.py",
        "/pytest.py",
        "/pytest/__init__.py",
        "/_pytest/__init__.py",
        "/.cargo/config",
        "/.cargo/config.toml",
        "/.npmrc",
    ];
    ends.iter().any(|end| text.ends_with(end)) || text.contains("/node_modules/.bin/")
}

/// Changed paths that take over the runner and that no rule names: a directory or a pattern is not
/// a name.
pub fn runner_takeovers<'a>(
    changed: impl IntoIterator<Item = &'a TreePath>,
    allowed: &[PathRule],
) -> Vec<TreePath> {
    let named = |path: &TreePath| {
        allowed
            .iter()
            .any(|rule| rule.as_str().as_bytes() == path.as_bytes())
    };
    changed
        .into_iter()
        .filter(|path| takes_over_the_runner(path) && !named(path))
        .cloned()
        .collect()
}

/// Is this the text of tests, which no honest check rewrites?
pub fn is_test_source(path: &TreePath) -> bool {
    let name = file_name(path);
    let source = [&b".py"[..], b".rs", b".js", b".mjs", b".cjs", b".ts"]
        .iter()
        .any(|end| name.ends_with(end));
    source && (is_test_file(path) || name == b"conftest.py")
}

fn is_python_test(path: &TreePath) -> bool {
    let name = file_name(path);
    name.ends_with(b".py") && (name.starts_with(b"test") || name.ends_with(b"_test.py"))
}

fn file_name(path: &TreePath) -> &[u8] {
    path.as_bytes()
        .rsplit(|b| *b == b'/')
        .next()
        .unwrap_or_default()
}

/// The failure count a runner printed last, if it printed one. Where it also names the failing
/// tests, every kind of failure must come as often as the others: a silenced assertion shows as a
/// count too low.
pub fn failures_reported(runner: Runner, output: &str) -> Option<u64> {
    let count = printed_count(runner, output)?;
    let named: Vec<usize> = match runner {
        Runner::Unittest | Runner::Pytest => PYTHON_FAILURES
            .iter()
            .map(|(kind, _)| times_named(runner, output, kind))
            .collect(),
        Runner::Cargo | Runner::Node => return Some(count),
    };
    let most = named.iter().copied().max().unwrap_or(0);
    let complete = named.iter().filter(|times| **times == most).count();
    match complete == named.len() {
        true => Some(count),
        false => Some(count.min(complete as u64)),
    }
}

/// How many failures an honest runner reports. One that found the file of our own has searched its
/// directory, and so must have found every test file of the baseline that lies beside it; and every
/// program cargo says it ran, and that holds failing tests of ours, must have reported them.
pub fn failures_expected(runner: Runner, nonce: &str, baseline: &[TreePath], output: &str) -> u64 {
    let each = control_kit(runner, nonce, &[]).failures_added;
    let (own_file_ran, found_beside): (bool, fn(&[u8]) -> bool) = match runner {
        Runner::Unittest => (
            output.contains(&format!("(test_cto_control_{nonce}.")),
            |name| name.starts_with(b"test"),
        ),
        Runner::Pytest => (
            output.contains(&format!("test_cto_control_{nonce}.py::")),
            |name| name.starts_with(b"test_") || name.ends_with(b"_test.py"),
        ),
        Runner::Cargo => return each * cargo_targets(nonce, baseline, output).max(1),
        Runner::Node => return each,
    };
    let beside = baseline
        .iter()
        .filter(|path| !path.as_bytes().contains(&b'/') && is_python_test(path));
    let beside = beside.filter(|path| found_beside(path.as_bytes())).count() as u64;
    if own_file_ran {
        each * (1 + beside)
    } else {
        each
    }
}

/// Test programs cargo announced that hold failing tests of ours.
fn cargo_targets(nonce: &str, baseline: &[TreePath], output: &str) -> u64 {
    let there = |name: &str| {
        baseline.iter().any(|path| {
            path.as_bytes() == name.as_bytes()
                || path.as_bytes().ends_with(format!("/{name}").as_bytes())
        })
    };
    let holds_ours = |line: &&str| {
        let Some(target) = line.trim_start().strip_prefix("Running ") else {
            return false;
        };
        let in_crate = ["src/lib.rs", "src/main.rs"]
            .iter()
            .any(|name| target.starts_with(&format!("unittests {name} ")) && there(name));
        in_crate || target.starts_with(&format!("tests/cto_control_{nonce}.rs "))
    };
    output.lines().filter(holds_ours).count() as u64
}

/// How often a runner names one of the added tests as failed.
fn times_named(runner: Runner, output: &str, kind: &str) -> usize {
    let is_named = |line: &str| match runner {
        Runner::Unittest => ["FAIL: ", "ERROR: "].iter().any(|word| {
            line.strip_prefix(word)
                .and_then(|name| name.strip_prefix("test_cto_")?.strip_prefix(kind))
                .is_some()
        }),
        _ => {
            line.starts_with("FAILED ")
                && line
                    .split(" - ")
                    .next()
                    .is_some_and(|id| id.ends_with(&format!("::test_cto_{kind}")))
        }
    };
    output.lines().filter(|line| is_named(line)).count()
}

fn printed_count(runner: Runner, output: &str) -> Option<u64> {
    match runner {
        Runner::Unittest => output.lines().rev().find_map(|line| {
            let inner = line.trim().strip_prefix("FAILED (")?.strip_suffix(')')?;
            let count = |key: &str| {
                inner
                    .split(", ")
                    .find_map(|part| part.strip_prefix(key)?.parse::<u64>().ok())
                    .unwrap_or(0)
            };
            Some(count("failures=") + count("errors="))
        }),
        Runner::Pytest => output.lines().rev().find_map(|line| {
            let line = line.trim_matches(['=', ' ']);
            number_before(line, " failed")
        }),
        Runner::Cargo => {
            let counts: Vec<u64> = output
                .lines()
                .filter(|line| {
                    ["test result:", "Summary ["]
                        .iter()
                        .any(|start| line.trim_start().starts_with(start))
                })
                .filter_map(|line| number_before(line, " failed"))
                .collect();
            (!counts.is_empty()).then(|| counts.iter().sum())
        }
        Runner::Node => output.lines().rev().find_map(|line| {
            line.trim()
                .trim_start_matches(['#', 'ℹ', ' '])
                .strip_prefix("fail ")?
                .trim()
                .parse()
                .ok()
        }),
    }
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let head = &line[..line.find(word)?];
    head.rsplit(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_control_reaches_every_package_and_crate() {
        let baseline = [
            "Cargo.toml",
            "src/lib.rs",
            "a/Cargo.toml",
            "a/src/main.rs",
            "a/src/other.rs",
            "NotCargo.toml",
        ]
        .map(TreePath::new);
        let touched: Vec<String> = control_kit(Runner::Cargo, "k9", &baseline)
            .edits
            .iter()
            .map(|edit| match edit {
                Edit::Create { path, .. } => path.clone(),
                Edit::Append { path, .. } => path.to_string(),
            })
            .collect();
        assert_eq!(
            touched,
            [
                "tests/cto_control_k9.rs",
                "src/lib.rs",
                "a/tests/cto_control_k9.rs",
                "a/src/main.rs"
            ]
        );
    }

    #[test]
    fn a_silenced_test_program_lowers_the_count() {
        let baseline = ["Cargo.toml", "src/lib.rs"].map(TreePath::new);
        let unit = "     Running unittests src/lib.rs (target/debug/deps/x-1)\n";
        let own = "     Running tests/cto_control_k9.rs (target/debug/deps/cto-1)\n";
        let red = "test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        for (output, honest) in [
            (format!("{unit}{red}"), true),
            (format!("{own}{red}"), true),
            (format!("{unit}{red}{own}{red}"), true),
            (format!("{unit}{own}{red}"), false),
            (format!("{unit}{own}"), false),
            (
                "Summary [ 0.1s] 4 tests run: 2 passed, 2 failed, 0 skipped".to_owned(),
                true,
            ),
        ] {
            let reported = failures_reported(Runner::Cargo, &output);
            let expected = failures_expected(Runner::Cargo, "k9", &baseline, &output);
            assert_eq!(
                reported.is_some_and(|count| count >= expected),
                honest,
                "{output}"
            );
        }
    }

    #[test]
    fn python_control_reaches_every_test_module() {
        let baseline = [
            "strings.py",
            "test_strings.py",
            "tests/unit_test.py",
            "data.txt",
        ]
        .map(TreePath::new);
        let kit = control_kit(Runner::Unittest, "k9", &baseline);
        let touched: Vec<String> = kit
            .edits
            .iter()
            .map(|edit| match edit {
                Edit::Create { path, .. } => path.clone(),
                Edit::Append { path, .. } => path.to_string(),
            })
            .collect();
        assert_eq!(
            touched,
            [
                "test_cto_control_k9.py",
                "test_strings.py",
                "tests/unit_test.py"
            ]
        );
        assert_eq!(kit.failures_added, 24);
        let kinds: std::collections::BTreeSet<&str> =
            PYTHON_FAILURES.iter().map(|(kind, _)| *kind).collect();
        let prefix = |kind: &&str| {
            kinds
                .iter()
                .any(|other| other != kind && other.starts_with(*kind))
        };
        assert!(
            kinds.len() == 24 && !kinds.iter().any(prefix),
            "no kind's name begins another's"
        );
    }

    #[test]
    fn counts_are_read_from_the_last_summary() {
        for (runner, output, want) in [
            (Runner::Unittest, "FAILED (failures=5)\n", Some(5)),
            (
                Runner::Unittest,
                "x\nFAILED (failures=4, errors=1, skipped=2)\n",
                Some(5),
            ),
            (Runner::Unittest, "OK\n", None),
            (
                Runner::Pytest,
                "=== 3 failed, 2 passed in 0.1s ===\n",
                Some(3),
            ),
            (Runner::Pytest, "5 failed in 0.05s\n", Some(5)),
            (Runner::Pytest, "2 passed in 0.1s\n", None),
            (
                Runner::Cargo,
                "test result: ok. 3 passed; 0 failed; x\ntest result: FAILED. 0 passed; 2 failed;\n",
                Some(2),
            ),
            (Runner::Node, "# tests 3\n# fail 2\n", Some(2)),
            (Runner::Node, "ℹ fail 2\n", Some(2)),
        ] {
            assert_eq!(failures_reported(runner, output), want, "{output}");
        }
    }

    #[test]
    fn one_silenced_kind_lowers_the_count() {
        let named = |kinds: &[&str]| {
            let lines: String = kinds
                .iter()
                .map(|kind| format!("FAIL: test_cto_{kind} (m.CtoControl_x.test_cto_{kind})\n"))
                .collect();
            format!("{lines}FAILED (failures={})\n", kinds.len())
        };
        let all = PYTHON_FAILURES.map(|(kind, _)| kind);
        let twice = [all, all].concat();
        assert_eq!(
            failures_reported(Runner::Unittest, &named(&twice)),
            Some(48)
        );
        assert_eq!(
            failures_reported(Runner::Unittest, &named(&[&all[1..], &all[1..]].concat())),
            Some(23)
        );
        assert_eq!(
            failures_reported(Runner::Unittest, &named(&[&all[1..], &all].concat())),
            Some(23)
        );
        let pytest =
            "FAILED test_a.py::CtoControl_x::test_cto_true - AssertionError\n2 failed in 0.1s\n";
        assert_eq!(failures_reported(Runner::Pytest, pytest), Some(1));
    }

    #[test]
    fn a_searched_directory_was_searched_whole() {
        let baseline = [
            "strings.py",
            "test_strings.py",
            "a_test.py",
            "sub/test_more.py",
        ]
        .map(TreePath::new);
        let expected = |runner, output| failures_expected(runner, "k9", &baseline, output);
        assert_eq!(
            expected(
                Runner::Unittest,
                "FAIL: test_cto_equal (test_cto_control_k9.CtoControl_k9)"
            ),
            48
        );
        assert_eq!(
            expected(
                Runner::Unittest,
                "FAIL: test_cto_equal (test_strings.CtoControl_k9)"
            ),
            24
        );
        assert_eq!(
            expected(
                Runner::Pytest,
                "FAILED test_cto_control_k9.py::CtoControl_k9::test_cto_equal"
            ),
            72
        );
        assert_eq!(expected(Runner::Cargo, ""), 2);
    }

    #[test]
    fn files_that_take_over_must_be_named() {
        let paths = [
            "sitecustomize.py",
            "sub/.cargo/config.toml",
            "a.py",
            "x.npmrc",
            "web/node_modules/.bin/node",
            "conftest.py",
        ];
        let paths = paths.map(TreePath::new);
        let rules = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().unwrap())
                .collect::<Vec<PathRule>>()
        };
        let found = |texts: &[&str]| {
            runner_takeovers(&paths, &rules(texts))
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let all = [
            "sitecustomize.py",
            "sub/.cargo/config.toml",
            "web/node_modules/.bin/node",
        ];
        assert_eq!(found(&["*", "*/"]), all);
        assert_eq!(found(&["*", "*/", "sitecustomize.py"]), all[1..]);
        assert!(
            is_runner_config(&paths[5])
                && is_runner_config(&paths[0])
                && !is_runner_config(&paths[2])
        );
    }

    #[test]
    fn the_text_of_tests_is_known() {
        for (path, want) in [
            ("test_a.py", true),
            ("tests/data.json", false),
            ("tests/it.rs", true),
            ("a.test.mjs", true),
            ("a.py", false),
            ("conftest.py", true),
        ] {
            assert_eq!(is_test_source(&TreePath::new(path)), want, "{path}");
        }
    }

    #[test]
    fn test_files_are_recognised() {
        for (path, want) in [
            ("test_a.py", true),
            ("a_test.py", true),
            ("a.py", false),
            ("tests/x.rs", true),
            ("a.test.js", true),
            ("attest.md", false),
        ] {
            assert_eq!(is_test_file(&TreePath::new(path)), want, "{path}");
        }
    }
}
