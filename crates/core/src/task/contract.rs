//! The contract: what was asked, fully resolved. Its bytes and two digests are in `document.rs`.
//!
//! `contract.json` is the RFC 8785 form of [`Contract`], so `sha256sum contract.json` *is* the
//! contract digest. The task digest is the same without `lane`: equal for every engine.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::case_file::{CaseFile, ControlSource};
pub use crate::task::document::{ContractDocument, InvalidContract, SealedContract};
pub use crate::task::lane::{Lane, ModelPair};
pub use crate::task::limits::{LimitChanges, Limits};
pub use crate::task::reasons::Reasons;
pub use crate::task::runner::{Recognised, Runner};
use crate::task::source::Source;
use crate::task::source::branch_policy::BranchPolicy;
pub use crate::task::stage::{MutationMode, Stage};
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::ids::CaseId;
use crate::values::maybe_known::MaybeKnown;
use crate::values::paths::PathRule;
use crate::workspace::tree::Tree;

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RiskClass {
    Low,
    Medium,
    High,
}

/// Actions a contract forbids. There is no way to permit one of [`Action::ALWAYS`].
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Push,
    Merge,
    Deploy,
    Close,
    PrOpen,
    IssueClose,
    PublicPublication,
    CredentialChange,
    VendorSourceMutation,
    CortexCoreMutation,
}

impl Action {
    pub const ALL: [Self; 10] = [
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::Close,
        Self::PrOpen,
        Self::IssueClose,
        Self::PublicPublication,
        Self::CredentialChange,
        Self::VendorSourceMutation,
        Self::CortexCoreMutation,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Merge => "merge",
            Self::Deploy => "deploy",
            Self::Close => "close",
            Self::PrOpen => "pr_open",
            Self::IssueClose => "issue_close",
            Self::PublicPublication => "public_publication",
            Self::CredentialChange => "credential_change",
            Self::VendorSourceMutation => "vendor_source_mutation",
            Self::CortexCoreMutation => "cortex_core_mutation",
        }
    }

    /// Forbidden whether or not the contract says so.
    pub const ALWAYS: [Self; 4] = [
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::PublicPublication,
    ];

    /// What others would see of a run on a forge. A contract that is made now names all of it, whatever its case says;
    /// contracts of before are judged by what they name.
    pub const OUTWARD: [Self; 7] = [
        Self::Push,
        Self::Merge,
        Self::Deploy,
        Self::PublicPublication,
        Self::PrOpen,
        Self::Close,
        Self::IssueClose,
    ];
}

/// The must-fail control: proof that the verification could have been red.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    Runner(Runner),
    Patch(ControlPatch),
    None(String),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ControlPatch {
    pub file: String,
    pub sha256: Digest,
}

/// Checks the engine never sees: only their commands and the digests of their files are in the
/// contract.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HiddenVerification {
    pub commands: Vec<String>,
    pub files: BTreeMap<String, Digest>,
}

