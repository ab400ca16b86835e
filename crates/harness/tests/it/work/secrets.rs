//! What no bundle holds: a credential in any spelling, the halves that a cut leaves of one, what the engine left behind,
//! and what a run that started nothing was told.

use std::fs;

use cto_testkit::{Bundle, Case, House, ORACLE, print, script, shell, write};

use crate::engines::known::{LAB, environment, put};
use crate::fixtures::pi_lab::{Agent, KEY, KEY_VARIABLE, Lab, PROBE};
use crate::fixtures::verifiers::{by_script, public_key};
use crate::{assert_good, house};

const SECRET: &str = "Zx9-Correct/Horse-41!";
const OWN: Agent = Agent {
    names_its_interpreter: true,
    ..Agent::of("lab", "1.2.3")
};

/// Every letter as an escape of JSON.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04X}")).collect()
}

fn words(house: &House) -> String {
    let path = house.root().join("AGENTS.md");
    fs::write(&path, "Say MARK-7431.\n").unwrap();
    house.hand_over(&path);
    path.display().to_string()
}

#[test]
fn what_is_decoded_into_events_was_found_in_every_spelling() {
    let house = house().with("MY_API_KEY", SECRET);
    let case = house.case(&Case::new("quick"));
    let slashed = SECRET.replace('/', "\\/");
    let percent = SECRET.replace('/', "%2f").replace('!', "%21");
    for spelling in [&escaped(SECRET), &slashed, &percent] {
        let line = |kind: &str| format!("{{\"type\":\"{kind}\",\"text\":\"it is {spelling}.\"}}\n");
        let tool = format!(
            "{{\"type\":\"tool\",\"tool\":\"{spelling}\",\"target\":\"a/{spelling}/b\"}}\n"
        );
        let far = format!(
            "{{\"type\":\"message\",\"text\":\"{}{spelling}\"}}\n",
            ".".repeat(490)
        );
        let steps = [
            write("answer.txt", "right\n"),
            print(&line("message")),
            print(&line("plan")),
            print(&tool),
            print(&far),
        ];
        let (answer, bundle) = house.run(&case, &script(&steps), &[]);
        assert_eq!(bundle.codes(), ["secret_leak"], "{answer:?}");
        let message = bundle.event("engine.message").unwrap();
        assert_eq!(message["text"], "it is [redacted:known-value].");
        let events = bundle.text("events.normalized.jsonl");
        assert!(events.contains("a/[redacted:known-value]/b"), "{events}");
        for needle in [SECRET, spelling, "Zx9-", "\\u005A\\u0078\\u0039"] {
            assert!(bundle.anywhere(needle).is_empty(), "{needle}");
        }
        assert_good(&bundle);
    }
}

#[test]
fn the_end_of_a_long_log_holds_no_half_of_a_value() {
    let house = house().with("MY_API_KEY", SECRET);
    // The tail that is kept begins in the middle of the value.
    let setup =
        "printf %s Zx9-Correct; printf %s /Horse-41!; head -c 1048566 /dev/zero | tr '\\\\0' x";
    let case = house.case(&Case::new("quick").extra(&format!("setup = [\"{setup}\"]")));
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    let log = bundle.text("backend/setup-1.log");
    assert!(log.ends_with("xxx"), "{answer:?}");
    assert!(
        !log.contains("Horse") && !log.contains("-41!"),
        "{}",
        &log[..99]
    );
}

