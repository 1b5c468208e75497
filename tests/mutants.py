#!/usr/bin/env python3
"""Takes each protecting line out, one at a time, and looks whether a test turns red.

    make test-mutants            all of them
    tests/mutants.py NAME...     some

It works in a copy of the committed tree, below target/mutants. For each mutant `sbx` is built and the suites that should
notice are run against it; the library's own tests are run where the list says so. A mutant that no test notices is
printed as ALIVE, and the exit status is 1. The rows that `sbx test` calls broken are printed as well: it should notice
on its own whatever shows from inside.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "mutants"
TREE = PLACE / "tree"

# Name, file, what stands there, what is put in its place, and the tests that should notice: names in the suite, or
# "lib:NAME" for unit tests of the launcher, "policy" for those of the policy.
MUTANTS = [
    ("no-new-privs", "launcher/src/launch/child.rs",
     'privilege::no_new_privs().step("set no_new_privs")?;', "", ["hygiene::", "canaries::", "minimal::"]),
    ("capabilities", "launcher/src/launch/child.rs",
     'privilege::drop_capabilities().step("drop the capabilities")?;', "", ["hygiene::"]),
    ("bounding-set", "launcher/src/sys/privilege.rs",
     "let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };", "let result = 0;",
     ["hygiene::"]),
    ("keyring", "launcher/src/launch/child.rs",
     'privilege::new_session_keyring().step("leave the session keyring")?;', "", ["hygiene::", "canaries::"]),
    ("undumpable", "launcher/src/launch/mod.rs",
     'privilege::undumpable().map_err(cannot("protect the supervisor\'s memory"))?;', "", ["hygiene::", "canaries::"]),
    ("supervisors-capabilities", "launcher/src/launch/mod.rs",
     'privilege::drop_capabilities().map_err(cannot("drop the supervisor\'s capabilities"))?;', "",
     ["supervisor::", "write::", "hygiene::"]),
    ("core-limit", "launcher/src/launch/limits.rs",
     "self.resources.push((Limit::Core, 0, 0));", "", ["hygiene::", "canaries::", "limits::"]),
    ("path-rules", "launcher/src/launch/child.rs",
     'landlock.restrict_self().step("put the path rules in force")?;', "let _ = landlock;", ["minimal::", "write::"]),
    ("tcp-ports", "launcher/src/launch/landlock.rs",
     "let tcp = version >= Version::TCP && network.handles_tcp();", "let tcp = false && network.handles_tcp();",
     ["network::"]),
    ("scopes", "launcher/src/launch/landlock.rs",
     "if version >= Version::SCOPES {", "if version > Version(99) {", ["hygiene::", "canaries::"]),
    ("devices", "launcher/src/launch/landlock.rs",
     "& !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)", "", ["workspace::", "write::", "canaries::"]),
    ("descriptors", "launcher/src/launch/child.rs",
     "descriptor::close_all_on_exec()?;", "", ["hygiene::", "canaries::"]),
    ("death-signal", "launcher/src/launch/child.rs",
     'process::die_with_parent(libc::SIGKILL).step("tie the command to its supervisor")?;', "", ["lifetime::"]),
    ("untie", "launcher/src/launch/guard.rs",
     "let tied = self.listens && !self.calls.starts_processes();", "let tied = false;", ["lifetime::", "canaries::"]),
    ("reaper-kills", "launcher/src/supervise/reaper.rs",
     "        if let Some(scope) = scope {\n            scope.signal_all", "        if limit > Duration::ZERO {\n            return;\n        }\n        if let Some(scope) = scope {\n            scope.signal_all",
     ["lifetime::", "timeouts::"]),
    ("orphans", "launcher/src/supervise/reaper.rs",
     ".and_then(|()| process::become_subreaper());", ";", ["lifetime::"]),
    ("guard", "launcher/src/launch/child.rs",
     "steps.guard.as_mut().map_or(Ok(()), |guard| install(guard, outcome))", "Ok(outcome.ready = steps.guard.is_none())",
     ["minimal::"]),
    ("refusals-continue", "launcher/src/supervise/judge.rs",
     "(Finding::Violation, OnViolation::Errno(number)) => (Answer::Error(number), Verdict::GoOn),",
     "(Finding::Violation, OnViolation::Errno(_)) => (Answer::Continue, Verdict::GoOn),", ["minimal::", "network::"]),
    ("kill-goes-on", "launcher/src/supervise/judge.rs",
     "(Answer::Error(EPERM), Verdict::EndRun)", "(Answer::Error(EPERM), Verdict::GoOn)", ["supervisor::", "report::"]),
    ("strict-unknown", "launcher/src/supervise/judge.rs",
     "            _ => Finding::Violation,\n        }\n    }\n\n    fn fate", "            _ => Finding::Allowed,\n        }\n    }\n\n    fn fate", ["log_mode::", "explain::", "write::"]),
    ("x32", "policy/src/program.rs",
     "add(X32_BIT, Entry::Return(source.violation()));", "add(X32_BIT, Entry::Return(bpf::RET_ALLOW));", ["policy"]),
    ("architecture", "policy/src/program.rs",
     "program.push(bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS));", "program.push(bpf::stmt(bpf::RET, bpf::RET_ALLOW));",
     ["policy"]),
    ("denials-win", "policy/src/rules.rs",
     "restricted(rules, number, row.deny, rules.refusal(&row), program);", "", ["policy"]),
    ("siblings", "launcher/src/launch/siblings.rs",
     "if !denied.iter().any(|d| is_below(d, &rule.path)) {", "if true {", ["workspace::", "command_line::"]),
    ("hooks-in-environment", "launcher/src/launch/environment.rs",
     "if wanted && !any(wishes.deny, &name) && !is_dangerous(&name) {", "if wanted && !any(wishes.deny, &name) {",
     ["hygiene::"]),
    ("secrets-in-environment", "launcher/src/launch/environment.rs",
     "if wanted && !any(wishes.deny, &name) && !is_dangerous(&name) {", "if wanted && !is_dangerous(&name) {",
     ["hygiene::"]),
    ("broker-everywhere", "launcher/src/supervise/broker.rs",
     "if !self.allows(&target.path) {", "if false {", ["network::", "workspace::", "supervisor::", "canaries::"]),
    ("broker-any-socket", "launcher/src/supervise/broker.rs",
     "Ok(socket) if socket::is_unix_stream(&socket) => {", "Ok(socket) => {", ["supervisor::", "network::", "workspace::"]),
    ("attributes-everywhere", "launcher/src/supervise/attributes.rs",
     "if !writable(granted, &place) {", "if false {", ["write::", "workspace::", "canaries::"]),
    ("attributes-set-id", "launcher/src/supervise/attributes.rs",
     "if mode & SET_ID != 0 {", "if false {", ["argument_tricks::", "canaries::"]),
    ("magic-links", "launcher/src/sys/descriptor.rs",
     "how.resolve = libc::RESOLVE_NO_MAGICLINKS;", "", ["supervisor::", "write::"]),
    ("links-out-of-the-workspace", "launcher/src/launch/files.rs",
     "Some(workspace) if tidy.starts_with(workspace) && !real.starts_with(workspace) => {", "Some(workspace) if tidy.starts_with(workspace) && workspace.as_os_str().is_empty() => {",
     ["workspace::", "write::", "bad_input::", "command_line::"]),
    ("home-as-workspace", "launcher/src/launch/files.rs",
     "if holds_home(&path) || shared {", "if shared {", ["workspace::", "command_line::", "bad_input::"]),
    ("unix-with-network", "launcher/src/launch/resolve.rs",
     'revoke(rules, "socket", &["unix", "unix-stream"]);', "", ["network::"]),
    ("fast-open", "launcher/src/launch/resolve.rs",
     '("sendto", Mode::Ports) => Some("connected"),', "", ["argument_tricks::", "network::"]),
    ("static-blocked", "launcher/src/launch/treatment.rs",
     "StaticMode::Block => Err(Refusal::with_code(", "StaticMode::Block if !name.is_empty() => Ok(None),\n                StaticMode::Block => Err(Refusal::with_code(", ["static_programs::"]),
    ("one-exec", "launcher/src/launch/token.rs",
     "let conditions = [(0, &self.path), (1, &self.arguments), (2, &self.environment)].map(pointer);",
     "let conditions = [(0, &self.path)].map(pointer).map(|c| Condition { op: Op::Ne, value: 0, ..c });", ["never_unconfined::", "minimal::"]),
    ("scratch-mode", "launcher/src/launch/scratch.rs",
     "DirBuilder::new().mode(0o700).create(&path)", "DirBuilder::new().mode(0o755).create(&path)", ["hygiene::", "lib:scratch"]),
    ("scratch-removed", "launcher/src/launch/scratch.rs",
     "        remove(&self.path);\n    }\n}", "    }\n}", ["hygiene::", "lifetime::", "canaries::"]),
    ("shim-twice", "shim/src/lib.rs",
     "if let Some(name) = own.into_iter().find(|name| environment.is_twice(name)) {",
     "if let Some(name) = own.into_iter().find(|name| false && environment.is_twice(name)) {", ["env_only::"]),
    ("shim-landlock-variables", "shim/src/lib.rs",
     "LANDLOCK.into_iter().find(|name| environment.get(name).is_some())", "LANDLOCK.into_iter().find(|_| false)", ["env_only::"]),
    ("timeout-kills", "launcher/src/supervise/deadline.rs",
     "                self.kill(now);\n                Some(Act::Kill)", "                self.kill(now);\n                None", ["timeouts::"]),
    ("output-cap", "launcher/src/supervise/output/kept.rs",
     "let head = cap / 2;", "let head = cap.saturating_mul(2);", ["output_limit::", "lib:kept"]),
    ("task-count", "launcher/src/supervise/census.rs",
     "Room::Soon | Room::No => seccomp::answer(listener, held.id, Answer::Error(EAGAIN)),",
     "Room::Soon | Room::No => seccomp::answer(listener, held.id, Answer::Continue),", ["limits::"]),
    ("memory-watch", "launcher/src/supervise/memory.rs",
     "if now < self.next {", "if true {", ["limits::", "lib:memory"]),
    ("report-link", "launcher/src/sys/file.rs",
     "        | libc::O_NOFOLLOW\n", "", ["report::"]),
    ("verify", "launcher/src/launch/mod.rs",
     "        canary::verify(flags)?;\n", "        let _ = canary::verify(flags);\n", ["canaries::"]),
    ("quiet-refusal-in-home", "launcher/src/profile/search.rs",
     "(Some(_), Some(file)) => Err(format!(", "(Some(text), Some(_)) if !text.is_empty() => Ok(Found { source: Source::BuiltIn, text }),\n        (Some(_), Some(file)) => Err(format!(", ["profiles"]),
]


def run(command, log, **more):
    with open(log, "ab") as out:
        return subprocess.run(command, stdout=out, stderr=out, cwd=TREE, **more).returncode


def prepare():
    PLACE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
    if not TREE.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(TREE)], check=True)
    subprocess.run(["git", "fetch", "-q", "origin", "HEAD"], cwd=TREE, check=True)
    subprocess.run(["git", "reset", "-q", "--hard", "FETCH_HEAD"], cwd=TREE, check=True)


def notices(tests, environment, log):
    """The first of the tests that fails, if any does."""
    suite = [name for name in tests if name.endswith("::")]
    groups = [["cargo", "test", "-q", "-p", "sbx-tests", "--test", "suite", "--", *suite]] if suite else []
    for name in tests:
        if name == "policy":
            groups.append(["cargo", "test", "-q", "-p", "sbx-policy"])
        elif name == "profiles":
            groups.append(["cargo", "test", "-q", "-p", "sbx", "--test", "profiles"])
        elif name.startswith("lib:"):
            groups.append(["cargo", "test", "-q", "-p", "sbx", "--lib", name[4:]])
    for command in groups:
        try:
            if run(command, log, env=environment, timeout=400) != 0:
                return command[-1] if command[-1] not in suite else " ".join(suite)
        except subprocess.TimeoutExpired:
            return "a test that waits for ever"
    return None


def broken_rows(environment):
    """The rows of `sbx test` that are broken, over all profiles."""
    sbx = pathlib.Path(environment["CARGO_TARGET_DIR"]) / "debug" / "sbx"
    try:
        said = subprocess.run([sbx, "test", "--json"], capture_output=True, timeout=120, cwd="/")
        profiles = json.loads(said.stdout)["profiles"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return ["(no answer)"]
    rows = {row["name"] for profile in profiles for row in profile["rows"] if row["result"] == "broken"}
    return sorted(rows)


def try_one(mutant, environment):
    name, path, before, after, tests = mutant
    file = TREE / path
    text = file.read_text()
    if before not in text:
        return "STALE", f"{path} has no such line any more"
    log = PLACE / f"{name}.log"
    log.unlink(missing_ok=True)
    file.write_text(text.replace(before, after))
    try:
        if run(["cargo", "build", "-q", "-p", "sbx"], log, env=environment) != 0:
            return "STALE", f"it does not compile: see {log.name}"
        rows = broken_rows(environment)
        noticed = notices(tests, environment, log)
        seen = f"sbx test: {' '.join(rows) or 'nothing'}"
        return ("dead", f"{noticed}; {seen}") if noticed else ("ALIVE", f"{path}; {seen}")
    finally:
        file.write_text(text)


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {mutant[0] for mutant in MUTANTS}
    if unknown:
        sys.exit(f"mutants: there is no {', '.join(sorted(unknown))}")
    prepare()
    environment = dict(os.environ, CARGO_TARGET_DIR=str(PLACE / "target"))
    if run(["cargo", "build", "-q", "--workspace"], PLACE / "build.log", env=environment) != 0:
        sys.exit(f"mutants: the tree does not build: see {PLACE / 'build.log'}")
    bad = 0
    for mutant in MUTANTS:
        if wanted and mutant[0] not in wanted:
            continue
        start = time.monotonic()
        state, detail = try_one(mutant, environment)
        bad += state != "dead"
        print(f"{state:6} {mutant[0]:28} {time.monotonic() - start:5.0f} s  {detail}", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
