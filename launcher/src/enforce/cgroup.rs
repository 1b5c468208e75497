//! A control group (cgroups(7), version 2) for one run, if this user may make one: below the group that we
//! are in, or beside it. Trying tells which of the two works, if any. Existing groups are not changed. The
//! controllers must be enabled already, as they are for a user's services and scopes under systemd.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::plan::GroupLimits;
use crate::sys::{memory, process};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where version 2 is mounted: alone, or next to version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// A control group of our own, removed when dropped.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// The limits that it enforces.
    pub limits: GroupLimits,
}

/// A group with the wanted limits, or some of them; `None` if there can be none.
pub fn create(wanted: GroupLimits) -> Option<Group> {
    let name = memory::random_name(&format!("sbx-{}-", process::id())).ok()?;
    own_places().into_iter().map(|place| place.join(&name)).find_map(|path| {
        std::fs::create_dir(&path).ok()?;
        let mut group = Group { path, limits: GroupLimits::default() };
        group.limits = limit(&group.path, wanted);
        (group.limits != GroupLimits::default() && process::succeeds_in_child(&|| group.enter().is_ok()))
            .then_some(group)
    })
}

/// The directories in which a group could be made for this process: that of its own group, and the one above.
pub fn own_places() -> Vec<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    MOUNTS.iter().flat_map(|mount| places(Path::new(mount), &own)).collect()
}

fn places(mount: &Path, own: &str) -> Vec<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(path) = path.filter(|path| !Path::new(path).components().any(|part| part.as_os_str() == ".."))
    else {
        return Vec::new();
    };
    let here = mount.join(path);
    let above = here.parent().filter(|above| above.starts_with(mount)).map(Path::to_path_buf);
    [here].into_iter().chain(above).filter(|place| place.join("cgroup.procs").exists()).collect()
}

/// Sets the limits that can be set, and returns them.
fn limit(path: &Path, wanted: GroupLimits) -> GroupLimits {
    let set = |file: &str, value: &str| put(path, file, value).is_ok();
    let processes = wanted.processes.filter(|count| set("pids.max", &count.to_string()));
    // Without a limit for swap, the limit for memory would have no effect.
    let memory = wanted
        .memory
        .filter(|bytes| set("memory.max", &bytes.to_string()) && set("memory.swap.max", "0"))
        .filter(|_| set("memory.oom.group", "1"));
    GroupLimits { processes, memory }
}

fn put(path: &Path, file: &str, value: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(path.join(file))?.write_all(value.as_bytes())
}

impl Group {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cgroup.procs file: a process that writes "0" to it enters the group.
    pub fn procs(&self) -> Result<OwnedFd, EnforceError> {
        let opened = OpenOptions::new().write(true).open(self.path.join("cgroup.procs"));
        opened.map(OwnedFd::from).step("open the control group")
    }

    fn enter(&self) -> std::io::Result<()> {
        put(&self.path, "cgroup.procs", "0")
    }

    /// Whether the kernel has killed the run because of its memory.
    pub fn ran_out_of_memory(&self) -> bool {
        let events = std::fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        self.limits.memory.is_some() && has_killed(&events)
    }
}

fn has_killed(events: &str) -> bool {
    let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.is_some_and(|count| count.trim() != "0")
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that have just died are in it for a moment longer.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(PathBuf);

    impl Fake {
        fn with(files: &[&str]) -> Fake {
            let random = memory::random().unwrap();
            let dir = std::env::temp_dir().join(format!("sbx-group-{}-{random:x}", process::id()));
            std::fs::create_dir_all(dir.join("user/app")).unwrap();
            files.iter().for_each(|file| std::fs::write(dir.join(file), "").unwrap());
            Fake(dir)
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const BOTH: GroupLimits = GroupLimits { processes: Some(20), memory: Some(1 << 20) };

    #[test]
    fn groups_are_made_at_home_or_next_door() {
        let fake = Fake::with(&["cgroup.procs", "user/cgroup.procs", "user/app/cgroup.procs"]);
        let dir = &fake.0;
        let found = places(dir, "4:memory:/x\n0::/user/app\n");
        assert_eq!(found, [dir.join("user/app"), dir.join("user")]);
        assert_eq!(places(dir, "0::/\n"), std::slice::from_ref(dir));
        for none in ["", "4:memory:/x\n", "0::/../..\n", "0::/missing/too\n"] {
            assert!(places(dir, none).is_empty(), "{none:?}");
        }
    }

    #[test]
    fn what_has_no_file_is_not_limited() {
        let fake = Fake::with(&["pids.max"]);
        assert_eq!(limit(&fake.0, BOTH), GroupLimits { processes: Some(20), memory: None });
        assert_eq!(std::fs::read_to_string(fake.0.join("pids.max")).unwrap(), "20");
        assert!(!fake.0.join("memory.max").exists());
        let fake = Fake::with(&["memory.max", "memory.swap.max", "memory.oom.group"]);
        assert_eq!(limit(&fake.0, BOTH), GroupLimits { processes: None, memory: Some(1 << 20) });
        let values = ["memory.max", "memory.swap.max", "memory.oom.group"]
            .map(|file| std::fs::read_to_string(fake.0.join(file)).unwrap());
        assert_eq!(values, ["1048576", "0", "1"]);
        let fake = Fake::with(&["memory.max"]);
        assert_eq!(limit(&fake.0, BOTH), GroupLimits::default());
    }

    #[test]
    fn a_kill_for_memory_is_told() {
        assert!(has_killed("low 0\noom 3\noom_kill 2\n"));
        assert!(!has_killed("low 0\noom 3\noom_kill 0\n"));
        assert!(!has_killed(""));
    }
}
