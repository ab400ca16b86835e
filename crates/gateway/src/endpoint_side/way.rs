//! What an operator may say of the way to an endpoint: a proxy, certificate authorities of their
//! own, headers. Each was read once, and what was read is what is used.

use std::fmt;
use std::sync::Arc;

use cto_core::records::model_endpoint::ProxyAddress;
use cto_core::wire::profiles::header;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::Credential;
use crate::endpoint_side::roots;

/// A proxy that is asked for a tunnel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proxy {
    pub address: ProxyAddress,
    /// `user:password`.
    pub credential: Option<Credential>,
}

impl Proxy {
    /// For the redactor of the run: what opens it, whole and in parts.
    pub fn known_values(&self) -> Vec<Vec<u8>> {
        let Some(credential) = &self.credential else {
            return Vec::new();
        };
        let text = credential.reveal();
        let password = text.split_once(':').map_or(text, |(_, password)| password);
        vec![text.as_bytes().to_vec(), password.as_bytes().to_vec()]
    }
}

/// The value of a header the operator adds. Shown to the wire and to the redactor alone.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderValue(String);

impl HeaderValue {
    pub fn new(value: &str) -> Option<Self> {
        header::is_value(value).then(|| Self(value.to_owned()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// For the redactor of the run.
    pub fn known_value(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }
}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeaderValue")
    }
}

/// Certificate authorities that are believed instead of this system's.
#[derive(Clone)]
pub struct Authorities(pub(crate) Arc<ClientConfig>);

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthoritiesError {
    #[error("the file of certificate authorities is not in PEM form")]
    NotPem,
    #[error("the file of certificate authorities holds no certificate that can be believed")]
    NoCertificate,
    #[error("TLS cannot be set up")]
    Tls,
}

impl Authorities {
    /// From the bytes of a PEM file. What else such a file may hold is not looked at.
    pub fn from_pem(bytes: &[u8]) -> Result<Self, AuthoritiesError> {
        let mut store = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bytes) {
            let certificate = certificate.map_err(|_| AuthoritiesError::NotPem)?;
            store
                .add(certificate)
                .map_err(|_| AuthoritiesError::NoCertificate)?;
        }
        if store.is_empty() {
            return Err(AuthoritiesError::NoCertificate);
        }
        roots::config_of(store)
            .map(Self)
            .ok_or(AuthoritiesError::Tls)
    }
}
