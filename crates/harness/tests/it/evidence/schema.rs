//! `cto schema`, and every document of real bundles against the schemas.

use serde_json::{Value, json};

use crate::fixtures::bundles::one_of_each;
use crate::fixtures::schemas::{assert_valid, schemas};
use crate::house;

#[test]
fn every_document_of_every_verdict_fits_its_schema() {
    let schemas = schemas();
    let (house, bundles) = one_of_each();
    for bundle in &bundles {
        for name in ["report", "contract", "gates", "eligibility", "containment"] {
            assert_valid(&schemas[name], &bundle.json(&format!("{name}.json")), name);
        }
        for (number, line) in bundle.events().iter().enumerate() {
            assert_valid(&schemas["event"], line, &format!("event {number}"));
        }
        for (number, line) in bundle.lines("trace.jsonl").iter().enumerate() {
            assert_valid(&schemas["trace"], line, &format!("trace {number}"));
        }
        let answer = house.cto(&["verify", &bundle.run_id(), "--json"]).json();
        assert_valid(
            &schemas["verification"],
            &answer["bundles"][0]["verification"],
            "verification",
        );
    }
}

#[test]
fn an_invalid_contract_fits_too() {
    let house = house();
    let case = house.case(&cto_testkit::Case::new("crooked").allowed("[\"..\"]"));
    let (_, bundle) = house.run_args(&["run", &case, "--json"]);
    assert_valid(
        &schemas()["contract"],
        &bundle.json("contract.json"),
        "contract",
    );
}

#[test]
fn a_violation_is_noticed() {
    let schemas = schemas();
    let (_house, [pass, ..]) = one_of_each();
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 6] = [
        ("a field gone", |r| {
            drop(r.as_object_mut().unwrap().remove("status"))
        }),
        ("an unknown status", |r| r["status"] = "fine".into()),
        ("activated", |r| {
            r["runtime_default_activation"] = true.into()
        }),
        ("promoted", |r| {
            r["core_promotion_status"] = "promoted".into()
        }),
        ("a stage that is not", |r| r["stage"] = 9.into()),
        ("a digest that is none", |r| r["task_digest"] = "x".into()),
    ];
    let validator = jsonschema::validator_for(&schemas["report"]).unwrap();
    for (what, edit) in edits {
        let mut report = pass.report();
        edit(&mut report);
        assert!(!validator.is_valid(&report), "{what}");
    }
    let events = jsonschema::validator_for(&schemas["event"]).unwrap();
    assert!(!events.is_valid(&json!({"seq": 1, "type": "engine.dance", "data": {}})));
}

#[test]
fn the_command_prints_what_the_binary_carries() {
    let house = house();
    let names = house.cto(&["schema", "--json"]).json();
    assert_eq!(names["schemas"].as_array().unwrap().len(), schemas().len());
    for (name, schema) in schemas() {
        let answer = house.cto(&["schema", &name]);
        assert_eq!((answer.code, answer.json()), (Some(0), schema), "{name}");
    }
    let answer = house.cto(&["schema", "nonsense"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("unknown_schema"));
    assert!(!house.state().exists(), "reading wrote state");
}
