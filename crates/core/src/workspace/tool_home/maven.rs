//! Which packages of Maven's repository a repository builds itself: those of the owner are what the
//! code was at another time. Where its files do not say it in plain words, nothing is known.

use std::collections::BTreeSet;

use super::name_of;
use crate::values::paths::TreePath;

/// What the tool itself calls a description.
const POM: &[u8] = b"pom.xml";
const PROGRAMS: [&str; 3] = ["mvn", "mvnw", "mvnd"];

/// May this file have a say in what Maven builds, or how it finds out?
pub fn counts(path: &TreePath) -> bool {
    is_setting(path) || is_pom(path) || may_be_named(path)
}

fn is_pom(path: &TreePath) -> bool {
    name_of(path) == POM
}

/// Another description, which somebody may name in the tool's place.
fn may_be_named(path: &TreePath) -> bool {
    let name = name_of(path).to_ascii_lowercase();
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    name.ends_with(b".pom") || name.ends_with(b".xml") && has(b"pom")
}

/// What in a repository changes how Maven reads descriptions, or which.
fn is_setting(path: &TreePath) -> bool {
    let bytes = path.as_bytes();
    [&b".mvn/extensions.xml"[..], b".mvn/maven.config"]
        .iter()
        .any(|file| {
            let before = bytes.strip_suffix(*file);
            before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
        })
}

/// What is built of these files, which are all that count in a tree, by these commands: places
/// below Maven's repository. `tracked` are all paths of the tree; of a file that cannot be read
/// there is no text.
pub fn own<'t>(
    files: impl IntoIterator<Item = (&'t TreePath, Option<&'t str>)>,
    tracked: impl Iterator<Item = &'t TreePath> + Clone,
    commands: impl IntoIterator<Item = &'t str>,
) -> Option<BTreeSet<TreePath>> {
    let (mut places, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    let mut named: Vec<&str> = commands.into_iter().flat_map(named_by).collect();
    for (path, text) in files {
        if is_setting(path) {
            // Another reader of descriptions, or words for every command.
            let words = text.filter(|_| name_of(path) == b"maven.config")?;
            named.extend(named_among(words.split_whitespace()));
            continue;
        }
        match (text.and_then(place), is_pom(path)) {
            (Some(place), _) => drop(places.insert(place)),
            (None, true) => return None,
            (None, false) => drop(unknown.insert(name_of(path))),
        }
    }
    let is_known = |typed: &str| {
        let last = typed.trim_end_matches('/').rsplit('/').next();
        let last = last.unwrap_or_default().as_bytes();
        let is_it = |path: &TreePath| name_of(path) == last && counts(path);
        let is_around = |path: &TreePath| {
            let mut parts = path.as_bytes().rsplit(|byte| *byte == b'/').skip(1);
            parts.any(|part| part == last)
        };
        let mut all = tracked.clone();
        matches!(last, b"." | b"..")
            || !unknown.contains(last) && all.any(|path| is_it(path) || is_around(path))
    };
    named.iter().all(|typed| is_known(typed)).then_some(places)
}

/// The descriptions that a command names for Maven. Quotes stay in its words: what they hold belongs
/// to the same call, and to the word they touch.
fn named_by(command: &str) -> Vec<&str> {
    let of_maven = |simple: &&str| {
        let mut words = simple
            .split_whitespace()
            .map(|word| word.trim_matches(QUOTES));
        words.any(|word| PROGRAMS.contains(&word.rsplit('/').next().unwrap_or(word)))
    };
    let all = command.split([';', '&', '|', '(', ')', '\n']);
    all.filter(of_maven)
        .flat_map(|simple| named_among(simple.split_whitespace()))
        .collect()
}

const QUOTES: [char; 4] = ['"', '\'', '`', '\\'];

/// `-f FILE`, `-fFILE`, `--file FILE`, `--file=FILE`. A name with a quote, or none, counts as one that
/// nobody knows.
fn named_among<'w>(words: impl Iterator<Item = &'w str>) -> Vec<&'w str> {
    const NOBODY_KNOWS: &str = "?";
    let (mut words, mut named) = (words, Vec::new());
    while let Some(word) = words.next() {
        let word = word.trim_start_matches(QUOTES);
        let option = word.trim_end_matches(QUOTES);
        let file = if let Some(file) = word.strip_prefix("--file=") {
            file
        } else if matches!(option, "-f" | "--file") {
            words.next().unwrap_or_default()
        } else if let Some(file) = word.strip_prefix("-f")
            && !matches!(option, "-fae" | "-ff" | "-fn")
        {
            file
        } else {
            continue;
        };
        let is_said = !file.is_empty() && !file.contains(QUOTES);
        named.push(if is_said { file } else { NOBODY_KNOWS });
    }
    named
}

/// Where Maven keeps what this file describes, below its repository. None where the file does not
/// say it in plain words.
pub fn place(pom: &str) -> Option<TreePath> {
    let found = coordinates(pom)?;
    let plain = |text: &&str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !text.is_empty() && text.chars().all(allowed) && !text.split('.').any(str::is_empty)
    };
    let artifact = found.artifact.filter(plain)?;
    let group = found.group.or(found.parent_group).filter(plain)?;
    let place = format!("{}/{artifact}", group.replace('.', "/"));
    Some(TreePath::new(place.into_bytes()))
}

#[derive(Default)]
struct Coordinates<'t> {
    group: Option<&'t str>,
    parent_group: Option<&'t str>,
    artifact: Option<&'t str>,
}

/// Reads the three elements by where they stand, and nothing else of the file.
fn coordinates(pom: &str) -> Option<Coordinates<'_>> {
    let mut found = Coordinates::default();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = pom;
    while let Some(at) = rest.find('<') {
        let (text, tag) = (rest[..at].trim(), &rest[at..]);
        let is_read = matches!(
            open.as_slice(),
            ["project", "groupId" | "artifactId"] | ["project", "parent", "groupId"]
        );
        // Its text goes on behind what begins here: a part would be taken for the whole.
        if is_read && !text.is_empty() && !tag.starts_with("</") {
            return None;
        }
        if let Some(after) = tag.strip_prefix("<!--") {
            rest = &after[after.find("-->")? + 3..];
            continue;
        }
        if tag.starts_with("<![") {
            return None;
        }
        let end = tag.find('>')?;
        rest = &tag[end + 1..];
        let inside = &tag[1..end];
        if inside.starts_with(['?', '!']) || inside.ends_with('/') {
            continue;
        }
        if let Some(name) = inside.strip_prefix('/') {
            match open.as_slice() {
                ["project", "groupId"] => found.group = Some(text),
                ["project", "parent", "groupId"] => found.parent_group = Some(text),
                ["project", "artifactId"] => found.artifact = Some(text),
                _ => {}
            }
            open.pop().filter(|opened| *opened == name.trim())?;
            continue;
        }
        open.push(inside.split_whitespace().next()?);
    }
    open.is_empty().then_some(found)
}
