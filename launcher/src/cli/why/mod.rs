//! `sbx why`: what a policy says about one thing, by which rule, and which flag would change it.

pub mod flags;
mod inside;

use super::{Run, print};
use crate::launch::question::{self, Answer, Question, Verdict, Wanted};
use crate::profile::{Endpoint, tame};
use crate::refusal::Refusal;
use crate::supervise::decode::escape;
use crate::sys::seccomp;
use flags::Why;
use sbx_policy::calls::{Call, nearest};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Longest text of a profile or path that is shown.
const LONGEST: usize = 400;

/// Answers.
pub fn run(flags: Why) -> Result<i32, Refusal> {
    let json = flags.json;
    let Some(question) = question(&flags)? else { return inside::describe(json) };
    // What binds this process already is not known by its profile; a guess would be no answer.
    if flags.profile.is_none() && seccomp::is_confined() {
        return inside::try_it(&question, json);
    }
    let (answer, plan) = question::answer(&policy(flags), &question)?;
    let text = if json { as_json(&answer, Some(&plan.profile.name)) } else { as_text(&answer) };
    print(text.as_bytes())?;
    Ok(status(answer.verdict))
}

fn status(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Allowed => 0,
        Verdict::Refused => 1,
        Verdict::Depends => 2,
    }
}

/// The run that is asked about.
fn policy(flags: Why) -> Run {
    let Why { profile, workspace, ro, rox, rw, rwx, deny, allow_calls, deny_calls, net, .. } = flags;
    let Why { allow_command, block_command, .. } = flags;
    let dangerously_unconfined = profile.as_deref().is_some_and(|name| name == "unrestricted");
    Run {
        profile,
        workspace,
        ro,
        rox,
        rw,
        rwx,
        deny,
        allow_command,
        block_command,
        allow_calls,
        deny_calls,
        net,
        dangerously_unconfined,
        ..Run::default()
    }
}

fn question(flags: &Why) -> Result<Option<Question>, Refusal> {
    if let Some(text) = &flags.call {
        return call(text).map(Some);
    }
    if let Some(path) = &flags.path {
        let wanted = wanted(flags.op.as_deref().unwrap_or("r"))?;
        return Ok(Some(Question::Path(path.clone(), wanted)));
    }
    if let Some(text) = &flags.connect {
        let port = text.rsplit_once(':').map_or(text.as_str(), |(_, port)| port);
        let port = Endpoint::port(port).ok_or_else(|| {
            let text = escape(text.as_bytes(), LONGEST);
            Refusal::new(format!("cannot read --connect '{text}': it has no port; write example.org:443"))
        })?;
        return Ok(Some(Question::Connect(port)));
    }
    Ok(flags.bind.map(Question::Bind).or_else(|| flags.unix.clone().map(Question::Unix)))
}

fn wanted(text: &str) -> Result<Wanted, Refusal> {
    let mut wanted = Wanted::default();
    for letter in text.chars() {
        match letter {
            'r' => wanted.read = true,
            'w' => wanted.write = true,
            'x' => wanted.execute = true,
            _ => {
                let text = escape(text.as_bytes(), LONGEST);
                return Err(Refusal::new(format!("cannot read --op '{text}': it is made of r, w and x")));
            }
        }
    }
    if wanted == Wanted::default() {
        return Err(Refusal::new("cannot read --op '': it is made of r, w and x"));
    }
    Ok(wanted)
}

/// `NAME[,ARG]...`
fn call(text: &OsStr) -> Result<Question, Refusal> {
    let shown = escape(text.as_bytes(), LONGEST);
    let cannot = |cause: String| Refusal::new(format!("cannot read --call '{shown}': {cause}"));
    let mut parts = text.as_bytes().split(|b| *b == b',');
    let name = parts.next().unwrap_or_default();
    let call = Call::named(name).ok_or_else(|| {
        let near = nearest(name, Call::all().map(Call::name));
        let hint = near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
        cannot(format!("unknown system call '{}'{hint}", escape(name, 60)))
    })?;
    let given: Vec<&[u8]> = parts.collect();
    if given.is_empty() {
        return Ok(Question::Call(call, None));
    }
    let mut args = [0; 6];
    if given.len() > args.len() {
        return Err(cannot("a call has at most six arguments".to_string()));
    }
    for (slot, text) in args.iter_mut().zip(given) {
        *slot = number(text).ok_or_else(|| cannot(format!("'{}' is no number", escape(text, 60))))?;
    }
    Ok(Question::Call(call, Some(args)))
}

/// Decimal, `0x` and `0` as in C; a negative one has all 64 bits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "allowed",
        Verdict::Refused => "refused",
        Verdict::Depends => "depends",
    }
}

/// One line for the verdict, one for each thing that there is to know.
fn as_text(answer: &Answer) -> String {
    let mut text = word(answer.verdict).to_string();
    if let Some(reason) = &answer.reason {
        let _ = write!(text, ": {}", plain(reason));
    }
    text.push('\n');
    for rule in &answer.rules {
        let _ = write!(text, "  by {}", plain(&rule.place));
        if let Some(why) = &rule.why {
            let _ = write!(text, " ({})", plain(why));
        }
        text.push('\n');
    }
    for condition in &answer.depends {
        let _ = writeln!(text, "  {}", plain(condition));
    }
    if let Some(way) = &answer.way {
        let _ = writeln!(text, "  allow it with {way}");
    }
    for note in &answer.notes {
        let _ = writeln!(text, "  note: {}", plain(note));
    }
    text
}

/// Texts of profiles are whatever a file holds; paths in them are escaped already.
fn plain(text: &str) -> String {
    text.chars().map(|c| if tame(c) == c { c } else { ' ' }).collect()
}

fn as_json(answer: &Answer, profile: Option<&str>) -> String {
    let rules: Vec<_> =
        answer.rules.iter().map(|rule| serde_json::json!({ "place": rule.place, "why": rule.why })).collect();
    let flags = answer.way.iter().flat_map(|way| &way.flags).map(|flag| flag.to_string_lossy());
    let flags: Vec<_> = flags.collect();
    let value = serde_json::json!({
        "answer": word(answer.verdict),
        "profile": profile,
        "reason": answer.reason,
        "rules": rules,
        "depends": answer.depends,
        "allow_with": answer.way.as_ref().map(|way| way.to_string()),
        "flags": flags,
        "notes": answer.notes,
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        for (text, value) in
            [("0", 0), ("10", 10), ("010", 8), ("0x241", 0x241), ("-100", -100_i64 as u64), ("-1", u64::MAX)]
        {
            assert_eq!(number(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["", "-", "+1", "--1", "0x", "0x+1", "08", "1 ", "99999999999999999999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
