//! Where a model is reached: a base URL, parsed and refused without ever being repeated. The value
//! is an operator's secret: it has no `Display`, is never serialised, and its `Debug` is empty.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::digest::Digest;

const MAX_URL: usize = 2048;
/// Below this a host name is too common a word to be taken out of texts.
const MIN_TELLING_HOST: usize = 8;

#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    text: String,
    tls: bool,
    host: String,
    port: u16,
    /// Without a slash at its end; empty for a bare host.
    base: String,
}

/// How far away an endpoint is, in the words an admission uses.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NetworkClass {
    /// This machine.
    Loopback,
    /// A private network: reserved addresses, or a name that only a local resolver knows.
    Local,
    /// Anything else.
    Hosted,
}

impl NetworkClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Local => "local",
            Self::Hosted => "hosted",
        }
    }
}

/// Why a base URL is refused. No variant holds any part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("the base URL is empty")]
    Empty,
    #[error("the base URL is longer than {MAX_URL} bytes")]
    TooLong,
    #[error("the base URL holds a space, a control character or a character outside ASCII")]
    BadCharacter,
    #[error("the base URL does not begin with http:// or https://")]
    Scheme,
    #[error(
        "the base URL holds a credential (user or password before the host, or a query); give it by its own class instead"
    )]
    Credential,
    #[error("the base URL holds a fragment")]
    Fragment,
    #[error("the base URL has no valid host")]
    Host,
    #[error("the base URL has no valid port")]
    Port,
    #[error(
        "the path of the base URL holds an empty, `.` or `..` part, a backslash or a percent sign"
    )]
    Path,
    #[error("a hosted endpoint must be reached by https")]
    PlainHosted,
}

impl Endpoint {
    /// Takes a base URL apart. A query is refused as a credential: keys are commonly put there.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let text = text.trim_matches(|c: char| matches!(c, ' ' | '\n' | '\r' | '\t'));
        if text.is_empty() {
            return Err(EndpointError::Empty);
        }
        if text.len() > MAX_URL {
            return Err(EndpointError::TooLong);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(EndpointError::BadCharacter);
        }
        let (scheme, rest) = text.split_once("://").ok_or(EndpointError::Scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(EndpointError::Scheme),
        };
        let cut = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        if authority.contains('@') || path.contains('?') {
            return Err(EndpointError::Credential);
        }
        if path.contains('#') {
            return Err(EndpointError::Fragment);
        }
        let (host, port) = authority_of(authority, tls)?;
        let base = base_of(path)?;
        let endpoint = Self {
            text: text.to_owned(),
            tls,
            host,
            port,
            base,
        };
        if !tls && endpoint.class() == NetworkClass::Hosted {
            return Err(EndpointError::PlainHosted);
        }
        Ok(endpoint)
    }

    pub fn class(&self) -> NetworkClass {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => class_of_v4(ip),
            Ok(IpAddr::V6(ip)) => class_of_v6(ip),
            Err(_) => class_of_name(&self.host),
        }
    }

    pub fn tls(&self) -> bool {
        self.tls
    }

    /// Without brackets, in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// What an admission's `endpoint_sha256` is compared with: the base URL as given, without space
    /// around it.
    pub fn sha256(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// The value of a `Host` header.
    pub fn authority(&self) -> String {
        let host = self.bracketed();
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }

    /// The texts that would give the endpoint away, longest first.
    pub fn tells(&self) -> Vec<String> {
        let with_port = format!("{}:{}", self.bracketed(), self.port);
        let mut tells = vec![self.text.clone(), self.text.replace('/', "\\/"), with_port];
        let telling = self.host.len() >= MIN_TELLING_HOST && self.host.contains(['.', ':']);
        if telling && self.class() != NetworkClass::Loopback {
            tells.push(self.host.clone());
        }
        tells.sort_by_key(|tell| std::cmp::Reverse(tell.len()));
        tells.dedup();
        tells
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint")
    }
}

