//! Texts that are read on from one to the next, in every way in which a reader may put them
//! together. A way that ends with nothing of a value is not kept, so what is kept is little.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::documents::{Placed, Text, mixed};
use super::track::{Track, Unescape};
use crate::wire::needles::Needles;

/// So many ways may end with letters of a value at a time. No good answer comes near: most texts end
/// with none.
pub(super) const MAX_OPEN: usize = 1024;

/// Texts put together, and what they hold as JSON themselves.
#[derive(Clone, Default)]
struct Reading {
    plain: Track,
    inner: Unescape,
    unescaped: Track,
}

impl Reading {
    fn read(&mut self, needles: &Needles, (letter, begun): Placed) -> bool {
        let mut found = self.plain.read(needles, letter, begun);
        if let Some((letter, begun)) = self.inner.read(letter, begun) {
            found |= self.unescaped.read(needles, letter.byte(), begun);
        }
        found
    }

    fn read_all(&mut self, needles: &Needles, letters: &[Placed]) -> bool {
        letters
            .iter()
            .fold(false, |found, letter| found | self.read(needles, *letter))
    }

    /// Reads a text on, of which `fresh` is the reading by itself: mostly both are the same after a
    /// few letters.
    fn read_on(&mut self, needles: &Needles, letters: &[Placed], fresh: &Self) -> bool {
        let (mut found, mut alone) = (false, Self::default());
        for letter in letters {
            found |= self.read(needles, *letter);
            alone.read(needles, *letter);
            if self.is_like(&alone) {
                self.clone_from(fresh);
                break;
            }
        }
        found
    }

    /// Will both go on alike, whatever comes?
    fn is_like(&self, other: &Self) -> bool {
        self.plain.is_like(&other.plain)
            && self.inner.is_like(&other.inner)
            && self.unescaped.is_like(&other.unescaped)
    }

    fn is_open(&self) -> bool {
        self.plain.is_open() || self.unescaped.is_open() || self.inner.is_open()
    }
}

#[derive(Default)]
pub(super) struct Pieces {
    open: BTreeMap<u64, Reading>,
}

impl Pieces {
    /// Reads a text on in every way. Is a value whole, or are more begun than can be kept in mind?
    pub fn read(&mut self, needles: &Needles, text: &Text, letters: &[Placed]) -> bool {
        let mut fresh = Reading::default();
        let mut found = fresh.read_all(needles, letters);
        for way in ways(text).into_iter().flatten() {
            match self.open.entry(way) {
                Entry::Occupied(mut open) => {
                    found |= open.get_mut().read_on(needles, letters, &fresh);
                    if !open.get().is_open() {
                        open.remove();
                    }
                }
                Entry::Vacant(new) if fresh.is_open() => {
                    new.insert(fresh.clone());
                }
                Entry::Vacant(_) => {}
            }
        }
        found || self.open.len() > MAX_OPEN
    }

    /// Where the first letter is that may belong to a value, of those that are more than so many.
    pub fn open_since(&self, told: usize) -> Option<u64> {
        let tracks = self.open.values();
        tracks
            .flat_map(|reading| [&reading.plain, &reading.unescaped])
            .filter_map(|track| track.open_since(told))
            .min()
    }

    /// Does one of them end with half of a value or more?
    pub fn has_half(&self, needles: &Needles) -> bool {
        let mut tracks = self.open.values();
        tracks.any(|reading| reading.plain.is_half(needles) || reading.unescaped.is_half(needles))
    }

    /// What waited waits no longer. What it was is kept in mind.
    pub fn let_go(&mut self) {
        for reading in self.open.values_mut() {
            reading.plain.let_go();
            reading.unescaped.let_go();
        }
    }
}

/// The ways in which a text is put together with others: all texts in their order, keys or values
/// alone, those under its key, and the words of the model whatever their key; the last two also for
/// each of several answers, and for each part of one.
fn ways(text: &Text) -> [Option<u64>; 8] {
    let way = |kind: u64, what: u64, mark: u64| mixed([kind, what, mark]);
    let all = Some(way(0, 0, 0));
    if text.is_key {
        let keys = Some(way(1, 0, 0));
        return [all, keys, None, None, None, None, None, None];
    }
    let marked = |kind, what, mark: u64| (mark != 0).then(|| way(kind, what, mark));
    let words = text.is_words();
    [
        all,
        Some(way(2, 0, 0)),
        Some(way(3, text.key, 0)),
        marked(4, text.key, text.outer),
        marked(5, text.key, text.all),
        words.then(|| way(6, 0, 0)),
        marked(7, 0, text.outer).filter(|_| words),
        marked(8, 0, text.all).filter(|_| words),
    ]
}
