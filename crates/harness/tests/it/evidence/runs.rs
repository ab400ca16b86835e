//! `cto runs`: the list, newest first, every filter, with what is not a result shown as such. Each
//! question is asked twice, through the index and past it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use cto_testkit::{Bundle, Case, House, ORACLE, is_root, script, skip, sleep, wait_until, write};
use serde_json::{Value, json};

use crate::fixtures::bundles::{block_index, ids};
use crate::house;
use crate::passed;

#[test]
fn an_empty_house_says_what_to_type() {
    let house = house();
    let answer = house.cto(&["runs"]);
    assert_eq!(answer.code, Some(0));
    assert!(
        answer.stdout.contains("No runs yet") && answer.stdout.contains("run"),
        "{answer:?}"
    );
    assert_eq!(house.cto(&["runs", "--json"]).json()["total"], 0);
    assert!(!house.state().exists(), "listing wrote state");
}

#[test]
fn newest_first_and_limited() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    for _ in 0..3 {
        house.run(&case, ORACLE, &[]);
    }
    let json = house.cto(&["runs", "-n", "2", "--json"]).json();
    assert_eq!(
        (
            json["total"].as_u64(),
            json["runs"].as_array().unwrap().len()
        ),
        (Some(3), 2)
    );
    let text = house.cto(&["runs", "-n", "2"]);
    assert_eq!(text.stdout.lines().count(), 2);
    assert!(text.stderr.contains("1 more"), "{text:?}");
}

#[test]
fn what_is_no_result_is_not_shown_as_one() {
    let (house, bundle) = passed();
    fs::create_dir(house.runs_dir().join("20200101T000000Z-quick-abcdefgh")).unwrap();
    let broken = house.runs_dir().join("20200101T000001Z-quick-abcdefgh");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("report.json"), "{\"status\": \"pass\"}").unwrap();
    let other = house.runs_dir().join("20200101T000002Z-quick-abcdefgh");
    fs::create_dir(&other).unwrap();
    fs::copy(bundle.dir.join("report.json"), other.join("report.json")).unwrap();
    fs::create_dir(house.runs_dir().join("not a run")).unwrap();
    let json = house.cto(&["runs", "--json"]).json();
    let rows: Vec<(String, bool)> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["state"].as_str().unwrap().to_owned(),
                row.get("status").is_some(),
            )
        })
        .collect();
    let want = [
        ("sealed", true),
        ("unreadable", false),
        // Nothing in them says that they are ours.
        ("foreign", false),
        ("foreign", false),
    ];
    assert_eq!(rows, want.map(|(state, has)| (state.to_owned(), has)));
    assert_eq!(
        json["runs"][1]["unreadable_because"],
        "its report is of another run"
    );
    let text = house.cto(&["runs"]).stdout;
    assert!(
        text.contains("another program's") && text.contains(&bundle.run_id()),
        "{text}"
    );
}

/// Every part of a row that a program may rely on.
#[test]
fn a_row_keeps_its_shape() {
    let (house, bundle) = passed();
    let report = bundle.report();
    let row = house.cto(&["runs", "--json"]).json()["runs"][0].clone();
    let mut keys: Vec<&str> = row
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    let want = "blockers bundle case_id duration_ms engine failure_reason finished_at kind origin run_id stage started_at state status";
    assert_eq!(keys.join(" "), want);
    for (ours, theirs) in [
        ("case_id", "case_id"),
        ("engine", "backend"),
        ("failure_reason", "failure_reason"),
        ("finished_at", "run_finished_at"),
        ("kind", "kind"),
        ("origin", "origin"),
        ("run_id", "run_id"),
        ("stage", "stage"),
        ("started_at", "run_started_at"),
        ("status", "status"),
    ] {
        assert_eq!(row[ours], report[theirs], "{ours}");
    }
    assert_eq!(row["bundle"], bundle.dir.display().to_string());
}

