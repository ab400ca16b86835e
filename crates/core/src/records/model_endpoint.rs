//! What a model admission says of the way to its endpoint, and which of its fields need each other.

use super::credential::CredentialWay;
use super::{Issue, ModelAdmission};
use crate::values::address::AddressKind;
use crate::wire::profiles::Profile;
use crate::wire::profiles::header;
use crate::wire::profiles::switch::Switch;

const MAX_VERSION: usize = 32;

/// A proxy, read: the host in lower case and without brackets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProxyAddress {
    pub host: String,
    pub port: u16,
}

impl ProxyAddress {
    /// Reads `host:port` or `[address]:port`.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let is_digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_digits && *port > 0)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                let inner = rest.strip_suffix(']')?;
                inner.parse::<core::net::Ipv6Addr>().ok()?;
                inner
            }
            None => host,
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
        let named = !host.is_empty() && host.len() <= 253 && host.bytes().all(plain);
        let is_address = host.parse::<core::net::IpAddr>().is_ok();
        (named && (is_address || !host.contains(':')) && !host.starts_with(['.', '-'])).then(|| {
            Self {
                host: host.to_ascii_lowercase(),
                port,
            }
        })
    }

    /// Does what is said to the proxy itself stay on this machine?
    pub fn is_this_machine(&self) -> bool {
        let address = self.host.parse().ok();
        self.host == "localhost"
            || address.is_some_and(|address| AddressKind::of(address) == AddressKind::ThisHost)
    }
}

/// Is this an `api-version`: a date, `preview`, or both?
pub fn is_api_version(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    !text.is_empty() && text.len() <= MAX_VERSION && text.bytes().all(plain)
}

/// What only several fields together show.
pub fn agree(record: &ModelAdmission) -> Vec<Issue> {
    let mut issues = Vec::new();
    let pairs = [
        (
            "base_url_file",
            record.base_url_file.is_some(),
            "endpoint_sha256",
            record.endpoint_sha256.is_some(),
        ),
        (
            "ca_file",
            record.ca_file.is_some(),
            "ca_sha256",
            record.ca_sha256.is_some(),
        ),
        (
            "ca_sha256",
            record.ca_sha256.is_some(),
            "ca_file",
            record.ca_file.is_some(),
        ),
        (
            "headers_file",
            record.headers_file.is_some(),
            "header_names",
            record
                .header_names
                .as_ref()
                .is_some_and(|names| !names.is_empty()),
        ),
        (
            "header_names",
            record.header_names.is_some(),
            "headers_file",
            record.headers_file.is_some(),
        ),
        (
            "proxy_credential",
            record.proxy_credential.is_some(),
            "proxy",
            record.proxy.is_some(),
        ),
    ];
    for (field, there, needs, has) in pairs {
        if there && !has {
            issues.push(Issue::new(field, format!("means nothing without {needs}")));
        }
    }
    if record
        .proxy
        .as_deref()
        .is_some_and(|text| ProxyAddress::parse(text).is_none())
    {
        issues.push(Issue::new(
            "proxy",
            "must be a host and a port, like proxy.example:3128",
        ));
    }
    let is_way = |text: &str| matches!(CredentialWay::read(text), Ok(Some(way)) if way != CredentialWay::None);
    if record
        .proxy_credential
        .as_deref()
        .is_some_and(|text| !is_way(text))
    {
        issues.push(Issue::new(
            "proxy_credential",
            "must be env:NAME, file:/PATH or command:/PROGRAM",
        ));
    }
    issues.extend(header_issues(record));
    let takes_version = record
        .profile
        .as_deref()
        .and_then(Profile::named)
        .is_some_and(|profile| profile.takes_api_version);
    match record.api_version.as_deref() {
        Some(_) if !takes_version => issues.push(Issue::new(
            "api_version",
            "means nothing but for a profile that takes one: azure",
        )),
        Some(text) if !is_api_version(text) => {
            issues.push(Issue::new(
                "api_version",
                "must be like 2024-10-21 or preview",
            ));
        }
        _ => {}
    }
    let has = |switch| record.compat.iter().flatten().any(|have| *have == switch);
    if has(Switch::MaxTokens) && has(Switch::MaxCompletionTokens) {
        issues.push(Issue::new(
            "compat",
            "max_tokens and max_completion_tokens exclude each other",
        ));
    }
    if let (Some(window), Some(limit)) = (record.context_window, record.output_limit)
        && limit > window
    {
        issues.push(Issue::new("output_limit", "is more than context_window"));
    }
    issues
}

