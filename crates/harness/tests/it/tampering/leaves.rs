//! Every leaf of a report follows from the rest of its bundle: changed, it is refused.

use cto_core::verify::Standing;
use cto_testkit::Forged;
use serde_json::Value;

use crate::passed;
use crate::verdict;

/// Fields that are the report's own word: nothing else in a bundle could confirm them.
const OWN_WORD: [&str; 6] = [
    "/engine/version",
    "/harness_version",
    "/run_finished_at",
    "/backend_scratch",
    "/claimed",
    "/freshness",
];

/// Another value of the same kind, so that only its meaning is wrong.
fn another(value: &Value) -> Value {
    match value {
        Value::Bool(b) => (!b).into(),
        Value::Number(n) => (n.as_u64().unwrap_or(0) + 1).into(),
        Value::String(text) if text.len() == 64 => "0".repeat(64).into(),
        Value::String(text) if text.ends_with('Z') && text.contains('T') => {
            "2031-01-01T00:00:00.000Z".into()
        }
        Value::String(text) => format!("{text}x").into(),
        other => other.clone(),
    }
}

/// Every leaf of a document, as JSON pointers.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            leaves(
                value,
                &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                found,
            );
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, value)| leaves(value, &format!("{at}/{n}"), found)),
        Value::Null => {}
        _ => found.push(at.to_owned()),
    }
}

#[test]
fn every_leaf_of_a_report_is_borne_out_by_the_rest() {
    let (_house, bundle) = passed();
    let mut pointers = Vec::new();
    leaves(&bundle.report(), "", &mut pointers);
    let kept = |pointer: &&String| {
        !["/artifact_digests", "/artifact_paths"]
            .iter()
            .any(|own| pointer.starts_with(own))
    };
    let mut unnoticed = Vec::new();
    for pointer in pointers.iter().filter(kept) {
        let forged = Forged::copy_of(&bundle);
        forged.edit_report(|report| {
            let leaf = report.pointer_mut(pointer).unwrap();
            *leaf = another(leaf);
        });
        forged.reseal();
        if verdict(&forged.bundle()).standing == Standing::Good
            && !OWN_WORD.iter().any(|own| pointer.starts_with(own))
        {
            unnoticed.push(pointer.clone());
        }
    }
    assert!(
        unnoticed.is_empty(),
        "edited, resealed and taken for good: {unnoticed:#?}"
    );
}
