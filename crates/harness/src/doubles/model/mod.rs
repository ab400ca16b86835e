//! `cto __model SCENARIO`: a model that plays a scenario, over real sockets, in all four protocols.
//! For tests, for validators, and for people who write engines; `docs/scripted-model.md` tells them
//! how.

mod render;
mod server;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread;

use cto_core::wire::scenario::Scenario;

/// What the command line says.
#[derive(clap::Args)]
pub struct Args {
    /// The scenario: a TOML file
    scenario: PathBuf,
    /// Listen on this port of the loopback interface; by default any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the port here once it listens
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,
    /// Append one line of JSON for each request, without credentials
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// A scripted model that listens; it lives as long as its process.
pub struct Model {
    pub address: SocketAddr,
}

struct Playback {
    scenario: Scenario,
    requests: AtomicU64,
    log: Option<Mutex<File>>,
}

impl Model {
    /// Plays a scenario on a listener, a thread a connection.
    pub fn start(listener: TcpListener, scenario: Scenario, log: Option<File>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let playback = Arc::new(Playback {
            scenario,
            requests: AtomicU64::new(0),
            log: log.map(Mutex::new),
        });
        let patience = playback.scenario.leave_after;
        let patience = patience.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        if patience == 0 {
            // Closed before anybody is told where it was.
            drop(listener);
            return Ok(Self { address });
        }
        thread::Builder::new().name("model".into()).spawn(move || {
            for socket in listener.incoming().flatten().take(patience) {
                let playback = Arc::clone(&playback);
                // Without a thread the connection closes, as it would at a server that is full.
                let _ = thread::Builder::new()
                    .stack_size(256 * 1024)
                    .spawn(move || server::serve(&playback, &socket));
            }
        })?;
        Ok(Self { address })
    }
}

/// Plays until it is ended from outside.
pub fn play(args: &Args) -> u8 {
    match run(args) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "scripted model: {error}");
            2
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    let scenario = read(&args.scenario)?;
    let log = args
        .log
        .as_ref()
        .map(|path| OpenOptions::new().create(true).append(true).open(path))
        .transpose()?;
    let model = Model::start(TcpListener::bind(("127.0.0.1", args.port))?, scenario, log)?;
    if let Some(file) = &args.port_file {
        // Whole or not at all: someone waits for it.
        let part = file.with_extension("part");
        fs::write(&part, model.address.port().to_string())?;
        fs::rename(&part, file)?;
    }
    writeln!(io::stdout(), "http://{}", model.address)?;
    io::stdout().flush()?;
    loop {
        thread::park();
    }
}

fn read(path: &Path) -> io::Result<Scenario> {
    let text = fs::read_to_string(path)?;
    Scenario::parse(&text).map_err(|(line, column, words)| {
        io::Error::other(format!("{}:{line}:{column}: {words}", path.display()))
    })
}
