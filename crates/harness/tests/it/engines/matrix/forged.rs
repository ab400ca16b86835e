//! An approval that a run brought itself and a forged answer are refused.

use cto_testkit::{Bundle, Case, Forged, ORACLE};
use serde_json::{Value, json};

use super::{parsed, with_tmp};
use crate::house;

/// Whatever an ordinary run is given, nobody but the operator's store answers for the operator.
#[test]
fn no_ordinary_run_brings_its_own_approval() {
    let house = house()
        .with("CTO_APPROVAL", "granted")
        .with("CTO_HARNESS_APPROVAL", "granted")
        .with("CTO_ORIGIN", "validator");
    let needs =
        |extra: &str| Case::new("quick").extra(&format!("approval_required = true\n{extra}"));
    let (answer, bundle) = house.run(&house.case(&needs("")), ORACLE, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["approval_missing".to_owned()]),
        "{answer:?}"
    );
    assert_eq!(bundle.report()["origin"], "operator");
    assert!(
        !bundle
            .event_types()
            .iter()
            .any(|kind| kind.starts_with("approval.")),
        "{:?}",
        bundle.event_types()
    );
    for extra in [
        "approval = \"granted\"",
        "approvals = \"scripted\"",
        "origin = \"validator\"",
    ] {
        let (answer, bundle) = house.run(&house.case(&needs(extra)), ORACLE, &[]);
        assert_eq!(
            (answer.code, bundle.codes()[0].as_str()),
            (Some(3), "contract_invalid"),
            "{extra}: {answer:?}"
        );
    }
    for flag in ["--approval=granted", "--approve", "--origin=validator"] {
        assert_eq!(house.cto(&["run", flag]).code, Some(2), "{flag}");
    }
    let (_, bundle) = house.run(
        &house.case(&Case::new("asks")),
        "[[step]]\ndo = \"print\"\ntext = \"{\\\"type\\\":\\\"approval.granted\\\"}\\n\"\n",
        &[],
    );
    assert!(
        !bundle
            .event_types()
            .iter()
            .any(|kind| kind.starts_with("approval.")),
        "{:?}",
        bundle.event_types()
    );
}

/// Chain, gates and report must tell the same answer, however well the digests fit.
#[test]
fn a_forged_answer_is_refused() {
    type Edit = fn(&Forged);
    let denied: [(&str, Edit); 4] = [
        ("a denial without its code", |f| {
            f.edit_event("approval.denied", |data| data["reason"] = Value::Null);
        }),
        ("an open gate", |f| {
            f.edit("gates.json", |gates| open_gate(gates, Value::Null));
        }),
        ("another code at the gate", |f| {
            f.edit("gates.json", |gates| {
                open_gate(gates, json!("approval_missing"))
            });
        }),
        ("an engine selected", |f| {
            f.edit("eligibility.json", |decision| {
                decision["selected_backend"] = "fake".into()
            });
        }),
    ];
    let granted: [(&str, Edit); 3] = [
        ("a grant that carries a code", |f| {
            f.edit_event("approval.granted", |data| {
                data["reason"] = "approval_denied".into()
            });
        }),
        ("an operator's grant that relies on nothing", |f| {
            f.edit_event("run.started", |data| data["origin"] = "operator".into());
            f.edit_report(|report| report["origin"] = "operator".into());
        }),
        ("no grant at all", |f| {
            f.edit_events(|events| events.retain(|event| event["type"] != "approval.granted"));
        }),
    ];
    let (house, _) = with_tmp(house());
    for (row, edits) in [
        ("approval-denied", denied.as_slice()),
        ("approval-granted", granted.as_slice()),
    ] {
        let report = parsed(
            &house
                .cto(&["matrix", "--row", row, "--keep", "--json"])
                .stdout,
        );
        let outcome = report
            .rows
            .iter()
            .find(|outcome| outcome.row == row)
            .unwrap();
        let Some(dir) = &outcome.bundle else { return };
        let bundle = Bundle::at(dir);
        crate::assert_good(&bundle);
        for (what, edit) in edits {
            let forged = Forged::copy_of(&bundle);
            edit(&forged);
            forged.reseal();
            crate::assert_bad(&forged.bundle(), what);
        }
    }
}

fn open_gate(gates: &mut Value, code: Value) {
    let rows = gates["gates"].as_array_mut().unwrap();
    let row = rows
        .iter_mut()
        .find(|row| row["gate"] == "approval")
        .unwrap();
    if code.is_null() {
        row["result"] = "pass".into();
        row.as_object_mut().unwrap().remove("code");
    } else {
        row["code"] = code;
    }
}
