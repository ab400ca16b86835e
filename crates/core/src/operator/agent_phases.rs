//! What the phases of an engine cost that works in phases: each from its beginning to its end, and the calls of its model that
//! began in between. The phases are the engine's word, the calls were observed.

use serde::Serialize;

use crate::run::chain::EventLine;
use crate::run::event::{EnginePhase, Event};
use crate::values::maybe_known::MaybeKnown;
use crate::wire::calls::CallRecord;

/// One phase, as often as it was begun.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct AgentPhase {
    pub phase: String,
    pub agent: String,
    /// The revision it belongs to; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// How it ended; none where that was never said.
    pub outcome: Option<String>,
    /// Since the first event of the run.
    pub start_ms: i64,
    pub duration_ms: i64,
    #[serde(flatten)]
    pub cost: WireCost,
}

/// What was spent on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WireCost {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl WireCost {
    fn add(&mut self, call: &CallRecord) {
        let known = |seen: &MaybeKnown<u64>| seen.known().copied().unwrap_or(0);
        self.calls += 1;
        self.input_tokens = self.input_tokens.saturating_add(known(&call.tokens.input));
        self.output_tokens = self
            .output_tokens
            .saturating_add(known(&call.tokens.output));
    }
}

/// All phases of a run, and what was spent outside of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct AgentPhases {
    pub phases: Vec<AgentPhase>,
    pub elsewhere: WireCost,
}

/// More are not told apart.
const MOST: usize = 200;

/// When a call began is told by three clocks, each cut to milliseconds: it can seem to be so much earlier than it was.
const CUT_OFF_MS: i64 = 2;

/// Reads the phases out of a chain. Empty for an engine that tells of none.
pub fn agent_phases(lines: &[EventLine]) -> AgentPhases {
    let Some(first) = lines.first().map(|line| line.ts.as_millis()) else {
        return AgentPhases::default();
    };
    let mut told = AgentPhases::default();
    let mut started = first;
    for line in lines {
        match &line.event {
            Event::EngineStarted(_) => started = line.ts.as_millis(),
            Event::EnginePhase(phase) => {
                let at = said_at(phase, started, line.ts.as_millis()) - first;
                told.phase(phase, at);
            }
            _ => {}
        }
    }
    if told.phases.is_empty() {
        return told;
    }
    for line in lines {
        if let Event::EngineModelCall(call) = &line.event {
            let since = i64::try_from(call.started_ms).unwrap_or(i64::MAX);
            told.call(call, started.saturating_add(since) - first);
        }
    }
    told
}

/// When the engine says it was, if that can be: not before it started, nor after its word was heard.
fn said_at(phase: &EnginePhase, started: i64, heard: i64) -> i64 {
    let said = phase.at.map(|at| at.as_millis());
    said.filter(|at| (started..=heard).contains(at))
        .unwrap_or(heard)
}

impl AgentPhases {
    fn phase(&mut self, said: &EnginePhase, at: i64) {
        if let Some(outcome) = &said.outcome
            && let Some(open) = self.phases.last_mut()
            && open.outcome.is_none()
            && open.phase == said.phase
        {
            open.outcome = Some(outcome.clone());
            open.duration_ms = (at - open.start_ms).max(0);
            return;
        }
        if self.phases.len() < MOST {
            self.phases.push(AgentPhase {
                phase: said.phase.clone(),
                agent: said.agent.clone(),
                revision: said.revision,
                outcome: said.outcome.clone(),
                start_ms: at,
                ..AgentPhase::default()
            });
        }
    }

