//! The signature of a bundle: is it whole, is it about these very files, and whose is it?

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Verifier;
use crate::bundle;
use crate::bundle::attest::statement::{self, STATEMENT_TYPE, VERDICT_TYPE};
use crate::bundle::attest::{
    Envelope, KeySource, PublicKey, Sealed, Statement, Subject, Verdict, companions, trust,
};
use crate::bundle::report::Report;
use crate::values::digest::Digest;
use crate::values::json::{self, JsonError};
use crate::values::time::Utc;

/// Who signed a bundle, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    pub standing: SignatureStanding,
    /// SHA-256 of the key's SubjectPublicKeyInfo; null when no key signed what is there.
    pub key_id: Option<Digest>,
    /// What the key is called here.
    pub label: Option<String>,
    /// The signer's own clock.
    pub signed_at: Option<Utc>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignatureStanding {
    /// By a key of this machine.
    Own,
    /// By a key the caller trusts.
    Trusted,
    /// By a key nothing is known of, or one already retired.
    Unknown,
    Revoked,
    /// Missing, broken, or about something else.
    Invalid,
}

impl Signature {
    pub(super) fn none() -> Self {
        Self {
            standing: SignatureStanding::Invalid,
            key_id: None,
            label: None,
            signed_at: None,
        }
    }

    pub fn counts(&self) -> bool {
        matches!(
            self.standing,
            SignatureStanding::Own | SignatureStanding::Trusted
        )
    }
}

const CHECK: &str = "signature";

