//! `openssh-key-v1`: what `ssh-keygen -t ed25519 -N ''` writes. Encrypted keys are for `ssh-agent`
//! or a command.

use cto_core::bundle::attest::key::{pem_body, ssh_string};
use ed25519_dalek::SigningKey;

const LABEL: &str = "OPENSSH PRIVATE KEY";
const MAGIC: &[u8] = b"openssh-key-v1\0";

/// The one Ed25519 key of an unencrypted file; `None` for anything else.
pub fn parse(text: &str) -> Option<SigningKey> {
    let bytes = pem_body(text, LABEL)?;
    let rest = bytes.strip_prefix(MAGIC)?;
    let (cipher, rest) = ssh_string(rest)?;
    let (kdf, rest) = ssh_string(rest)?;
    let (options, rest) = ssh_string(rest)?;
    let rest = rest.strip_prefix(&1u32.to_be_bytes())?;
    let (public, rest) = ssh_string(rest)?;
    let (private, rest) = ssh_string(rest)?;
    if (cipher, kdf, options, rest) != (b"none", b"none", b"", b"") {
        return None;
    }
    secret(private, public)
}

fn secret(private: &[u8], public: &[u8]) -> Option<SigningKey> {
    let (first, rest) = private.split_first_chunk::<4>()?;
    let (second, rest) = rest.split_first_chunk::<4>()?;
    let (kind, rest) = ssh_string(rest)?;
    let (point, rest) = ssh_string(rest)?;
    let (pair, rest) = ssh_string(rest)?;
    let (_comment, padding) = ssh_string(rest)?;
    let padded = padding
        .iter()
        .zip(1u8..)
        .all(|(found, want)| *found == want)
        && padding.len() < 256;
    if first != second || kind != b"ssh-ed25519" || !padded {
        return None;
    }
    // Seed and point together: a file whose halves do not belong together is refused.
    let key = SigningKey::from_keypair_bytes(pair.try_into().ok()?).ok()?;
    let (_, named) = ssh_string(public)?;
    let (named, _) = ssh_string(named)?;
    let same = key.verifying_key().to_bytes();
    (point == same && named == same).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn reads_what_ssh_keygen_writes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let make = |passphrase: &str, kind: &str| {
            let _ = std::fs::remove_file(&file);
            Command::new("ssh-keygen")
                .args(["-q", "-t", kind, "-N", passphrase, "-C", "a comment", "-f"])
                .arg(&file)
                .status()
        };
        // A host without OpenSSH has no such keys either; the vector below is read everywhere.
        let Ok(status) = make("", "ed25519") else {
            return;
        };
        assert!(status.success());
        let text = std::fs::read_to_string(&file).unwrap();
        let key = parse(&text).unwrap();
        let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
        let public = cto_core::bundle::attest::PublicKey::from_text(&public).unwrap();
        assert_eq!(public.to_bytes(), key.verifying_key().to_bytes());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let _ = parse(&String::from_utf8_lossy(&bytes));
        }
        make("secret", "ed25519").unwrap();
        assert!(
            parse(&std::fs::read_to_string(&file).unwrap()).is_none(),
            "encrypted"
        );
        make("", "ecdsa").unwrap();
        assert!(
            parse(&std::fs::read_to_string(&file).unwrap()).is_none(),
            "another kind"
        );
    }

    fn string(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
    }

    /// A key file made by hand, so that the parser is tried where there is no `ssh-keygen`.
    fn by_hand(point: [u8; 32], padding: &[u8]) -> String {
        let key = SigningKey::from_bytes(&[7; 32]);
        let wire = [string(b"ssh-ed25519"), string(&point)].concat();
        let private = [
            b"abcdabcd".to_vec(),
            wire.clone(),
            string(&key.to_keypair_bytes()),
            string(b""),
            padding.to_vec(),
        ]
        .concat();
        let bytes = [
            MAGIC.to_vec(),
            string(b"none"),
            string(b"none"),
            string(b""),
            1u32.to_be_bytes().to_vec(),
            string(&wire),
            string(&private),
        ];
        cto_core::bundle::attest::key::pem(LABEL, &bytes.concat())
    }

    #[test]
    fn halves_that_do_not_belong_together_are_refused() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let point = key.verifying_key().to_bytes();
        assert_eq!(
            parse(&by_hand(point, &[1, 2, 3])).map(|key| key.to_bytes()),
            Some([7; 32])
        );
        assert!(
            parse(&by_hand(
                SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes(),
                &[1]
            ))
            .is_none()
        );
        assert!(parse(&by_hand(point, &[2])).is_none(), "padding");
        assert!(parse("").is_none() && parse("-----BEGIN").is_none());
    }
}
