//! Is a case sound? Which files it must have, what its scripts are for, and what a trial run of
//! each must show.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::checks::names::test_files::{self, Names};
use crate::task::case_file::{CaseFile, ContractIssue, ControlSource};
use crate::values::blocker::Code;
use crate::values::event_type::EventType;
use crate::values::paths::{PathStanding, TreePath, path_standing};
use crate::values::verdict::Status;
use crate::workspace::tree::{FileKind, Tree};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    Wrong,
}

/// One line of the answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Line {
    pub check: String,
    pub mark: Mark,
    pub detail: String,
}

impl Line {
    pub fn new(check: &str, mark: Mark, detail: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            mark,
            detail: detail.into(),
        }
    }
}

/// What was found of a case, without running anything.
pub struct CaseFacts<'a> {
    /// The name of its directory.
    pub directory: &'a str,
    pub parsed: Result<&'a CaseFile, &'a [ContractIssue]>,
    pub workspace: &'a Tree,
    pub hidden_files: usize,
    /// Names of scripts, and where they do not parse.
    pub scripts: BTreeMap<&'a str, Option<String>>,
    /// Files that are neither the case file nor in a directory that has a meaning.
    pub beside: Vec<&'a str>,
    /// Inputs the case names and does not have.
    pub missing_inputs: Vec<String>,
}

/// The scripts every case has.
pub const SCRIPTS: [&str; 3] = ["oracle", "nop", "cheat"];

/// Looks a case over.
pub fn look_over(facts: &CaseFacts<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    match facts.parsed {
        Ok(case) => {
            lines.push(Line::new("case file", Mark::Ok, &case.title));
            lines.push(name(facts.directory, case));
            lines.extend(paths(case, facts.workspace));
            lines.push(checks(case));
            lines.extend(control_of(case, &facts.beside));
            lines.push(hidden(case, facts));
            if let [first, ..] = facts.missing_inputs.as_slice() {
                lines.push(Line::new(
                    "inputs",
                    Mark::Wrong,
                    format!("{first:?} is not in inputs/"),
                ));
            }
        }
        Err(issues) => lines.extend(
            issues
                .iter()
                .map(|issue| Line::new("case file", Mark::Wrong, issue.to_string())),
        ),
    }
    lines.extend(scripts(&facts.scripts));
    let control = facts
        .parsed
        .ok()
        .and_then(|case| match &case.verification_control {
            Some(ControlSource::Patch(file)) => Some(file.as_str()),
            _ => None,
        });
    let unknown = facts
        .beside
        .iter()
        .filter(|file| Some(**file) != control && !is_note(file));
    lines.extend(unknown.map(|file| {
        Line::new(
            "files",
            Mark::Wrong,
            format!("{file}: means nothing to a case"),
        )
    }));
    lines
}

/// Words for people may lie beside a case file.
fn is_note(file: &str) -> bool {
    matches!(
        file,
        "README.md" | "README" | "LICENSE" | ".gitignore" | ".gitattributes"
    )
}

fn name(directory: &str, case: &CaseFile) -> Line {
    match case.task_id.as_str() == directory {
        true => Line::new("name", Mark::Ok, directory),
        false => Line::new(
            "name",
            Mark::Wrong,
            format!(
                "task_id is {:?}, the directory {directory:?}",
                case.task_id.as_str()
            ),
        ),
    }
}

fn paths(case: &CaseFile, workspace: &Tree) -> Vec<Line> {
    let mut lines = vec![match workspace.len() {
        0 => Line::new("workspace", Mark::Wrong, "workspace/ holds no file"),
        count => Line::new("workspace", Mark::Ok, format!("{count} file(s)")),
    }];
    for rule in &case.allowed_paths {
        let changeable = workspace
            .keys()
            .any(|path| rule.covers(path) && allowed(case, path));
        if !changeable {
            let detail = format!(
                "{rule} names nothing that is there and may be changed; a new file may go there"
            );
            lines.push(Line::new("allowed paths", Mark::Note, detail));
        }
    }
    lines
}

fn allowed(case: &CaseFile, path: &TreePath) -> bool {
    path_standing(path, &case.allowed_paths, &case.forbidden_paths) == PathStanding::Allowed
}

