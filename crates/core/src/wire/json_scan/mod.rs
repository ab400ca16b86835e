//! JSON read as it arrives, without keeping it: a document of any length in a few kilobytes. Each
//! scalar is shown once with the path that leads to it, `choices.*.delta.content`; array positions
//! are `*`.
//!
//! Of a long value only the beginning is shown. The grammar is exactly that of RFC 8259.

mod value;

pub use value::{Fault, Rigour, Value};

use value::is_number;

/// How much of a string, key or number is kept.
pub const KEPT: usize = 512;
const MAX_DEPTH: usize = 128;
const MAX_KEYS: usize = 1024;
/// Stands in a path for a key that could be taken for a path itself.
const ODD_KEY: &str = "?";

#[derive(Clone, Debug)]
enum State {
    /// A value must come; in an array that has just begun it may also end.
    Value {
        may_end: bool,
    },
    /// A key must come; in an object that has just begun it may also end.
    Key {
        may_end: bool,
    },
    Colon,
    /// A comma or the end of what is open.
    After,
    Text {
        is_key: bool,
    },
    Escape {
        is_key: bool,
    },
    Unicode {
        is_key: bool,
        digits: u8,
        unit: u16,
    },
    Bare,
    Done,
}

#[derive(Clone, Debug)]
struct Frame {
    is_object: bool,
    /// Where the path stood before this container's own part.
    path_len: usize,
    keys: Vec<u64>,
}

/// Reads one document piece by piece.
#[derive(Clone, Debug)]
pub struct Scanner {
    rigour: Rigour,
    state: State,
    frames: Vec<Frame>,
    path: String,
    kept: Vec<u8>,
    cut: bool,
    key_hash: u64,
    /// The first half of a surrogate pair.
    high: Option<u16>,
    utf8: [u8; 4],
    utf8_len: usize,
    failed: Option<Fault>,
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

impl Scanner {
    pub fn new(rigour: Rigour) -> Self {
        Self {
            rigour,
            state: State::Value { may_end: false },
            frames: Vec::new(),
            path: String::new(),
            kept: Vec::new(),
            cut: false,
            key_hash: FNV,
            high: None,
            utf8: [0; 4],
            utf8_len: 0,
            failed: None,
        }
    }

    /// Ready for another document.
    pub fn reset(&mut self) {
        *self = Self {
            path: std::mem::take(&mut self.path),
            kept: std::mem::take(&mut self.kept),
            ..Self::new(self.rigour)
        };
        self.path.clear();
        self.kept.clear();
    }

    /// Has nothing but white space come?
    pub fn is_fresh(&self) -> bool {
        self.frames.is_empty() && matches!(self.state, State::Value { .. }) && self.failed.is_none()
    }

    /// Is one whole document there?
    pub fn is_whole(&self) -> bool {
        self.failed.is_none() && self.utf8_len == 0 && matches!(self.state, State::Done)
    }

