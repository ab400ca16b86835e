//! Work trees: private copies for engines and checks, and what really changed in them.
//!
//! - `of_run.rs` the workspace of one run; `measure.rs` what changed in it
//! - `private_copy.rs` a copy, plain or over a cached one: `checkout.rs` the cache, `overlay/` the
//!   kernel's layers
//! - `git/` the only place that starts git; `on_disk.rs` files laid out and walked
//! - `apply.rs` a patch into the operator's repository, `work_form.rs` whose files need not be their
//!   blobs; `own_dir.rs` private directories for a look
//!
//! Imports host, task, evidence and supervise. Imported by plan, run, proof and cli.

mod error;

pub mod apply;
pub mod checkout;
pub mod git;
pub mod measure;
pub mod of_run;
pub mod on_disk;
pub mod overlay;
pub mod own_dir;
pub mod private_copy;
mod work_form;

pub use error::WorkspaceError;
