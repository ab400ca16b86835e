//! The model gateway of one run: the only address an engine can reach from its jail.
//! It holds credentials and sockets and never sees a repository or a bundle.
//! Engine's side: `serve` (threads), `engine_side` (requests in), `reply` (answers out).
//! Endpoint's side: `exchange`, `call_context`, `endpoint_side/` (requests out), `response_forwarder`
//! (answers in), `questions/` (what is asked without an engine: before a run, and by a person).
//! Both sides: `credential`, `operator_program`, `ledger` (calls, budget), `spill_buffer`.
//! The harness rooms plan, run and doubles may import it; evidence and host only `operator_program`.
//!
//! One thread per connection, blocking sockets, no buffering of streams. What may pass is decided
//! in `cto_core::wire`.

#![forbid(unsafe_code)]

mod call_context;
mod credential;
mod endpoint_side;
mod engine_side;
mod exchange;
mod ledger;
pub mod operator_program;
mod questions;
mod reply;
mod response_forwarder;
mod serve;
mod spill_buffer;

use std::fmt;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use cto_core::wire::Protocol;
use cto_core::wire::calls::{Budget, CallRecord, GatewayReport, WireCounts};
use cto_core::wire::endpoint::Endpoint;
use cto_core::wire::profiles::Auth;
use cto_core::wire::profiles::switch::Habits;
use rustix::event::Timespec;

pub use credential::{Credential, CredentialClass, CredentialError};
pub use endpoint_side::roots::is_of_the_system;
pub use endpoint_side::way::{Authorities, AuthoritiesError, HeaderValue, Proxy};
pub use questions::attended::GivenUp;
pub use questions::interview::{Interview, interview};
pub use questions::model_list::{ListError, list_models};
pub use questions::probe::{Heard, probe, probe_attended, probe_call};

/// The kernel gave no random bytes, so there is no token.
#[derive(Debug, thiserror::Error)]
#[error("the kernel gave no random bytes: {0}")]
pub struct NoRandomBytes(getrandom::Error);

/// Where the calls of one run go, and what they may be.
#[derive(Clone)]
pub struct Route {
    pub protocol: Protocol,
    pub endpoint: Endpoint,
    pub credential: Option<Credential>,
    /// The admitted name, byte for byte.
    pub model: String,
    /// Other names under which that model may answer.
    pub aliases: Vec<String>,
    /// Fields of a request that pass beyond the list of the protocol.
    pub request_fields: Vec<String>,
    pub budget: Budget,
    /// What the engine must show; useless anywhere else.
    pub token: Token,
    pub timeouts: Timeouts,
    /// What a request has beside its messages; the one before a run is built so.
    pub habits: Habits,
    pub auth: Auth,
    /// The `api-version` of every query.
    pub api_version: Option<String>,
    /// Added to every request.
    pub headers: Vec<(String, HeaderValue)>,
    /// Never used for this machine and private networks.
    pub proxy: Option<Proxy>,
    /// Believed instead of this system's.
    pub authorities: Option<Authorities>,
    /// Is any name heard, to be offered to a person? Only while nothing is admitted yet.
    any_name: bool,
}

impl Route {
    /// A route with a fresh token, no aliases and the ordinary limits.
    pub fn new(
        protocol: Protocol,
        endpoint: Endpoint,
        credential: Option<Credential>,
        model: &str,
    ) -> Result<Self, NoRandomBytes> {
        Ok(Self {
            protocol,
            endpoint,
            credential,
            model: model.to_owned(),
            aliases: Vec::new(),
            request_fields: Vec::new(),
            budget: Budget::default(),
            token: Token::fresh()?,
            timeouts: Timeouts::default(),
            habits: Habits::default(),
            auth: Auth::default(),
            api_version: None,
            headers: Vec::new(),
            proxy: None,
            authorities: None,
            any_name: false,
        })
    }
}

/// The token an engine must show, made for one run and thrown away with it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn fresh() -> Result<Self, NoRandomBytes> {
        let mut random = [0u8; 20];
        getrandom::fill(&mut random).map_err(NoRandomBytes)?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(format!("cto-run-{digits}")))
    }

    /// For the engine's own configuration, and nowhere else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// How long the gateway waits for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// For the endpoint to accept, TLS included.
    pub connect: Duration,
    /// For the first byte of an answer: a model that must be loaded first needs minutes.
    pub first_byte: Duration,
    /// For the next byte of an answer.
    pub stall: Duration,
    /// For the engine to send a whole request head, then for each part of its body.
    pub request: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_secs(300),
            stall: Duration::from_secs(300),
            request: Duration::from_secs(30),
        }
    }
}

/// An open gateway. Dropping it closes it.
pub struct Gateway {
    server: serve::Server,
}

/// What a gateway has seen until now, for as long as somebody wants to know.
pub struct Meter(Arc<ledger::Ledger>);

impl Meter {
    pub fn read(&self) -> WireCounts {
        self.0.so_far()
    }

    /// A number that grows with whatever moves on the wire.
    pub fn pulse(&self) -> u64 {
        self.0.pulse()
    }
}

/// Opens the gateway of one run on a listener that only its jail can reach.
pub fn start(listener: TcpListener, route: Route) -> std::io::Result<Gateway> {
    Ok(Gateway {
        server: serve::Server::open(listener, route)?,
    })
}

impl Gateway {
    pub fn token(&self) -> &Token {
        &self.server.route().token
    }

    /// The calls that have ended so far.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.server.ledger().calls()
    }

    /// Those that ended after so many had.
    pub fn ended_after(&self, told: usize) -> Vec<CallRecord> {
        self.server.ledger().ended_after(told)
    }

    /// Counts for somebody who watches; it holds nothing of the route.
    pub fn meter(&self) -> Meter {
        Meter(Arc::clone(self.server.ledger()))
    }

    /// Closes every connection and reports every call.
    pub fn finish(self) -> GatewayReport {
        self.server.close()
    }
}

/// A duration as `poll` takes it.
fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
