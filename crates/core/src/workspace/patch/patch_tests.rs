//! The patch reader: headers, changes of type, and any chunking.

use super::*;
use proptest::prelude::*;

fn paths(patch: &[u8]) -> Result<Vec<String>, PatchError> {
    let mut reader = PatchReader::default();
    reader.feed(patch);
    Ok(reader
        .finish_paths()?
        .iter()
        .map(ToString::to_string)
        .collect())
}

const TWO: &[u8] = b"diff --git a/a b b/a b\nindex 1..2 100644\n--- a/a b\n+++ b/a b\n@@ -1 +1 @@\n-x\n+diff --git a/q b/q\ndiff --git \"a/\\377\" \"b/\\377\"\nnew file mode 100644\n";

#[test]
fn reads_plain_and_quoted_headers_and_ignores_content() {
    assert_eq!(paths(TWO).unwrap(), ["a b", "\"\\377\""]);
    assert_eq!(paths(b"").unwrap(), Vec::<String>::new());
}

#[test]
fn refusals() {
    assert_eq!(paths(b"hello\n"), Err(PatchError::NoHeader));
    assert!(matches!(
        paths(b"diff --git a/x b/y\n"),
        Err(PatchError::Header(_))
    ));
    assert!(matches!(
        paths(b"diff --git a/ b/\n"),
        Err(PatchError::Header(_))
    ));
    assert!(matches!(
        paths(b"diff --git a/x b/x\ndiff --git a/x b/x\n"),
        Err(PatchError::Twice(_))
    ));
}

#[test]
fn a_change_of_type_is_one_path_in_two_parts() {
    let gone = "diff --git a/x b/x\ndeleted file mode 100644\n-was\n";
    let made = "diff --git a/x b/x\nnew file mode 120000\n+is\n";
    let other = "diff --git a/y b/y\nnew file mode 100644\n";
    assert_eq!(paths([gone, made].concat().as_bytes()).unwrap(), ["x"]);
    assert_eq!(
        paths([gone, made, other].concat().as_bytes()).unwrap(),
        ["x", "y"]
    );
    for bad in [
        [made, gone, ""],
        [gone, gone, ""],
        [gone, other, made],
        [made, made, ""],
        [gone, made, made],
    ] {
        assert!(
            matches!(paths(bad.concat().as_bytes()), Err(PatchError::Twice(_))),
            "{bad:?}"
        );
    }
}

proptest! {
    #[test]
    fn chunking_does_not_matter(cuts in proptest::collection::vec(1usize..20, 0..30)) {
        let mut reader = PatchReader::default();
        let mut rest = TWO;
        for cut in cuts {
            let (head, tail) = rest.split_at(cut.min(rest.len()));
            reader.feed(head);
            rest = tail;
        }
        reader.feed(rest);
        let got: Vec<String> = reader.finish_paths().unwrap().iter().map(ToString::to_string).collect();
        prop_assert_eq!(got, paths(TWO).unwrap());
    }

    #[test]
    fn lines_that_look_like_headers_are_read_alike_in_any_chunking(lines in proptest::collection::vec(0usize..6, 0..12), cut in 0usize..200) {
        const LINES: [&str; 6] = ["diff --git a/x b/x", "diff --git a/y b/y", "diff --git a/z b/q", "+diff --git a/x b/x", "", "diff --gi"];
        let text = lines.iter().map(|line| LINES[*line]).collect::<Vec<_>>().join("\n");
        let mut by_line = PatchReader::default();
        text.split_inclusive('\n').for_each(|line| by_line.feed(line.as_bytes()));
        let (head, tail) = text.as_bytes().split_at(cut.min(text.len()));
        let mut reader = PatchReader::default();
        reader.feed(head);
        reader.feed(tail);
        prop_assert_eq!(reader.finish(), by_line.finish());
    }

    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = paths(&bytes);
    }
}
