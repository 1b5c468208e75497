//! The `sbx` command.
fn main() {}
