//! Names that git takes for its own directory, here or on another file system, and so accepts in no
//! tree.

/// Is this the name of a git directory in any spelling that git refuses: any case, the short name that
/// NTFS gives it, dots and spaces that are dropped there, a stream of it?
pub fn is_gits_own(name: &[u8]) -> bool {
    [&b".git"[..], b"git~1"].iter().any(|own| {
        let Some((begin, rest)) = name.split_at_checked(own.len()) else {
            return false;
        };
        let dropped = rest.iter().take_while(|byte| matches!(byte, b'.' | b' '));
        let rest = rest.get(dropped.count()..).unwrap_or_default();
        begin.eq_ignore_ascii_case(own) && matches!(rest.first(), None | Some(b':' | b'\\'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            ".git.",
            ".git ",
            ".git. .",
            "git~1 ",
            ".git::$INDEX_ALLOCATION",
            "git~1:x",
            ".git\\config",
        ] {
            assert!(is_gits_own(name.as_bytes()), "{name}");
        }
        for name in [
            "git",
            ".gitignore",
            ".gitattributes",
            ".github",
            "git~2",
            "git~10",
            ".git-x",
            ".gitx",
            "a.git",
            "",
            ".",
            "..",
        ] {
            assert!(!is_gits_own(name.as_bytes()), "{name}");
        }
    }
}