impl Verifier<'_> {
    /// Whole, by one key, about these files; then what that key is worth here.
    pub(super) fn signature(
        &mut self,
        report: Option<&Report>,
        sums: Option<&BTreeMap<String, Digest>>,
    ) -> Signature {
        let Some((verdict, key)) = self.verdict_statement() else {
            return Signature::none();
        };
        let before = self.problems.len();
        let signature = Signature {
            standing: SignatureStanding::Invalid,
            key_id: Some(key.id()),
            label: None,
            signed_at: Some(verdict.predicate.signed_at),
        };
        match (report, sums) {
            (Some(report), Some(sums)) => {
                let sums_sha256 = Digest::of(self.bytes(bundle::SUMS));
                let sealed = Sealed {
                    report,
                    sums,
                    sums_sha256,
                };
                self.subjects(&sealed, &verdict.subject);
                self.predicate(&sealed, &verdict, &key);
                self.companions(&sealed, &verdict.predicate, &key);
            }
            _ => self.problem(
                CHECK,
                bundle::ATTESTATION,
                "what it was signed for cannot be read",
            ),
        }
        // What is signed are the sums; where they are not those of the files, nothing that lies
        // here was signed.
        let other_files = self
            .problems
            .iter()
            .any(|problem| matches!(problem.check.as_str(), "files" | "sums"));
        if self.problems.len() > before || other_files {
            return signature;
        }
        self.standing(signature, &verdict.predicate, &key)
    }

    /// The statement of `attestation.json`, once it is signed by the very key it names.
    fn verdict_statement(&mut self) -> Option<(Statement<Verdict>, PublicKey)> {
        let name = bundle::ATTESTATION;
        if !self.found.files.contains_key(name) {
            self.problem(CHECK, name, "is missing: nothing says who made this bundle");
            return None;
        }
        let opened = match Envelope::open(self.bytes(name)) {
            Ok(opened) => opened,
            Err(error) => {
                self.problem(CHECK, name, error.to_string());
                return None;
            }
        };
        let payload = json::parse_strict(&opened.payload);
        let says = |key: &str, value: &str| {
            payload
                .as_ref()
                .is_ok_and(|payload| payload.get(key).is_some_and(|v| v == value))
        };
        if payload.is_ok()
            && !(says("_type", STATEMENT_TYPE) && says("predicateType", VERDICT_TYPE))
        {
            self.problem(
                CHECK,
                name,
                format!("is not a statement of {STATEMENT_TYPE} with the predicate {VERDICT_TYPE}"),
            );
            return None;
        }
        let verdict = payload.and_then(|payload| {
            Statement::<Verdict>::deserialize(payload).map_err(JsonError::Shape)
        });
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                self.problem(CHECK, name, format!("the signed statement {error}"));
                return None;
            }
        };
        let Some(key) = verdict.predicate.signer.key() else {
            self.problem(
                CHECK,
                name,
                "names a signer that is not an Ed25519 key with that id",
            );
            return None;
        };
        if !opened.signed_by(&key) {
            self.problem(
                CHECK,
                name,
                format!(
                    "the signature is not that of key {} over this statement",
                    key.id().short()
                ),
            );
            return None;
        }
        Some((verdict, key))
    }

    /// The subjects are exactly the artifacts, each with its digest, and the result.
    fn subjects(&mut self, sealed: &Sealed<'_>, signed: &[Subject]) {
        let expected = statement::subjects(sealed);
        if signed == expected {
            return;
        }
        let before = self.problems.len();
        for subject in &expected {
            match signed.iter().find(|found| found.name == subject.name) {
                None => self.problem(CHECK, &subject.name, "was not signed"),
                Some(found) if found != subject => {
                    self.problem(CHECK, &subject.name, "is not what was signed")
                }
                Some(_) => {}
            }
        }
        for subject in signed
            .iter()
            .filter(|subject| !expected.iter().any(|known| known.name == subject.name))
        {
            self.problem(CHECK, &subject.name, "was signed, but is not in the bundle");
        }
        if self.problems.len() == before {
            self.problem(
                CHECK,
                bundle::ATTESTATION,
                "names a subject twice or out of order",
            );
        }
    }

    /// What was signed about the run is what the report says.
    fn predicate(&mut self, sealed: &Sealed<'_>, verdict: &Statement<Verdict>, key: &PublicKey) {
        let signed = &verdict.predicate;
        let again = statement::verdict(sealed, signed.companions.clone(), key, signed.signed_at);
        if again.predicate == *signed {
            return;
        }
        let as_json = |verdict: &Verdict| serde_json::to_value(verdict).unwrap_or_default();
        let (expected, found) = (as_json(&again.predicate), as_json(signed));
        let Value::Object(expected) = expected else {
            return;
        };
        for (field, value) in &expected {
            if found.get(field) != Some(value) {
                self.problem(
                    CHECK,
                    bundle::ATTESTATION,
                    format!("{field} was signed with another value"),
                );
            }
        }
    }

    /// Each companion is the envelope that was bound, by the same key, and says what the report
    /// says.
    fn companions(&mut self, sealed: &Sealed<'_>, signed: &Verdict, key: &PublicKey) {
        for (name, statement) in companions::statements(sealed, key) {
            let bound = signed.companions.get(name);
            match self.found.files.get(name) {
                None => self.problem(CHECK, name, "is missing"),
                Some(file) if Some(&file.sha256) != bound => {
                    self.problem(CHECK, name, "is not the companion that was signed")
                }
                Some(_) => match Envelope::open(self.bytes(name)) {
                    Err(error) => self.problem(CHECK, name, error.to_string()),
                    Ok(opened) if !opened.signed_by(key) => {
                        self.problem(CHECK, name, "is not signed by the bundle's key")
                    }
                    Ok(opened)
                        if json::canonical(&statement).ok().as_ref() != Some(&opened.payload) =>
                    {
                        self.problem(CHECK, name, "does not say what the report says");
                    }
                    Ok(_) => {}
                },
            }
        }
        let known = |name: &str| bundle::SIGNED.contains(&name);
        let strange = signed.companions.keys().chain(
            self.found
                .files
                .keys()
                .chain(&self.found.unread)
                .filter(|name| name.starts_with(bundle::ATTESTATIONS_DIR)),
        );
        let strange: Vec<String> = strange.filter(|name| !known(name)).cloned().collect();
        for name in strange {
            self.problem(CHECK, &name, "is not an attestation of this format");
        }
    }

    fn standing(&mut self, signature: Signature, signed: &Verdict, key: &PublicKey) -> Signature {
        let trust = self.trust;
        match trust.standing(key.id(), signed.signed_at) {
            trust::Standing::Counts(known) => Signature {
                standing: match known.source {
                    KeySource::Own => SignatureStanding::Own,
                    KeySource::Operator => SignatureStanding::Trusted,
                },
                label: Some(known.label.clone()),
                ..signature
            },
            trust::Standing::Open(why) => {
                self.unknown(CHECK, bundle::ATTESTATION, why);
                Signature {
                    standing: SignatureStanding::Unknown,
                    ..signature
                }
            }
            trust::Standing::Refused(why) => {
                self.problem(CHECK, bundle::ATTESTATION, why);
                Signature {
                    standing: SignatureStanding::Revoked,
                    ..signature
                }
            }
        }
    }
}
