//! Repository-relative paths and the rules that match them, component by component.
//!
//! Text rules come from people and are checked here once; measured paths come from a hostile tree
//! and are bytes. Neither ever reaches the file system from this module.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    #[error("the path is empty")]
    Empty,
    #[error("the path is absolute; write it relative to the repository root")]
    Absolute,
    #[error("the path leaves the repository (`..`)")]
    Parent,
    #[error("the path has a `.` component; leave it out")]
    Current,
    #[error("the path has an empty component (`//`)")]
    EmptyComponent,
    #[error("the path has a backslash; use `/`")]
    Backslash,
    #[error("the path has a control character")]
    Control,
    #[error("the path names git metadata (`.git`), which no task may change")]
    GitMetadata,
    #[error("the path is longer than 4096 bytes")]
    TooLong,
    #[error("`**` is not part of the grammar; `dir/` means the whole subtree")]
    DoubleStar,
}

/// One path rule of a contract: a file, `dir/` for a subtree, `*` within one component.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathRule(String);

impl PathRule {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Does this rule cover the measured path?
    pub fn covers(&self, path: &TreePath) -> bool {
        let subtree = self.0.ends_with('/');
        let rule: Vec<&str> = self.0.trim_end_matches('/').split('/').collect();
        let parts: Vec<&[u8]> = path.as_bytes().split(|b| *b == b'/').collect();
        let depth_ok = if subtree {
            parts.len() > rule.len()
        } else {
            parts.len() == rule.len()
        };
        depth_ok
            && rule
                .iter()
                .zip(&parts)
                .all(|(pattern, part)| component_matches(pattern.as_bytes(), part))
    }

    /// Is every path below this directory covered?
    pub fn covers_all_below(&self, dir: &TreePath) -> bool {
        let (rule, parts) = self.beside(dir);
        self.0.ends_with('/') && rule <= parts && self.agrees(dir)
    }

    /// Could some path below this directory, there already or not, be covered?
    pub fn reaches_below(&self, dir: &TreePath) -> bool {
        let (rule, parts) = self.beside(dir);
        (self.0.ends_with('/') || parts < rule) && self.agrees(dir)
    }

    /// How many components the rule and the path have.
    fn beside(&self, path: &TreePath) -> (usize, usize) {
        (
            self.0.trim_end_matches('/').split('/').count(),
            path.as_bytes().split(|b| *b == b'/').count(),
        )
    }

    /// Do rule and path agree as far as both go?
    fn agrees(&self, path: &TreePath) -> bool {
        let parts = path.as_bytes().split(|b| *b == b'/');
        self.0
            .trim_end_matches('/')
            .split('/')
            .zip(parts)
            .all(|(pattern, part)| component_matches(pattern.as_bytes(), part))
    }

    /// Is every path that this rule covers covered by the other? In doubt it is not.
    pub fn lies_within(&self, other: &Self) -> bool {
        let parts = |rule: &Self| -> Vec<String> {
            let rule = rule.0.trim_end_matches('/');
            rule.split('/').map(str::to_owned).collect()
        };
        let (own, others) = (parts(self), parts(other));
        let deep_enough = match (self.0.ends_with('/'), other.0.ends_with('/')) {
            (true, true) => own.len() >= others.len(),
            (false, true) => own.len() > others.len(),
            (false, false) => own.len() == others.len(),
            (true, false) => false,
        };
        let part_within = |(own, other): (&String, &String)| {
            let is_plain = !own.contains('*');
            own == other
                || other == "*"
                || (is_plain && component_matches(other.as_bytes(), own.as_bytes()))
        };
        deep_enough && own.iter().zip(&others).all(part_within)
    }

    pub fn names_git_metadata(&self) -> bool {
        self.0
            .split('/')
            .any(|part| part.eq_ignore_ascii_case(".git"))
    }
}

