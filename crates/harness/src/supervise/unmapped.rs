//! A directory that a jail cannot be shown as its own: the kernel's refusal, with what is known of
//! the file system, as a failure.

use std::fs;
use std::os::unix::fs::MetadataExt;

use cto_core::containment::mapping::{Unmapped, in_question};
use cto_jail::JailError;

use crate::host::failure::Failure;
use crate::host::places::mount_table;
use crate::supervise::SuperviseError;

impl SuperviseError {
    /// The failure, where the file system of a directory is what stands in the way.
    pub fn unmapped(&self) -> Option<Failure> {
        let Self::Jail(JailError::Unmapped { refused, error }) = self else {
            return None;
        };
        let unmapped = Unmapped {
            owner: fs::metadata(&refused.dir).ok().map(|meta| meta.uid()),
            refused_by: in_question(&refused.dir, refused.is_below, &mount_table()),
            dir: refused.dir.clone(),
            is_below: refused.is_below,
            error: error.clone(),
        };
        let [kernel, rule] = unmapped.because();
        Some(
            Failure::blocked("unmappable_directory", unmapped.what())
                .at(unmapped.dir.display().to_string())
                .reason(kernel)
                .reason(rule)
                .so("nothing ran")
                .hint(unmapped.fix()),
        )
    }
}
