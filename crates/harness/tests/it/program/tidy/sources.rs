//! The source files of all crates, and what of them is compiled into the product.

use std::fs;
use std::path::{Path, PathBuf};

/// One source file.
pub struct Source {
    /// Relative to the repository.
    pub path: String,
    pub text: String,
    /// The text without comments, strings and test items. Lines keep their numbers.
    pub product: String,
    /// The same with its strings.
    pub product_with_strings: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let code = blank(text, Strings::Blank);
        let tests = test_items(&code);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            product: without(&code, &tests),
            product_with_strings: without(&blank(text, Strings::Keep), &tests),
        }
    }

    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.ends_with("_tests.rs")
            || self.path.starts_with("crates/testkit/")
    }

    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub fn starts(&self, prefixes: &[&str]) -> bool {
        prefixes.iter().any(|prefix| self.path.starts_with(prefix))
    }

    /// How many lines the file has outside its test items.
    pub fn product_lines(&self) -> usize {
        let in_tests = test_lines(&self.text);
        (0..self.text.lines().count())
            .filter(|at| !in_tests.contains(at))
            .count()
    }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every Rust file of every crate.
pub fn sources() -> Vec<Source> {
    let root = repository();
    let mut found = Vec::new();
    for path in files_below(&root.join("crates")) {
        if path.extension().is_some_and(|end| end == "rs") {
            let relative = path.strip_prefix(&root).unwrap().display().to_string();
            found.push(Source::new(&relative, &fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(found.len() > 40, "the sources were not found");
    found
}

pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    Keep,
    Blank,
}

/// Comments become spaces, and strings and character literals too, if they shall.
fn blank(text: &str, strings: Strings) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !is_word(bytes, at) => match raw_string_end(bytes, at) {
                Some(end) => end,
                None => at,
            },
            b'\'' => character_end(bytes, at),
            _ => at,
        };
        if end > at {
            if bytes[at] == b'/' || strings == Strings::Blank {
                let blank = out[at..end].iter_mut().filter(|byte| **byte != b'\n');
                blank.for_each(|byte| *byte = b' ');
            }
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Does a word go on at this place, so that the letter here begins nothing new?
fn is_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |end| at + end)
}

fn block_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut at = at;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `r"…"` and `r#"…"#`, with any number of signs.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let length = bytes[open + 1..]
        .windows(close.len())
        .position(|found| found == close)?;
    Some(open + 1 + length + close.len())
}

/// A character literal, or nothing where the sign begins a lifetime.
fn character_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'\\') => {
            let close = bytes[at + 2..]
                .iter()
                .skip(1)
                .position(|byte| *byte == b'\'');
            close.map_or(at, |length| at + 3 + length + 1)
        }
        Some(_) => {
            let length = std::str::from_utf8(&bytes[at + 1..(at + 5).min(bytes.len())])
                .map_or_else(|error| error.valid_up_to(), str::len);
            let first = String::from_utf8_lossy(&bytes[at + 1..at + 1 + length.max(1)])
                .chars()
                .next()
                .map_or(1, char::len_utf8);
            if bytes.get(at + 1 + first) == Some(&b'\'') {
                at + 2 + first
            } else {
                at
            }
        }
        None => at,
    }
}

const TEST_ITEM: &str = "#[cfg(test)]";

/// Begin and end of every item under `#[cfg(test)]`, in code without comments and strings.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(begin) = code[from..].find(TEST_ITEM).map(|at| from + at) {
        let mut depth = 0usize;
        let mut end = code.len();
        for (at, byte) in code.bytes().enumerate().skip(begin + TEST_ITEM.len()) {
            match byte {
                b'{' => depth += 1,
                b'}' if depth <= 1 => {
                    end = at + 1;
                    break;
                }
                b'}' => depth -= 1,
                b';' if depth == 0 => {
                    end = at + 1;
                    break;
                }
                _ => {}
            }
        }
        found.push((begin, end));
        from = end;
    }
    found
}

fn without(code: &str, items: &[(usize, usize)]) -> String {
    let mut out = code.as_bytes().to_vec();
    for (begin, end) in items {
        let blank = out[*begin..*end].iter_mut().filter(|byte| **byte != b'\n');
        blank.for_each(|byte| *byte = b' ');
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The numbers, from 0, of all lines that belong to a test item.
fn test_lines(text: &str) -> std::collections::BTreeSet<usize> {
    let code = blank(text, Strings::Blank);
    let line = |at: usize| code[..at].bytes().filter(|byte| *byte == b'\n').count();
    test_items(&code)
        .into_iter()
        .flat_map(|(begin, end)| line(begin)..=line(end - 1))
        .collect()
}

#[test]
fn code_behind_tests_and_in_strings_is_told_apart() {
    let text = "//! x `#[cfg(test)]`\nconst A: &str = \"#[cfg(test)]\";\nconst Q: char = '\"';\n\
                #[cfg(test)]\nmod tests {\n    fn b() { let _ = r#\"}\"#; }\n}\nuse std::fs;\n\
                fn c<'a>(x: &'a str) -> char { '{' }\n#[cfg(test)]\nmod more;\nfn d() {}\n";
    let source = Source::new("a.rs", text);
    assert!(source.product.contains("use std::fs;") && source.product.contains("fn d()"));
    assert!(source.product.contains("fn c<'a>(x: &'a str) -> char"));
    assert!(!source.product.contains("mod tests") && !source.product.contains("mod more"));
    assert_eq!(source.product.lines().count(), text.lines().count());
    assert!(source.product_with_strings.contains("\"#[cfg(test)]\""));
    assert!(!source.product_with_strings.contains("//! x"));
    assert_eq!(source.product_lines(), 6);
}