/// What kind of task this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// A case: a template that others can run too.
    #[default]
    Case,
    /// An operator's own words on an operator's own repository. It proves no stage.
    Try,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Contract {
    pub schema_version: u32,
    #[serde(default)]
    pub label: Label,
    pub case_id: CaseId,
    pub task_id: CaseId,
    pub title: String,
    pub objective: String,
    /// What the engine is told beside the task, by digest; the bundle holds the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_sha256: Option<Digest>,
    pub route: String,
    pub repo_scope: String,
    /// The directory of the repository that may be changed; `none` where there is none, or nobody looked at it yet.
    pub target_repository: String,
    pub authority_basis: String,
    pub risk_class: RiskClass,
    pub allowed_paths: Vec<PathRule>,
    pub forbidden_paths: Vec<PathRule>,
    pub forbidden_actions: BTreeSet<Action>,
    pub mutation_mode: MutationMode,
    pub approval_required: bool,
    pub approval_policy: String,
    pub verification_commands: Vec<String>,
    pub verification_control: Control,
    /// What the commands were recognised to use on the baseline, in their order; absent where no runner is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognised: Vec<Recognised>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_test_rationale: Option<String>,
    /// What was said ahead about how far green checks must be believed.
    #[serde(flatten)]
    pub reasons: Reasons,
    /// The verification commands may trace their own processes; nothing else of the run may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trace: bool,
    pub hidden_verification: HiddenVerification,
    pub toolchains: Vec<String>,
    pub inputs: Vec<PathRule>,
    pub setup: Vec<String>,
    pub evidence_expectations: Vec<EventType>,
    pub success_criteria: Vec<String>,
    pub rollback: String,
    pub limits: Limits,
    /// Variables every process of the run sees beside those a jail has of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Digest of the starting tree: paths, modes and contents.
    pub start_tree: MaybeKnown<Digest>,
    /// The repository the starting tree is copied from; absent where the case brings its own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What holds for the branches of a disposable repository; absent where none is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_policy: Option<BranchPolicy>,
    pub lane: Lane,
}

/// What a run adds to the text of a case.
#[derive(Clone, Debug)]
pub struct Circumstances {
    pub label: Label,
    pub lane: Lane,
    pub start_tree: MaybeKnown<Digest>,
    pub source: Option<Source>,
    pub hidden_files: BTreeMap<String, Digest>,
    /// Digest of what the engine is told beside the task.
    pub instructions: Option<Digest>,
    /// Digest of the control patch, when the case names one.
    pub control_patch: Option<Digest>,
    pub limits: LimitChanges,
    pub variables: BTreeMap<String, String>,
    /// Visible checks may trace.
    pub trace: bool,
    pub reasons: Reasons,
    /// What the admission of the repository that may be changed forbids, whatever the case says.
    pub also_forbidden: Forbidden,
}

/// Paths and actions that are forbidden beside those of a case.
#[derive(Clone, Debug, Default)]
pub struct Forbidden {
    pub paths: Vec<PathRule>,
    pub actions: BTreeSet<Action>,
}

/// Joins a checked case with its circumstances. It cannot fail: every error was found earlier.
pub fn resolve_contract(case: CaseFile, with: Circumstances) -> Contract {
    let control = control(&case, with.control_patch);
    let mut reasons = with.reasons.beside(case.verification_control.as_ref());
    reasons.tests_may_change.extend(case.tests_may_change);
    let mut forbidden_actions = case.forbidden_actions;
    forbidden_actions.extend(Action::OUTWARD);
    forbidden_actions.extend(with.also_forbidden.actions);
    let mut forbidden_paths = case.forbidden_paths;
    for rule in with.also_forbidden.paths {
        if !forbidden_paths.contains(&rule) {
            forbidden_paths.push(rule);
        }
    }
    let limits = with.limits.of(case.limits);
    // A case is a template for every stage: where it leaves its own files, the stage says what may be
    // changed. What is wider than the stage stays what it is, and a gate refuses it.
    let stage = with.lane.stage;
    let by_stage = with.label == Label::Case && stage >= Stage::Three;
    let mutation_mode = match by_stage {
        true => case.mutation_mode.max(stage.mutation_mode()),
        false => case.mutation_mode,
    };
    Contract {
        schema_version: 1,
        label: with.label,
        case_id: case.task_id.clone(),
        task_id: case.task_id,
        title: case.title,
        objective: case.objective,
        instructions_sha256: with.instructions,
        route: case.route,
        repo_scope: case.repo_scope,
        target_repository: "none".into(),
        authority_basis: case.authority_basis,
        risk_class: case.risk_class,
        allowed_paths: case.allowed_paths,
        forbidden_paths,
        forbidden_actions,
        mutation_mode,
        approval_required: case.approval_required || (by_stage && stage.needs_approval()),
        approval_policy: case.approval_policy,
        verification_commands: case.verification_commands,
        verification_control: control,
        recognised: Vec::new(),
        no_test_rationale: case.no_test_rationale,
        reasons,
        trace: with.trace,
        hidden_verification: HiddenVerification {
            commands: case.hidden_commands,
            files: with.hidden_files,
        },
        toolchains: case.toolchains,
        inputs: case.inputs,
        setup: case.setup,
        evidence_expectations: case.evidence_expectations,
        success_criteria: case.success_criteria,
        rollback: case.rollback,
        limits,
        variables: with.variables,
        start_tree: with.start_tree,
        source: with.source,
        branch_policy: makes_repository(with.label, stage).then(BranchPolicy::disposable),
        lane: with.lane,
    }
}

