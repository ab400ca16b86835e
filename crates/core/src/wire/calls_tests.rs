//! How calls are counted, and what they say of a provider.

use super::*;
use crate::values::money::SpendLimit;

fn call(seq: u64, ended_ms: u64, outcome: Outcome) -> CallRecord {
    let mut call = CallRecord::begun(seq, 0, Protocol::OpenaiChat);
    call.path = PathClass::Generate;
    call.forwarded = true;
    call.total_us = ended_ms * 1000;
    call.ended(outcome, None);
    call
}

#[test]
fn the_last_call_to_end_decides() {
    use Outcome::*;
    for bad in [
        Transport,
        Auth,
        RateLimit,
        ServerError,
        Truncated,
        Stalled,
        Redirected,
    ] {
        assert_eq!(wire_failure(&[call(1, 1, Ok), call(2, 2, bad)]), Some(bad));
        assert_eq!(
            wire_failure(&[call(1, 1, bad), call(2, 2, Ok)]),
            None,
            "the engine got over it"
        );
        assert_eq!(
            wire_failure(&[call(1, 9, bad), call(2, 2, Ok)]),
            Some(bad),
            "by its end, not its start"
        );
        for aside in [EngineClosed, Budget, Refused] {
            assert_eq!(
                wire_failure(&[call(1, 1, bad), call(2, 2, aside)]),
                Some(bad)
            );
        }
    }
    for fine in [Ok, ModelError, ReasoningOnly, WrongModel] {
        assert_eq!(wire_failure(&[call(1, 1, fine)]), None);
    }
    let mut local = call(2, 2, Ok);
    local.forwarded = false;
    assert_eq!(wire_failure(&[call(1, 1, Auth), local]), Some(Auth));
    let mut counted = call(2, 2, Ok);
    counted.path = PathClass::CountTokens;
    assert_eq!(wire_failure(&[call(1, 1, Auth), counted]), Some(Auth));
    assert_eq!(wire_failure(&[]), None);
}

#[test]
fn the_refusal_an_engine_ended_with_is_known() {
    let refused = |seq, ended| {
        let mut call = call(seq, ended, Outcome::Refused);
        call.forwarded = false;
        call.why = Some(RefusalReason::RequestField);
        call.field = Some("plugins".into());
        call
    };
    let good = |seq, ended| call(seq, ended, Outcome::Ok);
    let found = |calls: &[CallRecord]| ended_refused(calls, "lab-1").map(|call| call.seq);
    assert_eq!(found(&[good(1, 1), refused(2, 2)]), Some(2));
    assert_eq!(found(&[refused(1, 1), good(2, 2)]), None, "it got over it");
    assert_eq!(found(&[refused(1, 9), good(2, 2)]), Some(1), "by its end");
    // A refusal of another sort says nothing of what the engine was answered.
    let mut other = refused(3, 3);
    (other.why, other.field) = (Some(RefusalReason::BadPath), None);
    assert_eq!(found(&[refused(1, 1), good(2, 2), other]), None);
    // Beside its work: a title for the conversation, asked of another model.
    let asked = |model: &str| CallRecord {
        model_asked: MaybeKnown::Known(model.into()),
        ..refused(2, 2)
    };
    let stalled = call(1, 1, Outcome::Stalled);
    assert_eq!(found(&[stalled.clone(), asked("other")]), None);
    assert_eq!(found(&[stalled, asked("lab-1")]), Some(2));
    assert_eq!(found(&[]), None);
    assert_eq!(RefusalReason::RequestField.word(), "request_field");
}

#[test]
fn budgets_close_at_their_edge() {
    let budget = Budget {
        calls: 2,
        tokens: 10,
        bytes: 100,
        wall_ms: 1000,
        spend: Some(SpendLimit {
            micros: 7,
            price: PRICE,
        }),
    };
    let spent = |calls, tokens, bytes, elapsed_ms| Spent {
        calls,
        tokens,
        bytes,
        elapsed_ms,
        micros: Some(6),
    };
    assert_eq!(budget.admits(&spent(1, 9, 99, 999)), Ok(()));
    assert_eq!(budget.admits(&spent(2, 0, 0, 0)), Err(RefusalReason::Calls));
    assert_eq!(
        budget.admits(&spent(0, 10, 0, 0)),
        Err(RefusalReason::Tokens)
    );
    assert_eq!(
        budget.admits(&spent(0, 0, 100, 0)),
        Err(RefusalReason::Bytes)
    );
    assert_eq!(
        budget.admits(&spent(9, 99, 999, 1000)),
        Err(RefusalReason::Time)
    );
    let paid = Spent {
        micros: Some(7),
        ..spent(0, 0, 0, 0)
    };
    assert_eq!(budget.admits(&paid), Err(RefusalReason::Spend));
    let unpriced = Budget {
        spend: None,
        ..budget
    };
    assert_eq!(unpriced.admits(&paid), Ok(()));
    for why in [
        RefusalReason::Calls,
        RefusalReason::Tokens,
        RefusalReason::Spend,
        RefusalReason::Bytes,
        RefusalReason::Time,
    ] {
        assert!(why.is_budget());
    }
    assert!(!RefusalReason::OtherModel.is_budget());
}

const PRICE: Price = Price {
    input_micros: 1_000_000,
    cached_input_micros: 0,
    output_micros: 2_000_000,
};

#[test]
fn silence_about_tokens_is_not_free() {
    let mut one = call(1, 1, Outcome::Ok);
    (one.request_bytes, one.response_bytes) = (401, 40);
    assert_eq!(one.tokens_spent(), 111);
    one.tokens = TokenCounts {
        input: MaybeKnown::Known(5),
        cached: Some(4),
        output: MaybeKnown::Known(7),
        reasoning: MaybeKnown::Known(3),
    };
    assert_eq!(one.tokens_spent(), 12);
    assert_eq!(
        one.micros_spent(&PRICE),
        1 + 14,
        "what was cached costs what its price says"
    );
    one.forwarded = false;
    one.tokens = TokenCounts::default();
    assert_eq!(one.tokens_spent(), 0);
}

#[test]
fn probes_mean_what_they_say() {
    let mut content = call(1, 1, Outcome::Ok);
    assert_eq!(
        probe_outcome(&content),
        ProbeOutcome::ReasoningOnly,
        "a whole answer with nothing in it is no content"
    );
    content.content = true;
    assert_eq!(probe_outcome(&content), ProbeOutcome::Content);
    for (outcome, want) in [
        (Outcome::ReasoningOnly, ProbeOutcome::ReasoningOnly),
        (Outcome::Auth, ProbeOutcome::Auth),
        (Outcome::WrongModel, ProbeOutcome::WrongModel),
        (
            Outcome::RateLimit,
            ProbeOutcome::Unavailable {
                class: Outcome::RateLimit,
            },
        ),
        (
            Outcome::Stalled,
            ProbeOutcome::Unavailable {
                class: Outcome::Stalled,
            },
        ),
    ] {
        assert_eq!(probe_outcome(&call(1, 1, outcome)), want);
    }
}

#[test]
fn a_record_reads_back() {
    let mut one = call(3, 4, Outcome::Refused);
    one.why = Some(RefusalReason::OtherModel);
    one.model_asked = MaybeKnown::Known("m".into());
    let text = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<CallRecord>(&text).unwrap(), one);
    assert!(text.contains("\"why\":\"other_model\""), "{text}");
}
