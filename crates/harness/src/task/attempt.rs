//! What `cto try` asks: somebody's own words on a private copy of their own repository, made into a
//! case and a source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cto_core::records::secret_variable;
use cto_core::task::case_file::{ControlSource, TypedTask};
use cto_core::task::contract::{Reasons, Runner};
use cto_core::task::source::{SourceClass, SourceRecord};
use cto_core::task::tests_may_change::TestChange;
use cto_core::values::ids::CaseId;
use cto_core::values::paths::{PathRule, TreePath};

use crate::host::Env;
use crate::host::failure::Failure;
use crate::host::files;
use crate::task::cases::{Case, TaskText};
use crate::task::request::{EnvironmentChoice, SourceRequest};
use crate::task::typed_patch;

/// The name of the control patch beside the task.
pub const CONTROL: &str = "control.patch";

/// A task in somebody's words. Nothing of it has been looked at.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    pub repo: PathBuf,
    /// Its top, where that is known: inputs lie below it.
    pub top: Option<PathBuf>,
    pub task: String,
    /// Paths relative to the repository's top; `.` is all of it.
    pub allow: Vec<String>,
    pub forbid: Vec<String>,
    /// Commands that verify the result.
    pub test: Vec<String>,
    /// Copy the last commit although there are uncommitted changes.
    pub from_head: bool,
    pub setup: Vec<String>,
    /// Ignored directories that come along.
    pub input: Vec<String>,
    /// Environments that do not, and whether none does but those that are named.
    pub no_input: Vec<String>,
    pub no_env: bool,
    /// A patch that must turn the test red.
    pub control: Option<PathBuf>,
    /// The runner its tests use.
    pub runner: Option<Runner>,
    /// Variables the run sees: `NAME=VALUE`, or `NAME` for the operator's own value.
    pub env: Vec<String>,
    /// Its tests may trace their own processes.
    pub trace: bool,
    /// Its baseline is run although it may be known.
    pub fresh_baseline: bool,
    /// Why checks of which nothing shows that they can fail are enough.
    pub accept_unproven: Option<String>,
    /// Why no check has to load the change.
    pub unchecked: Option<String>,
    /// Less than proven is not enough.
    pub require_control: bool,
    /// Tests that need not run again: `ID` or `ID=REASON`.
    pub changed_test: Vec<String>,
    /// Every changed file is tried alone.
    pub see_all: bool,
    /// Its tests must be green before the engine starts.
    pub green_start: bool,
}

/// What a jail makes itself of what the operator has.
const MADE: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

impl Attempt {
    /// The source, from the words alone: nothing has been looked at yet.
    pub fn source(&self, env: &Env) -> Result<SourceRequest, Failure> {
        let bad = |error: &dyn std::error::Error| {
            Failure::usage("bad_path", "the repository's path cannot be used")
                .at(self.repo.display().to_string())
                .because(error)
        };
        let path = std::path::absolute(&self.repo).map_err(|error| bad(&error))?;
        let owner = ["USER", "LOGNAME"]
            .iter()
            .find_map(|name| env.get(name)?.to_str().map(str::to_owned));
        let uid = rustix::process::geteuid().as_raw();
        let record = SourceRecord {
            path: None,
            owner: owner.unwrap_or_else(|| format!("uid {uid}")),
            ownership_evidence: "named by the operator in `cto try --repo`".into(),
            class: SourceClass::OwnedLocal,
        };
        Ok(SourceRequest {
            path,
            record,
            from_head: self.from_head,
        })
    }

