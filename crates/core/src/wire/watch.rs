//! Looks for values in an answer as it passes, and lets go of every byte that cannot be the beginning
//! of one. What is let go is what came, byte for byte.
//!
//! A value may stand in an answer as it is, in the escapes of JSON, in JSON inside of JSON, and in
//! pieces: the text of a model comes in many events, each a document with a few letters of it. So
//! texts under the same key are read on from one document to the next.

use std::collections::{BTreeMap, VecDeque};

use super::needles::{Needles, State};

/// So many letters of a value may pass when an event ends with them: to wait for fewer would let
/// every second event wait for the next.
const TOLD: usize = 3;
/// Other keys than these many are not read on.
const MAX_KEYS: usize = 32;
/// What waits longer than this is not in pieces.
const MAX_WAITING: usize = 1 << 20;

/// One reading of the answer.
#[derive(Default)]
struct Track {
    state: State,
    /// Where each byte that may belong to a value began in the answer.
    begun: VecDeque<u64>,
}

impl Track {
    /// Reads one byte. Is a value whole?
    fn read(&mut self, needles: &Needles, byte: u8, begun: u64) -> bool {
        self.state = needles.step(self.state, byte);
        let depth = needles.depth(self.state);
        if depth > 0 {
            self.begun.push_back(begun);
            while self.begun.len() > depth {
                self.begun.pop_front();
            }
        } else if !self.begun.is_empty() {
            self.begun.clear();
        }
        needles.is_found(self.state)
    }

    /// Where the bytes begin that may be the beginning of a value, if they are more than so many.
    fn open_since(&self, told: usize) -> Option<u64> {
        self.begun
            .front()
            .copied()
            .filter(|_| self.begun.len() > told)
    }
}

/// Takes the escapes of JSON out of bytes.
#[derive(Default)]
struct Unescape {
    at: Escape,
    begun: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    Digits(u8, u16),
}

/// Stands for a letter that no value holds.
const FOREIGN: u8 = 0;

impl Unescape {
    /// The byte that is there once an escape is whole, and where it began.
    fn read(&mut self, byte: u8, begun: u64) -> Option<(u8, u64)> {
        match self.at {
            Escape::None if byte == b'\\' => {
                (self.at, self.begun) = (Escape::Begun, begun);
                None
            }
            Escape::None => Some((byte, begun)),
            Escape::Begun if byte == b'u' => {
                self.at = Escape::Digits(0, 0);
                None
            }
            Escape::Begun => {
                self.at = Escape::None;
                let plain = matches!(byte, b'"' | b'\\' | b'/');
                Some((if plain { byte } else { FOREIGN }, self.begun))
            }
            Escape::Digits(count, unit) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    self.at = Escape::None;
                    return Some((FOREIGN, self.begun));
                };
                let unit = unit << 4 | u16::try_from(digit).unwrap_or(0);
                if count < 3 {
                    self.at = Escape::Digits(count + 1, unit);
                    return None;
                }
                self.at = Escape::None;
                let letter = u8::try_from(unit).ok().filter(u8::is_ascii);
                Some((letter.unwrap_or(FOREIGN), self.begun))
            }
        }
    }
}

/// The texts under one key, one after another, and what they hold as JSON themselves.
#[derive(Default)]
struct Texts {
    plain: Track,
    inner: Unescape,
    unescaped: Track,
}

