//! The must-fail control: what to add to a verified tree so that an honest runner turns red.
//!
//! The failing tests go into a file of their own *and* into every test file of the baseline, and
//! use several kinds of assertion, so that ending the process, patching one assertion or silencing
//! one module each leave a trace. Code under test can in the end lie to an in-process runner; hidden
//! checks are the stronger form.

use crate::contract::Runner;
use crate::scope::TreePath;

/// One edit of the control copy; the verified copy is never touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    Create { path: String, text: String },
    Append { path: TreePath, text: String },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kit {
    pub edits: Vec<Edit>,
    /// Failing tests the command must report at least.
    pub failures_added: u64,
}

/// Every assertion a test is likely to use, on every type it is likely to use it on: silencing any
/// one of them is missed in the count.
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
    ("contains_not", "self.assertNotIn('a', 'a')"),
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
pub fn kit(runner: Runner, nonce: &str, command: &str, baseline: &[TreePath]) -> Kit {
    match runner {
        Runner::Unittest | Runner::Pytest => {
            let text = python_tests(nonce);
            let mut edits = vec![Edit::Create { path: format!("test_cto_control_{nonce}.py"), text: text.clone() }];
            let tests: Vec<&TreePath> = baseline.iter().filter(|path| is_python_test(path)).collect();
            // A command that names no tests collects at least the new file and every test file beside it.
            let beside = tests.iter().filter(|path| is_collected_at_top(path)).count() as u64;
            let places = if names_no_tests(command) { 1 + beside } else { 1 };
            edits.extend(tests.into_iter().map(|path| Edit::Append { path: path.clone(), text: format!("\n\n{text}") }));
            Kit { edits, failures_added: PYTHON_FAILURES.len() as u64 * places }
        }
        Runner::Cargo => Kit {
            edits: vec![Edit::Create {
                path: format!("tests/cto_control_{nonce}.rs"),
                text: "#[test]\nfn cto_control_equal() {\n    assert_eq!(1, 2);\n}\n\n#[test]\nfn cto_control_panic() {\n    panic!(\"must fail\");\n}\n".into(),
            }],
            failures_added: 2,
        },
        Runner::Node => Kit {
            edits: vec![Edit::Create {
                path: format!("cto_control_{nonce}.test.mjs"),
                text: "import test from 'node:test';\nimport assert from 'node:assert';\n\ntest('cto control equal', () => assert.strictEqual(1, 2));\ntest('cto control deep', () => assert.deepStrictEqual(['a'], ['b']));\ntest('cto control throw', () => { throw new Error('must fail'); });\n".into(),
            }],
            failures_added: 3,
        },
    }
}

/// `python3 -m unittest -v` or `pytest -q`: everything is collected.
fn names_no_tests(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let rest = match words.as_slice() {
        ["python3" | "python", "-m", "unittest" | "pytest", rest @ ..] | ["pytest", rest @ ..] => rest,
        _ => return false,
    };
    rest.iter().all(|word| matches!(*word, "-v" | "-q" | "-vv" | "-qq" | "-b" | "discover" | "--verbose" | "--quiet"))
}

fn is_collected_at_top(path: &TreePath) -> bool {
    !path.as_bytes().contains(&b'/') && path.as_bytes().starts_with(b"test")
}

fn python_tests(nonce: &str) -> String {
    let mut text = format!("import unittest as _cto_{nonce}\n\n\nclass CtoControl_{nonce}(_cto_{nonce}.TestCase):\n");
    for (name, body) in PYTHON_FAILURES {
        text.push_str(&format!("    def test_cto_{name}(self):\n        {body}\n\n"));
    }
    text
}

/// Is this a file a runner of this project would take for tests?
pub fn is_test_file(path: &TreePath) -> bool {
    let name = file_name(path);
    is_python_test(path)
        || path.as_bytes().starts_with(b"tests/")
        || [&b".test.js"[..], b".test.mjs", b".test.ts", b"_test.go", b"_test.rs"].iter().any(|end| name.ends_with(end))
}

fn is_python_test(path: &TreePath) -> bool {
    let name = file_name(path);
    name.ends_with(b".py") && (name.starts_with(b"test") || name.ends_with(b"_test.py"))
}

fn file_name(path: &TreePath) -> &[u8] {
    path.as_bytes().rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// The failure count a runner printed last, if it printed one.
pub fn failures_reported(runner: Runner, output: &str) -> Option<u64> {
    match runner {
        Runner::Unittest => output.lines().rev().find_map(|line| {
            let inner = line.trim().strip_prefix("FAILED (")?.strip_suffix(')')?;
            let count = |key: &str| inner.split(", ").find_map(|part| part.strip_prefix(key)?.parse::<u64>().ok()).unwrap_or(0);
            Some(count("failures=") + count("errors="))
        }),
        Runner::Pytest => output.lines().rev().find_map(|line| {
            let line = line.trim_matches(['=', ' ']);
            number_before(line, " failed")
        }),
        Runner::Cargo => {
            let counts: Vec<u64> = output
                .lines()
                .filter(|line| line.trim_start().starts_with("test result:"))
                .filter_map(|line| number_before(line, " failed"))
                .collect();
            (!counts.is_empty()).then(|| counts.iter().sum())
        }
        Runner::Node => output
            .lines()
            .rev()
            .find_map(|line| line.trim().trim_start_matches(['#', 'ℹ', ' ']).strip_prefix("fail ")?.trim().parse().ok()),
    }
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let head = &line[..line.find(word)?];
    head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_control_reaches_every_test_module() {
        let baseline = ["strings.py", "test_strings.py", "tests/unit_test.py", "data.txt"].map(TreePath::new);
        let kit = kit(Runner::Unittest, "k9", "python3 -m unittest -v", &baseline);
        let touched: Vec<String> = kit
            .edits
            .iter()
            .map(|edit| match edit {
                Edit::Create { path, .. } => path.clone(),
                Edit::Append { path, .. } => path.to_string(),
            })
            .collect();
        assert_eq!(touched, ["test_cto_control_k9.py", "test_strings.py", "tests/unit_test.py"]);
        assert_eq!(kit.failures_added, 48, "the new file and test_strings.py");
        assert_eq!(super::kit(Runner::Unittest, "k9", "python3 -m unittest test_strings", &baseline).failures_added, 24);
    }

    #[test]
    fn counts_are_read_from_the_last_summary() {
        for (runner, output, want) in [
            (Runner::Unittest, "FAILED (failures=5)\n", Some(5)),
            (Runner::Unittest, "x\nFAILED (failures=4, errors=1, skipped=2)\n", Some(5)),
            (Runner::Unittest, "OK\n", None),
            (Runner::Pytest, "=== 3 failed, 2 passed in 0.1s ===\n", Some(3)),
            (Runner::Pytest, "5 failed in 0.05s\n", Some(5)),
            (Runner::Pytest, "2 passed in 0.1s\n", None),
            (Runner::Cargo, "test result: ok. 3 passed; 0 failed; x\ntest result: FAILED. 0 passed; 2 failed;\n", Some(2)),
            (Runner::Node, "# tests 3\n# fail 2\n", Some(2)),
            (Runner::Node, "ℹ fail 2\n", Some(2)),
        ] {
            assert_eq!(failures_reported(runner, output), want, "{output}");
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
