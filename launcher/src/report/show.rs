//! A report as a table for people. A report may come from anywhere, so nothing of it reaches the terminal unescaped.

mod words;

use crate::explain::hint;
use crate::explain::total::{Refused, Total};
use crate::supervise::violation::verb;
use crate::text::{escape, paint, process_name, tame, tamed};
use sbx_client::report::{Bytes, Confidence, Fate, LayerState, Report, Rule, Suggestion, ViolationRecord};
use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;

const RED: &str = "31";
const YELLOW: &str = "33";
const BOLD: &str = "1";
/// The width of the labels.
const WIDTH: usize = 10;
/// The longest sentence that is shown, in characters.
const LONGEST: usize = 1000;
/// The longest path or name that is shown, in bytes.
const LONGEST_NAME: usize = 400;

/// How a report is shown.
#[derive(Clone, Copy, Debug)]
pub struct Show {
    /// Whether colours are wanted.
    pub coloured: bool,
    /// How many refusals and warnings are listed at most, if not all.
    pub most: Option<usize>,
}

/// The table.
pub fn table(report: &Report, show: Show) -> String {
    let mut table = Table { text: String::new(), show };
    table.ran(report);
    table.could(report);
    table.refused(report);
    table.afterwards(report);
    table.text
}

struct Table {
    text: String,
    show: Show,
}

impl Table {
    fn row(&mut self, label: &str, value: impl fmt::Display) {
        self.coloured_row(label, tamed(&value.to_string()));
    }

    /// A row whose value is fit for a terminal, and has colours perhaps.
    fn coloured_row(&mut self, label: &str, value: impl fmt::Display) {
        let label = paint(&format!("{label:<WIDTH$}"), BOLD, self.show.coloured);
        let _ = writeln!(self.text, "{label}  {value}");
    }

    fn more(&mut self, value: impl fmt::Display) {
        let _ = writeln!(self.text, "{:<WIDTH$}  {}", "", tamed(&value.to_string()));
    }

    /// A label and its items, each of one or more lines; or nothing.
    fn list(&mut self, label: &str, colour: &str, items: &[String]) {
        let shown = items.len().min(self.show.most.unwrap_or(usize::MAX));
        let mut label = paint(&format!("{label:<WIDTH$}"), colour, self.show.coloured);
        for line in items[..shown].iter().flat_map(|item| item.split('\n')) {
            let _ = writeln!(self.text, "{label}  {}", tamed(line));
            label = " ".repeat(WIDTH);
        }
        if shown < items.len() {
            self.more(format_args!("and {} more", items.len() - shown));
        }
    }

    /// What ran, how it ended and what it used.
    fn ran(&mut self, report: &Report) {
        let words: Vec<String> = report.command.iter().map(shell_word).collect();
        self.row("command", if words.is_empty() { "unknown".to_string() } else { words.join(" ") });
        if let Some(program) = &report.program {
            self.row("program", name(program));
        }
        if let Some(workspace) = &report.workspace {
            self.row("workspace", name(workspace));
        }
        if let Some(profile) = &report.profile {
            let file = profile.file.as_ref().map(|file| format!(" ({})", name(file))).unwrap_or_default();
            self.row("profile", format_args!("{}{file}", escape(profile.name.as_bytes(), LONGEST_NAME)));
        }
        if let Some(level) = report.level {
            self.row("level", level);
        }
        self.row("began", sentence(&report.started));
        let well = report.exit_status == 0;
        let ended = paint(&words::ending(report), if well { "" } else { RED }, self.show.coloured && !well);
        self.coloured_row("ended", format_args!("{ended}, after {}", words::seconds(report.duration_ms)));
        if let Some(error) = &report.error {
            self.more(sentence(error));
        }
        if let Some(used) = &report.rusage {
            self.row("cpu", words::processor(used));
            self.row("memory", words::memory(used));
            self.row("disks", words::disks(used));
        }
        let output = words::output(&report.output);
        output.iter().for_each(|output| self.row("output", output));
    }

    /// What it could reach, and what it wrote to its home.
    fn could(&mut self, report: &Report) {
        if let Some(network) = &report.network {
            self.row("network", words::network(network));
            let sockets: Vec<String> = network.unix.iter().map(name).collect();
            self.list("sockets", BOLD, &sockets);
            let hosts: Vec<String> = network.hosts.iter().map(words::host).collect();
            self.list("hosts", BOLD, &hosts);
            let published: Vec<String> = network.published.iter().map(words::published).collect();
            self.list("published", BOLD, &published);
        }
        if let Some(home) = &report.home {
            let lasts = if home.lasts { "kept for later runs" } else { "removed with the run" };
            self.row("home", format_args!("its own, {lasts}: {}", name(&home.directory)));
            let mut written: Vec<String> = home.written.iter().map(name).collect();
            written.extend(home.more_written.then(|| "and more".to_string()));
            self.list("wrote home", BOLD, &written);
        }
        let limits: Vec<String> = report.limits.iter().map(words::limit).collect();
        if !limits.is_empty() {
            self.row("limits", limits.join(", "));
        }
    }

