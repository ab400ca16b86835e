//! Gates that read admission records: decision, model, executable, source, review, credential,
//! endpoint, proof of the earlier stage. `fake` needs none of them; a closed engine and stage 1
//! start nothing.

use super::around::{beside, not_pinned};
use super::checks::{ENGINE_CLOSED, closed, with_contract};
use super::lane::{Binary, Credential, Endpoint, LaneFacts};
use super::target::TargetFound;
use super::{GateInput, Outcome};
use crate::gate::ladder;
use crate::records::{
    AdmissionStatus, Circumstance, DecisionStatus, Found, Issue, LicenseStatus, ModelDecision,
    ModelResult, ProviderClass, RecordKind, Recorded, ReviewTrigger, name_difference,
};
use crate::task::contract::{Contract, ModelPair, Stage};
use crate::values::blocker::Code;
use crate::values::hint::OF_ENGINE_SOURCE;
use crate::values::maybe_known::MaybeKnown;

/// Runs a check only where the lane needs it; without gathered facts it sees none.
fn admitted(input: &GateInput<'_>, check: impl FnOnce(&LaneFacts) -> Outcome) -> Outcome {
    match &input.lane {
        _ if closed(input) => ENGINE_CLOSED,
        _ if !input.manifest.is_gated() => {
            Outcome::NotApplicable("the default lane needs no admission")
        }
        _ if input.stage == Stage::One => Outcome::NotApplicable("stage 1 starts nothing"),
        MaybeKnown::Known(facts) => check(facts),
        MaybeKnown::NotLookedAt => check(&LaneFacts::nothing(crate::values::time::Utc::FIRST)),
    }
}

pub(super) fn blocked(code: Code, detail: impl Into<String>) -> Outcome {
    Outcome::Blocked(code, Some(detail.into()))
}