fn authority_of(authority: &str, tls: bool) -> Result<(String, u16), EndpointError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(EndpointError::Host)?;
            host.parse::<Ipv6Addr>().map_err(|_| EndpointError::Host)?;
            match after {
                "" => (host, None),
                _ => (
                    host,
                    Some(after.strip_prefix(':').ok_or(EndpointError::Port)?),
                ),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if !authority.starts_with('[') && !is_host_name(host) {
        return Err(EndpointError::Host);
    }
    let port = match port {
        None => {
            if tls {
                443
            } else {
                80
            }
        }
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_err(|_| EndpointError::Port)?
        }
        Some(_) => return Err(EndpointError::Port),
    };
    if port == 0 {
        return Err(EndpointError::Port);
    }
    Ok((host.to_ascii_lowercase(), port))
}

/// Letters, digits, hyphens and underscores between single dots. What looks like a number must be a
/// whole IPv4 address: `127.1` and `0x7f000001` are addresses to some resolvers and names to
/// others.
fn is_host_name(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.starts_with(|c: char| c.is_ascii_digit());
    host.len() <= 253
        && host.split('.').all(label)
        && (!numeric || host.parse::<Ipv4Addr>().is_ok())
}

fn base_of(path: &str) -> Result<String, EndpointError> {
    if path.contains(['\\', '%']) {
        return Err(EndpointError::Path);
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    let Some(rest) = path.strip_prefix('/') else {
        return Ok(String::new());
    };
    if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(EndpointError::Path);
    }
    Ok(path.to_owned())
}

fn class_of_v4(ip: Ipv4Addr) -> NetworkClass {
    let [a, b, ..] = ip.octets();
    let carrier = a == 100 && (64..128).contains(&b);
    match () {
        () if ip.is_loopback() || ip.is_unspecified() => NetworkClass::Loopback,
        () if ip.is_private() || ip.is_link_local() || carrier => NetworkClass::Local,
        () => NetworkClass::Hosted,
    }
}

fn class_of_v6(ip: Ipv6Addr) -> NetworkClass {
    if let Some(v4) = ip.to_ipv4_mapped() {
        return class_of_v4(v4);
    }
    match () {
        () if ip.is_loopback() || ip.is_unspecified() => NetworkClass::Loopback,
        () if ip.is_unique_local() || ip.is_unicast_link_local() => NetworkClass::Local,
        () => NetworkClass::Hosted,
    }
}

