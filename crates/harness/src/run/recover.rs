//! Closing runs whose writer is gone: as `blocked: interrupted`, with whatever evidence exists.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::report::{EngineFacts, InterpreterFacts, RunIdentity};
use cto_core::bundle::settlement::{OUTCOME, OUTCOME_SIGNATURE, OutcomeRecord};
use cto_core::containment::{Containment, ContainmentReport};
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::run::chain::{self, EventLine};
use cto_core::run::event::{self, Event, Origin, RunStarted};
use cto_core::run::rules::{Rules, RulesNumber};
use cto_core::run::trace::TraceOutcome;
use cto_core::task::again::REVERIFY;
use cto_core::task::case_file::ContractIssue;
use cto_core::task::contract::{ContractDocument, InvalidContract, SealedContract, Stage};
use cto_core::task::source::CopiedRepo;
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::digest::Digest;
use cto_core::values::ids::{BadName, RunId};
use cto_core::values::maybe_known::MaybeKnown;

use crate::bundles::reader;
use crate::evidence::host_names::HostNames;
use crate::evidence::keys::KeyStore;
use crate::evidence::secrets::Secrets;
use crate::evidence::{
    EvidenceError, GoesOn, OpenBundle, OpenEntry, Opening, RunLock, has_lost_its_report,
};
use crate::host::files;
use crate::host::{self, Env, Home, repositories};
use crate::workspace::own_dir;

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    #[error("the run directory could not be read")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Name(#[from] BadName),
    #[error("a newer cto began this run, by rules {}; recover it with that one", .0.0)]
    NewerRules(RulesNumber),
    #[error("it was sealed, and its report.json is gone; put it back, or remove the run")]
    ReportGone,
    #[error("it settles {0}, whose bundle cannot be read")]
    RunGone(RunId),
}

/// One run that was closed, or could not be.
pub struct Recovered {
    pub run_id: RunId,
    pub result: Result<(), RecoverError>,
}

/// Runs listed as open: what `cto run` looks at before it starts.
pub fn recover_listed(home: &Home, env: &Env) -> Vec<Recovered> {
    own_dir::sweep(home);
    recover_runs(home, env, named_in(&home.open_runs()))
}

/// Every run directory of ours: what `cto recover` looks at.
pub fn recover_all(home: &Home, env: &Env) -> Vec<Recovered> {
    own_dir::sweep(home);
    let mut runs = named_in(&home.runs);
    runs.extend(named_in(&home.open_runs()));
    recover_runs(home, env, runs)
}

fn named_in(list: &Path) -> BTreeSet<RunId> {
    fs::read_dir(list)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn recover_runs(home: &Home, env: &Env, runs: BTreeSet<RunId>) -> Vec<Recovered> {
    runs.into_iter()
        .filter_map(|run_id| {
            let result = recover_one(home, env, &run_id).transpose()?;
            Some(Recovered { run_id, result })
        })
        .collect()
}

/// `None` when there was nothing to do.
fn recover_one(home: &Home, env: &Env, run_id: &RunId) -> Result<Option<()>, RecoverError> {
    let dir = home.runs.join(run_id.as_str());
    let open_entry = OpenEntry::of(home, run_id);
    // A link leads to what lies elsewhere and was not begun here.
    let is_own_directory = fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir());
    if !is_own_directory || dir.join(bundle::REPORT).exists() {
        // Sealed, but killed before the entry could be cleared, or removed since.
        open_entry.clear(&dir);
        return Ok(None);
    }
    if has_lost_its_report(&dir) {
        return Err(RecoverError::ReportGone);
    }
    if !open_entry.is_begun_here(&dir) {
        return Ok(None);
    }
    let Some(lock) = RunLock::take(&dir)? else {
        return Ok(None);
    };
    if dir.join(bundle::REPORT).exists() {
        // Sealed since we looked: its lock went with that, and this one is ours.
        remove_if_there(&dir.join(bundle::LOCK))?;
        return Ok(None);
    }
    if let Some(newer) = newer_rules(&dir) {
        return Err(RecoverError::NewerRules(newer));
    }
    close((home, env), run_id, dir, open_entry, lock)?;
    Ok(Some(()))
}

/// Rules the run was begun by, where this program does not know them: it could only judge it
/// wrongly.
fn newer_rules(dir: &Path) -> Option<RulesNumber> {
    let bytes = fs::read(dir.join(bundle::EVENTS)).ok()?;
    let named = chain::named_rules(&bytes)?;
    Rules::of(named).is_none().then_some(named)
}

