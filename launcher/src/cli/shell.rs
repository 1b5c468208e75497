//! `sbx shell`: the user's shell in a run.

use crate::error::Refusal;
use crate::request::Request;
use crate::{run, selftest};
use std::ffi::OsString;
use std::path::Path;

/// The shell of a user who names none.
const PLAIN: &str = "/bin/sh";

/// Runs the shell.
pub fn run(request: Request) -> Result<i32, Refusal> {
    let command = vec![shell(std::env::var_os("SHELL"))];
    run::run(Request { command, ..request }, selftest::verify)
}

/// The shell that the variable names. Another name than a path would be looked up where the caller happens to be.
fn shell(named: Option<OsString>) -> OsString {
    named.filter(|shell| Path::new(shell).is_absolute()).unwrap_or_else(|| PLAIN.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_names_a_shell() {
        for (named, expected) in [
            (None, PLAIN),
            (Some(""), PLAIN),
            (Some("zsh"), PLAIN),
            (Some("./x"), PLAIN),
            (Some("/bin/zsh"), "/bin/zsh"),
        ] {
            assert_eq!(shell(named.map(OsString::from)), expected);
        }
    }
}
