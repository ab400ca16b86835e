use super::*;
use crate::run::event::{
    EngineResult, EngineReview, Event, MemoryMeter, ModelUse, TestsCompared, TimeLimit,
};
use crate::run::facts::{Folded, fold};
use crate::run::tests::{
    contracted, diffed, engine_ended, engine_result, engine_started, gate, patched, planned,
    started,
};
use crate::task::contract::tests::sample;
use crate::values::blocker::Finding;
use crate::values::digest::Digest;

const COMMAND: &str = "python3 -m unittest -v";

fn check(kind: CheckKind, command: &str, end: ProcessEnd) -> Check {
    Check {
        kind,
        command: command.into(),
        end,
        duration_ms: 1,
    }
}

fn exited(code: u8) -> ProcessEnd {
    ProcessEnd::Exited { code }
}

fn red_control() -> ControlRun {
    ControlRun::Ran {
        checks: vec![check(CheckKind::Visible, COMMAND, exited(1))],
        failures_added: Some(5),
        failures_reported: Some(5),
    }
}

fn verification(end: ProcessEnd, control: Option<ControlRun>) -> VerificationCompleted {
    VerificationCompleted {
        checks: vec![check(CheckKind::Visible, COMMAND, end)],
        control,
        tree: Some(Digest::of(b"tree")),
        ..VerificationCompleted::nothing(Digest::of(b""))
    }
}

/// A run in which everything went right; each test breaks one thing.
fn good() -> Facts {
    let events = [
        started(),
        contracted(vec![]),
        planned(false),
        engine_started(),
        engine_result(),
        engine_ended(exited(0)),
        patched(),
        diffed(&["a.py"]),
        Event::VerificationCompleted(verification(exited(0), Some(red_control()))),
    ];
    let Folded { facts, .. } = fold(&events).unwrap();
    facts
}

fn codes(change: impl FnOnce(&mut Facts)) -> Vec<&'static str> {
    codes_with(|_| {}, change)
}

fn codes_with(
    contract: impl FnOnce(&mut Contract),
    change: impl FnOnce(&mut Facts),
) -> Vec<&'static str> {
    let mut base = sample();
    contract(&mut base);
    let mut facts = good();
    change(&mut facts);
    judge(Some(&base), &facts)
        .codes()
        .into_iter()
        .map(Code::as_str)
        .collect()
}

#[test]
fn the_good_run_passes_and_nothing_less_does() {
    assert_eq!(
        judge(Some(&sample()), &good()),
        Judgement {
            status: Status::Pass,
            blockers: vec![]
        }
    );
    for (name, change) in [
        ("contract", (|f| f.contract = None) as fn(&mut Facts)),
        ("engine events", |f| f.engine_events.clear()),
        ("engine ended", |f| f.engine_ended = None),
        ("patch", |f| f.patch = None),
        ("diff", |f| f.diff = None),
        ("verification", |f| f.verification = None),
    ] {
        assert_eq!(codes(change), ["missing_required_event"], "without {name}");
    }
    assert_eq!(judge(None, &good()).codes(), [Code::MissingRequiredEvent]);
    assert_eq!(
        judge(Some(&sample()), &Facts::default()).status,
        Status::Fail
    );
}

#[test]
fn an_approval_that_is_needed_is_a_fact_that_must_exist() {
    assert_eq!(
        codes_with(|c| c.approval_required = true, |_| {}),
        ["missing_required_event"]
    );
}

fn end_with(end: ProcessEnd) -> impl Fn(&mut Facts) {
    move |facts| facts.engine_ended.as_mut().unwrap().end = end
}

#[test]
fn how_the_engine_ended() {
    for (end, want) in [
        (exited(1), &["engine_failed"][..]),
        (exited(255), &["engine_failed"]),
        (ProcessEnd::Signalled { signal: 9 }, &["engine_failed"]),
        (
            ProcessEnd::TimedOut {
                limit: TimeLimit::Wall,
            },
            &["timeout", "lifecycle_timeout_after_valid_patch"],
        ),
        (
            ProcessEnd::MemoryLimit {
                measured_by: MemoryMeter::Sampled,
            },
            &["resource_limit"],
        ),
        (ProcessEnd::Cancelled, &["engine_failed"]),
        (ProcessEnd::Lost, &["engine_failed"]),
    ] {
        assert_eq!(codes(end_with(end)), want, "{end:?}");
    }
}