    /// The variables. They stand in the contract, so none may be a secret.
    pub fn variables(&self, env: &Env) -> Result<BTreeMap<String, String>, Failure> {
        let refused = |code, what: String| Failure::usage(code, what).so("nothing ran");
        let mut told = BTreeMap::new();
        for typed in &self.env {
            let (name, value) = match typed.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (
                    typed.as_str(),
                    env.get(typed).map(|v| v.to_string_lossy().into_owned()),
                ),
            };
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            let digit = name.bytes().next().is_none_or(|b| b.is_ascii_digit());
            if digit || !name.bytes().all(plain) {
                let what = format!("--env {typed:?} is not NAME or NAME=VALUE");
                return Err(refused("bad_variable", what));
            }
            if MADE.contains(&name) {
                let what = format!("{name} is made for each jail and cannot be set");
                let hint = "--toolchain PATH shows programs that are not found";
                return Err(refused("bad_variable", what).hint(hint));
            }
            let Some(value) = value else {
                return Err(refused("no_such_variable", format!("{name} is not set")));
            };
            if let Some(why) = secret_variable(name, &value) {
                let what = format!("the run would be handed a secret: {name} {why}");
                let hint = "what a run sees stands in its bundle; give the test another value";
                return Err(refused("secret_variable", what).hint(hint));
            }
            told.insert(name.to_owned(), value);
        }
        Ok(told)
    }

    /// What is said ahead about how far its tests must be believed. A reason says something.
    pub fn reasons(&self) -> Result<Reasons, Failure> {
        for (flag, reason) in [
            ("--accept-unproven", &self.accept_unproven),
            ("--unchecked", &self.unchecked),
        ] {
            if reason
                .as_ref()
                .is_some_and(|reason| reason.trim().is_empty())
            {
                return Err(
                    Failure::usage("empty_reason", format!("{flag} needs a reason"))
                        .so("nothing ran")
                        .hint(
                            "it stands in the contract and in the verdict; say why this is enough",
                        ),
                );
            }
        }
        let change = |text: &String| {
            TestChange::parse(text).map_err(|what| {
                let what = format!("--changed-test {text:?} {what}");
                Failure::usage("bad_changed_test", what)
                    .so("nothing ran")
                    .hint("write ID or ID=REASON, the id as `cto show` names it; * stands for any letters")
            })
        };
        let changes = self.changed_test.iter().map(change);
        Ok(Reasons {
            tests_may_change: changes.collect::<Result<_, _>>()?,
            accept_unproven: self.accept_unproven.clone(),
            unchecked: self.unchecked.clone(),
            require_control: self.require_control,
            green_start: self.green_start,
        })
    }

    /// Which environments come along.
    pub fn environments(&self) -> Result<EnvironmentChoice, Failure> {
        let path = |typed: &String| {
            let plain = typed.strip_prefix("./").unwrap_or(typed);
            let rule = plain.trim_end_matches('/').parse::<PathRule>();
            rule.map(|rule| TreePath::new(rule.as_str().as_bytes()))
                .map_err(|problem| {
                    Failure::usage("bad_path", format!("--no-input {typed:?}: {problem}"))
                        .so("nothing ran")
                        .hint("paths count from the current directory, or from --repo DIR, and stay in the repository")
                })
        };
        Ok(EnvironmentChoice {
            cold: self.no_env,
            without: self.no_input.iter().map(path).collect::<Result<_, _>>()?,
        })
    }

    /// The task as a case of its own.
    pub fn case(&self) -> Result<Case, Failure> {
        let id = task_id(&self.task)?;
        let first_line = self.task.lines().next().unwrap_or_default();
        let (allowed_paths, forbidden_paths) = (
            rules("--allow", &self.allow)?,
            rules("--forbid", &self.forbid)?,
        );
        let mut beside = BTreeMap::new();
        if let Some(file) = &self.control {
            beside.insert(CONTROL.to_owned(), control_patch(file)?);
        }
        let task = TypedTask {
            task_id: id.clone(),
            title: first_line.chars().take(120).collect(),
            objective: self.task.clone(),
            allowed_paths,
            forbidden_paths,
            verification_commands: self.test.clone(),
            verification_control: match (&self.control, self.runner) {
                (Some(_), _) => Some(ControlSource::Patch(CONTROL.to_owned())),
                (None, Some(runner)) => Some(ControlSource::Runner(runner)),
                (None, None) => None,
            },
            setup: self.setup.clone(),
            inputs: self.input.clone(),
        };
        Ok(Case {
            id,
            built_in: false,
            inputs: Some(self.top.as_ref().unwrap_or(&self.repo).clone()),
            label: "cto try".into(),
            task: TaskText::Typed(Box::new(task)),
            workspace: Vec::new(),
            hidden: Vec::new(),
            scripts: BTreeMap::new(),
            beside,
        })
    }
}

