//! Rebuilds when a profile is added: `include_dir!` does not notice new files.
fn main() {
    println!("cargo::rerun-if-changed=.");
}
