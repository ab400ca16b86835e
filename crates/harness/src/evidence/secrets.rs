//! Secrets: which values are known, what tokens look like, and taking both out of a byte stream
//! before it reaches disk or a hash.

use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::host::Env;

const KNOWN_MARK: &[u8] = b"[redacted:known-value]";
const SHAPE_MARK: &[u8] = b"[redacted:token]";
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
}

impl Secrets {
    /// Environment variables whose names look secret, when their values could be.
    pub fn from_env(env: &Env) -> Self {
        let known = env
            .iter()
            .filter(|(name, _)| name_looks_secret(&name.to_string_lossy()))
            .map(|(_, value)| value.as_bytes().to_vec())
            .filter(|value| could_be_secret(value))
            .collect();
        Self { known }
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
            || find_bytes(text, b"-----BEGIN").is_some()
    }

    fn longest(&self) -> usize {
        self.known.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Non-overlapping hits in order of position.
    fn find(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        for value in &self.known {
            let mut from = 0;
            while let Some(at) = find_bytes(&text[from..], value) {
                hits.push(Hit {
                    start: from + at,
                    end: from + at + value.len(),
                    known: true,
                });
                from += at + value.len();
            }
        }
        if let Some(shapes) = SHAPES.as_ref() {
            hits.extend(shapes.find_iter(text).map(|m| Hit {
                start: m.start(),
                end: m.end(),
                known: false,
            }));
        }
        hits.sort_by_key(|hit| (hit.start, !hit.known));
        let mut end = 0;
        // Overlapping hits are joined, so that no part of either stays.
        let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
        for hit in hits {
            match joined.last_mut() {
                Some(last) if hit.start < end => {
                    last.end = last.end.max(hit.end);
                    last.known |= hit.known;
                }
                _ => joined.push(hit),
            }
            end = joined.last().map_or(0, |last| last.end);
        }
        joined
    }

    /// What a finished patch holds: known values anywhere, token shapes in added lines.
    pub fn scan_patch(&self) -> PatchScan<'_> {
        PatchScan {
            secrets: self,
            tail: Vec::new(),
            hits: Hits::default(),
        }
    }
}

struct Hit {
    start: usize,
    end: usize,
    known: bool,
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
        "BASE_URL",
        "ENDPOINT",
    ]
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
}

impl Hits {
    pub fn total(self) -> u64 {
        self.known + self.shapes
    }
}

/// Takes secrets out of a stream, also when they lie across two chunks.
pub struct Redactor<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
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
        for hit in self.secrets.find(held) {
            if hit.start >= cut {
                break;
            }
            let may_grow = !last && hit.end == held.len() && hit.end - hit.start < MAX_HELD;
            if may_grow {
                cut = hit.start;
                break;
            }
            out(&held[from..hit.start]);
            out(if hit.known { KNOWN_MARK } else { SHAPE_MARK });
            match hit.known {
                true => self.hits.known += 1,
                false => self.hits.shapes += 1,
            }
            from = hit.end;
            cut = cut.max(from);
        }
        out(&held[from..cut]);
        cut
    }
}

/// Looks at a patch in pieces; nothing is changed, only counted.
pub struct PatchScan<'a> {
    secrets: &'a Secrets,
    tail: Vec<u8>,
    hits: Hits,
}

