//! The flags of a gated engine's lane: what it is run with, and which records let it. Each has a variable
//! `CTO_HARNESS_<ENGINE>_…`, which comes after the flag; records then come from the state home.

use std::path::PathBuf;

use cto_core::engine::manifest::Manifest;

use crate::failure::Failure;
use crate::host::Env;
use crate::records::{Asked, variable};

#[derive(clap::Args)]
#[command(next_help_heading = "Gated engines")]
pub struct RecordArgs {
    /// The engine's program: an absolute path [env: CTO_HARNESS_<ENGINE>_BIN]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    bin: Option<PathBuf>,
    /// The provider to ask for; its admission decides [env: CTO_HARNESS_<ENGINE>_MODEL_PROVIDER]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    model_provider: Option<String>,
    /// The model to ask for; its admission decides [env: CTO_HARNESS_<ENGINE>_MODEL]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    model: Option<String>,
    /// The model-provider admission [env: CTO_HARNESS_<ENGINE>_MODEL_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    model_admission: Option<PathBuf>,
    /// The decision record [env: CTO_HARNESS_<ENGINE>_DECISION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    decision: Option<PathBuf>,
    /// The executable admission [env: CTO_HARNESS_<ENGINE>_EXECUTABLE_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    executable_admission: Option<PathBuf>,
    /// The source admission [env: CTO_HARNESS_<ENGINE>_SOURCE_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    source_admission: Option<PathBuf>,
    /// A file that holds the base URL, so that no command line does [env: CTO_HARNESS_<ENGINE>_LOCAL_BASE_URL, the URL itself]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    base_url_file: Option<PathBuf>,
    /// How to come by the credential: none, env:NAME, file:/PATH or command:/PROGRAM [env: CTO_HARNESS_<ENGINE>_CREDENTIAL]
    #[arg(long, value_name = "WAY", hide_short_help = true)]
    credential: Option<String>,
}

impl RecordArgs {
    pub fn asked(&self) -> Asked {
        Asked {
            decision: self.decision.clone(),
            model_admission: self.model_admission.clone(),
            executable_admission: self.executable_admission.clone(),
            source_admission: self.source_admission.clone(),
            bin: self.bin.clone(),
            provider: self.model_provider.clone(),
            model: self.model.clone(),
            base_url_file: self.base_url_file.clone(),
            credential: self.credential.clone(),
        }
    }
}

/// `CTO_HARNESS_<ENGINE>_TIMEOUT_SECONDS`.
pub fn seconds(manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
    let name = variable(&manifest.id, "TIMEOUT_SECONDS");
    let Some(value) = env.get(&name).filter(|_| manifest.is_gated()) else { return Ok(None) };
    let seconds = value.to_str().and_then(|text| text.parse::<u32>().ok()).filter(|seconds| (1..=604_800).contains(seconds));
    let bad = || Failure::usage("bad_timeout", format!("{name} is not a number of seconds, 1 to 604800")).so("nothing ran");
    seconds.map(Some).ok_or_else(bad)
}
