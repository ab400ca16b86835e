//! What a gated engine is run with: flags of a request, each with a variable of the engine's own,
//! `CTO_HARNESS_<ENGINE>_…`, which comes after the flag.

use std::path::PathBuf;

use cto_core::engine::manifest::Manifest;
use cto_core::task::contract::Stage;
use cto_core::values::ids::EngineId;

use crate::host::Env;
use crate::host::failure::Failure;

/// More tokens than that nobody means.
pub const MOST_TOKENS: u32 = 4_000_000_000;

/// What a run may cost, and where the prices stand.
#[derive(Clone, Debug)]
pub struct SpendAsked {
    pub micros: u64,
    pub prices: PathBuf,
}

/// Which program, which model and which records; for engines without a gate nothing looks at it.
#[derive(Clone, Debug, Default)]
pub struct LaneOptions {
    pub decision: Option<PathBuf>,
    pub model_admission: Option<PathBuf>,
    pub executable_admission: Option<PathBuf>,
    pub source_admission: Option<PathBuf>,
    pub bin: Option<PathBuf>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub base_url_file: Option<PathBuf>,
    pub credential: Option<String>,
    pub protocol: Option<String>,
    /// Seconds the first byte of an answer may take.
    pub first_byte: Option<u32>,
    /// Looked up once the model is known.
    pub spend: Option<SpendAsked>,
}

/// `CTO_HARNESS_<ENGINE>_<NAME>`.
pub fn variable(engine: &EngineId, name: &str) -> String {
    format!(
        "CTO_HARNESS_{}_{name}",
        engine.as_str().to_uppercase().replace('-', "_")
    )
}

/// `CTO_HARNESS_<ENGINE>_TIMEOUT_SECONDS`.
pub fn seconds(manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
    let words = ("bad_timeout", "number of seconds");
    number(manifest, env, "TIMEOUT_SECONDS", words, 604_800)
}

/// `CTO_HARNESS_<ENGINE>_MODEL_CALLS`.
pub fn model_calls(manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
    let words = ("bad_model_calls", "number of calls");
    number(manifest, env, "MODEL_CALLS", words, 100_000)
}

/// `CTO_HARNESS_<ENGINE>_MODEL_TOKENS`.
pub fn model_tokens(manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
    let words = ("bad_model_tokens", "number of tokens");
    number(manifest, env, "MODEL_TOKENS", words, MOST_TOKENS)
}

/// The most that the first byte of an answer may be waited for.
pub const MAX_FIRST_BYTE: u32 = 86_400;

/// `CTO_HARNESS_<ENGINE>_FIRST_BYTE_SECONDS`.
pub fn first_byte(manifest: &Manifest, env: &Env) -> Result<Option<u32>, Failure> {
    let words = ("bad_first_byte", "number of seconds");
    number(manifest, env, "FIRST_BYTE_SECONDS", words, MAX_FIRST_BYTE)
}

/// The stage asked for, where one was. The flag and `CTO_HARNESS_<ENGINE>_STAGE` must
/// agree.
pub fn stage(manifest: &Manifest, flag: Option<u8>, env: &Env) -> Result<Option<Stage>, Failure> {
    let bad = |text: String| Failure::usage("bad_stage", text).so("nothing ran");
    let variable = variable(&manifest.id, "STAGE");
    let from_env = match env.get(&variable).filter(|_| manifest.is_gated()) {
        None => None,
        Some(value) => Some(
            value
                .to_str()
                .and_then(|text| text.parse::<u8>().ok())
                .ok_or_else(|| bad(format!("{variable} is not a stage")))?,
        ),
    };
    let number = match (flag, from_env) {
        (Some(flag), Some(env)) if flag != env => {
            return Err(bad(format!("--stage {flag} and {variable}={env} disagree")));
        }
        (Some(number), _) | (None, Some(number)) => number,
        (None, None) => return Ok(None),
    };
    Stage::try_from(number).map(Some).map_err(bad)
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
