//! The loading control: what is done to a changed file so that whoever loads it must fail.
//!
//! - `language.rs` what a file is; `not_code.rs` what need not be seen; `named.rs` unless somebody
//!   names it
//! - `python.rs`, `javascript.rs`, `compiled.rs`, `scripts.rs` the lines, and where they stand
//! - `rounds.rs` which files are tried together, which alone, and how long
//!
//! A check that stays green where the change cannot be loaded has not seen the change. Garbage would
//! be noticed by a mere compile step, and swallowed where errors are caught; so where the language is
//! known the file stays valid and ends its process when it is run.

pub mod compiled;
pub mod javascript;
pub mod language;
pub mod named;
pub mod not_code;
pub mod python;
pub mod rounds;
pub mod scripts;

use memchr::memchr;

use self::language::{Language, Nature, nature};
pub use crate::run::loaded::{How, Proves};
use crate::values::digest::Digest;
use crate::values::paths::TreePath;
use crate::workspace::tree::FileKind;

/// The exit code of code that was loaded; nothing else is likely to end with it.
pub const LOADED: i32 = 97;

/// A changed file as the checks find it; of a deleted one, as it was.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    pub path: &'a TreePath,
    pub kind: FileKind,
    /// The content, or the text of a link.
    pub bytes: &'a [u8],
}

/// A file that fails when it is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spoiled {
    /// The content, or the text of a link; mode and times stay those of the checked copy.
    pub bytes: Vec<u8>,
    pub how: How,
    pub proves: Proves,
    /// The same with lines of the same look that do nothing: who is red on these too is red by
    /// their look.
    pub harmless: Option<Vec<u8>>,
}

/// Both ways to make one file fail; at least one is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forms {
    /// Fails only when it is run or used.
    pub runs: Option<Spoiled>,
    /// Fails for whoever reads it.
    pub breaks: Option<Spoiled>,
}

impl Forms {
    /// The form that shows most.
    pub fn strongest(&self) -> Option<&Spoiled> {
        self.runs.as_ref().or(self.breaks.as_ref())
    }
}

/// The ways to make a file fail when it is loaded. `word` is random and of letters and digits: names
/// in it collide with nothing, and no file can wait for it.
pub fn forms(file: File<'_>, word: &str) -> Forms {
    let word = Word::new(word, file.path);
    if file.kind == FileKind::Symlink {
        return breaks_only(word.text().into_bytes(), How::PointsNowhere);
    }
    match nature(file.path, file.bytes) {
        Nature::Source(language) => source(language, file.bytes, &word),
        Nature::Configuration => breaks_only(broken(file.bytes, &word), How::BrokenLine),
        Nature::Prose => Forms {
            runs: Some(Spoiled {
                bytes: word.failing_example(),
                how: How::FailingExample,
                proves: Proves::Loaded,
                harmless: None,
            }),
            breaks: None,
        },
        Nature::Template | Nature::Data => emptied(file.bytes, &word),
        Nature::OtherText if file.bytes.is_empty() => emptied(file.bytes, &word),
        // Nobody knows who reads it: perhaps a parser, perhaps somebody who looks for a word.
        Nature::OtherText => Forms {
            breaks: Some(parsed(broken(file.bytes, &word), How::BrokenLine)),
            ..emptied(file.bytes, &word)
        },
    }
}

fn source(language: Language, bytes: &[u8], word: &Word) -> Forms {
    let runs = match language {
        Language::Python => Some(python::ends(bytes)),
        Language::JavaScript => Some(javascript::ends(bytes, javascript::Dialect::Plain)),
        Language::TypeScript => Some(javascript::ends(bytes, javascript::Dialect::Typed)),
        Language::Component => javascript::component(bytes),
        Language::Go => Some(compiled::go(bytes)),
        Language::C => Some(compiled::constructor(bytes, word)),
        Language::Script(script) => scripts::ends(script, bytes),
        Language::Rust | Language::Header | Language::Directive | Language::Other => None,
    };
    let runs = runs.map(|(ends, harmless)| Spoiled {
        bytes: ends,
        how: How::EndsItsProcess,
        proves: Proves::Loaded,
        harmless: Some(harmless),
    });
    let refused = match language {
        Language::Rust => Some(compiled::rust(bytes, word)),
        Language::C | Language::Header | Language::Directive => {
            Some(compiled::error_directive(bytes, word))
        }
        _ => None,
    };
    let breaks = match refused {
        Some(bytes) => parsed(bytes, How::DoesNotCompile),
        None => parsed(broken(bytes, word), How::BrokenLine),
    };
    Forms {
        runs,
        breaks: Some(breaks),
    }
}

