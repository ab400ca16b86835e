use super::*;
use crate::run::event::{EngineText, OperatorOutcome, Outcome, ProcessEnd};
use crate::run::tests as make;
use crate::values::blocker::Code;
use proptest::prelude::*;

fn run_id() -> RunId {
    "20260102T030405Z-demo-abcd".parse().unwrap()
}

fn start() -> Digest {
    chain::chain_start(&run_id(), &Digest::of(b"contract"))
}

/// A chain of events at these milliseconds.
fn chained(events: &[(i64, Event)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut prev = start();
    for (index, (at, event)) in events.iter().enumerate() {
        let ts = Utc::from_millis(1_767_323_045_000 + at).unwrap();
        let (line, hash) = EventLine::make(index as u64 + 1, ts, &run_id(), event, prev).unwrap();
        bytes.extend(line);
        prev = hash;
    }
    bytes
}

fn told(events: &[(i64, Event)]) -> Timeline {
    let (lines, problem) = good_beginning(&chained(events), start(), &run_id());
    assert_eq!((lines.len(), problem), (events.len(), None));
    build_timeline(&lines)
}

fn whole() -> Vec<(i64, Event)> {
    vec![
        (0, make::started()),
        (1, make::contracted(vec![])),
        (2, make::planned(false)),
        (10, make::engine_started()),
        (
            20,
            Event::EngineMessage(EngineText {
                text: "all good".into(),
            }),
        ),
        (4000, make::engine_result()),
        (4010, make::engine_ended(ProcessEnd::Exited { code: 0 })),
        (4020, make::patched()),
        (4021, make::diffed(&["a", "b"])),
        (5000, make::verified(None, vec![])),
        (5002, make::completed(&[])),
    ]
}

#[test]
fn phases_cover_the_run_without_holes() {
    let told = told(&whole());
    let phases: Vec<_> = told
        .phases
        .iter()
        .map(|phase| (phase.name, phase.start_ms, phase.duration_ms))
        .collect();
    assert_eq!(
        phases,
        [
            ("plan", 0, 2),
            ("workspace", 2, 8),
            ("engine", 10, 4000),
            ("measure", 4010, 11),
            ("verify", 4021, 979),
            ("seal", 5000, 2)
        ]
    );
    assert_eq!(told.duration_ms, 5002);
    assert_eq!(
        told.gaps,
        [Gap {
            before_seq: 6,
            duration_ms: 3980
        }]
    );
}

#[test]
fn claims_stand_apart_from_observations() {
    let told = told(&whole());
    let claimed: Vec<u64> = told
        .entries
        .iter()
        .filter(|entry| entry.voice == Voice::Claimed)
        .map(|entry| entry.seq)
        .collect();
    assert_eq!(claimed, [5, 6]);
    for kind in EventType::ALL {
        let said = kind.is_engine()
            && !matches!(
                kind,
                EventType::EngineStarted | EventType::EngineModelCall | EventType::EngineEnded
            );
        assert_eq!(voice_of(*kind) == Voice::Claimed, said, "{kind:?}");
    }
}

#[test]
fn a_blocked_run_has_its_own_short_story() {
    let told = told(&[
        (0, make::started()),
        (1, make::contracted(vec![])),
        (3, make::gate(Code::NoDiff)),
        (9, make::completed(&[Code::Interrupted])),
    ]);
    assert_eq!(
        told.phases,
        [Phase {
            name: "plan",
            start_ms: 0,
            duration_ms: 9
        }]
    );
    assert_eq!(told.entries[2].text, "no_diff");
    assert_eq!(build_timeline(&[]), Timeline::default());
}

#[test]
fn a_clock_that_goes_back_makes_no_negative_phase() {
    let mut events = whole();
    for (at, _) in &mut events[7..] {
        *at -= 60_000;
    }
    let told = told(&events);
    assert!(
        told.phases.iter().all(|phase| phase.duration_ms >= 0),
        "{:?}",
        told.phases
    );
    assert!(told.entries[7].since_previous_ms < 0);
}

#[test]
fn the_good_beginning_ends_where_bytes_or_order_go_wrong() {
    let bytes = chained(&whole());
    let torn = &bytes[..bytes.len() - 2];
    let (lines, problem) = good_beginning(torn, start(), &run_id());
    assert_eq!(
        (lines.len(), problem.as_deref()),
        (10, Some("the last line is torn"))
    );

    // Well chained, but an engine that ended twice is nobody's run.
    let mut events = whole();
    events.insert(7, events[6].clone());
    let (lines, problem) = good_beginning(&chained(&events), start(), &run_id());
    assert_eq!(
        (lines.len(), problem.as_deref()),
        (7, Some("line 8: engine.ended cannot follow EngineEnded"))
    );
}

#[test]
fn every_event_that_carries_words_says_them() {
    let outcome = Event::OperatorOutcomeRecorded(OperatorOutcome {
        outcome: Outcome::Rejected,
        actor: "operator".into(),
        given_ahead: false,
        rules: crate::run::rules::Rules::NEWEST.number(),
        record_sha256: crate::values::digest::Digest::of(b"record"),
        land: None,
        reverts: None,
    });
    for (event, want) in [
        (make::started(), "fake at stage 2 on demo"),
        (make::engine_result(), "claims completed"),
        (
            make::engine_ended(ProcessEnd::Signalled { signal: 9 }),
            "killed by signal 9 after 1 ms, 0 bytes of output",
        ),
        (make::patched(), "1 file changed, a patch of 1 bytes"),
        (make::diffed(&["a", "b"]), "2 changed: a, b"),
        (make::verified(Some("no diff"), vec![]), "not run: no diff"),
        (make::completed(&[]), "fail"),
        (outcome, "rejected by operator"),
    ] {
        assert_eq!(event_sentence(&event), want);
    }
}

#[test]
fn spans_read_like_a_clock() {
    for (ms, want) in [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.00 s"),
        (59_999, "59.99 s"),
        (60_000, "1 m 00 s"),
        (187_400, "3 m 07 s"),
        (7_500_000, "2 h 05 m"),
        (-1500, "-1.50 s"),
    ] {
        assert_eq!(duration_text(ms), want);
    }
}

proptest! {
    #[test]
    fn any_clock_and_any_bytes_are_told(times in proptest::collection::vec(-4_000_000_000i64..4_000_000_000, 11), at in 0usize..2000, byte in any::<u8>()) {
        let events: Vec<(i64, Event)> = times.into_iter().zip(whole()).map(|(at, (_, event))| (at, event)).collect();
        let mut bytes = chained(&events);
        let at = at % bytes.len();
        bytes[at] = byte;
        let (lines, _) = good_beginning(&bytes, start(), &run_id());
        let told = build_timeline(&lines);
        prop_assert_eq!(told.entries.len(), lines.len());
        prop_assert!(told.phases.iter().all(|phase| phase.duration_ms >= 0));
    }

    #[test]
    fn any_span_is_words(ms in any::<i64>()) {
        prop_assert!(!duration_text(ms).is_empty());
    }
}

#[test]
fn clocks() {
    for (ms, want) in [
        (0, "0.000 s"),
        (315, "0.315 s"),
        (187_400, "3:07.400"),
        (7_500_001, "2:05:00.001"),
        (-20, "-0.020 s"),
    ] {
        assert_eq!(clock_text(ms), want);
    }
}
