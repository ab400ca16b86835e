//! `case.toml`: a task template as a person writes it, parsed once, every error with its place.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::task::contract::{Action, Limits, MutationMode, RiskClass, Runner};
use crate::task::tests_may_change::TestChange;
pub use crate::task::typed::TypedTask;
use crate::values::event_type::EventType;
use crate::values::ids::CaseId;
use crate::values::paths::{PathProblem, PathRule};

/// One thing wrong with a case file, where a person can find it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContractIssue {
    pub file: String,
    /// 1-based.
    pub line: u64,
    /// 1-based, in characters.
    pub column: u64,
    pub message: String,
}

impl std::fmt::Display for ContractIssue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.message
        )
    }
}

/// How a case asks for its must-fail control.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ControlSource {
    /// The harness adds failing tests for this runner.
    Runner(Runner),
    /// A patch beside the case file that must turn the commands red.
    Patch(String),
    /// No control, and why.
    None(String),
}

/// A case after every check on its text.
#[derive(Clone, Debug)]
pub struct CaseFile {
    pub task_id: CaseId,
    pub title: String,
    pub objective: String,
    pub route: String,
    pub repo_scope: String,
    pub authority_basis: String,
    pub risk_class: RiskClass,
    pub allowed_paths: Vec<PathRule>,
    pub forbidden_paths: Vec<PathRule>,
    pub forbidden_actions: BTreeSet<Action>,
    pub mutation_mode: MutationMode,
    pub approval_required: bool,
    pub approval_policy: String,
    pub verification_commands: Vec<String>,
    pub verification_control: Option<ControlSource>,
    pub no_test_rationale: Option<String>,
    pub tests_may_change: Vec<TestChange>,
    /// A file beside the case file.
    pub instructions: Option<String>,
    pub hidden_commands: Vec<String>,
    pub toolchains: Vec<String>,
    pub inputs: Vec<PathRule>,
    pub setup: Vec<String>,
    pub evidence_expectations: Vec<EventType>,
    pub success_criteria: Vec<String>,
    pub rollback: String,
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema_version: Spanned<u32>,
    task_id: Spanned<String>,
    title: Spanned<String>,
    objective: Spanned<String>,
    #[serde(default = "default_route")]
    route: String,
    #[serde(default = "default_repo_scope")]
    repo_scope: String,
    #[serde(default = "default_authority")]
    authority_basis: String,
    risk_class: RiskClass,
    allowed_paths: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    forbidden_paths: Vec<Spanned<String>>,
    forbidden_actions: Spanned<Vec<Action>>,
    mutation_mode: MutationMode,
    #[serde(default)]
    approval_required: bool,
    #[serde(default = "default_approval_policy")]
    approval_policy: String,
    #[serde(default)]
    verification_commands: Vec<Spanned<String>>,
    verification_control: Option<Spanned<ControlSource>>,
    no_test_rationale: Option<Spanned<String>>,
    #[serde(default)]
    tests_may_change: Vec<Spanned<String>>,
    instructions: Option<Spanned<String>>,
    #[serde(default)]
    hidden_verification: Vec<Spanned<String>>,
    #[serde(default)]
    toolchains: Vec<Spanned<String>>,
    #[serde(default)]
    inputs: Vec<Spanned<String>>,
    #[serde(default)]
    setup: Vec<Spanned<String>>,
    #[serde(default)]
    evidence_expectations: Vec<Spanned<EventType>>,
    success_criteria: Vec<String>,
    rollback: String,
    limits: Option<Spanned<Limits>>,
}

fn default_route() -> String {
    "cto-harness".into()
}
fn default_repo_scope() -> String {
    "artificial fixture".into()
}
fn default_authority() -> String {
    "task contract".into()
}
fn default_approval_policy() -> String {
    "not required for a copied fixture".into()
}

