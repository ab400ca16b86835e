//! A contract for a patch that is judged again: the task of the first one, and checks that may be others.
//! What differs is told; what must not differ is compared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::case_file::{CaseFile, ControlSource};
use crate::task::contract::{Contract, Control, Label, Runner};
use crate::task::runner::Found;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::paths::PathRule;

/// What stands in place of an engine where none works.
pub const REVERIFY: &str = "reverify";

/// The run whose patch is judged again: named by run, bound by the digest of its `SHA256SUMS`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reverifies {
    pub run_id: RunId,
    pub sums_sha256: Digest,
}

/// How the commands of two contracts stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CommandsAre {
    #[default]
    Same,
    /// All of the first in their order, and others after them: what comes last cannot help what came before.
    More,
    Other,
}

/// What differs from the checks of the first run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChecksDiffer {
    pub commands: CommandsAre,
    /// Commands of the first run that are not run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// Commands that the first run did not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Inputs that the first run did not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<PathRule>,
    /// What must turn them red, where that is something else now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// What else is not as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

impl ChecksDiffer {
    /// From the checks of `first` to those of `again`.
    pub fn between(first: &Contract, again: &Contract) -> Self {
        let (old, new) = (&first.verification_commands, &again.verification_commands);
        let commands = match (new.starts_with(old), new.len() == old.len()) {
            (true, true) => CommandsAre::Same,
            (true, false) => CommandsAre::More,
            (false, _) => CommandsAre::Other,
        };
        let control = (first.verification_control != again.verification_control)
            .then(|| control_words(&again.verification_control));
        let limits = |of: &Contract| {
            (
                of.limits.verification_wall_seconds,
                of.limits.verification_idle_seconds,
            )
        };
        let (was, is) = (&first.lane, &again.lane);
        let also = [
            ("time limits", limits(first) != limits(again)),
            ("toolchains", was.toolchains != is.toolchains),
            ("programs", other_programs(first, again)),
        ];
        Self {
            commands,
            dropped: without(old, new),
            added: without(new, old),
            inputs: without(&again.inputs, &first.inputs),
            control,
            also: also
                .into_iter()
                .filter(|(_, differ)| *differ)
                .map(|(what, _)| what.to_owned())
                .collect(),
        }
    }

    /// For people, a thing each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let listed = |what: &str, commands: &[String]| format!("{what}: {}", commands.join("; "));
        if !self.dropped.is_empty() {
            lines.push(listed("not run again", &self.dropped));
        }
        if !self.added.is_empty() {
            lines.push(listed("run instead or besides", &self.added));
        }
        if self.commands == CommandsAre::Other && self.dropped.is_empty() {
            lines.push("the same commands in another order, or after others".to_owned());
        }
        if !self.inputs.is_empty() {
            let names: Vec<&str> = self.inputs.iter().map(PathRule::as_str).collect();
            lines.push(format!("inputs besides: {}", names.join(", ")));
        }
        lines.extend(self.control.iter().map(|now| format!("control now: {now}")));
        if !self.also.is_empty() {
            lines.push(format!("others than then: {}", self.also.join(", ")));
        }
        lines
    }

    /// In a few words, for a list.
    pub fn short(&self) -> String {
        let said = [
            (
                match self.commands {
                    CommandsAre::Same => "",
                    CommandsAre::More => "more commands",
                    CommandsAre::Other if self.added.is_empty() && !self.dropped.is_empty() => {
                        "fewer commands"
                    }
                    CommandsAre::Other => "other commands",
                },
                true,
            ),
            ("more inputs", !self.inputs.is_empty()),
            ("another control", self.control.is_some()),
        ];
        let mut said: Vec<&str> = said
            .into_iter()
            .filter(|(what, is_so)| *is_so && !what.is_empty())
            .map(|(what, _)| what)
            .collect();
        let also: Vec<String> = self
            .also
            .iter()
            .map(|what| format!("other {what}"))
            .collect();
        said.extend(also.iter().map(String::as_str));
        match said.is_empty() {
            true => "the same checks".to_owned(),
            false => said.join(", "),
        }
    }
}

fn without<T: Clone + PartialEq>(list: &[T], taken: &[T]) -> Vec<T> {
    let mut taken = taken.to_vec();
    let mut left = Vec::new();
    for one in list {
        match taken.iter().position(|other| other == one) {
            Some(at) => drop(taken.remove(at)),
            None => left.push(one.clone()),
        }
    }
    left
}

/// Is a program that both name another one now?
fn other_programs(first: &Contract, again: &Contract) -> bool {
    let mut both = first.lane.programs.iter().filter_map(|was| {
        let is = again.lane.programs.iter().find(|is| is.name == was.name);
        is.map(|is| (was, is))
    });
    both.any(|(was, is)| was.sha256 != is.sha256)
}

