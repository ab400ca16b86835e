//! `engines/*.toml`: what an engine is, how it is gated, how it is started. No engine has code of
//! its own: the harness starts them all in the same way.
//!
//! - this file: what a manifest says; `own_folder.rs` where an engine is started and what it writes in its workspace; `places.rs` what may stand where, mistakes and the way to
//!   them; `fill.rs` values put into templates, escaped for where they stand; `own.rs` what one of
//!   the operator's own may not say, and `own_secrets.rs` what it may not hold
//! - `limits.rs` limits of its own; `supervision.rs` how it is watched; `questions.rs` what it is asked about itself; `interpreter.rs`
//!   the smallest version of what runs the engine's file; `tools.rs` the engine's
//!   tools, as a scripted model calls them

pub mod fill;
pub mod interpreter;
mod limits;
pub mod own;
mod own_folder;
mod own_secrets;
pub mod places;
pub mod questions;
mod supervision;
pub mod tools;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::engine::manifest::limits::OwnLimits;
pub use own_folder::{EMPTY_DIRECTORY, EventLog, WorkingDirectory};
pub use supervision::{SignOfLife, Supervision};

use crate::engine::manifest::places::Step;
use crate::engine::manifest::questions::Question;
use crate::engine::manifest::tools::Tools;
use crate::run::event::flat::is_prefix;
use crate::task::case_file;
use crate::task::contract::{Limits, Stage};
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::ids::EngineId;
use crate::values::json;
use crate::values::paths::PathRule;
use crate::wire::profiles::switch::Switch;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub id: EngineId,
    pub title: String,
    /// The variable that opens this engine; only `fake` has none.
    pub gated_by_env: Option<String>,
    /// The stage asked for when nobody says otherwise.
    pub default_stage: Stage,
    /// How fields begin that reports have of this engine beside their own, for tools that read those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flat_fields: Option<String>,
    /// How to start it; absent while this version knows the engine but cannot run it.
    pub invocation: Option<Invocation>,
    /// What the file says, whatever its layout and its comments.
    #[serde(skip)]
    pub sha256: Option<Digest>,
    /// The file, where it is the operator's own: strangers have no other copy of it.
    #[serde(skip)]
    pub own_text: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    pub program: Program,
    /// Placeholders: see [`places::PLACEHOLDERS`]. The model's address and credential have none.
    pub argv: Vec<String>,
    pub dialect: Dialect,
    /// Variables with fixed values, beside the few every process of a run gets; nothing is
    /// inherited.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files written for it below its scratch directory, before it starts.
    #[serde(default)]
    pub files: Vec<ConfigFile>,
    /// How it talks to its model; absent for an engine that has none.
    pub model: Option<ModelUse>,
    /// A word that its program says of itself when it is admitted; its id where there is none.
    pub identity: Option<String>,
    /// What it answers about itself; all there is to ask where nothing is said. A program that takes an unknown flag
    /// for the beginning of its work does not end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The program its own file is written for: found beside its packages (`.bin/NAME`), then on
    /// PATH, and shown read-only.
    pub interpreter: Option<String>,
    /// The smallest version of it, in numbers: `22`, `22.19`.
    pub interpreter_min_version: Option<String>,
    /// Packages lie in the outermost directory of this name above the program; it is shown
    /// read-only, whole.
    pub packages: Option<String>,
    /// The file that names the version, in a directory above the program.
    pub version_file: Option<String>,
    /// Versions this manifest was tried with. Another one is a visible warning.
    #[serde(default)]
    pub tested_versions: Vec<String>,
    /// Its own list of endpoints and models, below the operator's home: what setup may offer of it
    /// is read there, and nothing else.
    pub own_config: Option<String>,
    /// Folders of its own in the workspace: counted as scratch, never part of a patch.
    #[serde(default)]
    pub workspace_scratch: Vec<PathRule>,
    /// Files written for it inside its workspace, before it starts, each in a folder of its own there. No part of
    /// the tree it starts from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace_files: Vec<ConfigFile>,
    /// Where it is started.
    #[serde(default, skip_serializing_if = "WorkingDirectory::is_workspace")]
    pub cwd: WorkingDirectory,
    /// A log it writes in its workspace while it works; its dialect reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_log: Option<EventLog>,
    /// How it is watched while it works.
    #[serde(default, skip_serializing_if = "Supervision::is_default")]
    pub supervision: Supervision,
    /// How it is told what the operator wants said beside the task; absent where it cannot be.
    pub instructions: Option<Told>,
    /// Limits it runs under where nobody said otherwise.
    #[serde(default)]
    pub limits: OwnLimits,
    /// Its tools, for a model that plays a script. No run of an operator looks at them.
    pub tools: Option<Tools>,
    /// What such a model says where the engine has no tools and reads its edits from what is said:
    /// `{path}`, and the whole `{text}` of that file.
    pub answer: Option<String>,
    /// What is said to an engine that is talked to, beside the prompt.
    #[serde(default)]
    pub conversation: Conversation,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// The mode of its session that is set where it offers it.
    pub mode: Option<String>,
    /// How methods of its own begin, which the protocol does not have: what it tells by them is for the log,
    /// what it asks by them is refused, and neither is unknown.
    #[serde(default)]
    pub own_methods: Vec<String>,
}

