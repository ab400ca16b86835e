//! Paths of this host that a bundle has other names for: the repository is `{repo}`, the operator's
//! home `~`. They are no secrets: nothing alarms, but no bundle says where its owner works.
//!
//! A path is replaced as it is, and as JSON, a URL or a shell would write it; only whole components
//! are, and of two that fit the longer one is. In output a path may follow anything (`-I/home/me`);
//! in our own documents it never goes on with another one, whose end may look the same.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::host::Env;

/// A path with one component is a word that paths of others hold too.
const FEW: usize = 2;
/// Bytes after a path that tell whether its last component ends there.
pub const LOOK_AHEAD: usize = 2;
/// Bytes before it that tell whether its first one begins there.
pub const LOOK_BACK: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HostName {
    Repository,
    Home,
}

impl HostName {
    pub fn mark(self) -> &'static [u8] {
        match self {
            Self::Repository => b"{repo}",
            Self::Home => b"~",
        }
    }
}

/// What is replaced, the longest first.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    needles: Vec<Needle>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Needle {
    bytes: Vec<u8>,
    name: HostName,
    /// What is before it must not be part of a name.
    strict: bool,
}

/// Where a path stands in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    pub start: usize,
    pub end: usize,
    pub name: HostName,
}

impl HostNames {
    /// The repository that is copied, by each of these paths, and the home of this operator.
    pub fn of_host<'p>(repository: impl Iterator<Item = &'p Path>, env: &Env) -> Self {
        let home = env.path("HOME").filter(|home| home.is_absolute());
        let real = home.as_ref().and_then(|home| home.canonicalize().ok());
        let homes: Vec<&Path> = home.iter().chain(&real).map(PathBuf::as_path).collect();
        Self::of(&repository.collect::<Vec<_>>(), &homes)
    }

    /// The repository that is copied, by each of these paths, and the operator's home.
    pub fn of(repository: &[&Path], homes: &[&Path]) -> Self {
        let mut names = Self::default();
        for path in repository {
            names.add(path, HostName::Repository);
            // As our own records name it.
            let below = homes.iter().find_map(|home| path.strip_prefix(home).ok());
            if let Some(rest) = below.filter(|rest| !rest.as_os_str().is_empty()) {
                let short = Path::new("~").join(rest);
                names.push(short.as_os_str().as_bytes(), HostName::Repository, true);
            }
        }
        for path in homes {
            names.add(path, HostName::Home);
        }
        names
    }

    /// Names an absolute path. The root is nobody's.
    fn add(&mut self, path: &Path, name: HostName) {
        let components = path.components().count().saturating_sub(1);
        if path.is_absolute() && components > 0 {
            self.push(path.as_os_str().as_bytes(), name, components < FEW);
        }
    }

    fn push(&mut self, path: &[u8], name: HostName, strict: bool) {
        for bytes in spellings(path) {
            if !self.needles.iter().any(|needle| needle.bytes == bytes) {
                self.needles.push(Needle {
                    bytes,
                    name,
                    strict,
                });
            }
        }
        self.needles
            .sort_by(|a, b| (b.bytes.len(), a.name).cmp(&(a.bytes.len(), b.name)));
    }

    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    pub fn longest(&self) -> usize {
        self.needles.first().map_or(0, |needle| needle.bytes.len())
    }

    pub fn cross_lines(&self) -> bool {
        self.needles
            .iter()
            .any(|needle| needle.bytes.contains(&b'\n'))
    }

    /// Every path in output, in order and without overlaps. `before` is what came before the text.
    pub fn find(&self, before: &[u8], text: &[u8]) -> Vec<Named> {
        self.find_as(before, text, false)
    }

    fn find_as(&self, before: &[u8], text: &[u8], strict: bool) -> Vec<Named> {
        let mut found: Vec<Named> = Vec::new();
        for needle in &self.needles {
            for start in memchr::memmem::find_iter(text, &needle.bytes) {
                let end = start + needle.bytes.len();
                let taken = |other: &Named| start < other.end && other.start < end;
                if ends_there(&text[end..])
                    && (!(strict || needle.strict) || begins_there(before, &text[..start]))
                    && !found.iter().any(taken)
                {
                    let name = needle.name;
                    found.push(Named { start, end, name });
                }
            }
        }
        found.sort_by_key(|named| named.start);
        found
    }

    /// A whole text of somebody else's with its paths replaced, and how many there were.
    pub fn replace<'t>(&self, text: &'t [u8]) -> (Cow<'t, [u8]>, u64) {
        renamed(text, &self.find(b"", text))
    }

    /// A text of our own with its paths replaced.
    pub fn name<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        renamed(text, &self.find_as(b"", text, true)).0
    }

    /// Gives the paths in a document of our own their other names, but for what the operator said
    /// in these very words: it stands in the contract, and is the same everywhere.
    pub fn rename(&self, value: &mut Value, spoken: &[String]) -> bool {
        match value {
            Value::String(text) => {
                if spoken.iter().any(|said| text.contains(said.as_str())) {
                    return false;
                }
                match self.name(text.as_bytes()) {
                    Cow::Borrowed(_) => false,
                    Cow::Owned(clean) => {
                        *text = String::from_utf8_lossy(&clean).into_owned();
                        true
                    }
                }
            }
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |any, item| self.rename(item, spoken) | any),
            Value::Object(map) => map
                .values_mut()
                .fold(false, |any, item| self.rename(item, spoken) | any),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Strings of a document that hold one of the paths.
    pub fn spoken(&self, value: &Value) -> Vec<String> {
        match value {
            Value::String(text) if !self.find(b"", text.as_bytes()).is_empty() => {
                vec![text.clone()]
            }
            Value::Array(items) => items.iter().flat_map(|item| self.spoken(item)).collect(),
            Value::Object(map) => map.values().flat_map(|item| self.spoken(item)).collect(),
            _ => Vec::new(),
        }
    }
}

