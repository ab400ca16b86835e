//! The real Pi, a scripted endpoint and a person at a terminal: eight questions, five records, two
//! proofs; and again, when nothing or one thing is stale.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{endpoint, own, records};
use crate::fixtures::people::people;
use crate::fixtures::pi_lab::{DONE, PROBE, edit, pi, quick};

const FILES: [&str; 5] = [
    "decision.json",
    "executable.json",
    "gate.json",
    "model.json",
    "source.json",
];

#[test]
fn eight_answers_and_everything_is_written_and_proven() {
    let Some(program) = pi() else { return };
    for person in people() {
        let scenario = format!("model = \"scripted-2026-01-01\"\n{PROBE}{}{DONE}", edit());
        let model = endpoint(&person, "model", &scenario);
        let case = person.at("ws/quick");
        quick().write(&case);
        own(&person, &case);
        let mut desk = person.desk();
        desk.line("export CTO_STATE_DIR=$HOME/state USER=me");
        let start = format!(
            "$cto setup pi --bin {} --case {}; echo code-$?\n",
            program.display(),
            case.display()
        );
        desk.types(start.clone());
        for (question, answer) in [
            ("Where is the model?", model.url.as_str()),
            ("How does the credential come?", "none"),
            ("Send it? yes or no", "yes"),
            ("Which model?", "scripted"),
            ("it answers as scripted-2026-01-01", "yes"),
            ("Who approves this", "the owner, in this test"),
            ("Type MIT to accept it", "MIT"),
            ("Type pi to write them", "pi"),
        ] {
            desk.sees(question);
            desk.sees("\n");
            desk.types(format!("{answer}\n"));
        }
        let shown = desk.sees("code-");
        assert!(
            shown.contains("try --engine pi"),
            "{}: {shown}",
            person.name
        );
        let code = desk.prompt();
        assert!(code.starts_with('0'), "{}: {shown}", person.name);
        assert_eq!(records(&person, "pi"), FILES, "{}", person.name);
        let record = |name: &str| {
            let path = person.at(&format!("home/state/records/pi/{name}.json"));
            fs::read_to_string(path).unwrap()
        };
        for name in ["decision", "model", "executable", "source", "gate"] {
            assert!(!record(name).contains(&model.url), "{name}");
        }
        let source = record("source");
        for want in [
            "@earendil-works/pi-coding-agent@0.74.2+",
            "sha512-",
            "\"admitted\"",
            "\"resolved\"",
        ] {
            assert!(source.contains(want), "{want}: {source}");
        }
        let file = person.at("home/.config/cto/endpoints/pi");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // Again: nothing is asked.
        let shown = desk.line("$cto setup pi; echo code-$?");
        assert!(
            shown.contains("Everything holds") && shown.contains("code-0"),
            "{}: {shown}",
            person.name
        );
        // A record of before, which holds nothing of what runs the program: it is mended.
        let executable = person.at("home/state/records/pi/executable.json");
        let mut of_before: Value = serde_json::from_str(&record("executable")).unwrap();
        assert!(of_before["interpreter_sha256"].is_string(), "{of_before}");
        let fields = of_before.as_object_mut().unwrap();
        fields.retain(|name, _| !name.starts_with("interpreter"));
        fs::write(&executable, of_before.to_string()).unwrap();
        desk.types(format!(
            "$cto setup pi --case {}; echo code-$?\n",
            case.display()
        ));
        let shown = desk.sees("Who approves this");
        assert!(shown.contains("no digest of what runs the file"), "{shown}");
        desk.sees("\n");
        desk.types("the owner, in this test\n");
        desk.sees("Type pi to write them");
        desk.sees("\n");
        desk.types("pi\n");
        let shown = desk.sees("code-");
        let code = desk.prompt();
        assert!(code.starts_with('0'), "{}: {shown}", person.name);
        assert!(record("executable").contains("\"interpreter_sha256\""));
        // One thing is stale: that alone is mended.
        let before = [record("decision"), record("executable"), record("source")];
        fs::write(&file, format!("{}/\n\n", model.url.replace("/v1", "/v2"))).unwrap();
        desk.types("$cto setup pi; echo code-$?\n");
        let shown = desk.sees("Where is the model?");
        assert!(shown.contains("not the one that was admitted"), "{shown}");
        desk.types("\x03");
        desk.sees("code-3");
        desk.prompt();
        assert_eq!(
            before,
            [record("decision"), record("executable"), record("source")]
        );
    }
}
