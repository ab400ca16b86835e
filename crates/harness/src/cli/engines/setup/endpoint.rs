//! Where the model is, how its credential comes, and what may be sent there: asked until the
//! endpoint answers. What turns out wrong is asked again, and nothing else is.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::operator::setup::answers::{self, Place, TypedUrl};
use cto_core::operator::setup::drafts::ModelAnswers;
use cto_core::operator::setup::{Question, Refused};
use cto_core::records::credential::CredentialWay;
use cto_core::records::{ModelAdmission, ProviderClass};
use cto_core::task::contract::ModelPair;
use cto_core::values::digest::Digest;
use cto_core::wire::Protocol;
use cto_core::wire::endpoint::{Endpoint, EndpointClass};
use cto_core::wire::profiles::model_list::Listed;
use cto_core::wire::profiles::{self, Profile};
use serde_json::{Map, Value, json};

use super::dialogue::{Asked, Dialogue};
use super::flags::Args;
use crate::cli::Context;
use crate::host::failure::Failure;
use crate::host::way::operator_file::{self, Privacy};
use crate::host::{Home, programs};
use crate::plan::interview::{self, Heard};
use crate::records::own_config::OwnConfig;
use crate::screen::output::tame;
use crate::task::lane::variable;

/// A base URL is short.
const MAX_URL_FILE: u64 = 4096;
pub(super) const MAX_EXTRA: u64 = 1 << 20;
/// An endpoint that was asked this often will not answer.
const MOST_REQUESTS: usize = 8;

/// A base URL that was found or typed, and the file that holds it or will.
#[derive(Clone)]
pub struct Where {
    pub file: PathBuf,
    /// Typed: the file is still to be written.
    pub typed: Option<TypedUrl>,
    pub(super) endpoint: Endpoint,
    pub(super) text: String,
    /// As the agent's own configuration says, where it came from there.
    protocol: Option<Protocol>,
    pub(super) models: Vec<String>,
}

/// An endpoint that answered.
pub struct Reached {
    pub answers: ModelAnswers,
    pub place: Where,
}

/// Everything the questions need to know.
pub struct Talk<'a> {
    pub context: &'a Context,
    pub dialogue: &'a Dialogue<'a>,
    pub manifest: &'a Manifest,
    pub home: &'a Home,
    pub args: &'a Args,
    pub own: Option<OwnConfig>,
    /// The admission there is, as far as it can be read.
    pub before: Option<ModelAdmission>,
    /// Where a URL that is typed will be kept.
    pub url_file: Option<PathBuf>,
    /// What was offered of the environment and taken, as fields of the admission.
    pub taken: RefCell<Map<String, Value>>,
    /// What the endpoint says of its models.
    pub listed: RefCell<Vec<Listed>>,
}

/// What an endpoint's answer makes of the dialogue.
pub(super) enum Next {
    Done(Box<Heard>),
    Again(Question, String, &'static str),
}

impl Talk<'_> {
    pub fn reach(&self) -> Result<Reached, Failure> {
        let args = self.args;
        let (mut place, mut way): (Option<Where>, Option<CredentialWay>) = (None, None);
        let mut given_model = args.model.as_deref();
        let mut fresh = true;
        let mut names: Option<Vec<String>> = None;
        for _ in 0..MOST_REQUESTS {
            let to = match place.take() {
                Some(to) => to,
                None => self.place(fresh)?,
            };
            let by = match way.take() {
                Some(by) => by,
                None => self.way(&to, fresh)?,
            };
            if names.is_none() {
                self.taken.replace(self.offers(&to)?);
                self.may_send(&to, &by)?;
                names = Some(self.offered(&to, &by)?);
            }
            fresh = false;
            let offered = names.clone().unwrap_or_default();
            let model = self.model(given_model.take(), &to, &offered)?;
            let mut answers = self.answers(&to, &by, &model)?;
            match self.ask(&to, &by, &answers)? {
                Next::Done(heard) => {
                    if !self.alias(&heard, &mut answers)? {
                        (place, way) = (Some(to), Some(by));
                        continue;
                    }
                    self.wants(&heard, &mut answers);
                    return Ok(Reached { answers, place: to });
                }
                Next::Again(question, why, code) => {
                    if !self.dialogue.has_somebody() {
                        return Err(self.unanswered(code, &why, question));
                    }
                    self.context.output.note(&format!("  {}", tame(&why)));
                    match question {
                        Question::Endpoint => (way, names) = (Some(by), None),
                        Question::Credential => (place, names) = (Some(to), None),
                        _ => (place, way) = (Some(to), Some(by)),
                    }
                }
            }
        }
        Err(self.unanswered(
            "provider_unavailable",
            "the endpoint did not answer as it must",
            Question::Endpoint,
        ))
    }

