//! Recognises text that looks like a secret. No record may hold one. A false alarm costs a
//! rewording and a miss costs a credential, so in doubt it counts as a secret.

/// How a token begins, which characters may follow, and how many of them make it a token.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("AKIA", 12),
    ("ASIA", 12),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("AIza", 30),
    ("npm_", 30),
    ("hf_", 24),
    ("eyJ", 24),
];

/// Words that are followed by a secret after `:` or `=`.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "token",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "access_key",
];

/// Parts of a key's name that say its value is a secret or an endpoint.
const KEYS: &[&str] = &[
    "token",
    "secret",
    "passw",
    "passphrase",
    "apikey",
    "accesskey",
    "privatekey",
    "bearer",
    "cookie",
    "baseurl",
    "endpointurl",
];

/// Why this text looks like a secret; none where it does not. The text itself is never part of the
/// answer.
pub fn secret_shape(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN") {
        return Some("looks like a key in PEM form");
    }
    if url_with_user(text) {
        return Some("holds an address that carries a credential");
    }
    if named_value(text) {
        return Some("looks like a named credential with its value");
    }
    let known = PREFIXES.iter().any(|(prefix, least)| {
        text.match_indices(prefix).any(|(at, _)| {
            token_length(&text[at + prefix.len()..]) >= *least && begins_word(text, at)
        })
    });
    if known {
        return Some("looks like a token");
    }
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "_+=".contains(c)))
        .any(is_random)
        .then_some("holds a long run of mixed letters and digits, as secrets do")
}

/// Does the name of a key say that its value is secret?
pub fn secret_key(name: &str) -> bool {
    KEYS.iter().any(|word| plain(name).contains(word)) || secret_shape(name).is_some()
}

fn plain(name: &str) -> String {
    name.to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

/// Parts of a variable's name that say the same.
const VARIABLE_PARTS: &[&str] = &[
    "KEY",
    "KEYS",
    "PASS",
    "PASSWD",
    "PAT",
    "AUTH",
    "CRED",
    "CREDS",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Why a variable of the operator's looks like a secret; none where it does not.
pub fn secret_variable(name: &str, value: &str) -> Option<&'static str> {
    let upper = name.to_uppercase();
    let named = upper
        .split(|c: char| !c.is_alphanumeric())
        .any(|part| VARIABLE_PARTS.contains(&part));
    let tells = named || KEYS.iter().any(|word| plain(name).contains(word));
    tells
        .then_some("has the name of one")
        .or_else(|| secret_shape(value))
}

fn begins_word(text: &str, at: usize) -> bool {
    !text[..at]
        .chars()
        .next_back()
        .is_some_and(|c| c.is_alphanumeric())
}

fn token_length(text: &str) -> usize {
    text.bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        .count()
}

/// `scheme://user:word@host`, wherever in the text.
fn url_with_user(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let rest = &text[at + 3..];
        let end = rest
            .find(|c: char| c == '/' || c.is_whitespace())
            .unwrap_or(rest.len());
        rest[..end].contains('@')
    })
}

/// `password = …`, `Bearer …`.
fn named_value(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has_value = |rest: &str, marks: &[char], least: usize| {
        let rest = rest
            .trim_start()
            .trim_start_matches(['"', '\''])
            .trim_start();
        let Some(value) = rest.strip_prefix(marks) else {
            return false;
        };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        value
            .bytes()
            .take_while(|b| !b.is_ascii_whitespace())
            .count()
            >= least
    };
    let named = NAMES.iter().any(|name| {
        lower
            .match_indices(name)
            .any(|(at, _)| has_value(&lower[at + name.len()..], &[':', '='], 5))
    });
    let bearer = lower
        .match_indices("bearer ")
        .any(|(at, word)| token_length(&lower[at + word.len()..]) >= 16);
    named || bearer
}

/// Long, with upper-case letters, lower-case letters and digits. A digest in hex does not count: it
/// has one case only.
fn is_random(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    word.len() >= 32
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_secrets_are_seen_and_plain_words_are_not() {
        for bad in [
            "sk-abcdefghijklmnopqrstuvwx",
            "see ghp_0123456789abcdefghij0123",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "https://me:pass@host/v1",
            "http://tok@10.0.0.1",
            "password=hunter22",
            "API_KEY: \"abcdefgh\"",
            "Authorization: Basic abcdefgh",
            "bearer abcdefghijklmnop",
            "Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.x",
        ] {
            assert!(secret_shape(bad).is_some(), "{bad}");
        }
        for good in [
            "",
            "hermes-openai-codex-oauth-and-local-vllm-config",
            "pi-models-json-local-provider-no-secret",
            "no secrets, no deploy path, no customer data",
            "7959ac917cdeb0983b4aaa20bb9f42021747fed8",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "https://github.com/workos/case.git",
            "git clone --depth 1 https://github.com/workos/case.git",
            "task-skinning is fine",
            "mail me@example.org about it",
        ] {
            assert_eq!(secret_shape(good), None, "{good}");
        }
        for key in [
            "api_key",
            "accessToken",
            "BASE_URL",
            "client-secret",
            "sk-abcdefghijklmnopqrstuvwx",
        ] {
            assert!(secret_key(key), "{key}");
        }
        for (name, value) in [
            ("OPENAI_API_KEY", "x"),
            ("DEPLOY_KEY", "x"),
            ("github_token", "x"),
            ("PGPASSWORD", "x"),
            ("REGISTRY_AUTH", "x"),
            ("PLAIN", "ghp_0123456789abcdefghij0123"),
            ("DATABASE_URL", "postgres://me:word@host/db"),
        ] {
            assert!(secret_variable(name, value).is_some(), "{name}");
        }
        for (name, value) in [("TERM", "xterm"), ("KEYBOARD", "us"), ("RUST_LOG", "debug")] {
            assert_eq!(secret_variable(name, value), None, "{name}");
        }
        assert!(!secret_key("credential_source_class") && !secret_key("review_trigger"));
    }
}
