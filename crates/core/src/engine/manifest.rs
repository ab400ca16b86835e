//! `engines/*.toml`: what an engine is, how it is gated, how it is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::Stage;
use crate::event::EventType;
use crate::ids::EngineId;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub id: EngineId,
    pub title: String,
    /// The variable that opens this engine; only `fake` has none.
    pub gated_by_env: Option<String>,
    /// The stage asked for when nobody says otherwise.
    pub default_stage: Stage,
    /// How to start it; absent while this version knows the engine but cannot run it.
    pub invocation: Option<Invocation>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    pub program: Program,
    /// `{script}` stands for the file of the script to play.
    pub argv: Vec<String>,
    pub dialect: Dialect,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// This very binary, started again.
    Itself,
}

/// The closed set of ways engines talk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Fake,
}

impl Dialect {
    /// The event that says the engine considers itself done.
    pub fn terminal_event(self) -> EventType {
        match self {
            Self::Fake => EventType::EngineResult,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("engine manifest {file}: {source}")]
    Parse { file: String, source: Box<toml::de::Error> },
    #[error("engine manifest {file}: every engine but `fake` needs gated_by_env = \"CTO_HARNESS_ALLOW_…\"")]
    Ungated { file: String },
    #[error("engine manifest {file}: the default engine must say how it is started")]
    NoInvocation { file: String },
    #[error("engine manifest {file}: a gated engine's default stage is 1")]
    Stage { file: String },
}

pub const DEFAULT_ENGINE: &str = "fake";

impl Manifest {
    pub fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let manifest: Self =
            toml::from_str(text).map_err(|source| ManifestError::Parse { file: file.to_owned(), source: Box::new(source) })?;
        let is_default = manifest.id.as_str() == DEFAULT_ENGINE;
        let gated = manifest.gated_by_env.as_deref().is_some_and(|name| name.starts_with("CTO_HARNESS_ALLOW_"));
        if is_default == manifest.gated_by_env.is_some() || (!is_default && !gated) {
            return Err(ManifestError::Ungated { file: file.to_owned() });
        }
        if is_default && manifest.invocation.is_none() {
            return Err(ManifestError::NoInvocation { file: file.to_owned() });
        }
        if !is_default && manifest.default_stage != Stage::One {
            return Err(ManifestError::Stage { file: file.to_owned() });
        }
        Ok(manifest)
    }

    pub fn is_gated(&self) -> bool {
        self.gated_by_env.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fake_may_go_ungated_and_above_stage_one() {
        let fake = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
        assert!(Manifest::parse("f", fake).is_ok());
        let pi = "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n";
        assert!(Manifest::parse("f", pi).unwrap().is_gated());
        for bad in [
            pi.replace("gated_by_env = \"CTO_HARNESS_ALLOW_PI\"\n", ""),
            pi.replace("CTO_HARNESS_ALLOW_PI", "PATH"),
            pi.replace("default_stage = 1", "default_stage = 2"),
            fake.split("[invocation]").next().unwrap().to_owned(),
            fake.replace("default", "gated_by_env = \"CTO_HARNESS_ALLOW_FAKE\"\ndefault"),
            pi.replace("title", "titel"),
            pi.replace("= 1", "= 7"),
        ] {
            assert!(Manifest::parse("f", &bad).is_err(), "{bad}");
        }
    }
}
