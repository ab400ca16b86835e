//! Bundles of every released format and of every set of rules, as they were written: they verify
//! for ever.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::verify::{Standing, Verification};
use cto_testkit::Bundle;

/// Where a bundle lies, its verdict, and its blockers in the report's order.
type Row = (&'static str, &'static str, &'static [&'static str]);

/// Bundles judged by rules 1.
const RULES1: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    // The gate of the engine closed, the proof of stage 1, the baseline, and the run whose provider
    // failed.
    (
        "provider-failure/20261115T205833Z-r1-string-slugify-2xzt3wew",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261115T205833Z-r1-string-slugify-4q24yuay",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261115T205834Z-quick-cr2fut9c",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261115T205834Z-quick-ktn2r33h",
        "fail",
        &["provider_unavailable", "engine_failed"],
    ),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    (
        "source-changed-meanwhile",
        "fail",
        &["source_repository_mutated"],
    ),
    // The same before it, and the proof of stage 2.
    (
        "stage2/20261115T205830Z-r1-string-slugify-u3xcx4xh",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261115T205830Z-r1-string-slugify-vffa78v2",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261115T205831Z-quick-uxtwcy3n", "pass", &[]),
    ("stage2/20261115T205832Z-quick-5jvsti9y", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

/// Bundles judged by rules 2, of the same kinds.
const RULES2: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    // Since rules 3 its baseline is asked first.
    ("no-program", "fail", &["verification_failed"]),
    (
        "provider-failure/20261116T035043Z-r1-string-slugify-pbd2wzfd",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261116T035043Z-r1-string-slugify-s4tpzzr3",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261116T035045Z-quick-xgugys6h",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261116T035046Z-quick-3s63r6pi",
        "fail",
        &["provider_unavailable", "engine_failed"],
    ),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    (
        "source-changed-meanwhile",
        "fail",
        &["source_repository_mutated"],
    ),
    (
        "stage2/20261116T035040Z-r1-string-slugify-pwy4t26k",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261116T035040Z-r1-string-slugify-sk2u53k3",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261116T035042Z-quick-qk5ii4cw", "pass", &[]),
    ("stage2/20261116T035043Z-quick-2kfyfrgt", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

/// Bundles judged by rules 3, of the same kinds.
const RULES3: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    ("no-program", "blocked", &["toolchain_unavailable"]),
    // Since rules 4 its last words are heard.
    ("no-program-behind-make", "fail", &["verification_failed"]),
    (
        "provider-failure/20261116T070445Z-r1-string-slugify-hgysgf58",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261116T070445Z-r1-string-slugify-mi2aiu3u",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261116T070449Z-quick-n53j8tbe",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261116T070450Z-quick-6s3h9mq5",
        "fail",
        &["provider_unavailable", "engine_failed"],
    ),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    (
        "source-changed-meanwhile",
        "fail",
        &["source_repository_mutated"],
    ),
    (
        "stage2/20261116T070438Z-r1-string-slugify-hj97xe6f",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261116T070438Z-r1-string-slugify-kmegzi57",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261116T070442Z-quick-wgsmf5gv", "pass", &[]),
    ("stage2/20261116T070443Z-quick-mfexb78m", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

/// Bundles judged by rules 4, of the same kinds.
const RULES4: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    // Since rules 5 the list has to ask for the module.
    ("no-module", "blocked", &["toolchain_unavailable"]),
    ("no-program", "blocked", &["toolchain_unavailable"]),
    (
        "no-program-behind-make",
        "blocked",
        &["toolchain_unavailable"],
    ),
    (
        "provider-failure/20261116T102832Z-r1-string-slugify-by5gxvs6",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261116T102832Z-r1-string-slugify-i2xpze72",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261116T102836Z-quick-tkmbwrqh",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261116T102837Z-quick-y4bkh2n8",
        "fail",
        &["provider_unavailable", "engine_failed"],
    ),
    ("relied-baseline", "pass", &[]),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    (
        "source-changed-meanwhile",
        "fail",
        &["source_repository_mutated"],
    ),
    (
        "stage2/20261116T102824Z-r1-string-slugify-gxufpivd",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261116T102824Z-r1-string-slugify-jug4ebkd",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261116T102829Z-quick-5besxrgu", "pass", &[]),
    ("stage2/20261116T102830Z-quick-4uhkx9rx", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

/// Bundles judged by rules 5, of the same kinds.
const RULES5: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    // The list does not ask for the module.
    ("no-module", "fail", &["verification_failed"]),
    ("no-program", "blocked", &["toolchain_unavailable"]),
    (
        "no-program-behind-make",
        "blocked",
        &["toolchain_unavailable"],
    ),
    (
        "provider-failure/20261116T134458Z-r1-string-slugify-5hra6z3d",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261116T134458Z-r1-string-slugify-6g6pwsrq",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261116T134459Z-quick-spvkspfq",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261116T134459Z-quick-yv5nqc2k",
        "fail",
        &["provider_unavailable", "engine_failed"],
    ),
    ("relied-baseline", "pass", &[]),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    (
        "source-changed-meanwhile",
        "fail",
        &["source_repository_mutated"],
    ),
    (
        "stage2/20261116T134455Z-r1-string-slugify-th24dwr9",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261116T134455Z-r1-string-slugify-ucdzhd8m",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261116T134457Z-quick-h6ct48dx", "pass", &[]),
    ("stage2/20261116T134457Z-quick-nim64ffy", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

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
fn assert_as_sealed(folder: &str, rules: u32, rows: &[Row]) {
    let folder = root().join(folder);
    assert_eq!(
        bundles(&folder),
        rows.iter()
            .map(|(name, _, _)| (*name).to_owned())
            .collect::<BTreeSet<String>>()
    );
    for (name, status, codes) in rows {
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
        BTreeSet::from(["rules1", "rules2", "rules3", "rules4", "rules5", "v1"].map(str::to_owned))
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
    assert_as_sealed("rules1", 1, RULES1);
}

/// Under these, nothing is left that is not computed from the bundle itself.
fn assert_computed(folder: &str, rules: u32, renderer: u32, rows: &[Row]) {
    assert_as_sealed(folder, rules, rows);
    for (name, _, _) in rows {
        let found = verified(&root().join(folder).join(name), rules);
        assert_eq!(found.not_re_derived, [], "{name}");
        let report = Bundle::at(root().join(folder).join(name)).report();
        assert_eq!(report["report_renderer"], renderer, "{name}");
    }
}

#[test]
fn golden_bundles_of_rules_two_verify() {
    assert_computed("rules2", 2, 3, RULES2);
}

#[test]
fn golden_bundles_of_rules_three_verify() {
    assert_computed("rules3", 3, 4, RULES3);
}

#[test]
fn golden_bundles_of_rules_four_verify() {
    assert_computed("rules4", 4, 5, RULES4);
}

#[test]
fn golden_bundles_of_rules_five_verify() {
    assert_computed("rules5", 5, 5, RULES5);
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