/// How an engine is told instructions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Told {
    /// In its prompt, after the task.
    Prompt,
    /// In a file below its scratch directory, which it reads by itself. It is read-only there.
    File(String),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// This very binary, started again.
    Itself,
    /// The file an executable admission names.
    Admitted,
}

/// A file an engine reads its settings from. Placeholders stand inside its strings and are escaped
/// for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Below the scratch directory.
    pub path: String,
    #[serde(default)]
    pub format: FileFormat,
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    #[default]
    Json,
    Toml,
    /// `NAME="value"` lines.
    Dotenv,
    /// Anything else; values stand in it as they are.
    Text,
}

/// The name under which the scripted engine finds its script, in its scratch directory.
pub const SCRIPT_FILE: &str = "script.toml";

/// What an engine calls the protocols it can speak, and where it expects each below an address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelUse {
    /// In order of preference.
    pub protocols: Vec<ProtocolName>,
    /// What the engine is told its provider is, where it knows a few names only. The admitted pair stays what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_provider: Option<String>,
    /// Providers whose credential it does not pass on by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auth_bridges: Vec<AuthBridge>,
    /// Fields of a chat request that it sends by itself, beside its messages.
    #[serde(default)]
    pub habits: Vec<String>,
    /// What it is configured with for each switch of an endpoint: keys and values of its own. They
    /// are joined into one object, `{compat}`.
    #[serde(default)]
    pub switches: BTreeMap<Switch, serde_json::Map<String, serde_json::Value>>,
}

/// A provider that is closed until the operator says that its credential gets through, and the model answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthBridge {
    pub provider: String,
    /// The variable that says so, with the value 1.
    pub variable: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtocolName {
    /// The protocol, as records call it.
    pub wire: String,
    /// The same in the engine's own words.
    pub name: String,
    /// What the engine expects in the address; the rest of the path it adds itself.
    #[serde(default)]
    pub base: String,
}

/// Every output format the harness can parse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Fake,
    Pi,
    /// `codex exec --json`.
    Codex,
    /// `opencode run --format json`.
    Opencode,
    /// An event log in the workspace, and JSON lines on standard error.
    Case,
    /// Any command: its lines are what it says.
    Plain,
    /// The Agent Client Protocol: a conversation on its standard input and output.
    Acp,
}

impl Dialect {
    pub const ALL: &[Self] = &[
        Self::Fake,
        Self::Pi,
        Self::Codex,
        Self::Opencode,
        Self::Case,
        Self::Plain,
        Self::Acp,
    ];

    /// Is it told what to do, and answered, on its standard input?
    pub fn is_talked_to(self) -> bool {
        self == Self::Acp
    }

    /// The event that says the engine considers itself done.
    pub fn terminal_event(self) -> EventType {
        match self {
            Self::Fake
            | Self::Pi
            | Self::Codex
            | Self::Opencode
            | Self::Case
            | Self::Plain
            | Self::Acp => EventType::EngineResult,
        }
    }

    /// Events without which nothing shows that the engine worked at all.
    pub fn required_events(self) -> &'static [EventType] {
        match self {
            Self::Case => &[EventType::EnginePhase, EventType::EngineModelCall],
            Self::Fake | Self::Pi | Self::Codex | Self::Opencode | Self::Plain | Self::Acp => &[],
        }
    }
}

/// What is wrong with a manifest, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct ManifestError {
    pub file: String,
    pub line: u64,
    pub column: u64,
    pub what: String,
}

pub const DEFAULT_ENGINE: &str = "fake";
/// How the name of every variable that opens an engine begins.
pub const OPENED_BY: &str = "CTO_HARNESS_ALLOW_";

/// The variable that opens an engine. Names are slugs, so no two engines share one.
pub fn gate_variable(id: &EngineId) -> String {
    let name = id.as_str().to_uppercase().replace('-', "_");
    format!("{OPENED_BY}{name}")
}

