//! The words of a commit that the harness makes, and which names a branch of ours may have.

use crate::values::ids::RunId;

/// Nobody's address: it can reach no one.
pub const HARNESS: (&str, &str) = ("CTO Harness", "harness@cto.invalid");

/// Who makes a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Who {
    pub name: String,
    pub email: String,
}

impl Who {
    pub fn harness() -> Self {
        Self {
            name: HARNESS.0.to_owned(),
            email: HARNESS.1.to_owned(),
        }
    }

    /// As git would take it: nothing that ends a line or an address. None where nothing is left.
    pub fn named(name: &str, email: &str) -> Option<Self> {
        let clean = |text: &str| {
            let kept = text
                .chars()
                .filter(|c| !c.is_control() && !matches!(c, '<' | '>'));
            kept.take(200).collect::<String>().trim().to_owned()
        };
        let (name, email) = (clean(name), clean(email));
        (!name.is_empty() && !email.is_empty()).then_some(Self { name, email })
    }
}

/// What the trailers of a commit name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trailers {
    pub run: RunId,
    /// The request that was approved, where an approval was needed.
    pub approval: Option<String>,
    /// The commit that this one takes back.
    pub reverts: Option<String>,
}

/// The longest message that is taken.
pub const LONGEST: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    #[error("the message is empty")]
    Empty,
    #[error("the message is longer than 64 KiB")]
    TooLong,
    #[error("the message has a character that moves or hides text")]
    Hidden,
    #[error("the message names a run or an approval itself; the harness does that")]
    OwnTrailer,
}

const RUN: &str = "Cto-Run";
const APPROVAL: &str = "Cto-Approval";
const REVERTS: &str = "Cto-Reverts";

/// Words and trailers as one message: a title, what else was said, and a last paragraph of trailers.
pub fn message(words: &str, trailers: &Trailers) -> Result<String, BadMessage> {
    if words.len() > LONGEST {
        return Err(BadMessage::TooLong);
    }
    let hidden = |c: char| c != '\n' && c != '\t' && crate::values::text::is_dangerous(c);
    if words.chars().any(hidden) {
        return Err(BadMessage::Hidden);
    }
    let lines: Vec<&str> = words.lines().map(str::trim_end).collect();
    let is_own = |line: &&str| {
        let word = line.split(':').next().unwrap_or_default().trim();
        [RUN, APPROVAL, REVERTS]
            .iter()
            .any(|own| word.eq_ignore_ascii_case(own))
    };
    if lines.iter().any(is_own) {
        return Err(BadMessage::OwnTrailer);
    }
    let text = lines.join("\n");
    let text = text.trim_matches('\n');
    if text.trim().is_empty() {
        return Err(BadMessage::Empty);
    }
    let mut last = format!("{RUN}: {}\n", trailers.run);
    if let Some(approval) = &trailers.approval {
        last.push_str(&format!("{APPROVAL}: {approval}\n"));
    }
    if let Some(reverts) = &trailers.reverts {
        last.push_str(&format!("{REVERTS}: {reverts}\n"));
    }
    Ok(format!("{text}\n\n{last}"))
}

/// The branch that a run lands on where no other is named.
pub fn branch_of_run(run: &RunId) -> String {
    format!("cto/{run}")
}

/// May a branch of ours have this name? Stricter than git: no name that a shell, a listing or a file
/// system takes for something else.
pub fn is_branch_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.ends_with(".lock")
    };
    let plain = |c: char| {
        !c.is_whitespace()
            && !crate::values::text::is_dangerous(c)
            && !matches!(
                c,
                '~' | '^'
                    | ':'
                    | '?'
                    | '*'
                    | '['
                    | ']'
                    | '\\'
                    | '"'
                    | '\''
                    | '`'
                    | '$'
                    | '<'
                    | '>'
                    | '|'
                    | '&'
                    | ';'
            )
    };
    name.len() <= 200
        && name != "HEAD"
        && name != "@"
        && !name.contains("..")
        && !name.contains("@{")
        && name.split('/').all(part)
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailers() -> Trailers {
        Trailers {
            run: "20260102T030405Z-case-23abcdef".parse().unwrap(),
            approval: None,
            reverts: None,
        }
    }

    #[test]
    fn a_message_is_words_and_trailers() {
        let plain = message("Fix it\n\nWhy.  \n\n", &trailers()).unwrap();
        assert_eq!(
            plain,
            "Fix it\n\nWhy.\n\nCto-Run: 20260102T030405Z-case-23abcdef\n"
        );
        let all = Trailers {
            approval: Some("r-1".into()),
            reverts: Some("2".repeat(40)),
            ..trailers()
        };
        let text = message("Back", &all).unwrap();
        assert!(
            text.contains("\nCto-Approval: r-1\nCto-Reverts: 2222"),
            "{text}"
        );
    }

    #[test]
    fn words_that_say_something_else_are_refused() {
        for (words, why) in [
            ("", BadMessage::Empty),
            (" \n\t\n", BadMessage::Empty),
            ("a\u{202e}b", BadMessage::Hidden),
            ("a\u{1b}[2J", BadMessage::Hidden),
            ("a\0b", BadMessage::Hidden),
            ("x\n\ncto-run: another", BadMessage::OwnTrailer),
            ("x\n\nCto-Approval : mine", BadMessage::OwnTrailer),
        ] {
            assert_eq!(message(words, &trailers()), Err(why), "{words:?}");
        }
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(message(&long, &trailers()), Err(BadMessage::TooLong));
    }

    #[test]
    fn names_of_branches() {
        for name in [
            "main",
            "cto/20260102T030405Z-case-23abcdef",
            "a-b_c.d",
            "über",
        ] {
            assert!(is_branch_name(name), "{name}");
        }
        let run: RunId = "20260102T030405Z-case-23abcdef".parse().unwrap();
        assert!(is_branch_name(&branch_of_run(&run)));
        for name in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            ".a",
            "a/.b",
            "a..b",
            "a.",
            "a.lock",
            "a.lock/b",
            "-a",
            "HEAD",
            "@",
            "a@{1}",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[1]",
            "a\\b",
            "a\nb",
            "$(x)",
            "a;b",
            "a\u{202e}",
        ] {
            assert!(!is_branch_name(name), "{name:?}");
        }
        assert!(!is_branch_name(&"x".repeat(201)));
    }

    #[test]
    fn a_person_is_named_in_one_line() {
        let who = Who::named("A\nB <x>", "a@b>\n").unwrap();
        assert_eq!((who.name.as_str(), who.email.as_str()), ("AB x", "a@b"));
        assert_eq!(Who::named("<>", "a@b"), None);
        assert_eq!(Who::named("A", "\n"), None);
    }
}
