//! What the text of a test file says of itself: does it hold tests, and does it say that some may be
//! left out? Words, not a parser: a file that holds one of them excuses itself.

use crate::task::contract::Runner;
use crate::values::paths::TreePath;

/// Words by which a file leaves tests out, or expects them to fail.
const PYTHON_SKIPS: &[&str] = &["skip", "Skip", "xfail", "expectedFailure"];
const NODE_SKIPS: &[&str] = &["skip", "todo"];
const GO_SKIPS: &[&str] = &["Skip"];
const RUST_SKIPS: &[&str] = &["ignore", "cfg"];

/// Does the text leave out tests by itself?
pub fn leaves_out(runner: Runner, text: &[u8]) -> bool {
    let words = match runner {
        Runner::Unittest | Runner::Pytest => PYTHON_SKIPS,
        Runner::Cargo => RUST_SKIPS,
        Runner::Go => GO_SKIPS,
        _ => NODE_SKIPS,
    };
    holds_one(text, words)
}

/// Does the text hold tests at all? A file that only helps others may look like one by its name.
pub fn holds_tests(runner: Runner, text: &[u8]) -> bool {
    let words: &[&str] = match runner {
        Runner::Unittest | Runner::Pytest => &["def test", "class Test", "TestCase"],
        Runner::Cargo => &[
            "test]",
            "test(",
            "test_case",
            "rstest",
            "proptest!",
            "quickcheck",
        ],
        Runner::Node => &["node:test"],
        Runner::Go => &["func Test"],
        _ => &["test(", "it(", "test.", "it.", "describe("],
    };
    holds_one(text, words)
}

/// Names of tests in a file of Go that is built wherever it lies.
pub fn tests_of_go(path: &TreePath, text: &[u8]) -> Vec<String> {
    const SYSTEMS: [&str; 12] = [
        "linux", "windows", "darwin", "freebsd", "netbsd", "openbsd", "js", "wasm", "amd64",
        "arm64", "386", "arm",
    ];
    let name = path.to_string();
    let stem = name.strip_suffix("_test.go").unwrap_or_default();
    let for_a_system = SYSTEMS
        .iter()
        .any(|system| stem.ends_with(&format!("_{system}")));
    let text = String::from_utf8_lossy(text);
    let tagged = |line: &str| line.starts_with("//go:build") || line.starts_with("// +build");
    if stem.is_empty() || for_a_system || text.lines().any(tagged) {
        return Vec::new();
    }
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("func Test"));
    let names = names.filter_map(|rest| rest.split_once('('));
    let names = names.map(|(name, _)| name.trim());
    // `Testing` is no test, and `TestMain` runs them.
    let tests = names.filter(|name| !name.starts_with(char::is_lowercase) && *name != "Main");
    tests.map(|name| format!("Test{name}")).collect()
}

/// Is this a test program with a `main` of its own, which gives no result that anybody knows?
pub fn has_own_harness(text: &[u8]) -> bool {
    holds_one(text, &["fn main("]) && !holds_tests(Runner::Cargo, text)
}

/// Does a file of this name help others to leave tests out: a `conftest.py`, or what lies among tests
/// and is none?
pub fn is_beside_tests(runner: Runner, path: &TreePath) -> bool {
    let bytes = path.as_bytes();
    let (dir, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (&b""[..], bytes),
    };
    let among = dir
        .split(|byte| *byte == b'/')
        .any(|part| matches!(part, b"tests" | b"test" | b"testing"));
    let python = matches!(runner, Runner::Unittest | Runner::Pytest) && name.ends_with(b".py");
    let is_test = name.starts_with(b"test") || name.ends_with(b"_test.py");
    python && (name == b"conftest.py" || (among && !is_test))
}

fn holds_one(text: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| text.windows(word.len()).any(|at| at == word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_what_it_leaves_out() {
        for (runner, text, skips, tests) in [
            (
                Runner::Unittest,
                "class A(unittest.TestCase):\n    def test_a(self): pass",
                false,
                true,
            ),
            (
                Runner::Unittest,
                "@unittest.skip('x')\ndef test_a(): pass",
                true,
                true,
            ),
            (Runner::Unittest, "raise SkipTest", true, false),
            (
                Runner::Pytest,
                "x = pytest.importorskip('y')\ndef test_a(): pass",
                true,
                true,
            ),
            (
                Runner::Pytest,
                "@pytest.mark.xfail\ndef test_a(): pass",
                true,
                true,
            ),
            (Runner::Pytest, "def help(): pass", false, false),
            (Runner::Cargo, "#[test]\nfn a() {}", false, true),
            (
                Runner::Cargo,
                "#[tokio::test]\nasync fn a() {}",
                false,
                true,
            ),
            (Runner::Cargo, "#[test]\n#[ignore]\nfn a() {}", true, true),
            (Runner::Cargo, "fn main() {}", false, false),
            (Runner::Node, "import test from 'node:test';", false, true),
            (Runner::Node, "it.skip('x')", true, false),
        ] {
            assert_eq!(leaves_out(runner, text.as_bytes()), skips, "{text}");
            assert_eq!(holds_tests(runner, text.as_bytes()), tests, "{text}");
        }
        assert!(has_own_harness(b"fn main() { run() }"));
        assert!(!has_own_harness(b"#[test]\nfn a() {}\nfn main() {}"));
    }

    #[test]
    fn files_beside_tests_are_no_tests() {
        for (path, want) in [
            ("conftest.py", true),
            ("a/conftest.py", true),
            ("tests/base.py", true),
            ("tests/unit/support.py", true),
            ("tests/test_a.py", false),
            ("base.py", false),
            ("tests/base.js", false),
        ] {
            assert_eq!(
                is_beside_tests(Runner::Pytest, &TreePath::new(path)),
                want,
                "{path}"
            );
        }
        assert!(!is_beside_tests(
            Runner::Node,
            &TreePath::new("tests/base.py")
        ));
    }
}
