//! What an engine tried that its contract forbids.
//!
//! - this file: the kinds of deeds, which of them fail a run, the bounded list of what was seen
//! - `commands/` which command is which deed; `address.rs` where a connection would have gone
//!
//! Nothing is refused here: the jail does that. A deed that was seen can only make a verdict worse.

mod address;
mod commands;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use address::{Address, of_address};
pub use commands::{
    STAND_INS, is_own_push, is_worth_reading, local_transport, of_command, received_in,
};

use crate::task::contract::Action;
use crate::values::text;

/// Distinct attempts that are listed; what comes after them is counted by deed.
const MAX_LISTED: usize = 100;
/// Words of a command that are kept, and characters of each.
const MAX_WORDS: usize = 16;
const MAX_CHARS: usize = 80;

/// One kind of thing that was tried.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    Push,
    Merge,
    Deploy,
    Close,
    PrOpen,
    IssueClose,
    PublicPublication,
    CredentialChange,
    /// A stream connection to anything but loopback.
    Connect,
    /// A command on, or a copy to, another host.
    RemoteShell,
    /// A datagram socket pointed at another host: how programs find their own address.
    Datagram,
    /// Git asked a remote for something and sent nothing.
    Fetch,
    /// A push by git into a directory that is the jail's own.
    PushInside,
}

impl Deed {
    pub const ALL: [Self; 13] = [
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::Close,
        Self::PrOpen,
        Self::IssueClose,
        Self::PublicPublication,
        Self::CredentialChange,
        Self::Connect,
        Self::RemoteShell,
        Self::Datagram,
        Self::Fetch,
        Self::PushInside,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Merge => "merge",
            Self::Deploy => "deploy",
            Self::Close => "close",
            Self::PrOpen => "pr_open",
            Self::IssueClose => "issue_close",
            Self::PublicPublication => "public_publication",
            Self::CredentialChange => "credential_change",
            Self::Connect => "connect",
            Self::RemoteShell => "remote_shell",
            Self::Datagram => "datagram",
            Self::Fetch => "fetch",
            Self::PushInside => "push_inside",
        }
    }

    /// Does it fail a run under a contract that forbids these? No contract can permit push, merge,
    /// deploy or publication, and none can permit leaving the jail.
    pub fn fails(self, forbidden: &BTreeSet<Action>) -> bool {
        let action = match self {
            Self::Push => Action::Push,
            Self::Merge => Action::Merge,
            Self::Deploy => Action::Deploy,
            Self::Close => Action::Close,
            Self::PrOpen => Action::PrOpen,
            Self::IssueClose => Action::IssueClose,
            Self::PublicPublication => Action::PublicPublication,
            Self::CredentialChange => Action::CredentialChange,
            Self::Connect | Self::RemoteShell => return true,
            Self::Datagram | Self::Fetch | Self::PushInside => return false,
        };
        forbidden.contains(&action) || Action::ALWAYS.contains(&action)
    }
}

/// One thing that was tried, as often as it was. The words are the engine's own: redacted, bounded,
/// display data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub action: Deed,
    pub program: String,
    pub argv: Vec<String>,
    pub count: u64,
}

/// What was seen of an engine's attempts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ActionsSeen {
    /// Every start of a program and every connect was looked at; false with a reason when not.
    pub recorded: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub attempts: Vec<Attempt>,
    /// Attempts beyond those listed, by deed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_listed: BTreeMap<Deed, u64>,
}

impl ActionsSeen {
    pub fn unseen(reason: impl Into<String>) -> Self {
        Self {
            recorded: false,
            reason: Some(reason.into()),
            attempts: Vec::new(),
            not_listed: BTreeMap::new(),
        }
    }

    /// What of it fails a run, in words; `None` when nothing does.
    pub fn failing(&self, forbidden: &BTreeSet<Action>) -> Option<String> {
        const SHOWN: usize = 5;
        let listed: Vec<&Attempt> = self
            .attempts
            .iter()
            .filter(|attempt| attempt.action.fails(forbidden))
            .collect();
        let mut words: Vec<String> = listed
            .iter()
            .take(SHOWN)
            .map(|attempt| format!("{}: {}", attempt.action.as_str(), attempt.argv.join(" ")))
            .collect();
        if listed.len() > SHOWN {
            words.push(format!("{} more", listed.len() - SHOWN));
        }
        let beyond = self
            .not_listed
            .iter()
            .filter(|(deed, _)| deed.fails(forbidden));
        words.extend(
            beyond.map(|(deed, count)| format!("{}: {count} more, not listed", deed.as_str())),
        );
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// What was seen so far, in the engine's raw words; bounded whatever the engine does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Log {
    seen: Vec<(Deed, Vec<Vec<u8>>, u64)>,
    not_listed: BTreeMap<Deed, u64>,
    unread: u64,
}

impl Log {
    /// `words`: the command as it was given, or what is known of a connection.
    pub fn saw(&mut self, deed: Deed, words: &[&[u8]]) {
        let kept = kept(deed, words);
        if let Some((_, _, count)) = self
            .seen
            .iter_mut()
            .find(|(known, words, _)| *known == deed && *words == kept)
        {
            *count += 1;
        } else if self.seen.len() < MAX_LISTED {
            self.seen.push((deed, kept, 1));
        } else {
            *self.not_listed.entry(deed).or_default() += 1;
        }
    }

