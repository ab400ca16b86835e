//! Names by chance: words of a nonce that nobody can list beforehand.
//!
//! No word is fixed, so that code under test has no pattern to look for.

use crate::values::digest::Digest;

/// An endless row of numbers that follows from a nonce.
pub(in crate::checks) struct Words {
    nonce: String,
    drawn: u64,
    bytes: Vec<u8>,
}

impl Words {
    pub(in crate::checks) fn new(nonce: &str, of: &str) -> Self {
        Self {
            nonce: format!("{nonce}/{of}"),
            drawn: 0,
            bytes: Vec::new(),
        }
    }

    fn byte(&mut self) -> u8 {
        if self.bytes.is_empty() {
            let text = format!("{}/{}", self.nonce, self.drawn);
            self.drawn += 1;
            self.bytes = Digest::of(text.as_bytes()).to_bytes().to_vec();
        }
        self.bytes.pop().unwrap_or_default()
    }

    pub(in crate::checks) fn below(&mut self, count: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number.checked_rem(count).unwrap_or_default()
    }

    /// Eight letters or more: no language keeps such a word for itself.
    pub(in crate::checks) fn word(&mut self) -> String {
        const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
        const VOWELS: &[u8] = b"aeiou";
        let syllables = 4 + self.below(2);
        let mut word = String::new();
        for _ in 0..syllables {
            for letters in [CONSONANTS, VOWELS] {
                let at = self.below(letters.len());
                word.extend(letters.get(at).map(|letter| char::from(*letter)));
            }
        }
        word
    }

    /// A text with values by chance: `$1` and `$2` stand for two words of which none is in the other, `#1` for a
    /// number below `#2`.
    pub(in crate::checks) fn fill(&mut self, text: &str) -> String {
        let one = self.word();
        let mut other = self.word();
        while one.contains(&other) || other.contains(&one) {
            other = self.word();
        }
        let small = 2 + self.below(400);
        let large = small + 1 + self.below(400);
        text.replace("$1", &one)
            .replace("$2", &other)
            .replace("#1", &small.to_string())
            .replace("#2", &large.to_string())
    }

    pub(in crate::checks) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at + 1);
            list.swap(at, other);
        }
    }
}

/// The first letter large.
pub(in crate::checks) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
