//! Trying a case out: looked over as it lies there, then its scripts and its untouched baseline
//! through ordinary runs. What each must show is decided in core.

use std::collections::BTreeMap;
use std::path::Path;

use cto_core::bundle;
use cto_core::containment::Containment;
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::proof::case_check::{self, CaseFacts, Line, Mark, Neutral, Trial};
use cto_core::run::event::Origin;
use cto_core::task::case_file;
use cto_core::task::contract::{Label, LimitChanges};
use cto_core::values::blocker::Code;

use crate::doubles::fake;
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::files;
use crate::task::cases::Case;
use crate::task::engines;
use crate::task::request::LaneOptions;
use crate::task::request::Request;

/// The name of the trial that plays no script of the case.
const BASELINE: &str = "baseline";

/// What can be said without running anything.
pub fn look_over(case: &Case) -> Vec<Line> {
    let parsed = case_file::parse(&case.label, &case.text);
    let inputs = parsed
        .as_ref()
        .map(|file| file.inputs.as_slice())
        .unwrap_or_default();
    let is_there = |path: &str| {
        case.inputs
            .as_ref()
            .is_some_and(|dir| dir.join(path).exists())
    };
    let directory = Path::new(&case.label)
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    case_check::look_over(&CaseFacts {
        directory: &directory,
        parsed: parsed.as_ref().map_err(Vec::as_slice),
        workspace: &case.baseline(),
        hidden_files: case.hidden.len(),
        scripts: case
            .scripts
            .iter()
            .map(|(name, bytes)| (name.as_str(), problem_of(bytes)))
            .collect::<BTreeMap<_, _>>(),
        beside: case.beside.keys().map(String::as_str).collect(),
        missing_inputs: inputs
            .iter()
            .map(|rule| rule.as_str().trim_end_matches('/').to_owned())
            .filter(|path| !is_there(path))
            .collect(),
    })
}

fn problem_of(script: &[u8]) -> Option<String> {
    fake::parse(script).err().map(|error| error.to_string())
}

/// A run to be made, and what it must show.
pub struct Attempt {
    pub name: String,
    pub trial: Trial,
    script: Vec<u8>,
    own_script: bool,
}

/// Every trial of a case, the good road first.
pub fn attempts(case: &Case) -> Vec<Attempt> {
    let scripts = case.scripts.iter().filter_map(|(name, bytes)| {
        let trial = Trial::of_script(name)?;
        Some(Attempt {
            name: name.clone(),
            trial,
            script: bytes.clone(),
            own_script: case.built_in,
        })
    });
    let mut attempts: Vec<Attempt> = scripts.collect();
    attempts.extend(neutral_script(case).map(|script| Attempt {
        name: BASELINE.to_owned(),
        trial: Trial::Baseline,
        script: script.into_bytes(),
        own_script: false,
    }));
    attempts.sort_by(|a, b| (a.trial, &a.name).cmp(&(b.trial, &b.name)));
    attempts
}

/// An ordinary run, but for where it comes from.
pub fn request(case: &Case, attempt: &Attempt) -> Result<Request, Failure> {
    let manifest = engines::find(DEFAULT_ENGINE)?;
    Ok(Request {
        case: case.clone(),
        stage: manifest.default_stage,
        manifest,
        engine_opened: false,
        script: Some(attempt.script.clone()),
        own_script: attempt.own_script,
        limits: LimitChanges::default(),
        records: LaneOptions::default(),
        proof: None,
        contain: Containment::Strict,
        origin: Origin::Validator,
        label: Label::Case,
        source: None,
        keep: false,
    })
}

/// A script that gets a run as far as its checks without helping it.
fn neutral_script(case: &Case) -> Option<String> {
    let file = case_file::parse(&case.label, &case.text).ok()?;
    let quoted = |text: String| toml::Value::String(text).to_string();
    Some(match case_check::neutral_change(&file, &case.baseline())? {
        Neutral::Mode { path, mode } => format!(
            "[[step]]\ndo = \"chmod\"\npath = {}\nmode = {mode}\n",
            quoted(path)
        ),
        Neutral::Empty { path } => format!(
            "[[step]]\ndo = \"write\"\npath = {}\ntext = \"\"\n",
            quoted(path)
        ),
    })
}

/// What a run showed, and, where that is not what it must be, what there is to know about it.
pub fn judge(attempt: &Attempt, sealed: &SealedBundle) -> (Line, Vec<String>) {
    let report = &sealed.report;
    let codes: Vec<Code> = report.blockers.iter().map(|blocker| blocker.code).collect();
    let line = attempt.trial.judge(&attempt.name, report.status, &codes);
    if line.mark == Mark::Ok {
        return (line, Vec::new());
    }
    let mut told: Vec<String> = report
        .blockers
        .iter()
        .filter_map(|blocker| blocker.detail.clone())
        .collect();
    told.extend(end_of_log(&sealed.dir.join(bundle::TEST_LOG)));
    (line, told)
}

/// The bundle is gone with its temporary home: these lines are what is left to see why a check was
/// red.
fn end_of_log(path: &Path) -> Vec<String> {
    const LINES: usize = 12;
    let text = files::read_limited(path, 64 << 20)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(LINES);
    lines[from..]
        .iter()
        .map(|line| format!("| {}", line.chars().take(200).collect::<String>()))
        .collect()
}
