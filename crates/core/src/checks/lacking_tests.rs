use super::*;

fn exited(code: u8) -> ProcessEnd {
    ProcessEnd::Exited { code }
}

fn stderr(code: u8, text: &str) -> Vec<String> {
    lacking(exited(code), &["", text])
}

#[test]
fn each_starter_says_it_in_its_own_words() {
    for (code, text, want) in [
        (
            2,
            "make: nosuch: No such file or directory\nmake: *** [Makefile:2: a] Error 127\n",
            "nosuch",
        ),
        (
            2,
            "make[1]: x: No such file or directory\nmake[1]: *** [Makefile:2: a] Error 127\nmake: *** [Makefile:10: e] Error 2\n",
            "x",
        ),
        (
            2,
            "make: /opt/x: Permission denied\nmake: *** [Makefile:8: d] Error 127\n",
            "/opt/x",
        ),
        (
            2,
            "/bin/sh: 1: pytest: not found\nmake: *** [Makefile:6: c] Error 127\n",
            "pytest",
        ),
        (
            2,
            "bash: line 1: x: command not found\ngmake: *** [Makefile:6: c] Error 127\n",
            "x",
        ),
        (
            2,
            "make: x: No such file or directory\nmake: *** [M:2: a] Error 127\nmake: *** Waiting for unfinished jobs....\nmake: Leaving directory '/a'\n",
            "x",
        ),
        (1, "sh: 1: eslint: not found\n", "eslint"),
        (1, "bash: line 1: eslint: command not found\n", "eslint"),
        (1, "bash: eslint: command not found\n", "eslint"),
        (127, "sh: eslint: not found\n", "eslint"),
        (1, "./t.sh: 3: shellcheck: not found\n", "shellcheck"),
        (
            1,
            "./t.sh: line 3: shellcheck: command not found\n",
            "shellcheck",
        ),
        (1, "t.sh: 3: exec: nosuch: not found\n", "nosuch"),
        (126, "/bin/sh: 1: /opt/x: Permission denied\n", "/opt/x"),
        (
            127,
            "bash: line 1: /opt/x: cannot execute: required file not found\n",
            "/opt/x",
        ),
        (
            126,
            "bash: ./x: /no/such: bad interpreter: No such file or directory\n",
            "/no/such",
        ),
        (127, "env: ‘nosuch’: No such file or directory\n", "nosuch"),
        (
            127,
            "/usr/bin/env: 'nosuch': No such file or directory\n",
            "nosuch",
        ),
        (
            127,
            "timeout: failed to run command ‘nosuch’: No such file or directory\n",
            "nosuch",
        ),
        (
            127,
            "setsid: failed to execute nosuch: No such file or directory\n",
            "nosuch",
        ),
        (
            123,
            "xargs: nosuch: No such file or directory\nmake: *** [M:2: a] Error 127\n",
            "nosuch",
        ),
        (
            127,
            "npm warn Unknown user config\nsh: 1: eslint: not found\n",
            "eslint",
        ),
        (
            1,
            "sh: 1: eslint: not found\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno ENOENT\n\n",
            "eslint",
        ),
        (
            1,
            "sh: 1: eslint: not found\nnpm error Lifecycle script `test` failed\n",
            "eslint",
        ),
        (
            1,
            "/bin/sh: eslint: not found\nerror Command failed with exit code 127.\ninfo Visit https://example.com\n",
            "eslint",
        ),
        (
            1,
            "sh: 1: eslint: not found\n ELIFECYCLE  Command failed.\n WARN   no node_modules\n",
            "eslint",
        ),
        (1, "command not found: eslint\n", "eslint"),
        (
            127,
            "sh: 1: nosuch: not found\nerror: recipe `test` failed on line 2 with exit code 127\n",
            "nosuch",
        ),
        (
            127,
            "bash: x: command not found\nerror: Recipe `test` failed on line 2 with exit code 127\n",
            "x",
        ),
        (
            2,
            "py: Exception running subprocess [Errno 2] No such file or directory: 'nosuch'\npy: exit 2 (0.00 seconds) {repo}> nosuch -q\n  py: FAIL code 2 (0.59=setup[0.59]+cmd[0.00] seconds)\n  evaluation failed :( (0.69 seconds)\n",
            "nosuch",
        ),
        (
            1,
            "nox > uv binary not found.\nnox > Program nosuch not found.\nnox > Session t failed.\n",
            "nosuch",
        ),
        (
            101,
            "error: no such command: `nextest`\n\nhelp: view all installed commands with `cargo --list`\n",
            "cargo-nextest",
        ),
        (
            1,
            "cgo: C compiler \"gcc\" not found: exec: \"gcc\": executable file not found in $PATH\n",
            "gcc",
        ),
        (
            2,
            "cto: tool is not shown to this jail: a script\nmake: *** [Makefile:2: a] Error 127\n",
            "tool",
        ),
        (
            127,
            "cto: the Rust toolchain nightly is not shown to this jail\n",
            "nightly",
        ),
        (
            127,
            "sh: 1: .venv/bin/pytest: not found\n",
            ".venv/bin/pytest",
        ),
        (
            127,
            "sh: 1: {repo}/node_modules/.bin/eslint: not found\n",
            "{repo}/node_modules/.bin/eslint",
        ),
    ] {
        assert_eq!(stderr(code, text), [want], "{text}");
        // Whatever came before, and on which stream.
        let long = format!("collected 3 items\nnothing: odd\n{text}");
        assert_eq!(lacking(exited(code), &[&long, ""]), [want], "{long}");
    }
}