fn listed(issues: &[Issue]) -> String {
    issues
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

pub fn provider_decision(input: &GateInput<'_>) -> Outcome {
    let no = |detail: &str| blocked(Code::ProviderDecisionClosed, detail);
    admitted(input, |facts| match &facts.decision {
        Found::Missing => no("there is no decision record"),
        Found::Invalid(issues) => no(&format!(
            "the decision record cannot be used: {}",
            listed(issues)
        )),
        Found::Known(decision) => decided(&decision.record, facts),
    })
}

/// Does the decision allow this pair? Only the pair that the decision names is known to be local.
fn decided(decision: &ModelDecision, facts: &LaneFacts) -> Outcome {
    let no = |detail: &str| blocked(Code::ProviderDecisionClosed, detail);
    let Some(pair) = facts.pair() else {
        return no("no provider and model were asked for, and none is admitted");
    };
    let is = |other: Option<ModelPair>| other.is_some_and(|other| other == pair);
    let hosted = facts
        .endpoint
        .facts()
        .is_some_and(|found| found.class == crate::wire::endpoint::EndpointClass::Hosted);
    match decision.decision_status {
        DecisionStatus::NotDecided => no("the decision is not_decided"),
        DecisionStatus::LocalProviderRequired if !is(decision.pair()) => {
            no("the decision is local_provider_required, and this is not the pair it names")
        }
        DecisionStatus::LocalProviderRequired if hosted => no(
            "the decision is local_provider_required, and the endpoint lies beyond the private network",
        ),
        DecisionStatus::ExternalProviderApproved
            if !is(decision.pair()) && !is(decision.fallback()) =>
        {
            no("the decision approves another provider and model")
        }
        DecisionStatus::LocalProviderRequired | DecisionStatus::ExternalProviderApproved => {
            Outcome::Pass
        }
    }
}

pub fn model_admission(input: &GateInput<'_>) -> Outcome {
    admitted(input, |facts| match model_result(facts) {
        (ModelResult::Admitted, note) => note.map_or(Outcome::Pass, Outcome::Noted),
        (result, why) => {
            let why = why.unwrap_or_else(|| "no reason was given".into());
            blocked(
                Code::ModelNotAdmitted,
                format!("{}: {why}", result.as_str()),
            )
        }
    })
}

/// The record is the authority; what was asked for is compared with it byte by byte.
pub fn model_result(facts: &LaneFacts) -> (ModelResult, Option<String>) {
    let record = match &facts.model {
        Found::Missing => {
            return (
                ModelResult::MissingAdmission,
                Some("no admission names a provider and a model".into()),
            );
        }
        Found::Invalid(issues) => return (ModelResult::InvalidAdmission, Some(listed(issues))),
        Found::Known(recorded) => &recorded.record,
    };
    let differs = |what: &str, asked: &Option<String>, admitted: &str| {
        let found = name_difference(asked.as_deref()?, admitted)?;
        Some(format!(
            "the {what} asked for is not the {what} that is admitted; {found}"
        ))
    };
    let endpoint = facts.endpoint.facts();
    let mismatch = differs("provider", &facts.asked_provider, &record.provider)
        .or_else(|| differs("model", &facts.asked_model, &record.model))
        .or_else(|| match (record.endpoint_sha256, endpoint) {
            (Some(want), Some(found)) if want != found.sha256 => {
                Some("the base URL is not the one that is admitted".into())
            }
            _ => None,
        })
        .or_else(|| match (record.endpoint_class(), endpoint) {
            (Some(want), Some(found)) if !want.covers(found.class) => Some(format!(
                "the endpoint is {}, and {} is admitted",
                found.class.as_str(),
                want.as_str()
            )),
            _ => None,
        });
    match (record.status, mismatch) {
        (AdmissionStatus::NotAdmitted, _) => (
            ModelResult::NotAdmitted,
            Some("its record says not_admitted".into()),
        ),
        (AdmissionStatus::Admitted, Some(why)) => (ModelResult::Mismatch, Some(why)),
        (AdmissionStatus::Admitted, None) => {
            let words = record
                .endpoint_class()
                .is_none()
                .then(|| format!("network class: {}", record.allowed_network_class));
            (ModelResult::Admitted, words)
        }
    }
}

pub fn executable_admission(input: &GateInput<'_>) -> Outcome {
    let no = |detail: &str| blocked(Code::ExecutableNotAdmitted, detail);
    admitted(input, |facts| {
        let record = match &facts.executable {
            Found::Missing => return no("no record admits a file for this engine"),
            Found::Invalid(issues) => {
                return no(&format!("the record cannot be used: {}", listed(issues)));
            }
            Found::Known(recorded) => &recorded.record,
        };
        if record.engine != input.manifest.id {
            return no("the record is about another engine");
        }
        match &facts.binary {
            Binary::NotNamed => no("no file was named"),
            Binary::NotAPath => no(
                "what was named is not an absolute path; a name, an alias or a shell keyword is no provider",
            ),
            Binary::NotThere => blocked(
                Code::ProviderUnavailable,
                "the admitted file is no longer at its path",
            ),
            Binary::NotRegular => no("what is at its path is not a regular file"),
            Binary::NotExecutable => no("the file may not be executed"),
            Binary::Unreadable(why) => no(&format!("the file cannot be read: {why}")),
            Binary::Found { .. } if facts.is_the_harness => {
                no("this is the harness itself; its doubles prove nothing")
            }
            Binary::Found { path, .. } if *path != record.path => {
                no("the file named is not the one that is admitted")
            }
            Binary::Found { sha256, .. } if *sha256 != record.sha256 => {
                no("the file has another digest than the one that is admitted")
            }
            Binary::Found { .. } if beside(input.manifest, facts, record).is_some() => {
                no(&beside(input.manifest, facts, record).unwrap_or_default())
            }
            Binary::Found {
                is_temporary: true, ..
            } if input.stage > Stage::Two => {
                no("the file lies in a temporary directory, which no stage from 3 on allows")
            }
            Binary::Found {
                is_temporary: true, ..
            } => Outcome::Noted(
                "warning: the file lies in a temporary directory; stages from 3 on refuse it"
                    .into(),
            ),
            Binary::Found { .. } => Outcome::Pass,
        }
    })
}

pub fn source_admission(input: &GateInput<'_>) -> Outcome {
    let no = |why: String| blocked(Code::SourceNotAdmitted, format!("{OF_ENGINE_SOURCE}{why}"));
    admitted(input, |facts| {
        if let Found::Invalid(issues) = &facts.source {
            return no(format!(
                "the source record cannot be used: {}",
                listed(issues)
            ));
        }
        let problem = with_source(facts, input);
        match (problem, input.stage) {
            (Some(why), Stage::One | Stage::Two) => {
                Outcome::Noted(format!("source_admission_status: not_admitted ({why})"))
            }
            (Some(why), _) => no(why.into()),
            (None, stage) if stage >= Stage::Five && license_open(facts) => {
                Outcome::Blocked(Code::LicenseUnresolved, None)
            }
            (None, _) => Outcome::Pass,
        }
    })
}

/// Why the source is not admitted for this run.
fn with_source(facts: &LaneFacts, input: &GateInput<'_>) -> Option<&'static str> {
    let Some(source) = facts.source.known() else {
        return Some("there is no source record");
    };
    let executable = facts.executable.known();
    let pin = executable.and_then(|executable| executable.pinned_commit.as_deref());
    let mode = input
        .contract
        .valid()
        .map(|contract| contract.mutation_mode);
    match source {
        _ if source.engine != input.manifest.id => Some("the record is about another engine"),
        _ if source.source_admission_status != AdmissionStatus::Admitted => {
            Some("its record says not_admitted")
        }
        _ if pin.is_some()
            && source.pinned_commit.is_some()
            && pin != source.pinned_commit.as_deref() =>
        {
            Some("the file was built from another commit than the one that is pinned")
        }
        _ if !mode.is_some_and(|mode| source.covers(mode)) => {
            Some("its allowed modes do not cover the mutation mode")
        }
        _ => executable.and_then(|executable| executable.build_problem()),
    }
}

fn license_open(facts: &LaneFacts) -> bool {
    facts
        .source
        .known()
        .is_none_or(|source| source.license_status != LicenseStatus::Resolved)
}

pub fn review(input: &GateInput<'_>) -> Outcome {
    let default_lane = !closed(input) && !input.manifest.is_gated();
    match (input.target, input.lane.known()) {
        // No record admits the default lane, but one admits the repository that it may change.
        (TargetFound::Known(_), Some(facts)) if default_lane => review_due(input, facts),
        _ => admitted(input, |facts| review_due(input, facts)),
    }
}

fn review_due(input: &GateInput<'_>, facts: &LaneFacts) -> Outcome {
    let pair = facts.pair();
    let class = facts
        .model
        .known()
        .map(|model| model.credential_source_class.as_str());
    let mut fired: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut unpinned = Vec::new();
    let mut look =
        |kind: RecordKind, path: &str, subject: Option<&str>, trigger: &ReviewTrigger| {
            let now = Circumstance {
                stage: input.stage,
                now: facts.now,
                record_path: path,
                subject_path: subject,
                endpoint: facts.endpoint.facts().map(|found| found.class),
                credential_class: class,
                pair: pair.as_ref(),
            };
            fired.extend(
                trigger
                    .fired(&now)
                    .into_iter()
                    .map(|why| format!("{}: {why}", kind.title())),
            );
            words.extend(
                trigger
                    .words()
                    .map(|text| format!("{}: {text}", kind.title())),
            );
        };
    if let Found::Known(found) = &facts.decision
        && let Recorded {
            record:
                ModelDecision {
                    review_trigger: Some(trigger),
                    ..
                },
            path,
            ..
        } = found.as_ref()
    {
        look(RecordKind::Decision, path, None, trigger);
    }
    if let Found::Known(found) = &facts.model {
        look(
            RecordKind::Model,
            &found.path,
            None,
            &found.record.review_trigger,
        );
    }
    if let Found::Known(found) = &facts.executable {
        // A file that is not there is its own blocker; only another file is another path.
        let subject = match &facts.binary {
            Binary::Found { path, .. } => path.as_str(),
            _ => found.record.path.as_str(),
        };
        look(
            RecordKind::Executable,
            &found.path,
            Some(subject),
            &found.record.review_trigger,
        );
        unpinned = not_pinned(input.manifest, facts, &found.record);
    }
    if let Found::Known(found) = &facts.source {
        look(
            RecordKind::Source,
            &found.path,
            None,
            &found.record.review_trigger,
        );
    }
    if let TargetFound::Known(found) = input.target {
        let trigger = &found.record.review_trigger;
        let subject = Some(found.record.target_repository_path.as_str());
        look(RecordKind::Target, &found.path, subject, trigger);
    }
    if let (true, Found::Known(found)) = (input.opening.by_record(), &facts.gate) {
        let trigger = &found.record.review_trigger;
        look(RecordKind::Gate, &found.path, None, trigger);
    }
    // A record of before pins a launcher and nothing that it starts, or that starts it.
    fired.extend(unpinned);
    match (fired.is_empty(), words.is_empty()) {
        (false, _) => blocked(Code::ReviewDue, fired.join("; ")),
        (true, false) => Outcome::Noted(format!("review when: {}", words.join("; "))),
        (true, true) => Outcome::Pass,
    }
}

pub fn credentials(input: &GateInput<'_>) -> Outcome {
    let no = |detail: String| blocked(Code::ProviderAuthUnavailable, detail);
    admitted(input, |facts| {
        let Some(model) = facts.model.known() else {
            return Outcome::NotApplicable("no admission names a credential class");
        };
        let bridge = input.manifest.auth_bridge(&model.provider);
        if let Some(bridge) = bridge.filter(|_| !facts.auth_bridge) {
            return no(format!(
                "this provider needs an auth bridge through {}, and none is proven; {}=1 has it tried",
                input.manifest.title, bridge.variable
            ));
        }
        match &facts.credential {
            Credential::Ready(_) => Outcome::Pass,
            Credential::NoWay => {
                no("the record describes the credential in words only; say where it comes from (env:, file: or command:)".into())
            }
            Credential::AnotherWay => {
                no("the credential was to come another way than the one that is admitted".into())
            }
            Credential::Refused(why) => no(why.clone()),
            Credential::Missing(way) => no(format!(
                "{} is not there, or may not be used",
                way.describe()
            )),
        }
    })
}

pub fn endpoint(input: &GateInput<'_>) -> Outcome {
    admitted(input, |facts| {
        let decided = facts
            .decision
            .known()
            .and_then(|decision| decision.provider_class);
        let code = match decided {
            _ if facts.model.known().is_none() => {
                return Outcome::NotApplicable("no model is admitted");
            }
            None => return Outcome::NotApplicable("no decision names the class of the provider"),
            Some(ProviderClass::LocalCaseCompatible) => Code::ProviderLocalConfigUnavailable,
            Some(ProviderClass::ExternalAnthropic | ProviderClass::ExternalOpenaiCodex) => {
                Code::ProviderUnavailable
            }
        };
        match &facts.endpoint {
            Endpoint::Given(_) => Outcome::Pass,
            Endpoint::NotGiven => blocked(code, "no base URL was supplied for this run"),
            Endpoint::Refused(problem) => blocked(code, problem.to_string()),
            Endpoint::Unreadable(why) => blocked(
                code,
                format!("the file of the base URL cannot be read: {why}"),
            ),
        }
    })
}

/// `fake` needs no earlier proof for stages 2 and 3; any other lane needs the stage before, proven
/// for itself.
pub fn stage_proof(input: &GateInput<'_>) -> Outcome {
    match (input.manifest.is_gated(), input.stage) {
        _ if closed(input) => ENGINE_CLOSED,
        (_, Stage::One) => Outcome::NotApplicable("stage 1 is the first"),
        (false, Stage::Two | Stage::Three) => Outcome::Pass,
        _ => with_contract(input, |contract| proven(input, contract)),
    }
}

fn missing(stage: u8) -> Outcome {
    blocked(
        Code::StageNotProven,
        format!("no proof of stage {stage} for this lane"),
    )
}

fn proven(input: &GateInput<'_>, contract: &Contract) -> Outcome {
    let needed = input.stage.number() - 1;
    let MaybeKnown::Known(facts) = &input.lane else {
        return missing(needed);
    };
    match ladder::find_proof(&facts.proofs, needed, &ladder::LaneKey::of(&contract.lane)) {
        ladder::Standing::Proven(proof) => {
            Outcome::Noted(format!("stage {needed} is proven by {}", proof.run_id))
        }
        ladder::Standing::Unproven => missing(needed),
        ladder::Standing::Demoted(changed) => blocked(
            Code::StageNotProven,
            format!(
                "stage {needed} was proven for another lane; changed since: {}",
                changed.join(", ")
            ),
        ),
    }
}

#[cfg(test)]
#[path = "admissions_tests.rs"]
mod tests;
