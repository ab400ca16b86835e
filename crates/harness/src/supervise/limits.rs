//! When to wait, terminate, kill or finish: inputs in, decisions out, no process in sight.

use std::time::{Duration, Instant};

use cto_core::run::event::{Dismissal, MemoryMeter, ProcessEnd, TimeLimit};

use super::{DRAIN, FAREWELL, GRACE, STAYING};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub wall: Duration,
    pub idle: Duration,
    /// Of the whole tree, looked at in samples; only a jail's tree can be looked at.
    pub memory_kib: u64,
}

impl Limits {
    /// Nothing but a time.
    pub fn of_time(wall: Duration) -> Self {
        Self {
            wall,
            idle: wall,
            memory_kib: u64::MAX,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    Tick,
    Cancelled,
    MemoryExceeded,
    Exited,
    OutputClosed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    Wait(Duration),
    Terminate,
    Kill,
    Finish,
}

/// Why a process is being ended by us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Memory,
    Time(TimeLimit),
    Dismissed(Dismissal),
    Cancel,
}

#[derive(Debug)]
pub struct Watch {
    limits: Limits,
    started: Instant,
    last_life: Instant,
    /// It was told that it may go.
    dismissed: Option<(Dismissal, Instant)>,
    ending: Option<(Cause, Instant)>,
    killed: bool,
    exited: Option<Instant>,
    closed: bool,
}

impl Watch {
    pub fn new(limits: Limits, now: Instant) -> Self {
        Self {
            limits,
            started: now,
            last_life: now,
            dismissed: None,
            ending: None,
            killed: false,
            exited: None,
            closed: false,
        }
    }

    pub fn saw_life(&mut self, now: Instant) {
        self.last_life = now;
    }

    /// Has it shown no sign of life for as long as it may?
    pub fn is_silent(&self, now: Instant) -> bool {
        now - self.last_life >= self.limits.idle
    }

    /// It may go. One that is at its end already, by itself or by us, was not told in time.
    pub fn dismiss(&mut self, now: Instant, because: Option<Dismissal>) {
        if self.exited.is_none()
            && self.ending.is_none()
            && let Some(because) = because
        {
            self.dismissed.get_or_insert((because, now));
        }
    }

    pub fn decide(&mut self, now: Instant, input: Input) -> Decision {
        match input {
            Input::Exited => self.exited = self.exited.or(Some(now)),
            Input::OutputClosed => self.closed = true,
            Input::Cancelled | Input::MemoryExceeded | Input::Tick => {}
        }
        if let Some(exited) = self.exited {
            let left = DRAIN.saturating_sub(now - exited);
            return if self.closed || left.is_zero() {
                Decision::Finish
            } else {
                Decision::Wait(left)
            };
        }
        if let Some((_, since)) = self.ending {
            let left = GRACE.saturating_sub(now - since);
            return match left.is_zero() && !self.killed {
                true => {
                    self.killed = true;
                    Decision::Kill
                }
                false => Decision::Wait(left.max(Duration::from_millis(20))),
            };
        }
        if let Some(cause) = self.cause(now, input) {
            self.ending = Some((cause, now));
            // There is nothing left that it could bring to an end.
            self.killed = cause == Cause::Dismissed(Dismissal::Lingered);
            return match self.killed {
                true => Decision::Kill,
                false => Decision::Terminate,
            };
        }
        if let Some((because, since)) = self.dismissed {
            return Decision::Wait(farewell(because).saturating_sub(now - since));
        }
        let wall = self.limits.wall.saturating_sub(now - self.started);
        let idle = self.limits.idle.saturating_sub(now - self.last_life);
        Decision::Wait(wall.min(idle))
    }

    fn cause(&self, now: Instant, input: Input) -> Option<Cause> {
        if input == Input::Cancelled {
            return Some(Cause::Cancel);
        }
        if input == Input::MemoryExceeded {
            return Some(Cause::Memory);
        }
        // No other limit is met in so short a time.
        if let Some((because, since)) = self.dismissed {
            return (now - since >= farewell(because)).then_some(Cause::Dismissed(because));
        }
        if now - self.started >= self.limits.wall {
            return Some(Cause::Time(TimeLimit::Wall));
        }
        self.is_silent(now).then_some(Cause::Time(TimeLimit::Idle))
    }

