//! How far an engine is, at a glance: what is on record, which stage is proven, and the first thing
//! that is missing, with the words to type for it. Nothing is decided by it.

use super::stale::{Part, Standing};
use crate::engine::manifest::Manifest;
use crate::gate::opening::{Opening, Why};
use crate::gate::{Binary, LaneFacts};
use crate::records::{AdmissionStatus, Found, RecordKind};
use crate::task::contract::Stage;

/// What a list says of one engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overview {
    /// A word for each record.
    pub admissions: Vec<(RecordKind, &'static str)>,
    /// The highest stage that is proven for the lane of its records, each below it too; 0 is none.
    pub stage: u8,
    pub missing: Option<Missing>,
    /// Words after the program's name that go on from here.
    pub next: Option<String>,
}

/// The first thing that keeps an engine from a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    pub what: String,
}

const MISSING: &str = "missing";
const INVALID: &str = "invalid";
const ADMITTED: &str = "admitted";
const NOT_ADMITTED: &str = "not_admitted";

/// What is known of an engine.
pub fn overview(manifest: &Manifest, opening: &Opening, lane: &LaneFacts) -> Overview {
    let standing = Standing {
        manifest,
        lane,
        package: None,
        other_model_asked: false,
    };
    let (missing, next) = match manifest.is_gated() {
        false => (None, Some("run".to_owned())),
        true => first_missing(manifest, opening, &standing),
    };
    Overview {
        admissions: match manifest.is_gated() {
            true => admissions(lane),
            false => Vec::new(),
        },
        stage: match manifest.is_gated() {
            true => standing.proven(),
            false => manifest.default_stage.number(),
        },
        missing: missing.map(|what| Missing { what }),
        next,
    }
}

fn first_missing(
    manifest: &Manifest,
    opening: &Opening,
    standing: &Standing<'_>,
) -> (Option<String>, Option<String>) {
    let id = &manifest.id;
    if manifest.invocation.is_none() {
        return (Some("this version cannot start it".into()), None);
    }
    let setup = format!("setup {id}");
    if matches!(standing.lane.executable, Found::Missing) {
        let what = "no program is admitted".to_owned();
        return (Some(what), Some(format!("{setup} --bin FILE")));
    }
    let mut stale = standing.stale().into_iter();
    // The program before the model: without one nothing else means anything.
    let first = stale.clone().find(|stale| stale.part == Part::Executable);
    if let Some(stale) = first.or_else(|| stale.next()) {
        let what = format!("{}: {}", stale.part.title(), stale.why);
        return (Some(what), Some(setup));
    }
    match opening {
        Opening::Opened(_) => (None, Some(format!("run --engine {id}"))),
        Opening::Closed(why) => {
            let variable = manifest.gated_by_env.as_deref().unwrap_or_default();
            let next = match why {
                Why::Variable => None,
                Why::NoTerminal(_) => Some(format!("run --engine {id} --allow-engine {id}")),
                _ => Some(format!("engines open {id}")),
            };
            (Some(why.sentence(id, variable)), next)
        }
    }
}

fn admissions(lane: &LaneFacts) -> Vec<(RecordKind, &'static str)> {
    let status = |status: AdmissionStatus| match status {
        AdmissionStatus::Admitted => ADMITTED,
        AdmissionStatus::NotAdmitted => NOT_ADMITTED,
    };
    vec![
        (
            RecordKind::Executable,
            word(&lane.executable, |_| match lane.binary {
                Binary::Found { .. } => ADMITTED,
                _ => NOT_ADMITTED,
            }),
        ),
        (
            RecordKind::Model,
            word(&lane.model, |record| status(record.status)),
        ),
        (RecordKind::Decision, word(&lane.decision, |_| "decided")),
        (
            RecordKind::Source,
            word(&lane.source, |record| {
                status(record.source_admission_status)
            }),
        ),
    ]
}

fn word<T: crate::records::Record>(
    found: &Found<T>,
    of: impl FnOnce(&T) -> &'static str,
) -> &'static str {
    match (found, found.known()) {
        (_, Some(record)) => of(record),
        (Found::Missing, None) => MISSING,
        (_, None) => INVALID,
    }
}

impl Standing<'_> {
    /// The highest stage that is proven for this very lane, as are all below it.
    pub fn proven(&self) -> u8 {
        let stages = (1..=6).filter(|number| Stage::try_from(*number).is_ok());
        stages
            .take_while(|stage| self.is_proven(*stage))
            .last()
            .unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
