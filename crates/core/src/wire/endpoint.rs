//! The base URL of a model endpoint: the one reader, for the gate that admits it and for the
//! gateway that connects to it. The URL is a secret of the operator: it has no `Display`, is never
//! serialised, its `Debug` is empty, and no error repeats any of it.
//! See `docs/decisions/0022-one-endpoint.md`.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::address::AddressKind;
use crate::values::digest::Digest;

const MAX_URL: usize = 2048;
/// A shorter host name or path is too common a word to be taken out of texts.
const MIN_TELLING: usize = 8;
/// Hosts that everybody who uses a provider has, in lower case: they say nothing of an operator.
const PUBLIC_HOSTS: [&str; 18] = [
    "api.anthropic.com",
    "api.cerebras.ai",
    "api.deepseek.com",
    "api.fireworks.ai",
    "api.groq.com",
    "api.minimax.io",
    "api.mistral.ai",
    "api.moonshot.ai",
    "api.openai.com",
    "api.together.xyz",
    "api.x.ai",
    "api.z.ai",
    "chatgpt.com",
    "dashscope-intl.aliyuncs.com",
    "dashscope.aliyuncs.com",
    "generativelanguage.googleapis.com",
    "integrate.api.nvidia.com",
    "openrouter.ai",
];
/// Paths that servers have by themselves.
const USUAL_PATHS: [&str; 19] = [
    "",
    "/anthropic",
    "/api",
    "/api/anthropic",
    "/api/coding/paas/v4",
    "/api/paas/v4",
    "/api/v1",
    "/backend-api/codex",
    "/compatible-mode/v1",
    "/engines/llama.cpp/v1",
    "/engines/v1",
    "/inference/v1",
    "/openai",
    "/openai/v1",
    "/serving-endpoints",
    "/v1",
    "/v1/openai",
    "/v1beta",
    "/v1beta/openai",
];

/// How far away an endpoint is, in the words of admission records.
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

    /// The class of an address; `None` for one that no connection can be made to.
    fn of_address(address: IpAddr) -> Option<Self> {
        match AddressKind::of(address) {
            AddressKind::ThisHost => Some(Self::Loopback),
            // Without the name of an interface it leads nowhere.
            AddressKind::LinkLocal if address.is_ipv6() => None,
            AddressKind::LinkLocal | AddressKind::Private => Some(Self::Local),
            AddressKind::Group => None,
            AddressKind::Public => Some(Self::Hosted),
        }
    }

    /// The class of a name in lower case. What it resolves to is checked before a connection is
    /// made.
    fn of_name(host: &str) -> Self {
        const LOCAL: [&str; 5] = [".local", ".lan", ".internal", ".home.arpa", ".ts.net"];
        match host {
            "localhost" => Self::Loopback,
            _ if host.ends_with(".localhost") => Self::Loopback,
            _ if !host.contains('.') || LOCAL.iter().any(|end| host.ends_with(end)) => Self::Local,
            _ => Self::Hosted,
        }
    }
}

/// What a gate may know of an endpoint: not the URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointFacts {
    pub class: EndpointClass,
    pub sha256: Digest,
}

/// Why a base URL is refused.
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
    #[error("the base URL carries a credential before its host; give it by its own class instead")]
    Credential,
    #[error("the base URL has a query or a fragment, where credentials hide; leave it out")]
    Query,
    #[error("the base URL has no valid host")]
    Host,
    #[error("the base URL has an invalid port")]
    Port,
    #[error(
        "the path of the base URL holds an empty, `.` or `..` part, a backslash or a percent sign"
    )]
    Path,
    #[error("the base URL is plain http to a host beyond the private network; use https")]
    PlainHttp,
}

/// A base URL that may be admitted and can be connected to.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// As given, without white space around it and slashes at its end.
    text: String,
    class: EndpointClass,
    tls: bool,
    host: String,
    port: u16,
    /// The path, without a slash at its end; empty for a bare host.
    base: String,
}

