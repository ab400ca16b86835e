//! Server-sent events without keeping them: `data` is handed on as it comes, whatever the length of
//! a line.

/// What a stream of events consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    Data(&'a [u8]),
    /// The empty line after an event that had data.
    EventEnds,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// In the name of a field; so many bytes of it match `data`.
    Name {
        matched: u8,
    },
    /// After `data:`, where one space does not count.
    Colon,
    Data,
    /// A field or comment of no interest.
    Other,
}

#[derive(Clone, Debug)]
pub struct Events {
    at: At,
    line_is_empty: bool,
    after_return: bool,
    has_data: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            at: At::Name { matched: 0 },
            line_is_empty: true,
            after_return: false,
            has_data: false,
        }
    }
}

const NAME: &[u8; 4] = b"data";

impl Events {
    pub fn push(&mut self, bytes: &[u8], see: &mut dyn FnMut(Part<'_>)) {
        let mut at = 0;
        while at < bytes.len() {
            if matches!(self.at, At::Data | At::Other) {
                let rest = &bytes[at..];
                let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                if self.at == At::Data && length > 0 {
                    see(Part::Data(&rest[..length]));
                }
                if length > 0 {
                    self.after_return = false;
                }
                at += length;
                if at == bytes.len() {
                    break;
                }
            }
            let byte = bytes[at];
            at += 1;
            self.step(byte, see);
        }
    }

    fn step(&mut self, byte: u8, see: &mut dyn FnMut(Part<'_>)) {
        let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if after_return => {}
            b'\n' | b'\r' => self.line_ended(see),
            _ => {
                self.line_is_empty = false;
                self.at = match (self.at, byte) {
                    (At::Name { matched: 4 }, b':') => {
                        self.begin_data(see);
                        At::Colon
                    }
                    (At::Name { matched }, byte)
                        if NAME.get(usize::from(matched)) == Some(&byte) =>
                    {
                        At::Name {
                            matched: matched + 1,
                        }
                    }
                    (At::Name { .. }, _) => At::Other,
                    (At::Colon, b' ') => At::Data,
                    (At::Colon | At::Data, _) => {
                        see(Part::Data(&[byte]));
                        At::Data
                    }
                    (At::Other, _) => At::Other,
                };
            }
        }
    }

    /// Lines of one event are joined by a line end.
    fn begin_data(&mut self, see: &mut dyn FnMut(Part<'_>)) {
        if std::mem::replace(&mut self.has_data, true) {
            see(Part::Data(b"\n"));
        }
    }

    fn line_ended(&mut self, see: &mut dyn FnMut(Part<'_>)) {
        if self.at == (At::Name { matched: 4 }) {
            self.begin_data(see);
        }
        if self.line_is_empty && std::mem::replace(&mut self.has_data, false) {
            see(Part::EventEnds);
        }
        self.line_is_empty = true;
        self.at = At::Name { matched: 0 };
    }

    /// Is an event begun and not ended?
    pub fn is_open(&self) -> bool {
        self.has_data || !self.line_is_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let (mut found, mut data) = (Vec::new(), Vec::new());
        let mut reader = Events::default();
        for piece in pieces {
            reader.push(piece, &mut |part| match part {
                Part::Data(bytes) => data.extend_from_slice(bytes),
                Part::EventEnds => {
                    found.push(String::from_utf8_lossy(&std::mem::take(&mut data)).into_owned())
                }
            });
        }
        found
    }

    #[test]
    fn fields_comments_and_line_ends() {
        let text =
            b": ping\n\nevent: a\ndata: one\n\ndata:two\r\ndata:  x\r\n\r\nid: 4\n\ndatax: no\n\ndata\n\ndata: cr\r\rdata: open";
        assert_eq!(events(&[text]), ["one", "two\n x", "", "cr"]);
    }

    proptest! {
        #[test]
        fn every_cut_gives_the_same(text in "(data|event|x|:|: |\n|\r\n|\r|a){0,30}", cut in 1usize..6) {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(events(&pieces), events(&[text.as_bytes()]));
        }
    }
}
