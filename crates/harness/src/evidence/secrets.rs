//! Secrets: which values are known, what tokens look like, what is private of an endpoint, and taking
//! all of it out of a byte stream before it reaches disk or a hash. Paths that a bundle has other
//! names for are replaced on the same way.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use cto_core::wire::endpoint::Endpoint;
use regex::bytes::{Regex, RegexBuilder};

use crate::evidence::host_names::{self, HostName, HostNames};
use crate::host::Env;

const KNOWN_MARK: &[u8] = b"[redacted:known-value]";
const SHAPE_MARK: &[u8] = b"[redacted:token]";
const PRIVATE_MARK: &[u8] = b"[redacted:endpoint]";
/// A shorter part of an endpoint is a word like any other.
const MIN_PRIVATE: usize = 8;
/// Longest unfinished match held back while waiting for its end.
const MAX_HELD: usize = 64 * 1024;
/// Longer than any token of one line is likely to be; whole lines do not wait for it.
const MIN_WINDOW: usize = 8 * 1024;

/// Well-known token shapes. Byte-oriented: Unicode tables would cost more than the whole run.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = [
        r"sk-[A-Za-z0-9_-]{20,}",
        r"gh[pousr]_[A-Za-z0-9]{36,}",
        r"github_pat_[A-Za-z0-9_]{22,}",
        r"glpat-[A-Za-z0-9_-]{20,}",
        r"(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"xox[abprs]-[A-Za-z0-9-]{10,}",
        r"AIza[0-9A-Za-z_-]{35}",
        r"npm_[A-Za-z0-9]{36}",
        r"hf_[A-Za-z0-9]{30,}",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*",
    ]
    .join("|");
    // The pattern is a constant and a test compiles it.
    RegexBuilder::new(&pattern).unicode(false).build().ok()
});

/// Values that must never leave this process.
#[derive(Clone, Default)]
pub struct Secrets {
    known: Vec<Vec<u8>>,
    /// By which an endpoint of the operator's could be recognised. It is taken out like a secret, but
    /// a repository that names it itself leaks nothing.
    private: Vec<Vec<u8>>,
    pub names: HostNames,
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
                    secrets.add_private(&endpoint);
                }
                None if name_looks_secret(&name) || names_endpoint(&name) => {
                    secrets.add([value.as_bytes().to_vec()]);
                }
                _ => {}
            }
        }
        secrets
    }

    /// What is private of an endpoint; nothing, if all of it is everybody's.
    pub fn add_private(&mut self, endpoint: &Endpoint) {
        let strings = endpoint.private_strings().into_iter();
        self.private.extend(
            strings
                .map(String::into_bytes)
                .filter(|value| value.len() >= MIN_PRIVATE),
        );
    }

    /// Values learned after the start: an endpoint, a credential. Short and common ones are not
    /// alarms here either.
    pub fn add(&mut self, values: impl IntoIterator<Item = Vec<u8>>) {
        self.known
            .extend(values.into_iter().filter(|value| could_be_secret(value)));
    }

    pub fn redactor(&self) -> Redactor<'_> {
        Redactor {
            secrets: self,
            held: Vec::new(),
            before: Vec::new(),
            hits: Hits::default(),
        }
    }

    /// Whole text at once, for short things like an engine's message.
    pub fn redact(&self, text: &[u8]) -> (Vec<u8>, Hits) {
        let mut redactor = self.redactor();
        let mut out = Vec::with_capacity(text.len());
        redactor.push(text, &mut |bytes| out.extend_from_slice(bytes));
        let hits = redactor.finish(&mut |bytes| out.extend_from_slice(bytes));
        (out, hits)
    }

    fn may_cross_lines(&self, text: &[u8]) -> bool {
        self.known.iter().any(|value| value.contains(&b'\n'))
            || self.names.cross_lines()
            || find_bytes(text, b"-----BEGIN").is_some()
    }

    fn longest(&self) -> usize {
        let values = self.known.iter().chain(&self.private);
        let longest = values.map(Vec::len).max().unwrap_or(0);
        longest.max(self.names.longest() + host_names::LOOK_AHEAD)
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
        let values = |all: &[Vec<u8>], what, hits: &mut Vec<Hit>| {
            for value in all {
                let mut from = 0;
                while let Some(at) = find_bytes(&text[from..], value) {
                    hits.push(Hit {
                        start: from + at,
                        end: from + at + value.len(),
                        what,
                    });
                    from += at + value.len();
                }
            }
        };
        values(&self.known, What::Known, &mut hits);
        values(&self.private, What::Private, &mut hits);
        if let Some(shapes) = SHAPES.as_ref() {
            hits.extend(shapes.find_iter(text).map(|m| Hit {
                start: m.start(),
                end: m.end(),
                what: What::Shape,
            }));
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
        PatchScan {
            secrets: self,
            tail: Vec::new(),
            hits: Hits::default(),
            private: BTreeSet::new(),
        }
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

fn find_bytes(text: &[u8], value: &[u8]) -> Option<usize> {
    // An empty value is nowhere, not everywhere.
    if value.is_empty() {
        None
    } else {
        memchr::memmem::find(text, value)
    }
}

fn name_looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
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
    /// Secrets, of whatever kind.
    pub fn total(self) -> u64 {
        self.known + self.shapes + self.private
    }
}

/// Takes secrets out of a stream, also when they lie across two chunks.
pub struct Redactor<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
    /// The last bytes that were let go, as they were.
    before: Vec<u8>,
    hits: Hits,
}

