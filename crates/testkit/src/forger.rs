//! A forger: edits a copy of a bundle and makes every digest fit again. What a verifier still
//! refuses then was refused because the evidence does not say it, not because a checksum was off.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::bundle::{Bundle, copy_dir, files_below, sha256_hex};
use crate::signer::{self, PAYLOAD_TYPE, TestKey};

/// The key a forger signs with who has one: the strongest there is, when the verifier trusts it.
pub const FORGER: u8 = b'F';

/// What `SHA256SUMS` leaves out.
fn is_summed(name: &str) -> bool {
    !matches!(name, "SHA256SUMS" | "run.lock" | "attestation.json")
        && !name.starts_with("attestations/")
}

/// A copy of a bundle under its own name, to be tampered with.
pub struct Forged {
    _keep: Option<TempDir>,
    pub dir: PathBuf,
}

const EVENTS: &str = "events.normalized.jsonl";

impl Forged {
    pub fn copy_of(bundle: &Bundle) -> Self {
        let keep = tempfile::Builder::new()
            .prefix("cto-forged-")
            .tempdir()
            .unwrap();
        let dir = keep.path().join(bundle.run_id());
        copy_dir(&bundle.dir, &dir);
        Self {
            _keep: Some(keep),
            dir,
        }
    }

    /// A directory that stays where it is.
    pub fn at(dir: PathBuf) -> Self {
        Self { _keep: None, dir }
    }

    pub fn bundle(&self) -> Bundle {
        Bundle::at(&self.dir)
    }

    pub fn put(&self, name: &str, bytes: &[u8]) -> &Self {
        fs::create_dir_all(self.dir.join(name).parent().unwrap()).unwrap();
        fs::write(self.dir.join(name), bytes).unwrap();
        self
    }

    pub fn remove(&self, name: &str) -> &Self {
        fs::remove_file(self.dir.join(name)).unwrap();
        self
    }

    /// Edits a JSON document in place.
    pub fn edit(&self, name: &str, edit: impl FnOnce(&mut Value)) -> &Self {
        let mut value = self.bundle().json(name);
        edit(&mut value);
        self.put(name, &pretty(&value))
    }

    pub fn edit_report(&self, edit: impl FnOnce(&mut Value)) -> &Self {
        self.edit("report.json", edit)
    }

    /// Edits the events, then numbers, chains and counts them anew from the report's contract
    /// digest.
    pub fn edit_events(&self, edit: impl FnOnce(&mut Vec<Value>)) -> &Self {
        let mut events = self.bundle().events();
        edit(&mut events);
        let report = self.bundle().report();
        let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
        self.chain_from(
            &chain_start(&text("run_id"), &text("contract_digest")),
            events,
        )
    }

    /// Chains events from any first `prev`.
    pub fn chain_from(&self, start: &str, events: Vec<Value>) -> &Self {
        let (bytes, head) = chained(start, &events);
        self.put(EVENTS, &bytes);
        let count = events.len() as u64;
        self.edit_report(|report| {
            report["events"] = serde_json::json!({"count": count, "head": head})
        })
    }

    /// Edits the data of the first event of a type.
    pub fn edit_event(&self, name: &str, edit: impl FnOnce(&mut Value)) -> &Self {
        self.edit_events(|events| {
            let event = events
                .iter_mut()
                .find(|event| event["type"] == name)
                .unwrap_or_else(|| panic!("no {name}"));
            edit(&mut event["data"]);
        })
    }

    /// Makes digests, paths, self digest, sums and signature fit whatever is there now.
    pub fn reseal(&self) -> &Self {
        self.redigest().sign(&TestKey::new(FORGER))
    }

