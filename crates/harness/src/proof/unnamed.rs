//! An engine of which nobody named a program, and the double of it that ships here. What a double shows is shown of the
//! harness alone: it proves no stage and admits nothing.

use std::path::Path;

use cto_core::engine::manifest::Manifest;
use cto_core::records::RecordKind;

use crate::doubles;
use crate::host::{Env, Home};
use crate::records::RecordStore;
use crate::task::lane::variable;

/// The double of an engine, where no flag, no variable and no record names a program of it.
pub fn double_of(
    manifest: &Manifest,
    named: Option<&Path>,
    env: &Env,
    home: &Home,
) -> Option<Manifest> {
    let double = doubles::in_place_of(manifest)?;
    let id = &manifest.id;
    let said = |name: &str| env.get(&variable(id, name)).is_some();
    let recorded = RecordStore::of(home, id).path(RecordKind::Executable);
    // Whatever lies there: a record that cannot be used is said to be so, and not passed over.
    let there = recorded.symlink_metadata().is_ok();
    let named = named.is_some() || said("BIN") || said("EXECUTABLE_ADMISSION_FILE") || there;
    (!named).then_some(double)
}

/// What is said when it plays.
pub fn note(manifest: &Manifest) -> String {
    format!(
        "no program of {id} is named: its double plays, and nothing is shown of a real {id}",
        id = manifest.id
    )
}
