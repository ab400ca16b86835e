//! Ed25519 public keys: read from PEM or an OpenSSH line, named by a digest, and used to check
//! signatures.

use std::fmt;

use base64ct::{Base64, Encoding};
use ed25519_dalek::{Signature, VerifyingKey};

use crate::values::digest::Digest;

/// DER of a SubjectPublicKeyInfo for Ed25519 (RFC 8410), up to the 32 bytes of the key.
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const PEM_LABEL: &str = "PUBLIC KEY";
const SSH_KIND: &str = "ssh-ed25519";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "is not an Ed25519 public key in PEM (`BEGIN PUBLIC KEY`) or OpenSSH form (`ssh-ed25519 …`)"
    )]
    NotAKey,
    #[error("is a private key; give the public one")]
    Private,
    #[error("is not a point of the curve, or one of the weak ones")]
    Weak,
}

/// A public key that can check signatures. Weak points, which accept any signature, are refused.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::Weak)?;
        // Decoding accepts a point in several spellings; a key has one name, so it has one
        // spelling.
        if key.is_weak() || key.to_edwards().compress().to_bytes() != *bytes {
            return Err(KeyError::Weak);
        }
        Ok(Self(key))
    }

    /// Standard base64 of the 32 bytes, as the statement holds it.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let bytes = Base64::decode_vec(text).map_err(|_| KeyError::NotAKey)?;
        Self::from_bytes(&bytes.try_into().map_err(|_| KeyError::NotAKey)?)
    }

    /// A file somebody was handed: PEM or a line of `~/.ssh/id_ed25519.pub`.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.contains("PRIVATE KEY-----") {
            return Err(KeyError::Private);
        }
        match text.strip_prefix(SSH_KIND) {
            Some(rest) if rest.starts_with(' ') => Self::from_ssh(rest),
            _ => Self::from_pem(text),
        }
    }

    fn from_pem(text: &str) -> Result<Self, KeyError> {
        let der = pem_body(text, PEM_LABEL).ok_or(KeyError::NotAKey)?;
        let raw = der
            .strip_prefix(SPKI_PREFIX.as_slice())
            .ok_or(KeyError::NotAKey)?;
        Self::from_bytes(raw.try_into().map_err(|_| KeyError::NotAKey)?)
    }

    fn from_ssh(rest: &str) -> Result<Self, KeyError> {
        let body = rest.split_whitespace().next().ok_or(KeyError::NotAKey)?;
        let wire = Base64::decode_vec(body).map_err(|_| KeyError::NotAKey)?;
        let (kind, rest) = ssh_string(&wire).ok_or(KeyError::NotAKey)?;
        let (raw, rest) = ssh_string(rest).ok_or(KeyError::NotAKey)?;
        if kind != SSH_KIND.as_bytes() || !rest.is_empty() {
            return Err(KeyError::NotAKey);
        }
        Self::from_bytes(raw.try_into().map_err(|_| KeyError::NotAKey)?)
    }

    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    pub fn to_base64(&self) -> String {
        Base64::encode_string(&self.0.to_bytes())
    }

    fn to_der(&self) -> Vec<u8> {
        [SPKI_PREFIX.as_slice(), &self.0.to_bytes()].concat()
    }

    /// What `openssl` reads.
    pub fn to_pem(&self) -> String {
        pem(PEM_LABEL, &self.to_der())
    }

    /// The name of a key: SHA-256 of its SubjectPublicKeyInfo in DER, so that
    /// `openssl pkey -pubin -outform DER | sha256sum` gives it too.
    pub fn id(&self) -> Digest {
        Digest::of(&self.to_der())
    }

    /// Strictly by RFC 8032: no second spelling of a signature, no weak point in it.
    pub fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(bytes) = <[u8; 64]>::try_from(signature) else {
            return false;
        };
        self.0
            .verify_strict(message, &Signature::from_bytes(&bytes))
            .is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id().short())
    }
}

