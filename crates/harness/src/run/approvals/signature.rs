//! Signatures in OpenSSH's own format, made by the real `ssh-keygen` with a key that is named by its file. No key is
//! read here. Whoever signs, a person or a validator in a place of its own, does it by this one way.

use std::path::Path;
use std::time::Duration;

use cto_core::bundle::approval::sshsig::{Purpose, signer_of};
use cto_gateway::operator_program::{self, Limits};

use crate::evidence::signers;
use crate::host::failure::Failure;
use crate::host::{Env, Home, programs};
use crate::run::approvals::store::Kept;

const LIMITS: Limits = Limits {
    // Long enough for a person to unlock a key or to touch a token.
    time: Duration::from_secs(120),
    output_bytes: 16 << 10,
};

/// The key that signs, for what, and whose it is by the record of allowed signers.
#[derive(Clone, Copy)]
pub struct Signing<'a> {
    pub key: &'a Path,
    pub purpose: Purpose,
    pub actor: &'a str,
}

/// Signs a record with the operator's own program, and checks what it made.
pub fn sign((home, env): (&Home, &Env), by: Signing<'_>, record: Vec<u8>) -> Result<Kept, Failure> {
    let key = by.key.display().to_string();
    let words = ["-q", "-Y", "sign", "-n", by.purpose.namespace(), "-f", &key];
    let made = keygen((home, env), &words, &record)?;
    let signature = String::from_utf8(made).map_err(|error| unsigned(&error))?;
    let signed = signer_of(&signature, &record, by.purpose).map_err(|error| unsigned(&error))?;
    let signers = signers::of(home).unwrap_or_default();
    if signers.actor(&signed, by.purpose) != Some(by.actor) {
        return Err(Failure::blocked(
            "not_signed",
            "it was signed with another key than the one that was named",
        )
        .so("nothing was written"));
    }
    let record = String::from_utf8(record).map_err(|error| unsigned(&error))?;
    Ok(Kept { record, signature })
}

/// A key without a passphrase, made for an occasion: its public half lies beside it.
pub fn make_key((home, env): (&Home, &Env), at: &Path) -> Result<(), Failure> {
    let at = at.display().to_string();
    let words = ["-q", "-t", "ed25519", "-N", "", "-C", "cto", "-f", &at];
    keygen((home, env), &words, b"").map(drop)
}

fn keygen(
    (home, env): (&Home, &Env),
    arguments: &[&str],
    input: &[u8],
) -> Result<Vec<u8>, Failure> {
    let program = programs::ssh_keygen(env, home).map_err(|error| unsigned(&error))?;
    let program = program.path().display().to_string();
    let words = [&[program.as_str()][..], arguments].concat();
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let program = programs::to_start(&words, env, home).map_err(|error| unsigned(&error))?;
    operator_program::run(&program, input, LIMITS).map_err(|error| unsigned(&error))
}

fn unsigned(why: &dyn std::error::Error) -> Failure {
    Failure::internal("not_signed", "it could not be signed")
        .because(why)
        .so("nothing was written")
        .hint("a key with a passphrase signs through ssh-agent: `ssh-add`, then --key FILE.pub")
}
