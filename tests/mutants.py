#!/usr/bin/env python3
"""Takes each protecting line out, one at a time, and looks whether a test turns red.

    make test-mutants            all of them
    tests/mutants.py NAME...     some
    tests/mutants.py --stale     only looks whether each line still stands where it is said to
    tests/mutants.py --rows [ROW...]  breaks each row of `sbx test` instead, and says how; as root, since some rows
                                 are about what only root could do

It works in a copy of the committed tree, below target/mutants. For each mutant `sbx` is built and the suites that should
notice are run against it; the library's own tests are run where the list says so. A mutant that no test notices is
printed as ALIVE, and the exit status is 1. The rows that `sbx test` calls broken are printed as well: it should notice
on its own whatever shows from inside.
"""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "mutants"
TREE = PLACE / "tree"

# Name, file, what stands there, what is put in its place, and the tests that should notice: modules or tests of the
# suite, or "lib:NAME" for unit tests of the launcher, "policy" and "client" for those of these crates.
MUTANTS = [
    ("bare-beside", "launcher/src/plan/namespaces/git.rs", "if is_whole(workspace) {", "if false {",
     ["namespaces::in_parts::a_bare_repository_beside_a_broken_one_is_protected"]),
    ("bare-by-configuration", "launcher/src/run/aftermath/mod.rs", "if self.has_become_bare() {", "if false {",
     ["namespaces::in_parts::what_makes_a_repository_of_the_workspace_later_is_put_aside"]),
    ("recorded-meanwhile", "launcher/src/run/aftermath/mod.rs", " || self.was_recorded_meanwhile(&path) {", " {",
     ["namespaces::in_parts::what_another_run_has_recorded_meanwhile_is_put_aside"]),
    ("hooks-inside", "launcher/src/plan/namespaces/git.rs", "self.hooks_inside(at, settings, home);", "",
     ["namespaces::in_parts::a_relative_directory_of_hooks_is_protected_in_the_repository_too"]),
    ("hooks-inside-new", "launcher/src/run/aftermath/mod.rs", "judged.with(|| self.hooks_inside(&path))", "judged",
     ["namespaces::in_parts::a_new_repository_has_no_hooks_where_the_user_names_some"]),
    ("names-as-options", "launcher/src/supervise/handlers/git_config/harmless.rs", " && !text.starts_with(b\"-\"))", ")",
     ["lib:git_config::sift"]),
    ("urgent-alone", "launcher/src/broker/relay.rs", "Err(Errno::AGAIN) if from.urgent && has_more(&from.socket) => return Turn::Broken,", "",
     ["lib:broker::serving::tests::relaying::urgent_data_breaks_the_connection_at_once"]),
    ("addresses-of-loopback", "launcher/src/sys/namespace.rs", "route::add_loopback_addresses();", "",
     ["private_network::addresses_of_one_family_are_found"]),
    ("rights-by-a-link", "launcher/src/explain/infer/acts.rs", "let access = Access::REFER | Access::EXECUTE;", "let access = Access::EXECUTE;",
     ["explainer::remedies::a_link_into_the_workspace_asks_for_all_rights_that_it_takes"]),
    ("sparse-directories", "launcher/src/run/aftermath/recorded.rs", "if inner == Inner::Sparse {", "if false && inner == Inner::Sparse {",
     ["namespaces::submodules::an_index_names_no_submodule_in_a_directory_that_is_not_checked_out"]),
    ("left-is-named", "launcher/src/enforce/reaper/life.rs", "return self.name_the_rest();", "return;", ["timeouts::processes_that_may_stay_do_and_no_others"]),
    ("own-by-route", "launcher/src/sys/route.rs", "found.get(KIND) == Some(&libc::RTN_UNICAST) && by != Some(&LOOPBACK.to_ne_bytes())", "by.is_some()", ["hosts::names_lead_to_no_private_address"]),
    ("mapped-range", "launcher/src/hosts/range.rs", 'return Err("addresses of IPv4 are written as such");', "",
     ["lib:hosts::range"]),
    ("host-port-at", "launcher/src/supervise/hosts.rs", "is_host_port_at(ip) && self.plan", "self.plan",
     ["hosts::by_proxy::addresses_are_reached_exactly", "hosts::ports::a_port_of_this_machine_is_brought_inside"]),
    ("log-dials-loopback", "launcher/src/broker/serving.rs",
     "true => self.reaches_loopback || !reached(**address).is_loopback(),", "true => true,", ["hosts::log_mode_lets_every_host_through_and_lists_it"]),
    ("home-below-system", "launcher/src/plan/files.rs", "None => rules = but_home(rules, inputs.host, given.masks, warnings)?,",
     "None => {}", ["denied_at_home::a_home_below_a_directory_of_the_system_is_closed_as_well"]),
    ("passwords-in-lists", "launcher/src/plan/settings_copy/secret.rs", ".chain(text.split(u8::is_ascii_whitespace))",
     "", ["lib:settings_copy::secret"]),
    ("looks-in-its-place", "launcher/src/enforce/reaper/life.rs", "afterwards.duty.iter().for_each(|duty| duty.stand_in());", "",
     ["namespaces::stand_in::the_reaper_looks_at_the_workspace_of_a_killed_supervisor"]),
    ("lists-in-place", "launcher/src/run/aftermath/links.rs", "has_refs(&inner) || has_lists(&inner) {", "has_refs(&inner) {",
     ["namespaces::astray::git_removes_no_packs_of_another_repository"]),
    ("graphs-elsewhere", "launcher/src/run/aftermath/links.rs", "Some(chains_other_graphs)", "None",
     ["namespaces::astray::git_takes_no_commit_graph_of_another_repository"]),
    ("alternates-elsewhere", "launcher/src/run/aftermath/mod.rs", "self.look_at_alternates(&opened, look);", "",
     ["namespaces::astray::git_reads_no_objects_of_another_repository"]),
    ("alternates-over-a-link", "launcher/src/run/aftermath/alternates.rs", "(are_new || is_below(&tidy(&named)))", "are_new",
     ["namespaces::astray::git_reads_no_objects_of_another_repository"]),
    ("stopped-for-good", "launcher/src/supervise/mod.rs", "signal != libc::SIGSTOP && self.has_lent() && !process::is_job()", "false && signal == 0",
     ["no_shell::without_a_shell_the_stop_key_stops_nothing"]),
    ("no-new-privs", "launcher/src/enforce/child.rs",
     'privilege::no_new_privs().step("set no_new_privs")?;', "", ["hygiene::", "selftest::", "minimal::"]),
    ("capabilities", "launcher/src/enforce/child.rs",
     'privilege::drop_own_capabilities().step("drop the capabilities")?;', "", ["hygiene::"]),
    ("bounding-set", "launcher/src/sys/privilege.rs",
     "match rustix::thread::remove_capability_from_bounding_set(capability) {",
     "let _ = capability;\n        match rustix::io::Result::Ok(()) {", ["hygiene::"]),
    ("request-reaches-group", "launcher/src/supervise/watch.rs",
     "detached && (is_for_all || arrived.is_request())", "detached && is_for_all",
     ["requests_to_end::"]),
    ("kill-after-request", "launcher/src/supervise/mod.rs",
     "self.deadline.terminating(now);", "", ["requests_to_end::"]),
    ("keyring", "launcher/src/enforce/child.rs",
     'privilege::new_session_keyring().step("leave the session keyring")?;', "", ["hygiene::", "selftest::"]),
    ("undumpable", "launcher/src/run/mod.rs",
     'privilege::undumpable().map_err(cannot("protect the supervisor\'s memory"))?;', "", ["hygiene::", "selftest::"]),
    ("supervisors-capabilities", "launcher/src/run/follow.rs",
     'privilege::drop_capabilities().map_err(cannot("drop the supervisor\'s capabilities"))', "Ok(())",
     ["supervisor::", "write::", "hygiene::"]),
    ("unknown-home", "launcher/src/plan/validation.rs",
     "match unknown.next().filter(|_| home.is_none()) {", "match unknown.next().filter(|_| false) {", ["variables::"]),
    ("unknown-readers", "launcher/src/plan/namespaces/mod.rs",
     "place.expand_path(variables).is_none_or(is_there);",
     "place.expand_path(variables).is_some_and(is_there);", ["namespaces::placeholders::"]),
    ("no-workspace-denied", "launcher/src/plan/files.rs",
     "workspace: variables.workspace.or(Some(directory)), ..*variables };", "..*variables };", ["variables::"]),
    ("loader-by-way-of-proc", "launcher/src/program/loader.rs",
     "if !interpreter.is_absolute() || of_process {", "if !interpreter.is_absolute() {", ["static_programs::", "lib:program"]),
    ("denied-sockets", "launcher/src/plan/draft/completion.rs",
     "let sockets = files::but_denied(sockets, denied, &mut warnings);", "let _ = denied;", ["why::"]),
    ("two-identities", "launcher/src/plan/static_programs.rs",
     "takes_library(program) && *host.one_identity.get()", "takes_library(program)", ["static_programs::"]),
    ("core-limit", "launcher/src/plan/limits.rs",
     "self.resources.push((Limit::Core, 0, 0));", "", ["hygiene::", "selftest::", "limits::"]),
    ("path-rules", "launcher/src/enforce/child.rs",
     'landlock.restrict_self().step("put the path rules in force")?;', "let _ = landlock;", ["minimal::", "write::"]),
    ("tcp-ports", "launcher/src/enforce/landlock.rs",
     "let tcp = version >= Version::TCP && network.handles_tcp();", "let tcp = false && network.handles_tcp();",
     ["network::"]),
    ("scopes", "launcher/src/enforce/landlock.rs",
     "if version >= Version::SCOPES {", "if version > Version(99) {", ["hygiene::", "selftest::"]),
    ("devices", "launcher/src/enforce/landlock.rs",
     "& !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)", "", ["argument_tricks::"]),
    ("descriptors", "launcher/src/enforce/child.rs",
     "descriptor::close_all_on_exec()?;", "", ["hygiene::", "selftest::"]),
    ("death-signal", "launcher/src/enforce/child.rs",
     'process::die_with_parent(libc::SIGKILL).step("tie the command to its supervisor")?;', "", ["lifetime::"]),
    ("untie", "launcher/src/enforce/guard.rs",
     "let tied = listens && !calls.starts_processes();", "let tied = false;", ["lifetime::", "selftest::", "nesting::"]),
    ("reaper-kills", "launcher/src/enforce/reaper/ending.rs",
     "        if let Some(scope) = scope {\n            scope.signal_all", "        if limit > Duration::ZERO {\n            return;\n        }\n        if let Some(scope) = scope {\n            scope.signal_all",
     ["lifetime::", "timeouts::"]),
    ("orphans", "launcher/src/enforce/reaper/life.rs",
     ".and_then(|()| process::become_subreaper());", ";", ["lifetime::"]),
    ("guard", "launcher/src/enforce/child.rs",
     "steps.guard.as_mut().map_or(Ok(()), |guard| install(guard, progress))", "Ok(progress.ready = steps.guard.is_none())",
     ["minimal::"]),
    ("refusals-continue", "launcher/src/supervise/judge.rs",
     "(Verdict::Violation, OnViolation::Errno(number)) => Step::Answer(self.error(number, call)),",
     "(Verdict::Violation, OnViolation::Errno(_)) => Step::Answer(Answer::Continue),", ["minimal::", "network::"]),
    ("kill-goes-on", "launcher/src/supervise/judge.rs",
     "(Verdict::Violation, OnViolation::Kill | OnViolation::Log) => Step::EndRun,",
     "(Verdict::Violation, OnViolation::Kill | OnViolation::Log) => Step::Answer(Answer::Error(EPERM)),", ["lifetime::", "report::", "report_places::"]),
    ("tied-unheard", "launcher/src/enforce/guard.rs",
     "number, connects, tied: self.tied, dumpable", "number, connects, tied: self.tied && self.listens, dumpable", ["nesting::"]),
    ("held-up-for-ever", "launcher/src/sys/bounded.rs",
     "soon(&answered, || answered.recv_timeout(LONGEST).ok())", "soon(&answered, || answered.recv().ok())", ["held_up::"]),
    ("opened-for-ioctl", "policy/src/restrictions.rs",
     "            &[bits(2, CREATING | ONLY_WRITING, 0)],\n            &[bits(2, CREATING | READING_TOO, 0)],",
     "            &[bits(2, CREATING, 0)],", ["flags_of_calls::"]),
    ("signals-by-descriptor", "policy/src/restrictions.rs",
     "&[eq(1, 4), bits(2, O_ASYNC, 0)],", "&[eq(1, 4)],", ["flags_of_calls::"]),
    ("whiteouts", "policy/src/restrictions.rs",
     "any: &[&[bits(4, 4, 0)]],", "any: &[&[bits(4, 0, 0)]],", ["flags_of_calls::"]),
    ("stale-copies", "launcher/src/supervise/dispatch.rs",
     "if !waiting.still_waits()? {", "if false {", ["lib:dispatch"]),
    ("strict-unknown", "launcher/src/supervise/judge.rs",
     "            _ => Verdict::Violation,", "            _ => Verdict::Allowed,", ["log_mode::", "explain::", "write::"]),
    ("x32", "policy/src/program.rs",
     "add(X32_BIT, Entry::Return(source.violation()));", "add(X32_BIT, Entry::Return(bpf::RET_ALLOW));", ["policy"]),
    ("architecture", "policy/src/program.rs",
     "program.push(bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS));", "program.push(bpf::stmt(bpf::RET, bpf::RET_ALLOW));",
     ["policy"]),
    ("denials-win", "policy/src/rules.rs",
     "restricted(rules, number, row.deny, rules.refusal(&row), program);", "", ["policy"]),
    ("one-error-a-call", "policy/src/list.rs",
     "_ => return Err(Cause::OtherErrno(call.name())),", "(_, named, errno) => errno.max(named),", ["policy"]),
    ("text-without-conditions", "policy/src/env.rs",
     "if rules.unnamed_allowed && Call::all()", "if false && Call::all()", ["policy"]),
    ("many-settings", "launcher/src/plan/namespaces/git.rs",
     "settings.iter().filter_map(|setting| setting.leads_to(directory, home));",
     "settings.iter().take(MOST).filter_map(|setting| setting.leads_to(directory, home));", ["lib:git"]),
    ("siblings", "launcher/src/plan/deny_expansion.rs",
     "if kind.is_symlink() || self.ends.contains(&path) || self.is_linked(&path) {", "if kind.is_symlink() {", ["workspace::", "workspace_paths::", "command_line::"]),
    ("siblings-linked", "launcher/src/plan/deny_expansion.rs",
     "let linked = if rights == PathRights::ALL {", "let linked = if false {", ["workspace::", "workspace_paths::"]),
    ("unread-configuration", "launcher/src/plan/namespaces/git.rs",
     '.push(Protected { missing: IfMissing::Placeholder(Shape::File("\\n")), ..Protected::new(file) });', ".push(Protected::existing(file));", ["namespaces::git::", "namespaces::odd_repositories::"]),
    ("other-mounts", "launcher/src/plan/namespaces/layout.rs",
     "        layout.shield_elsewhere(mounts);\n", "", ["namespaces::mounted::"]),
    ("other-mounts-denied", "launcher/src/plan/files.rs",
     "    add_other_names(&mut denied, host)?;\n", "    add_other_names(&mut Vec::new(), host)?;\n", ["namespaces::mounted::"]),
    ("other-mounts-of-parts", "launcher/src/host/mounts.rs",
     "let apart = !is_within(&part.at, path) && are_one(", "let apart = !is_within(&part.at, Path::new(\"/\")) && are_one(", ["namespaces::mounted::"]),
    ("other-mounts-configuration", "launcher/src/plan/namespaces/protected.rs",
     "&& mounts.other_names(repository).is_empty()", "&& mounts.other_names(repository).len() < 99", ["namespaces::mounted::"]),
    ("below-a-file", "launcher/src/plan/namespaces/protected.rs",
     "if known.is_none() && missing.parent().is_some_and(is_file) {", "if false && missing.parent().is_some_and(is_file) {", ["namespaces::protected::", "namespaces::readers::"]),
    ("profiles-themselves", "launcher/src/plan/namespaces/protected.rs",
     "if protected.itself && roots.are(&protected.path) {", "if false && roots.are(&protected.path) {", ["namespaces::protected::", "namespaces::readers::"]),
    ("links-behind", "launcher/src/plan/namespaces/protected.rs",
     "for link in links_behind(&path).into_iter()", "for link in links_behind(&path).into_iter().take(0)",
     ["namespaces::protected::", "namespaces::readers::"]),
    ("closed-caches", "launcher/src/enforce/scratch.rs",
     "if found.metadata()?.mode() & 0o700 != 0o700 {", "if false {", ["workspace::", "workspace_paths::"]),
    ("hooks-in-environment", "launcher/src/plan/environment.rs",
     "&& !any(wishes.deny, known) && !is_dangerous(known) &&", "&& !any(wishes.deny, known) &&",
     ["hygiene::"]),
    ("secrets-in-environment", "launcher/src/plan/environment.rs",
     "&& !any(wishes.deny, known) && !is_dangerous(known) &&", "&& !is_dangerous(known) &&",
     ["hygiene::"]),
    ("passwords-in-addresses", "launcher/src/plan/environment.rs",
     "if passed && !secret {", "if passed {", ["hygiene::"]),
    ("broker-everywhere", "launcher/src/supervise/handlers/connect/mod.rs",
     "if !self.allow(&file.path) ||", "if false ||", ["network::", "workspace::", "workspace_paths::", "supervisor::", "selftest::"]),
    ("broker-any-socket", "launcher/src/supervise/handlers/connect/mod.rs",
     "Destination::File { file, .. } if socket::is_unix_stream(&socket) => {", "Destination::File { file, .. } => {",
     ["network::"]),
    ("broker-any-network", "launcher/src/supervise/handlers/connect/leads.rs",
     "cookie.is_some() && socket::cookie(socket).ok() == cookie", "cookie.is_some()", ["private_network::"]),
    ("broker-tells-nobody", "launcher/src/supervise/handlers/connect/under_way.rs",
     "if is_told {", "if false && is_told {", ["loopback::"]),
    ("closed-to-the-broker", "launcher/src/plan/mod.rs",
     "dumpable: (connects || ", "dumpable: (false && connects || ", ["loopback::"]),
    ("broker-any-address", "launcher/src/supervise/handlers/connect/leads.rs",
     "socket::is_of_network(socket.as_raw_fd()) || !is_of_unix(address)", "true", ["open_network::"]),
    ("broker-any-port", "launcher/src/supervise/handlers/connect/mod.rs",
     "is_none_or(|ports| restrict_connections(ports).is_ok())", "is_none_or(|_| true)", ["open_network::"]),
    ("broker-any-listener", "launcher/src/supervise/handlers/connect/mod.rs",
     "Destination::Nothing { backlog } if socket::is_unix_stream(&socket) => {",
     "Destination::Nothing { backlog } => {", ["network::"]),
    ("learn-secrets", "launcher/src/learn/learner.rs",
     "&& !self.rules.allow_sensitive", "&& false", ["learn::"]),
    ("learn-writing-reads", "launcher/src/learn/right.rs",
     "if self.write { &[Use::Write, Use::Read] }", "if self.write { &[Use::Write] }", ["learn::closed::", "lib:learn"]),
    ("learn-closed-above", "launcher/src/explain/sensitive/mod.rs",
     "above.find(|above| above.metadata().is_ok_and(|meta| look::keeps_out(&meta)))?;", "above.find(|_| false)?;",
     ["learn::closed::"]),
    ("learn-closed-below", "launcher/src/explain/sensitive/look.rs",
     "meta.mode() & OTHERS_READ == 0 || keeps_out(meta)", "meta.is_file() && meta.mode() & OTHERS_READ == 0",
     ["learn::closed::"]),
    ("learn-closed-home", "launcher/src/explain/sensitive/mod.rs",
     ".take_while(|above| !leads_home(above))", ".take_while(|above| !leads_home(above) || above.has_root())",
     ["learn::closed::"]),
    ("learn-what-is-replaced", "launcher/src/learn/candidate.rs",
     "Some(place) => Right::Path(place.clone(), *access),", "Some(_) => right,", ["learn::"]),
    ("learn-any-flag", "launcher/src/learn/demand.rs",
     "if !is_about(record, &path, access, teller) {", "if false && !is_about(record, &path, access, teller) {", ["learn::"]),
    ("learn-any-path", "launcher/src/learn/demand.rs",
     "(is_given && begins_there(&of))", "is_given", ["learn::reports::", "lib:learn"]),
    ("learn-replaces-devices", "launcher/src/learn/output.rs",
     ".and_then(|meta| oddity(meta.file_type()))", ".and_then(|_| None::<&str>)", ["learn::rounds::"]),
    ("learn-other-names", "launcher/src/explain/sensitive/look.rs",
     "meta.is_file() && meta.nlink() > 1", "meta.is_file() && meta.nlink() > 1 && false", ["learn::places::"]),
    ("learn-any-start", "launcher/src/learn/mod.rs",
     "filter(|used| used.file.is_none())", "filter(|_| true)", ["learn::"]),
    ("learn-hooks-elsewhere", "launcher/src/explain/sensitive/look.rs",
     "self.what == Use::Write && is_repository(directory)", "false && is_repository(directory)", ["learn::"]),
    ("learn-services", "launcher/src/explain/sensitive/look.rs", "services: true", "services: false", ["learn::"]),
    ("learn-links-of-the-home", "launcher/src/learn/document.rs",
     "let is_of_home = own &&", "let is_of_home = false && own &&", ["learn::"]),
    ("learn-hosts-again", "launcher/src/learn/learner.rs",
     "if rights.iter().any(|right| self.pruned", "if false && rights.iter().any(|right| self.pruned", ["hosts::learned::"]),
    ("review-closed-home", "launcher/src/explain/review/probes/variables.rs",
     "every.chain(some)", "every.chain(some.take(0))", ["learn::words::"]),
    ("diff-unless", "launcher/src/explain/review/effects/paths.rs",
     "true => Extent::Harmless,", "true => Extent::Whole,", ["learn::differences::", "lib:effects"]),
    ("diff-protections", "launcher/src/explain/review/effects/paths.rs",
     "in_making(more, less, effects);", "let _ = in_making;", ["learn::differences::", "lib:effects"]),
    ("diff-variables", "launcher/src/explain/review/effects/variables.rs",
     "(false, true) => Passing::OpenNetwork,", "(false, true) => Passing::Nothing,",
     ["learn::differences::", "lib:effects"]),
    ("review-invisible", "launcher/src/explain/review/show/lines.rs",
     "&& !is_invisible(character)", "", ["learn::words::"]),
    ("review-no-entries", "launcher/src/explain/review/probes/files.rs",
     "for path in granted.iter().map(|(path, _)| path).chain(&everything) {", "for path in &everything {",
     ["learn::reviews::"]),
    ("hosts-any-name", "launcher/src/broker/dns.rs",
     "if !self.watches && !is_known {", "if false {", ["hosts::"]),
    ("hosts-any-way", "launcher/src/supervise/hosts.rs",
     "match door.filter(|_| self.logs || self.allows(&host)) {", "match door {", ["hosts::"]),
    ("hosts-any-door", "launcher/src/broker/serving/doors.rs",
     "if !self.allow(&host, port) {", "if false && !self.allow(&host, port) {", ["lib:broker"]),
    ("hosts-any-client", "launcher/src/broker/serving/doors.rs",
     "let protocols = if self.allow(&host, port) {", "let protocols = if true || self.allow(&host, port) {",
     ["hosts::"]),
    ("hosts-any-way-by-proxy", "launcher/src/supervise/hosts.rs",
     "let is_allowed = self.allows(&host) || self.logs && port != DNS_PORT;",
     "let is_allowed = self.allows(&host) || port != DNS_PORT;", ["hosts::"]),
    ("own-descriptors-of-a-pool", "launcher/src/run/warm/waiting.rs",
     "streams.each_ref().map(AsRawFd::as_raw_fd)", "[0, 1, 2]", ["pool::handed::"]),
    ("pool-proof", "launcher/src/pool/parked.rs",
     "if !may_look || !peer", "let _ = may_look;\n        if !peer", ["lib:pool::"]),
    ("pool-proof-of-listener", "launcher/src/pool/peer.rs",
     "(lives && is_proof(&name))", "lives", ["pool::reach::"]),
    ("pool-lost-mount", "launcher/src/run/warm/stands.rs",
     "self.mounts.happened().then(mount)", "None.map(|()| mount())", ["pool::stands::"]),
    ("pool-lost-placeholder", "launcher/src/run/warm/stands.rs",
     ".or_else(|| self.placeholders.changed().map(other))", ".or_else(|| None.map(other))", ["pool::stands::"]),
    ("pools-at-once", "launcher/src/pool/place.rs",
     "while directory.try_lock().is_err() {", "while false {", ["pool::stands::"]),
    ("pool-stop-of-others", "launcher/src/pool/server.rs",
     "Ok((pid, ..)) if !peer::is_pool(pid) => Some(NO_POOL),", "Ok((_, user, _)) if user == 4242 => Some(NO_POOL),",
     ["pool::stands::"]),
    ("pool-change-told-to-a-copy", "launcher/src/sys/mount.rs",
     "if process::id() != self.owner {", "if false {", ["pool::stands::"]),
    ("pool-unread-request", "launcher/src/pool/server.rs",
     "let _ = packet::hear_no_more(connection.as_fd());", "std::mem::forget(connection.try_clone());",
     ["pool::stands::"]),
    ("pool-gone-while-taking", "launcher/src/pool/parked.rs",
     "if process::parent() != self.shared.pool {\n            return Waited::Over;",
     "if false {\n            return Waited::Over;", ["lib:pool::"]),
    ("own-broken-pipe-passed-on", "launcher/src/sys/signal.rs",
     "info.ssi_signo == libc::SIGPIPE.cast_unsigned()", "false", ["lifetime::"]),
    ("pool-late-signal", "launcher/src/pool/parked.rs",
     "self.connection.iter().for_each(|connection| drop(packet::hear_no_more(connection.as_fd())));", "",
     ["pool::ends::"]),
    ("pool-slow-reader", "launcher/src/report/place.rs",
     "|| caller.is_some_and(Caller::tells_to_end) {", "{", ["pool::ends::"]),
    ("pool-abandoned", "launcher/src/supervise/finish.rs",
     "while result.is_ok() && !pumps.is_done() && !self.abandoned {", "while result.is_ok() && !pumps.is_done() {",
     ["pool::ends::"]),
    ("pool-stop-beside-start", "launcher/src/pool/server.rs",
     "paths.first().map(alone).transpose()?;", "alone;", ["pool::ends::"]),
    ("alarm-of-the-terminal", "launcher/src/supervise/watch.rs",
     "arrived.from_kernel && arrived.number != libc::SIGALRM;", "arrived.from_kernel;", ["lifetime::"]),
    ("denied-in-an-open-network", "launcher/src/plan/network.rs",
     "if network.mode == NetworkMode::Host && !profile.network.deny.is_empty() {", "if false {", ["network::"]),
    ("log-mode-on-loopback", "launcher/src/supervise/handlers/connect/mod.rs",
     "servers::has(&self.others, SocketAddr::new(reached(ip), port))", "false", ["loopback::"]),
    ("pool-listener-kept", "launcher/src/pool/parked.rs",
     "drop(descriptor::own(self.shared.listener.as_raw_fd()));", "", ["pool::reach::"]),
    ("pool-controls", "launcher/src/sys/inherited.rs",
     "all.extend(CONTROLS.map(|asked| i64::from(control(asked)).cast_unsigned()));",
     "let _ = CONTROLS.map(control);", ["pool::policy::"]),
    ("pool-scheduling", "launcher/src/sys/inherited.rs",
     "scheduling.into_iter().chain(nodes)", "nodes.into_iter()", ["pool::policy::"]),
    ("lasting-pipe", "launcher/src/sys/unchanged/mod.rs",
     "let opened = file::open_without_links(path).ok()?;",
     "let opened = OwnedFd::from(std::fs::File::open(path).ok()?);", ["lib:unchanged"]),
    ("lasting-began", "launcher/src/plan/again.rs",
     "self.record.iter_mut().for_each(|record| record.began = timer::file_time());", "", ["pool::lasting::"]),
    ("placeholders-elsewhere", "launcher/src/enforce/placeholders.rs",
     "OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(directory)", "File::open(directory)",
     ["pool::lasting::"]),
    ("lasting-plan-unlooked", "launcher/src/run/warm/lasting.rs",
     "plan.suits(request, &program, host) && self.unchanged.holds();", "plan.suits(request, &program, host);",
     ["pool::lasting::"]),
    ("lasting-variables", "launcher/src/run/warm/lasting.rs",
     ".filter(|_| self.environment == host.environment)?", "?", ["pool::lasting::", "pool::apart::"]),
    ("lasting-changed-meanwhile", "launcher/src/run/warm/lasting.rs",
     "(is_all && unchanged.holds()).then", "is_all.then", ["lib:lasting"]),
    ("lasting-looked-elsewhere", "launcher/src/run/warm/lasting.rs",
     "(is_all && unchanged.holds()).then", "unchanged.holds().then", ["lib:lasting"]),
    ("lasting-sockets", "launcher/src/plan/again.rs",
     "            && network::foreign_socket(request, host).is_none()\n", "", ["pool::handed::"]),
    ("lasting-descriptors", "launcher/src/plan/again.rs",
     "            && namespaces::check_passed(&request.pass_fd, host, layout, &self.denied).is_ok()\n", "",
     ["pool::handed::"]),
    ("lasting-static", "launcher/src/plan/again.rs",
     "matches!(decided, Ok(None))", "(decided.is_ok() || decided.is_err())",
     ["pool::commands::"]),
    ("unchanged-contents", "launcher/src/sys/unchanged/mod.rs",
     "matches!(state, State::Read(..))", "false && matches!(state, State::Read(..))", ["lib:unchanged"]),
    ("unchanged-capitals", "launcher/src/sys/unchanged/mod.rs",
     "names.contains(&name.to_ascii_lowercase())", "names.contains(name)", ["lib:unchanged"]),
    ("unchanged-letters", "launcher/src/sys/unchanged/mod.rs",
     "!name.is_ascii() || names", "names", ["lib:unchanged"]),
    ("observed-unknown", "launcher/src/sys/observed/mod.rs",
     "stmt(RET, RET_KILL_PROCESS),\n        stmt(LD, data_arg(UNUSED)),",
     "stmt(RET, RET_ALLOW),\n        stmt(LD, data_arg(UNUSED)),", ["lib:observed"]),
    ("observed-writes", "launcher/src/sys/observed/mod.rs",
     "0 => (flags & WRITES == 0).then_some(Depth::Contents),", "0 => Some(Depth::Contents),", ["lib:observed"]),
    ("passed-by-another-name", "launcher/src/plan/namespaces/mod.rs",
     "let is_it = |kept: &Path| is_name_of(kept)", "let is_it = |kept: &Path| is_within(path, kept) && is_name_of(kept)",
     ["namespaces::mounted::"]),
    ("acts-past-a-domain", "launcher/src/supervise/handlers/domains.rs",
     "        if !self.any.get() {", "        if self.any.get() || !self.any.get() {", ["nesting::"]),
    ("shell-in-any-filter", "launcher/src/sys/seccomp.rs",
     "    answers(rules::AROUND)", "    answers(rules::QUERY)", ["as_shell::"]),
    ("odd-index", "launcher/src/run/aftermath/index/format.rs",
     "is_odd.then(||", "(false && is_odd).then(||", ["namespaces::indexes::"]),
    ("configuration-of-a-later-run", "launcher/src/plan/namespaces/protected.rs",
     "                self.lacking.extend(path.parent().map(Path::to_path_buf));\n", "",
     ["namespaces::odd_repositories::"]),
    ("conflicts-anywhere", "launcher/src/run/aftermath/state.rs",
     "(!are_own).then(|| place.join(CONFLICTS))", "(false && !are_own).then(|| place.join(CONFLICTS))",
     ["namespaces::states::"]),
    ("conflicts-over-links", "launcher/src/run/aftermath/state.rs",
     "file_name().is_some_and(|name| is_link(&above, name))", "file_name().is_none()", ["namespaces::states::"]),
    ("words-for-numbers", "launcher/src/run/aftermath/state.rs",
     "text.is_none_or(|text| is_hex(&text))", "text.is_none_or(|text| true || is_hex(&text))",
     ["namespaces::states::"]),
    ("joined-repository", "launcher/src/run/aftermath/repository.rs",
     "is_other() || is_joined()", "is_other() || false && is_joined()", ["namespaces::indexes::"]),
    ("led-to-an-old-repository", "launcher/src/run/aftermath/mod.rs",
     "(self.acts(below) || self.borrows", "(self.borrows", ["namespaces::indexes::"]),
    ("borrowed-settings", "launcher/src/run/aftermath/mod.rs",
     "is_other && (self.acts(below) || self.borrows(&path, target))", "is_other && self.acts(below)",
     ["namespaces::borrowed::"]),
    ("borrowed-later", "launcher/src/run/aftermath/mod.rs",
     "let is_other = self.is_changed(place) || self.leads_elsewhere(place, &kind);",
     "let is_other = self.is_changed(place);", ["namespaces::borrowed::"]),
    ("led-by-processes", "launcher/src/sys/path.rs",
     "ResolveFlags::NO_MAGICLINKS)?;", "ResolveFlags::empty())?;", ["namespaces::pointers::"]),
    ("led-to-nothing", "launcher/src/run/aftermath/mod.rs",
     "Kind::Leads(_) | Kind::Unclear => self.turn_away(place, &kind, look),",
     "Kind::Leads(_) => self.turn_away(place, &kind, look),\n            Kind::Unclear => {}",
     ["namespaces::pointers::"]),
    ("led-behind-a-nul", "launcher/src/plan/namespaces/git/shape.rs",
     "let path = text[..end].split(|byte| *byte == 0).next().unwrap_or_default();", "let path = &text[..end];",
     ["namespaces::pointers::"]),
    ("led-by-an-old-file", "launcher/src/run/aftermath/pointers.rs",
     "            || is_changed && !self.pointers.contains_key(place)\n", "", ["namespaces::pointers::"]),
    ("links-of-submodules", "launcher/src/run/aftermath/search.rs",
     "            self.links.push(name.to_os_string());\n", "", ["namespaces::pointers::"]),
    ("pushed-to", "launcher/src/supervise/handlers/git_config/sift.rs",
     "is_plain_url(value) && local(value).is_none(),", "is_plain_url(value),", ["namespaces::pointers::"]),
    ("denied-at-home", "launcher/src/plan/namespaces/denied.rs",
     "                self.deny_in_replaced(name);\n", "                let _ = name;\n", ["denied_at_home::"]),
    ("denied-behind-stores", "launcher/src/plan/namespaces/denied.rs",
     "    shown.chain(name).chain([real.clone()]).collect()",
     "    let _ = shown;\n    name.into_iter().chain([real.clone()]).collect()", ["denied_at_home::"]),
    ("repeated-paths", "launcher/src/run/aftermath/index/format.rs",
     "if path.len() > LONGEST_PATH || followed > self.length.saturating_mul(MOST_REPEATED) {",
     "if false {", ["lib:aftermath"]),
    ("nameless-entry", "launcher/src/run/aftermath/index/format.rs",
     "if found.has_nameless && !rest.is_split {", "if false {", ["lib:aftermath"]),
    ("read-without-bounds", "launcher/src/run/aftermath/index/format.rs",
     "        *self.left = self.left.checked_sub(count)?;\n", "", ["lib:aftermath"]),
    ("waiting-without-bounds", "launcher/src/run/aftermath/search/waiting.rs",
     "self.is_full |= used + name.len() + EACH > self.room;", "let _ = used;", ["lib:aftermath"]),
    ("no-way-down", "launcher/src/run/aftermath/search.rs",
     "                self.go_down(place, from);\n", "                let _ = (place, from);\n", ["lib:aftermath"]),
    ("told-without-bounds", "launcher/src/run/aftermath/told.rs",
     "match self.left.checked_sub(new.size()) {", "match Some(self.left) {", ["lib:aftermath", "namespaces::exhausting::"]),
    ("led-without-bounds", "launcher/src/run/aftermath/mod.rs",
     "if look.led < MOST_LED && ", "if ", ["namespaces::exhausting::"]),
    ("closed-without-bounds", "launcher/src/run/aftermath/search.rs",
     "self.noticed.more_closed |= self.noticed.closed.len() == MOST_CLOSED;", "", ["namespaces::exhausting::"]),
    ("settings-of-the-user", "launcher/src/plan/namespaces/git/hooks.rs",
     "if self.of_user.is_none() {", "if false {", ["namespaces::"]),
    ("renamed-outside", "launcher/src/enforce/reaper/protection.rs",
     "        self.watches_places();\n", "", ["namespaces::renamed::", "namespaces::protected::"]),
    ("each-repository-locked", "launcher/src/enforce/presence.rs",
     "layout.configs.iter().map(|own|", "layout.configs.iter().take(1).map(|own|", ["namespaces::configuration::"]),
    ("search-of-git", "launcher/src/run/aftermath/search.rs",
     "        waiting.add(own, is_git ||", "        if is_git {\n            return false;\n        }\n        waiting.add(own, is_git ||",
     ["namespaces::hidden_repositories::"]),
    ("index-of-a-killed-run", "launcher/src/run/aftermath/recorded.rs",
     "Some(looked) => looked.min(self.since),", "Some(_) => self.since,", ["namespaces::indexes::"]),
    ("closed-by-a-list", "launcher/src/supervise/handlers/attributes/mod.rs",
     "        Change::Extended(list) => list.mode_of_owner(),\n", "", ["namespaces::across_runs::"]),
    ("index-of-a-submodule", "launcher/src/run/aftermath/recorded.rs",
     "self.recorded().chain(&self.record.found).chain(", "self.recorded().chain(", ["namespaces::submodules::"]),
    ("recorded-of-the-search-only", "launcher/src/run/aftermath/recorded.rs",
     "                self.look(place, look);\n", "                let _ = place;\n",
     ["namespaces::submodules::", "namespaces::states::"]),
    ("led-to-a-recorded-repository", "launcher/src/run/aftermath/mod.rs",
     "!(is_own && self.is_protected", "!(true && self.is_protected", ["namespaces::indexes::"]),
    ("partial-clone-without-network", "launcher/src/run/aftermath/repository.rs",
     "|| had_network && is_of", "|| true && is_of", ["namespaces::indexes::"]),
    ("looked-up-again", "launcher/src/plan/rules.rs",
     "if self.follows { canonical", "if true { canonical", ["namespaces::hostile::"]),
    ("hosts-any-port", "launcher/src/plan/rules.rs",
     "matches!(self.mode, NetworkMode::None | NetworkMode::Loopback | NetworkMode::Ports)",
     "self.hosts.is_none() && matches!(self.mode, NetworkMode::None | NetworkMode::Loopback | NetworkMode::Ports)",
     ["hosts::by_proxy::"]),
    ("hosts-any-resolved", "launcher/src/broker/serving.rs",
     "false => self.rules.allow_resolved(**address, port) && self.may_dial(**address, port),", "false => true,",
     ["hosts::names_lead_to_no_private_address"]),
    ("hosts-anything-said", "launcher/src/broker/serving.rs",
     "if self.watches {\n                    link.overlook();", "if true {\n                    link.overlook();", ["hosts::"]),
    ("hosts-no-door", "launcher/src/supervise/handlers/connect/mod.rs",
     "set_port(&mut address, port);", "let _ = (&mut address, port, set_port);", ["hosts::"]),
    ("hosts-second-hello", "launcher/src/broker/link.rs",
     "if is_first_hello {", "if false && is_first_hello {", ["hosts::"]),
    ("hosts-any-option", "launcher/src/plan/calls/network.rs",
     "if self.network.proxy().is_some() =>", "if false =>", ["hosts::by_proxy::"]),
    ("mcp-any-place", "launcher/src/mcp/ask.rs",
     "places.check().is_ok().then_some(places)", "Some(places)", ["mcp::asking::"]),
    ("mcp-any-workspace", "launcher/src/mcp/places.rs",
     "places.name(Role::Workspace, workspace.to_path_buf());", "", ["mcp::bounds::"]),
    ("links-of-other-workspaces", "launcher/src/plan/home/programs.rs",
     "|| self.leads_out(&way.links, &way.real)", "", ["home_programs::"]),
    ("learn-names-anew", "launcher/src/learn/document.rs",
     "fn named(&self, path: &Path) -> String {", "fn named(&self, path: &Path) -> String {\n        let path = &*canonical(path);",
     ["lib:learn"]),
    ("hosts-own-loopback", "launcher/src/broker/serving.rs",
     "return self.reaches_loopback;", "return true;", ["hosts::"]),
    ("hosts-own-address", "launcher/src/broker/dial.rs",
     "|| routes.is_some_and(|routes| routes.lead_out(to))", "|| true", ["hosts::names_lead_to_no_private_address"]),
    ("hosts-bare-lf", "launcher/src/broker/said/http.rs",
     "if ends != bytes", "if false && ends != bytes", ["hosts::"]),
    ("open-network-datagrams", "launcher/src/plan/calls/network.rs",
     "} else if held_back || self.network.mode == NetworkMode::Private {\n            keep_to_streams(rules);",
     "} else if held_back || self.network.mode == NetworkMode::Private {\n            grant(rules, \"socket\", Some(\"unix\"));",
     ["open_network::"]),
    ("clients-listen", "launcher/src/plan/calls/network.rs",
     "NetworkMode::Host if self.network.asked =>", "NetworkMode::Host =>", ["network::"]),
    ("attributes-everywhere", "launcher/src/supervise/handlers/attributes/mod.rs",
     "let may = (writable(&self.granted, layout, &place) || is_own_terminal())", "let may = true", ["attributes::", "write::", "workspace::", "workspace_paths::", "selftest::"]),
    ("spoken-late", "launcher/src/supervise/handlers/told.rs",
     "all.iter().any(is_spoken) && findings.is_users_own(&self.paths)", "all.iter().any(is_spoken) && false", ["explainer::hidden::"]),
    ("spoken-late-settings", "launcher/src/supervise/findings.rs",
     "starts_with(b\".\")", "starts_with(b\"/\")", ["explainer::hidden::"]),
    ("silent-refusals-of-attributes", "launcher/src/supervise/handlers/attributes/mod.rs",
     "            && wish.may\n", "", ["attributes::"]),
    ("attributes-of-callers-terminals", "launcher/src/supervise/handlers/attributes/mod.rs",
     "is_some_and(|own| device(file) == Some(own))", "is_some()", ["namespaces::"]),
    ("yaml-of-several-lines", "launcher/src/plan/settings_copy/yaml.rs",
     "(!inner.contains(['\\\\', '\"', '\\'']))", "(true)", ["lib:settings_copy"]),
    ("yaml-twice", "launcher/src/plan/settings_copy/yaml.rs",
     "if !known.insert(key) {", "if { known.insert(key); false } {", ["lib:settings_copy"]),
    ("attributes-set-id", "launcher/src/supervise/handlers/attributes/mod.rs",
     "if mode & SET_USER != 0 {", "if false {", ["argument_tricks::"]),
    ("attributes-set-group", "launcher/src/supervise/handlers/attributes/mod.rs",
     "SET_GROUP != 0) && !is_directory(&file)", "SET_GROUP != 0) && false", ["argument_tricks::", "attributes::"]),
    ("attributes-of-the-system", "launcher/src/supervise/handlers/attributes/extended.rs",
     "if !may_change(&name) {", "if false {", ["attributes::"]),
    ("attributes-harmful-flags", "launcher/src/sys/attributes.rs",
     "if (present[0] ^ flags) & !HARMLESS_FLAGS != 0 {", "if false {", ["attributes::"]),
    ("magic-links", "launcher/src/sys/descriptor.rs",
     "ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT)", "ResolveFlags::IN_ROOT)", ["supervisor::", "write::"]),
    ("links-out-of-the-workspace", "launcher/src/plan/files.rs",
     "workspace.filter(|workspace| !is_within(&way.real, workspace));", "workspace.filter(|workspace| workspace.as_os_str().is_empty());",
     ["workspace::", "workspace_paths::", "network::"]),
    ("home-as-workspace", "launcher/src/plan/workspace.rs",
     "let is_home = holds_home(path) || path.parent()", "let is_home = path.parent()", ["workspace::", "workspace_paths::", "command_line::", "bad_input::"]),
    ("work-tree-of-others", "launcher/src/plan/workspace.rs",
     "        above.symlink_metadata().ok().filter(is_own)?;\n", "        let _ = is_own;\n", ["work_trees::"]),
    ("work-tree-as-home", "launcher/src/plan/workspace.rs",
     "work_tree(&path).filter(|top| !is_shared(top))", "work_tree(&path)", ["work_trees::"]),
    ("package-unprotected", "launcher/src/plan/namespaces/mod.rs",
     "flat_map(Repository::workspaces).chain(package) {", "flat_map(Repository::workspaces).chain(package.filter(|_| false)) {",
     ["work_trees::"]),
    ("unix-with-network", "launcher/src/plan/calls/network.rs",
     'revoke(rules, "socket", &["unix", "unix-stream"]);', "", ["network::"]),
    ("fast-open", "launcher/src/plan/calls/network.rs",
     '("sendto", NetworkMode::Ports) => Some("connected"),', "", ["argument_tricks::", "network::"]),
    ("static-blocked", "launcher/src/plan/static_programs.rs",
     "StaticMode::Block => Err(Refusal::with(", "StaticMode::Block if !name.is_empty() => Ok(None),\n                StaticMode::Block => Err(Refusal::with(", ["static_programs::"]),
    ("mounted-once", "launcher/src/sys/mounted.rs",
     "devices.iter().filter(|other| *other == device).count() > 1;", "device[0] == u32::MAX;",
     ["namespaces::mounted::"]),
    ("mount-of-devices", "launcher/src/enforce/mounts.rs",
     "let (place, mounted) = mounted_at(directory).basic(WHAT)?;",
     "let (place, mounted) = (directory.as_path(), whole);", ["devices::"]),
    ("one-exec", "launcher/src/enforce/exec_permit.rs",
     "piece.push(bpf::jump(bpf::JEQ, half, 0, 2 * (HALVES - 1 - number) as u8 + 1));",
     "piece.push(bpf::jump(bpf::JEQ, half, 0, 0));", ["never_unconfined::", "minimal::"]),
    ("scratch-mode", "launcher/src/enforce/scratch.rs",
     "match DirBuilder::new().mode(0o700).create(&path)", "match DirBuilder::new().mode(0o755).create(&path)", ["hygiene::", "lib:scratch"]),
    ("scratch-removed", "launcher/src/enforce/scratch.rs",
     "        if !is_clean {\n            remove(&self.path);\n        }\n", "        let _ = is_clean;\n", ["hygiene::", "lifetime::", "selftest::"]),
    ("scratch-unchanged", "launcher/src/enforce/scratch.rs",
     "self.unchanged == changed(&self.path)", "self.unchanged.is_some()", ["lib:scratch"]),
    ("scratch-of-killed-runs", "launcher/src/enforce/scratch.rs",
     "changed(&path).filter(|_| is_empty_directory(&path));", "changed(&path);", ["lib:scratch"]),
    ("network-entered", "launcher/src/sys/ahead.rs",
     "if namespace::network()? != self.network {", "if false && namespace::network()? != self.network {", ["lib:ahead"]),
    ("listing-kinds", "launcher/src/sys/listing.rs",
     "filter(|kind| kind.lists_at_once())", "filter(|kind| kind.lists_at_once() || true)", ["lib:listing"]),
    ("listing-links", "launcher/src/sys/listing.rs",
     "flags, ResolveFlags::NO_SYMLINKS).ok()?;", "flags, ResolveFlags::empty()).ok()?;", ["lib:listing"]),
    ("listing-capitals", "launcher/src/sys/listing.rs",
     "u32::from(byte.to_ascii_lowercase())", "u32::from(*byte)", ["lib:listing"]),
    ("listing-whole", "launcher/src/sys/listing.rs",
     "if calls > 2 {", "if false {", ["lib:listing"]),
    ("listing-of-placeholders", "launcher/src/plan/namespaces/protected.rs",
     "if let Some(Lacking { at, in_placeholder: false }) =", "if let Some(Lacking { at, .. }) =", ["namespaces::"]),
    ("shim-twice", "shim/src/lib.rs",
     "if let Some(name) = own.into_iter().find(|name| environment.is_twice(name)) {",
     "if let Some(name) = own.into_iter().find(|name| false && environment.is_twice(name)) {", ["env_only::"]),
    ("shim-landlock-variables", "shim/src/lib.rs",
     "LANDLOCK.into_iter().find(|name| environment.get(name).is_some())", "LANDLOCK.into_iter().find(|_| false)", ["env_only::"]),
    ("timeout-kills", "launcher/src/supervise/deadline.rs",
     "                self.kill(now);\n                Some(Act::Kill)", "                self.kill(now);\n                None", ["lib:deadline"]),
    ("output-cap", "launcher/src/supervise/output/kept.rs",
     "let head = cap / 2;", "let head = cap.saturating_mul(2);", ["output_limit::", "lib:kept"]),
    ("task-count", "launcher/src/supervise/handlers/task_limit.rs",
     "if refused { Some(Answer::Error(EAGAIN)) }", "if refused { Some(Answer::Continue) }", ["limits::"]),
    ("memory-watch", "launcher/src/supervise/memory.rs",
     "if now < self.next {", "if true {", ["limits::", "lib:memory"]),
    ("memory-of-other-threads", "launcher/src/supervise/memory.rs",
     "of(process).or_else(|| tree::threads(process).into_iter().find_map(of))", "of(process)", ["limits::"]),
    ("memory-look-without-end", "launcher/src/supervise/memory.rs",
     "now.elapsed() < LONGEST", "true", ["held_up::"]),
    ("memory-of-vfork", "launcher/src/supervise/memory.rs",
     "!in_time() || !borrows(*process, &processes)", "true", ["limits::"]),
    ("conditions-beside-the-supervisor", "launcher/src/plan/calls/table.rs",
     "for_each(|number| self.free.remove(number));", "for_each(drop);", ["supervisor::"]),
    ("reaper-of-exec", "launcher/src/plan/calls/mod.rs",
     "self.starts_processes() || self.allows(\"execve\") || self.allows(\"execveat\")", "self.starts_processes()", ["supervisor::"]),
    ("reaper-of-log-mode", "launcher/src/run/supervised.rs",
     " || plan.on_violation == OnViolation::Log;", ";", ["supervisor::"]),
    ("own-profile", "launcher/src/plan/namespaces/mod.rs",
     "    all.extend(profile.files.iter().cloned().map(Protected::existing));\n", "", ["namespaces::"]),
    ("output-without-end", "launcher/src/supervise/output/mod.rs",
     "while self.kept.total() - before < room && self.read(buffer)? {}", "while self.read(buffer)? { let _ = (room, before); }", ["lib:output"]),
    ("mounts-unseen", "launcher/src/enforce/mounts.rs",
     'told.basic("look after what is protected")?;', "let _ = told;", ["namespaces::"]),
    ("nobody-to-wait-for", "launcher/src/run/mod.rs",
     'process::can_wait().map_err(cannot("learn of the end of processes"))?;', "", ["lifetime::"]),
    ("no-signals-to-send", "launcher/src/run/mod.rs",
     'process::sends_signals().map_err(cannot("send signals, by which runs end"))', "Ok(())", ["lifetime::"]),
    ("unlisted-memory", "launcher/src/supervise/memory.rs", "listed && plain(above) > 0", "plain(above) > 0", ["limits::"]),
    ("scratch-unseen", "launcher/src/enforce/scratch.rs",
     "let _ = std::fs::remove_dir(path);", "", ["lifetime::"]),
    ("rights-of-what-is-kept", "launcher/src/enforce/replaced.rs",
     "tree.restricted(!kept.write, !kept.execute)", "tree.restricted(false, false)", ["private_home::"]),
    ("store-over-a-planted-link", "launcher/src/plan/home.rs",
     "false => files::inside(&named, variables).ok().filter(|below| path::is_directory(below))?,",
     "false => canonical(&named),", ["private_home::"]),
    ("link-taken-for-a-store", "launcher/src/plan/listings.rs",
     "(Found::Other, _) => return None,", "(Found::Other, _) => above = next,", ["lib:listings", "private_home::"]),
    ("program-over-a-planted-link", "launcher/src/plan/home/programs.rs",
     "if self.is_planted(way) || !path::is_program(&way.real) {", "if !path::is_program(&way.real) {",
     ["private_home::", "home_programs::"]),
    ("places-of-earlier-runs", "launcher/src/run/mod.rs",
     "Ok(home_places::settle(home, &resources.home, layout)?)", "{ let _ = (home, layout); Ok(()) }", ["home_programs::"]),
    ("homes-of-others", "launcher/src/plan/draft/completion.rs",
     "record::directory(host).as_deref().and_then(Path::parent)", "record::directory(host).as_deref()",
     ["private_home::"]),
    ("layers-in-use", "launcher/src/enforce/home.rs",
     "Err(TryLockError::WouldBlock) => {}", "Err(TryLockError::WouldBlock) => return Ok(Some((number, layers))),",
     ["private_home::"]),
    ("in-the-way-of-a-mount", "launcher/src/enforce/replaced.rs",
     "if !meta.is_symlink() && meta.is_dir() == is_directory {\n                    return",
     "if meta.is_symlink() || meta.is_dir() == is_directory {\n                    return", ["private_home::"]),
    ("home-of-one-profile", "launcher/src/plan/home.rs",
     "of.profile.as_bytes()].join(&0)", "&[][..]].join(&0)", ["private_home::"]),
    ("reader-of-a-report", "launcher/src/report/place.rs",
     "if patience.is_some_and(|time| since.elapsed() >= time) {", "if false && patience.is_some() {", ["report::", "report_places::"]),
    ("signal-while-reporting", "launcher/src/report/place.rs",
     "if is_told() || caller", "if caller", ["report::", "report_places::"]),
    ("reader-of-a-tail", "launcher/src/supervise/finish.rs",
     "let patience = self.task.timeout.map(|time| over(time).max(self.task.kill_after.unwrap_or_default()));",
     "let patience = self.task.timeout.filter(|_| self.ending == Some(Ending::Timeout)).map(over);", ["output_limit::"]),
    ("lines-too-large", "launcher/src/run/follow.rs",
     'signal::dispose(libc::SIGXFSZ, Disposition::Ignore).map_err(cannot("ignore SIGXFSZ"))?;', "", ["report::", "report_places::"]),
    ("first-line-leads", "launcher/src/plan/home/programs.rs", "led.push(way.real);", "let _ = way.real;",
     ["home_programs::a_script_of_another_workspace_opens_nothing_outside_of_it"]),
    ("first-of-each-call", "launcher/src/supervise/violation.rs", "!self.told.contains(call) &&", "false &&",
     ["lib:violation::sum::tests::no_number_of_calls_hides_another_one"]),
    ("part-of-a-submodule", "launcher/src/run/aftermath/search.rs", "|| found.is_part() && is_of_submodule", "|| false && is_of_submodule",
     ["namespaces::astray::no_submodule_is_put_together_in_two_runs"]),
    ("link-into-a-home", "launcher/src/run/aftermath/pointers.rs", "|| !self.leads_to_runs(&path) {", "|| true {",
     ["namespaces::astray::no_link_leads_into_the_home_of_a_run"]),
    ("link-over-a-link", "launcher/src/run/aftermath/search.rs", "|| self.root.leads_out(&place.join(name))", "",
     ["namespaces::astray::no_link_leads_into_the_home_of_a_run"]),
    ("submodule-over-proc", "launcher/src/run/aftermath/remotes.rs", "Ok(found) => found.is_dir(),", "Ok(_) => false,",
     ["namespaces::astray::no_submodule_is_in_the_home_of_a_run"]),
    ("passwords-of-others", "launcher/src/explain/hint/files.rs", "!self.leads_out && is_of_other_machines",
     "false && is_of_other_machines", ["explainer::hidden::passwords_of_other_machines_are_missed_where_those_can_be_reached"]),
    ("search-of-processes", "launcher/src/run/aftermath/search.rs",
     "    is_named && FileSystem", "    false && is_named && FileSystem",
     ["namespaces::hostile::nothing_is_looked_for_where_the_kernel_makes_the_names"]),
    ("asked-again-in-parts", "launcher/src/broker/said/tls.rs", "        rest = contents.get(length..)?;\n    }\n}",
     "        return Some(is_skipped);\n    }\n}", ["lib:broker::said"]),
    ("removal-of-a-part", "launcher/src/explain/hint/files.rs", "if is_of_other ||", "if false && is_of_other ||",
     ["namespaces::hidden_repositories::the_removal_of_a_repository_below_says_what_can_be_done"]),
    ("submodule-of-an-index", "launcher/src/run/aftermath/mod.rs",
     "        self.look_at_submodules(&mut look);\n", "", ["namespaces::submodules::"]),
    ("submodule-of-an-older-index", "launcher/src/run/aftermath/submodules.rs",
     "        look.submodules.extend(self.record.submodules.iter().cloned());\n", "", ["namespaces::submodules::"]),
    ("added-to-only", "launcher/src/enforce/landlock.rs", ".filter(|(read, write)| *read || *write);", ";",
     ["command_line::files_that_the_command_was_given_open_can_be_opened_again"]),
    ("second-name", "launcher/src/run/aftermath/repository.rs", "ages.names > 1)", "ages.names > 1 && false)", ["namespaces::astray::no_configuration_has_two_names"]),
    ("flags-of-am", "launcher/src/run/aftermath/state.rs", "odd.add(OPTIONS);", "let _ = OPTIONS;", ["namespaces::astray::git_am_writes_no_file_by_a_flag"]),
    ("worktree-over-a-link", "launcher/src/run/aftermath/worktrees.rs", "false => is_new || !leads(),", "false => is_new && !leads(),",
     ["namespaces::astray::no_linked_worktree_is_in_a_directory_of_the_users"]),
    ("packs-elsewhere", "launcher/src/run/aftermath/links.rs", "names.contains(&b'/'))", "names.contains(&b'/') && false)",
     ["lib:links::tests::indexes_and_lists_name_what_is_beside_them"]),
    ("links-of-git", "launcher/src/run/aftermath/links.rs", "Entry::Link => new.is(directory, name) &&", "Entry::Link => false && new.is(directory, name) &&",
     ["namespaces::astray::git_writes_through_no_link_of_the_command"]),
    ("links-in-objects", "launcher/src/run/aftermath/links.rs", "IN_OBJECTS.iter().any(", "false && IN_OBJECTS.iter().any(",
     ["namespaces::astray::git_writes_through_no_link_of_the_command"]),
    ("links-in-closed-directories", "launcher/src/run/aftermath/links.rs", "Err(_) if new.is(own,", "Err(_) if false && new.is(own,",
     ["namespaces::astray::git_writes_through_no_link_of_the_command"]),
    ("links-for-refs", "launcher/src/run/aftermath/links.rs", "|| is_of_ref && target()", "|| false && is_of_ref && target()",
     ["namespaces::astray::a_link_that_stands_for_a_ref_stays"]),
    ("refs-for-files", "launcher/src/run/aftermath/links.rs", "Some(stands_for_no_ref)", "None",
     ["namespaces::astray::git_writes_through_no_ref_that_stands_for_a_file"]),
    ("submodule-above-the-top", "launcher/src/sys/path.rs", "joined.pop().then_some(())?", "drop(joined.pop())",
     ["namespaces::astray::no_submodule_has_its_files_elsewhere"]),
    ("submodule-over-a-link", "launcher/src/run/aftermath/repository.rs", "named().is_some_and(|named| root.is_straight(&named))",
     "named().is_some_and(|named| root.is_straight(&named) || true)", ["namespaces::astray::no_submodule_has_its_files_elsewhere"]),
    ("submodule-for-a-link", "launcher/src/plan/namespaces/git/shape.rs", "    is_straight && files_of(",
     "    (is_straight || true) && files_of(", ["namespaces::astray::no_link_takes_the_place_of_a_submodule"]),
    ("submodule-of-a-run", "launcher/src/run/aftermath/index/format.rs", "OF_SUBMODULE => Some(Inner::Submodule),", "OF_SUBMODULE => None,",
     ["namespaces::astray::no_submodule_is_in_the_home_of_a_run"]),
    ("submodule-of-a-later-run", "launcher/src/run/aftermath/index.rs", "if names_submodules(own) {", "if false && names_submodules(own) {",
     ["namespaces::astray::no_submodule_is_in_the_home_of_a_run"]),
    ("worktree-that-leads-away", "launcher/src/run/aftermath/worktrees.rs", "if leads_astray(&worktree,", "if false && leads_astray(&worktree,",
     ["namespaces::astray::no_linked_worktree_is_in_a_directory_of_the_users"]),
    ("servers-followed", "launcher/src/supervise/hosts.rs",
     "self.files.borrow_mut().follow(|files| self.broker.follow(files));", "let _ = &self.files;", ["hosts::moved::"]),
    ("clock-from-the-first-byte", "launcher/src/broker/look.rs", "self.bytes.is_empty() || ", "", ["lib:serving::tests::bounds"]),
    ("clock-for-first-bytes", "launcher/src/broker/look.rs", "self.until.is_some_and(|until| now >= until)", "false",
     ["lib:serving::tests::bounds"]),
    ("last-bytes", "launcher/src/supervise/brokers.rs", "if finishes && socket", "if false && finishes && socket",
     ["loopback::what_a_run_has_sent_last_arrives"]),
    ("last-bytes-of-clients", "launcher/src/broker/serving/finish.rs", "!self.clients.have_news() && ", "",
     ["lib:finishing"]),
    ("cut-in-order", "launcher/src/broker/serving/finish.rs", "                link.reset();\n", "", ["lib:finishing"]),
    ("group-of-its-own", "launcher/src/run/supervised.rs", "terminal::of_own_group().filter(|_| tree", "terminal::of_own_group().filter(|_| false && tree",
     ["terminal::programs_with_groups_of_their_own_have_the_terminal"]),
    ("terminal-lent-again", "launcher/src/supervise/mod.rs", "        self.task.watch.stop();\n        self.lend_terminal();\n",
     "        self.task.watch.stop();\n", ["terminal::programs_with_groups_of_their_own_have_the_terminal"]),
    ("own-socket", "launcher/src/supervise/handlers/connect/mod.rs", "process::open_thread(call.pid, process)",
     "process::open_pid(process)", ["loopback::a_thread_connects_its_own_socket"]),
    ("unreadable-address", "explainer/src/sys/mod.rs", "|| !is_readable(address) || !is_readable(last)", "",
     ["explainer::an_address_that_cannot_be_read_is_an_error_as_without_the_library"]),
    ("rule-out-of-a-name", "launcher/src/explain/hint/host.rs", "HostName::from_ascii(name.as_bytes()).ok()",
     "Some(name.to_string())", ["lib:no_name_is_read"]),
    ("secrets-done-without", "launcher/src/supervise/handlers/refused_paths.rs",
     "|| findings.is_of_secret(paths, explainer)", "", ["explain::a_secret_that_a_program_does_without_is_named"]),
    ("blamed-before", "launcher/src/run/aftermath/replaced.rs", "let since = run.precisely_since;",
     "let since = run.since;", ["namespaces::aftermath::what_was_changed_just_before_a_run_is_not_blamed_on_it"]),
    ("settings-cut-off", "launcher/src/sys/file.rs", "read_most(&file, most)?.ok_or_else(|| io::ErrorKind::FileTooLarge.into())",
     "Ok(read_most(&file, most)?.unwrap_or_default())", ["lib:git_config"]),
    ("socket-of-nobody", "launcher/src/supervise/handlers/connect/mod.rs", " && is_socket() && servers::has_file(path)",
     " && is_socket()", ["explainer::"]),
    ("call-whatever-its-arguments", "launcher/src/explain/total.rs", "|| self.opens_the_call()", "", ["lib:a_flag_for_a_whole_call"]),
    ("refusals-first", "launcher/src/supervise/hosts/used.rs", ".filter(|_| new.refused == 0)", ".filter(|_| false)",
     ["lib:what_is_refused_gives_way"]),
    ("last-sentence", "launcher/src/cli/mod.rs", "    stderr.never_wait();\n", "", ["held_up::"]),
    ("name-of-no-text", "launcher/src/sys/process.rs",
     "Ok(String::from_utf8_lossy(&text).into_owned())",
     "String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())", ["limits::", "lib:task_limit"]),
    ("report-link", "launcher/src/sys/file.rs",
     "const CAREFULLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);",
     "const CAREFULLY: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);", ["report::", "report_places::"]),
    ("verify", "launcher/src/run/mod.rs",
     "            verify(&request)?;\n", "            let _ = verify(&request);\n", ["selftest::"]),
    ("quiet-refusal-in-home", "launcher/src/profile/search.rs",
     "(Some(_), Some(path)) => Err(ProfileCause::HidesBuiltIn(path)),",
     "(Some(_), Some(_)) => Ok(Source::BuiltIn),", ["profiles"]),
    ("masks", "launcher/src/enforce/mounts.rs",
     "        deny(path)?;\n", "        let _ = path;\n", ["namespaces::"]),
    ("pins", "launcher/src/enforce/mounts.rs",
     "mount_on_itself(path, \"pin '{}'\", Ok)?;", "let _ = path;", ["namespaces::"]),
    ("read-only-mounts", "launcher/src/enforce/mounts.rs",
     'let place = mount_on_itself(path, PROTECT, Tree::read_only)?;', 'let place = mount_on_itself(path, PROTECT, Ok)?;', ["namespaces::"]),
    ("shields-renewed", "launcher/src/enforce/reaper/protection.rs",
     "(0..ATTEMPTS).any(|_| mounts::renew(&self.layout, &mut self.hooks.borrow_mut()).is_ok())", "ATTEMPTS > 0", ["namespaces::"]),
    ("covered-links", "launcher/src/enforce/mounts.rs",
     "        cover_link(link, target.as_deref())?;\n", "        let _ = (link, target);\n", ["namespaces::"]),
    ("stubs", "launcher/src/plan/namespaces/protected.rs",
     "        self.placeholders.insert(missing, standing.unwrap_or(wanted));\n", "        let _ = (missing, standing, wanted);\n",
     ["namespaces::"]),
    ("stubs-removed", "launcher/src/enforce/placeholders.rs",
     "        self.locks.get_mut().clear();\n        self.remove();\n", "", ["namespaces::"]),
    ("stubs-of-killed-runs", "launcher/src/enforce/reaper/life.rs",
     "    afterwards.placeholders.remove();\n", "", ["namespaces::"]),
    ("stubs-of-others", "launcher/src/plan/namespaces/protect.rs",
     "IfMissing::Placeholder(shape) => is_one(shape),", "IfMissing::Placeholder(_) => false,",
     ["namespaces::"]),
    ("stubs-locked", "launcher/src/enforce/placeholders.rs",
     "lock.try_lock().map(|()| lock)", "Ok(lock)", ["namespaces::"]),
    ("own-processes", "launcher/src/plan/namespaces/renewed.rs",
     "let mut systems = vec![System { kind: Kind::Proc, at, keep: Vec::new(), closed }];",
     "let mut systems = { let _ = closed; Vec::new() };", ["namespaces::"]),
    ("names-of-keys", "launcher/src/enforce/mounts.rs",
     "closed.iter().try_for_each(|path| deny(path))?;", "let _ = closed;", ["debuggers::"]),
    ("traced-without-namespaces", "launcher/src/plan/calls/of_run.rs",
     "calls.inside(has_view)", "calls.inside(true)", ["debuggers::"]),
    ("kept-as-tracer", "launcher/src/sys/process.rs",
     "let_go(pid, status);\n                continue;", "if false { let_go(pid, status); }\n                continue;",
     ["debuggers::"]),
    ("slower-first-process", "policy/src/restrictions.rs",
     "any: &[&[eq(0, 0), ne(1, 1)]],", "any: &[&[eq(0, 0)]],", ["profiles"]),
    ("any-shared-process", "policy/src/restrictions.rs",
     "any: &[&[eq(0, TRACER)]],", "any: &[&[bits(0, TRACER, TRACER)]],", ["profiles"]),
    ("own-shared-memory", "launcher/src/plan/namespaces/renewed.rs",
     "(Kind::Memory, SHARED_MEMORY), ", "", ["namespaces::"]),
    ("own-terminals", "launcher/src/plan/namespaces/renewed.rs",
     ", (Kind::Terminals, TERMINALS)]", "]", ["namespaces::"]),
    ("own-tmp", "launcher/src/plan/namespaces/renewed.rs",
     "let all = tmp.into_iter().chain(", "let all = tmp.into_iter().take(0).chain(", ["namespaces::"]),
    ("own-run", "launcher/src/plan/namespaces/renewed.rs",
     "let all = tmp.into_iter().chain(services", "let all = tmp.into_iter().chain(services.into_iter().take(0).collect::<Vec<_>>()",
     ["namespaces::"]),
    ("own-session", "launcher/src/enforce/child.rs",
     'namespace::new_session().step("start a session")?;', "", ["namespaces::", "terminal::"]),
    ("open-directories", "launcher/src/plan/namespaces/mod.rs",
     "            Open::Directory(path) => format!(", "            Open::Directory(path) if path.as_os_str().is_empty() => format!(", ["namespaces::"]),
    ("open-files", "launcher/src/plan/namespaces/mod.rs",
     "if is_kept(&path, file) =>", "if is_kept(&path, file) && path.as_os_str().is_empty() =>",
     ["namespaces::"]),
    ("forged-pointer", "launcher/src/plan/namespaces/git.rs",
     "knows(&own, &entry, workspace) && ", "", ["namespaces::git::", "lib:git"]),
    ("forged-worktree", "launcher/src/plan/namespaces/git.rs",
     " && belongs(&own, &common)", "", ["namespaces::git::", "lib:git"]),
    ("kept-in-its-place", "launcher/src/plan/namespaces/layout.rs",
     "        layout.pin_kept();\n", "", ["namespaces::"]),
    ("bare-repository", "launcher/src/plan/namespaces/git.rs",
     "            if is_bare(workspace) {\n                found.whole(workspace, workspace, home);\n            } else", "            ", ["namespaces::", "lib:git"]),
    ("entry-of-a-worktree", "launcher/src/plan/namespaces/git.rs",
     "        self.protected.extend(entry_of(at).map(Protected::existing));\n", "", ["namespaces::"]),
    ("hooks-that-are-links", "launcher/src/plan/namespaces/git/hooks.rs",
     "            self.protected.extend(targets.into_iter().map(Protected::existing));\n", "            drop(targets);\n",
     ["namespaces::"]),
    ("denied-by-mode", "launcher/src/plan/namespaces/placeholder.rs",
     "let is_empty = || is_empty_directory(path);",
     "let is_empty = || true;", ["namespaces::"]),
    ("closed-directory-behind-a-link", "launcher/src/plan/namespaces/protected.rs",
     "leads_elsewhere.then(|| path::way(&protected.path).real);", "leads_elsewhere.then(|| protected.path.canonicalize().ok()).flatten();",
     ["namespaces::across_runs::"]),
    ("named-in-shared-memory", "launcher/src/plan/namespaces/renewed.rs",
     "given.named.iter().any(|named| is_same(named, path));", "given.named.iter().any(|named| is_within(named, path));",
     ["namespaces::across_runs::"]),
    ("hooks-of-one-tree", "launcher/src/plan/namespaces/git/hooks.rs",
     "        for top in tops {\n", "        for top in tops.iter().take(1) {\n", ["namespaces::across_runs::"]),
    ("embedded-submodules", "launcher/src/plan/namespaces/git.rs",
     "        self.embedded(settings, top, home, depth + 1);\n", "", ["namespaces::across_runs::"]),
    ("missing-behind-a-link", "launcher/src/plan/files.rs",
     "            no_link_on_the_way(path, directory, rules)?;\n", "", ["namespaces::across_runs::"]),
    ("caches-of-all-profiles", "launcher/src/enforce/scratch.rs",
     "[workspace.as_os_str().as_bytes(), profile.as_bytes()].join(&0)", "[workspace.as_os_str().as_bytes(), &profile.as_bytes()[..0]].join(&0)",
     ["namespaces::across_runs::"]),
    ("settings-as-workspace", "launcher/src/plan/workspace.rs",
     "(first.as_bytes().starts_with(b\".\") && !in_repository).then_some(hidden)", "Some(hidden).filter(|_| false && !in_repository)", ["workspace::"]),
    ("unseen-descriptor", "launcher/src/host/mod.rs",
     "Err(failed) => return Open::Unseen(failed.to_string()),", "Err(_) => return Open::Nothing,", ["namespaces::hostile::"]),
    ("closed-repository", "launcher/src/plan/draft/completion.rs",
     "match &repository.closed {", "match None::<&(PathBuf, String)> {", ["namespaces::"]),
    ("bare-by-its-parts", "launcher/src/plan/namespaces/git.rs",
     "            if is_bare(workspace) {\n                found.whole(workspace, workspace, home);\n            } else", "            if belongs(workspace, workspace) {\n                found.whole(workspace, workspace, home);\n            } else", ["namespaces::across_runs::"]),
    ("links-in-between", "launcher/src/enforce/landlock.rs",
     "if rule.follows { descriptor::open_path(&rule.path) } else { open_real(&rule.path) }",
     "descriptor::open_path(&rule.path)", ["workspace::", "workspace_paths::"]),
    ("too-many-submodules", "launcher/src/plan/namespaces/git/shape.rs",
     "if number >= MOST_OF_ALL || directories.len() > MOST {\n            return Ok(None);",
     "if number >= MOST_OF_ALL || directories.len() > MOST {\n            return Ok(Some(directories));", ["namespaces::"]),
    ("half-a-submodule", "launcher/src/plan/namespaces/git/shape.rs",
     'is_file("HEAD") || is_file("config")', 'is_file("HEAD")', ["namespaces::"]),
    ("git-in-the-workspace", "launcher/src/plan/namespaces/git.rs",
     "        let common = if own.starts_with(workspace) {\n", "        let common = if own.starts_with(workspace) {\n            return found;\n        } else if false {\n",
     ["namespaces::"]),
    ("harmful-configuration", "launcher/src/supervise/handlers/git_config/mod.rs",
     "harmless::check(&present, &new)", "harmless::check(&present, &present)", ["namespaces::"]),
    ("configuration-of-others", "launcher/src/enforce/presence.rs",
     "if alone.hooks.try_lock().is_ok() {", "if alone.hooks.try_lock().is_ok() || !alone.hooks.metadata().is_err() {", ["namespaces::"]),
    ("configuration-of-two-names", "launcher/src/supervise/handlers/git_config/mod.rs",
     "if meta.nlink() != 1 {", "if meta.nlink() == 0 {", ["namespaces::"]),
    ("configuration-not-covered", "launcher/src/supervise/handlers/git_config/mod.rs",
     "made.is_none_or(|made| made.low_number() != number)", "number == u32::MAX && made.is_none()", ["namespaces::"]),
    ("configuration-changed-outside", "launcher/src/supervise/handlers/git_config/mod.rs",
     "|| !present {", "|| (!present && number == 0) {", ["namespaces::"]),
    ("quiet-loss", "launcher/src/plan/namespaces/mod.rs",
     "        unprotected(profile, variables, &inputs.directory, rules, nested, why),\n", "        None,\n", ["namespaces::"]),
    ("addresses-of-remotes", "launcher/src/plan/namespaces/git.rs",
     "        self.addresses(at, settings);\n", "", ["namespaces::", "lib:git"]),
    ("repository-around", "launcher/src/plan/namespaces/git.rs",
     "workspace.ancestors().skip(1).find_map(around)", "None::<(PathBuf, &Path)>", ["namespaces::"]),
    ("snapshots", "policy/src/restrictions.rs",
     "            ne(1, 0x5000_9417), // BTRFS_IOC_SNAP_CREATE_V2\n", "", ["attributes::"]),
    ("layouts", "policy/src/restrictions.rs",
     "            ne(1, 0x4028_9705), // CEPH_IOC_SET_LAYOUT_POLICY: or whatever is made in a directory\n", "", ["attributes::"]),
    ("device-nodes-there", "launcher/src/enforce/mounts.rs",
     "    close_devices(layout)?;\n", "", ["devices::"]),
    ("powerless-root", "launcher/src/plan/workspace.rs",
     "(*host.root.get()).then(|| access::others_directory(workspace)).flatten()?;", "host.root.get().then_some(1).filter(|_| false)?;", ["write::"]),
    ("exclusive-terminal", "policy/src/restrictions.rs",
     "            ne(1, 0x540c),\n            ne(1, 0x5602),\n", "            ne(1, 0x5602),\n", ["argument_tricks::"]),
    ("exclusive-terminal-alone", "policy/src/restrictions.rs",
     "            ne(1, 0x540c), // TIOCEXCL: nobody could open it any more, also when the command has long ended\n", "",
     ["policy"]),
    ("threads-before", "shim/src/sys.rs",
     "const SECCOMP_FILTER_FLAG_TSYNC: u64 = 1;", "const SECCOMP_FILTER_FLAG_TSYNC: u64 = 0;", ["env_only::"]),
    ("hangup", "launcher/src/supervise/watch.rs",
     "(detached || tells_leader || !is_for_all)", "(detached || !is_for_all)", ["terminal::"]),
    ("half-a-stub", "launcher/src/enforce/placeholders.rs",
     "Shape::File(contents) => self.make_file(directory, contents),",
     "Shape::File(contents) => fs::write(&self.path, \"\").and_then(|()| { std::thread::sleep(Duration::from_millis(2)); fs::write(&self.path, contents) }),", ["namespaces::placeholders::"]),
    ("closed-by-a-command", "launcher/src/supervise/handlers/attributes/mod.rs",
     "            && !layout.is_some_and(|layout| closes(&change, &place, layout));", ";", ["namespaces::across_runs::"]),
    ("watched", "launcher/src/plan/namespaces/protected.rs",
     "        self.watched.insert(Watched::of(path, missing));\n", "", ["namespaces::set_aside::"]),
    ("watched-first", "launcher/src/enforce/reaper/watched_names.rs",
     "        names.watch(&watched.above.join(above))?;\n", "", ["namespaces::set_aside::"]),
    ("watched-parents", "launcher/src/enforce/reaper/watched_names.rs",
     "    for place in watched.places() {", "    for place in watched.places().take(1) {", ["namespaces::set_aside::"]),
    ("watched-links", "launcher/src/enforce/reaper/watched_names.rs",
     "Ok(found) if !is_last && !found.is_link() && !found.is_directory() => return Ok(true),", "Ok(_) if !is_last => return Ok(true),", ["namespaces::set_aside::"]),
    ("watched-held", "launcher/src/enforce/mounts.rs",
     "    cover(&held, &nothing).map(|()| true)\n", "    drop(nothing);\n    Ok(true)\n", ["namespaces::set_aside::"]),
    ("watched-events", "launcher/src/sys/new_names.rs",
     "signal::next(self.told.as_fd()).is_some() || self.is_blind.get()", "signal::next(self.told.as_fd()).is_some() && cfg!(test)",
     ["namespaces::set_aside::"]),
    ("aside-at-the-end", "launcher/src/run/aftermath/made.rs",
     "for made in missing.iter().filter_map(made_at) {", "for made in missing.iter().filter_map(made_at).take(0) {",
     ["namespaces::set_aside::"]),
    ("aside-of-deep-names", "launcher/src/plan/namespaces/mod.rs",
     "let real = all.map(|protected| deny_expansion::resolve(&protected.path));",
     "let real = all.filter_map(|protected| path::in_real_directory(&protected.path));", ["namespaces::set_aside::"]),
    ("links-removed", "launcher/src/enforce/placeholders.rs",
     "self.watched.iter().filter(|path| !is_gone(path)).cloned()", "self.watched.iter().filter(|path| !is_gone(path)).take(0).cloned()", ["namespaces::set_aside::"]),
    ("pattern-of-nothing", "launcher/src/plan/commands/mod.rs",
     "if text.is_empty() || text.contains(&b'?') {", "if text.len() > 4096 {", ["bad_input::"]),
    ("led-outside", "launcher/src/plan/writable_roots.rs",
     "!file.by.iter().any(|directory| self.has(directory))", "file.by.len() < 1000", ["commands::"]),
    ("named-by-a-script", "launcher/src/plan/writable_roots.rs",
     "        named.by.extend_from_slice(&self.by);\n", "", ["commands::"]),
    ("profile-by-variable", "launcher/src/plan/draft/mod.rs",
     "        variables::check_place(&inputs, workspace.as_deref())?;\n", "", ["variables::"]),
    ("roots-report", "launcher/src/report/place.rs",
     "        check_owner(&parent)?;\n", "", ["report::", "report_places::"]),
    ("out-of-the-workspace", "launcher/src/plan/files.rs",
     "way.links.iter().any(|link| is_within(link, workspace))", "is_within(named, workspace)", ["workspace::", "workspace_paths::"]),
    ("planted-sbx", "client/src/find.rs",
     "let way = way(&found);", "let way = way(&found.canonicalize().unwrap_or_default());", ["embedding::", "client"]),
    ("aside", "launcher/src/run/aftermath/mod.rs",
     "            match judged.put_aside(&self.root, place) {", "            match Ok::<Vec<PathBuf>, SyscallError>(Vec::new()) {",
     ["namespaces::aftermath::"]),
    ("aside-among-many", "launcher/src/run/aftermath/search.rs",
     "if is_changed { &mut self.changed } else { &mut self.others }", "&mut self.others",
     ["namespaces::aftermath::"]),
    ("aside-hooks", "launcher/src/run/aftermath/repository.rs",
     "        _ => judged.hooks = hooks(&own, new, before)?,\n", "        _ => {}\n", ["namespaces::aftermath::"]),
    ("aside-commondir", "launcher/src/run/aftermath/repository.rs",
     "        judged.whole.push(COMMON.into());\n", "", ["namespaces::aftermath::"]),
    ("aside-long-file", "launcher/src/sys/beneath.rs",
     "if text.as_ref().is_some_and(|text| text.len() as u64 > longest) {", "if false {", ["lib:beneath"]),
    ("aside-links", "launcher/src/sys/beneath.rs",
     "let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;", "let resolve = ResolveFlags::empty();",
     ["lib:beneath"]),
    ("aside-other-worktree", "launcher/src/run/aftermath/repository.rs",
     "(is_within_other && named.starts_with(top)", "(is_within_other", ["lib:aftermath"]),
    ("hidden-repository", "launcher/src/run/aftermath/search.rs",
     "        found.entries().for_each(|name|", "        found.entries().filter(|_| !found.is_repository()).for_each(|name|",
     ["namespaces::aftermath::"]),
    ("aside-behind-a-file", "launcher/src/run/aftermath/mod.rs",
     "                    self.look(below, look);\n", "", ["namespaces::aftermath::"]),
    ("aside-worktrees", "launcher/src/run/aftermath/repository.rs",
     "    judged.whole.extend(worktrees::astray(&own, new, &stayed));\n", "    let _ = stayed;\n", ["namespaces::aftermath::"]),
    ("aside-own-worktrees", "launcher/src/run/aftermath/worktrees.rs",
     "Judged::of_files(astray(own, New::Since(began), &stayed))",
     "Judged::of_files(astray(own, New::Since(began), &stayed).drain(..0).collect())",
     ["namespaces::aftermath::"]),
    ("aside-unlisted", "launcher/src/run/aftermath/search.rs",
     "let names = ENTRIES.iter().chain(&NEEDED)", "let names = NEEDED.iter()", ["namespaces::aftermath::"]),
    ("aside-led-to", "launcher/src/run/aftermath/mod.rs",
     "            names = self.led_to(&path, None);\n", "", ["namespaces::aftermath::"]),
    ("search-by-name", "launcher/src/run/aftermath/search.rs",
     "node.filter(|_| is_new &&", "node.filter(|_| is_new && name != \".hg\" &&", ["namespaces::hidden_repositories::"]),
    ("search-by-mercurial", "launcher/src/run/aftermath/repository.rs",
     "judged.whole = OF_MERCURIAL.iter().filter(harmful).map(PathBuf::from).collect();", "let _ = (harmful, OF_MERCURIAL);",
     ["namespaces::"]),
    ("search-closed", "launcher/src/run/aftermath/search.rs",
     "without being listed.\n            self.closed(place);\n", "without being listed.\n", ["namespaces::hidden_repositories::"]),
    ("search-unentered", "launcher/src/run/aftermath/search.rs",
     "            if !at.has(\".\") {", "            if false {", ["namespaces::hidden_repositories::"]),
    ("watched-closed", "launcher/src/enforce/reaper/watched_names.rs",
     "!access::is_closed(found.permissions()) =>", "(cfg!(not(test)) || !access::is_closed(found.permissions())) =>", ["namespaces::set_aside::"]),
    ("search-linked-file", "launcher/src/run/aftermath/pointers.rs",
     "Kind::Leads(real) if real.is_file() =>", "Kind::Leads(real) if real.is_file() && real.is_dir() =>",
     ["namespaces::hidden_repositories::"]),
    ("search-outside", "launcher/src/run/aftermath/mod.rs",
     "        for outside in &self.outside {", "        for outside in self.outside.iter().take(0) {", ["namespaces::hidden_repositories::"]),
    ("search-worktrees", "launcher/src/run/aftermath/mod.rs",
     "if self.has_new_worktrees(place) { self.led_to(&path, None) }", "if false { self.led_to(&path, None) }",
     ["namespaces::hidden_repositories::"]),
    ("record-before", "launcher/src/run/provide.rs",
     "        let _ = begin(&record, host);\n", "        let _ = record;\n", ["namespaces::hidden_repositories::"]),
    ("watched-anew", "launcher/src/plan/namespaces/protected.rs",
     "known.is_none() && standing() == Some(Shape::Directory) {", "known.is_none() && standing().is_some() {", ["namespaces::set_aside::"]),
    ("watched-to-the-end", "launcher/src/enforce/reaper/life.rs",
     "is_some_and(|protection| !protection.catches_up()) {", "is_some_and(|_| false) {", ["namespaces::set_aside::"]),
    ("watched-pinned", "launcher/src/enforce/reaper/watched_names.rs",
     "                mounts::pin(&watched.above.join(place))?;\n", "", ["namespaces::set_aside::"]),
    ("aside-old-parts", "launcher/src/run/aftermath/mod.rs",
     "unrecorded.unwrap_or(self.since).min(self.since)", "unrecorded.map_or(self.since, |_| self.since)", ["namespaces::aftermath::"]),
    ("moved-directories", "launcher/src/run/aftermath/new.rs",
     "Ok(ages) if ages.changed >= since => (New::All, true),", "Ok(ages) if ages.changed >= since => (self, true),", ["namespaces::moved::"]),
    ("moved-repository", "launcher/src/run/aftermath/repository.rs",
     "let new = if is_made || is_other() || is_joined()", "let _ = is_other;\n    let new = if is_made || is_joined()", ["namespaces::moved::"]),
    ("behind-mounts", "launcher/src/run/aftermath/replaced.rs",
     "names = changed;", "let _ = changed;", ["namespaces::moved::"]),
    ("conflicts-out-of-sight", "launcher/src/run/aftermath/state.rs",
     "let is_shown = || !is_new || shows(&tree.join(path));", "let is_shown = || !is_new || shows(&tree.join(path)) || true;",
     ["namespaces::states::"]),
    ("closed-directories", "launcher/src/sys/beneath.rs",
     "if failed.errno() == libc::EACCES && file::let_in(self.as_fd()).is_ok()", "if failed.errno() == libc::EACCES && file::let_in(self.as_fd()).is_ok() && false",
     ["namespaces::moved::"]),
    ("repository-behind-a-link", "launcher/src/run/aftermath/recorded.rs",
     "filter(|led| *led != git && is_below(led, workspace))", "filter(|led| *led != git && is_below(led, workspace) && false)",
     ["namespaces::moved::"]),
    ("profiles-exposed", "launcher/src/plan/namespaces/mod.rs",
     "file.or_else(place)?", "file.or_else(|| place().filter(|_| false))?", ["namespaces::readers::"]),
    ("interrupt-key", "launcher/src/main.rs", "    sbx::sys::signal::end();\n", "", ["terminal::"]),
    ("home-in-a-rule", "launcher/src/plan/home/programs.rs",
     "filter(|rule| is_within(&rule.path, self.home));", "filter(|_| true);", ["home_programs::"]),
    ("installation-of-a-project", "launcher/src/plan/home/programs.rs",
     "OF_INSTALLATIONS.iter().any(has) && !holds_hidden(prefix)", "OF_INSTALLATIONS.iter().any(has)", ["home_programs::"]),
    ("patterns-unchecked", "launcher/src/plan/settings_copy/mod.rs",
     "if is_plain { Ok(text.to_vec()) } else { Err(Unreadable) }", "let _ = is_plain;\n    Ok(text.to_vec())", ["lib:home_copies"]),
    ("placeholder-index", "launcher/src/run/aftermath/index.rs",
     "settings.filter(|_| is_absent_or(own, COMMON, is_own));", "settings.filter(|_| is_absent_or(own, COMMON, |_| false) && is_own(b\".\"));",
     ["namespaces::indexes::"]),
    ("index-in-memory", "launcher/src/run/aftermath/recorded.rs",
     "if own.is_in_memory() {", "if false && own.is_in_memory() {", ["namespaces::moved::"]),
    ("installation-of-a-run", "launcher/src/plan/home/programs.rs",
     "is_whole() && !is_planted()", "is_whole() && (is_planted() || true)", ["home_programs::"]),
    ("patterns-led-out", "launcher/src/enforce/home_copies.rs",
     "if way.real != real || all.workspaces.lead_out(&way.links, &real) {", "if way.real != real {", ["home_programs::"]),
    ("hooks-that-came", "launcher/src/run/aftermath/replaced.rs",
     "!before.contains(name) && !is_aside(name);", "!before.contains(name) && !is_aside(name) && false;",
     ["namespaces::moved::"]),
    ("locks-of-runs-are-no-hooks", "launcher/src/plan/namespaces/git/shape.rs",
     "own.contains(&Some(name)) ||", "own.is_empty() ||",
     ["namespaces::configuration::"]),
    ("closed-is-opened", "launcher/src/run/aftermath/mod.rs",
     "root: root.opening(since),", "root,", ["namespaces::hidden_repositories::"]),
    ("placeholders-by-mode", "launcher/src/enforce/placeholders.rs",
     "if !attributes::decides_about_new_files(directory) {", "if true {", ["namespaces::across_runs::"]),
    ("lists-for-new-files", "launcher/src/supervise/handlers/attributes/extended.rs",
     "LISTS.contains(&name.to_bytes()) && entry", "name.to_bytes() == LISTS[0] && entry", ["namespaces::across_runs::"]),
    ("appended-to", "launcher/src/sys/descriptor.rs",
     "&& !flags.contains(OFlags::APPEND);", ";", ["command_line::"]),
    ("open-for-reading", "launcher/src/sys/descriptor.rs",
     "let writes = access != OFlags::RDONLY &&", "let writes =", ["command_line::"]),
    ("record-read", "launcher/src/plan/draft/completion.rs",
     "            repository = repository.with(&record.repositories, home);\n", "", ["namespaces::aftermath::"]),
    ("record-protected", "launcher/src/plan/namespaces/mod.rs",
     "    all.extend(records.map(resolve).map(Protected::new));\n", "    let _ = records;\n", ["namespaces::aftermath::"]),
    ("record-of-embedded", "launcher/src/plan/draft/completion.rs",
     "            record.found.clone_from(&repository.submodules);\n", "            let _ = (record, repository);\n", ["namespaces::aftermath::"]),
    ("record-unreadable", "launcher/src/plan/namespaces/record.rs",
     "            Err(error) => return Err(error),\n", "            Err(_) => return Ok(none),\n", ["namespaces::aftermath::", "lib:record"]),
    ("replaced-unnamed", "launcher/src/run/aftermath/mod.rs",
     "        self.look_at_kept(&mut look);\n", "", ["namespaces::aftermath::"]),
    ("watched-names", "launcher/src/sys/new_names.rs",
     "libc::fcntl(held.as_raw_fd(), libc::F_NOTIFY, what)", "libc::fcntl(held.as_raw_fd(), libc::F_GETFD, what)",
     ["namespaces::protected::"]),
    ("denied-link", "launcher/src/plan/files.rs",
     "        denied.extend(to_files.into_iter().filter(|_| given.masks));\n", "        drop(to_files);\n", ["namespaces::protected::"]),
    ("mcp-runs-end-with-it", "launcher/src/sys/tied.rs",
     "process::die_with_parent(libc::SIGKILL).map_err(|failed| failed.cause)?;", "", ["mcp::ends::"]),
    ("mcp-directory", "launcher/src/mcp/execute.rs",
     "if !is_within(&real, workspace) {", "if false {", ["mcp::bounds::", "lib:mcp"]),
    ("mcp-command-is-no-flag", "launcher/src/mcp/execute.rs",
     '.args(["-c", "--", &asked.command]);', '.args(["-c", &asked.command]);', ["mcp::bounds::"]),
    ("mcp-longest-time", "launcher/src/mcp/execute.rs",
     "if !within(time, settings.most_time) {", "if false && !within(time, settings.most_time) {", ["mcp::bounds::"]),
    ("mcp-workspace-stays", "launcher/src/mcp/settings.rs",
     "flags.extend(fixed.map(", "flags.extend(fixed.into_iter().skip(1).map(", ["mcp::bounds::"]),
    ("mcp-paths-stay", "launcher/src/mcp/settings.rs",
     "places.check()?;", "let _ = places.check();", ["mcp::bounds::"]),
    ("mcp-profile-stays", "launcher/src/mcp/places.rs",
     "Role::Profile(_) => true,", "Role::Profile(_) => return false,", ["mcp::bounds::"]),
    ("mcp-no-link-later", "launcher/src/mcp/execute.rs",
     "locked(&server.granted).places().are_still_real()?;", "", ["mcp::bounds::"]),
    ("mcp-asks-if-wanted", "launcher/src/mcp/ask.rs",
     "if !server.settings.asks || !can_ask(context) {", "if !can_ask(context) {", ["mcp::asking::"]),
    ("mcp-asks-for-no-secrets", "launcher/src/mcp/ask/rules.rs",
     "&& !looks_secret(path)", "", ["mcp::asking::"]),
    ("mcp-asks-once", "launcher/src/mcp/ask.rs",
     "granted.asked.len() < MOST && granted.asked.insert(question.flag.clone());",
     "granted.asked.insert(question.flag.clone()) || true;", ["mcp::asking::"]),
    ("shell-is-confined", "launcher/src/cli/as_shell.rs",
     "if flags.is_none() && seccomp::is_confined() {", "if flags.is_none() || seccomp::is_confined() {", ["as_shell::"]),
    ("shell-never-unconfined", "launcher/src/cli/as_shell.rs",
     "if request.dangerously_unconfined {", "if false && request.dangerously_unconfined {", ["as_shell::", "lib:as_shell"]),
    ("shell-profile", "launcher/src/cli/as_shell.rs",
     "profile_is_out_of_reach(&request)?;", "let _ = profile_is_out_of_reach(&request);", ["as_shell::"]),
    ("hook-refuses", "launcher/src/hooks/protocol.rs",
     'format!("{}{OR_REFUSE}", words.join(" "))', 'words.join(" ")', ["agents::hooks::"]),
    ("hook-workspace", "launcher/src/hooks/filter.rs",
     '        "--workspace",\n        &workspace,\n', "", ["agents::hook_answers::"]),
    ("hook-own-program", "launcher/src/hooks/filter.rs",
     "if is_within(&canonical(&wanted.program), &workspace) {", "if false {", ["agents::hook_answers::"]),
    ("agent-level", "profiles/agents/claude.json", '  "require": "full",\n', "", ["agents::whole::"]),
    ("agent-state", "launcher/src/plan/settings_copy/json.rs",
     'Some(value).filter(|value| is_taken(keep, &way.join("."), value))', "Some(value)", ["agents::whole::", "lib:settings_copy"]),
    ("empty-path", "launcher/src/explain/hint/mod.rs",
     "if decoded.paths.iter().any(PathArgument::names_nothing) {", "if false {", ["learn::rounds::"]),
    ("blank-in-pattern", "launcher/src/profile/foreign/agents/mod.rs",
     "let why = if shown.trim() != shown {", "let why = if false {", ["profiles_of_others::hostile::"]),
    ("tilde-inside", "launcher/src/profile/foreign/agents/mod.rs",
     '} else if parts.contains(&"~") {', "} else if false {", ["profiles_of_others::hostile::"]),
    ("other-name-protected", "launcher/src/profile/foreign/nesting.rs",
     "_ => !usually_holds(inner, outer),", "_ => false,", ["profiles_of_others::closed::", "lib:nesting"]),
    ("other-name-forbidden", "launcher/src/profile/foreign/nesting.rs",
     "&& self.holds_here(outer, inner)", "&& false", ["profiles_of_others::closed::", "lib:nesting"]),
    ("write-in-forbidden", "launcher/src/profile/foreign/files.rs",
     "!forbidden.iter().any(|place| nesting.holds(place, location))", "true", ["profiles_of_others::closed::"]),
    ("denial-left-out", "launcher/src/profile/foreign/files/reopened.rs",
     "self.yielding.contains(*location) || has_opener(place)", "self.yielding.contains(*location)",
     ["profiles_of_others::closed::", "lib:foreign"]),
    ("denial-yields", "launcher/src/profile/foreign/files/reopened.rs",
     "self.yielding.contains(*location) || has_opener(place)", "has_opener(place)",
     ["profiles_of_others::closed::"]),
    ("opened-anyway", "launcher/src/profile/foreign/files/reopened.rs",
     "self.opened_anyway(closed, base)?;", "self.opened_anyway(closed, base).filter(|_| false)?;",
     ["profiles_of_others::closed::", "lib:foreign"]),
    ("srt-mandatory", "launcher/src/profile/foreign/files.rs",
     ".chain(kept).collect()", ".collect()", ["profiles_of_others::closed::"]),
    ("srt-mandatory-elsewhere", "launcher/src/profile/foreign/agents/srt.rs",
     "let more = if is_workspace { &[][..] } else { &MANDATORY_ELSEWHERE };", "let more: &[&str] = &[];",
     ["profiles_of_others::closed::"]),
    ("masked-value", "launcher/src/profile/foreign/oci/read.rs",
     "(Op::MaskedEq(value), second & value)", "(Op::MaskedEq(value), second)",
     ["profiles_of_others::"]),
    ("gitignore-escapes", "launcher/src/profile/foreign/agents/claude.rs",
     "let plain = match unescaped(text) {", "let plain = match Ok::<_, String>(text.to_string()) {",
     ["profiles_of_others::agents::", "profiles_of_others::hostile::"]),
    ("misplaced-claude", "launcher/src/profile/foreign/agents/claude.rs",
     "misplaced(&fields, &INNER)?;", "", ["profiles_of_others::hostile::"]),
    ("misplaced-codex", "launcher/src/profile/foreign/agents/codex.rs",
     "misplaced(&fields, &INNER)?;", "", ["profiles_of_others::hostile::"]),
    ("sunken-codex", "launcher/src/profile/foreign/agents/codex.rs",
     "sunken(&fields)?;", "", ["profiles_of_others::hostile::"]),
    ("misplaced-directive", "launcher/src/profile/foreign/systemd/unit.rs",
     "Some(Section::Other) => check_elsewhere(line, name.trim())?,", "Some(Section::Other) => {}",
     ["profiles_of_others::hostile::"]),
    ("unknown-family", "launcher/src/profile/foreign/systemd/service.rs",
     "named.iter().find(|name| !is_family(name))", 'named.iter().find(|name| !name.starts_with("AF_"))',
     ["profiles_of_others::hostile::"]),
    ("kept-by-directives", "launcher/src/profile/foreign/systemd/places.rs",
     "for row in kept::rows(service)? {", "for row in kept::rows(service)?.into_iter().take(0) {",
     ["profiles_of_others::units::"]),
    ("kept-where-written", "launcher/src/profile/foreign/systemd/places.rs",
     "Mount::Read => by.is_some_and(|by| by.access() == Access::Write),", "Mount::Read => false,",
     ["profiles_of_others::units::"]),
    ("hidden-by-directives", "launcher/src/profile/foreign/systemd/places.rs",
     "if around.iter().any(|(_, entry)| entry.mount == Mount::Closed) {", "if false {",
     ["profiles_of_others::units::"]),
    ("private-tmp-of-units", "launcher/src/profile/foreign/systemd/places.rs",
     "shown.filter(|(_, by)| by.mount == Mount::Hidden && !decides(entry.mount))", "shown.filter(|_| false)",
     ["profiles_of_others::units::"]),
    ("kept-out-of-sight", "launcher/src/plan/namespaces/protected.rs",
     "if self.leaves_out(&protected.path) {", "if false {", ["profiles_of_others::units::"]),
    ("one-internet-family", "launcher/src/profile/foreign/systemd/service.rs",
     "if self.have_internet() {", "if false {", ["profiles_of_others::units::"]),
    ("families-of-exports", "launcher/src/profile/foreign/systemd/write.rs",
     "names.retain(|name| !denied.contains(name));", "", ["profiles_of_others::units::"]),
    ("denied-in-exports", "launcher/src/profile/foreign/systemd/write.rs",
     "plain(name) && !is_withheld(name)", "plain(name)", ["profiles_of_others::units::"]),
    ("own-of-exports", "launcher/src/profile/foreign/systemd/write.rs",
     "own::write(profile, &mut unit, losses);", "", ["profiles_of_others::units::"]),
    ("own-memory-of-exports", "launcher/src/profile/foreign/systemd/write_paths.rs",
     "filter(|entry| !own::is_own(profile, entry))", "filter(|_| true)", ["profiles_of_others::units::"]),
    ("smaller-limit-of-units", "launcher/src/profile/foreign/systemd/mod.rs",
     "number.min(known).to_string()", "number.to_string()", ["profiles_of_others::units::"]),
    ("values-without-filter", "launcher/src/profile/foreign/systemd/calls.rs",
     "narrow(service, &mut grants, &mut denials, &mut Losses::default())?;", "",
     ["profiles_of_others::hostile::"]),
    ("namespaces-without-filter", "launcher/src/profile/foreign/systemd/calls.rs",
     "namespaces(service, &mut grants, &mut denials, losses)?;", "", ["profiles_of_others::hostile::"]),
    ("unknown-architecture", "launcher/src/profile/foreign/oci/read.rs",
     "name if is_architecture(name) => Ok(()),", 'name if name.starts_with("SCMP_ARCH_") => Ok(()),',
     ["profiles_of_others::hostile::"]),
    ("useless-import", "launcher/src/cli/foreign.rs",
     "leave_out(&mut imported);", "", ["profiles_of_others::hostile::"]),
    ("review-steers", "launcher/src/explain/review/show/lines.rs",
     "false => whole.push_str(&escape(character.to_string().as_bytes(), LONGEST)),",
     "false => whole.push(character),", ["learn::words::", "learn::reviews::"]),
]

