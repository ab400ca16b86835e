//! The executable admission: which file is run as the engine.

use std::collections::BTreeMap;

use super::fields::record;
use super::{Field, Record, RecordKind, ReviewTrigger};
use crate::values::digest::Digest;
use crate::values::ids::EngineId;

record! {
    /// An executable admission: one file, by its digest.
    ExecutableAdmission
    required {
        engine: EngineId => Takes::Engine;
        /// The real file, after every link.
        path: String => Takes::Path;
        sha256: Digest => Takes::Sha256;
        /// What it said about itself, once, in the jail.
        identity_output: String => Takes::Text;
        version: String => Takes::Word;
        /// How it is started.
        command_shape: String => Takes::Text;
        approval_source: String => Takes::Text;
        admission_timestamp: String => Takes::When;
        review_trigger: ReviewTrigger => Takes::Trigger;
    }
    optional {
        source_url: String => Takes::Address;
        pinned_commit: String => Takes::Commit;
        build_command: String => Takes::Text;
        tool_versions: BTreeMap<String, String> => Takes::Versions;
        build_timestamp: String => Takes::When;
        /// A build tool that was not there.
        missing_build_tools: Vec<String> => Takes::Names;
        /// The build left its source tree dirty.
        source_tree_dirty: bool => Takes::Flag;
    }
}

impl Record for ExecutableAdmission {
    const KIND: RecordKind = RecordKind::Executable;
    const FIELDS: &'static [Field] = Self::TABLE;
}

impl ExecutableAdmission {
    /// Why the build does not show that this file came from its pinned source; none if it does.
    pub fn build_problem(&self) -> Option<&'static str> {
        if self.source_tree_dirty == Some(true) {
            return Some("the build left its source tree dirty");
        }
        self.missing_build_tools
            .as_ref()
            .is_some_and(|tools| !tools.is_empty())
            .then_some("a build tool was missing")
    }
}

record! {
    /// What a build says about itself, for `cto admit executable --build-report`.
    BuildReport
    required {
        source_url: String => Takes::Address;
        pinned_commit: String => Takes::Commit;
        build_command: String => Takes::Text;
        tool_versions: BTreeMap<String, String> => Takes::Versions;
        build_timestamp: String => Takes::When;
    }
    optional {
        missing_build_tools: Vec<String> => Takes::Names;
        source_tree_dirty: bool => Takes::Flag;
        /// Digest of the file that was built; if given, it must be that of the admitted file.
        executable_sha256: Digest => Takes::Sha256;
        version: String => Takes::Word;
        command_shape: String => Takes::Text;
    }
}

impl Record for BuildReport {
    const KIND: RecordKind = RecordKind::Executable;
    const FIELDS: &'static [Field] = Self::TABLE;
}
