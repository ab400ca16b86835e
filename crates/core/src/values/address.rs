//! What kind of IP address this is: the one classifier, for endpoints of models and for connections
//! an engine tries to make.

// Addresses as values; nothing of `core::net` can reach a network.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// Loopback, or no address at all, which Linux takes for this host too.
    ThisHost,
    LinkLocal,
    /// A private network, or the range of carriers and overlay networks (100.64.0.0/10).
    Private,
    /// Multicast or broadcast: more than one host.
    Group,
    Public,
}

impl AddressKind {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(ip) => Self::of_v4(ip),
            IpAddr::V6(ip) => ip
                .to_ipv4_mapped()
                .map_or_else(|| Self::of_v6(ip), Self::of_v4),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        let [a, b, ..] = ip.octets();
        let is_shared = a == 100 && (64..128).contains(&b);
        match ip {
            _ if ip.is_loopback() || ip.is_unspecified() => Self::ThisHost,
            _ if ip.is_link_local() => Self::LinkLocal,
            _ if ip.is_private() || is_shared => Self::Private,
            _ if ip.is_multicast() || ip.is_broadcast() => Self::Group,
            _ => Self::Public,
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        match ip {
            _ if ip.is_loopback() || ip.is_unspecified() => Self::ThisHost,
            _ if ip.is_unicast_link_local() => Self::LinkLocal,
            _ if ip.is_unique_local() => Self::Private,
            _ if ip.is_multicast() => Self::Group,
            _ => Self::Public,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_has_its_kind_up_to_its_edges() {
        use AddressKind::{Group, LinkLocal, Private, Public, ThisHost};
        for (address, want) in [
            ("127.0.0.1", ThisHost),
            ("127.255.255.255", ThisHost),
            ("0.0.0.0", ThisHost),
            ("0.0.0.1", Public),
            ("128.0.0.1", Public),
            ("10.0.0.1", Private),
            ("11.0.0.1", Public),
            ("172.15.255.255", Public),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("172.32.0.1", Public),
            ("192.168.0.1", Private),
            ("192.169.0.1", Public),
            ("100.63.255.255", Public),
            ("100.64.0.1", Private),
            ("100.127.255.255", Private),
            ("100.128.0.1", Public),
            ("169.254.169.254", LinkLocal),
            ("224.0.0.1", Group),
            ("255.255.255.255", Group),
            ("8.8.8.8", Public),
            ("::1", ThisHost),
            ("::", ThisHost),
            ("::2", Public),
            ("::ffff:127.0.0.1", ThisHost),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:8.8.8.8", Public),
            // Not the mapped form: some hosts send it elsewhere.
            ("::127.0.0.1", Public),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Public),
            ("fc00::1", Private),
            ("fd00::1", Private),
            ("fe00::1", Public),
            ("ff02::1", Group),
            ("2001:db8::1", Public),
        ] {
            assert_eq!(AddressKind::of(address.parse().unwrap()), want, "{address}");
        }
    }
}
