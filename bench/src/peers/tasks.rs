//! What developers and their agents run all day, on generated files.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::contestants::{self, Contestant};
use crate::report::Outcome;
use crate::timed::{self, Entry};

/// A command that is timed.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// The program's possible places; the first that exists is used. The path would find wrappers in some home
    /// directories.
    programs: [&'static str; 2],
    arguments: &'static str,
    /// Arguments with which it prints something that proves its work, if it can.
    shown_by: Option<&'static str>,
    /// How many times fewer rounds than for start-up, since it takes longer.
    pub(crate) fewer: u64,
    /// Microseconds in the unit of its column.
    pub(crate) unit: f64,
}

const GIT: [&str; 2] = ["/usr/bin/git", "/usr/local/bin/git"];

/// The cost of starting is the same in every repository.
pub(crate) const LARGE_STATUS: &str = "git status in a large repository";

/// In the order of the columns.
pub(crate) const TASKS: [Task; 6] = [
    Task {
        name: "start-up",
        programs: ["/bin/true", "/usr/bin/true"],
        arguments: "",
        shown_by: None,
        fewer: 1,
        unit: 1.0,
    },
    Task {
        name: "git status",
        programs: GIT,
        arguments: "-C tree status --porcelain",
        shown_by: Some("-C tree status --porcelain"),
        fewer: 10,
        unit: 1000.0,
    },
    Task {
        name: LARGE_STATUS,
        programs: GIT,
        arguments: "-C large status --porcelain",
        shown_by: Some("-C large status --porcelain"),
        fewer: 30,
        unit: 1000.0,
    },
    Task {
        name: "python3 -c pass",
        programs: ["/usr/bin/python3", "/usr/local/bin/python3"],
        arguments: "-c pass",
        shown_by: Some("-c print(6*7)"),
        fewer: 10,
        unit: 1000.0,
    },
    Task {
        name: "find",
        programs: ["/usr/bin/find", "/bin/find"],
        arguments: "tree/files -type f -size +1",
        shown_by: Some("tree/files -type f -size +1"),
        fewer: 10,
        unit: 1000.0,
    },
    Task {
        name: "make -j2",
        programs: ["/usr/bin/make", "/usr/local/bin/make"],
        arguments: "-s -B -j2 -C project",
        shown_by: Some("-s -B -j2 -C project"),
        fewer: 60,
        unit: 1000.0,
    },
];

impl Task {
    /// All contestants' places in the race, bare first; one that does not print what bare prints is out.
    pub(crate) fn admit<'a>(&self, all: &[&'a Contestant], env: &[OsString]) -> Result<Vec<Entry<'a>>> {
        let program = contestants::first_program(&self.programs)?;
        let command = |arguments: &str| -> Vec<OsString> {
            let words = arguments.split_whitespace().map(OsString::from);
            std::iter::once(program.clone().into()).chain(words).collect()
        };
        let mut expected = None;
        let mut tried = |contestant: &Contestant| {
            let Some(arguments) = self.shown_by else { return Ok(()) };
            let said = contestant.running(&command(arguments), env)?.output().map_err(Outcome::Failed)?;
            same_work(&said, expected.get_or_insert_with(|| said.clone())).map_err(Outcome::Failed)
        };
        let timed = command(self.arguments);
        let entries: Vec<_> = all.iter().map(|c| Entry::new(c, tried(c), &timed, env)).collect();
        timed::require_bare(&entries).map(|()| entries)
    }
}

/// The order in which a directory is listed may differ.
fn same_work(said: &str, expected: &str) -> Result<()> {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    if said.trim().is_empty() {
        return Err("printed nothing".into());
    }
    if sorted(said) != sorted(expected) {
        return Err(format!("printed something else than the bare command: {:.200}", said.trim()));
    }
    Ok(())
}

/// The amount of files.
pub(crate) struct Size {
    directories: usize,
    directories_of_large: usize,
    files_in_each: usize,
    sources: usize,
}

/// A repository of some thousand files, one of ten times as many, and a C project.
pub(crate) const FULL: Size =
    Size { directories: 50, directories_of_large: 500, files_in_each: 80, sources: 40 };

