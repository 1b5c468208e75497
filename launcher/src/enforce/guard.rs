//! The guard: the filter that binds the command from before its first instruction.

use crate::enforce::exec_permit::ExecPermit;
use crate::error::Refusal;
use crate::plan::OnViolation;
use crate::plan::calls::{Calls, Extras, too_long};
use crate::plan::notified::Notified;
use crate::profile::FreeConditions;
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::program::{self, TooLong};
use sbx_policy::rules::{AROUND, Actions, CONNECTS, Extra, Layout, Stage};
use sbx_policy::{Program, errno};
use std::rc::Rc;

/// The filter of one run, before it is laid out.
pub struct Guard {
    /// The profile's name, for errors.
    pub profile: String,
    /// The calls.
    pub calls: Rc<Calls>,
    /// What is allowed beyond them.
    pub extras: Extras,
    /// Action on a violation.
    pub on_violation: OnViolation,
    /// Whether violations are notified instead.
    pub listens: bool,
    /// Whether the command must stay tied to its supervisor, also if there is no listener in the end.
    tied: bool,
    /// The number of execve(2), and the permit's part of the filter.
    permit: Option<(u32, Vec<Insn>)>,
    /// The program, if it has been laid out already.
    program: Option<Vec<Insn>>,
}

impl Guard {
    /// For these calls.
    pub fn new(
        profile: &str,
        calls: Rc<Calls>,
        extras: Extras,
        on_violation: OnViolation,
        listens: bool,
    ) -> Guard {
        let tied = listens && !calls.starts_processes();
        Guard {
            profile: profile.to_string(),
            calls,
            extras,
            on_violation,
            listens,
            tied,
            permit: None,
            program: None,
        }
    }

    /// Allows the one exec of a permit.
    pub fn allow_exec(&mut self, permit: &ExecPermit) -> Result<(), &'static str> {
        let number = Call::named(b"execve").and_then(|call| call.number(Arch::HOST));
        let number = number.ok_or("this architecture has no execve")?;
        self.permit = Some((number, permit.piece()));
        Ok(())
    }

    /// What is refused, or has no effect, of prctl(2).
    fn prctl(&self) -> Prctl {
        let number = Call::named(b"prctl").and_then(|call| call.number(Arch::HOST));
        let connects = self.extras.notified.has(Notified::Connect) && self.listens;
        Prctl { number, connects, tied: self.tied, dumpable: self.extras.dumpable && self.listens }
    }

    /// What needs notifications, and what to do without: log mode lists violations, and a limit counts
    /// processes.
    pub fn needs_listener(&self) -> Option<&'static str> {
        if self.on_violation == OnViolation::Log {
            return Some("without them nothing can be listed; use --on-violation errno");
        }
        if self.calls.keeps_to_hosts() {
            return Some("without them nobody tells named hosts from others; use --net none or --net host");
        }
        self.extras.notified.has(Notified::Tasks).then_some(
            "without them processes cannot be counted; lift the limit with --max-processes none, or, as an \
             ordinary user, have the kernel count all that the user runs, with --exec",
        )
    }

    /// Lays the program out, so that installing it later takes less time.
    pub fn lay_out(&mut self) -> Result<(), Refusal> {
        self.program = Some(self.assemble()?);
        Ok(())
    }

    /// The program.
    pub fn program(&mut self) -> Result<Vec<Insn>, Refusal> {
        self.program.take().map_or_else(|| self.assemble(), Ok)
    }

    fn assemble(&self) -> Result<Vec<Insn>, Refusal> {
        let violation = if self.listens { bpf::RET_USER_NOTIF } else { self.on_violation.value() };
        let log = if self.listens { bpf::RET_USER_NOTIF } else { bpf::RET_LOG };
        // glibc and others try calls newer than the kernel, and fall back to older ones on ENOSYS alone.
        // Log mode lists everything.
        let enosys = bpf::RET_ERRNO | u32::from(errno::ENOSYS);
        let unknown = (self.on_violation != OnViolation::Log).then_some(enosys);
        let (rules, free) = self.calls.rules(Actions { violation, log, unknown }, self.extras)?;
        let extra = WithPermit { free, permit: self.permit.as_ref(), prctl: self.prctl() };
        program::assemble(&Layout { rules: &rules, extra: Some(&extra) })
            .map_err(|TooLong| too_long(&self.profile))
    }
}

struct WithPermit<'a> {
    free: FreeConditions,
    permit: Option<&'a (u32, Vec<Insn>)>,
    prctl: Prctl,
}

/// What the run says, and its supervisor needs, of prctl(2).
#[derive(Clone, Copy)]
struct Prctl {
    number: Option<u32>,
    /// The supervisor makes connections.
    connects: bool,
    /// PR_SET_PDEATHSIG is refused.
    tied: bool,
    /// PR_SET_DUMPABLE has no effect.
    dumpable: bool,
}

/// prctl(2) with this option.
const fn option(option: u32) -> [Insn; 3] {
    [bpf::stmt(bpf::LD, bpf::data_arg(0)), bpf::jump(bpf::JEQ, option, 0, 1), bpf::stmt(bpf::RET, 0)]
}

impl Extra for WithPermit<'_> {
    fn numbers(&self, each: &mut dyn FnMut(u32)) {
        self.permit.iter().for_each(|(number, _)| each(*number));
        self.prctl.number.into_iter().for_each(&mut *each);
        self.free.numbers(each);
    }

    fn pieces(&self, number: u32, stage: Stage, program: &mut Program<'_>) {
        if let Some((_, piece)) = self.permit.filter(|(exec, _)| stage == Stage::First && *exec == number) {
            program.piece(piece, bpf::RET_ALLOW);
        }
        if stage == Stage::First && self.prctl.number == Some(number) {
            let yes = bpf::RET_ERRNO | u32::from(errno::EISCONN);
            program.piece(&option(AROUND), yes);
            if self.prctl.connects {
                program.piece(&option(CONNECTS), yes);
            }
            // Only this signal ties a command without a reaper to its supervisor: it must not remove it.
            if self.prctl.tied {
                program
                    .piece(&option(libc::PR_SET_PDEATHSIG as u32), bpf::RET_ERRNO | u32::from(errno::EPERM));
            }
            // It succeeds and changes nothing: some programs end where they cannot close themselves to others. Core
            // files are ruled out by their limit.
            if self.prctl.dumpable {
                program.piece(&option(libc::PR_SET_DUMPABLE as u32), bpf::RET_ERRNO);
            }
        }
        self.free.pieces(number, stage, program);
    }
}
