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

/// A project whose configuration lies where only a word says it.
const ELSEWHERE: Files<'_> = &[
    (
        "package.json",
        r#"{"scripts": {"test": "mocha --config cfg/mocha.json", "jest": "jest -c cfg/jest.json", "vitest": "vitest run --config cfg/v.ts", "boot": "node -r ./boot.js node_modules/.bin/mocha"}, "bin": "cli.js", "ava": {"require": ["./hooks/ava"]}}"#,
    ),
    ("cfg/mocha.json", "{\"extends\": \"./base.yml\"}"),
    (
        "cfg/base.yml",
        "require:\n  - ./more/hook\nspec: index.js\n",
    ),
    (
        "cfg/jest.json",
        "{\"rootDir\": \"..\", \"setupFiles\": [\"<rootDir>/setup.js\"], \"preset\": \"./preset\"}",
    ),
    (
        "cfg/v.ts",
        "export default { build: { lib: { entry: './src/main.ts' } }, test: { setupFiles: ['./s/own.ts'] } }",
    ),
    (
        "pytest.ini",
        "[pytest]\naddopts = -p plugins.boot -p other --cov=app --cov-config=.coveragerc\ntestpaths = app.py\n",
    ),
    ("go.mod", "module x\n"),
];

#[test]
fn what_a_command_or_a_configuration_names_makes_it_another() {
    for (command, path) in [
        ("npm test", "cfg/mocha.json"),
        ("npx mocha --config=cfg/mocha.json", "cfg/mocha.json"),
        ("npm test", "cfg/base.yml"),
        ("npm test", "more/hook.js"),
        ("npm run jest", "cfg/jest.json"),
        ("npm run jest", "setup.js"),
        ("npm run jest", "preset/jest-preset.js"),
        ("npm run vitest", "cfg/v.ts"),
        ("npm run vitest", "s/own.ts"),
        ("npm run boot", "boot.js"),
        (
            "npx mocha --require test/support/env",
            "test/support/env.js",
        ),
        ("cd sub && npx mocha -r ../tools/x.cjs", "tools/x.cjs"),
        ("npx mocha -r boot", "boot.js"),
        ("npx ava", "hooks/ava/index.js"),
        ("pytest", "plugins/boot.py"),
        ("pytest", "other.py"),
        ("pytest -c tools/own.ini", "tools/own.ini"),
        ("go test -modfile=tools/own.mod ./...", "tools/own.mod"),
        ("./wrap.sh && npx mocha", "wrap.sh"),
        ("sh -e wrap.sh && npx mocha", "wrap.sh"),
        (
            "timeout 9 cp cfg/m.json .mocharc.json && npx mocha",
            "cfg/m.json",
        ),
    ] {
        let written = [(path, "something else")];
        assert!(
            is_another(command, ELSEWHERE, &written),
            "{command}: {path}"
        );
    }
}

#[test]
fn what_is_tested_measured_or_built_makes_no_command_another() {
    for (command, path) in [
        ("npm test", "index.js"),
        ("npm test", "cli.js"),
        ("npx mocha test/one.js", "test/one.js"),
        ("npm run vitest", "src/main.ts"),
        ("pytest", "app.py"),
        ("pytest --cov=app.py --cov-report html tests", "app.py"),
        ("coverage run --source src/app.py -m pytest", "src/app.py"),
        ("npx nyc --include lib/a.js mocha", "lib/a.js"),
        ("pytest src/app.py", "src/app.py"),
        ("node --test lib/own.mjs", "lib/own.mjs"),
        ("cp src/app.py out/app.py && pytest", "src/app.py"),
        ("test -f app.js && npx mocha", "app.js"),
        ("timeout 60 cp app.js out.js && npx mocha", "app.js"),
        ("go test ./pkg/app", "pkg/app.go"),
        ("npx mocha", "mocha.js"),
        (
            "pip install -r requirements.txt && pytest",
            "requirements.txt",
        ),
    ] {
        let written = [(path, "something else")];
        assert!(
            !is_another(command, ELSEWHERE, &written),
            "{command}: {path}"
        );
    }
}
