//! Which model it is: the list that the endpoint offers, and one real request. What it answered is
//! shown, and the name it answered with is offered as an alias.

use cto_core::operator::setup::answers;
use cto_core::operator::setup::drafts::ModelAnswers;
use cto_core::operator::setup::{Answers, Question};
use cto_core::records::credential::CredentialWay;
use cto_core::wire::Protocol;
use cto_core::wire::calls::ProbeOutcome;
use cto_core::wire::profiles;
use serde_json::json;

use super::dialogue::Asked;
use super::endpoint::{Next, Talk, Where};
use crate::cli::engines::admit;
use crate::host;
use crate::host::failure::Failure;
use crate::plan::interview::{Heard, Interviewee, NotHeard};
use crate::screen::output::tame;

/// As many names as fit a screen.
const SHOWN: usize = 20;

impl Talk<'_> {
    /// The way to the endpoint, as a run would take it.
    fn interviewee(
        &self,
        to: &Where,
        by: &CredentialWay,
        answers: &ModelAnswers,
    ) -> Result<Interviewee, Failure> {
        let draft = Answers {
            engine: self.manifest.id.clone(),
            approval: "nobody yet".into(),
            now: host::now(),
            model: Some(answers.clone()),
            executable: None,
            source: None,
        };
        let drafts = draft
            .drafts()
            .map_err(|bad| admit::refused(bad.kind, "the answers given", &bad.issues))?;
        let admission = drafts
            .model
            .ok_or_else(|| Failure::internal("no_draft", "no admission could be drafted"))?;
        let around = (&self.context.env, self.home);
        Interviewee::new(&admission, to.text.clone(), by, self.manifest, around)
    }

    /// The names the endpoint offers, and those the agent was told of.
    pub(super) fn offered(&self, to: &Where, by: &CredentialWay) -> Result<Vec<String>, Failure> {
        let answers = self.answers(to, by, "not-chosen-yet")?;
        let endpoint = self.interviewee(to, by, &answers)?;
        let words = "its list of models";
        let heard = self
            .dialogue
            .waiting("model", words, |still| endpoint.models(still));
        let mut names = match heard {
            Err(why) => return Err(self.not_heard(why)),
            Ok(Ok(listed)) => {
                let names = listed.iter().map(|own| own.name.clone()).collect();
                self.listed.replace(listed);
                names
            }
            Ok(Err(why)) => {
                self.dialogue.row("models", &why);
                Vec::new()
            }
        };
        names.retain(|name| answers::name(name).is_ok());
        for own in &to.models {
            if !names.contains(own) {
                names.push(own.clone());
            }
        }
        Ok(names)
    }

    fn not_heard(&self, why: NotHeard) -> Failure {
        match why {
            NotHeard::GivenUp => self.dialogue.interrupted("nothing was written"),
            NotHeard::NotStarted => Failure::internal(
                "no_request",
                "the request could not be made on this machine",
            )
            .so("nothing was written"),
        }
    }

    pub(super) fn model(
        &self,
        given: Option<&str>,
        to: &Where,
        offered: &[String],
    ) -> Result<String, Failure> {
        let before = self.before.as_ref().map(|model| model.model.as_str());
        let first = before.or_else(|| to.models.first().map(String::as_str));
        let only = match offered {
            [only] => Some(only.as_str()),
            _ => None,
        };
        let default = first
            .filter(|name| offered.is_empty() || offered.iter().any(|own| own == name))
            .or(only);
        let mut words = String::from("Which model? Its exact name");
        words.push_str(if offered.is_empty() {
            "."
        } else {
            ", or its number."
        });
        for (number, name) in offered.iter().take(SHOWN).enumerate() {
            words.push_str(&format!("\n  {:>2}  {}", number + 1, tame(name)));
        }
        if offered.len() > SHOWN {
            words.push_str(&format!("\n  and {} more", offered.len() - SHOWN));
        }
        if let Some(name) = default {
            words.push_str(&format!("\n  an empty line takes {}", tame(name)));
        }
        let asked = Asked {
            question: Question::Model,
            given,
            words: &words,
            hidden: false,
        };
        self.dialogue
            .ask(&asked, |text| answers::model(text, offered, default))
    }

    /// One real request, and what it means for the questions.
    pub(super) fn ask(
        &self,
        to: &Where,
        by: &CredentialWay,
        answers: &ModelAnswers,
    ) -> Result<Next, Failure> {
        let endpoint = self.interviewee(to, by, answers)?;
        let words = "waiting (Ctrl-C leaves)";
        let heard = self
            .dialogue
            .waiting("model", words, |still| endpoint.ask(still));
        let heard = heard.map_err(|why| self.not_heard(why))?;
        let mut said = match heard.status {
            Some(status) => format!("it answered with status {status}"),
            None => "it gave no answer".to_owned(),
        };
        for more in [heard.why, heard.error_body.as_deref()]
            .into_iter()
            .flatten()
        {
            said.push_str(&format!(": {more}"));
        }
        let again = |question, code| Ok(Next::Again(question, said.clone(), code));
        match heard.outcome {
            ProbeOutcome::Content => Ok(Next::Done(Box::new(heard))),
            ProbeOutcome::Auth => again(Question::Credential, "provider_auth_unavailable"),
            ProbeOutcome::ReasoningOnly => Ok(Next::Again(
                Question::Model,
                "it answered with reasoning alone, and no engine can work with that".into(),
                "provider_response_shape_unavailable",
            )),
            ProbeOutcome::WrongModel => again(Question::Model, "model_not_admitted"),
            ProbeOutcome::Unavailable { .. } if heard.status == Some(404) => {
                let protocol = self.protocol(to).unwrap_or(Protocol::OpenaiChat);
                let other = profiles::other_base(&to.endpoint, protocol);
                match other {
                    Some(other) => Ok(Next::Again(
                        Question::Endpoint,
                        format!("{said}; was the path {:?} meant?", other.base()),
                        "provider_unavailable",
                    )),
                    None => again(Question::Model, "provider_unavailable"),
                }
            }
            ProbeOutcome::Unavailable { .. } => match heard.status {
                Some(400 | 422) => again(Question::Model, "provider_unavailable"),
                _ => again(Question::Endpoint, "provider_unavailable"),
            },
        }
    }

    /// The name it answered with becomes an alias, where somebody says so. False where the model is
    /// asked for again.
    pub(super) fn alias(&self, heard: &Heard, answers: &mut ModelAnswers) -> Result<bool, Failure> {
        let Some(other) = &heard.other_name else {
            return Ok(true);
        };
        let name =
            answers::name(other).map_err(|why| self.dialogue.refused(Question::Alias, &why))?;
        let model = &answers.pair.model;
        if !self.dialogue.has_somebody() {
            return Err(Failure::blocked(
                "model_not_admitted",
                format!("asked for {model:?}, the endpoint answers as {name:?}"),
            )
            .reason("a name that is not admitted ends a run")
            .so("nothing was written")
            .hint(format!("say that it may: --alias {name}")));
        }
        let words = format!(
            "Asked for {}, it answers as {}. Admit that name as an alias? yes or no",
            tame(model),
            tame(&name)
        );
        let asked = Asked {
            question: Question::Alias,
            given: None,
            words: &words,
            hidden: false,
        };
        let taken = self.dialogue.ask(&asked, answers::yes)?;
        if taken {
            answers.aliases.push(name);
        }
        Ok(taken)
    }

    /// What the endpoint says of a model's sizes, unless flags say something of them.
    pub(super) fn sizes(&self, model: &str) -> Vec<(&'static str, u64)> {
        let own = &self.args.endpoint;
        let listed = self.listed.borrow();
        let named = listed.iter().find(|listed| listed.name == model);
        let named = named.filter(|_| own.context_window.is_none() && own.output_limit.is_none());
        let sizes = named.map(|own| {
            [
                ("context_window", own.context_window),
                ("output_limit", own.output_limit),
            ]
        });
        let sizes = sizes.into_iter().flatten();
        sizes
            .filter_map(|(field, size)| Some((field, size?)))
            .collect()
    }

    /// What the endpoint turned out to want stands in the record.
    pub(super) fn wants(&self, heard: &Heard, answers: &mut ModelAnswers) {
        let mut switches = self.args.endpoint.compat.clone();
        switches.extend(heard.switches.iter().copied());
        switches.sort_unstable();
        switches.dedup();
        if !switches.is_empty() {
            answers.more.insert("compat".into(), json!(switches));
        }
        let answered = heard.first_byte_ms;
        let time = answered.map_or(String::new(), |ms| format!(", first byte after {ms} ms"));
        self.dialogue
            .row("answered", &format!("{}{time}", answers.pair.model));
    }
}
