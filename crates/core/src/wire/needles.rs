//! Values to be found in a text, in the spellings in which they may stand there, as one automaton: a
//! step per byte, however many there are.

use std::collections::VecDeque;

/// Of a long value its beginning is looked for: who finds that has found it.
const MAX_NEEDLE: usize = 256;
/// A shorter piece of base64 could be anything.
const MIN_ENCODED: usize = 8;

/// A state of the automaton. 0 is its beginning.
pub type State = u16;

#[derive(Clone, Default)]
pub struct Needles {
    /// By state and byte; empty where nothing is looked for.
    next: Vec<[State; 256]>,
    /// How many bytes of a value have been seen in this state.
    depth: Vec<u16>,
    /// Are these half of a value, or more?
    is_half: Vec<bool>,
    is_found: Vec<bool>,
}

impl Needles {
    /// Exactly these letters, and the same as base64 and in a URL.
    pub fn exact<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Self {
        Self::build(values, false)
    }

    /// In capitals or not: names of hosts.
    pub fn of_names<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Self {
        Self::build(values, true)
    }

    fn build<'v>(values: impl IntoIterator<Item = &'v [u8]>, fold: bool) -> Self {
        let mut words: Vec<Vec<u8>> = Vec::new();
        for value in values {
            let value = &value[..value.len().min(MAX_NEEDLE)];
            words.extend(spellings(value));
        }
        if fold {
            words
                .iter_mut()
                .for_each(|word| word.make_ascii_lowercase());
        }
        words.retain(|word| !word.is_empty());
        let mut found = Self::default();
        for word in &words {
            found.add(word);
        }
        found.close();
        if fold {
            for row in &mut found.next {
                for letter in b'a'..=b'z' {
                    row[usize::from(letter.to_ascii_uppercase())] = row[usize::from(letter)];
                }
            }
        }
        found
    }

    fn node(&mut self, depth: u16) -> State {
        self.next.push([0; 256]);
        self.depth.push(depth);
        self.is_half.push(false);
        self.is_found.push(false);
        State::try_from(self.next.len() - 1).unwrap_or(0)
    }

    fn add(&mut self, word: &[u8]) {
        // More states than can be named would need more values than there ever are.
        if self.next.len() + word.len() + 1 > usize::from(State::MAX) {
            return;
        }
        if self.next.is_empty() {
            self.node(0);
        }
        let mut at = 0;
        for (index, byte) in word.iter().enumerate() {
            let ahead = self.next[usize::from(at)][usize::from(*byte)];
            at = match ahead {
                0 => {
                    let made = self.node(u16::try_from(index + 1).unwrap_or(u16::MAX));
                    self.next[usize::from(at)][usize::from(*byte)] = made;
                    made
                }
                ahead => ahead,
            };
            self.is_half[usize::from(at)] |= (index + 1) * 2 >= word.len();
        }
        self.is_found[usize::from(at)] = true;
    }

    /// From every state and byte to the longest beginning of a value that it ends with.
    fn close(&mut self) {
        let mut back = vec![0 as State; self.next.len()];
        let mut open: VecDeque<State> = self
            .next
            .first()
            .map(|row| row.iter().copied().filter(|to| *to != 0).collect())
            .unwrap_or_default();
        while let Some(state) = open.pop_front() {
            let fallback = usize::from(back[usize::from(state)]);
            self.is_found[usize::from(state)] |= self.is_found[fallback];
            for byte in 0..256 {
                let ahead = self.next[usize::from(state)][byte];
                let instead = self.next[fallback][byte];
                match ahead {
                    0 => self.next[usize::from(state)][byte] = instead,
                    ahead => {
                        back[usize::from(ahead)] = instead;
                        open.push_back(ahead);
                    }
                }
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    pub(super) fn step(&self, state: State, byte: u8) -> State {
        self.next
            .get(usize::from(state))
            .map_or(0, |row| row[usize::from(byte)])
    }

    /// Does a value begin with this byte?
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.next
            .first()
            .is_some_and(|row| row[usize::from(byte)] != 0)
    }

    /// The length of the longest spelling.
    pub(super) fn longest(&self) -> usize {
        self.depth.iter().max().map_or(0, |most| usize::from(*most))
    }

    pub(super) fn depth(&self, state: State) -> usize {
        self.depth
            .get(usize::from(state))
            .map_or(0, |depth| usize::from(*depth))
    }

    pub(super) fn is_half(&self, state: State) -> bool {
        self.is_half
            .get(usize::from(state))
            .copied()
            .unwrap_or(false)
    }

    pub(super) fn is_found(&self, state: State) -> bool {
        self.is_found
            .get(usize::from(state))
            .copied()
            .unwrap_or(false)
    }
}

/// The value itself, as it stands in a URL, and inside of base64 at each of its three places.
pub fn spellings(value: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![value.to_vec()];
    for hex in ["0123456789ABCDEF", "0123456789abcdef"] {
        all.push(percent(value, hex.as_bytes()));
    }
    for letters in [STANDARD, URL_SAFE] {
        let inside = (0..3).map(|before| base64_inside(value, before, letters));
        all.extend(inside.filter(|word| word.len() >= MIN_ENCODED));
    }
    all.sort();
    all.dedup();
    all
}

fn percent(value: &[u8], hex: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            out.extend([
                b'%',
                hex[usize::from(byte >> 4)],
                hex[usize::from(byte & 15)],
            ]);
        }
    }
    out
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters of base64 that a value alone decides, with so many bytes before it.
fn base64_inside(value: &[u8], before: usize, letters: &[u8; 64]) -> Vec<u8> {
    let bit = |at: usize| (value[at / 8] >> (7 - at % 8)) & 1;
    let (begin, end) = (before * 8, (before + value.len()) * 8);
    let first = begin.div_ceil(6);
    (first..end / 6)
        .map(|letter| {
            let index = (0..6).fold(0u8, |all, n| all << 1 | bit(letter * 6 + n - begin));
            letters[usize::from(index)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(needles: &Needles, text: &[u8]) -> bool {
        let mut state = 0;
        text.iter().any(|byte| {
            state = needles.step(state, *byte);
            needles.is_found(state)
        })
    }

    #[test]
    fn every_spelling_is_found() {
        let needles = Needles::exact([&b"key/of+operator"[..]]);
        for text in [
            "x key/of+operator y",
            "key%2Fof%2Boperator",
            "key%2fof%2boperator",
            // In base64 after none, one and two other bytes.
            "a2V5L29mK29wZXJhdG9y",
            "eGtleS9vZitvcGVyYXRvcnk=",
            "eHhrZXkvb2Yrb3BlcmF0b3J6eg==",
        ] {
            assert!(holds(&needles, text.as_bytes()), "{text}");
        }
        for text in [
            "key/of+operato",
            "Key/of+operator",
            "",
            "key/of key/of+operatox",
        ] {
            assert!(!holds(&needles, text.as_bytes()), "{text}");
        }
        assert!(!holds(&Needles::exact([]), b"anything"));
        assert!(holds(
            &Needles::of_names([&b"Gate.Example"[..]]),
            b"at GATE.example!"
        ));
    }

    #[test]
    fn values_that_share_letters_are_all_found() {
        let needles = Needles::exact([&b"abab"[..], b"bab.", b"aba.b"]);
        for text in ["xabab", "ababab", "aabab", "abaaba.b", "bab."] {
            assert!(holds(&needles, text.as_bytes()), "{text}");
        }
        assert!(!holds(&needles, b"aba bab ab"));
    }
}
