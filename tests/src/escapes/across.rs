//! An attempt over several runs: what one leaves behind, the next one uses, and a program of the user's executes in the
//! end. The file `ran` outside is the evidence; without a sandbox the runs are ordinary shells.

use super::runs::{Level, Profile};
use super::table::{Attempt, Step};
use super::trial::Got;
use crate::{Cmd, User, World, stage};

/// What is executed where a script says so, and may not be.
const PLANT: &str = "PLANT";
/// No user would be without these.
const SETTINGS: &str = "[user]\n\tname = x\n\temail = x@example.org\n[protocol \"file\"]\n\tallow = always\n";

/// Makes the attempt without a sandbox.
pub fn control(attempt: &Attempt, user: &User) -> Got {
    try_it(attempt, user, &|world, script| world.bare(["sh", "-c", script]))
}

/// Makes the attempt in a sandbox.
pub fn inside(attempt: &Attempt, user: &User, profile: &Profile, level: &Level) -> Got {
    let flags = attempt.values("flags");
    try_it(attempt, user, &|world, script| {
        let run = [&["run", "-q"], profile.flags, level.flags, &flags, &["--", "sh", "-c", script]].concat();
        let cmd = Cmd::new(stage::sbx()).args(run).cwd(&world.workspace);
        let cmd = cmd.env("HOME", &world.home).env("USER", user.name).env("PWD", &world.workspace);
        if level.lacks.is_empty() { cmd.user(user) } else { cmd.answering_as(level.lacks, user) }
    })
}

fn try_it(attempt: &Attempt, user: &User, confined: &dyn Fn(&World, &str) -> Cmd) -> Got {
    let world = World::new(user);
    world.write(world.home.join(".gitconfig"), SETTINGS);
    let evidence = world.outside.join("ran");
    let plant = format!("touch {}", evidence.display());
    let mut last = String::new();
    for step in &attempt.steps {
        let (Step::User(script) | Step::Run(script) | Step::Look(script)) = step;
        let script = script.replace(PLANT, &plant);
        let out = match step {
            Step::Run(_) => confined(&world, &script).run(),
            _ => world.bare(["sh", "-c", &script]).run(),
        };
        if matches!(step, Step::User(_)) && out.code != Some(0) {
            return Got::Nowhere(out.to_string());
        }
        if !matches!(step, Step::Look(_)) {
            // The command itself may execute what it likes, as far as it comes; what counts is what the user executes.
            let _ = std::fs::remove_file(&evidence);
        }
        last = out.err().lines().next_back().unwrap_or("nothing was said").chars().take(100).collect();
    }
    // Closed directories could not be removed.
    world.bare(["chmod", "-R", "u+rwX", "."]).run();
    if evidence.exists() {
        return Got::Through("the user's program executed it".into());
    }
    Got::Refused(last)
}
