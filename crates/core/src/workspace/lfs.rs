//! Pointers of Git LFS: the text that a repository keeps in the place of a large file. The file is
//! known by its bytes, so that nobody has to start the program that made the pointer.

use crate::values::digest::Digest;

/// What a pointer says of the file it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pointer {
    pub sha256: Digest,
    pub bytes: u64,
}

/// Nothing longer is a pointer.
pub const LONGEST: usize = 1024;
/// The value of the attribute `filter` for such files.
pub const FILTER: &[u8] = b"lfs";

impl Pointer {
    /// Reads a pointer as it is written today: three lines. One with extensions says nothing about
    /// the bytes of its file.
    pub fn read(text: &[u8]) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let rest = text.strip_prefix("version https://git-lfs.github.com/spec/v1\noid sha256:")?;
        let (hex, size) = rest.strip_suffix('\n')?.split_once("\nsize ")?;
        let plain = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self {
            sha256: hex.parse().ok()?,
            bytes: size.parse().ok().filter(|_| plain)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_three_lines_and_nothing_else() {
        let content = b"large";
        let digest = Digest::of(content);
        let text = format!(
            "version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {}\n",
            content.len()
        );
        let read = |text: &str| Pointer::read(text.as_bytes());
        assert_eq!(
            read(&text),
            Some(Pointer {
                sha256: digest,
                bytes: 5
            })
        );
        for other in [
            String::new(),
            text.trim_end().to_owned(),
            format!("{text}\n"),
            text.replace("size 5", "size +5"),
            text.replace("size 5", "size -5"),
            text.replace("size 5", "size 99999999999999999999999"),
            text.replace("size 5", "size 5\nmore 1"),
            text.replace("oid sha256:", "oid sha1:"),
            text.replace("oid sha256:", "oid sha256:AA"),
            text.replace("oid ", "ext-0-x sha256:00\noid "),
            text.replace("spec/v1", "spec/v2"),
            text.replace('\n', "\r\n"),
            format!("{text}{}", "x".repeat(LONGEST)),
        ] {
            assert_eq!(read(&other), None, "{other:?}");
        }
    }
}