    pub fn push(
        &mut self,
        bytes: &[u8],
        see: &mut dyn FnMut(&str, Value<'_>),
    ) -> Result<(), Fault> {
        if let Some(fault) = self.failed {
            return Err(fault);
        }
        let answer = self.check_utf8(bytes).and_then(|()| self.scan(bytes, see));
        self.failed = answer.err();
        answer
    }

    /// The end of the bytes: a bare number is only now whole.
    pub fn finish(&mut self, see: &mut dyn FnMut(&str, Value<'_>)) -> Result<(), Fault> {
        if let Some(fault) = self.failed {
            return Err(fault);
        }
        let answer = match self.state {
            State::Bare if self.frames.is_empty() => self.bare_ended(see),
            _ => Ok(()),
        };
        let answer = answer.and(if self.is_whole() {
            Ok(())
        } else {
            Err(Fault::Syntax)
        });
        self.failed = answer.err();
        answer
    }

    fn check_utf8(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut rest = bytes;
        while self.utf8_len > 0 {
            let Some((first, more)) = rest.split_first() else {
                return Ok(());
            };
            self.utf8[self.utf8_len] = *first;
            self.utf8_len += 1;
            rest = more;
            match std::str::from_utf8(&self.utf8[..self.utf8_len]) {
                Ok(_) => self.utf8_len = 0,
                Err(error) if error.error_len().is_some() || self.utf8_len == 4 => {
                    return Err(Fault::Syntax);
                }
                Err(_) => {}
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_some() => Err(Fault::Syntax),
            Err(error) => {
                let tail = &rest[error.valid_up_to()..];
                self.utf8[..tail.len()].copy_from_slice(tail);
                self.utf8_len = tail.len();
                Ok(())
            }
        }
    }

    fn scan(&mut self, bytes: &[u8], see: &mut dyn FnMut(&str, Value<'_>)) -> Result<(), Fault> {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Text { is_key } = self.state {
                let rest = &bytes[at..];
                let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                self.keep_text(&rest[..plain], is_key)?;
                at += plain;
                if at == bytes.len() {
                    break;
                }
            }
            let byte = bytes[at];
            at += 1;
            self.step(byte, see)?;
        }
        Ok(())
    }

    fn step(&mut self, byte: u8, see: &mut dyn FnMut(&str, Value<'_>)) -> Result<(), Fault> {
        match self.state.clone() {
            State::Text { is_key } if byte == b'\\' => self.state = State::Escape { is_key },
            State::Text { is_key } => self.text_ended(is_key, see)?,
            State::Escape { is_key } => self.escaped(byte, is_key)?,
            State::Unicode {
                is_key,
                digits,
                unit,
            } => self.unicode(byte, is_key, digits, unit)?,
            State::Bare if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => {
                if self.kept.len() >= KEPT {
                    return Err(Fault::Syntax);
                }
                self.kept.push(byte);
            }
            State::Bare => {
                self.bare_ended(see)?;
                self.step(byte, see)?;
            }
            _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => {}
            State::Value { may_end } => self.value_begins(byte, may_end, see)?,
            State::Key { may_end } => match byte {
                b'"' => {
                    (self.key_hash, self.cut) = (FNV, false);
                    self.kept.clear();
                    self.state = State::Text { is_key: true };
                }
                b'}' if may_end => self.container_ended(true, see)?,
                _ => return Err(Fault::Syntax),
            },
            State::Colon if byte == b':' => self.state = State::Value { may_end: false },
            State::After => self.after(byte, see)?,
            State::Colon | State::Done => return Err(Fault::Syntax),
        }
        Ok(())
    }

    fn value_begins(
        &mut self,
        byte: u8,
        may_end: bool,
        see: &mut dyn FnMut(&str, Value<'_>),
    ) -> Result<(), Fault> {
        self.kept.clear();
        self.cut = false;
        match byte {
            b'"' => self.state = State::Text { is_key: false },
            b'{' | b'[' => {
                if self.frames.len() >= MAX_DEPTH {
                    return Err(Fault::Depth);
                }
                let is_object = byte == b'{';
                see(
                    &self.path,
                    if is_object {
                        Value::ObjectBegins
                    } else {
                        Value::ArrayBegins
                    },
                );
                self.frames.push(Frame {
                    is_object,
                    path_len: self.path.len(),
                    keys: Vec::new(),
                });
                if is_object {
                    self.state = State::Key { may_end: true };
                } else {
                    self.enter("*");
                    self.state = State::Value { may_end: true };
                }
            }
            b']' if may_end => self.container_ended(false, see)?,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.kept.push(byte);
                self.state = State::Bare;
            }
            _ => return Err(Fault::Syntax),
        }
        Ok(())
    }

    fn enter(&mut self, part: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(part);
    }

    fn after(&mut self, byte: u8, see: &mut dyn FnMut(&str, Value<'_>)) -> Result<(), Fault> {
        let is_object = self.frames.last().is_some_and(|frame| frame.is_object);
        match byte {
            b',' if is_object => self.state = State::Key { may_end: false },
            b',' => self.state = State::Value { may_end: false },
            b'}' if is_object => self.container_ended(true, see)?,
            b']' if !is_object => self.container_ended(false, see)?,
            _ => return Err(Fault::Syntax),
        }
        Ok(())
    }

    fn container_ended(
        &mut self,
        is_object: bool,
        see: &mut dyn FnMut(&str, Value<'_>),
    ) -> Result<(), Fault> {
        let frame = self
            .frames
            .pop()
            .filter(|frame| frame.is_object == is_object)
            .ok_or(Fault::Syntax)?;
        self.path.truncate(frame.path_len);
        see(
            &self.path,
            if is_object {
                Value::ObjectEnds
            } else {
                Value::ArrayEnds
            },
        );
        self.value_ended();
        Ok(())
    }

    /// Back to the container; an object's key no longer counts.
    fn value_ended(&mut self) {
        match self.frames.last() {
            None => self.state = State::Done,
            Some(frame) => {
                if frame.is_object {
                    self.path.truncate(frame.path_len);
                }
                self.state = State::After;
            }
        }
    }

    fn keep_text(&mut self, plain: &[u8], is_key: bool) -> Result<(), Fault> {
        if plain.is_empty() {
            return Ok(());
        }
        if plain.iter().any(|byte| *byte < 0x20) {
            return Err(Fault::Syntax);
        }
        self.half_pair()?;
        self.keep(plain, is_key);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8], is_key: bool) {
        if is_key {
            for byte in bytes {
                self.key_hash =
                    (self.key_hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        let room = KEPT - self.kept.len().min(KEPT);
        self.cut |= bytes.len() > room;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Handles the first half of a surrogate pair that has no second half.
    fn half_pair(&mut self) -> Result<(), Fault> {
        match (self.high.take(), self.rigour) {
            (None, _) => Ok(()),
            (Some(_), Rigour::Strict) => Err(Fault::Syntax),
            (Some(_), Rigour::Plain) => {
                self.keep("\u{fffd}".as_bytes(), false);
                Ok(())
            }
        }
    }

    fn escaped(&mut self, byte: u8, is_key: bool) -> Result<(), Fault> {
        if byte == b'u' {
            self.state = State::Unicode {
                is_key,
                digits: 0,
                unit: 0,
            };
            return Ok(());
        }
        let plain = short_escape(byte).ok_or(Fault::Syntax)?;
        self.half_pair()?;
        self.keep(&[plain], is_key);
        self.state = State::Text { is_key };
        Ok(())
    }

    fn unicode(&mut self, byte: u8, is_key: bool, digits: u8, unit: u16) -> Result<(), Fault> {
        let digit = char::from(byte)
            .to_digit(16)
            .and_then(|d| u16::try_from(d).ok())
            .ok_or(Fault::Syntax)?;
        let unit = unit << 4 | digit;
        if digits < 3 {
            self.state = State::Unicode {
                is_key,
                digits: digits + 1,
                unit,
            };
            return Ok(());
        }
        self.state = State::Text { is_key };
        match unit {
            0xd800..=0xdbff => {
                self.half_pair()?;
                self.high = Some(unit);
                return Ok(());
            }
            0xdc00..=0xdfff => {
                let Some(high) = self.high.take() else {
                    self.high = Some(unit);
                    return self.half_pair();
                };
                let pair = char::decode_utf16([high, unit])
                    .next()
                    .and_then(Result::ok)
                    .ok_or(Fault::Syntax)?;
                self.keep(pair.encode_utf8(&mut [0; 4]).as_bytes(), is_key);
            }
            _ => {
                self.half_pair()?;
                let letter = char::from_u32(u32::from(unit)).ok_or(Fault::Syntax)?;
                self.keep(letter.encode_utf8(&mut [0; 4]).as_bytes(), is_key);
            }
        }
        Ok(())
    }

    fn text_ended(
        &mut self,
        is_key: bool,
        see: &mut dyn FnMut(&str, Value<'_>),
    ) -> Result<(), Fault> {
        self.half_pair()?;
        let kept = std::mem::take(&mut self.kept);
        let text = match std::str::from_utf8(&kept) {
            Ok(text) => text,
            // Cut inside a letter: what is before it is whole.
            Err(error) => std::str::from_utf8(&kept[..error.valid_up_to()]).unwrap_or_default(),
        };
        if is_key {
            self.key_ended(text)?;
        } else {
            see(
                &self.path,
                Value::Text {
                    text,
                    whole: !self.cut,
                },
            );
            self.value_ended();
        }
        self.kept = kept;
        Ok(())
    }

    fn key_ended(&mut self, key: &str) -> Result<(), Fault> {
        let hash = self.key_hash;
        if self.rigour == Rigour::Strict
            && let Some(frame) = self.frames.last_mut()
        {
            match frame.keys.binary_search(&hash) {
                Ok(_) => return Err(Fault::DuplicateKey),
                Err(_) if frame.keys.len() >= MAX_KEYS => return Err(Fault::TooManyKeys),
                Err(place) => frame.keys.insert(place, hash),
            }
        }
        let odd = self.cut || key.is_empty() || key.contains(['.', '*', '?']);
        self.enter(if odd { ODD_KEY } else { key });
        self.state = State::Colon;
        Ok(())
    }

    fn bare_ended(&mut self, see: &mut dyn FnMut(&str, Value<'_>)) -> Result<(), Fault> {
        let kept = std::mem::take(&mut self.kept);
        let text = std::str::from_utf8(&kept).map_err(|_| Fault::Syntax)?;
        let value = match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ if is_number(text) => Value::Number(text),
            _ => return Err(Fault::Syntax),
        };
        see(&self.path, value);
        self.value_ended();
        self.kept = kept;
        Ok(())
    }
}

/// The byte that a backslash and this letter stand for.
pub(super) fn short_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

#[cfg(test)]
#[path = "json_scan_tests.rs"]
mod tests;
