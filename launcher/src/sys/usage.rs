//! Resources that processes have used.

/// As getrusage(2) counts it.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time of programs, in microseconds.
    pub user: i64,
    /// Processor time of the kernel for them, in microseconds.
    pub system: i64,
    /// The most memory that one process had at any time, in KiB.
    pub memory: i64,
    /// Page faults without and with reading.
    pub faults: [i64; 2],
    /// Context switches: waits, and ends of time slices.
    pub switches: [i64; 2],
    /// Blocks of 512 bytes read and written.
    pub blocks: [i64; 2],
}

/// The usage of all children that have been waited for, and of theirs.
pub fn of_children() -> Usage {
    // SAFETY: all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer; the call fails only for an unknown first argument.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let microseconds = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    Usage {
        user: microseconds(usage.ru_utime),
        system: microseconds(usage.ru_stime),
        memory: usage.ru_maxrss,
        faults: [usage.ru_minflt, usage.ru_majflt],
        switches: [usage.ru_nvcsw, usage.ru_nivcsw],
        blocks: [usage.ru_inblock, usage.ru_oublock],
    }
}
