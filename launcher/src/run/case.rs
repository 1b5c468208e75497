//! Who answers the notified calls of a run.

use crate::enforce::presence::Presence;
use crate::enforce::steps;
use crate::explain::hint::Explainer;
use crate::explain::infer::Domain;
use crate::explain::servers;
use crate::host::landlock::Version;
use crate::plan::calls::Calls;
use crate::plan::namespaces::Layout;
use crate::plan::notified::{Kinds, Notified};
use crate::plan::rules::PathRule;
use crate::plan::variables::Loudness;
use crate::plan::{OnViolation, Plan, network};
use crate::profile::NetworkMode;
use crate::supervise::Watch;
use crate::supervise::dispatch::{Dispatcher, Table};
use crate::supervise::handlers::attributes::Attributes;
use crate::supervise::handlers::connect::{Connected, Connections};
use crate::supervise::handlers::datagram_pairs::DatagramPairs;
use crate::supervise::handlers::domains::{Domains, Marks};
use crate::supervise::handlers::git_config::Configs;
use crate::supervise::handlers::links::Links;
use crate::supervise::handlers::listening::{Listening, May, Unreached};
use crate::supervise::handlers::null_device::NullDevice;
use crate::supervise::handlers::ports::Ports;
use crate::supervise::handlers::refused_paths::{Refusals, RefusedPaths, Whose};
use crate::supervise::handlers::signal_driven::SignalDriven;
use crate::supervise::handlers::task_limit::TaskLimiter;
use crate::supervise::handlers::told::Told;
use crate::supervise::hosts::Hosts;
use crate::supervise::judge::{Judge, PolicyProgram};
use crate::supervise::violation::Violations;
use crate::sys::descriptor;
use crate::sys::file::{self, Identity};
use crate::sys::privilege::{CapabilitySet, Limit};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

/// What a network of the run's own is known by, and what leads out of it.
pub struct Ways {
    /// Its cookie.
    pub network: Option<u64>,
    /// The hosts outside, if rules name some.
    pub hosts: Option<Rc<Hosts>>,
}

/// What answering notified calls takes of a plan, which the start uses up.
pub struct Case {
    explainer: Explainer,
    layout: Option<Rc<Layout>>,
    mode: NetworkMode,
    /// The TCP ports that may be listened on.
    bind: Vec<u16>,
    /// Whether it is for the network alone that the filter refuses listen(2).
    network_refuses: bool,
    own_network: bool,
    /// The ports of it that are shown on this machine.
    published: Vec<u16>,
    /// Whether somebody watches, who may want to reach a server.
    is_watched: bool,
    /// Who waits for connections already, where the run has this machine's network for the sake of log mode.
    others: Vec<SocketAddr>,
    /// The hosts outside that it reaches.
    pub hosts: Option<Rc<network::Hosts>>,
    /// Action on a violation.
    pub on_violation: OnViolation,
    /// Whether refused paths are named although a program does without them.
    names_at_once: bool,
    notified: Kinds,
    /// How many tasks there may be, where the supervisor counts them.
    counted: Option<u64>,
    sockets: Vec<PathBuf>,
    calls: Rc<Calls>,
    program: Option<PolicyProgram>,
    domain: Domain,
    /// The capabilities that the user has outside.
    outside: CapabilitySet,
    /// What the command gets of ours, where that counts.
    handed: Vec<Identity>,
    null_device: NullDevice,
}

impl Case {
    /// Of a plan.
    pub fn of(plan: &Plan, layout: Option<Rc<Layout>>) -> Case {
        let logs = plan.on_violation == OnViolation::Log;
        let lists = logs && plan.network.mode == NetworkMode::Private && !plan.network.namespace;
        let notified = plan.notified();
        let looks = notified.iter().any(Notified::notifies_allowed) || plan.calls.notes();
        // Where such calls are notified for their paths, they are no violations.
        let notes_all = plan.watch_paths || notified.has(Notified::Memory);
        let unsealed = (notes_all && !logs).then(|| plan.on_violation.value());
        let scoped = plan.paths.is_some() && plan.landlock >= Version::SCOPES && layout.is_none();
        Case {
            explainer: Explainer::of_command(plan),
            mode: plan.network.mode,
            bind: plan.network.bind.clone(),
            network_refuses: plan.calls.network_refuses_listening(),
            own_network: plan.network.namespace,
            published: plan.publish.iter().map(|pair| pair.inside).collect(),
            is_watched: match plan.loudness {
                Loudness::Quiet => false,
                Loudness::Verbose => true,
                Loudness::Normal => descriptor::is_terminal(libc::STDERR_FILENO),
            },
            others: if lists { servers::all() } else { Vec::new() },
            hosts: plan.network.hosts.clone(),
            on_violation: plan.on_violation,
            names_at_once: logs || plan.loudness == Loudness::Verbose,
            notified,
            counted: plan.limits.counted,
            sockets: plan.sockets.clone(),
            calls: plan.calls.clone(),
            program: looks.then(|| PolicyProgram::new(plan.calls.clone(), unsealed)),
            // In log mode the ports are not restricted.
            domain: Domain {
                version: plan.landlock,
                network: steps::logged(&plan.network, logs),
                memory: plan.limits.resource(Limit::Data),
                files: plan.limits.resource(Limit::OpenFiles),
                scoped,
            },
            outside: plan.outside,
            handed: if notified.has(Notified::SignalDriven) { handed_over(plan) } else { Vec::new() },
            null_device: NullDevice::new(plan.paths.as_deref(), plan.denied.clone()),
            layout,
        }
    }

