//! The chain of events: unbroken, in a legal order, and of the run the report names.

use super::{Documents, Verifier};
use crate::bundle;
use crate::run;
use crate::run::chain;
use crate::run::event::{Event, Kind, RunCompleted};
use crate::run::facts::Folded;
use crate::run::order::State;
use crate::values::blocker::Code;
use crate::values::event_type::EventType;
use crate::values::time::Utc;

impl Verifier<'_> {
    /// The events, and when the last of them was written.
    pub(super) fn chain(&mut self, documents: &Documents) -> Option<(Vec<Event>, Option<Utc>)> {
        let report = &documents.report;
        let start = match &report.continues {
            None => chain::chain_start(&report.run_id, &documents.contract_digest),
            // Without the bundle it goes on from, only the chain's own word is left; `links` says
            // so.
            Some(continues) => match self.links.get(&continues.run_id) {
                Some(linked) => linked.head,
                None => chain::first_prev(self.bytes(bundle::EVENTS))
                    .unwrap_or(documents.contract_digest),
            },
        };
        match chain::read_chain(self.bytes(bundle::EVENTS), start, &report.run_id) {
            Ok(lines) => {
                let head = lines.last().map_or(start, |line| line.hash);
                if report.events.count != lines.len() as u64 || report.events.head != head {
                    self.problem(
                        "chain",
                        bundle::EVENTS,
                        "the report names another end of the chain",
                    );
                }
                let last = lines.last().map(|line| line.ts);
                Some((lines.into_iter().map(|line| line.event).collect(), last))
            }
            Err(error) => {
                self.problem("chain", bundle::EVENTS, error.to_string());
                None
            }
        }
    }

    pub(super) fn order(&mut self, events: &[Event], documents: &Documents) -> Option<Folded> {
        let folded = match run::facts::fold_events(events) {
            Ok(folded) => folded,
            Err(error) => {
                self.problem(
                    "order",
                    bundle::EVENTS,
                    format!("{} ({error})", Code::MissingRequiredEvent.as_str()),
                );
                return None;
            }
        };
        if folded.machine.state != State::Completed {
            let message = format!(
                "{} (the chain ends without {})",
                Code::MissingRequiredEvent.as_str(),
                EventType::RunCompleted.as_str()
            );
            self.problem("order", bundle::EVENTS, message);
            return None;
        }
        let is_settlement = documents.report.kind == Kind::Settlement;
        // Cut short before the word was written down: then nothing was said.
        let said_nothing = is_settlement
            && events.len() == 1
            && folded
                .completed
                .as_ref()
                .is_some_and(RunCompleted::is_abort);
        if folded.facts.settles != is_settlement && !said_nothing {
            self.problem(
                "order",
                bundle::EVENTS,
                "only the chain of a settlement begins with an outcome",
            );
            return None;
        }
        if let Some(created) = &folded.facts.contract {
            let same = created.contract_digest == documents.contract_digest
                && created.task_digest == documents.task_digest;
            if !same || created.valid != documents.contract.valid().is_some() {
                self.problem(
                    "order",
                    bundle::EVENTS,
                    "the chain was made for another contract",
                );
            }
        }
        if let Some(Event::RunStarted(started)) = events.first() {
            let report = &documents.report;
            let same = started.case_id == report.case_id
                && started.engine == report.backend
                && started.stage == report.stage
                && started.origin == report.origin
                && started.kind == report.kind
                && started.reverifies == report.reverifies;
            if !same {
                self.problem(
                    "order",
                    bundle::EVENTS,
                    "run.started and the report name different runs",
                );
            }
        }
        Some(folded)
    }
}
