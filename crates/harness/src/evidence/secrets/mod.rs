//! Secrets: which values are known, what tokens look like, what is private of an endpoint, and taking
//! all of it out of a byte stream before it reaches disk or a hash. Paths that a bundle has other
//! names for are replaced on the same way.
//!
//! - this file: the values, and where they stand in a text
//! - `values.rs` the spellings in which one is looked for; `unescaped.rs` a text as it is meant; `shapes.rs` tokens that nobody had to know
//! - `redactor.rs` taking out of a stream; `patch.rs` counting in a patch; `documents.rs` documents of our own

mod documents;
mod patch;
mod redactor;
mod shapes;
mod unescaped;
mod values;

use std::os::unix::ffi::OsStrExt;

use cto_core::wire::endpoint::Endpoint;

pub use documents::Quoted;
pub use patch::{PatchHits, PatchScan};
pub use redactor::Redactor;

use crate::evidence::host_names::{self, HostName, HostNames};
use crate::host::Env;
use unescaped::unescaped;
use values::Values;

/// A shorter part of an endpoint is a word like any other.
const MIN_PRIVATE: usize = 8;
/// A shorter value is in every second word.
const MIN_CREDENTIAL: usize = 4;
/// A shorter word of letters alone is what servers that ask for no key are told instead of one: `EMPTY`, `ollama`, `dummy`.
const MIN_WORD: usize = 8;
/// Longest unfinished match held back while waiting for its end.
const MAX_HELD: usize = 64 * 1024;
/// Longer than any token of one line is likely to be; whole lines do not wait for it.
const MIN_WINDOW: usize = 8 * 1024;

/// Values that must never leave this process.
#[derive(Clone)]
pub struct Secrets {
    known: Values,
    /// By which an endpoint of the operator's could be recognised. It is taken out like a secret, but
    /// a repository that names it itself leaks nothing.
    private: Values,
    /// Are tokens not looked for that are only shaped like some?
    values_only: bool,
    pub names: HostNames,
}

impl Default for Secrets {
    fn default() -> Self {
        Self {
            known: Values::new(false),
            private: Values::new(true),
            values_only: false,
            names: HostNames::default(),
        }
    }
}

impl Secrets {
    /// Environment variables whose names look secret, when their values could be.
    pub fn from_env(env: &Env) -> Self {
        let mut secrets = Self::default();
        for (name, value) in env.iter() {
            let name = name.to_string_lossy();
            let endpoint = value.to_str().and_then(|text| Endpoint::parse(text).ok());
            match endpoint {
                // An address is as private as its parts are, whatever its variable is called.
                Some(endpoint) if name_looks_secret(&name) || names_endpoint(&name) => {
                    secrets.private_of(&endpoint, false);
                }
                None if name_looks_secret(&name) || names_endpoint(&name) => {
                    secrets.add([value.as_bytes().to_vec()]);
                }
                _ => {}
            }
        }
        secrets
    }

    /// What is private of the endpoint of a run; nothing, if all of it is everybody's.
    pub fn add_private(&mut self, endpoint: &Endpoint) {
        self.private_of(endpoint, true);
    }

    fn private_of(&mut self, endpoint: &Endpoint, certain: bool) {
        let strings = endpoint.private_strings().into_iter();
        let values = strings.map(String::into_bytes);
        for value in values.filter(|value| value.len() >= MIN_PRIVATE) {
            self.private.put(value, certain);
        }
    }

    /// Values that may be secrets. Short and common ones are no alarms.
    pub fn add(&mut self, values: impl IntoIterator<Item = Vec<u8>>) {
        for value in values.into_iter().filter(|value| could_be_secret(value)) {
            self.known.put(value, false);
        }
    }

    /// What authenticates this operator somewhere: it is looked for whatever it looks like, but for a placeholder.
    pub fn add_credentials(&mut self, values: impl IntoIterator<Item = Vec<u8>>) {
        for value in values.into_iter().filter(|value| !is_placeholder(value)) {
            self.known.put(value, true);
        }
    }

    /// The same for a header of the operator's, whose name says whether it is one.
    pub fn add_header(&mut self, name: &str, value: Vec<u8>) {
        match name_looks_secret(name) || name.eq_ignore_ascii_case("cookie") {
            true => self.add_credentials([value]),
            false => self.add([value]),
        }
    }

