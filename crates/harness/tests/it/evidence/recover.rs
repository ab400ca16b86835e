//! `cto recover`: interrupted runs are closed as blocked, live ones left alone, readers write
//! nothing.

use std::fs;
use std::path::Path;

use cto_harness::host::Home;
use cto_harness::run::recover::recover_all;
use cto_testkit::{Bundle, Case, copy_dir, files_below, script, sleep, wait_until, write};

use crate::assert_good;
use crate::fixtures::bundles::{events, killed_run};
use crate::house;

/// As locks were before they named the program.
const FORMER_LOCK: &str = "{\"boot_id\":\"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\",\"pid\":1}\n";

#[test]
fn an_interrupted_run_is_unknown_until_it_is_closed() {
    let house = house();
    let dir = killed_run(&house);
    let name = dir.file_name().unwrap().to_string_lossy().into_owned();
    let before = files_below(&dir);
    for args in [
        &["verify", &name][..],
        &["show", &name],
        &["verify", "--json"],
        &["show", "--json"],
    ] {
        assert_eq!(house.cto(args).code, Some(3), "{args:?}");
    }
    assert_eq!(
        house.cto(&["runs", "--json"]).json()["runs"][0]["state"],
        "unsealed"
    );
    assert_eq!(files_below(&dir), before, "a reader wrote");

    let answer = house.cto(&["recover"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains(&name) && answer.stdout.contains("interrupted"),
        "{answer:?}"
    );
    let bundle = Bundle::at(&dir);
    assert_eq!(
        (bundle.status(), bundle.codes()),
        ("blocked".into(), vec!["interrupted".to_owned()])
    );
    assert!(bundle.actions().contains(&"run.recover".to_owned()));
    assert!(house.work_entries().is_empty() && !bundle.has(".reserve") && !bundle.has("run.lock"));
    assert_good(&bundle);
    assert_eq!(house.cto(&["verify", &name]).code, Some(0));
    assert!(
        house
            .cto(&["recover"])
            .stdout
            .contains("Nothing to recover")
    );
}

#[test]
fn the_next_run_closes_what_is_listed_as_open() {
    let house = house();
    let dir = killed_run(&house);
    let case = house.case(&Case::new("quick"));
    let answer = house.cto(&["run", &case]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains("closed an interrupted run"),
        "{answer:?}"
    );
    assert_eq!(Bundle::at(&dir).codes(), ["interrupted"]);
    assert_good(&Bundle::at(&dir));
}

#[test]
fn a_live_run_is_live_and_left_alone() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let slow = house.script(
        "slow",
        &script(&[write("answer.txt", "right\n"), sleep(1_500)]),
    );
    let mut child = house.start(&["run", &case, "--script", &slow]);
    let started = || {
        house
            .run_dirs()
            .first()
            .is_some_and(|dir| events(dir).contains("engine.started"))
    };
    assert!(wait_until(started));
    assert_eq!(
        house.cto(&["runs", "--json"]).json()["runs"][0]["state"],
        "live"
    );
    assert!(
        house
            .cto(&["recover"])
            .stdout
            .contains("Nothing to recover")
    );
    assert_eq!(house.cto(&["show", "--json"]).json()["state"], "live");
    assert_eq!(house.cto(&["verify"]).code, Some(3));
    assert_eq!(
        child.wait().unwrap().code(),
        Some(0),
        "the live run was disturbed"
    );
    assert_good(&Bundle::at(house.run_dirs().remove(0)));
}

