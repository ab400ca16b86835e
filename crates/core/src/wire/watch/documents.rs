//! The texts of an answer, with what a reader would put them together by: their key, and the
//! indexes of the objects they stand in. An index may follow the text it belongs to, so the texts of
//! a document wait for its end, in a list of documents for that of their own; of a long one they come
//! in parts.
//!
//! Reads JSON, one document or many, bare or in server-sent events, in one line or in several. It
//! is told no form and checks none: of what is no JSON it finds some texts or other.

use super::track::{Letter, Unescape};

/// So many letters wait for the end of their document.
pub(super) const MAX_LETTERS: usize = 1 << 14;
/// Objects deeper than this count as part of the one they are in.
const MAX_DEPTH: usize = 128;
/// The longest number that can be told from another.
const MAX_NUMBER: usize = 24;
/// What a line of an event begins with.
const DATA: &[u8] = b"data:";

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

const fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

const fn hash(name: &str) -> u64 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), FNV, 0);
    while at < bytes.len() {
        hash = step(hash, bytes[at]);
        at += 1;
    }
    hash
}

/// Several numbers as one; the order counts.
pub(super) fn mixed(numbers: [u64; 3]) -> u64 {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(FNV, step)
}

/// Keys that say to which of several answers, or of several parts of one, a text belongs.
const OUTER: [u64; 2] = [hash("index"), hash("output_index")];
const INNER: [u64; 2] = [hash("content_index"), hash("summary_index")];

fn is_index(key: u64) -> bool {
    OUTER.contains(&key) || INNER.contains(&key)
}

/// Keys under which the words of a model stand. A reader may take what is said for what was thought.
const WORDS: [u64; 12] = [
    hash("arguments"),
    hash("content"),
    hash("delta"),
    hash("input"),
    hash("output_text"),
    hash("partial_json"),
    hash("reasoning"),
    hash("reasoning_content"),
    hash("reasoning_text"),
    hash("refusal"),
    hash("text"),
    hash("thinking"),
];

/// A letter, and where it began in the answer.
pub(super) type Placed = (u8, u64);

/// A text of a document.
pub(super) struct Text {
    /// Is it a key itself?
    pub is_key: bool,
    /// The key it stands under.
    pub key: u64,
    /// By the outermost index alone, and by all of them; 0 where there are none.
    pub outer: u64,
    pub all: u64,
    from: usize,
    to: usize,
}

impl Text {
    pub fn is_words(&self) -> bool {
        WORDS.contains(&self.key)
    }
}

/// An object or a list that is being read.
#[derive(Default)]
struct Scope {
    is_list: bool,
    /// The first text in it.
    first: usize,
    /// The key whose value comes.
    key: u64,
    outer: u64,
    all: u64,
}

/// Where in a line a byte is.
enum Line {
    /// At its beginning, of which so much says that it is one of an event.
    Begins(usize),
    Inside,
}

pub(super) struct Documents {
    letters: Vec<Placed>,
    /// How many there were, also those that were not kept.
    count: usize,
    texts: Vec<Text>,
    /// Never empty: the first stands for all documents.
    scopes: Vec<Scope>,
    too_deep: usize,
    in_text: bool,
    /// A text has ended, and whether it was a key is not known yet.
    undecided: bool,
    text_from: usize,
    text_hash: u64,
    escape: Unescape,
    number: Vec<u8>,
    line: Line,
    line_is_empty: bool,
    after_return: bool,
    in_event: bool,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            letters: Vec::new(),
            count: 0,
            texts: Vec::new(),
            scopes: vec![Scope::default()],
            too_deep: 0,
            in_text: false,
            undecided: false,
            text_from: 0,
            text_hash: FNV,
            escape: Unescape::default(),
            number: Vec::new(),
            line: Line::Begins(0),
            line_is_empty: true,
            after_return: false,
            in_event: false,
        }
    }
}

impl Documents {
    /// Where the first letter is that waits.
    pub fn open_since(&self) -> Option<u64> {
        self.letters.first().map(|(_, begun)| *begun)
    }

    /// Reads one byte. Should the texts be taken now?
    pub fn read(&mut self, byte: u8, at: u64) -> bool {
        if matches!(byte, b'\n' | b'\r') {
            return self.line_ends(byte);
        }
        (self.after_return, self.line_is_empty) = (false, false);
        if self.in_text {
            return self.letter(byte, at);
        }
        if let Line::Begins(seen) = self.line {
            if DATA.get(seen) == Some(&byte) {
                let all = seen + 1 == DATA.len();
                self.in_event |= all;
                self.line = if all {
                    Line::Inside
                } else {
                    Line::Begins(seen + 1)
                };
                return false;
            }
            self.line = Line::Inside;
        }
        self.between(byte)
    }

    /// No text of JSON crosses a line, but a document may, and in an event it may not go on after an
    /// empty one.
    fn line_ends(&mut self, byte: u8) -> bool {
        let is_second = byte == b'\n' && self.after_return;
        self.after_return = byte == b'\r';
        if is_second {
            return false;
        }
        if self.in_text {
            (self.in_text, self.undecided) = (false, true);
            self.escape = Unescape::default();
            self.decide();
        }
        let is_empty = std::mem::replace(&mut self.line_is_empty, true);
        self.line = Line::Begins(0);
        if is_empty && std::mem::take(&mut self.in_event) {
            self.counted();
            while self.scopes.len() > 1 {
                self.closed();
            }
            self.too_deep = 0;
            return true;
        }
        self.scopes.len() == 1
    }

