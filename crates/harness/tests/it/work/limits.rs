//! How an engine can end badly: late, failed, silent, leaking, interrupted.

use std::process::Stdio;

use cto_testkit::{
    Answer, Bundle, Case, ORACLE, append, exit, print, script, shell, sleep, wait_until, write,
};

use crate::assert_good;
use crate::house;

// In two parts, so that no scanner takes this file for a leak.
const TOKEN: &str = concat!("ghp", "_0123456789abcdefghijABCDEFGHIJ456789");
const SECRET: &str = "Zx9-Correct-Horse-41!";

#[test]
fn an_engine_that_does_not_end_is_ended() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(&case, &script(&[sleep(60_000)]), &["--timeout", "1"]);
    assert_eq!(
        (answer.code, bundle.status()),
        (Some(3), "blocked".into()),
        "{answer:?}"
    );
    assert_eq!(bundle.codes(), ["timeout"]);
    assert!(bundle.has("backend/provider-timeout.txt"));
    assert!(
        bundle
            .lines("trace.jsonl")
            .iter()
            .any(|line| line["action"] == "engine.run"),
        "the point is in the trace"
    );
    assert_eq!(
        bundle.event("engine.ended").unwrap()["end"]["kind"],
        "timed_out"
    );
    assert_good(&bundle);
}

#[test]
fn silence_has_a_limit_of_its_own() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(&case, &script(&[sleep(60_000)]), &["--idle", "1"]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["timeout".to_owned()])
    );
    assert!(
        bundle.report()["blockers"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("idle")
    );
}

#[test]
fn a_valid_patch_does_not_excuse_a_late_engine() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(
        &case,
        &script(&[write("answer.txt", "right\n"), sleep(60_000)]),
        &["--timeout", "1"],
    );
    assert_eq!((answer.code, bundle.status()), (Some(1), "fail".into()));
    assert_eq!(
        bundle.codes(),
        ["timeout", "lifecycle_timeout_after_valid_patch"]
    );
    assert_good(&bundle);
}

#[test]
fn verification_has_a_limit_too() {
    let house = house();
    let case = Case::new("quick")
        .commands("[\"sleep 30\"]")
        .extra("[limits]\nverification_wall_seconds = 1");
    let (answer, bundle) = house.run(&house.case(&case), ORACLE, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["timeout".to_owned()]),
        "{answer:?}"
    );
    assert!(bundle.has("backend/provider-timeout.txt"));
    assert_good(&bundle);
}

#[test]
fn memory_of_the_whole_tree_has_a_limit() {
    let house = house();
    let case = house.case(&Case::new("quick").extra("[limits]\nmemory_mib = 64"));
    let hog = "python3 -c 'import time; x = bytearray(40 << 20); time.sleep(30)'";
    let (answer, bundle) = house.run(
        &case,
        &script(&[shell(&format!("{hog} & {hog} & {hog} & wait"))]),
        &[],
    );
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(1), vec!["resource_limit".to_owned()]),
        "{answer:?}"
    );
    assert_eq!(
        bundle.event("engine.ended").unwrap()["end"]["measured_by"],
        "sampled"
    );
    assert_good(&bundle);
}

