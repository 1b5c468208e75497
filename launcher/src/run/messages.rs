//! The two lines of `--verbose`: what is enforced, and how it ended.

use crate::explain::decode::signal_name;
use crate::plan::Plan;
use crate::plan::home::PrivateHome;
use crate::profile::{Level, NetworkMode};
use crate::request::Request;
use crate::supervise::Ending;
use crate::text::escape;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// What the closing line needs to know beforehand.
pub struct Closing {
    start: Instant,
    level: &'static str,
}

impl Closing {
    /// To be made before the command starts.
    pub fn new(plan: &Plan) -> Closing {
        Closing { start: Instant::now(), level: plan.level().map_or("none", Level::word) }
    }

    /// The line.
    pub fn line(&self, ending: Ending) -> String {
        let how = match ending {
            Ending::Exited(status) => format!("exited with {status}"),
            Ending::Killed(signal) => was_ended_by(signal),
            Ending::Timeout => "was ended when it timed out".to_string(),
            Ending::Memory => "was ended for its memory".to_string(),
            Ending::Violation => "was ended for a violation".to_string(),
            Ending::OutputFailed => "was ended because its output could not be passed on".to_string(),
            Ending::Lost => "was lost".to_string(),
        };
        let level = self.level;
        format!("the command {how} after {}, at level {level}", seconds(self.start.elapsed()))
    }
}

fn was_ended_by(signal: i32) -> String {
    match signal_name(signal) {
        Some(name) => format!("was ended by {name}"),
        None => format!("was ended by signal {signal}"),
    }
}

/// Says that the command has crashed, as a shell says it of a command that it waits for.
pub fn crash(ending: Ending) -> Option<String> {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGTRAP};
    match ending {
        Ending::Killed(signal @ (SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGKILL | SIGSEGV | SIGTRAP)) => {
            Some(format!("the command {}", was_ended_by(signal)))
        }
        _ => None,
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// That a run of a pool has got the command, and whether the plan of that run is still its own.
pub fn warm(lasted: bool) -> &'static str {
    match lasted {
        true => "warm start: nothing has changed since the run was planned",
        false => "warm start: planned anew",
    }
}

/// What is enforced.
pub fn banner(plan: &Plan) -> String {
    let profile = escape(plan.profile.name.as_bytes(), 100);
    let workspace = match &plan.workspace {
        Some(path) => format!("workspace '{}'", escape(path.as_os_str().as_bytes(), 400)),
        None => "no workspace".to_string(),
    };
    let paths = match &plan.paths {
        Some(rules) => format!("{} path rules (Landlock ABI {})", rules.len(), plan.landlock.0),
        None => "paths not restricted".to_string(),
    };
    let limits: String = plan.limits.applied.iter().map(|applied| format!(", {applied}")).collect();
    let namespaces = match &plan.namespaces {
        Ok(_) => "namespaces of its own".to_string(),
        Err(why) => {
            let but = if plan.own.is_some() { " but that of the network" } else { "" };
            format!("no namespaces{but} ({})", escape(why.as_bytes(), 200))
        }
    };
    let home = match &plan.private_home {
        Some(PrivateHome { lasts: true, .. }) => ", a home of its own",
        Some(_) => ", a home of its own for this run",
        None => "",
    };
    let stores = plan.private_home.as_ref().and_then(|home| home.no_layers.as_deref());
    let stores = stores.map(|why| format!(" with read-only packages ({})", escape(why.as_bytes(), 200)));
    let stores = stores.unwrap_or_default();
    format!(
        "profile '{profile}', {workspace}, {paths}, {namespaces}{home}{stores}, {}{limits}",
        network(plan)
    )
}

/// What a file in the workspace that looks like a profile does: nothing. Whoever wrote the project would choose by what
/// rules it is run.
pub fn unused_profile(plan: &Plan, request: &Request) -> Option<String> {
    const NAME: &str = ".sbx.json";
    let file = plan.workspace.as_ref()?.join(NAME);
    let named = || request.profile.as_ref().is_some_and(|name| plan.directory.join(name) == file);
    (file.is_file() && !named()).then(|| {
        format!(
            "'{}' is not read: a project does not choose its own rules; if you trust it, name it: --profile ./{NAME}",
            escape(file.as_os_str().as_bytes(), 400)
        )
    })
}

fn network(plan: &Plan) -> String {
    let shown = plan.publish.iter().map(|pair| format!("{} as {}", pair.inside, pair.here));
    match shown.collect::<Vec<_>>() {
        none if none.is_empty() => reached(plan),
        shown => format!("{}, which shows its ports {} on this machine", reached(plan), shown.join(", ")),
    }
}

fn reached(plan: &Plan) -> String {
    let list = |ports: &[u16]| match ports {
        [] => "none".to_string(),
        ports => ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "),
    };
    match plan.network.mode {
        NetworkMode::None | NetworkMode::Loopback => match &plan.network.lacks {
            Some(why) => format!("no network ({})", escape(why.as_bytes(), 200)),
            None => "no network".to_string(),
        },
        NetworkMode::Private if !plan.network.namespace => "the host's network, to be listed".to_string(),
        NetworkMode::Host => "the host's network".to_string(),
        _ if let Some(hosts) = plan.network.hosts.as_deref() => {
            let rules: Vec<String> = hosts.rules.allow.iter().map(ToString::to_string).collect();
            let ports: Vec<String> = hosts.doors.host_ports.iter().map(ToString::to_string).collect();
            let rules = if rules.is_empty() { "no host".to_string() } else { rules.join(", ") };
            let ports = match ports.is_empty() {
                true => String::new(),
                false => format!(", and to ports {} of this machine", ports.join(", ")),
            };
            let front = match plan.network.proxy() {
                None => "a network of its own with ways to",
                Some(_) => "by proxy to",
            };
            format!("{front} {rules}{ports}")
        }
        NetworkMode::Private => "a network of its own".to_string(),
        NetworkMode::Ports => format!(
            "network to TCP ports {}, listening on {}",
            list(&plan.network.connect),
            list(&plan.network.bind)
        ),
    }
}
