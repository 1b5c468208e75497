//! A program that embeds `sbx`, for the suites: `run SBX PROFILE COMMAND...` starts a command in a sandbox
//! (SBX empty: the one that is found), `threads SBX` many at once, `confine PROFILE ACT [ARGUMENT]` confines
//! itself and tries something.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsString;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use sbx::embed::confine_self;
use sbx_client::Sandbox;

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mode = words.first().and_then(|word| word.to_str()).expect("a mode");
    let result: Result<(), Box<dyn std::error::Error>> = match mode {
        "run" => run(&words[1..]).map_err(Into::into),
        "threads" => threads(&words[1]),
        "confine" => confine(&words[1..]),
        other => panic!("unknown mode {other}"),
    };
    if let Err(error) = result {
        println!("error: {error}");
        std::process::exit(1);
    }
}

fn run(words: &[OsString]) -> Result<(), sbx_client::Error> {
    let mut sandbox = Sandbox::new(&words[1]);
    if !words[0].is_empty() {
        sandbox = sandbox.program(&words[0]);
    }
    let run = sandbox.command(&words[2]).args(&words[3..]).output()?;
    println!("cause: {}", run.report.cause);
    println!("status: {}", run.report.exit_status);
    println!("stdout: {:?}", String::from_utf8_lossy(&run.stdout));
    println!("stderr: {:?}", String::from_utf8_lossy(&run.stderr));
    for violation in &run.report.violations {
        println!("refused: {}", violation.call);
    }
    Ok(())
}

/// Many at once, which have each to get their own status.
fn threads(sbx: &OsString) -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new("workspace").program(sbx);
    let right = &|number: i32| {
        let run = sandbox.command("sh").args(["-c", &format!("echo {number}; exit {number}")]).output();
        run.is_ok_and(|run| {
            run.report.exit_status == number && run.stdout == format!("{number}\n").as_bytes()
        })
    };
    let count: usize = std::thread::scope(|scope| {
        let eight: Vec<_> =
            (0..8).map(|number| scope.spawn(move || (0..5).filter(|_| right(number)).count())).collect();
        eight.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    println!("{count} of 40");
    Ok(())
}

fn confine(words: &[OsString]) -> Result<(), Box<dyn std::error::Error>> {
    let argument = words.get(2).cloned().unwrap_or_default();
    let text = argument.to_str().unwrap_or_default();
    let act = words[1].to_str().unwrap_or_default();
    if act == "with-thread" {
        std::thread::spawn(std::thread::park);
    }
    if words[0] != "none" {
        confine_self(&words[0])?;
    }
    match act {
        "read" => print!("{}", std::fs::read_to_string(&argument)?),
        "write" => std::fs::write(&argument, "written\n")?,
        "connect" => drop(TcpStream::connect(text)?),
        "exec" => return Err(Command::new("/bin/sh").args(["-c", text]).exec().into()),
        "with-thread" => {}
        other => panic!("unknown act {other}"),
    }
    println!("done");
    Ok(())
}