    fn unanswered(&self, code: &'static str, why: &str, question: Question) -> Failure {
        Failure::blocked(code, "the endpoint did not answer as a run needs it")
            .reason(tame(why))
            .so("nothing was written")
            .hint(format!(
                "cto setup {} {} …",
                self.manifest.id,
                question.flag()
            ))
    }

    fn place(&self, fresh: bool) -> Result<Where, Failure> {
        let named = self.args.base_url_file.as_deref().filter(|_| fresh);
        if let Some(file) = named {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
            return self
                .in_file(&file)
                .map_err(|why| self.dialogue.refused(Question::Endpoint, &why));
        }
        let variable = self
            .context
            .env
            .get(&variable(&self.manifest.id, "LOCAL_BASE_URL"));
        let variable = variable.and_then(|text| text.to_str()).filter(|_| fresh);
        let before = self
            .before
            .as_ref()
            .and_then(|model| model.base_url_file.as_deref());
        let before = before.and_then(|file| self.in_file(Path::new(file)).ok());
        let own = self.own.iter().flat_map(|own| &own.known);
        let offered: Vec<(String, Where)> = before
            .map(|to| ("as on record".to_owned(), to))
            .into_iter()
            .chain(own.filter_map(|known| {
                let to = self.typed(known.url.clone()).ok()?;
                let protocol = known.protocol.as_deref().and_then(|name| self.spoken(name));
                let name = format!("{}, as the agent's own configuration says", known.name);
                let models = known.models.clone();
                Some((
                    name,
                    Where {
                        protocol,
                        models,
                        ..to
                    },
                ))
            }))
            .collect();
        let mut words = String::from(
            "Where is the model? Its base URL, or the absolute path of a file that holds it.",
        );
        for (number, (name, to)) in offered.iter().enumerate() {
            let class = to.endpoint.class().as_str();
            let line = format!(
                "\n  {}  {} ({class}, {name})",
                number + 1,
                to.endpoint.authority()
            );
            words.push_str(&tame_lines(&line));
        }
        if !offered.is_empty() {
            words.push_str("\n  an empty line takes 1");
        }
        let asked = Asked {
            question: Question::Endpoint,
            given: variable,
            words: &words,
            hidden: false,
        };
        self.dialogue.ask(&asked, |text| {
            let number = match text {
                "" => Some(1),
                text => text.parse::<usize>().ok(),
            };
            if let Some((_, to)) = number.and_then(|n| offered.get(n.checked_sub(1)?)) {
                return Ok(to.clone());
            }
            match answers::place(text)? {
                Place::Typed(url) => self.typed(url),
                Place::File(file) => self.in_file(Path::new(&file)),
            }
        })
    }

    fn typed(&self, url: TypedUrl) -> Result<Where, Refused> {
        let file = self.url_file.clone().ok_or_else(|| {
            Refused::Found(
                "there is no configuration directory to keep it in; set HOME, or name a file"
                    .into(),
            )
        })?;
        Ok(Where {
            file,
            endpoint: url.endpoint.clone(),
            text: url.file(),
            typed: Some(url),
            protocol: None,
            models: Vec::new(),
        })
    }

    fn in_file(&self, file: &Path) -> Result<Where, Refused> {
        let text = operator_file::read_text(file, MAX_URL_FILE, Privacy::Private)
            .map_err(|why| Refused::Found(format!("the file that holds the base URL {why}")))?;
        Ok(Where {
            file: file.to_owned(),
            typed: None,
            endpoint: Endpoint::parse(&text)?,
            text,
            protocol: None,
            models: Vec::new(),
        })
    }

    /// A protocol by the agent's own name for it.
    fn spoken(&self, name: &str) -> Option<Protocol> {
        let known = interview::protocols(self.manifest);
        known.iter().find(|own| own.name == name)?.wire.parse().ok()
    }

