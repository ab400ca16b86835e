//! Names of tests that hold a time, an address or something drawn by chance: the same test has another
//! name in each run. Such names are compared without those parts, and only where the name itself is
//! not found again. Reports state the rule (`run::checked::CHANGING_NAMES`).

use std::collections::BTreeMap;

use super::{Tally, TestIds, loss};

const NUMBER: usize = 6;
const HEX: usize = 8;

/// A name without what changes by itself, or nothing where it holds no such part.
pub fn fixed_part(name: &str) -> Option<String> {
    let bytes = name.as_bytes();
    let (mut out, mut at, mut changes) = (String::new(), 0, false);
    while let Some(rest) = name.get(at..).filter(|rest| !rest.is_empty()) {
        let begins_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let found = begins_word
            .then(|| uuid(rest).or_else(|| time(rest)).or_else(|| address(rest)))
            .flatten()
            .or_else(|| hex(rest).filter(|_| begins_word))
            .or_else(|| number(rest).filter(|_| at == 0 || !bytes[at - 1].is_ascii_digit()));
        if let Some(length) = found {
            out.push('…');
            changes = true;
            at += length;
        } else {
            let letter = rest.chars().next()?;
            out.push(letter);
            at += letter.len_utf8();
        }
    }
    changes.then_some(out)
}

fn run(text: &str, is: fn(&u8) -> bool) -> usize {
    text.bytes().take_while(is).count()
}

/// Groups of exactly so many, with a sign between each.
fn groups(text: &str, lengths: &[usize], is: fn(&u8) -> bool, sign: &[u8]) -> Option<usize> {
    let mut at = 0;
    for (index, length) in lengths.iter().enumerate() {
        if index > 0 {
            sign.contains(text.as_bytes().get(at)?).then_some(())?;
            at += 1;
        }
        (run(text.get(at..)?, is) == *length).then_some(())?;
        at += length;
    }
    Some(at)
}

fn uuid(text: &str) -> Option<usize> {
    groups(text, &[8, 4, 4, 4, 12], u8::is_ascii_hexdigit, b"-")
}

/// `2026-11-16`, `13:52:01.25`, or both with a `T`, a space or `_` between.
fn time(text: &str) -> Option<usize> {
    let clock = |text: &str| {
        let at = groups(text, &[2, 2, 2], u8::is_ascii_digit, b":")?;
        let rest = text.get(at..).unwrap_or_default();
        let part = rest
            .strip_prefix('.')
            .map_or(0, |rest| 1 + run(rest, u8::is_ascii_digit));
        let zone = usize::from(rest.get(part..).is_some_and(|rest| rest.starts_with('Z')));
        Some(at + part + zone)
    };
    let Some(day) = groups(text, &[4, 2, 2], u8::is_ascii_digit, b"-") else {
        return clock(text);
    };
    let rest = text.get(day..).unwrap_or_default();
    let with = rest.strip_prefix(['T', ' ', '_']).and_then(clock);
    Some(day + with.map_or(0, |length| length + 1))
}

fn address(text: &str) -> Option<usize> {
    let digits = run(text.strip_prefix("0x")?, u8::is_ascii_hexdigit);
    (digits >= NUMBER).then_some(digits + 2)
}

/// A whole word, of digits and letters both: `deadbeef` is a word of somebody's.
fn hex(text: &str) -> Option<usize> {
    let length = run(text, u8::is_ascii_alphanumeric);
    let word = text.get(..length)?;
    let all = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mixed = word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic());
    (length >= HEX && all && mixed).then_some(length)
}

fn number(text: &str) -> Option<usize> {
    let length = run(text, u8::is_ascii_digit);
    (length >= NUMBER).then_some(length)
}

/// Names of the baseline that are not there, and whose fixed parts ran again at least as often among
/// the names that are new: each such part, with how many names it stands for.
pub fn matched(baseline: &TestIds, verified: &TestIds) -> BTreeMap<String, Vec<String>> {
    let mut gone: BTreeMap<String, (Tally, Vec<String>)> = BTreeMap::new();
    for (name, was) in baseline
        .iter()
        .filter(|(name, _)| !verified.contains_key(*name))
    {
        if let Some(part) = fixed_part(name) {
            let (tally, names) = gone.entry(part).or_default();
            tally.merge(*was);
            names.push(name.clone());
        }
    }
    let mut new: BTreeMap<String, Tally> = BTreeMap::new();
    for (name, is) in verified
        .iter()
        .filter(|(name, _)| !baseline.contains_key(*name))
    {
        if let Some(part) = fixed_part(name).filter(|part| gone.contains_key(part)) {
            new.entry(part).or_default().merge(*is);
        }
    }
    let again =
        |part: &String, was: Tally| new.get(part).is_some_and(|is| loss(was, *is).is_none());
    gone.into_iter()
        .filter(|(part, (was, _))| again(part, *was))
        .map(|(part, (_, names))| (part, names))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_by_itself_is_left_out() {
        for (name, want) in [
            ("test_two", None),
            ("test_1", None),
            ("test_v12345", None),
            ("T.test_deadbeef", None),
            ("T.test_facade", None),
            ("of 2026-11-16", Some("of …")),
            ("at 2026-11-16T13:52:01.250Z it", Some("at … it")),
            ("at 13:52:01", Some("at …")),
            ("run 1731765121", Some("run …")),
            ("test_1731765121_x", Some("test_…_x")),
            ("tmp1731765121", Some("tmp…")),
            ("id 123e4567-e89b-12d3-a456-426614174000", Some("id …")),
            ("<object at 0x7f3a2b1c>", Some("<object at …>")),
            ("commit 0a1b2c3d", Some("commit …")),
            ("grüße 1731765121", Some("grüße …")),
        ] {
            assert_eq!(fixed_part(name).as_deref(), want, "{name}");
        }
    }

    #[test]
    fn names_are_matched_as_often_as_they_were() {
        let ids = |names: &[&str]| -> TestIds {
            let one = Tally {
                passed: 1,
                ..Tally::default()
            };
            names.iter().map(|name| ((*name).to_owned(), one)).collect()
        };
        let before = ids(&["at 1731765121", "at 1731765122", "other"]);
        let both = matched(&before, &ids(&["at 1831765121", "at 1831765122", "other"]));
        assert_eq!(both["at …"].len(), 2);
        assert!(matched(&before, &ids(&["at 1831765121", "other"])).is_empty());
        assert!(matched(&before, &before).is_empty());
        assert!(matched(&ids(&["a"]), &ids(&["b"])).is_empty());
    }
}