#[test]
fn what_the_engine_left_behind_is_cleaned_or_withheld() {
    let house = house().with("MY_API_KEY", SECRET);
    let case = house.case(&Case::new("quick"));
    let key = "key=Zx9-Correct; key=$key/Horse-41!";
    let steps = [
        write("answer.txt", "right\n"),
        shell(&format!(
            "{key}; echo before $key after > /scratch/note; printf 'a\\0%s\\0' $key > /scratch/binary; echo > /scratch/${{key#*/}}; mkdir /scratch/${{key%/*}}; echo > /scratch/$key; ln -s /x/$key /scratch/link"
        )),
    ];
    let (answer, bundle) = house.run(&case, &script(&steps), &[]);
    assert_eq!(bundle.codes(), ["secret_leak"], "{answer:?}");
    let detail = bundle.report()["blockers"][0].to_string();
    assert!(detail.contains("backend/scratch.tar"), "{detail}");
    let packed = bundle.bytes("backend/scratch.tar");
    let packed = String::from_utf8_lossy(&packed);
    assert!(packed.contains("before [redacted:known-value] after"));
    assert!(packed.contains("withheld by CTO Harness"));
    assert!(
        bundle.anywhere(SECRET).is_empty(),
        "{:?}",
        bundle.anywhere(SECRET)
    );
    assert_good(&bundle);
}

#[test]
fn a_run_that_started_nothing_holds_nothing_that_was_to_be_told() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let broken = house.case(&Case::new("broken").extra("setup = [\"false\"]"));
    let words = words(&house);
    let told = "dialect = \"plain\"\ninstructions = \"prompt\"\n";
    put(&house, "lab", &LAB.replace("dialect = \"plain\"\n", told));
    for (case, more, name) in [
        (&case, &["--engine", "lab"][..], "its gate is closed"),
        (&broken, &[], "its setup fails"),
    ] {
        let args = [
            &["run", case, "--instructions", &words][..],
            more,
            &["--json"],
        ]
        .concat();
        let (answer, bundle) = house.run_args(&args);
        assert_eq!(answer.code, Some(3), "{name}: {answer:?}");
        assert!(bundle.event("engine.started").is_none(), "{name}");
        let contract = bundle.json("contract.json");
        assert!(contract["instructions_sha256"].is_string(), "{name}");
        for gone in ["instructions.md", "engine-manifest.toml"] {
            assert!(!bundle.has(gone), "{name}: {gone}");
        }
        assert!(bundle.anywhere("MARK-7431").is_empty(), "{name}");
        assert!(bundle.anywhere("An agent of a lab").is_empty(), "{name}");
        assert_good(&bundle);
        let key = public_key(&house);
        assert_eq!(by_script(&key, std::slice::from_ref(&bundle.dir)), [0]);
    }
}

#[test]
fn a_credential_that_no_bundle_could_be_kept_free_of_runs_nothing() {
    let house = house();
    let program = environment(&house);
    put(&house, "lab", LAB);
    let command = format!("grep -qx right answer.txt && grep -qx fine control.txt # {KEY}");
    let told = house.case(&Case::new("told").commands(&format!("[\"{command}\"]")));
    let lab = Lab::of(&OWN, &program, house, told);
    let model = lab.model(PROBE);
    let run = |lab: &Lab, case: &str| {
        lab.house.cto(&[
            "run",
            case,
            "--engine",
            "lab",
            "--stage",
            "2",
            "--base-url-file",
            &model.url_file,
            "--json",
        ])
    };
    let before = lab.house.run_dirs().len();
    let refused = run(&lab, &lab.case);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stdout.contains("secret_contract"), "{refused:?}");
    assert!(!refused.stdout.contains(KEY) && !refused.stderr.contains(KEY));
    assert_eq!(lab.house.run_dirs().len(), before);

    let case = lab.house.case(&Case::new("quick"));
    // A word of every report: it cannot be sealed without it.
    let lab = lab.with(KEY_VARIABLE, "artifact_digests");
    let unsealed = run(&lab, &case);
    assert!(
        unsealed.stdout.contains("secret_in_evidence"),
        "{unsealed:?}"
    );
    let open = lab
        .house
        .run_dirs()
        .into_iter()
        .find(|dir| !dir.join("report.json").exists());
    let open = open.expect("its directory");
    let contract = fs::read_to_string(open.join("contract.json")).unwrap();
    assert!(
        contract.starts_with("withheld by CTO Harness"),
        "{contract}"
    );
    // What is recovered is a run whose contract nobody knows any more.
    lab.house.cto(&["recover"]);
    let recovered = Bundle::at(open);
    assert_eq!(recovered.json("contract.json")["invalid"], true);
    assert_ne!(recovered.status(), "pass");
}
