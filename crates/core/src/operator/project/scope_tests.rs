//! No proposed scope holds tests, files of continuous integration or lock files, whatever the tree is called.

use proptest::prelude::*;

use super::*;

fn paths(names: &[&str]) -> Vec<TreePath> {
    let path = |name: &&str| TreePath::new(name.as_bytes().to_vec());
    names.iter().map(path).collect()
}

fn standing(scope: &Scope, path: &str) -> PathStanding {
    let parse = |rules: &[String]| parsed(rules).unwrap();
    let path = TreePath::new(path.as_bytes().to_vec());
    path_standing(&path, &parse(&scope.allow), &parse(&scope.forbid))
}

#[test]
fn tests_beside_code_are_left_out_also_those_to_come() {
    let files = paths(&[
        "pkg/__init__.py",
        "pkg/core/a.py",
        "pkg/core/test_a.py",
        "pkg/tests/data.json",
        "pkg/conftest.py",
        "pkg/poetry.lock",
        "pkg/.github/workflows/x.yml",
        "pkg/__snapshots__/x.txt",
        "pkg/x.snap",
    ]);
    let scope = of(&files, Language::Python).unwrap();
    assert_eq!(scope.allow, ["pkg/"]);
    for open in ["pkg/new.py", "pkg/core/b/c.py", "pkg/latest.md"] {
        assert_eq!(standing(&scope, open), PathStanding::Allowed, "{open}");
    }
    for path in files.iter().filter(|path| is_left_out(path)) {
        let path = path.to_string();
        assert_ne!(standing(&scope, &path), PathStanding::Allowed, "{path}");
    }
    for to_come in [
        "pkg/test_new.py",
        "pkg/core/tests/x.py",
        "pkg/core/deep/test_x.py",
        "tests/test_x.py",
        "setup.py",
        ".github/workflows/y.yml",
        "poetry.lock",
    ] {
        assert_ne!(
            standing(&scope, to_come),
            PathStanding::Allowed,
            "{to_come}"
        );
    }
    assert_eq!(
        scope.without,
        [
            ".github/",
            "__snapshots__/",
            "tests/",
            "*.snap",
            "conftest.py",
            "poetry.lock",
            "test_*.py"
        ]
    );
}

#[test]
fn names_become_patterns_of_what_they_mean() {
    for (name, want) in [
        ("test_app.py", "test_*.py"),
        ("testapp.py", "test*.py"),
        ("test.py", "test.py"),
        ("app_test.go", "*_test.go"),
        ("app.spec.ts", "*.spec.ts"),
        ("app.Spec.ts", "*.Spec.ts"),
        ("app-test.js", "*-test.js"),
        ("tests.rs", "tests.rs"),
        ("AppTest.java", "*Test.java"),
        ("AppIT.kt", "*IT.kt"),
        ("basic.t", "*.t"),
        ("TEST_APP.py", "TEST_APP.py"),
        ("my_tests.rs", "*_tests.rs"),
    ] {
        assert_eq!(pattern_of(name), want, "{name}");
    }
}

#[test]
fn a_name_that_cannot_be_typed_is_not_proposed() {
    for bad in [
        "\u{1b}[2J",
        "a\u{202e}b",
        "x*",
        "back\\slash",
        " lead",
        "new\nline",
    ] {
        let file = format!("{bad}/a.py");
        let scope = of(&paths(&[&file, "good/a.py"]), Language::Python).unwrap();
        assert_eq!(scope.allow, ["good/"], "{bad:?}");
        assert_eq!(of(&paths(&[&file]), Language::Python), None, "{bad:?}");
    }
    // Nor is a scope that could only be kept by such a name.
    let hidden = "pkg/TEST_A\u{202e}B.py";
    assert_eq!(of(&paths(&[hidden, "pkg/a.py"]), Language::Python), None);
    let latin = TreePath::new(b"\xff/a.py".to_vec());
    assert_eq!(of(&[latin], Language::Python), None);
}

#[test]
fn more_than_anybody_reads_is_not_proposed() {
    let many: Vec<String> = (0..40).map(|n| format!("d{n}/a.go")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(of(&paths(&many), Language::Go), None);
    let deep = format!("src/{}a.py", "d/".repeat(40));
    assert_eq!(of(&paths(&[&deep]), Language::Python), None);
    assert_eq!(of(&[], Language::Any), None);
    assert_eq!(of(&paths(&["tests/test_a.py"]), Language::Python), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is proposed keeps what is left out from changing.
    #[test]
    fn nothing_that_is_left_out_may_change(names in proptest::collection::vec(
        "(src|pkg|lib|tests|a|Test|\\.github|packages)(/(x|tests|__tests__|testdata|b|spec|SRC)){0,3}/(a|test_a|a_test|a\\.spec|tests|conftest|aTest|Cargo|t)\\.(py|go|ts|rs|lock|java|toml|t|snap)", 1..30)) {
        let files: Vec<TreePath> = names.iter().map(|name| TreePath::new(name.as_bytes().to_vec())).collect();
        for language in [Language::Node, Language::Rust, Language::Python, Language::Go, Language::C, Language::Jvm, Language::Any] {
            let Some(scope) = of(&files, language) else { continue };
            for path in &files {
                let open = standing(&scope, &path.to_string()) == PathStanding::Allowed;
                prop_assert!(!(open && is_left_out(path)), "{path} in {scope:?}");
            }
        }
    }
}
