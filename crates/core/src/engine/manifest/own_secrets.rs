//! What looks like a secret has no place in a manifest of the operator's own: its bytes go into bundles, comments and
//! templates with them. Placeholders, names of variables and words that say that nothing is there are no secrets.

use toml::de::{DeTable, DeValue};

use crate::records::{secret_shape, secret_variable};
use crate::task::case_file;

/// What stands where a program wants a credential and gets none, in lower case.
const DUMMIES: [&str; 19] = [
    "disabled",
    "dummy",
    "empty",
    "false",
    "local",
    "no",
    "no-key",
    "none",
    "not-needed",
    "not-set",
    "not-used",
    "null",
    "off",
    "on",
    "placeholder",
    "true",
    "undefined",
    "unused",
    "yes",
];
/// A longer number could be a secret.
const LONGEST_NUMBER: usize = 9;
/// No credential is shorter.
const SHORTEST: usize = 4;
const NO_PLACE: &str = "a credential has no place in a manifest";

/// The first secret of a manifest: line, column and why it is one. No part of it is told.
pub(super) fn secret(text: &str) -> Option<((u64, u64), String)> {
    let in_values = || {
        let document = DeTable::parse(text).ok()?;
        in_table(document.get_ref(), false)
    };
    let (offset, why) = in_values().or_else(|| in_lines(text))?;
    Some((case_file::place(text, offset), why))
}

/// Values as they are read: an escape hides nothing.
fn in_table(table: &DeTable<'_>, is_env: bool) -> Option<(usize, String)> {
    table.iter().find_map(|(name, value)| {
        let (name, at) = (name.get_ref(), value.span().start);
        let named = match value.get_ref() {
            DeValue::String(text) if is_env => variable(name, text),
            _ => None,
        };
        named
            .map(|why| (at, why))
            .or_else(|| in_value(value.get_ref(), at, name == "env"))
    })
}

fn in_value(value: &DeValue<'_>, at: usize, is_env: bool) -> Option<(usize, String)> {
    match value {
        DeValue::String(text) => shape(text).map(|why| (at, why)),
        DeValue::Array(items) => items
            .iter()
            .find_map(|item| in_value(item.get_ref(), item.span().start, false)),
        DeValue::Table(table) => in_table(table, is_env),
        _ => None,
    }
}

/// A variable whose name says that it is a secret, and a value that is one by nothing but that.
fn variable(name: &str, value: &str) -> Option<String> {
    let left = without_harmless(value);
    let is_literal = left.split_whitespace().any(|word| word.len() >= SHORTEST);
    // What stands beside a placeholder, as `/v1` behind the door, is no secret of its own.
    let is_filled = value.contains(['{', '$']) && left != value;
    secret_variable(name, "").filter(|_| is_literal && !is_filled)?;
    Some(format!(
        "this variable has the name of a credential, and {NO_PLACE}: write {{token}}, which a run fills in, or a word such as unused"
    ))
}

/// The text itself, line by line: what no value shows, and comments. A name and its value on one line are for who reads
/// values, except in a comment.
fn in_lines(text: &str) -> Option<(usize, String)> {
    let mut begin = 0;
    text.split_inclusive('\n').find_map(|line| {
        let next = begin + line.len();
        let at = std::mem::replace(&mut begin, next);
        let in_word = word_in(line).map(|(here, why)| (at + here, told(why)));
        let indent = line.len() - line.trim_start().len();
        let in_comment = || match line[indent..].starts_with('#') {
            true => shape(line).map(|why| (at + indent, why)),
            false => None,
        };
        in_word.or_else(in_comment)
    })
}

fn shape(text: &str) -> Option<String> {
    secret_shape(&without_harmless(text)).map(told)
}

fn told(why: &str) -> String {
    format!("this {why}; {NO_PLACE}")
}

/// The first word of a line that is one, and where it begins.
fn word_in(line: &str) -> Option<(usize, &'static str)> {
    let plain = without_harmless(line);
    let ends = |c: char| c.is_whitespace() || "\"'=,;()[]<>".contains(c);
    let mut at = 0;
    plain.split_inclusive(ends).find_map(|word| {
        let next = at + word.len();
        let here = std::mem::replace(&mut at, next);
        secret_shape(word).map(|why| (here, why))
    })
}

/// The same with as many spaces where a placeholder, the name of a variable, a small number or a dummy stands.
fn without_harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let harmless = harmless(rest);
        if harmless > 0 {
            out.extend(std::iter::repeat_n(' ', harmless));
            rest = &rest[harmless..];
            continue;
        }
        // A word that is not harmless stays whole: what is in its middle is part of it.
        let (stays, after) = rest.split_at(word(rest).max(first.len_utf8()));
        out.push_str(stays);
        rest = after;
    }
    out
}

