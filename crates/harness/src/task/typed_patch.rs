//! A patch as people have it in a file: with the colours of a terminal, or with names that lack `a/` and
//! `b/`. It is read as what it means; what cannot be read is said in words.

use std::collections::BTreeSet;

use cto_core::values::paths::TreePath;
use cto_core::workspace::patch::looks_like_patch;

const HEADER: &str = "diff --git ";

/// The patch in git's usual spelling. None where the file is no patch at all.
pub fn usual(bytes: &[u8]) -> Option<Result<String, String>> {
    let bytes = without_colours(bytes);
    if !looks_like_patch(&bytes) {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    Some(with_prefixes(&text))
}

/// Without `ESC [ … m`. Content that holds one as it is would lose it, so nothing is taken out where
/// the first line is plain.
fn without_colours(bytes: &[u8]) -> Vec<u8> {
    if bytes.first() != Some(&0x1b) {
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let style = after.strip_prefix(b"[").filter(|_| *first == 0x1b);
        let end = style.and_then(|style| {
            let letters = |byte: &u8| !(byte.is_ascii_digit() || *byte == b';');
            let end = style.iter().position(letters)?;
            matches!(style[end], b'm' | b'K').then(|| &style[end + 1..])
        });
        match end {
            Some(end) => rest = end,
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// With `a/` and `b/` before its names, where it was made without any.
fn with_prefixes(text: &str) -> Result<String, String> {
    let headers = || text.lines().filter_map(|line| line.strip_prefix(HEADER));
    let is_bare = |names: &str| same_twice(names).is_some();
    if headers().count() == 0 || !headers().all(is_bare) {
        return match headers().any(|names| is_bare(names) || !has_prefixes(names)) {
            true => Err(
                "its names do not begin with a/ and b/; make it with `git diff --default-prefix`"
                    .into(),
            ),
            false => Ok(text.to_owned()),
        };
    }
    let (mut out, mut in_head) = (String::with_capacity(text.len() + 256), false);
    for line in text.split_inclusive('\n') {
        if let Some(name) = line.trim_end().strip_prefix(HEADER).and_then(same_twice) {
            in_head = true;
            out.push_str(&format!("{HEADER}a/{name} b/{name}\n"));
            continue;
        }
        in_head &= !line.starts_with("@@ ");
        let renamed = [("--- ", "a/"), ("+++ ", "b/")]
            .into_iter()
            .filter(|_| in_head)
            .find_map(|(mark, prefix)| {
                let name = line.strip_prefix(mark)?;
                (!name.starts_with("/dev/null")).then(|| format!("{mark}{prefix}{name}"))
            });
        match renamed {
            Some(line) => out.push_str(&line),
            None => out.push_str(line),
        }
    }
    Ok(out)
}

/// `X X`: one name twice, without quotes.
fn same_twice(names: &str) -> Option<&str> {
    let half = names.len().checked_sub(1)? / 2;
    let (left, right) = (names.get(..half)?, names.get(half + 1..)?);
    let blank = names.as_bytes().get(half) == Some(&b' ');
    (blank && left == right && !left.is_empty() && !left.starts_with('"')).then_some(left)
}

/// `a/… b/…`, or one of the pairs that git's mnemonic prefixes have; quoted or not.
fn has_prefixes(names: &str) -> bool {
    let pair = |(left, right): (&str, &str)| {
        let is = |begin: &str, letter: &str| {
            begin.strip_prefix('"').unwrap_or(begin).starts_with(letter)
        };
        is(names, left)
            && (names.contains(&format!(" {right}")) || names.contains(&format!(" \"{right}")))
    };
    [
        ("a/", "b/"),
        ("i/", "w/"),
        ("c/", "i/"),
        ("c/", "w/"),
        ("o/", "w/"),
    ]
    .into_iter()
    .any(pair)
}

/// Names that stand in the heads of a patch. More than it changes, perhaps, and never less.
pub fn named_in(patch: &str) -> BTreeSet<TreePath> {
    let name = |line: &str| -> Option<TreePath> {
        let name = line
            .strip_prefix("--- ")
            .or_else(|| line.strip_prefix("+++ "))
            .or_else(|| line.strip_prefix("rename to "))
            .or_else(|| line.strip_prefix("rename from "))?;
        let name = name.split('\t').next().unwrap_or_default().trim_end();
        let parsed = TreePath::parse(name.as_bytes()).ok()?;
        let is_rename = line.starts_with("rename ");
        let bytes = parsed.as_bytes();
        let inner = match is_rename {
            true => bytes,
            false => bytes.get(2..).filter(|_| bytes.get(1) == Some(&b'/'))?,
        };
        (!inner.is_empty()).then(|| TreePath::new(inner))
    };
    patch.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "diff --git a/x.txt b/x.txt\nindex 1..2 100644\n--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-- a\n+++ b\n";

    #[test]
    fn a_plain_patch_stays_as_it_is() {
        assert_eq!(usual(PLAIN.as_bytes()), Some(Ok(PLAIN.to_owned())));
        let mnemonic = PLAIN.replace("a/x", "i/x").replace("b/x", "w/x");
        assert_eq!(usual(mnemonic.as_bytes()), Some(Ok(mnemonic.clone())));
        let old = "--- x.orig\n+++ x\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(usual(old.as_bytes()), Some(Ok(old.to_owned())));
        assert_eq!(usual(b"[[step]]\n"), None);
        assert_eq!(usual(b"\x1b[1mhello"), None);
        // Colours in content are content.
        let inside = format!("{PLAIN}+\u{1b}[31mred\n");
        assert_eq!(usual(inside.as_bytes()), Some(Ok(inside.clone())));
    }

    #[test]
    fn colours_and_bare_names_are_read() {
        let coloured = "\u{1b}[1mdiff --git a/x.txt b/x.txt\u{1b}[m\n\u{1b}[1mindex 1..2 100644\u{1b}[m\n\u{1b}[1m--- a/x.txt\u{1b}[m\n\u{1b}[1m+++ b/x.txt\u{1b}[m\n\u{1b}[36m@@ -1 +1 @@\u{1b}[m\n\u{1b}[31m-- a\u{1b}[m\n\u{1b}[32m+\u{1b}[m\u{1b}[1;32m++ b\u{1b}[0m\u{1b}[K\n";
        assert_eq!(usual(coloured.as_bytes()), Some(Ok(PLAIN.to_owned())));
        let bare = PLAIN.replace("a/x", "x").replace("b/x", "x");
        assert_eq!(usual(bare.as_bytes()), Some(Ok(PLAIN.to_owned())));
        let new = "diff --git n n\nnew file mode 100644\n--- /dev/null\n+++ n\n@@ -0,0 +1 @@\n+x\n";
        let read = usual(new.as_bytes()).unwrap().unwrap();
        assert!(read.contains("--- /dev/null\n+++ b/n\n"), "{read}");
        // A directory called `a` has bare names too.
        let in_a = "diff --git a/x a/x\n--- a/x\n+++ a/x\n@@ -1 +1 @@\n-1\n+2\n";
        assert!(
            usual(in_a.as_bytes())
                .unwrap()
                .unwrap()
                .contains("+++ b/a/x\n")
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_words() {
        for odd in [
            "diff --git old new\nrename from old\nrename to new\n",
            "diff --git x x\n--- x\n+++ x\n@@ -1 +1 @@\n-1\n+2\ndiff --git a/y b/y\n",
        ] {
            let why = usual(odd.as_bytes()).unwrap().unwrap_err();
            assert!(why.contains("a/ and b/"), "{why}");
        }
    }

    #[test]
    fn names_are_found() {
        let names: Vec<String> = named_in(PLAIN).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["x.txt"]);
        assert_eq!(named_in("--- /dev/null\n+++ b/new file\n").len(), 1);
    }
}
