//! The model of a run: the way to it, and one real request before anything is started. The address
//! and the credential stay in this process; what leaves it is a door inside the jail and a token
//! worth nothing elsewhere.

use std::ffi::OsStr;
use std::time::Duration;

use cto_core::engine::manifest::{ModelUse, ProtocolName};
use cto_core::gate::Answer;
use cto_core::task::contract::Limits;
use cto_core::values::blocker::Code;
use cto_core::wire::Protocol;
use cto_core::wire::calls::{Budget, CallRecord};
use cto_core::wire::endpoint::Endpoint;
use cto_gateway::{Credential, CredentialClass, Route, Timeouts};

use crate::evidence::secrets::Secrets;
use crate::host::Env;
use crate::host::failure::Failure;

/// What records and operator say about the model, all of it already let through by its gates.
pub struct Chosen {
    pub model: String,
    pub aliases: Vec<String>,
    /// Fields of a request that pass beyond the list of the protocol.
    pub request_fields: Vec<String>,
    pub base_url: String,
    /// Absent where the endpoint asks for none.
    pub credential: Option<CredentialClass>,
    /// In the words of records; the engine's first choice where nothing is said.
    pub protocol: Option<String>,
}

/// The way to the model, in the words of the engine that will use it.
#[derive(Clone)]
pub struct Provider {
    pub route: Route,
    pub spoken: ProtocolName,
}

/// Makes the way. What is missing is a blocker; what cannot be done at all is a failure.
pub fn prepare(
    chosen: &Chosen,
    engine: &ModelUse,
    limits: &Limits,
    env: &Env,
) -> Result<Result<Provider, Answer>, Failure> {
    let refused = |code, why: String| Ok(Err(Answer::CouldNotAsk(code, why)));
    let spoken = match &chosen.protocol {
        None => engine.protocols.first(),
        Some(name) => engine
            .protocols
            .iter()
            .find(|protocol| protocol.wire == *name),
    };
    let Some((spoken, Ok(protocol))) =
        spoken.map(|spoken| (spoken, spoken.wire.parse::<Protocol>()))
    else {
        return refused(
            Code::ProviderLocalConfigUnavailable,
            "the engine does not speak the protocol that was asked for".into(),
        );
    };
    let endpoint = match Endpoint::parse(&chosen.base_url) {
        Ok(endpoint) => endpoint,
        Err(error) => return refused(Code::ProviderLocalConfigUnavailable, error.to_string()),
    };
    let credential = match chosen
        .credential
        .as_ref()
        .map(|class| Credential::load(class, &|name| env.get(name).map(OsStr::to_owned)))
        .transpose()
    {
        Ok(credential) => credential,
        Err(error) => return refused(Code::ProviderAuthUnavailable, error.to_string()),
    };
    let mut route = Route::new(protocol, endpoint, credential, &chosen.model).map_err(|error| {
        Failure::internal("no_randomness", "no token could be made for the run").because(&error)
    })?;
    route.aliases.clone_from(&chosen.aliases);
    route.request_fields.clone_from(&chosen.request_fields);
    route.budget = budget(limits);
    route.timeouts = timeouts(limits);
    Ok(Ok(Provider {
        route,
        spoken: spoken.clone(),
    }))
}

impl Provider {
    /// One real request.
    pub fn ask(&self) -> CallRecord {
        cto_gateway::probe_call(&self.route)
    }

    /// What the redactor of the run must know to take it out.
    pub fn add_to(&self, secrets: &mut Secrets) {
        secrets.add_private(&self.route.endpoint);
        secrets.add(self.route.credential.iter().map(Credential::known_value));
    }
}

fn budget(limits: &Limits) -> Budget {
    let ordinary = Budget::default();
    Budget {
        calls: limits.model_calls.map_or(ordinary.calls, u64::from),
        tokens: limits.model_tokens.map_or(ordinary.tokens, u64::from),
        spend: limits.model_spend,
        wall_ms: ordinary
            .wall_ms
            .max(u64::from(limits.engine_wall_seconds) * 1000),
        ..ordinary
    }
}