impl PatchScan<'_> {
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

    pub fn finish(mut self) -> Hits {
        let lines = std::mem::take(&mut self.tail);
        self.look(&lines);
        self.hits
    }

    fn look(&mut self, lines: &[u8]) {
        for hit in self.secrets.find(lines) {
            if hit.known {
                self.hits.known += 1;
                continue;
            }
            let line_start = lines[..hit.start]
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1);
            if lines.get(line_start) == Some(&b'+') {
                self.hits.shapes += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets {
            known: values.iter().map(|v| v.as_bytes().to_vec()).collect(),
        }
    }

    // Assembled at run time: no token shape stands in this file.
    fn token() -> String {
        format!("gh{}_{}", "p", "a1B2".repeat(10))
    }

    #[test]
    fn known_values_and_shapes_are_taken_out() {
        assert!(SHAPES.is_some());
        let text = format!("a {} b hunter2-hunter2 c", token());
        let (out, hits) = secrets(&["hunter2-hunter2"]).redact(text.as_bytes());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a [redacted:token] b [redacted:known-value] c"
        );
        assert_eq!(
            hits,
            Hits {
                known: 1,
                shapes: 1
            }
        );
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        let text = b"task-sk-1 https://example.com/x?key=1 AKIA short ghp_short eyJ.eyJ";
        assert_eq!(secrets(&[]).redact(text).0, text);
    }

    #[test]
    fn whole_lines_do_not_wait_and_keys_do() {
        let s = secrets(&[]);
        let mut redactor = s.redactor();
        let mut out = Vec::new();
        redactor.push(b"said\nhalf", &mut |b| out.extend_from_slice(b));
        assert_eq!(out, b"said\n");
        let header = format!("-----BEGIN {} KEY-----\n", "PRIVATE");
        let mut redactor = s.redactor();
        let mut out = Vec::new();
        redactor.push(header.as_bytes(), &mut |b| out.extend_from_slice(b));
        redactor.push(b"c2VjcmV0\n", &mut |b| out.extend_from_slice(b));
        assert_eq!(redactor.finish(&mut |b| out.extend_from_slice(b)).shapes, 1);
        assert_eq!(out, SHAPE_MARK);
    }

    #[test]
    fn which_variables_count() {
        for (name, value, want) in [
            ("OPENAI_API_KEY", "abcdef123456xyz", true),
            ("OPENAI_API_KEY", "short", false),
            ("OPENAI_API_KEY", "aaaaaaaaaaaaaaaaaaaa", false),
            ("SSH_AUTH_SOCK", "/tmp/ssh-abcdef/agent.1", false),
            ("PATHS", "abcdef123456xyz", false),
        ] {
            assert_eq!(
                name_looks_secret(name) && could_be_secret(value.as_bytes()),
                want,
                "{name}={value}"
            );
        }
    }

    #[test]
    fn patches_count_added_tokens_and_any_known_value() {
        let s = secrets(&["hunter2-hunter2"]);
        let scan = |text: String| {
            let mut scan = s.scan_patch();
            for chunk in text.as_bytes().chunks(7) {
                scan.push(chunk);
            }
            scan.finish()
        };
        assert_eq!(
            scan(format!("+x = {}\n", token())),
            Hits {
                known: 0,
                shapes: 1
            }
        );
        assert_eq!(
            scan(format!("-x = {}\n context {}\n", token(), token())),
            Hits::default()
        );
        assert_eq!(
            scan("-hunter2-hunter2\n".into()),
            Hits {
                known: 1,
                shapes: 0
            }
        );
    }

    proptest! {
        /// However a stream is cut, the same bytes come out and no secret survives.
        #[test]
        fn chunking_never_matters(before in "[a-z \n]{0,700}", after in "[a-z \n]{0,700}", cuts in proptest::collection::vec(1usize..200, 1..20)) {
            let s = secrets(&["hunter2-hunter2"]);
            let text = format!("{before}hunter2-hunter2{} {after}", token());
            let whole = s.redact(text.as_bytes()).0;
            let mut redactor = s.redactor();
            let mut out = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                redactor.push(head, &mut |b| out.extend_from_slice(b));
                rest = tail;
            }
            redactor.finish(&mut |b| out.extend_from_slice(b));
            prop_assert!(find_bytes(&out, b"hunter2-hunter2").is_none());
            prop_assert!(find_bytes(&out, token().as_bytes()).is_none());
            prop_assert_eq!(out.len() >= before.len() + after.len(), true);
            prop_assert_eq!(out, whole);
        }
    }
}
