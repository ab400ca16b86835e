//! What a run is given beside programs, by flag; and what it means that a program is not there.

use cto_testkit::{script, shell, write};

use super::{CHECK, Lab};
use crate::assert_good;

#[test]
fn variables_are_given_by_name_or_by_value() {
    let lab = Lab::new();
    let test = "sh -c 'test \"$WANTED\" = \"2 or so\" && test \"$OWN\" = mine && grep -q 2 answer'";
    let more = ["--env", "WANTED=2 or so", "--env", "OWN"];
    let answer = lab.cto(&[], test, &more, &[("OWN", "mine")]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let bundle = cto_testkit::Bundle::at(answer.json()["bundle"].as_str().unwrap());
    let told = &bundle.json("contract.json")["variables"];
    assert_eq!(
        (&told["WANTED"], &told["OWN"]),
        (&"2 or so".into(), &"mine".into())
    );
    assert_good(&bundle);
}

#[test]
fn a_variable_that_looks_like_a_secret_is_refused() {
    let lab = Lab::new();
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let pem = "-----BEGIN PRIVATE KEY-----";
    for (given, code) in [
        ("API_TOKEN=plain".to_owned(), "secret_variable"),
        (format!("HARMLESS={token}"), "secret_variable"),
        (format!("HARMLESS={pem}"), "secret_variable"),
        (
            "URL=https://me:word@example.invalid/x".to_owned(),
            "secret_variable",
        ),
        ("OWN".to_owned(), "secret_variable"),
        ("NOT_SET".to_owned(), "no_such_variable"),
        ("PATH=/tmp".to_owned(), "bad_variable"),
        ("HOME=/tmp".to_owned(), "bad_variable"),
        ("1X=2".to_owned(), "bad_variable"),
        ("=2".to_owned(), "bad_variable"),
        ("A B=2".to_owned(), "bad_variable"),
    ] {
        let answer = lab.cto(&[], "true", &["--env", &given], &[("OWN", token)]);
        assert_eq!(answer.code, Some(2), "{given}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], code, "{given}");
        assert!(!format!("{answer:?}").contains(token), "{given}");
    }
}

#[test]
fn limits_of_tests_are_the_operators() {
    let lab = Lab::new();
    let more = ["--test-timeout", "900", "--memory", "512", "--cpus", "1"];
    let test = "sh -c 'test \"$(nproc)\" = 1 && grep -q 2 answer'";
    let bundle = lab.passes(&[], test, &more);
    let limits = &bundle.json("contract.json")["limits"];
    for (name, want) in [
        ("verification_wall_seconds", 900),
        ("verification_idle_seconds", 900),
        ("memory_mib", 512),
        ("cpus", 1),
    ] {
        assert_eq!(limits[name], want, "{name}");
    }
    let (answer, bundle) = lab.run(&[], "sleep 600", &["--test-timeout", "1"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(bundle.codes(), ["timeout"]);
}

#[test]
fn a_program_that_is_not_there_is_no_failure_of_the_change() {
    let lab = Lab::new();
    lab.repo
        .program("t.sh", "#!/bin/sh\nexec no-such-program-anywhere\n");
    lab.repo.write("plain", CHECK);
    lab.repo.commit("ways to test");
    for test in [
        "sh -c no-such-program-anywhere",
        "env X=1 no-such-program-anywhere",
        "timeout 60 no-such-program-anywhere",
        "./t.sh",
        "./plain",
    ] {
        let bundle = lab.blocked(&[], test, &[], &["untouched copy", "--toolchain", test]);
        assert_good(&bundle);
    }
    // Where the untouched copy runs, the change took the program away.
    let mut lab = Lab::new();
    lab.repo.program("t.sh", CHECK);
    lab.repo.program("check.sh", "#!/bin/sh\nexec ./t.sh\n");
    lab.repo.commit("a test");
    for (what, step) in [
        ("gone", shell("rm t.sh")),
        (
            "another",
            write("t.sh", "#!/bin/sh\nno-such-program-anywhere\n"),
        ),
    ] {
        let steps = [step, write("answer", "2\n")];
        lab.change = lab.house.script(what, &script(&steps));
        let (answer, bundle) = lab.run(&[], "./check.sh", &["--allow", "t.sh"]);
        assert_eq!(answer.code, Some(1), "{what}: {answer:?}");
        assert_eq!(bundle.codes(), ["verification_failed"], "{what}");
        assert_good(&bundle);
    }
}
