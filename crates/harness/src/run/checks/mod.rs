//! Verification where the engine never was: pristine copies, the contract's commands, hidden
//! checks, the must-fail control, and the same commands on the baseline. The exit code decides,
//! never the output.
//!
//! - this file: the order of all that; `session.rs` one set of commands in one copy
//! - `copies.rs` where they run; `must_fail.rs` the control, `baseline.rs` the baseline, `loading.rs` the
//!   loading control, `beside.rs` all of them while the checks run
//! - `kept.rs` baselines of earlier runs; `known.rs` by what one is known again; `start.rs` a baseline that
//!   must be green before the engine starts
//! - `log.rs` the frames of `test.log`; `test_names.rs` which tests ran; `last_words.rs` what one lacked
//! - `touched.rs` changed tests, and tracked files that were written to

pub mod known;
pub mod start;

mod test_names;

mod baseline;
mod beside;
mod copies;
mod kept;
mod last_words;
mod loading;
mod log;
mod must_fail;
mod session;
mod touched;

use std::collections::BTreeSet;
use std::time::Instant;

use cto_core::bundle;
use cto_core::gate::plan::Environment;
use cto_core::run::event::{BaselineRelied, Event, ProcessEnd, VerificationCompleted};
use cto_core::run::judge;
use cto_core::run::rules::Rules;
use cto_core::run::trace::TraceOutcome;
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::workspace::environment::is_dependency_list;
use cto_core::workspace::tools::chooses_programs;

use crate::evidence::{EvidenceError, OpenBundle};
use crate::host::{self, Home, make_private_dir};
use crate::run::execution::{Execution, Stop, random};
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;

use kept::Known;
use known::Baseline;
use log::TestLog;
use session::Session;
use start::GreenStart;
use touched::Rewritten;

/// Writes a `test.log` that says why there is none, and the event that goes with it.
pub fn record_not_run(
    bundle: &mut OpenBundle,
    reason: &str,
    blockers: Vec<Code>,
) -> Result<(), Stop> {
    let log = format!("verification was not run: {reason}\n");
    bundle.write(bundle::TEST_LOG, log.as_bytes())?;
    let mut done = VerificationCompleted {
        not_run: Some(reason.to_owned()),
        blockers,
        ..VerificationCompleted::nothing(Digest::of(log.as_bytes()))
    };
    if done.blockers.is_empty() {
        done.blockers = judge::verification_codes(
            Rules::NEWEST,
            bundle.contract.valid(),
            &bundle.folded().facts.reviews,
            &done,
        );
    }
    bundle.emit(Event::VerificationCompleted(Box::new(done)))?;
    Ok(())
}

/// Runs everything the contract asks for and emits `verification.completed`.
pub fn run(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    workspace: &Workspace,
    measured: &Measured,
    baseline: Baseline,
    start: Option<GreenStart<'_>>,
) -> Result<(), Stop> {
    let since = Instant::now();
    if measured.changes.is_empty() && !execution.untouched {
        return record_not_run(bundle, "nothing changed", Vec::new());
    }
    if !measured.in_scope {
        return record_not_run(bundle, "the change is out of scope", Vec::new());
    }
    if !measured.can_be_applied {
        return record_not_run(bundle, "the patch is too large to be applied", Vec::new());
    }
    let secrets = bundle.secrets.clone();
    let file = bundle.create(bundle::TEST_LOG)?;
    // Drawn when the engine has ended, and told when the last check has.
    let nonce = random(32)?;
    let mut log = TestLog::new(
        file,
        &secrets,
        nonce,
        (
            bundle.identity.run_id.clone(),
            bundle.sealed_contract.contract_digest,
        ),
        execution.plan.limits.output_bytes,
        expected_sections(execution),
    );
    log.head(&measured.digest);
    let mut session = Session {
        execution,
        workspace,
        measured,
        secrets: &secrets,
        log,
        processes: Vec::new(),
        notes: notes_before(execution, workspace, measured),
        not_counted: Vec::new(),
        rewritten: Rewritten::default(),
        unsettled: None,
        // One of this run says more than one of before.
        known: baseline.known.filter(|_| start.is_none()),
        key: baseline.key,
        relied: None,
        as_planned: true,
        part: "",
        copies: 0,
        times: Vec::new(),
        of_change: Vec::new(),
        start: start.map(Box::new),
    };
    let (mut done, ids) = session.verify()?;
    let Session {
        log,
        processes,
        notes,
        not_counted,
        relied,
        times,
        ..
    } = session;
    for (step, wall) in times {
        execution.clock.took(step, wall);
    }
    done.not_counted = not_counted;
    done.environment_notes = notes.into_iter().collect();
    let (nonce, error) = log.close();
    done.log_nonce = Some(nonce);
    processes
        .into_iter()
        .for_each(|process| bundle.contained(process));
    if let Some(error) = &error {
        return Err(EvidenceError::cannot_write(bundle::TEST_LOG, error).into());
    }
    if let Some(ids) = ids {
        let bytes = json::pretty(&ids).map_err(EvidenceError::Json)?;
        bundle.write(bundle::TEST_IDS, &bytes)?;
        let may_change = &execution.plan.contract.reasons.tests_may_change;
        done.tests = Some(ids.compared(Digest::of(&bytes), may_change));
        match relied {
            Some(known) => done.relied = Some(relied_on(bundle, &known)?),
            None => done.baseline_checks = ids.baseline,
        }
    } else if let Some(known) = relied {
        done.relied = Some(relied_on(bundle, &known)?);
    }
    conclude(bundle, execution, done, since)
}