/// Parses and checks a case file. On failure all issues that were found are returned, never none.
pub fn parse_case(file: &str, bytes: &[u8]) -> Result<CaseFile, Vec<ContractIssue>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = &bytes[..error.valid_up_to()];
        let place = place(&String::from_utf8_lossy(good), good.len());
        vec![issue(file, place, "is not UTF-8 from here on".into())]
    })?;
    let raw: Raw = toml::from_str(text).map_err(|error| {
        let (line, column, message) = toml_problem(text, &error);
        vec![issue(file, (line, column), message)]
    })?;
    Check::new(file, text).all(raw)
}

/// Checks a typed task by the rules of a case file. Every issue is at the beginning: there is no
/// text to point into.
pub fn check_typed(name: &str, task: &TypedTask) -> Result<CaseFile, Vec<ContractIssue>> {
    fn word<T>(value: T) -> Spanned<T> {
        Spanned::new(0..0, value)
    }
    let words = |list: &[String]| list.iter().cloned().map(word).collect::<Vec<_>>();
    let raw = Raw {
        schema_version: word(1),
        task_id: word(task.task_id.to_string()),
        title: word(task.title.clone()),
        objective: word(task.objective.clone()),
        route: default_route(),
        repo_scope: "private copy of the operator's repository".into(),
        authority_basis: "typed by the operator".into(),
        risk_class: RiskClass::Low,
        allowed_paths: word(words(&task.allowed_paths)),
        forbidden_paths: words(&task.forbidden_paths),
        forbidden_actions: word(Action::ALL.to_vec()),
        mutation_mode: MutationMode::CopiedRepo,
        approval_required: false,
        approval_policy: "not required for a private copy".into(),
        verification_commands: words(&task.verification_commands),
        verification_control: task.verification_control.clone().map(word),
        no_test_rationale: None,
        tests_may_change: Vec::new(),
        instructions: None,
        hidden_verification: Vec::new(),
        toolchains: Vec::new(),
        inputs: words(&task.inputs),
        setup: words(&task.setup),
        evidence_expectations: Vec::new(),
        success_criteria: vec!["the test commands are green in a pristine copy".into()],
        rollback: "the copy is thrown away".into(),
        limits: None,
    };
    Check::new(name, "").all(raw)
}

/// Line and column of a TOML error, both from 1, the column in characters; and the parser's
/// message, cut short, because it may quote one very long line.
pub fn toml_problem(text: &str, error: &toml::de::Error) -> (u64, u64, String) {
    const LONGEST: usize = 300;
    let (line, column) = place(text, error.span().map_or(0, |span| span.start));
    let mut message: String = error.message().chars().take(LONGEST).collect();
    if message.len() < error.message().len() {
        message.push('…');
    }
    (line, column, message)
}

/// Line and column of an offset, both from 1.
pub(crate) fn place(text: &str, offset: usize) -> (u64, u64) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |tail| tail.chars().count()) as u64
        + 1;
    (line, column)
}

fn issue(file: &str, (line, column): (u64, u64), message: String) -> ContractIssue {
    ContractIssue {
        file: file.to_owned(),
        line,
        column,
        message,
    }
}

struct Check<'a> {
    file: &'a str,
    text: &'a str,
    issues: Vec<ContractIssue>,
}

