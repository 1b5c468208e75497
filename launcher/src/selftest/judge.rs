//! The verdict on a promise, from what was seen. Nothing here touches the system.

use crate::selftest::claims::Claim;
use crate::selftest::observe::{BY_FILTER, Reply, Seen};
use crate::selftest::rows::Row;
use crate::sys::plain;

/// The verdict on one promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its acts were refused, and nothing was touched.
    Holds,
    /// It does not hold: what was seen.
    Broken(String),
    /// The run does not promise it: why.
    NotPromised(String),
    /// It could not be tested here: why.
    Untried(String),
}

/// The error numbers by which a sandbox refuses. With any other one, the kernel has gone on to look at the
/// arguments. ENOENT, ESRCH and ECONNREFUSED are among them: if the target is missing, the act proves
/// nothing.
const REFUSALS: [i32; 8] = [
    libc::ENOENT,
    libc::ESRCH,
    libc::EROFS,
    libc::EPERM,
    libc::EACCES,
    libc::ENOSYS,
    libc::EAFNOSUPPORT,
    libc::ECONNREFUSED,
];

/// Whether an act was not refused.
fn got_through(reply: &Reply) -> bool {
    match reply {
        Reply::Done => true,
        Reply::Errno(number) => !REFUSALS.contains(number),
        Reply::Ended(_) => false,
    }
}

/// Judges one promise. `control` is what was seen without a sandbox; without a control, every act counts as
/// one that could have succeeded.
pub fn judge(row: &Row, claim: Claim, twin: Claim, inside: &Seen, control: Option<&Seen>) -> Verdict {
    if let Err(why) = claim {
        return Verdict::NotPromised(why.to_string());
    }
    if let Some((act, seen_as)) = row.allowed {
        return reached(act, seen_as, inside, control);
    }
    if let Some(touched) = row.evidence.iter().find(|name| inside.touched.contains(*name)) {
        return Verdict::Broken(format!("seen from outside: {}", touched.replace('-', " ")));
    }
    let mut proven = 0;
    for act in row.acts {
        match inside.replies.get(*act) {
            Some(reply) if got_through(reply) => return Verdict::Broken(format!("{act}: {}", words(reply))),
            Some(Reply::Ended(status)) if *status != BY_FILTER => {
                return Verdict::Untried(format!("the self-test ended at {act} with status {status}"));
            }
            None => return Verdict::Untried(format!("{act} was not tried")),
            Some(_) => {
                let control = control.map(|seen| seen.replies.get(*act).is_some_and(got_through));
                proven += usize::from(control.unwrap_or(true));
            }
        }
    }
    if inside.blind && row.acts.is_empty() {
        return Verdict::Untried("/proc does not show it".to_string());
    }
    if let Some((act, _)) = row.twin.filter(|_| twin.is_ok())
        && inside.replies.get(act) != Some(&Reply::Done)
    {
        return Verdict::Untried(format!("{act}, which is allowed, fails too"));
    }
    let would_show = control.is_none_or(|seen| row.evidence.iter().any(|name| seen.touched.contains(name)));
    let provable = if row.acts.is_empty() { would_show } else { proven > 0 };
    if provable { Verdict::Holds } else { Verdict::Untried(unproven(row, control)) }
}

/// Judges an act that has to succeed, and to be seen from outside.
fn reached(act: &str, seen_as: &str, inside: &Seen, control: Option<&Seen>) -> Verdict {
    let works = |seen: &Seen| seen.replies.get(act) == Some(&Reply::Done) && seen.touched.contains(seen_as);
    match inside.replies.get(act) {
        _ if works(inside) => Verdict::Holds,
        _ if !control.is_none_or(works) => Verdict::Untried(format!("without sbx too, {act} fails")),
        Some(Reply::Done) => Verdict::Broken("it was not seen from outside".to_string()),
        Some(reply) => Verdict::Broken(format!("{act}: {}", words(reply))),
        None => Verdict::Untried(format!("{act} was not tried")),
    }
}

/// Why the control proves nothing.
fn unproven(row: &Row, control: Option<&Seen>) -> String {
    let reply = row.acts.first().and_then(|act| Some((act, control?.replies.get(*act)?)));
    match reply {
        Some((act, reply)) => format!("without sbx too, {act}: {}", words(reply)),
        None => "it is the same without sbx".to_string(),
    }
}

fn words(reply: &Reply) -> String {
    match reply {
        Reply::Done => "succeeded".to_string(),
        Reply::Errno(number) => plain(&std::io::Error::from_raw_os_error(*number)),
        Reply::Ended(status) => format!("ended the self-test with status {status}"),
    }
}
