//! Bundles of every released format and of every set of rules, as they were written: they verify
//! for ever.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::verify::{Standing, Verification};
use cto_testkit::Bundle;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Every folder of golden bundles.
fn folders() -> BTreeSet<String> {
    let entries = fs::read_dir(root()).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Every bundle below a folder, by its path there. One that stands on others lies beside them, all
/// under their run ids.
fn bundles(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        assert!(path.is_dir(), "{} is no bundle", path.display());
        if path.join("report.json").is_file() {
            found.insert(name);
        } else {
            found.extend(
                bundles(&path)
                    .into_iter()
                    .map(|inner| format!("{name}/{inner}")),
            );
        }
    }
    found
}

/// Where a bundle of one folder lies, its verdict, and its blockers in the order of the report.
struct Row {
    name: &'static str,
    status: &'static str,
    codes: Vec<&'static str>,
}

fn rows(folder: &str) -> Vec<Row> {
    let lines = include_str!("verdicts.txt").lines();
    let row = |line: &'static str| {
        let (place, words) = line.split_once(' ')?;
        let name = place.strip_prefix(folder)?.strip_prefix('/')?;
        let mut words = words.split(' ');
        Some(Row {
            name,
            status: words.next()?,
            codes: words.collect(),
        })
    };
    lines.filter_map(row).collect()
}

/// As `cto verify` sees it, trusting the key of golden bundles alone.
fn verified(dir: &Path, rules: u32) -> Verification {
    let key = fs::read_to_string(root().join("test-key.pem")).unwrap();
    let mut trust = Trust::default();
    trust.named(
        &PublicKey::from_text(&key).unwrap(),
        "the key of golden bundles",
    );
    let found = cto_harness::bundles::verifier::verify_dir(dir, &trust).unwrap();
    assert_eq!(
        found.standing,
        Standing::Good,
        "{}: {found:?}",
        dir.display()
    );
    assert_eq!(
        found.rules.map(|rules| rules.0),
        Some(rules),
        "{}",
        dir.display()
    );
    found
}

/// A folder holds these bundles and no other, and each is still what it was.
fn assert_as_sealed(folder: &str, rules: u32) {
    let rows = rows(folder);
    let folder = root().join(folder);
    assert_eq!(
        bundles(&folder),
        rows.iter()
            .map(|row| row.name.to_owned())
            .collect::<BTreeSet<String>>()
    );
    for Row {
        name,
        status,
        codes,
    } in &rows
    {
        let found = verified(&folder.join(name), rules);
        assert_eq!(found.status.unwrap().as_str(), *status, "{name}");
        let bundle = Bundle::at(folder.join(name));
        assert_eq!(bundle.status(), *status, "{name}");
        assert_eq!(bundle.codes(), *codes, "{name}");
    }
}

#[test]
fn every_folder_of_golden_bundles_has_a_test() {
    assert_eq!(
        folders(),
        BTreeSet::from(
            [
                "rules1", "rules2", "rules3", "rules4", "rules5", "rules6", "rules7", "rules8",
                "rules9", "v1"
            ]
            .map(str::to_owned)
        )
    );
}

#[test]
fn golden_bundles_of_format_one_verify() {
    let folder = root().join("v1");
    let names = bundles(&folder);
    assert_eq!(
        names,
        BTreeSet::from(["blocked", "fail", "pass"].map(str::to_owned))
    );
    for name in names {
        // The directory is named after the verdict its bundle bears.
        let found = verified(&folder.join(&name), 1);
        assert_eq!(found.status.unwrap().as_str(), name);
    }
}

#[test]
fn golden_bundles_of_rules_one_verify() {
    assert_as_sealed("rules1", 1);
}

/// Under these, nothing is left that is not computed from the bundle itself.
fn assert_computed(folder: &str, rules: u32, renderer: u32) {
    assert_as_sealed(folder, rules);
    for Row { name, .. } in &rows(folder) {
        let found = verified(&root().join(folder).join(name), rules);
        assert_eq!(found.not_re_derived, [], "{name}");
        let report = Bundle::at(root().join(folder).join(name)).report();
        assert_eq!(report["report_renderer"], renderer, "{name}");
    }
}

#[test]
fn golden_bundles_of_rules_two_verify() {
    assert_computed("rules2", 2, 3);
}

#[test]
fn golden_bundles_of_rules_three_verify() {
    assert_computed("rules3", 3, 4);
}

#[test]
fn golden_bundles_of_rules_four_verify() {
    assert_computed("rules4", 4, 5);
}

#[test]
fn golden_bundles_of_rules_five_verify() {
    assert_computed("rules5", 5, 5);
}

#[test]
fn golden_bundles_of_rules_six_verify() {
    assert_computed("rules6", 6, 6);
}

#[test]
fn golden_bundles_of_rules_seven_verify() {
    assert_computed("rules7", 7, 7);
}

#[test]
fn golden_bundles_of_rules_eight_verify() {
    assert_computed("rules8", 8, 8);
}

#[test]
fn golden_bundles_of_rules_nine_verify() {
    assert_computed("rules9", 9, 9);
}

/// The script for people without `cto` finds them whole and signed.
#[test]
fn golden_bundles_verify_without_cto() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/verify.py");
    for folder in folders() {
        let folder = root().join(folder);
        for name in bundles(&folder) {
            let mut command = Command::new("python3");
            command
                .arg("-I")
                .arg(&script)
                .arg("--key")
                .arg(root().join("test-key.pem"))
                .arg(folder.join(&name));
            let out = command.output().unwrap();
            let said = String::from_utf8_lossy(&out.stdout);
            assert!(
                out.status.success() && said.starts_with("GOOD "),
                "{name}: {out:?}"
            );
        }
    }
}
