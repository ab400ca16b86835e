//! Names of tests, of configuration and of takeovers; the former ones stay as they were.

use proptest::prelude::*;

use super::*;

fn broad(path: &str) -> bool {
    is_test_file(Names::Broad, &TreePath::new(path))
}

#[test]
fn tests_are_known_at_any_depth_and_in_every_language() {
    for path in [
        "tests/x.rs",
        "a/tests/b/data.json",
        "packages/web/test/a.js",
        "src/__tests__/a.tsx",
        "pkg/spec/a_spec.rb",
        "Tests/AppTests/a.swift",
        "src/test/java/A.java",
        "a.spec.ts",
        "deep/a.spec.js",
        "a.test.mjs",
        "a_test.go",
        "a_test.py",
        "a/b/c_test.rs",
        "test_a.py",
        "testing_a.py",
        "sub/test_a.pyc",
        "test.js",
        "src/tests.rs",
        "a_tests.rs",
        "test-a.cjs",
        "a-test.js",
        "index.test-d.ts",
        "a/FooTest.java",
        "FooTests.cs",
        "FooSpec.scala",
        "BarIT.java",
        "t/basic.t",
        "x.bats",
        "a_spec.lua",
        "login.cy.ts",
        "app.e2e.ts",
        "Test_A.PY",
    ] {
        assert!(broad(path), "{path}");
    }
    for path in [
        "app.py",
        "attest.py",
        "latest.js",
        "contest.rs",
        "src/inspect.py",
        "spec.json",
        "spec.md",
        "test.txt",
        "a.test.md",
        "testdata.csv",
        "mytests/a.py",
        "Test.md",
        "Manifest.java",
        "IT.java",
        "Test.java2",
        "protest",
        "",
        "a.spectrum.js",
        "greatest.go",
        "units/a.rb",
    ] {
        assert!(!broad(path), "{path}");
    }
}

#[test]
fn text_of_tests_is_source() {
    for (path, want) in [
        ("tests/data.json", false),
        ("sub/tests/a.rb", true),
        ("sub/conftest.py", true),
        ("a.spec.tsx", true),
        ("app.py", false),
    ] {
        assert_eq!(
            is_test_source(Names::Broad, &TreePath::new(path)),
            want,
            "{path}"
        );
    }
}

#[test]
fn configuration_of_runners_is_known() {
    let config = |path: &str| is_runner_config(Names::Broad, &TreePath::new(path));
    for path in [
        "jest.config.js",
        "web/jest.config.ts",
        "jest.config.json",
        "vitest.config.mts",
        "vite.config.ts",
        "vitest.workspace.json",
        ".mocharc",
        ".mocharc.cjs",
        "test/mocha.opts",
        "babel.config.js",
        ".babelrc",
        "sub/.babelrc.json",
        "ava.config.js",
        "karma.conf.js",
        "playwright.config.ts",
        "tsconfig.json",
        "tsconfig.test.json",
        "conftest.py",
        "a/b/conftest.py",
        "pyproject.toml",
        "Cargo.toml",
        "build.rs",
        "go.mod",
        "pom.xml",
        "Makefile",
        "package.json",
        "phpunit.xml.dist",
        ".rspec",
        ".c8rc.json",
        "jest.setup.js",
    ] {
        assert!(config(path), "{path}");
    }
    for path in [
        "app.py",
        "config.js",
        "jest.js",
        "vitest.md",
        "babel.py",
        "tsconfigs/a.ts",
    ] {
        assert!(!config(path), "{path}");
    }
}

#[test]
fn takeovers_are_known_in_every_form_a_module_has() {
    let over = |path: &str| takes_over_the_runner(Names::Broad, &TreePath::new(path));
    for path in [
        "unittest.py",
        "unittest.pyc",
        "unittest/__init__.py",
        "unittest/__init__.pyc",
        "unittest.so",
        "unittest.cpython-311-x86_64-linux-gnu.so",
        "difflib.py",
        "src/difflib.py",
        "lib/difflib/__init__.py",
        "tests/difflib.py",
        "a/test/traceback.pyc",
        "DIFFLIB.py",
        "sitecustomize.py",
        "sub/sitecustomize.py",
        "pytest/__init__.py",
        "app.pyc",
        "__pycache__/app.cpython-311.pyc",
        "a.pth",
        "x.egg-info/entry_points.txt",
        "a/x.dist-info/entry_points.txt",
        "node_modules/.bin/jest",
        "node_modules/jest/bin/jest.js",
        "web/node_modules/@vitest/runner/dist/index.js",
        "a/node_modules/b/node_modules/chai/i.js",
        ".npmrc",
        ".yarnrc.yml",
        ".yarn/releases/yarn-4.cjs",
        ".pnpmfile.cjs",
        ".cargo/config.toml",
        "_pytest/__init__.py",
    ] {
        assert!(over(path), "{path}");
    }
    for path in [
        "app/inspect.py",
        "src/pkg/types.py",
        "src/pkg/logging/__init__.py",
        "difflib.md",
        // Without its first file it is no package that hides another.
        "difflib/a.py",
        "mydifflib.py",
        "node_modules/left-pad/index.js",
        "entry_points.txt",
        "conftest.py",
        "src/pluggy/__init__.py",
        "packaging/__init__.py",
        "app.py",
        "a/re.rs",
        "",
        "__init__.py",
        "src/__init__.py",
    ] {
        assert!(!over(path), "{path}");
    }
}

