//! How much of a text fits on a terminal: widths, cutting, wrapping. Nothing prints here.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use unicode_width::UnicodeWidthChar as _;

/// Columns of the terminal on standard output; none when nobody watches and nothing need fit.
pub fn columns() -> Option<usize> {
    columns_of(&std::io::stdout())
}

/// Columns of the terminal behind a stream, if there is one.
pub fn columns_of<S: AsFd + IsTerminal>(stream: &S) -> Option<usize> {
    let size = || rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    stream.is_terminal().then(|| match size() {
        0 => 80,
        columns => columns.max(20),
    })
}

/// Columns a text takes, escape sequences of ours not counted.
pub fn width(text: &str) -> usize {
    let mut columns = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A style: `ESC [ … m`.
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            columns += char_width(c);
        }
    }
    columns
}

fn char_width(c: char) -> usize {
    // No width of its own: a control character, which `tame` shows as one sign.
    c.width().unwrap_or(1)
}

/// The beginning of a text that fits, with a mark where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > columns {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Breaks plain text between words; a word that is too long stays whole.
pub fn wrap(text: &str, columns: Option<usize>) -> Vec<String> {
    let Some(columns) = columns else {
        return vec![text.to_owned()];
    };
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split(' ') {
        let wide = width(word);
        match lines.last_mut() {
            Some(line) if used + 1 + wide <= columns => {
                line.push(' ');
                line.push_str(word);
                used += 1 + wide;
            }
            _ => {
                lines.push(word.to_owned());
                used = wide;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::values::text::tame;
    use proptest::prelude::*;

    #[test]
    fn widths_and_cuts() {
        assert_eq!(width("\u{1b}[1mab\u{1b}[0m"), 2);
        assert_eq!(width("日本e\u{301}"), 5);
        assert_eq!(
            (cut("abcdef", 6).as_str(), cut("abcdef", 4).as_str()),
            ("abcdef", "abc…")
        );
        assert_eq!(cut("日本語", 4), "日…");
    }

    #[test]
    fn wrapping_keeps_words() {
        assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap("a 12345678901 b", Some(5)), ["a", "12345678901", "b"]);
        assert_eq!(wrap("one two", None), ["one two"]);
        assert_eq!(wrap("", Some(5)), [""]);
    }

    proptest! {
        #[test]
        fn whatever_comes_fits(text: String, columns in 1usize..40) {
            prop_assert!(width(&cut(&tame(&text), columns)) <= columns);
            prop_assert_eq!(wrap(&tame(&text), Some(columns)).join(" "), tame(&text));
        }
    }
}
