//! The run of `fake` that stage 2 compares with: kept, verified again, and made anew where it is not what
//! a new one would be.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{Bundle, sha256_hex};

use crate::assert_good;
use crate::fixtures::pi_lab::{DONE, Lab, PROBE, edit, pi, quick};

/// One run of Pi, which run of `fake` it relies on, and what its trace says of that.
fn ran(lab: &Lab, more: &[&str]) -> (Bundle, String, String) {
    let bundle = lab.play(&format!("{PROBE}{}{DONE}", edit()), more);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    assert_good(&bundle);
    let compared = bundle.json("stage2-fake-baseline-comparison.json");
    let baseline = compared["baseline"]["run_id"].as_str().unwrap().to_owned();
    let relied = bundle.report()["relies_on"].clone();
    let named = relied.as_array().unwrap().iter();
    assert!(
        named.clone().any(|on| on["id"] == baseline.as_str()
            && on["sha256"] == compared["baseline"]["sums_sha256"]),
        "{relied}"
    );
    let trace = bundle.lines("trace.jsonl");
    let line = |action: &str| {
        let found = trace.iter().find(|line| line["action"] == action);
        found.unwrap_or_else(|| panic!("{action}: {trace:?}"))
    };
    assert_eq!(line("model.probe")["detail"], "ok");
    let told = line("baseline.fake")["detail"].as_str().unwrap().to_owned();
    let steps = bundle.report()["timings"]["steps"].clone();
    let steps = steps.as_array().unwrap().iter();
    let steps: Vec<&str> = steps.filter_map(|step| step["step"].as_str()).collect();
    assert_eq!(steps[..3], ["plan", "probe", "fake"], "{steps:?}");
    (bundle, baseline, told)
}

fn place(lab: &Lab, run: &str) -> PathBuf {
    let dirs = lab.house.run_dirs();
    let of = |dir: &&PathBuf| dir.file_name().is_some_and(|name| name == run);
    dirs.iter().find(of).unwrap().clone()
}

#[test]
fn a_baseline_is_made_once_and_verified_every_time() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let (_, first, told) = ran(&lab, &[]);
    assert_eq!(told, format!("ran {first}"));
    let runs = lab.house.run_dirs().len();

    let (_, second, told) = ran(&lab, &[]);
    assert_eq!((&second, told), (&first, format!("relies on {first}")));
    assert_eq!(lab.house.run_dirs().len(), runs + 1, "no run but Pi's own");

    // Another task: other limits are another contract.
    let (_, other, told) = ran(&lab, &["--model-calls", "7"]);
    assert_ne!(other, first);
    assert_eq!(told, format!("ran {other}"));

    // One byte of it changed: it is not relied on, however well its name fits.
    let dir = place(&lab, &first);
    let log = dir.join("test.log");
    let kept = fs::read(&log).unwrap();
    fs::write(&log, [&kept[..], b"x"].concat()).unwrap();
    let (_, anew, told) = ran(&lab, &[]);
    assert_ne!(anew, first);
    assert_eq!(told, format!("ran {anew}"));

    // Whole again, and the newest of the two is taken.
    fs::write(&log, &kept).unwrap();
    assert_eq!(ran(&lab, &[]).1, anew);

    // Gone: its name points at nothing, so the one before it is.
    fs::remove_dir_all(place(&lab, &anew)).unwrap();
    let (last, relied, _) = ran(&lab, &[]);
    assert_eq!(relied, first);
    let sums = fs::read(dir.join("SHA256SUMS")).unwrap();
    assert!(
        last.text("report.json").contains(&sha256_hex(&sums)),
        "bound by its digest"
    );
}
