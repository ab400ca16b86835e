//! Whose signatures count here: the known keys, and whether each is active, retired or revoked.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key::{KeyError, PublicKey};
use crate::bundle::approval::signers::Signers;
use crate::values::digest::Digest;
use crate::values::json::{self, JsonError};
use crate::values::time::Utc;

/// One key this machine knows: `<state home>/keys/known/<key id>.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyRecord {
    pub schema_version: u32,
    pub key_id: Digest,
    /// PEM, as `openssl` reads it.
    pub public_key: String,
    /// A label for people.
    pub label: String,
    pub source: KeySource,
    pub added_at: Utc,
    pub state: KeyState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeySource {
    /// This machine signs or signed with it.
    Own,
    /// The operator said to trust it.
    Operator,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum KeyState {
    Trusted,
    /// No longer signs; what it signed before still counts.
    Rotated {
        at: Utc,
    },
    /// Nothing it signed counts: whoever has it can write any time into a signature.
    Revoked {
        at: Utc,
        reason: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("the public key {0}")]
    Key(#[from] KeyError),
    #[error("names another key than the one it holds")]
    Name,
    #[error("schema_version {0} is not known")]
    Version(u32),
}

impl KeyRecord {
    pub fn new(key: &PublicKey, label: &str, source: KeySource, added_at: Utc) -> Self {
        Self {
            schema_version: 1,
            key_id: key.id(),
            public_key: key.to_pem(),
            label: label.to_owned(),
            source,
            added_at,
            state: KeyState::Trusted,
        }
    }

    pub fn read(bytes: &[u8]) -> Result<(Self, PublicKey), RecordError> {
        let record: Self = json::read(bytes)?;
        if record.schema_version != 1 {
            return Err(RecordError::Version(record.schema_version));
        }
        let key = PublicKey::from_text(&record.public_key)?;
        if key.id() != record.key_id {
            return Err(RecordError::Name);
        }
        Ok((record, key))
    }
}

/// What is known of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    pub label: String,
    pub source: KeySource,
    pub state: KeyState,
}

/// Every key whose standing is known. An empty one trusts nobody.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    keys: BTreeMap<Digest, Known>,
    /// Who may approve.
    signers: Signers,
}

/// What a key's standing means for a bundle it signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing<'a> {
    Counts(&'a Known),
    /// Not known to be good, not known to be bad.
    Open(String),
    Refused(String),
}

impl Trust {
    /// The same, with these who may approve.
    pub fn with_signers(self, signers: Signers) -> Self {
        Self { signers, ..self }
    }

    pub fn signers(&self) -> &Signers {
        &self.signers
    }

    /// A key the caller trusts by naming it.
    pub fn named(&mut self, key: &PublicKey, label: &str) {
        let known = Known {
            label: label.to_owned(),
            source: KeySource::Operator,
            state: KeyState::Trusted,
        };
        self.insert(key.id(), known);
    }

    pub fn record(&mut self, record: &KeyRecord) {
        let known = Known {
            label: record.label.clone(),
            source: record.source,
            state: record.state.clone(),
        };
        self.insert(record.key_id, known);
    }

    /// If two sources disagree about a key, the worse state counts.
    fn insert(&mut self, id: Digest, known: Known) {
        let rank = |known: &Known| match known.state {
            KeyState::Trusted => 0,
            KeyState::Rotated { .. } => 1,
            KeyState::Revoked { .. } => 2,
        };
        match self.keys.get(&id) {
            Some(before) if rank(before) > rank(&known) => {}
            _ => drop(self.keys.insert(id, known)),
        }
    }

    /// Only what is known against keys: a caller who names keys replaces trust, never a revocation.
    pub fn only_revocations(mut self) -> Self {
        self.keys
            .retain(|_, known| matches!(known.state, KeyState::Revoked { .. }));
        self
    }

    pub fn is_empty(&self) -> bool {
        !self
            .keys
            .values()
            .any(|known| !matches!(known.state, KeyState::Revoked { .. }))
    }

