//! The plan of another command, where it differs in nothing but that: what the run is allowed does not depend on the
//! program, and the plan would be made from the same files.

use crate::host::Host;
use crate::plan::static_programs::{self, Treatment};
use crate::plan::{Plan, executed, namespaces, network, variables};
use crate::profile::StaticMode;
use crate::program::Program;
use crate::request::Request;

impl Plan {
    /// Whether this would be the plan of a request for another program as well, whose caller has the same variables, if
    /// all files are as they were. False wherever the program, or what the command gets as descriptors 0 to 2, might
    /// make a difference.
    pub fn suits(&self, request: &Request, program: &Program, host: &Host) -> bool {
        let static_mode = request.static_programs.or(self.profile.static_programs.as_deref().copied());
        let is_run = match static_programs::of(program) {
            Treatment::Both => true,
            Treatment::GuardAlone(_) => static_mode.unwrap_or_default() == StaticMode::Confine,
            Treatment::Never(_) => false,
        };
        let Ok(layout) = &self.namespaces else { return false };
        is_run
            && self.seal.is_none()
            && self.commands.is_none()
            && executed::are_covered(&program.chain, self, host)
            && host.terminals.get().is_empty()
            && network::foreign_socket(request, host).is_none()
            && namespaces::check_passed(&request.pass_fd, host, layout, &self.denied).is_ok()
            && variables::loudness(request, host).is_ok()
    }

    /// Makes it the plan of such a request.
    pub fn give(&mut self, request: &Request, program: Program, host: &Host) {
        self.arguments.clone_from(&request.command);
        self.program = program;
        if let Ok(loudness) = variables::loudness(request, host) {
            self.loudness = loudness;
        }
    }
}
