//! Where proofs of stages were found before: one small file for each stage and lane, in the cache. A pointer
//! that is missing, stale or a lie costs time and nothing else: only a bundle that is verified now proves.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use cto_core::gate::ladder::{LaneKey, StageProof};
use cto_core::run::event::Origin;
use cto_core::task::contract::Stage;
use cto_core::values::digest::Digest;
use cto_core::values::ids::{EngineId, RunId};
use cto_core::values::json;
use serde::{Deserialize, Serialize};

use crate::host::files;
use crate::host::{self, Home};

/// A pointer is a page at most.
const MAX_POINTER: u64 = 16 << 10;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    pub stage: Stage,
    pub lane: LaneKey,
    pub run_id: RunId,
    /// Whose proof it is: a validator's never counts for an operator.
    pub by: Origin,
}

impl Pointer {
    pub fn of(proof: &StageProof, by: Origin) -> Self {
        Self {
            stage: proof.stage,
            lane: proof.lane.clone(),
            run_id: proof.run_id.clone(),
            by,
        }
    }

    /// One for each stage and lane, whatever the run.
    fn name(&self) -> Option<String> {
        let lane = json::canonical(&(&self.lane, self.by)).ok()?;
        let digest = Digest::of(&lane);
        Some(format!("{}-{digest}.json", self.stage.number()))
    }
}

fn dir(home: &Home, engine: &EngineId) -> PathBuf {
    home.cache().join("proofs").join(engine.as_str())
}

/// Every pointer of an engine, the newest run first.
pub fn all(home: &Home, engine: &EngineId) -> Vec<Pointer> {
    let Ok(entries) = fs::read_dir(dir(home, engine)) else {
        return Vec::new();
    };
    let read = |path: PathBuf| {
        let bytes = files::read_limited(&path, MAX_POINTER).ok()?;
        json::read::<Pointer>(&bytes).ok()
    };
    let mut found: Vec<Pointer> = entries
        .flatten()
        .filter_map(|entry| read(entry.path()))
        .collect();
    found.sort_by_key(|pointer| std::cmp::Reverse(pointer.run_id.sort_key()));
    found
}

/// Keeps a pointer. One that cannot be kept is found again by a look at every run.
pub fn put(home: &Home, pointer: &Pointer) {
    let write = || -> Option<()> {
        let dir = dir(home, &pointer.lane.engine);
        host::make_private_dir(&dir).ok()?;
        let bytes = serde_json::to_vec(pointer).ok()?;
        let part = dir.join(format!(".{}.part", host::random_name(8).ok()?));
        let to = dir.join(pointer.name()?);
        let mut file = fs::File::create_new(&part).ok()?;
        let named = file.write_all(&bytes).and_then(|()| fs::rename(&part, to));
        if named.is_err() {
            let _ = fs::remove_file(&part);
        }
        Some(())
    };
    let _ = write();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pointer_for_each_stage_and_lane_and_strange_files_point_nowhere() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home {
            root: temp.path().join("state"),
            runs: temp.path().join("runs"),
        };
        let engine: EngineId = "fake".parse().unwrap();
        assert!(all(&home, &engine).is_empty());
        let lane = LaneKey {
            engine: engine.clone(),
            source_pin: None,
            executable_sha256: cto_core::values::maybe_known::MaybeKnown::NotLookedAt,
            interpreter_sha256: None,
            packages_sha256: None,
            manifest_sha256: None,
            model: None,
            containment: None,
        };
        let pointer = |stage, run: &str, pin: Option<&str>| Pointer {
            stage,
            lane: LaneKey {
                source_pin: pin.map(str::to_owned),
                ..lane.clone()
            },
            run_id: run.parse().unwrap(),
            by: Origin::Operator,
        };
        let (old, new) = ("20260102T030405Z-demo-k3v9", "20260103T030405Z-demo-k3v9");
        put(&home, &pointer(Stage::Three, old, None));
        put(&home, &pointer(Stage::Three, new, None));
        put(&home, &pointer(Stage::Three, old, Some("v1")));
        put(&home, &pointer(Stage::Two, old, None));
        let at = dir(&home, &engine);
        fs::write(at.join("x.json"), b"{}").unwrap();
        std::os::unix::fs::symlink("/dev/zero", at.join("y.json")).unwrap();
        let found = all(&home, &engine);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], pointer(Stage::Three, new, None));
    }
}
