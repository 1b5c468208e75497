//! The end of a run: what it has sent goes on its way. Without a sandbox the kernel would see to that, after the end of
//! the program as well.

use super::Loop;
use crate::broker::RunsEnd;
use crate::broker::events::Event;
use crate::broker::poll::{Kind, Token};
use std::time::{Duration, Instant};

/// How long it may take, and how long nothing may move meanwhile.
const LONGEST: Duration = Duration::from_secs(15);
const QUIET: Duration = Duration::from_secs(3);
/// How often it is looked whether something moves.
const LOOK: Duration = Duration::from_millis(250);

/// The byte by which the supervisor says that no process of the run is left.
pub const FINISH: u8 = 1;

/// How far it is.
pub(super) struct Finishing {
    until: Instant,
    quiet_until: Instant,
    /// Bytes that had been passed on when it was last looked, and connections that there were.
    moved: (u64, usize),
    next_look: Instant,
}

impl Loop {
    /// No process of the run is left. Connections that it has made and that nobody has taken yet are its own too.
    pub(super) fn finish(&mut self, now: Instant) {
        self.poller.remove(self.teller.channel());
        match self.run {
            RunsEnd::Inside => {
                (0..self.doors.listeners.len()).for_each(|place| self.accept_links(place, now))
            }
            RunsEnd::Outside => {
                let closed = std::mem::take(&mut self.doors.listeners);
                closed.iter().for_each(|listener| self.poller.remove(&listener.socket));
            }
        }
        let (until, quiet_until) = (now + LONGEST, now + QUIET);
        self.finishing = Some(Finishing { until, quiet_until, moved: (0, 0), next_look: now });
    }

    /// Whether everything has arrived that the run has sent, or nobody waits any more for that.
    pub(super) fn is_finished(&mut self) -> bool {
        let Some(finishing) = &mut self.finishing else { return false };
        self.teller.flush();
        let runs = self.run;
        if !self.clients.have_news() && self.links.values().all(|link| link.has_passed_on(runs)) {
            return true;
        }
        let now = Instant::now();
        let moved = self.links.values().map(|link| link.passed_on(runs)).fold(0, u64::saturating_add);
        let moved = (moved, self.links.len());
        if std::mem::replace(&mut finishing.moved, moved) != moved {
            finishing.quiet_until = now + QUIET;
        }
        if now >= finishing.next_look {
            finishing.next_look = now + LOOK;
            self.poller.wake_at(finishing.next_look, Token::new(Kind::Pause, 0));
        }
        now >= finishing.until.min(finishing.quiet_until)
    }

    /// Breaks the connections on which something is still on its way: it must not look like an end in order.
    pub(super) fn cut(&mut self) {
        let runs = self.run;
        if self.finishing.is_some() {
            let left = self.links.values().filter(|link| !link.has_passed_on(runs) && link.holds(runs));
            for link in left {
                link.reset();
                let (host, port, ends) = (link.host.to_string(), link.port, link.ends);
                self.teller.tell(&Event::Cut { host, port, ends });
            }
        }
    }
}
