//! Values put into templates: once each, escaped for where they stand.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::FileFormat;
use super::places::JSON_VALUES;

/// Puts values in the place of their names, in one pass: what a value holds is never looked at
/// again.
pub fn template(template: &str, values: &BTreeMap<&str, String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let value = after[1..]
            .split_once('}')
            .and_then(|(name, tail)| Some((values.get(name)?, tail)));
        match value {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('{');
                rest = &after[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The same in a file, where placeholders stand inside double-quoted strings. Plain text has none:
/// there a value stands as it is.
pub fn file(format: FileFormat, text: &str, values: &BTreeMap<&str, String>) -> String {
    let escape: fn(&str) -> String = match format {
        FileFormat::Json => in_json,
        FileFormat::Toml => in_toml,
        FileFormat::Dotenv => in_dotenv,
        FileFormat::Text => str::to_owned,
    };
    let escaped = values
        .iter()
        .map(|(name, value)| match JSON_VALUES.contains(name) {
            true => (*name, value.clone()),
            false => (*name, escape(value)),
        })
        .collect();
    template(text, &escaped)
}

fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::String(value.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A basic string of TOML. It takes no control character as it is, DEL included.
fn in_toml(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_ascii_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out
}

/// Between double quotes, as the readers of these files agree on: nothing expands, nothing ends the
/// quotes, a line stays one line.
fn in_dotenv(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '"' | '\\' | '$' | '`' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_put_in_once() {
        let values = BTreeMap::from([("model", "{door}\"\\".to_owned()), ("door", "d".to_owned())]);
        assert_eq!(
            template("{model} {door} {nothing} {", &values),
            "{door}\"\\ d {nothing} {"
        );
        assert_eq!(file(FileFormat::Text, "m={model}", &values), "m={door}\"\\");
        assert_eq!(
            file(
                FileFormat::Dotenv,
                "M=\"{model}\"\n",
                &BTreeMap::from([("model", "a\"$HOME`\\\nb\u{1b}".to_owned())])
            ),
            "M=\"a\\\"\\$HOME\\`\\\\\\nb\"\n"
        );
    }

    proptest! {
        /// Whatever a value holds, it is read back as it was, and nothing but it.
        #[test]
        fn a_value_is_read_back_as_it_was(value in any::<String>()) {
            let values = BTreeMap::from([("model", value.clone())]);
            let text = file(FileFormat::Json, "{\"m\":\"<{model}>\",\"o\":{\"d\":1}}", &values);
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parsed["m"].as_str().unwrap(), format!("<{value}>"));
            let text = file(FileFormat::Toml, "m = \"<{model}>\"\n[o]\nd = 1\n", &values);
            let parsed: toml::Table = text.parse().unwrap();
            prop_assert_eq!(parsed["m"].as_str().unwrap(), format!("<{value}>"));
            prop_assert_eq!(parsed.len(), 2);
            let text = file(FileFormat::Dotenv, "M=\"{model}\"", &values);
            prop_assert_eq!(text.lines().count(), 1);
        }
    }
}
