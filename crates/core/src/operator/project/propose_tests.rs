//! Layouts as public repositories have them: the command, the file it came from, and the scope.

use super::*;

/// Files, and for some of them their text.
struct Layout<'a> {
    files: &'a [&'a str],
    texts: &'a [(&'a str, &'a str)],
    environment: Option<&'a str>,
}

impl Layout<'_> {
    fn seen(&self) -> Seen {
        let named = self.texts.iter().map(|(name, _)| *name);
        let files = self.files.iter().copied().chain(named);
        let text = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Seen {
            files: files
                .map(|name| TreePath::new(name.as_bytes().to_vec()))
                .collect(),
            texts: self.texts.iter().map(text).collect(),
            environment: self.environment.map(str::to_owned),
        }
    }
}

fn of(files: &[&str], texts: &[(&str, &str)]) -> Proposal {
    let layout = Layout {
        files,
        texts,
        environment: None,
    };
    propose(&layout.seen())
}

fn commands(proposal: &Proposal) -> Vec<(&str, &str)> {
    let each = proposal.tests.iter();
    each.map(|test| (test.command.as_str(), test.from.as_str()))
        .collect()
}

fn allowed(proposal: &Proposal) -> Vec<&str> {
    let scope = proposal.scope.iter();
    scope
        .flat_map(|scope| scope.allow.iter().map(String::as_str))
        .collect()
}

/// Files, texts; the command, the file it came from, what may change.
type Row<'a> = (
    &'a [&'a str],
    &'a [(&'a str, &'a str)],
    (&'a str, &'a str),
    &'a [&'a str],
);

const NPM: &str = r#"{"scripts": {"test": "jest"}}"#;

const LAYOUTS: &[Row<'_>] = &[
    // npm, with code beside its tests
    (
        &[
            "src/app.ts",
            "src/app.test.ts",
            "package-lock.json",
            "jest.config.js",
        ],
        &[("package.json", NPM)],
        ("npm test", "package.json"),
        &["src/"],
    ),
    (
        &["index.js", "lib/express.js", "test/app.js", "yarn.lock"],
        &[("package.json", NPM)],
        ("yarn test", "package.json"),
        &["lib/", "index.js"],
    ),
    (
        &[
            "packages/a/src/x.ts",
            "packages/a/package.json",
            "pnpm-lock.yaml",
        ],
        &[("package.json", NPM)],
        ("pnpm test", "package.json"),
        &["packages/"],
    ),
    (
        &["src/x.ts"],
        &[(
            "package.json",
            r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#,
        )],
        ("pnpm test", "package.json"),
        &["src/"],
    ),
    (
        &["src/x.ts", "bun.lockb"],
        &[("package.json", NPM)],
        ("bun run test", "package.json"),
        &["src/"],
    ),
    // Cargo, alone and as a workspace
    (
        &[
            "src/lib.rs",
            "src/a/tests.rs",
            "tests/it.rs",
            "Cargo.lock",
            "benches/b.rs",
        ],
        &[("Cargo.toml", "[package]\nname = \"x\"\n")],
        ("cargo test", "Cargo.toml"),
        &["src/"],
    ),
    (
        &[
            "crates/a/src/lib.rs",
            "crates/a/Cargo.toml",
            "crates/b/src/main.rs",
            "crates/b/Cargo.toml",
            "examples/e/src/main.rs",
            "examples/e/Cargo.toml",
        ],
        &[("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n")],
        ("cargo test --workspace", "Cargo.toml"),
        &["crates/a/src/", "crates/b/src/"],
    ),
    (
        &[
            "c/1/src/l.rs",
            "c/1/Cargo.toml",
            "c/2/src/l.rs",
            "c/2/Cargo.toml",
            "c/3/src/l.rs",
            "c/3/Cargo.toml",
            "c/4/src/l.rs",
            "c/4/Cargo.toml",
            "c/5/src/l.rs",
            "c/5/Cargo.toml",
        ],
        &[("Cargo.toml", "[workspace]\n")],
        ("cargo test --workspace", "Cargo.toml"),
        &["c/*/src/"],
    ),
    // Python: src layout, flat, one file, tests without a project file, tox
    (
        &[
            "src/flask/app.py",
            "tests/test_app.py",
            "tests/conftest.py",
            "setup.py",
            "docs/conf.py",
        ],
        &[(
            "pyproject.toml",
            "[tool.pytest.ini_options]\ntestpaths = \"tests\"\n",
        )],
        ("python3 -m pytest", "pyproject.toml"),
        &["src/"],
    ),
    (
        &[
            "requests/api.py",
            "requests/__init__.py",
            "tests/test_api.py",
            "setup.py",
        ],
        &[("tox.ini", "[testenv]\ncommands =\n    pytest {posargs}\n")],
        ("python3 -m pytest", "tox.ini"),
        &["requests/"],
    ),
    (
        &["greet.py", "test_greet.py"],
        &[],
        ("python3 -m unittest", "test_greet.py"),
        &["greet.py"],
    ),
    (
        &["pkg/a.py", "tests/test_a.py"],
        &[("setup.cfg", "[metadata]\nname = pkg\n")],
        ("python3 -m unittest discover -s tests", "setup.cfg"),
        &["pkg/"],
    ),
    (
        &["pkg/a.py", "tests/test_a.py", "tests/__init__.py"],
        &[("pyproject.toml", "[project]\nname = \"pkg\"\n")],
        ("python3 -m unittest", "pyproject.toml"),
        &["pkg/"],
    ),
    (
        &["pkg/a.py", "checks/run.sh"],
        &[("tox.ini", "[tox]\n[testenv]\ncommands = ./checks/run.sh\n")],
        ("tox", "tox.ini"),
        &["pkg/"],
    ),
    (
        &["pkg/a.py", "uv.lock", "tests/test_a.py"],
        &[(
            "pyproject.toml",
            "[dependency-groups]\ndev = [\"pytest>=8\"]\n",
        )],
        ("uv run pytest", "pyproject.toml"),
        &["pkg/"],
    ),
    // Go: code at the top and below
    (
        &[
            "main.go",
            "main_test.go",
            "go.mod",
            "go.sum",
            "internal/x/x.go",
            "internal/x/x_test.go",
        ],
        &[],
        ("go test ./...", "go.mod"),
        &["internal/", "*.go"],
    ),
    // make, CMake, Gradle, Maven
    (
        &["src/a.c", "include/a.h", "t/basic.t"],
        &[("Makefile", "CC := cc\ntest: all\n\t./run\n")],
        ("make test", "Makefile"),
        &["include/", "src/"],
    ),
    (
        &["src/a.sh"],
        &[("Makefile", "all check: x\n\techo test: no\ntest := 1\n")],
        ("make check", "Makefile"),
        &["src/"],
    ),
    (
        &["src/a.cpp", "src/CMakeLists.txt", "tests/t.cpp"],
        &[("CMakeLists.txt", "project(x)\nenable_testing()\n")],
        (
            "cmake -S . -B _build && cmake --build _build && ctest --test-dir _build --output-on-failure",
            "CMakeLists.txt",
        ),
        &["src/"],
    ),
    (
        &[
            "build.gradle.kts",
            "gradlew",
            "src/main/kotlin/A.kt",
            "src/test/kotlin/ATest.kt",
        ],
        &[],
        ("./gradlew test --offline", "build.gradle.kts"),
        &["src/main/"],
    ),
    (
        &[
            "settings.gradle",
            "app/build.gradle",
            "app/src/main/java/A.java",
        ],
        &[],
        ("gradle test --offline", "settings.gradle"),
        &["app/src/main/"],
    ),
    (
        &[
            "pom.xml",
            "src/main/java/A.java",
            "src/test/java/ATest.java",
        ],
        &[],
        ("mvn -o test", "pom.xml"),
        &["src/main/"],
    ),
];