fn close(
    (home, env): (&Home, &Env),
    run_id: &RunId,
    dir: PathBuf,
    open_entry: OpenEntry,
    lock: RunLock,
) -> Result<(), RecoverError> {
    let unsealed = [
        bundle::RESERVE,
        bundle::REPORT_TEMP,
        bundle::SUMS,
        bundle::REPORT_MD,
    ];
    // A signature over a seal that was never finished says nothing.
    for leftover in unsealed.into_iter().chain(bundle::SIGNED) {
        remove_if_there(&dir.join(leftover))?;
    }
    // Killed between making a document and filling it: what is torn says nothing and is written
    // anew at the seal.
    for document in [bundle::GATES, bundle::ELIGIBILITY, bundle::SOURCE] {
        let path = dir.join(document);
        let whole = files::read_limited(&path, 64 << 20)
            .is_ok_and(|bytes| cto_core::values::json::parse_strict(&bytes).is_ok());
        if !whole {
            remove_if_there(&path)?;
        }
    }
    host::make_private_dir(&dir.join(bundle::SCRATCH_DIR))?;
    let (contract, sealed_contract) = contract(&dir)?;
    let goes_on = goes_on(home, &dir)?;
    let start = match &goes_on {
        Some(on) => on.head,
        None => chain::chain_start(run_id, &sealed_contract.contract_digest),
    };
    let (lines, lost) = chain(&dir, run_id, start)?;
    if !containment_fits(&dir, &lines) {
        remove_if_there(&dir.join(bundle::CONTAINMENT))?;
    }
    let identity = identity(run_id, &contract, &lines, &dir)?;
    // What a variable holds; a credential that a file or a program gave was told to the process that is gone.
    let mut secrets = Secrets::from_env(env);
    secrets.names = host_names(&contract, home, env);
    let opening = Opening {
        identity,
        contract,
        sealed_contract,
        // They lie there already.
        beside: Vec::new(),
        secrets,
        keys: KeyStore::of(home),
        goes_on,
    };
    let mut bundle = OpenBundle::resume(dir, open_entry, opening, lock, &lines)?;
    repair_trace(bundle.dir())?;
    tell_of_the_copy(&mut bundle)?;
    bundle.trace("run.recover", TraceOutcome::Ok, Instant::now(), lost)?;
    files::remove_tree(&home.work().join(run_id.as_str()))?;
    let detail = match lines.last() {
        Some(line) => format!("the last event was {}", line.event.kind().as_str()),
        None => "no event had been written".to_owned(),
    };
    bundle.close(vec![Finding {
        code: Code::Interrupted,
        detail: Some(detail),
    }])?;
    Ok(())
}

/// The bundle that a settlement goes on from, by the signed word it carries; none of a run. That bundle is sealed,
/// so it is there, or nothing can be told of where the chain began.
fn goes_on(home: &Home, dir: &Path) -> Result<Option<GoesOn>, RecoverError> {
    let found = match files::read_limited(&dir.join(OUTCOME), 64 << 10) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let record: OutcomeRecord = match cto_core::values::json::read(&found) {
        Ok(record) => record,
        // Killed while it was written: nothing tells of it yet, and half a word says nothing.
        Err(_) if nothing_was_told(dir) => {
            remove_if_there(&dir.join(OUTCOME))?;
            remove_if_there(&dir.join(OUTCOME_SIGNATURE))?;
            return Ok(None);
        }
        Err(_) => return Err(io::Error::other("the outcome it settles cannot be read").into()),
    };
    let run = home.runs.join(record.run_id.as_str());
    let sealed =
        reader::sealed_report(&run).map_err(|_| RecoverError::RunGone(record.run_id.clone()))?;
    Ok(Some(GoesOn {
        from: record.continues(),
        head: sealed.report.events.head,
    }))
}

fn nothing_was_told(dir: &Path) -> bool {
    fs::metadata(dir.join(bundle::EVENTS)).map_or(true, |events| events.len() == 0)
}

/// Paths the run's bundle has other names for, as far as they are known now.
fn host_names(contract: &ContractDocument, home: &Home, env: &Env) -> HostNames {
    let repository = contract
        .valid()
        .and_then(|contract| contract.lane.repository.as_ref())
        .and_then(|named| repositories::find(home, &named.path_sha256));
    HostNames::of_host(repository.as_deref().into_iter(), env)
}

/// The copy was used, so it was proven before: `source.json` says so only once a run has
/// ended.
fn tell_of_the_copy(bundle: &mut OpenBundle) -> Result<(), EvidenceError> {
    let found = files::read_limited(&bundle.dir().join(bundle::SOURCE), 64 << 20).ok();
    let Some(mut copied) =
        found.and_then(|bytes| cto_core::values::json::read::<CopiedRepo>(&bytes).ok())
    else {
        return Ok(());
    };
    if bundle.folded().facts.copy_was_used() {
        copied.copied_fixture_start_clean = Some(true);
        bundle.write_json(bundle::SOURCE, &copied)?;
    }
    Ok(())
}