impl Redactor<'_> {
    pub fn push(&mut self, mut chunk: &[u8], out: &mut dyn FnMut(&[u8])) {
        // A large chunk is looked at where it is, once the line begun before it is whole.
        if !self.held.is_empty()
            && let Some(at) = memchr::memchr(b'\n', chunk).filter(|at| *at < MAX_HELD)
        {
            let (line, rest) = chunk.split_at(at + 1);
            self.join(line, out);
            chunk = rest;
        }
        if self.held.is_empty() {
            let done = self.settle(chunk, out);
            self.held.extend_from_slice(&chunk[done..]);
        } else {
            self.join(chunk, out);
        }
    }

    fn join(&mut self, more: &[u8], out: &mut dyn FnMut(&[u8])) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(more);
        let done = self.settle(&held, out);
        held.drain(..done);
        self.held = held;
    }

    /// Lets go of what needs not wait for more; returns how much that was.
    fn settle(&mut self, text: &[u8], out: &mut dyn FnMut(&[u8])) -> usize {
        let window = self.secrets.longest().max(MIN_WINDOW);
        let by_window = text.len().saturating_sub(window);
        // Whole lines need not wait: but for keys in PEM form, nothing we look for crosses a line
        // end.
        let by_line = match self.secrets.may_cross_lines(text) {
            true => 0,
            false => memchr::memrchr(b'\n', text).map_or(0, |at| at + 1),
        };
        let cut = by_window.max(by_line);
        if cut > 0 {
            self.emit(text, cut, false, out)
        } else {
            0
        }
    }

    pub fn finish(mut self, out: &mut dyn FnMut(&[u8])) -> Hits {
        let held = std::mem::take(&mut self.held);
        self.emit(&held, held.len(), true, out);
        self.hits
    }

    pub fn hits(&self) -> Hits {
        self.hits
    }

    /// Lets go of everything before `cut`, moved so that no match is split; returns where that was.
    fn emit(
        &mut self,
        held: &[u8],
        mut cut: usize,
        last: bool,
        out: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let mut from = 0;
        for hit in self.secrets.find(&self.before, held) {
            if hit.start >= cut {
                break;
            }
            // What comes next tells whether a path ends here.
            let ahead = match hit.what {
                What::Path(_) => host_names::LOOK_AHEAD - 1,
                _ => 0,
            };
            let at_the_end = hit.end + ahead >= held.len();
            let may_grow = !last && at_the_end && hit.end - hit.start < MAX_HELD;
            if may_grow {
                cut = hit.start;
                break;
            }
            out(&held[from..hit.start]);
            match hit.what {
                What::Known => {
                    self.hits.known += 1;
                    out(KNOWN_MARK);
                }
                What::Shape => {
                    self.hits.shapes += 1;
                    out(SHAPE_MARK);
                }
                What::Private => {
                    self.hits.private += 1;
                    out(PRIVATE_MARK);
                }
                What::Path(name) => {
                    self.hits.paths += 1;
                    out(name.mark());
                }
            }
            from = hit.end;
            cut = cut.max(from);
        }
        out(&held[from..cut]);
        self.before.extend_from_slice(&held[..cut]);
        let old = self.before.len().saturating_sub(host_names::LOOK_BACK);
        self.before.drain(..old);
        cut
    }
}

/// Looks at a patch in pieces; nothing is changed, only counted.
pub struct PatchScan<'a> {
    secrets: &'a Secrets,
    tail: Vec<u8>,
    hits: Hits,
    /// Private values that a line adds.
    private: BTreeSet<&'a [u8]>,
}

/// What was found in a patch.
pub struct PatchHits<'a> {
    pub hits: Hits,
    /// Private values that a line adds: a leak, unless the repository names them itself.
    pub private: BTreeSet<&'a [u8]>,
}

impl<'a> PatchScan<'a> {
    pub fn push(&mut self, chunk: &[u8]) {
        self.tail.extend_from_slice(chunk);
        // Whole lines only; one line of unreasonable length is looked at in pieces.
        let cut = match memchr::memrchr(b'\n', &self.tail) {
            Some(at) => at + 1,
            None if self.tail.len() > 1 << 20 => self.tail.len(),
            None => return,
        };
        let rest = self.tail.split_off(cut);
        let lines = std::mem::replace(&mut self.tail, rest);
        self.look(&lines);
    }

    pub fn finish(mut self) -> PatchHits<'a> {
        let lines = std::mem::take(&mut self.tail);
        self.look(&lines);
        PatchHits {
            hits: self.hits,
            private: self.private,
        }
    }

    fn look(&mut self, lines: &[u8]) {
        let secrets = self.secrets;
        for hit in secrets.find(b"", lines) {
            if hit.what == What::Known {
                self.hits.known += 1;
                continue;
            }
            let line_start = memchr::memrchr(b'\n', &lines[..hit.start]).map_or(0, |at| at + 1);
            if lines.get(line_start) != Some(&b'+') {
                continue;
            }
            match hit.what {
                What::Private => {
                    let found = &lines[hit.start..hit.end];
                    let inside = |value: &&Vec<u8>| find_bytes(found, value).is_some();
                    let values = secrets.private.iter().filter(inside);
                    self.private.extend(values.map(Vec::as_slice));
                }
                What::Path(_) => self.hits.paths += 1,
                _ => self.hits.shapes += 1,
            }
        }
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
