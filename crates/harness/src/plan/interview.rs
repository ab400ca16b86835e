//! An endpoint asked for a person who is about to admit it: which models it has, and one real
//! request, over the way a run would take. Both are given up at once where the person asks for it.

use cto_core::engine::manifest::{Manifest, ModelUse, ProtocolName};
use cto_core::gate::Answer;
use cto_core::records::ModelAdmission;
use cto_core::records::credential::CredentialWay;
use cto_core::task::contract::Limits;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{ProbeOutcome, probe_outcome};
use cto_core::wire::profiles::model_list::Listed;
use cto_core::wire::profiles::switch::Switch;
use cto_gateway::{GivenUp, ListError};

use super::Still;
use super::provider::{self, Chosen, Provider};
use crate::host::failure::Failure;
use crate::host::{Env, Home};

/// An endpoint that can be asked.
pub struct Interviewee {
    provider: Provider,
}

/// What came back.
pub struct Heard {
    pub outcome: ProbeOutcome,
    pub status: Option<u16>,
    /// Why nothing usable came, in words.
    pub why: Option<&'static str>,
    /// The name it answered with, where that is not the one that was asked for.
    pub other_name: Option<String>,
    /// The words of a refusal, tame and without anything private.
    pub error_body: Option<String>,
    /// What it turned out to want.
    pub switches: Vec<Switch>,
    pub first_byte_ms: Option<u64>,
}

/// It was given up, or could not be begun on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotHeard {
    GivenUp,
    NotStarted,
}

impl Interviewee {
    /// Makes the way that a run by this admission would take. The admission may be a draft.
    pub fn new(
        admission: &ModelAdmission,
        base_url: String,
        way: &CredentialWay,
        manifest: &Manifest,
        (env, home): (&Env, &Home),
    ) -> Result<Self, Failure> {
        let unusable = |code, why: String| {
            Failure::blocked(code, "the endpoint cannot be asked")
                .reason(why)
                .so("nothing was sent, and nothing was written")
        };
        let class = |way: &CredentialWay| {
            super::provider::class_of(way, env, home)
                .map_err(|why| unusable("provider_auth_unavailable", why))
        };
        let credential = class(way)?;
        let to_proxy = admission
            .proxy_credential
            .as_deref()
            .and_then(|text| CredentialWay::read(text).ok().flatten());
        let proxy_credential = to_proxy.as_ref().map(class).transpose()?.flatten();
        let chosen = Chosen {
            admission,
            base_url,
            credential,
            proxy_credential,
            protocol: None,
            first_byte: None,
        };
        match provider::prepare(&chosen, &spoken(manifest), &Limits::default(), env)? {
            Ok(provider) => Ok(Self { provider }),
            Err(Answer::CouldNotAsk(code, why)) => Err(unusable(code.as_str(), why)),
            Err(_) => Err(unusable("provider_unavailable", "it was not asked".into())),
        }
    }

    /// The models it offers; the reason where it offers none. Never a reason to stop.
    pub fn models(&self, still: Still<'_>) -> Result<Result<Vec<Listed>, String>, NotHeard> {
        match cto_gateway::list_models(&self.provider.route, still) {
            Ok(listed) => Ok(Ok(listed)),
            Err(ListError::GivenUp(given_up)) => Err(given_up.into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// One real request.
    pub fn ask(&self, still: Still<'_>) -> Result<Heard, NotHeard> {
        let route = &self.provider.route;
        let interview = cto_gateway::interview(route, still)?;
        Ok(Heard {
            outcome: probe_outcome(&interview.call),
            status: interview.call.status.known().copied(),
            why: interview.call.why.map(|why| why.sentence()),
            other_name: interview.other_name(route).map(str::to_owned),
            first_byte_ms: interview
                .call
                .first_byte_us
                .known()
                .map(|micros| micros / 1000),
            error_body: interview.error_body,
            switches: interview.switches,
        })
    }
}

impl From<GivenUp> for NotHeard {
    fn from(given_up: GivenUp) -> Self {
        match given_up {
            GivenUp::Cancelled => Self::GivenUp,
            GivenUp::NotStarted => Self::NotStarted,
        }
    }
}

/// What the engine speaks; every protocol where this version does not know how to start it.
fn spoken(manifest: &Manifest) -> ModelUse {
    let known = manifest.invocation.as_ref();
    known
        .and_then(|invocation| invocation.model.clone())
        .unwrap_or_else(|| ModelUse {
            protocols: Protocol::ALL
                .iter()
                .map(|protocol| ProtocolName {
                    wire: protocol.as_str().to_owned(),
                    name: protocol.as_str().to_owned(),
                    base: String::new(),
                })
                .collect(),
            runtime_provider: None,
            auth_bridges: Vec::new(),
            habits: Vec::new(),
            switches: Default::default(),
        })
}

/// The protocols of an engine, in its order: how records call each, and how the engine does.
pub fn protocols(manifest: &Manifest) -> Vec<ProtocolName> {
    spoken(manifest).protocols
}
