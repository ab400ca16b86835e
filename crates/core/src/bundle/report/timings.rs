//! How long a run took, step by step, and how much of that was the harness's own. Measured and told;
//! nothing is decided by it.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A step of a run, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
    Plan,
    /// The one request to the model before anything is started.
    Probe,
    /// The run of `fake` that a stage-2 run is compared with, had or made.
    Fake,
    Copy,
    Setup,
    Engine,
    Measure,
    Checks,
    Hidden,
    Control,
    Baseline,
    Loading,
    Seal,
}

impl Step {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Probe => "probe",
            Self::Fake => "fake",
            Self::Copy => "copy",
            Self::Setup => "setup",
            Self::Engine => "engine",
            Self::Measure => "measure",
            Self::Checks => "checks",
            Self::Hidden => "hidden",
            Self::Control => "control",
            Self::Baseline => "baseline",
            Self::Loading => "loading",
            Self::Seal => "seal",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StepTime {
    pub step: String,
    pub wall_ms: u64,
}

/// Steps that ran beside each other are each told whole, so they may add up to more than the total.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    pub steps: Vec<StepTime>,
    /// Until the report was fixed.
    pub total_ms: u64,
    /// While neither the engine nor a command of the contract ran, and no model was asked.
    pub own_ms: u64,
}

impl Timings {
    /// `running` are beginnings and ends of processes since the run began, in milliseconds.
    pub fn of(steps: &[(Step, u64)], total_ms: u64, running: &[(u64, u64)]) -> Self {
        let mut order: Vec<Step> = steps.iter().map(|(step, _)| *step).collect();
        order.sort_unstable();
        order.dedup();
        let all = |step: Step| steps.iter().filter(move |(of, _)| *of == step);
        Self {
            steps: order
                .into_iter()
                .map(|step| StepTime {
                    step: step.as_str().to_owned(),
                    wall_ms: all(step).map(|(_, wall_ms)| wall_ms).sum(),
                })
                .collect(),
            total_ms,
            own_ms: total_ms.saturating_sub(covered(running)),
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for time in &self.steps {
            // Writing to a String cannot fail.
            let _ = write!(line, "{} {} ms, ", time.step, time.wall_ms);
        }
        format!(
            "{line}in all {} ms, of which {} ms are the harness's own",
            self.total_ms, self.own_ms
        )
    }
}

/// How much of the time at least one of these intervals covers.
fn covered(intervals: &[(u64, u64)]) -> u64 {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (begin, end) in sorted {
        sum += end.saturating_sub(begin.max(until));
        until = until.max(end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_covered_once_however_many_run() {
        for (intervals, want) in [
            (vec![], 0),
            (vec![(0, 5)], 5),
            (vec![(3, 5), (0, 2)], 4),
            (vec![(0, 10), (2, 5)], 10),
            (vec![(0, 5), (3, 9), (9, 10)], 10),
            (vec![(7, 7), (9, 2)], 0),
        ] {
            assert_eq!(covered(&intervals), want, "{intervals:?}");
        }
    }

    #[test]
    fn what_no_command_took_is_our_own() {
        let steps = [(Step::Engine, 4), (Step::Copy, 1), (Step::Engine, 2)];
        let times = Timings::of(&steps, 20, &[(2, 8), (4, 12)]);
        assert_eq!(times.own_ms, 10);
        assert_eq!(
            times.line(),
            "copy 1 ms, engine 6 ms, in all 20 ms, of which 10 ms are the harness's own"
        );
        // Clocks of processes may say more than ours.
        assert_eq!(Timings::of(&[], 3, &[(0, 9)]).own_ms, 0);
    }
}
