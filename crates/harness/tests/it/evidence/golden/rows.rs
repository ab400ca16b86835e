//! What every golden bundle is: where it lies, its verdict, its blockers.

/// Where a bundle lies, its verdict, and its blockers in the report's order.
pub type Row = (&'static str, &'static str, &'static [&'static str]);

/// Bundles judged by rules 1.
pub const RULES1: &[Row] = &[
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
pub const RULES2: &[Row] = &[
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
pub const RULES3: &[Row] = &[
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
pub const RULES4: &[Row] = &[
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
pub const RULES5: &[Row] = &[
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

/// How far a green is believed, and what no check noticed.
pub const RULES6: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    ("no-module", "fail", &["verification_failed"]),
    (
        "no-program-behind-make",
        "blocked",
        &["toolchain_unavailable"],
    ),
    ("no-program", "blocked", &["toolchain_unavailable"]),
    ("node-changed-test", "pass", &[]),
    (
        "not-checked",
        "blocked",
        &["change_not_checked", "verification_unproven"],
    ),
    (
        "provider-failure/20261116T182235Z-r1-string-slugify-hkmi3324",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261116T182235Z-r1-string-slugify-nfzd6dyp",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261116T182241Z-quick-cznh9uk6",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261116T182242Z-quick-u8aycue4",
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
        "stage2/20261116T182226Z-r1-string-slugify-ugh5s5hc",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261116T182227Z-r1-string-slugify-5hmigqhk",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261116T182231Z-quick-guswfrhe", "pass", &[]),
    ("stage2/20261116T182232Z-quick-nz77gwab", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

pub const RULES7: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    ("no-module", "fail", &["verification_failed"]),
    ("no-program", "blocked", &["toolchain_unavailable"]),
    (
        "no-program-behind-make",
        "blocked",
        &["toolchain_unavailable"],
    ),
    ("node-changed-test", "pass", &[]),
    (
        "not-checked",
        "blocked",
        &["change_not_checked", "verification_unproven"],
    ),
    (
        "provider-failure/20261118T042823Z-r1-string-slugify-sfdum5h9",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261118T042823Z-r1-string-slugify-u5dw4cdm",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261118T042826Z-quick-d2jtq42f",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261118T042826Z-quick-na2tj5bv",
        "fail",
        &["provider_unavailable", "engine_failed"],
    ),
    ("relied-baseline", "pass", &[]),
    (
        "reverified/20261118T042816Z-try-make-the-answer-right-phwg9f93",
        "fail",
        &["verification_failed"],
    ),
    (
        "reverified/20261118T042818Z-try-make-the-answer-right-aivzb94j",
        "pass",
        &[],
    ),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    ("source-changed-meanwhile", "pass", &[]),
    (
        "stage2/20261118T042820Z-r1-string-slugify-as6svsri",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261118T042820Z-r1-string-slugify-cr6igpmy",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261118T042822Z-quick-nai46v4m", "pass", &[]),
    ("stage2/20261118T042823Z-quick-22wcy27u", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];

/// Bundles judged by rules 8, of the same kinds.
pub const RULES8: &[Row] = &[
    ("forbidden-attempt", "fail", &["forbidden_action_attempted"]),
    ("late-gate", "blocked", &["containment_unavailable"]),
    ("late-setup", "blocked", &["toolchain_unavailable"]),
    ("no-module", "fail", &["verification_failed"]),
    ("no-program", "blocked", &["toolchain_unavailable"]),
    (
        "no-program-behind-make",
        "blocked",
        &["toolchain_unavailable"],
    ),
    ("node-changed-test", "pass", &[]),
    (
        "not-checked",
        "blocked",
        &["change_not_checked", "verification_unproven"],
    ),
    (
        "provider-failure/20261118T110510Z-r1-string-slugify-k8yijzgw",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "provider-failure/20261118T110510Z-r1-string-slugify-pukft5wg",
        "blocked",
        &["stage_gate_closed"],
    ),
    (
        "provider-failure/20261118T110515Z-quick-75xwghrb",
        "pass",
        &[],
    ),
    (
        "provider-failure/20261118T110516Z-quick-agxxktj2",
        "blocked",
        &["provider_unavailable"],
    ),
    ("relied-baseline", "pass", &[]),
    (
        "reverified/20261118T110452Z-try-make-the-answer-right-dv39pw5f",
        "fail",
        &["verification_failed"],
    ),
    (
        "reverified/20261118T110455Z-try-make-the-answer-right-6dc8yjbm",
        "pass",
        &[],
    ),
    ("reviewer-no", "blocked", &["reviewer_rejected"]),
    ("source-changed-meanwhile", "pass", &[]),
    (
        "stage2/20261118T110501Z-r1-string-slugify-uqjgrcx4",
        "blocked",
        &["engine_gate_closed"],
    ),
    (
        "stage2/20261118T110502Z-r1-string-slugify-3ub886hw",
        "blocked",
        &["stage_gate_closed"],
    ),
    ("stage2/20261118T110506Z-quick-hvxgzziv", "pass", &[]),
    ("stage2/20261118T110508Z-quick-92z7m9pf", "pass", &[]),
    ("try-control-none", "pass", &[]),
    ("try-pass", "pass", &[]),
];
