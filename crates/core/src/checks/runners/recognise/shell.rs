//! The text of a shell command, cut into simple commands and their words.
//!
//! Only as much of a shell as commands in contracts and scripts use. What a shell would compute is
//! left as it stands and marked: nothing is guessed.

/// A word, its quotes taken off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    pub text: String,
    /// Where it stands in the command; none for a word of a script.
    pub place: Option<(usize, usize)>,
    /// A variable, a substitution or a pattern that only a shell can resolve.
    pub computed: bool,
}

impl Word {
    pub fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            place: None,
            computed: false,
        }
    }
}

/// One command of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Simple {
    pub words: Vec<Word>,
    /// Its output is the input of the next: that one's exit code counts.
    pub piped: bool,
    /// Whatever it ends with, the list goes on and may be green.
    pub excused: bool,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    list: Vec<Simple>,
    current: Simple,
    own: bool,
}

/// Cuts a command at `&&`, `;`, `||`, `|`, `&` and line ends. Redirections are left out. `own`: the
/// words have places in the command itself.
pub fn split(text: &str, own: bool) -> Vec<Simple> {
    let mut reader = Reader {
        text,
        at: 0,
        list: Vec::new(),
        current: Simple::default(),
        own,
    };
    reader.read();
    reader.list
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn read(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            match next {
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                '\n' | ';' | '(' | ')' | '{' | '}' if self.is_separator(next) => {
                    self.at += 1;
                    self.end(false, next == ';' || next == '\n');
                }
                '&' | '|' => self.operator(),
                '<' | '>' => self.redirection(),
                _ => self.word(),
            }
        }
        self.end(false, false);
    }

    /// A brace is a word of its own, or a part of one.
    fn is_separator(&self, c: char) -> bool {
        !matches!(c, '{' | '}')
            || self
                .rest()
                .chars()
                .nth(1)
                .is_none_or(|next| next.is_whitespace() || next == ';')
    }

    fn operator(&mut self) {
        let two = self.rest().get(..2).unwrap_or_default();
        match two {
            "&&" => {
                self.at += 2;
                self.end(false, false);
            }
            "||" => {
                self.at += 2;
                self.end(false, true);
            }
            "&>" => {
                self.at += 1;
                self.redirection();
            }
            _ => {
                let piped = self.rest().starts_with('|');
                self.at += 1;
                self.end(piped, !piped);
            }
        }
    }

    /// The sign and its target.
    fn redirection(&mut self) {
        while self.rest().starts_with(['<', '>', '&']) {
            self.at += 1;
        }
        while self.rest().starts_with([' ', '\t']) {
            self.at += 1;
        }
        let before = self.current.words.len();
        if !self.rest().starts_with(['\n', ';', '|']) && !self.rest().is_empty() {
            self.word();
        }
        self.current.words.truncate(before);
    }

    fn end(&mut self, piped: bool, excused: bool) {
        let mut done = std::mem::take(&mut self.current);
        if !done.words.is_empty() {
            done.piped = piped;
            done.excused = excused;
            self.list.push(done);
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let mut text = String::new();
        let mut computed = false;
        while let Some(next) = self.rest().chars().next() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    let inner = self.rest().get(1..).unwrap_or_default();
                    let length = inner.find('\'').unwrap_or(inner.len());
                    text.push_str(inner.get(..length).unwrap_or_default());
                    self.at = (self.at + length + 2).min(self.text.len());
                }
                '"' => computed |= self.double_quoted(&mut text),
                '\\' => {
                    let escaped = self.rest().chars().nth(1);
                    self.at += 1 + escaped.map_or(0, char::len_utf8);
                    text.extend(escaped.filter(|c| *c != '\n'));
                }
                '$' | '`' => {
                    computed = true;
                    self.substitution(&mut text);
                }
                _ => {
                    computed |= matches!(next, '*' | '?' | '[');
                    text.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        if self.at == start {
            // Nothing above takes it: it must not be read for ever.
            self.at += self.rest().chars().next().map_or(1, char::len_utf8);
            return;
        }
        // `2>` redirects; the number is no word.
        let number =
            text.bytes().all(|b| b.is_ascii_digit()) && self.rest().starts_with(['<', '>']);
        if !number {
            self.current.words.push(Word {
                text,
                place: self.own.then_some((start, self.at)),
                computed,
            });
        }
    }

    fn double_quoted(&mut self, text: &mut String) -> bool {
        self.at += 1;
        let mut computed = false;
        while let Some(next) = self.rest().chars().next() {
            match next {
                '"' => {
                    self.at += 1;
                    break;
                }
                '\\' => {
                    let escaped = self.rest().chars().nth(1);
                    if !matches!(escaped, Some('"' | '\\' | '$' | '`' | '\n')) {
                        text.push('\\');
                    }
                    text.extend(escaped.filter(|c| *c != '\n'));
                    self.at += 1 + escaped.map_or(0, char::len_utf8);
                }
                '$' | '`' => {
                    computed = true;
                    self.substitution(text);
                }
                _ => {
                    text.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        computed
    }

    /// `$NAME`, `${..}`, `$(..)` or backticks, as they stand.
    fn substitution(&mut self, text: &mut String) {
        let rest = self.rest();
        let length = match rest.get(..2) {
            Some("$(") => balanced(rest, '(', ')'),
            Some("${") => balanced(rest, '{', '}'),
            _ if rest.starts_with('`') => rest
                .get(1..)
                .and_then(|inner| inner.find('`'))
                .map_or(rest.len(), |at| at + 2),
            _ => 1,
        };
        text.push_str(rest.get(..length).unwrap_or_default());
        self.at += length;
    }
}

fn balanced(text: &str, open: char, close: char) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + c.len_utf8();
            }
        }
    }
    text.len()
}

/// `NAME=value` before a command.
pub fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut letters = name.bytes();
    let first = letters.next()?;
    let good = (first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    good.then_some((name, value))
}
