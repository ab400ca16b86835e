//! The record of a repository that a case is run on a copy of, as `--source` names it.

use std::path::{Path, PathBuf};

use cto_core::records::{Found, SourceRepositoryRecord};

use super::find;
use crate::task::request::SourceRequest;

/// Which repository the record is about; why it cannot be used, otherwise. Nothing of it is looked at.
pub fn named(file: &Path) -> Result<SourceRequest, String> {
    match find::<SourceRepositoryRecord>(file) {
        Found::Missing => Err("the source record is not there".into()),
        Found::Invalid(issues) => {
            let listed: Vec<String> = issues.iter().map(ToString::to_string).collect();
            let listed = listed.join("; ");
            Err(format!("the source record cannot be used: {listed}"))
        }
        Found::Known(found) => Ok(SourceRequest {
            path: PathBuf::from(&found.record.path),
            record: found.record.in_contract(),
            from_head: false,
        }),
    }
}
