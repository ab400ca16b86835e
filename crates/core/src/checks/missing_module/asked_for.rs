//! What a patch asks for: the modules it adds to lists of dependencies. The harness reads its own
//! patch by this, and whoever verifies a bundle the one in there.

use std::collections::{BTreeMap, BTreeSet};

use super::{LONGEST_NAME, Language, MOST, even, language_of};
use crate::values::paths::TreePath;
use crate::workspace::environment::is_dependency_list;
use crate::workspace::patch::{PatchLine, PatchLines};

/// What of a longer line lies behind this is not read.
const LONGEST_LINE: usize = 64 << 10;
/// More names than any list of people's. What comes behind them asks for nothing.
const MOST_NAMES: usize = 500_000;

/// Modules that a patch adds, by list, in the spelling in which they are compared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AskedFor {
    lists: BTreeMap<TreePath, BTreeSet<String>>,
}

impl AskedFor {
    /// What a patch in memory asks for.
    #[cfg(test)]
    pub fn of(patch: &[u8]) -> Self {
        let mut reader = AskedReader::default();
        reader.feed(patch);
        reader.finish()
    }

    /// Does the patch add this module to this list?
    pub fn asks(&self, list: &TreePath, module: &str) -> bool {
        let (Some(language), Some(modules)) = (language_of(list), self.lists.get(list)) else {
            return false;
        };
        let module = plain(module);
        // Go's lists name modules, and a complaint a package in one.
        let around = module.match_indices('/').map(|(end, _)| &module[..end]);
        let mut around = around.filter(|_| language == Language::Go);
        modules.contains(&module) || around.any(|outer| modules.contains(outer))
    }

    /// May a command have been said to miss these modules of these lists? Only what the writer could
    /// have written is looked up at all.
    pub fn accounts_for(&self, modules: &[String], lists: &[TreePath]) -> bool {
        let is_plain = |name: &String| super::plain(name).is_some();
        (1..=MOST).contains(&modules.len())
            && modules.is_sorted_by(|a, b| a < b)
            && lists.is_sorted_by(|a, b| a < b)
            && modules.iter().all(is_plain)
            && modules
                .iter()
                .all(|module| lists.iter().any(|list| self.asks(list, module)))
            && lists
                .iter()
                .all(|list| modules.iter().any(|module| self.asks(list, module)))
    }

    /// The lists of a language to which the patch adds this module.
    pub(super) fn lists(
        &self,
        language: Language,
        module: &str,
    ) -> impl Iterator<Item = &TreePath> {
        self.lists
            .keys()
            .filter(move |list| language_of(list) == Some(language) && self.asks(list, module))
    }
}

/// Feed it the patch in pieces. Behind anything that is no patch nothing is read.
#[derive(Default)]
pub struct AskedReader {
    lines: PatchLines,
    line: Vec<u8>,
    list: Option<(TreePath, Language)>,
    is_over: bool,
    names: usize,
    found: BTreeMap<TreePath, Changed>,
}

/// The names in changed lines of one list.
#[derive(Default)]
struct Changed {
    added: BTreeSet<String>,
    /// Without versions: another one of the same is nothing new.
    removed: BTreeSet<String>,
    /// Nobody knows all that was there before: then it asks for nothing.
    is_partly_read: bool,
}

impl AskedReader {
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.push(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.push(rest);
    }

    pub fn finish(mut self) -> AskedFor {
        if !self.line.is_empty() {
            self.end_line();
        }
        let mut asked = AskedFor::default();
        let mut room = MOST_NAMES;
        for (list, changed) in self.found {
            let Some(language) = language_of(&list).filter(|_| !changed.is_partly_read) else {
                continue;
            };
            let modules: BTreeSet<String> = changed.new_modules(language).take(room).collect();
            room -= modules.len();
            if !modules.is_empty() {
                asked.lists.insert(list, modules);
            }
        }
        asked
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.is_over {
            return;
        }
        match self.lines.classify(&line) {
            Err(_) => self.is_over = true,
            Ok(PatchLine::File(path)) => {
                let language = language_of(&path).filter(|_| is_dependency_list(&path));
                self.list = language.map(|language| (path, language));
            }
            Ok(PatchLine::Added) => self.changed(&line, true),
            Ok(PatchLine::Removed) => self.changed(&line, false),
            Ok(_) => {}
        }
    }