/// A patch that must turn tests red, as git writes one.
pub fn control_patch(file: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = files::read_limited(file, 16 << 20).map_err(|error| {
        Failure::usage("unreadable_control", "the control patch cannot be read")
            .at(file.display().to_string())
            .because(&error)
            .so("nothing ran")
    })?;
    match typed_patch::usual(&bytes) {
        None => Ok(bytes),
        Some(Ok(patch)) => Ok(patch.into_bytes()),
        Some(Err(why)) => Err(
            Failure::usage("bad_control", "the control patch cannot be read")
                .at(file.display().to_string())
                .reason(why)
                .so("nothing ran"),
        ),
    }
}

/// `.` is everything; whether `src` is a file or a directory shows when the source is looked at.
fn rules(flag: &str, typed: &[String]) -> Result<Vec<String>, Failure> {
    let mut rules = Vec::new();
    for path in typed {
        let plain = path
            .strip_prefix("./")
            .unwrap_or(path)
            .trim_end_matches('/');
        if matches!(plain, "" | ".") {
            rules.extend(["*".to_owned(), "*/".to_owned()]);
            continue;
        }
        let checked = plain.parse::<PathRule>().map_err(|problem| {
            Failure::usage("bad_path", format!("{flag} {path:?}: {problem}"))
                .so("nothing ran")
                .hint("paths count from the current directory, or from --repo DIR, and stay in the repository")
        })?;
        let slash = if path.ends_with('/') { "/" } else { "" };
        rules.push(format!("{}{slash}", checked.as_str()));
    }
    // Of `src` and `src/` the wider stays.
    let all = rules.clone();
    rules.retain(|rule| rule.contains('*') || !all.contains(&format!("{rule}/")));
    rules.sort();
    rules.dedup();
    Ok(rules)
}

/// A short name from the first words of the task.
fn task_id(task: &str) -> Result<CaseId, Failure> {
    let empty = || {
        Failure::usage("empty_task", "--task is empty")
            .so("nothing ran")
            .hint("say in a sentence what should change")
    };
    if task.trim().is_empty() {
        return Err(empty());
    }
    let mut slug = String::from("try");
    for word in task
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if slug.len() + 1 + word.len() > 40 {
            break;
        }
        slug = format!("{slug}-{}", word.to_ascii_lowercase());
    }
    slug.parse().map_err(|_| empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_gets_a_short_name() {
        for (task, want) in [
            ("Fix the slugify bug!", "try-fix-the-slugify-bug"),
            ("  ünïcode only é ", "try-n-code-only"),
            ("日本語", "try"),
            (
                "a word that goes on and on and on until it is far too long",
                "try-a-word-that-goes-on-and-on-and-on",
            ),
        ] {
            assert_eq!(task_id(task).unwrap().as_str(), want);
        }
        assert!(task_id(" \n").is_err());
    }

    #[test]
    fn paths_are_what_people_mean() {
        let rules = |typed: &[&str]| {
            rules(
                "--allow",
                &typed.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(rules(&["src"]).unwrap(), ["src"]);
        assert_eq!(rules(&["src", "src/", "src"]).unwrap(), ["src/"]);
        assert_eq!(rules(&["./src/", "src/"]).unwrap(), ["src/"]);
        assert_eq!(rules(&["."]).unwrap(), ["*", "*/"]);
        for bad in ["/etc", "../x", "a//b", "a/./b"] {
            assert!(rules(&[bad]).is_err(), "{bad}");
        }
    }
}
