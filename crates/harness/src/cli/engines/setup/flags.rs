//! The flags of a setup. Each answers a question or adds a field to the model's admission; no flag
//! takes a URL or a credential, because command lines are seen by everybody.

use std::path::PathBuf;

use cto_core::wire::Protocol;
use cto_core::wire::profiles::switch::Switch;
use serde_json::{Map, Value, json};

use crate::task::cases;

#[derive(clap::Args)]
pub struct Args {
    /// The engine to set up
    pub engine: String,
    /// Its program [default: the one on record, then the one of that name on PATH]
    #[arg(long, value_name = "FILE")]
    pub bin: Option<PathBuf>,
    /// A word that must appear in its --help or --version [default: the engine's name]
    #[arg(long, value_name = "WORD")]
    pub identity: Option<String>,
    /// A file that holds the base URL; one that is typed at the terminal goes into a file of its own
    #[arg(long, value_name = "FILE")]
    pub base_url_file: Option<PathBuf>,
    /// Where the credential is read from: none, env:NAME, file:/PATH or command:/PROGRAM
    #[arg(long, value_name = "WAY")]
    pub credential: Option<String>,
    /// The model to admit
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// A name the endpoint may answer with instead of the model's own; again for each
    #[arg(long, value_name = "NAME")]
    pub alias: Vec<String>,
    /// Who approves this, and where that is written down
    #[arg(long, value_name = "TEXT")]
    pub approval: Option<String>,
    /// The licence its package claims, typed here to accept it
    #[arg(long, value_name = "NAME")]
    pub license: Option<String>,
    /// The engine's name, typed here instead of at the terminal
    #[arg(long, value_name = "ENGINE")]
    pub confirm: Option<String>,
    /// The case to prove stages with
    #[arg(long, value_name = "CASE", default_value = cases::DEFAULT_CASE)]
    pub case: String,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// What is derived from the base URL and from the answer, where nobody says otherwise.
#[derive(clap::Args)]
#[command(next_help_heading = "The endpoint")]
pub struct EndpointArgs {
    /// What records call the provider [default: by the endpoint]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub model_provider: Option<String>,
    /// The protocol: openai-chat, openai-responses, anthropic-messages or gemini-generate
    #[arg(long, value_name = "NAME", value_parser = parse_protocol, hide_short_help = true)]
    pub model_protocol: Option<Protocol>,
    /// Where the endpoint must be: loopback, local or hosted
    #[arg(long, value_name = "CLASS", hide_short_help = true)]
    pub endpoint_class: Option<String>,
    /// What the provider is: local_case_compatible, external_anthropic or external_openai_codex
    #[arg(long, value_name = "CLASS", hide_short_help = true)]
    pub provider_class: Option<String>,
    /// The kind of endpoint: openai, anthropic, google, openrouter, azure, vllm, llama-cpp, ollama or lm-studio
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub profile: Option<String>,
    /// How many tokens the model can read at once
    #[arg(long, value_name = "TOKENS", hide_short_help = true)]
    pub context_window: Option<u64>,
    /// How many tokens one answer may have
    #[arg(long, value_name = "TOKENS", hide_short_help = true)]
    pub output_limit: Option<u64>,
    /// What the endpoint wants otherwise than others of its protocol; again for each
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch, hide_short_help = true)]
    pub compat: Vec<Switch>,
    /// How many seconds the first byte of an answer may take
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    pub first_byte: Option<u64>,
    /// A proxy: host and port
    #[arg(long, value_name = "HOST:PORT", hide_short_help = true)]
    pub proxy: Option<String>,
    /// The way to the proxy's own credential
    #[arg(long, value_name = "WAY", hide_short_help = true)]
    pub proxy_credential: Option<String>,
    /// Certificate authorities to believe, in PEM form
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub ca_file: Option<PathBuf>,
    /// A file of headers to add, a `Name: value` each line
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub headers_file: Option<PathBuf>,
    /// The `api-version` of the query, for endpoints that take one
    #[arg(long, value_name = "VERSION", hide_short_help = true)]
    pub api_version: Option<String>,
}

fn parse_protocol(text: &str) -> Result<Protocol, String> {
    let words = Protocol::WORDS.join(", ");
    text.parse()
        .map_err(|_| format!("a protocol is one of {words}"))
}

fn parse_switch(text: &str) -> Result<Switch, String> {
    let words = Switch::WORDS.join(", ");
    Switch::parse(text).ok_or_else(|| format!("a switch is one of {words}"))
}

impl EndpointArgs {
    /// Those that are fields of the model's admission as they stand.
    pub fn fields(&self) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(name.to_owned(), value);
            }
        };
        put("profile", self.profile.as_ref().map(|text| json!(text)));
        put("context_window", self.context_window.map(|n| json!(n)));
        put("output_limit", self.output_limit.map(|n| json!(n)));
        put("first_byte_seconds", self.first_byte.map(|n| json!(n)));
        put("proxy", self.proxy.as_ref().map(|text| json!(text)));
        put(
            "proxy_credential",
            self.proxy_credential.as_ref().map(|text| json!(text)),
        );
        put(
            "api_version",
            self.api_version.as_ref().map(|text| json!(text)),
        );
        put(
            "compat",
            (!self.compat.is_empty()).then(|| json!(self.compat)),
        );
        map
    }
}
