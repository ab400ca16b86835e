//! What a model record says of the way to its endpoint, read once: a proxy, certificate authorities,
//! headers. Variables of the environment that mean the same are not obeyed, and said.

use std::path::Path;

use cto_core::records::ModelAdmission;
use cto_core::records::model_endpoint::ProxyAddress;
use cto_core::values::digest::Digest;
use cto_core::wire::endpoint::Endpoint;
use cto_core::wire::profiles::header;
use cto_gateway::{Authorities, Credential, HeaderValue, Proxy, is_of_the_system};

use crate::host::Env;
use crate::host::way::operator_file::{self, Privacy};

/// A bundle of every public authority is smaller.
const MAX_AUTHORITIES: u64 = 4 << 20;
const MAX_HEADERS: u64 = 64 << 10;

/// The way, ready to be taken.
pub struct Way {
    pub proxy: Option<Proxy>,
    pub authorities: Option<Authorities>,
    pub headers: Vec<(String, HeaderValue)>,
}

/// Reads every file the record names. The bytes whose digest was compared are the bytes that are
/// believed.
pub fn read(admission: &ModelAdmission, credential: Option<Credential>) -> Result<Way, String> {
    let proxy = match admission.proxy.as_deref() {
        None => None,
        Some(text) => Some(Proxy {
            address: ProxyAddress::parse(text)
                .ok_or("the proxy of the record is no host and port")?,
            credential,
        }),
    };
    let authorities = match (&admission.ca_file, &admission.ca_sha256) {
        (None, _) => None,
        (Some(_), None) => return Err("the record has no digest of its ca_file".into()),
        (Some(file), Some(sha256)) => Some(authorities(Path::new(file), sha256)?),
    };
    let names = admission.header_names.as_deref().unwrap_or_default();
    let headers = match &admission.headers_file {
        None => Vec::new(),
        Some(file) => headers(Path::new(file), names)?,
    };
    Ok(Way {
        proxy,
        authorities,
        headers,
    })
}

fn authorities(file: &Path, sha256: &Digest) -> Result<Authorities, String> {
    let bytes = operator_file::read(file, MAX_AUTHORITIES, Privacy::Public)
        .map_err(|problem| format!("the ca_file of the record {problem}"))?;
    if Digest::of(&bytes) != *sha256 {
        return Err("the ca_file of the record has changed since it was admitted".into());
    }
    Authorities::from_pem(&bytes).map_err(|error| error.to_string())
}

fn headers(file: &Path, names: &[String]) -> Result<Vec<(String, HeaderValue)>, String> {
    let text = operator_file::read_text(file, MAX_HEADERS, Privacy::Private)
        .map_err(|problem| format!("the headers_file of the record {problem}"))?;
    let found = header::read(&text, names)
        .map_err(|problem| format!("the headers_file of the record: {problem}"))?;
    let value =
        |(name, value): (String, String)| HeaderValue::new(&value).map(|value| (name, value));
    Ok(found.into_iter().filter_map(value).collect())
}