fn renamed<'t>(text: &'t [u8], found: &[Named]) -> (Cow<'t, [u8]>, u64) {
    if found.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    let (mut out, mut from) = (Vec::with_capacity(text.len()), 0);
    for named in found {
        out.extend_from_slice(&text[from..named.start]);
        out.extend_from_slice(named.name.mark());
        from = named.end;
    }
    out.extend_from_slice(&text[from..]);
    (Cow::Owned(out), found.len() as u64)
}

/// The ways in which programs write a path.
fn spellings(path: &[u8]) -> BTreeSet<Vec<u8>> {
    let whole = percent(path, b"");
    let mut all = BTreeSet::from([
        path.to_vec(),
        percent(path, b"/"),
        percent(path, b"/!'()*@+,;:=&$"),
        lower_percent(&whole),
        whole,
        // Within single quotes, by Python and by shells.
        exchanged(path, b'\'', b"'\"'\"'"),
        exchanged(path, b'\'', b"'\\''"),
        escaped(path, |byte| format!("\\{byte:03o}")),
    ]);
    let mut shell = Vec::new();
    for byte in path {
        if b" '\"\\()&;$`".contains(byte) {
            shell.push(b'\\');
        }
        shell.push(*byte);
    }
    all.insert(shell);
    if let Ok(text) = std::str::from_utf8(path) {
        let json = serde_json::to_string(text).unwrap_or_default();
        let json = json.trim_start_matches('"');
        let json = json.strip_suffix('"').unwrap_or(json);
        all.insert(json.as_bytes().to_vec());
        let latin = text.chars().all(|letter| u32::from(letter) < 0x100);
        if latin {
            let bytes: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
            all.insert(escaped(&bytes, |byte| format!("\\x{byte:02x}")));
        }
        let mut ascii = String::new();
        for unit in json.encode_utf16() {
            match u8::try_from(unit).ok().filter(u8::is_ascii) {
                Some(byte) => ascii.push(char::from(byte)),
                None => ascii.push_str(&format!("\\u{unit:04x}")),
            }
        }
        for json in [json, &ascii] {
            // Some programs escape the slash as well, and some write JSON into JSON.
            all.insert(exchanged(json.as_bytes(), b'/', b"\\/"));
            all.insert(exchanged(json.as_bytes(), b'\\', b"\\\\"));
        }
        all.insert(ascii.into_bytes());
    }
    all
}

/// Every byte that is not ASCII as an escape.
fn escaped(path: &[u8], escape: impl Fn(u8) -> String) -> Vec<u8> {
    let one = |byte: &u8| match byte.is_ascii() {
        true => vec![*byte],
        false => escape(*byte).into_bytes(),
    };
    path.iter().flat_map(one).collect()
}

fn exchanged(path: &[u8], what: u8, by: &[u8]) -> Vec<u8> {
    let one = |byte: &u8| match *byte == what {
        true => by.to_vec(),
        false => vec![*byte],
    };
    path.iter().flat_map(one).collect()
}

fn lower_percent(encoded: &[u8]) -> Vec<u8> {
    let mut out = encoded.to_vec();
    for at in memchr::memchr_iter(b'%', encoded) {
        let end = encoded.len().min(at + 3);
        out[at..end].make_ascii_lowercase();
    }
    out
}

fn percent(path: &[u8], also: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in path {
        match byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) || also.contains(byte) {
            true => out.push(*byte),
            false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

fn of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || byte >= 0x80
}

/// Does a component end before this? A dot ends a sentence, or goes on with a name.
fn ends_there(after: &[u8]) -> bool {
    match after {
        [] => true,
        [b'.', next, ..] => !of_a_name(*next),
        [next, ..] => !of_a_name(*next),
    }
}

/// Does a path begin after this? Not in the middle of another one; but a flag, an escape and a
/// colour may stand right before it.
fn begins_there(before: &[u8], text: &[u8]) -> bool {
    let kept = before.len().saturating_sub(LOOK_BACK);
    let near = text.len().saturating_sub(LOOK_BACK);
    let context = [&before[kept..], &text[near..]].concat();
    let of_a_name = |byte: &u8| of_a_name(*byte) || b".~}".contains(byte);
    let run = context
        .iter()
        .rev()
        .take_while(|byte| of_a_name(byte))
        .count();
    let (ahead, word) = context.split_at(context.len() - run);
    match (ahead, word) {
        (_, []) => true,
        (_, [b'-', ..]) => true,
        ([.., b'\\'], [letter]) => b"ntrfvb0".contains(letter),
        (_, [digits @ .., b'm']) => {
            let mut all = ahead.iter().chain(digits).rev();
            all.find(|byte| !b"0123456789;".contains(byte)) == Some(&b'[')
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "host_names_tests.rs"]
mod tests;
