//! What a bundle starts from: who the run is, what it was asked, and, of a settlement, the bundle it goes on from.

use cto_core::bundle::report::{Continues, RunIdentity};
use cto_core::task::contract::{ContractDocument, SealedContract};
use cto_core::values::digest::Digest;

use crate::evidence::keys::KeyStore;
use crate::evidence::secrets::Secrets;

/// What a run starts from.
pub struct Opening {
    pub identity: RunIdentity,
    pub contract: ContractDocument,
    pub sealed_contract: SealedContract,
    /// What the contract names by digest, by name.
    pub beside: Vec<(&'static str, Vec<u8>)>,
    pub secrets: Secrets,
    /// Whose key signs at the end.
    pub keys: KeyStore,
    /// Only of a settlement: the bundle it goes on from.
    pub goes_on: Option<GoesOn>,
}

/// The bundle that a settlement goes on from, and where its chain ends.
#[derive(Clone)]
pub struct GoesOn {
    pub from: Continues,
    pub head: Digest,
}