/// Six runs that differ in everything a filter asks for, and one that was never sealed.
fn varied(house: &House, like: &Bundle) {
    let blocker = |codes: &[&str]| -> Value {
        codes
            .iter()
            .map(|code| json!({"code": code, "message": "m", "event": null}))
            .collect::<Vec<_>>()
            .into()
    };
    let plant = |id: &str, fields: &[(&str, Value)]| {
        house.plant(like, id, |report| {
            fields
                .iter()
                .for_each(|(key, value)| report[*key] = value.clone())
        });
    };
    plant(
        "20260101T000000Z-alpha-aaaa2222",
        &[("origin", "ci".into())],
    );
    plant(
        "20260101T235959Z-beta-aaaa2222",
        &[
            ("status", "fail".into()),
            ("blockers", blocker(&["no_diff", "secret_leak"])),
        ],
    );
    plant(
        "20260102T120000Z-alpha-aaaa2222",
        &[
            ("status", "fail".into()),
            ("blockers", blocker(&["verification_failed"])),
        ],
    );
    plant(
        "20260102T120000Z-alpha-aaaa3333",
        &[
            ("backend", "codex".into()),
            ("stage", 1.into()),
            ("status", "blocked".into()),
            ("blockers", blocker(&["engine_gate_closed"])),
        ],
    );
    plant(
        "20260103T000000Z-beta-aaaa2222",
        &[("origin", "validator".into()), ("stage", 3.into())],
    );
    plant(
        "20260104T000000Z-gamma-aaaa2222",
        &[("backend", "codex".into())],
    );
    fs::create_dir(house.runs_dir().join("20260105T000000Z-alpha-aaaa2222")).unwrap();
    fs::remove_dir_all(&like.dir).unwrap();
}

/// Filters, and the last parts of the days they let through (`x` for a second run of a day).
const FILTERS: [(&[&str], &str); 28] = [
    (&[], "5 4 3 2x 2 1y 1"),
    (&["--status", "pass"], "4 3 1"),
    (&["--status", "fail"], "2 1y"),
    (&["--status", "blocked"], "2x"),
    (&["--engine", "codex"], "4 2x"),
    (&["--engine", "fake"], "3 2 1y 1"),
    (&["--engine", "nobody"], ""),
    (&["--case", "alpha"], "5 2x 2 1"),
    (&["--case", "alph"], ""),
    (&["--blocker", "no_diff"], "1y"),
    (&["--blocker", "secret_leak"], "1y"),
    (&["--blocker", "verification_failed"], "2"),
    (&["--blocker", "timeout"], ""),
    (&["--stage", "1"], "2x"),
    (&["--stage", "3"], "3"),
    (&["--origin", "ci"], "1"),
    (&["--origin", "validator"], "3"),
    (&["--origin", "operator"], "4 2x 2 1y"),
    (&["--since", "2026-01-03"], "5 4 3"),
    (&["--since", "2026-01-02T12:00:00Z"], "5 4 3 2x 2"),
    (&["--since", "2026-01-02T14:00:01+02:00"], "5 4 3"),
    (&["--until", "2026-01-01"], "1y 1"),
    (&["--until", "2026-01-01T23:59:58Z"], "1"),
    (
        &["--since", "2026-01-01T12:00:00Z", "--until", "2026-01-02"],
        "2x 2 1y",
    ),
    (&["--since", "1s"], ""),
    (&["--until", "0s", "--case", "gamma"], "4"),
    (
        &[
            "--status", "fail", "--case", "alpha", "--stage", "2", "--engine", "fake",
        ],
        "2",
    ),
    (
        &[
            "--status",
            "fail",
            "--case",
            "beta",
            "--blocker",
            "verification_failed",
        ],
        "",
    ),
];

