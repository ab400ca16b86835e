//! JSON Schemas of every artifact, generated from the types; committed under `schemas/`.

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::bundle::attest::{Envelope, KeyRecord, Statement, Verdict};
use crate::bundle::report::Report;
use crate::checks::known_baseline::KeptBaseline;
use crate::checks::test_ids::TestIdDocument;
use crate::containment::ContainmentReport;
use crate::gate::GateReport;
use crate::gate::eligibility::Eligibility;
use crate::gate::ladder::Stage1Proof;
use crate::gate::ladder::stage3::Stage3Proof;
use crate::gate::ladder::stage4::Stage4Proof;
use crate::proof::matrix::MatrixReport;
use crate::proof::stage2::{BaselineComparison, NoTargetInspection};
use crate::records::{
    BuildReport, ExecutableAdmission, GateRecord, ModelAdmission, ModelDecision,
    SourceAdmissionRecord, SourceRepositoryRecord, TargetAdmission,
};
use crate::run::event::Event;
use crate::run::trace::TraceLine;
use crate::task::contract::{Contract, InvalidContract};
use crate::task::source::CopiedRepo;
use crate::verify::Verification;
use crate::wire::calls::CallRecord;
use crate::wire::scenario::Scenario;

/// Name and schema of every document this project writes.
pub fn all_schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("report", root::<Report>("report.json")),
        ("contract", contract()),
        ("gates", root::<GateReport>("gates.json")),
        ("eligibility", root::<Eligibility>("eligibility.json")),
        ("event", event_line()),
        ("trace", root::<TraceLine>("one line of trace.jsonl")),
        ("containment", root::<ContainmentReport>("containment.json")),
        ("source", root::<CopiedRepo>("source.json")),
        (
            "relied-baseline",
            root::<KeptBaseline>("relied/baseline.json"),
        ),
        ("test-ids", root::<TestIdDocument>("test-ids.json")),
        (
            "verification",
            root::<Verification>("output of cto verify --json"),
        ),
        (
            "attestation",
            root::<Envelope>("attestation.json and the files of attestations/"),
        ),
        (
            "verdict",
            root::<Statement<Verdict>>("what attestation.json signs"),
        ),
        ("key", root::<KeyRecord>("one key of the trust store")),
        (
            "model-call",
            root::<CallRecord>("one call of a model, as the gateway records it"),
        ),
        (
            "scenario",
            root::<Scenario>("scenario of the scripted model"),
        ),
        (
            "matrix",
            root::<MatrixReport>("output of cto matrix --json"),
        ),
        (
            "model-admission",
            root::<ModelAdmission>("a model-provider admission"),
        ),
        (
            "model-decision",
            root::<ModelDecision>("a model decision record"),
        ),
        (
            "executable-admission",
            root::<ExecutableAdmission>("an executable admission"),
        ),
        (
            "source-admission",
            root::<SourceAdmissionRecord>("a source admission"),
        ),
        (
            "target-admission",
            root::<TargetAdmission>("a target-repository admission"),
        ),
        (
            "source-repository",
            root::<SourceRepositoryRecord>("the record of a repository, for cto run --source"),
        ),
        ("gate-record", root::<GateRecord>("a gate record")),
        (
            "build-report",
            root::<BuildReport>("what a build says, for cto admit executable --build-report"),
        ),
        (
            "stage1-proof",
            root::<Stage1Proof>("stage1-gate-proof.json"),
        ),
        (
            "stage2-no-target",
            root::<NoTargetInspection>("stage2-no-target-inspection.json"),
        ),
        (
            "stage2-comparison",
            root::<BaselineComparison>("stage2-fake-baseline-comparison.json"),
        ),
        (
            "stage3-proof",
            root::<Stage3Proof>("stage3-copied-repo-proof.json"),
        ),
        (
            "stage4-proof",
            root::<Stage4Proof>("stage4-disposable-sandbox-proof.json"),
        ),
    ]
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}

fn root<T: schemars::JsonSchema>(title: &str) -> Value {
    let mut schema: Schema = generator().into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    schema.to_value()
}

/// `contract.json` is a contract or the errors that kept one from being made.
fn contract() -> Value {
    let mut generator = generator();
    let valid = generator.subschema_for::<Contract>();
    let invalid = generator.subschema_for::<InvalidContract>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "contract.json",
        "anyOf": [valid, invalid],
        "$defs": generator.take_definitions(true),
    })
}

/// An event's type and data with the envelope that chains it.
fn event_line() -> Value {
    let mut generator = generator();
    let event = generator.subschema_for::<Event>();
    let digest = generator.subschema_for::<crate::values::digest::Digest>();
    let ts = generator.subschema_for::<crate::values::time::Utc>();
    let run_id = generator.subschema_for::<crate::values::ids::RunId>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "one line of events.normalized.jsonl",
        "type": "object",
        "allOf": [event],
        "properties": {
            "seq": {"type": "integer", "minimum": 1},
            "ts": ts,
            "run_id": run_id,
            "prev": digest,
            "hash": digest,
        },
        "required": ["seq", "ts", "run_id", "type", "data", "prev", "hash"],
        "$defs": generator.take_definitions(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promises_are_in_the_report_schema() {
        let report = root::<Report>("r").to_string();
        assert!(report.contains("{\"const\":false}"), "{report}");
        assert!(report.contains("not-promoted"));
    }
}