#[test]
fn a_takeover_is_allowed_by_its_own_name_only() {
    let paths = ["difflib.py", "a.pyc", "app.py", ".npmrc"].map(TreePath::new);
    let found = |names, rules: &[&str]| {
        let rules: Vec<PathRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        runner_takeovers(names, &paths, &rules)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(Names::Broad, &["*"]),
        ["difflib.py", "a.pyc", ".npmrc"]
    );
    assert_eq!(
        found(Names::Broad, &["*", "difflib.py"]),
        ["a.pyc", ".npmrc"]
    );
    assert_eq!(found(Names::Former, &["*"]), [".npmrc"]);
}

#[test]
fn names_of_before_are_allowed_by_themselves_only_too() {
    let paths = [
        "sitecustomize.py",
        "sub/.cargo/config.toml",
        "a.py",
        "x.npmrc",
        "web/node_modules/.bin/node",
        "conftest.py",
    ]
    .map(TreePath::new);
    let found = |rules: &[&str]| {
        let rules: Vec<PathRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        runner_takeovers(Names::Former, &paths, &rules)
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
    let config = |index: usize| is_runner_config(Names::Former, &paths[index]);
    assert!(config(5) && config(0) && !config(2));
}

#[test]
fn rules_that_were_released_keep_their_names() {
    for rules in [
        Rules::One,
        Rules::Two,
        Rules::Three,
        Rules::Four,
        Rules::Five,
    ] {
        assert_eq!(Names::of(rules), Names::Former);
    }
    assert_eq!(Names::of(Rules::Six), Names::Broad);
    for later in Rules::ALL.iter().filter(|rules| **rules > Rules::Six) {
        assert_eq!(Names::of(*later), Names::Broader);
    }
}

#[test]
fn packages_beside_the_tests_and_what_make_includes_count_by_the_newest_names() {
    for (path, takes_over) in [
        ("test/node_modules/shouldy/index.js", true),
        ("node_modules/a/index.js", true),
        ("Test/Node_Modules/a.js", true),
        ("local.mk", false),
        ("build/rules.make", false),
    ] {
        let path = TreePath::new(path);
        let of = |names| {
            (
                takes_over_the_runner(names, &path),
                is_runner_config(names, &path),
            )
        };
        assert_eq!(of(Names::Broad), (false, false), "{path}");
        assert_eq!(of(Names::Broader), (takes_over, true), "{path}");
    }
    for path in ["node_modules.md", "src/my_node_modules/a.js", "mk", "a.mkd"] {
        let path = TreePath::new(path);
        assert!(!is_runner_config(Names::Broader, &path), "{path}");
    }
}

proptest! {
    /// The former functions answer for former bundles, and what took over before still does.
    #[test]
    fn former_names_are_the_former_functions(
        path in "((tests|test|a|b|spec|src)/){0,2}(test_a|a_test|a|conftest|unittest|\\.cargo/config|b)\\.(py|rs|test\\.js|js|toml|go)"
    ) {
        let path = TreePath::new(path.as_str());
        prop_assert_eq!(is_test_file(Names::Former, &path), former::is_test_file(&path));
        prop_assert_eq!(is_runner_config(Names::Former, &path), former::is_runner_config(&path));
        prop_assert_eq!(is_test_source(Names::Former, &path), former::is_test_source(&path));
        prop_assert_eq!(
            takes_over_the_runner(Names::Former, &path),
            former::takes_over_the_runner(&path)
        );
        for (former, broad) in [
            (former::is_test_file(&path), is_test_file(Names::Broad, &path)),
            (former::is_runner_config(&path), is_runner_config(Names::Broad, &path)),
            (former::takes_over_the_runner(&path), takes_over_the_runner(Names::Broad, &path)),
        ] {
            prop_assert!(!former || broad, "{}", path);
        }
    }
}