#[test]
fn a_forbidden_action_that_was_seen_fails_the_run() {
    use crate::run::attempt::{ActionsSeen, Deed, Log};
    use crate::task::contract::Action;
    let with = |seen: ActionsSeen| {
        move |facts: &mut Facts| facts.engine_ended.as_mut().unwrap().actions = Some(seen)
    };
    let saw = |deed: Deed| {
        let mut log = Log::default();
        log.saw(deed, &[b"some", b"command"]);
        log.close(&mut |word| word.to_vec())
    };
    for deed in [
        Deed::Push,
        Deed::Merge,
        Deed::Deploy,
        Deed::PublicPublication,
        Deed::Connect,
        Deed::RemoteShell,
    ] {
        assert_eq!(
            codes_with(|c| c.forbidden_actions.clear(), with(saw(deed))),
            ["forbidden_action_attempted"],
            "{deed:?}"
        );
    }
    let forbids = |contract: &mut Contract| contract.forbidden_actions = [Action::PrOpen].into();
    assert_eq!(
        codes_with(forbids, with(saw(Deed::PrOpen))),
        ["forbidden_action_attempted"]
    );
    assert!(
        codes_with(forbids, with(saw(Deed::IssueClose))).is_empty(),
        "not forbidden by this contract"
    );
    assert!(codes(with(saw(Deed::Datagram))).is_empty());
    assert!(
        codes(with(ActionsSeen::unseen("no listener"))).is_empty(),
        "a missing sense is said, and fails nothing"
    );
    let mut facts = good();
    with(saw(Deed::Push))(&mut facts);
    let judged = judge(Some(&sample()), &facts);
    assert_eq!(
        judged.blockers[0].detail.as_deref(),
        Some("push: some command")
    );
    assert_eq!(
        (judged.status, judged.blockers[0].event),
        (Status::Fail, Some(EventType::RunCompleted))
    );
}

#[test]
fn a_cancelled_run_is_interrupted_and_nothing_else() {
    let cancelled = |facts: &mut Facts| {
        end_with(ProcessEnd::Cancelled)(facts);
        facts.findings = vec![Finding {
            code: Code::Interrupted,
            detail: None,
        }];
    };
    assert_eq!(codes(cancelled), ["interrupted"]);
    assert_eq!(
        codes(end_with(ProcessEnd::Cancelled)),
        ["engine_failed"],
        "without the finding it still never passes"
    );
}

#[test]
fn a_time_limit_is_named() {
    for (limit, word) in [(TimeLimit::Idle, "idle"), (TimeLimit::Wall, "wall")] {
        let mut facts = good();
        end_with(ProcessEnd::TimedOut { limit })(&mut facts);
        let judged = judge(Some(&sample()), &facts);
        assert_eq!(
            judged.blockers[0].detail.as_deref(),
            Some(format!("the engine reached its {word} limit").as_str())
        );
    }
}

#[test]
fn a_timeout_without_a_valid_patch_is_blocked_not_failed() {
    let mut facts = good();
    end_with(ProcessEnd::TimedOut {
        limit: TimeLimit::Idle,
    })(&mut facts);
    facts.diff.as_mut().unwrap().changes.clear();
    let done = facts.verification.as_mut().unwrap();
    done.not_run = Some("nothing changed".into());
    done.checks.clear();
    let judged = judge(Some(&sample()), &facts);
    assert_eq!(judged.codes(), [Code::Timeout]);
    assert_eq!(judged.status, Status::Blocked);
}

fn changes(paths: &'static [&'static str]) -> impl Fn(&mut Facts) {
    move |facts| {
        let Event::GitDiffChecked(diff) = diffed(paths) else {
            unreachable!()
        };
        facts.diff = Some(diff);
    }
}

#[test]
fn what_changed() {
    assert_eq!(codes(changes(&[])), ["no_diff"]);
    assert_eq!(codes(changes(&["a.py", "src/x/y"])), Vec::<&str>::new());
    assert_eq!(codes(changes(&["b.py"])), ["disallowed_file_change"]);
    assert_eq!(
        codes(changes(&["a.py", "src/keep.py"])),
        ["forbidden_path_change"]
    );
    assert_eq!(
        codes(changes(&["b.py", "src/keep.py"])),
        ["forbidden_path_change", "disallowed_file_change"]
    );
    let many: Vec<TreePath> = (0..12).map(|n| TreePath::new(format!("x{n}"))).collect();
    let refs: Vec<&TreePath> = many.iter().collect();
    assert!(list(&refs).ends_with("and 2 more"));
}

