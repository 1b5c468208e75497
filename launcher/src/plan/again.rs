//! The plan of another command, where it differs in nothing but that: what the run is allowed does not depend on the
//! program, and the plan would be made from the same files.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::{Plan, executed, namespaces, network, static_programs, variables};
use crate::program::Program;
use crate::request::Request;
use crate::sys::timer;

impl Plan {
    /// Whether this would be the plan of a request for another program as well, whose caller has the same variables, if
    /// all files are as they were. False wherever the program, or what the command gets as descriptors 0 to 2, might
    /// make a difference.
    pub fn suits(&self, request: &Request, program: &Program, host: &Host) -> bool {
        let decided = static_programs::of(program).decide(static_programs::mode(request, &self.profile), "");
        let Ok(layout) = &self.namespaces else { return false };
        matches!(decided, Ok(None))
            && self.seal.is_none()
            && self.commands.is_none()
            && executed::are_covered(&program.chain, self, host)
            && host.terminals.get().is_empty()
            && network::foreign_socket(request, host).is_none()
            && namespaces::check_passed(&request.pass_fd, host, layout, &self.denied).is_ok()
    }

    /// Makes it the plan of such a request.
    pub fn give(&mut self, request: &Request, program: Program, host: &Host) -> Result<(), Refusal> {
        self.loudness = variables::loudness(request, host)?;
        // What was made while the run waited, no command of it has made. Its command begins so soon that only the clock
        // of files tells what it makes.
        self.record.iter_mut().for_each(|record| record.began = timer::file_time());
        self.arguments.clone_from(&request.command);
        self.program = program;
        Ok(())
    }
}