/// Written while sealing, so it may tell of more than the part of the chain that reached the disk.
fn containment_fits(dir: &Path, lines: &[EventLine]) -> bool {
    let found = files::read_limited(&dir.join(bundle::CONTAINMENT), 64 << 20).ok();
    let Some(shown) =
        found.and_then(|bytes| cto_core::values::json::read::<ContainmentReport>(&bytes).ok())
    else {
        return false;
    };
    let Ok(folded) = cto_core::run::facts::fold_events(lines.iter().map(|line| &line.event)) else {
        return false;
    };
    let planned = folded.facts.containment.unwrap_or(Containment::None);
    let started = folded.facts.copy_was_used();
    shown
        == ContainmentReport::summarise(
            planned,
            folded.facts.guard.as_ref(),
            shown.processes.clone(),
            started,
        )
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The contract the run was opened with; one that never reached the disk is replaced by a note.
fn contract(dir: &Path) -> Result<(ContractDocument, SealedContract), RecoverError> {
    let path = dir.join(bundle::CONTRACT);
    let known = files::read_limited(&path, 64 << 20)
        .ok()
        .and_then(|bytes| ContractDocument::read(&bytes).ok());
    if let Some(pair) = known {
        return Ok(pair);
    }
    let message = "the run was interrupted before its contract was written".to_owned();
    let document = ContractDocument::Invalid(InvalidContract {
        invalid: true,
        errors: vec![ContractIssue {
            file: bundle::CONTRACT.to_owned(),
            line: 1,
            column: 1,
            message,
        }],
    });
    let sealed = document.seal().map_err(EvidenceError::from)?;
    fs::write(&path, &sealed.bytes)?;
    Ok((document, sealed))
}

/// The readable part of the chain. A torn last line is cut off; a broken chain is set aside whole.
fn chain(
    dir: &Path,
    run_id: &RunId,
    start: Digest,
) -> Result<(Vec<EventLine>, Option<String>), RecoverError> {
    let path = dir.join(bundle::EVENTS);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let readable = chain::read_prefix(&bytes, start, run_id)
        .ok()
        .filter(|(lines, _)| {
            cto_core::run::facts::fold_events(lines.iter().map(|l| &l.event)).is_ok()
        });
    match readable {
        Some((lines, end)) if end == bytes.len() => Ok((lines, None)),
        Some((lines, end)) => {
            fs::OpenOptions::new()
                .write(true)
                .open(&path)?
                .set_len(end as u64)?;
            Ok((
                lines,
                Some(format!(
                    "{} bytes of a torn event were cut off",
                    bytes.len() - end
                )),
            ))
        }
        None => {
            fs::rename(&path, dir.join("backend/unreadable-events.bin"))?;
            Ok((
                Vec::new(),
                Some("the event chain was unreadable and was set aside in backend/".into()),
            ))
        }
    }
}

/// Cuts a torn last line of the trace, so that every line is JSON.
fn repair_trace(dir: &Path) -> io::Result<()> {
    let path = dir.join(bundle::TRACE);
    let bytes = fs::read(&path)?;
    let end = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    if end < bytes.len() {
        fs::OpenOptions::new()
            .write(true)
            .open(&path)?
            .set_len(end as u64)?;
    }
    Ok(())
}

/// Who the run was, from its first event or, failing that, from its contract and name.
fn identity(
    run_id: &RunId,
    contract: &ContractDocument,
    lines: &[EventLine],
    dir: &Path,
) -> Result<RunIdentity, RecoverError> {
    let lane = contract.valid().map(|contract| &contract.lane);
    let case_from_name = || {
        let inner = run_id
            .as_str()
            .get(17..)
            .and_then(|rest| rest.rsplit_once('-'))
            .map_or("unnamed-case", |(case, _)| case);
        inner.parse()
    };
    let started = match lines.first().map(|line| &line.event) {
        Some(Event::RunStarted(started)) => started.clone(),
        _ => RunStarted {
            kind: event::Kind::Run,
            origin: Origin::Operator,
            case_id: contract
                .valid()
                .map_or_else(case_from_name, |contract| Ok(contract.case_id.clone()))?,
            engine: lane.map_or_else(|| "fake".parse(), |lane| Ok(lane.engine.clone()))?,
            stage: lane.map_or(Stage::Two, |lane| lane.stage),
            harness_version: env!("CARGO_PKG_VERSION").to_owned(),
            rules: Rules::NEWEST.number(),
            reverifies: None,
            checks_differ: None,
            flat: None,
        },
    };
    // The oldest thing in the directory is as early as the run can have begun.
    let begun = lines.first().map_or_else(host::now, |line| line.ts);
    let oldest = fs::read_dir(dir)?
        .flatten()
        .filter_map(|entry| entry.metadata().ok()?.modified().ok())
        .map(host::file_time)
        .fold(begun, std::cmp::min);
    Ok(RunIdentity {
        run_id: run_id.clone(),
        case_id: started.case_id,
        // What was on record then is not known now.
        source_admitted: [DEFAULT_ENGINE, REVERIFY].contains(&started.engine.as_str()),
        engine: EngineFacts {
            name: started.engine,
            version: None,
            executable_sha256: lane.map_or(MaybeKnown::NotLookedAt, |lane| lane.executable_sha256),
            packages_sha256: lane.and_then(|lane| lane.packages_sha256),
            interpreter: lane.and_then(|lane| lane.interpreter_sha256).map(|sha256| {
                InterpreterFacts {
                    name: None,
                    version: None,
                    sha256,
                }
            }),
            warnings: Vec::new(),
        },
        stage: started.stage,
        origin: started.origin,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: oldest,
    })
}
