//! A bundle that was compared with a run of `fake`: one that it relies on, and that could have been its baseline.

use cto_core::verify::Standing;
use cto_testkit::{Bundle, Forged};
use serde_json::json;

use super::{Shelf, relying};

/// A pass that says which run it was compared with, as stage 2 leaves it.
fn comparing(shelf: &Shelf, with: &Bundle, relies: bool) -> Forged {
    let (id, sums) = (with.run_id(), shelf.sums(with));
    let relied = if relies { with } else { &shelf.pass };
    let forged = relying(shelf, &relied.run_id(), "proof", &shelf.sums(relied));
    let compared = json!({"schema_version": 1, "baseline": {"run_id": id, "sums_sha256": sums}});
    forged.put(COMPARISON, compared.to_string().as_bytes());
    forged
}

const COMPARISON: &str = "stage2-fake-baseline-comparison.json";

#[test]
fn a_run_is_compared_with_a_baseline_of_its_own_task() {
    let shelf = Shelf::make();
    let good = comparing(&shelf, &shelf.pass, true);
    shelf.expect("the same task", &good, Standing::Good, "");
    let bad = |what: &str, forged: &Forged, why: &str| {
        shelf.expect(what, forged, Standing::Bad, why);
    };
    let other = comparing(&shelf, &shelf.fail, false);
    bad("not relied on", &other, "the report does not rely on");
    good.put(COMPARISON, b"{}\n");
    bad("nothing", &good, "does not say what was compared");
    let other = comparing(&shelf, &shelf.other(), true);
    bad("another task", &other, "which had another task");
    for (field, value, why) in [
        ("backend", "codex", "which is not of the engine fake"),
        ("harness_version", "9.9.9", "which is of another harness"),
        ("origin", "validator", "which was made for another"),
        ("label", "try", "which is no run of a case at stage 2"),
    ] {
        let forged = Forged::copy_of(&shelf.pass);
        forged.edit_report(|report| report[field] = value.into());
        let baseline = Bundle::at(shelf.put(&forged));
        bad(field, &comparing(&shelf, &baseline, true), why);
    }
}
