//! Runs a shell command under sbx, and tells what became of it.
//!
//! usage: run COMMAND [SECONDS]

use sbx_client::report::{Bytes, Cause};
use sbx_client::{Error, Output, Sandbox};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Runs a command with limits. Returns what it wrote, and sbx's report.
fn run(command: &str, seconds: u64) -> Result<Output, Error> {
    let sandbox = Sandbox::new("workspace").timeout(Duration::from_secs(seconds)).max_output(1 << 20);
    let sandbox = sandbox.flag("--max-memory", "4G").flag("--max-processes", "500");
    sandbox.command("bash").args(["-c", command]).output()
}

/// Words and paths are bytes. The command may have chosen them.
fn text(bytes: &Bytes) -> String {
    bytes.0.escape_ascii().to_string()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, seconds) = match arguments.as_slice() {
        [command] => (command, Ok(60)),
        [command, seconds] => (command, seconds.parse()),
        _ => (&String::new(), "".parse()),
    };
    let Ok(seconds) = seconds else {
        eprintln!("usage: run COMMAND [SECONDS]");
        return ExitCode::FAILURE;
    };
    let run = match run(command, seconds) {
        Ok(run) => run,
        Err(error) => {
            println!("not run: {error}");
            return ExitCode::from(125);
        }
    };
    let _ = std::io::stdout().write_all(&[run.stdout, run.stderr].concat());
    for violation in &run.report.violations {
        let flags = violation.suggestion.as_ref().map(|way| way.flags.iter().map(text).collect::<Vec<_>>());
        println!(
            "refused: {}({}) in {}, {} times; allowed by: {}",
            violation.call,
            violation.args,
            text(&violation.process),
            violation.count,
            flags.map_or("nothing".to_string(), |flags| flags.join(" ")),
        );
    }
    match run.report.cause {
        Cause::Timeout => println!("timeout: ended after {:.1} s", run.report.duration_ms / 1000.0),
        cause => println!("{cause}: status {}", run.report.exit_status),
    }
    ExitCode::from(u8::try_from(run.report.exit_status).unwrap_or(u8::MAX))
}
