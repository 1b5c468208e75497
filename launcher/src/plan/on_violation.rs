//! Action on a violation.

use sbx_policy::bpf;

/// Action on a violation.
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