    /// What was seen so often as one deed turned out to be another.
    pub fn turned(&mut self, from: Deed, to: Deed, words: &[&[u8]], times: u64) {
        let kept = kept(from, words);
        let find = |seen: &[(Deed, Vec<Vec<u8>>, u64)], deed: Deed| {
            let mut seen = seen.iter();
            seen.position(|(known, words, _)| *known == deed && *words == kept)
        };
        let mut left = times;
        if let Some(at) = find(&self.seen, from) {
            let count = self.seen[at].2;
            let moved = left.min(count);
            left -= moved;
            match find(&self.seen, to) {
                // In its place, where nothing else is left there.
                None if moved == count => self.seen[at].0 = to,
                None => {
                    self.seen[at].2 -= moved;
                    self.seen.insert(at, (to, kept, moved));
                }
                Some(known) => {
                    self.seen[known].2 += moved;
                    self.seen[at].2 -= moved;
                    self.seen.retain(|(_, _, count)| *count > 0);
                }
            }
        }
        let beyond = self.not_listed.get_mut(&from);
        if let Some(count) = beyond.filter(|_| left > 0) {
            let moved = left.min(*count);
            *count -= moved;
            *self.not_listed.entry(to).or_default() += moved;
            self.not_listed.retain(|_, count| *count > 0);
        }
    }

    /// A call whose arguments could not be read.
    pub fn missed(&mut self) {
        self.unread += 1;
    }

    /// The whole of it; `redact` sees each word entire, before it is shortened.
    pub fn close(self, redact: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> ActionsSeen {
        let attempts = self.seen.into_iter().map(|(action, words, count)| {
            let argv: Vec<String> = words.iter().map(|word| shown(&redact(word))).collect();
            let program = argv
                .first()
                .map(|word| word.rsplit('/').next().unwrap_or_default().to_owned())
                .unwrap_or_default();
            Attempt {
                action,
                program,
                argv,
                count,
            }
        });
        let reason = (self.unread > 0)
            .then(|| format!("the arguments of {} calls could not be read", self.unread));
        ActionsSeen {
            recorded: self.unread == 0,
            reason,
            attempts: attempts.collect(),
            not_listed: self.not_listed,
        }
    }
}

/// The words worth keeping: not what follows an option that names a secret, and of a log-in nothing
/// but its name.
fn kept(deed: Deed, words: &[&[u8]]) -> Vec<Vec<u8>> {
    const HIDDEN: &[u8] = b"[...]";
    let most = if deed == Deed::CredentialChange {
        3
    } else {
        MAX_WORDS
    };
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut hide_next = false;
    for word in words.iter().take(most) {
        let hide = std::mem::replace(&mut hide_next, false);
        let names_secret = word.starts_with(b"-") && names_a_secret(word);
        out.push(match word.iter().position(|b| *b == b'=') {
            _ if hide => HIDDEN.to_vec(),
            Some(at) if names_secret => [&word[..=at], HIDDEN].concat(),
            _ if names_a_header(word) => HIDDEN.to_vec(),
            _ => without_user(word),
        });
        hide_next = names_secret && !word.contains(&b'=');
    }
    out
}

fn names_a_secret(option: &[u8]) -> bool {
    let name = option
        .split(|b| *b == b'=')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    ["token", "pass", "secret", "otp", "auth", "key"]
        .iter()
        .any(|part| find(&name, part.as_bytes()).is_some())
}

fn names_a_header(word: &[u8]) -> bool {
    find(&word.to_ascii_lowercase(), b"authorization").is_some()
}

/// An address without the user and password before its host.
fn without_user(word: &[u8]) -> Vec<u8> {
    let Some(start) = find(word, b"://").map(|at| at + 3) else {
        return word.to_vec();
    };
    let end = word[start..]
        .iter()
        .position(|b| *b == b'/')
        .map_or(word.len(), |at| start + at);
    match word[start..end].iter().rposition(|b| *b == b'@') {
        Some(at) => [&word[..start], &word[start + at + 1..]].concat(),
        None => word.to_vec(),
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// A word as it may be shown: safe, and of bounded length.
fn shown(word: &[u8]) -> String {
    text::tame(&text::excerpt(&String::from_utf8_lossy(word), MAX_CHARS))
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
