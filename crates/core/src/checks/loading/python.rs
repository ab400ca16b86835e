//! Python: where a statement can stand so that it runs before anything else of its module.
//!
//! Only the head of a module is read: comments, a docstring in any spelling, imports from
//! `__future__`. Whatever else comes first ends the reading, so nothing of the language beyond
//! strings, brackets and line joining has to be known.

use super::{LOADED, after_mark, newline, put};

/// The module that ends its process when it is run, and its harmless twin. The `if` keeps linters
/// from saying that imports come late; the names are looked up by text, so that both read alike.
pub fn ends(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let line = newline(text);
    let statement = |name: &str| {
        format!("if True:{line}    getattr(__import__(\"os\"), \"{name}\")({LOADED}){line}")
    };
    let Place { at, blanks } = place(text);
    let with = |name: &str| {
        let mut whole = put(text, at, statement(name).as_bytes());
        if blanks > 0 {
            // What follows on the same line begins a line now, where blanks would indent it.
            let after = text.len() - at;
            let cut = whole.len() - after;
            whole.drain(cut..cut + blanks);
        }
        whole
    };
    (with("_exit"), with("strerror"))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    at: usize,
    /// Blanks behind it that have to go.
    blanks: usize,
}

fn place(text: &[u8]) -> Place {
    let head = Head { text };
    let mut at = head.next_token(after_mark(text));
    let mut found = Place {
        // Comments at the end of a file without code are left before it.
        at: if at < text.len() {
            head.line_start(at)
        } else {
            at
        },
        blanks: 0,
    };
    let mut first = true;
    loop {
        let end = match head.future_import(at) {
            Some(end) => Some(end),
            None if first => head.docstring(at),
            None => None,
        };
        let Some(end) = end else { return found };
        first = false;
        (found, at) = head.behind(end);
    }
}

struct Head<'a> {
    text: &'a [u8],
}

impl Head<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn rest(&self, at: usize) -> &[u8] {
        self.text.get(at..).unwrap_or_default()
    }

    /// Just behind the end of the line that begins here, or none.
    fn line_end(&self, at: usize) -> Option<usize> {
        match self.rest(at) {
            [b'\r', b'\n', ..] => Some(at + 2),
            [b'\r' | b'\n', ..] => Some(at + 1),
            _ => None,
        }
    }

    /// Past blanks and joined lines, and in brackets past ends of lines and comments too.
    fn blanks(&self, mut at: usize, in_brackets: bool) -> usize {
        loop {
            match self.byte(at) {
                Some(b' ' | b'\t' | b'\x0c') => at += 1,
                Some(b'\\') => match self.line_end(at + 1) {
                    Some(next) => at = next,
                    None => return at,
                },
                Some(b'\r' | b'\n') if in_brackets => at += 1,
                Some(b'#') if in_brackets => at = self.comment_end(at),
                _ => return at,
            }
        }
    }

    fn comment_end(&self, at: usize) -> usize {
        let line = self.rest(at);
        at + line
            .iter()
            .position(|byte| matches!(byte, b'\r' | b'\n'))
            .unwrap_or(line.len())
    }

    /// The first byte that is neither blank nor comment.
    fn next_token(&self, at: usize) -> usize {
        self.blanks(at, true)
    }

    /// The beginning of the line this byte stands in.
    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        let begins = before
            .iter()
            .rposition(|byte| matches!(byte, b'\r' | b'\n'))
            .map_or(0, |end| end + 1);
        begins.max(after_mark(self.text))
    }

    /// Does the statement end here, at depth 0?
    fn is_end(&self, at: usize) -> bool {
        matches!(self.byte(at), None | Some(b';' | b'\r' | b'\n' | b'#'))
    }

    /// The place behind a statement that ended here, and the next token.
    fn behind(&self, end: usize) -> (Place, usize) {
        let mut at = end;
        if self.byte(at) == Some(b';') {
            at += 1;
            let next = self.blanks(at, false);
            if !self.is_end(next) {
                let found = Place {
                    at,
                    blanks: next - at,
                };
                return (found, next);
            }
            at = next;
        }
        if self.byte(at) == Some(b'#') {
            at = self.comment_end(at);
        }
        at = self.line_end(at).unwrap_or(at);
        (Place { at, blanks: 0 }, self.next_token(at))
    }

    /// The end of a statement that is nothing but text: strings without `b` or `f`, side by side, in
    /// brackets or not.
    fn docstring(&self, mut at: usize) -> Option<usize> {
        let (mut depth, mut any) = (0_usize, false);
        loop {
            at = self.blanks(at, depth > 0);
            if depth == 0 && self.is_end(at) {
                return any.then_some(at);
            }
            match self.byte(at)? {
                b'(' => {
                    depth += 1;
                    at += 1;
                }
                b')' => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                b'r' | b'R' | b'u' | b'U' if self.byte(at + 1).is_some_and(is_quote) => {
                    at = self.string(at + 1)?;
                    any = true;
                }
                quote if is_quote(quote) => {
                    at = self.string(at)?;
                    any = true;
                }
                _ => return None,
            }
        }
    }

    /// The end of the string whose quote stands here.
    fn string(&self, at: usize) -> Option<usize> {
        let quote = self.byte(at)?;
        let three = [quote; 3];
        let long = self.rest(at).starts_with(&three);
        let mut at = at + if long { 3 } else { 1 };
        loop {
            match self.byte(at)? {
                b'\\' => at = self.line_end(at + 1).unwrap_or(at + 2),
                b'\r' | b'\n' if !long => return None,
                byte if byte == quote && !long => return Some(at + 1),
                byte if byte == quote && self.rest(at).starts_with(&three) => return Some(at + 3),
                _ => at += 1,
            }
        }
    }

    /// The end of an import from `__future__`.
    fn future_import(&self, at: usize) -> Option<usize> {
        let mut at = self.word(at, b"from")?;
        at = self.word(at, b"__future__")?;
        at = self.word(at, b"import")?;
        let mut depth = 0_usize;
        loop {
            at = self.blanks(at, depth > 0);
            if depth == 0 && self.is_end(at) {
                return Some(at);
            }
            match self.byte(at)? {
                b'(' => depth += 1,
                b')' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at += 1;
        }
    }

    /// Behind this word and the blanks that follow it.
    fn word(&self, at: usize, word: &[u8]) -> Option<usize> {
        let rest = self.rest(at).strip_prefix(word)?;
        let longer = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        let ends = !rest.first().is_some_and(longer);
        ends.then(|| self.blanks(at + word.len(), false))
    }
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"')
}

#[cfg(test)]
#[path = "python_tests.rs"]
mod tests;
