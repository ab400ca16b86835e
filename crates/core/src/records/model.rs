//! The model admission (which model may be used) and the decision record (who may choose it).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::record;
use super::model_endpoint;
use super::{Field, Issue, Record, RecordKind, ReviewTrigger};
use crate::task::contract::ModelPair;
use crate::values::digest::Digest;
use crate::values::text::is_dangerous;
use crate::wire::Protocol;
use crate::wire::endpoint::EndpointClass;
use crate::wire::profiles::Profile;
use crate::wire::profiles::switch::Switch;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionStatus {
    Admitted,
    NotAdmitted,
}

impl AdmissionStatus {
    pub const WORDS: &'static [&'static str] = &["admitted", "not_admitted"];
}

record! {
    /// A model-provider admission: exactly one pair, and nothing secret.
    ModelAdmission
    required {
        status: AdmissionStatus => Takes::OneOf(AdmissionStatus::WORDS);
        provider: String => Takes::Name;
        model: String => Takes::Name;
        /// `none`, `env:NAME`, `file:/PATH`, `command:/PROGRAM ARG…`, or a class in the operator's
        /// words.
        credential_source_class: String => Takes::Credential;
        /// `loopback`, `local` or `hosted` are checked; other text is shown.
        allowed_network_class: String => Takes::Word;
        approval_source: String => Takes::Text;
        admission_timestamp: String => Takes::When;
        review_trigger: ReviewTrigger => Takes::Trigger;
    }
    optional {
        /// Names the endpoint may answer with instead of the model's own.
        aliases: Vec<String> => Takes::Names;
        /// Digest of the one base URL this admission is for.
        endpoint_sha256: Digest => Takes::Sha256;
        /// Fields of a request that pass beyond the list of the protocol, each by the path that its
        /// refusal names, such as `enable_search` or `messages.*.audio`.
        request_fields: Vec<String> => Takes::Names;
        /// The operator's own file that holds the base URL. Used where neither flag nor variable
        /// names one; what it holds must have the digest `endpoint_sha256`.
        base_url_file: String => Takes::Path;
        protocol: Protocol => Takes::OneOf(Protocol::WORDS);
        /// The kind of endpoint: `openai`, `azure`, `ollama` and so on.
        profile: String => Takes::OneOf(Profile::NAMES);
        /// How many tokens the model can read at once.
        context_window: u64 => Takes::Number(1024, 100_000_000);
        /// How many tokens one answer may have.
        output_limit: u64 => Takes::Number(16, 10_000_000);
        /// What this endpoint wants otherwise than others of its protocol.
        compat: Vec<Switch> => Takes::SeveralOf(Switch::WORDS);
        /// How long the first byte of an answer may take.
        first_byte_seconds: u64 => Takes::Number(1, 86_400);
        /// A proxy, as host and port. Never used for this machine and private networks.
        proxy: String => Takes::Name;
        /// The way to the proxy's own credential, `user:password` in it.
        proxy_credential: String => Takes::Credential;
        /// Certificate authorities in PEM form: these, and no others, are believed.
        ca_file: String => Takes::Path;
        ca_sha256: Digest => Takes::Sha256;
        /// The file that holds the values of `header_names`, a `Name: value` each line.
        headers_file: String => Takes::Path;
        header_names: Vec<String> => Takes::Names;
        /// The `api-version` of the query, for endpoints that take one.
        api_version: String => Takes::Name;
    }
}

impl Record for ModelAdmission {
    const KIND: RecordKind = RecordKind::Model;
    const FIELDS: &'static [Field] = Self::TABLE;

    fn agree(&self) -> Vec<Issue> {
        model_endpoint::agree(self)
    }
}

impl ModelAdmission {
    pub fn pair(&self) -> ModelPair {
        ModelPair {
            provider: self.provider.clone(),
            model: self.model.clone(),
        }
    }

    /// The class that is checked; none where the words are for people.
    pub fn endpoint_class(&self) -> Option<EndpointClass> {
        EndpointClass::parse(&self.allowed_network_class)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    NotDecided,
    ExternalProviderApproved,
    LocalProviderRequired,
}

impl DecisionStatus {
    pub const WORDS: &'static [&'static str] = &[
        "not_decided",
        "external_provider_approved",
        "local_provider_required",
    ];
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderClass {
    ExternalAnthropic,
    ExternalOpenaiCodex,
    LocalCaseCompatible,
}

impl ProviderClass {
    pub const WORDS: &'static [&'static str] = &[
        "external_anthropic",
        "external_openai_codex",
        "local_case_compatible",
    ];

    pub fn is_local(self) -> bool {
        self == Self::LocalCaseCompatible
    }

    /// The class of an endpoint that is so far away and speaks this.
    pub fn of(endpoint: EndpointClass, protocol: Protocol) -> Self {
        match (endpoint, protocol) {
            (EndpointClass::Loopback | EndpointClass::Local, _) => Self::LocalCaseCompatible,
            (EndpointClass::Hosted, Protocol::AnthropicMessages) => Self::ExternalAnthropic,
            (EndpointClass::Hosted, _) => Self::ExternalOpenaiCodex,
        }
    }
}

