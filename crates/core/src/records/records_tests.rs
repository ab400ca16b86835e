//! Every field of every record: missing, mistyped, huge, secret-shaped, and beside them keys nobody
//! knows.

use serde_json::{Value, json};

use super::*;

const SECRET: &str = "sk-abcdefghijklmnopqrstuvwx0123";

pub(crate) fn model() -> Value {
    json!({
        "status": "admitted", "provider": "qwen-local", "model": "qwen3.6-35b-a3b", "credential_source_class": "none",
        "allowed_network_class": "local", "approval_source": "the owner, 2026-06-01", "admission_timestamp": "2026-06-01",
        "review_trigger": ["stage_beyond:2", "date:2030-01-01"], "aliases": ["qwen"], "endpoint_sha256": Digest::of(b"e"), "request_fields": ["enable_search", "messages.*.audio"],
    })
}

pub(crate) fn decision() -> Value {
    json!({
        "decision_status": "local_provider_required", "provider_class": "local_case_compatible", "provider": "qwen-local",
        "model": "qwen3.6-35b-a3b", "fallback_provider": "openai-codex", "fallback_model": "gpt-5.5",
        "approval_source": "the owner", "credential_source_class": "none", "allowed_network_class": "local",
        "review_trigger": "before any change", "evidence_sources": ["a.md"], "effect": "the local model may be used",
    })
}

pub(crate) fn executable() -> Value {
    json!({
        "engine": "pi", "path": "/opt/pi/bin/pi", "sha256": Digest::of(b"pi"), "identity_output": "pi 1.2.3",
        "version": "1.2.3", "command_shape": "pi --mode json", "approval_source": "the owner",
        "admission_timestamp": "2026-06-01T00:00:00-04:00", "review_trigger": "path:/opt/pi/bin/pi",
        "source_url": "https://example.org/pi.git", "pinned_commit": "7959ac917cdeb0983b4aaa20bb9f42021747fed8",
        "build_command": "make", "tool_versions": {"node": "22.1.0"}, "build_timestamp": "2026-06-01",
        "missing_build_tools": ["make"], "source_tree_dirty": false, "package_version": "1.2.3", "interpreter": "node",
        "interpreter_path": "/usr/bin/node", "interpreter_sha256": Digest::of(b"node"), "interpreter_version": "v22.1.0",
        "packages_sha256": Digest::of(b"packages"),
    })
}

pub(crate) fn source() -> Value {
    json!({
        "engine": "pi", "source_admission_status": "admitted", "source_name": "Pi", "source_url": "https://example.org/pi.git",
        "source_type": "public git repository", "retrieval_date": "2026-06-01", "retrieval_command": "git clone --depth 1",
        "integrity_reference": "sha512-Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9Zx9==", "license_note": "MIT", "license_status": "resolved",
        "allowed_execution_modes": ["copied-fixture", "copied-repo"], "blocked_execution_modes": ["candidate-default"],
        "protected_source_boundary": "not vendored", "review_trigger": "stage_beyond:3", "web_url": "https://example.org/pi",
        "observed_branch": "main", "pinned_commit": "7959ac917cdeb0983b4aaa20bb9f42021747fed8", "pinned_tag": "v1.2.3",
        "commit_date": "2026-05-19T18:05:46-07:00", "previous_id": "v1.2.2", "new_id": "v1.2.3",
    })
}

pub(crate) fn target() -> Value {
    json!({
        "admission_status": "admitted", "target_repository_path": "/srv/sandbox", "repository_owner": "me",
        "ownership_evidence": "made for this", "risk_classification": "low_risk_noncritical",
        "noncritical_rationale": "safe to delete", "allowed_paths": ["src/"], "forbidden_paths": [".env", ".env.*", ".git/"],
        "forbidden_actions": Action::ALL, "approval_source": "the owner", "approval_timestamp": "2026-06-01",
        "operator_outcome_required": true, "review_trigger": "before any other path",
    })
}

