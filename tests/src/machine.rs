//! What the machine that runs the suites does not have, so that each test tries what there is.

/// Numbers of system calls that 64-bit x86 has and later machines do not: there, other calls do the same and more.
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

/// Whether a 64-bit program can make system calls by the 32-bit table; reported where it cannot.
pub fn has_32_bit_calls() -> bool {
    let has = cfg!(target_arch = "x86_64");
    if !has {
        crate::sys::write_stderr(b"NOT ON THIS MACHINE: a 64-bit program has no way to 32-bit calls\n");
    }
    has
}