#[test]
fn every_filter_alone_and_together_with_the_index_and_without() {
    let (house, bundle) = passed();
    varied(&house, &bundle);
    let short = |id: &String| {
        match id.as_str() {
            "20260101T235959Z-beta-aaaa2222" => "1y",
            "20260102T120000Z-alpha-aaaa3333" => "2x",
            id => &id[7..8],
        }
        .to_owned()
    };
    for way in ["through the index", "past the index"] {
        if way == "past the index" {
            block_index(&house);
        }
        for (filter, want) in FILTERS {
            let answer = house.cto(&[&["runs", "--json"], filter].concat());
            assert_eq!(
                answer.stderr.contains("is not an index"),
                way == "past the index",
                "{answer:?}"
            );
            let found: Vec<String> = ids(&answer).iter().map(short).collect();
            assert_eq!(found.join(" "), want, "{filter:?} {way}");
            assert_eq!(answer.json()["total"], found.len(), "{filter:?} {way}");
            let limited = house.cto(&[&["runs", "--json", "-n", "1"], filter].concat());
            assert_eq!(
                limited.json()["total"],
                found.len(),
                "{filter:?} {way}, limited"
            );
            assert_eq!(
                ids(&limited).iter().map(short).collect::<Vec<_>>(),
                found[..found.len().min(1)],
                "{filter:?} {way}"
            );
        }
    }
    assert!(
        house
            .cto(&[
                "runs", "--status", "pass", "--case", "alpha", "--stage", "6"
            ])
            .stdout
            .contains("No run matches")
    );
}

#[test]
fn what_cannot_be_asked_is_a_mistake_not_an_empty_list() {
    let house = house();
    for (args, want) in [
        (&["--status", "good"][..], "blocked"),
        (&["--blocker", "timeou"], "timeout"),
        (&["--blocker", ""], "docs/blockers.md"),
        (&["--stage", "7"], "1 to 6"),
        (&["--stage", "x"], "--stage"),
        (&["--origin", "me"], "validator"),
        (&["--engine", "No Engine"], "lower-case"),
        (&["--case", "../x"], "lower-case"),
        (&["--since", "yesterday"], "7d"),
        (&["--until", "2026-02-30"], "2026-01-31"),
        (&["-n", "-1"], "-1"),
    ] {
        let answer = house.cto(&[&["runs"], args].concat());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        assert!(answer.stderr.contains(want), "{args:?}: {}", answer.stderr);
    }
}

#[test]
fn a_live_run_becomes_a_sealed_one_without_a_new_name() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let slow = house.script(
        "slow",
        &script(&[write("answer.txt", "right\n"), sleep(1_500)]),
    );
    let mut child = house.start(&["run", &case, "--script", &slow]);
    let state = || house.cto(&["runs", "--json"]).json()["runs"][0]["state"].clone();
    assert!(wait_until(|| state() == "live"), "never live: {}", state());
    assert!(
        ids(&house.cto(&["runs", "--json", "--status", "pass"])).is_empty(),
        "no verdict yet"
    );
    assert_eq!(
        ids(&house.cto(&["runs", "--json", "--case", "quick"])).len(),
        1
    );
    assert!(child.wait().unwrap().success());
    assert_eq!(state(), "sealed");
    assert_eq!(
        ids(&house.cto(&["runs", "--json", "--status", "pass"])).len(),
        1
    );
}

#[test]
fn a_hostile_report_reaches_no_terminal_raw() {
    let (house, bundle) = passed();
    house.plant(&bundle, "20200101T000000Z-quick-aaaa2222", |report| {
        report["status"] = "fail".into();
        report["failure_reason"] = "\u{1b}[2Jgone\nnext".into();
    });
    let text = house.cto(&["runs"]).stdout;
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        !text.contains('\u{1b}') && text.contains("gone"),
        "{text:?}"
    );
}

