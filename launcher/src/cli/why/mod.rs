//! `sbx why`: what a policy says about one thing, by which rule, and which flag would change it.

mod inside;

use crate::cli::flags::Why;
use crate::cli::print;
use crate::error::Refusal;
use crate::explain::query::{self, Answer, Destination, Question, Reach, Subject, Verdict, Wanted};
use crate::host::Host;
use crate::hosts::{DEFAULT_PORT, HostName, HostRule};
use crate::plan::namespaces::Unavailable;
use crate::plan::{Draft, Inputs, Plan, Provided};
use crate::profile::Profile;
use crate::report::json::document;
use crate::request::Request;
use crate::selftest::status::{own_network, own_view};
use crate::sys::seccomp;
use crate::text::{escape, tame};
use sbx_policy::calls::{Call, nearest};
use std::fmt::Write;
use std::net::IpAddr;

const NO_QUESTION: &str = "cannot ask the policy: there is no question; name a path, or give --call, --connect, --bind \
                           or --unix; try 'sbx why --help'";

/// Answers.
pub fn run(flags: Why) -> Result<i32, Refusal> {
    let json = flags.json;
    let question = match question(&flags) {
        Some(question) => question,
        None if flags.policy.0 == Request::default() => return inside::describe(json),
        None => return Err(Refusal::new(NO_QUESTION)),
    };
    // What binds this process already is not known by its profile; a guess would be no answer.
    if flags.policy.0.profile.is_none() && seccomp::is_confined() {
        return inside::try_it(&question, json);
    }
    let (request, host) = (policy(flags), Host::of_this_process());
    let plan = plan(&request, &host)?;
    let about = Subject { request: &request, host: &host, plan: &plan, reach: &Reach::default() };
    let answer = query::answer(about, &question)?;
    let text = match json {
        true => as_json(&answer, Some(&plan.profile.name)),
        false => as_text(&answer, subject(&question).as_deref()),
    };
    print(text.as_bytes())?;
    Ok(status(answer.verdict))
}

/// The plan of such a run: with those namespaces only that it would get.
pub fn plan(request: &Request, host: &Host) -> Result<Plan, Refusal> {
    plan_of(request, host, &|_| {})
}

/// The plan of such a run under the profile that `change` makes of the one that is asked for.
pub fn plan_of(request: &Request, host: &Host, change: &dyn Fn(&mut Profile)) -> Result<Plan, Refusal> {
    let make = |unavailable: &Unavailable| {
        let mut inputs = Inputs::read(request, host)?;
        change(&mut inputs.profile);
        Draft::new(inputs, unavailable)?.complete(Provided::default())
    };
    let plan = make(&Unavailable::default())?;
    let view = plan.namespaces.as_ref().ok().and_then(|_| own_view().err());
    let network = plan.network.namespace.then(|| own_network().err()).flatten();
    if view.is_none() && network.is_none() {
        return Ok(plan);
    }
    let [view, network] = [view, network].map(|fault| fault.map(|fault| fault.why));
    make(&Unavailable { view, network, ..Unavailable::default() })
}

fn status(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Allowed => 0,
        Verdict::Refused => 1,
        Verdict::Depends => 2,
    }
}

/// The run that is asked about.
fn policy(flags: Why) -> Request {
    let request = flags.policy.0;
    let dangerously_unconfined = request.profile.as_deref().is_some_and(|name| name == "unrestricted");
    Request { dangerously_unconfined, ..request }
}

/// What is asked, if anything.
fn question(flags: &Why) -> Option<Question> {
    let path = || {
        let path = flags.path.clone().or(flags.file.clone())?;
        Some(Question::Path(path, flags.op.unwrap_or(READ)))
    };
    let unix = || flags.unix.clone().map(Question::Unix);
    let port = || flags.connect.clone().map(Question::Connect).or(flags.bind.map(Question::Bind));
    let call = flags.call.map(|(call, arguments)| Question::Call(call, arguments));
    call.or_else(path).or_else(port).or_else(unix)
}

const READ: Wanted = Wanted { read: true, write: false, execute: false, remove: false };

