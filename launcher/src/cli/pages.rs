//! `sbx completions` and `sbx man`: what shells and `man` know about the command line, made from its definition.

use crate::cli::flags::Shell;
use crate::cli::{Cli, print};
use crate::error::Refusal;
use crate::sys::plain;
use crate::text::escape;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prints a shell's completion script.
pub fn completions(shell: Shell) -> Result<i32, Refusal> {
    let mut script = Vec::new();
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut with_profiles(), "sbx", &mut script);
    print(&script).map(|()| 0)
}

/// The command line, with the built-in profiles and agents as values to choose from. In bash, files follow them.
fn with_profiles() -> Command {
    Cli::command()
        .mut_subcommand("run", |run| run.mut_arg("profile", offer))
        .mut_subcommand("shell", |shell| shell.mut_arg("profile", offer))
        .mut_subcommand("mcp", |mcp| mcp.mut_arg("profile", offer))
        .mut_subcommand("agent", |agent| agent.mut_arg("name", offer_agents))
        .mut_subcommand("env", |env| env.mut_arg("profile", offer))
        .mut_subcommand("profile", |profile| profile.mut_subcommand("show", |s| s.mut_arg("profile", offer)))
}

fn offer(profile: clap::Arg) -> clap::Arg {
    profile.value_parser(PossibleValuesParser::new(sbx_profiles::NAMES))
}

fn offer_agents(name: clap::Arg) -> clap::Arg {
    name.value_parser(PossibleValuesParser::new(sbx_profiles::AGENTS))
}

/// Writes a page for each subcommand into a directory: sbx.1, sbx-run.1 ...
pub fn man(directory: &Path) -> Result<i32, Refusal> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(directory, &command).map_err(|error| {
        let path = escape(directory.as_os_str().as_bytes(), 400);
        Refusal::new(format!("cannot write man pages into '{path}': {}", plain(&error)))
    })?;
    Ok(0)
}

fn write_pages(directory: &Path, command: &Command) -> io::Result<()> {
    let source = concat!("sbx ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).source(source);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = sections(&String::from_utf8_lossy(&text));
    fs::write(directory.join(page.get_filename()), text)?;
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| write_pages(directory, sub))
}

/// What help ends with, as the sections that a manual has for it. Examples keep their lines.
fn sections(page: &str) -> String {
    page.replace("\n.SH EXTRA\nExamples:\n", "\n.SH EXAMPLES\n.nf\n")
        .replace("\n.SH EXTRA\nExit status: ", "\n.SH \"EXIT STATUS\"\n")
        .replace("\n\nVariables: ", "\n.fi\n.SH VARIABLES\n")
        .replace("\n\nExit status: ", "\n.SH \"EXIT STATUS\"\n")
}
