//! What is recorded in an open bundle, without secrets and with other names for paths of this host.

use cto_core::values::event_type::EventType;
use cto_core::values::json::JsonError;

use super::{EvidenceError, OpenBundle};
use crate::evidence::secrets::{Hits, Quoted, Secrets};

impl OpenBundle {
    /// Words of this document are quoted as they stand, paths of the host in them included.
    pub fn quote(&mut self, document: &impl serde::Serialize) -> Result<(), EvidenceError> {
        let words = serde_json::to_value(document).map_err(JsonError::Write)?;
        let more = self.secrets.names.spoken(&words);
        self.spoken.extend(more);
        Ok(())
    }

    pub(super) fn in_documents(&self, quoted: Quoted) -> &Secrets {
        let [others, ourselves, repository] = &self.of_documents;
        match quoted {
            Quoted::Others => others,
            Quoted::Ourselves => ourselves,
            Quoted::Repository => repository,
        }
    }

    /// A document of ours without secrets, and with other names for paths of this host. Whoever decoded what stands in
    /// it may have made a value of what was none in the bytes.
    pub(super) fn cleaned<T>(
        &mut self,
        artifact: &str,
        document: T,
        quoted: Quoted,
    ) -> Result<T, EvidenceError>
    where
        T: serde::Serialize + serde::de::DeserializeOwned,
    {
        let secrets = self.in_documents(quoted);
        let nothing_to_find = secrets.knows_nothing() && quoted != Quoted::Others;
        if self.secrets.names.is_empty() && nothing_to_find {
            return Ok(document);
        }
        let mut value = serde_json::to_value(&document).map_err(JsonError::Write)?;
        let renamed = self.secrets.names.rename(&mut value, &self.spoken);
        let hits = secrets.clean(&mut value);
        self.note_leak(artifact, hits);
        match (renamed, hits.total()) {
            (false, 0) => Ok(document),
            (true, 0) => Ok(serde_json::from_value(value).map_err(JsonError::Shape)?),
            // A word of its shape: nothing could be said without it.
            _ => serde_json::from_value(value).map_err(|_| EvidenceError::Secret {
                artifact: artifact.to_owned(),
            }),
        }
    }

    /// Something the report says of the engine beside its verdict.
    pub fn warn(&mut self, warning: String) {
        let (warning, _) = self
            .in_documents(Quoted::Ourselves)
            .redact(warning.as_bytes());
        let warning = self.secrets.names.name(&warning);
        let warning = String::from_utf8_lossy(&warning).into_owned();
        self.identity.engine.warnings.push(warning);
    }

    /// Text from outside, without secrets or dangerous characters.
    pub fn clean(&self, text: &str) -> String {
        let (bytes, _) = self.secrets.redact(text.as_bytes());
        cto_core::values::text::tame_excerpt(&String::from_utf8_lossy(&bytes))
    }

    /// Remembers that a stream or patch held a secret; the run cannot pass.
    pub fn note_leak(&mut self, place: &str, hits: Hits) {
        if hits.known > 0 {
            *self.leaks.entry(place.to_owned()).or_default() += hits.known;
        }
    }
}

/// Whose words an event holds.
pub(super) fn quoted_in(kind: EventType) -> Quoted {
    match kind {
        EventType::PatchApplied
        | EventType::GitDiffChecked
        | EventType::VerificationCompleted
        | EventType::BranchPolicyRecorded
        | EventType::BranchPolicyChecked => Quoted::Repository,
        kind if kind.is_engine() => Quoted::Others,
        _ => Quoted::Ourselves,
    }
}
