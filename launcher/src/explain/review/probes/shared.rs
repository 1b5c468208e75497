//! What a run without namespaces of its own has in common with other programs of the user: terminals and memory.

use crate::error::Refusal;
use crate::explain::query::{self, Question};
use crate::explain::review::probes::files::{READ, WRITE, granted};
use crate::explain::review::probes::network::passing;
use crate::explain::review::probes::{Gain, Side, is_given, place, places};
use crate::explain::sensitive::Use;
use crate::sys::within::is_within;
use crate::text::shown;
use sbx_policy::calls::Call;
use std::path::{Path, PathBuf};

/// A directory that others use too.
struct Place {
    topic: &'static str,
    path: &'static str,
    read: &'static str,
    changed: &'static str,
}

const PLACES: [Place; 2] = [
    Place {
        topic: "terminals",
        path: "/dev/pts",
        read: "what is typed at the user's other terminals can be read",
        changed: "what is typed at the user's other terminals can be read, and anything written to them",
    },
    Place {
        topic: "memory",
        path: "/dev/shm",
        read: "what other programs of the user share there can be read",
        changed: "what other programs of the user share there can be read and changed",
    },
];

/// What programs share by the numbers of the kernel, and a call of each that is enough for whoever knows one.
const BY_NUMBER: [(&str, &[&str]); 4] = [
    ("shared memory of System V", &["shmat"]),
    ("message queues of System V", &["msgrcv", "msgsnd"]),
    ("semaphores of System V", &["semop", "semtimedop", "semctl"]),
    ("message queues of POSIX", &["mq_open"]),
];

pub fn ask(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let plan = side.about.plan;
    if plan.namespaces.is_ok() {
        return Ok(Vec::new());
    }
    let mut gains = Vec::new();
    for shared in &PLACES {
        in_directory(side, shared, &mut gains)?;
    }
    // A network of the run's own comes with such memory of its own.
    if !plan.network.namespace {
        by_number(side, &mut gains)?;
    }
    Ok(gains)
}

fn in_directory(side: Side<'_>, shared: &Place, gains: &mut Vec<Gain>) -> Result<(), Refusal> {
    let whole = Path::new(shared.path);
    let mut told: Vec<PathBuf> = Vec::new();
    for what in [Use::Write, Use::Read] {
        for (path, entry) in granted(side, what) {
            let at = if is_within(whole, &path) { whole } else { &*path };
            // The name for making terminals is no terminal.
            let counts = is_within(at, whole) && !at.ends_with("ptmx");
            if !counts || told.iter().any(|above| is_within(at, above)) {
                continue;
            }
            let given = |wanted| {
                query::answer(side.about, &Question::Path(at.to_path_buf(), wanted)).map(|it| is_given(&it))
            };
            let meaning = match what {
                _ if !given(READ)? => continue,
                Use::Write if given(WRITE)? => shared.changed,
                Use::Write | Use::Read => shared.read,
            };
            let (about, meaning) = (shown(at), meaning.to_string());
            gains.push(Gain { topic: shared.topic, about, meaning, rules: vec![place(entry)] });
            told.push(at.to_path_buf());
        }
    }
    Ok(())
}

fn by_number(side: Side<'_>, gains: &mut Vec<Gain>) -> Result<(), Refusal> {
    for (what, names) in BY_NUMBER {
        for name in names {
            if !passing(side.about.plan, &[name.as_bytes()], [0; 6])? {
                continue;
            }
            let Some(call) = Call::named(name.as_bytes()) else { continue };
            let rules = places(&query::answer(side.about, &Question::Call(call, None))?);
            let meaning = "what other programs of the user share by it can be read and changed".to_string();
            gains.push(Gain { topic: "memory", about: format!("{what} ({name})"), meaning, rules });
            break;
        }
    }
    Ok(())
}
