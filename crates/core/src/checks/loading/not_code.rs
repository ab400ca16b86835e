//! Changed files that no check has to see: a table, by name alone.
//!
//! It is short on purpose. What is not in it has to be noticed by a check, or a person says why not.

use super::language::file_name;
use super::named::Named;
use crate::run::belief::Substance;
pub use crate::run::loaded::NotCode;
use crate::values::paths::TreePath;

const PROSE: &[&str] = &["md", "markdown", "rst", "adoc", "asciidoc", "txt"];
const PICTURES: &[&str] = &[
    "png", "jpg", "jpeg", "gif", "webp", "ico", "svg", "bmp", "tif", "tiff", "avif",
];
const LOCK_FILES: &[&str] = &[
    "cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.lock",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "pipfile.lock",
    "gemfile.lock",
    "composer.lock",
    "go.sum",
    "mix.lock",
    "flake.lock",
    "pubspec.lock",
    "podfile.lock",
    "packages.lock.json",
    "gradle.lockfile",
];
const IGNORE_LISTS: &[&str] = &[
    ".gitignore",
    ".editorconfig",
    ".gitattributes",
    ".mailmap",
    ".dockerignore",
    ".npmignore",
    ".git-blame-ignore-revs",
    "codeowners",
    "citation.cff",
];
/// Pages at the root of a project; they have any of the ends of prose, or none.
const LEGAL: &[&str] = &[
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "authors",
    "contributors",
    "patents",
    "unlicense",
];
const PAGES: &[&str] = &[
    "readme",
    "changelog",
    "changes",
    "history",
    "news",
    "contributing",
];
/// Prose by their end, and no prose.
const EXCEPTIONS: &[&str] = &["cmakelists.txt", "meson_options.txt"];

/// Why no check has to see this file; none where one has to. A file that a command names is read by
/// it, whatever its name.
pub fn not_code(path: &TreePath, named: &Named) -> Option<NotCode> {
    let found = by_table(path)?;
    (!named.by_words_of_a_command(path)).then_some(found)
}

/// Could somebody load it all the same? Then it is tried, and is what the table says only if nobody
/// notices: a build file may read what it names or only pack it, and pages may be built by code.
pub fn is_tried(path: &TreePath, named: &Named) -> bool {
    named.names(path) || super::language::is_source_by_name(path)
}

pub fn by_table(path: &TreePath) -> Option<NotCode> {
    let name = String::from_utf8_lossy(file_name(path)).to_ascii_lowercase();
    if EXCEPTIONS.contains(&name.as_str()) {
        return None;
    }
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => (stem, Some(end)),
        _ => (name.as_str(), None),
    };
    let prose = end.is_none_or(|end| PROSE.contains(&end));
    // `LICENSE-MIT`, `LICENSE.APACHE`.
    let first = name.split(['-', '.', '_']).next().unwrap_or_default();
    if LEGAL.contains(&first) && (prose || end.is_some_and(|end| !is_program(end))) {
        return Some(NotCode::Legal);
    }
    if LOCK_FILES.contains(&name.as_str()) {
        return Some(NotCode::LockFile);
    }
    if IGNORE_LISTS.contains(&name.as_str()) {
        return Some(NotCode::IgnoreList);
    }
    let page = end.is_none() && PAGES.contains(&stem);
    if page || end.is_some_and(|end| PROSE.contains(&end)) || path.as_bytes().starts_with(b"docs/")
    {
        return Some(NotCode::Documentation);
    }
    end.filter(|end| PICTURES.contains(end))
        .map(|_| NotCode::Picture)
}

/// Is this the name of a page that packages show: a readme, a licence, a list of changes?
pub(super) fn is_front_page(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
    let first = name.split(['-', '.', '_']).next().unwrap_or_default();
    let page = PAGES.contains(&first) || LEGAL.contains(&first);
    page && by_table(&TreePath::new(name.as_str())).is_some()
}

/// `license.py` is a module about licences.
fn is_program(end: &str) -> bool {
    let path = TreePath::new(format!("x.{end}"));
    !matches!(
        super::language::nature(&path, b""),
        super::language::Nature::OtherText
    )
}

/// What a change is made of: of each of its files, why it need not be seen.
pub fn substance(files: impl IntoIterator<Item = Option<NotCode>>) -> Substance {
    let mut only_documentation = true;
    for file in files {
        match file {
            None => return Substance::Code,
            Some(NotCode::Documentation | NotCode::Legal) => {}
            Some(_) => only_documentation = false,
        }
    }
    match only_documentation {
        true => Substance::OnlyDocumentation,
        false => Substance::NoCode,
    }
}

#[cfg(test)]
#[path = "not_code_tests.rs"]
mod tests;
