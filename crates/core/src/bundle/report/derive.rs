//! The fields of a report, derived from contract, chain and verdict. The run builds a report with
//! these functions, and a verifier asks them again.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    ApprovalStatus, BeliefLine, Continues, ControlLine, ModelSpent, Observed, Report, ResultTree,
    RunIdentity, SCHEMA_VERSION, Sealing, SourceAdmission, VerificationLine,
};
use crate::bundle::report_md::Renderer;
use crate::bundle::settlement::Told;
use crate::containment::Containment;
use crate::records::ModelResult;
use crate::run::attempt::ActionsSeen;
use crate::run::belief::{self, seen, words};
use crate::run::event::flat::is_flat;
use crate::run::event::{
    BaselineRelied, Check, CheckKind, ControlRun, GateBlocked, Kind, VerificationCompleted,
};
use crate::run::facts::{ApprovalFact, Facts};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::run::judge::{self, Judgement};
use crate::run::rules::Rules;
use crate::task::contract::{Contract, Label, SealedContract};
use crate::values::blocker::{Code, headline};
use crate::values::event_type::EventType;
use crate::values::paths::{PathStanding, path_standing};
use crate::values::time::Utc;

/// Builds the report; digests are filled in by [`Report::with_digests`] once every other file is
/// fixed.
pub fn build_report(
    identity: &RunIdentity,
    contract: Option<&Contract>,
    sealed: &SealedContract,
    facts: &Facts,
    judgement: &Judgement,
    sealing: Sealing,
) -> Report {
    let mut blockers = judgement.blockers.clone();
    blockers.extend(sealing.late);
    let tests_passed = tests_passed(contract, facts);
    let changes = facts
        .diff
        .as_ref()
        .map(|diff| diff.changes.clone())
        .unwrap_or_default();
    let paths = path_results(contract, facts);
    Report {
        schema_version: SCHEMA_VERSION,
        report_renderer: Renderer::NEWEST.number(),
        kind: kind_of(facts, sealing.continues.as_ref()),
        origin: identity.origin,
        label: contract.map(|contract| contract.label).unwrap_or_default(),
        case_id: identity.case_id.clone(),
        run_id: identity.run_id.clone(),
        status: crate::values::blocker::worst_status(&blockers),
        failure_reason: headline(&blockers).map(|blocker| blocker.message.clone()),
        backend: identity.engine.name.clone(),
        engine: identity.engine.clone(),
        stage: identity.stage,
        containment: facts.containment.unwrap_or(Containment::None),
        workspace_guard: facts.guard.clone(),
        toolchains: facts.toolchains.clone(),
        git: facts.git.clone(),
        environments: facts.environments.clone(),
        environment_notes: environment_notes(facts),
        harness_version: identity.harness_version.clone(),
        run_started_at: identity.started_at,
        run_finished_at: sealing.finished_at,
        backend_exit_code: facts
            .engine_ended
            .as_ref()
            .and_then(|ended| ended.end.exit_code()),
        artifacts_dir: identity.run_id.to_string(),
        run_artifact_dir: identity.run_id.to_string(),
        runtime_workspace_root: format!("home:work/{}", identity.run_id),
        changed_files: changes.iter().map(|change| change.path.clone()).collect(),
        workspace_scratch: facts
            .diff
            .as_ref()
            .map(|diff| diff.scratch)
            .unwrap_or_default(),
        backend_scratch: sealing.backend_scratch,
        allowed_writes_passed: paths.map(|(allowed, _)| allowed),
        forbidden_paths_passed: paths.map(|(_, forbidden)| forbidden),
        forbidden_actions: actions_seen(facts),
        approval_status: approval_status(facts),
        verification: verification_lines(contract, facts),
        verification_control: control_line(facts),
        belief: belief_line(contract, facts),
        baseline_relied: baseline_relied(facts),
        tests_command: contract
            .and_then(|contract| contract.verification_commands.first().cloned()),
        tests_passed,
        required_events_passed: !blockers
            .iter()
            .any(|blocker| blocker.code == Code::MissingRequiredEvent),
        claimed: sealing.claimed,
        observed: observed(contract, facts),
        blockers,
        artifact_paths: BTreeMap::new(),
        artifact_digests: BTreeMap::new(),
        freshness: sealing.freshness,
        not_applicable: not_applicable(contract, facts),
        task_digest: sealed.task_digest,
        contract_digest: sealed.contract_digest,
        allowed_mutation_scope: identity.stage.allowed_mutation_scope().to_owned(),
        process_started: facts.engine_events.contains(&EventType::EngineStarted),
        source_admission_status: if identity.source_admitted {
            SourceAdmission::Admitted
        } else {
            SourceAdmission::NotAdmitted
        },
        source: sealing.source,
        result: result_tree(facts),
        relies_on: sealing.relies_on,
        continues: sealing.continues,
        settlement: Told::of(facts),
        reverifies: facts.reverifies.clone(),
        checks_differ: facts.checks_differ.clone(),
        events: sealing.head,
        model_use: model_use(facts),
        timings: sealing.timings,
        runtime_default_activation: NeverActivated,
        core_promotion_status: CorePromotion::NotPromoted,
        flat: flat_fields(facts),
    }
}

