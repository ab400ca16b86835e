//! The spine: a run front to back, once. Plan, open, workspace, setup, engine, measure, checks,
//! judge, seal.
//!
//! - `mod.rs` the nine steps in order; `execution.rs` what each of them needs, and why one stops
//! - `approvals.rs` who answers a contract that asks; `stage_proof.rs` what a stage owes besides, with
//!   `fake_baseline.rs` the run it is compared with
//! - `open.rs` the run's name and its open bundle; `setup.rs` commands that prepare the workspace
//! - `branches.rs` those of a disposable repository; `again.rs` the patch of an earlier run in place of an engine
//! - `engine/` the engine, started and heard; `checks/` the contract's commands in pristine copies
//! - `spent.rs` copies that go while the next commands run
//! - `record.rs` the question, gates and blocks as written; `afterwards.rs` source and workspace
//!   after the run; `recover.rs` closes what was interrupted
//!
//! Imports every room below it but records. Imported by proof and cli.

pub mod approvals;
pub mod checks;
pub mod engine;
pub mod execution;
pub mod recover;
pub mod stage_proof;

mod afterwards;
mod again;
mod branches;
mod fake_baseline;
mod open;
mod record;
mod setup;
mod spent;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cto_core::bundle::report::timings::Step;
use cto_core::gate::plan::Plan;
use cto_core::run::event::ProcessEnd;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::contract::Label;
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::digest::Digest;
use cto_core::values::paths::{PathRule, PathStanding, path_standing};
use cto_core::values::verdict::Status;
use cto_core::workspace::tree::Tree;

use crate::evidence::clock::Clock;
use crate::evidence::{OpenBundle, SealedBundle};
use crate::host::failure::Failure;
use crate::host::places::Places;
use crate::host::toolchains::shelf;
use crate::host::{Env, Home, OwnProgram, programs, workers};
use crate::plan::engine_program::LookAgain;
use crate::plan::{self, Planned};
use crate::records;
use crate::run::approvals::settlement::named::Named;
use crate::run::approvals::{Approvals, Settled};
use crate::run::checks::known::{Baseline, BaselineMemory};
use crate::run::checks::start::Before;
use crate::run::execution::{Execution, Stop};
use crate::run::spent::Spent;
use crate::run::stage_proof::{Owed, Reached};
use crate::screen::progress::{Progress, Stage};
use crate::supervise::cancel::Cancel;
use crate::task::request::Request;
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;

/// A wait for a model that is shorter is not worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(2);

/// One governed run, from request to sealed bundle. Approvals come from the operator's store.
pub fn run(
    home: &Home,
    env: &Env,
    request: &Request,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<SealedBundle, Failure> {
    let approvals = Approvals::store(home, request.request_id.as_ref());
    run_asking(&approvals, home, env, request, cancel, progress)
}

/// The same with another source of approvals. No road leads around the seal.
pub fn run_asking(
    approvals: &Approvals,
    home: &Home,
    env: &Env,
    request: &Request,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<SealedBundle, Failure> {
    // A state home that every jail could read is not even made.
    if let Some(refused) = Places::of(env, home).no_jail() {
        return Err(Failure::usage(refused.code(), refused.to_string())
            .so("nothing ran")
            .hint("set HOME to a directory outside the system, or name another state home with --home DIR"));
    }
    let (clock, planning) = (Arc::new(Clock::start()), Instant::now());
    let own = OwnProgram::find(home)?;
    home.create()?;
    let keys = open::keys(home)?;

    // Plan: every gate is asked.
    let answered = approvals.answer(request.origin).is_some();
    let footing = plan::footing(request, env, home, &own);
    let request = &*plan::settled(request, &footing)?;
    let mut planned = {
        let mut still = waiting(cancel, progress);
        plan::plan(request, footing, answered, (env, home), &own, &mut still)
    };
    open::contract_is_clean(&planned, env)?;
    let owed = Owed::begin(&mut planned, request, &own, env, home, cancel)?;

    // Open: from here on everything is evidence.
    let mut bundle = open::open(request, &planned, keys, env, home, progress)?;
    let run_id = bundle.identity.run_id.clone();
    let work = home.work().join(run_id.as_str());
    bundle.relies_on = owed.relies_on(&planned);
    bundle.clock = Some(Arc::clone(&clock));
    clock.planned(planning, &planned.before);

    // Workspace, setup, engine, measure, checks.
    let stage = progress.stage();
    let asked = Asked {
        request,
        planned: &planned,
        approvals,
        env,
        home,
        cancel,
        own: own.sha256,
        clock: &clock,
        stage: &stage,
    };
    let mut ended = None;
    let outcome = perform(&mut bundle, &asked, &work, progress).and_then(|(reached, done)| {
        owed.write(&mut bundle, &planned, reached)?;
        ended = done.branches;
        Ok(done.findings)
    });
    let mut findings = record::findings(&mut bundle, outcome, &stage);
    let goes = (!request.keep).then_some(work.as_path());
    let seen = afterwards::leave(&mut bundle, request, &planned, goes, (env, home));
    branches::tell(&mut bundle, ended, &work, &mut findings);
    let copied = afterwards::look_back(&mut bundle, request, &planned, &mut findings, seen);
    owed.write_last(&mut bundle, copied.as_ref(), &mut findings);

    // Judge and seal.
    progress.step("seal", "evidence");
    let sealed = bundle
        .close(findings)
        .map_err(|error| open::unsealed(&run_id, &error))?;
    if sealed.report.status == Status::Pass || request.proof.is_some() {
        records::point_at(home, &run_id, request.origin);
    }
    afterwards::settle_workspace(sealed.report.status, request, &planned, home, &work);
    progress.done();
    Ok(sealed)
}

/// Waits for the model of a run until somebody ends it, and says so once it is a wait.
fn waiting(cancel: &Cancel, progress: &mut dyn Progress) -> impl FnMut(Duration) -> bool {
    let mut said = false;
    move |elapsed| {
        if elapsed > WORTH_A_WORD && !said {
            said = true;
            progress.step("model", "waiting (Ctrl-C ends it)");
        }
        !cancel.requested()
    }
}

/// What was asked for, what planning came to, and with what it is done.
struct Asked<'a> {
    request: &'a Request,
    planned: &'a Planned,
    approvals: &'a Approvals,
    env: &'a Env,
    home: &'a Home,
    cancel: &'a Cancel,
    own: Digest,
    clock: &'a Clock,
    stage: &'a Stage,
}

/// What the work came to.
#[derive(Default)]
struct Done {
    findings: Vec<Finding>,
    /// Those of a disposable repository.
    branches: Option<branches::Ended>,
}

impl Done {
    fn only(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            branches: None,
        }
    }
}