fn header_issues(record: &ModelAdmission) -> Vec<Issue> {
    let names = record.header_names.as_deref().unwrap_or_default();
    let mut issues = Vec::new();
    if names.len() > header::MAX_HEADERS {
        let problem = format!("has more than {} entries", header::MAX_HEADERS);
        issues.push(Issue::new("header_names", problem));
    }
    for (at, name) in names.iter().enumerate() {
        let twice = names[..at]
            .iter()
            .any(|have| have.eq_ignore_ascii_case(name));
        let problem = match header::name_problem(name) {
            Some(problem) => problem.to_string(),
            None if twice => "stands there twice".into(),
            None => continue,
        };
        issues.push(Issue::new(
            "header_names",
            format!("entry {}: {problem}", at + 1),
        ));
    }
    issues
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::records::read;
    use serde_json::{Value, json};

    fn record(more: Value) -> Result<ModelAdmission, Vec<Issue>> {
        let mut value = json!({
            "status": "admitted", "provider": "p", "model": "m", "credential_source_class": "none",
            "allowed_network_class": "hosted", "approval_source": "a", "admission_timestamp": "2026-06-01",
            "review_trigger": "later",
        });
        let (Value::Object(whole), Value::Object(more)) = (&mut value, more) else {
            panic!("not objects")
        };
        whole.extend(more);
        read(&serde_json::to_vec(&value).unwrap())
    }

    /// A record with every field there is.
    pub fn whole() -> Value {
        let mut value = crate::records::tests::model();
        let more = json!({
            "base_url_file": "/home/o/endpoint", "protocol": "openai-chat", "profile": "azure",
            "api_version": "2025-04-01-preview", "context_window": 200_000, "output_limit": 32_000,
            "compat": ["max_completion_tokens", "no_store"], "first_byte_seconds": 600, "proxy": "[fd00::1]:3128",
            "proxy_credential": "env:PROXY", "ca_file": "/etc/corp.pem", "ca_sha256": "a".repeat(64),
            "headers_file": "/home/o/headers", "header_names": ["X-Title"],
        });
        let more = more.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(more);
        value
    }

    #[test]
    fn an_old_record_is_as_good_as_one_with_everything() {
        assert!(record(json!({})).is_ok());
        let full: ModelAdmission = read(&serde_json::to_vec(&whole()).unwrap()).unwrap();
        let again: ModelAdmission = read(&serde_json::to_vec(&full).unwrap()).unwrap();
        assert_eq!(again, full);
        assert_eq!(
            full.compat.unwrap(),
            [Switch::MaxCompletionTokens, Switch::NoStore]
        );
    }

    #[test]
    fn what_belongs_together_stands_together_and_nothing_else_is_taken() {
        let digest = "a".repeat(64);
        for (more, field) in [
            (json!({"base_url_file": "/a"}), "base_url_file"),
            (
                json!({"base_url_file": "a", "endpoint_sha256": digest}),
                "base_url_file",
            ),
            (json!({"ca_file": "/a"}), "ca_file"),
            (json!({"ca_sha256": digest}), "ca_sha256"),
            (json!({"headers_file": "/a"}), "headers_file"),
            (
                json!({"headers_file": "/a", "header_names": []}),
                "headers_file",
            ),
            (json!({"header_names": ["X-Title"]}), "header_names"),
            (
                json!({"headers_file": "/a", "header_names": ["X-Title", "x-title"]}),
                "header_names",
            ),
            (
                json!({"headers_file": "/a", "header_names": ["X-Model"]}),
                "header_names",
            ),
            (
                json!({"headers_file": "/a", "header_names": ["Authorization"]}),
                "header_names",
            ),
            (json!({"proxy_credential": "env:A"}), "proxy_credential"),
            (
                json!({"proxy": "p:1", "proxy_credential": "words"}),
                "proxy_credential",
            ),
            (
                json!({"proxy": "p:1", "proxy_credential": "none"}),
                "proxy_credential",
            ),
            (json!({"proxy": "p"}), "proxy"),
            (json!({"proxy": "http://p:1"}), "proxy"),
            (json!({"proxy": "u@p:1"}), "proxy"),
            (json!({"proxy": "p:0"}), "proxy"),
            (json!({"proxy": "p:+1"}), "proxy"),
            (json!({"api_version": "2024-10-21"}), "api_version"),
            (
                json!({"api_version": "2024-10-21", "profile": "openai"}),
                "api_version",
            ),
            (
                json!({"api_version": "a&b", "profile": "azure"}),
                "api_version",
            ),
            (json!({"profile": "other"}), "profile"),
            (json!({"protocol": "openai"}), "protocol"),
            (json!({"compat": ["temperature"]}), "compat"),
            (
                json!({"compat": ["max_tokens", "max_completion_tokens"]}),
                "compat",
            ),
            (json!({"context_window": 0}), "context_window"),
            (json!({"context_window": "many"}), "context_window"),
            (
                json!({"context_window": 2048, "output_limit": 4096}),
                "output_limit",
            ),
            (json!({"first_byte_seconds": 0}), "first_byte_seconds"),
        ] {
            let issues = record(more.clone()).unwrap_err();
            assert!(
                issues.iter().any(|issue| issue.field == field),
                "{more}: {issues:?}"
            );
        }
    }

    #[test]
    fn the_class_of_a_provider_follows_from_its_endpoint() {
        use crate::records::ProviderClass;
        use crate::wire::Protocol;
        use crate::wire::endpoint::EndpointClass;
        for (endpoint, protocol, want) in [
            (
                EndpointClass::Loopback,
                Protocol::AnthropicMessages,
                ProviderClass::LocalCaseCompatible,
            ),
            (
                EndpointClass::Local,
                Protocol::OpenaiChat,
                ProviderClass::LocalCaseCompatible,
            ),
            (
                EndpointClass::Hosted,
                Protocol::AnthropicMessages,
                ProviderClass::ExternalAnthropic,
            ),
            (
                EndpointClass::Hosted,
                Protocol::OpenaiChat,
                ProviderClass::ExternalOpenaiCodex,
            ),
        ] {
            assert_eq!(ProviderClass::of(endpoint, protocol), want);
        }
    }
}