fn kind_of(facts: &Facts, continues: Option<&Continues>) -> Kind {
    match (&facts.reverifies, continues) {
        (Some(_), _) => Kind::Reverification,
        (None, Some(_)) => Kind::Settlement,
        (None, None) => Kind::Run,
    }
}

/// Fields of the engine's name, as the start of the chain has them.
fn flat_fields(facts: &Facts) -> BTreeMap<String, Value> {
    let started = facts.engine_events.contains(&EventType::EngineStarted);
    let flat = facts.flat.as_ref();
    flat.map(|flat| flat.of_report(started)).unwrap_or_default()
}

/// Fields of the engine's name that are not what the chain says, or a chain that says of them what its contract and its
/// gates do not.
fn flat_is_wrong(report: &Report, contract: Option<&Contract>, facts: &Facts) -> bool {
    let told = report.flat.iter().filter(|(name, _)| is_flat(name));
    let wanted = flat_fields(facts);
    if !told.eq(wanted.iter()) {
        return true;
    }
    let never = |block: &GateBlocked| block.flat.values().all(|executed| !executed);
    let Some(flat) = &facts.flat else {
        return !facts.gate_blocks.iter().all(never);
    };
    let pair = contract.and_then(|contract| contract.lane.model.as_ref());
    let another = pair.is_some_and(|pair| {
        flat.model_provider.as_ref() != Some(&pair.provider)
            || flat.model.as_ref() != Some(&pair.model)
    });
    // Another gate raises the same code where another model answered than the one that is admitted.
    let refused = |block: &GateBlocked| {
        block.reason == Code::ModelNotAdmitted && block.gate == "model-admission"
    };
    let admitted = flat.model_admission_status == Some(ModelResult::Admitted);
    let started = facts.engine_events.contains(&EventType::EngineStarted);
    another
        || (started && !admitted)
        || (admitted && facts.gate_blocks.iter().any(refused))
        || facts
            .gate_blocks
            .iter()
            .any(|block| block.flat != flat.of_gate())
}

/// What the gateway counted of the engine's calls.
fn model_use(facts: &Facts) -> Option<ModelSpent> {
    let used = facts.engine_ended.as_ref()?.model.as_ref()?;
    Some(ModelSpent {
        calls: used.calls,
        input_tokens: used.input_tokens,
        cached_tokens: used.cached_tokens,
        output_tokens: used.output_tokens,
        spent_micros: used.spent_micros,
    })
}

/// What verification had to say about environments.
pub fn environment_notes(facts: &Facts) -> Vec<String> {
    let done = facts.verification.as_ref();
    done.map(|done| done.environment_notes.clone())
        .unwrap_or_default()
}

/// When a run ended: with its chain, and never before it began, whatever the clock did.
pub fn finish(started_at: Utc, last_event: Utc) -> Utc {
    last_event.max(started_at)
}

fn approval_status(facts: &Facts) -> ApprovalStatus {
    match &facts.approval {
        ApprovalFact::NotRequired => ApprovalStatus::NotRequired,
        ApprovalFact::Requested(_) => ApprovalStatus::Requested,
        ApprovalFact::Granted(_) => ApprovalStatus::Granted,
        ApprovalFact::Denied(_) => ApprovalStatus::Denied,
    }
}

fn actions_seen(facts: &Facts) -> Option<ActionsSeen> {
    facts.engine_ended.as_ref()?.actions.clone()
}

