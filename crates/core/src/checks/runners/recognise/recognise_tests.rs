//! Commands as people write them, and what they come to.

use proptest::prelude::*;

use super::*;
use crate::task::runner::{Compared, Flag};

/// Recognition with these files there, and nothing else.
fn with(command: &str, files: &[(&str, &str)]) -> Recognised {
    recognise(command, &mut |path| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned())
    })
}

fn runners(command: &str, files: &[(&str, &str)]) -> Vec<Runner> {
    with(command, files)
        .found
        .iter()
        .map(|found| found.runner)
        .collect()
}

#[test]
fn everyday_commands() {
    use Runner::*;
    for (command, want) in [
        ("python3 -m unittest", Unittest),
        ("python3 -m unittest discover -s tests -t .", Unittest),
        (
            "python3.11 -I -W error -m unittest -v test_a.TestB",
            Unittest,
        ),
        ("python -Im unittest", Unittest),
        ("PYTHONPATH=src python3 -mpytest -q", Pytest),
        ("pytest", Pytest),
        ("env -u X A=1 pytest -x", Pytest),
        ("cd sub && pytest", Pytest),
        ("timeout -k 5 60 nice -n 10 pytest", Pytest),
        ("nice -10 python3 -m pytest", Pytest),
        (".venv/bin/pytest tests", Pytest),
        (".venv/bin/python -m pytest", Pytest),
        ("python3 .venv/bin/pytest", Pytest),
        ("coverage run --source src -m pytest -q", Pytest),
        (
            "python3 -m coverage run --branch -m unittest discover",
            Unittest,
        ),
        ("uv run pytest -q", Pytest),
        (
            "uv run --with pytest-cov --group dev python -m pytest",
            Pytest,
        ),
        ("uv run -m pytest", Pytest),
        ("uvx --with x pytest", Pytest),
        ("poetry run pytest", Pytest),
        ("poetry -C sub run pytest", Pytest),
        ("pipenv run python -m unittest", Unittest),
        ("hatch run pytest", Pytest),
        ("hatch test", Pytest),
        ("sh -c 'cd x && pytest -q'", Pytest),
        ("bash -lc \"pytest -q\"", Pytest),
        ("cargo test", Cargo),
        ("cargo +nightly --offline test -p x", Cargo),
        ("RUST_BACKTRACE=1 cargo nextest run", Cargo),
        ("cargo llvm-cov nextest --workspace", Cargo),
        ("node --test", Node),
        ("node --import tsx --test test/*.ts", Node),
        ("npx tsx --test", Node),
        ("c8 --100 node --test", Node),
        ("npx mocha", Mocha),
        ("npx --no-install mocha -R dot", Mocha),
        ("./node_modules/.bin/jest", Jest),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js",
            Jest,
        ),
        ("node node_modules/.bin/jest", Jest),
        ("pnpm exec vitest run", Vitest),
        ("npm exec -- ava", Ava),
        ("nyc --reporter lcov mocha", Mocha),
        ("cross-env NODE_ENV=test jest", Jest),
        ("npx tap -R terse", Tap),
        ("tape test/*.js", Tape),
        ("go test ./...", Go),
        ("cd svc && go test -race -run TestX ./pkg/...", Go),
        ("time go test", Go),
    ] {
        assert_eq!(runners(command, &[]), [want], "{command}");
    }
    for command in [
        "",
        "true",
        "python3 test.py",
        "python3 -c 'import pytest'",
        "cargo build",
        "$RUNNER -q",
        "go vet",
        "echo pytest",
        "npm test",
        "make",
        "node test.js",
        "npx -p x",
        "timeout",
    ] {
        assert_eq!(runners(command, &[]), [], "{command}");
    }
}