/// How many sections a log is made for.
fn expected_sections(execution: &Execution<'_>) -> usize {
    let contract = &execution.plan.contract;
    let (visible, hidden) = (
        contract.verification_commands.len(),
        contract.hidden_verification.commands.len(),
    );
    5 * contract.setup.len() + 4 * visible + hidden
}

/// The baseline of an earlier run goes into the bundle as it is.
fn relied_on(bundle: &mut OpenBundle, known: &Known) -> Result<BaselineRelied, Stop> {
    make_private_dir(&bundle.dir().join(bundle::RELIED_DIR))
        .map_err(|error| EvidenceError::cannot_write(bundle::RELIED_DIR, &error))?;
    bundle.write(bundle::RELIED_BASELINE, &known.document)?;
    bundle.write(bundle::RELIED_LOG, &known.log)?;
    Ok(known.kept.relied(Digest::of(&known.document)))
}

/// Lets go of baselines that nobody will use any more.
pub fn forget_old_baselines(home: &Home) {
    kept::sweep(home, host::now());
}

/// What is to be said about environments before any check ran.
fn notes_before(
    execution: &Execution<'_>,
    workspace: &Workspace,
    measured: &Measured,
) -> BTreeSet<String> {
    let mut notes: BTreeSet<String> = workspace.environments().dropped.iter().cloned().collect();
    let changed = measured.changes.iter().map(|change| &change.path);
    let chosen = changed.clone().filter(|path| chooses_programs(path));
    notes.extend(
        chosen.map(|path| format!("{path} changed, and the programs are those it chose before")),
    );
    let carried = |found: &Environment| found.record.is_carried();
    if execution.plan.environments.iter().any(carried) {
        let lists = changed.filter(|path| is_dependency_list(path));
        notes.extend(
            lists.map(|path| format!("{path} changed, and the environment is the one from before")),
        );
    }
    notes
}

fn conclude(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    mut done: VerificationCompleted,
    since: Instant,
) -> Result<(), Stop> {
    // Output may have been capped: the chain names the file as it is.
    done.log_sha256 = crate::host::files::scan_file(&bundle.dir().join(bundle::TEST_LOG), |_| {})
        .map_err(|error| EvidenceError::cannot_write(bundle::TEST_LOG, &error))?
        .sha256;
    done.blockers = judge::verification_codes(
        Rules::NEWEST,
        Some(&execution.plan.contract),
        &bundle.folded().facts.reviews,
        &done,
    );
    if done
        .checks
        .iter()
        .any(|check| matches!(check.end, ProcessEnd::TimedOut { .. }))
    {
        bundle.write(
            bundle::TIMEOUT_NOTE,
            b"a verification command reached a time limit and was ended\n",
        )?;
    }
    let ends = done.checks.iter().map(|check| {
        format!(
            "{}: {}",
            check.command,
            cto_core::bundle::report_md::describe_end(check.end)
        )
    });
    let ends = done
        .mismatch
        .clone()
        .unwrap_or_else(|| ends.collect::<Vec<_>>().join("; "));
    bundle.emit(Event::VerificationCompleted(Box::new(done)))?;
    bundle.trace("verification.run", TraceOutcome::Ok, since, Some(ends))?;
    Ok(())
}
