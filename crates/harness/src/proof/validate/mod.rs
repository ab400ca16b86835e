//! Validators: each runs what it checks through the ordinary path and says, check by check, what
//! held.
//!
//! One table; the command line, its help and dispatch come from it.
//!
//! - this file: the table; `stage1.rs`, `stage2.rs`, `stage3.rs`, `provider_adapter/` one validator each; `doubled.rs` with
//!   what a double is run

mod doubled;
mod provider_adapter;
mod stage1;
mod stage2;
mod stage3;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use cto_core::containment::Containment;
use cto_core::engine::manifest::Manifest;
use cto_core::proof::matrix::{Matrix, RowVerdict};
use cto_core::run::event::Origin;
use serde::Serialize;

use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::{Env, Home};
use crate::proof::matrix::{self, Order};
use crate::run;
use crate::screen::progress::Progress;
use crate::supervise::cancel::Cancel;
use crate::task::cases::Case;
use crate::task::engines;
use crate::task::lane::LaneOptions;
use crate::task::request::Request;

/// One row of the table.
pub struct Validator {
    pub name: &'static str,
    pub what: &'static str,
    /// The double of an engine does where nobody names the engine's program.
    pub doubles: bool,
    pub run: fn(&mut Bench<'_>) -> Result<Validation, Failure>,
}

/// Every validator there is.
pub const VALIDATORS: &[Validator] = &[
    Validator {
        name: "stage1",
        what: "a gated engine is refused by default, and with its gate open still not run",
        doubles: true,
        run: stage1::validate,
    },
    Validator {
        name: "stage2",
        what: "an engine fixes a copied fixture, compared with fake; every failure of the stage is closed",
        doubles: true,
        run: stage2::validate,
    },
    Validator {
        name: "stage3",
        what: "an engine works on a copy of a repository, which stays as it was and is no target",
        doubles: false,
        run: stage3::validate,
    },
    Validator {
        name: "provider-adapter",
        what: "what keeps a gated engine from its model does, and what must not does not",
        doubles: false,
        run: provider_adapter::validate,
    },
];

pub fn find(name: &str) -> Result<&'static Validator, Failure> {
    VALIDATORS
        .iter()
        .find(|validator| validator.name == name)
        .ok_or_else(|| {
            let known = VALIDATORS
                .iter()
                .map(|validator| validator.name)
                .collect::<Vec<_>>()
                .join(", ");
            Failure::usage(
                "unknown_validator",
                format!("no validator is called {name:?}"),
            )
            .so("nothing ran")
            .hint(format!("known validators: {known}"))
        })
}

/// What a validator is given.
pub struct Bench<'a> {
    pub env: &'a Env,
    /// Where its runs go: the operator's state home for a real engine, one of its own otherwise.
    pub home: &'a Home,
    /// A place for fixtures, removed afterwards.
    pub root: PathBuf,
    /// A real engine to prove a stage for; without one nothing real is proven.
    pub engine: Option<Manifest>,
    /// The double of the engine that was named, where nobody named its program.
    pub double: Option<Manifest>,
    pub asked: LaneOptions,
    pub contain: Containment,
    pub case: Case,
    pub cancel: &'a Cancel,
    pub progress: &'a mut dyn Progress,
    /// Rows that a former stage ran already, as they ended.
    pub closed: RefCell<BTreeMap<String, Closed>>,
}

/// How a row that must be closed ended.
#[derive(Clone, Debug)]
pub struct Closed {
    green: bool,
    why: String,
    report: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Checked {
    pub name: String,
    pub ok: bool,
}

/// What a validator prints.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Validation {
    pub ok: bool,
    pub checked: Vec<Checked>,
    pub errors: Vec<String>,
    pub pass_reports: Vec<String>,
    pub failure_reports: Vec<String>,
    pub proof_paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fake_baseline: Option<String>,
}

impl Validation {
    /// Notes one check; what did not hold is said.
    pub fn check(&mut self, name: &str, ok: bool, otherwise: impl FnOnce() -> String) {
        self.checked.push(Checked {
            name: name.to_owned(),
            ok,
        });
        if !ok {
            self.errors.push(format!("{name}: {}", otherwise()));
        }
    }

