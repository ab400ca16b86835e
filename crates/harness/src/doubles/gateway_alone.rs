//! `cto __gateway`: the gateway without a run, on the loopback interface, until its standard input
//! closes. For measuring it, and for trying an engine's requests against it.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use cto_core::wire::Protocol;
use cto_core::wire::calls::Budget;
use cto_core::wire::endpoint::Endpoint;
use cto_gateway::{Authorities, Credential, CredentialClass, Route, Timeouts};
use serde_json::json;

use crate::host::Env;

#[derive(clap::Args)]
pub struct Args {
    /// openai-chat, openai-responses, anthropic-messages or gemini-generate
    #[arg(long)]
    protocol: Protocol,
    /// The file that holds the base URL
    #[arg(long, value_name = "FILE")]
    base_url_file: PathBuf,
    /// The variable that holds the credential
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,
    #[arg(long)]
    model: String,
    #[arg(long)]
    alias: Vec<String>,
    /// A field that passes beyond the list of the protocol
    #[arg(long, value_name = "FIELD")]
    request_field: Vec<String>,
    #[arg(long, default_value_t = Budget::default().calls)]
    calls: u64,
    #[arg(long, default_value_t = 300_000)]
    stall_ms: u64,
    /// Certificate authorities in PEM form, instead of this system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Only ask once, and print the call
    #[arg(long)]
    probe: bool,
}

/// Prints `{port, token}`, serves, and prints the report at the end.
pub fn play(args: &Args) -> u8 {
    match run(args) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "gateway: {error}");
            2
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    let text = std::fs::read_to_string(&args.base_url_file)?;
    let endpoint = Endpoint::parse(&text).map_err(io::Error::other)?;
    let env = Env::of_process();
    let class = args.key_env.clone().map(CredentialClass::Environment);
    let credential = class
        .map(|class| Credential::load(&class, &|name| env.get(name).map(OsStr::to_owned)))
        .transpose()
        .map_err(io::Error::other)?;
    let mut route =
        Route::new(args.protocol, endpoint, credential, &args.model).map_err(io::Error::other)?;
    route.aliases.clone_from(&args.alias);
    route.request_fields.clone_from(&args.request_field);
    route.budget.calls = args.calls;
    route.timeouts = Timeouts {
        first_byte: Duration::from_millis(args.stall_ms),
        stall: Duration::from_millis(args.stall_ms),
        ..route.timeouts
    };
    if let Some(file) = &args.ca_file {
        let pem = std::fs::read(file)?;
        route.authorities = Some(Authorities::from_pem(&pem).map_err(io::Error::other)?);
    }
    if args.probe {
        let call = cto_gateway::probe_call(&route);
        return writeln!(io::stdout(), "{}", serde_json::to_string(&call)?);
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let gateway = cto_gateway::start(listener, route)?;
    writeln!(
        io::stdout(),
        "{}",
        json!({"port": port, "token": gateway.token().reveal()})
    )?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    writeln!(
        io::stdout(),
        "{}",
        serde_json::to_string(&gateway.finish())?
    )
}
