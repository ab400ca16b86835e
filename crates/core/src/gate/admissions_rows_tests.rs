//! The truth table of the records: what is changed, and which gates close.

use super::*;

/// What is changed, and how the blocked gates tell of it.
type Row = (&'static str, fn(&mut World), &'static [&'static str]);

fn gate_due() -> Found<crate::records::GateRecord> {
    found(&json!({
        "engine": "pi", "executable_sha256": Digest::of(b"pi"), "approval_source": "the owner",
        "opened_timestamp": "2026-06-01", "review_trigger": "date:2026-06-02",
    }))
}

/// The manifest names what runs it.
fn named(world: &mut World, more: &str) {
    let text = format!(
        "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n[invocation]\nprogram = \"admitted\"\nargv = []\ndialect = \"pi\"\ninterpreter = \"node\"\n{more}"
    );
    world.manifest = Manifest::parse("pi.toml", &text).unwrap();
}

/// The same with its smallest version; the sample's is 22.1.0.
fn wanted(world: &mut World, minimum: &str) {
    named(world, &format!("interpreter_min_version = \"{minimum}\"\n"));
}

/// A record that holds nothing of an interpreter.
fn no_interpreter(world: &mut World) {
    let fields = [
        "interpreter",
        "interpreter_path",
        "interpreter_sha256",
        "interpreter_version",
        "missing_build_tools",
    ];
    world.facts.executable = found(&without(samples::executable(), &fields));
    world.facts.interpreter = Interpreter::NotRecorded;
}

const ROWS: &[Row] = &[
    (
        "no decision",
        |w| w.facts.decision = Found::Missing,
        &["provider_decision_closed: there is no decision record"],
    ),
    (
        "not decided",
        |w| w.facts.decision = found(&json!({"decision_status": "not_decided"})),
        &["provider_decision_closed: the decision is not_decided"],
    ),
    (
        "an approval that leaves a field out",
        |w| w.facts.decision = found(&without(samples::decision(), &["effect"])),
        &["provider_decision_closed: the decision record cannot be used: effect"],
    ),
    (
        "class and status disagree",
        |w| {
            w.facts.decision = found(&changed(
                samples::decision(),
                "provider_class",
                json!("external_anthropic"),
            ))
        },
        &["provider_decision_closed: the decision record cannot be used: provider_class"],
    ),
    (
        "an external pair where a local one is required",
        |w| {
            w.facts.model = found(&changed(
                changed(samples::model(), "provider", json!("openai-codex")),
                "model",
                json!("gpt-5.5"),
            ));
            w.contract.lane.model = w.facts.pair();
            w.facts.proofs[0].lane.model = w.facts.pair();
            w.facts.endpoint = Endpoint::NotGiven;
        },
        &[
            "provider_decision_closed: the decision is local_provider_required",
            "provider_local_config_unavailable: no base URL",
        ],
    ),
    (
        "a hosted endpoint where a local one is required",
        |w| w.facts.endpoint = url("https://api.example.com"),
        &[
            "provider_decision_closed: the decision is local_provider_required",
            "model_not_admitted: mismatch: the endpoint is hosted",
        ],
    ),
    (
        "no model admission",
        |w| w.facts.model = Found::Missing,
        &[
            "provider_decision_closed: no provider and model",
            "model_not_admitted: missing_admission",
        ],
    ),
    (
        "a broken model admission",
        |w| {
            w.facts.model = found(&changed(
                samples::model(),
                "admission_timestamp",
                json!("soon"),
            ))
        },
        &[
            "provider_decision_closed: no provider",
            "model_not_admitted: invalid_admission: admission_timestamp",
        ],
    ),
    (
        "a record that admits nothing",
        |w| {
            w.facts.model = found(&changed(
                without(samples::model(), &["endpoint_sha256"]),
                "status",
                json!("not_admitted"),
            ))
        },
        &["model_not_admitted: not_admitted"],
    ),
    (
        "a model by another case",
        |w| w.facts.asked_model = Some("Qwen3.6-35b-a3b".into()),
        &[
            "provider_decision_closed: ",
            "model_not_admitted: mismatch: the model asked for is not the model that is admitted; they differ only in upper and lower case",
        ],
    ),
    (
        "a model with a look-alike letter",
        |w| w.facts.asked_model = Some("qwеn3.6-35b-a3b".into()),
        &[
            "provider_decision_closed: ",
            "model_not_admitted: mismatch: the model asked for is not the model that is admitted; they differ only in letters that look alike",
        ],
    ),
    (
        "a model with a space",
        |w| w.facts.asked_model = Some("qwen3.6-35b-a3b ".into()),
        &[
            "provider_decision_closed: ",
            "model_not_admitted: mismatch: the model asked for is not the model that is admitted; they differ only in white space",
        ],
    ),
    (
        "another provider",
        |w| w.facts.asked_provider = Some("openai".into()),
        &[
            "provider_decision_closed: ",
            "model_not_admitted: mismatch: the provider",
        ],
    ),
    (
        "another base URL",
        |w| w.facts.model = found(&samples::model()),
        &["model_not_admitted: mismatch: the base URL"],
    ),
    (
        "no executable record",
        |w| w.facts.executable = Found::Missing,
        &["executable_not_admitted: no record"],
    ),
    (
        "a record of another engine",
        |w| w.facts.executable = found(&changed(samples::executable(), "engine", json!("case"))),
        &["executable_not_admitted: the record is about another engine"],
    ),
    (
        "nothing at the path",
        |w| w.facts.binary = Binary::NotThere,
        &["provider_unavailable: the admitted file is no longer at its path"],
    ),
    (
        "a directory",
        |w| w.facts.binary = Binary::NotRegular,
        &["executable_not_admitted: what is at its path"],
    ),
    (
        "no program",
        |w| w.facts.binary = Binary::NotExecutable,
        &["executable_not_admitted: the file may not be executed"],
    ),
    (
        "a shell keyword",
        |w| w.facts.binary = Binary::NotAPath,
        &["executable_not_admitted: what was named is not an absolute path"],
    ),
    (
        "another digest",
        |w| {
            w.facts.binary = Binary::Found {
                path: "/opt/pi/bin/pi".into(),
                sha256: Digest::of(b"x"),
                is_temporary: false,
            }
        },
        &["executable_not_admitted: the file has another digest"],
    ),
    (
        "another path",
        |w| {
            w.facts.binary = Binary::Found {
                path: "/opt/other".into(),
                sha256: Digest::of(b"pi"),
                is_temporary: false,
            }
        },
        &[
            "executable_not_admitted: the file named",
            "review_due: executable admission: the path",
        ],
    ),
    (
        "another version of the package around the same file",
        |w| w.facts.package_version = Some("1.2.4".into()),
        &["executable_not_admitted: the package around the file is version 1.2.4, and 1.2.3 is"],
    ),
    (
        "a package that names no version",
        |w| w.facts.package_version = None,
        &[],
    ),
    (
        "another interpreter",
        |w| w.facts.interpreter = Interpreter::Found(Digest::of(b"other")),
        &["executable_not_admitted: node that is found now is another file"],
    ),
    (
        "no interpreter",
        |w| w.facts.interpreter = Interpreter::Missing("node was not found on PATH".into()),
        &["executable_not_admitted: node was not found"],
    ),
    (
        "an interpreter that is older than the manifest wants",
        |w| wanted(w, "22.2"),
        &["executable_not_admitted: pi needs node 22.2 or newer, and this one is 22.1;"],
    ),
    (
        "an interpreter that is as old as the manifest wants",
        |w| wanted(w, "22.1"),
        &[],
    ),
    (
        "a record of before, where the manifest wants a smallest version",
        |w| {
            wanted(w, "20");
            no_interpreter(w);
        },
        &["review_due: executable admission: it holds no digest of node, which runs the file"],
    ),
    (
        "a record of before, which names no interpreter",
        |w| {
            named(w, "");
            no_interpreter(w);
        },
        &[
            "review_due: executable admission: it holds no digest of node, which runs the file; `cto setup pi`",
        ],
    ),
    (
        "a record that names another interpreter than the manifest",
        |w| {
            named(w, "");
            let record = without(samples::executable(), &["missing_build_tools"]);
            w.facts.executable = found(&changed(record, "interpreter", json!("python3")));
        },
        &["review_due: executable admission: it holds no digest of node, which runs the file"],
    ),
    (
        "a record without an interpreter, where the manifest knows of none",
        no_interpreter,
        &[],
    ),
    (
        "a changed file behind the same launcher",
        |w| w.facts.packages = packages(b"other", Some("pi/dist/main.js was changed")),
        &[
            "executable_not_admitted: its packages are not those that are admitted: pi/dist/main.js was changed",
        ],
    ),
    (
        "other packages, and nobody knows where they differ",
        |w| w.facts.packages = packages(b"other", None),
        &["executable_not_admitted: its packages have another digest"],
    ),
    (
        "packages that cannot be looked at",
        |w| w.facts.packages = Packages::Unusable("a/b cannot be read".into()),
        &["executable_not_admitted: a/b cannot be read"],
    ),
    (
        "packages that are gone",
        |w| w.facts.packages = Packages::None,
        &["executable_not_admitted: the packages it was admitted with are no longer"],
    ),
    (
        "a record of before, which pins a launcher alone",
        |w| {
            let fields = ["packages_sha256", "missing_build_tools"];
            w.facts.executable = found(&without(samples::executable(), &fields));
            w.facts.packages = Packages::NotPinned;
        },
        &[
            "review_due: executable admission: it holds no digest of the packages around the file; `cto setup pi`",
        ],
    ),
    (
        "a program that comes with no packages",
        |w| {
            let fields = ["packages_sha256", "missing_build_tools"];
            w.facts.executable = found(&without(samples::executable(), &fields));
            w.facts.packages = Packages::None;
        },
        &[],
    ),
    (
        "another manifest since the proof",
        |w| w.contract.lane.manifest_sha256 = Some(Digest::of(b"manifest")),
        &["stage_not_proven: stage 1 was proven for another lane; changed since: manifest"],
    ),
    (
        "other packages since the proof",
        |w| w.contract.lane.packages_sha256 = Some(Digest::of(b"packages")),
        &["stage_not_proven: stage 1 was proven for another lane; changed since: packages"],
    ),
    (
        "a temporary directory at stage 2",
        |w| w.facts.binary = binary(true),
        &[],
    ),
    (
        "no source record at stage 2",
        |w| w.facts.source = Found::Missing,
        &[],
    ),
    (
        "a broken source record at stage 2",
        |w| w.facts.source = found(&without(samples::source(), &["license_note"])),
        &[
            "source_not_admitted: where the engine came from: the source record cannot be used: license_note",
        ],
    ),
    (
        "a date that has come",
        |w| w.facts.now = Utc::day("2031-01-01").unwrap(),
        &["review_due: model-provider admission: the day"],
    ),
    (
        "the gate record's day has come, and it is what opened the engine",
        |w| {
            w.facts.gate = gate_due();
            w.opening = Opening::Opened(By::Record(Digest::of(b"g")));
        },
        &["review_due: gate record: the day"],
    ),
    (
        "the same where a flag opened it",
        |w| w.facts.gate = gate_due(),
        &[],
    ),
    (
        "a class of words and no way",
        |w| w.facts.credential = Credential::NoWay,
        &["provider_auth_unavailable: the record describes the credential in words only"],
    ),
    (
        "a variable that is not set",
        |w| w.facts.credential = Credential::Missing(CredentialWay::Variable("PI_KEY".into())),
        &["provider_auth_unavailable: the variable PI_KEY is not there"],
    ),
    (
        "another way",
        |w| w.facts.credential = Credential::AnotherWay,
        &["provider_auth_unavailable: the credential was to come"],
    ),
    (
        "no base URL",
        |w| w.facts.endpoint = Endpoint::NotGiven,
        &["provider_local_config_unavailable: no base URL"],
    ),
    (
        "a base URL with a credential",
        |w| w.facts.endpoint = url("http://me:hunter22@127.0.0.1:8000"),
        &["provider_local_config_unavailable: the base URL carries a credential"],
    ),
    (
        "no proof",
        |w| w.facts.proofs.clear(),
        &["stage_not_proven: no proof of stage 1"],
    ),
    (
        "another file since the proof",
        |w| w.facts.proofs[0].lane.executable_sha256 = MaybeKnown::Known(Digest::of(b"old")),
        &[
            "stage_not_proven: stage 1 was proven for another lane; changed since: executable digest",
        ],
    ),
    (
        "another source and model since the proof",
        |w| {
            (
                w.facts.proofs[0].lane.source_pin,
                w.facts.proofs[0].lane.model,
            ) = (None, None)
        },
        &[
            "stage_not_proven: stage 1 was proven for another lane; changed since: source pin, model pair",
        ],
    ),
];

#[test]
fn truth_table() {
    for (name, change, want) in ROWS {
        let found = World::with(change).blocks();
        assert_eq!(found.len(), want.len(), "{name}: {found:?}");
        for (found, want) in found.iter().zip(*want) {
            assert!(found.starts_with(want), "{name}: {found}");
            assert!(!found.contains("hunter22"), "{found}");
        }
    }
}
