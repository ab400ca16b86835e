//! Case through validators and the failure matrix: by its double where nobody named a program, by the program of
//! `CTO_HARNESS_CASE_BIN` where somebody did.

use super::*;

/// With a real program every command names it, and runs of it are the operator's own.
fn named() -> Vec<String> {
    let real = std::env::var("CTO_HARNESS_CASE_BIN").ok();
    real.into_iter()
        .flat_map(|path| ["--bin".into(), path])
        .collect()
}

#[test]
fn a_double_shows_its_stages_and_proves_none() {
    for house in houses() {
        for (stage, checks) in [
            (
                "stage1",
                ["recognised_and_not_run", "validator_run_proves_nothing"],
            ),
            (
                "stage2",
                ["engine_fixes_the_fixture", "validator_run_proves_nothing"],
            ),
        ] {
            let answer = house.cto(&["validate", stage, "--engine", "case", "--json"]);
            assert_eq!(answer.code, Some(0), "{answer:?}");
            assert!(answer.stderr.contains("its double plays"), "{answer:?}");
            let json = answer.json();
            for check in checks {
                let found = json["checked"].as_array().unwrap();
                let held = |one: &&Value| one["name"] == check && one["ok"] == true;
                assert!(found.iter().any(|one| held(&one)), "{check}: {json}");
            }
        }
        // Not a run and not a proof of it is in the operator's own state.
        let runs = house.runs_dir();
        let kept = fs::read_dir(&runs).map_or(0, |entries| entries.count());
        assert_eq!(kept, 0, "{}", runs.display());
        let ladder = house.cto(&["engines", "--json"]).json();
        let engines = ladder["engines"].as_array().unwrap();
        let case = engines.iter().find(|row| row["engine"] == "case").unwrap();
        assert!(
            case["proven_stage"].is_null() || case["proven_stage"] == 0,
            "{case}"
        );
    }
}

#[test]
fn rows_of_the_failure_matrix_hold_for_case() {
    let spread = [
        "sound",
        "sound-edit",
        "no-diff",
        "disallowed-file",
        "failed-tests",
        "reviewer-reject",
        "surviving-child",
        "forbidden-file",
        "protected-file",
        "secret-in-output",
        "probe-401",
        "probe-other-model",
        "model-500",
        "model-cut",
        "budget-exceeded",
        "missing-event",
    ];
    let all = std::env::var_os("CTO_LANES").is_some_and(|word| word == "all");
    let house = house();
    let own = named();
    let mut args = vec!["matrix", "--engine", "case", "--json"];
    args.extend(own.iter().map(String::as_str));
    if !all {
        args.extend(spread.iter().flat_map(|row| ["--row", row]));
    }
    let answer = house.cto(&args);
    let json = answer.json();
    let rows = json["rows"].as_array().unwrap();
    let wrong: Vec<&Value> = rows.iter().filter(|row| row["verdict"] == "red").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for row in rows.iter().filter(|row| row["verdict"] == "not_applicable") {
        assert!(
            row["reason"].as_str().is_some_and(|why| !why.is_empty()),
            "{row}"
        );
    }
    let green = |name: &str| {
        rows.iter()
            .any(|row| row["row"] == name && row["verdict"] == "green")
    };
    assert!(
        green("sound") && green("reviewer-reject") && green("model-500"),
        "{json}"
    );
}
