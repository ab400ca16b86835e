//! The gateway's threads: one accepts, one serves each connection.

use std::net::TcpListener;
use std::time::Duration;

use cto_core::wire::calls::GatewayReport;

use super::Route;
use super::ledger::Ledger;

pub struct Server {
    route: Route,
    ledger: Ledger,
    _listener: TcpListener,
}

impl Server {
    pub fn open(listener: TcpListener, route: Route) -> std::io::Result<Self> {
        let ledger = Ledger::new(route.protocol, route.budget);
        Ok(Self { route, ledger, _listener: listener })
    }

    pub fn route(&self) -> &Route {
        &self.route
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub fn close(self) -> GatewayReport {
        self.ledger.close(Duration::ZERO)
    }
}
