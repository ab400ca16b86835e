//! The model of a run: the way to it, and one real request before anything is started. The address
//! and the credential stay in this process; what leaves it is a door inside the jail and a token
//! worth nothing elsewhere.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use cto_core::engine::manifest::{ModelUse, ProtocolName};
use cto_core::gate::Answer;
use cto_core::records::ModelAdmission;
use cto_core::records::credential::CredentialWay;
use cto_core::task::contract::Limits;
use cto_core::values::blocker::Code;
use cto_core::wire::Protocol;
use cto_core::wire::calls::Budget;
use cto_core::wire::endpoint::Endpoint;
use cto_core::wire::profiles::Profile;
use cto_core::wire::profiles::switch::Habits;
use cto_gateway::{Credential, CredentialClass, GivenUp, Heard, Proxy, Route, Timeouts};

use super::{Still, endpoint_way};
use crate::evidence::secrets::Secrets;
use crate::host::Env;
use crate::host::failure::Failure;
use crate::host::way::operator_file;
use crate::host::{Home, programs};

/// What records and operator say about the model, all of it already let through by its gates.
pub struct Chosen<'a> {
    /// The model, its aliases and the way to its endpoint. A draft will do: nothing here asks
    /// whether it is admitted.
    pub admission: &'a ModelAdmission,
    pub base_url: String,
    /// Absent where the endpoint asks for none.
    pub credential: Option<CredentialClass>,
    /// The same for the proxy of the record.
    pub proxy_credential: Option<CredentialClass>,
    /// Asked for by flag or variable; then the record's, then the engine's first choice.
    pub protocol: Option<String>,
    /// Seconds, by flag or variable; then the record's.
    pub first_byte: Option<u32>,
}

/// How much the model reads and writes at once, as an engine is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    pub context_window: u64,
    pub output_limit: u64,
}

impl Sizes {
    /// Where the record says nothing: what models of today have at least.
    const USUAL: Self = Self {
        context_window: 128_000,
        output_limit: 16_384,
    };

    fn of(admission: &ModelAdmission) -> Self {
        let context_window = admission
            .context_window
            .unwrap_or(Self::USUAL.context_window);
        Self {
            context_window,
            output_limit: admission
                .output_limit
                .unwrap_or(Self::USUAL.output_limit.min(context_window)),
        }
    }
}

/// The way to the model, in the words of the engine that will use it.
#[derive(Clone)]
pub struct Provider {
    pub route: Route,
    pub spoken: ProtocolName,
    pub sizes: Sizes,
    /// The engine's own settings for what the endpoint wants: one JSON object.
    pub compat: String,
    /// What the report says beside its verdict.
    pub notes: Vec<String>,
    /// How long the first byte of the first answer may take: nobody but the endpoint is waited for.
    patience: Duration,
}

