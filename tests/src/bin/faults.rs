//! Makes each system call of a start fail, and checks how the run handles it: `make test-faults`.

#[cfg(target_arch = "x86_64")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(sbx_tests::faults::main(&words))
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("faults: calls are made to fail on x86_64 only");
    std::process::exit(2)
}