    fn way(&self, to: &Where, fresh: bool) -> Result<CredentialWay, Failure> {
        let before = self
            .before
            .as_ref()
            .map(|model| model.credential_source_class.as_str());
        let before = before.filter(|text| answers::way(text).is_ok());
        let mut words = String::from(
            "How does the credential come? none, env:NAME, file:/PATH or command:/PROGRAM (not shown while you type).",
        );
        if let Some(before) = before {
            words.push_str(&format!(" An empty line takes {}.", tame(before)));
        }
        let asked = Asked {
            question: Question::Credential,
            given: self.args.credential.as_deref().filter(|_| fresh),
            words: &words,
            hidden: true,
        };
        self.dialogue.ask(&asked, |text| {
            let text = match (text, before) {
                ("", Some(before)) => before,
                (text, _) => text,
            };
            let way = answers::way(text)?;
            self.there(&way)?;
            match way == CredentialWay::None || to.endpoint.takes_credentials() {
                true => Ok(way),
                false => Err(Refused::Found(
                    "a credential is sent over https or to this machine only, and this base URL is http"
                        .into(),
                )),
            }
        })
    }

    /// Is what the way names on this machine?
    fn there(&self, way: &CredentialWay) -> Result<(), Refused> {
        match way {
            CredentialWay::None => Ok(()),
            CredentialWay::Variable(name) => match self.context.env.get(name) {
                Some(value) if !value.is_empty() => Ok(()),
                _ => Err(Refused::Found(
                    "no variable of that name is set where this command was started".into(),
                )),
            },
            CredentialWay::File(path) => operator_file::credential(Path::new(path))
                .map_err(|why| Refused::Found(format!("the credential's file {why}"))),
            CredentialWay::Command(words) => {
                programs::to_start(words, &self.context.env, self.home)
                    .map(drop)
                    .map_err(|none| Refused::Found(none.to_string()))
            }
        }
    }

    /// Host, class and the credential's way are shown, and somebody says yes, before anything is
    /// sent.
    fn may_send(&self, to: &Where, by: &CredentialWay) -> Result<(), Failure> {
        let kind = if to.endpoint.tls() { "https" } else { "http" };
        let class = to.endpoint.class();
        self.dialogue.row(
            "endpoint",
            &format!("{} ({}, {kind})", to.endpoint.authority(), class.as_str()),
        );
        if let Some(proxy) = self.extra()?.get("proxy").and_then(Value::as_str) {
            self.dialogue.row("proxy", proxy);
        }
        self.dialogue.row("auth", &by.describe());
        let given = self.args.confirm.as_deref();
        let name = self.manifest.id.as_str();
        if given.is_some() {
            let asked = Asked {
                question: Question::Send,
                given,
                words: "",
                hidden: false,
            };
            return self
                .dialogue
                .ask(&asked, |text| answers::engine(text, name))
                .and_then(confirmed);
        }
        let asked = Asked {
            question: Question::Send,
            given: None,
            words: "One short question goes there, and to no other host. Send it? yes or no",
            hidden: false,
        };
        self.dialogue.ask(&asked, answers::yes).and_then(confirmed)
    }

    pub(super) fn protocol(&self, to: &Where) -> Option<Protocol> {
        let known = interview::protocols(self.manifest);
        let speaks = |protocol: &Protocol| known.iter().any(|own| own.wire == protocol.as_str());
        let by_profile = || {
            let profile = self.profile(to)?;
            let ways = profile.ways.iter().map(|(protocol, _)| *protocol);
            ways.clone().find(speaks)
        };
        let kept = || {
            let before = self.before.as_ref()?;
            (before.endpoint_sha256 == Some(to.endpoint.sha256())).then_some(before.protocol?)
        };
        self.args
            .endpoint
            .model_protocol
            .or(to.protocol)
            .or_else(kept)
            .or_else(by_profile)
            .or_else(|| known.first()?.wire.parse().ok())
    }

