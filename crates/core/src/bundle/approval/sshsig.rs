//! Signatures of OpenSSH (`ssh-keygen -Y sign`, PROTOCOL.sshsig), as far as an approval needs them: Ed25519, one
//! signature, our own namespace. Every other kind is refused, and none is guessed at.

use base64ct::{Base64, Encoding};
use sha2::{Digest as _, Sha256, Sha512};

use crate::bundle::attest::PublicKey;
use crate::bundle::attest::ssh_string;

/// What is signed for: a signature made for anything else is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// What somebody says to a request.
    Approval,
    /// What somebody says of a result.
    Outcome,
}

impl Purpose {
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Approval => "approval@cto-harness",
            Self::Outcome => "outcome@cto-harness",
        }
    }
}

const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;
const KIND: &[u8] = b"ssh-ed25519";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// A signature of this kind has some 300 bytes.
const MAX_ARMOR: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SignatureProblem {
    #[error("it is no SSH signature")]
    NotASignature,
    #[error("its version is not known")]
    Version,
    #[error("its key is not an Ed25519 key")]
    KeyKind,
    #[error("its key is weak or no key at all")]
    Key,
    #[error("it was made for another purpose (namespace)")]
    Namespace,
    #[error("its hash algorithm is not known")]
    Hash,
    #[error("it was made over other bytes, or with another key")]
    Signature,
}

/// Who signed these very bytes, for this purpose.
pub fn signer_of(
    armor: &str,
    message: &[u8],
    purpose: Purpose,
) -> Result<PublicKey, SignatureProblem> {
    use SignatureProblem as No;
    let blob = unarmored(armor).ok_or(No::NotASignature)?;
    let rest = blob.strip_prefix(MAGIC).ok_or(No::NotASignature)?;
    let (version, rest) = rest.split_first_chunk::<4>().ok_or(No::NotASignature)?;
    if u32::from_be_bytes(*version) != VERSION {
        return Err(No::Version);
    }
    let string = |bytes| ssh_string(bytes).ok_or(No::NotASignature);
    let (key, rest) = string(rest)?;
    let (namespace, rest) = string(rest)?;
    let (reserved, rest) = string(rest)?;
    let (hash, rest) = string(rest)?;
    let (signature, rest) = string(rest)?;
    if !rest.is_empty() || !reserved.is_empty() {
        return Err(No::NotASignature);
    }
    let raw = of_kind(key).ok_or(No::KeyKind)?;
    let raw = raw.try_into().map_err(|_| No::Key)?;
    let key = PublicKey::from_bytes(raw).map_err(|_| No::Key)?;
    if namespace != purpose.namespace().as_bytes() {
        return Err(No::Namespace);
    }
    let digest = match hash {
        b"sha512" => Sha512::digest(message).to_vec(),
        b"sha256" => Sha256::digest(message).to_vec(),
        _ => return Err(No::Hash),
    };
    let signature = of_kind(signature).ok_or(No::KeyKind)?;
    match key.signed(&signed_bytes(purpose, hash, &digest), signature) {
        true => Ok(key),
        false => Err(No::Signature),
    }
}

