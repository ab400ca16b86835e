//! Which headers pass, in either direction: an allow-list, because a header can name an account, a
//! proxy or another model as well as a body can.

/// To the endpoint. What is left out is answered for by the gateway: host, length, type of the body,
/// credential, connection.
pub fn passes_up(name: &str) -> bool {
    const PASS: [&str; 6] = [
        "accept",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "anthropic-version",
        "openai-beta",
        "user-agent",
    ];
    PASS.contains(&name) || name.starts_with("x-stainless-")
}

/// Does this `Content-Type` say what a body is read as here: JSON in UTF-8? A server that believes
/// another type or charset would see another document in the same bytes.
pub fn is_json_type(value: &str) -> bool {
    let (kind, rest) = value.split_once(';').unwrap_or((value, ""));
    let blank = [' ', '\t'];
    let rest = rest.trim_matches(blank);
    let in_utf8 = rest.split_once('=').is_some_and(|(name, charset)| {
        name.eq_ignore_ascii_case("charset")
            && ["utf-8", "\"utf-8\"", "utf8"]
                .iter()
                .any(|known| charset.eq_ignore_ascii_case(known))
    });
    kind.trim_matches(blank)
        .eq_ignore_ascii_case("application/json")
        && (rest.is_empty() || in_utf8)
}

/// To the engine. No cookies, no organisation, no names of hosts or of requests.
pub fn passes_down(name: &str) -> bool {
    const PASS: [&str; 5] = [
        "cache-control",
        "content-type",
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
    ];
    PASS.contains(&name)
        || name.starts_with("x-ratelimit-")
        || name.starts_with("anthropic-ratelimit-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_hosts_and_hops_stay_where_they_are() {
        for name in [
            "authorization",
            "x-api-key",
            "x-goog-api-key",
            "api-key",
            "cookie",
            "openai-organization",
            "openai-project",
            "anthropic-organization-id",
            "forwarded",
            "x-forwarded-for",
            "proxy-authorization",
            "connection",
            "host",
            "te",
            "upgrade",
            "accept-encoding",
            "content-type",
            "x-goog-user-project",
            "x-model",
        ] {
            assert!(!passes_up(name), "{name}");
        }
        for name in [
            "set-cookie",
            "server",
            "via",
            "location",
            "openai-organization",
            "anthropic-organization-id",
            "x-request-id",
            "request-id",
            "cf-ray",
            "alt-svc",
            "www-authenticate",
            "transfer-encoding",
            "content-length",
            "content-encoding",
        ] {
            assert!(!passes_down(name), "{name}");
        }
        for name in [
            "anthropic-beta",
            "anthropic-version",
            "user-agent",
            "x-stainless-lang",
        ] {
            assert!(passes_up(name), "{name}");
        }
        for name in [
            "content-type",
            "retry-after",
            "x-ratelimit-remaining-tokens",
        ] {
            assert!(passes_down(name), "{name}");
        }
    }

    #[test]
    fn only_one_reading_of_a_body_is_named() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json;charset=utf-8",
            "application/json; charset=UTF-8",
            "application/json ; charset=\"utf-8\" ",
            "application/json;",
        ] {
            assert!(is_json_type(good), "{good}");
        }
        for bad in [
            "",
            "application/json; charset=utf-7",
            "application/json; charset=utf-16le",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; charset=utf-8, text/plain",
            "application/json; charset='utf-8'",
            "application/json; charset = utf-7",
            "application/json; x=y",
            "application/json, text/plain",
            "application/jsonp",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain",
            "text/plain;charset=UTF-8",
            "text/json",
            "*/*",
        ] {
            assert!(!is_json_type(bad), "{bad}");
        }
    }
}
