//! Values of one kind, found in every spelling in which they are looked for: as they are, escaped in any mixture, and
//! inside of base64. Names of hosts also in other capitals.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use cto_core::wire::needles;

use super::unescaped::{Unescaped, unescaped};

/// Each letter of a value may have become this many: four backslashes and `u` with four digits.
const WIDEST: usize = 9;
/// A longer one is not looked for in more than its own length: no credential may be longer.
const SPELLED: usize = 16 * 1024;

#[derive(Clone)]
pub struct Values {
    list: Vec<Value>,
    /// In whatever capitals?
    fold: bool,
    /// Made when something is first looked for.
    found_by: OnceLock<Option<FoundBy>>,
}

#[derive(Clone)]
struct Value {
    bytes: Vec<u8>,
    /// Is it what the run itself uses? Else it is a variable whose name says that it may be a secret.
    certain: bool,
}

#[derive(Clone)]
struct FoundBy {
    /// In a text as it stands.
    spelled: AhoCorasick,
    /// In a text with its escapes read.
    meant: AhoCorasick,
}

impl Values {
    pub fn new(fold: bool) -> Self {
        Self {
            list: Vec::new(),
            fold,
            found_by: OnceLock::new(),
        }
    }

    pub fn put(&mut self, bytes: Vec<u8>, certain: bool) {
        self.found_by = OnceLock::new();
        match self.list.iter_mut().find(|have| have.bytes == bytes) {
            Some(have) => have.certain |= certain,
            // An empty value is nowhere, not everywhere.
            None if bytes.is_empty() => {}
            None => self.list.push(Value { bytes, certain }),
        }
    }

    pub fn certain(&self) -> Self {
        let list = self.list.iter().filter(|value| value.certain);
        Self {
            list: list.cloned().collect(),
            ..Self::new(self.fold)
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.list.iter().map(|value| value.bytes.as_slice())
    }

    /// No spelling of any is longer.
    pub fn longest(&self) -> usize {
        let spelled = |bytes: &[u8]| match bytes.len() {
            most if most <= SPELLED => most * WIDEST,
            most => most,
        };
        self.iter().map(spelled).max().unwrap_or(0)
    }

    /// Every place of one, overlapping ones too.
    pub fn each(&self, text: &[u8], read: Option<&Unescaped>, found: &mut dyn FnMut(usize, usize)) {
        if self.is_empty() {
            return;
        }
        let Some(by) = self.found_by.get_or_init(|| self.found_by()) else {
            // What cannot be looked for could be anywhere.
            return found(0, text.len());
        };
        places(&by.spelled, text, found);
        if let Some(read) = read {
            places(&by.meant, &read.bytes, &mut |start, end| {
                found(read.place(start), read.place(end));
            });
        }
    }

    fn found_by(&self) -> Option<FoundBy> {
        let automaton = |words: Vec<Vec<u8>>| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .ascii_case_insensitive(self.fold)
                .build(words)
                .ok()
        };
        let meant = |value: &[u8]| match unescaped(value) {
            Some(read) => read.bytes,
            None => value.to_vec(),
        };
        Some(FoundBy {
            spelled: automaton(self.iter().flat_map(needles::spellings).collect())?,
            meant: automaton(self.iter().map(meant).collect())?,
        })
    }
}

fn places(by: &AhoCorasick, text: &[u8], found: &mut dyn FnMut(usize, usize)) {
    let mut from = 0;
    while let Some(place) = by.find(Input::new(text).range(from..)) {
        found(place.start(), place.end());
        from = place.start() + 1;
    }
}
