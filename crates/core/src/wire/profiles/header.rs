//! Headers an operator adds to every request: their names stand in the record, their values in a
//! file. A header that could choose the model, the route, the account or the credential is refused
//! by its name: each of those has a field of its own, or is not chosen at all.

const MAX_NAME: usize = 64;
pub const MAX_VALUE: usize = 4096;
/// More are no decoration.
pub const MAX_HEADERS: usize = 16;

/// Whole names that choose something, or that the gateway answers for.
const REFUSED: &[&str] = &[
    "accept",
    "accept-encoding",
    "api-key",
    "api-version",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "from",
    "host",
    "keep-alive",
    "location",
    "origin",
    "range",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Parts of a name, between hyphens or underscores, that choose.
const CHOOSING: &[&str] = &[
    "account",
    "apikey",
    "auth",
    "authentication",
    "authorization",
    "backend",
    "base",
    "bearer",
    "billing",
    "credential",
    "credentials",
    "deployment",
    "destination",
    "engine",
    "fallback",
    "forwarded",
    "host",
    "key",
    "method",
    "model",
    "models",
    "org",
    "organisation",
    "organization",
    "override",
    "password",
    "project",
    "provider",
    "proxy",
    "region",
    "rewrite",
    "route",
    "router",
    "routing",
    "secret",
    "subscription",
    "target",
    "tenant",
    "token",
    "upstream",
    "uri",
    "url",
    "user",
    "virtual",
    "workspace",
];

/// Why a header may not be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderProblem {
    #[error("is no name of a header: letters, digits and hyphens, at most {MAX_NAME}")]
    Name,
    #[error("is a header that the gateway writes itself")]
    Own,
    #[error("is a header that could choose a model, a route, an account or a credential")]
    Chooses,
    #[error("has a value that is empty, too long or not of printable ASCII characters")]
    Value,
}

/// May a header of this name be added?
pub fn name_problem(name: &str) -> Option<HeaderProblem> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_token) {
        return Some(HeaderProblem::Name);
    }
    let lower = name.to_ascii_lowercase();
    if REFUSED.contains(&lower.as_str()) {
        return Some(HeaderProblem::Own);
    }
    let chooses = lower.split(['-', '_']).any(|part| CHOOSING.contains(&part))
        || ["anthropic-", "openai-", "x-goog-", "x-ms-", "x-stainless-"]
            .iter()
            .any(|family| lower.starts_with(family));
    chooses.then_some(HeaderProblem::Chooses)
}

/// Can this stand behind a header's name, and end nowhere but at its line's end?
pub fn is_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= MAX_VALUE
        && value == value.trim()
        && value.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}

/// Reads the file of values: `Name: value`, a line each, and lines that begin with `#`. Exactly the
/// names of the record, each once; a problem names a header and never a value.
pub fn read(text: &str, names: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut found: Vec<(String, String)> = Vec::new();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for (at, line) in lines.enumerate() {
        let Some((name, value)) = line.split_once(':') else {
            return Err(format!("entry {} is not `Name: value`", at + 1));
        };
        let (name, value) = (name.trim(), value.trim());
        let Some(known) = names.iter().find(|known| known.eq_ignore_ascii_case(name)) else {
            return Err(format!(
                "entry {} is a header that the record does not name",
                at + 1
            ));
        };
        if let Some(problem) = name_problem(known) {
            return Err(format!("{known} {problem}"));
        }
        if !is_value(value) {
            return Err(format!("{known} {}", HeaderProblem::Value));
        }
        if found.iter().any(|(have, _)| have == known) {
            return Err(format!("{known} stands there twice"));
        }
        found.push((known.clone(), value.to_owned()));
    }
    match names
        .iter()
        .find(|name| !found.iter().any(|(have, _)| have == *name))
    {
        Some(missing) => Err(format!("the file has no value for {missing}")),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_header_chooses_a_model_a_route_an_account_or_a_credential() {
        for name in [
            "Authorization",
            "X-API-Key",
            "x-goog-api-key",
            "X-Model",
            "x-model-override",
            "OpenAI-Organization",
            "openai-project",
            "x-portkey-provider",
            "x-portkey-virtual-key",
            "Helicone-Target-Url",
            "X-Forwarded-Host",
            "X-HTTP-Method-Override",
            "X-Original-URL",
            "X-Rewrite-URL",
            "Host",
            "Cookie",
            "Proxy-Authorization",
            "x-tenant_id",
            "anthropic-beta",
            "x-ms-anything",
            "api-version",
            "transfer-encoding",
        ] {
            assert!(name_problem(name).is_some(), "{name}");
        }
        for name in [
            "HTTP-Referer",
            "X-Title",
            "X-Request-Source",
            "X-Team",
            "X-Cost-Centre",
        ] {
            assert_eq!(name_problem(name), None, "{name}");
        }
        for bad in ["", "a b", "a:b", "a\r\nb", "ä", "x\u{0}"] {
            assert_eq!(name_problem(bad), Some(HeaderProblem::Name), "{bad:?}");
        }
    }

    #[test]
    fn the_file_has_exactly_the_headers_of_the_record() {
        let names = ["X-Title", "X-Team"].map(String::from);
        let good = "# ours\nx-title: a b\n\nX-Team:  core \n";
        assert_eq!(
            read(good, &names).unwrap(),
            [("X-Title", "a b"), ("X-Team", "core")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for (bad, want) in [
            ("X-Title: hidden", "no value for X-Team"),
            ("X-Title: hidden\nX-Team: hidden\nX-Title: hidden", "twice"),
            (
                "X-Title: hidden\nX-Team: hidden\nHost: hidden",
                "does not name",
            ),
            ("X-Title hidden", "`Name: value`"),
            ("X-Title:\nX-Team: hidden", "has a value that"),
            ("X-Title: hid\u{7f}den\nX-Team: hidden", "has a value that"),
            ("X-Title: hiddén\nX-Team: hidden", "has a value that"),
        ] {
            let error = read(bad, &names).unwrap_err();
            assert!(error.contains(want), "{error}");
            assert!(!error.contains("hid"), "{error}");
        }
        let chooses = ["X-Model".to_owned()];
        assert!(read("X-Model: m", &chooses).is_err());
    }
}
