use super::*;
use crate::records::{AdmissionStatus, LicenseStatus};
use crate::task::contract::MutationMode;

fn now() -> Utc {
    Utc::from_rfc3339("2026-11-18T08:00:00Z").unwrap()
}

pub(in crate::operator::setup) fn package() -> Package {
    Package {
        name: "@x/pi".into(),
        version: "1.2.3".into(),
        license: Some("MIT".into()),
    }
}

pub(in crate::operator::setup) fn answers() -> Answers {
    let executable = json!({
        "path": "/opt/pi/cli.js", "sha256": Digest::of(b"pi"), "identity_output": "pi", "version": "1.2.3",
        "package_version": "1.2.3", "command_shape": "pi -p", "interpreter": "node",
        "interpreter_path": "/usr/bin/node", "interpreter_sha256": Digest::of(b"node"),
    });
    let Value::Object(executable) = executable else {
        unreachable!("an object")
    };
    Answers {
        engine: "pi".parse().unwrap(),
        approval: "the owner, in this test".into(),
        now: now(),
        model: Some(ModelAnswers {
            pair: ModelPair {
                provider: "local".into(),
                model: "a/b:c-2026-01-01".into(),
            },
            provider_class: ProviderClass::LocalCaseCompatible,
            aliases: vec!["a/b:c".into()],
            way: CredentialWay::Variable("MY_KEY".into()),
            class: EndpointClass::Loopback,
            base_url_file: "/home/me/.config/cto/endpoints/pi".into(),
            endpoint_sha256: Digest::of(b"http://127.0.0.1:9/v1"),
            more: Map::new(),
        }),
        executable: Some(executable),
        source: Some(SourceAnswers {
            package: package(),
            integrity: Ok(format!("sha512-{}==", "aB3".repeat(28))),
            license_accepted: true,
        }),
    }
}

#[test]
fn answers_become_records_that_their_own_tables_take() {
    let drafts = answers().drafts().unwrap();
    let kinds: Vec<RecordKind> = drafts
        .files()
        .unwrap()
        .iter()
        .map(|(kind, _)| *kind)
        .collect();
    assert_eq!(
        kinds,
        [
            RecordKind::Decision,
            RecordKind::Model,
            RecordKind::Executable,
            RecordKind::Source
        ]
    );
    let (decision, model) = (drafts.decision.unwrap(), drafts.model.unwrap());
    assert_eq!(decision.pair(), Some(model.pair()));
    assert_eq!(model.credential_source_class, "env:MY_KEY");
    assert_eq!(model.aliases, Some(vec!["a/b:c".into()]));
    assert_eq!(
        model.endpoint_sha256,
        Some(Digest::of(b"http://127.0.0.1:9/v1"))
    );
    assert_eq!(
        model.base_url_file.as_deref(),
        Some("/home/me/.config/cto/endpoints/pi")
    );
    let source = drafts.source.unwrap();
    assert_eq!(source.source_admission_status, AdmissionStatus::Admitted);
    assert_eq!(source.license_status, LicenseStatus::Resolved);
    assert!(source.covers(MutationMode::CopiedRepo) && source.covers(MutationMode::CopiedFixture));
    assert!(!source.covers(MutationMode::OwnedNoncriticalRepo));
    assert!(source.pin().unwrap().starts_with("@x/pi@1.2.3+"));
}

#[test]
fn only_what_was_answered_is_written() {
    let answers = Answers {
        model: None,
        source: None,
        ..answers()
    };
    let drafts = answers.drafts().unwrap();
    assert!(drafts.decision.is_none() && drafts.model.is_none() && drafts.source.is_none());
    assert_eq!(drafts.files().unwrap().len(), 1);
}

#[test]
fn without_integrity_the_source_is_not_admitted() {
    let mut answers = answers();
    let source = answers.source.as_mut().unwrap();
    source.integrity = Err(NoIntegrity::NoLock);
    let record = answers.drafts().unwrap().source.unwrap();
    assert_eq!(record.source_admission_status, AdmissionStatus::NotAdmitted);
    assert_eq!(record.pin(), Some("@x/pi@1.2.3"));
    assert!(record.integrity_reference.starts_with("none: "));
}

#[test]
fn a_licence_nobody_typed_is_open_and_one_nobody_claimed_cannot_be_accepted() {
    for (claimed, accepted) in [(Some("MIT"), false), (None, true), (None, false)] {
        let mut answers = answers();
        let source = answers.source.as_mut().unwrap();
        source.license_accepted = accepted;
        source.package.license = claimed.map(str::to_owned);
        let record = answers.drafts().unwrap().source.unwrap();
        assert_eq!(record.license_status, LicenseStatus::Unresolved);
    }
}

#[test]
fn a_secret_in_any_answer_is_refused_by_the_table() {
    let key = "sk-abcdefghijklmnopqrstuvwx";
    let mut bad = answers();
    bad.approval = key.into();
    let refused = bad.drafts().unwrap_err();
    assert_eq!(refused.kind, RecordKind::Decision);
    assert!(!format!("{refused:?}").contains(key));
    let mut bad = answers();
    bad.model.as_mut().unwrap().pair.model = key.into();
    assert!(bad.drafts().is_err());
}
