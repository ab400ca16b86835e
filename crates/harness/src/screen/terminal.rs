//! What a terminal may be shown and how much of it fits: taming, widths, wrapping. Nothing prints
//! here.

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

/// Text from outside, safe for a terminal: one line, nothing that moves, hides or reverses.
pub fn tame(text: &str) -> String {
    text.chars()
        .map(|c| if is_wild(c) { '\u{fffd}' } else { c })
        .collect()
}

/// Like [`tame`], but lines and tabs stay.
pub fn tame_lines(text: &str) -> String {
    text.chars()
        .map(|c| {
            if is_wild(c) && c != '\n' && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// Bytes from outside as visible text: what cannot be shown is spelled out, not dropped.
pub fn spell(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out.push('\t'),
                '\0'..'\x20' => out.extend(['^', char::from(c as u8 + 0x40)]),
                '\x7f' => out.push_str("^?"),
                wild if is_wild(wild) => out.push_str(&format!("<U+{:04X}>", u32::from(wild))),
                plain => out.push(plain),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| out.push_str(&format!("<{byte:02X}>")));
    }
    out
}

/// Control characters, and those that reorder or hide what stands beside them.
fn is_wild(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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
    use proptest::prelude::*;

    #[test]
    fn nothing_wild_gets_through() {
        let nasty = "a\u{1b}[2Jb\r\n\u{9b}c\u{202e}d\u{2066}e\u{7f}";
        assert!(!tame(nasty).chars().any(is_wild));
        assert_eq!(tame_lines("a\tb\n\u{1b}"), "a\tb\n\u{fffd}");
        assert_eq!(
            spell(b"a\x1b[1m\tb\x7f\xff\xc3\xa9\xe2\x80\xae"),
            "a^[[1m\tb^?<FF>é<U+202E>"
        );
        assert_eq!(spell("\u{85}".as_bytes()), "<U+0085>");
    }

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
        fn whatever_comes_is_tame_and_fits(bytes in proptest::collection::vec(any::<u8>(), 0..80), columns in 1usize..40) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            prop_assert!(!spell(&bytes).chars().any(|c| is_wild(c) && c != '\t'));
            prop_assert!(!tame(&text).chars().any(is_wild));
            prop_assert!(width(&cut(&tame(&text), columns)) <= columns);
            prop_assert_eq!(wrap(&tame(&text), Some(columns)).join(" "), tame(&text));
        }
    }
}
