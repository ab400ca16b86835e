//! Tasks of `tox` and `nox`, read from their files as text.

use super::shell::Word;
use super::tasks::Followed;

/// Defaults in defaults, sessions that are read, and letters of one call: a file that has more is not
/// followed.
const MOST_DEPTH: usize = 8;
const MOST_CALLS: usize = 400;
const LONGEST: usize = 16 << 10;

fn value_of(words: &[Word], names: &[&str]) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        let text = word.text.as_str();
        names.iter().find_map(|name| {
            if text == *name {
                return words.get(at + 1).map(|word| word.text.clone());
            }
            let rest = text.strip_prefix(name)?;
            let held = rest.strip_prefix('=');
            let attached = (!name.starts_with("--") && !rest.is_empty()).then_some(rest);
            held.or(attached).map(str::to_owned)
        })
    })
}

fn behind_dashes(words: &[Word]) -> String {
    let at = words.iter().position(|word| word.text == "--");
    let rest = at.and_then(|at| words.get(at + 1..)).unwrap_or_default();
    rest.iter()
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

pub(super) fn tox(texts: &[(&str, String)], words: &[Word]) -> Followed {
    let wanted = value_of(words, &["-e", "--env"]);
    let given = behind_dashes(words);
    let mut found = Vec::new();
    for (file, text) in texts {
        if *file == "tox.ini" {
            found = tox_ini(text, wanted.as_deref());
        } else if found.is_empty() {
            found = tox_toml(text, wanted.as_deref());
        }
    }
    if found.is_empty() {
        return Followed::Unknown;
    }
    let step = format!(
        "tox{}",
        wanted.map(|name| format!(" -e {name}")).unwrap_or_default()
    );
    let commands = found
        .iter()
        .map(|command| substituted(command.trim_start_matches(['-', ' ']), &given, 0));
    Followed::Commands(step, commands.collect())
}

/// `{posargs:default}` and the like; `{envpython}` is Python, any other brace is left as a word.
fn substituted(command: &str, given: &str, depth: usize) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some(at) = rest.find('{') {
        text.push_str(rest.get(..at).unwrap_or_default());
        let inner = rest.get(at + 1..).unwrap_or_default();
        let end = closing(inner);
        let name = inner.get(..end).unwrap_or_default();
        match name.split_once(':') {
            _ if name == "posargs" => text.push_str(given),
            Some(("posargs", default)) if depth < MOST_DEPTH => {
                let nested = substituted(default, given, depth + 1);
                text.push_str(if given.is_empty() { &nested } else { given });
            }
            _ if name == "envpython" => text.push_str("python"),
            _ if name == "envbindir" => text.push_str(".venv/bin"),
            // `{[testenv]x}`, `{env:X:default}`: only tox knows.
            Some(("env", inner)) => {
                text.push_str(inner.split_once(':').map_or("", |(_, default)| default))
            }
            _ if matches!(name, "toxinidir" | "tox_root") => text.push('.'),
            _ => {}
        }
        rest = inner.get(end + 1..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Commands of an environment: its own section, else `[testenv]`.
fn tox_ini(text: &str, wanted: Option<&str>) -> Vec<String> {
    let wanted = wanted
        .and_then(|names| names.split(',').next())
        .unwrap_or_default();
    let own = ini_list(text, &format!("testenv:{wanted}"), "commands");
    let found = if own.is_empty() {
        ini_list(text, "testenv", "commands")
    } else {
        own
    };
    let lines = found.into_iter().filter_map(|line| factor(&line, wanted));
    lines.collect()
}

/// `py311: command` counts for environments with that part in their name.
fn factor(line: &str, environment: &str) -> Option<String> {
    let Some((condition, rest)) = line.split_once(": ") else {
        return Some(line.to_owned());
    };
    let is_condition = condition
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_,!.{}".contains(&b));
    if !is_condition {
        return Some(line.to_owned());
    }
    let parts: Vec<&str> = environment.split('-').collect();
    let holds = |one: &str| match one.strip_prefix('!') {
        Some(name) => !parts.contains(&name),
        None => one.split('-').all(|name| parts.contains(&name)),
    };
    condition.split(',').any(holds).then(|| rest.to_owned())
}

/// A value of several lines in an ini file, continued lines joined.
fn ini_list(text: &str, section: &str, key: &str) -> Vec<String> {
    let mut inside = false;
    let mut in_key = false;
    let mut lines: Vec<String> = Vec::new();
    let mut joins = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            inside = trimmed == format!("[{section}]");
            in_key = false;
            continue;
        }
        if !inside || trimmed.is_empty() {
            continue;
        }
        let value = if line.starts_with([' ', '\t']) {
            in_key.then_some(trimmed)
        } else {
            let (name, value) = trimmed.split_once(['=', ':']).unwrap_or((trimmed, ""));
            in_key = name.trim() == key;
            in_key.then_some(value.trim())
        };
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            continue;
        };
        let (value, more) = value
            .strip_suffix('\\')
            .map_or((value, false), |value| (value.trim_end(), true));
        match lines.last_mut().filter(|_| joins) {
            Some(last) => {
                last.push(' ');
                last.push_str(value);
            }
            None => lines.push(value.to_owned()),
        }
        joins = more;
    }
    lines
}

