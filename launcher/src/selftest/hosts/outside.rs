//! A machine of the self-test's own and an outside behind it: two network namespaces that a pair of interfaces joins.
//!
//! Without the right to make them there is a user namespace around them, as there is around a run.

use crate::enforce::scratch::Scratch;
use crate::error::Refusal;
use crate::selftest::error::SelfTestError;
use crate::selftest::hosts::SERVERS;
use crate::selftest::hosts::server::{Arrived, Sockets};
use crate::sys::process::{self, Pid};
use crate::sys::{OfCall, SyscallError, descriptor, mount, namespace, privilege, route, socket};
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long it may take to make it, and to answer.
const LONGEST: Duration = Duration::from_secs(5);
/// What is on its way arrives in this time.
const MOMENT: Duration = Duration::from_millis(20);
/// The addresses of both ends.
const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
/// Where name servers are looked up.
const CONFIGURATION: &str = "/etc/resolv.conf";

/// The process that has made them, and serves the outside.
pub struct Outside {
    process: Pid,
    channel: OwnedFd,
    /// The user namespace around the machine, if there is one; its network, and its mounts.
    user: Option<OwnedFd>,
    network: OwnedFd,
    mounts: OwnedFd,
    /// What its mounts are made of.
    _scratch: Scratch,
}

impl Outside {
    /// Makes the machine and the outside, which is empty as yet.
    pub fn begin() -> Result<Outside, Refusal> {
        let scratch = Scratch::create(std::env::var_os("TMPDIR").as_deref())?;
        let configuration = scratch.path().join("resolv.conf");
        fs::write(&configuration, format!("nameserver {}\n", SERVERS[0])).map_err(SelfTestError::Files)?;
        let failed = |failed| SelfTestError::Call("make an outside for", failed);
        let [channel, theirs] = socket::packet_pair().map_err(failed)?;
        let needs_user = !privilege::is_administrator();
        let process = process::fork().map_err(failed)?;
        if process == 0 {
            drop(channel);
            let _ = process::die_with_parent(libc::SIGKILL);
            process::exit_now(match serve(&theirs, needs_user, &configuration) {
                Ok(()) => 0,
                Err(failed) => {
                    // In the place of descriptors, and then in words.
                    let _ = descriptor::write_all(theirs.as_raw_fd(), b"x");
                    let _ = descriptor::write_all(theirs.as_raw_fd(), failed.to_string().as_bytes());
                    1
                }
            });
        }
        drop(theirs);
        let mut outside = Outside {
            process,
            user: None,
            network: channel.try_clone().of("dup").map_err(failed)?,
            mounts: channel.try_clone().of("dup").map_err(failed)?,
            channel,
            _scratch: scratch,
        };
        let [user, network] = outside.descriptors()?;
        let [mounts, _] = outside.descriptors()?;
        outside.user = needs_user.then_some(user);
        (outside.network, outside.mounts) = (network, mounts);
        Ok(outside)
    }

    /// Two of its descriptors, or what it says instead.
    fn descriptors(&self) -> Result<[OwnedFd; 2], SelfTestError> {
        let failed = |failed| SelfTestError::Call("make an outside for", failed);
        if !descriptor::readable(self.channel.as_raw_fd(), LONGEST) {
            return Err(SelfTestError::TooLong);
        }
        let received = socket::receive_descriptors(self.channel.as_fd()).map_err(failed)?;
        received.ok_or_else(|| {
            let mut text = [0; 300];
            let count = descriptor::read(self.channel.as_raw_fd(), &mut text).unwrap_or(0);
            let text = String::from_utf8_lossy(text.get(..count).unwrap_or_default());
            SelfTestError::NoOutside(text.into_owned())
        })
    }

    /// Moves the calling process onto the machine, as the user that it is.
    pub fn enter(&self) -> Result<(), SyscallError> {
        if let Some(user) = &self.user {
            namespace::enter(user.as_fd(), libc::CLONE_NEWUSER)?;
        }
        // The same directories are there.
        let directory = std::env::current_dir().of("getcwd")?;
        namespace::enter(self.mounts.as_fd(), libc::CLONE_NEWNS)?;
        std::env::set_current_dir(directory).of("chdir")?;
        namespace::enter(self.network.as_fd(), libc::CLONE_NEWNET)?;
        // In a user namespace it would have capabilities that it does not have outside.
        match self.user {
            Some(_) => privilege::drop_own_capabilities(),
            None => Ok(()),
        }
    }

    /// What has arrived since the last time.
    pub fn arrived(&self) -> Result<Vec<&'static str>, SelfTestError> {
        let failed = |failed| SelfTestError::Call("look outside for", failed);
        std::thread::sleep(MOMENT);
        descriptor::write_all(self.channel.as_raw_fd(), b"?").map_err(failed)?;
        let mut bits = [0; 4];
        if descriptor::readable(self.channel.as_raw_fd(), LONGEST) {
            descriptor::read(self.channel.as_raw_fd(), &mut bits).map_err(failed)?;
            return Ok(Arrived::names(u32::from_ne_bytes(bits)).collect());
        }
        Err(SelfTestError::TooLong)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        process::signal(self.process, libc::SIGKILL);
        process::wait(Some(self.process), true, false);
    }
}

/// Makes both networks, sends descriptors of the machine's, and serves until nobody asks any more.
fn serve(channel: &OwnedFd, needs_user: bool, configuration: &Path) -> Result<(), SyscallError> {
    let open = |path: &'static str| File::open(path).of(path).map(OwnedFd::from);
    if needs_user {
        let identity = namespace::identity();
        namespace::unshare(libc::CLONE_NEWUSER)?;
        namespace::keep_identity(identity)?;
    }
    namespace::unshare(libc::CLONE_NEWNS)?;
    mount::keep_apart()?;
    mount::bind(configuration, Path::new(CONFIGURATION))?;
    namespace::new_network()?;
    let machine = open("/proc/self/ns/net")?;
    namespace::new_network()?;
    namespace::loopback_up()?;
    route::make_all_local()?;
    route::add_pair(machine.as_fd())?;
    route::start_end(ENDS[0])?;
    route::lead_out(Some(ENDS[1]))?;
    // Sockets stay in the network that they are made in.
    let outside = Sockets::of_outside().of("bind")?;
    namespace::enter(machine.as_fd(), libc::CLONE_NEWNET)?;
    namespace::loopback_up()?;
    route::start_end(ENDS[1])?;
    route::lead_out(None)?;
    let on_machine = Sockets::of_machine().of("bind")?;
    let (user, mounts) = (open("/proc/self/ns/user")?, open("/proc/self/ns/mnt")?);
    let arrived = Arc::new(Arrived::default());
    outside.serve(&arrived);
    on_machine.serve(&arrived);
    socket::send_descriptors(channel.as_fd(), &[user.as_fd(), machine.as_fd()])?;
    socket::send_descriptors(channel.as_fd(), &[mounts.as_fd(), mounts.as_fd()])?;
    let mut byte = [0];
    while descriptor::read(channel.as_raw_fd(), &mut byte).is_ok_and(|count| count > 0) {
        descriptor::write_all(channel.as_raw_fd(), &arrived.take().to_ne_bytes())?;
    }
    Ok(())
}
