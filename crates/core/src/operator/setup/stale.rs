//! What still holds of an engine's records, and what a setup has to write anew. A record that holds
//! is left alone, and so is one that somebody wrote in another form.

use super::Question;
use super::drafts::PACKAGE;
use super::package::{NoIntegrity, Package, pin};
use crate::containment::Containment;
use crate::engine::manifest::Manifest;
use crate::gate::ladder::{self, LaneKey, find_proof};
use crate::gate::{
    Binary, Endpoint, Interpreter, LaneFacts, Packages, interpreter_not_recorded,
    interpreter_too_old, packages_differ,
};
use crate::records::credential::CredentialWay;
use crate::records::{AdmissionStatus, Found, Record};
use crate::values::digest::Digest;
use crate::values::ids::EngineId;
use crate::values::maybe_known::MaybeKnown;

/// What is written, and proven, together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// The decision and the model's admission.
    Model,
    Executable,
    Source,
    Proofs,
}

impl Part {
    pub fn title(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Executable => "program",
            Self::Source => "source",
            Self::Proofs => "proofs",
        }
    }
}

/// One part that does not hold, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    pub part: Part,
    pub why: String,
}

/// Everything a setup looks at before it asks.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    pub manifest: &'a Manifest,
    pub lane: &'a LaneFacts,
    /// The package the program belongs to, where it belongs to one.
    pub package: Option<(&'a Package, &'a Result<String, NoIntegrity>)>,
    /// Flags ask for another model, endpoint or credential than the records name.
    pub other_model_asked: bool,
}

impl Standing<'_> {
    /// What does not hold, in the order it is mended.
    pub fn stale(&self) -> Vec<Stale> {
        let found = [
            (Part::Model, self.model()),
            (Part::Executable, self.executable()),
            (Part::Source, self.source()),
        ];
        let mut stale: Vec<Stale> = found
            .into_iter()
            .filter_map(|(part, why)| why.map(|why| Stale { part, why }))
            .collect();
        let proofs = match stale.is_empty() {
            true => self.unproven(),
            false => Some("they are about the records that are written anew".to_owned()),
        };
        stale.extend(proofs.map(|why| Stale {
            part: Part::Proofs,
            why,
        }));
        stale
    }

    fn model(&self) -> Option<String> {
        let lane = self.lane;
        if let Some(why) = not_there(&lane.decision).or_else(|| not_there(&lane.model)) {
            return Some(why);
        }
        let (decision, model) = (lane.decision.known()?, lane.model.known()?);
        let way = CredentialWay::read(&model.credential_source_class);
        let word = match &lane.endpoint {
            _ if self.other_model_asked => "another one is asked for",
            _ if model.status != AdmissionStatus::Admitted => "its record says not_admitted",
            _ if decision.pair() != Some(model.pair()) => {
                "decision and admission name different models"
            }
            _ if !matches!(way, Ok(Some(_))) => {
                "its record does not say where the credential comes from"
            }
            Endpoint::NotGiven => "its record does not say which file holds the base URL",
            Endpoint::Unreadable(why) => {
                return Some(format!(
                    "the file that holds the base URL cannot be used: {why}"
                ));
            }
            Endpoint::Refused(why) => return Some(why.to_string()),
            Endpoint::Given(facts)
                if model.endpoint_sha256.is_some_and(|sum| sum != facts.sha256) =>
            {
                "the base URL is not the one that was admitted"
            }
            Endpoint::Given(facts)
                if model
                    .endpoint_class()
                    .is_some_and(|class| !class.covers(facts.class)) =>
            {
                "the endpoint is of another class than the one that was admitted"
            }
            Endpoint::Given(_) => return None,
        };
        Some(word.to_owned())
    }

    fn executable(&self) -> Option<String> {
        let lane = self.lane;
        if let Some(why) = not_there(&lane.executable) {
            return Some(why);
        }
        let record = lane.executable.known()?;
        let Binary::Found { path, sha256, .. } = &lane.binary else {
            return Some("the program that was admitted is not there any more".into());
        };
        if let Some((admitted, found)) = record.other_version(lane.package_version.as_deref()) {
            return Some(format!(
                "version {admitted} was admitted, and {found} is installed"
            ));
        }
        if let Some(why) = packages_differ(&lane.packages, record) {
            return Some(why);
        }
        let other_interpreter = match (&lane.interpreter, record.interpreter_sha256) {
            (Interpreter::Found(found), Some(admitted)) => *found != admitted,
            (Interpreter::Missing(_), Some(_)) => true,
            _ => false,
        };
        let word = match () {
            () if record.engine != self.manifest.id => "its record is about another engine",
            () if record.path != *path => "another file is found than the one that was admitted",
            () if record.sha256 != *sha256 => "the file is not the one that was admitted",
            () if lane.packages == Packages::NotPinned => {
                "its record holds no digest of the packages around the file"
            }
            () if interpreter_not_recorded(self.manifest, record) => {
                "its record holds no digest of what runs the file"
            }
            () if other_interpreter => "another interpreter runs it than the one that was admitted",
            () if interpreter_too_old(self.manifest, record).is_some() => {
                "what runs it is older than the engine wants, or its version is not on record"
            }
            () => return None,
        };
        Some(word.to_owned())
    }

    fn source(&self) -> Option<String> {
        let (package, integrity) = self.package?;
        if let Some(why) = not_there(&self.lane.source) {
            return Some(why);
        }
        let record = self.lane.source.known()?;
        if record.source_type != PACKAGE || record.pinned_commit.is_some() {
            return None;
        }
        let here = pin(package, integrity.as_ref().ok().map(String::as_str));
        (record.pin() != Some(here.as_str()))
            .then(|| "another package is installed than the one that was admitted".to_owned())
    }

    /// Is this stage proven for this very lane?
    pub(super) fn is_proven(&self, stage: u8) -> bool {
        let lane = lane_key(&self.manifest.id, self.manifest.sha256, self.lane);
        let found = find_proof(&self.lane.proofs, stage, &lane);
        matches!(found, ladder::Standing::Proven(_))
    }

    fn unproven(&self) -> Option<String> {
        let lane = lane_key(&self.manifest.id, self.manifest.sha256, self.lane);
        [1, 2]
            .into_iter()
            .find_map(|stage| match find_proof(&self.lane.proofs, stage, &lane) {
                ladder::Standing::Proven(_) => None,
                ladder::Standing::Unproven => Some(format!("stage {stage} is not proven")),
                ladder::Standing::Demoted(parts) => Some(format!(
                    "stage {stage} is proven for another {}",
                    parts.join(", ")
                )),
            })
    }
}

