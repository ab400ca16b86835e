//! The TLS configuration: the certificate authorities this system trusts, read when first needed.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};

static CONFIG: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();

/// `None` when this system has no trusted authority.
pub fn config() -> Option<Arc<ClientConfig>> {
    CONFIG.get_or_init(load).clone()
}

fn load() -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read is one fewer to trust.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return None;
    }
    config_of(roots)
}

/// A configuration that believes these and no others.
pub fn config_of(roots: RootCertStore) -> Option<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(Arc::new(config))
}