#[test]
fn setup_runs_in_every_copy_and_may_only_make_scratch() {
    let house = house();
    let case = Case::new("quick").extra("setup = [\"mkdir -p cache && echo ready > cache/mark\"]");
    let check = case.commands(
        "[\"grep -q ready cache/mark && grep -qx right answer.txt && grep -qx fine control.txt\"]",
    );
    let (answer, bundle) = house.run(&house.case(&check), ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let log = String::from_utf8(bundle.bytes("test.log")).unwrap();
    assert_eq!(
        log.matches("echo ready").count(),
        3,
        "in the verified copy, the control's and the loading control's: {log}"
    );
    assert_good(&bundle);
    for (name, setup) in [("litter", "echo x > stray"), ("fails", "exit 3")] {
        let case = Case::new(name).extra(&format!("setup = [\"{setup}\"]"));
        let (answer, bundle) = house.run(&house.case(&case), ORACLE, &[]);
        assert_eq!(
            (answer.code, bundle.codes()),
            (Some(3), vec!["toolchain_unavailable".to_owned()]),
            "{name}: {answer:?}"
        );
        assert!(
            !bundle.has("backend/stdout.log"),
            "{name}: the engine never started"
        );
        assert_good(&bundle);
    }
}

#[test]
fn inputs_are_read_only_and_never_part_of_the_change() {
    let house = house();
    let case = Case::new("quick")
        .extra("inputs = [\"lib/\"]")
        .file("inputs/lib/data.txt", "from outside\n");
    let case = case.commands("[\"grep -q outside lib/data.txt && grep -qx right answer.txt && grep -qx fine control.txt\"]");
    let tries = shell("echo x > lib/data.txt; echo x > lib/new; rm -rf lib; true");
    let (answer, bundle) = house.run(
        &house.case(&case),
        &script(&[tries, write("answer.txt", "right\n")]),
        &[],
    );
    assert_eq!(
        (answer.code, bundle.report()["changed_files"].clone()),
        (Some(0), serde_json::json!(["answer.txt"])),
        "{answer:?}"
    );
    assert_eq!(
        std::fs::read_to_string(house.root().join("cases/quick/inputs/lib/data.txt")).unwrap(),
        "from outside\n"
    );
    assert_good(&bundle);
    let missing = Case::new("missing").extra("inputs = [\"lib/\"]");
    let (answer, bundle) = house.run(&house.case(&missing), ORACLE, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["toolchain_unavailable".to_owned()]),
        "{answer:?}"
    );
}

#[test]
fn failed_killed_and_silent_engines_never_pass() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let good = write("answer.txt", "right\n");
    for (what, text, code) in [
        ("exit 3", script(&[good.clone(), exit(3)]), "engine_failed"),
        (
            "killed",
            script(&[good.clone(), shell("kill -9 $PPID")]),
            "engine_failed",
        ),
        (
            "silent",
            format!("silent = true\n{good}"),
            "missing_required_event",
        ),
    ] {
        let (answer, bundle) = house.run(&case, &text, &[]);
        assert_eq!(
            (answer.code, bundle.status()),
            (Some(1), "fail".into()),
            "{what}: {answer:?}"
        );
        assert_eq!(bundle.codes(), [code], "{what}");
        assert_good(&bundle);
        if code == "missing_required_event" {
            let detail = bundle.report()["blockers"][0]["detail"].clone();
            assert!(
                detail.as_str().unwrap().contains("engine.result"),
                "the missing event is named: {detail}"
            );
            assert_eq!(bundle.report()["required_events_passed"], false);
        }
    }
}

#[test]
fn nothing_an_engine_left_running_outlives_it() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let text = script(&[
        write("answer.txt", "right\n"),
        shell("sleep 61.25 & exit 0"),
    ]);
    let (answer, _) = house.run(&case, &text, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let alive = || {
        std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\x0061.25\0")
        })
    };
    assert!(
        wait_until(|| !alive()),
        "a child of the engine is still there"
    );
}

#[test]
fn a_known_value_in_the_output_is_redacted_and_fails_the_run() {
    let house = house().with("MY_API_KEY", SECRET);
    let case = house.case(&Case::new("quick"));
    let halves = SECRET.split_at(7);
    let text = script(&[
        write("answer.txt", "right\n"),
        print(&format!("it is {}", halves.0)),
        sleep(30),
        print(&format!("{}\n", halves.1)),
    ]);
    let (answer, bundle) = house.run(&case, &text, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(1), vec!["secret_leak".to_owned()]),
        "{answer:?}"
    );
    assert!(
        bundle
            .text("backend/stdout.log")
            .contains("it is [redacted:known-value]")
    );
    assert!(!bundle.text("backend/stdout.log").contains(SECRET));
    assert_good(&bundle);
}