record! {
    /// Who may choose a model, and what was chosen. Not an admission.
    ModelDecision
    required {
        decision_status: DecisionStatus => Takes::OneOf(DecisionStatus::WORDS);
    }
    optional {
        provider_class: ProviderClass => Takes::OneOf(ProviderClass::WORDS);
        provider: String => Takes::Name;
        model: String => Takes::Name;
        fallback_provider: String => Takes::Name;
        fallback_model: String => Takes::Name;
        approval_source: String => Takes::Text;
        credential_source_class: String => Takes::Credential;
        allowed_network_class: String => Takes::Word;
        review_trigger: ReviewTrigger => Takes::Trigger;
        evidence_sources: Vec<String> => Takes::Texts;
        effect: String => Takes::Text;
    }
}

impl Record for ModelDecision {
    const KIND: RecordKind = RecordKind::Decision;
    const FIELDS: &'static [Field] = Self::TABLE;

    /// A decision must have every field; class and status must agree.
    fn agree(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        if self.fallback_provider.is_some() != self.fallback_model.is_some() {
            issues.push(Issue::new(
                "fallback_model",
                "a fallback is a provider and a model, or neither",
            ));
        }
        let class_is_local = self.provider_class.map(ProviderClass::is_local);
        let status_is_local = match self.decision_status {
            DecisionStatus::NotDecided => return issues,
            DecisionStatus::ExternalProviderApproved => false,
            DecisionStatus::LocalProviderRequired => true,
        };
        let lists_evidence = self
            .evidence_sources
            .as_ref()
            .is_some_and(|sources| !sources.is_empty());
        let has = [
            ("provider_class", self.provider_class.is_some()),
            ("provider", self.provider.is_some()),
            ("model", self.model.is_some()),
            ("approval_source", self.approval_source.is_some()),
            (
                "credential_source_class",
                self.credential_source_class.is_some(),
            ),
            (
                "allowed_network_class",
                self.allowed_network_class.is_some(),
            ),
            ("review_trigger", self.review_trigger.is_some()),
            ("evidence_sources", lists_evidence),
            ("effect", self.effect.is_some()),
        ];
        let missing = has.into_iter().filter(|(_, there)| !there);
        issues.extend(
            missing.map(|(field, _)| {
                Issue::new(field, "is missing, and a decision needs every field")
            }),
        );
        if class_is_local.is_some_and(|local| local != status_is_local) {
            issues.push(Issue::new(
                "provider_class",
                "does not agree with decision_status",
            ));
        }
        issues
    }
}

impl ModelDecision {
    pub fn pair(&self) -> Option<ModelPair> {
        Some(ModelPair {
            provider: self.provider.clone()?,
            model: self.model.clone()?,
        })
    }

    pub fn fallback(&self) -> Option<ModelPair> {
        Some(ModelPair {
            provider: self.fallback_provider.clone()?,
            model: self.fallback_model.clone()?,
        })
    }
}

/// How two names differ, without repeating either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Difference {
    #[error("they differ only in white space")]
    Space,
    #[error("they differ only in upper and lower case")]
    Case,
    #[error("they differ only in letters that look alike")]
    LookAlike,
    #[error("they are different names")]
    Name,
}

/// Names are equal byte by byte or not at all.
pub fn name_difference(asked: &str, admitted: &str) -> Option<Difference> {
    let spaceless = |text: &str| {
        text.chars()
            .filter(|c| !c.is_whitespace() && !is_dangerous(*c))
            .collect::<String>()
    };
    let folded = |text: &str| spaceless(text).to_lowercase();
    let skeleton = |text: &str| folded(text).chars().map(look_alike).collect::<String>();
    match asked == admitted {
        true => None,
        false if spaceless(asked) == spaceless(admitted) => Some(Difference::Space),
        false if folded(asked) == folded(admitted) => Some(Difference::Case),
        false if skeleton(asked) == skeleton(admitted) => Some(Difference::LookAlike),
        false => Some(Difference::Name),
    }
}

/// The plain letter a character looks like. The list need not be complete: any other character
/// makes a different name, which is refused as well.
fn look_alike(c: char) -> char {
    match c {
        'а' | 'ɑ' | 'α' => 'a',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ҽ' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ι' | 'l' | '1' | 'ӏ' | '|' | 'ⅼ' => 'i',
        'ј' => 'j',
        'ο' | 'о' | '0' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' => 's',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '_' => '-',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
}

/// May the endpoint answer with this name?
pub fn is_admitted_name(admission: &ModelAdmission, answered: &str) -> bool {
    admission.model == answered
        || admission
            .aliases
            .iter()
            .flatten()
            .any(|alias| alias == answered)
}
/// The result of asking for a model pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelResult {
    Admitted,
    MissingAdmission,
    Mismatch,
    InvalidAdmission,
    NotAdmitted,
}

impl ModelResult {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::MissingAdmission => "missing_admission",
            Self::Mismatch => "mismatch",
            Self::InvalidAdmission => "invalid_admission",
            Self::NotAdmitted => "not_admitted",
        }
    }
}