/// Makes the way. What is missing is a blocker; what cannot be done at all is a failure.
pub fn prepare(
    chosen: &Chosen<'_>,
    engine: &ModelUse,
    limits: &Limits,
    env: &Env,
) -> Result<Result<Provider, Answer>, Failure> {
    let refused = |code, why: String| Ok(Err(Answer::CouldNotAsk(code, why)));
    let admission = chosen.admission;
    let asked = chosen
        .protocol
        .as_deref()
        .or(admission.protocol.map(Protocol::as_str));
    let spoken = match asked {
        None => engine.protocols.first(),
        Some(name) => engine
            .protocols
            .iter()
            .find(|protocol| protocol.wire == name),
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
    let load = |class: &CredentialClass| {
        Credential::load(class, &|name| env.get(name).map(OsStr::to_owned))
    };
    let credential = match chosen.credential.as_ref().map(load).transpose() {
        Ok(credential) => credential,
        Err(error) => return refused(Code::ProviderAuthUnavailable, error.to_string()),
    };
    let proxy_credential = match chosen.proxy_credential.as_ref().map(load).transpose() {
        Ok(credential) => credential,
        Err(error) => {
            return refused(
                Code::ProviderAuthUnavailable,
                format!("of the proxy: {error}"),
            );
        }
    };
    let way = match endpoint_way::read(admission, proxy_credential) {
        Ok(way) => way,
        Err(why) => return refused(Code::ProviderLocalConfigUnavailable, why),
    };
    if credential.is_some() && !endpoint.takes_credentials() {
        return refused(
            Code::ProviderAuthUnavailable,
            "a credential is sent over https or to this machine only, and this base URL is http"
                .into(),
        );
    }
    let mut route =
        Route::new(protocol, endpoint, credential, &admission.model).map_err(|error| {
            Failure::internal("no_randomness", "no token could be made for the run").because(&error)
        })?;
    route.aliases = admission.aliases.clone().unwrap_or_default();
    route.request_fields = admission.request_fields.clone().unwrap_or_default();
    let switches = admission.compat.as_deref().unwrap_or_default();
    route.habits = Habits::of(&engine.habits).with(switches);
    route.auth = admission
        .profile
        .as_deref()
        .and_then(Profile::named)
        .map(|profile| profile.auth)
        .unwrap_or_default();
    route.api_version.clone_from(&admission.api_version);
    route.proxy = way.proxy;
    route.authorities = way.authorities;
    route.headers = way.headers;
    route.budget = budget(limits);
    let first_byte = chosen
        .first_byte
        .map(u64::from)
        .or(admission.first_byte_seconds)
        .map(Duration::from_secs);
    route.timeouts = timeouts(limits, first_byte);
    let mut notes = endpoint_way::not_obeyed(admission, &route.endpoint, env);
    let lacking = engine.lacks(switches);
    notes.extend(lacking.iter().map(|switch| {
        format!(
            "the model record wants {}, for which this engine has no setting",
            switch.as_str()
        )
    }));
    Ok(Ok(Provider {
        patience: first_byte.unwrap_or(route.timeouts.first_byte),
        sizes: Sizes::of(admission),
        compat: engine.compat(switches),
        notes,
        route,
        spoken: spoken.clone(),
    }))
}

impl Provider {
    /// One real request. A model that must be loaded first is waited for as long as was said: no
    /// engine sits idle yet.
    pub fn ask(&self, still: Still<'_>) -> Result<Heard, GivenUp> {
        let mut route = self.route.clone();
        route.timeouts.first_byte = self.patience;
        cto_gateway::probe_attended(&route, still)
    }

    /// What the redactor of the run must know to take it out.
    pub fn add_to(&self, secrets: &mut Secrets) {
        secrets.add_private(&self.route.endpoint);
        secrets.add_credentials(self.route.credential.iter().map(Credential::known_value));
        for (name, value) in &self.route.headers {
            secrets.add_header(name, value.known_value());
        }
        let proxy = self.route.proxy.iter();
        secrets.add_credentials(proxy.flat_map(Proxy::known_values));
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
fn timeouts(limits: &Limits, first_byte: Option<Duration>) -> Timeouts {
    let ordinary = Timeouts::default();
    let idle = Duration::from_secs(limits.engine_idle_seconds.into());
    let asked = limits
        .model_stall_seconds
        .map(|seconds| Duration::from_secs(seconds.into()));
    Timeouts {
        first_byte: first_byte
            .or(asked)
            .unwrap_or(ordinary.first_byte)
            .min(idle * 3 / 4),
        stall: asked.unwrap_or(ordinary.stall).min(idle * 3 / 4),
        connect: ordinary.connect.min(idle / 2),
        ..ordinary
    }
}

/// Where a credential is read from, or why it is not: a file is looked at here too, because the gate asks about
/// the endpoint's own and not about the proxy's.
pub fn class_of(
    way: &CredentialWay,
    env: &Env,
    home: &Home,
) -> Result<Option<CredentialClass>, String> {
    Ok(match way {
        CredentialWay::None => None,
        CredentialWay::Variable(name) => Some(CredentialClass::Environment(name.clone())),
        CredentialWay::File(path) => {
            operator_file::credential(Path::new(path))
                .map_err(|problem| format!("the credential's file {problem}"))?;
            Some(CredentialClass::File(path.into()))
        }
        CredentialWay::Command(words) => Some(CredentialClass::Command(
            programs::to_start(words, env, home).map_err(|none| none.to_string())?,
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::engine::manifest::Manifest;

    fn pi() -> ModelUse {
        let manifest = Manifest::parse("pi", include_str!("../../../../engines/pi.toml")).unwrap();
        manifest.invocation.unwrap().model.unwrap()
    }

    fn admission(more: serde_json::Value) -> ModelAdmission {
        let mut value = serde_json::json!({
            "status": "admitted", "provider": "p", "model": "m", "aliases": ["m-1"],
            "credential_source_class": "env:LAB_KEY", "allowed_network_class": "loopback", "approval_source": "a",
            "admission_timestamp": "2026-06-01", "review_trigger": "later",
        });
        let more = more.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(more);
        cto_core::records::read(&serde_json::to_vec(&value).unwrap()).unwrap()
    }

    fn plain() -> &'static ModelAdmission {
        static PLAIN: std::sync::OnceLock<ModelAdmission> = std::sync::OnceLock::new();
        PLAIN.get_or_init(|| admission(serde_json::json!({})))
    }

    fn chosen() -> Chosen<'static> {
        Chosen {
            admission: plain(),
            base_url: "http://127.0.0.1:9/v1".into(),
            credential: Some(CredentialClass::Environment("LAB_KEY".into())),
            proxy_credential: None,
            protocol: None,
            first_byte: None,
        }
    }

    fn prepared(chosen: &Chosen<'_>) -> Result<Provider, Answer> {
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
        assert!(timeouts(&limits, None).stall < Duration::from_secs(60));
        let asked = Limits {
            model_stall_seconds: Some(2),
            ..limits
        };
        assert_eq!(timeouts(&asked, None).stall, Duration::from_secs(2));
        assert_eq!(budget(&limits).calls, 7);
        assert_eq!(budget(&Limits::default()).calls, Budget::default().calls);
    }
}
