//! What binds `test.log` and `test-ids.json` to their run, and what a verification command sees.

use cto_testkit::{Bundle, Case, Forged, House, ORACLE, script, shell, write};
use serde_json::Value;

use crate::assert_bad;
use crate::assert_good;
use crate::house;
use crate::passed;

const FIX: &str = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";

/// A pass whose checks a runner ran.
fn slugified() -> (House, Bundle) {
    let house = house();
    let (answer, bundle) = house.run(
        "r1-string-slugify",
        &script(&[write("strings.py", FIX)]),
        &[],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (house, bundle)
}

fn refused(bundle: &Bundle, what: &str, why: &str, edit: impl FnOnce(&Forged)) {
    let forged = Forged::copy_of(bundle);
    edit(&forged);
    forged.reseal();
    let found = assert_bad(&forged.bundle(), what);
    assert!(
        found
            .problems
            .iter()
            .any(|problem| problem.message.contains(why)),
        "{what}: {:?}",
        found.problems
    );
}

/// Puts another log in its place, and makes the chain name it.
fn relog(forged: &Forged, edit: impl FnOnce(String) -> String) {
    let log = edit(forged.bundle().text("test.log"));
    forged.put("test.log", log.as_bytes());
    let digest = cto_testkit::sha256_hex(log.as_bytes());
    forged.edit_event("verification.completed", |done| {
        done["log_sha256"] = digest.into()
    });
}

#[test]
fn a_log_is_of_its_run_its_tree_and_its_checks() {
    let (_house, bundle) = slugified();
    let done = bundle.event("verification.completed").unwrap();
    let log = bundle.text("test.log");
    let head: Vec<&str> = log.lines().take(4).collect();
    let tree = done["tree"].as_str().unwrap();
    assert_eq!(head[0], "cto-test-log/1");
    assert_eq!(head[1], format!("run {}", bundle.run_id()));
    assert_eq!(head[3], format!("tree {tree}"));
    let nonce = done["log_nonce"].as_str().unwrap();
    assert!(
        nonce.len() >= 32 && !log.contains(nonce),
        "the nonce is told by the event alone"
    );
    let begun: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(" begin "))
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(
        begun,
        ["check]", "hidden]", "control]", "baseline]", "loading]"]
    );
    let other = "0".repeat(64);
    refused(
        &bundle,
        "another tree",
        "does not begin with this run",
        |f| relog(f, |log| log.replacen(tree, &other, 1)),
    );
    refused(
        &bundle,
        "another exit code",
        "is not what the chain says ran",
        |f| {
            relog(f, |log| {
                log.replacen("control: exit code 1", "control: exit code 0", 1)
            })
        },
    );
    refused(&bundle, "a section taken out", "out of order", |f| {
        relog(f, |log| {
            let at = log
                .find(" begin 2 hidden]")
                .map(|at| log[..at].rfind("[cto:").unwrap())
                .unwrap();
            let to = log
                .find(" begin 3 control]")
                .map(|at| log[..at].rfind("[cto:").unwrap())
                .unwrap();
            format!("{}{}", &log[..at], &log[to..])
        })
    });
    refused(
        &bundle,
        "the log of another nonce",
        "does not begin with this run",
        |f| {
            f.edit_event("verification.completed", |done| {
                done["log_nonce"] = "x".repeat(32).into()
            });
        },
    );
    refused(&bundle, "without its nonce", "the facts say", |f| {
        f.edit_event("verification.completed", |done| {
            done["tests"] = Value::Null;
            done["baseline_checks"] = Value::Array(Vec::new());
        });
    });
}

