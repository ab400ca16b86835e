//! DSSE, version 1: the envelope around a signed payload, and the bytes that are signed.
//!
//! The signature covers type and payload (`pae`), never the JSON around them. What lies in a bundle
//! must also be in the one canonical spelling, so that no byte of it can change unnoticed.

use base64ct::{Base64, Base64Url, Encoding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key::PublicKey;
use crate::values::digest::Digest;
use crate::values::json::{self, JsonError};

/// The payload type of in-toto statements.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Base64 of the signed bytes.
    pub payload: String,
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    pub signatures: Vec<EnvelopeSignature>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopeSignature {
    /// Which key to try; a hint that proves nothing by itself.
    pub keyid: String,
    /// Base64 of the signature.
    pub sig: String,
}

#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("is not in canonical form")]
    NotCanonical,
    #[error("the payload type is {0:?}, not {PAYLOAD_TYPE:?}")]
    PayloadType(String),
    #[error("has {0} signatures where there must be one")]
    Signatures(usize),
    #[error("the {0} is not base64")]
    Base64(&'static str),
}

/// A whole envelope of a bundle, taken apart. Nothing in it is believed yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    pub payload: Vec<u8>,
    pub key_id: String,
    signed: Vec<u8>,
    signature: Vec<u8>,
}

/// DSSE's pre-authentication encoding: lengths before contents, so that no two pairs have the same
/// bytes.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    )
    .into_bytes();
    out.extend_from_slice(payload);
    out
}

/// Either alphabet, as the specification demands of readers.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text)
        .or_else(|_| Base64Url::decode_vec(text))
        .ok()
}

impl Envelope {
    /// An envelope of ours around an in-toto statement.
    pub fn seal(payload: &[u8], key_id: Digest, signature: &[u8]) -> Self {
        Self {
            payload: Base64::encode_string(payload),
            payload_type: PAYLOAD_TYPE.to_owned(),
            signatures: vec![EnvelopeSignature {
                keyid: key_id.to_hex(),
                sig: Base64::encode_string(signature),
            }],
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, JsonError> {
        json::canonical(self)
    }

    /// Opens an envelope of a bundle: strict JSON, one spelling, one signature, our payload type.
    pub fn open(bytes: &[u8]) -> Result<Opened, EnvelopeError> {
        let envelope: Self = json::read(bytes)?;
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::PayloadType(
                envelope.payload_type.chars().take(80).collect(),
            ));
        }
        let [one] = envelope.signatures.as_slice() else {
            return Err(EnvelopeError::Signatures(envelope.signatures.len()));
        };
        // The standard alphabet here: the other would be a second spelling.
        let payload =
            Base64::decode_vec(&envelope.payload).map_err(|_| EnvelopeError::Base64("payload"))?;
        let signature =
            Base64::decode_vec(&one.sig).map_err(|_| EnvelopeError::Base64("signature"))?;
        if envelope.to_bytes()? != bytes {
            return Err(EnvelopeError::NotCanonical);
        }
        Ok(Opened {
            signed: pae(PAYLOAD_TYPE, &payload),
            payload,
            key_id: one.keyid.clone(),
            signature,
        })
    }
}

impl Opened {
    pub fn signed_by(&self, key: &PublicKey) -> bool {
        self.key_id == key.id().to_hex() && key.signed(&self.signed, &self.signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From the specification's test vectors (`protocol.md`).
    #[test]
    fn published_vectors() {
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        let text = r#"{"payload": "aGVsbG8gd29ybGQ=", "payloadType": "http://example.com/HelloWorld", "signatures": [{"keyid": "66301bbf", "sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}]}"#;
        let envelope: Envelope = json::read(text.as_bytes()).unwrap();
        assert_eq!(
            decode(&envelope.payload).as_deref(),
            Some(b"hello world".as_slice())
        );
        assert_eq!(
            decode(&envelope.signatures[0].sig).map(|sig| sig.len()),
            Some(64)
        );
        assert!(matches!(
            Envelope::open(text.as_bytes()),
            Err(EnvelopeError::PayloadType(_))
        ));
    }

    #[test]
    fn lengths_are_of_bytes_and_contents_may_be_anything() {
        assert_eq!(pae("é", "ü\n".as_bytes()), "DSSEv1 2 é 3 ü\n".as_bytes());
        assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
        assert_ne!(pae("a", b"b 1 c"), pae("a b", b"1 c"));
    }

    #[test]
    fn both_alphabets_are_read() {
        assert_eq!(decode("+/+/"), decode("-_-_"));
        assert_eq!(decode("a"), None);
        assert_eq!(decode("QQ=="), Some(b"A".to_vec()));
        assert_eq!(decode("QR=="), None, "bits that nobody reads");
    }

    fn whole() -> Vec<u8> {
        Envelope::seal(b"{\"a\":1}", Digest::of(b"key"), &[7; 64])
            .to_bytes()
            .unwrap()
    }

    #[test]
    fn refusals_say_what() {
        let text = String::from_utf8(whole()).unwrap();
        assert!(Envelope::open(text.as_bytes()).is_ok());
        for (what, changed, reason) in [
            ("space", text.replacen(":", ": ", 1), "canonical"),
            (
                "unknown field",
                text.replacen('{', "{\"a\":1,", 1),
                "canonical",
            ),
            ("line end", format!("{text}\n"), "canonical"),
            (
                "type",
                text.replacen("in-toto+json", "in-toto+jsox", 1),
                "payload type",
            ),
            (
                "no signature",
                text.split("[{").next().unwrap().to_owned() + "[]}",
                "0 signatures",
            ),
            ("cut", text[..text.len() / 2].to_owned(), "JSON"),
            (
                "duplicate",
                text.replacen('{', "{\"payload\":\"\",", 1),
                "duplicate key",
            ),
            (
                "payload",
                text.replacen("\"payload\":\"", "\"payload\":\"*", 1),
                "payload is not base64",
            ),
        ] {
            let error = Envelope::open(changed.as_bytes())
                .expect_err(what)
                .to_string();
            assert!(error.contains(reason), "{what}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..400, byte in any::<u8>()) {
            let _ = Envelope::open(&bytes);
            let mut near = whole();
            let at = at % near.len();
            near[at] = byte;
            let _ = Envelope::open(&near);
        }
    }
}
