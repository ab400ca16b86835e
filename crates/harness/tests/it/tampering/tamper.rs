//! Strangers' bundles: every single byte, every file, and forgeries whose digests all fit.

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cto_core::verify::Standing;
use cto_testkit::{Bundle, Case, Forged, ORACLE, script, sha256_hex, write};
use serde_json::{Value, json};

use crate::assert_bad;
use crate::assert_good;
use crate::fixtures::bundles::one_of_each;
use crate::house;
use crate::passed;
use crate::verdict;

/// Changes one byte of one file after another, and puts each back.
fn every_byte(bundle: &Bundle, which: impl Fn(usize, usize) -> bool) -> usize {
    let forged = Forged::copy_of(bundle);
    let mut tried = 0;
    for name in forged.bundle().names() {
        let original = forged.bundle().bytes(&name);
        for at in (0..original.len()).filter(|at| which(*at, original.len())) {
            let mask = [0x01, 0x20, 0x80][at % 3];
            let mut bytes = original.clone();
            bytes[at] ^= mask;
            forged.put(&name, &bytes);
            let found = catch_unwind(AssertUnwindSafe(|| verdict(&forged.bundle())));
            let found = found.unwrap_or_else(|_| panic!("{name}: byte {at} ^ {mask:#x} panicked"));
            assert_eq!(
                found.standing,
                Standing::Bad,
                "{name}: byte {at} ^ {mask:#x} was not noticed"
            );
            tried += 1;
        }
        forged.put(&name, &original);
    }
    assert_good(&forged.bundle());
    tried
}

#[test]
fn any_changed_byte_is_caught() {
    let (_house, bundles) = one_of_each();
    // All of them take minutes; ordinarily every 97th, from a different start in each bundle, and
    // both ends of each file.
    let all = std::env::var_os("CTO_EVERY_BYTE").is_some();
    for (number, bundle) in bundles.iter().enumerate() {
        let tried = every_byte(bundle, |at, length| {
            all || at % 97 == number * 31 || at < 8 || at + 8 >= length
        });
        assert!(tried > 300, "{tried}");
    }
}

#[test]
fn files_removed_added_renamed_linked_and_cut_are_caught() {
    let (_house, bundle) = passed();
    for name in bundle.names() {
        let forged = Forged::copy_of(&bundle);
        forged.remove(&name);
        assert_bad(&forged.bundle(), &format!("{name} removed"));
        let forged = Forged::copy_of(&bundle);
        fs::rename(forged.dir.join(&name), forged.dir.join(format!("{name}.x"))).unwrap();
        assert_bad(&forged.bundle(), &format!("{name} renamed"));
        let forged = Forged::copy_of(&bundle);
        let aside = forged.dir.with_extension("aside");
        fs::rename(forged.dir.join(&name), &aside).unwrap();
        symlink(&aside, forged.dir.join(&name)).unwrap();
        assert_bad(
            &forged.bundle(),
            &format!("{name} a link to the same bytes"),
        );
        let forged = Forged::copy_of(&bundle);
        let bytes = bundle.bytes(&name);
        forged.put(&name, &bytes[..bytes.len() / 2]);
        if !bytes.is_empty() {
            assert_bad(&forged.bundle(), &format!("{name} cut"));
        }
        let forged = Forged::copy_of(&bundle);
        forged.put(&name, &[bytes.as_slice(), b"\n"].concat());
        assert_bad(&forged.bundle(), &format!("{name} grown"));
    }
    let forged = Forged::copy_of(&bundle);
    forged.put("extra.txt", b"x");
    assert_bad(&forged.bundle(), "a file added");
    let forged = Forged::copy_of(&bundle);
    std::process::Command::new("mkfifo")
        .arg(forged.dir.join("pipe"))
        .status()
        .unwrap();
    assert_bad(&forged.bundle(), "a pipe added");
}

#[test]
fn the_forger_alone_changes_nothing() {
    let (_house, bundles) = one_of_each();
    for bundle in &bundles {
        let forged = Forged::copy_of(bundle);
        forged.edit_events(|_| {}).reseal();
        assert_good(&forged.bundle());
        assert_eq!(
            forged.bundle().bytes("events.normalized.jsonl"),
            bundle.bytes("events.normalized.jsonl")
        );
    }
}

type Edit = fn(&Forged);

/// Forges, reseals, and expects a reason.
fn forgeries(bundle: &Bundle, list: &[(&str, Edit)]) {
    for (what, edit) in list {
        let forged = Forged::copy_of(bundle);
        edit(&forged);
        forged.reseal();
        let found = assert_bad(&forged.bundle(), what);
        let about_digests = found
            .problems
            .iter()
            .all(|problem| matches!(problem.check.as_str(), "sums" | "digests" | "signature"));
        assert!(
            !about_digests,
            "{what}: only a checksum was off: {:?}",
            found.problems
        );
    }
}

fn pass_report(report: &mut Value) {
    report["status"] = "pass".into();
    report["failure_reason"] = Value::Null;
    report["blockers"] = json!([]);
}