/// Records the question and, where no gate and nobody says no, does the work.
fn perform(
    bundle: &mut OpenBundle,
    asked: &Asked<'_>,
    work: &Path,
    progress: &mut dyn Progress,
) -> Result<(Reached, Done), Stop> {
    let (request, planned) = (asked.request, asked.planned);
    record::question(bundle, request, planned)?;
    progress.step("plan", &format!("{} gates", planned.gates.gates.len()));
    let Some(plan) = &planned.plan else {
        let findings = record::blocks(bundle, request)?;
        return Ok((Reached::Gates, Done::only(findings)));
    };
    let (spent, to_remove) = spent::spent();
    let work_through = || {
        // What removes ends when nobody can hand it anything any more.
        let spent = spent;
        let execution = asked.execution(plan, work, &spent)?;
        record::plan(bundle, plan, execution.git_use()?)?;
        let answer = asked.approvals.answer(request.origin);
        match approvals::settle(bundle, &plan.contract, asked.home, answer)? {
            Settled::Denied => Ok(Done::default()),
            Settled::MayRun => execute(bundle, request, &execution, progress),
        }
    };
    let (_, executed) = workers::both(move || to_remove.remove_all(), work_through);
    match executed {
        Err(Stop::LateGate { gate, code, detail }) => {
            record::close_gate(bundle, gate, code, detail)?;
            let findings = record::blocks(bundle, request)?;
            Ok((Reached::LateGate, Done::only(findings)))
        }
        other => other.map(|done| (Reached::End, done)),
    }
}

impl<'a> Asked<'a> {
    fn execution<'e>(
        &self,
        plan: &'e Plan,
        work: &Path,
        spent: &'e Spent,
    ) -> Result<Execution<'e>, Stop>
    where
        'a: 'e,
    {
        let git = programs::git(self.env, self.home)
            .map_err(|none| Stop::Finding(none.to_string(), Code::ProviderUnavailable))?;
        Ok(Execution {
            env: self.env,
            cancel: self.cancel,
            case: &self.request.case,
            plan,
            source: self.planned.source.as_ref().map(|view| &view.repo),
            provider: self.planned.provider.as_ref(),
            checkout: self.planned.checkout.clone(),
            looked: self.planned.looked.as_ref(),
            home: self.home,
            work: work.to_owned(),
            git,
            jobs: self.request.jobs,
            see_all: self.request.see_all,
            untouched: self.request.untouched,
            own: self.own,
            clock: self.clock,
            stage: self.stage,
            spent,
            baseline: match (self.request.label, self.request.fresh_baseline) {
                (Label::Try, false) => BaselineMemory::Use,
                (Label::Try, true) => BaselineMemory::Renew,
                (Label::Case, _) => BaselineMemory::None,
            },
        })
    }
}

