//! What the machine that the suites run on does not have, so that each test tries what there is on it.

/// Numbers of system calls that 64-bit x86 has and the machines after it do not: there, others do the same and more.
pub mod older {
    macro_rules! numbers {
        ($($name:ident = $call:ident,)*) => {$(
            #[cfg(target_arch = "x86_64")]
            /// Its number, if it has one here.
            pub const $name: Option<i64> = Some(libc::$call);
            #[cfg(not(target_arch = "x86_64"))]
            /// Its number, if it has one here.
            pub const $name: Option<i64> = None;
        )*};
    }

    numbers! {
        CHMOD = SYS_chmod,
        CREAT = SYS_creat,
        MKDIR = SYS_mkdir,
        MKNOD = SYS_mknod,
        OPEN = SYS_open,
    }
}

/// Whether a 64-bit program can make calls by the 32-bit table; says so where it cannot.
pub fn has_32_bit_gate() -> bool {
    let has = cfg!(target_arch = "x86_64");
    if !has {
        crate::sys::write_stderr(b"NOT ON THIS MACHINE: a 64-bit program has no way to 32-bit calls\n");
    }
    has
}
