//! The verdict: one good run, and what each broken fact makes of it.

use super::*;
use crate::run::event::{
    Check, CheckKind, ControlRun, EngineResult, EngineReview, Event, MemoryMeter, ModelUse,
    ProcessEnd, TimeLimit, VerificationCompleted,
};
use crate::run::facts::{Folded, fold_events};
use crate::run::tests::{
    contracted, diffed, engine_ended, engine_result, engine_started, gate, noticed, patched,
    planned, started,
};
use crate::task::contract::tests::sample;
use crate::values::blocker::Finding;
use crate::values::digest::Digest;

pub(super) const COMMAND: &str = "python3 -m unittest -v";

pub(super) fn check(kind: CheckKind, command: &str, end: ProcessEnd) -> Check {
    Check {
        kind,
        command: command.into(),
        end,
        duration_ms: 1,
        lacks: Vec::new(),
    }
}

pub(super) fn exited(code: u8) -> ProcessEnd {
    ProcessEnd::Exited { code }
}

pub(super) fn red_control() -> ControlRun {
    ControlRun::Ran {
        heard: Vec::new(),
        checks: vec![check(CheckKind::Visible, COMMAND, exited(1))],
        failures_added: Some(5),
        failures_reported: Some(5),
    }
}

pub(super) fn verification(end: ProcessEnd, control: Option<ControlRun>) -> VerificationCompleted {
    VerificationCompleted {
        checks: vec![check(CheckKind::Visible, COMMAND, end)],
        control,
        tree: Some(Digest::of(b"tree")),
        loading: Some(noticed(check(CheckKind::Visible, COMMAND, exited(97)))),
        ..VerificationCompleted::nothing(Digest::of(b""))
    }
}

/// A run in which everything went right; each test breaks one thing.
pub(crate) fn good() -> Facts {
    let events = [
        started(),
        contracted(vec![]),
        planned(false),
        engine_started(),
        engine_result(),
        engine_ended(exited(0)),
        patched(),
        diffed(&["a.py"]),
        Event::VerificationCompleted(Box::new(verification(exited(0), Some(red_control())))),
    ];
    let Folded { facts, .. } = fold_events(&events).unwrap();
    facts
}

pub(super) fn codes(change: impl FnOnce(&mut Facts)) -> Vec<&'static str> {
    codes_with(|_| {}, change)
}

pub(super) fn codes_with(
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

#[test]
fn a_green_start_that_is_asked_for_is_a_fact_that_must_exist() {
    let asked = |contract: &mut Contract| contract.reasons.green_start = true;
    let started = |code: u8| {
        codes_with(asked, |facts| {
            let done = facts.verification.as_mut().unwrap();
            done.baseline_checks = vec![check(CheckKind::Visible, COMMAND, exited(code))];
        })
    };
    assert_eq!(codes_with(asked, |_| {}), ["missing_required_event"]);
    assert!(started(0).is_empty() && !started(1).is_empty());
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
fn an_engine_that_ended_with_a_refused_request_has_failed_by_that() {
    let contract = sample();
    let refused = "call 3: refused: the request holds a field that is not passed on: plugins";
    for (code, gave_up, want) in [
        (0, None, refused.to_owned()),
        (0, Some("400"), format!("{refused}; in its own words: 400")),
        (1, None, format!("exit code 1; {refused}")),
        (1, Some("400"), format!("exit code 1; {refused}")),
    ] {
        let mut facts = good();
        let ended = facts.engine_ended.as_mut().unwrap();
        ended.end = ProcessEnd::Exited { code };
        ended.model = Some(ModelUse {
            refused: 1,
            ended_refused: Some(refused.to_owned()),
            ..ModelUse::default()
        });
        facts.gave_up = gave_up.map(str::to_owned);
        let judged = judge(Some(&contract), &facts);
        assert_eq!(
            (judged.codes(), judged.status),
            (vec![Code::EngineFailed], Status::Fail)
        );
        assert_eq!(judged.blockers[0].detail.as_deref(), Some(want.as_str()));
    }
    // What was refused on the way, and then answered, is told and decides nothing.
    let mut facts = good();
    facts.engine_ended.as_mut().unwrap().model = Some(ModelUse {
        refused: 1,
        refused_fields: vec!["request_field: plugins".into()],
        ..ModelUse::default()
    });
    assert_eq!(judge(Some(&contract), &facts).codes(), []);
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
    let said = |failed| Event::EngineResult(EngineResult::new(String::new(), "s", failed));
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