#[test]
fn required_engine_events() {
    let drop_result = |facts: &mut Facts| {
        facts.engine_events.remove(&EventType::EngineResult);
    };
    assert_eq!(codes(drop_result), ["missing_required_event"]);
    assert_eq!(
        codes_with(
            |c| c.evidence_expectations = vec![EventType::EnginePlan],
            |_| {}
        ),
        ["missing_required_event"]
    );
    assert_eq!(
        codes_with(
            |c| c.evidence_expectations = vec![EventType::EngineStarted],
            drop_result
        ),
        Vec::<&str>::new()
    );
    // Already explained by how the engine ended.
    assert_eq!(
        codes(|facts| {
            drop_result(facts);
            end_with(exited(2))(facts);
        }),
        ["engine_failed"]
    );
}

fn verify_with(end: ProcessEnd, control: Option<ControlRun>) -> impl FnOnce(&mut Facts) {
    move |facts| facts.verification = Some(verification(end, control))
}

#[test]
fn verification_by_exit_code() {
    assert_eq!(codes(verify_with(exited(1), None)), ["verification_failed"]);
    assert_eq!(
        codes(verify_with(ProcessEnd::Signalled { signal: 11 }, None)),
        ["verification_failed"]
    );
    assert_eq!(
        codes(verify_with(ProcessEnd::Lost, None)),
        ["verification_failed"]
    );
    assert_eq!(
        codes(verify_with(
            ProcessEnd::TimedOut {
                limit: TimeLimit::Wall
            },
            None
        )),
        ["timeout"]
    );
}

#[test]
fn the_control_must_be_red_and_complete() {
    let ran = |end: ProcessEnd, added: Option<u64>, reported: Option<u64>| {
        Some(ControlRun::Ran {
            checks: vec![check(CheckKind::Visible, COMMAND, end)],
            failures_added: added,
            failures_reported: reported,
        })
    };
    let untrusted = ["verification_untrusted"];
    assert_eq!(codes(verify_with(exited(0), None)), untrusted, "no control");
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(0), Some(5), Some(5)))),
        untrusted,
        "green"
    );
    assert_eq!(
        codes(verify_with(
            exited(0),
            ran(ProcessEnd::Signalled { signal: 9 }, None, None)
        )),
        untrusted,
        "killed is not red"
    );
    assert_eq!(
        codes(verify_with(
            exited(0),
            ran(
                ProcessEnd::TimedOut {
                    limit: TimeLimit::Wall
                },
                None,
                None
            )
        )),
        untrusted
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), Some(5), Some(4)))),
        untrusted,
        "some silenced"
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), Some(5), None))),
        untrusted,
        "no count"
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), Some(5), Some(9)))),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes(verify_with(exited(0), ran(exited(1), None, None))),
        Vec::<&str>::new()
    );
    let could_not = Some(ControlRun::CouldNotRun { reason: "x".into() });
    assert_eq!(codes(verify_with(exited(0), could_not)), untrusted);
    let none = || Some(ControlRun::None { reason: "x".into() });
    assert_eq!(
        codes(verify_with(exited(0), none())),
        untrusted,
        "the contract asked for one"
    );
    let other = ControlRun::Ran {
        checks: vec![check(CheckKind::Visible, "false", exited(1))],
        failures_added: None,
        failures_reported: None,
    };
    assert_eq!(
        codes(verify_with(exited(0), Some(other))),
        untrusted,
        "another command"
    );
    let empty = ControlRun::Ran {
        checks: vec![],
        failures_added: None,
        failures_reported: None,
    };
    assert_eq!(
        codes(verify_with(exited(0), Some(empty))),
        untrusted,
        "no command"
    );
}

#[test]
fn no_control_is_allowed_only_low_on_the_ladder() {
    let none = || Some(ControlRun::None { reason: "x".into() });
    let with_stage = |stage: Stage| {
        move |contract: &mut Contract| {
            contract.verification_control = Control::None("x".into());
            contract.lane.stage = stage;
        }
    };
    assert_eq!(
        codes_with(with_stage(Stage::Two), verify_with(exited(0), none())),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes_with(with_stage(Stage::Three), verify_with(exited(0), none())),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes_with(with_stage(Stage::Four), verify_with(exited(0), none())),
        ["verification_untrusted"]
    );
}