/// Variables that would choose another way, each in one sentence without its value.
pub fn not_obeyed(admission: &ModelAdmission, endpoint: &Endpoint, env: &Env) -> Vec<String> {
    let mut said = Vec::new();
    let text = |name: &str| {
        env.get(name)
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    };
    let recorded = admission.proxy.as_deref().and_then(ProxyAddress::parse);
    let proxies = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let other =
        |name: &&&str| text(name).is_some_and(|value| ProxyAddress::of_variable(value) != recorded);
    // No proxy is used for this machine and private networks, whatever is set.
    if !endpoint.is_near()
        && let Some(name) = proxies.iter().find(other)
    {
        said.push(format!(
            "{name} is set and is not obeyed: the proxy is the model record's"
        ));
    }
    let files = ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];
    let own = admission.ca_file.as_deref();
    for name in files.iter().filter(|_| endpoint.tls()) {
        let is_other = |value: &str| {
            own != Some(value) && !is_of_the_system(Path::new(value)) && value != "/etc/ssl/certs"
        };
        if text(name).is_some_and(is_other) {
            said.push(format!(
                "{name} is set and is not obeyed: certificate authorities are the system's or the model record's"
            ));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    fn admission(more: &Value) -> ModelAdmission {
        let mut value = json!({
            "status": "admitted", "provider": "p", "model": "m", "credential_source_class": "none",
            "allowed_network_class": "hosted", "approval_source": "a", "admission_timestamp": "2026-06-01",
            "review_trigger": "later",
        });
        let more = more.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(more);
        cto_core::records::read(&serde_json::to_vec(&value).unwrap()).unwrap()
    }

    fn way(more: &Value) -> Result<Way, String> {
        read(&admission(more), None)
    }

    #[test]
    fn files_of_the_way_are_the_operators_and_what_was_admitted() {
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().join(name).display().to_string();
        fs::write(place("headers"), "X-Title: lab\n").unwrap();
        fs::write(place("empty.pem"), "# nothing\n").unwrap();
        let mode = |name: &str, mode| {
            fs::set_permissions(place(name), Permissions::from_mode(mode)).unwrap();
        };
        mode("headers", 0o600);
        let named = json!({"headers_file": place("headers"), "header_names": ["X-Title"]});
        let found = way(&named).unwrap();
        assert_eq!(found.headers.len(), 1);
        assert_eq!(found.headers[0].1.known_value(), b"lab");
        mode("headers", 0o644);
        assert!(way(&named).err().unwrap().contains("can be read by others"));
        let digest = Digest::of(b"# nothing\n").to_hex();
        for (more, want) in [
            (
                json!({"ca_file": place("empty.pem"), "ca_sha256": digest}),
                "holds no certificate",
            ),
            (
                json!({"ca_file": place("empty.pem"), "ca_sha256": "a".repeat(64)}),
                "has changed since",
            ),
            (
                json!({"ca_file": place("none.pem"), "ca_sha256": digest}),
                "is not there",
            ),
        ] {
            let said = way(&more).err().unwrap();
            assert!(said.contains(want), "{said}");
            assert!(!said.contains(dir.path().to_str().unwrap()), "{said}");
        }
        mode("empty.pem", 0o666);
        let more = json!({"ca_file": place("empty.pem"), "ca_sha256": digest});
        assert!(way(&more).err().unwrap().contains("someone else"));
    }

    #[test]
    fn a_variable_that_says_something_else_is_said_and_one_that_does_not_is_not() {
        let hosted = Endpoint::parse("https://gate.example/v1").unwrap();
        let near = Endpoint::parse("http://127.0.0.1:9/v1").unwrap();
        let said = |more: &Value, endpoint: &Endpoint, name: &str, value: &str| {
            let env = Env::from_pairs(&[(name, value)]);
            not_obeyed(&admission(more), endpoint, &env)
        };
        let digest = "a".repeat(64);
        let own =
            json!({"proxy": "proxy.example:3128", "ca_file": "/etc/corp.pem", "ca_sha256": digest});
        let none = json!({});
        for (more, endpoint, name, value, want) in [
            (
                &none,
                &hosted,
                "HTTPS_PROXY",
                "http://u:hidden@proxy.example:3128/",
                1,
            ),
            (
                &own,
                &hosted,
                "HTTPS_PROXY",
                "http://u:hidden@proxy.example:3128/",
                0,
            ),
            (&own, &hosted, "https_proxy", "proxy.example:3128", 0),
            (&own, &hosted, "https_proxy", "hidden.example:3128", 1),
            (&own, &hosted, "ALL_PROXY", "socks5://proxy.example:3128", 1),
            (&none, &near, "HTTPS_PROXY", "http://hidden.example:1", 0),
            (&none, &hosted, "HTTPS_PROXY", "", 0),
            (&none, &hosted, "SSL_CERT_FILE", "/home/hidden.pem", 1),
            (&own, &hosted, "SSL_CERT_FILE", "/etc/corp.pem", 0),
            (
                &none,
                &hosted,
                "SSL_CERT_FILE",
                "/etc/ssl/certs/ca-certificates.crt",
                0,
            ),
            (&none, &near, "SSL_CERT_FILE", "/home/hidden.pem", 0),
            (&none, &hosted, "NODE_EXTRA_CA_CERTS", "/home/hidden.pem", 1),
        ] {
            let found = said(more, endpoint, name, value);
            assert_eq!(found.len(), want, "{name}={value}: {found:?}");
            assert!(!format!("{found:?}").contains("hidden"), "{found:?}");
        }
    }
}
