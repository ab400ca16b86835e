//! What the scanner shows: values, faults, and how exact a document must be.

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    #[error("not JSON")]
    Syntax,
    #[error("nested too deeply")]
    Depth,
    #[error("a key occurs twice in one object")]
    DuplicateKey,
    #[error("too many keys in one object")]
    TooManyKeys,
}

/// More than any answer takes; thousands of them are below 2^53.
const MOST: u64 = 1 << 40;

/// What was found at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// Whole, or its first bytes.
    Text {
        text: &'a str,
        whole: bool,
    },
    Number(&'a str),
    Bool(bool),
    Null,
    ObjectBegins,
    ObjectEnds,
    ArrayBegins,
    ArrayEnds,
}

impl Value<'_> {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// A count that somebody else wrote: never so large that it, or a sum of them, could not be hashed.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Number(digits) => digits.parse().ok().map(|count: u64| count.min(MOST)),
            _ => None,
        }
    }

    pub fn is_text(&self, wanted: &str) -> bool {
        matches!(self, Self::Text { text, whole: true } if *text == wanted)
    }

    pub fn has_text(&self) -> bool {
        self.text().is_some_and(|text| !text.is_empty())
    }
}

/// How exact a document must be beyond the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rigour {
    /// No key twice in any object, no half of a surrogate pair.
    Strict,
    Plain,
}

pub(super) fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix('-').unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}
