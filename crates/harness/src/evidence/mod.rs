//! Writing evidence. A bundle is open, then sealed, and never changes again.
//!
//! - `mod.rs` the open bundle, `opening.rs` what it starts from, `clock.rs` its times; `seal.rs` closing it,
//!   `cleaning.rs` what is recorded in it, `last_look.rs` just before the seal; `lock.rs` who writes it; `scratch.rs` what the engine left, packed
//! - `secrets/` what must not stand in it, `host_names.rs` what has another name in it; `keys.rs`
//!   and `sign/` who signs it; `signers.rs` who may approve
//!
//! The event chain is guarded by the state machine of `cto_core::run`: an event out of order is an
//! error here, not a surprise for the verifier. `docs/bundle-format.md` gives the sealing order.
//! Imports host. Imported by every room from supervise up but doubles.

pub mod clock;
pub mod host_names;
pub mod keys;
pub mod secrets;
pub mod sign;
pub mod signers;

mod cleaning;
mod last_look;
mod lock;
mod opening;
mod scratch;
mod seal;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cto_core::bundle;
use cto_core::bundle::report::{Claimed, Continues, Reliance, RunIdentity};
use cto_core::containment::ProcessReport;
use cto_core::gate::GateReport;
use cto_core::gate::eligibility;
use cto_core::run::chain::{self, EventLine};
use cto_core::run::event::Event;
use cto_core::run::facts::Folded;
use cto_core::run::order::OutOfOrder;
use cto_core::run::trace::{TraceLine, TraceOutcome};
use cto_core::task::contract::{ContractDocument, SealedContract};
use cto_core::values::digest::Digest;
use cto_core::values::event_type::EventType;
use cto_core::values::json::JsonError;
use cto_core::values::time::Utc;

pub use lock::{Liveness, OpenEntry, RunLock, has_lost_its_report, is_held, liveness};
pub use opening::{GoesOn, Opening};
pub use seal::SealedBundle;

use crate::evidence::clock::{Before, Clock, millis};
use crate::evidence::keys::KeyStore;
use crate::evidence::secrets::{Quoted, Secrets};
use crate::evidence::sign::SignError;
use crate::host::{self, Home};

#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error("{artifact} could not be written")]
    Write { artifact: String, source: io::Error },
    #[error("the run directory could not be opened")]
    Open { source: io::Error },
    #[error("the run is live: another process holds its lock")]
    Live,
    #[error(transparent)]
    Order(#[from] OutOfOrder),
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("{artifact} would hold a credential, or what is private of an endpoint")]
    Secret { artifact: String },
    #[error("the bundle could not be signed")]
    Sign(#[from] SignError),
}

impl EvidenceError {
    /// An artifact that could not be written, from an error somebody else still holds.
    pub fn cannot_write(artifact: &str, error: &io::Error) -> Self {
        let source = io::Error::new(error.kind(), error.to_string());
        Self::Write {
            artifact: artifact.to_owned(),
            source,
        }
    }
}

/// Room kept free so that a full disk still yields a typed verdict.
const RESERVE_BYTES: u64 = 1 << 20;

/// A run being recorded.
pub struct OpenBundle {
    dir: PathBuf,
    open_entry: OpenEntry,
    pub identity: RunIdentity,
    pub contract: ContractDocument,
    pub sealed_contract: SealedContract,
    pub secrets: Secrets,
    /// What of them is looked for in documents, by whose words those hold.
    of_documents: [Secrets; 3],
    /// Words of the contract that hold a path of this host: they stay what they are.
    spoken: Vec<String>,
    keys: KeyStore,
    /// How many secrets were seen where, even where they were taken out.
    leaks: BTreeMap<String, u64>,
    /// The gates as last written.
    pub gates: GateReport,
    /// What this run relies on.
    pub relies_on: Vec<Reliance>,
    /// Only of a settlement: the bundle whose chain goes on here.
    continues: Option<Continues>,
    /// The clock of the run, where this process ran it.
    pub clock: Option<Arc<Clock>>,
    processes: Vec<ProcessReport>,
    folded: Folded,
    claimed: Claimed,
    events: Appended,
    head: Digest,
    count: u64,
    /// When the last event was written.
    last_event: Option<Utc>,
    trace: Appended,
    started: Instant,
    _lock: RunLock,
}

/// A file that only grows, and shrinks back when a write tears.
struct Appended {
    name: &'static str,
    file: File,
    length: u64,
}

impl Appended {
    fn open(dir: &Path, name: &'static str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(dir.join(name))?;
        let length = file.metadata()?.len();
        Ok(Self { name, file, length })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), EvidenceError> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(source) => {
                // A torn line would break the chain for every reader.
                let _ = self.file.set_len(self.length);
                Err(EvidenceError::Write {
                    artifact: self.name.to_owned(),
                    source,
                })
            }
        }
    }
}

