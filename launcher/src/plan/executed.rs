//! The files of the command, and the rules that let them be executed.

use crate::error::{Outcome, Refusal};
use crate::host::Host;
use crate::plan::Plan;
use crate::plan::commands::Commands;
use crate::plan::rules::PathRule;
use crate::plan::writable_roots::{self, Found, WritableRoots};
use crate::profile::Variables;
use crate::program::{Link, Program};
use crate::sys::path::{self, canonical};
use crate::sys::within::is_within;
use crate::text::shown;
use std::path::{Component, Path, PathBuf};

/// What is executed in a run.
#[derive(Clone, Copy, Default)]
pub struct Executed<'a> {
    /// The command.
    pub program: Option<&'a Program>,
    /// What else may be, where that is restricted.
    pub commands: Option<&'a Commands>,
}

impl<'a> Executed<'a> {
    /// The files of the command, by the names that lead to them.
    pub fn links(&self) -> &'a [Link] {
        self.program.map_or(&[][..], |program| &program.chain)
    }

    /// The files of the command, by their real paths.
    fn chain(&self, directory: &Path) -> Vec<Found> {
        self.program.map(|program| writable_roots::chain(program, directory)).unwrap_or_default()
    }
}

/// Adds rules for the command itself and for what the kernel starts for it, where no rule lets them be executed. Gives
/// the files of the command where they had to be looked up: where they are in reach of commands, their names may be
/// links, and a list of allowed commands is about files.
pub fn of_command(
    executed: Executed<'_>,
    directory: &Path,
    variables: &Variables<'_>,
    rules: &mut Vec<PathRule>,
) -> Result<Option<(WritableRoots, Vec<Found>)>, Refusal> {
    let by_name = |rules: &[PathRule], path: &Path| is_covered(path, variables.workspace, rules);
    let links = executed.links();
    if let Some((program, loader)) = executed.program.and_then(|program| Some((program, program.loader()?)))
        && !by_name(rules, loader)
    {
        check_loader(&program.path, &canonical(loader), rules)?;
    }
    if executed.commands.is_none() && links.iter().all(|link| by_name(rules, &link.path)) {
        return Ok(None);
    }
    let (roots, files) = (WritableRoots::of(variables, rules), executed.chain(directory));
    for (link, file) in links.iter().zip(&files) {
        if !by_name(rules, &link.path) && !covers(rules, &file.path) {
            let command = links.first().map_or(&link.path, |command| &command.path);
            let rule = roots.rule_for(command, file, rules)?;
            rules.extend(rule);
        }
    }
    Ok(Some((roots, files)))
}

/// Where no rule lets the loader be executed, the kernel starts nothing, and says EACCES alone.
fn check_loader(command: &Path, loader: &Path, rules: &[PathRule]) -> Result<(), Refusal> {
    if covers(rules, loader) || !path::is_there(loader) {
        return Ok(());
    }
    let (command, loader) = (shown(command), shown(loader));
    let sentence = format!(
        "cannot execute '{command}': no rule lets its loader '{loader}' be executed; let the profile extend a \
         built-in one, or add --rox for the loader and the directories of its libraries"
    );
    Err(Refusal::with(Outcome::NotExecutable, sentence))
}

fn covers(rules: &[PathRule], path: &Path) -> bool {
    rules.iter().any(|rule| rule.rights.execute && is_within(path, &rule.path))
}

/// Whether a file may be executed by its name alone, the usual case. In the workspace it may be a link.
fn is_covered(path: &Path, workspace: Option<&Path>, rules: &[PathRule]) -> bool {
    let plain = !path.components().any(|part| part == Component::ParentDir);
    let own = workspace.is_some_and(|workspace| is_within(path, workspace));
    plain && !own && covers(rules, path)
}

/// Whether all files of a command may be executed by rules of a plan that are about no command.
pub fn are_covered(command: &[Link], plan: &Plan, host: &Host) -> bool {
    let rules = plan.paths.as_deref().unwrap_or_default();
    let workspace = plan.workspace.as_deref();
    let is_in_home = |path: &Path| plan.private_home.as_ref().is_some_and(|home| home.has(path, host));
    !command.is_empty()
        && command.iter().all(|link| is_covered(&link.path, workspace, rules) && !is_in_home(&link.path))
        && check_program(command, &plan.denied).is_ok()
}

/// What is denied cannot be executed either.
pub fn check_program(command: &[Link], denied: &[PathBuf]) -> Result<(), Refusal> {
    for file in command.iter().filter(|_| !denied.is_empty()) {
        let place = canonical(&file.path);
        if let Some(above) = denied.iter().find(|denied| is_within(&place, denied)) {
            let (file, above) = (shown(&file.path), shown(above));
            let sentence = format!("cannot execute '{file}': '{above}' is denied, and a denial always wins");
            return Err(Refusal::with(Outcome::NotExecutable, sentence));
        }
    }
    Ok(())
}
