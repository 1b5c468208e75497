//! When the tree gets SIGTERM, and when SIGKILL. Pure: the clock is an argument.

use std::time::{Duration, Instant};

/// How long the reaper may take to kill the tree before the supervisor does it.
const KILLING: Duration = Duration::from_secs(2);

/// An act on the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// SIGTERM for everybody.
    Terminate,
    /// SIGKILL for everybody.
    Kill,
    /// SIGKILL for the reaper too, which has not killed the tree in time.
    Dismiss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Terminating,
    Killing,
    Dismissed,
}

/// The stages from a running tree to an ended one.
pub struct Deadline {
    stage: Stage,
    /// When the next stage begins.
    next: Option<Instant>,
    kill_after: Option<Duration>,
}

impl Deadline {
    /// With this timeout from now on, if there is one, and this time between SIGTERM and SIGKILL, if that ever comes.
    pub fn new(now: Instant, timeout: Option<Duration>, kill_after: Option<Duration>) -> Deadline {
        let next = timeout.and_then(|time| now.checked_add(time));
        Deadline { stage: Stage::Running, next, kill_after }
    }

    /// Whether the tree is being ended.
    pub fn is_ending(&self) -> bool {
        self.stage != Stage::Running
    }

    /// Whether the tree is being killed.
    pub fn is_killing(&self) -> bool {
        matches!(self.stage, Stage::Killing | Stage::Dismissed)
    }

    /// How long until the next stage.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(now))
    }

    /// The act that is due now.
    pub fn due(&mut self, now: Instant) -> Option<Act> {
        if self.next.is_none_or(|next| now < next) {
            return None;
        }
        match self.stage {
            Stage::Running => {
                self.terminating(now);
                Some(Act::Terminate)
            }
            Stage::Terminating => {
                self.kill(now);
                Some(Act::Kill)
            }
            Stage::Killing => {
                (self.stage, self.next) = (Stage::Dismissed, None);
                Some(Act::Dismiss)
            }
            Stage::Dismissed => None,
        }
    }

    /// Goes on to the terminating stage, whatever the time is: somebody else has sent SIGTERM.
    pub fn terminating(&mut self, now: Instant) {
        if self.stage == Stage::Running {
            self.stage = Stage::Terminating;
            self.next = self.kill_after.and_then(|time| now.checked_add(time));
        }
    }

    /// Goes on to the killing stage, whatever the time is.
    pub fn kill(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Running | Stage::Terminating) {
            (self.stage, self.next) = (Stage::Killing, now.checked_add(KILLING));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn first_sigterm_then_sigkill() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start, Some(SECOND), Some(SECOND * 3));
        assert_eq!(deadline.pause(start), Some(SECOND));
        assert_eq!(deadline.due(start + SECOND / 2), None);
        assert!(!deadline.is_ending());
        assert_eq!(deadline.due(start + SECOND), Some(Act::Terminate));
        assert_eq!(deadline.due(start + SECOND), None);
        assert_eq!(deadline.due(start + SECOND * 4), Some(Act::Kill));
        assert_eq!(deadline.due(start + SECOND * 5), None);
        assert_eq!(deadline.due(start + SECOND * 6), Some(Act::Dismiss));
        assert_eq!(deadline.due(start + SECOND * 60), None);
        assert_eq!(deadline.pause(start), None);
    }

    #[test]
    fn without_a_limit_nothing_is_due() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start, None, Some(SECOND));
        assert_eq!(deadline.pause(start), None);
        assert_eq!(deadline.due(start + SECOND * 1000), None);
        deadline.kill(start);
        assert_eq!(deadline.due(start + SECOND * 2), Some(Act::Dismiss));
    }

    #[test]
    fn a_signal_of_somebody_else_is_followed_by_sigkill_unless_that_is_to_wait() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start, Some(SECOND * 50), Some(SECOND));
        deadline.terminating(start);
        deadline.terminating(start + SECOND / 2);
        assert!(deadline.is_ending());
        assert_eq!(deadline.due(start + SECOND), Some(Act::Kill));
        let mut deadline = Deadline::new(start, None, None);
        deadline.terminating(start);
        assert_eq!(deadline.due(start + SECOND * 1000), None);
    }

    #[test]
    fn a_stop_of_the_supervisor_skips_no_stage() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start, Some(SECOND), Some(SECOND));
        let late = start + SECOND * 100;
        assert_eq!(deadline.due(late), Some(Act::Terminate));
        assert_eq!(deadline.due(late), None);
        assert_eq!(deadline.due(late + SECOND), Some(Act::Kill));
    }
}
