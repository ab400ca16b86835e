//! A text as it is meant: escapes of JSON, also of JSON inside of JSON, and of a URL read, whatever the mixture; and where
//! each letter stood. A value in any such spelling is itself there.

use memchr::memchr2;

pub struct Unescaped {
    pub bytes: Vec<u8>,
    /// From this byte on: the place in the text. Between two of them both go on alike.
    places: Vec<(usize, usize)>,
}

/// None where nothing is escaped: then the text is meant as it is.
pub fn unescaped(text: &[u8]) -> Option<Unescaped> {
    let (mut bytes, mut places) = (Vec::new(), vec![(0, 0)]);
    let (mut taken, mut from) = (0, 0);
    while let Some(next) = memchr2(b'\\', b'%', &text[from..]) {
        let start = from + next;
        let Some((letter, length)) = escape(&text[start..]) else {
            from = start + 1;
            continue;
        };
        bytes.extend_from_slice(&text[taken..start]);
        places.push((bytes.len(), start));
        bytes.extend_from_slice(letter.bytes());
        taken = start + length;
        places.push((bytes.len(), taken));
        from = taken;
    }
    if taken == 0 {
        return None;
    }
    bytes.extend_from_slice(&text[taken..]);
    Some(Unescaped { bytes, places })
}

impl Unescaped {
    /// Where in the text this byte begins.
    pub fn place(&self, at: usize) -> usize {
        let after = self.places.partition_point(|(begins, _)| *begins <= at);
        let (begins, place) = self.places[after.saturating_sub(1)];
        place + (at - begins)
    }
}

enum Letter {
    Byte(u8),
    Char([u8; 4], usize),
}

impl Letter {
    fn of(letter: char) -> Self {
        let mut bytes = [0; 4];
        let length = letter.encode_utf8(&mut bytes).len();
        Self::Char(bytes, length)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Byte(byte) => std::slice::from_ref(byte),
            Self::Char(bytes, length) => &bytes[..*length],
        }
    }
}

/// The letter that an escape at the beginning of a text means, and how long the escape is. As many backslashes as there are
/// belong to it: in JSON inside of JSON they double.
fn escape(text: &[u8]) -> Option<(Letter, usize)> {
    if text.first() == Some(&b'%') {
        let byte = u8::try_from(hex(text.get(1..3)?)?).ok()?;
        return Some((Letter::Byte(byte), 3));
    }
    let run = backslashes(text);
    let plain = |byte: u8| Some((Letter::Byte(byte), run + 1));
    match text.get(run) {
        Some(b'u') => unicode(text, run),
        Some(byte @ (b'/' | b'"')) => plain(*byte),
        Some(b'n') => plain(b'\n'),
        Some(b'r') => plain(b'\r'),
        Some(b't') => plain(b'\t'),
        _ => None,
    }
    .or_else(|| (run > 1).then_some((Letter::Byte(b'\\'), run)))
}

fn unicode(text: &[u8], run: usize) -> Option<(Letter, usize)> {
    let (first, end) = (unit(text, run)?, run + 5);
    let rest = &text[end..];
    let more = backslashes(rest);
    let second = (more > 0).then(|| unit(rest, more)).flatten();
    // Two of them may be one letter.
    let pair = second.map(|second| char::decode_utf16([first, second]).collect::<Vec<_>>());
    match pair.as_deref() {
        Some([Ok(letter)]) => Some((Letter::of(*letter), end + more + 5)),
        _ => {
            let letter = char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER);
            Some((Letter::of(letter), end))
        }
    }
}

fn unit(text: &[u8], run: usize) -> Option<u16> {
    match text.get(run) {
        Some(b'u') => hex(text.get(run + 1..run + 5)?),
        _ => None,
    }
}

fn backslashes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| **byte == b'\\').count()
}

fn hex(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0u16, |all, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(all << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_read_and_every_letter_keeps_its_place() {
        for (text, meant) in [
            (r"a\u0062c", "abc"),
            (r"a\\\\u0062c", "abc"),
            (r"\/\\/%2f%2F", "////"),
            (r#"\"\n\t\r"#, "\"\n\t\r"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\\ud83d\\ude00", "😀"),
            (r"\ud83d.", "\u{fffd}."),
            (r"a\\b\\\\c", r"a\b\c"),
            (r"\/\q\u12", r"/\q\u12"),
            ("%41%zz%4", "A%zz%4"),
        ] {
            let read = unescaped(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(&read.bytes), meant, "{text}");
            assert_eq!(read.place(read.bytes.len()), text.len(), "{text}");
        }
        for text in ["", "plain", r"\q", "100% sure", r"\u12", "\\"] {
            assert!(unescaped(text.as_bytes()).is_none(), "{text}");
        }
        let read = unescaped(br"ab\u0063d").unwrap();
        assert_eq!([0, 2, 3, 4].map(|at| read.place(at)), [0, 2, 8, 9]);
    }

    proptest! {
        #[test]
        fn any_bytes_have_places_in_order(text in proptest::collection::vec(proptest::sample::select(b"\\u%0aF/\"nd8".to_vec()), 0..60)) {
            if let Some(read) = unescaped(&text) {
                let places: Vec<usize> = (0..=read.bytes.len()).map(|at| read.place(at)).collect();
                prop_assert!(places.is_sorted());
                prop_assert_eq!(places.last(), Some(&text.len()));
            }
        }
    }
}