fn control_words(control: &Control) -> String {
    match control {
        Control::Runner(runner) => format!("failing tests of {}", runner.as_str()),
        Control::Patch(_) => "a patch that was named".to_owned(),
        Control::None(why) => format!("none ({why})"),
    }
}

/// The part of a second contract that is not what the first one bound, if there is one: the whole task but
/// for its checks, the tree it starts from, and that nobody works in it.
pub fn other_task(first: &Contract, again: &Contract) -> Option<&'static str> {
    let lane = &again.lane;
    if lane.engine.as_str() != REVERIFY || lane.script_sha256.is_some() || lane.model.is_some() {
        return Some("names an engine");
    }
    if lane.stage != first.lane.stage {
        return Some("is of another stage");
    }
    if again.allowed_paths != first.allowed_paths || again.forbidden_paths != first.forbidden_paths
    {
        return Some("has another scope");
    }
    let head = |of: &Contract| of.source.as_ref().map(|source| source.head.clone());
    if again.start_tree != first.start_tree
        || again.start_tree.known().is_none()
        || head(again) != head(first)
    {
        return Some("starts from another tree");
    }
    if !again.inputs.starts_with(&first.inputs) {
        return Some("leaves inputs out");
    }
    // What may differ is made equal; then nothing may.
    let mut expected = first.clone();
    expected.lane = again.lane.clone();
    expected.inputs.clone_from(&again.inputs);
    expected.recognised.clone_from(&again.recognised);
    (expected.verification_commands).clone_from(&again.verification_commands);
    (expected.verification_control).clone_from(&again.verification_control);
    let (limits, theirs) = (&mut expected.limits, &again.limits);
    limits.verification_wall_seconds = theirs.verification_wall_seconds;
    limits.verification_idle_seconds = theirs.verification_idle_seconds;
    if let (Some(source), Some(theirs)) = (&mut expected.source, &again.source) {
        source.from_head = theirs.from_head;
        source.record.path.clone_from(&theirs.record.path);
    }
    (expected != *again).then_some("is another task")
}

/// What somebody asks of the checks of a patch that is judged again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OtherChecks {
    /// In place of those of the first run, where there are any.
    pub commands: Vec<String>,
    /// Besides those of the first run.
    pub inputs: Vec<PathRule>,
    /// What must turn them red, where somebody says so.
    pub control: Option<ControlSource>,
}

/// Was this runner named because nobody could see it in the commands?
fn was_named(first: &Contract, runner: Runner) -> bool {
    let mut found = first.recognised.iter().flat_map(|known| &known.found);
    first.recognised.is_empty() || found.any(|found| *found == Found::named(runner))
}

/// The task of a contract, to be resolved once more with these checks.
pub fn task_again(first: &Contract, other: OtherChecks) -> CaseFile {
    let same_commands = other.commands.is_empty();
    let control = match (other.control, &first.verification_control) {
        (Some(said), _) => Some(said),
        // A runner that was seen is seen again, and one that was named is not forgotten.
        (None, Control::Runner(runner)) if same_commands && was_named(first, *runner) => {
            Some(ControlSource::Runner(*runner))
        }
        (None, Control::Patch(patch)) => Some(ControlSource::Patch(patch.file.clone())),
        (None, Control::None(why)) if first.label == Label::Case && same_commands => {
            Some(ControlSource::None(why.clone()))
        }
        (None, Control::Runner(_) | Control::None(_)) => None,
    };
    let mut inputs = first.inputs.clone();
    let more = other.inputs.into_iter();
    inputs.extend(more.filter(|input| !first.inputs.contains(input)));
    let of = first.clone();
    CaseFile {
        task_id: of.task_id,
        title: of.title,
        objective: of.objective,
        route: of.route,
        repo_scope: of.repo_scope,
        authority_basis: of.authority_basis,
        risk_class: of.risk_class,
        allowed_paths: of.allowed_paths,
        forbidden_paths: of.forbidden_paths,
        forbidden_actions: of.forbidden_actions,
        mutation_mode: of.mutation_mode,
        approval_required: of.approval_required,
        approval_policy: of.approval_policy,
        verification_commands: match same_commands {
            true => of.verification_commands,
            false => other.commands,
        },
        verification_control: control,
        no_test_rationale: of.no_test_rationale,
        // Of the reasons, which are said again as they are.
        tests_may_change: Vec::new(),
        // Nobody is told anything; the contract keeps what the first was.
        instructions: None,
        hidden_commands: of.hidden_verification.commands,
        toolchains: of.toolchains,
        inputs,
        setup: of.setup,
        evidence_expectations: of.evidence_expectations,
        success_criteria: of.success_criteria,
        rollback: of.rollback,
        limits: of.limits,
    }
}

#[cfg(test)]
#[path = "again_tests.rs"]
mod tests;
