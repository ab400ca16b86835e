//! The flags of a gated engine's lane: what it is run with, and which records let it. Each has a
//! variable `CTO_HARNESS_<ENGINE>_…`, which comes after the flag; records then come from the state
//! home.

use std::path::{Path, PathBuf};

use cto_core::values::money;
use serde::{Deserialize, Serialize};

use crate::host::failure::Failure;
use crate::records::examine;
use crate::task::lane::{LaneOptions, MOST_TOKENS, SpendAsked};

#[derive(clap::Args, Clone, Serialize, Deserialize)]
#[command(next_help_heading = "Gated engines")]
pub struct RecordArgs {
    /// The engine's program: a path [env: CTO_HARNESS_<ENGINE>_BIN]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    bin: Option<PathBuf>,
    /// The model provider to use; an admission record must name it [env:
    /// CTO_HARNESS_<ENGINE>_MODEL_PROVIDER]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    model_provider: Option<String>,
    /// The model to use; an admission record must name it [env: CTO_HARNESS_<ENGINE>_MODEL]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    model: Option<String>,
    /// The admission record of the model [env: CTO_HARNESS_<ENGINE>_MODEL_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    model_admission: Option<PathBuf>,
    /// The record of who decided for this model [env: CTO_HARNESS_<ENGINE>_DECISION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    decision: Option<PathBuf>,
    /// The admission record of the engine's program [env:
    /// CTO_HARNESS_<ENGINE>_EXECUTABLE_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    executable_admission: Option<PathBuf>,
    /// The admission record of where the engine came from [env:
    /// CTO_HARNESS_<ENGINE>_SOURCE_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    source_admission: Option<PathBuf>,
    /// A file that holds the base URL of the model, so that no command line shows it [env:
    /// CTO_HARNESS_<ENGINE>_LOCAL_BASE_URL, the URL itself]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    base_url_file: Option<PathBuf>,
    /// Where the credential is read from: none, env:NAME, file:/PATH or command:/PROGRAM [env:
    /// CTO_HARNESS_<ENGINE>_CREDENTIAL]
    #[arg(long, value_name = "WAY", hide_short_help = true)]
    credential: Option<String>,
    /// The protocol of the model: openai-chat, openai-responses or anthropic-messages [env:
    /// CTO_HARNESS_<ENGINE>_MODEL_PROTOCOL]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    model_protocol: Option<String>,
    /// How long the first byte of an answer may take, for a model that must be loaded first [env:
    /// CTO_HARNESS_<ENGINE>_FIRST_BYTE_SECONDS]
    #[arg(long, value_name = "SECONDS", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    first_byte: Option<u32>,
    /// How many times the engine may call its model [default: 200] [env: CTO_HARNESS_<ENGINE>_MODEL_CALLS]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    model_calls: Option<u32>,
    /// How many tokens its calls may use, in and out [default: 2000000] [env:
    /// CTO_HARNESS_<ENGINE>_MODEL_TOKENS]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TOKENS)))]
    tokens: Option<u32>,
    /// What its calls may cost, by the prices of --prices
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    spend: Option<u64>,
    /// A file of yours with the prices of models, for --spend; none is built in [config: prices]
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

impl RecordArgs {
    /// The program that was named.
    pub fn bin(&self) -> Option<&Path> {
        self.bin.as_deref()
    }

    /// Every file that is named; a program without a directory is looked for as it was typed.
    pub fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let named = [
            &mut self.model_admission,
            &mut self.decision,
            &mut self.executable_admission,
            &mut self.source_admission,
            &mut self.base_url_file,
            &mut self.prices,
        ];
        let is_path = |bin: &&mut PathBuf| bin.components().nth(1).is_some();
        let program = self.bin.as_mut().filter(is_path);
        named.into_iter().flatten().chain(program)
    }

    /// The flag of the limit.
    pub fn model_calls(&self) -> Option<u32> {
        self.model_calls
    }

    pub fn tokens(&self) -> Option<u32> {
        self.tokens
    }

    /// What it may cost, where that was said; `configured` is the price file of the settings.
    fn spend(&self, configured: Option<PathBuf>) -> Result<Option<SpendAsked>, Failure> {
        let Some(micros) = self.spend else {
            return Ok(None);
        };
        let prices = self.prices.clone().or(configured).ok_or_else(|| {
            let what = "--spend counts by prices, and no price file was named";
            Failure::usage("prices_missing", what)
                .so("nothing ran")
                .hint("name one with --prices FILE; docs/engines.md shows what it holds")
        })?;
        Ok(Some(SpendAsked { micros, prices }))
    }

    pub fn asked(&self, configured_prices: Option<PathBuf>) -> Result<LaneOptions, Failure> {
        Ok(LaneOptions {
            decision: self.decision.clone(),
            model_admission: self.model_admission.clone(),
            executable_admission: self.executable_admission.clone(),
            source_admission: self.source_admission.clone(),
            bin: self.bin.as_deref().map(examine::named),
            provider: self.model_provider.clone(),
            model: self.model.clone(),
            base_url_file: self.base_url_file.clone(),
            credential: self.credential.clone(),
            protocol: self.model_protocol.clone(),
            first_byte: self.first_byte,
            spend: self.spend(configured_prices)?,
        })
    }
}

/// An amount as it is typed, in millionths.
fn amount(typed: &str) -> Result<u64, String> {
    match money::micros(typed) {
        Ok(0) => Err("nothing can be had for nothing".into()),
        other => other.map_err(Into::into),
    }
}
