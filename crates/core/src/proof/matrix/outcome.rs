//! The results of the rows: the document of `cto matrix --json`, and its exit code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Row;
use crate::values::blocker::Code;
use crate::values::event_type::EventType;
use crate::values::ids::EngineId;
use crate::values::verdict::Status;

/// One thing that was demanded of a row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Assertion {
    /// Which kind: `exit`, `untouched`, `bundle`, `status`, `origin`, `blocker`, `event`,
    /// `artifacts`, `digests`, `execution`, `secrets`, `shows`, `printed`.
    pub check: String,
    pub want: String,
    pub holds: bool,
    /// What was found instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowVerdict {
    Green,
    Red,
    NotApplicable,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RowOutcome {
    pub row: String,
    /// The row of the failure matrix it is a form of; null for a further code.
    pub fixture: Option<String>,
    pub trigger: String,
    /// The part of the hostile kit it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    pub engine: EngineId,
    pub verdict: RowVerdict,
    /// Why it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub blocker: Option<Code>,
    pub event: Option<EventType>,
    pub status: Status,
    pub duration_ms: u64,
    /// Of that, engines and checks.
    pub children_ms: u64,
    /// The bundle, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    pub assertions: Vec<Assertion>,
}

impl RowOutcome {
    fn of(row: &Row, engine: &EngineId, verdict: RowVerdict) -> Self {
        Self {
            row: row.name.clone(),
            fixture: row.fixture.clone(),
            trigger: row.trigger.clone(),
            theme: row.theme.clone(),
            engine: engine.clone(),
            verdict,
            reason: None,
            blocker: row.blocker,
            event: row.event,
            status: row.status,
            duration_ms: 0,
            children_ms: 0,
            bundle: None,
            assertions: Vec::new(),
        }
    }

    pub fn not_applicable(row: &Row, engine: &EngineId, reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::of(row, engine, RowVerdict::NotApplicable)
        }
    }

    /// Green when something was demanded and all of it holds.
    pub fn judged(row: &Row, engine: &EngineId, assertions: Vec<Assertion>) -> Self {
        let green = !assertions.is_empty() && assertions.iter().all(|assertion| assertion.holds);
        Self {
            assertions,
            ..Self::of(
                row,
                engine,
                if green {
                    RowVerdict::Green
                } else {
                    RowVerdict::Red
                },
            )
        }
    }

    pub fn wrong(&self) -> impl Iterator<Item = &Assertion> {
        self.assertions.iter().filter(|assertion| !assertion.holds)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub green: u64,
    pub red: u64,
    pub not_applicable: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    pub wall_ms: u64,
    /// All rows together; more than the wall time where rows ran side by side.
    pub rows_ms: u64,
    /// Of that, engines and checks.
    pub children_ms: u64,
}

impl Time {
    pub fn share_in_children(&self) -> u64 {
        (self.children_ms * 100)
            .checked_div(self.rows_ms)
            .unwrap_or(0)
    }
}

/// `cto matrix --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MatrixReport {
    pub schema_version: u32,
    pub command: String,
    pub engine: EngineId,
    pub exit_code: u8,
    /// Somebody stopped it; rows without a verdict were not reached.
    pub interrupted: bool,
    pub counts: Counts,
    pub time: Time,
    pub rows: Vec<RowOutcome>,
}

impl MatrixReport {
    pub fn new(engine: EngineId, rows: Vec<RowOutcome>, wall_ms: u64, interrupted: bool) -> Self {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count() as u64;
        let counts = Counts {
            green: count(RowVerdict::Green),
            red: count(RowVerdict::Red),
            not_applicable: count(RowVerdict::NotApplicable),
        };
        let sum = |field: fn(&RowOutcome) -> u64| rows.iter().map(field).sum();
        let time = Time {
            wall_ms,
            rows_ms: sum(|row| row.duration_ms),
            children_ms: sum(|row| row.children_ms),
        };
        Self {
            schema_version: 1,
            command: "matrix".into(),
            engine,
            exit_code: exit_code(&rows, interrupted),
            interrupted,
            counts,
            time,
            rows,
        }
    }
}

/// Red is 1. Nothing red and nothing of the matrix proven is 3: gates that hold say nothing about
/// how an engine fails.
fn exit_code(rows: &[RowOutcome], interrupted: bool) -> u8 {
    let asked_for_matrix = rows.iter().any(|row| row.fixture.is_some());
    let proves = |row: &&RowOutcome| {
        row.verdict == RowVerdict::Green && (row.fixture.is_some() || !asked_for_matrix)
    };
    if rows.iter().any(|row| row.verdict == RowVerdict::Red) {
        Status::Fail.exit_code()
    } else if !interrupted && rows.iter().any(|row| proves(&row)) {
        Status::Pass.exit_code()
    } else {
        Status::Blocked.exit_code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(fixture: bool, verdict: RowVerdict) -> RowOutcome {
        let row = super::super::built_in()
            .unwrap()
            .rows
            .into_iter()
            .find(|row| row.fixture.is_some() == fixture)
            .unwrap();
        RowOutcome::of(&row, &"fake".parse().unwrap(), verdict)
    }

    #[test]
    fn exit_codes() {
        use RowVerdict::{Green, NotApplicable, Red};
        for (rows, want) in [
            (vec![], 3),
            (vec![(true, Green), (false, Green)], 0),
            (vec![(true, Green), (true, NotApplicable)], 0),
            (vec![(true, Green), (true, Red)], 1),
            (vec![(true, NotApplicable), (false, Red)], 1),
            (vec![(true, NotApplicable), (false, NotApplicable)], 3),
            (vec![(true, NotApplicable), (false, Green)], 3),
            (vec![(false, Green)], 0),
            (vec![(false, NotApplicable)], 3),
        ] {
            let rows: Vec<RowOutcome> = rows
                .iter()
                .map(|(fixture, verdict)| outcome(*fixture, *verdict))
                .collect();
            assert_eq!(
                exit_code(&rows, false),
                want,
                "{:?}",
                rows.iter().map(|row| row.verdict).collect::<Vec<_>>()
            );
        }
        assert_eq!(exit_code(&[outcome(true, Green)], true), 3);
        assert_eq!(exit_code(&[outcome(true, Red)], true), 1);
    }

    #[test]
    fn nothing_demanded_is_not_green() {
        let row = super::super::built_in().unwrap().rows.remove(0);
        let engine = "fake".parse().unwrap();
        assert_eq!(
            RowOutcome::judged(&row, &engine, Vec::new()).verdict,
            RowVerdict::Red
        );
        let assertion = |holds| Assertion {
            check: "x".into(),
            want: "y".into(),
            holds,
            found: None,
        };
        assert_eq!(
            RowOutcome::judged(&row, &engine, vec![assertion(true)]).verdict,
            RowVerdict::Green
        );
        assert_eq!(
            RowOutcome::judged(&row, &engine, vec![assertion(true), assertion(false)]).verdict,
            RowVerdict::Red
        );
    }

    #[test]
    fn the_share_in_children_has_no_division_by_nothing() {
        assert_eq!(Time::default().share_in_children(), 0);
        assert_eq!(
            Time {
                wall_ms: 5,
                rows_ms: 8,
                children_ms: 2
            }
            .share_in_children(),
            25
        );
    }
}
