//! `contract.json` as bytes, and its two digests: written here, and read from a stranger's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::case_file::ContractIssue;
use crate::task::contract::Contract;
use crate::values::digest::Digest;
use crate::values::json::{self, JsonError};

/// `contract.json` when the case could not be resolved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InvalidContract {
    pub invalid: bool,
    pub errors: Vec<ContractIssue>,
}

/// What `contract.json` holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContractDocument {
    Valid(Box<Contract>),
    Invalid(InvalidContract),
}

/// `contract.json` as bytes, with both digests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedContract {
    pub bytes: Vec<u8>,
    pub task_digest: Digest,
    pub contract_digest: Digest,
}

impl ContractDocument {
    pub fn valid(&self) -> Option<&Contract> {
        match self {
            Self::Valid(contract) => Some(contract),
            Self::Invalid(_) => None,
        }
    }

    pub fn seal(&self) -> Result<SealedContract, JsonError> {
        match self {
            Self::Valid(contract) => {
                let bytes = json::canonical(contract)?;
                let contract_digest = Digest::of(&bytes);
                Ok(SealedContract {
                    task_digest: task_digest(&bytes)?,
                    contract_digest,
                    bytes,
                })
            }
            Self::Invalid(invalid) => {
                let bytes = json::canonical(invalid)?;
                let digest = Digest::of(&bytes);
                Ok(SealedContract {
                    bytes,
                    task_digest: digest,
                    contract_digest: digest,
                })
            }
        }
    }

    /// Reads a `contract.json`, ours or a stranger's, and recomputes its digests from the bytes.
    pub fn read(bytes: &[u8]) -> Result<(Self, SealedContract), JsonError> {
        let value = json::parse_strict(bytes)?;
        let canonical = json::canonical_value(&value)?;
        let contract_digest = Digest::of(&canonical);
        if value.get("invalid").is_some() {
            let invalid = serde_json::from_value(value).map_err(JsonError::Shape)?;
            let sealed = SealedContract {
                bytes: canonical,
                task_digest: contract_digest,
                contract_digest,
            };
            return Ok((Self::Invalid(invalid), sealed));
        }
        let contract = serde_json::from_value(value).map_err(JsonError::Shape)?;
        let sealed = SealedContract {
            task_digest: task_digest(&canonical)?,
            contract_digest,
            bytes: canonical,
        };
        Ok((Self::Valid(Box::new(contract)), sealed))
    }
}

/// Digest of the canonical contract with `lane` removed.
pub(super) fn task_digest(contract: &[u8]) -> Result<Digest, JsonError> {
    let mut value = json::parse_strict(contract)?;
    if let Some(map) = value.as_object_mut() {
        map.remove("lane");
    }
    Ok(Digest::of(&json::canonical_value(&value)?))
}
