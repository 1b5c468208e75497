//! Names the TCP ports that Landlock is going to refuse, where no other handler looks at connections: under profiles
//! that restrict ports and make their connections themselves.
//!
//! The kernel decides about the call afterwards. A wrong guess changes nothing but a line.

use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::findings::Findings;
use crate::supervise::handlers::refused_paths::RefusedPaths;
use crate::supervise::judge::{Judge, Verdict};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::SyscallError;

/// Knows the rules in force.
pub struct Ports(pub RefusedPaths);

impl Handler for Ports {
    type Copy = Findings;

    /// Of a violation something else is told.
    fn look(&self, waiting: &Waiting<'_>) -> Option<Findings> {
        let is_allowed = matches!(waiting.call.verdict, Verdict::Allowed | Verdict::Noted);
        is_allowed.then(|| self.0.find_port(waiting)).flatten()
    }

    fn act(
        &mut self,
        findings: Findings,
        call: &NotifiedCall,
        judge: &mut Judge,
    ) -> Result<Step, SyscallError> {
        self.0.say(findings, call, judge);
        Ok(Step::Next)
    }
}