#[test]
fn an_odd_runs_root_is_read_or_refused_but_never_called_empty() {
    let (house, bundle) = passed();
    let at = |name: &str| house.root().join(name).display().to_string();
    symlink(house.runs_dir(), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::write(at("file"), "").unwrap();
    let listed = house.cto(&["runs", "--json", "--runs-dir", &at("link")]);
    assert_eq!(ids(&listed), [bundle.run_id()]);
    assert_eq!(
        house
            .cto(&["runs", "--json", "--runs-dir", &at("missing")])
            .json()["total"],
        0
    );
    let mut refused = vec!["file", "dangling"];
    if !is_root() {
        fs::create_dir(at("closed")).unwrap();
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        refused.push("closed");
    } else {
        skip("a closed runs root and a closed bundle: root may read everything");
    }
    for name in refused {
        for args in [
            &["runs", "--json"][..],
            &["show", "last", "--json"],
            &["runs", "prune", "--keep-last", "1", "--json"],
        ] {
            let answer = house.cto(&[args, &["--runs-dir", &at(name)]].concat());
            assert_eq!(answer.code, Some(2), "{name} {args:?}: {answer:?}");
            assert_eq!(
                answer.json()["error"]["code"],
                "unreadable_runs_root",
                "{name} {args:?}"
            );
        }
    }
    if !is_root() {
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        // A bundle that may not be looked into is not one that was never sealed.
        fs::set_permissions(&bundle.dir, fs::Permissions::from_mode(0o000)).unwrap();
        let state = house.cto(&["runs", "--json"]).json()["runs"][0]["state"].clone();
        let verified = house.cto(&["verify", "--all"]);
        fs::set_permissions(&bundle.dir, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(state, "unreadable");
        assert_eq!(verified.code, Some(3), "passed over: {verified:?}");
    }
}

#[test]
fn strays_in_the_runs_root_are_no_runs() {
    let (house, bundle) = passed();
    let runs = house.runs_dir();
    fs::write(
        runs.join("20200101T000000Z-quick-abcdefgh"),
        "a file named like a run",
    )
    .unwrap();
    symlink("/nonexistent", runs.join("20200101T000001Z-quick-abcdefgh")).unwrap();
    fs::create_dir(runs.join(std::ffi::OsStr::from_bytes(
        b"20200101T000002Z-qu\xffck-abcdefgh",
    )))
    .unwrap();
    fs::create_dir(runs.join("20200101T000003Z-QUICK-abcdefgh")).unwrap();
    fs::create_dir(runs.join("-n")).unwrap();
    fs::write(runs.join("notes\n.txt"), "").unwrap();
    assert_eq!(ids(&house.cto(&["runs", "--json"])), [bundle.run_id()]);
    block_index(&house);
    assert_eq!(
        ids(&house.cto(&["runs", "--json"])),
        [bundle.run_id()],
        "past the index"
    );
    assert!(
        house
            .cto(&["show", "last"])
            .stdout
            .contains(&bundle.run_id())
    );
}

/// Somebody keeps old bundles on another disk and leaves links: they are listed, and looked at
/// every time.
#[test]
fn a_linked_bundle_is_listed_and_followed() {
    let (house, bundle) = passed();
    let id = "20200101T000000Z-quick-aaaa2222";
    let elsewhere = house.root().join("archive").join(id);
    let planted = house.plant(&bundle, id, |_| {});
    fs::create_dir(house.root().join("archive")).unwrap();
    fs::rename(&planted, &elsewhere).unwrap();
    symlink(&elsewhere, house.runs_dir().join(id)).unwrap();
    assert_eq!(
        ids(&house.cto(&["runs", "--json", "--status", "pass"])),
        [bundle.run_id(), id.to_owned()]
    );
    let report = fs::read_to_string(elsewhere.join("report.json")).unwrap();
    fs::write(
        elsewhere.join("report.json"),
        report.replace("\"status\": \"pass\"", "\"status\": \"fail\""),
    )
    .unwrap();
    assert_eq!(
        ids(&house.cto(&["runs", "--json", "--status", "fail"])).len(),
        0
    );
    let rows = house.cto(&["runs", "--json"]).json();
    assert_eq!(rows["runs"][1]["state"], "broken", "{rows}");
}

/// A part of an id, and `last`, are found among names alone, however odd their neighbours.
#[test]
fn runs_are_found_by_part_and_as_the_last() {
    let (house, bundle) = passed();
    house.plant(&bundle, "20200101T000000Z-quick-zzzz2222", |_| {});
    house.plant(&bundle, "20990101T000000Z-quick-aaaa2222", |_| {});
    house.plant(&bundle, "20990101T000000Z-alpha-aaaa3333", |_| {});
    fs::write(
        house.runs_dir().join("20990101T000001Z-quick-a-file2222"),
        "",
    )
    .unwrap();
    let shown =
        |name: &str| house.cto(&["show", name, "--json"]).json()["report"]["run_id"].clone();
    assert_eq!(shown("last"), "20990101T000000Z-alpha-aaaa3333");
    assert_eq!(shown("zzzz"), "20200101T000000Z-quick-zzzz2222");
    assert_eq!(
        house.cto(&["show", "20990101T000000Z"]).code,
        Some(2),
        "two match"
    );
}
