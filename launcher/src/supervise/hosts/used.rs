//! What a run had of each host.

use crate::hosts::HostName;
use crate::sys::process::Pid;
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::time::SystemTime;

/// Maximum number of hosts that are told apart, with their ports.
pub const MOST: usize = 4096;

/// The name of a process, and its number.
pub type Program = (Vec<u8>, Pid);

/// What is known of hosts, and of who asks for them.
#[derive(Default)]
pub struct State {
    pub names: HashMap<Ipv4Addr, HostName>,
    pub used: BTreeMap<(String, u16), Used>,
    /// How many events are in none of them.
    pub unlisted: u64,
    /// Who asked a name server last.
    pub asker: Option<Program>,
    /// Who connected to a host last, by its name or address, and the port.
    pub callers: HashMap<(String, u16), Program>,
    /// It is known that the broker has ended: it has been said, or the run has ended.
    pub is_over: bool,
}

/// What a run had of a host, at one port.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// Connections that were made.
    pub connections: u64,
    /// Connections that could not be made, or were not let through.
    pub failed: u64,
    /// Connections and questions that were refused.
    pub refused: u64,
    /// Bytes that the run sent.
    pub sent: u64,
    /// Bytes that it received.
    pub received: u64,
    /// When it was first and last reached, or tried.
    pub first: Option<SystemTime>,
    /// The same of the last time.
    pub last: Option<SystemTime>,
}

impl State {
    pub fn asker(&self) -> Program {
        self.asker.clone().unwrap_or_default()
    }

    pub fn caller(&self, host: &str, port: u16) -> Program {
        self.callers.get(&(host.to_string(), port)).cloned().unwrap_or_else(|| self.asker())
    }

    /// Counts events that are in no entry.
    pub fn lose(&mut self, count: u64) {
        self.unlisted = self.unlisted.saturating_add(count);
    }

    /// Counts something of a host. A command can be refused any number of hosts: those give way to others.
    pub fn of(&mut self, host: &str, port: u16, change: impl FnOnce(&mut Used)) {
        let key = (host.to_string(), port);
        if let Some(known) = self.used.get_mut(&key) {
            return known.at_present(change);
        }
        let mut new = Used::default();
        new.at_present(change);
        if self.used.len() >= MOST {
            let only_refused = |(_, used): &(_, &Used)| used.connections == 0 && used.failed == 0;
            let gives_way = self.used.iter().find(only_refused).filter(|_| new.refused == 0);
            let Some(key) = gives_way.map(|(key, _)| key.clone()) else {
                return self.lose(1);
            };
            let gone = self.used.remove(&key).map_or(0, |gone| gone.refused);
            self.lose(gone);
        }
        self.used.insert(key, new);
    }
}

impl Used {
    /// Something happened just now.
    pub fn at_present(&mut self, change: impl FnOnce(&mut Used)) {
        let now = SystemTime::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        change(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_gives_way_to_what_is_reached() {
        let mut state = State::default();
        for number in 0..MOST + 7 {
            state.of(&format!("{number}.test"), 1, |used| used.refused += 1);
        }
        assert_eq!((state.used.len(), state.unlisted), (MOST, 7));
        state.of("allowed.test", 7, |used| used.connections += 1);
        state.of("allowed.test", 7, |used| used.sent += 9);
        let own = &state.used[&("allowed.test".to_string(), 7)];
        assert_eq!((own.connections, own.sent), (1, 9));
        assert_eq!((state.used.len(), state.unlisted), (MOST, 8));
        // Nothing gives way to a refusal.
        state.of("more.test", 1, |used| used.refused += 1);
        assert!(state.used.contains_key(&("allowed.test".to_string(), 7)) && state.unlisted == 9);
    }
}
