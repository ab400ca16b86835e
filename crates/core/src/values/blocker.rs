//! The one list of blockers: code, event that carries it, status, sentence, hint.
//!
//! Docs and schemas are generated from this table. Adding a blocker means adding a row here and
//! nothing anywhere else but the check that raises it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::event_type::EventType;
use crate::values::verdict::Status;

/// A blocker that is found while the run closes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub code: Code,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What the table says about one code.
#[derive(Clone, Copy, Debug)]
pub struct BlockerInfo {
    pub code: Code,
    pub name: &'static str,
    /// The event whose data carries the code.
    pub event: EventType,
    pub status: Status,
    pub sentence: &'static str,
    pub hint: &'static str,
}

macro_rules! blockers {
    ($($variant:ident $name:literal $event:ident $status:ident $sentence:literal $hint:literal;)*) => {
        /// A stable blocker code. The spelling in artifacts never changes once released.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum Code {
            $(#[serde(rename = $name)] $variant,)*
        }

        /// Every blocker, in the order the documentation shows them.
        pub const BLOCKERS: &[BlockerInfo] = &[
            $(BlockerInfo {
                code: Code::$variant,
                name: $name,
                event: EventType::$event,
                status: Status::$status,
                sentence: $sentence,
                hint: $hint,
            },)*
        ];

        impl Code {
            pub const fn info(self) -> &'static BlockerInfo {
                // The table is generated in variant order, so the discriminant is the index.
                &BLOCKERS[self as usize]
            }
        }
    };
}

