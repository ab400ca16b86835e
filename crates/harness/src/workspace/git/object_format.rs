//! The two ways in which git names objects. A repository has one of them, and whatever of ours holds
//! or reads its objects has the same.

/// How a repository names its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl ObjectFormat {
    pub const ALL: [Self; 2] = [Self::Sha1, Self::Sha256];

    /// By the word git has for it.
    pub fn named(word: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|format| format.word().as_bytes() == word)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// The one whose names are of this kind: whole, and nothing that could be something else.
    pub fn of_id(id: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match id.len() {
            40 => Some(Self::Sha1),
            64 => Some(Self::Sha256),
            _ => None,
        }
        .filter(|_| id.bytes().all(is_digit))
    }

    /// The configuration of a git directory with such objects. `core` goes on in its first section,
    /// and may begin others.
    pub fn config(self, core: &str) -> String {
        match self {
            Self::Sha1 => format!("[core]\n\trepositoryformatversion = 0\n{core}"),
            Self::Sha256 => format!(
                "[extensions]\n\tobjectformat = sha256\n[core]\n\trepositoryformatversion = 1\n{core}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_whole_or_none() {
        for (id, want) in [
            ("a".repeat(40), Some(ObjectFormat::Sha1)),
            ("0".repeat(64), Some(ObjectFormat::Sha256)),
            ("a".repeat(39), None),
            ("a".repeat(41), None),
            ("a".repeat(63), None),
            ("A".repeat(40), None),
            ("g".repeat(64), None),
            (format!("{}/", "a".repeat(63)), None),
            (format!("{}\n", "a".repeat(39)), None),
            (String::new(), None),
        ] {
            assert_eq!(ObjectFormat::of_id(&id), want, "{id:?}");
        }
    }

    #[test]
    fn a_word_of_git_names_one_and_no_other_word_does() {
        for format in ObjectFormat::ALL {
            assert_eq!(ObjectFormat::named(format.word().as_bytes()), Some(format));
        }
        for word in ["", "SHA1", "sha512", "sha1 ", "sha25"] {
            assert_eq!(ObjectFormat::named(word.as_bytes()), None, "{word:?}");
        }
    }
}
