//! The failure matrix: rows as data, what a row's bundle must show, and the result of each row.
//!
//! - this file: the rows (`rows.toml`, `models.toml` for engines with a model, `owned.toml` for approvals and repositories
//!   with an owner); `show.rs` one thing a bundle must show; `leaks.rs` what none may; `played.rs` a row as what a model says
//! - `evaluate.rs` a row against what its run left behind; `outcome.rs` results; `junit.rs` as XML
//! - `hostile/` the attack suite
//!
//! Nothing here runs anything. What an engine said is never read as a result.

mod evaluate;
mod hostile;
mod junit;
mod leaks;
mod outcome;
mod played;
mod show;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::bundle;
use crate::containment::Containment;
use crate::engine::manifest::{Dialect, Manifest};
use crate::task::contract::Stage;
use crate::values::blocker::Code;
use crate::values::event_type::EventType;
use crate::values::verdict::Status;
use crate::wire::scenario::Scenario;

pub use evaluate::{BundleSeen, Evidence, children_ms, evaluate_row};
pub use hostile::{BENIGN, Theme, attack_matrix, attack_themes};
pub use junit::junit_xml;
pub use outcome::{Assertion, Counts, MatrixReport, RowOutcome, RowVerdict, Time};
pub use show::{GateSeen, Held, Place, Show, Traced, Tried};

const ROWS: &str = concat!(
    include_str!("rows.toml"),
    include_str!("models.toml"),
    include_str!("owned.toml")
);

/// The rows of the failure matrix. A form of each must be there; further rows are further codes.
pub const FIXTURES: [&str; 12] = [
    "no-diff",
    "disallowed-file",
    "failed-tests",
    "missing-test-command",
    "missing-event",
    "reviewer-reject",
    "approval-denied",
    "timeout",
    "dirty-starting-tree",
    "dirty-ending-tree",
    "artifact-write-failure",
    "provider-unavailable",
];

/// The data file: one small case, and rows that change it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    pub fixture: Fixture,
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// The case every row starts from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// The workspace.
    pub files: BTreeMap<String, String>,
    /// Beside `case.toml`.
    pub beside: BTreeMap<String, String>,
    /// `case.toml`, but for its name.
    pub case: toml::Table,
}

/// One row: what is done, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    /// The row of the failure matrix it is a form of.
    pub fixture: Option<String>,
    pub trigger: String,
    #[serde(default)]
    pub lanes: Lanes,
    pub stage: Option<Stage>,
    #[serde(default)]
    pub case: toml::Table,
    #[serde(default)]
    pub steps: Vec<toml::Table>,
    #[serde(default)]
    pub silent: bool,
    /// What differs from the case where a program of its own is run, which needs longer to begin.
    #[serde(default)]
    pub lane_case: toml::Table,
    /// The steps of such a program, where they must be larger.
    pub lane_steps: Option<Vec<toml::Table>>,
    /// What the model of such a program does besides calling tools as the steps say.
    pub model: Option<Scenario>,
    /// What is out of scope must get in: an agent that asks first does it by a command.
    #[serde(default)]
    pub unasked: bool,
    /// Why it cannot be had of such a program, where the steps do not tell.
    pub not_on_lanes: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Less than strict, where the trigger must be able to change what exists.
    pub contain: Option<Containment>,
    pub source: Option<SourceSetup>,
    pub fault: Option<Fault>,
    /// What the fault itself changes outside the bundle.
    #[serde(default)]
    pub touches: Vec<String>,
    pub approval: Option<Scripted>,
    /// What differs in the admission of its repository, which somebody owns.
    pub target: Option<toml::Table>,
    /// What is said of the result of a green run. The settlement is what is looked at then.
    pub word: Option<Word>,
    /// The checks must be green before the engine starts.
    #[serde(default)]
    pub green_start: bool,
    /// The headline; none where the run must pass.
    pub blocker: Option<Code>,
    #[serde(default)]
    pub also: Vec<Code>,
    pub event: Option<EventType>,
    pub status: Status,
    /// How the process ends.
    pub exit: u8,
    /// An engine was started.
    pub runs: bool,
    pub shows: Vec<Show>,
    /// Files of the workspace besides those of the fixture.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The part of the hostile kit it belongs to.
    pub theme: Option<String>,
    /// Programs of the system it cannot be tried without.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Places of the host that must not be there afterwards.
    #[serde(default)]
    pub prevented: Vec<String>,
    /// What is printed about the run must hold nothing a terminal would obey.
    #[serde(default)]
    pub reads_back: bool,
}

/// Words of a row that are only known when it runs (`{place}`), and what stands for them.
pub type Words = BTreeMap<String, String>;

/// A repository to copy: the files of the fixture in one commit, and what was done to it since.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSetup {
    #[serde(default)]
    pub dirt: BTreeMap<String, String>,
}