fn result_tree(facts: &Facts) -> Option<ResultTree> {
    let diff = facts.diff.as_ref()?;
    Some(ResultTree {
        tree: diff.result_tree.clone(),
        commit: Some(diff.result_commit.clone()),
    })
}

fn observed(contract: Option<&Contract>, facts: &Facts) -> Observed {
    Observed {
        engine_end: facts.engine_ended.as_ref().map(|ended| ended.end),
        engine_head: facts
            .engine_ended
            .as_ref()
            .and_then(|ended| ended.head.clone()),
        changes: facts
            .diff
            .as_ref()
            .map(|diff| diff.changes.clone())
            .unwrap_or_default(),
        verification_passed: tests_passed(contract, facts),
        changed_test_files: facts
            .verification
            .as_ref()
            .map(|v| v.changed_test_files.clone())
            .unwrap_or_default(),
        rewritten_files: facts
            .verification
            .as_ref()
            .map(|v| v.rewritten_files.clone())
            .unwrap_or_default(),
        leftovers: facts
            .diff
            .as_ref()
            .map(|diff| diff.leftovers.clone())
            .unwrap_or_default(),
    }
}

/// Fields that should repeat chain and contract and do not.
pub fn misquoted_fields(
    report: &Report,
    contract: Option<&Contract>,
    facts: &Facts,
) -> Vec<&'static str> {
    let lane = contract.map(|contract| &contract.lane);
    let interpreter = report.engine.interpreter.as_ref().map(|own| own.sha256);
    let command = contract.and_then(|contract| contract.verification_commands.first());
    [
        (
            "engine",
            report.engine.name != report.backend
                || lane.is_some_and(|lane| {
                    lane.executable_sha256 != report.engine.executable_sha256
                        || lane.interpreter_sha256 != interpreter
                        || lane.packages_sha256 != report.engine.packages_sha256
                }),
        ),
        (
            "label",
            report.label != contract.map(|contract| contract.label).unwrap_or_default(),
        ),
        (
            "runtime_workspace_root",
            report.runtime_workspace_root != format!("home:work/{}", report.run_id),
        ),
        (
            "workspace_scratch",
            report.workspace_scratch
                != facts
                    .diff
                    .as_ref()
                    .map(|diff| diff.scratch)
                    .unwrap_or_default(),
        ),
        (
            "forbidden_actions",
            report.forbidden_actions != actions_seen(facts),
        ),
        (
            "approval_status",
            report.approval_status != approval_status(facts),
        ),
        (
            "verification_control",
            report.verification_control != control_line(facts),
        ),
        ("belief", report.belief != belief_line(contract, facts)),
        (
            "baseline_relied",
            report.baseline_relied != baseline_relied(facts),
        ),
        (
            // A page of before says nothing of it.
            "model_use",
            report.model_use != model_use(facts)
                && (report.model_use.is_some()
                    || report.report_renderer.0 >= Renderer::Eight.number().0),
        ),
        ("tests_command", report.tests_command.as_ref() != command),
        ("observed", report.observed != observed(contract, facts)),
        (
            "a field of the engine's name",
            flat_is_wrong(report, contract, facts),
        ),
        ("result", report.result != result_tree(facts)),
        ("settlement", report.settlement != Told::of(facts)),
        ("reverifies", report.reverifies != facts.reverifies),
        ("checks_differ", report.checks_differ != facts.checks_differ),
    ]
    .into_iter()
    .filter_map(|(field, is_wrong)| is_wrong.then_some(field))
    .collect()
}

/// (allowed writes passed, forbidden paths passed), once a tree was measured.
pub fn path_results(contract: Option<&Contract>, facts: &Facts) -> Option<(bool, bool)> {
    let (contract, diff) = (contract?, facts.diff.as_ref()?);
    let found = |want: PathStanding| {
        diff.changes.iter().any(|c| {
            path_standing(&c.path, &contract.allowed_paths, &contract.forbidden_paths) == want
        })
    };
    let forbidden = found(PathStanding::Forbidden);
    Some((!forbidden && !found(PathStanding::Disallowed), !forbidden))
}

