//! `cto setup`: nothing without a typed word, and everything said that still blocks.

use cto_testkit::{House, converse};

use crate::fixtures::admission::program;
use crate::house;

const ANSWERS: &[&str] = &[
    "--model-provider",
    "qwen-local",
    "--model",
    "qwen3.6-35b-a3b",
    "--credential",
    "none",
    "--endpoint-class",
    "loopback",
    "--provider-class",
    "local_case_compatible",
    "--approval",
    "the owner, in this test",
];

fn setup(bin: &str, more: &[&str]) -> Vec<String> {
    let args = [&["setup", "codex", "--bin", bin][..], more].concat();
    args.into_iter().map(str::to_owned).collect()
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

fn records(house: &House) -> bool {
    house.state().join("records/codex/model.json").exists()
}

#[test]
fn without_a_terminal_somebody_must_have_typed_the_name() {
    let house = house();
    let bin = program(&house, "codex 1.2.3");
    let answer = house.cto(&words(&setup(&bin, ANSWERS)));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.stderr.contains("not_confirmed"), "{answer:?}");
    for wrong in ["Codex", "yes", ""] {
        let answer = house.cto(&words(&setup(
            &bin,
            &[ANSWERS, &["--confirm", wrong]].concat(),
        )));
        assert_eq!(answer.code, Some(3), "{wrong}: {answer:?}");
    }
    let answer = house.cto(&words(&setup(&bin, &["--confirm", "codex"])));
    assert_eq!(answer.code, Some(2), "an answer is missing: {answer:?}");
    assert!(!records(&house));
    assert_eq!(house.cto(&["setup", "fake"]).code, Some(2));
}

#[test]
fn with_it_the_records_are_written_stage_one_is_proven_and_what_blocks_stage_two_is_said() {
    let house = house();
    let bin = program(&house, "codex 1.2.3");
    let answer = house.cto(&words(&setup(
        &bin,
        &[ANSWERS, &["--confirm", "codex", "--json"]].concat(),
    )));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let document = answer.json();
    assert_eq!(document["stage1"]["ok"], true, "{document}");
    let remains = document["remains"].to_string();
    assert!(
        remains.contains("provider_local_config_unavailable")
            && remains.contains("--allow-engine codex"),
        "{remains}"
    );
    assert!(records(&house));
}

#[test]
fn at_a_terminal_it_asks_and_takes_the_typed_name() {
    let house = house();
    let bin = program(&house, "codex 1.2.3");
    let args = setup(&bin, &ANSWERS[2..]);
    let wrong = converse(house.command(&words(&args)), "qwen-local\nno\n");
    assert_eq!(wrong.code, Some(3), "{wrong:?}");
    assert!(!records(&house));
    let right = converse(house.command(&words(&args)), "qwen-local\ncodex\n");
    assert!(
        right.stdout.contains("Which provider?") && right.stdout.contains("what remains"),
        "{right:?}"
    );
    assert!(records(&house));
}
