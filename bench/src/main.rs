//! Benchmark drivers.
fn main() {}