    /// Takes in what a former stage showed. A check that both made holds where both did.
    pub fn include(&mut self, former: Self) {
        for check in former.checked {
            match self.checked.iter_mut().find(|own| own.name == check.name) {
                Some(own) => own.ok &= check.ok,
                None => self.checked.push(check),
            }
        }
        self.errors.extend(former.errors);
        self.pass_reports.extend(former.pass_reports);
        self.failure_reports.extend(former.failure_reports);
        self.proof_paths.extend(former.proof_paths);
    }

    /// Nothing checked is nothing proven.
    pub fn done(mut self) -> Self {
        self.ok = !self.checked.is_empty()
            && self.checked.iter().all(|check| check.ok)
            && self.errors.is_empty();
        self
    }
}

impl Bench<'_> {
    /// A run that only a real engine in the operator's own state home makes as the operator.
    pub fn origin(&self) -> Origin {
        if self.engine.is_some() {
            Origin::Operator
        } else {
            Origin::Validator
        }
    }

    pub fn run(&mut self, request: &Request) -> Result<SealedBundle, Failure> {
        let sealed = run::run(self.home, self.env, request, self.cancel, self.progress)?;
        crate::bundles::index::ingest(self.home, &sealed.report.run_id);
        Ok(sealed)
    }

    /// The failures a stage must close, each as a row of the matrix in a place of its own.
    pub fn close_failures(
        &self,
        names: &[&str],
        validation: &mut Validation,
    ) -> Result<(), Failure> {
        self.run_rows(names)?;
        let closed = self.closed.borrow();
        for name in names {
            let row = closed.get(*name);
            let green = row.is_some_and(|row| row.green);
            validation.check(&closed_check(name), green, || {
                row.map_or_else(|| "there is no such row".into(), |row| row.why.clone())
            });
            let report = row.and_then(|row| row.report.clone());
            validation.failure_reports.extend(report);
        }
        Ok(())
    }

    /// Runs those of the rows that no former stage ran.
    fn run_rows(&self, names: &[&str]) -> Result<(), Failure> {
        let Matrix { fixture, rows } = matrix::built_in()?;
        let is_new = |name: &str| names.contains(&name) && !self.closed.borrow().contains_key(name);
        let rows = rows
            .into_iter()
            .filter(|row| is_new(&row.name))
            .collect::<Vec<_>>();
        if rows.is_empty() {
            return Ok(());
        }
        let order = Order {
            fixture,
            rows,
            manifest: engines::find(cto_core::engine::manifest::DEFAULT_ENGINE)?,
            bin: None,
            engines: None,
            doubled: false,
            keep: true,
        };
        let report = matrix::run(&order, &self.root, (self.env, self.home), &mut |_| {})?;
        for row in report.rows {
            let wrong = row.wrong().map(|wrong| wrong.want.clone()).next();
            let closed = Closed {
                green: row.verdict == RowVerdict::Green,
                why: wrong.or(row.reason.clone()).unwrap_or_default(),
                report: row.bundle.as_ref().map(|dir| format!("{dir}/report.json")),
            };
            self.closed.borrow_mut().insert(row.row.to_string(), closed);
        }
        Ok(())
    }
}

/// What the check is called that a failure is closed.
fn closed_check(row: &str) -> String {
    format!("{}_closed", row.replace('-', "_"))
}

/// `report.json` of a bundle, as a path.
pub fn report_path(sealed: &SealedBundle) -> String {
    sealed
        .dir
        .join(cto_core::bundle::REPORT)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_checked_is_nothing_proven() {
        assert!(!Validation::default().done().ok);
        let mut validation = Validation::default();
        validation.check("one", true, String::new);
        assert!(validation.clone().done().ok);
        validation.check("two", false, || "because".into());
        let done = validation.done();
        assert!(!done.ok && done.errors == ["two: because"]);
        let mut later = Validation::default();
        later.check("one", true, String::new);
        later.check("two", true, String::new);
        later.include(done);
        let names: Vec<&str> = later.checked.iter().map(|had| had.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert!(
            !later.done().ok,
            "what a former stage did not show is not shown"
        );
    }
}
