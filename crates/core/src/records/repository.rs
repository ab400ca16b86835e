//! The record of a repository that a case may be run on a copy of: whose it is, and why that is so.

use super::fields::record;
use super::{Field, Record, RecordKind};
use crate::task::source::{SourceClass, SourceRecord};

record! {
    /// A source-repository record, for `--source`.
    SourceRepositoryRecord
    required {
        path: String => Takes::Path;
        owner: String => Takes::Word;
        ownership_evidence: String => Takes::Text;
        class: SourceClass => Takes::OneOf(&["owned_local"]);
    }
    optional {}
}

impl Record for SourceRepositoryRecord {
    const KIND: RecordKind = RecordKind::Repository;
    const FIELDS: &'static [Field] = Self::TABLE;
}

impl SourceRepositoryRecord {
    /// As a contract has it: where it lies is said by digest alone.
    pub fn in_contract(&self) -> SourceRecord {
        SourceRecord {
            path: None,
            owner: self.owner.clone(),
            ownership_evidence: self.ownership_evidence.clone(),
            class: self.class,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::records::tests::table;

    #[test]
    fn every_field_is_guarded() {
        table::<SourceRepositoryRecord>(&json!({
            "path": "/srv/project", "owner": "me", "ownership_evidence": "I made it", "class": "owned_local",
        }));
    }
}