/// Which engines a row makes sense for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lanes {
    /// Those this version can start, on a host that can contain them.
    #[default]
    Runnable,
    /// Those with a model; for one without, a double that has one stands in.
    Modelled,
    /// Every one: a record blocks before it matters which.
    Any,
    /// Those that are closed until someone opens them.
    Gated,
    /// Those that are closed until someone opens them, and someone did.
    Opened,
}

/// A fault of the surroundings of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No file of the harness may grow past [`SMALL_FILE`].
    SmallFiles,
    /// The config file names a git that is not there.
    NoGit,
    /// The run is cancelled at the engine's first output.
    Interrupt,
    /// A file appears in the source at the engine's first output.
    SourceEdited,
    /// A file of the repository is changed after the run, before a word is said of it.
    TargetEdited,
}

/// What appears there.
pub const EDITED_MEANWHILE: &str = "edited-meanwhile.txt";

/// Room for the reserve of a bundle, and for little more.
pub const SMALL_FILE: u64 = (1 << 20) + (1 << 18);

/// The validator's answer to a contract that needs an approval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scripted {
    Granted,
    Denied,
    /// In the store of the row's own place, signed by a key of its own: its time is over.
    Expired,
    /// The same, and an earlier run used it.
    Consumed,
    /// The same, for another contract.
    Mismatched,
}

impl Scripted {
    /// It lies in a store, with what is wrong with it.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Expired | Self::Consumed | Self::Mismatched)
    }
}

/// What a validator says of a result in the place of its operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Accepted,
    Rejected,
}

#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    #[error("the rows of the matrix are broken: {0}")]
    Parse(Box<toml::de::Error>),
    #[error("row {0:?} cannot be written as a case: {1}")]
    Case(String, Box<toml::ser::Error>),
}

/// The rows this binary was built with.
pub fn built_in() -> Result<Matrix, MatrixError> {
    toml::from_str(ROWS).map_err(|error| MatrixError::Parse(Box::new(error)))
}

impl Row {
    /// `case.toml` of this row, for the scripted engine or for a program of its own.
    pub fn case_text(&self, fixture: &Fixture, on_lane: bool) -> Result<String, MatrixError> {
        let mut case = fixture.case.clone();
        case.insert("task_id".into(), self.name.clone().into());
        case.extend(self.case.clone());
        if on_lane {
            case.extend(self.lane_case.clone());
        }
        self.written(&case)
    }

    /// What the scripted engine plays.
    pub fn script_text(&self, words: &Words) -> Result<String, MatrixError> {
        let steps: Vec<toml::Value> = self
            .steps
            .iter()
            .cloned()
            .map(|step| spoken(step.into(), words))
            .collect();
        self.written(&toml::Table::from_iter([
            ("silent".into(), self.silent.into()),
            ("step".into(), steps.into()),
        ]))
    }

    fn written(&self, table: &toml::Table) -> Result<String, MatrixError> {
        toml::to_string(table)
            .map_err(|error| MatrixError::Case(self.name.clone(), Box::new(error)))
    }

    /// Why this row says nothing about this engine on this host, if it does not.
    pub fn not_applicable(&self, manifest: &Manifest, jail_missing: &[String]) -> Option<String> {
        if !matches!(self.lanes, Lanes::Runnable | Lanes::Modelled) {
            return None;
        }
        let id = &manifest.id;
        let Some(own) = &manifest.invocation else {
            return Some(format!("this version knows {id} but cannot run it"));
        };
        let unplayable = || match (&own.model, &own.tools) {
            _ if own.dialect == Dialect::Fake => None,
            _ if self.theme.is_some() => {
                Some("the attack suite is played by the scripted engine alone".to_owned())
            }
            (None, _) => Some(format!("{id} has no model that could play a script")),
            (_, None) => Some(format!(
                "the manifest of {id} has no [invocation.tools], so no scripted model speaks for it"
            )),
            (Some(_), Some(_)) => self.scenario_for(own, &Words::new()).err(),
        };
        let contained = || match jail_missing {
            [] => None,
            missing => Some(format!(
                "this host cannot contain a run, `cto doctor` says why: {}",
                missing.join(", ")
            )),
        };
        unplayable().or_else(contained)
    }

    /// The same of an engine that shows what its commands print in a log of its own, and not on its standard output.
    pub fn heard_by(&self, manifest: &Manifest) -> Self {
        let own = manifest.invocation.as_ref();
        let Some(log) = own.and_then(|own| own.event_log.as_ref()) else {
            return self.clone();
        };
        let log = format!("{}/{}", bundle::BACKEND_DIR, log.artifact);
        let mut row = self.clone();
        for show in &mut row.shows {
            match show {
                Show::Text(held) if held.file == bundle::STDOUT_LOG => held.file.clone_from(&log),
                Show::Detail(text) if text == bundle::STDOUT_LOG => text.clone_from(&log),
                _ => {}
            }
        }
        row
    }

