//! Looks for values in an answer as it passes, and lets go of every byte that cannot be the beginning
//! of one. What is let go is what came, byte for byte.
//!
//! A value may stand in an answer as it is, in the escapes of JSON, in JSON inside of JSON, and in
//! pieces: the text of a model comes in many events, each a document with a few letters of it.
//!
//! - this file: the bytes, and which of them wait
//! - `documents.rs` the texts of an answer; `pieces.rs` texts put together; `track.rs` one reading

mod documents;
mod pieces;
mod track;

use super::needles::Needles;
use documents::Documents;
use pieces::Pieces;
use track::{Track, Unescape};

/// So many letters of a value may pass when an event ends with them: to wait for fewer would let
/// every second event wait for the next.
const TOLD: usize = 3;
/// So many bytes wait for what comes after the beginning of a value. Then they pass, if it is less
/// than half of one; else they never do.
const MAX_WAITING: usize = 1 << 20;

/// Watches one answer.
pub struct Watch<'n> {
    needles: &'n Needles,
    longest: usize,
    /// As it came; with escapes taken out; with those of JSON in JSON taken out too.
    plain: Track,
    escape: Unescape,
    unescaped: Track,
    inner: Unescape,
    twice: Track,
    documents: Documents,
    pieces: Pieces,
    /// How many bytes have come.
    come: u64,
    waiting: Vec<u8>,
    found: bool,
}

impl<'n> Watch<'n> {
    pub fn new(needles: &'n Needles) -> Self {
        Self {
            needles,
            longest: needles.longest(),
            plain: Track::default(),
            escape: Unescape::default(),
            unescaped: Track::default(),
            inner: Unescape::default(),
            twice: Track::default(),
            documents: Documents::default(),
            pieces: Pieces::default(),
            come: 0,
            waiting: Vec::new(),
            found: false,
        }
    }

    /// Does a text hold a value?
    pub fn sees(needles: &'n Needles, text: &[u8]) -> bool {
        let (mut watch, mut out) = (Self::new(needles), Vec::new());
        watch.push(text, &mut out) || watch.finish(&mut out)
    }

    /// Takes the next bytes, and hands out those that need not wait. True once a value was found:
    /// then no byte is handed out any more.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> bool {
        if self.needles.is_empty() {
            out.extend_from_slice(piece);
            return false;
        }
        let mut rest = piece;
        while let Some(byte) = rest.first() {
            let dull = self.dull(rest);
            if dull > 0 {
                self.skip(&rest[..dull]);
                rest = &rest[dull..];
                continue;
            }
            self.read(*byte, self.come);
            self.come += 1;
            rest = &rest[1..];
        }
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() > MAX_WAITING {
            self.settle();
            self.found |= self.pieces.has_half(self.needles);
            self.pieces.let_go();
        }
        if self.found {
            self.waiting.clear();
            return true;
        }
        let first = self.come - self.waiting.len() as u64;
        let settled = self.open_since().unwrap_or(self.come).max(first) - first;
        let settled = usize::try_from(settled)
            .unwrap_or(usize::MAX)
            .min(self.waiting.len());
        out.extend(self.waiting.drain(..settled));
        false
    }

    /// The answer has ended: what waited was not the beginning of a value, unless this says so.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        self.settle();
        if self.found {
            self.waiting.clear();
        }
        out.append(&mut self.waiting);
        self.found
    }

    /// How many bytes from here on are letters of a text with which no value begins, while none is
    /// begun: only texts that are read on can need them.
    fn dull(&self, bytes: &[u8]) -> usize {
        let tracks = [&self.plain, &self.unescaped, &self.twice];
        let is_calm = self.documents.is_in_text()
            && !self.escape.is_open()
            && !self.inner.is_open()
            && tracks.iter().all(|track| !track.is_open());
        if !is_calm {
            return 0;
        }
        let counts = |byte: &u8| {
            matches!(byte, b'"' | b'\\' | b'\n' | b'\r') || self.needles.begins_with(*byte)
        };
        bytes.iter().position(counts).unwrap_or(bytes.len())
    }

    /// After as many of them as a value is long nothing that was begun is left, so of many only these
    /// are kept.
    fn skip(&mut self, dull: &[u8]) {
        let is_full = self.documents.letters(dull, self.longest, self.come);
        self.come += dull.len() as u64;
        if is_full {
            self.settle();
        }
    }

    fn read(&mut self, byte: u8, at: u64) {
        let needles = self.needles;
        self.found |= self.plain.read(needles, byte, at);
        if let Some((letter, begun)) = self.escape.read(byte, at) {
            let letter = letter.byte();
            self.found |= self.unescaped.read(needles, letter, begun);
            if let Some((letter, begun)) = self.inner.read(letter, begun) {
                self.found |= self.twice.read(needles, letter.byte(), begun);
            }
        }
        if self.documents.read(byte, at) {
            self.settle();
        }
    }

    /// Puts the texts that are there together with those before.
    fn settle(&mut self) {
        let Self {
            needles,
            documents,
            pieces,
            found,
            ..
        } = self;
        documents.take(&mut |text, letters| *found |= pieces.read(needles, text, letters));
    }

    /// Where the first byte is that may belong to a value.
    fn open_since(&self) -> Option<u64> {
        let whole = [&self.plain, &self.unescaped, &self.twice]
            .into_iter()
            .filter_map(|track| track.open_since(0));
        whole
            .chain(self.documents.open_since())
            .chain(self.pieces.open_since(TOLD))
            .min()
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
