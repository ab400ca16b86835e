//! Where a connect would have gone: loopback is nothing; of anything else its class and port are
//! told, never the address itself.

// Addresses as values; nothing of `core::net` can reach a network.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::values::address::AddressKind;

/// A place outside the jail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    pub class: &'static str,
    pub port: u16,
}

const INET: u16 = 2;
const INET6: u16 = 10;

/// Reads a socket address as the kernel is handed it. `None`: it leads nowhere outside.
pub fn of_address(bytes: &[u8]) -> Option<Address> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip: IpAddr = match family {
        INET => Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?).into(),
        INET6 => Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    let class = match AddressKind::of(ip) {
        AddressKind::ThisHost => return None,
        AddressKind::LinkLocal => "a link-local address",
        AddressKind::Private => "a private address",
        AddressKind::Group => "a group address",
        AddressKind::Public => "a public address",
    };
    Some(Address { class, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(ip: &str, port: u16) -> Vec<u8> {
        let ip: Ipv4Addr = ip.parse().unwrap();
        [
            &INET.to_ne_bytes()[..],
            &port.to_be_bytes(),
            &ip.octets(),
            &[0; 8],
        ]
        .concat()
    }

    fn v6(ip: &str, port: u16) -> Vec<u8> {
        let ip: Ipv6Addr = ip.parse().unwrap();
        [
            &INET6.to_ne_bytes()[..],
            &port.to_be_bytes(),
            &[0; 4],
            &ip.octets(),
            &[0; 4],
        ]
        .concat()
    }

    #[test]
    fn loopback_is_nothing_and_the_rest_has_a_class() {
        for here in [
            v4("127.0.0.1", 80),
            v4("127.9.9.9", 1),
            v4("0.0.0.0", 80),
            v6("::1", 80),
            v6("::", 80),
            v6("::ffff:127.0.0.1", 80),
        ] {
            assert_eq!(of_address(&here), None);
        }
        for (there, class) in [
            (v4("192.0.2.1", 443), "a public address"),
            (v4("169.254.169.254", 443), "a link-local address"),
            (v4("10.1.2.3", 443), "a private address"),
            (v4("100.64.0.1", 443), "a private address"),
            (v4("224.0.0.1", 443), "a group address"),
            (v6("2001:db8::1", 443), "a public address"),
            (v6("fe80::1", 443), "a link-local address"),
            (v6("fd00::1", 443), "a private address"),
            (v6("::ffff:192.0.2.1", 443), "a public address"),
        ] {
            assert_eq!(of_address(&there), Some(Address { class, port: 443 }));
        }
    }

    #[test]
    fn other_families_and_short_addresses_lead_nowhere() {
        for bytes in [
            &b""[..],
            &[2],
            &[2, 0, 0, 80],
            &[1, 0, b'/', b'x'],
            &[0, 0, 0, 0, 8, 8, 8, 8],
            &[10, 0, 0, 80, 1, 2, 3],
        ] {
            assert_eq!(of_address(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            of_address(&bytes);
        }
    }
}
