//! Bundles of every released format, as they were written: they verify for ever.

use std::path::Path;

use cto_core::verify::Standing;

#[test]
fn golden_bundles_verify() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seen = Vec::new();
    for version in std::fs::read_dir(&root).unwrap().flatten() {
        for bundle in std::fs::read_dir(version.path()).unwrap().flatten() {
            let found = cto_harness::reader::verify_dir(&bundle.path()).unwrap();
            assert_eq!(found.standing, Standing::Good, "{}: {:?}", bundle.path().display(), found.problems);
            // The directory is named after the verdict its bundle bears.
            assert_eq!(found.status.unwrap().as_str(), bundle.file_name().to_str().unwrap());
            seen.push(bundle.file_name());
        }
    }
    assert!(seen.len() >= 3, "a pass, a fail and a blocked bundle: {seen:?}");
}
