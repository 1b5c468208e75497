//! The `sbx` command.
//!
//! `main` is C's, not Rust's: what std does before an ordinary `fn main` costs a third of a start, and would
//! change what SIGPIPE does for the command. What it would have done that matters here is done by hand.
#![no_main]
#![allow(unsafe_code)] // C calls the entry, with pointers.

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: sbx::sys::allocator::Early<dlmalloc::GlobalDlmalloc> =
    sbx::sys::allocator::Early(dlmalloc::GlobalDlmalloc);

/// The entry that the C library calls.
// SAFETY: the C library calls `main` with exactly these arguments.
#[unsafe(no_mangle)]
extern "C" fn main(argc: libc::c_int, argv: *const *const libc::c_char) -> libc::c_int {
    #[cfg(target_env = "musl")]
    sbx::sys::allocator::open();
    #[cfg(panic = "unwind")]
    abort_on_panic();
    // SAFETY: what the C library passes to `main`.
    let arguments = unsafe { sbx::sys::arguments(argc, argv) };
    let status = sbx::cli::main(arguments);
    sbx::sys::signal::end();
    std::process::exit(status)
}

/// Has every panic end the process at once, as it does in a release. Unwound, it would run destructors first, and on
/// any thread but the first one it would end that thread alone.
#[cfg(panic = "unwind")]
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort()
    }));
}
