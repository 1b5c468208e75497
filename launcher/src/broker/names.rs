//! The addresses that stand for names.
//!
//! They are of 198.18.0.0/15, which is set aside for benchmarks (RFC 2544) and so leads nowhere. An address is given to
//! one name and never to another one in the same run: whoever keeps an address keeps the name.

use crate::hosts::{HostName, Range};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of names in a run.
pub const MOST: usize = 16_384;
/// What is said of one more.
pub const TOO_MANY: &str = "too many names";

/// Names, and the addresses that stand for them.
pub struct Names {
    range: Range,
    numbers: HashMap<HostName, u32>,
    /// By number.
    names: Vec<HostName>,
}

/// The number of the first address that is given: the two before it are left out.
const FIRST: u32 = 2;

impl Default for Names {
    fn default() -> Names {
        Names::from(Range::of_names())
    }
}

impl Names {
    /// With another range of IPv4 that is as large.
    pub fn from(range: Range) -> Names {
        Names { range, numbers: HashMap::new(), names: Vec::new() }
    }

    /// Whether an address is of the range.
    pub fn is_synthetic(&self, address: IpAddr) -> bool {
        self.range.has(address)
    }

    /// The name that an address stands for.
    pub fn name_of(&self, address: IpAddr) -> Option<&HostName> {
        let IpAddr::V4(address) = address.to_canonical() else { return None };
        let number = address.to_bits().checked_sub(self.base())?.checked_sub(FIRST)?;
        self.names.get(number as usize)
    }

    /// The address of a name that has one.
    pub fn address_of(&self, name: &HostName) -> Option<Ipv4Addr> {
        self.numbers.get(name).map(|number| self.address(*number))
    }

    /// The address that a name would get next. `None`: there are too many names.
    pub fn next(&self) -> Option<Ipv4Addr> {
        (self.names.len() < MOST).then(|| self.address(self.names.len() as u32))
    }

    /// Gives the next address to a name that has none.
    pub fn add(&mut self, name: HostName) -> Option<Ipv4Addr> {
        let address = self.next().filter(|_| !self.numbers.contains_key(&name))?;
        self.numbers.insert(name.clone(), self.names.len() as u32);
        self.names.push(name);
        Some(address)
    }

    fn address(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base() + FIRST + number)
    }

    fn base(&self) -> u32 {
        match self.range.first() {
            IpAddr::V4(first) => first.to_bits(),
            IpAddr::V6(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_one_name() {
        let mut names = Names::default();
        let name = |number: usize| HostName::parse(&format!("n{number}.example")).unwrap();
        for number in 0..MOST {
            let address = names.add(name(number)).unwrap();
            assert!(names.is_synthetic(address.into()));
            assert_eq!(names.name_of(address.into()), Some(&name(number)));
            assert_eq!(names.name_of(address.to_ipv6_mapped().into()), Some(&name(number)));
            assert_eq!((names.add(name(number)), names.address_of(&name(number))), (None, Some(address)));
        }
        assert_eq!(names.address_of(&name(0)), Some(Ipv4Addr::new(198, 18, 0, 2)));
        assert_eq!((names.next(), names.add(name(MOST))), (None, None));
        for (text, is_synthetic) in [
            ("198.18.0.0", true),
            ("198.18.0.1", true),
            ("198.19.255.255", true),
            ("198.20.0.0", false),
            ("198.17.255.255", false),
            ("::1", false),
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!((names.is_synthetic(address), names.name_of(address)), (is_synthetic, None), "{text}");
        }
    }
}
