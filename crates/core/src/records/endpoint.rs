//! A base URL as the operator supplied it: what it is, never what it says. Its text goes to the
//! gateway and nowhere else.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::digest::Digest;

/// How far away an endpoint is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EndpointClass {
    /// This machine.
    Loopback,
    /// A private network.
    Local,
    /// Anywhere else.
    Hosted,
}

impl EndpointClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Local => "local",
            Self::Hosted => "hosted",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [Self::Loopback, Self::Local, Self::Hosted]
            .into_iter()
            .find(|class| class.as_str() == word)
    }

    /// Does an admission of this class cover an endpoint of that one? A private network covers this
    /// machine.
    pub fn covers(self, other: Self) -> bool {
        self == other || (self == Self::Local && other == Self::Loopback)
    }
}

/// What may be known of an endpoint without knowing it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointFacts {
    pub class: EndpointClass,
    /// Of the text, without white space around it and slashes at its end.
    pub sha256: Digest,
}

/// Why a base URL is refused. Never holds any of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndpointProblem {
    #[error("the base URL is empty")]
    Empty,
    #[error("the base URL is longer than 2048 bytes")]
    TooLong,
    #[error("the base URL holds white space, control characters or letters beyond ASCII")]
    Letters,
    #[error("the base URL does not begin with http:// or https://")]
    Scheme,
    #[error("the base URL carries a credential before its host; give it by its own class instead")]
    Credential,
    #[error("the base URL has a query or a fragment, where credentials hide; leave it out")]
    Query,
    #[error("the base URL has no host, or one that cannot be read")]
    Host,
    #[error("the base URL has a port that is none")]
    Port,
    #[error("the base URL is plain http to a host beyond the private network; use https")]
    PlainHttp,
}

/// The text that is digested and forwarded to.
pub fn normal(text: &str) -> &str {
    text.trim().trim_end_matches('/')
}

/// Reads a base URL strictly.
pub fn facts(text: &str) -> Result<EndpointFacts, EndpointProblem> {
    let text = normal(text);
    if text.is_empty() {
        return Err(EndpointProblem::Empty);
    }
    if text.len() > 2048 {
        return Err(EndpointProblem::TooLong);
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) || text.contains('\\') {
        return Err(EndpointProblem::Letters);
    }
    let (scheme, rest) = text.split_once("://").ok_or(EndpointProblem::Scheme)?;
    let is_plain = match scheme {
        "http" => true,
        "https" => false,
        _ => return Err(EndpointProblem::Scheme),
    };
    if rest.contains(['?', '#']) {
        return Err(EndpointProblem::Query);
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err(EndpointProblem::Credential);
    }
    let class = class_of(host_of(authority)?)?;
    match is_plain && class == EndpointClass::Hosted {
        true => Err(EndpointProblem::PlainHttp),
        false => Ok(EndpointFacts {
            class,
            sha256: Digest::of(text.as_bytes()),
        }),
    }
}

fn host_of(authority: &str) -> Result<&str, EndpointProblem> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (host, after) = inside.split_once(']').ok_or(EndpointProblem::Host)?;
            match after.is_empty() {
                true => (host, None),
                false => (
                    host,
                    Some(after.strip_prefix(':').ok_or(EndpointProblem::Host)?),
                ),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let plain_port = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|number| number > 0)
    };
    match port {
        Some(port) if !plain_port(port) => Err(EndpointProblem::Port),
        _ if host.is_empty() => Err(EndpointProblem::Host),
        _ => Ok(host),
    }
}

