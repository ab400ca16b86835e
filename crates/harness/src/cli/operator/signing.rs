//! The operator's own SSH key, under what they say: which one it is, and whose by the record of allowed signers.
//! `run/approvals/signature.rs` signs with it.

use std::path::{Path, PathBuf};

use cto_core::bundle::approval::signers::Signers;
use cto_core::bundle::approval::sshsig::Purpose;
use cto_core::bundle::attest::PublicKey;
use serde::{Deserialize, Serialize};

use crate::cli::Context;
use crate::evidence::signers;
use crate::host::failure::Failure;
use crate::host::{Home, files};
use crate::run::approvals::signature::{self, Signing};
use crate::run::approvals::store::Kept;

const MAX_KEY: u64 = 16 << 10;

#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct SigningArgs {
    /// Your SSH key (Ed25519): the private key, or the public one where an agent holds the other
    /// [default: ~/.ssh/id_ed25519]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// A key that may say something here, and whose it is.
pub struct Signer {
    key: PathBuf,
    pub actor: String,
    purpose: Purpose,
}

impl SigningArgs {
    /// The key that signs, where the record of allowed signers lets it say this.
    pub fn signer(
        &self,
        context: &Context,
        home: &Home,
        purpose: Purpose,
    ) -> Result<Signer, Failure> {
        let bad = |what: &str, path: &Path| {
            Failure::usage("bad_key", what)
                .at(path.display().to_string())
                .so("nothing was written")
        };
        let key = match &self.key {
            Some(key) => std::path::absolute(key)
                .map_err(|error| bad("the key cannot be found", key).because(&error))?,
            None => match context.env.path("HOME") {
                Some(home) => home.join(".ssh/id_ed25519"),
                None => return Err(bad("no key was named", Path::new("--key"))),
            },
        };
        let public = match key.extension().is_some_and(|extension| extension == "pub") {
            true => key.clone(),
            false => PathBuf::from(format!("{}.pub", key.display())),
        };
        let text = files::read_limited(&public, MAX_KEY).map_err(|error| {
            bad("the public half of the key cannot be read", &public).because(&error)
        })?;
        let public_key = PublicKey::from_text(&String::from_utf8_lossy(&text))
            .map_err(|error| bad("the key cannot be used", &public).because(&error))?;
        let (cannot, may_not) = words(purpose);
        let signers: Signers = signers::of(home).map_err(|why| {
            Failure::blocked("signers_not_believed", cannot)
                .reason(why)
                .so("nothing was written")
        })?;
        match signers.actor(&public_key, purpose) {
            Some(actor) => Ok(Signer {
                key,
                actor: actor.to_owned(),
                purpose,
            }),
            None => Err(Failure::blocked("not_a_signer", may_not)
                .at(signers::path(home).display().to_string())
                .so("nothing was written")
                .hint(format!(
                    "`{}` lets it",
                    context.output.command("keys approver NAME FILE.pub")
                ))),
        }
    }
}

fn words(purpose: Purpose) -> (&'static str, &'static str) {
    match purpose {
        Purpose::Approval => ("nobody can approve here", "this key may not approve here"),
        Purpose::Outcome => (
            "nobody can say here what becomes of a result",
            "this key may not say here what becomes of a result",
        ),
    }
}

impl Signer {
    pub fn sign(&self, context: &Context, home: &Home, record: Vec<u8>) -> Result<Kept, Failure> {
        let by = Signing {
            key: &self.key,
            purpose: self.purpose,
            actor: &self.actor,
        };
        signature::sign((home, &context.env), by, record)
    }
}