#[test]
fn an_address_that_is_everybodys_is_no_secret_and_a_private_one_is() {
    let house = house()
        .with("OPENAI_BASE_URL", "http://localhost:18482/v1")
        .with("LAB_BASE_URL", "https://api.openai.com/v1")
        .with("MY_ENDPOINT", "https://gate.corp.example/tenants/acme/v1");
    let plain = house.case(&Case::new("quick"));
    let names_it =
        house.case(&Case::new("named").file("workspace/notes.txt", "at gate.corp.example\n"));
    let adds = |text: &str| {
        script(&[
            write("answer.txt", "right\n"),
            print(&format!("{text}\n")),
            append("answer.txt", &format!("{text}\n")),
        ])
    };
    for (case, text, codes) in [
        (&plain, "localhost:18482 http://localhost:18482/v1", &[][..]),
        (&plain, "https://api.openai.com/v1/responses", &[]),
        (&plain, "127.0.0.1:18482", &[]),
        (&plain, "gate.corp.example", &["secret_leak"]),
        (&plain, "a/tenants/acme/v1/b", &["secret_leak"]),
        (&names_it, "gate.corp.example", &[]),
        (
            &names_it,
            "https://gate.corp.example/tenants/acme/v1",
            &["secret_leak"],
        ),
    ] {
        let (answer, bundle) = house.run(case, &adds(text), &[]);
        assert_eq!(bundle.codes(), codes, "{text}: {answer:?}");
        assert_eq!(
            answer.code,
            Some(u8::from(!codes.is_empty()).into()),
            "{text}"
        );
        let private = text.contains("gate.corp") || text.contains("tenants");
        let log = bundle.text("backend/stdout.log");
        assert_eq!(log.contains("[redacted:endpoint]"), private, "{log}");
        assert_eq!(log.contains(text), !private, "{log}");
        assert_good(&bundle);
    }
}

#[test]
fn engines_and_checks_do_not_inherit_the_environment() {
    let house = house().with("MY_API_KEY", SECRET);
    let case = house.case(&Case::new("quick").commands(
        "[\"test -z \\\"$MY_API_KEY\\\" && test -z \\\"$CTO_STATE_DIR\\\" && grep -qx right answer.txt && grep -qx fine control.txt\"]",
    ));
    let (answer, bundle) = house.run(
        &case,
        &script(&[write("answer.txt", "right\n"), shell("env >&2")]),
        &[],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        bundle.anywhere(SECRET).is_empty(),
        "{:?}",
        bundle.anywhere(SECRET)
    );
}

#[test]
fn a_token_shape_in_a_patch_leaves_a_tombstone() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(
        &case,
        &script(&[write("answer.txt", "right\n"), append("answer.txt", TOKEN)]),
        &[],
    );
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(1), vec!["secret_leak".to_owned()]),
        "{answer:?}"
    );
    assert!(
        bundle
            .text("patch.diff")
            .starts_with("withheld by CTO Harness")
    );
    let holders: Vec<String> = bundle
        .anywhere(TOKEN)
        .into_iter()
        .filter(|name| name != "backend/scratch.tar")
        .collect();
    assert!(holders.is_empty(), "{holders:?}");
    assert_good(&bundle);
}

#[test]
fn a_token_shape_in_the_output_is_only_counted() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(
        &case,
        &script(&[write("answer.txt", "right\n"), print(&format!("{TOKEN}\n"))]),
        &[],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        bundle.event("engine.ended").unwrap()["stdout"]["redactions"],
        1
    );
    assert!(
        bundle
            .text("backend/stdout.log")
            .contains("[redacted:token]")
    );
}

#[test]
fn ctrl_c_seals_an_interrupted_run() {
    for signal in ["-INT", "-TERM"] {
        let house = house();
        let case = house.case(&Case::new("quick"));
        let slow = house.script(
            "slow",
            &script(&[write("answer.txt", "right\n"), sleep(60_000)]),
        );
        let child = house
            .command(&["run", &case, "--script", &slow, "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let started = || {
            house.run_dirs().first().is_some_and(|dir| {
                std::fs::read_to_string(dir.join("events.normalized.jsonl"))
                    .unwrap_or_default()
                    .contains("engine.started")
            })
        };
        assert!(wait_until(started), "the engine never started");
        std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        let answer = Answer::of(&child.wait_with_output().unwrap());
        assert_eq!(answer.code, Some(3), "{answer:?}");
        let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
        assert_eq!(
            (bundle.status(), bundle.codes()),
            ("blocked".into(), vec!["interrupted".to_owned()])
        );
        assert!(house.work_entries().is_empty());
        assert_good(&bundle);
    }
}