/// As little as shows that everything works.
pub(crate) const SMALL: Size = Size { directories: 2, directories_of_large: 3, files_in_each: 3, sources: 1 };

/// Makes the files in the workspace.
pub(crate) fn lay_out(workspace: &Path, size: &Size, env: &[OsString]) -> Result<()> {
    let (usual, large) = (workspace.join("tree"), workspace.join("large"));
    tree(&usual, size.directories, size.files_in_each)
        .and_then(|()| tree(&large, size.directories_of_large, size.files_in_each))
        .and_then(|()| project(&workspace.join("project"), size.sources))
        .map_err(|e| format!("cannot make files in '{}': {e}", workspace.display()))?;
    repository(&usual, env)?;
    repository(&large, env)
}

fn tree(root: &Path, directories: usize, files_in_each: usize) -> std::io::Result<()> {
    for directory in 0..directories {
        let path = root.join(format!("files/{directory:02}"));
        fs::create_dir_all(&path)?;
        for file in 0..files_in_each {
            // Some are bigger, so that find has something to find.
            let lines = if file == 0 { 100 } else { 3 };
            let text = format!("line of file {file} in {directory}\n").repeat(lines);
            fs::write(path.join(format!("{file:02}.txt")), text)?;
        }
    }
    Ok(())
}

fn project(root: &Path, sources: usize) -> std::io::Result<()> {
    fs::create_dir_all(root)?;
    let name = |number| format!("part{number:02}");
    let (mut declared, mut summed, mut objects) = (String::new(), String::new(), String::new());
    for number in 0..sources {
        let name = name(number);
        let text = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n\
             int {name}(const char *text) {{\n    char copy[64];\n    snprintf(copy, sizeof copy, \"%s%d\", text, {number});\n    \
             return (int)strlen(copy) + abs(-{number});\n}}\n"
        );
        fs::write(root.join(format!("{name}.c")), text)?;
        declared += &format!("int {name}(const char *text);\n");
        summed += &format!("    sum += {name}(\"x\");\n");
        objects += &format!(" {name}.o");
    }
    let main = format!(
        "#include <stdio.h>\n{declared}\nint main(void) {{\n    int sum = 0;\n{summed}    printf(\"%d\\n\", \
         sum);\n    return 0;\n}}\n"
    );
    fs::write(root.join("main.c"), main)?;
    // The build runs its result, whose output shows that something was built.
    let makefile = format!(
        "CFLAGS = -O1\nall: program\n\t./program\nprogram: main.o{objects}\n\t$(CC) -o $@ $^\n.PHONY: all\n"
    );
    fs::write(root.join("Makefile"), makefile)
}

/// git compares a file by size and time alone: otherwise sandboxes that show other owners would make it read every
/// file again, and write an index that makes the next one do the same.
fn repository(root: &Path, env: &[OsString]) -> Result<()> {
    let Some(git) = TASKS.iter().find(|task| task.name == "git status") else { return Ok(()) };
    // The task itself repeats it, as a reason.
    let Ok(program) = contestants::first_program(&git.programs) else { return Ok(()) };
    let run = |arguments: &str| {
        let mut command = Command::new(&program);
        command.arg("-C").arg(root).args(arguments.split(' ')).env_clear();
        command.envs(env.iter().filter_map(|entry| contestants::assignment_parts(entry)));
        let output = command.output().map_err(|e| format!("cannot start git: {e}"))?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(format!("git {arguments}: {}", said())) }
    };
    run("init -q")?;
    run("config core.checkStat minimal")?;
    run("add .")?;
    run("-c user.name=bench -c user.email=bench@localhost commit -q -m files")?;
    let changed = fs::write(root.join("files/00/00.txt"), "changed\n")
        .and_then(|()| fs::write(root.join("files/new.txt"), "new\n"));
    changed.map_err(|e| format!("cannot change files in '{}': {e}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_compared_by_what_it_prints() {
        assert_eq!(same_work("b\na\n", "a\nb\n"), Ok(()));
        assert!(same_work("a\n", "a\nb\n").is_err());
        assert!(same_work("\n", "\n").is_err());
    }
}