#[test]
fn only_the_contracts_commands_count() {
    let other =
        |facts: &mut Facts| facts.verification.as_mut().unwrap().checks[0].command = "true".into();
    assert_eq!(codes(other)[0], "verification_untrusted");
    let hidden = |c: &mut Contract| c.hidden_verification.commands = vec!["sh hidden.sh".into()];
    assert_eq!(
        codes_with(hidden, |_| {}),
        ["verification_untrusted"],
        "hidden check left out"
    );
    let push = |end: ProcessEnd| {
        move |facts: &mut Facts| {
            facts.verification.as_mut().unwrap().checks.push(check(
                CheckKind::Hidden,
                "sh hidden.sh",
                end,
            ));
        }
    };
    assert_eq!(codes_with(hidden, push(exited(0))), Vec::<&str>::new());
    assert_eq!(codes_with(hidden, push(exited(1))), ["verification_failed"]);
    assert_eq!(
        codes(|facts| facts.verification.as_mut().unwrap().mismatch = Some("tree differs".into())),
        ["verification_untrusted"]
    );
}

#[test]
fn reviewers_findings_and_gates_only_make_it_worse() {
    let reject = |f: &mut Facts| {
        f.reviews = vec![EngineReview {
            accepted: false,
            summary: "no".into(),
        }]
    };
    assert_eq!(codes(reject), ["reviewer_rejected"]);
    assert_eq!(
        codes(|f| f.reviews = vec![EngineReview {
            accepted: true,
            summary: String::new()
        }]),
        Vec::<&str>::new()
    );
    for code in [
        Code::SecretLeak,
        Code::StaleArtifact,
        Code::Interrupted,
        Code::ArtifactWriteFailure,
        Code::DirtyEndingTree,
    ] {
        assert_eq!(
            codes(|f| f.findings = vec![Finding { code, detail: None }]),
            [code.as_str()]
        );
    }
    let Event::BackendGateBlocked(block) = gate(Code::EngineGateClosed) else {
        unreachable!()
    };
    assert_eq!(
        codes(|f| f.gate_blocks = vec![block]),
        ["engine_gate_closed"]
    );
    assert_eq!(
        codes(|f| f.contract.as_mut().unwrap().blockers = vec![Code::DirtyStartingTree]),
        ["dirty_starting_tree"]
    );
    assert_eq!(
        codes(|f| f.rejected_by_operator = true),
        ["operator_rejected"]
    );
}

#[test]
fn codes_of_the_verification_event_leave_out_time_limits() {
    let contract = sample();
    let done = verification(
        ProcessEnd::TimedOut {
            limit: TimeLimit::Wall,
        },
        None,
    );
    assert_eq!(verification_codes(Some(&contract), &[], &done), []);
    let review = [EngineReview {
        accepted: false,
        summary: "no".into(),
    }];
    assert_eq!(
        verification_codes(Some(&contract), &review, &verification(exited(1), None)),
        [Code::ReviewerRejected, Code::VerificationFailed]
    );
}

#[test]
fn a_list_says_more_only_where_there_is_more() {
    let paths: Vec<TreePath> = (0..11).map(|n| TreePath::new(format!("f{n}"))).collect();
    let named = |count: usize| list(&paths.iter().take(count).collect::<Vec<_>>());
    assert!(
        named(10).ends_with("f9") && named(11).ends_with("f9 and 1 more"),
        "{}",
        named(10)
    );
}

fn with_model(facts: &mut Facts, unavailable: Option<&str>, over_budget: Option<&str>) {
    let model = ModelUse {
        unavailable: unavailable.map(str::to_owned),
        over_budget: over_budget.map(str::to_owned),
        ..ModelUse::default()
    };
    facts.engine_ended.as_mut().unwrap().model = Some(model);
}

#[test]
fn an_engine_without_its_model_did_not_do_its_work() {
    let contract = sample();
    let codes = |facts: &Facts| judge(Some(&contract), facts).codes();
    let mut facts = good();
    with_model(&mut facts, None, None);
    assert_eq!(codes(&facts), []);
    with_model(&mut facts, Some("call 2: 429"), None);
    // It ended with 0 and its patch verifies; it is blocked all the same.
    let judged = judge(Some(&contract), &facts);
    assert_eq!(
        (judged.codes(), judged.status),
        (vec![Code::ProviderUnavailable], Status::Blocked)
    );
    with_model(&mut facts, None, Some("calls"));
    assert_eq!(codes(&facts), [Code::BudgetExceeded]);
    // What the wire explains is not explained again: neither by an empty diff nor by the engine
    // itself.
    with_model(&mut facts, Some("call 2: 429"), None);
    facts.diff.as_mut().unwrap().changes.clear();
    facts.verification = None;
    facts.gave_up = Some("429".into());
    assert_eq!(codes(&facts), [Code::ProviderUnavailable]);
}