#[test]
fn what_is_no_complaint_about_a_program_names_none() {
    for (code, text) in [
        // Green, or not ended by itself.
        (0, "sh: 1: nosuch: not found\n"),
        // A file that is read, not started.
        (1, "bash: line 1: data.txt: No such file or directory\n"),
        (
            2,
            "make: other.mk: No such file or directory\nmake: *** No rule to make target 'other.mk'.  Stop.\n",
        ),
        (1, "cat: data.txt: No such file or directory\n"),
        (1, "bash: /etc/x: Permission denied\n"),
        (2, "sh: 1: cannot open nosuch: No such file\n"),
        // A probe that something could do without.
        (
            2,
            "/bin/sh: 1: llvm-config: not found\nmake: *** [Makefile:2: a] Error 1\n",
        ),
        (
            2,
            "make: pkg-config: No such file or directory\nmake: *** [Makefile:2: a] Error 1\n",
        ),
        (1, "sh: 1: ruff: not found\n1 test failed\n"),
        (
            2,
            "make: x: No such file or directory\nmake: [Makefile:2: a] Error 127 (ignored)\nmake: *** [Makefile:3: a] Error 1\n",
        ),
        (
            1,
            "sh: 1: x: not found\nerror: recipe `t` failed on line 2 with exit code 3\n",
        ),
        // Words of an application.
        (1, "Error: widget: not found\n"),
        // Numbers mean other things to others.
        (1, "server: 404: index.html: not found\n"),
        (1, "GET: 404: x: not found\n"),
        (1, "worker: line 3: x: not found\n"),
        (1, "http://host/a: 404: x: not found\n"),
        (1, "failed to execute query: no table\n"),
        (1, "KeyError: not found\n"),
        (1, "not found\n"),
        (1, ": not found\n"),
        // No name that anybody types.
        (1, "sh: 1: a b: not found\n"),
        (1, "sh: 1: [redacted:token]: not found\n"),
        (1, "sh: 1: \u{1b}[31mx: not found\n"),
        // Files of the repository's own: a change may be asked to make them.
        (127, "sh: 1: ./run.sh: not found\n"),
        (127, "sh: 1: scripts/run: not found\n"),
        (127, "sh: 1: {repo}/run: not found\n"),
        (127, "sh: 1: /workspace/run: not found\n"),
        (
            2,
            "make: ./run.sh: No such file or directory\nmake: *** [Makefile:14: g] Error 127\n",
        ),
    ] {
        assert_eq!(stderr(code, text), [""; 0], "{text}");
    }
    let long = format!("sh: 1: {}: not found\n", "x".repeat(LONGEST_NAME + 1));
    assert_eq!(stderr(127, &long), [""; 0]);
    let ends = [
        ProcessEnd::Signalled { signal: 9 },
        ProcessEnd::Cancelled,
        ProcessEnd::Lost,
    ];
    for end in ends {
        assert_eq!(lacking(end, &["sh: 1: x: not found"]), [""; 0]);
    }
}

#[test]
fn several_are_named_once_each_and_not_without_end() {
    let text = "make: b: No such file or directory\nmake: *** [M:2: b] Error 127\n\
                make: a: No such file or directory\nmake: *** [M:4: a] Error 127\n\
                make: Target 'all' not remade because of errors.\n";
    assert_eq!(stderr(2, text), ["a", "b"]);
    let twice = "sh: 1: a: not found\n";
    assert_eq!(lacking(exited(1), &[twice, twice]), ["a"]);
    let many: String = (0..99)
        .map(|n| format!("sh: 1: p{n}: not found\n"))
        .collect();
    assert_eq!(stderr(1, &many).len(), MOST);
}
