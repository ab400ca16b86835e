//! Whose approvals count: a file in the form of OpenSSH's `allowed_signers`, so that `ssh-keygen -Y verify` takes
//! the very same one. Only what is plain is read: one name, Ed25519, our namespace or none.

use std::collections::BTreeMap;

use super::sshsig::NAMESPACE;
use crate::bundle::attest::PublicKey;
use crate::records::is_name;

/// A larger file is not read.
pub const MAX_SIGNERS: u64 = 64 << 10;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct SignersProblem {
    pub line: usize,
    pub problem: &'static str,
}

/// Who may approve, by key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signers(pub(super) BTreeMap<[u8; 32], String>);

impl Signers {
    /// Reads such a file, or says what in it is not plain. No line is passed over but empty ones and comments.
    pub fn read(text: &str) -> Result<Self, SignersProblem> {
        let mut signers = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let no = |problem| SignersProblem {
                line: at + 1,
                problem,
            };
            let (actor, key) = one(line).map_err(no)?;
            if signers.insert(key.to_bytes(), actor).is_some() {
                return Err(no("the key stands there twice"));
            }
        }
        Ok(Self(signers))
    }

    /// One key and its owner.
    pub fn only(key: &PublicKey, actor: &str) -> Self {
        Self(BTreeMap::from([(key.to_bytes(), actor.to_owned())]))
    }

    /// Who a key belongs to.
    pub fn actor(&self, key: &PublicKey) -> Option<&str> {
        self.0.get(&key.to_bytes()).map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One line as it is written here.
pub fn line(actor: &str, ssh_key: &str) -> String {
    format!("{actor} namespaces=\"{NAMESPACE}\" {ssh_key}\n")
}

fn one(line: &str) -> Result<(String, PublicKey), &'static str> {
    let (actor, rest) = line.split_once(' ').ok_or("has no key")?;
    let is_plain = is_name(actor) && !actor.contains(['*', '?', '!', ',', '"', '#']);
    if !is_plain {
        return Err("begins with a pattern or no plain name");
    }
    let rest = rest.trim_start();
    let own = format!("namespaces=\"{NAMESPACE}\" ");
    let key = rest.strip_prefix(&own).unwrap_or(rest).trim_start();
    if !key.starts_with("ssh-ed25519 ") {
        return Err("has another option, namespace or kind of key than this program knows");
    }
    let key = PublicKey::from_text(key).map_err(|_| "holds no Ed25519 key")?;
    Ok((actor.to_owned(), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII2sDS0sYiul8M2CINe4JxuNJkZ1pgZaeBpdqnK87JjC";

    #[test]
    fn only_plain_lines_are_read() {
        let key = PublicKey::from_text(KEY).unwrap();
        let text = format!("# mine\n\n{}", line("me@here", KEY));
        assert_eq!(Signers::read(&text).unwrap().actor(&key), Some("me@here"));
        let bare = Signers::read(&format!("me {KEY} a comment")).unwrap();
        assert_eq!(bare.actor(&key), Some("me"));
        assert!(Signers::read("").unwrap().is_empty());
        for bad in [
            format!("* {KEY}"),
            format!("a,b {KEY}"),
            format!("me cert-authority {KEY}"),
            format!("me namespaces=\"file\" {KEY}"),
            format!("me valid-before=\"20200101\" {KEY}"),
            "me ssh-rsa AAAA".to_owned(),
            "me ssh-ed25519 AAAA".to_owned(),
            KEY.to_owned(),
            format!("me {KEY}\nyou {KEY}"),
            "me".to_owned(),
        ] {
            assert!(Signers::read(&bad).is_err(), "{bad}");
        }
    }
}
