//! `include_dir!` does not notice a new file by itself.
fn main() {
    println!("cargo::rerun-if-changed=.");
}
