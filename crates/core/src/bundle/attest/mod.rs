//! What a bundle's signature says: an in-toto statement about every artifact, in a DSSE envelope.
//!
//! Here are the bytes that are signed and what a signature means; the harness holds the keys.
//! Everything a statement says is derived from the report and the sums, so a verifier builds it
//! again and compares.
//!
//! - `statement.rs` what is signed; `companions.rs` the same in the words of SLSA and in-toto
//! - `dsse.rs` the envelope; `key.rs` public keys; `trust.rs` whose signatures count here

pub mod companions;
pub mod dsse;
pub mod key;
pub mod statement;
pub mod trust;

pub use companions::{PROVENANCE, TEST_RESULT};
pub use dsse::{Envelope, PAYLOAD_TYPE, pae};
pub use key::{KeyError, PublicKey, ssh_string};
pub use statement::{Statement, Subject, Verdict, verdict};
pub use trust::{KeyRecord, KeySource, KeyState, Trust};

use std::collections::BTreeMap;

use crate::bundle::report::Report;
use crate::values::digest::Digest;

/// What every statement about a bundle is made from.
#[derive(Clone, Copy)]
pub struct Sealed<'a> {
    pub report: &'a Report,
    /// What `SHA256SUMS` lists.
    pub sums: &'a BTreeMap<String, Digest>,
    /// The digest of `SHA256SUMS` itself.
    pub sums_sha256: Digest,
}
