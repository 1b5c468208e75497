//! The compiled program decides exactly as the rules say: for every system call number, architecture and x32
//! bit, and for arguments at the boundaries of every condition.
#![allow(missing_docs, clippy::unwrap_used)]

use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::env::{self, Variables};
use sbx_policy::errno;
use sbx_policy::interpret::{Data, run};
use sbx_policy::list::List;
use sbx_policy::program::{self, TABLE, X32_BIT};
use sbx_policy::restrictions::{self, RESTRICTIONS};
use sbx_policy::rules::{AROUND, Actions, CONNECTS, Grant, Layout, QUERY, Row, Rules};
use sbx_policy::shadow;

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

fn compile(rules: &Rules) -> Vec<Insn> {
    program::assemble(&Layout { rules, extra: None }).unwrap()
}

/// The decision of the rules, computed without a program.
fn expected(rules: &Rules, data: &Data) -> u32 {
    if data.arch != rules.arch().audit() {
        return bpf::RET_KILL_PROCESS;
    }
    let violation = rules.actions.violation;
    if data.nr >= X32_BIT {
        return violation;
    }
    let unnamed = if rules.unnamed_allowed { bpf::RET_ALLOW } else { violation };
    let Some(call) = Call::numbered(rules.arch(), data.nr) else {
        return if data.nr >= rules.arch().end() {
            rules.actions.unknown.unwrap_or(unnamed)
        } else {
            unnamed
        };
    };
    if call.name() == "prctl" && data.args[0] as u32 == QUERY {
        let this = data.args[1] as u32 == rules.identity();
        return bpf::RET_ERRNO | u32::from(if this { errno::EALREADY } else { errno::EISCONN });
    }
    if call.name() == "prctl" && [AROUND, CONNECTS].contains(&(data.args[0] as u32)) {
        return bpf::RET_ALLOW;
    }
    let row = *rules.row(call).unwrap();
    let matches = |grant: Grant| match grant {
        Grant::None => false,
        Grant::All => true,
        Grant::Some(mask) => restrictions::of_call(call).enumerate().any(|(bit, index)| {
            mask & (1 << bit) != 0
                && RESTRICTIONS[index]
                    .any
                    .iter()
                    .any(|all| all.iter().all(|c| shadow::holds(c, data.args[usize::from(c.arg)])))
        }),
    };
    let Row { allow, deny, errno, log } = row;
    if matches(deny) {
        if errno == 0 { violation } else { bpf::RET_ERRNO | u32::from(errno) }
    } else if matches(allow) || (log && allow == Grant::None) {
        if log { rules.actions.log } else { bpf::RET_ALLOW }
    } else if allow == Grant::None {
        unnamed
    } else {
        violation
    }
}

/// Arguments at and next to every value that a condition of the system call compares with.
fn boundaries(call: Option<Call>) -> Vec<[u64; 6]> {
    let mut sets = vec![[0; 6], [u64::MAX; 6], [1; 6]];
    let Some(call) = call else { return sets };
    let mut values: [Vec<u64>; 6] = std::array::from_fn(|_| vec![0, u64::MAX]);
    for index in restrictions::of_call(call) {
        for condition in RESTRICTIONS[index].any.iter().copied().flatten() {
            let slot = &mut values[usize::from(condition.arg)];
            for base in [condition.value, condition.value | 1 << 32, condition.value | 0x8000_0000] {
                slot.extend([base, base.wrapping_add(1), base.wrapping_sub(1)]);
            }
            if let restrictions::Op::MaskedEq(mask) = condition.op {
                slot.extend([mask, !mask, condition.value | !mask]);
                slot.extend((0..64).filter(|b| mask & (1 << b) != 0).map(|b| condition.value ^ (1 << b)));
            }
        }
    }
    values.iter_mut().for_each(|slot| {
        slot.sort_unstable();
        slot.dedup();
    });
    // Each value of each argument together with each value of every other one: conditions compare two or
    // three arguments.
    for first in 0..6 {
        for second in 0..6 {
            for a in &values[first] {
                for b in &values[second] {
                    let mut set = [0; 6];
                    set[first] = *a;
                    set[second] = *b;
                    sets.push(set);
                    if call.name() == "socket" {
                        sets.extend([6, 17].map(|protocol| [set[0], set[1], protocol, 0, 0, 0]));
                    }
                }
            }
        }
    }
    sets
}