fn build_report() -> Value {
    json!({
        "source_url": "https://example.org/pi.git", "pinned_commit": "7959ac917cdeb0983b4aaa20bb9f42021747fed8",
        "build_command": "make", "tool_versions": {}, "build_timestamp": "2026-06-01", "missing_build_tools": [],
        "source_tree_dirty": true, "executable_sha256": Digest::of(b"pi"), "version": "1", "command_shape": "pi",
    })
}

use crate::task::contract::Action;

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn issues<T: Record + std::fmt::Debug>(value: &Value) -> Vec<Issue> {
    read::<T>(&bytes(value)).unwrap_err()
}

/// Refused, the field named, and nothing of the value said.
fn refused<T: Record + std::fmt::Debug>(value: &Value, field: &str, kind: &str) {
    let found = issues::<T>(value);
    assert!(
        found.iter().any(|issue| issue.field == field),
        "{kind} {field}: {found:?}"
    );
    let said = format!("{found:?}");
    for secret in [SECRET, "xxxxxxxx", "hunter22"] {
        assert!(!said.contains(secret), "{kind} {field} is echoed: {said}");
    }
}

pub(crate) fn table<T: Record + std::fmt::Debug + PartialEq>(good: &Value) {
    let whole: T = read(&bytes(good)).unwrap_or_else(|issues| panic!("{issues:?}"));
    let again: T = read(&crate::values::json::pretty(&whole).unwrap()).unwrap();
    assert_eq!(again, whole, "what is written is read again");
    assert_eq!(
        T::FIELDS.len(),
        good.as_object().unwrap().len(),
        "the sample has every field"
    );
    for field in T::FIELDS {
        let with = |value: Value| {
            let mut changed = good.clone();
            changed[field.name] = value;
            changed
        };
        if field.need == Need::Required {
            let mut without = good.clone();
            without.as_object_mut().unwrap().remove(field.name);
            refused::<T>(&without, field.name, "missing");
        }
        for mistyped in [
            Value::Null,
            json!(-7),
            json!({"a": {"b": 1}}),
            json!([[7]]),
            json!([7]),
        ] {
            refused::<T>(&with(mistyped), field.name, "mistyped");
        }
        refused::<T>(&with(json!("x".repeat(5000))), field.name, "huge");
        refused::<T>(&with(json!(SECRET)), field.name, "secret");
        refused::<T>(&with(json!([SECRET])), field.name, "secret in a list");
        refused::<T>(
            &with(json!({"x": SECRET})),
            field.name,
            "secret in an object",
        );
        refused::<T>(&with(json!("password=hunter22")), field.name, "secret");
        refused::<T>(&with(json!("a\u{1b}[2J")), field.name, "control character");
        let text = String::from_utf8(bytes(good)).unwrap();
        let doubled = text.replacen('{', &format!("{{\"{}\":1,", field.name), 1);
        let found = read::<T>(doubled.as_bytes()).unwrap_err();
        assert_eq!(
            (found[0].field.as_str(), found.len()),
            (field.name, 1),
            "{found:?}"
        );
    }
    for (key, named) in [
        ("extra", "extra"),
        ("api_key", "api_key"),
        (SECRET, "record"),
        ("a b", "record"),
    ] {
        let mut changed = good.clone();
        changed[key] = json!("hunter22");
        refused::<T>(&changed, named, "extra");
    }
    let mut huge = good.clone();
    huge["approval_source"] = json!("x".repeat(MAX_RECORD));
    refused::<T>(&huge, "record", "huge");
    for odd in [
        &b"[]"[..],
        b"7",
        b"{",
        b"",
        b"\xff",
        b"{\"a\":1.5}",
        b"\xef\xbb\xbf{}",
    ] {
        assert_eq!(read::<T>(odd).unwrap_err()[0].field, "record");
    }
}