fn class_of(host: &str) -> Result<EndpointClass, EndpointProblem> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(class_of_address(address));
    }
    let host = host.to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    let label = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    // What ends in a number is an address in some spelling only some readers know.
    let numeric_end = host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.starts_with("0x") || last.bytes().all(|b| b.is_ascii_digit()));
    if !host.split('.').all(label) || numeric_end {
        return Err(EndpointProblem::Host);
    }
    let private = [".local", ".lan", ".internal", ".home.arpa", ".ts.net"]
        .iter()
        .any(|end| host.ends_with(end));
    Ok(match host {
        "localhost" => EndpointClass::Loopback,
        _ if host.ends_with(".localhost") => EndpointClass::Loopback,
        _ if private || !host.contains('.') => EndpointClass::Local,
        _ => EndpointClass::Hosted,
    })
}

fn class_of_address(address: IpAddr) -> EndpointClass {
    let v4 = |ip: Ipv4Addr| {
        let [a, b, ..] = ip.octets();
        // 100.64.0.0/10 is what private overlay networks use.
        let shared = a == 100 && (64..128).contains(&b);
        match ip.is_loopback() {
            true => EndpointClass::Loopback,
            false if ip.is_private() || ip.is_link_local() || shared => EndpointClass::Local,
            false => EndpointClass::Hosted,
        }
    };
    let v6 = |ip: Ipv6Addr| match ip.to_ipv4_mapped() {
        Some(inner) => v4(inner),
        None if ip.is_loopback() => EndpointClass::Loopback,
        None if ip.is_unique_local() || ip.is_unicast_link_local() => EndpointClass::Local,
        None => EndpointClass::Hosted,
    };
    match address {
        IpAddr::V4(ip) => v4(ip),
        IpAddr::V6(ip) => v6(ip),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        use EndpointClass::{Hosted, Local, Loopback};
        for (text, want) in [
            ("http://127.0.0.1:8000/v1", Loopback),
            ("http://localhost", Loopback),
            ("http://[::1]:80/", Loopback),
            ("http://[::ffff:127.0.0.1]:80/", Loopback),
            ("http://192.168.1.4:8000", Local),
            ("http://100.100.1.1:8000", Local),
            ("http://spark1:8000/v1", Local),
            ("http://spark.tail1234.ts.net/v1", Local),
            ("http://[fd00::1]/v1", Local),
            ("https://api.example.com/v1", Hosted),
            ("https://8.8.8.8", Hosted),
        ] {
            assert_eq!(facts(text).map(|f| f.class), Ok(want), "{text}");
        }
        assert_eq!(
            facts(" http://localhost/v1/\n").unwrap(),
            facts("http://localhost/v1").unwrap()
        );
        assert!(
            Local.covers(Loopback)
                && !Loopback.covers(Local)
                && !Hosted.covers(Loopback)
                && !Local.covers(Hosted)
        );
    }

    #[test]
    fn refusals_say_why_and_never_what() {
        use EndpointProblem as P;
        for (text, want) in [
            ("", P::Empty),
            ("  ", P::Empty),
            ("ftp://x", P::Scheme),
            ("HTTP://x", P::Scheme),
            ("localhost:8000", P::Scheme),
            ("https://user:hunter2@host/v1", P::Credential),
            ("https://tok@host", P::Credential),
            ("https://host/v1?key=abc", P::Query),
            ("https://host/v1#abc", P::Query),
            ("https://", P::Scheme),
            ("https:///v1", P::Host),
            ("https://ho st", P::Letters),
            ("https://hоst", P::Letters),
            ("https://host\\@evil", P::Letters),
            ("https://0x7f.1", P::Host),
            ("https://2130706433", P::Host),
            ("https://a..b", P::Host),
            ("https://host:99999", P::Port),
            ("https://host:", P::Port),
            ("https://[::1", P::Host),
            ("https://[::1]x", P::Host),
            ("http://api.example.com", P::PlainHttp),
        ] {
            let problem = facts(text).unwrap_err();
            assert_eq!(problem, want, "{text}");
            assert!(!problem.to_string().contains("hunter2"));
        }
        assert_eq!(
            facts(&format!("https://{}", "a".repeat(3000))),
            Err(P::TooLong)
        );
    }
}