    pub fn redactor(&self) -> Redactor<'_> {
        Redactor::new(self)
    }

    /// Whole text at once, for short things like an engine's message.
    pub fn redact(&self, text: &[u8]) -> (Vec<u8>, Hits) {
        let mut redactor = self.redactor();
        let mut out = Vec::with_capacity(text.len());
        redactor.push(text, &mut |bytes| out.extend_from_slice(bytes));
        let hits = redactor.finish(&mut |bytes| out.extend_from_slice(bytes));
        (out, hits)
    }

    /// The beginning of a text, cleaned before it is cut: of a value that lies across the cut its mark stays. What is
    /// looked at should go on behind it by [`Self::longest`].
    pub fn redact_beginning(&self, text: &[u8], limit: usize) -> Vec<u8> {
        self.redactor().beginning(text, limit)
    }

    fn may_cross_lines(&self, text: &[u8]) -> bool {
        self.known.iter().any(|value| value.contains(&b'\n'))
            || self.names.cross_lines()
            || memchr::memmem::find(text, b"-----BEGIN").is_some()
    }

    /// No spelling of anything is longer.
    pub fn longest(&self) -> usize {
        let values = self.known.longest().max(self.private.longest());
        values.max(self.names.longest() + host_names::LOOK_AHEAD)
    }

    /// Non-overlapping hits in order of position. `before` is what came before the text.
    fn find(&self, before: &[u8], text: &[u8]) -> Vec<Hit> {
        let named = |named: host_names::Named| Hit {
            start: named.start,
            end: named.end,
            what: What::Path(named.name),
        };
        let paths = self.names.find(before, text);
        let mut hits: Vec<Hit> = paths.into_iter().map(named).collect();
        let read = match self.knows_nothing() {
            true => None,
            false => unescaped(text),
        };
        for (values, what) in [(&self.known, What::Known), (&self.private, What::Private)] {
            values.each(text, read.as_ref(), &mut |start, end| {
                hits.push(Hit { start, end, what });
            });
        }
        if !self.values_only {
            shapes::each(text, &mut |start, end| {
                let what = What::Shape;
                hits.push(Hit { start, end, what });
            });
        }
        hits.sort_by_key(|hit| (hit.start, hit.what));
        let mut end = 0;
        // Overlapping hits are joined, so that no part of either stays.
        let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
        for hit in hits {
            match joined.last_mut() {
                Some(last) if hit.start < end => {
                    last.end = last.end.max(hit.end);
                    last.what = last.what.min(hit.what);
                }
                _ => joined.push(hit),
            }
            end = joined.last().map_or(0, |last| last.end);
        }
        joined
    }

    /// What a finished patch holds: known values anywhere, token shapes and private values in added
    /// lines.
    pub fn scan_patch(&self) -> PatchScan<'_> {
        PatchScan::new(self)
    }

    /// Private values that stand in a text exactly.
    fn private_in<'s>(&'s self, text: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        self.private
            .iter()
            .filter(|value| memchr::memmem::find(text, value).is_some())
    }
}

struct Hit {
    start: usize,
    end: usize,
    what: What,
}

/// What was found, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Known,
    Shape,
    Private,
    Path(HostName),
}

fn name_looks_secret(name: &str) -> bool {
    // Who wrote something is no secret.
    let name = name.to_ascii_uppercase().replace("AUTHOR", "");
    [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "AUTH",
    ]
    .iter()
    .any(|word| name.contains(word))
}

fn names_endpoint(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["BASE_URL", "ENDPOINT"]
        .iter()
        .any(|word| name.contains(word))
}

fn is_placeholder(value: &[u8]) -> bool {
    let is_word = value.iter().all(u8::is_ascii_alphabetic);
    value.len() < MIN_CREDENTIAL || (is_word && value.len() < MIN_WORD)
}

/// Short or monotonous values and plain paths are not alarms.
fn could_be_secret(value: &[u8]) -> bool {
    let mut distinct = value.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    value.len() >= 12 && distinct.len() >= 6 && !value.starts_with(b"/")
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hits {
    pub known: u64,
    pub shapes: u64,
    pub private: u64,
    /// Paths that were given other names; nothing of a secret.
    pub paths: u64,
}

impl Hits {
    pub fn and(self, other: Self) -> Self {
        Self {
            known: self.known + other.known,
            shapes: self.shapes + other.shapes,
            private: self.private + other.private,
            paths: self.paths + other.paths,
        }
    }

    /// Secrets, of whatever kind.
    pub fn total(self) -> u64 {
        self.known + self.shapes + self.private
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
