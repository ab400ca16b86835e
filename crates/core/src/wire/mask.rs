//! Known values taken out of a stream as it passes, also where they lie across two pieces. Only
//! bytes that may be the beginning of one wait for the next piece.

use memchr::memmem::Finder;

pub const MASK: &[u8] = b"[redacted]";

/// Values that must not pass.
#[derive(Clone, Default)]
pub struct Needles {
    /// Longest first, so that a value is taken out before a part of it.
    values: Vec<Finder<'static>>,
}

impl Needles {
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

    /// A whole text at once.
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

/// One stream on its way.
pub struct Masker<'a> {
    needles: &'a Needles,
    held: Vec<u8>,
    pub hits: u64,
}

impl<'a> Masker<'a> {
    pub fn new(needles: &'a Needles) -> Self {
        Self {
            needles,
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

    /// What was held back is no value after all.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        // A shorter value may lie inside the beginning of a longer one.
        let mut rest = &held[..];
        while let Some((at, length)) = self.needles.find(rest) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(MASK);
            self.hits += 1;
            rest = &rest[at + length..];
        }
        out.extend_from_slice(rest);
    }

    fn pass(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        let keep = self.needles.unsettled(text);
        let mut from = 0;
        while let Some((at, length)) = self.needles.find(&text[from..]) {
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

    fn needles(values: &[&str]) -> Needles {
        Needles::new(values.iter().map(|value| value.as_bytes().to_vec()))
    }

    #[test]
    fn values_go_and_the_rest_stays() {
        let needles = needles(&["key-12345", "https://a.example/v1", "a.example", ""]);
        assert_eq!(
            needles.masked("x key-12345 y https://a.example/v1/z a.example"),
            "x [redacted] y [redacted]/z [redacted]"
        );
        assert_eq!(needles.masked("key-1234"), "key-1234");
        assert_eq!(
            needles.masked("https://a.example/v"),
            "https://[redacted]/v"
        );
    }

    #[test]
    fn lines_do_not_wait() {
        let needles = needles(&["secret"]);
        let mut masker = Masker::new(&needles);
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
            let needles = needles(&["abab", "aba", "b.b", "abab.a"]);
            let mut masker = Masker::new(&needles);
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
