//! One integration binary: a module a command, then the failure matrix, cheats, faults and
//! tidiness. Every test lives in its own house and runs the real `cto`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: a broken premise must stop the test at once"
)]

mod checks;
mod engines;
mod evidence;
mod fixtures;
mod jail;
mod ladder;
mod ordinary;
mod program;
mod tampering;
mod tools;
mod work;

use std::path::{Path, PathBuf};

use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::verify::{Standing, Verification};
use cto_testkit::{Bundle, Case, House, ORACLE};

/// The binary that is tested: the one just built, or the one that `CTO_TEST_BINARY` names. So a
/// test of a hole can be shown to be red with the binary before.
pub fn program() -> PathBuf {
    std::env::var_os("CTO_TEST_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_cto").into(), PathBuf::from)
}

/// A fresh house around the real binary.
pub fn house() -> House {
    House::new(&program())
}

/// A house with one quick case, and a sealed pass of it.
pub fn passed() -> (House, Bundle) {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (house, bundle)
}

/// Trust in whoever signed a bundle, read without any check: what is refused then is not refused
/// for its key.
pub fn trusting(dir: &Path) -> Trust {
    let mut trust = Trust::default();
    let envelope = std::fs::read(dir.join("attestation.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let statement = cto_testkit::payload(&envelope.unwrap_or_default());
    let key = statement["predicate"]["signer"]["public_key"]
        .as_str()
        .map(PublicKey::from_base64);
    if let Some(Ok(key)) = key {
        trust.named(&key, "whoever signed it");
    }
    trust
}

/// The verifier, in this process, trusting whoever signed.
pub fn verdict_of(dir: &Path) -> Verification {
    cto_harness::bundles::verifier::verify_dir(dir, &trusting(dir)).unwrap()
}

pub fn verdict(bundle: &Bundle) -> Verification {
    verdict_of(&bundle.dir)
}

/// The bundle is whole, and says what its report says.
pub fn assert_good(bundle: &Bundle) {
    let found = verdict(bundle);
    assert_eq!(found.standing, Standing::Good, "{:?}", found.problems);
    assert_eq!(found.status.unwrap().as_str(), bundle.status());
}

/// The bundle is not good, and the reason is named.
pub fn assert_bad(bundle: &Bundle, what: &str) -> Verification {
    let found = verdict(bundle);
    assert_eq!(found.standing, Standing::Bad, "{what}: taken for good");
    assert!(
        !found.problems.is_empty() && found.status.is_none(),
        "{what}: no reason named"
    );
    found
}
