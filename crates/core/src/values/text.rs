//! Text from outside, made safe to show: the one list of dangerous characters, and what becomes of
//! them in a terminal, a listing, Markdown or XML. JSON is not shown but read: it stays exact.

/// Longest excerpt of an engine's words in an event or a report; the whole is in its log.
pub const EXCERPT_LIMIT: usize = 500;

/// Characters that move, hide, reorder or smuggle text. A reader sees nothing of them, and a
/// machine that reads the same text does.
///
/// - control characters, line and paragraph separators;
/// - everything Unicode calls *default ignorable*: soft hyphen, zero-width spaces and joiners, bidi
///   controls, Hangul fillers, tag characters, all variation selectors. Unassigned characters are
///   in only where Unicode reserves them for this class;
/// - interlinear annotation, the blank braille pattern (a letter that looks like a space);
/// - noncharacters, which no text may hold and XML cannot.
///
/// Variation selectors count, although an emoji may carry one: a row of them hides any message
/// behind one visible sign. The zero-width joiner counts for the same reason, so a joined emoji is
/// shown in its parts with U+FFFD between them. Private-use characters do not count: a font shows a
/// sign or a box for each.
pub fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// One line: every dangerous character becomes U+FFFD, line ends and tabs too.
pub fn tame(text: &str) -> String {
    replace(text, |_| false)
}

/// Like [`tame`], but line ends and tabs stay.
pub fn tame_lines(text: &str) -> String {
    replace(text, |c| c == '\n' || c == '\t')
}

/// The beginning of an engine's words for an event, a report or an error: [`tame_lines`], bounded.
pub fn tame_excerpt(text: &str) -> String {
    tame_lines(&excerpt(text, EXCERPT_LIMIT))
}

/// At most `limit` characters, with a mark where something is missing.
pub fn excerpt(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Bytes as visible text: what cannot be shown is spelled out (`^[`, `<U+202E>`, `<FF>`), not
/// dropped. Tabs stay.
pub fn spell(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out.push('\t'),
                '\0'..'\x20' => out.extend(['^', char::from(c as u8 + 0x40)]),
                '\x7f' => out.push_str("^?"),
                c if is_dangerous(c) => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
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

fn replace(text: &str, stays: impl Fn(char) -> bool) -> String {
    text.chars()
        .map(|c| match is_dangerous(c) && !stays(c) {
            true => '\u{fffd}',
            false => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_dangerous_and_what_is_not() {
        for c in [
            '\0',
            '\x1b',
            '\x7f',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{fffe}',
            '\u{ffff}',
            '\u{e0001}',
            '\u{e007f}',
            '\u{e01ef}',
            '\u{1fffe}',
            '\u{10ffff}',
        ] {
            assert!(is_dangerous(c), "U+{:04X}", u32::from(c));
        }
        for c in "aZ09 ~é日本\u{301}\u{a0}\u{2009}\u{2010}\u{3000}\u{e000}\u{fffd}…🦀".chars()
        {
            assert!(!is_dangerous(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn nothing_dangerous_gets_through() {
        assert_eq!(
            tame("a\u{1b}[2Jb\r\n\u{9b}c\u{202e}d"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}c\u{fffd}d"
        );
        assert_eq!(tame("👩\u{200d}🚀"), "👩\u{fffd}🚀");
        assert_eq!(tame_lines("a\tb\n\u{1b}"), "a\tb\n\u{fffd}");
        assert_eq!(
            spell(b"a\x1b[1m\tb\x7f\xff\xc3\xa9\xe2\x80\xae"),
            "a^[[1m\tb^?<FF>é<U+202E>"
        );
        assert_eq!(spell("\u{85}\u{e0041}".as_bytes()), "<U+0085><U+E0041>");
    }

    #[test]
    fn an_excerpt_says_where_it_ends() {
        assert_eq!(
            (excerpt("äbc", 3), excerpt("äbc", 1)),
            ("äbc".into(), "ä…".into())
        );
        assert_eq!(
            tame_excerpt("a\u{1b}[31mb\rc\nd"),
            "a\u{fffd}[31mb\u{fffd}c\nd"
        );
        assert_eq!(
            tame_excerpt(&"x".repeat(EXCERPT_LIMIT + 100))
                .chars()
                .count(),
            EXCERPT_LIMIT + 1
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_is_safe_afterwards(bytes in proptest::collection::vec(any::<u8>(), 0..80), more: Vec<char>) {
            let text = String::from_utf8_lossy(&bytes).into_owned() + &more.iter().collect::<String>();
            prop_assert!(!tame(&text).chars().any(is_dangerous));
            prop_assert!(!tame_lines(&text).chars().any(|c| is_dangerous(c) && c != '\n' && c != '\t'));
            prop_assert!(!spell(text.as_bytes()).chars().any(|c| is_dangerous(c) && c != '\t'));
            prop_assert!(!spell(&bytes).chars().any(|c| is_dangerous(c) && c != '\t'));
        }
    }
}
