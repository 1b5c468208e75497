//! A hint for who runs a program that compiles while it runs, under a profile that refuses executable memory. That is
//! refused without a line, for most programs go on without. V8 and others end by a trap then, and speak of themselves
//! alone.

use crate::plan::Plan;
use crate::plan::calls::Calls;
use crate::supervise::Ending;
use sbx_policy::bpf::RET_ALLOW;
use sbx_policy::calls::Arch;
use sbx_policy::interpret::{self, Data};
use std::rc::Rc;

/// A run that may end so.
pub struct Compiling {
    calls: Rc<Calls>,
    profile: String,
}

impl Compiling {
    /// Of any run.
    pub fn of(plan: &Plan) -> Compiling {
        Compiling { calls: plan.calls.clone(), profile: plan.profile.name.to_string() }
    }

    /// The hint, after a run that ended like this.
    pub fn hint(&self, ending: Ending) -> Option<String> {
        let signal = match ending {
            Ending::Killed(libc::SIGTRAP) => "SIGTRAP",
            Ending::Killed(libc::SIGILL) => "SIGILL",
            _ => return None,
        };
        self.refuses_executable_memory().then(|| {
            format!(
                "{signal} ended the command, and profile '{}' refuses executable memory, which programs need that \
                 compile while they run: node does without (--jitless), --profile workspace or read-only allow it",
                self.profile
            )
        })
    }

    fn refuses_executable_memory(&self) -> bool {
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let args = [0, 4096, protection as u64, flags as u64, u64::MAX, 0];
        let data = Data { nr: libc::SYS_mmap as u32, arch: Arch::HOST.audit(), args };
        self.calls.strict_program().is_ok_and(|p| interpret::run(&p, &data) != Some(RET_ALLOW))
    }
}
