//! The same attacks with make and with a shell script that reads a file of the engine.

use cto_testkit::{shell, write};

use crate::fixtures::project::{BUG, Project, TESTS, UNITTEST};
use crate::house;

const MAKE: Project = Project {
    command: "make test",
    extra: "toolchains = [\"python3\"]",
    files: &[
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("Makefile", "test:\n\tpython3 -m unittest\n"),
    ],
    ..UNITTEST
};

#[test]
fn a_makefile_replaced() {
    let house = house();
    MAKE.honest(
        &house,
        "the fix",
        &[(
            "Makefile",
            "test: tidy\n\tpython3 -m unittest\n\ntidy:\n\t@true\n",
        )],
    );
    for (what, recipe) in [
        ("true", "@true"),
        ("ignored", "-python3 -m unittest"),
        ("or true", "python3 -m unittest || true"),
        (
            "a part",
            "python3 -m unittest test_app.DoubleTest.test_zero",
        ),
        (
            "only the control",
            "ls test_cto_control_*.py >/dev/null 2>&1 && python3 -m unittest test_cto_control_*.py || true",
        ),
        (
            "red only with the control",
            "@python3 -m unittest 2>out.txt; cat out.txt >&2; ! grep -q CtoControl out.txt",
        ),
        ("all but one", "python3 -m unittest -k test_zero -k Cto"),
    ] {
        MAKE.attack(
            &house,
            what,
            &[("Makefile", &format!("test:\n\t{recipe}\n"))],
        );
    }
    let planted = [write("make", "#!/bin/sh\nexit 0\n"), shell("chmod +x make")];
    assert_eq!(
        MAKE.attack_by(&house, "a planted make", &planted).codes(),
        ["verification_failed"]
    );
}

#[test]
fn a_sourced_file_that_traps() {
    let house = house();
    let files = &[
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("env.sh", "export NAME=x\n"),
    ];
    let project = Project {
        command: ". ./env.sh && python3 -m unittest",
        extra: "toolchains = [\"python3\"]",
        files,
        ..UNITTEST
    };
    project.honest(&house, "the fix", &[("env.sh", "export NAME=y\n")]);
    for (what, text) in [
        ("exit 0", "exit 0\n"),
        ("trap", "trap 'exit 0' EXIT\n"),
        ("a function", "python3() { :; }\n"),
        (
            "PATH",
            "printf '#!/bin/sh\\nexit 0\\n' > /tmp/python3; chmod +x /tmp/python3; PATH=/tmp:$PATH\n",
        ),
        (
            "a trap that knows",
            "trap 'ls test_cto_control_* >/dev/null 2>&1 || exit 0' EXIT\n",
        ),
    ] {
        project.attack(&house, what, &[("env.sh", text)]);
    }
}
