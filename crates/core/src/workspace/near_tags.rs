//! Tags that are taken over from a repository: which names, and what becomes of several when there
//! is only one commit to put them on.

/// A tag to put on the one commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearTag {
    /// Below `refs/tags/`.
    pub name: String,
    /// An object with a date, not a name alone. Of two on a commit git prefers such a one, and of two
    /// such the later.
    pub annotated: bool,
}

/// The tags to put on one commit, the one that counts last: `annotated` is what `describe` names,
/// `any` what it names of any kind, and `numbered` the same of those with a number in them, which
/// version tools ask for.
pub fn on_one_commit(
    annotated: Option<NearTag>,
    any: Option<NearTag>,
    numbered: Option<NearTag>,
) -> Vec<NearTag> {
    let mut found: Vec<NearTag> = Vec::new();
    for tag in [annotated, any, numbered].into_iter().flatten() {
        found.retain(|known| known.name != tag.name);
        found.push(tag);
    }
    // It is nearer than an annotated one, and must not lose to it here.
    let several = found.iter().any(|tag| tag.annotated);
    if let Some(last) = found.last_mut() {
        last.annotated |= several;
    }
    found
}

/// Longer than anybody's, and short enough for any file system.
const LONGEST: usize = 200;

/// May a tag of this name be made in another repository? What git would let somebody give, and a bit
/// less: it ends up in a file of references, where a line end or a blank would be an order.
pub fn is_tag_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let part_is_good =
        |part: &str| !(part.is_empty() || part.starts_with('.') || part.ends_with(".lock"));
    name.len() <= LONGEST
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(forbidden)
        && name.split('/').all(part_is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_tags_the_one_that_version_tools_ask_for_counts() {
        let noted = |name: &str| {
            Some(NearTag {
                name: name.to_owned(),
                annotated: true,
            })
        };
        let plain = |name: &str| {
            Some(NearTag {
                name: name.to_owned(),
                annotated: false,
            })
        };
        let told = |tags: Vec<NearTag>| {
            let mut words = tags.iter().map(|tag| match tag.annotated {
                true => format!("{}*", tag.name),
                false => tag.name.clone(),
            });
            words.by_ref().collect::<Vec<_>>().join(" ")
        };
        for (annotated, any, numbered, wanted) in [
            (None, None, None, ""),
            (noted("v1"), noted("v1"), noted("v1"), "v1*"),
            (None, plain("v1"), plain("v1"), "v1"),
            (None, plain("new"), plain("v1"), "new v1"),
            (None, plain("new"), None, "new"),
            (noted("v1"), plain("new"), noted("v1"), "new v1*"),
            (noted("v1"), plain("v2"), plain("v2"), "v1* v2*"),
            (noted("old"), plain("new"), plain("v1"), "old* new v1*"),
            (noted("old"), plain("new"), None, "old* new*"),
        ] {
            assert_eq!(told(on_one_commit(annotated, any, numbered)), wanted);
        }
    }

    #[test]
    fn names_that_people_give() {
        for name in [
            "v1.2.3",
            "1.0",
            "release/2024.1",
            "pkg@1.2.3",
            "@scope/pkg@1.0.0",
            "1.2.3+build.5",
            "v1.0-rc.1",
            "veröffentlicht-1",
            "a'b\"c$(d);e&f|g",
        ] {
            assert!(is_tag_name(name), "{name}");
        }
    }

    #[test]
    fn names_that_could_be_taken_for_something_else() {
        let long = "v".repeat(LONGEST + 1);
        for name in [
            "",
            ".",
            "..",
            "@",
            "a..b",
            "../../HEAD",
            "a/../b",
            "/a",
            "a/",
            "a//b",
            ".hidden",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a.",
            "-d",
            "--all",
            "a b",
            "a\tb",
            "a\nb",
            "a\n^0000",
            "a\0b",
            "a\u{7f}b",
            "a\u{2028}b",
            "a~1",
            "a^{}",
            "a:b",
            "a?b",
            "a*b",
            "a[b",
            "a\\b",
            "a@{1}",
            long.as_str(),
        ] {
            assert!(!is_tag_name(name), "{name:?}");
        }
    }
}