    fn letter(&mut self, byte: u8, at: u64) -> bool {
        if byte == b'"' && !self.escape.is_open() {
            (self.in_text, self.undecided) = (false, true);
            return false;
        }
        let Some((letter, begun)) = self.escape.read(byte, at) else {
            return false;
        };
        self.text_hash = match letter {
            Letter::Byte(byte) => step(self.text_hash, byte),
            Letter::Unit(unit) => {
                let letter = char::from_u32(u32::from(unit)).unwrap_or_default();
                let mut utf8 = [0; 4];
                let bytes = letter.encode_utf8(&mut utf8).bytes();
                bytes.fold(self.text_hash, step)
            }
        };
        self.letters.push((letter.byte(), begun));
        self.count += 1;
        self.count >= MAX_LETTERS
    }

    /// Is the next byte a letter of a text, and not part of an escape?
    pub fn is_in_text(&self) -> bool {
        self.in_text && !self.escape.is_open()
    }

    /// Reads plain letters of a text, of which the first so many are kept. As `read`.
    pub fn letters(&mut self, plain: &[u8], kept: usize, at: u64) -> bool {
        (self.after_return, self.line_is_empty) = (false, false);
        self.text_hash = plain.iter().copied().fold(self.text_hash, step);
        let placed = plain.iter().copied().zip(at..).take(kept);
        self.letters.extend(placed);
        self.count += plain.len();
        self.count >= MAX_LETTERS
    }

    fn between(&mut self, byte: u8) -> bool {
        match byte {
            b' ' | b'\t' => return false,
            b':' => {
                if self.undecided {
                    self.ended(true);
                }
                self.number.clear();
                // Outside of every document stand the names of fields of an event.
                if self.scopes.len() > 1 {
                    let key = self.text_hash;
                    self.scope().key = key;
                }
                return false;
            }
            _ => self.decide(),
        }
        match byte {
            b'"' => {
                (self.in_text, self.text_from) = (true, self.letters.len());
                self.text_hash = FNV;
            }
            b'{' | b'[' if self.scopes.len() > MAX_DEPTH => self.too_deep += 1,
            b'{' | b'[' => {
                let (first, key) = (self.texts.len(), self.scope().key);
                let scope = Scope {
                    is_list: byte == b'[',
                    first,
                    key,
                    ..Scope::default()
                };
                self.scopes.push(scope);
                self.number.clear();
            }
            b',' => self.counted(),
            b'}' | b']' => {
                self.counted();
                if self.too_deep > 0 {
                    self.too_deep -= 1;
                } else {
                    self.closed();
                }
                return match &self.scopes[..] {
                    [_] => true,
                    [_, outermost] => outermost.is_list,
                    _ => false,
                };
            }
            _ if self.number.len() < MAX_NUMBER => self.number.push(byte),
            _ => {}
        }
        false
    }

    fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// A text that no colon follows is a value.
    fn decide(&mut self) {
        if self.undecided {
            self.ended(false);
        }
    }

    fn ended(&mut self, is_key: bool) {
        self.undecided = false;
        let (from, to) = (self.text_from, self.letters.len());
        let key = self.scope().key;
        if !is_key && is_index(key) && to - from <= MAX_NUMBER {
            let digits = self.letters[from..to].iter().map(|(letter, _)| *letter);
            self.number = digits.collect();
            self.counted();
        }
        if from < to {
            self.texts.push(Text {
                is_key,
                key,
                outer: 0,
                all: 0,
                from,
                to,
            });
        }
    }

    /// A value has ended. If it is an index, it counts for the whole object it is in, wherever there
    /// it stands, and by what it is worth: `0` is `0.0`.
    fn counted(&mut self) {
        let number = std::mem::take(&mut self.number);
        let scope = self.scope();
        if !is_index(scope.key) {
            return;
        }
        let worth = std::str::from_utf8(&number)
            .ok()
            .and_then(|digits| digits.trim().parse::<f64>().ok());
        if let Some(worth) = worth {
            // Minus nothing is nothing.
            let mark = mixed([scope.key, (worth + 0.0).to_bits(), 0]);
            scope.all = scope.all.wrapping_add(mark);
            if OUTER.contains(&scope.key) {
                scope.outer = scope.outer.wrapping_add(mark);
            }
        }
    }

    /// What the innermost scope knew goes to the texts in it.
    fn closed(&mut self) {
        if self.scopes.len() > 1
            && let Some(scope) = self.scopes.pop()
        {
            marked(&mut self.texts, &scope);
        }
    }

    /// Hands out the texts that are there, and forgets them.
    pub fn take(&mut self, each: &mut dyn FnMut(&Text, &[Placed])) {
        if self.in_text {
            self.ended(false);
        }
        self.decide();
        let open = std::mem::take(&mut self.scopes);
        for scope in open.iter().rev() {
            marked(&mut self.texts, scope);
        }
        for text in self.texts.drain(..) {
            each(&text, &self.letters[text.from..text.to]);
        }
        self.letters.clear();
        self.count = 0;
        self.text_from = 0;
        self.scopes = open;
        self.scopes.iter_mut().for_each(|scope| scope.first = 0);
    }
}

fn marked(texts: &mut [Text], scope: &Scope) {
    for text in texts.iter_mut().skip(scope.first) {
        if scope.all != 0 {
            text.all = mixed([text.all, scope.all, 1]);
        }
        if scope.outer != 0 {
            text.outer = scope.outer;
        }
    }
}
