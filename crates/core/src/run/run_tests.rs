use super::facts::{Folded, fold_events};
use super::order::{Machine, OutOfOrder, State};
use crate::containment::Containment;
use crate::run::belief::Substance;
use crate::run::event::branches::tests::{branches_checked, in_disposable, policy_recorded};
use crate::run::event::*;
use crate::run::loaded::{How, LoadingFile, LoadingRound, LoadingRun, Proves};
use crate::run::rules::Rules;
use crate::task::again::{ChecksDiffer, Reverifies};
use crate::task::contract::{MutationMode, Stage};
use crate::values::blocker::{Code, Finding};
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::paths::TreePath;
use crate::values::{time::Utc, verdict::Status};
use crate::wire::{Protocol, calls::CallRecord};
use crate::workspace::change::{Change, ChangeKind};

fn digest() -> Digest {
    Digest::of(b"x")
}

pub fn output() -> OutputRecord {
    OutputRecord {
        file: "f".into(),
        bytes: 0,
        sha256: digest(),
        kept_bytes: 0,
        redactions: 0,
        paths_replaced: 0,
    }
}

pub fn started() -> Event {
    Event::RunStarted(RunStarted {
        kind: Kind::Run,
        origin: Origin::Operator,
        case_id: "demo".parse().unwrap(),
        engine: "fake".parse().unwrap(),
        stage: Stage::Two,
        harness_version: "0".into(),
        rules: Rules::NEWEST.number(),
        reverifies: None,
        checks_differ: None,
        flat: None,
    })
}

/// The start of a reverification.
pub fn started_again() -> RunStarted {
    let Event::RunStarted(started) = started() else {
        unreachable!("it is one");
    };
    RunStarted {
        kind: Kind::Reverification,
        reverifies: Some(Reverifies {
            run_id: "20260101T000000Z-demo-abcd".parse().unwrap(),
            sums_sha256: digest(),
        }),
        checks_differ: Some(ChecksDiffer::default()),
        ..started
    }
}

pub fn contracted(blockers: Vec<Code>) -> Event {
    Event::TaskContractCreated(ContractCreated {
        valid: true,
        task_digest: digest(),
        contract_digest: digest(),
        blockers,
        detail: None,
    })
}

pub fn planned(approval_required: bool) -> Event {
    Event::PlanUpdated(PlanUpdated {
        summary: "s".into(),
        containment: Containment::None,
        approval_required,
        toolchains: vec![],
        environments: Vec::new(),
        git: None,
        guard: None,
    })
}

pub fn gate(reason: Code) -> Event {
    Event::BackendGateBlocked(GateBlocked {
        backend: "fake".parse().unwrap(),
        gate: "engine".into(),
        reason,
        detail: None,
        mutation_mode: Some(MutationMode::CopiedFixture),
        executed: false,
        flat: Default::default(),
    })
}

pub fn approval() -> Approval {
    Approval {
        actor: "operator".into(),
        scope: "one run".into(),
        mutation_mode: MutationMode::SandboxRepo,
        timestamp: Utc::from_millis(0).unwrap(),
        expiry: None,
        reason: None,
    }
}

pub fn engine_started() -> Event {
    Event::EngineStarted(EngineStarted {
        engine: "fake".parse().unwrap(),
        containment: Containment::None,
    })
}

pub fn engine_result() -> Event {
    Event::EngineResult(EngineResult::new("completed", String::new(), false))
}

pub fn engine_ended(end: ProcessEnd) -> Event {
    Event::EngineEnded(EngineEnded {
        end,
        duration_ms: 1,
        stdout: output(),
        stderr: output(),
        unknown_lines: 0,
        events_not_recorded: 0,
        model: None,
        actions: None,
        event_log: None,
        head: None,
    })
}

pub fn patched() -> Event {
    Event::PatchApplied(PatchApplied {
        sha256: digest(),
        files: 1,
        bytes: 1,
    })
}

/// A loading control that the command noticed.
pub fn noticed(red: Check) -> LoadingRun {
    LoadingRun {
        substance: Substance::Code,
        files: vec![LoadingFile {
            path: TreePath::new("a.py"),
            not_code: None,
            how: Some(How::EndsItsProcess),
            tells_how_to_run: false,
            put_back: false,
        }],
        rounds: vec![LoadingRound {
            proves: Proves::Loaded,
            files: vec![TreePath::new("a.py")],
            harmless: false,
            single: false,
            setup_failed: None,
            checks: vec![red],
        }],
        could_not_run: None,
    }
}

pub fn diffed(paths: &[&str]) -> Event {
    Event::GitDiffChecked(DiffChecked {
        baseline_tree: "a".into(),
        result_tree: "b".into(),
        result_commit: "c".into(),
        changes: paths
            .iter()
            .map(|p| Change {
                path: crate::values::paths::TreePath::new(*p),
                kind: ChangeKind::Modified,
            })
            .collect(),
        scratch: ScratchCount::default(),
        leftovers: Vec::new(),
        blockers: Vec::new(),
    })
}