/// `*` matches any run of bytes. Pieces are found left to right, so a hostile name costs linear
/// time.
fn component_matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut pieces = pattern.split(|b| *b == b'*');
    let head = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(head) else {
        return false;
    };
    let Some(tail) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match find(rest, piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

fn find(text: &[u8], piece: &[u8]) -> Option<usize> {
    (0..=text.len().checked_sub(piece.len())?).find(|at| text[*at..].starts_with(piece))
}

impl FromStr for PathRule {
    type Err = PathProblem;

    fn from_str(text: &str) -> Result<Self, PathProblem> {
        if text.is_empty() {
            return Err(PathProblem::Empty);
        }
        if text.len() > 4096 {
            return Err(PathProblem::TooLong);
        }
        if text.starts_with('/') {
            return Err(PathProblem::Absolute);
        }
        if text.contains('\\') {
            return Err(PathProblem::Backslash);
        }
        if text.chars().any(char::is_control) {
            return Err(PathProblem::Control);
        }
        if text.contains("**") {
            return Err(PathProblem::DoubleStar);
        }
        for part in text.strip_suffix('/').unwrap_or(text).split('/') {
            match part {
                "" => return Err(PathProblem::EmptyComponent),
                ".." => return Err(PathProblem::Parent),
                "." => return Err(PathProblem::Current),
                _ => {}
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PathRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PathRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PathRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PathRule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": 4096,
            "description": "repository-relative: a file, `dir/` for a subtree, `*` within one component"})
    }
}

/// A path found in a tree: any bytes but NUL. Written as text when it is plain UTF-8, else quoted
/// with octal escapes inside double quotes, the way git prints such names; the two forms never
/// collide.
///
/// Trees of many thousand files are copied many times in a run: a copy shares the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(Arc<[u8]>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("badly quoted path")]
pub struct BadQuoting;

impl TreePath {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into().into())
    }

    /// The same of bytes that belong to somebody else.
    pub fn of(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn is_plain(&self) -> bool {
        std::str::from_utf8(&self.0).is_ok_and(|text| {
            !text.starts_with('"') && !text.chars().any(|c| c.is_control() || c == '\\')
        })
    }

    /// Reads what `Display` wrote, and what git writes with `core.quotePath=true`.
    pub fn parse(text: &[u8]) -> Result<Self, BadQuoting> {
        let Some(quoted) = text.strip_prefix(b"\"") else {
            return Ok(Self::of(text));
        };
        let inner = quoted.strip_suffix(b"\"").ok_or(BadQuoting)?;
        let mut out = Vec::with_capacity(inner.len());
        let mut bytes = inner.iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => return Err(BadQuoting),
                b'\\' => out.push(unescape(&mut bytes)?),
                plain => out.push(plain),
            }
        }
        Ok(Self::new(out))
    }
}

fn unescape(bytes: &mut impl Iterator<Item = u8>) -> Result<u8, BadQuoting> {
    let octal = |b: u8| {
        matches!(b, b'0'..=b'7')
            .then(|| u32::from(b - b'0'))
            .ok_or(BadQuoting)
    };
    Ok(match bytes.next().ok_or(BadQuoting)? {
        b'a' => 7,
        b'b' => 8,
        b't' => 9,
        b'n' => 10,
        b'v' => 11,
        b'f' => 12,
        b'r' => 13,
        b'"' => b'"',
        b'\\' => b'\\',
        first => {
            let second = octal(bytes.next().ok_or(BadQuoting)?)?;
            let third = octal(bytes.next().ok_or(BadQuoting)?)?;
            u8::try_from(octal(first)? * 64 + second * 8 + third).map_err(|_| BadQuoting)?
        }
    })
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plain() {
            return f.write_str(std::str::from_utf8(&self.0).map_err(|_| fmt::Error)?);
        }
        f.write_str("\"")?;
        for byte in self.0.iter() {
            match byte {
                b'"' => f.write_str("\\\"")?,
                b'\\' => f.write_str("\\\\")?,
                0x20..=0x7e => write!(f, "{}", char::from(*byte))?,
                other => write!(f, "\\{other:03o}")?,
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreePath({self})")
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TreePath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TreePath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string",
            "description": "a path as measured; names that are not plain UTF-8 are in double quotes with octal escapes"})
    }
}

/// What the contract says about one changed path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathStanding {
    Allowed,
    Disallowed,
    Forbidden,
}

