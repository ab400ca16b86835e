//! What a run may cost: calls, tokens and money, each with its flag, and what is said of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cto_testkit::House;
use serde_json::json;

use crate::assert_good;
use crate::fixtures::admission::{ENGINE, admitted};
use crate::fixtures::pi_lab::{DONE, Lab, PROBE, edit, pi, quick, tool};
use crate::house;

fn prices(house: &House, model: &str, price: &str) -> String {
    let path = house.root().join("elsewhere/prices.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = format!("[models.\"{model}\"]\ninput = \"{price}\"\noutput = \"{price}\"\n");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn money_needs_a_price_of_the_operators() {
    let house = house();
    admitted(&house);
    let refused = |more: &[&str], code: &str| {
        let run = [
            "run",
            "--engine",
            ENGINE,
            "--allow-engine",
            ENGINE,
            "--json",
        ];
        let answer = house.cto(&[&run[..], more].concat());
        assert_eq!(answer.code, Some(2), "{more:?}: {answer:?}");
        assert!(
            answer.stdout.contains(code) || answer.stderr.contains(code),
            "{answer:?}"
        );
        assert_eq!(house.run_dirs().len(), 0, "nothing ran");
    };
    let file = prices(&house, "qwen3.6-35b-a3b", "1.50");
    refused(&["--spend", "1"], "prices_missing");
    refused(&["--spend", "0", "--prices", &file], "nothing");
    refused(&["--spend", "1e3", "--prices", &file], "digits");
    refused(
        &["--spend", "1", "--prices", "/nowhere/prices"],
        "bad_prices",
    );
    refused(&["--tokens", "0"], "--tokens");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&["--spend", "1", "--prices", &file], "someone else");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "[models.m]\ninput = 1.5\noutput = \"1\"\n").unwrap();
    refused(&["--spend", "1", "--prices", &file], "bad_prices");
    let other = prices(&house, "another", "1.50");
    refused(&["--spend", "1", "--prices", &other], "no_price");
}

#[test]
fn limits_stand_in_the_contract_only_where_they_are_asked_for() {
    let house = house();
    admitted(&house);
    let file = prices(&house, "qwen3.6-35b-a3b", "1.50");
    let limits = |more: &[&str]| {
        let words = [
            "contract",
            "--engine",
            ENGINE,
            "--allow-engine",
            ENGINE,
            "--json",
        ];
        let answer = house.cto(&[&words[..], more].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.json()["contract"]["limits"].clone()
    };
    let plain = limits(&[]);
    for name in ["model_calls", "model_tokens", "model_spend"] {
        assert!(plain.get(name).is_none(), "{name}: {plain}");
    }
    let all = limits(&[
        "--tokens",
        "7",
        "--model-calls",
        "3",
        "--spend",
        "0.25",
        "--prices",
        &file,
    ]);
    assert_eq!(
        (&all["model_tokens"], &all["model_calls"]),
        (&json!(7), &json!(3))
    );
    let price = json!({"input_micros": 1_500_000, "cached_input_micros": 1_500_000, "output_micros": 1_500_000});
    assert_eq!(
        all["model_spend"],
        json!({"micros": 250_000, "price": price})
    );
}

#[test]
fn tokens_and_money_end_a_run_and_the_hint_names_the_flag() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let dear = prices(&lab.house, "scripted", "1000");
    let again = format!(
        "after = \"last\"\n{PROBE}{}",
        tool("read", json!({"path": "answer.txt"}))
    );
    for (limit, flag) in [
        (&["--tokens", "1"][..], "--tokens N"),
        (
            &["--spend", "0.000001", "--prices", &dear],
            "--spend AMOUNT",
        ),
        (&["--model-calls", "1"], "--model-calls N"),
    ] {
        let bundle = lab.play(&again, limit);
        assert_eq!(bundle.codes(), ["budget_exceeded"], "{limit:?}");
        assert!(bundle.text("report.md").contains(flag), "{limit:?}");
        let shown = lab.house.cto(&["show", &bundle.run_id()]).stdout;
        assert!(shown.contains(flag), "{shown}");
        assert_eq!(bundle.report()["model_use"]["calls"], 1, "{limit:?}");
        assert_good(&bundle);
    }
    let good = format!("{PROBE}{}{DONE}", edit());
    let bundle = lab.play(&good, &["--spend", "900000", "--prices", &dear]);
    let used = bundle.report()["model_use"].clone();
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    assert!(used["spent_micros"].as_u64().unwrap() > 0, "{used}");
    assert!(
        used["input_tokens"].is_u64() && used["cached_tokens"].is_u64(),
        "{used}"
    );
    assert!(bundle.text("report.md").contains("## Model"));
    assert_good(&bundle);
}

#[test]
fn counts_that_nobody_could_mean_do_not_spoil_the_evidence() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let huge = "usage = { input = 9223372036854775807, output = 9007199254740993 }\n";
    let bundle = lab.play(&format!("{PROBE}[[turn]]\ntext = \"Done.\"\n{huge}"), &[]);
    assert!(bundle.has_code("budget_exceeded"), "{:?}", bundle.codes());
    assert!(
        !bundle.has_code("artifact_write_failure"),
        "{:?}",
        bundle.codes()
    );
    assert_good(&bundle);
}
