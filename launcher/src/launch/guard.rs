//! The guard: the filter that binds the command from before its first instruction.

use crate::launch::resolve::{Calls, Extras, too_long};
use crate::launch::token::Image;
use crate::profile::FreeConditions;
use crate::refusal::Refusal;
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::program::{self, TooLong};
use sbx_policy::rules::{Actions, Extra, Layout, Stage};
use sbx_policy::{Program, errno};
use std::rc::Rc;

/// What a violation meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnViolation {
    /// The call fails with this error number.
    Errno(u16),
    /// The run ends.
    Kill,
    /// The call goes on, and is noted.
    Log,
}

impl OnViolation {
    /// What the filter returns where nobody is notified.
    pub fn value(self) -> u32 {
        match self {
            OnViolation::Errno(number) => bpf::RET_ERRNO | u32::from(number),
            OnViolation::Kill => bpf::RET_KILL_PROCESS,
            OnViolation::Log => bpf::RET_LOG,
        }
    }
}

/// The filter of one run, before it is laid out.
pub struct Guard {
    /// The profile's name, for errors.
    pub profile: String,
    /// The calls.
    pub calls: Rc<Calls>,
    /// What is allowed beyond them.
    pub extras: Extras,
    /// What a violation meets.
    pub on_violation: OnViolation,
    /// Whether violations are notified instead.
    pub listens: bool,
    /// Whether the command has to stay tied to its supervisor, whether that listens in the end or not.
    tied: bool,
    token: Option<(u32, Vec<Insn>)>,
    /// The program, where it was laid out before.
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
            token: None,
            program: None,
        }
    }

    /// Allows the one exec of `image`.
    pub fn allow_exec_of(&mut self, image: &Image) -> Result<(), String> {
        let number = Call::named(b"execve").and_then(|call| call.number(Arch::HOST));
        let number = number.ok_or("this architecture has no execve")?;
        self.token = Some((number, image.piece()));
        Ok(())
    }

    fn mortal(&self) -> Option<u32> {
        Call::named(b"prctl").and_then(|call| call.number(Arch::HOST)).filter(|_| self.tied)
    }

    /// What would be missing without notifications, and what to do then: log mode has to list, and a limit to count.
    pub fn needs_listener(&self) -> Option<&'static str> {
        if self.on_violation == OnViolation::Log {
            return Some("without them nothing can be listed; use --on-violation errno");
        }
        self.extras.counts_tasks.then_some(
            "without them processes cannot be counted; lift the limit with --max-processes none, or, as an ordinary user, have the kernel count all that the user runs, with --exec",
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
        // glibc and others try calls newer than the kernel and go on with older ones, on ENOSYS alone. In log
        // mode everything is to be seen.
        let enosys = bpf::RET_ERRNO | u32::from(errno::ENOSYS);
        let unknown = (self.on_violation != OnViolation::Log).then_some(enosys);
        let (rules, free) = self.calls.rules(Actions { violation, log, unknown }, self.extras)?;
        let extra = WithToken { free, token: self.token.as_ref(), mortal: self.mortal() };
        program::assemble(&Layout { rules: &rules, extra: Some(&extra) })
            .map_err(|TooLong| too_long(&self.profile))
    }
}

struct WithToken<'a> {
    free: FreeConditions,
    token: Option<&'a (u32, Vec<Insn>)>,
    /// The number of prctl(2), where its PR_SET_PDEATHSIG is refused.
    mortal: Option<u32>,
}

/// prctl(PR_SET_PDEATHSIG, ...). A command without a reaper is tied to its supervisor by this signal alone, and
/// must not untie itself.
const DEATH_SIGNAL: [Insn; 3] = [
    bpf::stmt(bpf::LD, bpf::data_arg(0)),
    bpf::jump(bpf::JEQ, libc::PR_SET_PDEATHSIG as u32, 0, 1),
    bpf::stmt(bpf::RET, 0),
];

impl Extra for WithToken<'_> {
    fn numbers(&self, each: &mut dyn FnMut(u32)) {
        self.token.iter().for_each(|(number, _)| each(*number));
        self.mortal.into_iter().for_each(&mut *each);
        self.free.numbers(each);
    }

    fn pieces(&self, number: u32, stage: Stage, program: &mut Program<'_>) {
        if let Some((_, piece)) = self.token.filter(|(token, _)| stage == Stage::First && *token == number) {
            program.piece(piece, bpf::RET_ALLOW);
        }
        if stage == Stage::First && self.mortal == Some(number) {
            program.piece(&DEATH_SIGNAL, bpf::RET_ERRNO | u32::from(errno::EPERM));
        }
        self.free.pieces(number, stage, program);
    }
}