/// One PEM block and nothing else.
pub fn pem_body(text: &str, label: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let body = text
        .strip_prefix(&format!("-----BEGIN {label}-----"))?
        .strip_suffix(&format!("-----END {label}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    Base64::decode_vec(&body).ok()
}

pub fn pem(label: &str, der: &[u8]) -> String {
    let body = Base64::encode_string(der);
    let lines = body
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line) + "\n")
        .collect::<String>();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// A length-prefixed string of the SSH wire format, and what follows it.
pub fn ssh_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 8032, 7.1, tests 1 to 3.
    const VECTORS: [(&str, &str, &str); 3] = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ];

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
            .collect()
    }

    fn key(text: &str) -> PublicKey {
        PublicKey::from_bytes(&hex(text).try_into().unwrap()).unwrap()
    }

    #[test]
    fn published_vectors_and_every_changed_bit() {
        for (public, message, signature) in VECTORS {
            let (key, message, signature) = (key(public), hex(message), hex(signature));
            assert!(key.signed(&message, &signature));
            for at in 0..64 {
                let mut bad = signature.clone();
                bad[at] ^= 1 << (at % 8);
                assert!(!key.signed(&message, &bad), "byte {at}");
            }
            assert!(!key.signed(b"other", &signature) && !key.signed(&message, &signature[..63]));
        }
    }

    /// S + L is the same scalar: a verifier that does not look takes a second signature for the
    /// first.
    #[test]
    fn a_signature_has_one_spelling() {
        let order = hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let (public, message, signature) = VECTORS[1];
        let mut bad = hex(signature);
        let mut carry = 0u16;
        for at in 0..32 {
            let sum = u16::from(bad[32 + at]) + u16::from(order[at]) + carry;
            bad[32 + at] = (sum & 0xff) as u8;
            carry = sum >> 8;
        }
        assert!(!key(public).signed(&hex(message), &bad));
    }

    #[test]
    fn weak_keys_are_no_keys() {
        for weak in [
            [0u8; 32],
            {
                let mut one = [0u8; 32];
                one[0] = 1;
                one
            },
            {
                // y = p - 1, of order two.
                let mut bytes = [0xffu8; 32];
                bytes[0] = 0xec;
                bytes[31] = 0x7f;
                bytes
            },
        ] {
            assert_eq!(PublicKey::from_bytes(&weak), Err(KeyError::Weak));
        }
        let mut off = [0u8; 32];
        off[0] = 2;
        assert_eq!(
            PublicKey::from_bytes(&off),
            Err(KeyError::Weak),
            "not on the curve"
        );
    }

    #[test]
    fn forms_of_a_key_are_one_key() {
        let key = key(VECTORS[0].0);
        assert_eq!(PublicKey::from_text(&key.to_pem()), Ok(key.clone()));
        assert_eq!(PublicKey::from_base64(&key.to_base64()), Ok(key.clone()));
        let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea someone@somewhere";
        assert_eq!(PublicKey::from_text(ssh), Ok(key.clone()));
        // openssl pkey -pubin -outform DER | sha256sum
        assert_eq!(
            key.id().to_hex(),
            "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9"
        );
    }

    #[test]
    fn refusals() {
        let private = format!(
            "-----BEGIN {0}-----\nAAAA\n-----END {0}-----\n",
            "PRIVATE KEY"
        );
        assert_eq!(PublicKey::from_text(&private), Err(KeyError::Private));
        for bad in [
            "",
            "hello",
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAA",
            "-----BEGIN PUBLIC KEY-----",
        ] {
            assert_eq!(PublicKey::from_text(bad), Err(KeyError::NotAKey), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,200}", bytes in any::<[u8; 32]>(), signature in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = PublicKey::from_text(&text);
            let _ = PublicKey::from_base64(&text);
            if let Ok(key) = PublicKey::from_bytes(&bytes) {
                prop_assert!(!key.signed(b"message", &signature));
                prop_assert_eq!(PublicKey::from_text(&key.to_pem()), Ok(key));
            }
        }
    }
}