impl<'a> Check<'a> {
    fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            text,
            issues: Vec::new(),
        }
    }

    fn all(mut self, raw: Raw) -> Result<CaseFile, Vec<ContractIssue>> {
        match (self.case(raw), self.issues.is_empty()) {
            (Some(case), true) => Ok(case),
            (_, _) => Err(self.issues),
        }
    }

    fn wrong<T>(&mut self, at: &Spanned<T>, message: String) {
        let place = place(self.text, at.span().start);
        self.issues.push(issue(self.file, place, message));
    }

    fn case(&mut self, raw: Raw) -> Option<CaseFile> {
        let task_id = self.head(&raw);
        let allowed_paths = self.rules("allowed_paths", raw.allowed_paths.get_ref(), true);
        let forbidden_paths = self.rules("forbidden_paths", &raw.forbidden_paths, false);
        let inputs = self.rules("inputs", &raw.inputs, true);
        self.contradictions(&raw);
        let verification_commands =
            self.commands("verification_commands", &raw.verification_commands);
        let hidden_commands = self.commands("hidden_verification", &raw.hidden_verification);
        let setup = self.commands("setup", &raw.setup);
        self.rationale(&raw);
        self.control(&raw);
        self.surroundings(&raw);
        let tests_may_change = self.tests_may_change(&raw);
        Some(CaseFile {
            task_id: task_id?,
            title: raw.title.into_inner(),
            objective: raw.objective.into_inner(),
            route: raw.route,
            repo_scope: raw.repo_scope,
            authority_basis: raw.authority_basis,
            risk_class: raw.risk_class,
            allowed_paths,
            forbidden_paths,
            forbidden_actions: raw.forbidden_actions.into_inner().into_iter().collect(),
            mutation_mode: raw.mutation_mode,
            approval_required: raw.approval_required,
            approval_policy: raw.approval_policy,
            verification_commands,
            verification_control: raw.verification_control.map(Spanned::into_inner),
            no_test_rationale: raw.no_test_rationale.map(Spanned::into_inner),
            tests_may_change,
            instructions: raw.instructions.map(Spanned::into_inner),
            hidden_commands,
            toolchains: raw
                .toolchains
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            inputs,
            setup,
            evidence_expectations: raw
                .evidence_expectations
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            success_criteria: raw.success_criteria,
            rollback: raw.rollback,
            limits: raw.limits.map(Spanned::into_inner).unwrap_or_default(),
        })
    }

    /// Version, name and words.
    fn head(&mut self, raw: &Raw) -> Option<CaseId> {
        let version = raw.schema_version.get_ref();
        if *version != 1 {
            self.wrong(
                &raw.schema_version,
                format!("schema_version {version} is not known; this version reads 1"),
            );
        }
        for (name, value) in [("title", &raw.title), ("objective", &raw.objective)] {
            if value.get_ref().trim().is_empty() {
                self.wrong(value, format!("{name} is empty"));
            }
        }
        let task_id = raw.task_id.get_ref().parse::<CaseId>();
        task_id
            .map_err(|error| self.wrong(&raw.task_id, error.to_string()))
            .ok()
    }

    /// Lists that may not be empty, and paths that are in both.
    fn contradictions(&mut self, raw: &Raw) {
        if raw.allowed_paths.get_ref().is_empty() {
            self.wrong(
                &raw.allowed_paths,
                "allowed_paths is empty: a task that may change nothing cannot be done".into(),
            );
        }
        if raw.forbidden_actions.get_ref().is_empty() {
            self.wrong(
                &raw.forbidden_actions,
                "forbidden_actions is empty: name at least push, merge and deploy".into(),
            );
        }
        for path in raw.allowed_paths.get_ref() {
            if raw
                .forbidden_paths
                .iter()
                .any(|other| other.get_ref() == path.get_ref())
            {
                self.wrong(
                    path,
                    format!("{:?} is both allowed and forbidden", path.get_ref()),
                );
            }
        }
    }

    /// Events, programs and limits the run depends on.
    fn surroundings(&mut self, raw: &Raw) {
        for expected in raw
            .evidence_expectations
            .iter()
            .filter(|expected| !expected.get_ref().is_engine())
        {
            self.wrong(expected, "evidence_expectations may name engine.* events only; the others are always required".into());
        }
        for tool in raw
            .toolchains
            .iter()
            .filter(|tool| !is_program_name(tool.get_ref()))
        {
            self.wrong(tool, format!("{:?} is not a program name", tool.get_ref()));
        }
        if let Some(limits) = &raw.limits
            && let Some(problem) = limits.get_ref().problem()
        {
            self.wrong(limits, problem);
        }
    }

    fn rules(
        &mut self,
        field: &str,
        paths: &[Spanned<String>],
        protect_git: bool,
    ) -> Vec<PathRule> {
        let mut seen = BTreeSet::new();
        let mut rules = Vec::new();
        for path in paths {
            match path.get_ref().parse::<PathRule>() {
                Err(problem) => {
                    self.wrong(path, format!("{field}: {problem} ({:?})", path.get_ref()))
                }
                Ok(rule) if protect_git && rule.names_git_metadata() => {
                    self.wrong(
                        path,
                        format!(
                            "{field}: {} ({:?})",
                            PathProblem::GitMetadata,
                            path.get_ref()
                        ),
                    );
                }
                Ok(rule) => {
                    // `dir` and `dir/` are one place; `*` are files, `*/` directories.
                    let text = rule.as_str();
                    let key = if text.contains('*') {
                        text
                    } else {
                        text.trim_end_matches('/')
                    };
                    if seen.insert(key.to_owned()) {
                        rules.push(rule);
                    } else {
                        self.wrong(
                            path,
                            format!("{field}: {:?} is listed twice", path.get_ref()),
                        );
                    }
                }
            }
        }
        rules
    }

    fn commands(&mut self, field: &str, commands: &[Spanned<String>]) -> Vec<String> {
        for command in commands {
            let text = command.get_ref();
            if text.trim().is_empty() || text.contains('\0') {
                self.wrong(
                    command,
                    format!("{field}: a command is empty or holds a NUL byte"),
                );
            }
        }
        commands
            .iter()
            .map(|command| command.get_ref().clone())
            .collect()
    }

    fn rationale(&mut self, raw: &Raw) {
        let Some(rationale) = &raw.no_test_rationale else {
            return;
        };
        if rationale.get_ref().trim().is_empty() {
            self.wrong(rationale, "no_test_rationale is empty".into());
        }
        if !raw.verification_commands.is_empty() {
            self.wrong(
                rationale,
                "no_test_rationale stands beside verification_commands; keep one".into(),
            );
        }
    }

    fn tests_may_change(&mut self, raw: &Raw) -> Vec<TestChange> {
        let mut changes = Vec::new();
        for text in &raw.tests_may_change {
            match TestChange::parse(text.get_ref()) {
                Ok(change) => changes.push(change),
                Err(what) => self.wrong(text, format!("tests_may_change: {what}")),
            }
        }
        changes
    }

    fn control(&mut self, raw: &Raw) {
        let Some(control) = &raw.verification_control else {
            return;
        };
        match control.get_ref() {
            ControlSource::Runner(_) => {}
            ControlSource::None(reason) if reason.trim().is_empty() => {
                self.wrong(
                    control,
                    "verification_control: `none` needs a reason".into(),
                );
            }
            ControlSource::None(_) => {}
            ControlSource::Patch(file) => {
                let plain = file
                    .parse::<PathRule>()
                    .is_ok_and(|rule| !rule.as_str().contains(['*', '/']));
                if !plain {
                    self.wrong(
                        control,
                        format!(
                            "verification_control: {file:?} is not a file name beside the case file"
                        ),
                    );
                }
            }
        }
    }
}

