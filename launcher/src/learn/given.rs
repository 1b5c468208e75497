//! What the user's flags allow: rules like the others, which nobody had to ask for.

use crate::learn::candidate::Candidate;
use crate::learn::document::entries;
use crate::learn::right::{Access, Evidence, Right};
use crate::request::Request;
use crate::sys::path::canonical;
use std::path::Path;

/// The candidate that flags make. `directory`: what relative paths begin in.
pub fn add(candidate: &mut Candidate, given: &Request, directory: &Path) {
    let mut add = |right, flag| {
        candidate.add(right, Evidence::Given(flag));
    };
    let paths = [
        (&given.ro, Access { write: false, execute: false }),
        (&given.rox, Access { write: false, execute: true }),
        (&given.rw, Access { write: true, execute: false }),
        (&given.rwx, Access { write: true, execute: true }),
    ];
    for (list, access) in paths {
        for path in list {
            add(Right::Path(canonical(&directory.join(path)), access), access.flag());
        }
    }
    for entry in given.allow_calls.iter().flat_map(entries) {
        add(Right::Call(entry), "--allow-calls");
    }
    if !given.connect.is_empty() {
        add(Right::Hosts, "--connect");
    }
    for rule in &given.connect {
        add(Right::Connect(rule.clone()), "--connect");
    }
    for port in &given.bind {
        add(Right::Bind(*port), "--bind");
    }
    for path in &given.unix {
        add(Right::Unix(canonical(&directory.join(path))), "--unix");
    }
    for name in &given.allow_command {
        add(Right::Command(name.clone()), "--allow-command");
    }
}
