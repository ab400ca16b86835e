//! One reading of an answer, byte by byte: how much of a value it ends with, and where that began.

use std::collections::VecDeque;

use crate::wire::json_scan::short_escape;
use crate::wire::needles::{Needles, State};

#[derive(Clone, Default)]
pub(super) struct Track {
    state: State,
    /// Where each byte that may belong to a value began in the answer, as far as they still wait.
    begun: VecDeque<u64>,
}

impl Track {
    /// Reads one byte. Is a value whole?
    pub fn read(&mut self, needles: &Needles, byte: u8, begun: u64) -> bool {
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

    /// Does it end with the beginning of a value?
    pub fn is_open(&self) -> bool {
        self.state != State::default()
    }

    /// Will both go on alike, whatever comes?
    pub fn is_like(&self, other: &Self) -> bool {
        self.state == other.state
    }

    /// Does it end with half of a value or more?
    pub fn is_half(&self, needles: &Needles) -> bool {
        needles.is_half(self.state)
    }

    /// Where the bytes begin that may be the beginning of a value, if they are more than so many.
    pub fn open_since(&self, told: usize) -> Option<u64> {
        self.begun
            .front()
            .copied()
            .filter(|_| self.begun.len() > told)
    }

    /// What waited waits no longer. What it was is kept in mind.
    pub fn let_go(&mut self) {
        self.begun.clear();
    }
}

/// A letter of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Letter {
    Byte(u8),
    /// What four digits stand for.
    Unit(u16),
}

/// Stands for a letter that no value holds.
const FOREIGN: u8 = 0;

impl Letter {
    pub fn byte(self) -> u8 {
        match self {
            Self::Byte(byte) => byte,
            Self::Unit(unit) => u8::try_from(unit)
                .ok()
                .filter(u8::is_ascii)
                .unwrap_or(FOREIGN),
        }
    }
}

/// Takes the escapes of JSON out of bytes.
#[derive(Clone, Default)]
pub(super) struct Unescape {
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

impl Unescape {
    /// Is an escape begun and not ended?
    pub fn is_open(&self) -> bool {
        self.at != Escape::None
    }

    pub fn is_like(&self, other: &Self) -> bool {
        self.at == other.at
    }

    /// The letter that is there once an escape is whole, and where it began.
    pub fn read(&mut self, byte: u8, begun: u64) -> Option<(Letter, u64)> {
        match self.at {
            Escape::None if byte == b'\\' => {
                (self.at, self.begun) = (Escape::Begun, begun);
                None
            }
            Escape::None => Some((Letter::Byte(byte), begun)),
            Escape::Begun if byte == b'u' => {
                self.at = Escape::Digits(0, 0);
                None
            }
            Escape::Begun => {
                self.at = Escape::None;
                let letter = short_escape(byte).unwrap_or(FOREIGN);
                Some((Letter::Byte(letter), self.begun))
            }
            Escape::Digits(count, unit) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    self.at = Escape::None;
                    return Some((Letter::Byte(FOREIGN), self.begun));
                };
                let unit = unit << 4 | u16::try_from(digit).unwrap_or(0);
                if count < 3 {
                    self.at = Escape::Digits(count + 1, unit);
                    return None;
                }
                self.at = Escape::None;
                Some((Letter::Unit(unit), self.begun))
            }
        }
    }
}