fn class_of_name(host: &str) -> NetworkClass {
    let under = |suffix: &str| {
        host.strip_suffix(suffix)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    match () {
        () if host == "localhost" || under("localhost") => NetworkClass::Loopback,
        () if !host.contains('.') => NetworkClass::Local,
        () if ["local", "internal", "lan", "home.arpa"]
            .iter()
            .any(|suffix| under(suffix)) =>
        {
            NetworkClass::Local
        }
        () => NetworkClass::Hosted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base_urls_are_taken_apart() {
        for (text, tls, host, port, base, class) in [
            (
                "http://127.0.0.1:8080/v1",
                false,
                "127.0.0.1",
                8080,
                "/v1",
                NetworkClass::Loopback,
            ),
            (
                "http://localhost:11434/v1/",
                false,
                "localhost",
                11434,
                "/v1",
                NetworkClass::Loopback,
            ),
            (
                "http://[::1]:1/v1",
                false,
                "::1",
                1,
                "/v1",
                NetworkClass::Loopback,
            ),
            (
                "http://[::ffff:127.0.0.1]",
                false,
                "::ffff:127.0.0.1",
                80,
                "",
                NetworkClass::Loopback,
            ),
            (
                "http://192.168.1.5:8000",
                false,
                "192.168.1.5",
                8000,
                "",
                NetworkClass::Local,
            ),
            (
                "http://100.64.0.1/",
                false,
                "100.64.0.1",
                80,
                "",
                NetworkClass::Local,
            ),
            (
                "http://gpu:8000/v1",
                false,
                "gpu",
                8000,
                "/v1",
                NetworkClass::Local,
            ),
            (
                "https://box.internal/x/y",
                true,
                "box.internal",
                443,
                "/x/y",
                NetworkClass::Local,
            ),
            (
                "HTTPS://API.Example.com/v1\n",
                true,
                "api.example.com",
                443,
                "/v1",
                NetworkClass::Hosted,
            ),
            (
                "https://notlocalhost.example/",
                true,
                "notlocalhost.example",
                443,
                "",
                NetworkClass::Hosted,
            ),
            (
                "https://1.1.1.1",
                true,
                "1.1.1.1",
                443,
                "",
                NetworkClass::Hosted,
            ),
        ] {
            let got = Endpoint::parse(text).unwrap();
            assert_eq!(
                (got.tls(), got.host(), got.port(), got.base(), got.class()),
                (tls, host, port, base, class),
                "{text}"
            );
        }
    }

    #[test]
    fn refusals_have_a_name_and_no_echo() {
        for (text, want) in [
            ("", EndpointError::Empty),
            ("  \n", EndpointError::Empty),
            ("ftp://hidden", EndpointError::Scheme),
            ("hidden.example/v1", EndpointError::Scheme),
            (
                "https://user:hidden@example.com/v1",
                EndpointError::Credential,
            ),
            ("https://hidden@example.com/v1", EndpointError::Credential),
            (
                "https://example.com/v1?key=hidden",
                EndpointError::Credential,
            ),
            ("https://example.com?key=hidden", EndpointError::Credential),
            ("https://example.com/v1#hidden", EndpointError::Fragment),
            ("https://exa mple.com", EndpointError::BadCharacter),
            ("https://ex\u{430}mple.com", EndpointError::BadCharacter),
            ("https:///v1", EndpointError::Host),
            ("https://a..b", EndpointError::Host),
            ("https://-a.b", EndpointError::Host),
            ("http://127.1/v1", EndpointError::Host),
            ("http://0x7f000001/v1", EndpointError::Host),
            ("http://[::1", EndpointError::Host),
            ("http://[127.0.0.1]", EndpointError::Host),
            ("http://localhost:", EndpointError::Port),
            ("http://localhost:0", EndpointError::Port),
            ("http://localhost:99999", EndpointError::Port),
            ("http://localhost:+1", EndpointError::Port),
            ("http://[::1]8", EndpointError::Port),
            ("http://localhost/a/../b", EndpointError::Path),
            ("http://localhost//v1", EndpointError::Path),
            ("http://localhost/%2e", EndpointError::Path),
            ("http://localhost\\hidden", EndpointError::Path),
            ("http://api.example.com/v1", EndpointError::PlainHosted),
        ] {
            let error = Endpoint::parse(text).unwrap_err();
            assert_eq!(error, want, "{text}");
            assert!(!error.to_string().contains("hidden"));
        }
        assert_eq!(
            Endpoint::parse(&format!("http://localhost/{}", "a".repeat(3000))),
            Err(EndpointError::TooLong)
        );
    }

    #[test]
    fn it_shows_nothing_and_knows_what_would() {
        let endpoint = Endpoint::parse("https://api.example.com/v1").unwrap();
        assert_eq!(format!("{endpoint:?}"), "Endpoint");
        assert_eq!(endpoint.authority(), "api.example.com");
        let tells = endpoint.tells();
        for tell in [
            "https://api.example.com/v1",
            "https:\\/\\/api.example.com\\/v1",
            "api.example.com:443",
            "api.example.com",
        ] {
            assert!(tells.iter().any(|t| t == tell), "{tell}");
        }
        let near = Endpoint::parse("http://gpu:8000/v1").unwrap();
        assert!(
            !near.tells().contains(&"gpu".to_owned()),
            "a short word is not taken out of every text"
        );
        assert_eq!(
            Endpoint::parse("http://[::1]:9/").unwrap().authority(),
            "[::1]:9"
        );
        assert_eq!(near.sha256(), Digest::of(b"http://gpu:8000/v1"));
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,80}", tail in "[a-z:/@?#.\\[\\]%0-9]{0,40}") {
            let _ = Endpoint::parse(&text);
            let _ = Endpoint::parse(&format!("https://{tail}"));
        }
    }
}
