//! Which headers pass, in either direction: an allow-list, because a header can name an account, a
//! proxy or another model as well as a body can.

/// To the endpoint. What is left out is answered for by the gateway: host, length, credential,
/// connection.
pub fn passes_up(name: &str) -> bool {
    const PASS: [&str; 7] = [
        "accept",
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "anthropic-version",
        "content-type",
        "openai-beta",
        "user-agent",
    ];
    PASS.contains(&name) || name.starts_with("x-stainless-")
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
            "content-type",
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
}
