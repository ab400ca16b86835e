//! How a run is written down: the files of a bundle.
//!
//! - this file: the names of its artifacts, and the digests a report holds of them
//! - `report/` `report.json`; `report_md.rs` the page for people, `renderer.rs` its numbers; `sums.rs` `SHA256SUMS`
//! - `approval/` what a person was asked and said; `archive.rs` a bundle as one file; `attest/` what its signature says
//! - `again.rs` which of them may be judged again without an engine
//! - `owner.rs` whose a directory is that is named like a run
//!
//! Imports: values to run. Imported by engine and every room above it.

pub mod again;
pub mod approval;
pub mod archive;
pub mod attest;
pub mod owner;
mod renderer;
pub mod report;
pub mod report_md;
pub mod sums;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::json::{self, JsonError};

pub const REPORT: &str = "report.json";
pub const REPORT_MD: &str = "report.md";
pub const CONTRACT: &str = "contract.json";
/// What the engine was told beside the task; only where the contract names its digest.
pub const INSTRUCTIONS: &str = "instructions.md";
/// The manifest of an engine that is the operator's own.
pub const ENGINE_MANIFEST: &str = "engine-manifest.toml";
pub const GATES: &str = "gates.json";
pub const ELIGIBILITY: &str = "eligibility.json";
pub const EVENTS: &str = "events.normalized.jsonl";
pub const TRACE: &str = "trace.jsonl";
pub const CONTAINMENT: &str = "containment.json";
pub const PATCH: &str = "patch.diff";
pub const TEST_LOG: &str = "test.log";
/// Only where a repository was copied.
pub const SOURCE: &str = "source.json";
/// Only where a runner is declared and the checks were green.
pub const TEST_IDS: &str = "test-ids.json";
pub const SUMS: &str = "SHA256SUMS";
pub const ATTESTATION: &str = "attestation.json";
pub const ATTESTATIONS_DIR: &str = "attestations/";
/// What others made and a run relied on, as it was: records (`relied/<kind>-<id>.json`), and the
/// baseline of an earlier run.
pub const RELIED_DIR: &str = "relied/";
pub const RELIED_BASELINE: &str = "relied/baseline.json";
pub const RELIED_LOG: &str = "relied/baseline.log";
pub const LOCK: &str = "run.lock";
pub const RESERVE: &str = ".reserve";
pub const REPORT_TEMP: &str = ".report.json.tmp";
pub const BACKEND_DIR: &str = "backend";
pub const SCRATCH_DIR: &str = "backend/scratch";
pub const SCRATCH_TAR: &str = "backend/scratch.tar";
pub const STDOUT_LOG: &str = "backend/stdout.log";
pub const STDERR_LOG: &str = "backend/stderr.log";
pub const TIMEOUT_NOTE: &str = "backend/provider-timeout.txt";
/// The engine's work was committed and it stayed: the harness ended it.
pub const LIFECYCLE_NOTE: &str = "backend/provider-lifecycle-harness-completed.txt";
pub const UNAVAILABLE_NOTE: &str = "backend/provider-unavailable.txt";
/// One line per model call of the engine.
pub const MODEL_CALLS: &str = "backend/model-calls.jsonl";
/// The one request before the engine was started.
pub const MODEL_PROBE: &str = "backend/model-probe.json";
/// What the endpoint said when it refused that request.
pub const MODEL_REFUSAL: &str = "backend/model-refusal.txt";

/// What a command printed that was red before the engine was to start, by its number from 1.
pub fn red_start_log(number: usize) -> String {
    format!("backend/baseline-{number}.log")
}

pub const MODEL_NOTE: &str = "backend/provider-model-not-admitted.txt";
pub const LOCAL_CONFIG_NOTE: &str = "backend/provider-local-config-unavailable.txt";
pub const AUTH_NOTE: &str = "backend/provider-auth-unavailable.txt";
pub const SHAPE_NOTE: &str = "backend/provider-reasoning-only.txt";
pub const PROTOCOL_NOTE: &str = "backend/provider-agent-protocol.txt";
/// What a stage leaves behind as proof for the next one.
pub const STAGE1_PROOF: &str = "stage1-gate-proof.json";
pub const STAGE2_NO_TARGET: &str = "stage2-no-target-inspection.json";
pub const STAGE2_COMPARISON: &str = "stage2-fake-baseline-comparison.json";
pub const STAGE3_PROOF: &str = "stage3-copied-repo-proof.json";
pub const STAGE4_PROOF: &str = "stage4-disposable-sandbox-proof.json";