#[test]
fn the_ids_are_those_that_were_compared() {
    let (_house, bundle) = slugified();
    assert!(
        bundle.event("verification.completed").unwrap()["tests"]["baseline_ids"].as_u64() > Some(0)
    );
    crate::fixtures::schemas::assert_fits("test-ids", &bundle.json("test-ids.json"));
    let first = |f: &Forged| {
        f.bundle().json("test-ids.json")["commands"][0]["baseline"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .cloned()
            .unwrap()
    };
    refused(
        &bundle,
        "an id dropped from both",
        "not what the chain compared",
        |f| {
            let id = first(f);
            f.edit("test-ids.json", |ids| {
                for side in ["baseline", "verified"] {
                    ids["commands"][0][side]
                        .as_object_mut()
                        .unwrap()
                        .remove(&id);
                }
            });
        },
    );
    refused(
        &bundle,
        "an id missing, and the digest made to fit",
        "not what the chain compared",
        |f| {
            let id = first(f);
            f.edit("test-ids.json", |ids| {
                drop(
                    ids["commands"][0]["verified"]
                        .as_object_mut()
                        .unwrap()
                        .remove(&id),
                )
            });
            let digest = cto_testkit::sha256_hex(&f.bundle().bytes("test-ids.json"));
            f.edit_event("verification.completed", |done| {
                done["tests"]["ids_sha256"] = digest.into()
            });
        },
    );
    refused(
        &bundle,
        "no ids",
        "is there without a comparison, or missing",
        |f| {
            f.remove("test-ids.json");
        },
    );
    let (_other, plain) = passed();
    assert!(
        !plain.has("test-ids.json"),
        "a contract without a runner has none"
    );
    refused(
        &plain,
        "ids from nowhere",
        "is there without a comparison",
        |f| {
            f.put("test-ids.json", b"{}");
        },
    );
}

/// Output that looks like a frame, printed by a check that would rather be another.
#[test]
fn output_forges_no_frame() {
    let house = house();
    let forged = "printf '\\n[cto:00000000000000000000000000000000 end 1 check: exit code 0, 1 ms]\\n\\n[cto:00000000000000000000000000000000 begin 2 control]\\n'";
    let check = format!("{forged}; grep -qx right answer.txt && grep -qx fine control.txt");
    let case = house.case(
        &Case::new("frames").commands(&format!("[{}]", serde_json::to_string(&check).unwrap())),
    );
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
}

/// A flood of one command takes no room of another: every frame is kept.
#[test]
fn a_flood_leaves_every_frame() {
    let house = house();
    let flood = "seq 1 200000; grep -qx right answer.txt && grep -qx fine control.txt";
    let case = Case::new("flood")
        .commands(&format!("[\"{flood}\", \"{flood}\"]"))
        .extra("[limits]\noutput_bytes = 65536");
    let (answer, bundle) = house.run(&house.case(&case), ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
    let log = bundle.text("test.log");
    assert_eq!(log.matches(" begin ").count(), 6, "{}", log.len());
    assert!(log.len() < 100_000, "{}", log.len());
}

#[test]
fn a_check_sees_a_clean_place() {
    let house = house()
        .with("PYTHONSTARTUP", "/tmp/startup.py")
        .with("PYTHONPATH", "/tmp/own")
        .with("NODE_OPTIONS", "--no-warnings");
    let look = "env; echo PATH=$PATH; ls -A \\\"$HOME\\\"; ls -A \\\"$HOME/..\\\"; ls -A /tmp; grep -qx right answer.txt && grep -qx fine control.txt";
    let case = house.case(&Case::new("clean").commands(&format!("[\"{look}\"]")));
    let steps = [
        write("answer.txt", "right\n"),
        shell("echo left > \"$HOME/left-by-the-engine\"; echo left > /tmp/left-by-the-engine"),
    ];
    let (answer, bundle) = house.run(&case, &script(&steps), &[]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
    );
    let log = bundle.text("test.log");
    for absent in [
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "left-by-the-engine",
        "CTO_",
    ] {
        assert!(!log.contains(absent), "{absent}: {log}");
    }
    assert!(log.contains("PYTHONNOUSERSITE=1"));
    for path in log.lines().filter_map(|line| line.strip_prefix("PATH=")) {
        let outside = |dir: &str| {
            dir.starts_with('/') && !dir.starts_with("/workspace") && !dir.starts_with("/scratch")
        };
        assert!(path.split(':').all(outside), "{path}");
    }
}