    /// A call belongs to the last phase that had begun, unless that had ended.
    fn call(&mut self, call: &CallRecord, at: i64) {
        let begun = self
            .phases
            .iter_mut()
            .rev()
            .find(|phase| phase.start_ms <= at.saturating_add(CUT_OFF_MS));
        let of = begun
            .filter(|phase| phase.outcome.is_none() || at <= phase.start_ms + phase.duration_ms);
        match of {
            Some(phase) => phase.cost.add(call),
            None => self.elsewhere.add(call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests as make;
    use crate::values::digest::Digest;
    use crate::values::time::Utc;
    use crate::wire::Protocol;

    fn lines(events: Vec<(i64, Event)>) -> Vec<EventLine> {
        let run = "20260102T030405Z-demo-abcd".parse().unwrap();
        let mut prev = Digest::of(b"start");
        let mut bytes = Vec::new();
        for (index, (at, event)) in events.into_iter().enumerate() {
            let ts = Utc::from_millis(1_767_323_045_000 + at).unwrap();
            let (line, hash) = EventLine::make(index as u64 + 1, ts, &run, &event, prev).unwrap();
            bytes.extend(line);
            prev = hash;
        }
        let (lines, broken) =
            crate::run::chain::read_while_good(&bytes, Digest::of(b"start"), &run);
        assert!(broken.is_none());
        lines
    }

    fn phase(name: &str, outcome: Option<&str>, at: Option<i64>, revision: Option<u64>) -> Event {
        Event::EnginePhase(EnginePhase {
            phase: name.into(),
            agent: name.into(),
            outcome: outcome.map(str::to_owned),
            summary: String::new(),
            at: at.map(|at| Utc::from_millis(1_767_323_045_000 + at).unwrap()),
            revision,
        })
    }

    fn call(seq: u64, started_ms: u64, input: u64, output: u64) -> Event {
        let mut call = CallRecord::begun(seq, started_ms, Protocol::OpenaiChat);
        call.tokens.input = MaybeKnown::Known(input);
        call.tokens.output = MaybeKnown::Known(output);
        Event::EngineModelCall(Box::new(call))
    }

    #[test]
    fn calls_belong_to_the_phase_they_began_in() {
        let told = agent_phases(&lines(vec![
            (0, make::started()),
            (10, make::engine_started()),
            // Heard later than it was said.
            (40, phase("implementer", None, Some(20), None)),
            (
                140,
                phase("implementer", Some("completed"), Some(120), None),
            ),
            (150, phase("reviewer", None, Some(121), None)),
            (220, phase("reviewer", Some("failed"), Some(200), None)),
            (230, phase("implementer", None, None, Some(1))),
            (300, call(1, 15, 100, 10)),
            (300, call(2, 100, 50, 5)),
            (300, call(3, 115, 7, 1)),
            (300, call(4, 195, 3, 2)),
            // A little before its phase, as the clocks have it; the next one plainly before.
            (300, call(5, 218, 1, 1)),
            (300, call(6, 217, 9, 9)),
            (300, call(7, 260, 1, 1)),
        ]));
        let seen: Vec<_> = told
            .phases
            .iter()
            .map(|phase| {
                let cost = phase.cost;
                (
                    phase.phase.as_str(),
                    phase.revision,
                    phase.duration_ms,
                    (cost.calls, cost.input_tokens, cost.output_tokens),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("implementer", None, 100, (2, 150, 15)),
                ("reviewer", None, 79, (1, 7, 1)),
                ("implementer", Some(1), 0, (2, 2, 2)),
            ]
        );
        assert_eq!(told.elsewhere.calls, 2);
    }

    #[test]
    fn a_clock_nobody_can_have_is_not_believed() {
        let told = agent_phases(&lines(vec![
            (0, make::started()),
            (10, make::engine_started()),
            (40, phase("a", None, Some(-9_000_000), None)),
            (50, phase("a", Some("completed"), Some(9_000_000), None)),
            (60, phase("b", Some("failed"), None, None)),
        ]));
        let spans: Vec<_> = told
            .phases
            .iter()
            .map(|phase| (phase.start_ms, phase.duration_ms))
            .collect();
        assert_eq!(spans, [(40, 10), (60, 0)]);
        assert_eq!(agent_phases(&[]), AgentPhases::default());
        let none = agent_phases(&lines(vec![(0, make::started()), (1, call(1, 0, 1, 1))]));
        assert_eq!(none, AgentPhases::default(), "an engine without phases");
    }
}
