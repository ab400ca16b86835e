//! Masks known values in what is recorded of a call, also where one lies across two pieces. Only bytes
//! that may begin a value wait for the next piece. What goes to an engine is not masked: see `watch`.

use memchr::memmem::Finder;

pub const MASK: &[u8] = b"[redacted]";

/// The values to mask: credentials, and texts by which an endpoint could be recognised.
#[derive(Clone, Default)]
pub struct SecretPatterns {
    /// Longest first, so that a value is masked before a part of it.
    values: Vec<Finder<'static>>,
}

impl SecretPatterns {
    pub fn new(values: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut values: Vec<Vec<u8>> = values
            .into_iter()
            .filter(|value| !value.is_empty())
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self {
            values: values
                .iter()
                .map(|value| Finder::new(value).into_owned())
                .collect(),
        }
    }

    /// Masks a whole text at once.
    pub fn masked(&self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        let mut masker = Masker::new(self);
        masker.push(text.as_bytes(), &mut out);
        masker.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The first value in a text, and the longest at that place.
    fn find(&self, text: &[u8]) -> Option<(usize, usize)> {
        self.values
            .iter()
            .filter_map(|value| value.find(text).map(|at| (at, value.needle().len())))
            .min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length)))
    }

    /// How many bytes at the end may be the beginning of a value.
    fn unsettled(&self, text: &[u8]) -> usize {
        let begins = |value: &Finder<'static>| {
            let value = value.needle();
            let longest = value.len().saturating_sub(1).min(text.len());
            (1..=longest)
                .rev()
                .find(|length| text.ends_with(&value[..*length]))
                .unwrap_or(0)
        };
        self.values.iter().map(begins).max().unwrap_or(0)
    }
}

/// Masks one stream.
pub struct Masker<'a> {
    patterns: &'a SecretPatterns,
    held: Vec<u8>,
    pub hits: u64,
}

impl<'a> Masker<'a> {
    pub fn new(patterns: &'a SecretPatterns) -> Self {
        Self {
            patterns,
            held: Vec::new(),
            hits: 0,
        }
    }

    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let keep = self.pass(piece, out);
            self.held.extend_from_slice(&piece[piece.len() - keep..]);
            return;
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let keep = self.pass(&text, out);
        text.drain(..text.len() - keep);
        self.held = text;
    }

    /// The stream has ended: what was held back is not the beginning of a value.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        // A shorter value may lie inside the beginning of a longer one.
        let mut rest = &held[..];
        while let Some((at, length)) = self.patterns.find(rest) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(MASK);
            self.hits += 1;
            rest = &rest[at + length..];
        }
        out.extend_from_slice(rest);
    }

    fn pass(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        let keep = self.patterns.unsettled(text);
        let mut from = 0;
        while let Some((at, length)) = self.patterns.find(&text[from..]) {
            // It may still grow into a longer value that began no later.
            if from + at >= text.len() - keep {
                break;
            }
            out.extend_from_slice(&text[from..from + at]);
            out.extend_from_slice(MASK);
            self.hits += 1;
            from += at + length;
        }
        let settled = (text.len() - keep).max(from);
        out.extend_from_slice(&text[from..settled]);
        text.len() - settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns(values: &[&str]) -> SecretPatterns {
        SecretPatterns::new(values.iter().map(|value| value.as_bytes().to_vec()))
    }

    #[test]
    fn values_go_and_the_rest_stays() {
        let patterns = patterns(&["key-12345", "https://a.example/v1", "a.example", ""]);
        assert_eq!(
            patterns.masked("x key-12345 y https://a.example/v1/z a.example"),
            "x [redacted] y [redacted]/z [redacted]"
        );
        assert_eq!(patterns.masked("key-1234"), "key-1234");
        assert_eq!(
            patterns.masked("https://a.example/v"),
            "https://[redacted]/v"
        );
    }

    #[test]
    fn lines_do_not_wait() {
        let patterns = patterns(&["secret"]);
        let mut masker = Masker::new(&patterns);
        let mut out = Vec::new();
        masker.push(b"data: {}\n\n", &mut out);
        assert_eq!(out, b"data: {}\n\n");
        masker.push(b"a se", &mut out);
        assert_eq!(out, b"data: {}\n\na ");
        masker.push(b"a", &mut out);
        assert_eq!(out, b"data: {}\n\na sea");
    }

    proptest! {
        #[test]
        fn no_cut_lets_a_value_through(text in "[ab.]{0,60}", cuts in proptest::collection::vec(1usize..7, 1..6)) {
            let patterns = patterns(&["abab", "aba", "b.b", "abab.a"]);
            let mut masker = Masker::new(&patterns);
            let (mut out, mut rest) = (Vec::new(), text.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                masker.push(head, &mut out);
                rest = tail;
            }
            masker.finish(&mut out);
            let pieces = String::from_utf8(out).unwrap();
            for piece in pieces.split("[redacted]") {
                for value in ["abab", "aba", "b.b"] {
                    prop_assert!(!piece.contains(value), "{pieces}");
                }
            }
        }
    }
}