    fn changed(&mut self, line: &[u8], is_added: bool) {
        let Some((list, language)) = &self.list else {
            return;
        };
        let text = String::from_utf8_lossy(line.get(1..).unwrap_or_default());
        // A list that is a program uses modules as well, and may write them wrong.
        let is_program = list.as_bytes().ends_with(b".py");
        let uses = ["import ", "from "].map(|word| text.trim_start().starts_with(word));
        if is_program && uses.contains(&true) {
            return;
        }
        let changed = self.found.entry(list.clone()).or_default();
        changed.is_partly_read |= !is_added && line.len() >= LONGEST_LINE;
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-/@".contains(c)));
        let fit = words.filter(|word| (1..=2 * LONGEST_NAME).contains(&word.len()));
        for name in fit.flat_map(|word| names(*language, &plain(word))) {
            if self.names >= MOST_NAMES {
                changed.is_partly_read = true;
                return;
            }
            let is_new = match is_added {
                true => changed.added.insert(name),
                false => changed
                    .removed
                    .insert(versionless(*language, &name).to_owned()),
            };
            self.names += usize::from(is_new);
        }
    }
}

impl Changed {
    /// What the list did not name before, as far as the patch shows: a line that was only written
    /// otherwise, or sorted, or has a new version, adds nothing.
    fn new_modules(&self, language: Language) -> impl Iterator<Item = String> {
        let is_new = move |name: &&String| !self.removed.contains(versionless(language, name));
        let names = self.added.iter().filter(is_new);
        let modules = names.flat_map(move |name| modules_of(language, name));
        modules.filter(|module| !self.removed.contains(module))
    }
}

/// A name as it is compared: people write one package in several ways.
fn plain(word: &str) -> String {
    even(word).to_ascii_lowercase()
}

/// The names of what has to be installed, in a word of a list.
fn names(language: Language, word: &str) -> Vec<String> {
    let parts = |signs: &'static [char]| {
        let parts = word.split(signs).filter(|part| !part.is_empty());
        parts.map(|part| part.replace('.', "_")).collect()
    };
    match language {
        Language::Python => parts(&['/', '@']),
        Language::Rust => parts(&['/', '@', '.']),
        Language::Go => vec![word.to_owned()],
        Language::Node => {
            let word = word.trim_start_matches('/');
            // `name@1.2.3` in lists that tools write. A scope begins with the same sign.
            let at = word.rfind('@');
            let at = at.filter(|at| *at > 0 && !word[..*at].ends_with('/'));
            let path = at.map_or(word, |at| &word[..at]);
            // `node_modules/name` there, too.
            let last = path.rfind('/').unwrap_or(0);
            let scope = path[..last].rfind('/').map_or(0, |end| end + 1);
            let name = match path[scope..].starts_with('@') {
                true => &path[scope..],
                false => path[last..].trim_start_matches('/'),
            };
            Vec::from_iter((!name.is_empty()).then(|| name.to_owned()))
        }
    }
}

/// A name of Python's without what follows it in the name of an archive.
fn versionless(language: Language, name: &str) -> &str {
    let is_version = |(at, _): &(usize, &str)| {
        let next = name.as_bytes().get(at + 1);
        *at > 0 && next.is_some_and(u8::is_ascii_digit)
    };
    let version = name.match_indices('_').find(is_version);
    match version.filter(|_| language == Language::Python) {
        Some((at, _)) => &name[..at],
        None => name,
    }
}

/// The modules that come with a name: `yaml` with `PyYAML`, `dateutil` with `python-dateutil`,
/// `google` with `google-auth`.
fn modules_of(language: Language, name: &str) -> Vec<String> {
    let mut modules = vec![name.to_owned()];
    if language == Language::Python {
        let mut before = ["python_", "py"].iter();
        let plain = before.find_map(|before| name.strip_prefix(before));
        let outer = name.match_indices('_').map(|(end, _)| &name[..end]);
        let others = DISTRIBUTIONS.iter().filter(|(_, with)| *with == name);
        let others = others.map(|(of, _)| *of);
        let all = plain.into_iter().chain(outer).chain(others);
        modules.extend(all.filter(|module| !module.is_empty()).map(str::to_owned));
    }
    modules
}

/// Distributions of Python whose modules have other names.
const DISTRIBUTIONS: [(&str, &str); 12] = [
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("crypto", "pycryptodome"),
    ("cv2", "opencv_python"),
    ("fitz", "pymupdf"),
    ("git", "gitpython"),
    ("magic", "python_magic"),
    ("pil", "pillow"),
    ("pkg_resources", "setuptools"),
    ("skimage", "scikit_image"),
    ("sklearn", "scikit_learn"),
    ("usb", "pyusb"),
];

#[cfg(test)]
#[path = "asked_for_tests.rs"]
mod tests;