/// The lane that the proofs of a setup are about.
fn lane_key(engine: &EngineId, manifest: Option<Digest>, lane: &LaneFacts) -> LaneKey {
    LaneKey {
        engine: engine.clone(),
        source_pin: lane.source_pin(),
        executable_sha256: lane
            .binary_sha256()
            .map_or(MaybeKnown::NotLookedAt, MaybeKnown::Known),
        interpreter_sha256: lane.interpreter_sha256(),
        packages_sha256: lane.packages_sha256(),
        manifest_sha256: manifest,
        model: lane.pair_to_record(),
        containment: Some(Containment::Strict),
    }
}

fn not_there<T: Record>(found: &Found<T>) -> Option<String> {
    match found {
        Found::Known(_) => None,
        Found::Missing => Some(format!("there is no {}", T::KIND.title())),
        Found::Invalid(issues) => Some(match issues.first() {
            Some(issue) => format!("the {} is not valid: {issue}", T::KIND.title()),
            None => format!("the {} is not valid", T::KIND.title()),
        }),
    }
}

/// The questions that are open for these parts. What is sent nowhere and written nowhere is not
/// asked about.
pub fn questions(stale: &[Stale], program_found: bool, license_claimed: bool) -> Vec<Question> {
    let is = |part: Part| stale.iter().any(|stale| stale.part == part);
    let writes = is(Part::Model) || is(Part::Executable) || is(Part::Source);
    [
        (Question::Program, !program_found),
        (Question::Endpoint, is(Part::Model)),
        (Question::Credential, is(Part::Model)),
        (Question::Send, is(Part::Model)),
        (Question::Model, is(Part::Model)),
        (Question::Approval, writes),
        (Question::License, is(Part::Source) && license_claimed),
        (Question::Name, !stale.is_empty()),
    ]
    .into_iter()
    .filter_map(|(question, open)| open.then_some(question))
    .collect()
}

#[cfg(test)]
#[path = "stale_tests.rs"]
pub(crate) mod tests;
