//! What the gateway of a run has seen and spent, shared by its connections.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cto_core::wire::Protocol;
use cto_core::wire::calls::{Budget, CallRecord, GatewayReport, RefusalReason, Spent, WireCounts};

/// Requests beyond this number are refused without a record: an engine must not fill the memory
/// with refusals.
const MAX_RECORDS: usize = 10_000;

pub struct Ledger {
    opened: Instant,
    protocol: Protocol,
    budget: Budget,
    state: Mutex<State>,
    call_ended: Condvar,
}

#[derive(Default)]
struct State {
    begun: u64,
    open: u64,
    ended: Vec<CallRecord>,
    calls: u64,
    tokens: u64,
    micros: u64,
    /// Of calls that have not ended: what is in `tokens` and `micros` already.
    counted: BTreeMap<u64, (u64, u64)>,
    bytes: u64,
    exceeded: Option<RefusalReason>,
    unrecorded: u64,
}

impl Ledger {
    pub fn new(protocol: Protocol, budget: Budget) -> Self {
        Self {
            opened: Instant::now(),
            protocol,
            budget,
            state: Mutex::default(),
            call_ended: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A new record, or nothing when there are too many.
    pub fn begin(&self) -> Option<CallRecord> {
        let started = self.elapsed_ms();
        let mut state = self.state();
        if state.ended.len() + usize::try_from(state.open).unwrap_or(usize::MAX) >= MAX_RECORDS {
            state.unrecorded += 1;
            return None;
        }
        state.begun += 1;
        state.open += 1;
        Some(CallRecord::begun(state.begun, started, self.protocol))
    }

    /// Counts a connection that was refused because too many are open.
    pub fn connection_refused(&self) {
        self.state().unrecorded += 1;
    }

    /// Takes one call out of the budget before it is made, so that calls at the same time cannot
    /// share the last one.
    pub fn reserve(&self) -> Result<(), RefusalReason> {
        let mut state = self.state();
        let spent = self.spent_by(&state);
        let answer = self.budget.admits(&spent);
        match answer {
            Ok(()) => state.calls += 1,
            Err(why) => state.exceeded = state.exceeded.or(Some(why)),
        }
        answer
    }

    fn spent_by(&self, state: &State) -> Spent {
        Spent {
            calls: state.calls,
            tokens: state.tokens,
            bytes: state.bytes,
            elapsed_ms: self.elapsed_ms(),
            micros: self.budget.spend.map(|_| state.micros),
        }
    }

    /// Counts bytes as they move; past the budget the call must end.
    pub fn moved(&self, bytes: u64) -> Result<(), RefusalReason> {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_add(bytes);
        if state.bytes <= self.budget.bytes {
            return Ok(());
        }
        state.exceeded = state.exceeded.or(Some(RefusalReason::Bytes));
        Err(RefusalReason::Bytes)
    }

    /// What is left of the time for model calls.
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(self.budget.wall_ms.saturating_sub(self.elapsed_ms()))
    }

    pub fn out_of_time(&self) {
        let mut state = self.state();
        state.exceeded = state.exceeded.or(Some(RefusalReason::Time));
    }

    /// Counts what a call costs before the engine has the end of its answer: its next call must not
    /// be quicker than the count.
    pub fn count_tokens(&self, record: &CallRecord) {
        let price = self.budget.spend.map(|limit| limit.price);
        let micros = price.map_or(0, |price| record.micros_spent(&price));
        let cost = (record.tokens_spent(), micros);
        let mut state = self.state();
        let before = state.counted.insert(record.seq, cost).unwrap_or_default();
        state.tokens = state.tokens.saturating_add(cost.0.saturating_sub(before.0));
        state.micros = state.micros.saturating_add(cost.1.saturating_sub(before.1));
    }

    pub fn end(&self, record: CallRecord) {
        self.count_tokens(&record);
        let mut state = self.state();
        state.counted.remove(&record.seq);
        state.open = state.open.saturating_sub(1);
        state.ended.push(record);
        self.call_ended.notify_all();
    }

    pub fn calls(&self) -> Vec<CallRecord> {
        let mut calls = self.state().ended.clone();
        calls.sort_by_key(|call| call.seq);
        calls
    }

    /// Those that ended after so many had.
    pub fn ended_after(&self, told: usize) -> Vec<CallRecord> {
        self.state().ended.iter().skip(told).cloned().collect()
    }

    pub fn so_far(&self) -> WireCounts {
        let state = self.state();
        WireCounts {
            calls: state.calls,
            tokens: state.tokens,
            waiting: state.open > 0,
        }
    }

    /// Grows with whatever moves: a request, bytes of an answer, the end of a call.
    pub fn pulse(&self) -> u64 {
        let state = self.state();
        state
            .begun
            .saturating_add(state.ended.len() as u64)
            .saturating_add(state.bytes)
    }

    /// Waits a little for calls that are about to end, then reports all of them.
    pub fn close(&self, wait: Duration) -> GatewayReport {
        let state = self.state();
        let (state, _) = self
            .call_ended
            .wait_timeout_while(state, wait, |state| state.open > 0)
            .unwrap_or_else(PoisonError::into_inner);
        let mut calls = state.ended.clone();
        calls.sort_by_key(|call| call.seq);
        GatewayReport {
            calls,
            spent: self.spent_by(&state),
            budget_exceeded: state.exceeded,
            unrecorded: state.unrecorded,
            unfinished: state.open,
        }
    }
}

#[cfg(test)]
mod tests {
    use cto_core::values::maybe_known::MaybeKnown;
    use cto_core::values::money::{Price, SpendLimit};