#[test]
fn every_field_of_every_record() {
    table::<ModelAdmission>(&super::model_endpoint::tests::whole());
    table::<ModelDecision>(&decision());
    table::<ExecutableAdmission>(&executable());
    table::<SourceAdmissionRecord>(&source());
    table::<TargetAdmission>(&target());
    table::<BuildReport>(&build_report());
}

#[test]
fn values_that_only_one_field_refuses() {
    type Check = fn(&Value, &str, &str);
    type Row = (Check, fn() -> Value, &'static str, Value);
    let rows: Vec<Row> = vec![
        (
            refused::<ModelAdmission>,
            model,
            "status",
            json!("Admitted"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "status",
            json!("approved"),
        ),
        (refused::<ModelAdmission>, model, "model", json!("qwen 3")),
        (refused::<ModelAdmission>, model, "model", json!("qwеn")),
        (refused::<ModelAdmission>, model, "model", json!("")),
        (
            refused::<ModelAdmission>,
            model,
            "allowed_network_class",
            json!("http://10.0.0.1:8000"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "credential_source_class",
            json!("env:A=hunter22"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "credential_source_class",
            json!("https://me:hunter22@host"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "admission_timestamp",
            json!("yesterday"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "admission_timestamp",
            json!("2026-02-30"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "review_trigger",
            json!("date:soon"),
        ),
        (
            refused::<ModelAdmission>,
            model,
            "endpoint_sha256",
            json!("abc"),
        ),
        (
            refused::<ModelDecision>,
            decision,
            "decision_status",
            json!("decided"),
        ),
        (
            refused::<ModelDecision>,
            decision,
            "provider_class",
            json!("external_other"),
        ),
        (
            refused::<ModelDecision>,
            decision,
            "provider_class",
            json!("external_anthropic"),
        ),
        (
            refused::<ModelDecision>,
            decision,
            "evidence_sources",
            json!([]),
        ),
        (
            refused::<ExecutableAdmission>,
            executable,
            "engine",
            json!("Pi"),
        ),
        (
            refused::<ExecutableAdmission>,
            executable,
            "path",
            json!("pi"),
        ),
        (
            refused::<ExecutableAdmission>,
            executable,
            "path",
            json!("case"),
        ),
        (
            refused::<ExecutableAdmission>,
            executable,
            "path",
            json!("/opt/../pi"),
        ),
        (
            refused::<ExecutableAdmission>,
            executable,
            "sha256",
            json!("BA7816BF"),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "source_url",
            json!("https://me:hunter22@example.org/x.git"),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "source_url",
            json!("http://example.org/x.git"),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "pinned_commit",
            json!("main"),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "pinned_commit",
            json!("7959ac9"),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "pinned_tag",
            json!("main"),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "allowed_execution_modes",
            json!([]),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "blocked_execution_modes",
            json!(["copied-repo"]),
        ),
        (
            refused::<SourceAdmissionRecord>,
            source,
            "new_id",
            json!("v9"),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "risk_classification",
            json!("critical"),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "allowed_paths",
            json!([]),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "allowed_paths",
            json!(["../x"]),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "allowed_paths",
            json!([".git/"]),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "forbidden_actions",
            json!(["push"]),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "operator_outcome_required",
            json!(false),
        ),
        (
            refused::<TargetAdmission>,
            target,
            "ownership_evidence",
            json!(" "),
        ),
    ];
    for (check, good, field, value) in rows {
        let mut changed = good();
        changed[field] = value;
        check(&changed, field, "bad value");
    }
    let mut moving = source();
    for field in ["pinned_commit", "pinned_tag", "previous_id", "new_id"] {
        moving.as_object_mut().unwrap().remove(field);
    }
    refused::<SourceAdmissionRecord>(&moving, "pinned_commit", "a branch alone");
}

#[test]
fn a_decision_that_decides_needs_every_field_and_one_that_does_not_needs_none() {
    assert!(read::<ModelDecision>(br#"{"decision_status":"not_decided"}"#).is_ok());
    for status in ["external_provider_approved", "local_provider_required"] {
        let found = issues::<ModelDecision>(&json!({"decision_status": status}));
        assert_eq!(found.len(), 9, "{found:?}");
    }
    let mut half = decision();
    half.as_object_mut().unwrap().remove("fallback_model");
    refused::<ModelDecision>(&half, "fallback_model", "half a fallback");
}

#[test]
fn each_defect_of_a_target_has_its_own_blocker() {
    use crate::values::blocker::Code;
    for (field, value, code) in [
        ("ownership_evidence", json!(""), Code::TargetUnowned),
        (
            "risk_classification",
            json!("critical"),
            Code::TargetCritical,
        ),
        ("allowed_paths", json!([]), Code::TargetPathsEmpty),
        (
            "forbidden_actions",
            json!([]),
            Code::TargetForbiddenActionMissing,
        ),
        ("approval_source", json!(""), Code::TargetApprovalMissing),
        (
            "operator_outcome_required",
            json!(false),
            Code::TargetOutcomeNotRequired,
        ),
        ("admission_status", json!("maybe"), Code::TargetNotAdmitted),
    ] {
        let mut changed = target();
        changed[field] = value;
        let found = issues::<TargetAdmission>(&changed);
        assert_eq!(
            found
                .iter()
                .map(|issue| TargetAdmission::code_of(&issue.field))
                .collect::<Vec<_>>(),
            [code]
        );
    }
}

#[test]
fn names_are_compared_byte_by_byte_and_the_difference_is_named() {
    let admitted = "qwen3.6-35b-a3b";
    for (asked, want) in [
        (admitted, None),
        ("Qwen3.6-35b-a3b", Some(Difference::Case)),
        (" qwen3.6-35b-a3b", Some(Difference::Space)),
        ("qwen3.6-35b-a3b\u{200b}", Some(Difference::Space)),
        ("qwеn3.6-35b-a3b", Some(Difference::LookAlike)),
        ("qwen3.6\u{2010}35b-a3b", Some(Difference::LookAlike)),
        ("ｑwen3.6-35b-a3b", Some(Difference::LookAlike)),
        ("qwen3.6-35b-a3c", Some(Difference::Name)),
        ("", Some(Difference::Name)),
    ] {
        assert_eq!(name_difference(asked, admitted), want, "{asked}");
    }
    assert_eq!(name_difference("o1", "0l"), Some(Difference::LookAlike));
    let admission: ModelAdmission = read(&bytes(&model())).unwrap();
    assert!(
        is_admitted_name(&admission, "qwen") && is_admitted_name(&admission, "qwen3.6-35b-a3b")
    );
    assert!(!is_admitted_name(&admission, "Qwen") && !is_admitted_name(&admission, ""));
}

#[test]
fn no_record_speaks_of_a_day_that_has_not_come() {
    let now = Utc::from_rfc3339("2026-06-15T12:00:00Z").unwrap();
    let lies_ahead = |text: &str| {
        let mut value = model();
        value["admission_timestamp"] = json!(text);
        match read_on::<ModelAdmission>(&bytes(&value), now) {
            Ok(_) => false,
            Err(issues) => {
                assert_eq!(issues.len(), 1, "{issues:?}");
                assert_eq!(issues[0].field, "admission_timestamp");
                true
            }
        }
    };
    for (text, want) in [
        ("2026-06-15", false),
        ("2026-06-16", false),
        ("2026-06-17", true),
        ("2099-01-01", true),
        ("2026-06-15T12:04:00Z", false),
        ("2026-06-15T12:06:00Z", true),
        ("2026-06-15T22:00:00+10:00", false),
        ("2026-06-15T12:00:00-01:00", true),
    ] {
        assert_eq!(lies_ahead(text), want, "{text}");
    }
    let mut value = executable();
    value["build_timestamp"] = json!("2030-01-01");
    let found = read_on::<ExecutableAdmission>(&bytes(&value), now).unwrap_err();
    assert_eq!(found[0].field, "build_timestamp");
}