    /// Everything but the signature.
    pub fn redigest(&self) -> &Self {
        let mut digests: BTreeMap<String, String> = files_below(&self.dir)
            .into_iter()
            .filter(|(name, _)| is_summed(name))
            .collect();
        digests.remove("report.json");
        let run_id = self.bundle().run_id();
        self.edit_report(|report| {
            let paths = digests
                .keys()
                .map(String::as_str)
                .chain(["report.json", "SHA256SUMS"]);
            report["artifact_paths"] = paths
                .map(|name| (name.to_owned(), Value::from(format!("{run_id}/{name}"))))
                .collect();
            report["artifact_digests"] = digests
                .iter()
                .map(|(k, v)| (k.clone(), v.clone().into()))
                .collect::<Map<_, _>>()
                .into();
            let own = sha256_hex(&canonical(report));
            report["artifact_digests"]["report.json"] = own.into();
        });
        self.resum()
    }

    /// Only `SHA256SUMS`, for reports no JSON library would write.
    pub fn resum(&self) -> &Self {
        let files = files_below(&self.dir)
            .into_iter()
            .filter(|(name, _)| is_summed(name));
        let sums: String = files
            .map(|(name, digest)| format!("{digest}  {name}\n"))
            .collect();
        self.put("SHA256SUMS", sums.as_bytes())
    }

    /// Signs whatever is there now.
    pub fn sign(&self, key: &TestKey) -> &Self {
        for (name, bytes) in signer::attestations(&self.bundle(), key) {
            self.put(name, &bytes);
        }
        self
    }

    /// Signs an edited statement: everything else of the envelope is as it must be.
    pub fn sign_statement(&self, key: &TestKey, edit: impl FnOnce(&mut Value)) -> &Self {
        self.sign(key);
        let mut statement = signer::payload(&self.bundle().json("attestation.json"));
        edit(&mut statement);
        self.put(
            "attestation.json",
            &canonical(&key.envelope(PAYLOAD_TYPE, &canonical(&statement))),
        )
    }

    /// Edits the envelope around the signed statement.
    pub fn edit_envelope(&self, name: &str, edit: impl FnOnce(&mut Value)) -> &Self {
        let mut envelope = self.bundle().json(name);
        edit(&mut envelope);
        self.put(name, &canonical(&envelope))
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap();
    bytes.push(b'\n');
    bytes
}

/// Numbers and chains events from a first `prev`: the lines, and the head.
pub fn chained(start: &str, events: &[Value]) -> (Vec<u8>, String) {
    let mut prev = start.to_owned();
    let mut bytes = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let mut line = event.as_object().unwrap().clone();
        line.remove("hash");
        line.insert("seq".into(), (index as u64 + 1).into());
        line.insert("prev".into(), prev.clone().into());
        let hash = sha256_hex(
            &[
                b"cto-event/1\n",
                canonical(&Value::Object(line.clone())).as_slice(),
            ]
            .concat(),
        );
        line.insert("hash".into(), hash.clone().into());
        bytes.extend(canonical(&Value::Object(line)));
        bytes.push(b'\n');
        prev = hash;
    }
    (bytes, prev)
}

/// The first `prev` of a chain.
pub fn chain_start(run_id: &str, contract_digest: &str) -> String {
    sha256_hex(format!("cto-chain/1\n{run_id}\n{contract_digest}\n").as_bytes())
}

/// RFC 8785 for documents with ASCII keys and no floats.
pub fn canonical(value: &Value) -> Vec<u8> {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let entries: BTreeMap<&String, Value> = map
                    .iter()
                    .map(|(key, value)| (key, sorted(value)))
                    .collect();
                Value::Object(
                    entries
                        .into_iter()
                        .map(|(key, value)| (key.clone(), value))
                        .collect(),
                )
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    serde_json::to_vec(&sorted(value)).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_sorts_at_every_depth() {
        let value: Value =
            serde_json::from_str(r#"{"b": [{"z": 1, "a": "é\n"}], "a": null}"#).unwrap();
        assert_eq!(
            String::from_utf8(canonical(&value)).unwrap(),
            "{\"a\":null,\"b\":[{\"a\":\"é\\n\",\"z\":1}]}"
        );
    }
}