    fn profile(&self, to: &Where) -> Option<&'static Profile> {
        match self.args.endpoint.profile.as_deref() {
            Some(name) => Profile::named(name),
            None => profiles::profile_of(&to.endpoint),
        }
    }

    /// What the answers so far make of the model's admission.
    pub(super) fn answers(
        &self,
        to: &Where,
        by: &CredentialWay,
        model: &str,
    ) -> Result<ModelAnswers, Failure> {
        let own = &self.args.endpoint;
        let wrong = |what: &str| {
            Failure::usage("bad_answer", what.to_owned())
                .so("nothing was written")
                .hint("leave the flag out, and it follows from the base URL")
        };
        let class = to.endpoint.class();
        if let Some(word) = own.endpoint_class.as_deref() {
            let wanted = EndpointClass::parse(word)
                .ok_or_else(|| wrong("the endpoint class is loopback, local or hosted"))?;
            if !wanted.covers(class) {
                return Err(wrong(
                    "the endpoint is of another class than --endpoint-class says",
                ));
            }
        }
        let protocol = self.protocol(to);
        let derived = ProviderClass::of(class, protocol.unwrap_or(Protocol::OpenaiChat));
        let provider_class = match own.provider_class.as_deref() {
            None => derived,
            Some(word) => serde_json::from_value(json!(word))
                .map_err(|_| wrong("the provider class is none of those there are"))?,
        };
        let profile = self.profile(to);
        let mut more = self.extra()?;
        if let Some(protocol) = protocol {
            more.insert("protocol".into(), json!(protocol));
        }
        for (field, size) in self.sizes(model) {
            more.entry(field).or_insert_with(|| json!(size));
        }
        if let Some(profile) = profile {
            more.entry("profile").or_insert_with(|| json!(profile.name));
        }
        let provider = own.model_provider.clone();
        let provider = provider.unwrap_or_else(|| match (profile, class) {
            (Some(profile), _) => profile.provider.to_owned(),
            (None, EndpointClass::Hosted) => "hosted".to_owned(),
            (None, _) => "local".to_owned(),
        });
        let provider =
            answers::name(&provider).map_err(|_| wrong("the provider's name is no plain name"))?;
        let file = to.file.to_str();
        Ok(ModelAnswers {
            pair: ModelPair {
                provider,
                model: model.to_owned(),
            },
            provider_class,
            aliases: self.args.alias.clone(),
            way: by.clone(),
            class,
            base_url_file: file
                .ok_or_else(|| wrong("the path of the file is not text"))?
                .to_owned(),
            endpoint_sha256: to.endpoint.sha256(),
            more,
        })
    }

    /// Fields that flags name: read once here, so that what is recorded is what was looked at.
    fn extra(&self) -> Result<Map<String, Value>, Failure> {
        let own = &self.args.endpoint;
        let mut map = own.fields();
        map.extend(self.taken.borrow().clone());
        let unusable = |flag: &str, why: String| {
            Failure::usage("bad_answer", format!("the file of {flag} {why}"))
                .so("nothing was written")
                .hint("name a file of your own, outside of every repository")
        };
        let path = |file: &Path, flag: &str| {
            let whole = std::path::absolute(file).ok();
            let text = whole.as_deref().and_then(Path::to_str).map(str::to_owned);
            text.ok_or_else(|| unusable(flag, "has no path that is text".into()))
        };
        if let Some(file) = &own.ca_file {
            let bytes = operator_file::read(file, MAX_EXTRA, Privacy::Public)
                .map_err(|why| unusable("--ca-file", why.to_string()))?;
            map.insert("ca_file".into(), json!(path(file, "--ca-file")?));
            map.insert("ca_sha256".into(), json!(Digest::of(&bytes)));
        }
        if let Some(file) = &own.headers_file {
            let text = operator_file::read_text(file, MAX_EXTRA, Privacy::Private)
                .map_err(|why| unusable("--headers-file", why.to_string()))?;
            let names = text.lines().filter_map(|line| line.split_once(':'));
            let names: Vec<&str> = names.map(|(name, _)| name.trim()).collect();
            map.insert("headers_file".into(), json!(path(file, "--headers-file")?));
            map.insert("header_names".into(), json!(names));
        }
        Ok(map)
    }
}

fn confirmed(yes: bool) -> Result<(), Failure> {
    match yes {
        true => Ok(()),
        false => Err(
            Failure::blocked("not_confirmed", "nobody said that it may be sent")
                .so("nothing was sent, and nothing was written"),
        ),
    }
}

/// Every line of a text, tame.
fn tame_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(tame).collect();
    lines.join("\n")
}