const PACKAGE: &str = r#"{"scripts": {
    "pretest": "npm run lint", "lint": "xo", "test": "npm run test:unit && npm run test:jest -- --ci && tsd",
    "test:unit": "c8 --100 node --test", "test:jest": "NODE_OPTIONS=--experimental-vm-modules jest jest.test.js",
    "all": "run-s test:*", "loop": "npm run loop", "both": "concurrently \"npm:lint\" \"mocha -b\""
}}"#;

#[test]
fn scripts_are_followed() {
    let files = [
        ("package.json", PACKAGE),
        ("web/package.json", r#"{"scripts": {"test": "vitest run"}}"#),
    ];
    let done = with("npm test", &files);
    assert_eq!(
        done.runners(),
        BTreeSet::from([Runner::Node]),
        "jest is started with options of its own"
    );
    assert_eq!(done.found.len(), 2);
    assert_eq!(done.others, ["xo", "tsd"]);
    assert_eq!(
        done.found[0].how,
        ["npm run test", "npm run test:unit", "c8"]
    );
    assert!(done.found[0].overrides.is_empty());
    assert!(done.found[1].overrides.contains("NODE_OPTIONS"));
    for (command, want) in [
        ("npm t", vec![Runner::Node, Runner::Jest]),
        ("npm run-script test:unit --silent", vec![Runner::Node]),
        ("pnpm test:unit", vec![Runner::Node]),
        ("yarn test:unit", vec![Runner::Node]),
        ("yarn run test:unit", vec![Runner::Node]),
        ("yarn mocha", vec![Runner::Mocha]),
        ("npm run all", vec![Runner::Jest, Runner::Node]),
        ("npm run both", vec![Runner::Mocha]),
        ("cd web && npm test", vec![Runner::Vitest]),
        ("npm --prefix web test", vec![Runner::Vitest]),
        ("npm test --workspaces", vec![]),
        ("cd ../x && npm test", vec![]),
        ("npm run loop", vec![]),
    ] {
        assert_eq!(runners(command, &files), want, "{command}");
    }
}

#[test]
fn arguments_reach_the_script_as_the_manager_hands_them_on() {
    let files = [("package.json", r#"{"scripts": {"test": "mocha"}}"#)];
    for (command, want) in [
        ("npm test -- -b", 1),
        ("npm test -b", 0),
        ("yarn test -b", 1),
        ("pnpm test -- -b", 1),
    ] {
        let done = with(command, &files);
        assert_eq!(done.found[0].said.early_stop.len(), want, "{command}");
    }
}

#[test]
fn tasks_of_other_tools() {
    let tox = "[tox]\nenvlist = py3\n[testenv]\ndeps = pytest\ncommands =\n    # first\n    lint: flake8\n    pytest {posargs:-q \\\n      tests}\n[testenv:old]\ncommands = {envpython} -m unittest\n";
    let nox = "import nox\n\n@nox.session(python=['3.11'])\ndef tests(session):\n    session.install('pytest')\n    session.run(\n        \"pytest\", '-x', *session.posargs,\n        env={\"A\": \"b\"},\n    )\n\n@nox.session(name='unit')\ndef other(session):\n    session.run('python', '-m', 'unittest')\n";
    let just = "py := 'x'\n\n# all\ntest *ARGS: build\n    @pytest {{ARGS}}\n\nbuild:\n    cargo build\n    cargo test\n";
    let files = [
        ("tox.ini", tox),
        ("noxfile.py", nox),
        ("justfile", just),
        (
            "h/pyproject.toml",
            "[tool.hatch.envs.ci.scripts]\nt = 'pytest {args:tests}'\n[tool.pdm.scripts]\nt = {cmd = 'pytest -q'}\n[tool.tox.env_run_base]\ncommands = [['pytest', '-k', 'a b']]\n",
        ),
        ("p/Pipfile", "[scripts]\nt = 'python -m unittest'\n"),
    ];
    use Runner::*;
    for (command, want) in [
        ("tox", vec![Pytest]),
        ("tox -e py311", vec![Pytest]),
        ("tox run -e old", vec![Unittest]),
        ("python3 -m tox -eold", vec![Unittest]),
        ("nox -s tests", vec![Pytest]),
        ("nox -s tests-3.11", vec![Pytest]),
        ("nox --session=unit", vec![Unittest]),
        ("nox", vec![Pytest, Unittest]),
        ("just test", vec![Cargo, Pytest]),
        ("just", vec![Cargo, Pytest]),
        ("just build", vec![Cargo]),
        ("cd h && hatch run ci:t", vec![Pytest]),
        ("cd h && hatch run ci:python -m unittest", vec![Unittest]),
        ("cd h && pdm run t", vec![Pytest]),
        ("cd h && tox", vec![Pytest]),
        ("cd p && pipenv run t", vec![Unittest]),
        ("cd none && tox", vec![]),
    ] {
        assert_eq!(runners(command, &files), want, "{command}");
    }
    let places = |command: &str| {
        let done = with(command, &files);
        done.found[0]
            .said
            .selection
            .places
            .iter()
            .map(|place| place.path.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(places("tox"), ["tests"]);
    assert_eq!(places("tox -- a.py"), ["a.py"]);
    assert_eq!(
        places("just test b.py"),
        Vec::<String>::new(),
        "a recipe before it is cargo's"
    );
}

#[test]
fn recipes_of_a_makefile() {
    let top = "PY ?= python3\nTEST = $(PY) -m\nDIRS := b c # two\nifdef X\nPY = other\nendif\n.PHONY: test\n\nall: build test\n\nbuild:\n\tcargo build\n\ntest: lint\n\t@echo go\n\t$(TEST) pytest \\\n\t  -q $(ARGS)\n\t-go test ./...\n\tcd $(firstword $(DIRS)) && true\n\nlint: ; ruff check\n\nsub:\n\t$(MAKE) -C b unit\n\nlist:\n\t$(shell ls) -m pytest\n\nloop: loop\n\tpytest $@ $$HOME\n";
    let files = [
        ("Makefile", top),
        ("b/Makefile", "unit:\n\tnode --test\n"),
        ("b/other.mk", "unit:\n\tnpx mocha\n"),
    ];
    use Runner::*;
    for (command, want) in [
        ("make test", vec![Pytest, Go]),
        ("make", vec![Pytest, Go]),
        ("make -s -j 4 test", vec![Pytest, Go]),
        ("gmake --no-print-directory test ARGS=-x", vec![Pytest, Go]),
        ("make sub", vec![Node]),
        ("make -C b unit", vec![Node]),
        ("cd b && make unit", vec![Node]),
        ("make --directory=b -f other.mk unit", vec![Mocha]),
        ("make loop", vec![Pytest]),
        ("make list", vec![]),
        ("make -n test", vec![]),
        ("make --version", vec![]),
        ("make nothing", vec![]),
        ("make -C none test", vec![]),
    ] {
        assert_eq!(runners(command, &files), want, "{command}");
    }
    let found = with("make test ARGS=-x PY=python3.11", &files).found;
    assert_eq!(found[0].said.early_stop.len(), 1);
    assert!(!found[0].excused && found[1].excused);
    assert_eq!(with("make sub", &files).found[0].dir.as_deref(), Some("b"));
    assert_eq!(with("make none", &files).others, ["make none"]);
    assert_eq!(with("make test", &files).others, ["ruff check"]);
}

#[test]
fn what_is_selected() {
    let said = |command: &str| with(command, &[]).found[0].said.clone();
    let places = |command: &str| {
        let places = said(command).selection.places;
        places
            .into_iter()
            .map(|place| (place.path, place.inside))
            .collect::<Vec<_>>()
    };
    let names = |command: &str| {
        let names = said(command).selection.names;
        names
            .into_iter()
            .map(|name| (name.text, name.compared))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        places("pytest tests/a.py::B::test_c sub"),
        [
            ("tests/a.py".into(), Some("B::test_c".into())),
            ("sub".into(), None)
        ]
    );
    assert_eq!(
        places("node --test test/ 'x/*.test.js'"),
        [("test/".into(), None), ("x/*.test.js".into(), None)]
    );
    assert_eq!(
        places("go test -v -timeout 30s ./a/... -args -x y"),
        [("./a/...".into(), None)]
    );
    assert_eq!(places("pytest -p no:x -n auto a"), [("a".into(), None)]);
    assert_eq!(
        names("pytest -k 'a and not b'"),
        [("a and not b".into(), Compared::Expression)]
    );
    assert_eq!(names("pytest -ka"), [("a".into(), Compared::Expression)]);
    assert_eq!(
        names("python -m unittest a.B.c"),
        [("a.B.c".into(), Compared::Whole)]
    );
    assert_eq!(
        names("cargo test --lib sums -- --skip x --test-threads 1 more"),
        [
            ("sums".into(), Compared::Part),
            ("more".into(), Compared::Part)
        ]
    );
    assert_eq!(
        names("jest -t 'x y' a.test.js"),
        [("x y".into(), Compared::Pattern)]
    );
    assert_eq!(names("mocha -f sums"), [("sums".into(), Compared::Part)]);
    assert_eq!(
        said("cargo test --test it -p core")
            .selection
            .programs
            .len(),
        2
    );
    assert!(said("pytest $FILES").selection.computed && !said("pytest a").selection.computed);
    for (command, stops) in [
        ("pytest -x", 1),
        ("pytest -xvs", 1),
        ("pytest --maxfail=2", 1),
        ("pytest --maxfail=0", 0),
        ("pytest --maxfail 1", 1),
        ("pytest -v", 0),
        ("python -m unittest -f", 1),
        ("python -m unittest -vf", 1),
        ("mocha -b", 1),
        ("mocha -f x", 0),
        ("jest --bail", 1),
        ("vitest run --bail=1", 1),
        ("ava --fail-fast", 1),
        ("tap -b", 1),
        ("go test -failfast", 1),
        ("cargo test", 0),
        ("cargo nextest run --max-fail 1", 1),
    ] {
        assert_eq!(said(command).early_stop.len(), stops, "{command}");
    }
    for (command, reporters) in [
        ("mocha -R dot", 1),
        ("pytest -qq --junitxml=a.xml", 2),
        ("jest --json --outputFile=x", 2),
        ("vitest --reporter=dot run", 1),
        ("node --test --test-reporter spec", 1),
    ] {
        assert_eq!(said(command).reporters.len(), reporters, "{command}");
    }
    assert!(
        said("pytest --co").runs_nothing
            && said("vitest watch").runs_nothing
            && !said("vitest run").runs_nothing
    );
}

#[test]
fn an_exit_code_that_may_be_lost_is_marked() {
    for (command, excused) in [
        ("pytest", false),
        ("pytest; true", true),
        ("pytest || true", true),
        ("pytest | tee log", true),
        ("pytest && true", false),
        ("true; pytest", false),
        ("pytest 2>&1", false),
        ("pytest > out 2>&1 && x", false),
        ("(cd a && pytest)", false),
        ("pytest & wait", true),
    ] {
        assert_eq!(with(command, &[]).found[0].excused, excused, "{command}");
    }
    assert!(
        with("env -i pytest", &[]).found[0]
            .overrides
            .contains("PYTHONPATH")
    );
    assert!(
        with("export GOFLAGS=-race; go test", &[]).found[0]
            .overrides
            .contains("GOFLAGS")
    );
}

#[test]
fn places_in_the_command_are_kept() {
    let command = "cd a && pytest -x -k 'b c' d";
    let found = &with(command, &[]).found[0];
    let at = |flag: &Flag| flag.place.and_then(|(start, end)| command.get(start..end));
    assert_eq!(at(&found.said.early_stop[0]), Some("-x"));
    assert_eq!(at(&found.said.selection.names[0].flag), Some("-k 'b c'"));
    assert_eq!(at(&found.said.selection.places[0].flag), Some("d"));
    let files = [("package.json", r#"{"scripts": {"test": "mocha -b"}}"#)];
    assert_eq!(
        with("npm test", &files).found[0].said.early_stop[0].place,
        None
    );
}

proptest! {
    /// Any text is read to its end, and asking again comes to one.
    #[test]
    fn any_command_comes_to_an_end(command in "[ -~\n'\"`$(){}|&;<>]{0,60}", script in "[ -~]{0,40}") {
        let package = serde_json::json!({"scripts": {"test": script, "x": command}}).to_string();
        let makefile = format!("X = {script}$(X)\nall: all\n\t{command}\n{script}");
        let files = [("package.json", package.as_str()), ("tox.ini", "[testenv]\ncommands = {x{y}"), ("justfile", script.as_str()), ("noxfile.py", script.as_str()), ("Makefile", makefile.as_str())];
        for text in [command.as_str(), "npm test", "tox", "just", "nox", "npm run x", "make", "make all"] {
            with(text, &files);
        }
    }

    #[test]
    fn words_behind_a_runner_never_matter_to_which_it_is(words in proptest::collection::vec("[a-z-]{1,8}", 0..6)) {
        let command = format!("python3 -m pytest {}", words.join(" "));
        let found = with(&command, &[]).found;
        prop_assert_eq!(found[0].runner, Runner::Pytest);
    }
}

/// Texts that would be followed until nothing is left of the day, the stack or the memory: this test ends.
#[test]
fn no_text_is_followed_for_ever() {
    let many = |word: &str, count: usize| word.repeat(count);
    let scripts = (0..5_000).map(|at| format!("\"s{at}\": \"mocha\""));
    let scripts: Vec<String> = scripts.collect();
    for (command, path, text) in [
        (
            "just test",
            "justfile",
            format!("test:{}\n  pytest\n", many(" test", 1000)),
        ),
        (
            "just test",
            "justfile",
            (0..9).fold(String::from("x9:\n  pytest\n"), |text, at| {
                format!("x{at}:{}\n{text}", format!(" x{}", at + 1).repeat(500))
            }) + &format!("test:{}\n", many(" x0", 500)),
        ),
        (
            "make test",
            "Makefile",
            format!("A = {}\ntest: $(A)\n\tpytest $(A)\n", many("$(A)", 1000)),
        ),
        (
            "make test",
            "Makefile",
            format!(
                "A = {}\n{}test:\n\tpytest\n",
                many("a ", 30_000),
                many("b:$(A)\n", 40_000)
            ),
        ),
        (
            "make test",
            "Makefile",
            format!(
                "{}:\n{}test:\n\tpytest\n",
                many("t ", 1) + &(0..50_000).map(|at| format!("a{at} ")).collect::<String>(),
                many("\tx\n", 50_000)
            ),
        ),
        (
            "tox",
            "tox.ini",
            format!(
                "[testenv]\ncommands = pytest {}\n",
                many("{posargs:", 100_000)
            ),
        ),
        (
            "nox",
            "noxfile.py",
            format!(
                "def a(session):\n{}",
                many("    session.run('x', (\n", 40_000)
            ),
        ),
        (
            "npx run-s s*",
            "package.json",
            format!("{{\"scripts\": {{{}}}}}", scripts.join(",")),
        ),
        (
            "npm run a",
            "package.json",
            "{\"scripts\": {\"a\": \"npm run a && npm run a\"}}".to_owned(),
        ),
    ] {
        let (_, trail) = traced(command, &mut |asked| (asked == path).then(|| text.clone()));
        assert!(trail.words.len() <= MOST_COMMANDS, "{command}");
    }
}