    /// Does a signature with this key, said to be of this time, count?
    pub fn standing(&self, key: Digest, signed_at: Utc) -> Standing<'_> {
        match self.keys.get(&key) {
            None if self.is_empty() => Standing::Open(format!(
                "signed by key {}, and no key is trusted here",
                key.short()
            )),
            None => Standing::Open(format!(
                "signed by key {}, which is not trusted here",
                key.short()
            )),
            Some(known) => match &known.state {
                KeyState::Trusted => Standing::Counts(known),
                KeyState::Rotated { at } if signed_at <= *at => Standing::Counts(known),
                KeyState::Rotated { at } => Standing::Open(format!(
                    "says it was signed at {signed_at}, after key {} was retired at {at}",
                    key.short()
                )),
                KeyState::Revoked { at, reason } => Standing::Refused(format!(
                    "signed by key {}, which was revoked at {at}: {reason}",
                    key.short()
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> PublicKey {
        let secret = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
        PublicKey::from_bytes(&secret.verifying_key().to_bytes()).unwrap()
    }

    fn at(second: i64) -> Utc {
        Utc::from_millis(1_767_323_045_000 + second * 1000).unwrap()
    }

    fn record(seed: u8, state: KeyState) -> KeyRecord {
        KeyRecord {
            state,
            ..KeyRecord::new(&key(seed), "a key", KeySource::Operator, at(0))
        }
    }

    #[test]
    fn standings() {
        let mut trust = Trust::default();
        assert!(
            matches!(trust.standing(key(1).id(), at(0)), Standing::Open(why) if why.contains("no key is trusted"))
        );
        trust.record(&record(1, KeyState::Trusted));
        trust.record(&record(2, KeyState::Rotated { at: at(10) }));
        trust.record(&record(
            3,
            KeyState::Revoked {
                at: at(10),
                reason: "lost".into(),
            },
        ));
        assert!(matches!(
            trust.standing(key(1).id(), at(99)),
            Standing::Counts(_)
        ));
        assert!(matches!(
            trust.standing(key(2).id(), at(10)),
            Standing::Counts(_)
        ));
        assert!(
            matches!(trust.standing(key(2).id(), at(11)), Standing::Open(why) if why.contains("retired"))
        );
        assert!(
            matches!(trust.standing(key(3).id(), at(0)), Standing::Refused(why) if why.contains("lost"))
        );
        assert!(
            matches!(trust.standing(key(4).id(), at(0)), Standing::Open(why) if why.contains("not trusted here"))
        );
    }

    #[test]
    fn a_revocation_outlives_every_other_word() {
        let revoked = record(
            1,
            KeyState::Revoked {
                at: at(10),
                reason: "lost".into(),
            },
        );
        let mut trust = Trust::default();
        trust.record(&revoked);
        let mut trust = trust.only_revocations();
        assert!(trust.is_empty());
        trust.named(&key(1), "named after all");
        assert!(matches!(
            trust.standing(key(1).id(), at(0)),
            Standing::Refused(_)
        ));
        let mut other = Trust::default();
        other.named(&key(1), "first");
        other.record(&revoked);
        assert!(matches!(
            other.standing(key(1).id(), at(0)),
            Standing::Refused(_)
        ));
    }

    #[test]
    fn records_read_back_and_name_their_own_key() {
        let good = record(
            1,
            KeyState::Revoked {
                at: at(10),
                reason: "lost".into(),
            },
        );
        let bytes = json::pretty(&good).unwrap();
        assert_eq!(KeyRecord::read(&bytes).unwrap(), (good.clone(), key(1)));
        let other = KeyRecord {
            key_id: key(2).id(),
            ..good.clone()
        };
        assert!(matches!(
            KeyRecord::read(&json::pretty(&other).unwrap()),
            Err(RecordError::Name)
        ));
        let newer = KeyRecord {
            schema_version: 2,
            ..good
        };
        assert!(matches!(
            KeyRecord::read(&json::pretty(&newer).unwrap()),
            Err(RecordError::Version(2))
        ));
    }
}