# Rows of `sbx test` that no profile can break by itself: the lines that have to be taken out (names from above), and
# what a profile has to allow besides, where the filter is a further line. `tests/loosened.json` has those that a
# profile breaks. Where several lines are named, each of them holds alone; the row has to hold without the first one
# as well.
BREAKS = [
    ("abstract", ["scopes"], {"syscalls": {"allow": ["connect", "socket[unix]"]}}),
    ("signal", ["scopes"], None),
    ("proc", ["path-rules", "capabilities"], None),
    ("capabilities", ["capabilities"], None),
    # Without it neither Landlock nor a filter can be had but by who has capabilities.
    ("no-new-privs", ["no-new-privs", "capabilities"], None),
    ("environment", ["secrets-in-environment"], {"env": {"inherit": ["DATABASE_*"]}}),
    ("filter", ["guard"], {}),
    ("core", ["core-limit"], None),
    ("descriptors", ["descriptors"], None),
    ("scratch", ["scratch-removed"], None),
    ("tree", ["reaper-kills"], {"namespaces": "none"}),
    # Each is decided again further on. What keeps datagrams is the network alone: hosts of a loosened profile break
    # that row (suite/selftest.rs).
    ("host-listed", ["hosts-no-door"], None),
    ("host-unlisted", ["hosts-any-name", "hosts-any-way", "hosts-any-door"], None),
    ("host-address", ["hosts-any-way", "hosts-any-door"], None),
    ("host-question", ["hosts-any-name"], None),
    ("host-rebinding", ["hosts-any-resolved"], None),
    ("host-metadata", ["hosts-any-resolved"], None),
    ("host-said", ["hosts-anything-said"], None),
]
# The profile that is loosened.
BASE = "write"


