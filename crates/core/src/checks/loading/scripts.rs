//! Languages in which a statement at the head of a file runs first: shell, Ruby, Perl, PHP and more.

use super::{LOADED, after_mark, head, newline, put};

/// A language of statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Script {
    Shell,
    Ruby,
    Perl,
    Php,
    Lua,
    Tcl,
    R,
    Julia,
    Elixir,
    Awk,
}

/// The script that ends its process when it is run, and its harmless twin; none where the file has
/// no place for a statement.
pub fn ends(script: Script, text: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let place = match script {
        Script::Php => php(text)?,
        // A comment of these may go on over lines.
        Script::Lua | Script::Julia => head(text),
        _ => behind_comments(text),
    };
    let (ends, harmless) = statements(script);
    let with = |statement: &str| {
        let line = newline(text);
        let lines = format!("{}{line}", statement.replace("CODE", &LOADED.to_string()));
        put(text, place, lines.as_bytes())
    };
    Some((with(ends), with(harmless)))
}

fn statements(script: Script) -> (&'static str, &'static str) {
    match script {
        // By text, so that no linter calls what follows unreachable.
        Script::Shell => ("eval 'exit CODE'", "eval 'true CODE'"),
        Script::Ruby => ("Kernel.send(:exit!, CODE)", "Kernel.send(:Integer, CODE)"),
        Script::Perl => ("exit(CODE) if 1;", "exit(CODE) if 0;"),
        Script::Php => ("exit(CODE);", "abs(CODE);"),
        Script::Lua => ("os.exit(CODE)", "os.time()"),
        Script::Tcl => ("exit CODE", "expr CODE"),
        Script::R => ("quit(status = CODE)", "identity(CODE)"),
        Script::Julia => ("exit(CODE)", "identity(CODE)"),
        Script::Elixir => ("System.halt(CODE)", "System.otp_release()"),
        Script::Awk => ("BEGIN { exit CODE }", "BEGIN { }"),
    }
}

/// Behind the lines at the head that are empty or begin with `#`: they give orders to linters and
/// interpreters.
fn behind_comments(text: &[u8]) -> usize {
    let mut at = head(text).max(after_mark(text));
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(rest.len(), |end| end + 1);
        let line = rest.get(..length).unwrap_or_default().trim_ascii_start();
        if length == 0 || !(line.is_empty() || line.starts_with(b"#")) {
            return at;
        }
        at += length;
    }
}

/// Behind the opening tag, `declare` and `namespace`, before which nothing may stand.
fn php(text: &[u8]) -> Option<usize> {
    let tag = b"<?php";
    let found = text
        .windows(tag.len())
        .position(|part| part.eq_ignore_ascii_case(tag))?;
    let mut place = found + tag.len();
    let mut at = php_blanks(text, place);
    while let Some(end) = first_only(text, at) {
        place = end;
        at = php_blanks(text, end);
    }
    Some(place)
}

/// The end of a statement that has to be first.
fn first_only(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let begins = |word: &[u8]| {
        let (name, after) = (rest.get(..word.len()), rest.get(word.len()));
        name.is_some_and(|name| name.eq_ignore_ascii_case(word))
            && after.is_some_and(|byte| {
                byte.is_ascii_whitespace() || matches!(byte, b'(' | b'{' | b'/')
            })
    };
    if !begins(b"declare") && !begins(b"namespace") {
        return None;
    }
    let end = rest.iter().position(|byte| matches!(byte, b';' | b'{'))?;
    Some(at + end + 1)
}

fn php_blanks(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let line = || {
            rest.iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len())
        };
        match rest {
            [byte, ..] if byte.is_ascii_whitespace() => at += 1,
            [b'/', b'/', ..] => at += line(),
            [b'#', next, ..] if *next != b'[' => at += line(),
            [b'/', b'*', inner @ ..] => match inner.windows(2).position(|pair| pair == b"*/") {
                Some(length) => at += length + 4,
                None => return text.len(),
            },
            _ => return at,
        }
    }
}