/// `--connect HOST[:PORT]`, or a port of any host.
pub fn destination(text: &str) -> Result<Destination, String> {
    let is_host = text.parse::<IpAddr>().is_ok() || !text.contains(':') && text.parse::<u16>().is_err();
    let (host, port) = match text.rsplit_once(':') {
        _ if is_host => (text, Some(DEFAULT_PORT)),
        Some((host, port)) => (host, port.parse().ok()),
        None => ("", text.parse().ok()),
    };
    let no_port = || match HostRule::parse(text) {
        Err(why) => why.to_string(),
        Ok(_) => "its port is none; write HOST:443".to_string(),
    };
    let port = port.filter(|port| *port != 0).ok_or_else(no_port)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = host.parse().ok();
    let is_loopback = address.map_or(host == "localhost", |address| address.is_loopback());
    let is_elsewhere = !is_loopback && !host.is_empty();
    let name = || HostName::parse(host).map_err(|why| format!("'{host}' is not the name of a host: {why}"));
    let name = (is_elsewhere && address.is_none() && host != "*").then(name).transpose()?;
    Ok(Destination { text: text.to_string(), port, is_elsewhere, name, address })
}

/// `--op rwxd`.
pub fn access(text: &str) -> Result<Wanted, String> {
    if text.is_empty() || text.contains(|letter| !"rwxd".contains(letter)) {
        return Err("it is made of r, w, x and d".to_string());
    }
    let [read, write, execute, remove] = ['r', 'w', 'x', 'd'].map(|letter| text.contains(letter));
    Ok(Wanted { read, write, execute, remove })
}

/// A system call, and its arguments if they matter.
pub type Asked = (Call, Option<[u64; 6]>);

/// `--call NAME[,ARG]...`.
pub fn call(text: &str) -> Result<Asked, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default().as_bytes();
    let Some(call) = Call::named(name) else {
        let near = nearest(name, Call::all().map(Call::name));
        let hint = near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
        return Err(format!("unknown system call '{}'{hint}", escape(name, 60)));
    };
    let given: Vec<&str> = parts.collect();
    let mut args = [0; 6];
    if given.len() > args.len() {
        return Err("a call has at most six arguments".to_string());
    }
    for (slot, text) in args.iter_mut().zip(&given) {
        let text = text.as_bytes();
        *slot = number(text).ok_or_else(|| format!("'{}' is no number", escape(text, 60)))?;
    }
    Ok((call, (!given.is_empty()).then_some(args)))
}

/// Decimal, `0x` and `0` as in C; a negative one has all 64 bits.
pub fn number(text: &[u8]) -> Option<u64> {
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

/// What is asked about, where the reason does not say it: it speaks of a path by its name.
fn subject(question: &Question) -> Option<String> {
    match question {
        Question::Call(call, _) => Some(call.name().to_string()),
        Question::Connect(destination) => Some(destination.text.clone()),
        Question::Bind(port) => Some(format!("TCP port {port}")),
        Question::Path(..) | Question::Unix(_) => None,
    }
}

/// One line for the verdict, one for each thing that there is to know.
fn as_text(answer: &Answer, subject: Option<&str>) -> String {
    let mut text = word(answer.verdict).to_string();
    if let Some(subject) = subject.filter(|_| answer.verdict != Verdict::Allowed) {
        let _ = write!(text, ": {}", plain(subject));
    }
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
    if let Some(hint) = &answer.hint {
        let _ = writeln!(text, "  allow it with {hint}");
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
    let flags = answer.hint.iter().flat_map(|hint| &hint.flags).map(|flag| flag.to_string_lossy());
    let flags: Vec<_> = flags.collect();
    let notes = answer.notes.iter().map(String::as_str);
    let notes: Vec<_> = notes.chain(answer.hint.iter().filter_map(|hint| hint.note)).collect();
    let value = serde_json::json!({
        "answer": word(answer.verdict),
        "profile": profile,
        "reason": answer.reason,
        "rules": rules,
        "depends": answer.depends,
        "allow_with": answer.hint.clone().map(|hint| hint.noting(None).to_string()),
        "flags": flags,
        "notes": notes,
    });
    document(&value)
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