/// The gateway gives up on a silent endpoint before the supervisor gives up on a silent engine:
/// only the gateway knows which of them is silent.
fn timeouts(limits: &Limits) -> Timeouts {
    let ordinary = Timeouts::default();
    let idle = Duration::from_secs(limits.engine_idle_seconds.into());
    let asked = limits
        .model_stall_seconds
        .map(|seconds| Duration::from_secs(seconds.into()));
    Timeouts {
        stall: asked.unwrap_or(ordinary.stall).min(idle * 3 / 4),
        connect: ordinary.connect.min(idle / 2),
        ..ordinary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::engine::manifest::Manifest;

    fn pi() -> ModelUse {
        let manifest = Manifest::parse("pi", include_str!("../../../../engines/pi.toml")).unwrap();
        manifest.invocation.unwrap().model.unwrap()
    }

    fn chosen() -> Chosen {
        Chosen {
            model: "m".into(),
            aliases: vec!["m-1".into()],
            request_fields: Vec::new(),
            base_url: "http://127.0.0.1:9/v1".into(),
            credential: Some(CredentialClass::Environment("LAB_KEY".into())),
            protocol: None,
        }
    }

    fn prepared(chosen: &Chosen) -> Result<Provider, Answer> {
        let env = Env::from_pairs(&[("LAB_KEY", "a-key-of-the-lab")]);
        prepare(chosen, &pi(), &Limits::default(), &env).unwrap()
    }

    #[test]
    fn the_way_is_the_records_way() {
        let provider = prepared(&chosen()).ok().unwrap();
        assert_eq!(
            (
                provider.route.model.as_str(),
                provider.route.aliases.as_slice()
            ),
            ("m", &["m-1".to_owned()][..])
        );
        assert_eq!(provider.spoken.name, "openai-completions");
        let other = Chosen {
            protocol: Some("anthropic-messages".into()),
            ..chosen()
        };
        assert_eq!(
            prepared(&other).ok().unwrap().route.protocol,
            Protocol::AnthropicMessages
        );
    }

    #[test]
    fn what_is_missing_is_a_blocker_that_repeats_nothing() {
        for (bad, want) in [
            (
                Chosen {
                    base_url: "ftp://hidden".into(),
                    ..chosen()
                },
                Code::ProviderLocalConfigUnavailable,
            ),
            (
                Chosen {
                    base_url: "http://u:hidden@127.0.0.1/".into(),
                    ..chosen()
                },
                Code::ProviderLocalConfigUnavailable,
            ),
            (
                Chosen {
                    protocol: Some("gemini-generate".into()),
                    ..chosen()
                },
                Code::ProviderLocalConfigUnavailable,
            ),
            (
                Chosen {
                    credential: Some(CredentialClass::Environment("NOT_SET".into())),
                    ..chosen()
                },
                Code::ProviderAuthUnavailable,
            ),
        ] {
            let Err(Answer::CouldNotAsk(code, why)) = prepared(&bad) else {
                panic!("let through")
            };
            assert_eq!(code, want);
            assert!(!why.contains("hidden"), "{why}");
        }
    }

    #[test]
    fn the_endpoint_and_the_credential_are_known_to_the_redactor() {
        let mut secrets = Secrets::default();
        let private = Chosen {
            base_url: "https://gate.corp.example/v1".into(),
            ..chosen()
        };
        for chosen in [chosen(), private] {
            prepared(&chosen).ok().unwrap().add_to(&mut secrets);
        }
        let text = b"https://gate.corp.example/v1 a-key-of-the-lab http://127.0.0.1:9/v1\n";
        let (clean, hits) = secrets.redact(text);
        let clean = String::from_utf8(clean).unwrap();
        assert!(
            !clean.contains("gate.corp.example") && !clean.contains("a-key-of-the-lab"),
            "{clean}"
        );
        assert!(clean.contains("http://127.0.0.1:9/v1"), "everybody's");
        assert_eq!((hits.known, hits.private), (1, 1));
    }

    #[test]
    fn the_gateway_gives_up_before_the_supervisor_does() {
        let limits = Limits {
            engine_idle_seconds: 60,
            model_calls: Some(7),
            ..Limits::default()
        };
        assert!(timeouts(&limits).stall < Duration::from_secs(60));
        let asked = Limits {
            model_stall_seconds: Some(2),
            ..limits
        };
        assert_eq!(timeouts(&asked).stall, Duration::from_secs(2));
        assert_eq!(budget(&limits).calls, 7);
        assert_eq!(budget(&Limits::default()).calls, Budget::default().calls);
    }
}
