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

/// A process and its descendants, a line each, with what the kernel says of each: for the message of a test that waited
/// in vain.
pub fn tree(root: i32) -> String {
    let of = |pid: i32, file: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.trim().replace('\n', " < ")
    };
    let stat =
        |pid: i32| of(pid, "stat").rsplit_once(") ").map(|(_, rest)| rest.to_string()).unwrap_or_default();
    let mut lines = String::new();
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        let (state, at) = (stat(pid), of(pid, "wchan"));
        let state: Vec<&str> = state.split(' ').take(6).collect();
        let state = state.join(" ");
        lines += &format!("{} [{state}] {at} {} {}\n", describe(pid), of(pid, "syscall"), of(pid, "stack"));
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let parent = pid.to_string();
        left.extend(all.filter(|other| stat(*other).split(' ').nth(1) == Some(&parent)));
    }
    lines
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
