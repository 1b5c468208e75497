//! The kinds of runs that are tried.

/// One kind of run.
pub struct Scenario {
    /// Its name in the tables.
    pub name: &'static str,
    /// Flags of `sbx run`.
    pub flags: &'static [&'static str],
    /// Whether it is the library alone, without `sbx run`.
    pub alone: bool,
    /// Whether the library is loaded into the command.
    pub library: bool,
    /// Whether a report is written.
    pub report: bool,
}

const fn supervised(name: &'static str, flags: &'static [&'static str]) -> Scenario {
    Scenario { name, flags, alone: false, library: false, report: false }
}

/// The calls that the command needs to print its facts.
pub const CALLS: &str =
    "@default:brk:mmap:read:write:openat:close:fstat:newfstatat:pread64:mprotect:getdents64";

/// Every kind.
pub const SCENARIOS: &[Scenario] = &[
    supervised("minimal", &["-p", "minimal"]),
    supervised("minimal, in place", &["-p", "minimal", "--exec"]),
    supervised("network", &["-p", "network"]),
    supervised("workspace", &["-p", "workspace"]),
    Scenario {
        report: true,
        ..supervised("workspace, with a denied path and a report", &["-p", "workspace", "--deny", "denied"])
    },
    supervised("workspace, private network", &["-p", "workspace", "--net", "private"]),
    supervised("workspace, without namespaces", &["-p", "workspace", "--namespaces", "none"]),
    Scenario { report: true, ..supervised("read-only, with a report", &["-p", "read-only"]) },
    Scenario {
        library: true,
        ..supervised("custom, with the library", &["-p", "custom", "--allow-calls", CALLS])
    },
    supervised(
        "minimal, with limits",
        &["-p", "minimal", "-t", "30s", "--max-open-files", "200", "--max-output", "1M", "--max-cpu", "20s"],
    ),
    supervised(
        "workspace, with limits",
        &["-p", "workspace", "-t", "30s", "--max-memory", "1G", "--max-processes", "50"],
    ),
    Scenario { alone: true, library: true, ..supervised("the library alone", &[]) },
];
