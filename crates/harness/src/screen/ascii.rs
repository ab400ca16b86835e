//! Who asks for the plain locale gets plain letters: every sign of ours has a spelling in ASCII.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host::Env;

static PLAIN: AtomicBool = AtomicBool::new(false);

/// Settles it for this process, by the variable that decides about letters.
pub fn settle(env: &Env) {
    let decides = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| env.get(name))
        .find(|value| !value.is_empty());
    let plain = decides.is_some_and(|value| value == "C" || value == "POSIX");
    PLAIN.store(plain, Ordering::Relaxed);
}

/// Are there only plain letters?
pub fn is_plain() -> bool {
    PLAIN.load(Ordering::Relaxed)
}

/// The text as this terminal can show it.
pub fn spelled(text: &str) -> Cow<'_, str> {
    match PLAIN.load(Ordering::Relaxed) && !text.is_ascii() {
        true => Cow::Owned(text.chars().map(spell).collect()),
        false => Cow::Borrowed(text),
    }
}

fn spell(c: char) -> Cow<'static, str> {
    Cow::Borrowed(match c {
        '…' => "...",
        '×' => "x",
        '→' => "->",
        '–' | '—' | '─' => "-",
        '│' => "|",
        '·' | '•' => "*",
        '✓' => "ok",
        '✗' => "no",
        '⠁'..='⣿' => "*",
        c if c.is_ascii() => return Cow::Owned(c.to_string()),
        _ => "?",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_has_a_plain_spelling() {
        let text: String = "a… 3× ü 日 ⠋ →".chars().map(spell).collect();
        assert_eq!(text, "a... 3x ? ? * ->");
    }
}
