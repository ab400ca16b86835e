//! Which changes make a command another one, and which everyday ones do not.

use crate::checks::runners::{otherwise, settle};
use crate::task::contract::{Control, tests::sample};

type Files<'a> = &'a [(&'a str, &'a str)];

/// Is the command another one where these files are written over those?
fn is_another(command: &str, before: Files<'_>, written: Files<'_>) -> bool {
    let of = |files: Files<'_>, path: &str| {
        let mut files = files.iter();
        files.find_map(|(name, text)| (*name == path).then(|| (*text).to_owned()))
    };
    let mut contract = sample();
    contract.verification_commands = vec![command.to_owned()];
    contract.verification_control = Control::None("no control is known".into());
    settle(&mut contract, false, &mut |path| of(before, path));
    assert!(
        !contract.recognised.is_empty(),
        "{command} is not recognised"
    );
    let changed: Vec<String> = written.iter().map(|(name, _)| (*name).to_owned()).collect();
    let found = otherwise(
        &contract,
        &changed,
        &mut |path| of(before, path),
        &mut |path| of(written, path).or_else(|| of(before, path)),
    );
    !found.is_empty()
}

const MOCHA: Files<'_> = &[(
    "package.json",
    r#"{"version": "1.0.0", "scripts": {"test": "MODE=plain mocha", "lint": "eslint"}}"#,
)];
const MAKE: Files<'_> = &[(
    "Makefile",
    "# Tests\n-include local.mk\ntest:\n\tnpx mocha\n",
)];
const COMPUTED: Files<'_> = &[(
    "Makefile",
    "include $(wildcard conf/*.cfg) $(DIR)/own.inc\ntest:\n\tgo test ./...\n",
)];

#[test]
fn what_decides_a_command_makes_it_another() {
    for (command, before, written) in [
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain mocha -r ./hook.js"}}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            ("package.json", r#"{"scripts": {"test": "MODE=x mocha"}}"#),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain timeout -s KILL 9 mocha"}}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain mocha", "pretest": "true"}}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain mocha", "posttest": "true"}}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain mocha"}, "mocha": {"require": "./x"}}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain mocha"}, "never-heard-of": 1}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"scripts": {"test": "MODE=plain mocha"}, "devDependencies": {"mocha": "file:fake"}}"#,
            ),
        ),
        ("npm test", MOCHA, ("package.json", "{")),
        (
            "npm test",
            MOCHA,
            (".mocharc.json", r#"{"require": "./hook.js"}"#),
        ),
        ("npm test", MOCHA, (".mocharc.cjs", "")),
        (
            "npx mocha",
            MOCHA,
            ("package.json", r#"{"mocha": {"require": "./x"}}"#),
        ),
        ("cd web && npx mocha", MOCHA, (".babelrc", "{}")),
        ("npx jest", &[], ("packages/a/jest.config.ts", "")),
        ("npx vitest run", &[], ("vite.config.js", "")),
        ("pytest", &[], ("pytest.ini", "[pytest]\n")),
        (
            "pytest",
            &[],
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]\naddopts = '-p x'\n",
            ),
        ),
        (
            "pytest",
            &[],
            ("setup.cfg", "[tool:pytest]\naddopts = -p x\n"),
        ),
        ("go test ./...", &[], ("go.work", "go 1.19\nuse ./fake\n")),
        (
            "go test ./...",
            &[("go.mod", "module a\n")],
            ("go.mod", "module a\nreplace x/y => ./fake\n"),
        ),
        (
            "make test",
            MAKE,
            ("Makefile", "-include local.mk\ntest:\n\tnpx mocha -r ./x\n"),
        ),
        (
            "make test",
            MAKE,
            (
                "Makefile",
                "SHELL := ./sh.sh\n-include local.mk\ntest:\n\tnpx mocha\n",
            ),
        ),
        (
            "make test",
            MAKE,
            (
                "Makefile",
                "-include local.mk\ntest: SHELL=./sh.sh\ntest:\n\tnpx mocha\n",
            ),
        ),
        ("make test", MAKE, ("local.mk", "SHELL := ./sh.sh\n")),
        ("make test", MAKE, ("GNUmakefile", "test:\n\tnpx mocha\n")),
        ("make test", COMPUTED, ("conf/a.cfg", "SHELL = x\n")),
        ("make test", COMPUTED, ("a/own.inc", "SHELL = x\n")),
        ("make test", COMPUTED, ("any/where.mk", "SHELL = x\n")),
        (
            "make test",
            &[("Makefile", "test:\n\tgo test ./...\n")],
            ("Makefile", "test:\n\tgo test -exec ./fake.sh ./...\n"),
        ),
    ] {
        assert!(
            is_another(command, before, &[written]),
            "{command}: {written:?}"
        );
    }
    let deep: Files<'_> = &[
        ("Makefile", "include a.mk\ntest:\n\tnpx mocha\n"),
        ("a.mk", "-include sub/b.txt\n"),
    ];
    assert!(is_another(
        "make test",
        deep,
        &[("sub/b.txt", "SHELL = x\n")]
    ));
}

#[test]
fn everyday_changes_leave_a_command_what_it_is() {
    for (command, before, written) in [
        ("npm test", MOCHA, ("README.md", "more\n")),
        ("npm test", MOCHA, ("test/app.test.js", "more\n")),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"version": "1.0.1", "description": "d", "license": "MIT", "scripts": {"test": "MODE=plain mocha"}}"#,
            ),
        ),
        (
            "npm test",
            MOCHA,
            (
                "package.json",
                r#"{"dependencies": {"left-pad": "^1.0.0"}, "scripts": {"test": "MODE=plain mocha", "lint": "eslint ."}}"#,
            ),
        ),
        ("npm test", MOCHA, ("jest.config.js", "")),
        ("npm test", MOCHA, ("app/src/local.mk", "x = 1\n")),
        ("npx jest", &[], ("src/jest.test.js", "")),
        ("cd web && npx mocha", MOCHA, ("server/.babelrc", "{}")),
        (
            "pytest",
            &[(
                "pyproject.toml",
                "[project]
version = '1'
",
            )],
            (
                "pyproject.toml",
                "[project]\nversion = '2'\n[tool.ruff]\nx = 1\n",
            ),
        ),
        (
            "pytest",
            &[(
                "setup.cfg",
                "[metadata]
version = 1
",
            )],
            ("setup.cfg", "[metadata]\nversion = 2\n"),
        ),
        ("pytest", &[], ("tests/conftest.py", "")),
        (
            "go test ./...",
            &[("go.mod", "module a\n")],
            ("go.mod", "module a\nrequire x/y v1.2.3\n"),
        ),
        (
            "make test",
            MAKE,
            (
                "Makefile",
                "# Our tests\n\n-include local.mk\ntest:\n\tnpx mocha\n",
            ),
        ),
        ("make test", MAKE, ("other.mk", "SHELL = x\n")),
        ("make test", COMPUTED, ("src/a.go", "package a\n")),
        (
            "cargo test",
            &[],
            ("Cargo.toml", "[package]\nversion = '2'\n"),
        ),
    ] {
        assert!(
            !is_another(command, before, &[written]),
            "{command}: {written:?}"
        );
    }
}