/// The chain of a whole pass, cut at many lengths, in a run that was never sealed.
#[test]
fn a_chain_cut_anywhere_is_closed_and_never_a_pass() {
    let (house, bundle) = crate::passed();
    let root = house.root().join("cut");
    let chain = bundle.bytes("events.normalized.jsonl");
    let borders: Vec<usize> = chain
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    // Every byte around each line end, and a spread of the rest: a torn line is torn wherever it
    // was cut.
    let near = |at: usize| borders.iter().any(|border| at.abs_diff(*border) <= 1);
    for length in (0..=chain.len()).filter(|at| near(*at) || at % 211 == 0) {
        let home = Home {
            root: root.join("home"),
            runs: root.join("home/runs"),
        };
        home.create().unwrap();
        let dir = home.runs.join(bundle.run_id());
        copy_dir(&bundle.dir, &dir);
        for sealed in ["report.json", "report.md", "SHA256SUMS"] {
            fs::remove_file(dir.join(sealed)).unwrap();
        }
        fs::write(dir.join("run.lock"), FORMER_LOCK).unwrap();
        fs::write(dir.join("events.normalized.jsonl"), &chain[..length]).unwrap();
        let closed = recover_all(&home, &cto_harness::host::Env::default());
        assert!(
            closed.len() == 1 && closed[0].result.is_ok(),
            "{length}: {:?}",
            closed.first().map(|c| &c.result)
        );
        let cut = Bundle::at(&dir);
        assert_good(&cut);
        assert_ne!(cut.status(), "pass", "cut at {length}");
        assert!(
            cut.has_code("interrupted"),
            "cut at {length}: {:?}",
            cut.codes()
        );
        fs::remove_dir_all(&root).unwrap();
    }
}

#[test]
fn damaged_leftovers_are_closed_too() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 9] = [
        ("empty containment", |dir| {
            fs::write(dir.join("containment.json"), "").unwrap()
        }),
        ("torn gates", |dir| {
            fs::write(dir.join("gates.json"), "{\"schema_").unwrap()
        }),
        ("no contract", |dir| {
            fs::remove_file(dir.join("contract.json")).unwrap()
        }),
        ("torn contract", |dir| {
            fs::write(dir.join("contract.json"), "{\"schema_ver").unwrap()
        }),
        ("garbage chain", |dir| {
            fs::write(dir.join("events.normalized.jsonl"), "\u{1}garbage\n").unwrap()
        }),
        ("no chain", |dir| {
            fs::remove_file(dir.join("events.normalized.jsonl")).unwrap()
        }),
        ("torn trace", |dir| {
            fs::write(dir.join("trace.jsonl"), "{\"at_ms\":").unwrap()
        }),
        ("torn report", |dir| {
            fs::write(dir.join(".report.json.tmp"), "{\"status\":\"pass\"").unwrap()
        }),
        ("old sums", |dir| {
            fs::write(dir.join("SHA256SUMS"), "x").unwrap()
        }),
    ];
    let house = house();
    let original = killed_run(&house);
    let saved = house.root().join("saved");
    copy_dir(&original, &saved);
    for (what, damage) in damages {
        fs::remove_dir_all(&original).unwrap();
        copy_dir(&saved, &original);
        damage(&original);
        let answer = house.cto(&["recover"]);
        assert!(!answer.panicked(), "{what}: {answer:?}");
        assert_eq!(answer.code, Some(0), "{what}: {answer:?}");
        let bundle = Bundle::at(&original);
        assert!(
            bundle.status() != "pass" && bundle.has_code("interrupted"),
            "{what}: {:?}",
            bundle.codes()
        );
        assert_good(&bundle);
    }
}

