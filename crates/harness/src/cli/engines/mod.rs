//! Commands about engines: which there are, what admits them, what proves them.
//!
//! - `list.rs` engines, `gate.rs` its open and close, `new.rs` and `check.rs` manifests of one's own ·
//!   `setup.rs` setup · `admit.rs` admit · `eligibility.rs` eligibility
//! - `ladder.rs` ladder · `validate.rs` validate · `matrix.rs` matrix · `matrix_row.rs` one row, a hidden command
//!
//! Imported by `cli/mod.rs` alone.

pub mod admit;
mod check;
pub mod eligibility;
mod gate;
pub mod ladder;
pub mod list;
pub mod matrix;
pub mod matrix_row;
mod new;
pub mod setup;
pub mod validate;

use std::path::PathBuf;

use cto_core::engine::manifest::Manifest;
use cto_core::engine::registry::{From, Registry};

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::task::engines as known;
use crate::task::own_engines::OwnDirectory;

impl Context {
    /// Where the operator's own engines are or would be.
    pub(super) fn own_engines(&self) -> Result<Option<OwnDirectory>, Failure> {
        OwnDirectory::find(self.engines_dir.as_deref(), &self.env)
    }

    /// Every engine there is, read once for the whole command.
    pub(super) fn engines(&self) -> Result<&Registry, Failure> {
        if let Some(known) = self.engines.get() {
            return Ok(known);
        }
        let read = known::load(self.own_engines()?.as_ref())?;
        Ok(self.engines.get_or_init(|| read))
    }

    /// Where the manifest of an engine lies, if it is the operator's own.
    pub(super) fn directory_of(&self, id: &str) -> Result<Option<PathBuf>, Failure> {
        let is_it = |(from, manifest): (From, &Manifest)| {
            from == From::Operator && manifest.id.as_str() == id
        };
        let own = self.engines()?.all().any(is_it);
        Ok(self.own_engines()?.filter(|_| own).map(|dir| dir.path))
    }

    /// The engine that somebody named.
    pub(super) fn engine(&self, id: &str) -> Result<Manifest, Failure> {
        known::named(self.engines()?, id)
    }
}
