//! The table of tampering: what was done, and why it is refused. The binary refuses every row; the
//! one-file script (`packaging/verify.py`) refuses every row about bytes, names, digests, envelope
//! and signature.

mod rows;
mod verdicts;

use cto_testkit::{Bundle, Case, FORGER, Forged, House, ORACLE, TestKey, script, write};

use crate::house;

/// Whose key the verifier trusts in a row.
#[derive(Clone, Copy, PartialEq)]
enum Trusts {
    /// The machine that made the bundle.
    Machine,
    /// The forger: only what is signed wrongly is left to be found.
    Forger,
}

/// Is the row about bytes, names, digests, envelope or signature, which the script checks too?
const BOTH: bool = true;

const BINARY: bool = false;

pub struct Scene {
    house: House,
    pass: Bundle,
    other: Bundle,
    fail: Bundle,
}

impl Scene {
    fn make() -> Self {
        let house = house();
        let case = house.case(&Case::new("quick"));
        let (_, pass) = house.run(&case, ORACLE, &[]);
        let (_, other) = house.run(
            &case,
            &script(&[write("answer.txt", "right\nright\n")]),
            &["--timeout", "99"],
        );
        let (_, fail) = house.run(&case, &script(&[write("keep.txt", "x\n")]), &[]);
        Self {
            house,
            pass,
            other,
            fail,
        }
    }
}

type Act = fn(&Forged, &Scene);

struct Row {
    what: &'static str,
    /// Part of the reason that must be given.
    why: &'static str,
    trusts: Trusts,
    script: bool,
    act: Act,
}

fn forger() -> TestKey {
    TestKey::new(FORGER)
}