fn check(rules: &Rules) {
    let program = compile(rules);
    assert!(program.len() < bpf::MAX_INSNS);
    let other = if rules.arch() == Arch::X86_64 { 0x4000_0003 } else { 0x4000_0028 };
    let numbers = (0..TABLE + 8).chain([X32_BIT - 1, u32::MAX, 0x8000_0000]);
    for number in numbers {
        let call = Call::numbered(rules.arch(), number);
        for args in boundaries(call) {
            for nr in [number, number | X32_BIT] {
                for arch in [rules.arch().audit(), other] {
                    let data = Data { nr, arch, args };
                    assert_eq!(run(&program, &data), Some(expected(rules, &data)), "{call:?} {data:x?}");
                }
            }
        }
    }
}

fn parse(allow: Option<&str>, deny: Option<&str>, action: Option<&str>, arch: Arch) -> Rules {
    let bytes = |text: Option<&'static str>| text.map(str::as_bytes);
    let leak = |text: Option<&str>| text.map(|t| &*Box::leak(t.to_string().into_boxed_str()));
    let variables =
        Variables { allow: bytes(leak(allow)), deny: bytes(leak(deny)), action: bytes(leak(action)) };
    env::rules(&variables, arch).unwrap().unwrap()
}

#[test]
fn lists_of_every_shape() {
    for arch in ARCHES {
        check(&parse(Some(""), None, None, arch));
        check(&parse(Some("read:write:exit_group"), None, Some("errno"), arch));
        check(&parse(None, Some("execve:mprotect"), Some("log"), arch));
        check(&parse(None, Some("socket[inet]:clone3=ENOSYS:ioctl[safe]=ENOTTY:@mount"), Some("trap"), arch));
        check(&parse(Some("@system-service"), Some("@network-io:execve"), Some("errno=EACCES"), arch));
        check(&parse(
            Some("socket[inet]:socket[unix]:clone[thread]:prctl[safe]"),
            Some("socket[tcp]"),
            None,
            arch,
        ));
    }
}

/// A single number among others takes one comparison, a range of numbers takes two.
#[test]
fn a_short_list_to_the_instruction() {
    let program = compile(&parse(Some("read:write:close:exit_group"), None, Some("errno"), Arch::X86_64));
    let (allow, violation) = (bpf::RET_ALLOW, bpf::RET_ERRNO | u32::from(errno::EPERM));
    let search = [
        bpf::stmt(bpf::LD, bpf::DATA_NR),
        bpf::jump(bpf::JGE, 4, 1, 0),
        bpf::jump(bpf::JEQ, 2, 3, 4),   // open
        bpf::jump(bpf::JEQ, 157, 0, 1), // prctl, which answers the query about the filter
        bpf::stmt(bpf::JA, 3),
        bpf::jump(bpf::JEQ, 231, 1, 0), // exit_group
        bpf::stmt(bpf::RET, violation),
        bpf::stmt(bpf::RET, allow),
        bpf::stmt(bpf::LD, bpf::data_arg(0)),
    ];
    assert_eq!(program[3..3 + search.len()], search, "{program:#?}");
}

#[test]
fn every_restriction_alone_allowed_and_denied() {
    for arch in ARCHES {
        for restriction in RESTRICTIONS {
            let entry = format!("{}[{}]", restriction.call, restriction.name);
            check(&parse(Some(&entry), None, Some("errno"), arch));
            check(&parse(None, Some(&entry), None, arch));
        }
    }
}

#[test]
fn random_lists() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for round in 0..12 {
        let actions = Actions {
            violation: bpf::RET_USER_NOTIF,
            log: bpf::RET_LOG,
            unknown: (round % 2 == 0).then_some(bpf::RET_ERRNO | 38),
        };
        let mut rules = Rules::new(ARCHES[round % 2], round % 3 == 0, actions);
        let calls: Vec<_> = Call::all().collect();
        for _ in 0..next(300) {
            let call = calls[next(calls.len())];
            let named = restrictions::of_call(call);
            let text = match next(3) {
                0 if !named.is_empty() => {
                    format!("{}[{}]", call.name(), RESTRICTIONS[named.start + next(named.len())].name)
                }
                _ => call.name().to_string(),
            };
            let list = [List::Allow, List::Deny, List::Log][next(3)];
            let _ = rules.add(list, text.as_bytes()); // overlaps are refused and change nothing
        }
        check(&rules);
    }
}

#[test]
fn the_text_round_trips() {
    for arch in ARCHES {
        let rules = parse(
            Some("@file-system:socket[unix]:clone[thread]"),
            Some("clone3=ENOSYS:chmod"),
            Some("errno=EACCES"),
            arch,
        );
        let text = env::text(&rules).unwrap();
        let again = parse(text.allow.as_deref(), text.deny.as_deref(), Some(&text.action), arch);
        assert_eq!(compile(&rules), compile(&again));
    }
}

