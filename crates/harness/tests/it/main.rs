//! One integration binary: a module a command, then the failure matrix, cheats, faults and tidiness.
//! Every test lives in its own house and runs the real `cto`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "test code: a broken premise must stop the test at once")]

mod apply;
mod attacks;
mod case;
mod cases;
mod cheats;
mod clock;
mod config;
mod contract;
mod diff;
mod engines;
mod faults;
mod golden;
mod help;
mod index;
mod jail;
mod json;
mod layers;
mod limits;
mod matrix;
mod measure;
mod odd_input;
mod old_names;
mod output;
mod prune;
mod recover;
mod replay;
mod run;
mod run_all;
mod runs;
mod schema;
mod show;
mod tamper;
mod tidy;
mod try_real;
mod try_run;
mod verify;

use cto_core::verify::{Standing, Verification};
use cto_testkit::{Bundle, Case, House, ORACLE};

/// A fresh house around the real binary.
pub fn house() -> House {
    House::new(env!("CARGO_BIN_EXE_cto"))
}

/// A house with one quick case, and a sealed pass of it.
pub fn passed() -> (House, Bundle) {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (house, bundle)
}

/// The verifier, in this process.
pub fn verdict(bundle: &Bundle) -> Verification {
    cto_harness::reader::verify_dir(&bundle.dir).unwrap()
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
    assert!(!found.problems.is_empty() && found.status.is_none(), "{what}: no reason named");
    found
}