#[test]
fn an_engine_that_says_it_failed_has_failed_whatever_its_exit_code() {
    let contract = sample();
    let mut facts = good();
    facts.gave_up = Some("context too long".into());
    let judged = judge(Some(&contract), &facts);
    assert_eq!(
        (judged.codes(), judged.status),
        (vec![Code::EngineFailed], Status::Fail)
    );
    assert!(
        judged.blockers[0]
            .detail
            .as_deref()
            .unwrap()
            .contains("context too long")
    );
    assert!(!engine_ended_well(&facts));
}

#[test]
fn the_last_result_counts() {
    let said = |failed| {
        Event::EngineResult(EngineResult {
            claimed: String::new(),
            summary: "s".into(),
            failed,
        })
    };
    let mut folded = Folded::default();
    for event in [
        started(),
        contracted(vec![]),
        planned(false),
        engine_started(),
        said(true),
    ] {
        folded.push(&event).unwrap();
    }
    assert_eq!(folded.facts.gave_up.as_deref(), Some("s"));
    folded.push(&said(false)).unwrap();
    assert_eq!(folded.facts.gave_up, None);
}

fn compared(missing: &[&str]) -> TestsCompared {
    TestsCompared {
        ids_sha256: Digest::of(b"ids"),
        baseline_ids: 12,
        verified_ids: 12,
        not_seen: None,
        missing_count: missing.len() as u64,
        missing: missing.iter().take(10).map(|id| (*id).to_owned()).collect(),
    }
}

fn verified_with(change: impl FnOnce(&mut VerificationCompleted)) -> impl FnOnce(&mut Facts) {
    move |facts| change(facts.verification.as_mut().unwrap())
}

#[test]
fn every_test_of_the_baseline_ran_again() {
    let untrusted = ["verification_untrusted"];
    assert_eq!(
        codes(verified_with(|done| done.tests = Some(compared(&[])))),
        Vec::<&str>::new()
    );
    assert_eq!(
        codes(verified_with(
            |done| done.tests = Some(compared(&["t: skipped"]))
        )),
        untrusted
    );
    assert_eq!(
        codes(verified_with(|done| done.log_nonce = Some("n".into()))),
        untrusted,
        "absence is no pass"
    );
    let without_runner =
        |contract: &mut Contract| contract.verification_control = Control::None("x".into());
    let none = |done: &mut VerificationCompleted| {
        done.control = Some(ControlRun::None { reason: "x".into() });
        done.log_nonce = Some("n".into());
    };
    assert_eq!(
        codes_with(without_runner, verified_with(none)),
        Vec::<&str>::new(),
        "no runner, no ids"
    );
    let mut not_seen = compared(&[]);
    not_seen.not_seen = Some("the baseline's own run named no test (exit code 1)".into());
    assert_eq!(
        codes(verified_with(|done| done.tests = Some(not_seen))),
        Vec::<&str>::new()
    );
    let names: Vec<String> = (0..12).map(|n| format!("t{n}: not there")).collect();
    let mut facts = good();
    facts.verification.as_mut().unwrap().tests = Some(compared(
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    ));
    let detail = judge(Some(&sample()), &facts).blockers[0]
        .detail
        .clone()
        .unwrap();
    assert!(
        detail.contains("t0: not there; t1") && detail.ends_with("and 2 more"),
        "{detail}"
    );
}

#[test]
fn who_takes_over_the_runner_is_not_believed() {
    let path = || vec![TreePath::new("sitecustomize.py")];
    let untrusted = ["verification_untrusted"];
    assert_eq!(
        codes(verified_with(|done| done.runner_takeovers = path())),
        untrusted
    );
    assert_eq!(
        codes(verified_with(|done| done.rewritten_test_files = path())),
        untrusted
    );
}

#[test]
fn rules_nobody_knows_end_in_no_pass() {
    let mut facts = good();
    assert_eq!(judge(Some(&sample()), &facts).status, Status::Pass);
    for number in [0, Rules::NEWEST.number().0 + 1, u32::MAX] {
        facts.rules = crate::run::rules::RulesNumber(number);
        assert_eq!(
            judge(Some(&sample()), &facts).codes(),
            [Code::MissingRequiredEvent]
        );
    }
}
