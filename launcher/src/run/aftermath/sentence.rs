//! What came of a look, in lines for a person.

use crate::text::escape;
use sbx_client::report::{Bytes, Finding, FindingKind};

/// What came of a look.
#[derive(Default)]
pub struct Outcome {
    /// What was found.
    pub findings: Vec<Finding>,
    /// What could not be done.
    pub failures: Vec<String>,
}

impl Outcome {
    /// As lines.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.findings.iter().map(line).chain(self.failures.iter().cloned())
    }
}

/// A finding as a line.
pub fn line(finding: &Finding) -> String {
    let listed =
        |names: &[Bytes]| names.iter().map(|name| escape(&name.0, 100)).collect::<Vec<_>>().join(", ");
    let path = escape(&finding.path.0, 400);
    let (names, aside) = (listed(&finding.names), listed(&finding.put_aside));
    let tool = if finding.path.0.ends_with(b".hg") { "hg" } else { "git" };
    match finding.kind {
        FindingKind::RepositoryMade if aside.is_empty() => format!(
            "the command made the repository '{path}', and {tool} outside would act on its {names}: look at it before \
             you use {tool} there"
        ),
        FindingKind::RepositoryMade => format!(
            "the command made the repository '{path}', and {tool} outside would act on its {names}: put aside there as \
             {aside}"
        ),
        FindingKind::FileMade if aside.is_empty() => format!(
            "something made '{path}' during the run, and a program outside would act on it: look at it"
        ),
        FindingKind::FileMade => format!(
            "something made '{path}' during the run, and a program outside would act on it: put aside as '{aside}'; \
             rename it back if you want it there"
        ),
        FindingKind::IndexChanged => {
            let put = match names.is_empty() {
                true => "what cannot be read".to_string(),
                false => format!("what git never puts there ({names})"),
            };
            let now = match aside.is_empty() {
                true => "remove it before you use git there".to_string(),
                false => format!("put aside as '{aside}'; 'git reset' makes another from the last commit"),
            };
            format!("the command put {put} into the index '{path}', and git outside would follow it: {now}")
        }
        FindingKind::StateChanged => {
            let now = match aside.is_empty() {
                true => "remove it before you use git there".to_string(),
                false => format!("put aside there as {aside}"),
            };
            format!(
                "the command left in '{path}' what git, hg and prompts outside are not to go by ({names}): {now}"
            )
        }
        FindingKind::FileReplaced => {
            let names = if names.is_empty() { names } else { format!(" ({names})") };
            let aside = if aside.is_empty() { aside } else { format!("; put aside there as {aside}") };
            format!(
                "something outside replaced or changed '{path}' during the run, and the command may have had a hand in \
                 it: look at it{names}{aside}"
            )
        }
        _ if aside.is_empty() => format!(
            "nothing protected the repository '{path}' during the run, and {tool} outside would act on its {names}, \
             which may be new: look at it before you use {tool} there"
        ),
        _ => format!(
            "nothing protected the repository '{path}' during the run, and {tool} outside would act on its new \
             {names}: put aside there as {aside}; what was there before or is harmless stays"
        ),
    }
}
