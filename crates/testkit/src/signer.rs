//! Keys and envelopes as a stranger would make them, from the specifications alone.

use std::path::Path;

use base64ct::{Base64, Encoding};
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::bundle::{Bundle, sha256_hex};
use crate::forger::canonical;

pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// An Ed25519 key for tests. Its seed is one byte repeated: nobody takes it for a secret.
pub struct TestKey(SigningKey);

impl TestKey {
    pub fn new(seed: u8) -> Self {
        Self(SigningKey::from_bytes(&[seed; 32]))
    }

    /// The key of a state home.
    pub fn of_state(state: &Path) -> Self {
        let pem = std::fs::read_to_string(state.join("keys/machine.pem")).unwrap();
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = Base64::decode_vec(&body).unwrap();
        let seed: [u8; 32] = der[der.len() - 32..].try_into().unwrap();
        Self(SigningKey::from_bytes(&seed))
    }

    fn public_der(&self) -> Vec<u8> {
        let prefix = [
            0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
        ];
        [prefix.as_slice(), self.0.verifying_key().as_bytes()].concat()
    }

    pub fn id(&self) -> String {
        sha256_hex(&self.public_der())
    }

    pub fn public_base64(&self) -> String {
        Base64::encode_string(self.0.verifying_key().as_bytes())
    }

    pub fn public_pem(&self) -> String {
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            Base64::encode_string(&self.public_der())
        )
    }

    /// The private key as a state home keeps it.
    pub fn private_pem(&self) -> String {
        let prefix = [
            0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22,
            0x04, 0x20,
        ];
        let der = [prefix.as_slice(), self.0.as_bytes()].concat();
        let label = ["PRIVATE", "KEY"].join(" ");
        format!(
            "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
            Base64::encode_string(&der)
        )
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).to_bytes().to_vec()
    }

    /// A DSSE envelope around any payload.
    pub fn envelope(&self, payload_type: &str, payload: &[u8]) -> Value {
        let mut message = format!(
            "DSSEv1 {} {payload_type} {} ",
            payload_type.len(),
            payload.len()
        )
        .into_bytes();
        message.extend_from_slice(payload);
        let signature = Base64::encode_string(&self.sign(&message));
        json!({
            "payload": Base64::encode_string(payload),
            "payloadType": payload_type,
            "signatures": [{"keyid": self.id(), "sig": signature}],
        })
    }
}

