//! The clock of one run: how long its steps took, and when processes ran. Parts of a run that are on
//! threads of their own share it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cto_core::bundle::report::timings::{Step, Timings};
use cto_core::run::trace::TraceOutcome;

/// Something that was over before there was a bundle to write it to.
#[derive(Clone, Debug)]
pub struct Before {
    pub action: &'static str,
    pub step: Step,
    pub outcome: TraceOutcome,
    pub took: Duration,
    pub detail: Option<String>,
}

pub struct Clock {
    began: Instant,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    steps: Vec<(Step, u64)>,
    /// Beginnings and ends of processes, in milliseconds since the run began.
    running: Vec<(u64, u64)>,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            taken: Mutex::default(),
        }
    }

    /// A step that lasted from `since` until now.
    pub fn step(&self, step: Step, since: Instant) {
        self.took(step, since.elapsed());
    }

    pub fn took(&self, step: Step, wall: Duration) {
        self.with(|taken| taken.steps.push((step, millis(wall))));
    }

    /// Planning that began at `since` and is over, and what of it has a name of its own. While a model is
    /// asked nothing of ours runs.
    pub fn planned(&self, since: Instant, parts: &[Before]) {
        let named: Duration = parts.iter().map(|part| part.took).sum();
        self.took(Step::Plan, since.elapsed().saturating_sub(named));
        for part in parts {
            self.took(part.step, part.took);
            if part.step == Step::Probe {
                self.ran(millis(part.took));
            }
        }
    }

    /// A process that ended just now.
    pub fn ran(&self, duration_ms: u64) {
        let now = millis(self.began.elapsed());
        self.with(|taken| taken.running.push((now.saturating_sub(duration_ms), now)));
    }

    pub fn timings(&self) -> Timings {
        let total = millis(self.began.elapsed());
        self.with(|taken| Timings::of(&taken.steps, total, &taken.running))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Taken) -> T) -> T {
        // Nothing is half done when it is let go of.
        act(&mut self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
