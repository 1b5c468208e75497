//! What a process passes on to those that it starts, without anybody's saying so.

use crate::sys::process;

/// The numbers of limits (getrlimit(2)) on Linux.
const LIMITS: std::ops::Range<u32> = 0..16;

/// Those of prctl(2) that a process passes on: PR_GET_TIMERSLACK, PR_GET_MDWE, PR_GET_THP_DISABLE, PR_GET_SECUREBITS,
/// and PR_GET_SPECULATION_CTRL of three kinds.
const CONTROLS: [[libc::c_ulong; 2]; 7] = [[30, 0], [66, 0], [42, 0], [27, 0], [52, 0], [52, 1], [52, 2]];

/// Limits, scheduling, personality, priority of input and output, controls, where memory is from, and how soon it is
/// killed for want of memory. Each answer of the kernel counts, an error too.
pub fn all() -> Vec<u64> {
    const IOPRIO_WHO_PROCESS: libc::c_int = 1;
    const ASK: libc::c_ulong = 0xffff_ffff;
    let mut all: Vec<u64> = LIMITS.flat_map(limit).collect();
    // The C library of static builds does not ask the kernel (sched_getscheduler(3) of musl).
    let mut scheduling = [0_u64; 7];
    let (mut policy, mut nodes): (libc::c_int, _) = (0, [0_u64; 16]);
    // SAFETY: room for the answers; nothing is changed.
    let numbers = unsafe {
        [
            libc::syscall(libc::SYS_sched_getattr, 0, &raw mut scheduling, size_of_val(&scheduling), 0),
            i64::from(libc::personality(ASK)),
            libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0),
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut policy,
                &raw mut nodes,
                8 * size_of_val(&nodes),
                0,
                0,
            ),
        ]
    };
    all.extend(numbers.map(i64::cast_unsigned));
    all.extend(scheduling.into_iter().chain(nodes).chain([i64::from(policy).cast_unsigned()]));
    let control = |[number, kind]: [libc::c_ulong; 2]| {
        // SAFETY: plain numbers; nothing is changed.
        unsafe { libc::prctl(number as libc::c_int, kind, 0, 0, 0) }
    };
    all.extend(CONTROLS.map(|asked| i64::from(control(asked)).cast_unsigned()));
    let killed = process::about(process::id(), "oom_score_adj").ok();
    all.push(killed.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(i64::MAX).cast_unsigned());
    all
}

fn limit(number: u32) -> [u64; 2] {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer. A limit that the kernel does not know has none.
    let _ = unsafe { libc::getrlimit(number as _, &raw mut now) };
    [now.rlim_cur, now.rlim_max]
}
