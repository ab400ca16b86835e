//! What `cto reverify` asks: the patch of an earlier run in the bytes that were verified, and its task with
//! other checks. Nothing here looks at a repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cto_core::task::again::{self, OtherChecks, Reverifies};
use cto_core::task::case_file::ControlSource;
use cto_core::task::contract::{Contract, Control, Label, Runner};
use cto_core::task::source::SourceLook;
use cto_core::values::digest::Digest;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::paths::{PathRule, TreePath};
use cto_core::workspace::tree;

use crate::host::failure::Failure;
use crate::task::attempt::{CONTROL, control_patch};
use crate::task::cases::{Case, TaskText};

/// A run whose bundle was verified, as far as it is used: nothing of it is read a second time.
#[derive(Clone, Debug)]
pub struct First {
    pub reverifies: Reverifies,
    pub contract: Box<Contract>,
    pub patch: Vec<u8>,
    /// Paths the patch changes.
    pub paths: Vec<TreePath>,
}

impl First {
    /// Why a repository is not the one the patch was made on, if it is not.
    pub fn other_commit(&self, look: &SourceLook) -> Option<String> {
        let source = self.contract.source.as_ref()?;
        let short = |id: &str| id.chars().take(10).collect::<String>();
        match &source.head {
            MaybeKnown::Known(head) if *head == look.head => None,
            MaybeKnown::Known(head) => Some(format!(
                "HEAD is {}, and the patch was made on {}",
                short(&look.head),
                short(head)
            )),
            MaybeKnown::NotLookedAt => Some("the run looked at no commit".to_owned()),
        }
    }
}

/// The checks as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedChecks {
    pub test: Vec<String>,
    /// Counted from the top of the repository.
    pub input: Vec<String>,
    pub control: Option<PathBuf>,
    pub runner: Option<Runner>,
}

/// The task of the first run with these checks, as a case. `found` is its case, where it was one of its own;
/// `top` is the repository, where one is copied.
pub fn case(
    first: &Contract,
    typed: &TypedChecks,
    found: Option<Case>,
    top: Option<&Path>,
) -> Result<Case, Failure> {
    if typed.test.iter().any(|command| command.trim().is_empty()) {
        return Err(Failure::usage("empty_test", "--test is empty").so("nothing ran"));
    }
    let mut case = match found {
        Some(found) => same_case(first, found)?,
        None => Case {
            id: first.case_id.clone(),
            built_in: false,
            inputs: top.map(Path::to_owned),
            label: "cto reverify".into(),
            task: TaskText::File(Vec::new()),
            workspace: Vec::new(),
            hidden: Vec::new(),
            scripts: BTreeMap::new(),
            beside: BTreeMap::new(),
        },
    };
    let control = match (&typed.control, typed.runner) {
        (Some(file), _) => {
            case.beside.insert(CONTROL.to_owned(), control_patch(file)?);
            Some(ControlSource::Patch(CONTROL.to_owned()))
        }
        (None, Some(runner)) => Some(ControlSource::Runner(runner)),
        (None, None) => None,
    };
    if control.is_none()
        && let Control::Patch(patch) = &first.verification_control
        && case.beside.get(&patch.file).map(|bytes| Digest::of(bytes)) != Some(patch.sha256)
    {
        let what = "the control of the run was a patch, which is not in its bundle";
        return Err(Failure::usage("control_missing", what)
            .so("nothing ran")
            .hint("name it once more with --control FILE"));
    }
    let other = OtherChecks {
        commands: typed.test.clone(),
        inputs: inputs(&typed.input)?,
        control,
    };
    case.task = TaskText::Again(Box::new(again::task_again(first, other)));
    Ok(case)
}

/// A case that still is what the run had.
fn same_case(first: &Contract, found: Case) -> Result<Case, Failure> {
    let start = MaybeKnown::Known(tree::tree_digest(&found.baseline()));
    let same = first.label == Label::Case
        && found.id == first.case_id
        && start == first.start_tree
        && found.hidden_digests() == first.hidden_verification.files;
    if same {
        return Ok(found);
    }
    let what = "the case has other files now than the run had";
    Err(Failure::blocked("other_case", what)
        .at(found.id.to_string())
        .so("nothing ran")
        .hint("name the case as it was then with --case, or run it again"))
}

fn inputs(typed: &[String]) -> Result<Vec<PathRule>, Failure> {
    let one = |text: &String| {
        let bad = |why: String| {
            Failure::usage("bad_path", format!("--input {text:?}: {why}"))
                .so("nothing ran")
                .hint("name a directory of the repository that git ignores")
        };
        let plain = text.strip_prefix("./").unwrap_or(text);
        let rule = plain.parse::<PathRule>();
        let rule = rule.map_err(|problem| bad(problem.to_string()))?;
        match rule.names_git_metadata() {
            true => Err(bad("it belongs to git".to_owned())),
            false => Ok(rule),
        }
    };
    typed.iter().map(one).collect()
}
