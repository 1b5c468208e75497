//! Which shell runs a command line that names none.

use crate::sys::path::is_program;
use std::path::{Path, PathBuf};

/// Where shells are.
pub const SHELL_DIRECTORIES: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];
/// The shell of command lines that other programs hand over: bash, or sh where there is none.
pub const USUAL_SHELLS: [&str; 2] = ["bash", "sh"];

/// The first of these shells that is there.
pub fn shell(names: &[&str]) -> Option<PathBuf> {
    let places = |name: &&str| SHELL_DIRECTORIES.map(|directory| Path::new(directory).join(name));
    names.iter().flat_map(places).find(|file| is_program(file))
}