impl OpenBundle {
    /// Opens the directory made by [`reserve_run_dir`]: lock, reserve, contract, empty chain.
    pub fn open(home: &Home, dir: PathBuf, mut opening: Opening) -> Result<Self, EvidenceError> {
        let failed = |source| EvidenceError::Open { source };
        let (lock, open_entry) = lock::hold_and_list(home, &dir, &opening.identity.run_id)
            .map_err(failed)?
            .ok_or(EvidenceError::Live)?;
        let reserve = File::create(dir.join(bundle::RESERVE)).map_err(failed)?;
        allocate(&reserve).map_err(failed)?;
        host::make_private_dir(&dir.join(bundle::SCRATCH_DIR)).map_err(failed)?;
        let beside = std::mem::take(&mut opening.beside);
        let mut bundle = Self::attach(dir, open_entry, opening, lock)?;
        // The clock of the file system decides freshness, so the run starts when its lock says so.
        bundle.identity.started_at = bundle
            .identity
            .started_at
            .min(lock_time(&bundle.dir).unwrap_or(bundle.identity.started_at));
        let bytes = bundle.sealed_contract.bytes.clone();
        // Before the contract that names them: whoever finds the one finds the other.
        for (name, text) in beside {
            bundle.write(name, &text)?;
        }
        bundle.write(bundle::CONTRACT, &bytes)?;
        Ok(bundle)
    }

    fn attach(
        dir: PathBuf,
        open_entry: OpenEntry,
        opening: Opening,
        lock: RunLock,
    ) -> Result<Self, EvidenceError> {
        let failed = |source| EvidenceError::Open { source };
        let own = || {
            chain::chain_start(
                &opening.identity.run_id,
                &opening.sealed_contract.contract_digest,
            )
        };
        let head = opening.goes_on.as_ref().map_or_else(own, |on| on.head);
        let words = cto_core::values::json::parse_strict(&opening.sealed_contract.bytes);
        let spoken = words.map(|words| opening.secrets.names.spoken(&words));
        Ok(Self {
            events: Appended::open(&dir, bundle::EVENTS).map_err(failed)?,
            trace: Appended::open(&dir, bundle::TRACE).map_err(failed)?,
            dir,
            open_entry,
            identity: opening.identity,
            contract: opening.contract,
            sealed_contract: opening.sealed_contract,
            of_documents: [Quoted::Others, Quoted::Ourselves, Quoted::Repository]
                .map(|quoted| opening.secrets.of_documents(quoted)),
            secrets: opening.secrets,
            spoken: spoken.unwrap_or_default(),
            keys: opening.keys,
            leaks: BTreeMap::new(),
            gates: GateReport {
                schema_version: 1,
                gates: Vec::new(),
            },
            relies_on: Vec::new(),
            continues: opening.goes_on.map(|on| on.from),
            clock: None,
            processes: Vec::new(),
            folded: Folded::default(),
            claimed: Claimed::default(),
            head,
            count: 0,
            last_event: None,
            started: Instant::now(),
            _lock: lock,
        })
    }

    /// Takes up a run whose writer is gone. Lines that were read back are replayed, not rewritten.
    pub fn resume(
        dir: PathBuf,
        open_entry: OpenEntry,
        opening: Opening,
        lock: RunLock,
        lines: &[EventLine],
    ) -> Result<Self, EvidenceError> {
        let mut bundle = Self::attach(dir, open_entry, opening, lock)?;
        for line in lines {
            bundle.folded.push(&line.event)?;
            bundle.head = line.hash;
            bundle.count = line.seq;
            bundle.last_event = Some(line.ts);
        }
        Ok(bundle)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn folded(&self) -> &Folded {
        &self.folded
    }

    /// Appends one event: checked by the state machine, chained, synced at barriers.
    pub fn emit(&mut self, event: Event) -> Result<(), EvidenceError> {
        let quoted = cleaning::quoted_in(event.kind());
        let event = self.cleaned(bundle::EVENTS, event, quoted)?;
        let mut next = self.folded.clone();
        next.push(&event)?;
        let now = host::now();
        let (line, hash) = EventLine::make(
            self.count + 1,
            now,
            &self.identity.run_id,
            &event,
            self.head,
        )?;
        self.events.append(&line)?;
        if is_barrier(event.kind()) {
            self.sync_events()?;
        }
        if let Event::EngineResult(result) = &event {
            self.claimed = Claimed {
                status: Some(result.claimed.clone()),
                summary: Some(result.summary.clone()),
                commit: result.commit.clone(),
            };
        }
        self.folded = next;
        self.head = hash;
        self.count += 1;
        self.last_event = Some(now);
        Ok(())
    }

    fn sync_events(&self) -> Result<(), EvidenceError> {
        self.events
            .file
            .sync_data()
            .map_err(|source| EvidenceError::Write {
                artifact: bundle::EVENTS.to_owned(),
                source,
            })
    }

    /// Since this bundle was opened.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes something the harness did or checked.
    pub fn trace(
        &mut self,
        action: &str,
        outcome: TraceOutcome,
        since: Instant,
        detail: Option<String>,
    ) -> Result<(), EvidenceError> {
        let duration = since.elapsed();
        self.trace_line(TraceLine {
            at_ms: millis(self.started.elapsed().saturating_sub(duration)),
            action: action.to_owned(),
            outcome,
            duration_ms: millis(duration),
            detail,
        })
    }

    /// The same of what was over before this bundle was opened: it stands at its beginning.
    pub fn trace_before(&mut self, before: &Before) -> Result<(), EvidenceError> {
        self.trace_line(TraceLine {
            at_ms: 0,
            action: before.action.to_owned(),
            outcome: before.outcome,
            duration_ms: millis(before.took),
            detail: before.detail.clone(),
        })
    }

    fn trace_line(&mut self, mut line: TraceLine) -> Result<(), EvidenceError> {
        line.detail = line.detail.map(|text| self.clean(&text));
        let mut bytes = cto_core::values::json::canonical(&line)?;
        bytes.push(b'\n');
        self.trace.append(&bytes)
    }

    /// Writes an artifact whole.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), EvidenceError> {
        let mut file = self.create(name)?;
        file.write_all(bytes).map_err(|source| {
            // Half a document says nothing; the seal writes one that says it was not reached.
            let _ = fs::remove_file(self.dir.join(name));
            EvidenceError::Write {
                artifact: name.to_owned(),
                source,
            }
        })
    }

