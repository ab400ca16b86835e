//! The TLS configuration: the certificate authorities this system trusts, read when first needed.
//! No variable chooses them: `SSL_CERT_FILE` is anybody's to set, and a record can name authorities.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::load_certs_from_paths;

/// Where systems keep them; the first that is there.
const FILES: [&str; 7] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/opt/etc/ssl/certs/ca-certificates.crt",
];
const DIRECTORY: &str = "/etc/ssl/certs";

/// Is this one of the files that are believed without being named?
pub fn is_of_the_system(file: &Path) -> bool {
    FILES.iter().any(|known| Path::new(known) == file)
}

static CONFIG: OnceLock<Option<Arc<ClientConfig>>> = OnceLock::new();

/// `None` when this system has no trusted authority.
pub fn config() -> Option<Arc<ClientConfig>> {
    CONFIG.get_or_init(load).clone()
}

fn load() -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let file = FILES.iter().map(Path::new).find(|file| file.is_file());
    let directory = Path::new(DIRECTORY);
    let directory = (file.is_none() && directory.is_dir()).then_some(directory);
    // A certificate that cannot be read is one fewer to trust.
    roots.add_parsable_certificates(load_certs_from_paths(file, directory).certs);
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
