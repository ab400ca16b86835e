//! The model gateway of one run: the only thing an engine can reach. It stands behind the jail's
//! door, lets requests for the admitted model through to the operator's endpoint, and records every
//! one.
//!
//! A thread a connection, blocking sockets, no buffering of streams. What may pass is decided in
//! `cto_core::wire`.

mod credential;
mod engine_side;
mod exchange;
mod hold;
mod ledger;
mod outbound;
mod probe;
mod reply;
mod roots;
mod serve;
mod upstream;

use std::fmt;
use std::net::TcpListener;
use std::time::Duration;

use cto_core::wire::Protocol;
use cto_core::wire::calls::{Budget, CallRecord, GatewayReport};
use cto_core::wire::endpoint::Endpoint;

pub use credential::{Credential, CredentialClass, CredentialError};
pub use probe::{probe, probe_call};

use crate::host;
use crate::host::failure::Failure;

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
    pub budget: Budget,
    /// What the engine must show; worth nothing elsewhere.
    pub token: Token,
    pub patience: Patience,
}

impl Route {
    /// A route with a fresh token, no aliases and the ordinary limits.
    pub fn new(
        protocol: Protocol,
        endpoint: Endpoint,
        credential: Option<Credential>,
        model: &str,
    ) -> Result<Self, Failure> {
        Ok(Self {
            protocol,
            endpoint,
            credential,
            model: model.to_owned(),
            aliases: Vec::new(),
            budget: Budget::default(),
            token: Token::fresh()?,
            patience: Patience::default(),
        })
    }
}

/// A throwaway token: the engine's way in, made for one run.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn fresh() -> Result<Self, Failure> {
        Ok(Self(format!("cto-run-{}", host::random_name(32)?)))
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
pub struct Patience {
    /// For the endpoint to accept, TLS included.
    pub connect: Duration,
    /// For the next byte of an answer, the first one included.
    pub stall: Duration,
    /// For the engine to send a whole request head, and then for each part of its body.
    pub request: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            stall: Duration::from_secs(300),
            request: Duration::from_secs(30),
        }
    }
}

/// An open gateway. Dropping it closes it.
pub struct Gateway {
    server: serve::Server,
}

/// Opens the gateway of one run on a listener: the jail's door.
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

    /// Closes every connection and says what happened.
    pub fn finish(self) -> GatewayReport {
        self.server.close()
    }
}
