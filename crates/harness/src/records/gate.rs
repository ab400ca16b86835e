//! The gate record on disk: what it is compared with, and how one is made. `cto engines open` and
//! `cto setup` write it, after the engine's name was typed; nothing else does.

use cto_core::engine::manifest::Manifest;
use cto_core::gate::opening::{self, Asked, By, Kept, Opening};
use cto_core::records::{Found, GateRecord, Issue, RecordKind, read_on};
use cto_core::values::digest::Digest;
use cto_core::values::ids::EngineId;
use serde_json::json;

use super::{RecordStore, find, gather};
use crate::host::{self, Env, Home};
use crate::task::lane::LaneOptions;

/// Is this engine open for this command, and by what? A record is looked for only where it could
/// make a difference.
pub fn opening(
    manifest: &Manifest,
    asked: &Asked,
    lane: &LaneOptions,
    env: &Env,
    home: &Home,
) -> Opening {
    if !manifest.is_gated() {
        return Opening::Opened(By::Default);
    }
    let kept = opening::asks_the_record(asked).then(|| kept(&manifest.id, lane, env, home));
    opening::decide(&manifest.id, asked, kept.as_ref())
}

/// The record, and the program it would have to be about.
fn kept(engine: &EngineId, lane: &LaneOptions, env: &Env, home: &Home) -> Kept {
    let record = recorded(engine, home);
    let (executable, binary) = gather::program(engine, lane, env, home);
    Kept {
        record,
        admitted: executable
            .known()
            .filter(|executable| executable.engine == *engine)
            .map(|executable| executable.sha256),
        program: binary.sha256(),
    }
}

/// The gate record of the state home. No flag and no variable names another one: whoever could say
/// so could as well say yes.
pub fn recorded(engine: &EngineId, home: &Home) -> Found<GateRecord> {
    find(&RecordStore::of(home, engine).path(RecordKind::Gate))
}

/// A gate record as of now, for the program that is admitted.
pub fn draft(
    engine: &EngineId,
    executable_sha256: Digest,
    approval: &str,
) -> Result<GateRecord, Vec<Issue>> {
    let now = host::now();
    let value = json!({
        "engine": engine, "executable_sha256": executable_sha256, "approval_source": approval,
        "opened_timestamp": now, "review_trigger": ["stage_beyond:3"],
    });
    read_on(value.to_string().as_bytes(), now)
}
