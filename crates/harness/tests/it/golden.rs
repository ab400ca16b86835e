//! Bundles of every released format, as they were written: they verify for ever.

use std::path::Path;

use cto_core::attest::{PublicKey, Trust};
use cto_core::verify::Standing;

#[test]
fn golden_bundles_verify() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seen = Vec::new();
    let key = std::fs::read_to_string(root.join("test-key.pem")).unwrap();
    let mut trust = Trust::default();
    trust.named(&PublicKey::from_text(&key).unwrap(), "the key of golden bundles");
    for version in std::fs::read_dir(&root).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        for bundle in std::fs::read_dir(version.path()).unwrap().flatten() {
            let found = cto_harness::verifier::verify_dir(&bundle.path(), &trust).unwrap();
            assert_eq!(found.standing, Standing::Good, "{}: {found:?}", bundle.path().display());
            // The directory is named after the verdict its bundle bears.
            assert_eq!(found.status.unwrap().as_str(), bundle.file_name().to_str().unwrap());
            seen.push(bundle.file_name());
        }
    }
    assert!(seen.len() >= 3, "a pass, a fail and a blocked bundle: {seen:?}");
}
