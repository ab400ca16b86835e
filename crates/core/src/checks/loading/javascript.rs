//! JavaScript, TypeScript and components: a statement behind the directives of a file.
//!
//! A statement before `"use strict"` would make it a mere string, and one before the first comments
//! would take their orders to linters and runners from them.

use super::{LOADED, head, newline, put};

/// Whether types have to be satisfied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Plain,
    Typed,
}

/// The file that ends its process when it is run, and its harmless twin. Members are named by text,
/// so that linters read both alike; typed text does not rest on types of the runtime.
pub fn ends(text: &[u8], dialect: Dialect) -> (Vec<u8>, Vec<u8>) {
    at(text, place(text, head(text)), dialect)
}

fn at(text: &[u8], at: usize, dialect: Dialect) -> (Vec<u8>, Vec<u8>) {
    let line = newline(text);
    let with = |member: &str| {
        let statement = match dialect {
            Dialect::Plain => format!("process[\"{member}\"]({LOADED});{line}"),
            Dialect::Typed => {
                format!("(globalThis as any).process[\"{member}\"]({LOADED});{line}")
            }
        };
        // A line that begins with a bracket would go on with the one before it.
        let statement = match dialect {
            Dialect::Plain => statement,
            Dialect::Typed => format!(";{statement}"),
        };
        put(text, at, statement.as_bytes())
    };
    (with("exit"), with("setMaxListeners"))
}

/// A component: its first script, or the code between its first two lines of dashes.
pub fn component(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let fence = b"---";
    if text.starts_with(fence) {
        let begin = text.iter().position(|byte| *byte == b'\n')? + 1;
        return Some(at(text, place(text, begin), Dialect::Typed));
    }
    let tag = find_tag(text)?;
    let end = tag + text.get(tag..)?.iter().position(|byte| *byte == b'>')? + 1;
    let words = text.get(tag..end)?;
    let has = |word: &[u8]| words.windows(word.len()).any(|part| part == word);
    if has(b"src=") {
        return None;
    }
    let typed = has(b"lang=\"ts") || has(b"lang='ts") || has(b"lang=ts");
    let dialect = if typed {
        Dialect::Typed
    } else {
        Dialect::Plain
    };
    Some(at(text, place(text, end), dialect))
}

fn find_tag(text: &[u8]) -> Option<usize> {
    let tag = b"<script";
    text.windows(tag.len() + 1).position(|part| {
        part.get(..tag.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(tag))
            && part
                .last()
                .is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'>')
    })
}

/// Behind leading comments and directives.
fn place(text: &[u8], from: usize) -> usize {
    let (mut token, _) = blanks(text, from);
    let mut found = token;
    while let Some(end) = directive(text, token) {
        found = end;
        (token, _) = blanks(text, end);
    }
    found
}

/// Past blanks and comments; whether a line ended among them.
fn blanks(text: &[u8], mut at: usize) -> (usize, bool) {
    let mut ended = false;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        match rest {
            [b'\n' | b'\r', ..] => {
                ended = true;
                at += 1;
            }
            [b' ' | b'\t' | b'\x0b' | b'\x0c', ..] => at += 1,
            [0xc2, 0xa0, ..] => at += 2,
            [0xef, 0xbb, 0xbf, ..] => at += 3,
            [0xe2, 0x80, 0xa8 | 0xa9, ..] => {
                ended = true;
                at += 3;
            }
            [b'/', b'/', ..] => at += line_length(rest),
            [b'/', b'*', inner @ ..] => {
                let Some(length) = inner.windows(2).position(|pair| pair == b"*/") else {
                    return (text.len(), true);
                };
                let comment = inner.get(..length).unwrap_or_default();
                ended |= comment.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
                at += length + 4;
            }
            _ => return (at, ended),
        }
    }
}

fn line_length(rest: &[u8]) -> usize {
    let ends = |at: usize| {
        matches!(
            rest.get(at..),
            Some([b'\n' | b'\r', ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..])
        )
    };
    (0..rest.len()).find(|at| ends(*at)).unwrap_or(rest.len())
}

/// The end of a directive that begins here: a statement that is one string.
fn directive(text: &[u8], at: usize) -> Option<usize> {
    let quote = *text.get(at)?;
    if !matches!(quote, b'\'' | b'"') {
        return None;
    }
    let mut end = at + 1;
    loop {
        match *text.get(end)? {
            b'\\' => end += 2,
            b'\n' | b'\r' => return None,
            byte if byte == quote => break,
            _ => end += 1,
        }
    }
    end += 1;
    let (next, ended) = blanks(text, end);
    let rest = text.get(next..).unwrap_or_default();
    match rest {
        [] => Some(end),
        [b';', ..] => Some(next + 1),
        [b'}', ..] => Some(end),
        _ if ended && !goes_on(rest) => Some(end),
        _ => None,
    }
}

/// Would this go on with the expression of the line before?
fn goes_on(rest: &[u8]) -> bool {
    let keyword = |word: &[u8]| {
        rest.strip_prefix(word).is_some_and(|rest| {
            !rest
                .first()
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        })
    };
    match rest {
        [b'!', b'=', ..] => true,
        // An increment begins a statement of its own.
        [b'+', b'+', ..] | [b'-', b'-', ..] => false,
        [first, ..] => {
            b".([+-*/,?=<>&|^%:`".contains(first) || keyword(b"in") || keyword(b"instanceof")
        }
        [] => false,
    }
}

#[cfg(test)]
#[path = "javascript_tests.rs"]
mod tests;