    /// What the end means. A process we had to end was ended by us, whatever code it left.
    pub fn verdict(&self, status: Option<(Option<i32>, Option<i32>)>) -> ProcessEnd {
        let dismissed = self.dismissed.map(|(because, _)| because);
        // Who left by itself did not stay: then how it left counts.
        let dismissed = dismissed.filter(|because| *because != Dismissal::Lingered);
        match (self.ending, status) {
            (Some((Cause::Dismissed(because), _)), _) => ProcessEnd::Dismissed { because },
            (Some((Cause::Time(limit), _)), _) => ProcessEnd::TimedOut { limit },
            (Some((Cause::Memory, _)), _) => ProcessEnd::MemoryLimit {
                measured_by: MemoryMeter::Sampled,
            },
            (Some((Cause::Cancel, _)), _) => ProcessEnd::Cancelled,
            // It went when it was told to: with which code does not matter.
            (None, Some(_)) if let Some(because) = dismissed => ProcessEnd::Dismissed { because },
            (None, Some((Some(code), _))) => {
                u8::try_from(code).map_or(ProcessEnd::Lost, |code| ProcessEnd::Exited { code })
            }
            (None, Some((None, Some(signal)))) => ProcessEnd::Signalled { signal },
            (None, Some((None, None)) | None) => ProcessEnd::Lost,
        }
    }
}

/// How long it has to end itself. One that stays when its work is done was heard out already.
fn farewell(because: Dismissal) -> Duration {
    match because {
        Dismissal::Answered | Dismissal::Unread => FAREWELL,
        Dismissal::Lingered => STAYING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn watch() -> (Watch, Instant) {
        let t0 = Instant::now();
        (
            Watch::new(
                Limits {
                    wall: 10 * S,
                    idle: 3 * S,
                    memory_kib: u64::MAX,
                },
                t0,
            ),
            t0,
        )
    }

    #[test]
    fn idle_then_grace_then_kill_then_drain() {
        let (mut w, t0) = watch();
        assert_eq!(w.decide(t0 + S, Input::Tick), Decision::Wait(2 * S));
        w.saw_life(t0 + 2 * S);
        assert_eq!(w.decide(t0 + 4 * S, Input::Tick), Decision::Wait(S));
        assert_eq!(w.decide(t0 + 5 * S, Input::Tick), Decision::Terminate);
        assert!(matches!(
            w.decide(t0 + 5 * S, Input::Tick),
            Decision::Wait(_)
        ));
        assert_eq!(w.decide(t0 + 6 * S, Input::Tick), Decision::Kill);
        assert!(
            matches!(w.decide(t0 + 6 * S, Input::Tick), Decision::Wait(_)),
            "killed once"
        );
        assert!(matches!(
            w.decide(t0 + 6 * S, Input::Exited),
            Decision::Wait(_)
        ));
        assert_eq!(w.decide(t0 + 7 * S, Input::Tick), Decision::Finish);
        assert_eq!(
            w.verdict(Some((Some(0), None))),
            ProcessEnd::TimedOut {
                limit: TimeLimit::Idle
            }
        );
    }

    #[test]
    fn the_wall_holds_however_chatty_it_is() {
        let (mut w, t0) = watch();
        for n in 1..10 {
            w.saw_life(t0 + n * S);
            assert!(matches!(
                w.decide(t0 + n * S, Input::Tick),
                Decision::Wait(_)
            ));
        }
        w.saw_life(t0 + 10 * S);
        assert_eq!(w.decide(t0 + 10 * S, Input::Tick), Decision::Terminate);
        assert_eq!(
            w.verdict(None),
            ProcessEnd::TimedOut {
                limit: TimeLimit::Wall
            }
        );
    }

    #[test]
    fn exit_waits_for_the_pipes_but_not_for_ever() {
        let (mut w, t0) = watch();
        assert!(matches!(w.decide(t0, Input::Exited), Decision::Wait(_)));
        assert_eq!(w.decide(t0, Input::OutputClosed), Decision::Finish);
        assert_eq!(
            w.verdict(Some((Some(7), None))),
            ProcessEnd::Exited { code: 7 }
        );
    }

    #[test]
    fn cancelling_wins_over_a_clean_exit_code() {
        let (mut w, t0) = watch();
        assert_eq!(w.decide(t0, Input::Cancelled), Decision::Terminate);
        assert_eq!(w.verdict(Some((Some(0), None))), ProcessEnd::Cancelled);
    }

    #[test]
    fn who_may_go_has_a_moment_to_do_so_and_is_ended_then() {
        let because = Dismissal::Answered;
        let dismissed = ProcessEnd::Dismissed { because };
        let (mut w, t0) = watch();
        w.dismiss(t0 + S, Some(because));
        assert_eq!(w.decide(t0 + S, Input::Tick), Decision::Wait(FAREWELL));
        assert_eq!(
            w.decide(t0 + S + FAREWELL, Input::Tick),
            Decision::Terminate
        );
        assert_eq!(w.decide(t0 + 3 * S, Input::Tick), Decision::Kill);
        assert_eq!(w.verdict(Some((None, Some(9)))), dismissed);
        // By itself, with whatever code.
        let (mut w, t0) = watch();
        w.dismiss(t0, Some(because));
        w.dismiss(t0, Some(Dismissal::Unread));
        w.decide(t0, Input::Exited);
        assert_eq!(w.verdict(Some((Some(1), None))), dismissed);
        // Who had ended, or was being ended, was not dismissed.
        let (mut w, t0) = watch();
        w.decide(t0, Input::Exited);
        w.dismiss(t0, Some(because));
        assert_eq!(
            w.verdict(Some((Some(1), None))),
            ProcessEnd::Exited { code: 1 }
        );
        let (mut w, t0) = watch();
        w.decide(t0 + 3 * S, Input::Tick);
        w.dismiss(t0 + 3 * S, Some(because));
        let idle = ProcessEnd::TimedOut {
            limit: TimeLimit::Idle,
        };
        assert_eq!(w.verdict(None), idle);
        // Whoever asks us to end, and memory, come first.
        for (input, want) in [
            (Input::Cancelled, ProcessEnd::Cancelled),
            (
                Input::MemoryExceeded,
                ProcessEnd::MemoryLimit {
                    measured_by: MemoryMeter::Sampled,
                },
            ),
        ] {
            let (mut w, t0) = watch();
            w.dismiss(t0, Some(because));
            assert_eq!(w.decide(t0, input), Decision::Terminate);
            assert_eq!(w.verdict(Some((Some(0), None))), want);
        }
    }

    #[test]
    fn who_stays_when_its_work_is_done_is_ended_at_once_and_who_leaves_is_seen_to_leave() {
        let because = Dismissal::Lingered;
        let (mut w, t0) = watch();
        w.dismiss(t0, Some(because));
        assert_eq!(w.decide(t0, Input::Tick), Decision::Wait(STAYING));
        assert_eq!(w.decide(t0 + STAYING, Input::Tick), Decision::Kill);
        assert!(matches!(w.decide(t0 + S, Input::Tick), Decision::Wait(_)));
        let killed = Some((None, Some(9)));
        assert_eq!(w.verdict(killed), ProcessEnd::Dismissed { because });
        for (left, want) in [
            ((Some(0), None), ProcessEnd::Exited { code: 0 }),
            ((Some(1), None), ProcessEnd::Exited { code: 1 }),
            ((None, Some(11)), ProcessEnd::Signalled { signal: 11 }),
        ] {
            let (mut w, t0) = watch();
            w.dismiss(t0, Some(because));
            w.decide(t0 + STAYING / 2, Input::Exited);
            assert_eq!(w.verdict(Some(left)), want);
        }
        // In silence too, when the idle limit is reached: that is not a timeout then.
        let (mut w, t0) = watch();
        assert!(!w.is_silent(t0 + 2 * S) && w.is_silent(t0 + 3 * S));
        w.dismiss(t0 + 3 * S, Some(because));
        assert_eq!(w.decide(t0 + 3 * S, Input::Tick), Decision::Wait(STAYING));
    }

    #[test]
    fn too_much_memory_ends_it() {
        let (mut w, t0) = watch();
        assert_eq!(w.decide(t0, Input::MemoryExceeded), Decision::Terminate);
        assert_eq!(
            w.verdict(Some((None, Some(9)))),
            ProcessEnd::MemoryLimit {
                measured_by: MemoryMeter::Sampled
            }
        );
    }

    #[test]
    fn what_was_not_observed_is_lost() {
        let (w, _) = watch();
        assert_eq!(w.verdict(None), ProcessEnd::Lost);
        assert_eq!(w.verdict(Some((None, None))), ProcessEnd::Lost);
        assert_eq!(
            w.verdict(Some((None, Some(9)))),
            ProcessEnd::Signalled { signal: 9 }
        );
    }
}