fn checks(case: &CaseFile) -> Line {
    match case.verification_commands.as_slice() {
        [] => Line::new(
            "checks",
            Mark::Wrong,
            "verification_commands is empty: nothing could be verified",
        ),
        commands => Line::new("checks", Mark::Ok, commands.join(" && ")),
    }
}

fn control_of(case: &CaseFile, beside: &[&str]) -> Option<Line> {
    match &case.verification_control {
        Some(ControlSource::Patch(file)) if !beside.contains(&file.as_str()) => Some(Line::new(
            "control",
            Mark::Wrong,
            format!("there is no file {file:?} beside the case file"),
        )),
        Some(ControlSource::None(reason)) => {
            Some(Line::new("control", Mark::Note, format!("none: {reason}")))
        }
        _ => None,
    }
}

/// Where an engine may edit the visible tests, only checks it never sees keep it honest.
fn hidden(case: &CaseFile, facts: &CaseFacts<'_>) -> Line {
    let editable = facts
        .workspace
        .keys()
        .find(|path| test_files::is_test_file(Names::Broad, path) && allowed(case, path));
    match (case.hidden_commands.len(), facts.hidden_files, editable) {
        (0, 0, None) => Line::new(
            "hidden checks",
            Mark::Note,
            "none: answers made for the visible tests would pass",
        ),
        (0, 0, Some(path)) => Line::new(
            "hidden checks",
            Mark::Wrong,
            format!("none, and {path} may be changed: an engine could edit its own tests"),
        ),
        (0, files, _) => Line::new(
            "hidden checks",
            Mark::Wrong,
            format!("{files} file(s) in hidden/, but hidden_verification runs none"),
        ),
        (_, 0, _) => Line::new(
            "hidden checks",
            Mark::Wrong,
            "hidden_verification names commands, but hidden/ holds no file",
        ),
        (commands, files, _) => {
            let mut open = case.hidden_commands.iter();
            match open.find(|command| !keeps_python_apart(command)) {
                Some(command) => Line::new(
                    "hidden checks",
                    Mark::Wrong,
                    format!(
                        "{command:?} starts Python without -I: modules of the workspace, a random.py beside the check, would be loaded instead of Python's own"
                    ),
                ),
                None => Line::new(
                    "hidden checks",
                    Mark::Ok,
                    format!("{commands} command(s), {files} file(s)"),
                ),
            }
        }
    }
}

/// Is every Python that a command starts told to load nothing by chance? `-I`, alone or among others;
/// or `-P` and `-E`, which leave out the same two places.
fn keeps_python_apart(command: &str) -> bool {
    let signs = |c: char| c.is_whitespace() || ";&|()\"'`".contains(c);
    let words: Vec<&str> = command
        .split(signs)
        .filter(|word| !word.is_empty())
        .collect();
    let is_python = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let version = name
            .strip_prefix("python")
            .or_else(|| name.strip_prefix("pypy"));
        version.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    };
    let starts = words.iter().enumerate().filter(|(_, word)| is_python(word));
    let mut options = starts.map(|(at, _)| {
        let rest = words.get(at + 1..).unwrap_or_default().iter();
        let short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
        rest.take_while(short).copied().collect::<String>()
    });
    options.all(|options| {
        let has = |letter: char| options.contains(letter);
        has('I') || (has('P') && has('E'))
    })
}

fn scripts(found: &BTreeMap<&str, Option<String>>) -> Vec<Line> {
    let mut lines: Vec<Line> = SCRIPTS
        .iter()
        .filter(|name| !found.contains_key(**name))
        .map(|name| {
            Line::new(
                "scripts",
                Mark::Wrong,
                format!("scripts/{name}.toml is missing"),
            )
        })
        .collect();
    for (name, problem) in found {
        match (problem, Trial::of_script(name)) {
            (Some(problem), _) => lines.push(Line::new(
                "scripts",
                Mark::Wrong,
                format!("scripts/{name}.toml: {problem}"),
            )),
            (None, None) => {
                let detail = format!(
                    "scripts/{name}.toml is not tried: only oracle, nop and cheat… have a meaning here"
                );
                lines.push(Line::new("scripts", Mark::Note, detail));
            }
            (None, Some(_)) => {}
        }
    }
    if lines.is_empty() {
        let names: Vec<&str> = found.keys().copied().collect();
        lines.push(Line::new("scripts", Mark::Ok, names.join(", ")));
    }
    lines
}

