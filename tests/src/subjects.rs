//! The programs that try forbidden things, compiled once for each test process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use crate::stage;

/// How one subject is made from its source.
struct Recipe {
    name: &'static str,
    source: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
}

const fn c(name: &'static str, source: &'static str, flags: &'static [&'static str]) -> Recipe {
    Recipe { name, source, compiler: "cc", flags }
}

/// Every subject. `attempt` is the most versatile, in each way that a program can be linked.
const RECIPES: &[Recipe] = &[
    c("attempt", "attempt.c", &["-pthread"]),
    c("attempt-static", "attempt.c", &["-pthread", "-static"]),
    c("attempt-static-pie", "attempt.c", &["-pthread", "-static-pie"]),
    Recipe { name: "attempt-musl", source: "attempt.c", compiler: "musl-gcc", flags: MUSL },
    Recipe { name: "attempt-musl-static", source: "attempt.c", compiler: "musl-gcc", flags: MUSL_STATIC },
    c("ifunc", "ifunc.c", &["-Wl,-z,now"]),
    c("preinit", "preinit.c", &[]),
    c("loader", "loader.c", FREESTANDING_PIE),
    NARROW,
    c("hello", "hello.c", &[]),
    c("facts", "facts.c", &[]),
    c("starts", "starts.c", &[]),
    c("hook.so", "hook.c", &["-shared", "-fPIC"]),
    c("rival.so", "rival.c", &["-shared", "-fPIC", "-Wl,-z,initfirst"]),
    c("stopper", "stopper.c", FREESTANDING_STATIC),
    c("convoy", "convoy.c", &["-pthread"]),
    c("crowd", "crowd.c", &["-pthread"]),
    c("escape", ESCAPE, &["-pthread"]),
    c("escape-static", ESCAPE, &["-pthread", "-static"]),
    c("early", EARLY, &[]),
    c("early-resolver", EARLY, &["-DRESOLVER", "-Wl,-z,now", "-Wno-attribute-alias"]),
    c(
        "early-loader",
        EARLY,
        &["-DLOADER", "-nostdlib", "-static-pie", "-ffreestanding", "-fno-stack-protector"],
    ),
    c("early-hook.so", EARLY, &["-DLIBRARY", "-shared", "-fPIC"]),
    c("own-loader", "hello.c", &["-Wl,--dynamic-linker=./early-loader"]),
];

/// The attempts of the escape suite, a file for each class; names are separated by blanks.
const ESCAPE: &str = "escape/main.c escape/files.c escape/attributes.c escape/machine.c escape/network.c \
                      escape/local.c escape/processes.c escape/tracing.c escape/privileges.c \
                      escape/namespaces.c escape/kernel.c escape/bypass.c escape/memory.c escape/supervisor.c escape/environment.c";
const EARLY: &str = "escape/early.c";

/// For the 32-bit predecessor of this machine.
#[cfg(target_arch = "x86_64")]
const NARROW: Recipe =
    c("narrow", "narrow.c", &["-m32", "-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector"]);
/// For the 32-bit predecessor of this machine.
#[cfg(target_arch = "aarch64")]
const NARROW: Recipe = Recipe {
    name: "narrow",
    source: "narrow.c",
    compiler: "arm-linux-gnueabihf-gcc",
    flags: FREESTANDING_STATIC,
};

// musl-gcc hides the kernel's headers together with glibc's.
#[cfg(target_arch = "x86_64")]
const HEADERS: &str = "/usr/include/x86_64-linux-gnu";
#[cfg(target_arch = "aarch64")]
const HEADERS: &str = "/usr/include/aarch64-linux-gnu";
const MUSL: &[&str] = &["-pthread", "-idirafter", "/usr/include", "-idirafter", HEADERS];
const MUSL_STATIC: &[&str] = &["-pthread", "-static", "-idirafter", "/usr/include", "-idirafter", HEADERS];
const FREESTANDING_STATIC: &[&str] = &["-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector"];
const FREESTANDING_PIE: &[&str] = &["-nostdlib", "-static-pie", "-ffreestanding", "-fno-stack-protector"];

/// The compiled subject of this name, where every user can read it.
pub fn program(name: &str) -> PathBuf {
    once(name, || {
        let recipe = RECIPES.iter().find(|recipe| recipe.name == name);
        let recipe = recipe.unwrap_or_else(|| panic!("no subject {name}"));
        let target = target(name);
        let mut command = Command::new(recipe.compiler);
        command
            .arg("-O1")
            .arg("-o")
            .arg(&target)
            .args(recipe.source.split(' ').map(source))
            .args(recipe.flags);
        build(&mut command);
        target
    })
}

/// A program whose PT_INTERP names the subject `loader` at the given place.
pub fn with_own_loader(loader: &Path) -> PathBuf {
    with_loader_named(loader, loader.with_file_name("own-loader"))
}

/// Like [`with_own_loader`], made at `target`.
pub fn with_loader_named(loader: &Path, target: PathBuf) -> PathBuf {
    let mut command = Command::new("cc");
    command.arg("-o").arg(&target).arg(source("hello.c"));
    command.arg(format!("-Wl,--dynamic-linker={}", loader.display()));
    build(&mut command);
    target
}

/// The static Go program.
pub fn go() -> PathBuf {
    go_build("static-go", "static.go", |command| {
        command.env("CGO_ENABLED", "0");
    })
}

/// The HTTP client in Go, with libc's resolver as well as its own. A static one is linked against libc too: the library
/// of Go would have to be compiled to be without.
pub fn go_client(is_static: bool) -> PathBuf {
    let name = if is_static { "static-go-client" } else { "go-client" };
    go_build(name, "client.go", |command| {
        command.env("CGO_ENABLED", "1");
        if is_static {
            command.arg("-ldflags=-linkmode external -extldflags -static");
        }
    })
}

fn go_build(name: &str, from: &str, adapt: impl FnOnce(&mut Command)) -> PathBuf {
    once(name, || {
        let target = target(name);
        let mut command = Command::new("go");
        command.args(["build", "-o"]).arg(&target);
        command.env("GOFLAGS", "-mod=mod").env("GO111MODULE", "off");
        command.env("GOCACHE", stage::base().join("go-cache"));
        adapt(&mut command);
        build(command.arg(source(from)));
        target
    })
}

/// The directory with the classes of the HTTP client in Java.
pub fn java_client() -> PathBuf {
    once("java-client", || {
        let target = target("java-client");
        build(Command::new("javac").arg("-d").arg(&target).arg(source("Client.java")));
        target
    })
}

/// Makes each subject once; other callers wait for the same one, and not for another one.
fn once(name: &str, make: impl FnOnce() -> PathBuf) -> PathBuf {
    static MADE: Mutex<Option<HashMap<String, Arc<OnceLock<PathBuf>>>>> = Mutex::new(None);
    let cell = {
        let mut made = MADE.lock().unwrap();
        Arc::clone(made.get_or_insert_default().entry(name.to_owned()).or_default())
    };
    cell.get_or_init(make).clone()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("subjects").join(name)
}

fn target(name: &str) -> PathBuf {
    let dir = stage::base().join("subjects");
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn build(command: &mut Command) {
    let child = stage::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
}
