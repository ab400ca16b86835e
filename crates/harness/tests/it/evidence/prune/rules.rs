//! Which runs a prune takes: it shows before it acts, and every rule counts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cto_testkit::{Answer, files_below};
use serde_json::json;

use super::{three, went};
use crate::fixtures::bundles::ids;
use crate::passed;

#[test]
fn nothing_goes_unless_told_and_then_exactly_what_was_shown() {
    let (house, bundle) = passed();
    let old = three(&house, &bundle);
    let before = files_below(&house.runs_dir());
    let shown = house.cto(&["runs", "prune", "--older-than", "30d", "--json"]);
    assert_eq!(went(&shown), old);
    assert_eq!(
        (&shown.json()["dry_run"], &shown.json()["total"]),
        (&json!(true), &json!(4))
    );
    let text = house.cto(&["runs", "prune", "--older-than", "30d"]);
    assert_eq!(text.code, Some(0));
    for want in ["3 of 4 runs would go", "--yes", &old[0]] {
        assert!(text.stdout.contains(want), "{want}: {}", text.stdout);
    }
    assert_eq!(
        files_below(&house.runs_dir()),
        before,
        "a look removed something"
    );

    let done = house.cto(&["runs", "prune", "--older-than", "30d", "--yes", "--json"]);
    assert_eq!(
        (went(&done), &done.json()["dry_run"]),
        (old.to_vec(), &json!(false))
    );
    assert!(
        done.json()["runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["removed"] == true)
    );
    assert_eq!(ids(&house.cto(&["runs", "--json"])), [bundle.run_id()]);
    assert_eq!(house.cto(&["verify", "last"]).code, Some(0));
    assert!(
        house.work_entries().is_empty(),
        "{:?}",
        house.work_entries()
    );
    assert!(
        house
            .cto(&["runs", "prune", "--older-than", "30d"])
            .stdout
            .contains("Nothing to remove")
    );
}

#[test]
fn every_rule_and_their_sum() {
    let (house, bundle) = passed();
    let old = three(&house, &bundle);
    let all: Vec<String> = old.iter().cloned().chain([bundle.run_id()]).collect();
    let size = |at: &Path| fs::symlink_metadata(at).unwrap().blocks() * 512;
    let bytes = |answer: &Answer| answer.json()["bytes"].as_u64().unwrap();
    let one = house.runs_dir().join(&old[0]);
    let files = ["report.json", "SHA256SUMS", "attestation.json"];
    let one = size(&one) + files.iter().map(|name| size(&one.join(name))).sum::<u64>();
    let total = bytes(&house.cto(&["runs", "prune", "--keep-last", "9", "--json"]));
    let table: Vec<(Vec<String>, &[String])> = vec![
        (vec!["--keep-last".into(), "2".into()], &all[..2]),
        (vec!["--status".into(), "fail".into()], &old[1..2]),
        (vec!["--status".into(), "blocked".into()], &[]),
        (vec!["--max-size".into(), format!("{total}")], &[]),
        (
            vec!["--max-size".into(), format!("{}", total - 1)],
            &old[..1],
        ),
        (
            vec!["--max-size".into(), format!("{}", total - one - 1)],
            &old[..2],
        ),
        (vec!["--max-size".into(), "0".into()], &all),
        (
            vec![
                "--max-size".into(),
                "0".into(),
                "--keep-last".into(),
                "1".into(),
            ],
            &old,
        ),
        (
            vec![
                "--older-than".into(),
                "1w".into(),
                "--status".into(),
                "pass".into(),
                "--keep-last".into(),
                "2".into(),
            ],
            &old[..1],
        ),
    ];
    for (rules, want) in table {
        let args: Vec<&str> = ["runs", "prune", "--json"]
            .into_iter()
            .chain(rules.iter().map(String::as_str))
            .collect();
        assert_eq!(went(&house.cto(&args)), want, "{rules:?}");
    }
    for (args, want) in [
        (&[][..], "no rule given"),
        (&["--yes"], "no rule given"),
        (&["--older-than", "soon"], "7d"),
        (&["--max-size", "5GB"], "5G"),
        (&["--status", "old"], "blocked"),
        (&["--keep-last", "-1"], "-1"),
    ] {
        let answer = house.cto(&[&["runs", "prune"], args].concat());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        assert!(answer.stderr.contains(want), "{args:?}: {}", answer.stderr);
    }
    assert_eq!(ids(&house.cto(&["runs", "--json"])).len(), 4);
}