impl Manifest {
    pub fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let wrong = |(line, column), what: String| ManifestError {
            file: file.to_owned(),
            line,
            column,
            what,
        };
        let broken = |error| {
            let (line, column, what) = case_file::toml_problem(text, &error);
            wrong((line, column), what)
        };
        let mut manifest: Self = toml::from_str(text).map_err(broken)?;
        manifest.sha256 = Self::digest_of(text);
        if manifest.sha256.is_none() {
            return Err(wrong(
                (1, 1),
                "it says something that no document can hold".into(),
            ));
        }
        let problem = manifest
            .ungated()
            .or_else(|| manifest.misnamed())
            .or_else(|| {
                let own = manifest.invocation.as_ref()?;
                let found = places::check(own)?;
                Some((found.at, found.what))
            });
        match problem {
            Some((at, what)) => Err(wrong(position(text, &at), what)),
            None => Ok(manifest),
        }
    }

    /// What a text says, whatever its layout and its comments; nothing where it is no manifest's. A later version may
    /// refuse what an earlier one took, and this stays what it was.
    pub fn digest_of(text: &str) -> Option<Digest> {
        let said: serde_json::Value = toml::from_str(text).ok()?;
        let said = json::canonical_value(&said).ok()?;
        Some(Digest::tagged("cto-manifest/1\n", &said))
    }

    /// Only `fake` is open, and only it may do without a gate.
    fn ungated(&self) -> Option<(Vec<Step>, String)> {
        let at = |key: &str, what: &str| Some((vec![Step::from(key)], what.to_owned()));
        let is_default = self.id.as_str() == DEFAULT_ENGINE;
        let variable = gate_variable(&self.id);
        if is_default && self.is_gated() {
            return at("gated_by_env", "the default engine has no gate");
        }
        if !is_default && self.gated_by_env.as_deref() != Some(variable.as_str()) {
            let what = format!("{} needs gated_by_env = \"{variable}\"", self.id);
            return at("gated_by_env", &what);
        }
        if is_default && self.invocation.is_none() {
            return at("id", "the default engine must say how it is started");
        }
        if !is_default && self.default_stage != Stage::One {
            return at("default_stage", "a gated engine's default stage is 1");
        }
        None
    }

    fn misnamed(&self) -> Option<(Vec<Step>, String)> {
        let word = self
            .flat_fields
            .as_deref()
            .filter(|word| !is_prefix(word))?;
        let what = format!("{word:?} is not a word of small letters");
        Some((vec![Step::from("flat_fields")], what))
    }

    pub fn is_gated(&self) -> bool {
        self.gated_by_env.is_some()
    }

    /// The word by which its program is known.
    pub fn identity(&self) -> &str {
        let said = self.invocation.as_ref();
        let said = said.and_then(|own| own.identity.as_deref());
        said.unwrap_or(self.id.as_str())
    }

    /// What it is asked about itself.
    pub fn questions(&self) -> &[Question] {
        let said = self.invocation.as_ref().map(|own| own.questions.as_slice());
        said.filter(|said| !said.is_empty())
            .unwrap_or(Question::ALL)
    }

    /// Does it need a model, and so everything that is asked about models?
    pub fn uses_a_model(&self) -> bool {
        self.invocation
            .as_ref()
            .is_some_and(|invocation| invocation.model.is_some())
    }

    /// The way a provider's credential needs through this engine, where it is no ordinary one.
    pub fn auth_bridge(&self, provider: &str) -> Option<&AuthBridge> {
        let model = self.invocation.as_ref()?.model.as_ref()?;
        model
            .auth_bridges
            .iter()
            .find(|bridge| bridge.provider == provider)
    }

    /// The limits a run of it has, where its contract says these.
    pub fn limits(&self, said: &Limits) -> Limits {
        match &self.invocation {
            Some(own) => own.limits.beneath(said),
            None => *said,
        }
    }
}

impl ModelUse {
    /// What it is configured with for an endpoint that wants these: one JSON object.
    pub fn compat(&self, switches: &[Switch]) -> String {
        let entries = switches
            .iter()
            .filter_map(|switch| self.switches.get(switch))
            .flatten();
        let whole: serde_json::Map<_, _> = entries
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        serde_json::Value::Object(whole).to_string()
    }

    /// Switches that an endpoint wants and this engine has no setting for.
    pub fn lacks<'s>(&self, switches: &'s [Switch]) -> Vec<&'s Switch> {
        switches
            .iter()
            .filter(|switch| !self.switches.contains_key(switch))
            .collect()
    }
}

impl Invocation {
    /// Does anything it is started with name this placeholder?
    pub fn names(&self, placeholder: &str) -> bool {
        let files = self.files.iter().map(|file| &file.text);
        let mut all = self.argv.iter().chain(self.env.values()).chain(files);
        all.any(|text| text.contains(placeholder))
    }

    /// Is this a version nobody has tried?
    pub fn is_untested(&self, version: Option<&str>) -> bool {
        !self.tested_versions.is_empty()
            && !version.is_some_and(|version| self.tested_versions.iter().any(|v| v == version))
    }
}

/// Line and column of what a mistake is about; of the nearest thing around it that the text has.
pub(super) fn position(text: &str, at: &[Step]) -> (u64, u64) {
    use toml::de::{DeTable, DeValue};
    let Ok(document) = DeTable::parse(text) else {
        return case_file::place(text, 0);
    };
    let (mut offset, mut here) = (0, None::<&DeValue<'_>>);
    for step in at {
        let table = match here {
            None => Some(document.get_ref()),
            Some(DeValue::Table(table)) => Some(table),
            Some(_) => None,
        };
        let next = match (step, table, here) {
            (Step::Key(key), Some(table), _) => table
                .iter()
                .find(|(name, _)| name.get_ref() == key.as_str())
                .map(|(_, value)| value),
            (Step::Index(at), _, Some(DeValue::Array(list))) => list.get(*at),
            _ => None,
        };
        let Some(value) = next else { break };
        offset = value.span().start;
        here = Some(value.get_ref());
    }
    case_file::place(text, offset)
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
