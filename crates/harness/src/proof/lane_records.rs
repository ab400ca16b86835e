//! Records of a validator's own lane: a scripted model, and a program that is tried with it. They
//! are written to a validator's temporary place and admit nothing anywhere else.

use std::path::Path;

use cto_core::records::MUST_FORBID;
use cto_core::values::digest::Digest;
use cto_core::values::ids::EngineId;
use serde_json::{Value, json};

/// What the scripted model is called.
pub const MODEL: &str = "scripted";

pub fn model() -> Value {
    json!({
        "status": "admitted", "provider": "validator", "model": MODEL, "credential_source_class": "a file of this validator",
        "allowed_network_class": "loopback", "approval_source": "this validator", "admission_timestamp": "2026-01-01",
        "review_trigger": "never kept",
    })
}

pub fn decision() -> Value {
    json!({
        "decision_status": "local_provider_required", "provider_class": "local_case_compatible", "provider": "validator",
        "model": MODEL, "approval_source": "this validator", "credential_source_class": "a file of this validator",
        "allowed_network_class": "loopback", "review_trigger": "never kept", "evidence_sources": ["this validator"],
        "effect": "a scripted model may be used",
    })
}

pub fn executable(engine: &EngineId, path: &Path, sha256: Digest, version: &str) -> Value {
    json!({
        "engine": engine, "path": path.display().to_string(), "sha256": sha256, "identity_output": "not asked",
        "version": version, "command_shape": engine, "approval_source": "this validator",
        "admission_timestamp": "2026-01-01", "review_trigger": "never kept",
    })
}

pub fn source(engine: &EngineId) -> Value {
    json!({
        "engine": engine, "source_admission_status": "admitted", "source_name": engine, "source_url": "https://example.com/",
        "source_type": "a program of this host", "retrieval_date": "2026-01-01", "retrieval_command": "none",
        "integrity_reference": format!("sha256:{}", "0".repeat(64)), "license_note": "none is asked", "license_status": "resolved",
        "allowed_execution_modes": ["copied-fixture", "copied-repo", "sandbox-repo", "owned-noncritical-repo"],
        "blocked_execution_modes": ["candidate-default"],
        "protected_source_boundary": "its own directory", "review_trigger": "never kept", "pinned_tag": "v0",
    })
}

/// The admission of a repository that a validator made and may change.
pub fn target(repository: &Path) -> Value {
    json!({
        "admission_status": "admitted", "target_repository_path": repository.display().to_string(),
        "repository_owner": "this validator", "ownership_evidence": "made by this validator",
        "risk_classification": "low_risk_noncritical", "noncritical_rationale": "removed when it was looked at",
        "allowed_paths": ["*", "*/"], "forbidden_paths": [".env"], "forbidden_actions": MUST_FORBID,
        "approval_source": "this validator", "approval_timestamp": "2026-01-01", "operator_outcome_required": true,
        "review_trigger": "never kept",
    })
}
