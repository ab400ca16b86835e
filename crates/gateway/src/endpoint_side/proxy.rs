//! A tunnel through the operator's proxy: one `CONNECT`, then the endpoint's own TLS inside. The
//! proxy sees the host's name and no more; what it is asked for is the one endpoint.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Instant;

use base64ct::{Base64, Encoding};
use cto_core::values::address::AddressKind;
use cto_core::wire::calls::RefusalReason;
use cto_core::wire::endpoint::Endpoint;
use cto_core::wire::http::response_head;

use crate::Proxy;

/// A longer answer to CONNECT is none.
const MAX_HEAD: usize = 16 * 1024;

pub fn tunnel(
    proxy: &Proxy,
    endpoint: &Endpoint,
    deadline: Instant,
) -> Result<TcpStream, RefusalReason> {
    // Without TLS inside, the proxy would read and could change everything.
    if !endpoint.tls() {
        return Err(RefusalReason::Proxy);
    }
    let mut socket = reach(proxy, deadline)?;
    let host = match endpoint.host().contains(':') {
        true => format!("[{}]", endpoint.host()),
        false => endpoint.host().to_owned(),
    };
    let place = format!("{host}:{}", endpoint.port());
    let mut request = format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n");
    if let Some(credential) = &proxy.credential {
        let basic = Base64::encode_string(credential.reveal().as_bytes());
        request.push_str(&format!("proxy-authorization: Basic {basic}\r\n"));
    }
    request.push_str("\r\n");
    in_time(&socket, deadline)?;
    socket
        .write_all(request.as_bytes())
        .map_err(|_| RefusalReason::Proxy)?;
    // Byte by byte: what follows the head belongs to the endpoint.
    let mut got = Vec::new();
    let mut byte = [0u8; 1];
    while !got.ends_with(b"\r\n\r\n") {
        in_time(&socket, deadline)?;
        match socket.read(&mut byte) {
            Ok(1) if got.len() < MAX_HEAD => got.push(byte[0]),
            _ => return Err(RefusalReason::Proxy),
        }
    }
    match response_head(&got) {
        Ok(Some((head, _))) if (200..300).contains(&head.status) => Ok(socket),
        _ => Err(RefusalReason::Proxy),
    }
}

fn reach(proxy: &Proxy, deadline: Instant) -> Result<TcpStream, RefusalReason> {
    let addresses = (proxy.address.host.as_str(), proxy.address.port)
        .to_socket_addrs()
        .map_err(|_| RefusalReason::Proxy)?;
    for address in addresses {
        // What opens a proxy goes to it in the clear: not across the open network.
        let is_public = AddressKind::of(address.ip()) == AddressKind::Public;
        if is_public && proxy.credential.is_some() {
            continue;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(RefusalReason::ConnectTimeout);
        }
        if let Ok(socket) = TcpStream::connect_timeout(&address, left) {
            return Ok(socket);
        }
    }
    Err(RefusalReason::Proxy)
}

fn in_time(socket: &TcpStream, deadline: Instant) -> Result<(), RefusalReason> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(RefusalReason::ConnectTimeout);
    }
    socket
        .set_read_timeout(Some(left))
        .and(socket.set_write_timeout(Some(left)))
        .map_err(|_| RefusalReason::Proxy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Credential;
    use cto_core::records::model_endpoint::ProxyAddress;
    use std::net::TcpListener;
    use std::time::Duration;

    /// Answers one CONNECT; returns what was asked and whatever came after.
    fn once(answer: &'static str) -> (Proxy, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut got = Vec::new();
            let mut byte = [0u8; 1];
            while !got.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() == 1 {
                got.push(byte[0]);
            }
            socket.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(got).unwrap()
        });
        let address = ProxyAddress::parse(&format!("127.0.0.1:{port}")).unwrap();
        let proxy = Proxy {
            address,
            credential: None,
        };
        (proxy, asked)
    }

    fn through(proxy: &Proxy, url: &str) -> Result<TcpStream, RefusalReason> {
        let deadline = Instant::now() + Duration::from_secs(20);
        tunnel(proxy, &Endpoint::parse(url).unwrap(), deadline)
    }

    #[test]
    fn the_one_endpoint_is_asked_for_and_its_bytes_are_left_to_it() {
        let (mut proxy, asked) = once("HTTP/1.1 200 Connection established\r\n\r\nTLS bytes");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "lab:pass").unwrap();
        let class = crate::CredentialClass::File(file);
        proxy.credential = Some(Credential::load(&class, &|_| None).unwrap());
        let mut socket = through(&proxy, "https://gate.example/v1").unwrap();
        let mut rest = String::new();
        socket.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "TLS bytes");
        assert_eq!(
            asked.join().unwrap(),
            "CONNECT gate.example:443 HTTP/1.1\r\nhost: gate.example:443\r\nproxy-authorization: Basic bGFiOnBhc3M=\r\n\r\n"
        );
    }

    #[test]
    fn a_proxy_that_refuses_or_speaks_otherwise_is_told_apart_from_the_endpoint() {
        for answer in [
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\n\r\n",
            "SOCKS\r\n\r\n",
            "",
        ] {
            let (proxy, asked) = once(answer);
            let found = through(&proxy, "https://gate.example/v1").err();
            assert_eq!(found, Some(RefusalReason::Proxy), "{answer}");
            asked.join().unwrap();
        }
    }

    #[test]
    fn what_is_not_tls_inside_never_goes_through_a_proxy() {
        let address = ProxyAddress::parse("127.0.0.1:9").unwrap();
        let proxy = Proxy {
            address,
            credential: None,
        };
        let found = through(&proxy, "http://127.0.0.1:9/v1").err();
        assert_eq!(found, Some(RefusalReason::Proxy));
    }
}