/// The statement inside an envelope.
pub fn payload(envelope: &Value) -> Value {
    let bytes =
        Base64::decode_vec(envelope["payload"].as_str().unwrap_or_default()).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn file(bundle: &Bundle, name: &str) -> Value {
    json!({"name": name, "digest": {"sha256": sha256_hex(&bundle.bytes(name))}})
}

fn result(report: &Value) -> Vec<Value> {
    let tree = &report["result"]["tree"];
    let commit = &report["result"]["commit"];
    let mut out = Vec::new();
    if tree.is_string() {
        out.push(json!({"name": "result.tree", "digest": {"gitTree": tree}}));
    }
    if commit.is_string() {
        out.push(json!({"name": "result.commit", "digest": {"gitCommit": commit}}));
    }
    out
}

/// Both companions of a bundle as it stands, by file name.
pub fn companions(bundle: &Bundle, key: &TestKey) -> [(&'static str, Value); 2] {
    let report = bundle.report();
    let mut subject = vec![file(bundle, "patch.diff")];
    subject.extend(result(&report));
    let mut inputs = vec![file(bundle, "contract.json")];
    let engine = report["backend"].as_str().unwrap_or_default();
    if let Some(digest) = report["engine"]["executable_sha256"]
        .as_str()
        .filter(|digest| digest.len() == 64)
    {
        inputs.push(json!({"name": format!("engine {engine}"), "digest": {"sha256": digest}}));
    }
    for tool in report["toolchains"].as_array().into_iter().flatten() {
        let name = format!("toolchain {}", tool["name"].as_str().unwrap_or_default());
        inputs.push(json!({"name": name, "digest": {"sha256": tool["sha256"]}}));
    }
    let byproducts =
        ["events.normalized.jsonl", "test.log", "report.json"].map(|name| file(bundle, name));
    let provenance = json!({
        "buildDefinition": {
            "buildType": "urn:cto-harness:run:v1",
            "externalParameters": {
                "case_id": report["case_id"], "engine": report["backend"],
                "stage": report["stage"], "contract_digest": report["contract_digest"],
            },
            "internalParameters": {"task_digest": report["task_digest"], "containment": report["containment"]},
            "resolvedDependencies": inputs,
        },
        "runDetails": {
            "builder": {"id": format!("urn:cto-harness:builder:{}", key.id()), "version": {"cto": report["harness_version"]}},
            "metadata": {
                "invocationId": report["run_id"],
                "startedOn": report["run_started_at"], "finishedOn": report["run_finished_at"],
            },
            "byproducts": byproducts,
        },
    });
    let checks = |wanted: &str| -> Vec<String> {
        let lines = report["verification"].as_array().into_iter().flatten();
        let word = |line: &Value| match (&line["passed"], line["belief"].as_str()) {
            (Value::Bool(true), None | Some("proven")) => "passed",
            (Value::Bool(true), Some(_)) => "warned",
            _ => "failed",
        };
        lines
            .filter(|line| word(line) == wanted)
            .map(|line| {
                let command = line["command"].as_str().unwrap_or_default();
                if line["kind"] == "hidden" {
                    format!("hidden: {command}")
                } else {
                    command.to_owned()
                }
            })
            .collect()
    };
    let believed = report["belief"]["word"].as_str();
    let mut tests = json!({
        "result": match (&report["tests_passed"], believed) {
            (Value::Bool(true), None | Some("proven")) => "PASSED",
            (Value::Bool(true), Some(_)) => "WARNED",
            _ => "FAILED",
        },
        "configuration": [file(bundle, "contract.json")],
        "passedTests": checks("passed"), "warnedTests": checks("warned"), "failedTests": checks("failed"),
    });
    if let Some(word) = believed {
        tests["belief"] = word.into();
    }
    let statement = |kind: &str, predicate: Value| json!({"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate});
    [
        (
            "attestations/provenance.json",
            statement("https://slsa.dev/provenance/v1", provenance),
        ),
        (
            "attestations/test-result.json",
            statement("https://in-toto.io/attestation/test-result/v0.1", tests),
        ),
    ]
}

/// The statement `attestation.json` signs, for a bundle as it stands.
pub fn verdict(bundle: &Bundle, key: &TestKey, companions: Value) -> Value {
    let report = bundle.report();
    let signed = |name: &&String| !name.starts_with("attestation") && name.as_str() != "run.lock";
    let mut subject: Vec<Value> = bundle
        .names()
        .iter()
        .filter(signed)
        .map(|name| file(bundle, name))
        .collect();
    subject.extend(result(&report));
    let codes: Vec<Value> = report["blockers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|b| b["code"].clone())
        .collect();
    let mut predicate = json!({
        "bundle_format": report["schema_version"],
        "engine": report["backend"],
        "blockers": codes,
        "sums_sha256": sha256_hex(&bundle.bytes("SHA256SUMS")),
        "companions": companions,
        "signed_at": report["run_finished_at"],
        "signer": {"algorithm": "ed25519", "key_id": key.id(), "public_key": key.public_base64()},
    });
    for field in [
        "kind",
        "origin",
        "run_id",
        "case_id",
        "stage",
        "status",
        "task_digest",
        "contract_digest",
        "events",
        "result",
        "relies_on",
        "continues",
        "run_started_at",
        "run_finished_at",
        "runtime_default_activation",
        "core_promotion_status",
    ] {
        predicate[field] = report[field].clone();
    }
    if let Some(first) = report.get("reverifies") {
        predicate["reverifies"] = first.clone();
    }
    json!({"_type": STATEMENT, "subject": subject, "predicateType": "urn:cto-harness:verdict:v1", "predicate": predicate})
}

/// Signs a bundle as it stands: every file it must have, in the spelling it must have.
pub fn attestations(bundle: &Bundle, key: &TestKey) -> Vec<(&'static str, Vec<u8>)> {
    let mut out = Vec::new();
    let mut bound = serde_json::Map::new();
    for (name, statement) in companions(bundle, key) {
        let bytes = canonical(&key.envelope(PAYLOAD_TYPE, &canonical(&statement)));
        bound.insert(name.to_owned(), sha256_hex(&bytes).into());
        out.push((name, bytes));
    }
    let statement = verdict(bundle, key, bound.into());
    out.push((
        "attestation.json",
        canonical(&key.envelope(PAYLOAD_TYPE, &canonical(&statement))),
    ));
    out
}
