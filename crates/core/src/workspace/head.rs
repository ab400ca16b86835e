//! Where HEAD of a git directory stands, read from the bytes of a few files by rules of our own: no git is asked, and whoever
//! wrote the bytes may wish us ill. In doubt there is no commit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::near_tags;

/// The file that says where HEAD stands, and the one that holds references that have no file of their own.
pub const HEAD_FILE: &str = "HEAD";
pub const PACKED_FILE: &str = "packed-refs";
/// Longer files are not read.
pub const MAX_REF: u64 = 4 << 10;
pub const MAX_PACKED: u64 = 4 << 20;
/// So many references may lead to one another.
const MAX_STEPS: usize = 5;

/// Where HEAD stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// The name of a commit. Whether there is one of that name was not asked.
    Commit(String),
    None(HeadProblem),
}

/// Why there is no commit to name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeadProblem {
    Missing,
    Unborn,
    NotAFile,
    TooLarge,
    Garbled,
    StrangeName,
    Loop,
    Unreadable,
}

impl HeadProblem {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "there is no HEAD",
            Self::Unborn => "its branch has no commit",
            Self::NotAFile => "what lies in the place of HEAD or of its branch is no file",
            Self::TooLarge => "the file of HEAD or of its branch is too large to be one",
            Self::Garbled => "HEAD or its branch says neither a commit nor a branch",
            Self::StrangeName => "HEAD leads to a name that no branch has",
            Self::Loop => "HEAD leads from branch to branch without an end",
            Self::Unreadable => "HEAD or its branch cannot be read",
        }
    }
}

impl Head {
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Commit(id) => Some(id),
            Self::None(_) => None,
        }
    }

    /// In words: a commit's name, or why there is none.
    pub fn words(&self) -> &str {
        match self {
            Self::Commit(id) => id,
            Self::None(problem) => problem.sentence(),
        }
    }

    /// Was something committed since? Only where both are known: a HEAD that was ruined says nothing.
    pub fn moved_from(&self, before: &Self) -> bool {
        matches!((before.commit(), self.commit()), (Some(before), Some(now)) if before != now)
    }
}

/// Before an engine started, and after all of it had ended. Observed by the harness.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeadSeen {
    pub before: Head,
    pub after: Head,
}

impl HeadSeen {
    /// Is this, whole or as the beginning that people write, where HEAD stood at the end?
    pub fn is_at(&self, named: &str) -> bool {
        const SHORTEST: usize = 7;
        let at_end = self.after.commit();
        named.len() >= SHORTEST && at_end.is_some_and(|id| id.starts_with(named))
    }
}

/// What a file of the git directory holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    Bytes(Vec<u8>),
    Absent,
    Directory,
}

/// Resolves HEAD. `read` hands out a file below the git directory that is no longer than this.
pub fn resolve(read: &mut dyn FnMut(&str, u64) -> Result<Found, HeadProblem>) -> Head {
    match follow(read) {
        Ok(id) => Head::Commit(id),
        Err(problem) => Head::None(problem),
    }
}

fn follow(
    read: &mut dyn FnMut(&str, u64) -> Result<Found, HeadProblem>,
) -> Result<String, HeadProblem> {
    let first = match read(HEAD_FILE, MAX_REF)? {
        Found::Bytes(bytes) => bytes,
        Found::Absent => return Err(HeadProblem::Missing),
        Found::Directory => return Err(HeadProblem::NotAFile),
    };
    let mut said = said_by(&first)?;
    for _ in 0..MAX_STEPS {
        let name = match said {
            Said::Commit(id) => return Ok(id),
            Said::Branch(name) => name,
        };
        said = match read(&name, MAX_REF)? {
            Found::Bytes(bytes) => said_by(&bytes)?,
            // An empty directory stays where a branch of a longer name was packed.
            Found::Absent | Found::Directory => match read(PACKED_FILE, MAX_PACKED)? {
                Found::Bytes(bytes) => Said::Commit(packed(&bytes, &name)?),
                Found::Absent => return Err(HeadProblem::Unborn),
                Found::Directory => return Err(HeadProblem::NotAFile),
            },
        };
    }
    match said {
        Said::Commit(id) => Ok(id),
        Said::Branch(_) => Err(HeadProblem::Loop),
    }
}

enum Said {
    Commit(String),
    Branch(String),
}

fn said_by(bytes: &[u8]) -> Result<Said, HeadProblem> {
    let text = bytes.trim_ascii_end();
    let Some(name) = text.strip_prefix(b"ref:") else {
        return commit(text).map(Said::Commit);
    };
    let name = str::from_utf8(name.trim_ascii()).map_err(|_| HeadProblem::StrangeName)?;
    let is_name = name.starts_with("refs/") && near_tags::is_tag_name(name);
    match is_name {
        true => Ok(Said::Branch(name.to_owned())),
        false => Err(HeadProblem::StrangeName),
    }
}

/// A whole name in small letters, as git writes it; all zeros names nothing.
fn commit(text: &[u8]) -> Result<String, HeadProblem> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_id = matches!(text.len(), 40 | 64) && text.iter().all(is_digit);
    match is_id && text.iter().any(|byte| *byte != b'0') {
        true => Ok(String::from_utf8_lossy(text).into_owned()),
        false => Err(HeadProblem::Garbled),
    }
}