def adopt_orphans():
    """Makes what a mutant leaves behind, a command that its supervisor lost, a child of this process."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans():
    """Ends them. Nothing else of ours runs between two mutants."""
    left = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while children := left.read_text().split():
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


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


def other_tests(name):
    """The command for tests that are not of the suite; None for those, and for names that no tests have."""
    if name.startswith("lib:"):
        return ["cargo", "test", "-q", "-p", "sbx", "--lib", name[4:]]
    others = {"policy": ["-p", "sbx-policy"], "client": ["-p", "sbx-client"], "profiles": ["-p", "sbx", "--test", "profiles"]}
    return ["cargo", "test", "-q", *others[name]] if name in others else None


def is_of_suite(name):
    """Whether this is a module of the suite, or a test in one."""
    module, _, test = name.rpartition("::")
    if not module or name.startswith("lib:"):
        return False
    files = (ROOT / "tests/tests/suite").rglob("*.rs") if test else []
    return not test or any(f"fn {test}()" in file.read_text() for file in files)


def notices(tests, environment, log):
    """The first of the tests that fails, if any does."""
    suite = [name for name in tests if is_of_suite(name)]
    groups = [["cargo", "test", "-q", "-p", "sbx-tests", "--test", "suite", "--", *suite]] if suite else []
    groups += [command for name in tests if (command := other_tests(name))]
    for command in groups:
        try:
            if run(command, log, env=environment, timeout=400) != 0:
                return command[-1] if command[-1] not in suite else " ".join(suite)
        except subprocess.TimeoutExpired:
            return "a test that waits for ever"
    return None


def tested(environment, *words):
    """The exit status of `sbx test`, and its rows over all profiles: name to results. No rows where it is refused."""
    sbx = pathlib.Path(environment["CARGO_TARGET_DIR"]) / "debug" / "sbx"
    try:
        said = subprocess.run([sbx, "test", "--json", *words], capture_output=True, timeout=120, cwd=PLACE)
        answer = json.loads(said.stdout)
        profiles = answer["profiles"] + answer["hosts"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return None, {}
    rows = {}
    for profile in profiles:
        for row in profile["rows"]:
            rows.setdefault(row["name"], set()).add(row["result"])
    return said.returncode, rows


def broken(rows):
    return sorted(name for name, results in rows.items() if "broken" in results)


def broken_rows(environment):
    """The rows of `sbx test` that are broken, over all profiles."""
    status, rows = tested(environment)
    return ["(no answer)"] if status is None else broken(rows)


def is_stale(mutant, tree):
    """Whether its line does not stand where it is said to any more, or more than once."""
    _, path, before, *_ = mutant
    file = tree / path
    return not file.exists() or file.read_text().count(before) != 1


def try_one(mutant, environment):
    name, path, before, after, tests = mutant
    if is_stale(mutant, TREE):
        return "STALE", f"{path} has no such line any more, or several"
    file = TREE / path
    text = file.read_text()
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
        end_orphans()
        file.write_text(text)


def loosened(base, more):
    """The words that hold a profile which allows more than another one to what that promises."""
    (PLACE / "loose.json").write_text(json.dumps({"description": "x", "extends": base, **more}))
    return "-p", "./loose.json", "--against", base


class Without:
    """Some lines are taken out, and `sbx` is built, while this lasts."""

    def __init__(self, names, environment):
        self.mutants = [mutant for mutant in MUTANTS if mutant[0] in names]
        self.environment = environment

    def __enter__(self):
        self.kept = {path: (TREE / path).read_text() for _, path, *_ in self.mutants}
        for _, path, before, after, _ in self.mutants:
            text = (TREE / path).read_text()
            if before not in text:
                raise LookupError(f"{path} has no such line any more")
            (TREE / path).write_text(text.replace(before, after))
        if run(["cargo", "build", "-q", "-p", "sbx"], PLACE / "rows.log", env=self.environment) != 0:
            raise LookupError("it does not compile: see rows.log")

    def __exit__(self, *_):
        end_orphans()
        for path, text in self.kept.items():
            (TREE / path).write_text(text)


def break_without(names, more, environment):
    """The exit status and rows without these lines, for all profiles or for one, loosened or not."""
    try:
        with Without(names, environment):
            return tested(environment, *(loosened(BASE, more) if more is not None else ()))
    except LookupError as error:
        return str(error), {}


def break_rows(wanted, environment):
    """Breaks each of these rows in turn, or all; the number of rows that could not be."""
    status, whole = tested(environment)
    if status != 0:
        sys.exit(f"mutants: rows are broken as it is: {' '.join(broken(whole))}")
    if unknown := set(wanted) - set(whole):
        sys.exit(f"mutants: there is no row {', '.join(sorted(unknown))}")
    left = dict.fromkeys(wanted or whole, "nothing here breaks it")
    failed = 0

    def show(names, how, status, rows, others):
        nonlocal failed
        seen = broken(rows)
        good = status == 1 and set(names) <= set(seen) and (others or set(names) == set(seen))
        untried = [name for name in names if rows.get(name) == {"untried"}]
        word = "broken" if good else "untried" if untried == names else "HOLDS"
        failed += word == "HOLDS"
        for name in names:
            if good:
                left.pop(name, None)
            elif name in left:
                left[name] = f"{word} where {how}"
        also = [name for name in seen if name not in names]
        print(f"{word:8} {' '.join(names):20} {how}{'; also ' + ' '.join(also) if also else ''}", flush=True)

    for case in json.loads((TREE / "tests" / "loosened.json").read_text()):
        if wanted and not set(wanted) & set(case["rows"]):
            continue
        status, rows = tested(environment, *loosened(case["base"], case["more"]))
        show(case["rows"], f"{case['base']} loosened by {json.dumps(case['more'])}", status, rows, False)
    for name, lines, more in BREAKS:
        if wanted and name not in wanted:
            continue
        how = "without " + " and ".join(lines) + (f", loosened by {json.dumps(more)}" if more else "")
        status, rows = break_without(lines, more, environment)
        # With more lines than one, or a profile besides, it has to hold where one of them is left.
        fewer = lines[1:] if len(lines) > 1 else []
        if fewer and name in broken(break_without(fewer, more, environment)[1]):
            how += f" (without {' and '.join(fewer)} alone as well)"
        show([name], how if status is None or isinstance(status, int) else f"{how}: {status}", status, rows, True)
    for name, why in left.items():
        print(f"LEFT     {name:20} {why}")
    return failed


def show_stale():
    stale = [mutant for mutant in MUTANTS if is_stale(mutant, ROOT)]
    for name, path, *_ in stale:
        print(f"mutants: {name}: {path} has no such line any more, or several")
    unknown = [(name, each) for name, *_, tests in MUTANTS for each in tests
               if not is_of_suite(each) and not other_tests(each)]
    for name, each in unknown:
        print(f"mutants: {name}: no tests are called '{each}'")
    return len(stale) + len(unknown)


def main():
    if sys.argv[1:] == ["--stale"]:
        sys.exit(show_stale() > 0)
    rows = sys.argv[1:2] == ["--rows"]
    wanted = sys.argv[2:] if rows else sys.argv[1:]
    unknown = set(wanted) - {mutant[0] for mutant in MUTANTS}
    if unknown and not rows:
        sys.exit(f"mutants: there is no {', '.join(sorted(unknown))}")
    prepare()
    adopt_orphans()
    environment = dict(os.environ, CARGO_TARGET_DIR=str(PLACE / "target"))
    if run(["cargo", "build", "-q", "--workspace"], PLACE / "build.log", env=environment) != 0:
        sys.exit(f"mutants: the tree does not build: see {PLACE / 'build.log'}")
    if rows:
        sys.exit(break_rows(wanted, environment) > 0)
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
