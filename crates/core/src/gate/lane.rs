//! What records and environment say about a lane that needs admissions. Gathered by the shell, read
//! by gates.

use crate::containment::mounts::Id;
use crate::gate::ladder::StageProof;
use crate::records::credential::CredentialWay;
use crate::records::{
    ExecutableAdmission, Found, GateRecord, ModelAdmission, ModelDecision, SourceAdmissionRecord,
    is_name,
};
use crate::task::contract::ModelPair;
use crate::values::digest::Digest;
use crate::values::time::Utc;
use crate::wire::endpoint::{EndpointError, EndpointFacts};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneFacts {
    pub decision: Found<ModelDecision>,
    pub model: Found<ModelAdmission>,
    pub executable: Found<ExecutableAdmission>,
    pub source: Found<SourceAdmissionRecord>,
    /// Its own review counts where it is what opened the engine.
    pub gate: Found<GateRecord>,
    /// Asked for by flag or variable. A request only: the record is the authority.
    pub asked_provider: Option<String>,
    pub asked_model: Option<String>,
    pub binary: Binary,
    /// The version that the files beside the program name.
    pub package_version: Option<String>,
    /// What the program is written for, where its record names one.
    pub interpreter: Interpreter,
    /// What it was installed with.
    pub packages: Packages,
    pub endpoint: Endpoint,
    pub credential: Credential,
    /// The operator says that the credential gets through this engine to a provider that needs a bridge. That it
    /// does is then shown by the one request before a run.
    pub auth_bridge: bool,
    /// The file is this very program, and no validator asks: a double proves nothing for an operator.
    pub is_the_harness: bool,
    /// Proofs of earlier stages for this engine, each from a bundle that was verified.
    pub proofs: Vec<StageProof>,
    pub now: Utc,
}

/// The file that would be run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Binary {
    /// No flag, no variable and no record names one.
    #[default]
    NotNamed,
    /// A name, an alias or a shell keyword instead of a path.
    NotAPath,
    NotThere,
    /// A directory, a device, a pipe.
    NotRegular,
    NotExecutable,
    Unreadable(String),
    Found {
        /// After every link.
        path: String,
        sha256: Digest,
        /// It lies in a temporary directory, where it may be removed or replaced.
        is_temporary: bool,
    },
}

impl Binary {
    /// The digest of a file that may be run.
    pub fn sha256(&self) -> Option<Digest> {
        match self {
            Self::Found { sha256, .. } => Some(*sha256),
            _ => None,
        }
    }
}

/// The program that runs the engine's own file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Interpreter {
    /// No record names one.
    #[default]
    NotRecorded,
    /// Nothing of that name is on PATH, or it cannot be used; why.
    Missing(String),
    Found(Digest),
}

/// What the program was installed with: the tree that its jail is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Packages {
    /// It comes with none.
    #[default]
    None,
    /// It comes with some, and its record holds no digest of them.
    NotPinned,
    /// They cannot be looked at, or are no tree that is pinned; why.
    Unusable(String),
    Found {
        sha256: Digest,
        /// What the kernel said of every file when they were looked at.
        state: Digest,
        /// The directory that was looked at, whatever has its name later.
        id: Id,
        /// The first path that is not as it was admitted, where that is known.
        difference: Option<String>,
    },
}

/// The base URL of the run, as far as a gate may know it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Endpoint {
    #[default]
    NotGiven,
    Refused(EndpointError),
    /// A file was named and cannot be read.
    Unreadable(String),
    Given(EndpointFacts),
}

impl Endpoint {
    pub fn facts(&self) -> Option<&EndpointFacts> {
        match self {
            Self::Given(facts) => Some(facts),
            Self::NotGiven | Self::Refused(_) | Self::Unreadable(_) => None,
        }
    }
}

/// Whether the credential is available; never the credential itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Credential {
    /// The record describes the credential in words only, and nobody said where it comes from.
    #[default]
    NoWay,
    /// Another source of the credential was given than the one the record names.
    AnotherWay,
    Refused(String),
    /// The variable is not set, the file or the program is not there.
    Missing(CredentialWay),
    Ready(CredentialWay),
}

impl LaneFacts {
    /// Nothing on record, nothing given.
    pub fn nothing(now: Utc) -> Self {
        Self {
            decision: Found::Missing,
            model: Found::Missing,
            executable: Found::Missing,
            source: Found::Missing,
            gate: Found::Missing,
            asked_provider: None,
            asked_model: None,
            binary: Binary::NotNamed,
            package_version: None,
            interpreter: Interpreter::NotRecorded,
            packages: Packages::None,
            endpoint: Endpoint::NotGiven,
            credential: Credential::NoWay,
            auth_bridge: false,
            is_the_harness: false,
            proofs: Vec::new(),
            now,
        }
    }

    /// The one pair of this run: what was asked for, completed by the record.
    pub fn pair(&self) -> Option<ModelPair> {
        let admitted = self.model.known().map(ModelAdmission::pair);
        let part = |asked: &Option<String>, of: fn(&ModelPair) -> &String| {
            asked.clone().or_else(|| admitted.as_ref().map(of).cloned())
        };
        Some(ModelPair {
            provider: part(&self.asked_provider, |pair| &pair.provider)?,
            model: part(&self.asked_model, |pair| &pair.model)?,
        })
    }

    /// The same for the contract: text that is not a plain name is compared but not written down.
    pub fn pair_to_record(&self) -> Option<ModelPair> {
        self.pair()
            .filter(|pair| is_name(&pair.provider) && is_name(&pair.model))
    }

    /// The pin of the source, as far as a record is there to name it.
    pub fn source_pin(&self) -> Option<String> {
        self.source
            .known()
            .and_then(|source| source.pin().map(str::to_owned))
    }

    /// Is the source admitted, and does the build confirm it?
    pub fn source_admitted(&self) -> bool {
        use crate::records::AdmissionStatus::Admitted;
        let built_clean = self
            .executable
            .known()
            .is_none_or(|executable| executable.build_problem().is_none());
        built_clean
            && self
                .source
                .known()
                .is_some_and(|source| source.source_admission_status == Admitted)
    }

    pub fn interpreter_sha256(&self) -> Option<Digest> {
        match &self.interpreter {
            Interpreter::Found(sha256) => Some(*sha256),
            Interpreter::NotRecorded | Interpreter::Missing(_) => None,
        }
    }

    pub fn packages_sha256(&self) -> Option<Digest> {
        match &self.packages {
            Packages::Found { sha256, .. } => Some(*sha256),
            Packages::None | Packages::NotPinned | Packages::Unusable(_) => None,
        }
    }

    pub fn binary_sha256(&self) -> Option<Digest> {
        self.binary.sha256()
    }
}