blockers! {
    NoDiff "no_diff" GitDiffChecked Fail
        "the engine said it was done, but nothing changed"
        "read backend/stdout.log for what the engine believed it did";
    DisallowedFileChange "disallowed_file_change" GitDiffChecked Fail
        "a path outside allowed_paths was changed"
        "if the path belongs to the task, add it to allowed_paths and run again";
    VerificationFailed "verification_failed" VerificationCompleted Fail
        "verification failed in the pristine copy"
        "read test.log; the exit code decides, not the output";
    MissingTestCommand "missing_test_command" VerificationCompleted Blocked
        "verification is required, but the contract names no command"
        "add verification_commands to the case";
    MissingRequiredEvent "missing_required_event" RunCompleted Fail
        "an event that this run must have is missing or out of order"
        "the engine ended without its terminal event; see evidence_expectations in the contract";
    ReviewerRejected "reviewer_rejected" VerificationCompleted Blocked
        "the engine's own reviewer rejected the change"
        "read backend/stdout.log for the reviewer's findings";
    ApprovalDenied "approval_denied" ApprovalDenied Blocked
        "the operator denied this contract"
        "nothing ran; change the contract and ask again";
    Timeout "timeout" RunCompleted Blocked
        "a time limit was reached"
        "see trace.jsonl for the point; raise the limit with --timeout or in the case";
    DirtyStartingTree "dirty_starting_tree" TaskContractCreated Blocked
        "the source tree has uncommitted changes where a clean one is required"
        "commit or stash your changes, or copy the last commit alone with `cto try --from-head`";
    DirtyEndingTree "dirty_ending_tree" RunCompleted Fail
        "the run left something in the workspace that is neither part of the patch nor scratch"
        "the paths are named in the blocker's detail";
    ArtifactWriteFailure "artifact_write_failure" RunCompleted Fail
        "an artifact could not be written"
        "free space or fix permissions under the runs root, then run again";
    ProviderUnavailable "provider_unavailable" RunCompleted Blocked
        "provider unavailable"
        "check that the engine's program, model and endpoint can be reached";
    EngineGateClosed "engine_gate_closed" BackendGateBlocked Blocked
        "this engine is disabled until its gate is opened explicitly"
        "open it with --allow-engine ENGINE, or set the variable `cto engines` names";
    StageGateClosed "stage_gate_closed" BackendGateBlocked Blocked
        "this engine is recognised, but stage 1 never executes anything"
        "ask for a higher stage with --stage once stage 1 is proven";
    StageNotProven "stage_not_proven" BackendGateBlocked Blocked
        "the stage asked for needs the proof of the stage before it"
        "prove the earlier stage for this lane first";
    ContractInvalid "contract_invalid" BackendGateBlocked Blocked
        "the contract is not valid"
        "`cto contract CASE` lists every error with file, line and column";
    SourceNotAdmitted "source_not_admitted" BackendGateBlocked Blocked
        "the source is not admitted to be copied"
        "`cto try` copies a git work tree of your own that has a commit; any other source needs a record";
    LicenseUnresolved "license_unresolved" BackendGateBlocked Blocked
        "the license note of the source record is unresolved"
        "resolve the license note in the source record";
    ExecutableNotAdmitted "executable_not_admitted" BackendGateBlocked Blocked
        "the engine's executable is not admitted"
        "admit the executable by digest, then run again";
    ModelNotAdmitted "model_not_admitted" BackendGateBlocked Blocked
        "the model pair is not admitted"
        "admit exactly this provider and model, then run again";
    ProviderDecisionClosed "provider_decision_closed" BackendGateBlocked Blocked
        "no decision record allows this provider"
        "record a provider decision first";
    ReviewDue "review_due" BackendGateBlocked Blocked
        "a record's review trigger has fired"
        "review the record and renew it";
    ProviderAuthUnavailable "provider_auth_unavailable" BackendGateBlocked Blocked
        "the provider's credentials are missing or refused"
        "supply the credential in the way its admission record names";
    ProviderLocalConfigUnavailable "provider_local_config_unavailable" BackendGateBlocked Blocked
        "a local provider needs an explicit base URL"
        "give it with --base-url-file";
    ProviderResponseShapeUnavailable "provider_response_shape_unavailable" BackendGateBlocked Blocked
        "provider response shape unavailable"
        "the model answered without assistant content; choose another model or settings";
    ToolchainUnavailable "toolchain_unavailable" BackendGateBlocked Blocked
        "a program the contract needs was not found"
        "install it or put it on PATH; `cto doctor` shows what a jail can see";
    BaselineRed "baseline_red" BackendGateBlocked Blocked
        "the checks are red before any change, and a green start was asked for"
        "nothing was spent: `cto log --baseline` shows what was printed; mend the tests first, or try without --baseline green";
    ContainmentUnavailable "containment_unavailable" BackendGateBlocked Blocked
        "the containment this run needs cannot be proven on this host"
        "`cto doctor` says which layer is missing and how to fix it";
    TargetAdmissionMissing "target_admission_missing" BackendGateBlocked Blocked
        "no target-repository admission was given"
        "write one and pass it, or stay at stage 4";
    TargetNotAdmitted "target_not_admitted" BackendGateBlocked Blocked
        "the target repository is not admitted"
        "set admission_status in the target admission after review";
    TargetUnowned "target_unowned" BackendGateBlocked Blocked
        "nothing shows who owns the target"
        "fill repository_owner and ownership_evidence";
    TargetCritical "target_critical" BackendGateBlocked Blocked
        "the target is not classified low_risk_noncritical"
        "choose another target";
    TargetPathsEmpty "target_paths_empty" BackendGateBlocked Blocked
        "the target admission allows no path"
        "name the allowed paths in the target admission";
    TargetForbiddenActionMissing "target_forbidden_action_missing" BackendGateBlocked Blocked
        "the target admission does not forbid every action it must"
        "add the missing forbidden actions";
    TargetApprovalMissing "target_approval_missing" BackendGateBlocked Blocked
        "the target admission names no approval"
        "fill approval_source and approval_timestamp";
    TargetOutcomeNotRequired "target_outcome_not_required" BackendGateBlocked Blocked
        "the target admission does not require an operator outcome"
        "set operator_outcome_required to true";
    ApprovalMissing "approval_missing" BackendGateBlocked Blocked
        "this contract needs an approval and has none"
        "request one, and let the operator approve it";
    ApprovalExpired "approval_expired" BackendGateBlocked Blocked
        "the approval has expired"
        "request a new one";
    ApprovalConsumed "approval_consumed" BackendGateBlocked Blocked
        "the approval was already used"
        "an approval serves one run; request a new one";
    ApprovalMismatch "approval_mismatch" BackendGateBlocked Blocked
        "the approval is for another contract or store"
        "approve this exact contract";
    Interrupted "interrupted" RunCompleted Blocked
        "the run was interrupted before it could finish"
        "run the case again; the evidence up to the interruption is in the bundle";
    MissingOperatorOutcome "missing_operator_outcome" RunCompleted Blocked
        "the operator has not accepted or rejected the result"
        "look at the diff, then record the outcome";
    AgentProtocolFailed "agent_protocol_failed" RunCompleted Fail
        "the engine did not speak its own result protocol"
        "read backend/stdout.log for what it said instead";
    EngineFailed "engine_failed" RunCompleted Fail
        "the engine failed"
        "read backend/stderr.log";
    LifecycleTimeoutAfterValidPatch "lifecycle_timeout_after_valid_patch" RunCompleted Fail
        "the patch verifies, but the engine did not end within its limit"
        "raise the engine's limit, or find out why it does not end";
    BudgetExceeded "budget_exceeded" RunCompleted Fail
        "a model budget was exceeded"
        "raise the budget in the contract";
    ResourceLimit "resource_limit" RunCompleted Fail
        "a resource limit ended the process"
        "the limits are in contract.json, the peak that was seen in containment.json";
    ForbiddenPathChange "forbidden_path_change" GitDiffChecked Fail
        "a forbidden path was changed"
        "forbidden paths win over allowed ones; the diff shows the change";
    ForbiddenActionAttempted "forbidden_action_attempted" RunCompleted Fail
        "the engine attempted a forbidden action"
        "read forbidden_actions in report.json: it was refused, and nothing left the jail; tell the engine what its task forbids";
    SourceRepositoryMutated "source_repository_mutated" RunCompleted Fail
        "the source repository changed during the run"
        "compare the fingerprints in the stage proof";
    ContainmentViolation "containment_violation" RunCompleted Fail
        "the engine got past its containment"
        "see containment.json; treat the host as compromised";
    VerificationUntrusted "verification_untrusted" VerificationCompleted Fail
        "the checks passed, but they are not proof: they also passed where they must fail, or some did not run as agreed"
        "read what test.log says of the control; where failing tests found no place, --control FILE gives a patch instead, where another runner is meant, --runner NAME says which, where the task takes tests away, --changed-test ID names them, and else the changed code may end or patch its runner";
    VerificationUnproven "verification_unproven" VerificationCompleted Blocked
        "the checks passed, but nothing shows that they could have failed"
        "give a patch that must turn them red (--control FILE) or a command that fails when the change is wrong; --accept-unproven REASON says why this is enough";
    ChangeNotChecked "change_not_checked" VerificationCompleted Blocked
        "the checks passed, and they pass as well where the changed files fail when they are loaded"
        "see to it that the checks use this tree and not an installed or built copy of it; --unchecked REASON says why nothing has to load the change";
    SecretLeak "secret_leak" RunCompleted Fail
        "a secret appeared in the engine's output or patch"
        "rotate the secret; the artifact was redacted or replaced";
    StaleArtifact "stale_artifact" RunCompleted Fail
        "an artifact is older than the run"
        "something outside the run wrote into its directory";
    OperatorRejected "operator_rejected" OperatorOutcomeRecorded Fail
        "the operator rejected the result"
        "nothing was landed";
    LandingUnsupported "landing_unsupported" RunCompleted Fail
        "the target's state does not allow a safe landing"
        "finish the merge or rebase there, then try again";
}