/// Which text of which key a byte belongs to.
#[derive(Default)]
struct Lexer {
    in_text: bool,
    is_value: bool,
    after_colon: bool,
    /// Of the last text that was not a value: a key, if a colon follows.
    key: u64,
    escape: Unescape,
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

impl Lexer {
    /// The byte of a value that is whole now, with its key.
    fn read(&mut self, byte: u8, begun: u64) -> Option<(u64, u8, u64)> {
        // No text of JSON crosses a line: whatever was before, here is none.
        if byte == b'\n' {
            (self.in_text, self.after_colon) = (false, false);
            self.escape = Unescape::default();
            return None;
        }
        if !self.in_text {
            match byte {
                b'"' => {
                    (self.in_text, self.is_value) = (true, self.after_colon);
                    if !self.is_value {
                        self.key = FNV;
                    }
                }
                b':' => self.after_colon = true,
                b' ' | b'\t' | b'\r' => {}
                _ => self.after_colon = false,
            }
            return None;
        }
        if byte == b'"' && self.escape.at == Escape::None {
            (self.in_text, self.after_colon) = (false, false);
            return None;
        }
        let (letter, begun) = self.escape.read(byte, begun)?;
        if self.is_value {
            return Some((self.key, letter, begun));
        }
        self.key = (self.key ^ u64::from(letter)).wrapping_mul(0x0000_0100_0000_01b3);
        None
    }
}

/// Watches one answer.
pub struct Watch<'n> {
    needles: &'n Needles,
    /// As it came; with escapes taken out; with those of JSON in JSON taken out too.
    plain: Track,
    escape: Unescape,
    unescaped: Track,
    inner: Unescape,
    twice: Track,
    lexer: Lexer,
    texts: BTreeMap<u64, Texts>,
    /// How many bytes have come.
    come: u64,
    waiting: Vec<u8>,
    found: bool,
}

impl<'n> Watch<'n> {
    pub fn new(needles: &'n Needles) -> Self {
        Self {
            needles,
            plain: Track::default(),
            escape: Unescape::default(),
            unescaped: Track::default(),
            inner: Unescape::default(),
            twice: Track::default(),
            lexer: Lexer::default(),
            texts: BTreeMap::new(),
            come: 0,
            waiting: Vec::new(),
            found: false,
        }
    }

    /// Does a text hold a value?
    pub fn sees(needles: &'n Needles, text: &[u8]) -> bool {
        Self::new(needles).push(text, &mut Vec::new())
    }

    /// Takes the next bytes, and hands out those that need not wait. True once a value was found:
    /// then no byte is handed out any more.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> bool {
        if self.needles.is_empty() {
            out.extend_from_slice(piece);
            return false;
        }
        for byte in piece {
            self.found |= self.read(*byte, self.come);
            self.come += 1;
        }
        if self.found {
            self.waiting.clear();
            return true;
        }
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() > MAX_WAITING {
            self.texts.clear();
        }
        let first = self.come - self.waiting.len() as u64;
        let settled = self.open_since().unwrap_or(self.come).max(first) - first;
        let settled = usize::try_from(settled)
            .unwrap_or(usize::MAX)
            .min(self.waiting.len());
        out.extend(self.waiting.drain(..settled));
        false
    }

    /// The answer has ended: what waited was not the beginning of a value.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.waiting);
    }

    fn read(&mut self, byte: u8, at: u64) -> bool {
        let needles = self.needles;
        let mut found = self.plain.read(needles, byte, at);
        if let Some((letter, begun)) = self.escape.read(byte, at) {
            found |= self.unescaped.read(needles, letter, begun);
            if let Some((letter, begun)) = self.inner.read(letter, begun) {
                found |= self.twice.read(needles, letter, begun);
            }
        }
        if let Some((key, letter, begun)) = self.lexer.read(byte, at) {
            let room = self.texts.len() < MAX_KEYS;
            let texts = match self.texts.entry(key) {
                std::collections::btree_map::Entry::Occupied(texts) => Some(texts.into_mut()),
                std::collections::btree_map::Entry::Vacant(new) => {
                    room.then(|| new.insert(Texts::default()))
                }
            };
            if let Some(texts) = texts {
                found |= texts.plain.read(needles, letter, begun);
                if let Some((letter, begun)) = texts.inner.read(letter, begun) {
                    found |= texts.unescaped.read(needles, letter, begun);
                }
            }
        }
        found
    }

    /// Where the first byte is that may belong to a value.
    fn open_since(&self) -> Option<u64> {
        let whole = [&self.plain, &self.unescaped, &self.twice]
            .into_iter()
            .filter_map(|track| track.open_since(0));
        let in_pieces = self
            .texts
            .values()
            .flat_map(|texts| [&texts.plain, &texts.unescaped])
            .filter_map(|track| track.open_since(TOLD));
        whole.chain(in_pieces).min()
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
