//! Finds processes by something unique in their command line.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A word that no other process has on its command line.
pub fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("sbx-marker-{}-{}-end", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes that have the marker as an argument, or inside one.
pub fn with_marker(marker: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(marker) && !is_zombie(*pid)
        })
        .collect()
}

/// A zombie has no rights and runs nothing; its parent has just not waited for it yet.
fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

/// Requires that no process with the marker is left, after a moment's grace.
#[track_caller]
pub fn none_left(marker: &str) {
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let left = with_marker(marker);
        if left.is_empty() {
            return;
        }
        if Instant::now() > deadline {
            let shown: Vec<String> = left.iter().map(|pid| describe(*pid)).collect();
            left.iter().for_each(|pid| crate::sys::kill(*pid, libc::SIGKILL));
            panic!("processes outlived the sandbox: {shown:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn describe(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Waits until `count` processes carry the marker.
#[track_caller]
pub fn wait_for(marker: &str, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while with_marker(marker).len() < count {
        assert!(Instant::now() < deadline, "fewer than {count} processes with {marker} appeared");
        std::thread::sleep(Duration::from_millis(2));
    }
}