impl Code {
    pub fn as_str(self) -> &'static str {
        self.info().name
    }
}

/// One reason a run did not pass.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Blocker {
    pub code: Code,
    /// A sentence that is understood at first reading.
    pub message: String,
    /// What exactly: paths, a command, a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The event that carries the code; null when it was found after the chain had ended.
    pub event: Option<EventType>,
}

impl Blocker {
    pub fn new(code: Code, detail: Option<String>) -> Self {
        let info = code.info();
        Self {
            code,
            message: info.sentence.to_owned(),
            detail,
            event: Some(info.event),
        }
    }

    /// The same with a sentence of its own, which names who did it.
    pub fn saying(code: Code, message: String, detail: Option<String>) -> Self {
        Self {
            message,
            ..Self::new(code, detail)
        }
    }

    /// Found after `run.completed` was written: known to the report alone.
    pub fn after_the_chain(code: Code, detail: Option<String>) -> Self {
        Self {
            event: None,
            ..Self::new(code, detail)
        }
    }

    pub fn status(&self) -> Status {
        self.code.info().status
    }
}

impl Code {
    /// The hint for somebody's own words on their own repository: a try has no case file, and its logs are
    /// a command away.
    pub fn hint_for_a_try(self) -> &'static str {
        match self {
            Self::NoDiff => "`cto log --engine` shows what the engine believed it did",
            Self::DisallowedFileChange => {
                "if the path belongs to the task, allow it with --allow PATH and try again"
            }
            Self::VerificationFailed => {
                "`cto log` shows all it printed; the exit code decides, not the output"
            }
            Self::MissingTestCommand => "name a command that must be green with --test",
            Self::ReviewerRejected => "`cto log --engine` shows the reviewer's findings",
            Self::Timeout => {
                "--timeout gives the engine more time, --test-timeout the tests; `cto log` shows the last that was printed"
            }
            Self::ContractInvalid => "what was typed makes no contract; the detail says why",
            Self::Interrupted => "try again; the evidence up to the interruption is in the bundle",
            Self::AgentProtocolFailed => "`cto log --engine` shows what it said instead",
            Self::EngineFailed => "`cto log --engine` shows what it said",
            Self::BudgetExceeded => "raise the budget the lane was given",
            _ => self.info().hint,
        }
    }

    /// The hint as pages of renderers 1 to 5 have it.
    pub fn former_hint(self) -> &'static str {
        match self {
            Self::VerificationUntrusted => {
                "the changed code may end or patch the test runner; read the control section of test.log"
            }
            _ => self.info().hint,
        }
    }
}

