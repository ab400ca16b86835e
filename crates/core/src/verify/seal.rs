//! Does the seal of a bundle bear out its report? The short question of a list: one signature over
//! one digest. That a bundle is whole is asked by [`verify`](super::verify).

use serde::{Deserialize, Serialize};

use crate::bundle;
use crate::bundle::attest::statement::{STATEMENT_TYPE, VERDICT_TYPE};
use crate::bundle::attest::{Envelope, Statement, Subject, Verdict};
use crate::values::digest::Digest;
use crate::values::json;
use crate::values::time::Utc;

/// The key that sealed a report, whatever it is worth here, and when by its own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SealedBy {
    pub key_id: Digest,
    pub signed_at: Utc,
}

/// Why a report is not what was sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BrokenSeal {
    #[error("attestation.json is not a signed statement about a run")]
    NoStatement,
    #[error("attestation.json is not signed by the key it names")]
    NotSigned,
    #[error("report.json is not the one that was sealed")]
    OtherReport,
}

/// Who sealed these very bytes.
pub fn sealed_by(report: &[u8], attestation: &[u8]) -> Result<SealedBy, BrokenSeal> {
    let opened = Envelope::open(attestation).map_err(|_| BrokenSeal::NoStatement)?;
    let statement: Statement<Verdict> =
        json::read(&opened.payload).map_err(|_| BrokenSeal::NoStatement)?;
    if statement.kind != STATEMENT_TYPE || statement.predicate_type != VERDICT_TYPE {
        return Err(BrokenSeal::NoStatement);
    }
    let signed = &statement.predicate;
    let key = signed.signer.key().ok_or(BrokenSeal::NoStatement)?;
    if !opened.signed_by(&key) {
        return Err(BrokenSeal::NotSigned);
    }
    let sealed = Subject::file(bundle::REPORT, Digest::of(report));
    let mut named = statement
        .subject
        .iter()
        .filter(|subject| subject.name == bundle::REPORT);
    if named.next() != Some(&sealed) || named.next().is_some() {
        return Err(BrokenSeal::OtherReport);
    }
    Ok(SealedBy {
        key_id: key.id(),
        signed_at: signed.signed_at,
    })
}
