//! Whose approvals count: a file in the form of OpenSSH's `allowed_signers`, so that `ssh-keygen -Y verify` takes
//! the very same one. Only what is plain is read: one name, Ed25519, our namespaces or none.

use std::collections::BTreeMap;

use super::sshsig::Purpose;
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

/// Who may approve, and say what becomes of a result, by key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signers(BTreeMap<[u8; 32], Signer>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Signer {
    actor: String,
    purposes: &'static [Purpose],
}

const BOTH: &[Purpose] = &[Purpose::Approval, Purpose::Outcome];
/// Lines that name what a key signs for. Any other wording is not read.
const NAMED: [(&str, &[Purpose]); 3] = [
    (
        "namespaces=\"approval@cto-harness,outcome@cto-harness\" ",
        BOTH,
    ),
    ("namespaces=\"approval@cto-harness\" ", &[Purpose::Approval]),
    ("namespaces=\"outcome@cto-harness\" ", &[Purpose::Outcome]),
];

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
            let (signer, key) = one(line).map_err(no)?;
            if signers.insert(key.to_bytes(), signer).is_some() {
                return Err(no("the key stands there twice"));
            }
        }
        Ok(Self(signers))
    }

    /// One key and its owner, for both purposes.
    pub fn only(key: &PublicKey, actor: &str) -> Self {
        let signer = Signer {
            actor: actor.to_owned(),
            purposes: BOTH,
        };
        Self(BTreeMap::from([(key.to_bytes(), signer)]))
    }

    /// Who a key belongs to, where it may sign for this.
    pub fn actor(&self, key: &PublicKey, purpose: Purpose) -> Option<&str> {
        let signer = self.0.get(&key.to_bytes())?;
        let may = signer.purposes.contains(&purpose);
        may.then_some(signer.actor.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One line as it is written here.
pub fn line(actor: &str, ssh_key: &str) -> String {
    let (named, _) = NAMED[0];
    format!("{actor} {named}{ssh_key}\n")
}

fn one(line: &str) -> Result<(Signer, PublicKey), &'static str> {
    let (actor, rest) = line.split_once(' ').ok_or("has no key")?;
    let is_plain = is_name(actor) && !actor.contains(['*', '?', '!', ',', '"', '#']);
    if !is_plain {
        return Err("begins with a pattern or no plain name");
    }
    let rest = rest.trim_start();
    let named = NAMED.iter();
    let mut named =
        named.filter_map(|(words, purposes)| Some((rest.strip_prefix(words)?, *purposes)));
    let (key, purposes) = named.next().unwrap_or((rest, BOTH));
    let key = key.trim_start();
    if !key.starts_with("ssh-ed25519 ") {
        return Err("has another option, namespace or kind of key than this program knows");
    }
    let key = PublicKey::from_text(key).map_err(|_| "holds no Ed25519 key")?;
    let actor = actor.to_owned();
    Ok((Signer { actor, purposes }, key))
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
        let bare = format!("you {KEY} a comment");
        let (approves, settles) = (
            format!("you namespaces=\"approval@cto-harness\" {KEY}"),
            format!("you namespaces=\"outcome@cto-harness\" {KEY}"),
        );
        for (text, actor, approval, outcome) in [
            (text, "me@here", true, true),
            (bare, "you", true, true),
            (approves, "you", true, false),
            (settles, "you", false, true),
        ] {
            let signers = Signers::read(&text).unwrap();
            let may = |purpose| signers.actor(&key, purpose);
            assert_eq!(may(Purpose::Approval), approval.then_some(actor), "{text}");
            assert_eq!(may(Purpose::Outcome), outcome.then_some(actor), "{text}");
        }
        assert!(Signers::read("").unwrap().is_empty());
        for bad in [
            format!("* {KEY}"),
            format!("a,b {KEY}"),
            format!("me cert-authority {KEY}"),
            format!("me namespaces=\"file\" {KEY}"),
            format!("me namespaces=\"outcome@cto-harness,file\" {KEY}"),
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