/// Status of a set of blockers: the worst; none at all is a pass.
pub fn worst_status(blockers: &[Blocker]) -> Status {
    blockers
        .iter()
        .map(Blocker::status)
        .max()
        .unwrap_or(Status::Pass)
}

/// The first blocker of the worst status.
pub fn headline(blockers: &[Blocker]) -> Option<&Blocker> {
    let status = worst_status(blockers);
    blockers.iter().find(|blocker| blocker.status() == status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_indexed_by_its_own_codes() {
        for info in BLOCKERS {
            assert_eq!(info.code.info().name, info.name);
            assert_eq!(serde_json::to_value(info.code).unwrap(), info.name);
        }
        let names: BTreeSet<_> = BLOCKERS.iter().map(|info| info.name).collect();
        assert_eq!(names.len(), BLOCKERS.len());
    }

    #[test]
    fn no_blocker_is_a_pass_and_every_row_helps() {
        for info in BLOCKERS {
            assert_ne!(info.status, Status::Pass, "{}", info.name);
            assert!(
                !info.sentence.is_empty() && !info.hint.is_empty(),
                "{}",
                info.name
            );
            assert!(!info.sentence.ends_with('.'), "{}", info.name);
        }
    }

    #[test]
    fn headline_is_the_first_of_the_worst() {
        let list =
            [Code::Timeout, Code::VerificationFailed, Code::NoDiff].map(|c| Blocker::new(c, None));
        assert_eq!(worst_status(&list), Status::Fail);
        assert_eq!(headline(&list).unwrap().code, Code::VerificationFailed);
        assert_eq!(worst_status(&[]), Status::Pass);
        assert!(headline(&[]).is_none());
    }

    #[test]
    fn verbatim_sentences() {
        assert_eq!(
            Code::ProviderUnavailable.info().sentence,
            "provider unavailable"
        );
        assert_eq!(
            Code::ProviderResponseShapeUnavailable.info().sentence,
            "provider response shape unavailable"
        );
    }
}
