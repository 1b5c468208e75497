//! What a process passes on to those that it starts, without anybody's saying so.

/// The numbers of limits (getrlimit(2)) on Linux.
const LIMITS: std::ops::Range<u32> = 0..16;

/// Limits, priority, scheduling, personality, slack of timers, priority of input and output. Each answer of the kernel
/// counts, an error too.
pub fn all() -> Vec<u64> {
    const IOPRIO_WHO_PROCESS: libc::c_int = 1;
    const ASK: libc::c_ulong = 0xffff_ffff;
    let mut all: Vec<u64> = LIMITS.flat_map(limit).collect();
    // SAFETY: plain numbers; nothing is changed.
    let numbers = unsafe {
        [
            i64::from(libc::getpriority(libc::PRIO_PROCESS, 0)),
            i64::from(libc::sched_getscheduler(0)),
            i64::from(libc::personality(ASK)),
            i64::from(libc::prctl(libc::PR_GET_TIMERSLACK)),
            libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
        ]
    };
    all.extend(numbers.map(i64::cast_unsigned));
    all
}

fn limit(number: u32) -> [u64; 2] {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer. A limit that the kernel does not know has none.
    let _ = unsafe { libc::getrlimit(number as _, &raw mut now) };
    [now.rlim_cur, now.rlim_max]
}