    /// What was refused, and the flags for all of it.
    fn refused(&mut self, report: &Report) {
        let mut total = Total::default();
        let (mut refused, mut noted) = (Vec::new(), Vec::new());
        for record in &report.violations {
            total.add(&counted(record));
            let lines = if record.fate == Fate::Noted { &mut noted } else { &mut refused };
            lines.push(line(record));
        }
        self.list("refused", RED, &refused);
        if total.count() > 0 {
            self.row("in all", total.line(report.violations_unlisted > 0));
        } else {
            self.row("refused", "nothing that sbx knows of");
        }
        if report.violations_unlisted > 0 {
            self.more(format_args!("{} more times, which are not listed", report.violations_unlisted));
        }
        self.list("noted", BOLD, &noted);
    }

    /// What was found when it had ended, and what was less than usual.
    fn afterwards(&mut self, report: &Report) {
        let findings: Vec<String> = report.findings.iter().map(words::finding).collect();
        self.list("found", YELLOW, &findings);
        let gaps = report.layers.iter().filter_map(|layer| {
            let state = match layer.state {
                LayerState::Partial => "in part",
                LayerState::Absent => "not in force",
                _ => return None,
            };
            let why = layer.reason.as_ref().map(|why| format!(" ({})", sentence(why))).unwrap_or_default();
            Some(format!("{}: {state}{why}", sentence(&layer.name)))
        });
        let gaps: Vec<String> = gaps.collect();
        self.list("gaps", BOLD, &gaps);
        let warnings: Vec<String> = report.degradations.iter().map(|warning| sentence(warning)).collect();
        self.list("warnings", YELLOW, &warnings);
    }
}

/// A refusal as it is counted.
fn counted(record: &ViolationRecord) -> Refused<'_> {
    let rule = record.rule.as_ref();
    Refused {
        fate: record.fate,
        kind: record.kind,
        call: &record.call,
        arguments: &record.args,
        path: record.path.as_ref().map(|path| &path.0[..]),
        has_address: record.address.is_some(),
        rule: rule.map_or("", |rule| &rule.text),
        key: rule.and_then(|rule| rule.key.as_deref()).unwrap_or_default(),
        is_noted: record.suggestion.as_ref().is_some_and(|hint| hint.note.is_some()),
        hint: record.suggestion.as_ref().map(|hint| hint.flags.iter().map(|word| os(&word.0)).collect()),
    }
}

/// A refusal, as its line on standard error says it, with its count.
fn line(record: &ViolationRecord) -> String {
    let ViolationRecord { fate, call, args, process, pid, count, .. } = record;
    let times = if *count > 1 { format!(" {count} times") } else { String::new() };
    let (call, args, process) = (sentence(call), sentence(args), process_name(&process.0));
    let rule = record.rule.as_ref().map(|Rule { text, .. }| format!(": {}", sentence(text)));
    let inferred = if record.confidence == Confidence::Inferred { " (inferred)" } else { "" };
    let hint = record.suggestion.as_ref().map(|Suggestion { flags, note }| {
        let flags: Vec<String> = flags.iter().map(shell_word).collect();
        let note = note.as_ref().map(|note| format!(" ({})", sentence(note))).unwrap_or_default();
        format!("\n  allow it with {}{note}", flags.join(" "))
    });
    let (rule, hint) = (rule.unwrap_or_default(), hint.unwrap_or_default());
    if is_named(record) {
        return format!("{}{hint}", rule.trim_start_matches(": "));
    }
    format!("{} {call}({args}){times} in {process}[{pid}]{rule}{inferred}{hint}", verb(*fate))
}

/// What was refused, before the name of the process: the call, or what the words of the command name.
pub fn act(record: &ViolationRecord) -> String {
    let ViolationRecord { call, args, .. } = record;
    if is_named(record) { format!("{args} in the words of") } else { format!("{call}({args}) in") }
}

/// What became of the process, behind its name.
pub fn effect(record: &ViolationRecord) -> String {
    match is_named(record) {
        true => "has failed, and names what is closed to it".to_string(),
        false => format!("was refused {}", record.call),
    }
}

/// Whether nobody has seen a call.
fn is_named(record: &ViolationRecord) -> bool {
    record.confidence == Confidence::Named
}

/// A sentence of a report: made for people already, but perhaps not by `sbx`.
fn sentence(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST).map(tame).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

fn name(bytes: &Bytes) -> String {
    escape(&bytes.0, LONGEST_NAME)
}

/// A word as a shell takes it.
fn shell_word(bytes: &Bytes) -> String {
    hint::shell_word(os(&bytes.0))
}

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_named_violation_no_call_is_told() {
        let told = |confidence| {
            let text = r#"{ "kind": "path", "call": "openat", "args": "\"/x\"", "path": "/x", "address": null,
                "process": "cat", "pid": 7, "rule": { "text": "/x is closed", "profile": null, "key": null },
                "suggestion": null, "count": 1, "confidence": "observed", "fate": "blocked" }"#;
            let record = ViolationRecord { confidence, ..serde_json::from_str(text).unwrap() };
            [line(&record), act(&record), effect(&record)]
        };
        let call =
            ["blocked openat(\"/x\") in cat[7]: /x is closed", "openat(\"/x\") in", "was refused openat"];
        assert_eq!(told(Confidence::Observed), call);
        let effect = "has failed, and names what is closed to it";
        assert_eq!(told(Confidence::Named), ["/x is closed", "\"/x\" in the words of", effect]);
    }
}