#[test]
fn an_empty_run_directory_is_closed_where_it_is_listed_as_open() {
    let house = house();
    let name = "20200101T000000Z-quick-abcdefgh";
    let dir = house.runs_dir().join(name);
    fs::create_dir_all(&dir).unwrap();
    let answer = house.cto(&["recover", "--json"]);
    assert_eq!(answer.json()["recovered"].as_array().unwrap().len(), 0);
    assert_eq!(
        fs::read_dir(&dir).unwrap().count(),
        0,
        "nothing says it is ours"
    );
    fs::create_dir_all(house.state().join("open")).unwrap();
    fs::write(house.state().join("open").join(name), "").unwrap();
    let answer = house.cto(&["recover", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["recovered"][0]["closed"], true);
    let bundle = Bundle::at(&dir);
    assert_eq!(bundle.codes(), ["interrupted"]);
    assert_good(&bundle);
}

/// Locks and entries that do not name the program yet: closed where they can be nobody else's.
#[test]
fn a_run_that_a_former_version_began_is_closed_too() {
    let house = house();
    let dir = killed_run(&house);
    let entry = house.state().join("open").join(dir.file_name().unwrap());
    let told = fs::read_to_string(&entry).unwrap();
    assert!(told.contains("cto-harness"), "{told}");
    let saved = house.root().join("saved");
    copy_dir(&dir, &saved);
    for (listed, foreign, closed) in [
        (true, false, true),
        (false, false, true),
        (true, true, false),
        (false, true, false),
    ] {
        fs::remove_dir_all(&dir).unwrap();
        copy_dir(&saved, &dir);
        fs::write(dir.join("run.lock"), FORMER_LOCK).unwrap();
        let _ = fs::remove_file(&entry);
        if listed {
            fs::write(&entry, "").unwrap();
        }
        if foreign {
            fs::write(dir.join("notes.txt"), "theirs").unwrap();
        }
        let before = files_below(&dir);
        let answer = house.cto(&["recover", "--json"]);
        let count = answer.json()["recovered"].as_array().unwrap().len();
        assert_eq!(count, usize::from(closed), "{listed} {foreign}: {answer:?}");
        match closed {
            true => {
                assert_good(&Bundle::at(&dir));
                assert!(!entry.exists());
            }
            false => {
                assert_eq!(files_below(&dir), before);
                assert_eq!(entry.exists(), listed);
            }
        }
    }
}

/// However it went, and whether or not the run is still listed as open.
#[test]
fn a_sealed_run_without_its_report_is_named_and_left_as_it_is() {
    let (house, bundle) = crate::passed();
    let report = bundle.dir.join("report.json");
    let away = house.root().join("away.json");
    let entry = house.state().join("open").join(bundle.run_id());
    let listed = format!(
        "{{\"program\":\"cto-harness\",\"run_id\":\"{}\"}}\n",
        bundle.run_id()
    );
    for (what, note) in [
        ("not listed", None),
        ("listed by its name", Some(listed.as_str())),
        ("listed without a name", Some("")),
    ] {
        fs::rename(&report, &away).unwrap();
        if let Some(note) = note {
            fs::write(&entry, note).unwrap();
        }
        let before = files_below(&bundle.dir);
        let answer = house.cto(&["recover"]);
        assert_eq!(answer.code, Some(70), "{what}: {answer:?}");
        assert!(
            answer.stdout.contains("NOT CLOSED")
                && answer.stdout.contains(&bundle.run_id())
                && answer.stdout.contains("its report.json is gone")
                && !answer.stdout.contains("Nothing to recover"),
            "{what}: {answer:?}"
        );
        let rows = house.cto(&["recover", "--json"]).json()["recovered"].clone();
        assert_eq!(
            (rows.as_array().unwrap().len(), &rows[0]["closed"]),
            (1, &false.into()),
            "{what}: {rows}"
        );
        // The next run names no run that is not open, and leaves this one alone too.
        let case = house.case(&Case::new("next"));
        assert_eq!(house.cto(&["run", &case]).code, Some(0), "{what}");
        for word in ["show", "replay", "verify"] {
            let told = house.cto(&[word, &bundle.run_id()]);
            assert_eq!(told.code, Some(3), "{what}: {told:?}");
        }
        assert_eq!(files_below(&bundle.dir), before, "{what}");

        fs::rename(&away, &report).unwrap();
        let answer = house.cto(&["recover"]);
        assert!(
            answer.stdout.contains("Nothing to recover"),
            "{what}: {answer:?}"
        );
        assert!(!entry.exists(), "{what}");
        assert_good(&bundle);
    }
}

#[test]
fn a_run_of_a_newer_harness_is_left_to_it() {
    let house = house();
    let dir = killed_run(&house);
    let events = Bundle::at(&dir).events();
    let contract =
        cto_core::values::digest::Digest::of(&fs::read(dir.join("contract.json")).unwrap());
    let start = cto_testkit::chain_start(
        &dir.file_name().unwrap().to_string_lossy(),
        &contract.to_hex(),
    );
    let mut edited = events;
    edited[0]["data"]["rules"] = 1000.into();
    fs::write(
        dir.join("events.normalized.jsonl"),
        cto_testkit::chained(&start, &edited).0,
    )
    .unwrap();
    // The lock is no evidence: whoever looks takes it.
    let evidence = || {
        files_below(&dir)
            .into_iter()
            .filter(|(name, _)| name != "run.lock")
            .collect::<Vec<_>>()
    };
    let before = evidence();
    let answer = house.cto(&["recover"]);
    assert!(
        answer.stdout.contains("a newer cto began this run")
            || answer.stderr.contains("a newer cto"),
        "{answer:?}"
    );
    assert_eq!(evidence(), before, "it was touched all the same");
}
