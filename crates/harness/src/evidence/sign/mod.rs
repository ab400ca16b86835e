//! Signing what was sealed: with the machine's key, the operator's SSH key, or a program that holds
//! one.
//!
//! - this file: which key, and what it signs; `openssh.rs` SSH keys; `command.rs` a program that
//!   signs

mod command;
mod openssh;

use std::collections::BTreeMap;
use std::path::Path;

use cto_core::bundle;
use cto_core::bundle::attest::{
    Envelope, PAYLOAD_TYPE, PublicKey, Sealed, companions, pae, verdict,
};
use cto_core::values::digest::Digest;
use cto_core::values::json::{self, JsonError};
use cto_core::values::time::Utc;
use ed25519_dalek::{Signer as _, SigningKey};

use cto_gateway::operator_program::OperatorProgram;

use crate::evidence::keys::{self, Choice, KeyStore, KeysError, MACHINE_LABEL};
use crate::host::Env;
use crate::host::programs::{self, NoProgram};

#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("{} is not an OpenSSH Ed25519 private key without a passphrase", .0.display())]
    NotOpenSsh(std::path::PathBuf),
    #[error("the signing command {program:?} {what}")]
    Command { program: String, what: String },
    #[error("the signing command may not run")]
    Program(#[from] NoProgram),
    #[error("the signature made is not one of key {0}")]
    Wrong(String),
    #[error(transparent)]
    Json(#[from] JsonError),
}

enum Means {
    Held(Box<SigningKey>),
    Program(OperatorProgram),
}

/// A key that can sign now.
pub struct Signer {
    means: Means,
    key: PublicKey,
}

impl Signer {
    /// The signer the operator chose, ready to use; the machine's own key is made if it must be.
    pub fn ready(store: &KeyStore) -> Result<Self, SignError> {
        let (signer, label) = Self::of(store, &store.choice()?)?;
        store.own(&signer.key, &label)?;
        Ok(signer)
    }

    /// The signer of a choice, and what its key is called here.
    pub fn of(store: &KeyStore, choice: &Choice) -> Result<(Self, String), SignError> {
        Ok(match choice {
            Choice::Machine => (Self::held(store.machine_key()?)?, MACHINE_LABEL.to_owned()),
            Choice::Ssh { file } => (
                Self::held(ssh_key(file)?)?,
                format!("SSH key {}", file_name(file)),
            ),
            Choice::Command { argv, public_key } => {
                let key = PublicKey::from_text(public_key).map_err(|source| KeysError::Public {
                    path: store.dir().to_owned(),
                    source,
                })?;
                let label = format!(
                    "command {}",
                    argv.first()
                        .map_or("", |program| file_name(Path::new(program)))
                );
                (
                    Self {
                        means: Means::Program(programs::to_start(
                            argv,
                            &Env::of_process(),
                            &store.home(),
                        )?),
                        key,
                    },
                    label,
                )
            }
        })
    }

    fn held(secret: SigningKey) -> Result<Self, SignError> {
        let key = keys::public_of(&secret)?;
        Ok(Self {
            means: Means::Held(Box::new(secret)),
            key,
        })
    }

    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Signs, and believes nothing: what was made must be a signature of the key that is named.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let signature = match &self.means {
            Means::Held(secret) => secret.sign(message).to_bytes().to_vec(),
            Means::Program(program) => command::sign(program, message)?,
        };
        match self.key.signed(message, &signature) {
            true => Ok(signature),
            false => Err(SignError::Wrong(self.key.id().short())),
        }
    }

    /// Every envelope of a bundle by name; `attestation.json`, which binds the others, comes last.
    pub fn attest(
        &self,
        sealed: &Sealed<'_>,
        signed_at: Utc,
    ) -> Result<Vec<(&'static str, Vec<u8>)>, SignError> {
        let mut envelopes = Vec::new();
        let mut bound = BTreeMap::new();
        for (name, statement) in companions::statements(sealed, &self.key) {
            let bytes = self.envelope(&json::canonical(&statement)?)?;
            bound.insert(name.to_owned(), Digest::of(&bytes));
            envelopes.push((name, bytes));
        }
        let statement = verdict(sealed, bound, &self.key, signed_at);
        envelopes.push((
            bundle::ATTESTATION,
            self.envelope(&json::canonical(&statement)?)?,
        ));
        Ok(envelopes)
    }

    fn envelope(&self, payload: &[u8]) -> Result<Vec<u8>, SignError> {
        let signature = self.sign(&pae(PAYLOAD_TYPE, payload))?;
        Ok(Envelope::seal(payload, self.key.id(), &signature).to_bytes()?)
    }
}

fn ssh_key(file: &Path) -> Result<SigningKey, SignError> {
    let bytes = keys::read_secret(file)?;
    openssh::parse(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| SignError::NotOpenSsh(file.to_owned()))
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("without a name")
}
