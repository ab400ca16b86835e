//! Failures that a stage must close: rows of the matrix, each in a place of its own. What one stage ran, the next does
//! not run again.

use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::proof::matrix::{Matrix, RowVerdict};

use super::{Bench, Validation};
use crate::host::failure::Failure;
use crate::proof::matrix::{self, Order};
use crate::task::engines;

/// How a row that must be closed ended.
#[derive(Clone, Debug)]
pub struct Closed {
    green: bool,
    why: String,
    report: Option<String>,
}

impl Bench<'_> {
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
    pub fn run_rows(&self, names: &[&str]) -> Result<(), Failure> {
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
            manifest: engines::find(DEFAULT_ENGINE)?,
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