/// How many bytes at the beginning are nothing that could be a secret.
fn harmless(text: &str) -> usize {
    let inside = |open: &str, may: fn(u8) -> bool| {
        let name = text.strip_prefix(open)?;
        let length = name.bytes().take_while(|byte| may(*byte)).count();
        let closed = name[length..].starts_with('}') && length > 0;
        closed.then_some(open.len() + length + 1)
    };
    let placeholder = inside("{", |byte| byte.is_ascii_lowercase() || byte == b'_');
    // As programs name a variable in their settings.
    let named = || inside("${", of_variable).or_else(|| inside("{env:", of_variable));
    if let Some(length) = placeholder.or_else(named) {
        return length;
    }
    if let Some(name) = text.strip_prefix('$') {
        let length = name.bytes().take_while(|byte| of_variable(*byte)).count();
        return if length > 0 { length + 1 } else { 0 };
    }
    let word = &text[..word(text)];
    let is_number = word.len() <= LONGEST_NUMBER && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_dummy = DUMMIES.contains(&word.to_ascii_lowercase().as_str());
    if is_number || is_dummy { word.len() } else { 0 }
}

fn of_variable(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Letters, digits and what stands between them in a token.
fn word(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.+/".contains(byte))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT_IN: [&str; 11] = [
        include_str!("../../../../../engines/acp-claude.toml"),
        include_str!("../../../../../engines/acp-codex.toml"),
        include_str!("../../../../../engines/acp-gemini.toml"),
        include_str!("../../../../../engines/acp-opencode.toml"),
        include_str!("../../../../../engines/acp-pi.toml"),
        include_str!("../../../../../engines/acp-qwen.toml"),
        include_str!("../../../../../engines/case.toml"),
        include_str!("../../../../../engines/codex.toml"),
        include_str!("../../../../../engines/fake.toml"),
        include_str!("../../../../../engines/opencode.toml"),
        include_str!("../../../../../engines/pi.toml"),
    ];

    #[test]
    fn what_the_house_and_its_pages_say_is_no_secret() {
        for text in BUILT_IN {
            assert_eq!(secret(text), None, "{}", text.lines().next().unwrap());
        }
        let page = include_str!("../../../../../docs/engines/command.md");
        let example = page.split("```toml\n").nth(1).unwrap();
        assert_eq!(secret(example.split("\n```\n").next().unwrap()), None);
        for harmless in [
            "[env]\nA_KEY = \"{token}\"\nB_KEY = \"unused\"\nC_TOKEN = \"Bearer {token}\"\nD_SECRET = \"\"\n",
            "[env]\nMAX_OUTPUT_TOKENS = \"32000\"\nDISABLE_AUTH = \"true\"\nX_BASE_URL = \"{door}/v1\"\nK_KEY = \"$TOKEN\"\n",
            "text = '''\n{\"apiKey\":\"UNUSED\",\"token\":\"${LAB_TOKEN}\",\"x\":\"{door}\"}\n'''\n",
            "# The key comes from a variable; the token is the door's.\n",
        ] {
            assert_eq!(secret(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands_and_is_not_repeated() {
        let token = concat!("sk", "-abcdefghijklmnopqrstuvwx");
        for (text, want) in [
            (
                "[env]\nA = \"x\"\nLAB_KEY = \"hunter22\"\n".to_owned(),
                (3, 11),
            ),
            (
                "[invocation.env]\nDB_PASSWD = \"open sesame\"\n".to_owned(),
                (2, 13),
            ),
            (format!("[env]\nPLAIN = \"{token}\"\n"), (2, 9)),
            (format!("[env]\nLAB_KEY = \"{token}{{token}}\"\n"), (2, 11)),
            (
                "[env]\nPLAIN = \"\\u0073k-abcdefghijklmnopqrstuvwx\"\n".to_owned(),
                (2, 9),
            ),
            (format!("id = \"x\" # was {token}\n"), (1, 16)),
            (format!("a = 1\n# {token}\n"), (2, 3)),
            ("# the password=hunter22\n".to_owned(), (1, 1)),
            ("a = [\"x\", \"--api-key=hunter22\"]\n".to_owned(), (1, 11)),
            (
                format!("# {token}\n[[files]]\ntext = '''\n{{\"a\": 1}}\n'''\n"),
                (1, 3),
            ),
            (
                format!("[[files]]\ntext = '''\n{{\"a\": 1,\n \"k\": \"{token}\"}}\n'''\n"),
                (2, 8),
            ),
            ("url = \"https://me:word@host/v1\"\n".to_owned(), (1, 7)),
        ] {
            let (at, why) = secret(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(at, want, "{text}");
            assert!(!why.contains("hunter22") && !why.contains(token), "{why}");
        }
    }
}
