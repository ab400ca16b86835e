//! Connections to the endpoint, plain or TLS, and the idle ones that may be used again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cto_core::wire::calls::RefusalReason;
use cto_core::wire::endpoint::Endpoint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::Route;
use crate::endpoint_side::proxy;
use crate::endpoint_side::roots;

/// A connection idle for longer has probably been closed by the server.
const MAX_IDLE: Duration = Duration::from_secs(60);
const MAX_POOLED: usize = 64;

pub struct Upstream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// Has it carried a call before?
    pub reused: bool,
}

impl Upstream {
    pub fn connect(route: &Route) -> Result<Self, RefusalReason> {
        let (endpoint, timeouts) = (&route.endpoint, &route.timeouts);
        let deadline = Instant::now() + timeouts.connect;
        // This machine and private networks are reached directly, whatever proxy there is.
        let socket = match route.proxy.as_ref().filter(|_| !endpoint.is_near()) {
            Some(proxy) => proxy::tunnel(proxy, endpoint, deadline)?,
            None => reach(endpoint, deadline)?,
        };
        let _ = socket.set_nodelay(true);
        let tls = if endpoint.tls() {
            Some(Box::new(shake_hands(&socket, route, deadline)?))
        } else {
            None
        };
        socket
            .set_read_timeout(None)
            .and(socket.set_write_timeout(Some(timeouts.stall)))
            .map_err(|_| RefusalReason::Unreachable)?;
        Ok(Self {
            socket,
            tls,
            reused: false,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write_all(bytes);
        };
        for piece in bytes.chunks(16 * 1024) {
            tls.writer().write_all(piece)?;
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }

    /// Bytes that have come already, before the socket is asked again.
    pub fn buffered(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            return Ok(None);
        };
        match tls.reader().read(buffer) {
            Ok(n) => Ok(Some(n)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads once from a socket that is ready; nothing when a TLS record is not whole yet.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(buffer).map(Some);
        };
        tls.read_tls(&mut self.socket)?;
        tls.process_new_packets().map_err(io::Error::other)?;
        // Answers to the peer, such as a key update.
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        self.buffered(buffer)
    }

    /// Has nothing arrived on this idle connection, not even its end?
    fn is_quiet(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP)];
        matches!(
            poll(
                &mut fds,
                Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: 0
                })
            ),
            Ok(0)
        )
    }
}

fn reach(endpoint: &Endpoint, deadline: Instant) -> Result<TcpStream, RefusalReason> {
    let addresses = (endpoint.host(), endpoint.port())
        .to_socket_addrs()
        .map_err(|_| RefusalReason::Dns)?;
    let mut failed = RefusalReason::Dns;
    for address in addresses {
        if !endpoint.may_connect_to(address.ip()) {
            failed = RefusalReason::Unreachable;
            continue;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(RefusalReason::ConnectTimeout);
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = reason_of(&error),
        }
    }
    Err(failed)
}

fn reason_of(error: &io::Error) -> RefusalReason {
    match error.kind() {
        ErrorKind::ConnectionRefused => RefusalReason::ConnectionRefused,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => RefusalReason::ConnectTimeout,
        _ => RefusalReason::Unreachable,
    }
}

fn tls_reason(error: &rustls::Error) -> RefusalReason {
    use rustls::CertificateError as Bad;
    let rustls::Error::InvalidCertificate(bad) = error else {
        return RefusalReason::Tls;
    };
    match bad {
        Bad::Expired | Bad::ExpiredContext { .. } => RefusalReason::TlsExpired,
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => RefusalReason::TlsName,
        // An unknown issuer, a certificate that vouches for itself, and the like.
        _ => RefusalReason::TlsUntrusted,
    }
}

fn shake_hands(
    socket: &TcpStream,
    route: &Route,
    deadline: Instant,
) -> Result<ClientConnection, RefusalReason> {
    let config = match &route.authorities {
        Some(own) => own.0.clone(),
        None => roots::config().ok_or(RefusalReason::Tls)?,
    };
    let name =
        ServerName::try_from(route.endpoint.host().to_owned()).map_err(|_| RefusalReason::Tls)?;
    let mut tls = ClientConnection::new(config, name).map_err(|_| RefusalReason::Tls)?;
    let mut socket = socket;
    while tls.is_handshaking() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(RefusalReason::ConnectTimeout);
        }
        let timed = socket
            .set_read_timeout(Some(left))
            .and(socket.set_write_timeout(Some(left)));
        timed.map_err(|_| RefusalReason::Unreachable)?;
        let step = if tls.wants_write() {
            tls.write_tls(&mut socket)
        } else {
            tls.read_tls(&mut socket)
        };
        match step {
            Ok(0) => return Err(RefusalReason::Tls),
            Ok(_) => {
                if let Err(error) = tls.process_new_packets() {
                    // Sends the TLS alert, if the peer still listens.
                    let _ = tls.write_tls(&mut socket);
                    return Err(tls_reason(&error));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                return Err(RefusalReason::ConnectTimeout);
            }
            Err(_) => return Err(RefusalReason::Tls),
        }
    }
    while tls.wants_write() {
        tls.write_tls(&mut socket).map_err(|_| RefusalReason::Tls)?;
    }
    Ok(tls)
}

/// Connections between two calls.
#[derive(Default)]
pub struct Pool {
    idle: Mutex<Vec<(Upstream, Instant)>>,
}

impl Pool {
    /// The connection used last, if it is still open and silent.
    pub fn take(&self) -> Option<Upstream> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((upstream, since)) = idle.pop() {
            if since.elapsed() < MAX_IDLE && upstream.is_quiet() {
                return Some(upstream);
            }
        }
        None
    }

    pub fn put(&self, mut upstream: Upstream) {
        upstream.reused = true;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_POOLED {
            idle.push((upstream, Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::wire::Protocol;
    use proptest::prelude::*;
    use std::net::TcpListener;

    #[test]
    fn a_local_name_is_reached_over_plain_http() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"] {
            let endpoint = Endpoint::parse(&format!("http://{host}:{port}")).unwrap();
            let route = Route::new(Protocol::OpenaiChat, endpoint, None, "m").unwrap();
            let reached = Upstream::connect(&route);
            assert!(reached.is_ok(), "{host}: {:?}", reached.err());
        }
    }

    proptest! {
        /// Whatever an admission lets through has a name that TLS can ask for.
        #[test]
        fn every_admitted_host_is_a_server_name(
            host in "([a-zA-Z0-9_-]{1,8}(\\.[a-zA-Z0-9_-]{1,5}){0,3}|[0-9]{1,3}(\\.[0-9]{1,3}){3}|\\[[0-9a-f:.]{2,20}\\])",
        ) {
            let Ok(endpoint) = Endpoint::parse(&format!("https://{host}")) else { return Ok(()) };
            let name = ServerName::try_from(endpoint.host().to_owned());
            prop_assert!(name.is_ok(), "{}", host);
        }
    }
}