    /// Is a program of the engine's own started for it, with a model that plays it?
    pub fn runs_a_lane(&self, manifest: &Manifest) -> bool {
        matches!(self.lanes, Lanes::Runnable | Lanes::Modelled) && manifest.uses_a_model()
    }

    /// It stands on proofs of every stage before, which the engine has to have first.
    pub fn stands_on_all(&self) -> bool {
        self.stage == Some(Stage::Five)
    }

    /// Somebody is asked or says something, with a store and a key in the row's own place.
    pub fn has_a_desk(&self) -> bool {
        self.stands_on_all() || self.approval.is_some_and(Scripted::is_stored)
    }

    /// A name of the row, of the matrix row it is a form of, or of its theme.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name
            || self.fixture.as_deref() == Some(name)
            || self.theme.as_deref() == Some(name)
    }

    /// Every code the report must have, in no order.
    pub fn codes(&self) -> Vec<Code> {
        self.blocker
            .into_iter()
            .chain(self.also.iter().copied())
            .collect()
    }
}

/// A value with every word in it replaced.
fn spoken(value: toml::Value, words: &Words) -> toml::Value {
    match value {
        toml::Value::String(text) => words
            .iter()
            .fold(text, |text, (word, meant)| {
                text.replace(&format!("{{{word}}}"), meant)
            })
            .into(),
        toml::Value::Array(all) => all
            .into_iter()
            .map(|one| spoken(one, words))
            .collect::<Vec<_>>()
            .into(),
        toml::Value::Table(all) => all
            .into_iter()
            .map(|(key, one)| (key, spoken(one, words)))
            .collect::<toml::Table>()
            .into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_of_the_matrix_is_there_once_by_name() {
        let matrix = built_in().unwrap();
        for fixture in FIXTURES {
            assert!(
                matrix
                    .rows
                    .iter()
                    .any(|row| row.fixture.as_deref() == Some(fixture)),
                "{fixture}"
            );
        }
        let names: BTreeSet<&str> = matrix.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), matrix.rows.len());
        for row in &matrix.rows {
            assert!(
                row.fixture
                    .as_deref()
                    .is_none_or(|name| FIXTURES.contains(&name)),
                "{}",
                row.name
            );
            assert!(
                row.name.parse::<crate::values::ids::CaseId>().is_ok(),
                "{}",
                row.name
            );
            assert!(row.name.len() <= 22, "{} does not fit its column", row.name);
            assert!(
                !row.shows.is_empty() && !row.trigger.is_empty(),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn a_row_that_says_nothing_about_an_engine_says_why() {
        let fake = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
        let pi = "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n";
        let [fake, pi] = [fake, pi].map(|text| Manifest::parse("m", text).unwrap());
        let rows = built_in().unwrap().rows;
        let jailless = ["seccomp".to_owned()];
        for row in rows {
            let runnable = matches!(row.lanes, Lanes::Runnable | Lanes::Modelled);
            assert_eq!(row.not_applicable(&fake, &[]), None, "{}", row.name);
            for (manifest, missing, word) in [
                (&fake, jailless.as_slice(), "seccomp"),
                (&pi, &[], "cannot run it"),
            ] {
                let reason = row.not_applicable(manifest, missing);
                assert_eq!(reason.is_some(), runnable, "{}", row.name);
                assert!(
                    reason.is_none_or(|reason| reason.contains(word)),
                    "{}",
                    row.name
                );
            }
        }
    }

    /// The rows say what the table of blockers says: two lists, written apart.
    #[test]
    fn rows_and_blockers_agree() {
        for row in built_in().unwrap().rows {
            let Some(code) = row.blocker else {
                assert_eq!(
                    (row.status, row.exit, row.event),
                    (Status::Pass, 0, None),
                    "{}",
                    row.name
                );
                continue;
            };
            assert_eq!(
                row.exit,
                if row.status == Status::Fail { 1 } else { 3 },
                "{}",
                row.name
            );
            let info = code.info();
            assert_eq!(
                (Some(info.event), info.status),
                (row.event, row.status),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn every_case_is_valid_but_the_one_that_must_not_be() {
        let matrix = built_in().unwrap();
        for row in &matrix.rows {
            let text = row.case_text(&matrix.fixture, false).unwrap();
            let parsed = crate::task::case_file::parse_case("case.toml", text.as_bytes());
            assert_eq!(
                parsed.is_err(),
                row.blocker == Some(Code::ContractInvalid),
                "{}: {parsed:?}",
                row.name
            );
            assert!(row.script_text(&Words::new()).is_ok(), "{}", row.name);
        }
    }
}
