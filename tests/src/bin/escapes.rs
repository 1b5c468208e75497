//! `make test-escapes`: see `sbx_tests::escapes`.

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(sbx_tests::escapes::main(&words));
}
