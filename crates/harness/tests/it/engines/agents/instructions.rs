//! `--instructions FILE`: what an engine is told beside its task. With real agents the scripted model
//! sees it; a stranger finds the bytes in the bundle.

use std::fs;

use cto_testkit::{Bundle, Case, FORGER, Forged, House, ORACLE, TestKey, sha256_hex};
use serde_json::json;

use crate::fixtures::pi_lab::{
    Agent, CODEX, DONE, Lab, OPENCODE, PI, PI_24, PROBE, edit, quick, tool,
};
use crate::fixtures::verifiers::by_script;
use crate::{assert_bad, assert_good, house};

const WORDS: &str = "Say MARK-7431 in every message.\nUse \"tabs\" & {model}.\n";

fn file(house: &House, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = house.root().join(name);
    fs::write(&path, bytes).unwrap();
    house.hand_over(&path);
    path.display().to_string()
}

/// Plays one good run of an agent on the quick case, told or not.
fn told(agent: &Agent, turn: &str, told: bool) -> Option<(Lab, Bundle, bool)> {
    let program = agent.installed()?;
    let house = house();
    let case = house.case(&quick());
    house.hand_over(&house.root().join("cases"));
    let lab = Lab::of(agent, &program, house, case);
    let model = lab.model(&format!("{PROBE}{turn}{DONE}"));
    let words = file(&lab.house, "AGENTS.md", WORDS);
    let more: &[&str] = match told {
        true => &["--instructions", &words],
        false => &[],
    };
    let (answer, bundle) = lab.run(&model, more);
    assert_eq!(answer.code, Some(0), "{:?} {answer:?}", bundle.codes());
    assert_good(&bundle);
    let heard = model.heard("MARK-7431") && model.heard("{model}");
    Some((lab, bundle, heard))
}

#[test]
fn the_model_of_every_agent_hears_them_and_the_bundle_holds_them() {
    let codex = tool(
        "exec_command",
        json!({"cmd": "sed -i s/wrong/right/ answer.txt"}),
    );
    let opencode = tool(
        "bash",
        json!({"command": "sed -i s/wrong/right/ answer.txt", "description": "work"}),
    );
    for (agent, turn) in [
        (&CODEX, &codex),
        (&OPENCODE, &opencode),
        (&PI, &edit()),
        (&PI_24, &edit()),
    ] {
        let name = format!("{} {}", agent.engine, agent.version);
        let Some((_lab, bundle, heard)) = told(agent, turn, true) else {
            continue;
        };
        assert!(heard, "{name}");
        assert_eq!(bundle.text("instructions.md"), WORDS, "{name}");
        let contract = bundle.json("contract.json");
        assert_eq!(
            contract["instructions_sha256"],
            sha256_hex(WORDS.as_bytes()),
            "{name}"
        );
        let Some((_lab, bundle, heard)) = told(agent, turn, false) else {
            continue;
        };
        assert!(!heard && !bundle.has("instructions.md"), "{name}");
        let contract = bundle.text("contract.json");
        assert!(!contract.contains("instructions"), "{name}: {contract}");
    }
}

#[test]
fn a_scripted_engine_finds_them_and_may_not_change_them() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let words = file(&house, "AGENTS.md", WORDS);
    let look = "grep -q MARK-7431 /scratch/instructions.md && ! sh -c 'echo x >> /scratch/instructions.md' && ! rm -f /scratch/instructions.md && sed -i s/wrong/right/ answer.txt";
    let script = format!("[[step]]\ndo = \"shell\"\ncommand = \"{look}\"\n");
    let (answer, bundle) = house.run(&case, &script, &["--instructions", &words]);
    assert_eq!(answer.code, Some(0), "{:?} {answer:?}", bundle.codes());
    assert_good(&bundle);
    assert_eq!(bundle.text("instructions.md"), WORDS);
    // Another text is another task; none is what it was before there were any.
    let task = |bundle: &Bundle| bundle.report()["task_digest"].clone();
    let other = file(&house, "OTHER.md", "Something else.\n");
    let (_, another) = house.run(&case, ORACLE, &["--instructions", &other]);
    let (_, none) = house.run(&case, ORACLE, &[]);
    assert!(task(&bundle) != task(&another) && task(&another) != task(&none));
}

#[test]
fn what_is_no_text_or_holds_a_secret_is_refused_before_anything_runs() {
    let house = house().with("MY_API_KEY", "hidden-word-0123456789");
    let case = house.case(&Case::new("quick"));
    let long = "x".repeat((64 << 10) + 1);
    for (bytes, code) in [
        (&b""[..], "bad_instructions"),
        (b"a\0b", "bad_instructions"),
        (b"\xff\xfe", "bad_instructions"),
        (long.as_bytes(), "unreadable_instructions"),
        (b"the key is hidden-word-0123456789", "secret_instructions"),
        (b"use sk-abcdefghijklmnopqrstuvwx", "secret_instructions"),
    ] {
        let words = file(&house, "AGENTS.md", bytes);
        let answer = house.cto(&["run", &case, "--instructions", &words]);
        assert_eq!(answer.code, Some(2), "{code}: {answer:?}");
        assert!(answer.stderr.contains(code), "{code}: {answer:?}");
        assert!(!answer.stderr.contains("hidden-word"), "{answer:?}");
    }
    let answer = house.cto(&["run", &case, "--instructions", "/nowhere/AGENTS.md"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert_eq!(house.run_dirs().len(), 0);
}

#[test]
fn a_case_may_bring_its_own_and_what_is_typed_goes_before_it() {
    let house = house();
    let case = house.case(&Case::new("quick").extra("\ninstructions = \"AGENTS.md\"\n"));
    let missing = house.cto(&["run", &case]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(
        missing.stdout.contains("contract_invalid"),
        "there is no such file: {missing:?}"
    );
    fs::write(house.root().join("cases/quick/AGENTS.md"), WORDS).unwrap();
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(bundle.text("instructions.md"), WORDS);
    let typed = file(&house, "typed.md", "Typed.\n");
    let (_, bundle) = house.run(&case, ORACLE, &["--instructions", &typed]);
    assert_eq!(bundle.text("instructions.md"), "Typed.\n");
}

#[test]
fn a_bundle_without_the_bytes_it_names_is_not_good() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let words = file(&house, "AGENTS.md", WORDS);
    let (_, bundle) = house.run(&case, ORACLE, &["--instructions", &words]);
    assert_good(&bundle);
    let key = house.root().join("forger.pem");
    fs::write(&key, TestKey::new(FORGER).public_pem()).unwrap();
    let whole = Forged::copy_of(&bundle);
    whole.sign(&TestKey::new(FORGER));
    assert_eq!(by_script(&key, std::slice::from_ref(&whole.dir)), [0]);
    for bytes in [Some("Other.\n"), None] {
        let forged = Forged::copy_of(&bundle);
        match bytes {
            Some(bytes) => forged.put("instructions.md", bytes.as_bytes()),
            None => forged.remove("instructions.md"),
        };
        forged.redigest().sign(&TestKey::new(FORGER));
        assert_eq!(by_script(&key, std::slice::from_ref(&forged.dir)), [1]);
        let found = assert_bad(&forged.bundle(), "other instructions");
        let named = |what: &str| {
            let mut all = found.problems.iter();
            all.any(|problem| {
                problem.artifact == "instructions.md" && problem.message.contains(what)
            })
        };
        assert!(named("the contract names"), "{:?}", found.problems);
    }
}
