//! Handlers of notified system calls, one file each ([`Notified`](crate::plan::notified::Notified) has
//! their order).

pub mod attributes;
pub mod connect;
pub mod datagram_pairs;
pub mod domains;
pub mod git_config;
pub mod links;
pub mod listening;
pub mod null_device;
pub mod ports;
pub mod refused_paths;
pub mod signal_driven;
pub mod task_limit;
pub mod told;
