//! What people say ahead about how far green checks have to be believed. It is part of the task: other
//! words are another task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::case_file::ControlSource;
use crate::task::tests_may_change::TestChange;

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reasons {
    /// Why checks are enough of which nothing shows that they could have failed: the reason of a
    /// control of `none`, or `--accept-unproven`. Refused from stage 4 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_unproven: Option<String>,
    /// Why no check has to load the change: `--unchecked`, for a try alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// Less than proven is not enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_control: bool,
    /// The checks must be green before the engine starts: `--baseline green`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub green_start: bool,
    /// Tests of the baseline that need not run again: `--changed-test`, or the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests_may_change: Vec<TestChange>,
}

impl Reasons {
    /// A case that has no control says why.
    pub fn beside(mut self, control: Option<&ControlSource>) -> Self {
        if let Some(ControlSource::None(reason)) = control {
            self.accept_unproven.get_or_insert_with(|| reason.clone());
        }
        self
    }

    /// Is anything done without that a later stage asks for?
    pub fn do_without(&self) -> bool {
        self.accept_unproven.is_some() || self.unchecked.is_some()
    }
}
