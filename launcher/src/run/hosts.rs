//! Starts the broker, the process that connects to the hosts that rules name.

use crate::broker::{self, Doors, Listener, Resolver, RunsEnd, Setup};
use crate::enforce::doors::{Door, Purpose};
use crate::error::{Refusal, cannot};
use crate::plan::network::{self, Route};
use crate::run::proxy;
use crate::supervise::brokers::Broker;
use crate::supervise::hosts::Hosts;
use crate::sys::route::Routes;
use crate::sys::{descriptor, process, socket};
use std::rc::Rc;

/// Starts it, with the sockets that the first process of the run has made. It is a copy of this process, so it begins
/// in the host's network, and confines itself.
pub fn start(
    plan: Rc<network::Hosts>,
    logs: bool,
    doors: &[Door],
    proxy: Option<proxy::Sockets>,
) -> Result<Rc<Hosts>, Refusal> {
    // As they are before the broker reads them.
    let files = broker::Files::of_host();
    let routes = Routes::open().map_err(cannot("ask which way packets to hosts go"))?;
    let [own, brokers] = socket::packet_pair().map_err(cannot("make a channel to the broker"))?;
    let pid = process::fork().map_err(cannot("start the broker"))?;
    if pid == 0 {
        drop(own);
        let (resolver, run) = (Resolver::of_host(), RunsEnd::Inside);
        let setup = Setup { rules: plan.rules.clone(), resolver, watches: logs, run, routes: Some(routes) };
        broker::serve(setup, all(doors, proxy), brokers);
    }
    // The ports of the proxy are this machine's: nobody else is to have one while programs are led there.
    let is_supervised = |route: &Route| matches!(route, Route::Proxy(proxy) if proxy.is_supervised);
    let kept = proxy.filter(|_| is_supervised(&plan.route)).map(proxy::Sockets::all).unwrap_or_default();
    let hosts = Hosts::new(plan, logs, doors, (Broker::new(own, pid), files), kept);
    // Nobody but the broker has the others now. If it ends, they end, and nobody is reached.
    drop(taken(doors));
    Ok(Rc::new(hosts))
}

/// Those that were made in the run's network, or those of a proxy.
fn all(doors: &[Door], proxy: Option<proxy::Sockets>) -> Doors {
    let mut all = taken(doors);
    if let Some(proxy::Sockets { listeners, questions }) = proxy {
        all.listeners.extend(listeners);
        all.questions.extend(questions);
    }
    all
}

/// The sockets behind the numbers.
fn taken(doors: &[Door]) -> Doors {
    let mut all = Doors { datagrams: Vec::new(), questions: Vec::new(), listeners: Vec::new() };
    for (purpose, number) in doors {
        let own = || descriptor::own(*number);
        let kind = match purpose {
            Purpose::Datagrams => {
                all.datagrams.push(own());
                continue;
            }
            Purpose::Questions => {
                all.questions.push(own());
                continue;
            }
            // Whoever shows the run's ports has them.
            Purpose::Network | Purpose::User => continue,
            Purpose::Port(port) => broker::Door::Rule(*port),
            Purpose::HostPort(port) => broker::Door::HostPort(*port),
        };
        all.listeners.push(Listener { kind, socket: own() });
    }
    all
}