/// The line of a reference among those that have no file of their own. Two that disagree are none.
fn packed(bytes: &[u8], name: &str) -> Result<String, HeadProblem> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let told = lines.filter(|line| !matches!(line.first(), None | Some(b'#' | b'^')));
    let mut found: Option<&[u8]> = None;
    for line in told {
        let Some(at) = line.iter().position(|byte| *byte == b' ') else {
            continue;
        };
        let (id, rest) = (&line[..at], &line[at + 1..]);
        if rest.trim_ascii_end() != name.as_bytes() {
            continue;
        }
        if found.is_some_and(|before| before != id) {
            return Err(HeadProblem::Garbled);
        }
        found = Some(id);
    }
    commit(found.ok_or(HeadProblem::Unborn)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn head(files: &[(&str, &str)]) -> Head {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        resolve(&mut |name, most| match files.get(name) {
            None => Ok(Found::Absent),
            Some(&"DIR") => Ok(Found::Directory),
            Some(&"LINK") => Err(HeadProblem::NotAFile),
            Some(text) if text.len() as u64 > most => Err(HeadProblem::TooLarge),
            Some(text) => Ok(Found::Bytes(text.as_bytes().to_vec())),
        })
    }

    #[test]
    fn loose_packed_detached_and_symbolic() {
        let at = |id: &str| Head::Commit(id.to_owned());
        let main = ("HEAD", "ref: refs/heads/main\n");
        let line =
            format!("# pack-refs with: peeled\n{B} refs/heads/mainly\n{A} refs/heads/main\n^{B}\n");
        let long = "c".repeat(64);
        for (files, want) in [
            (vec![("HEAD", A)], at(A)),
            (vec![("HEAD", long.as_str())], at(&long)),
            (vec![main, ("refs/heads/main", A)], at(A)),
            (vec![main, ("packed-refs", &line)], at(A)),
            // A file of its own counts before the packed one.
            (
                vec![main, ("refs/heads/main", B), ("packed-refs", &line)],
                at(B),
            ),
            (
                vec![main, ("refs/heads/main", "DIR"), ("packed-refs", &line)],
                at(A),
            ),
            (
                vec![
                    ("HEAD", "ref:refs/heads/x"),
                    ("refs/heads/x", "ref: refs/heads/main"),
                    ("refs/heads/main", A),
                ],
                at(A),
            ),
        ] {
            assert_eq!(head(&files), want, "{files:?}");
        }
    }

    #[test]
    fn whatever_is_wrong_has_a_word_and_is_no_commit() {
        use HeadProblem::*;
        let main = ("HEAD", "ref: refs/heads/main\n");
        let huge = "x".repeat(5000);
        let twice = format!("{A} refs/heads/main\n{B} refs/heads/main\n");
        let short = "a".repeat(39);
        let zeros = "0".repeat(40);
        let rows: Vec<(Vec<(&str, &str)>, HeadProblem)> = vec![
            (vec![], Missing),
            (vec![("HEAD", "DIR")], NotAFile),
            (vec![("HEAD", "LINK")], NotAFile),
            (vec![("HEAD", "")], Garbled),
            (vec![("HEAD", &huge)], TooLarge),
            (vec![("HEAD", &short)], Garbled),
            (vec![("HEAD", &zeros)], Garbled),
            (
                vec![("HEAD", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")],
                Garbled,
            ),
            (vec![("HEAD", "ref: ../../etc/passwd")], StrangeName),
            (vec![("HEAD", "ref: refs/../../x")], StrangeName),
            (vec![("HEAD", "ref: refs/heads/.invalid")], StrangeName),
            (vec![("HEAD", "ref: HEAD")], StrangeName),
            (vec![("HEAD", "ref: refs/heads/a b")], StrangeName),
            (vec![("HEAD", "ref: /etc/passwd")], StrangeName),
            (vec![main], Unborn),
            (vec![main, ("packed-refs", "DIR")], NotAFile),
            (vec![main, ("packed-refs", "nonsense\n")], Unborn),
            (
                vec![main, ("packed-refs", "zzz refs/heads/main\n")],
                Garbled,
            ),
            (vec![main, ("packed-refs", &twice)], Garbled),
            (vec![main, ("refs/heads/main", "LINK")], NotAFile),
            (vec![main, ("refs/heads/main", "garbage")], Garbled),
            (
                vec![main, ("refs/heads/main", "ref: refs/heads/main")],
                Loop,
            ),
        ];
        for (files, want) in rows {
            assert_eq!(head(&files), Head::None(want), "{files:?}");
            assert!(!want.sentence().is_empty());
        }
        assert_eq!(
            resolve(&mut |_, _| Ok(Found::Bytes(b"ref: refs/heads/\xff".to_vec()))),
            Head::None(StrangeName)
        );
    }

    #[test]
    fn only_a_known_head_moves() {
        let (a, b) = (Head::Commit(A.into()), Head::Commit(B.into()));
        let none = Head::None(HeadProblem::Unborn);
        assert!(b.moved_from(&a) && !a.moved_from(&a));
        assert!(!b.moved_from(&none) && !none.moved_from(&a) && !none.moved_from(&none));
        let seen = HeadSeen {
            before: a.clone(),
            after: b,
        };
        assert!(seen.is_at(B) && seen.is_at(&B[..7]) && !seen.is_at(&B[..6]) && !seen.is_at(A));
        assert_eq!(
            serde_json::to_value(HeadSeen {
                before: a,
                after: none
            })
            .unwrap(),
            serde_json::json!({"before": {"commit": A}, "after": {"none": "unborn"}})
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(a: Vec<u8>, b: Vec<u8>) {
            let mut turn = false;
            let _ = resolve(&mut |_, _| {
                turn = !turn;
                Ok(Found::Bytes(if turn { a.clone() } else { b.clone() }))
            });
            let _ = packed(&a, "refs/heads/main");
        }
    }
}