    use super::*;

    #[test]
    fn the_first_limit_met_is_remembered() {
        let ledger = Ledger::new(
            Protocol::OpenaiChat,
            Budget {
                calls: 1,
                tokens: 100,
                bytes: 10,
                wall_ms: 1_000_000,
                spend: None,
            },
        );
        assert_eq!(ledger.reserve(), Ok(()));
        assert_eq!(ledger.moved(10), Ok(()));
        assert_eq!(ledger.reserve(), Err(RefusalReason::Calls));
        assert_eq!(ledger.moved(1), Err(RefusalReason::Bytes));
        assert_eq!(
            ledger.close(Duration::ZERO).budget_exceeded,
            Some(RefusalReason::Calls)
        );
    }

    fn call(ledger: &Ledger, input: u64, cached: u64, output: u64) {
        let mut record = ledger.begin().unwrap();
        record.forwarded = true;
        record.tokens.input = MaybeKnown::Known(input);
        record.tokens.cached = Some(cached);
        record.tokens.output = MaybeKnown::Known(output);
        // Counted before the engine has the end of its answer, and not twice.
        ledger.count_tokens(&record);
        ledger.end(record);
    }

    fn spent(ledger: &Ledger) -> Spent {
        ledger.spent_by(&ledger.state())
    }

    #[test]
    fn tokens_and_money_end_a_run_as_calls_do() {
        let price = Price {
            input_micros: 1_000_000,
            cached_input_micros: 100_000,
            output_micros: 5_000_000,
        };
        let budget = Budget {
            spend: Some(SpendLimit { micros: 24, price }),
            ..Budget::default()
        };
        let ledger = Ledger::new(Protocol::OpenaiChat, budget);
        assert_eq!(ledger.reserve(), Ok(()));
        call(&ledger, 10, 10, 2);
        assert_eq!(
            (spent(&ledger).micros, spent(&ledger).tokens),
            (Some(11), 12)
        );
        assert_eq!(ledger.reserve(), Ok(()));
        call(&ledger, 13, 0, 0);
        assert_eq!(ledger.reserve(), Err(RefusalReason::Spend));
        let few = Budget {
            tokens: 12,
            ..Budget::default()
        };
        let ledger = Ledger::new(Protocol::OpenaiChat, few);
        call(&ledger, 10, 0, 1);
        assert_eq!(ledger.reserve(), Ok(()));
        call(&ledger, 1, 0, 0);
        assert_eq!(ledger.reserve(), Err(RefusalReason::Tokens));
        assert_eq!(
            spent(&ledger).micros,
            None,
            "without a price nothing is said"
        );
    }

    #[test]
    fn what_was_used_is_known_while_it_is_used() {
        let ledger = Ledger::new(Protocol::OpenaiChat, Budget::default());
        assert_eq!(ledger.so_far(), WireCounts::default());
        let mut call = ledger.begin().unwrap();
        ledger.reserve().unwrap();
        let now = ledger.so_far();
        assert_eq!((now.calls, now.tokens, now.waiting), (1, 0, true));
        call.tokens.input = cto_core::values::maybe_known::MaybeKnown::Known(7);
        ledger.end(call);
        let now = ledger.so_far();
        assert_eq!((now.calls, now.tokens, now.waiting), (1, 7, false));
        let before = ledger.pulse();
        assert_eq!(ledger.pulse(), before, "nothing moved");
        ledger.moved(1).unwrap();
        assert!(ledger.pulse() > before);
        assert_eq!(ledger.ended_after(0).len(), 1);
        assert!(ledger.ended_after(1).is_empty());
    }

    #[test]
    fn refusals_cannot_fill_the_memory() {
        let ledger = Ledger::new(Protocol::OpenaiChat, Budget::default());
        for _ in 0..MAX_RECORDS {
            let record = ledger.begin().unwrap();
            ledger.end(record);
        }
        assert!(ledger.begin().is_none());
        let report = ledger.close(Duration::ZERO);
        assert_eq!(
            (report.calls.len(), report.unrecorded, report.unfinished),
            (MAX_RECORDS, 1, 0)
        );
    }
}