#[test]
fn every_named_restriction_can_match_and_can_miss() {
    for restriction in RESTRICTIONS {
        for all in restriction.any {
            assert!(shadow::satisfiable(all), "{}[{}]", restriction.call, restriction.name);
        }
    }
}

#[test]
fn overlapping_rules_are_refused() {
    for text in [
        "openat:openat[read]",
        "openat[read]:openat",
        "@file-system:openat[read]",
        "socket[inet]:socket[tcp]",
        "ioctl[safe]:ioctl[tty-safe]",
        "clone[thread]:clone[no-namespace]",
        "socket[unix]:socket[unix-stream]",
    ] {
        let variables = Variables { allow: Some(text.as_bytes()), ..Variables::default() };
        let error = env::rules(&variables, Arch::X86_64).err().map(|e| e.to_string());
        assert!(error.as_ref().is_some_and(|e| e.contains("overlap")), "{text}: {error:?}");
    }
}

#[test]
fn a_denial_keeps_the_error_that_was_named_for_it() {
    for arch in ARCHES {
        for text in
            ["socket[unix]=EACCES:socket[inet]", "socket[inet]:socket[unix]=EACCES", "read=EIO:read=EPERM"]
        {
            let variables = Variables { deny: Some(text.as_bytes()), ..Variables::default() };
            let error = env::rules(&variables, arch).err().map(|e| e.to_string());
            assert!(error.as_ref().is_some_and(|e| e.contains("different errors")), "{text}: {error:?}");
        }
        for text in ["@process:clone3=ENOSYS", "clone3=ENOSYS:@process", "socket[unix]=EIO:socket[inet]=EIO"]
        {
            check(&parse(None, Some(text), None, arch));
        }
    }
}

#[test]
fn a_condition_beside_everything_else_has_no_text() {
    let actions = Actions { violation: bpf::RET_LOG, log: bpf::RET_LOG, unknown: None };
    let mut rules = Rules::new(Arch::X86_64, true, actions);
    assert!(env::text(&rules).is_some());
    rules.add(List::Allow, b"socket[unix]").unwrap();
    assert_eq!(env::text(&rules), None);
    rules.add(List::Deny, b"socket").unwrap();
    assert!(env::text(&rules).is_some());
}

#[test]
fn sentences() {
    let say = |allow: &str, deny: &str, action: &str| {
        let some = |t: &str| (!t.is_empty()).then(|| t.to_string().leak().as_bytes());
        let variables = Variables { allow: some(allow), deny: some(deny), action: some(action) };
        env::rules(&variables, Arch::X86_64).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(
        say("wirte", "", ""),
        "cannot read SECCOMP_SYSCALL_ALLOW: unknown system call 'wirte' (did you mean 'write'?)"
    );
    assert_eq!(
        say("", "@file-sytem", ""),
        "cannot read SECCOMP_SYSCALL_DENY: unknown group '@file-sytem' (did you mean '@file-system'?)"
    );
    assert_eq!(
        say("openat[raed]", "", ""),
        "cannot read SECCOMP_SYSCALL_ALLOW: unknown restriction of openat in 'openat[raed]' (did you mean 'read'?)"
    );
    assert_eq!(
        say("read", "", "kil"),
        "cannot read SECCOMP_DEFAULT_ACTION: unknown action 'kil' (did you mean 'kill'?)"
    );
    assert!(say("", "", "log").contains("neither"));
    assert!(say("read=EPERM", "", "").contains("deny-list"));
    assert!(say("openat[read", "", "").contains("cannot read 'openat[read'"));
    assert!(say("read[x]", "", "").contains("no restrictions of read"));
    assert!(say("", "read=EFOO", "").contains("unknown error"));
    assert!(!say("\u{1b}[31m", "", "").contains('\u{1b}'));
}

/// The wider of the two restrictions protects terminals as well.
#[test]
fn safe_ioctls_exclude_what_tty_safe_excludes() {
    let of = |name: &str| {
        let found = RESTRICTIONS.iter().find(|found| found.call == "ioctl" && found.name == name).unwrap();
        let [conditions] = found.any else { panic!("{name} has alternatives") };
        conditions.iter().map(|condition| (condition.arg, condition.value)).collect::<Vec<_>>()
    };
    let (wide, narrow) = (of("safe"), of("tty-safe"));
    assert!(narrow.len() > 10 && narrow.len() < wide.len());
    assert_eq!(wide[..narrow.len()], narrow);
}
