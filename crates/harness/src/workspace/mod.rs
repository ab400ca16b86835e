//! ROOM.

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

pub use error::WorkspaceError;
