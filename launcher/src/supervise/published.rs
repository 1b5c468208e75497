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
    /// It is known that the process has ended: it has been said, or the run has ended.
    is_over: Cell<bool>,
    /// A port on whose connection the run's last bytes could not be passed on.
    cut: Cell<Option<u16>>,
}

impl Published {
    /// Served by this process.
    pub fn new(broker: Broker, ports: &[PortPair]) -> Published {
        let ports = ports.iter().map(|pair| (*pair, Used::default())).collect();
        Published {
            broker,
            ports: RefCell::new(ports),
            unlisted: Cell::new(0),
            is_over: Cell::new(false),
            cut: Cell::new(None),
        }
    }

    /// The descriptor that can be read when there is something to count.
    pub fn told(&self) -> Option<RawFd> {
        self.broker.told()
    }

    /// Counts what was told, and says once that the process has ended.
    pub fn read(&self, judge: &mut Judge) {
        self.count();
        if self.broker.is_gone() && !self.is_over.replace(true) {
            judge.violations.line("the process for --publish has ended: the ports are closed");
        }
    }

    /// The run is the one that answers: what the broker passed on inwards, it received.
    fn count(&self) {
        for event in self.broker.events() {
            let (ends, change): (_, &dyn Fn(&mut Used)) = match event {
                Event::Opened { ends, .. } => (ends, &|used| used.connections += 1),
                Event::Failed { ends, .. } => (ends, &|used| used.failed += 1),
                Event::Closed { ends, sent, received, .. } => (ends, &move |used| {
                    used.received = used.received.saturating_add(sent);
                    used.sent = used.sent.saturating_add(received);
                }),
                Event::Lost { count } => {
                    self.unlisted.set(self.unlisted.get().saturating_add(count));
                    continue;
                }
                Event::Cut { ends, .. } => {
                    self.cut.set(ends.map(|(_, here)| here.port()).or(self.cut.get()));
                    continue;
                }
                Event::Assigned { .. }
                | Event::Refused { .. }
                | Event::Untold { .. }
                | Event::Full { .. }
                | Event::Mismatch { .. } => continue,
            };
            let mut ports = self.ports.borrow_mut();
            let used = ends.and_then(|(_, here)| ports.iter_mut().find(|(pair, _)| pair.here == here.port()));
            match used {
                Some((_, used)) => used.at_present(change),
                None => self.unlisted.set(self.unlisted.get().saturating_add(1)),
            }
        }
    }

    /// Ends the process. What it has still to tell is counted. `finishes`: what the run has sent is passed on first.
    pub fn end(&self, finishes: bool, judge: &mut Judge) {
        // What happened before is news.
        self.read(judge);
        self.is_over.set(true);
        self.broker.end(finishes, &mut || self.count());
        if let Some(port) = self.cut.get() {
            judge.violations.line(&format!(
                "the run ended, and what it had sent last to who is connected to port {port} (--publish) could not be \
                 delivered: the connection was reset"
            ));
        }
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
