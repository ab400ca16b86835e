//! The flags of a gated engine's lane: what it is run with, and which records let it. Each has a
//! variable `CTO_HARNESS_<ENGINE>_…`, which comes after the flag; records then come from the state
//! home.

use std::path::PathBuf;

use cto_core::engine::manifest::Manifest;

use crate::host::Env;
use crate::host::failure::Failure;
use crate::records::variable;
use crate::task::request::LaneOptions;

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
    /// A file that holds the base URL, so that no command line does [env:
    /// CTO_HARNESS_<ENGINE>_LOCAL_BASE_URL, the URL itself]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    base_url_file: Option<PathBuf>,
    /// How to come by the credential: none, env:NAME, file:/PATH or command:/PROGRAM [env:
    /// CTO_HARNESS_<ENGINE>_CREDENTIAL]
    #[arg(long, value_name = "WAY", hide_short_help = true)]
    credential: Option<String>,
    /// How the model is talked to: openai-chat, openai-responses or anthropic-messages [env:
    /// CTO_HARNESS_<ENGINE>_MODEL_PROTOCOL]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    model_protocol: Option<String>,
    /// How many calls of its model the engine may make [env: CTO_HARNESS_<ENGINE>_MODEL_CALLS]
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    model_calls: Option<u32>,
}

impl RecordArgs {
    pub fn asked(&self) -> LaneOptions {
        LaneOptions {
            decision: self.decision.clone(),
            model_admission: self.model_admission.clone(),
            executable_admission: self.executable_admission.clone(),
            source_admission: self.source_admission.clone(),
            bin: self.bin.clone(),
            provider: self.model_provider.clone(),
            model: self.model.clone(),
            base_url_file: self.base_url_file.clone(),
            credential: self.credential.clone(),
            protocol: self.model_protocol.clone(),
        }
    }
}

/// `CTO_HARNESS_<ENGINE>_TIMEOUT_SECONDS`.
pub fn seconds(manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
    number(
        manifest,
        env,
        "TIMEOUT_SECONDS",
        ("bad_timeout", "number of seconds"),
        604_800,
    )
}

impl RecordArgs {
    /// The flag, then `CTO_HARNESS_<ENGINE>_MODEL_CALLS`.
    pub fn model_calls(&self, manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
        match self.model_calls {
            Some(calls) => Ok(Some(calls)),
            None => number(
                manifest,
                env,
                "MODEL_CALLS",
                ("bad_model_calls", "number of calls"),
                100_000,
            ),
        }
    }
}

fn number(
    manifest: &Manifest,
    env: &Env,
    name: &str,
    (code, what): (&'static str, &str),
    most: u32,
) -> Result<Option<u32>, Failure> {
    let name = variable(&manifest.id, name);
    let Some(value) = env.get(&name).filter(|_| manifest.is_gated()) else {
        return Ok(None);
    };
    let number = value
        .to_str()
        .and_then(|text| text.parse::<u32>().ok())
        .filter(|number| (1..=most).contains(number));
    let bad =
        || Failure::usage(code, format!("{name} is not a {what}, 1 to {most}")).so("nothing ran");
    number.map(Some).ok_or_else(bad)
}
