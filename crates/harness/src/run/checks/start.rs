//! A green start: where the contract asks for one, its commands run on the untouched copy before the engine
//! does, and a red one closes the gate. A baseline that is known was green. What ran here is the baseline of
//! the run and does not run again.

use std::collections::BTreeSet;
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::report_md::describe_end;
use cto_core::checks::runner_output::Heard;
use cto_core::checks::test_log::Section;
use cto_core::run::event::Check;
use cto_core::values::blocker::Code;

use super::baseline::BaselineRan;
use super::expected_sections;
use super::known::Baseline;
use super::log::TestLog;
use super::session::Session;
use super::touched::Rewritten;
use crate::evidence::secrets::Secrets;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::run::execution::{Execution, Stop};
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;

/// How many failing tests are named.
const NAMED: usize = 5;

/// What there is before anybody worked.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    pub workspace: &'a Workspace,
    /// Nothing.
    pub measured: &'a Measured,
    pub secrets: &'a Secrets,
}

/// The baseline of this run, green, with what its commands printed.
pub struct GreenStart<'a> {
    pub(super) session: Session<'a>,
    pub(super) ran: BaselineRan,
}

/// Runs the commands before the engine, where the contract asks for that and nobody knows how they end.
pub fn green_start<'a>(
    bundle: &mut OpenBundle,
    execution: &'a Execution<'a>,
    before: Before<'a>,
) -> Result<Option<GreenStart<'a>>, Stop> {
    let contract = &execution.plan.contract;
    if !contract.reasons.green_start {
        return Ok(None);
    }
    let since = Instant::now();
    let known = Baseline::look(execution, before.workspace, before.secrets);
    if let Some(words) = known.words() {
        let words = format!("green, {words}");
        execution.stage.tell("baseline", &words, since.elapsed());
        return Ok(None);
    }
    let about = (
        bundle.identity.run_id.clone(),
        bundle.sealed_contract.contract_digest,
    );
    let (file, limit) = (
        execution.work.join("start.log"),
        execution.plan.limits.output_bytes,
    );
    let sections = expected_sections(execution);
    let log =
        TestLog::waiting(&file, before.secrets, about, limit, sections).map_err(Stop::Workspace)?;
    let mut session = Session {
        execution,
        workspace: before.workspace,
        measured: before.measured,
        secrets: before.secrets,
        log,
        processes: Vec::new(),
        notes: BTreeSet::new(),
        not_counted: Vec::new(),
        rewritten: Rewritten::default(),
        unsettled: None,
        known: None,
        key: None,
        relied: None,
        as_planned: true,
        part: "start",
        copies: 0,
        times: Vec::new(),
        of_change: Vec::new(),
        start: None,
    };
    let ran = match session.baseline() {
        Ok(ran) => ran,
        Err(stop) => {
            contained(bundle, &mut session);
            return Err(stop);
        }
    };
    let commands = &contract.verification_commands;
    let Some(detail) = red(&ran, commands) else {
        return Ok(Some(GreenStart { session, ran }));
    };
    keep_output(bundle, &session, &ran)?;
    contained(bundle, &mut session);
    for (step, wall) in session.times {
        execution.clock.took(step, wall);
    }
    Err(Stop::LateGate {
        gate: "baseline",
        code: Code::BaselineRed,
        detail,
    })
}

/// What ran was in jails, and the bundle says so.
fn contained(bundle: &mut OpenBundle, session: &mut Session<'_>) {
    let processes = std::mem::take(&mut session.processes).into_iter();
    processes.for_each(|process| bundle.contained(process));
}

/// What is red of it, in words: the contract's commands, which may run with a flag more here.
fn red(ran: &BaselineRan, commands: &[String]) -> Option<String> {
    if let Some(failed) = &ran.failed {
        return Some(failed.clone());
    }
    let mut heard = ran.ran.tests.iter();
    let told = ran.ran.checks.iter().zip(commands).map(|(check, command)| {
        let named = heard.next().map_or_else(String::new, failing);
        (check, command, named)
    });
    let words: Vec<String> = told
        .filter(|(check, ..)| !check.end.succeeded())
        .map(|(check, command, named)| {
            format!(
                "{command}: {}{named}{}",
                describe_end(check.end),
                lacks(check)
            )
        })
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// The failing tests by name, where a runner names them.
fn failing(heard: &Heard) -> String {
    let failed = heard.ids.iter().filter(|(_, tally)| tally.failed > 0);
    let names: Vec<&str> = failed.map(|(id, _)| id.as_str()).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<&str> = names.iter().copied().take(NAMED).collect();
    match names.len() {
        0 => String::new(),
        1 => format!(", 1 test failed ({})", shown.join(", ")),
        count => format!(", {count} tests failed ({}{more})", shown.join(", ")),
    }
}

fn lacks(check: &Check) -> String {
    match check.lacks.is_empty() {
        true => String::new(),
        false => format!(
            ", it looked for {}; --toolchain PATH shows a program",
            check.lacks.join(", ")
        ),
    }
}

/// What red commands printed goes into the bundle: nothing else of the run will hold it.
fn keep_output(
    bundle: &mut OpenBundle,
    session: &Session<'_>,
    ran: &BaselineRan,
) -> Result<(), Stop> {
    let cannot = |error| EvidenceError::cannot_write(bundle::TEST_LOG, &error);
    let section = match ran.failed {
        Some(_) => Section::Setup,
        None => Section::Baseline,
    };
    let printed = session.log.printed(section).map_err(cannot)?;
    // What did not count ran first.
    let from = printed.len().saturating_sub(ran.ran.checks.len());
    let counted = match section {
        Section::Setup => printed.last().into_iter().collect(),
        _ => printed.iter().skip(from).collect::<Vec<_>>(),
    };
    for (index, bytes) in counted.into_iter().enumerate() {
        let green = ran
            .ran
            .checks
            .get(index)
            .is_some_and(|check| check.end.succeeded());
        if !green {
            bundle.write(&bundle::red_start_log(index + 1), bytes)?;
        }
    }
    Ok(())
}