/// What the key really signed.
fn signed_bytes(purpose: Purpose, hash: &[u8], digest: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for part in [purpose.namespace().as_bytes(), b"", hash, digest] {
        bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

/// The one value behind the kind, where that is Ed25519 and nothing follows.
fn of_kind(bytes: &[u8]) -> Option<&[u8]> {
    let (kind, rest) = ssh_string(bytes)?;
    let (value, rest) = ssh_string(rest)?;
    (kind == KIND && rest.is_empty()).then_some(value)
}

/// The bytes between the two lines; nothing before or after them.
fn unarmored(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_ARMOR {
        return None;
    }
    let body = text.strip_prefix(BEGIN)?.strip_prefix('\n')?;
    let body = body.strip_suffix('\n').unwrap_or(body).strip_suffix(END)?;
    let is_line = |line: &str| !line.is_empty() && line.len() <= 76;
    let lines = body.strip_suffix('\n')?.split('\n');
    let lines: Option<Vec<&str>> = lines.map(|line| is_line(line).then_some(line)).collect();
    Base64::decode_vec(&lines?.concat()).ok()
}

#[cfg(test)]
pub mod tests {
    use ed25519_dalek::{Signer, SigningKey};
    use proptest::prelude::*;

    use super::*;

    /// Made by `ssh-keygen -Y sign` of OpenSSH 9.2 over "hello\n".
    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII2sDS0sYiul8M2CINe4JxuNJkZ1pgZaeBpdqnK87JjC operator";
    const GOOD: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgjawNLSxiK6XwzYIg17gnG40mRn
WmBlp4Gl2qcrzsmMIAAAAUYXBwcm92YWxAY3RvLWhhcm5lc3MAAAAAAAAABnNoYTUxMgAA
AFMAAAALc3NoLWVkMjU1MTkAAABAJlYsQXyuqORKzjaRRrs3GkLMlBOA8JAjiszkxenfBc
8LpZ28FRpVqYeWNkih+v1nNdK+hxCC7rJscykcPWnRAw==
-----END SSH SIGNATURE-----
";
    const FOR_A_FILE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgjawNLSxiK6XwzYIg17gnG40mRn
WmBlp4Gl2qcrzsmMIAAAAEZmlsZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQyNTUx
OQAAAEA+ITxbzosSMRybSvn+qIUm+4TBlKiDYzTveNjF/czZQ2NVNIDrYS2K1RvZmwtbTy
I/Sfwu62C6IUGKZTC7mQMA
-----END SSH SIGNATURE-----
";

    /// A signature as `ssh-keygen` would make it.
    pub fn sign(key: &SigningKey, message: &[u8]) -> String {
        sign_for(Purpose::Approval, key, message)
    }

    /// The same for any purpose.
    pub fn sign_for(purpose: Purpose, key: &SigningKey, message: &[u8]) -> String {
        let string = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            [&length[..], bytes].concat()
        };
        let kind = string(KIND);
        let public = [kind.clone(), string(key.verifying_key().as_bytes())].concat();
        let signed = key.sign(&signed_bytes(purpose, b"sha512", &Sha512::digest(message)));
        let signature = [kind, string(&signed.to_bytes())].concat();
        let blob = [
            MAGIC.to_vec(),
            VERSION.to_be_bytes().to_vec(),
            string(&public),
            string(purpose.namespace().as_bytes()),
            string(b""),
            string(b"sha512"),
            string(&signature),
        ]
        .concat();
        let body = Base64::encode_string(&blob);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(70)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"))
    }

    #[test]
    fn what_ssh_keygen_signs_is_read() {
        let key = PublicKey::from_text(KEY).unwrap();
        assert_eq!(signer_of(GOOD, b"hello\n", Purpose::Approval), Ok(key));
        let own = SigningKey::from_bytes(&[7; 32]);
        let public = PublicKey::from_bytes(own.verifying_key().as_bytes()).unwrap();
        assert_eq!(
            signer_of(&sign(&own, b"x"), b"x", Purpose::Approval),
            Ok(public)
        );
    }

    #[test]
    fn what_was_signed_for_one_purpose_counts_for_no_other() {
        let own = SigningKey::from_bytes(&[7; 32]);
        let both = [Purpose::Approval, Purpose::Outcome];
        for made in both {
            let armor = sign_for(made, &own, b"x");
            for asked in both {
                let read = signer_of(&armor, b"x", asked);
                assert_eq!(read.is_ok(), made == asked);
                assert!(read.is_ok() || read == Err(SignatureProblem::Namespace));
            }
        }
    }

    #[test]
    fn anything_else_has_its_own_refusal() {
        use SignatureProblem as No;
        for (armor, message, want) in [
            (GOOD.to_owned(), &b"hello"[..], No::Signature),
            (FOR_A_FILE.to_owned(), b"hello\n", No::Namespace),
            (String::new(), b"hello\n", No::NotASignature),
            (format!(" {GOOD}"), b"hello\n", No::NotASignature),
            (format!("{GOOD}\n"), b"hello\n", No::NotASignature),
            (format!("{GOOD}{GOOD}"), b"hello\n", No::NotASignature),
            (
                GOOD.replace("U1NIU0lH", "U1NIU0lI"),
                b"hello\n",
                No::NotASignature,
            ),
            (
                GOOD.replace("lHAAAAAQAA", "lHAAAAAgAA"),
                b"hello\n",
                No::Version,
            ),
            (
                GOOD.replace("c3NoLWVkMjU1MTkAAAAgj", "c3NoLWVkMjU1MTgAAAAgj"),
                b"hello\n",
                No::KeyKind,
            ),
            (GOOD.replace("nNoYTUxMg", "nNoYTUxMw"), b"hello\n", No::Hash),
            (
                GOOD.replace("PWnRAw==", "PWnRBw=="),
                b"hello\n",
                No::Signature,
            ),
        ] {
            assert_eq!(
                signer_of(&armor, message, Purpose::Approval),
                Err(want),
                "{armor}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_other_byte_counts(at in 0usize..220, bit in 0u8..8) {
            let mut blob = unarmored(GOOD).unwrap();
            let at = at % blob.len();
            blob[at] ^= 1 << bit;
            let armor = format!("{BEGIN}\n{}\n{END}\n", Base64::encode_string(&blob).as_bytes().chunks(70)
                .map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>().join("\n"));
            prop_assert!(signer_of(&armor, b"hello\n", Purpose::Approval).is_err());
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,300}") {
            let _ = signer_of(&text, b"", Purpose::Approval);
            let _ = signer_of(&format!("{BEGIN}\n{text}\n{END}\n"), b"", Purpose::Outcome);
        }
    }
}
