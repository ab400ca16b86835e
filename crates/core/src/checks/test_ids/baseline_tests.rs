use super::*;
use crate::checks::runners::recognise::recognise;

const FILES: [(&str, &str); 2] = [
    (
        "package.json",
        r#"{"scripts": {"test": "mocha -b", "sums": "jest --bail -t sums"}}"#,
    ),
    (
        "Makefile",
        "py:\n\tpytest -x\n\ngo:\n\tgo test -failfast ./...\n\nall:\n\tgo test ./...\n",
    ),
];

fn known(command: &str) -> Recognised {
    recognise(command, &mut |path| {
        let mut files = FILES.iter();
        let found = files.find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned())
    })
}

fn due(runner: Runner, command: &str, known: &[Recognised]) -> String {
    let commands = [command.to_owned()];
    on_the_baseline(runner, &commands, known).remove(0)
}

#[test]
fn a_red_program_of_the_baseline_hides_no_other() {
    for (runner, command, want) in [
        (Runner::Cargo, "cargo test", "cargo test --no-fail-fast"),
        (
            Runner::Cargo,
            "cd a && cargo test --offline -- -q",
            "cd a && cargo test --no-fail-fast --offline -- -q",
        ),
        (
            Runner::Cargo,
            "cargo nextest run -p x",
            "cargo nextest run --no-fail-fast -p x",
        ),
        (
            Runner::Cargo,
            "cargo test --no-fail-fast",
            "cargo test --no-fail-fast",
        ),
        (Runner::Cargo, "cargo tests", "cargo tests"),
        (Runner::Cargo, "make test", "make test"),
        (Runner::Node, "cargo test", "cargo test"),
        // As contracts were before their runners were recognised.
        (Runner::Pytest, "pytest -x", "pytest -x"),
        (
            Runner::Unittest,
            "python3 -m unittest -f",
            "python3 -m unittest -f",
        ),
    ] {
        assert_eq!(due(runner, command, &[]), want, "{command}");
    }
}

#[test]
fn early_stops_are_left_out_and_selections_stay() {
    for (command, want) in [
        ("pytest", "pytest"),
        ("pytest -x -k sums tests", "pytest  -k sums tests"),
        ("pytest -xq tests/a.py::b", "pytest  tests/a.py::b"),
        ("pytest --maxfail=1", "pytest "),
        ("pytest --maxfail 1 -q", "pytest  -q"),
        ("pytest --exitfirst --sw", "pytest  "),
        ("pytest --maxfail=0", "pytest --maxfail=0"),
        ("python3 -m unittest -f a.B", "python3 -m unittest  a.B"),
        ("python3 -m unittest --failfast", "python3 -m unittest "),
        ("npx mocha -b -g sums", "npx mocha  -g sums"),
        ("npx mocha --bail", "npx mocha "),
        ("npx jest --bail=2 -t sums", "npx jest  -t sums"),
        ("npx vitest run --bail 1", "npx vitest run "),
        ("go test -failfast -run A ./...", "go test  -run A ./..."),
        ("timeout 9 pytest -x && true", "timeout 9 pytest  && true"),
        (
            "cargo nextest run --max-fail=1 -p x",
            "cargo nextest run --no-fail-fast  -p x",
        ),
        (
            "cargo nextest run --fail-fast",
            "cargo nextest run --no-fail-fast ",
        ),
        // The kit lifts what stands in a script.
        ("npm test", "npm test"),
        ("npm run sums", "npm run sums"),
        ("make py", "make py"),
    ] {
        let known = known(command);
        let runner = known.found[0].runner;
        assert_eq!(due(runner, command, &[known]), want, "{command}");
    }
    // Each command by what it is itself.
    let commands = ["pytest -x", "cargo test"].map(str::to_owned);
    let recognised = [known(&commands[0]), known(&commands[1])];
    assert_eq!(
        on_the_baseline(Runner::Pytest, &commands, &recognised),
        ["pytest ", "cargo test --no-fail-fast"]
    );
}

#[test]
fn only_a_stop_that_nobody_can_lift_hides_tests() {
    for (command, want) in [
        ("make go", true),
        ("make all", false),
        ("make py", false),
        ("npm test", false),
        ("go test -failfast ./...", false),
        ("pytest -x", false),
    ] {
        assert_eq!(known(command).may_hide_tests(), want, "{command}");
    }
}