fn tox_toml(text: &str, wanted: Option<&str>) -> Vec<String> {
    let Ok(table) = text.parse::<toml::Table>() else {
        return Vec::new();
    };
    let Some(tox) = table.get("tool").and_then(|tool| tool.get("tox")) else {
        return Vec::new();
    };
    if let Some(text) = tox.get("legacy_tox_ini").and_then(toml::Value::as_str) {
        return tox_ini(text, wanted);
    }
    let own = wanted.and_then(|name| tox.get("env")?.get(name)?.get("commands"));
    let found = own.or_else(|| tox.get("env_run_base")?.get("commands"));
    let commands = found.and_then(toml::Value::as_array).into_iter().flatten();
    let words = |command: &toml::Value| {
        let words = command.as_array()?.iter().filter_map(toml::Value::as_str);
        Some(words.map(quoted).collect::<Vec<_>>().join(" "))
    };
    commands.filter_map(words).collect()
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '\t']) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

/// `session.run("pytest", "-x")` of the sessions asked for, else of all.
pub(super) fn nox(texts: &[(&str, String)], words: &[Word]) -> Followed {
    let Some((_, text)) = texts.first() else {
        return Followed::Unknown;
    };
    let wanted = value_of(words, &["-s", "--session", "--sessions", "-e"]);
    // `tests-3.11` is one Python of the session `tests`.
    let base = wanted
        .as_deref()
        .map(|name| name.split(['-', '(']).next().unwrap_or(name).to_owned());
    let mut current = String::new();
    let mut named = None;
    let mut commands = Vec::new();
    let mut at = 0;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some((_, name)) = trimmed
            .split_once("name=")
            .filter(|_| trimmed.starts_with("@nox.session"))
        {
            named = literals(name).into_iter().next();
        }
        if let Some(rest) = trimmed.strip_prefix("def ") {
            let name = rest.split('(').next().unwrap_or_default().to_owned();
            current = named.take().unwrap_or(name);
        }
        let asked = wanted.as_deref() == Some(current.as_str())
            || base.as_deref() == Some(current.as_str());
        if let Some(inside) = line
            .find("session.run(")
            .filter(|_| (asked || wanted.is_none()) && commands.len() < MOST_CALLS)
        {
            let from = text
                .get(at + inside + "session.run(".len()..)
                .unwrap_or_default();
            let call = from.get(..call_end(from)).unwrap_or_default();
            commands.push(
                literals(call)
                    .iter()
                    .map(|word| quoted(word))
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
        at += line.len() + 1;
    }
    if commands.is_empty() {
        return Followed::Unknown;
    }
    let step = format!(
        "nox{}",
        wanted.map(|name| format!(" -s {name}")).unwrap_or_default()
    );
    Followed::Commands(step, commands)
}

/// The end of a call's arguments: a bracket inside a text is none.
fn call_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text.char_indices().take(LONGEST) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')') if depth == 0 => return at,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // No end in sight: nothing of it is a call.
    0
}

/// Texts in quotes that are arguments of their own.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'']) {
        let before = rest.get(..at).unwrap_or_default().trim_end();
        let quote = rest.get(at..=at).unwrap_or_default();
        let inner = rest.get(at + 1..).unwrap_or_default();
        let end = inner.find(quote).unwrap_or(inner.len());
        // `env={"A": "b"}` and `silent="x"` are no words of the command.
        if before.is_empty() || before.ends_with([',', '(']) {
            found.push(inner.get(..end).unwrap_or_default().to_owned());
        }
        rest = inner.get(end + 1..).unwrap_or_default();
        if rest.trim_start().starts_with(':') {
            found.pop();
        }
    }
    found
}
