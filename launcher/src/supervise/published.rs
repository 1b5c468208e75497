//! Ports of the run that this machine shows: how they were used.

use crate::broker::Event;
use crate::request::PortPair;
use crate::supervise::brokers::Broker;
use crate::supervise::hosts::Used;
use crate::supervise::judge::Judge;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;

/// The ports, and the process that serves them.
pub struct Published {
    broker: Broker,
    ports: RefCell<Vec<(PortPair, Used)>>,
    unlisted: Cell<u64>,
}

impl Published {
    /// Served by this process.
    pub fn new(broker: Broker, ports: &[PortPair]) -> Published {
        let ports = ports.iter().map(|pair| (*pair, Used::default())).collect();
        Published { broker, ports: RefCell::new(ports), unlisted: Cell::new(0) }
    }

    /// The descriptor that can be read when there is something to count.
    pub fn told(&self) -> Option<RawFd> {
        self.broker.told()
    }

    /// Counts what was told. The run is the one that answers: what the broker passed on inwards, it received.
    pub fn read(&self) {
        for event in self.broker.events() {
            let (ends, change): (_, &dyn Fn(&mut Used)) = match event {
                Event::Opened { ends, .. } => (ends, &|used| used.connections += 1),
                Event::Failed { ends, .. } => (ends, &|used| used.failed += 1),
                Event::Closed { ends, sent, received, .. } => (ends, &move |used| {
                    used.received += sent;
                    used.sent += received;
                }),
                Event::Lost { count } => {
                    self.unlisted.set(self.unlisted.get().saturating_add(count));
                    continue;
                }
                Event::Assigned { .. } | Event::Refused { .. } | Event::Mismatch { .. } => continue,
            };
            let mut ports = self.ports.borrow_mut();
            let used = ends.and_then(|(_, here)| ports.iter_mut().find(|(pair, _)| pair.here == here.port()));
            match used {
                Some((_, used)) => used.at_present(change),
                None => self.unlisted.set(self.unlisted.get().saturating_add(1)),
            }
        }
    }

    /// Ends the process, and says so if it had ended before.
    pub fn end(&self, judge: &mut Judge) {
        self.read();
        if self.broker.is_gone() {
            let line =
                "the process for --publish had ended before the command: the ports were closed by then";
            judge.violations.line(line);
        }
        self.broker.end(&mut || self.read());
    }

    /// How each port was used.
    pub fn used(&self) -> Vec<(PortPair, Used)> {
        self.ports.borrow().clone()
    }

    /// How many events are in none of them.
    pub fn unlisted(&self) -> u64 {
        self.unlisted.get()
    }
}
