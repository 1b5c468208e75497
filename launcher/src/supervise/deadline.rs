//! When the tree is told to end, and when it is ended. Pure: the clock is an argument.

use std::time::{Duration, Instant};

/// How long the reaper has for killing before the supervisor does it itself.
const KILLING: Duration = Duration::from_secs(2);

/// What is to be done to the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// SIGTERM for everybody.
    Terminate,
    /// SIGKILL for everybody.
    Kill,
    /// And for the reaper, which has not managed.
    Dismiss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Terminating,
    Killing,
    Dismissed,
}

/// The way from a running tree to an ended one.
pub struct Deadline {
    stage: Stage,
    /// When the next stage begins.
    next: Option<Instant>,
    kill_after: Duration,
}

impl Deadline {
    /// With so much time from now, if it is limited, and so much between SIGTERM and SIGKILL.
    pub fn new(now: Instant, timeout: Option<Duration>, kill_after: Duration) -> Deadline {
        let next = timeout.and_then(|time| now.checked_add(time));
        Deadline { stage: Stage::Running, next, kill_after }
    }

    /// Whether the tree has to end.
    pub fn is_ending(&self) -> bool {
        self.stage != Stage::Running
    }

    /// Whether it is being ended by force.
    pub fn is_killing(&self) -> bool {
        matches!(self.stage, Stage::Killing | Stage::Dismissed)
    }

    /// How long nothing is to be done.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(now))
    }

    /// What is to be done now.
    pub fn due(&mut self, now: Instant) -> Option<Act> {
        if self.next.is_none_or(|next| now < next) {
            return None;
        }
        match self.stage {
            Stage::Running => {
                (self.stage, self.next) = (Stage::Terminating, now.checked_add(self.kill_after));
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

    /// The tree is being killed, whatever the time is.
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
    fn first_a_word_then_force() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start, Some(SECOND), SECOND * 3);
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
        let mut deadline = Deadline::new(start, None, SECOND);
        assert_eq!(deadline.pause(start), None);
        assert_eq!(deadline.due(start + SECOND * 1000), None);
        deadline.kill(start);
        assert_eq!(deadline.due(start + SECOND * 2), Some(Act::Dismiss));
    }

    #[test]
    fn a_stop_of_the_supervisor_skips_no_stage() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start, Some(SECOND), SECOND);
        let late = start + SECOND * 100;
        assert_eq!(deadline.due(late), Some(Act::Terminate));
        assert_eq!(deadline.due(late), None);
        assert_eq!(deadline.due(late + SECOND), Some(Act::Kill));
    }
}