/// Null when nothing ran. Green checks whose control was not red have not passed anything.
pub fn tests_passed(contract: Option<&Contract>, facts: &Facts) -> Option<bool> {
    let done = facts
        .verification
        .as_ref()
        .filter(|done| done.not_run.is_none())?;
    // Rules nobody here knows are said elsewhere.
    let rules = Rules::of(facts.rules).unwrap_or(Rules::NEWEST);
    let blockers = judge::verification_blockers(rules, contract, done);
    Some(!done.checks.is_empty() && blockers.is_empty())
}

pub fn verification_lines(contract: Option<&Contract>, facts: &Facts) -> Vec<VerificationLine> {
    let checks = facts
        .verification
        .as_ref()
        .map(|done| done.checks.as_slice())
        .unwrap_or_default();
    let mut believed = green(contract, facts)
        .map(|(contract, done)| {
            let (seen, substance) = (seen::commands(contract, done), seen::substance(done));
            let told = seen.into_iter().map(move |seen| {
                let because = words::because(seen, substance);
                (belief::of_command(seen, substance), because)
            });
            told.collect::<Vec<_>>()
        })
        .unwrap_or_default()
        .into_iter();
    let line = |check: &Check| {
        let visible = check.kind == CheckKind::Visible;
        let (belief, because) = visible.then(|| believed.next()).flatten().unzip();
        VerificationLine {
            kind: check.kind,
            command: check.command.clone(),
            exit_code: check.end.exit_code(),
            end: check.end,
            duration_ms: check.duration_ms,
            passed: check.end.succeeded(),
            belief,
            because,
        }
    };
    checks.iter().map(line).collect()
}

/// The contract and a verification that was green, where its rules ask how far it is believed.
fn green<'a>(
    contract: Option<&'a Contract>,
    facts: &'a Facts,
) -> Option<(&'a Contract, &'a VerificationCompleted)> {
    let done = facts.verification.as_ref()?;
    let asked = facts.rules >= Rules::Six.number() && done.not_run.is_none();
    let green = !done.checks.is_empty() && done.checks.iter().all(|check| check.end.succeeded());
    (asked && green).then_some((contract?, done))
}

pub fn belief_line(contract: Option<&Contract>, facts: &Facts) -> Option<BeliefLine> {
    let (contract, done) = green(contract, facts)?;
    let files = done.loading.as_ref();
    let files = files.map(|run| run.files_seen(contract.verification_commands.len()));
    let files = files.unwrap_or_default();
    Some(BeliefLine {
        word: seen::of_run(contract, done).run,
        substance: seen::substance(done),
        files: files.count(),
        files_seen: files.noticed,
        not_noticed: files.not_noticed,
        not_tried: files.not_tried,
        tests: done.tests.clone(),
        reasons: contract.reasons.clone(),
    })
}

fn baseline_relied(facts: &Facts) -> Option<BaselineRelied> {
    facts.verification.as_ref()?.relied.clone()
}

fn control_line(facts: &Facts) -> Option<ControlLine> {
    Some(match facts.verification.as_ref()?.control.as_ref()? {
        ControlRun::Ran { checks, .. } => ControlLine {
            ran: true,
            red: Some(
                checks
                    .iter()
                    .any(|check| check.end.exit_code().is_some_and(|code| code != 0)),
            ),
            reason: None,
        },
        ControlRun::CouldNotRun { reason } | ControlRun::None { reason } => ControlLine {
            ran: false,
            red: None,
            reason: Some(reason.clone()),
        },
    })
}

fn not_applicable(contract: Option<&Contract>, facts: &Facts) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut say = |field: &str, why: &str| {
        out.insert(field.to_owned(), why.to_owned());
    };
    if facts.reverifies.is_some() {
        say(
            "stage_proof",
            "a patch that is judged again proves no stage",
        );
    } else if contract.is_some_and(|contract| contract.label == Label::Try) {
        say("stage_proof", "a try proves no stage");
    }
    if facts.engine_ended.is_none() {
        say(
            "backend_exit_code",
            "no engine was started, or its end was not observed",
        );
    }
    if facts.diff.is_none() {
        for field in ["allowed_writes_passed", "forbidden_paths_passed", "result"] {
            say(field, "no tree was measured");
        }
    }
    match &facts.verification {
        None if facts.settles => say("tests_passed", "the run that is settled holds the checks"),
        None => say("tests_passed", "verification was not reached"),
        Some(done) => {
            if let Some(reason) = &done.not_run {
                say("tests_passed", reason);
            }
        }
    }
    out
}
