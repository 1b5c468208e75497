//! Ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that begin with the same bits. One address is a range, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    first: IpAddr,
    /// How many bits are the same.
    bits: u8,
}

impl Range {
    /// `203.0.113.0/24`, `203.0.113.7`, `2001:db8::/32`. The reason if it is none.
    pub fn parse(text: &str) -> Result<Range, &'static str> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| "it is no address")?;
        let all = if first.is_ipv4() { 32 } else { 128 };
        let digits = |bits: &str| bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.len() <= 3;
        let bits = match bits {
            None => all,
            Some(bits) => {
                let number = Some(bits).filter(|bits| digits(bits)).and_then(|bits| bits.parse().ok());
                number.filter(|bits| *bits <= all).ok_or("the length of its prefix is out of range")?
            }
        };
        // One network has one name: who writes 10.0.0.1/8 may mean one address.
        if mask(first, bits) != first {
            return Err("bits behind its prefix are set");
        }
        if matches!(first, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err("addresses of IPv4 are written as such");
        }
        Ok(Range { first, bits })
    }

    /// The addresses that stand for names in a run. They are set aside for benchmarks (RFC 2544): no host has them.
    pub const fn of_names() -> Range {
        Range { first: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), bits: 15 }
    }

    /// Whether an address is in it. IPv4 addresses that are written as IPv6 ones are IPv4 addresses.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && mask(address, self.bits) == self.first
    }

    /// The address, if it is only one.
    pub fn single(&self) -> Option<IpAddr> {
        let all = if self.first.is_ipv4() { 32 } else { 128 };
        (self.bits == all).then_some(self.first)
    }

    /// Whether all its addresses are in another range.
    pub fn is_within(&self, other: &Range) -> bool {
        self.bits >= other.bits && other.has(self.first)
    }

    /// Whether it is of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.first.is_ipv6()
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.first
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { first, bits } = self;
        match (first, self.single()) {
            (IpAddr::V4(_), Some(_)) => write!(f, "{first}"),
            (IpAddr::V6(_), Some(_)) => write!(f, "[{first}]"),
            (IpAddr::V4(_), None) => write!(f, "{first}/{bits}"),
            (IpAddr::V6(_), None) => write!(f, "[{first}]/{bits}"),
        }
    }
}

fn mask(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_of_its_prefix() {
        let has = |range: &str, address: &str| Range::parse(range).unwrap().has(address.parse().unwrap());
        assert!(has("203.0.113.0/24", "203.0.113.255") && !has("203.0.113.0/24", "203.0.114.0"));
        assert!(has("203.0.113.7", "203.0.113.7") && !has("203.0.113.7", "203.0.113.8"));
        assert!(has("0.0.0.0/0", "8.8.8.8") && !has("0.0.0.0/0", "::8"));
        assert!(has("2001:db8::/32", "2001:db8:ffff::1") && !has("2001:db8::/32", "2001:db9::"));
        assert!(has("203.0.113.0/24", "::ffff:203.0.113.9"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in
            ["", "203.0.113", "203.0.113.1/24", "203.0.113.0/33", "::/129", "::/+1", "01.2.3.4", "1.2.3.4/"]
        {
            assert!(Range::parse(text).is_err(), "{text:?}");
        }
        // Such a range would have none of the addresses that it names.
        for text in ["::ffff:203.0.113.0/120", "::ffff:203.0.113.10", "::ffff:0:0/96"] {
            assert!(Range::parse(text).is_err_and(|why| why.contains("IPv4")), "{text:?}");
        }
        assert!(Range::parse("::/0").is_ok() && Range::parse("::1.2.3.4").is_ok());
    }
}