/// Something played on a case to see what the case does about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trial {
    /// Solves the task.
    Oracle,
    /// Changes nothing.
    Nop,
    /// Pretends to solve it.
    Cheat,
    /// Changes nothing that matters: the checks meet the task as it is given.
    Baseline,
}

impl Trial {
    /// What a script is for, by its name.
    pub fn of_script(name: &str) -> Option<Self> {
        match name {
            "oracle" => Some(Self::Oracle),
            "nop" => Some(Self::Nop),
            "cheat" => Some(Self::Cheat),
            _ if name.starts_with("cheat-") => Some(Self::Cheat),
            _ => None,
        }
    }

    /// Did the run end as this trial must?
    pub fn judge(self, name: &str, status: Status, codes: &[Code]) -> Line {
        let not_green = |code: &Code| {
            matches!(
                code,
                Code::VerificationFailed | Code::Timeout | Code::ResourceLimit
            )
        };
        let as_it_must = match self {
            Self::Oracle => status == Status::Pass,
            Self::Nop => status == Status::Fail && codes == [Code::NoDiff],
            Self::Cheat => status == Status::Fail,
            Self::Baseline => codes.iter().any(not_green),
        };
        let words = codes
            .iter()
            .map(|code| code.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let ended = if words.is_empty() {
            status.as_str().to_owned()
        } else {
            format!("{}: {words}", status.as_str())
        };
        let refused = status == Status::Blocked
            && codes
                .iter()
                .all(|code| code.info().event == EventType::BackendGateBlocked);
        match (as_it_must, self) {
            (true, _) => Line::new(name, Mark::Ok, ended),
            (false, _) if refused => {
                Line::new(name, Mark::Wrong, format!("could not be tried, {ended}"))
            }
            (false, Self::Oracle) => {
                Line::new(name, Mark::Wrong, format!("must pass, and ended {ended}"))
            }
            (false, Self::Nop) => Line::new(
                name,
                Mark::Wrong,
                format!("must fail with no_diff alone, and ended {ended}"),
            ),
            (false, Self::Cheat) => {
                Line::new(name, Mark::Wrong, format!("must fail, and ended {ended}"))
            }
            (false, Self::Baseline) => Line::new(
                name,
                Mark::Wrong,
                format!(
                    "must not satisfy its own checks before anyone worked on it, and ended {ended}"
                ),
            ),
        }
    }
}

/// A change within the contract's scope that means nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Neutral {
    /// Another mode for a file that is there.
    Mode { path: String, mode: u32 },
    /// An empty file where there was none.
    Empty { path: String },
}

/// A change that lets a run come as far as its checks without helping it: the mode of a file no
/// test is made of, or failing that of any, or failing that a file without content.
pub fn neutral_change(case: &CaseFile, workspace: &Tree) -> Option<Neutral> {
    let text = |path: &TreePath| std::str::from_utf8(path.as_bytes()).ok().map(str::to_owned);
    let candidates = || {
        workspace
            .iter()
            .filter(|(path, entry)| allowed(case, path) && entry.kind != FileKind::Symlink)
    };
    let plain = candidates()
        .find(|(path, _)| !test_files::is_test_file(Names::Broad, path) && text(path).is_some());
    if let Some((path, entry)) =
        plain.or_else(|| candidates().find(|(path, _)| text(path).is_some()))
    {
        let mode = if entry.kind == FileKind::Executable {
            0o644
        } else {
            0o755
        };
        return Some(Neutral::Mode {
            path: text(path)?,
            mode,
        });
    }
    let free = case
        .allowed_paths
        .iter()
        .map(|rule| match rule.as_str().strip_suffix('/') {
            Some(dir) => format!("{dir}/cto-neutral.txt").replace('*', "cto"),
            None => rule.as_str().replace('*', "cto"),
        });
    let mut free = free.filter(|path| {
        let path = TreePath::new(path.as_str());
        allowed(case, &path) && !workspace.contains_key(&path)
    });
    free.next().map(|path| Neutral::Empty { path })
}

#[cfg(test)]
#[path = "case_check_tests.rs"]
mod tests;
