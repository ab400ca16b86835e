//! Validators: each runs what it checks through the ordinary path and says, check by check, what
//! held.
//!
//! One table; the command line, its help and dispatch come from it.
//!
//! - this file: the table, and what a validator is given and says; `stage1.rs` to `stage4.rs`, `stage5/`,
//!   `provider_adapter/` one validator each
//! - `doubled.rs` with what a double is run; `rows.rs` failures that must be closed; `seen.rs` what a run left

mod doubled;
mod provider_adapter;
mod rows;
mod seen;
mod stage1;
mod stage2;
mod stage3;
mod stage4;
mod stage5;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use cto_core::containment::Containment;
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::run::event::Origin;
use cto_core::values::ids::RunId;
use serde::Serialize;

pub use doubled::Doubled;
pub use rows::Closed;

use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::{Env, Home};
use crate::proof::desk::Desk;
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
    /// A double does where nobody names an engine, or no program of it.
    pub doubles: bool,
    /// It goes beyond stage 2, where no engine may lie in a temporary directory.
    pub lasting: bool,
    pub run: fn(&mut Bench<'_>) -> Result<Validation, Failure>,
}

/// Every validator there is.
pub const VALIDATORS: &[Validator] = &[
    Validator {
        name: "stage1",
        what: "a gated engine is refused by default, and with its gate open still not run",
        doubles: true,
        lasting: false,
        run: stage1::validate,
    },
    Validator {
        name: "stage2",
        what: "an engine fixes a copied fixture, compared with fake; every failure of the stage is closed",
        doubles: true,
        lasting: false,
        run: stage2::validate,
    },
    Validator {
        name: "stage3",
        what: "an engine works on a copy of a repository, which stays as it was and is no target",
        doubles: true,
        lasting: true,
        run: stage3::validate,
    },
    Validator {
        name: "stage4",
        what: "an engine works in a disposable repository, once somebody approved it, and publishes nothing",
        doubles: true,
        lasting: true,
        run: stage4::validate,
    },
    Validator {
        name: "stage5",
        what: "a repository with an owner is changed once it is admitted, approved, verified and accepted",
        doubles: true,
        lasting: true,
        run: stage5::validate,
    },
    Validator {
        name: "provider-adapter",
        what: "what keeps a gated engine from its model does, and what must not does not",
        doubles: false,
        lasting: false,
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
    /// The double that plays where no real engine does; none has to be ready before it is used.
    pub double: Option<Manifest>,
    pub asked: LaneOptions,
    pub contain: Containment,
    pub case: Case,
    pub cancel: &'a Cancel,
    pub progress: &'a mut dyn Progress,
    /// With what the double is run, once it is ready.
    pub lane: Option<Doubled>,
    /// Rows that a former stage ran already, as they ended.
    pub closed: RefCell<BTreeMap<String, Closed>>,
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
        for (own, former) in [
            (&mut self.pass_reports, former.pass_reports),
            (&mut self.failure_reports, former.failure_reports),
            (&mut self.proof_paths, former.proof_paths),
        ] {
            for path in former {
                if !own.contains(&path) {
                    own.push(path);
                }
            }
        }
        self.fake_baseline = self.fake_baseline.take().or(former.fake_baseline);
    }

    /// Checks that could not be made, because something before them did not hold.
    pub fn not_reached(&mut self, names: &[&str], why: &str) {
        for name in names {
            if !self.checked.iter().any(|had| had.name == *name) {
                self.check(name, false, || why.to_owned());
            }
        }
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

    /// Who asks and answers here in the place of an operator.
    pub fn desk(&self) -> Result<Desk<'_>, Failure> {
        Desk::open((self.home, self.env), &self.root.join("desk"))
    }

    /// Runs exactly what was asked for, as `cto run --request` does.
    pub fn run_requested(
        &mut self,
        mut request: Request,
        asked: &RunId,
    ) -> Result<SealedBundle, Failure> {
        request.request_id = Some(asked.clone());
        self.run(&request)
    }

    /// Who works: the engine that was named, its double, or the scripted engine.
    pub fn worker(&self) -> Result<Manifest, Failure> {
        match self.engine.as_ref().or(self.double.as_ref()) {
            Some(manifest) => Ok(manifest.clone()),
            None => engines::find(DEFAULT_ENGINE),
        }
    }

    /// The case for whoever works, as a validator asks for it.
    pub fn request_for(&self, manifest: &Manifest) -> Result<Request, Failure> {
        let plays = !manifest.is_gated();
        let oracle = || self.case.scripts.get("oracle").cloned();
        let asked = match &self.lane {
            Some(lane) if manifest.is_gated() => lane.served()?,
            _ => self.asked.clone(),
        };
        Ok(Request::case(self.case.clone(), manifest.clone())
            // Asking for a proof of this engine opens it for this one command, as `--allow-engine`
            // does.
            .opened(true)
            .playing(plays.then(|| oracle().unwrap_or_default()), false)
            .contained(self.contain)
            .in_lane(asked)
            .asked_by(self.origin()))
    }
}

/// What is said of a real engine, from the stage on where somebody has to approve.
fn only_doubles(bench: &Bench<'_>, stage: u8) -> Result<(), Failure> {
    match &bench.engine {
        None => Ok(()),
        Some(engine) => {
            let what = "a validator approves nothing of a real engine: that takes a person";
            Err(Failure::usage("needs_an_approval", what)
                .so("nothing ran")
                .hint(format!(
                    "`cto request CASE --stage {stage} --engine {engine}`, `cto approve`, `cto run --request ID` prove the stage",
                    engine = engine.id
                )))
        }
    }
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