fn pass_events(forged: &Forged) {
    forged.edit_event("run.completed", |data| {
        *data = json!({"status": "pass", "blockers": [], "findings": []})
    });
}

#[test]
fn a_failed_run_cannot_be_made_a_pass() {
    let (_house, [_, fail, blocked]) = one_of_each();
    forgeries(
        &fail,
        &[
            ("status flipped", |f| {
                f.edit_report(|r| r["status"] = "pass".into());
            }),
            ("blockers dropped", |f| {
                f.edit_report(|r| r["blockers"] = json!([]));
            }),
            ("report a pass", |f| {
                f.edit_report(pass_report);
            }),
            ("report and end of chain a pass", |f| {
                pass_events(f);
                f.edit_report(pass_report);
                f.put("report.md", b"# PASS: quick\n");
            }),
            ("measured path dropped from the chain", |f| {
                pass_events(f);
                f.edit_event("git.diff.checked", |d| {
                    d["changes"] = json!([]);
                    d["blockers"] = json!([]);
                });
                f.edit_report(pass_report);
            }),
            ("an allowed path instead", |f| {
                pass_events(f);
                f.edit_event("git.diff.checked", |d| {
                    d["changes"] = json!([{"path": "answer.txt", "kind": "modified"}]);
                    d["blockers"] = json!([]);
                });
                f.edit_report(|r| {
                    pass_report(r);
                    r["changed_files"] = json!(["answer.txt"]);
                });
            }),
            ("the failing step cut out", |f| {
                f.edit_events(|events| events.retain(|e| e["type"] != "git.diff.checked"));
            }),
        ],
    );
    forgeries(
        &blocked,
        &[
            ("blocked report a pass", |f| {
                f.edit_report(pass_report);
            }),
            ("block cut out", |f| {
                f.edit_events(|events| events.retain(|e| e["type"] != "backend.gate.blocked"));
                pass_events(f);
                f.edit_report(pass_report);
            }),
            ("gate opened", |f| {
                f.edit("gates.json", |g| g["gates"][1]["result"] = "pass".into());
            }),
            ("executed after all", |f| {
                f.edit_event("backend.gate.blocked", |d| d["executed"] = true.into());
            }),
        ],
    );
}

#[test]
fn permission_and_containment_of_a_pass_cannot_be_rewritten() {
    let (_house, bundle) = passed();
    forgeries(
        &bundle,
        &[
            ("no gates", |f| {
                f.edit("gates.json", |g| g["gates"] = json!([]));
            }),
            ("a gate nobody looked at", |f| {
                f.edit("gates.json", |g| {
                    g["gates"][8]["result"] = "not_seen".into()
                });
            }),
            ("another backend was selected", |f| {
                f.edit("eligibility.json", |e| {
                    e["selected_backend"] = "none".into()
                });
            }),
            ("a layer was missing", |f| {
                f.edit("containment.json", |c| {
                    c["processes"][0]["jail"]["layers"][0]["enforced"] = false.into()
                });
            }),
            ("a canary got through", |f| {
                f.edit("containment.json", |c| {
                    c["processes"][0]["jail"]["canaries"][0]["refused"] = false.into()
                });
            }),
            ("no process was contained", |f| {
                f.edit("containment.json", |c| c["processes"] = json!([]));
            }),
            ("survivors", |f| {
                f.edit("containment.json", |c| c["survivors"] = 3.into());
            }),
            ("another plan", |f| {
                f.edit_event("plan.updated", |d| d["containment"] = "none".into());
            }),
        ],
    );
}

#[test]
fn facts_of_a_pass_cannot_be_rewritten() {
    let (_house, bundle) = passed();
    forgeries(
        &bundle,
        &[
            ("changed_files", |f| {
                f.edit_report(|r| r["changed_files"] = json!([]));
            }),
            ("verification exit code", |f| {
                f.edit_report(|r| r["verification"][0]["exit_code"] = 1.into());
            }),
            ("verification dropped", |f| {
                f.edit_report(|r| r["verification"] = json!([]));
            }),
            ("backend exit code", |f| {
                f.edit_report(|r| r["backend_exit_code"] = 7.into());
            }),
            ("red check in the chain", |f| {
                f.edit_event("verification.completed", |d| {
                    d["checks"][0]["end"]["code"] = 1.into()
                });
            }),
            ("no control in the chain", |f| {
                f.edit_event("verification.completed", |d| d["control"] = Value::Null);
            }),
            ("green control", |f| {
                f.edit_event("verification.completed", |d| {
                    d["control"]["checks"][0]["end"]["code"] = 0.into()
                });
            }),
            ("another command", |f| {
                f.edit_event("verification.completed", |d| {
                    d["checks"][0]["command"] = "true".into()
                });
            }),
            ("engine failed", |f| {
                f.edit_event("engine.ended", |d| d["end"]["code"] = 3.into());
            }),
            ("engine result missing", |f| {
                f.edit_events(|e| e.retain(|e| e["type"] != "engine.result"));
            }),
            ("order", |f| {
                f.edit_events(|events| {
                    let last = events.len() - 1;
                    events.swap(last - 1, last - 2);
                });
            }),
            ("end missing", |f| {
                f.edit_events(|events| drop(events.pop()));
            }),
        ],
    );
}

