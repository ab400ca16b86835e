//! The gate record: the operator's standing word that an engine may be chosen, for as long as its
//! program stays the one it was given for.
//!
//! It opens nothing by itself: [`crate::gate::opening`] decides where it counts.

use super::fields::record;
use super::{Field, Record, RecordKind, ReviewTrigger};
use crate::values::digest::Digest;
use crate::values::ids::EngineId;

record! {
    /// A gate record: one engine, with one program.
    GateRecord
    required {
        engine: EngineId => Takes::Engine;
        /// The program that was admitted when the gate was opened.
        executable_sha256: Digest => Takes::Sha256;
        /// Who opened it, and where that is written down.
        approval_source: String => Takes::Text;
        opened_timestamp: String => Takes::When;
        review_trigger: ReviewTrigger => Takes::Trigger;
    }
    optional {}
}

impl Record for GateRecord {
    const KIND: RecordKind = RecordKind::Gate;
    const FIELDS: &'static [Field] = Self::TABLE;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::records::tests::table;

    #[test]
    fn every_field() {
        table::<GateRecord>(&json!({
            "engine": "pi", "executable_sha256": Digest::of(b"pi"), "approval_source": "the owner",
            "opened_timestamp": "2026-06-01T00:00:00Z", "review_trigger": ["stage_beyond:3", "date:2030-01-01"],
        }));
    }
}