/// Forbidden beats allowed; unlisted is disallowed.
pub fn path_standing(
    path: &TreePath,
    allowed: &[PathRule],
    forbidden: &[PathRule],
) -> PathStanding {
    if forbidden.iter().any(|rule| rule.covers(path)) {
        PathStanding::Forbidden
    } else if allowed.iter().any(|rule| rule.covers(path)) {
        PathStanding::Allowed
    } else {
        PathStanding::Disallowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(text: &str) -> PathRule {
        text.parse().unwrap()
    }

    fn path(text: &str) -> TreePath {
        TreePath::new(text)
    }

    #[test]
    fn a_rule_lies_within_another() {
        for (inner, outer, want) in [
            ("src/", "src/", true),
            ("src/a/", "src/", true),
            ("src/a.py", "src/", true),
            ("src", "src/", false),
            ("src/", "src/a.py", false),
            ("src/a.py", "src/a.py", true),
            ("src/a.py", "src/*.py", true),
            ("src/*.py", "src/*.py", true),
            ("src/*.py", "src/a*.py", false),
            ("src/*", "src/", true),
            ("*/", "src/", false),
            ("srcs/a", "src/", false),
            ("x/y/z", "*/", true),
        ] {
            assert_eq!(
                rule(inner).lies_within(&rule(outer)),
                want,
                "{inner} in {outer}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_lies_within_covers_no_more(
            inner in "[ab*]{1,2}(/[ab*]{1,2}){0,2}/?",
            outer in "[ab*]{1,2}(/[ab*]{1,2}){0,2}/?",
            found in "[ab]{1,2}(/[ab]{1,2}){0,3}",
        ) {
            if let (Ok(inner), Ok(outer)) = (inner.parse::<PathRule>(), outer.parse::<PathRule>()) {
                let found = path(&found);
                prop_assert!(
                    !(inner.lies_within(&outer) && inner.covers(&found)) || outer.covers(&found)
                );
            }
        }
    }

    #[test]
    fn problems() {
        for (text, problem) in [
            ("", PathProblem::Empty),
            ("/etc/passwd", PathProblem::Absolute),
            ("/", PathProblem::Absolute),
            ("../x", PathProblem::Parent),
            ("a/../b", PathProblem::Parent),
            ("a/..", PathProblem::Parent),
            ("a/../", PathProblem::Parent),
            ("./a", PathProblem::Current),
            ("a/./b", PathProblem::Current),
            (".", PathProblem::Current),
            ("a//b", PathProblem::EmptyComponent),
            ("a//", PathProblem::EmptyComponent),
            ("a\\b", PathProblem::Backslash),
            ("a\nb", PathProblem::Control),
            ("src/**/x", PathProblem::DoubleStar),
        ] {
            assert_eq!(text.parse::<PathRule>(), Err(problem), "{text:?}");
        }
        assert_eq!(
            "x".repeat(5000).parse::<PathRule>(),
            Err(PathProblem::TooLong)
        );
        for good in ["a", "a/b", "src/", ".env.*", "a..b", "..a", "a b", "ü/é"] {
            assert!(good.parse::<PathRule>().is_ok(), "{good}");
        }
    }

    #[test]
    fn matching_is_by_component() {
        for (r, p, want) in [
            ("strings.py", "strings.py", true),
            ("strings.py", "src/strings.py", false),
            ("strings.py", "strings.pyc", false),
            ("strings.py", "strings.py/x", false),
            ("src/", "src/a", true),
            ("src/", "src/a/b", true),
            ("src/", "src", false),
            ("src/", "srcx/a", false),
            ("src", "src/a", false),
            (".env.*", ".env.local", true),
            (".env.*", ".env", false),
            (".env.*", ".env.a/b", false),
            ("*/x", "a/x", true),
            ("*/x", "a/b/x", false),
            ("*.py", "a.py", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("*", "anything", true),
            ("pkg*/", "pkg1/x/y", true),
        ] {
            assert_eq!(rule(r).covers(&path(p)), want, "{r} ~ {p}");
        }
    }

    #[test]
    fn directories_are_reached_or_covered() {
        for (r, dir, all, some) in [
            ("src/", "src", true, true),
            ("src/", "src/a", true, true),
            ("src/", "lib", false, false),
            ("a/b/", "a", false, true),
            ("a/b", "a", false, true),
            ("a/b", "a/b", false, false),
            ("a/*/c/", "a/x", false, true),
            ("a/*/c/", "a/x/c/d", true, true),
            ("*", "a", false, false),
        ] {
            assert_eq!(
                (
                    rule(r).covers_all_below(&path(dir)),
                    rule(r).reaches_below(&path(dir))
                ),
                (all, some),
                "{r} ~ {dir}"
            );
        }
    }

    #[test]
    fn forbidden_beats_allowed_beats_nothing() {
        let allowed = [rule("src/")];
        let forbidden = [rule("src/secret/")];
        assert_eq!(
            path_standing(&path("src/a"), &allowed, &forbidden),
            PathStanding::Allowed
        );
        assert_eq!(
            path_standing(&path("src/secret/a"), &allowed, &forbidden),
            PathStanding::Forbidden
        );
        assert_eq!(
            path_standing(&path("b"), &allowed, &forbidden),
            PathStanding::Disallowed
        );
    }

    #[test]
    fn quoting_keeps_odd_names_apart() {
        for (bytes, text) in [
            (&b"a b"[..], "a b"),
            (b"\xff", "\"\\377\""),
            (b"a\nb", "\"a\\012b\""),
            (b"\"x\"", "\"\\\"x\\\"\""),
            ("é".as_bytes(), "é"),
        ] {
            assert_eq!(TreePath::new(bytes).to_string(), text);
        }
        assert_eq!(TreePath::parse(b"\"a\\tb\""), Ok(TreePath::new(*b"a\tb")));
        for bad in [
            &b"\""[..],
            b"\"a",
            b"\"\\9\"",
            b"\"\\777\"",
            b"\"a\"b\"",
            b"\"\\",
        ] {
            assert_eq!(TreePath::parse(bad), Err(BadQuoting), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn quoting_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let p = TreePath::new(bytes);
            prop_assert_eq!(TreePath::parse(p.to_string().as_bytes()), Ok(p.clone()));
        }

        #[test]
        fn rules_never_panic(text in ".{0,60}", bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(rule) = text.parse::<PathRule>() {
                let _ = rule.covers(&TreePath::new(bytes));
            }
        }
    }
}