    /// Who answers notified calls, now that the command has started.
    pub fn dispatcher(
        self,
        granted: Vec<PathRule>,
        watch: &Watch,
        presence: Option<Rc<Presence>>,
        ways: Ways,
        violations: Violations,
    ) -> Dispatcher {
        let table = self.handlers(granted.into(), watch, presence, &ways);
        let judge = Judge {
            on_violation: self.on_violation,
            program: self.program,
            network: self.mode,
            explainer: self.explainer,
            violations,
            unanswered: BTreeSet::new(),
        };
        Dispatcher::new(judge, table)
    }

    /// The handlers of the kinds of calls that the run has.
    fn handlers(
        &self,
        granted: Rc<[PathRule]>,
        watch: &Watch,
        presence: Option<Rc<Presence>>,
        ways: &Ways,
    ) -> Table {
        let mut table = Table::default();
        let marks = Rc::new(Marks::none());
        for kind in self.notified.iter() {
            let (granted, layout, marks) = (granted.clone(), self.layout.clone(), marks.clone());
            match kind {
                Notified::Tasks => {
                    let limiter = self.counted.map(|count| TaskLimiter::new(watch.root(), count));
                    limiter.into_iter().for_each(|limiter| table.register(kind, limiter));
                }
                Notified::Domains => table.register(kind, Domains(marks)),
                Notified::GitConfig => {
                    let configs = configs_of(watch, layout.as_ref(), presence.clone(), marks);
                    configs.into_iter().for_each(|configs| table.register(kind, configs));
                }
                Notified::Listen => {
                    let own_network = self.own_network.then_some(ways.network);
                    let may = May::of(self.mode, own_network, &self.bind);
                    let is_told = self.own_network && self.is_watched;
                    let unreached = is_told.then(|| Unreached::beside(self.published.clone()));
                    table.register(kind, Listening { may, network_refuses: self.network_refuses, unreached });
                }
                Notified::Connect => {
                    let named = self.sockets.clone();
                    let own_network = self.own_network.then_some(ways.network);
                    let network = Connected::of(self.mode, own_network);
                    let domain = self.domain.clone();
                    let (network, hosts) = ((network, self.others.clone()), ways.hosts.clone());
                    let connections =
                        Connections::new((granted, named), layout, network, (domain, marks), hosts);
                    table.register(kind, connections);
                }
                Notified::DatagramPairs => {
                    let maker = match watch {
                        Watch::Reaper(reaper) => reaper.pairs().cloned(),
                        Watch::Direct(_) => None,
                    };
                    table.register(kind, DatagramPairs::new(self.calls.clone(), maker));
                }
                Notified::NullDevice => table.register(kind, self.null_device.clone()),
                Notified::SignalDriven => {
                    table.register(kind, SignalDriven::new(self.calls.clone(), self.handed.clone()))
                }
                Notified::Attributes => table.register(kind, Attributes { granted, layout }),
                Notified::Ports => {
                    let (domain, outside) = (self.domain.clone(), self.outside);
                    table.register(kind, Ports(RefusedPaths { granted, layout, domain, outside }));
                }
                Notified::Links => {
                    table.register(kind, Links::new(granted, layout, self.calls.clone(), marks))
                }
                Notified::Told => {
                    let (domain, outside) = (self.domain.clone(), self.outside);
                    let paths = RefusedPaths { granted, layout, domain, outside };
                    let all = self.notified.has(Notified::RefusedPaths);
                    table.register(kind, Told::new(paths, self.calls.clone(), all));
                }
                // Refused paths are looked at by the same handler.
                Notified::Memory if self.notified.has(Notified::RefusedPaths) => {}
                Notified::Memory | Notified::StaticPrograms | Notified::RefusedPaths => {
                    let (domain, outside) = (self.domain.clone(), self.outside);
                    let paths = RefusedPaths { granted, layout, domain, outside };
                    let whose = match kind {
                        Notified::StaticPrograms => Whose::StaticCode,
                        _ => Whose::All,
                    };
                    table.register(kind, Refusals::new(paths, whose, self.names_at_once));
                }
            }
        }
        table
    }
}

/// The configurations of git that may be replaced.
fn configs_of(
    watch: &Watch,
    layout: Option<&Rc<Layout>>,
    presence: Option<Rc<Presence>>,
    marks: Rc<Marks>,
) -> Option<Configs> {
    let Watch::Reaper(reaper) = watch else { return None };
    Some(Configs::new(layout?.clone(), presence?, marks, reaper.pid))
}

/// The files that the command gets as standard input, output and error, and those that are passed on.
fn handed_over(plan: &Plan) -> Vec<Identity> {
    let numbers = (0..3).chain(plan.pass.iter().copied());
    numbers.filter_map(|number| file::identity(descriptor::by_number(number)).ok()).collect()
}
