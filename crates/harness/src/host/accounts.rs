//! What work has cost, by the clock and by the kernel's accounts.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};

/// The state of the accounts when something began.
pub struct Meter {
    began: Instant,
    own: Duration,
    children: Duration,
}

/// What was spent since: CPU time of this process, and of the processes below it that have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    pub wall: Duration,
    pub own: Duration,
    pub children: Duration,
}

impl Meter {
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            own: spent(UsageWho::RUSAGE_SELF),
            children: spent(UsageWho::RUSAGE_CHILDREN),
        }
    }

    pub fn read(&self) -> Cost {
        Cost {
            wall: self.began.elapsed(),
            own: spent(UsageWho::RUSAGE_SELF).saturating_sub(self.own),
            children: spent(UsageWho::RUSAGE_CHILDREN).saturating_sub(self.children),
        }
    }
}

impl Cost {
    /// How much of the CPU time went to child processes, in percent.
    pub fn share_in_children(&self) -> u64 {
        let (children, all) = (
            self.children.as_micros(),
            (self.children + self.own).as_micros(),
        );
        u64::try_from((children * 100 + all / 2) / all.max(1)).unwrap_or(100)
    }

    /// One line for a person.
    pub fn line(&self) -> String {
        format!(
            "{:.2} s wall, {:.2} s CPU, {}% of it in child processes",
            self.wall.as_secs_f64(),
            (self.own + self.children).as_secs_f64(),
            self.share_in_children()
        )
    }

    pub fn to_json(self) -> Value {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        json!({
            "wall_ms": millis(self.wall),
            "own_cpu_ms": millis(self.own),
            "children_cpu_ms": millis(self.children),
            "children_share_percent": self.share_in_children(),
        })
    }
}

/// User and system time; a kernel that does not say has counted nothing.
fn spent(who: UsageWho) -> Duration {
    let length = |time: TimeVal| {
        let (seconds, micros) = (
            u64::try_from(time.tv_sec()).unwrap_or(0),
            u64::try_from(time.tv_usec()).unwrap_or(0),
        );
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    getrusage(who)
        .map(|usage| length(usage.user_time()) + length(usage.system_time()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_percents() {
        let cost = |own, children| Cost {
            wall: Duration::ZERO,
            own: Duration::from_millis(own),
            children: Duration::from_millis(children),
        };
        assert_eq!(cost(0, 0).share_in_children(), 0);
        assert_eq!(cost(1, 2).share_in_children(), 67);
        assert_eq!(cost(0, 5).share_in_children(), 100);
        assert_eq!(
            cost(50, 950).line(),
            "0.00 s wall, 1.00 s CPU, 95% of it in child processes"
        );
    }

    #[test]
    fn work_of_our_own_is_counted() {
        let meter = Meter::start();
        let mut sum = 0u64;
        while meter.read().own < Duration::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert!(meter.read().wall > Duration::ZERO);
    }
}
