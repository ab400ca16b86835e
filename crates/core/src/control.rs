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
    /// Failing tests in each edited place.
    pub failures_added: u64,
}

const PYTHON_FAILURES: [(&str, &str); 5] = [
    ("equal", "self.assertEqual(1, 2)"),
    ("true", "self.assertTrue(False)"),
    ("contains", "self.assertIn(1, [])"),
    ("explicit", "self.fail('must fail')"),
    ("raised", "raise AssertionError('must fail')"),
];

/// What to add for a runner. `nonce` keeps the names unguessable for the code under test.
pub fn kit(runner: Runner, nonce: &str, baseline: &[TreePath]) -> Kit {
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
                text: "import test from 'node:test';\nimport assert from 'node:assert';\n\ntest('cto control equal', () => assert.strictEqual(1, 2));\ntest('cto control throw', () => { throw new Error('must fail'); });\n".into(),
            }],
            failures_added: 2,
        },
    }
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
        let kit = kit(Runner::Unittest, "k9", &baseline);
        let touched: Vec<String> = kit
            .edits
            .iter()
            .map(|edit| match edit {
                Edit::Create { path, .. } => path.clone(),
                Edit::Append { path, .. } => path.to_string(),
            })
            .collect();
        assert_eq!(touched, ["test_cto_control_k9.py", "test_strings.py", "tests/unit_test.py"]);
        assert_eq!(kit.failures_added, 5);
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