#[test]
fn the_report_of_a_pass_cannot_be_rewritten() {
    let (_house, bundle) = passed();
    forgeries(
        &bundle,
        &[
            ("test.log swapped", |f| {
                f.put("test.log", b"all green\n");
            }),
            ("report.md says fail", |f| {
                f.put("report.md", b"# FAIL: quick\n");
            }),
            ("activation", |f| {
                f.edit_report(|r| r["runtime_default_activation"] = true.into());
            }),
            ("promotion", |f| {
                f.edit_report(|r| r["core_promotion_status"] = "promoted".into());
            }),
            ("schema_version", |f| {
                f.edit_report(|r| r["schema_version"] = 2.into());
            }),
            ("another stage", |f| {
                f.edit_report(|r| r["stage"] = 3.into());
            }),
            ("another engine", |f| {
                f.edit_report(|r| r["backend"] = "codex".into());
            }),
            ("another case", |f| {
                f.edit_report(|r| r["case_id"] = "other".into());
            }),
            ("unknown event", |f| {
                f.edit_events(|events| events[3]["type"] = "engine.dance".into());
            }),
        ],
    );
}

#[test]
fn parts_of_another_run_do_not_fit() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (_, one) = house.run(&case, ORACLE, &[]);
    let (_, other) = house.run(
        &case,
        &script(&[write("answer.txt", "right\nright\n")]),
        &["--timeout", "99"],
    );
    for name in [
        "patch.diff",
        "contract.json",
        "test.log",
        "events.normalized.jsonl",
    ] {
        let forged = Forged::copy_of(&one);
        forged.put(name, &other.bytes(name)).reseal();
        assert_bad(&forged.bundle(), name);
    }
    let forged = Forged::copy_of(&one);
    let contract = other.bytes("contract.json");
    forged.put("contract.json", &contract);
    forged.edit_report(|report| {
        report["contract_digest"] = sha256_hex(&contract).into();
        report["task_digest"] = other.report()["task_digest"].clone();
    });
    forged.edit_events(|_| {}).reseal();
    assert_bad(
        &forged.bundle(),
        "the contract swapped and the chain made anew",
    );
    let forged = Forged::copy_of(&one);
    forged
        .edit_report(|report| report["run_id"] = other.report()["run_id"].clone())
        .reseal();
    assert_bad(&forged.bundle(), "another run id");
}

#[test]
fn a_contract_made_wider_does_not_fit_its_chain() {
    let (_house, [_, fail, _]) = one_of_each();
    let forged = Forged::copy_of(&fail);
    let mut contract = fail.json("contract.json");
    contract["allowed_paths"] = json!(["answer.txt", "keep.txt"]);
    let bytes = cto_testkit::canonical(&contract);
    forged.put("contract.json", &bytes);
    let (_, sealed) = cto_core::task::contract::ContractDocument::read(&bytes).unwrap();
    forged.edit_report(|report| {
        pass_report(report);
        report["contract_digest"] = sealed.contract_digest.to_string().into();
        report["task_digest"] = sealed.task_digest.to_string().into();
    });
    pass_events(&forged);
    forged.reseal();
    assert_bad(&forged.bundle(), "a wider contract under the old chain");
}

#[test]
fn json_no_two_readers_agree_on_is_refused() {
    let (_house, bundle) = passed();
    let report = bundle.text("report.json");
    for (what, text) in [
        ("byte order mark", format!("\u{feff}{report}")),
        (
            "duplicate key",
            report.replacen('{', "{\"status\": \"pass\",", 1),
        ),
        (
            "escaped duplicate key",
            report.replacen('{', "{\"\\u0073tatus\": \"pass\",", 1),
        ),
        (
            "float",
            report.replacen("\"schema_version\": 1", "\"schema_version\": 1.0", 1),
        ),
        (
            "huge integer",
            report.replacen('{', "{\"big\": 9007199254740993,", 1),
        ),
        ("trailing text", format!("{report}{{}}")),
        (
            "deep",
            report.replacen(
                '{',
                &format!("{{\"deep\": {}{},", "[".repeat(500), "]".repeat(500)),
                1,
            ),
        ),
        ("empty", String::new()),
        ("not an object", "[]".into()),
    ] {
        assert_ne!(text, report, "{what}");
        let forged = Forged::copy_of(&bundle);
        forged.put("report.json", text.as_bytes()).resum();
        let found = assert_bad(&forged.bundle(), what);
        assert!(
            found
                .problems
                .iter()
                .any(|problem| !matches!(problem.check.as_str(), "sums" | "signature")),
            "{what}: {:?}",
            found.problems
        );
    }
}
