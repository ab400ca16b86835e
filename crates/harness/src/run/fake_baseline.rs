//! The run of `fake` that a gated engine's stage-2 run is compared with: one that this program made before
//! for the very same contract, verified again, or a new one.

use std::path::Path;
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::report::timings::Step;
use cto_core::bundle::report::{Reliance, RelianceKind, Report};
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::proof::baseline::{self, Offered, Wanted};
use cto_core::proof::stage2::BaselineRun;
use cto_core::run::chain;
use cto_core::run::event::Event;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::contract::{Contract, ContractDocument, Stage};
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::verdict::Status;
use cto_core::verify::{FoundBundle, Verification};

use crate::bundles::{reader, verifier};
use crate::evidence::clock::Before;
use crate::evidence::keys::KeyStore;
use crate::host::failure::Failure;
use crate::host::{self, Env, Home, OwnProgram};
use crate::plan;
use crate::run;
use crate::screen::progress::Quiet;
use crate::supervise::cancel::Cancel;
use crate::task::engines;
use crate::task::request::Request;

/// A sealed run of `fake` that passed, as it was verified: nothing of it is read from the disk again.
pub struct FakeBaseline {
    pub report: Report,
    pub contract: Box<Contract>,
    pub events: Vec<Event>,
    sums_sha256: Digest,
}

/// The baseline, or why there is none; and how long it took to have it.
pub struct Had {
    pub baseline: Result<FakeBaseline, String>,
    pub took: Before,
}

impl FakeBaseline {
    pub fn named(&self) -> BaselineRun {
        BaselineRun {
            run_id: self.report.run_id.clone(),
            sums_sha256: self.sums_sha256,
        }
    }

    pub fn reliance(&self) -> Reliance {
        Reliance {
            kind: RelianceKind::Proof,
            id: self.report.run_id.to_string(),
            sha256: self.sums_sha256,
        }
    }

    /// From the bytes that were verified, whatever lies under their names by now.
    fn of(found: &FoundBundle) -> Option<Self> {
        let document = |name: &str| found.documents.get(name);
        let report: Report = json::read(document(bundle::REPORT)?).ok()?;
        let (ContractDocument::Valid(contract), _) =
            ContractDocument::read(document(bundle::CONTRACT)?).ok()?
        else {
            return None;
        };
        let start = chain::chain_start(&report.run_id, &report.contract_digest);
        let lines = chain::read_chain(document(bundle::EVENTS)?, start, &report.run_id).ok()?;
        Some(Self {
            sums_sha256: found.files.get(bundle::SUMS)?.sha256,
            events: lines.into_iter().map(|line| line.event).collect(),
            contract,
            report,
        })
    }
}

/// Finds one, or runs `fake` on the same case.
pub fn have(
    request: &Request,
    own: &OwnProgram,
    env: &Env,
    home: &Home,
    cancel: &Cancel,
) -> Result<Had, Failure> {
    let since = Instant::now();
    let asked = asked(request)?;
    let took = |outcome, detail: String| Before {
        action: "baseline.fake",
        step: Step::Fake,
        outcome,
        took: since.elapsed(),
        detail: Some(detail),
    };
    let wanted = wanted(&asked, own, env, home).filter(|_| !request.fresh_baseline);
    if let Some(found) = wanted.and_then(|wanted| known(&wanted, home)) {
        let told = format!("relies on {}", found.report.run_id);
        return Ok(Had {
            took: took(TraceOutcome::Ok, told),
            baseline: Ok(found),
        });
    }
    let sealed = run::run(home, env, &asked, cancel, &mut Quiet)?;
    let run_id = &sealed.report.run_id;
    let baseline = match sealed.report.status {
        Status::Pass => examined(&sealed.dir, home)
            .and_then(|(found, _)| FakeBaseline::of(&found))
            // What was sealed a moment ago, and nothing else under its name.
            .filter(|baseline| baseline.sums_sha256 == sealed.sums_sha256)
            .ok_or_else(|| format!("the baseline {run_id} is not as it was sealed")),
        Status::Fail | Status::Blocked => Err(format!(
            "fake did not pass on this case, so there is no baseline: {run_id}"
        )),
    };
    let took = match &baseline {
        Ok(_) => took(TraceOutcome::Ok, format!("ran {run_id}")),
        Err(why) => took(TraceOutcome::Failed, why.clone()),
    };
    Ok(Had { baseline, took })
}

/// The run of `fake` that belongs to a request: the same task, whatever was said of it.
fn asked(request: &Request) -> Result<Request, Failure> {
    let oracle = request.case.scripts.get("oracle").cloned();
    let own = Request::case(request.case.clone(), engines::find(DEFAULT_ENGINE)?)
        .at_stage(Stage::Two)
        .playing(Some(oracle.unwrap_or_default()), false)
        .limited(request.limits)
        .contained(request.contain)
        .copying(request.source.clone())
        .showing(request.toolchains.clone())
        .asked_by(request.origin);
    Ok(Request {
        variables: request.variables.clone(),
        reasons: request.reasons.clone(),
        trace: request.trace,
        ..own
    })
}

/// What a run of it would be now; none where that cannot be said.
fn wanted(asked: &Request, own: &OwnProgram, env: &Env, home: &Home) -> Option<Wanted> {
    let contract = plan::bound_contract(asked, own, &MaybeKnown::NotLookedAt, env, home);
    contract.valid()?;
    Some(Wanted {
        case: asked.case.id.clone(),
        engine: asked.manifest.id.clone(),
        contract_digest: contract.seal().ok()?.contract_digest,
        origin: asked.origin,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        now: host::now(),
    })
}

/// The newest run that can stand for it. A name and a digest only point at one: it counts once it was
/// verified here and now, by the keys that proofs are verified by.
fn known(wanted: &Wanted, home: &Home) -> Option<FakeBaseline> {
    let runs = reader::all_runs(home).ok()?;
    let of_case = runs
        .iter()
        .rev()
        .filter(|run| run.case() == wanted.case.as_str());
    let has_contract = |dir: &Path| {
        reader::document(dir, bundle::CONTRACT)
            .is_ok_and(|bytes| Digest::of(&bytes) == wanted.contract_digest)
    };
    of_case
        .map(|run| home.runs.join(run.as_str()))
        .filter(|dir| has_contract(dir))
        .find_map(|dir| {
            let (found, verified) = examined(&dir, home)?;
            let baseline = FakeBaseline::of(&found)?;
            let offered = Offered::of(&baseline.report, &verified);
            baseline::unusable(wanted, &offered)
                .is_none()
                .then_some(baseline)
        })
}

fn examined(dir: &Path, home: &Home) -> Option<(FoundBundle, Verification)> {
    let trust = KeyStore::of(home).trust().ok()?;
    verifier::examine(dir, &trust).ok()
}
