//! A clock that goes backwards, stands still or is centuries off: order comes from the chain, never
//! from it.

use std::fs;
use std::process::Command;

use cto_core::verify::Standing;
use cto_testkit::{Bundle, Case, House, ORACLE};

use crate::assert_good;
use crate::house;

/// A library that lies about the time of day, one step of `STEP` seconds a call.
const LIAR: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static long calls = 0;
    int answer = syscall(SYS_clock_gettime, id, at);
    if (id == CLOCK_REALTIME) {
        at->tv_sec = atol(getenv("CLOCK_START")) + atol(getenv("CLOCK_STEP")) * calls++;
    }
    return answer;
}
"#;

fn liar(house: &House) -> String {
    let (source, library) = (house.root().join("liar.c"), house.root().join("liar.so"));
    fs::write(&source, LIAR).unwrap();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status()
        .unwrap();
    assert!(made.success());
    library.display().to_string()
}

#[test]
fn no_clock_breaks_a_run_its_evidence_or_its_readers() {
    let house = house();
    let (library, case) = (liar(&house), house.case(&Case::new("clock")));
    let script = house.script("oracle", ORACLE);
    let lies: [(i64, i64, &str); 5] = [
        (1_800_000_000, -3600, "2027"),
        (1_800_000_000, 0, "2027"),
        (0, -1, "1970"),
        (-86_400 * 365, 0, "1970"),
        (7_258_118_400, 86_400, "2200"),
    ];
    for (start, step, year) in lies {
        let lie = |args: &[&str]| {
            let mut command = house.command(args);
            command
                .env("LD_PRELOAD", &library)
                .env("CLOCK_START", start.to_string())
                .env("CLOCK_STEP", step.to_string());
            cto_testkit::Answer::of(&command.output().unwrap())
        };
        let answer = lie(&["run", &case, "--script", &script, "--json"]);
        assert_eq!(answer.code, Some(0), "{start} {step}: {answer:?}");
        let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
        assert!(
            bundle.run_id().starts_with(year),
            "{start} {step}: {}",
            bundle.run_id()
        );
        // To anybody else it was signed in the future: whose clock is wrong is not known to them.
        let found = crate::verdict(&bundle);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        match start > now as i64 {
            false => assert_good(&bundle),
            true => assert!(
                found.standing == Standing::Unknown
                    && found.problems.is_empty()
                    && found
                        .unknowns
                        .iter()
                        .all(|why| why.message.contains("here it is only")),
                "{found:?}"
            ),
        }
        for args in [
            &["runs"][..],
            &["runs", "--json"],
            &["show", "last"],
            &["verify", "last"],
            &["recover"],
        ] {
            let read = lie(args);
            assert_eq!(read.code, Some(0), "{start} {step} {args:?}: {read:?}");
        }
    }
}
