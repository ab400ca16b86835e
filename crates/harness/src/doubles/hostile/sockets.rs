//! Ways out by socket: every family, raw and packet sockets, the host's own loopback, its abstract
//! names, the net.

use std::io;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU32;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, SocketType};

use super::{Attack, refused};

pub const ATTACKS: &[Attack] = &[
    Attack::new("other-family", other_family),
    Attack::new("open-socket", open_socket),
    Attack::new("netlink-protocol", netlink),
    Attack::new("connect-tcp", connect_tcp),
    Attack::new("connect-path", |path| UnixStream::connect(path).map(drop)),
    Attack::new("connect-abstract", connect_abstract),
    Attack::new("send-datagram", send_datagram),
    Attack::new("resolve-name", |name| {
        (name, 80).to_socket_addrs().map(drop)
    }),
];

/// Unix, IPv4, IPv6 and netlink; one more than the highest family any kernel knows so far.
const ALLOWED: [u16; 4] = [1, 2, 10, 16];
const FAMILIES: u16 = 47;

/// Any socket of any kind of any family that has no business here.
fn other_family(_: &str) -> io::Result<()> {
    let kinds = [
        SocketType::STREAM,
        SocketType::DGRAM,
        SocketType::RAW,
        SocketType::SEQPACKET,
        SocketType::RDM,
    ];
    let others = (0..FAMILIES).filter(|family| !ALLOWED.contains(family));
    let made = others
        .flat_map(|family| kinds.map(|kind| (family, kind)))
        .find(|(family, kind)| {
            rustix::net::socket(AddressFamily::from_raw(*family), *kind, None).is_ok()
        });
    match made {
        Some(_) => Ok(()),
        None => Err(refused(format!("none of {FAMILIES} families"))),
    }
}

/// Family, kind and protocol by number: `17 3 768`.
fn open_socket(what: &str) -> io::Result<()> {
    let numbers: Vec<u32> = what
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let [family, kind, protocol] = numbers.as_slice() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let family = AddressFamily::from_raw(u16::try_from(*family).map_err(io::Error::other)?);
    let protocol = NonZeroU32::new(*protocol).map(Protocol::from_raw);
    rustix::net::socket(family, SocketType::from_raw(*kind), protocol)?;
    Ok(())
}

/// Every part of netlink but routing: audit, uevents, the firewall, crypto.
fn netlink(_: &str) -> io::Result<()> {
    let made = (1..23).filter_map(NonZeroU32::new).find(|protocol| {
        rustix::net::socket(
            AddressFamily::NETLINK,
            SocketType::RAW,
            Some(Protocol::from_raw(*protocol)),
        )
        .is_ok()
    });
    if made.is_some() {
        Ok(())
    } else {
        Err(refused("none of 22 protocols"))
    }
}

fn connect_tcp(address: &str) -> io::Result<()> {
    let address = address.parse().map_err(io::Error::other)?;
    TcpStream::connect_timeout(&address, Duration::from_secs(2)).map(drop)
}

fn connect_abstract(name: &str) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
}

/// A datagram towards anywhere: the route alone would be a way out.
fn send_datagram(address: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.send(b"attack").map(drop)
}