#[test]
fn layouts_that_people_have() {
    for (files, texts, test, allow) in LAYOUTS {
        let proposal = of(files, texts);
        assert_eq!(commands(&proposal).first(), Some(test), "{files:?}");
        assert_eq!(allowed(&proposal), *allow, "{files:?}");
    }
}

#[test]
fn an_environment_in_the_work_tree_has_its_own_python() {
    let layout = Layout {
        files: &["a.py", "test_a.py", "pytest.ini", "uv.lock"],
        texts: &[],
        environment: Some(".venv"),
    };
    let proposal = propose(&layout.seen());
    assert_eq!(
        commands(&proposal),
        [(".venv/bin/python -m pytest", "pytest.ini")]
    );
}

#[test]
fn files_that_say_nothing_propose_nothing() {
    for texts in [
        &[(
            "package.json",
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
        )][..],
        &[("package.json", r#"{"scripts": {"test": ""}}"#)],
        &[("package.json", r#"{"scripts": {"test": 7}}"#)],
        &[("package.json", r#"{"scripts": []}"#)],
        &[("package.json", "{")],
        &[("package.json", "\u{0}")],
        &[(
            "Makefile",
            "# test:\n\ttest:\n$(x) test: y\ntest ::= 3\n.PHONY: test\n",
        )],
        &[("CMakeLists.txt", "project(x)\n")],
        &[("tox.ini", "[flake8]\n")],
        &[],
    ] {
        let proposal = of(&["README.md"], texts);
        assert!(proposal.tests.is_empty(), "{texts:?}: {proposal:?}");
    }
}

#[test]
fn several_are_all_named_and_the_best_is_first() {
    let proposal = of(
        &["src/lib.rs", "go.mod"],
        &[("Cargo.toml", "[package]\n"), ("Makefile", "test:\n")],
    );
    assert_eq!(
        commands(&proposal),
        [
            ("cargo test", "Cargo.toml"),
            ("go test ./...", "go.mod"),
            ("make test", "Makefile")
        ]
    );
}

#[test]
fn tests_of_something_far_below_are_not_those_of_the_project() {
    let files = ["cases/a/b/test_x.py", "cases/a/conftest.py", "src/lib.rs"];
    let proposal = of(&files, &[("Cargo.toml", "[package]\n")]);
    assert_eq!(commands(&proposal), [("cargo test", "Cargo.toml")]);
}

#[test]
fn nothing_of_a_hostile_file_becomes_part_of_a_command() {
    let hostile = r#"{"name": "x\u001b[2J", "packageManager": "; rm -rf ~ #@1", "scripts": {"test": "\u001b]0;x\u0007"}}"#;
    let proposal = of(&["src/x.js"], &[("package.json", hostile)]);
    assert_eq!(commands(&proposal), [("npm test", "package.json")]);
}