impl Endpoint {
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let text = text.trim_matches([' ', '\n', '\r', '\t']);
        let text = text.trim_end_matches('/');
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
        if rest.contains(['?', '#']) {
            return Err(EndpointError::Query);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(EndpointError::Credential);
        }
        let (host, port) = host_and_port(authority)?;
        let class = match ip_of(&host) {
            Some(address) => EndpointClass::of_address(address).ok_or(EndpointError::Host)?,
            None => EndpointClass::of_name(&host),
        };
        if !tls && class == EndpointClass::Hosted {
            return Err(EndpointError::PlainHttp);
        }
        Ok(Self {
            text: text.to_owned(),
            class,
            tls,
            host,
            port: port.unwrap_or(if tls { 443 } else { 80 }),
            base: base_of(path)?,
        })
    }

    pub fn class(&self) -> EndpointClass {
        self.class
    }

    pub fn facts(&self) -> EndpointFacts {
        EndpointFacts {
            class: self.class,
            sha256: self.sha256(),
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

    /// The same server with another path.
    pub fn with_base(&self, base: &str) -> Option<Self> {
        let server = self.text.get(..self.text.len() - self.base.len())?;
        Self::parse(&format!("{server}{base}")).ok()
    }

    /// May a credential be sent there? Over https, or without leaving this machine.
    pub fn takes_credentials(&self) -> bool {
        self.tls || self.class == EndpointClass::Loopback
    }

    /// Is it reached directly, whatever proxy there is? This machine and private networks are.
    pub fn is_near(&self) -> bool {
        self.class != EndpointClass::Hosted
    }

    /// May a connection go to this address, to which the host was resolved? Plain http, with a
    /// credential in it, must not leave the network its name promised.
    pub fn may_connect_to(&self, address: IpAddr) -> bool {
        self.tls || EndpointClass::of_address(address).is_some_and(|found| self.class.covers(found))
    }

    /// What an admission's `endpoint_sha256` is compared with: the base URL as given, without white
    /// space around it and slashes at its end.
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

    /// This machine by its address or as `localhost`, with any port, and the hosts of well-known
    /// providers. Every program and its tests say these.
    fn host_is_public(&self) -> bool {
        let is_loopback = ip_of(&self.host)
            .is_some_and(|address| AddressKind::of(address) == AddressKind::ThisHost);
        is_loopback || self.host == "localhost" || PUBLIC_HOSTS.contains(&self.host.as_str())
    }

    /// The texts by which somebody could recognise the endpoint of this operator, longest first: host
    /// and path, unless they are everybody's. See `docs/decisions/0028-what-is-private-of-an-endpoint.md`.
    pub fn private_strings(&self) -> Vec<String> {
        let public_path = USUAL_PATHS.contains(&self.base.as_str());
        let mut found = Vec::new();
        if !self.host_is_public() {
            found.push(format!("{}:{}", self.bracketed(), self.port));
            if self.host.len() >= MIN_TELLING && self.host.contains(['.', ':']) {
                found.push(self.host.clone());
            }
        }
        if !public_path && self.base.len() > MIN_TELLING {
            // Without its first slash: what is joined to another base is the same path.
            found.push(self.base[1..].to_owned());
        }
        if !found.is_empty() || !public_path {
            found.push(self.text.clone());
        }
        let escaped: Vec<String> = found.iter().map(|text| text.replace('/', "\\/")).collect();
        found.extend(escaped);
        found.sort_by_key(|text| std::cmp::Reverse(text.len()));
        found.dedup();
        found
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint")
    }
}

fn ip_of(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), EndpointError> {
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
        None => {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            if !is_host_name(host) {
                return Err(EndpointError::Host);
            }
            (host, port)
        }
    };
    Ok((host.to_ascii_lowercase(), port.map(port_of).transpose()?))
}

fn port_of(digits: &str) -> Result<u16, EndpointError> {
    let is_number = digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse() {
        Ok(port) if is_number && port > 0 => Ok(port),
        _ => Err(EndpointError::Port),
    }
}

/// Letters, digits, hyphens and underscores between single dots, and no dot at the end, which some
/// resolvers take for another name. What ends in a number must be a whole IPv4 address: `127.1` and
/// `0x7f000001` are addresses to some resolvers and names to others.
fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let ends_in_number = last.starts_with(|c: char| c.is_ascii_digit());
    host.len() <= 253
        && host.split('.').all(is_label)
        && (!ends_in_number || host.parse::<Ipv4Addr>().is_ok())
}

fn base_of(path: &str) -> Result<String, EndpointError> {
    if path.contains(['\\', '%']) {
        return Err(EndpointError::Path);
    }
    match path.strip_prefix('/') {
        None => Ok(String::new()),
        Some(rest) if rest.split('/').any(|part| matches!(part, "" | "." | "..")) => {
            Err(EndpointError::Path)
        }
        Some(_) => Ok(path.to_owned()),
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