pub fn verified(not_run: Option<&str>, blockers: Vec<Code>) -> Event {
    Event::VerificationCompleted(Box::new(VerificationCompleted {
        not_run: not_run.map(str::to_owned),
        blockers,
        ..VerificationCompleted::nothing(digest())
    }))
}

pub fn completed(findings: &[Code]) -> Event {
    Event::RunCompleted(RunCompleted {
        status: Status::Fail,
        blockers: Vec::new(),
        findings: findings
            .iter()
            .map(|code| Finding {
                code: *code,
                detail: None,
            })
            .collect(),
    })
}

/// In the settlement of a run, by the newest rules.
fn outcome() -> Event {
    let digest = Digest::of(b"record");
    let data = serde_json::json!({"outcome": "accepted", "actor": "o", "given_ahead": false,
        "rules": Rules::NEWEST.number(), "record_sha256": digest, "land": "merge"});
    serde_json::from_value(serde_json::json!({"type": "operator.outcome.recorded", "data": data}))
        .unwrap()
}

fn text(make: fn(EngineText) -> Event) -> Event {
    make(EngineText {
        text: String::new(),
    })
}
const PHASE: &str = r#"{"type": "engine.phase", "data": {"phase": "p", "agent": "a"}}"#;
const LANDED: &str = r#"{"type":"landing.updated","data":{"step":"landed","mode":"merge"}}"#;
const ASKED: &str = r#"{"type":"engine.permission","data":{"question":"","options":[],"answer":"cancelled","rule":"no_option"}}"#;
/// Every kind of event, with the variants the order depends on.
fn alphabet() -> Vec<(&'static str, Event)> {
    vec![
        ("started", started()),
        ("again", Event::RunStarted(started_again())),
        ("disposable", in_disposable()),
        ("contract", contracted(vec![])),
        ("contract!", contracted(vec![Code::DirtyStartingTree])),
        ("plan", planned(false)),
        ("plan?", planned(true)),
        ("gate", gate(Code::EngineGateClosed)),
        ("asked", Event::ApprovalRequested(approval())),
        ("granted", Event::ApprovalGranted(approval())),
        ("denied", Event::ApprovalDenied(approval())),
        ("policy", policy_recorded()),
        ("branches", branches_checked()),
        ("engine", engine_started()),
        ("message", text(Event::EngineMessage)),
        ("eplan", text(Event::EnginePlan)),
        ("warning", text(Event::EngineWarning)),
        ("phase", serde_json::from_str(PHASE).unwrap()),
        ("permission", serde_json::from_str(ASKED).unwrap()),
        (
            "tool",
            Event::EngineToolCall(EngineToolCall::new("t".into(), "x".into())),
        ),
        (
            "file",
            Event::EngineFileChange(EngineFileChange { path: "p".into() }),
        ),
        (
            "review",
            Event::EngineReview(EngineReview {
                accepted: true,
                summary: String::new(),
            }),
        ),
        ("tokens", Event::EngineTokens(EngineTokens::default())),
        (
            "call",
            Event::EngineModelCall(Box::new(CallRecord::begun(1, 0, Protocol::OpenaiChat))),
        ),
        ("result", engine_result()),
        ("ended", engine_ended(ProcessEnd::Exited { code: 0 })),
        ("patch", patched()),
        ("diff", diffed(&[])),
        ("verified", verified(None, vec![])),
        (
            "unverified!",
            verified(Some("no command"), vec![Code::MissingTestCommand]),
        ),
        ("outcome", outcome()),
        ("landing", serde_json::from_str(LANDED).unwrap()),
        ("completed", completed(&[])),
        ("gone", completed(&[Code::ProviderUnavailable])),
        ("abort", completed(&[Code::Interrupted])),
        ("unwritten", completed(&[Code::ArtifactWriteFailure])),
    ]
}

/// The legal pairs, written down a second time and independently of `step`: for each state, what
/// may follow.
fn legal(state: State, flags: (bool, bool, bool)) -> Vec<&'static str> {
    let (approval_required, judges_again, disposable) = flags;
    let mut names: Vec<&str> = match state {
        State::Fresh => vec!["started", "again", "disposable", "outcome"],
        State::Started => vec!["contract", "contract!"],
        State::Contracted => vec!["gate", "unverified!", "plan", "plan?", "gone"],
        State::ContractBlocked => vec!["gate", "unverified!", "completed", "gone"],
        State::GateBlocked => vec!["gate", "unverified!", "completed", "gone"],
        State::Planned if judges_again && approval_required => {
            vec!["plan", "plan?", "gate", "gone"]
        }
        State::Planned if judges_again => vec!["plan", "plan?", "gate", "patch", "gone"],
        State::Planned if approval_required => vec!["plan", "plan?", "gate", "asked", "gone"],
        State::Planned if disposable => vec!["plan", "plan?", "gate", "asked", "gone"],
        State::Planned => vec!["plan", "plan?", "gate", "asked", "engine", "gone"],
        State::ApprovalAsked => vec!["gate", "granted", "denied"],
        State::Approved if disposable => vec!["gate", "policy", "gone"],
        State::Approved | State::PolicyRecorded => vec!["gate", "engine", "gone"],
        State::Denied => vec!["completed", "gone"],
        State::EngineRunning => {
            let names =
                "message eplan warning permission phase tool file review tokens call result ended";
            names.split(' ').collect()
        }
        State::EngineEnded => vec!["patch"],
        State::Captured => vec!["diff"],
        State::DiffChecked => vec!["verified", "unverified!"],
        State::Verified if disposable => vec!["branches"],
        State::Verified | State::PolicyChecked => vec!["completed", "gone"],
        State::Settling => vec!["landing", "completed", "gone"],
        State::Completed => return Vec::new(),
    };
    // Any prefix may be closed by an abort.
    names.extend(["abort", "unwritten"]);
    names
}