/// At stage 4 a case is worked on in a repository that the harness makes and throws away.
fn makes_repository(label: Label, stage: Stage) -> bool {
    label == Label::Case && stage == Stage::Four
}

fn control(case: &CaseFile, patch: Option<Digest>) -> Control {
    match (&case.verification_control, patch) {
        (Some(ControlSource::Runner(runner)), _) => Control::Runner(*runner),
        (Some(ControlSource::Patch(file)), Some(sha256)) => Control::Patch(ControlPatch {
            file: file.clone(),
            sha256,
        }),
        (Some(ControlSource::Patch(file)), None) => {
            Control::None(format!("the control patch {file} was not found"))
        }
        (Some(ControlSource::None(reason)), _) => Control::None(reason.clone()),
        (None, _) => case
            .verification_commands
            .first()
            .and_then(|command| Runner::of_plain(command))
            .map_or_else(
                || Control::None("no control is known for this command".into()),
                Control::Runner,
            ),
    }
}

impl Contract {
    /// People write `src` for a directory; once the starting tree is known, such a rule says what
    /// they meant.
    pub fn name_directories(&mut self, start: &Tree) {
        let is_directory = |rule: &PathRule| {
            let below = format!("{}/", rule.as_str());
            start
                .keys()
                .any(|path| path.as_bytes().starts_with(below.as_bytes()))
        };
        for rule in self
            .allowed_paths
            .iter_mut()
            .chain(&mut self.forbidden_paths)
        {
            if is_directory(rule)
                && let Ok(subtree) = format!("{}/", rule.as_str()).parse()
            {
                *rule = subtree;
            }
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::task::case_file::{self, ContractIssue};
    use crate::task::document::task_digest;
    use crate::task::program::{BoundProgram, ProgramPlace};
    use crate::values::json;

    pub const CASE: &str = r#"schema_version = 1
task_id = "demo"
title = "Demo"
objective = "Do it"
risk_class = "low"
allowed_paths = ["a.py", "src/"]
forbidden_paths = ["src/keep.py"]
forbidden_actions = ["close"]
mutation_mode = "copied-fixture"
verification_commands = ["python3 -m unittest -v"]
success_criteria = ["works"]
rollback = "discard the copy"
"#;

    /// A resolved contract for tests of the rooms that judge by one.
    pub fn sample() -> Contract {
        let case = case_file::parse_case("case.toml", CASE.as_bytes()).unwrap();
        resolve_contract(case, circumstances("fake"))
    }

    fn circumstances(engine: &str) -> Circumstances {
        Circumstances {
            lane: Lane {
                engine: engine.parse().unwrap(),
                executable_sha256: MaybeKnown::Known(Digest::of(b"exe")),
                interpreter_sha256: None,
                packages_sha256: None,
                manifest_sha256: None,
                model: None,
                stage: Stage::Two,
                target_head: MaybeKnown::Known("none".into()),
                target_branch: None,
                target_admission_sha256: None,
                script_sha256: None,
                terminal_event: EventType::EngineResult,
                required_events: Vec::new(),
                source_pin: None,
                containment: None,
                repository: None,
                toolchains: Vec::new(),
                programs: Vec::new(),
            },
            label: Label::Case,
            start_tree: MaybeKnown::Known(Digest::of(b"tree")),
            source: None,
            hidden_files: BTreeMap::new(),
            instructions: None,
            control_patch: None,
            limits: LimitChanges::default(),
            variables: BTreeMap::new(),
            trace: false,
            reasons: Reasons::default(),
            also_forbidden: Forbidden::default(),
        }
    }

    #[test]
    fn digests_are_what_a_stranger_computes() {
        let document = ContractDocument::Valid(Box::new(sample()));
        let sealed = document.seal().unwrap();
        assert_eq!(Digest::of(&sealed.bytes), sealed.contract_digest);
        assert_ne!(sealed.task_digest, sealed.contract_digest);
        let (read, again) = ContractDocument::read(&sealed.bytes).unwrap();
        assert_eq!((read, again), (document, sealed));
    }

    #[test]
    fn the_engine_changes_only_the_contract_digest() {
        let case = case_file::parse_case("case.toml", CASE.as_bytes()).unwrap();
        let digests = |engine: &str| {
            let contract = resolve_contract(case.clone(), circumstances(engine));
            let sealed = ContractDocument::Valid(Box::new(contract)).seal().unwrap();
            (sealed.task_digest, sealed.contract_digest)
        };
        let (fake, pi) = (digests("fake"), digests("pi"));
        assert_eq!(fake.0, pi.0);
        assert_ne!(fake.1, pi.1);
    }

    #[test]
    fn another_program_is_another_contract_for_the_same_task() {
        let digests = |bytes: Option<&[u8]>| {
            let mut contract = sample();
            contract.lane.programs = bytes
                .map(|bytes| BoundProgram {
                    name: "python3".into(),
                    place: ProgramPlace::System,
                    version: None,
                    sha256: Digest::of(bytes),
                })
                .into_iter()
                .collect();
            let sealed = ContractDocument::Valid(Box::new(contract)).seal().unwrap();
            (sealed.task_digest, sealed.contract_digest)
        };
        let all = [None, Some(&b"one"[..]), Some(&b"other"[..])].map(digests);
        assert!(all.iter().all(|digests| digests.0 == all[0].0));
        assert!(all[0].1 != all[1].1 && all[1].1 != all[2].1);
    }

    #[test]
    fn instructions_are_part_of_the_task_and_absent_where_there_are_none() {
        let digests = |text: Option<&[u8]>| {
            let mut contract = sample();
            contract.instructions_sha256 = text.map(Digest::of);
            let sealed = ContractDocument::Valid(Box::new(contract)).seal().unwrap();
            let named = String::from_utf8(sealed.bytes)
                .unwrap()
                .contains("instructions");
            (sealed.task_digest, named)
        };
        let all = [None, Some(&b"one"[..]), Some(&b"other"[..])].map(digests);
        assert_eq!(all.map(|(_, named)| named), [false, true, true]);
        assert!(all[0].0 != all[1].0 && all[1].0 != all[2].0);
    }

    #[test]
    fn every_task_field_changes_the_task_digest() {
        let base = ContractDocument::Valid(Box::new(sample())).seal().unwrap();
        let value = json::parse_strict(&base.bytes).unwrap();
        for key in value
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "lane")
        {
            let mut changed = value.clone();
            changed[key] = serde_json::Value::Null;
            assert_ne!(
                task_digest(&json::canonical(&changed).unwrap()).unwrap(),
                base.task_digest,
                "{key}"
            );
        }
    }

    #[test]
    fn a_directory_of_the_start_is_meant_with_all_below_it() {
        use crate::workspace::tree::{Entry, FileKind};
        let entry = Entry {
            kind: FileKind::Regular,
            bytes: 0,
            sha256: Digest::of(b""),
        };
        let start = ["src/a.py", "srcs", "docs/x/y"]
            .map(|path| (crate::values::paths::TreePath::new(path), entry));
        let mut contract = sample();
        contract.allowed_paths = ["src", "srcs", "docs/x", "new", "doc"]
            .map(|rule| rule.parse().unwrap())
            .to_vec();
        contract.forbidden_paths = vec!["docs".parse().unwrap()];
        contract.name_directories(&start.into_iter().collect());
        let rules: Vec<&str> = contract
            .allowed_paths
            .iter()
            .map(PathRule::as_str)
            .collect();
        assert_eq!(rules, ["src/", "srcs", "docs/x/", "new", "doc"]);
        assert_eq!(contract.forbidden_paths[0].as_str(), "docs/");
    }

    #[test]
    fn mandatory_actions_cannot_be_left_out() {
        let contract = sample();
        for action in Action::ALWAYS.into_iter().chain(Action::OUTWARD) {
            assert!(contract.forbidden_actions.contains(&action), "{action:?}");
        }
    }

    #[test]
    fn runners_are_inferred_only_where_obvious() {
        for (command, want) in [
            ("python3 -m unittest", Some(Runner::Unittest)),
            ("pytest -q", Some(Runner::Pytest)),
            ("python3 -m pytest", Some(Runner::Pytest)),
            ("cargo test --offline", Some(Runner::Cargo)),
            ("node --test", Some(Runner::Node)),
            ("grep -q x y", None),
            ("make test", None),
        ] {
            assert_eq!(Runner::of_plain(command), want, "{command}");
        }
        assert_eq!(
            sample().verification_control,
            Control::Runner(Runner::Unittest)
        );
    }

    #[test]
    fn an_invalid_contract_has_one_digest() {
        let invalid = ContractDocument::Invalid(InvalidContract {
            invalid: true,
            errors: vec![ContractIssue {
                file: "c".into(),
                line: 1,
                column: 1,
                message: "m".into(),
            }],
        });
        let sealed = invalid.seal().unwrap();
        assert_eq!(sealed.task_digest, sealed.contract_digest);
        assert_eq!(ContractDocument::read(&sealed.bytes).unwrap().0, invalid);
    }

    #[test]
    fn stages_and_modes_agree() {
        for number in 1..=6u8 {
            assert_eq!(Stage::try_from(number).map(Stage::number), Ok(number));
        }
        assert!(Stage::try_from(0).is_err() && Stage::try_from(7).is_err());
        assert_eq!(MutationMode::CopiedFixture.stage(), Stage::Two);
        for stage in (1..=6u8).map(|number| Stage::try_from(number).unwrap()) {
            assert_eq!(stage.mutation_mode().stage(), stage);
            assert_eq!(stage.needs_approval(), stage.number() >= 4);
        }
    }

    #[test]
    fn the_stage_says_what_a_case_may_change_and_who_must_agree() {
        use MutationMode::{CopiedFixture, CopiedRepo, OwnedNoncriticalRepo, SandboxRepo};
        let at = |stage: Stage, label: Label, mode: &str| {
            let text = CASE.replace("copied-fixture", mode);
            let case = case_file::parse_case("case.toml", text.as_bytes()).unwrap();
            let mut with = circumstances("fake");
            (with.lane.stage, with.label) = (stage, label);
            let contract = resolve_contract(case, with);
            (contract.mutation_mode, contract.approval_required)
        };
        for (stage, want) in [
            (Stage::One, (CopiedFixture, false)),
            (Stage::Two, (CopiedFixture, false)),
            (Stage::Three, (CopiedRepo, false)),
            (Stage::Four, (SandboxRepo, true)),
            (Stage::Five, (OwnedNoncriticalRepo, true)),
        ] {
            assert_eq!(at(stage, Label::Case, "copied-fixture"), want, "{stage:?}");
        }
        let wider = at(Stage::Three, Label::Case, "sandbox-repo");
        assert_eq!(wider, (SandboxRepo, false), "never narrowed");
        let tried = at(Stage::Three, Label::Try, "copied-repo");
        assert_eq!(tried, (CopiedRepo, false));
    }
}
