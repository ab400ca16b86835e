//! What is known of a lane before any gate is asked: whether its engine is open, what is on record,
//! which stage is meant, and what its model costs.

use std::borrow::Cow;

use cto_core::gate::LaneFacts;
use cto_core::gate::ladder::{self, LaneKey};
use cto_core::gate::opening::Opening;
use cto_core::gate::target::TargetFound;
use cto_core::task::contract::{Label, Stage};
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::money::{MAX_PRICES, Prices, SpendLimit};

use super::contract_of;
use crate::host::failure::Failure;
use crate::host::{self, Env, Home, OwnProgram};
use crate::records::{self, Wanted, targets};
use crate::task::request::Request;

/// What is known of a lane before any gate is asked.
pub struct Footing {
    /// Whether its engine is open, and by what.
    pub opening: Opening,
    /// Records of an engine that is closed are not even looked for, but for the one of its gate.
    pub lane: MaybeKnown<LaneFacts>,
    /// The stage asked for, or the one that is meant where nobody named one.
    pub stage: Stage,
    /// The admission of the repository that may be changed, read once.
    pub target: TargetFound,
}

/// Looks at gate, records and proofs.
pub fn footing(request: &Request, env: &Env, home: &Home, own: &OwnProgram) -> Footing {
    let opening =
        records::gate::opening(&request.manifest, &request.gate, &request.lane, env, home);
    let is_gated = request.manifest.is_gated();
    let mut lane = match is_gated {
        true if opening.is_open() => MaybeKnown::Known(records::gather(
            &request.manifest,
            &request.lane,
            request.origin,
            env,
            home,
        )),
        // The default lane needs no record; from here on it needs a proof.
        false if request.stage >= Stage::Four => MaybeKnown::Known(LaneFacts::nothing(host::now())),
        true | false => MaybeKnown::NotLookedAt,
    };
    let mut stage = request.stage;
    if lane.known().is_some() {
        let needed = match request.stage_by_default {
            true => Stage::One.number(),
            false => request.stage.number() - 1,
        };
        let document = contract_of(request, own, &lane, env);
        if let (MaybeKnown::Known(facts), Some(contract)) = (&mut lane, document.valid()) {
            let wanted = Wanted {
                stage: needed,
                lane: &LaneKey::of(&contract.lane),
                by: request.origin,
            };
            if needed > 0 {
                facts.proofs = records::proofs_for(&wanted, home);
            }
            if request.stage_by_default {
                stage = ladder::default_stage(request.stage, &facts.proofs, &contract.lane);
            }
        }
    }
    Footing {
        opening,
        lane,
        stage,
        target: targets::asked(&request.manifest, request.target.as_deref(), stage, env),
    }
}

/// The request at the stage that is meant, with the price of the model that is meant and the repository that is admitted.
pub fn settled<'r>(request: &'r Request, footing: &Footing) -> Result<Cow<'r, Request>, Failure> {
    let spend = spend_limit(request, footing)?;
    let admitted = match (&footing.target, request.label) {
        (TargetFound::Known(found), Label::Case) => Some(found),
        _ => None,
    };
    if request.stage == footing.stage && spend.is_none() && admitted.is_none() {
        return Ok(Cow::Borrowed(request));
    }
    let mut request = request.clone().at_stage(footing.stage);
    request.limits.model_spend = spend;
    Ok(Cow::Owned(match admitted {
        None => request,
        Some(found) => request.on_target(found),
    }))
}

/// What the run may cost, by the price of its model. Where no model is admitted there is none to pay.
fn spend_limit(request: &Request, footing: &Footing) -> Result<Option<SpendLimit>, Failure> {
    let pair = footing.lane.known().and_then(LaneFacts::pair_to_record);
    let (Some(asked), Some(pair)) = (&request.lane.spend, pair) else {
        return Ok(None);
    };
    let place = asked.prices.display().to_string();
    let bad = |why: String| {
        Failure::usage("bad_prices", "the price file cannot be used")
            .at(place.clone())
            .reason(why)
            .so("nothing ran")
            .hint("docs/engines.md shows what a price file holds")
    };
    let bytes = records::believed_file(&asked.prices, MAX_PRICES).map_err(bad)?;
    let price = Prices::read(&bytes).map_err(bad)?.of(&pair.model);
    let price = price.ok_or_else(|| {
        let what = format!("the price file has no price for {}", pair.model);
        Failure::usage("no_price", what)
            .at(place.clone())
            .so("nothing ran")
            .hint("add the model by the name that is admitted, or leave --spend out")
    })?;
    Ok(Some(SpendLimit {
        micros: asked.micros,
        price,
    }))
}
