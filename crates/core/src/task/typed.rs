//! A task without a case file: words of an operator.

use crate::task::case_file::ControlSource;
use crate::values::ids::CaseId;

/// A task somebody typed for a copy of their own repository; there is no file behind it.
#[derive(Clone, Debug)]
pub struct TypedTask {
    pub task_id: CaseId,
    pub title: String,
    pub objective: String,
    pub allowed_paths: Vec<String>,
    pub forbidden_paths: Vec<String>,
    pub verification_commands: Vec<String>,
    pub verification_control: Option<ControlSource>,
    pub setup: Vec<String>,
    pub inputs: Vec<String>,
}