    pub fn write_json<T: serde::Serialize>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), EvidenceError> {
        self.write(name, &cto_core::values::json::pretty(value)?)
    }

    /// Writes the gates, and the backend decision that follows from them.
    pub fn write_gates(&mut self, gates: GateReport) -> Result<(), EvidenceError> {
        let gates = self.cleaned(bundle::GATES, gates, Quoted::Ourselves)?;
        self.write_json(bundle::GATES, &gates)?;
        let (engine, stage) = (&self.identity.engine.name, self.identity.stage);
        let decision = eligibility::decide_backend(
            engine,
            stage,
            self.contract.valid(),
            &self.sealed_contract.contract_digest,
            &gates,
        );
        self.write_json(bundle::ELIGIBILITY, &decision)?;
        self.gates = gates;
        Ok(())
    }

    /// Keeps what was measured about one contained process, for `containment.json`.
    pub fn contained(&mut self, process: ProcessReport) {
        self.processes.push(process);
    }

    /// Creates an artifact to be filled by a stream.
    pub fn create(&self, name: &str) -> Result<File, EvidenceError> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.dir.join(name))
            .map_err(|source| EvidenceError::Write {
                artifact: name.to_owned(),
                source,
            })
    }

    pub fn scratch_dir(&self) -> PathBuf {
        self.dir.join(bundle::SCRATCH_DIR)
    }
}

fn is_barrier(kind: EventType) -> bool {
    // What must survive a crash: that an approval was used, that an engine was about to run, that
    // it ended, what the operator said, and what became of a target.
    matches!(
        kind,
        EventType::ApprovalGranted
            | EventType::PlanUpdated
            | EventType::EngineEnded
            | EventType::OperatorOutcomeRecorded
            | EventType::LandingUpdated
    )
}

fn allocate(file: &File) -> io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, RESERVE_BYTES) {
        Ok(()) => Ok(()),
        // A file system without fallocate: write the room instead.
        Err(rustix::io::Errno::OPNOTSUPP) => (&*file).write_all(&vec![0u8; RESERVE_BYTES as usize]),
        Err(error) => Err(error.into()),
    }
}

fn lock_time(dir: &Path) -> Option<Utc> {
    let modified = fs::metadata(dir.join(bundle::LOCK)).ok()?.modified().ok()?;
    Some(host::file_time(modified))
}

/// Makes a directory nobody else has, for a run id nobody else has.
pub fn reserve_run_dir(
    home: &Home,
    id: impl Fn(&str) -> Option<cto_core::values::ids::RunId>,
) -> Result<(cto_core::values::ids::RunId, PathBuf), crate::host::failure::Failure> {
    use std::os::unix::fs::DirBuilderExt;
    for _ in 0..16 {
        let suffix = host::run_suffix(host::now())?;
        let Some(run_id) = id(&suffix) else { continue };
        let dir = home.runs.join(run_id.as_str());
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => return Ok((run_id, dir)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(crate::host::failure::Failure::internal(
                    "runs_root_unwritable",
                    "the runs root cannot be written",
                )
                .at(home.runs.display().to_string())
                .because(&error)
                .so("no bundle could be written, so nothing ran")
                .hint("free space, fix permissions, or choose another place with --runs-dir DIR"));
            }
        }
    }
    Err(crate::host::failure::Failure::internal(
        "no_run_id",
        "no unused run id could be found",
    ))
}