#[test]
fn every_pair_of_state_and_event() {
    use State::*;
    let states = [
        Fresh,
        Started,
        Contracted,
        ContractBlocked,
        GateBlocked,
        Planned,
        ApprovalAsked,
        Approved,
        PolicyRecorded,
        Denied,
        EngineRunning,
        EngineEnded,
        Captured,
        DiffChecked,
        Verified,
        PolicyChecked,
        Settling,
        Completed,
    ];
    let mut pairs = 0;
    for state in states {
        for flags in (0..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)) {
            let (approval_required, judges_again, disposable) = flags;
            for (name, event) in alphabet() {
                let got = Machine {
                    state,
                    approval_required,
                    judges_again,
                    disposable,
                }
                .step(&event)
                .is_ok();
                assert_eq!(
                    got,
                    legal(state, flags).contains(&name),
                    "{state:?} (approval, again, disposable: {flags:?}) + {name}"
                );
                pairs += 1;
            }
        }
    }
    assert_eq!(pairs, 18 * 8 * 36);
}

fn run(names: &[&str]) -> Result<Folded, OutOfOrder> {
    let alphabet = alphabet();
    let find = |name: &&str| &alphabet.iter().find(|(n, _)| n == name).unwrap().1;
    fold_events(names.iter().map(find))
}

#[test]
fn the_legal_paths_of_the_evidence_interface() {
    for path in [
        &["started", "contract", "gate", "gate", "completed"][..],
        &["started", "contract", "unverified!", "completed"],
        &["started", "contract!", "completed"],
        &["started", "contract", "gone"],
        &[
            "started",
            "contract",
            "plan",
            "asked",
            "denied",
            "completed",
        ],
        &[
            "started",
            "contract",
            "plan",
            "engine",
            "message",
            "result",
            "ended",
            "patch",
            "diff",
            "verified",
            "completed",
        ],
        &[
            "started",
            "contract",
            "plan?",
            "asked",
            "granted",
            "engine",
            "ended",
            "patch",
            "diff",
            "unverified!",
            "completed",
        ],
        &[
            "started",
            "contract",
            "plan?",
            "asked",
            "granted",
            "gate",
            "completed",
        ],
        &["started", "contract", "plan", "engine", "abort"],
        &["outcome", "landing", "landing", "completed"],
        &[
            "again",
            "contract",
            "plan",
            "patch",
            "diff",
            "verified",
            "completed",
        ],
        &["again", "contract", "gate", "completed"],
        &["again", "contract", "plan", "patch", "abort"],
    ] {
        let folded = run(path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        assert_eq!(folded.machine.state, State::Completed, "{path:?}");
    }
}

#[test]
fn no_engine_before_approval_where_approval_is_needed() {
    assert!(run(&["started", "contract", "plan?", "engine"]).is_err());
    assert!(
        run(&["started", "contract", "plan?", "plan", "engine"]).is_ok(),
        "the last plan decides"
    );
}

#[test]
fn only_a_reverification_has_a_patch_without_an_engine() {
    for path in [
        &["started", "contract", "plan", "patch"][..],
        &["again", "contract", "plan", "engine"],
        &["again", "contract", "plan", "asked"],
        &["again", "contract", "plan?", "patch"],
        &["again", "contract", "patch"],
    ] {
        assert!(run(path).is_err(), "{path:?}");
    }
    let facts = run(&["again", "contract", "plan", "patch"]).unwrap().facts;
    assert!(facts.copy_was_used() && facts.reverifies.is_some());
    let engine = run(&["started", "contract", "plan", "engine"]).unwrap();
    assert!(engine.facts.copy_was_used());
    assert!(
        !run(&["again", "contract", "plan"])
            .unwrap()
            .facts
            .copy_was_used()
    );
}

#[test]
fn facts_are_gathered() {
    let folded = run(&[
        "started",
        "contract",
        "plan",
        "engine",
        "result",
        "ended",
        "patch",
        "diff",
        "verified",
        "completed",
    ])
    .unwrap();
    let facts = folded.facts;
    assert!(facts.contract.is_some() && facts.engine_ended.is_some() && facts.patch.is_some());
    assert!(facts.diff.is_some() && facts.verification.is_some());
    assert!(facts.engine_events.contains(&EventType::EngineResult));
    assert!(folded.completed.is_some());
}