/// The work itself, step by step.
fn execute(
    bundle: &mut OpenBundle,
    request: &Request,
    execution: &Execution<'_>,
    progress: &mut dyn Progress,
) -> Result<Done, Stop> {
    progress.step("workspace", "private copy");
    let since = Instant::now();
    let workspace = Workspace::prepare(&execution.made_from())?;
    let made = Some(workspace.made.to_owned());
    bundle.trace("workspace.prepare", TraceOutcome::Ok, since, made)?;
    for (path, why) in workspace.left_out_submodules() {
        bundle.warn(format!("submodule {path} is empty in every copy: {why}"));
    }
    if request.label == Label::Try {
        for rule in unmatched(&execution.plan.contract.allowed_paths, workspace.baseline()) {
            bundle.warn(format!(
                "--allow {rule} names nothing that is there; only what is new there may change"
            ));
        }
    }
    shelf::make(&execution.plan.search, &execution.programs()).map_err(Stop::Workspace)?;
    execution.clock.step(Step::Copy, since);
    let since = Instant::now();
    // Where a patch is judged again nobody works in this copy; those of the checks are set up as ever.
    if request.again.is_none() {
        setup::run(bundle, execution, &workspace)?;
    }
    if request.again.is_none() && !execution.plan.contract.setup.is_empty() {
        execution.clock.step(Step::Setup, since);
    }
    execution.stop_if_cancelled()?;

    let secrets = bundle.secrets.clone();
    let wants_green = execution.plan.contract.reasons.green_start && request.again.is_none();
    let nothing = wants_green.then(|| Measured::nothing(&workspace));
    let (mut packages, mut refs) = ((None, Instant::now()), None);
    let (start, end, given) = match &request.again {
        // Its start was green when its engine began.
        Some(first) => (
            None,
            None,
            Some(again::put_in(bundle, &workspace, first, progress)?),
        ),
        None => {
            let start = match &nothing {
                Some(measured) => {
                    progress.step("start", "the checks before any change");
                    let before = Before {
                        workspace: &workspace,
                        measured,
                        secrets: &secrets,
                    };
                    checks::start::green_start(bundle, execution, before)?
                }
                None => None,
            };
            execution.stop_if_cancelled()?;
            refs = branches::record(bundle, execution, &workspace)?;
            progress.step("engine", request.manifest.id.as_str());
            let since = Instant::now();
            let end = engine::run(bundle, request, execution, &workspace, progress)?;
            execution.clock.step(Step::Engine, since);
            let engine = execution.plan.engine.as_ref();
            let look = engine.map(|engine| LookAgain::begin(engine, execution.home));
            packages = (look, Instant::now());
            (start, Some(end), None)
        }
    };

    progress.step("measure", "what really changed");
    let since = Instant::now();
    let named = Named::of(bundle, request, execution);
    let name = |patch: &Path| named.as_ref().map(|named| named.commit(patch));
    let measured = workspace.measure(bundle, execution.plan, given, &name)?;
    execution.clock.step(Step::Measure, since);
    if end == Some(ProcessEnd::Cancelled) {
        return Err(Stop::Cancelled);
    }

    let baseline = Baseline::look(execution, &workspace, &bundle.secrets);
    let known = baseline
        .words()
        .map_or_else(String::new, |known| format!(", {known}"));
    progress.step("verify", &format!("in a pristine copy{known}"));
    checks::run(bundle, execution, &workspace, &measured, baseline, start)?;
    execution.stop_if_cancelled()?;

    let moved = afterwards::packages_moved(bundle, packages)?;
    let touched = workspace.unchanged_since(&measured)?;
    let branches = branches::look(bundle, &workspace, &measured, refs);
    let findings = measured.findings.into_iter();
    Ok(Done {
        findings: findings.chain(touched).chain(moved).collect(),
        branches,
    })
}

/// Rules that no file of a tree fits.
fn unmatched<'r>(rules: &'r [PathRule], tree: &Tree) -> Vec<&'r str> {
    let fits = |rule: &PathRule| {
        let only = std::slice::from_ref(rule);
        tree.keys()
            .any(|path| path_standing(path, only, &[]) == PathStanding::Allowed)
    };
    let none = rules.iter().filter(|rule| !fits(rule));
    // `*` and `*/` stand for all of it together.
    none.map(PathRule::as_str)
        .filter(|rule| !matches!(*rule, "*" | "*/"))
        .collect()
}
