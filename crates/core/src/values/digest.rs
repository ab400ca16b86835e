//! SHA-256 digests as a type. No other module handles raw hash bytes.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; printed and stored as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a SHA-256 digest: expected 64 lower-case hex digits")]
pub struct NotADigest;

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Digest of `bytes` under a domain separator, so that one kind of hash can never be taken for
    /// another.
    pub fn tagged(domain: &str, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(domain.as_bytes());
        hasher.update(bytes);
        hasher.finish()
    }

    /// A digest that was stored as raw bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    pub fn to_hex(&self) -> String {
        String::from_utf8_lossy(&self.hex()).into_owned()
    }

    /// Its digits, without a place of their own: trees of many thousand files are written with them.
    pub fn hex(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (pair, byte) in out.chunks_exact_mut(2).zip(self.0) {
            pair[0] = digit(byte >> 4);
            pair[1] = digit(byte & 0xf);
        }
        out
    }

    /// The first twelve digits: enough for a person to compare by eye, never for a decision.
    pub fn short(&self) -> String {
        self.to_hex().chars().take(12).collect()
    }
}

/// The digit of a number below sixteen.
fn digit(half: u8) -> u8 {
    match half {
        0..10 => b'0' + half,
        _ => b'a' - 10 + half,
    }
}

/// A running digest for streams.
#[derive(Default, Clone)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = text.as_bytes();
        if hex.len() != 64 {
            return Err(NotADigest);
        }
        let nibble = |c: u8| match c {
            b'0'..=b'9' => Ok(c - b'0'),
            b'a'..=b'f' => Ok(c - b'a' + 10),
            _ => Err(NotADigest),
        };
        let mut out = [0u8; 32];
        for (slot, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            *slot = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(out))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256, lower-case hex"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_vector_and_round_trip() {
        let abc = Digest::of(b"abc");
        assert_eq!(
            abc.to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(abc.to_hex().parse::<Digest>(), Ok(abc));
    }

    #[test]
    fn tagged_differs_from_plain() {
        assert_ne!(Digest::tagged("d\n", b"x"), Digest::of(b"x"));
        assert_eq!(Digest::tagged("d\n", b"x"), Digest::of(b"d\nx"));
    }

    #[test]
    fn refuses_upper_case_short_and_foreign_digits() {
        let good = Digest::of(b"").to_hex();
        for bad in [
            good.to_uppercase(),
            good[1..].to_owned(),
            format!("g{}", &good[1..]),
            format!("{good}0"),
        ] {
            assert_eq!(bad.parse::<Digest>(), Err(NotADigest), "{bad}");
        }
    }
}
