//! Sockets that are to wait for connections (listen(2)).
//!
//! A socket keeps the network that it was made in, and a program of another run may have handed it over. One that is
//! bound to no port gets some. Landlock is asked about neither, so the supervisor looks at the socket. To let the
//! caller go on then would not do: another thread can put another socket in its place. So the supervisor has that very
//! socket wait. Who connects to a UNIX socket finds the supervisor's process number in its credentials (SO_PEERCRED).

use crate::explain::{caller, servers};
use crate::profile::NetworkMode;
use crate::supervise::dispatch::{Flow, Handler, Step};
use crate::supervise::handlers::connect::leads::{Network, is_of_network};
use crate::supervise::handlers::connect::{Asked, asked, take};
use crate::supervise::judge::{DecidedBy, Judge, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::seccomp::Answer;
use crate::sys::{SyscallError, socket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a server waits for connections that somebody may want to reach from outside.
const LONG: Duration = Duration::from_secs(2);
/// From here on the kernel chooses ports (`ip_local_port_range`, ip(7)): tests take those.
const CHOSEN: u16 = 32768;

/// Has sockets wait that may.
pub struct Listening {
    /// Which may.
    pub may: May,
    /// Whether it is for the network alone that the filter refuses the call. What else refuses it decides.
    pub network_refuses: bool,
    /// The server of which somebody is to be told that this machine does not reach it.
    pub unreached: Option<Unreached>,
}

/// The first server of a run that waits for long at a port which is not shown on this machine.
#[derive(Debug, Default)]
pub struct Unreached {
    /// The ports that are shown.
    published: Vec<u16>,
    /// Its port, and when it is told of.
    found: Option<(u16, Option<Instant>)>,
}

impl Unreached {
    /// In a run that shows these ports.
    pub fn beside(published: Vec<u16>) -> Unreached {
        Unreached { published, found: None }
    }

    fn waits_at(&mut self, port: u16) {
        if self.found.is_none() && port < CHOSEN && !self.published.contains(&port) {
            self.found = Some((port, Some(Instant::now() + LONG)));
        }
    }

    fn due(&self) -> Option<Instant> {
        self.found.and_then(|(_, due)| due)
    }

    fn line(&mut self) -> Option<String> {
        let (port, due) = self.found.as_mut()?;
        due.take_if(|due| *due <= Instant::now())?;
        Some(format!(
            "port {port} is in the run's own network, where this machine does not reach it; show it here with \
             --publish {port}"
        ))
    }
}

/// Which sockets may wait for connections, beside those of UNIX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum May {
    /// None.
    No,
    /// Those of the run's own network, which has this cookie where the kernel has such.
    OfNetwork(Option<u64>),
    /// Those that are bound to one of these TCP ports.
    AtPorts(Vec<u16>),
}

/// What somebody asks for.
pub struct Wish {
    socket: Asked,
    backlog: i32,
    /// The network of the caller.
    network: Option<Network>,
    told: Told,
}

impl May {
    /// By the network of a run. `own`: that the run has one of its own, with its cookie.
    pub fn of(mode: NetworkMode, own: Option<Option<u64>>, ports: &[u16]) -> May {
        match own {
            Some(cookie) => May::OfNetwork(cookie),
            None if mode == NetworkMode::Ports => May::AtPorts(ports.to_vec()),
            None => May::No,
        }
    }
}

impl Handler for Listening {
    type Copy = Wish;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Wish> {
        let NotifiedCall { notification: call, verdict, .. } = waiting.call;
        if *verdict == Verdict::Violation && !self.network_refuses {
            return None;
        }
        let network = caller::network(&call.pid.to_string()).ok();
        Some(Wish { socket: asked(waiting), backlog: call.args[1] as i32, network, told: waiting.told() })
    }

    fn act(&mut self, wish: Wish, call: &NotifiedCall, judge: &mut Judge) -> Result<Step, SyscallError> {
        let Wish { socket, backlog, network, told } = wish;
        let (is_allowed, number) = (call.verdict != Verdict::Violation, socket.1);
        let socket = match take(socket) {
            Some(Ok(socket)) => Some(socket),
            Some(Err(failed)) if failed.errno() == libc::EBADF => {
                return Ok(Step::Answer(error(libc::EBADF)));
            }
            // A sandbox around this one keeps everybody from looking. Without a network, UNIX sockets alone may wait.
            Some(Err(_))
                if is_allowed
                    && !socket::can_take()
                    && (self.may != May::No || servers::is_unix(call.notification.pid, number)) =>
            {
                return Ok(Step::Answer(Answer::Continue));
            }
            Some(Err(_)) | None => None,
        };
        if let Some(socket) = socket.filter(|socket| self.may_wait(socket, network)) {
            let waits = socket::listen(&socket, backlog);
            if let (Ok(()), Some(unreached), Some(at)) =
                (&waits, &mut self.unreached, socket::local_address(&socket))
            {
                unreached.waits_at(at.port());
            }
            return Ok(Step::Answer(waits.map_or_else(error, |()| Answer::Done)));
        }
        if !is_allowed {
            return Ok(Step::Next);
        }
        let (fate, step) = judge.refusal(libc::EACCES);
        let reason = judge.explainer.waiting_reason();
        judge.say(fate, call, &told, reason, DecidedBy::Filter);
        Ok(step)
    }

    fn pause(&self) -> Option<Duration> {
        let due = self.unreached.as_ref()?.due()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    fn retry(&mut self, _: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError> {
        if let Some(line) = self.unreached.as_mut().and_then(Unreached::line) {
            judge.violations.line(&line);
        }
        Ok(Flow::GoOn)
    }
}

impl Listening {
    /// Of a UNIX socket nobody outside learns by the network.
    fn may_wait(&self, socket: &OwnedFd, network: Option<Network>) -> bool {
        if !socket::is_of_network(socket.as_raw_fd()) {
            return true;
        }
        match &self.may {
            May::No => false,
            May::OfNetwork(cookie) => is_of_network(socket, (*cookie, network)),
            // Port 0 stands for one that the kernel chooses.
            May::AtPorts(ports) => socket::local_address(socket)
                .is_some_and(|at| at.port() != 0 && (ports.contains(&at.port()) || ports.contains(&0))),
        }
    }
}
