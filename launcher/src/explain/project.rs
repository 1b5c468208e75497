//! Where a project is, told by the files at its top.

use std::path::Path;

/// Files at the top of a project, which its tools look for.
pub const TOPS: [&str; 16] = [
    "CMakeLists.txt",
    "Cargo.toml",
    "GNUmakefile",
    "Makefile",
    "Rakefile",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "configure",
    "go.mod",
    "meson.build",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "settings.gradle",
    "setup.py",
];

/// The directory whose manifest a path names: what it is the top of.
pub fn of_manifest(path: &Path) -> Option<&Path> {
    let is_manifest = path.file_name().is_some_and(|name| TOPS.iter().any(|top| name == *top));
    path.parent().filter(|_| is_manifest && path.is_file())
}