fn is_program_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"schema_version = 1
task_id = "demo"
title = "Demo"
objective = "Do it"
risk_class = "low"
allowed_paths = ["a.py"]
forbidden_paths = [".env"]
forbidden_actions = ["push"]
mutation_mode = "copied-fixture"
verification_commands = ["true"]
success_criteria = ["works"]
rollback = "discard the copy"
"#;

    fn issues(text: &str) -> Vec<String> {
        parse_case("case.toml", text.as_bytes())
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_good_file_parses_with_defaults() {
        let case = parse_case("case.toml", GOOD.as_bytes()).unwrap();
        assert_eq!(case.task_id.as_str(), "demo");
        assert_eq!(case.route, "cto-harness");
        assert!(case.verification_control.is_none());
    }

    #[test]
    fn every_path_problem_is_named_with_its_place() {
        let bad = GOOD.replace(
            r#"["a.py"]"#,
            "[\"a.py\", \"../x\",\n  \"/etc\", \"\", \"a.py\", \".git/config\", \".env\"]",
        );
        assert_eq!(
            issues(&bad),
            [
                "case.toml:6:26: allowed_paths: the path leaves the repository (`..`) (\"../x\")",
                "case.toml:7:3: allowed_paths: the path is absolute; write it relative to the repository root (\"/etc\")",
                "case.toml:7:11: allowed_paths: the path is empty (\"\")",
                "case.toml:7:15: allowed_paths: \"a.py\" is listed twice",
                "case.toml:7:23: allowed_paths: the path names git metadata (`.git`), which no task may change (\".git/config\")",
                "case.toml:7:38: \".env\" is both allowed and forbidden",
            ]
        );
    }

    #[test]
    fn not_utf8_is_placed() {
        let mut bytes = GOOD.replace("a.py", "é@.py").into_bytes();
        let at = bytes.iter().position(|b| *b == b'@').unwrap();
        bytes[at] = 0xff;
        let found = parse_case("case.toml", &bytes).unwrap_err();
        assert_eq!(
            found[0].to_string(),
            "case.toml:6:20: is not UTF-8 from here on"
        );
    }

    #[test]
    fn other_refusals() {
        for (from, to, want) in [
            ("schema_version = 1", "schema_version = 2", "is not known"),
            ("\"demo\"", "\"De mo\"", "is not a case id"),
            ("\"Do it\"", "\" \"", "objective is empty"),
            ("[\"a.py\"]", "[]", "allowed_paths is empty"),
            ("[\"push\"]", "[]", "forbidden_actions is empty"),
            ("[\"push\"]", "[\"dance\"]", "unknown variant"),
            ("[\"true\"]", "[\" \"]", "a command is empty"),
            ("rollback", "rolback", "unknown field"),
            ("risk_class = \"low\"\n", "", "missing field"),
            ("title = ", "title == ", ""),
            (
                "rollback =",
                "no_test_rationale = \"x\"\nrollback =",
                "keep one",
            ),
            (
                "rollback =",
                "verification_control = {none = \"\"}\nrollback =",
                "needs a reason",
            ),
            (
                "rollback =",
                "verification_control = {patch = \"../p\"}\nrollback =",
                "not a file name",
            ),
            (
                "rollback =",
                "verification_control = {runner = \"make\"}\nrollback =",
                "unknown variant",
            ),
            (
                "rollback =",
                "toolchains = [\"../python\"]\nrollback =",
                "not a program name",
            ),
            (
                "rollback =",
                "evidence_expectations = [\"run.started\"]\nrollback =",
                "engine.* events only",
            ),
            (
                "rollback =",
                "limits = {engine_wall_seconds = 0}\nrollback =",
                "engine_wall_seconds",
            ),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from}");
            let found = issues(&text).join("\n");
            assert!(found.contains(want), "{to}: {found}");
        }
    }

    #[test]
    fn a_message_never_quotes_a_whole_file() {
        let found = issues(&format!("{GOOD}{} = 1\n", "x".repeat(100_000)));
        assert!(
            found[0].len() < 400 && found[0].contains("13:1") && found[0].ends_with('…'),
            "{}",
            found[0].len()
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_case_or_an_issue(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Err(found) = parse_case("c", &bytes) {
                prop_assert!(!found.is_empty());
            }
        }

        #[test]
        fn one_changed_byte_never_panics(at in 0usize..330, byte in any::<u8>()) {
            let mut bytes = GOOD.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Err(found) = parse_case("c", &bytes) {
                prop_assert!(!found.is_empty());
            }
        }
    }
}