fn parsed(bytes: Vec<u8>, how: How) -> Spoiled {
    Spoiled {
        bytes,
        how,
        proves: Proves::Parsed,
        harmless: None,
    }
}

fn breaks_only(bytes: Vec<u8>, how: How) -> Forms {
    Forms {
        runs: None,
        breaks: Some(parsed(bytes, how)),
    }
}

/// An empty file is no error to any parser: whoever turns red wanted what stood in it.
fn emptied(bytes: &[u8], word: &Word) -> Forms {
    let (bytes, how) = match bytes.is_empty() {
        false => (Vec::new(), How::Emptied),
        true => (word.broken_line("\n"), How::Filled),
    };
    Forms {
        runs: Some(Spoiled {
            bytes,
            how,
            proves: Proves::Loaded,
            harmless: None,
        }),
        breaks: None,
    }
}

/// The text with a first line that no parser takes.
fn broken(bytes: &[u8], word: &Word) -> Vec<u8> {
    put(bytes, head(bytes), &word.broken_line(newline(bytes)))
}

/// A random word, told apart by file.
pub struct Word(String);

impl Word {
    pub fn new(word: &str, path: &TreePath) -> Self {
        let plain: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        let of_path = Digest::of(path.as_bytes()).to_string();
        let tail: String = of_path.chars().rev().take(8).collect();
        Self(format!("w{plain}_{tail}"))
    }

    /// A name in every language.
    pub fn text(&self) -> String {
        self.0.clone()
    }

    /// Closed before it was opened, and opened and never closed. No `:`, `=` or `#`, which would make
    /// it a rule, a value or a comment somewhere.
    fn broken_line(&self, newline: &str) -> Vec<u8> {
        format!("]}}) {} [{{(\" {newline}", self.0).into_bytes()
    }

    /// Fails as a test of documentation, in Python and in Rust.
    fn failing_example(&self) -> Vec<u8> {
        format!(
            "# {word}\n\n>>> raise SystemExit({LOADED})\n\n```rust\ncompile_error!(\"{word}\");\n```\n",
            word = self.0
        )
        .into_bytes()
    }
}

/// The first byte after a byte order mark and the line that names the interpreter.
fn head(bytes: &[u8]) -> usize {
    let start = after_mark(bytes);
    let rest = bytes.get(start..).unwrap_or_default();
    match rest.starts_with(b"#!") && !rest.starts_with(b"#![") {
        true => start + memchr(b'\n', rest).map_or(rest.len(), |at| at + 1),
        false => start,
    }
}

fn after_mark(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    }
}

/// The end of line that this text uses.
fn newline(bytes: &[u8]) -> &'static str {
    match memchr(b'\n', bytes) {
        Some(at) if at > 0 && bytes.get(at - 1) == Some(&b'\r') => "\r\n",
        _ => "\n",
    }
}

/// Puts whole lines in; what stood before them on their line gets an end.
fn put(bytes: &[u8], at: usize, lines: &[u8]) -> Vec<u8> {
    let (before, after) = bytes.split_at(at.min(bytes.len()));
    let mut out = Vec::with_capacity(bytes.len() + lines.len() + 2);
    out.extend_from_slice(before);
    let begins_a_line =
        matches!(before.last(), None | Some(b'\n' | b'\r')) || before.len() == after_mark(bytes);
    if !begins_a_line {
        out.extend_from_slice(newline(bytes).as_bytes());
    }
    out.extend_from_slice(lines);
    out.extend_from_slice(after);
    out
}

#[cfg(test)]
#[path = "loading_tests.rs"]
mod tests;
