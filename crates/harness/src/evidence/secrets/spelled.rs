//! One value in every spelling in which it is looked for: as it is; with any of its letters as escapes of JSON, also in
//! JSON inside of JSON, or of a URL; and inside of base64. A name of a host also in other capitals.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use cto_core::wire::needles;
use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

/// A longer value is looked for in the spellings that programs write, and not in every mixture of them.
const MIXED: usize = 1024;
/// A longer one only as it is: no credential may be.
const SPELLED: usize = 16 * 1024;
/// Each letter of it may have become this many: four backslashes and `u` with four digits.
const WIDEST: usize = 9;
/// What a pattern may take: that of the longest value takes less.
const MOST_MEMORY: usize = 256 << 20;

#[derive(Clone)]
pub struct Spelled(Arc<Inner>);

struct Inner {
    exact: Finder<'static>,
    /// In whatever capitals?
    fold: bool,
    /// Built when it is first needed: most texts hold nothing that it could find.
    pattern: OnceLock<Option<Regex>>,
}

impl Spelled {
    /// Exactly these letters.
    pub fn exact(value: Vec<u8>) -> Self {
        Self::of(value, false)
    }

    /// In capitals or not.
    pub fn name(value: Vec<u8>) -> Self {
        Self::of(value, true)
    }

    fn of(value: Vec<u8>, fold: bool) -> Self {
        Self(Arc::new(Inner {
            exact: Finder::new(&value).into_owned(),
            fold,
            pattern: OnceLock::new(),
        }))
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.exact.needle()
    }

    pub fn longest(&self) -> usize {
        match self.bytes().len() {
            most if most <= SPELLED => most * WIDEST,
            most => most,
        }
    }

    /// Every place of it, overlapping ones too. An empty value is nowhere, not everywhere.
    pub fn each(&self, text: &[u8], found: &mut dyn FnMut(usize, usize)) {
        let length = self.bytes().len();
        if length == 0 {
            return;
        }
        for at in self.0.exact.find_iter(text) {
            found(at, at + length);
        }
        let Some(pattern) = self.0.pattern.get_or_init(|| self.pattern()) else {
            return;
        };
        let mut from = 0;
        while let Some(place) = pattern.find_at(text, from) {
            found(place.start(), place.end());
            from = place.start() + 1;
        }
    }

    fn pattern(&self) -> Option<Regex> {
        let value = self.bytes();
        if value.len() > SPELLED {
            return None;
        }
        let mut ways: Vec<String> = needles::spellings(value)
            .iter()
            .map(|word| literal(word))
            .collect();
        match value.len() <= MIXED {
            true => ways.insert(0, mixed(value)),
            false => ways.extend(in_json(value).iter().map(|word| literal(word))),
        }
        RegexBuilder::new(&ways.join("|"))
            .unicode(false)
            .case_insensitive(self.0.fold)
            .size_limit(MOST_MEMORY)
            .build()
            .ok()
    }
}

fn literal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| byte_of(*byte)).collect()
}

fn byte_of(byte: u8) -> String {
    match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("\\x{byte:02x}"),
    }
}

/// Each letter in any way, whatever the others are.
fn mixed(value: &[u8]) -> String {
    let mut out = String::new();
    for chunk in value.utf8_chunks() {
        chunk
            .valid()
            .chars()
            .for_each(|letter| any_way(letter, &mut out));
        chunk
            .invalid()
            .iter()
            .for_each(|byte| out.push_str(&byte_of(*byte)));
    }
    out
}

fn any_way(letter: char, out: &mut String) {
    let (mut bytes, mut units) = ([0; 4], [0; 2]);
    let bytes = letter.encode_utf8(&mut bytes).as_bytes();
    let mut escape = String::new();
    let mut percent = String::new();
    // Writing to a String cannot fail.
    for unit in letter.encode_utf16(&mut units) {
        let _ = write!(escape, "\\\\{{1,4}}u(?i:{unit:04x})");
    }
    for byte in bytes {
        let _ = write!(percent, "%(?i:{byte:02x})");
    }
    let _ = write!(out, "(?:{}|{escape}|{percent}", literal(bytes));
    let short = match letter {
        '/' | '"' => Some(literal(bytes)),
        '\\' => Some("\\\\".to_owned()),
        '\n' => Some("n".to_owned()),
        '\r' => Some("r".to_owned()),
        '\t' => Some("t".to_owned()),
        _ => None,
    };
    if let Some(short) = short {
        let _ = write!(out, "|\\\\{{1,4}}{short}");
    }
    out.push(')');
}

/// As JSON writes it, with and without an escaped slash.
fn in_json(value: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(value) else {
        return Vec::new();
    };
    let json = serde_json::Value::from(text).to_string();
    let json = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(&json);
    vec![
        json.as_bytes().to_vec(),
        json.replace('/', "\\/").into_bytes(),
    ]
}