/// The marker file that a blocker leaves, of a gate or of the run itself, for tools that look for files rather than
/// codes.
pub fn note_of(code: Code) -> Option<&'static str> {
    match code {
        Code::ProviderUnavailable => Some(UNAVAILABLE_NOTE),
        Code::ModelNotAdmitted => Some(MODEL_NOTE),
        Code::ProviderLocalConfigUnavailable => Some(LOCAL_CONFIG_NOTE),
        Code::ProviderAuthUnavailable => Some(AUTH_NOTE),
        Code::ProviderResponseShapeUnavailable => Some(SHAPE_NOTE),
        Code::AgentProtocolFailed => Some(PROTOCOL_NOTE),
        _ => None,
    }
}

/// Artifacts of every bundle, blocked ones included.
pub const ALWAYS: [&str; 11] = [
    REPORT,
    REPORT_MD,
    CONTRACT,
    GATES,
    ELIGIBILITY,
    EVENTS,
    TRACE,
    CONTAINMENT,
    PATCH,
    TEST_LOG,
    SUMS,
];

/// What the signature adds to every bundle.
pub const SIGNED: [&str; 3] = [
    ATTESTATION,
    crate::bundle::attest::PROVENANCE,
    crate::bundle::attest::TEST_RESULT,
];

/// Can this be the name of a file in a bundle? Relative, without `.`, `..`, empty parts,
/// backslashes or control characters.
pub fn is_safe_name(name: &str) -> bool {
    let parts_are_names = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    parts_are_names
        && name.len() <= 255
        && !name.contains('\\')
        && !name.chars().any(char::is_control)
}

/// Does `SHA256SUMS` list this file? Not itself, the attestations, or the lock.
pub fn is_summed(path: &str) -> bool {
    path != SUMS && path != ATTESTATION && path != LOCK && !path.starts_with(ATTESTATIONS_DIR)
}

/// A report cannot hold its own plain digest. `artifact_digests["report.json"]` is therefore the
/// digest of the canonical JSON of the report *with that one entry removed*; `SHA256SUMS` holds the
/// plain digest of the file.
pub fn report_self_digest(report: &Value) -> Result<Digest, JsonError> {
    let mut without = report.clone();
    if let Some(digests) = without
        .get_mut("artifact_digests")
        .and_then(Value::as_object_mut)
    {
        digests.remove(REPORT);
    }
    Ok(Digest::of(&json::canonical_value(&without)?))
}

/// What the report says about its artifacts must be what the sums say, but for the report itself.
pub fn digests_disagree(
    report: &BTreeMap<String, Digest>,
    sums: &BTreeMap<String, Digest>,
) -> Option<String> {
    let names = report.keys().chain(sums.keys());
    names
        .filter(|name| *name != REPORT)
        .find(|name| report.get(*name) != sums.get(*name))
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_self_digest_ignores_only_itself() {
        let report = serde_json::json!({"artifact_digests": {"a": "1"}, "status": "pass"});
        let base = report_self_digest(&report).unwrap();
        let mut with_self = report.clone();
        with_self["artifact_digests"][REPORT] = "anything".into();
        assert_eq!(report_self_digest(&with_self).unwrap(), base);
        for key in ["status", "new"] {
            let mut changed = report.clone();
            changed[key] = "other".into();
            assert_ne!(report_self_digest(&changed).unwrap(), base, "{key}");
        }
    }

    #[test]
    fn disagreement_names_the_file() {
        let map = |pairs: &[(&str, &[u8])]| {
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), Digest::of(v)))
                .collect::<BTreeMap<_, _>>()
        };
        let base = map(&[("a", b"1"), (REPORT, b"x")]);
        assert_eq!(
            digests_disagree(&base, &map(&[("a", b"1"), (REPORT, b"y")])),
            None
        );
        assert_eq!(
            digests_disagree(&base, &map(&[("a", b"2")])),
            Some("a".into())
        );
        assert_eq!(
            digests_disagree(&base, &map(&[("a", b"1"), ("b", b"1")])),
            Some("b".into())
        );
        assert_eq!(digests_disagree(&base, &map(&[])), Some("a".into()));
    }

    #[test]
    fn sums_leave_out_what_cannot_be_in_them() {
        for (path, want) in [
            (SUMS, false),
            (ATTESTATION, false),
            ("attestations/x.json", false),
            (LOCK, false),
            (REPORT, true),
            ("backend/run.lock", true),
        ] {
            assert_eq!(is_summed(path), want, "{path}");
        }
    }
}
