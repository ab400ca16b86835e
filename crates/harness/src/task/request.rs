//! What somebody asks of the harness, as plain data: which case, which engine, at which stage.

use std::path::PathBuf;

use cto_core::containment::Containment;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::ladder::RefusedRun;
use cto_core::run::event::Origin;
use cto_core::task::contract::{Label, LimitChanges, Stage};
use cto_core::task::source::{Source, SourceRecord};
use cto_core::values::seen::Seen;

use crate::task::cases::Case;

/// What the operator asked for.
pub struct Request {
    pub case: Case,
    pub manifest: Manifest,
    pub stage: Stage,
    pub engine_opened: bool,
    /// The script a scripted engine plays.
    pub script: Option<Vec<u8>>,
    /// The script ships with the case.
    pub own_script: bool,
    pub limits: LimitChanges,
    /// What the command line says about records; looked at for gated engines alone.
    pub records: LaneOptions,
    /// A proof to leave in the bundle, where the run bears it out.
    pub proof: Option<ProofOrder>,
    /// The containment asked for: strict, or contained.
    pub contain: Containment,
    pub origin: Origin,
    pub label: Label,
    /// The repository to copy, where the case brings no files of its own.
    pub source: Option<SourceRequest>,
    /// Leave the workspace of a run that did not pass.
    pub keep: bool,
}

/// What a request says about a gated engine: its program, its model and which records let it. Each
/// has a variable, which comes after it.
#[derive(Clone, Debug, Default)]
pub struct LaneOptions {
    pub decision: Option<PathBuf>,
    pub model_admission: Option<PathBuf>,
    pub executable_admission: Option<PathBuf>,
    pub source_admission: Option<PathBuf>,
    pub bin: Option<PathBuf>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url_file: Option<PathBuf>,
    pub credential: Option<String>,
    pub protocol: Option<String>,
}

/// A source as the operator asked for it.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub path: PathBuf,
    pub record: SourceRecord,
    pub from_head: bool,
}

impl SourceRequest {
    /// What the contract says before anybody has looked.
    pub fn unseen(&self) -> Source {
        Source {
            record: self.record.clone(),
            from_head: self.from_head,
            head: Seen::NotSeen,
        }
    }
}

/// A proof the operator asked for, beside the run itself.
#[derive(Clone, Debug)]
pub enum ProofOrder {
    /// The run without its gate, which went before.
    Stage1 { refused: RefusedRun },
}
