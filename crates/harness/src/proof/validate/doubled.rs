//! With what the double of an engine is run: records of this validator's own, the proof of stage 1, and a scripted model
//! that solves the case as its own oracle does.

use std::cell::Cell;

use cto_core::engine::manifest::Manifest;
use cto_core::proof::matrix::{Row, Words};
use cto_core::wire::scenario::Scenario;

use super::Bench;
use crate::host::failure::Failure;
use crate::proof::matrix::lane::{Lane, Making, Needs, NoLane};
use crate::proof::matrix::{built_in, sound};
use crate::task::lane::LaneOptions;

/// Steps of a script that a model can have an engine do.
const PLAYED: [&str; 3] = ["write", "edit", "shell"];

/// With what a double is run.
pub struct Doubled {
    lane: Lane,
    scenario: Scenario,
    served: Cell<u32>,
}

impl Doubled {
    /// The same with a model of its own for one run: one that works in phases says each thing once.
    pub fn served(&self) -> Result<LaneOptions, Failure> {
        let number = self.served.get();
        self.served.set(number + 1);
        let name = format!("case-{number}");
        self.lane.serving(&name, self.scenario.clone())
    }
}

/// Makes the double ready, once: its records and its proof of stage 1 are laid into the state of the validator, which
/// nobody has used yet, and what its model will say is known.
pub fn ready(bench: &mut Bench<'_>) -> Result<(), Failure> {
    if let (None, Some(double), None) = (&bench.engine, &bench.double, &bench.lane) {
        bench.lane = Some(doubled(bench, double)?);
    }
    Ok(())
}

fn doubled(bench: &Bench<'_>, double: &Manifest) -> Result<Doubled, Failure> {
    let (matrix, sound) = (built_in()?, sound()?);
    let making = Making {
        manifest: double,
        bin: None,
        env: bench.env,
        home: bench.home,
        fixture: &matrix.fixture,
        sound: &sound,
        cancel: bench.cancel,
    };
    let needs = Needs {
        contain: vec![bench.contain],
        stage2: false,
    };
    let lane = match Lane::make(&bench.root.join("lane"), &making, &needs) {
        Ok(lane) => lane,
        Err(NoLane::Failed(failure)) => return Err(failure),
        Err(NoLane::Reason(why)) => {
            return Err(Failure::internal("no_lane", "a double cannot be run").reason(why));
        }
    };
    lane.lay(bench.home).map_err(|error| {
        Failure::internal("no_lane", "the state of a lane cannot be copied").because(&error)
    })?;
    let broken = |what: String| {
        Failure::usage("no_script", "no model can be scripted for this case")
            .reason(what)
            .so("nothing ran")
    };
    let own = double.invocation.as_ref();
    let own = own.ok_or_else(|| broken("this version cannot run the engine".into()))?;
    let row = Row {
        steps: oracle(bench).ok_or_else(|| broken("the case has no oracle to play".into()))?,
        ..sound
    };
    let scenario = row.scenario_for(own, &Words::new()).map_err(broken)?;
    Ok(Doubled {
        lane,
        scenario,
        served: Cell::new(0),
    })
}

/// What the case's own solution does.
fn oracle(bench: &Bench<'_>) -> Option<Vec<toml::Table>> {
    let script = std::str::from_utf8(bench.case.scripts.get("oracle")?).ok()?;
    let script: toml::Table = script.parse().ok()?;
    let steps = script.get("step")?.as_array()?.iter();
    let steps = steps.filter_map(|step| step.as_table().cloned());
    let played = |step: &toml::Table| {
        step.get("do")
            .and_then(toml::Value::as_str)
            .is_some_and(|what| PLAYED.contains(&what))
    };
    Some(steps.filter(played).collect())
}
