//! Ordinary calls, and every hostile thing memory can hold.

use crate::text::escape;
use std::collections::{BTreeMap, BTreeSet};

use crate::explain::decode::*;

const PAGE: u64 = 4096;
const AT_CWD: u64 = 0xffff_ff9c;

/// Pages at chosen addresses; everything else faults.
#[derive(Default)]
struct Pages(BTreeMap<u64, Vec<u8>>);

impl Pages {
    fn with(mut self, address: u64, bytes: &[u8]) -> Self {
        for (at, byte) in (address..).zip(bytes) {
            let page = self.0.entry(at / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[(at % PAGE) as usize] = *byte;
        }
        self
    }
}

impl Memory for Pages {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        for (index, slot) in buffer.iter_mut().enumerate() {
            let Some(at) = address.checked_add(index as u64) else { return index };
            let Some(page) = self.0.get(&(at / PAGE)) else { return index };
            *slot = page[(at % PAGE) as usize];
        }
        buffer.len()
    }
}

/// Other bytes at each read, as many as it likes, claiming to have filled more than it did.
struct Changing(std::cell::Cell<u64>);

impl Changing {
    fn next(&self) -> u64 {
        let mut state = self.0.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0.set(state);
        state
    }
}

impl Memory for Changing {
    fn read(&self, _: u64, buffer: &mut [u8]) -> usize {
        let low = self.next().is_multiple_of(4);
        buffer.iter_mut().for_each(|byte| *byte = if low { 0 } else { self.next() as u8 });
        match self.next() % 8 {
            0 => self.next() as usize,
            1 => buffer.len() / 2,
            _ => buffer.len(),
        }
    }
}

fn run(name: &str, args: &[u64], memory: &dyn Memory) -> Decoded {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    decode(&Call { name, args: all, foreign: false }, memory)
}

fn text(name: &str, args: &[u64]) -> String {
    run(name, args, &Pages::default()).text
}

fn assert_printable(text: &str) {
    assert!(text.len() <= TEXT_LIMIT, "{} bytes: {text}", text.len());
    assert!(text.chars().all(|c| c.escape_debug().len() == 1 || "\"'\\".contains(c)), "{text:?}");
}

fn inet(family: u16, port: u16, rest: &[u8]) -> Vec<u8> {
    [&family.to_ne_bytes()[..], &port.to_be_bytes(), rest].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn numbers_have_names() {
    let clone = libc::CLONE_VM | libc::CLONE_VFORK;
    let cases: &[(&str, &[u64], &str)] = &[
        ("socket", &[10, 1 | 0o2000000, 6], "AF_INET6, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP"),
        ("socket", &[16, 3, 9], "AF_NETLINK, SOCK_RAW, NETLINK_AUDIT"),
        ("socket", &[2, 1, 262], "AF_INET, SOCK_STREAM, IPPROTO_MPTCP"),
        ("socket", &[1 << 32 | 2, 2, 0], "AF_INET (0x100000002), SOCK_DGRAM, 0"),
        ("socket", &[99, 0x47, 0], "99, 7|0x40, 0"),
        ("ptrace", &[16, 123], "16, 123"),
        ("kill", &[1, 9], "1, SIGKILL"),
        ("kill", &[u64::MAX, 34], "-1, 34"),
        ("ioctl", &[0, 0x5412], "0, TIOCSTI"),
        ("ioctl", &[0, 0x1_0000_5412], "0, TIOCSTI (0x100005412)"),
        ("ioctl", &[0, 0xffff_ffff_8004_5430], "0, TIOCGPTN"),
        ("ioctl", &[0, 0xdead_beef], "0, 0xdeadbeef"),
        ("clone", &[clone as u64 | 17], "CLONE_VM|CLONE_VFORK|SIGCHLD"),
        ("clone", &[0], "0"),
        ("unshare", &[0x1000_0080], "CLONE_NEWTIME|CLONE_NEWUSER"),
        (
            "mmap",
            &[0, 4096, 7, 0x22, u64::MAX, 0],
            "4096, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0x0",
        ),
        ("mprotect", &[0x1000, 4096, 0], "0x1000, 4096, PROT_NONE"),
        ("seccomp", &[1, 8], "SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER"),
        ("bpf", &[5, 0x1000, 120], "5, 120"),
        ("keyctl", &[1], "1, 0x0"),
        ("prctl", &[38, 1], "PR_SET_NO_NEW_PRIVS, 0x1"),
        ("fchmod", &[3, 0o4755], "3, 04755"),
        ("getpid", &[1, 2, 3], ""),
        ("no_such_call", &[1, u64::MAX], "0x1, 0xffffffffffffffff, 0x0, 0x0, 0x0, 0x0"),
    ];
    for (name, args, expected) in cases {
        assert_eq!(text(name, args), *expected, "{name}");
    }
}

#[test]
fn a_foreign_call_is_shown_as_numbers() {
    let call = Call { name: "kill", args: [1, 9, 0, 0, 0, 0], foreign: true };
    assert_eq!(decode(&call, &Pages::default()).text, "0x1, 0x9, 0x0, 0x0, 0x0, 0x0");
}

#[test]
fn opens() {
    let memory = Pages::default().with(0x1000, b"/home/u/.ssh/id_rsa\0").with(0x2000, b"x\0");
    let writing = (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) as u64;
    let opened = run("openat", &[AT_CWD, 0x1000, writing, 0o644], &memory);
    assert_eq!(opened.text, "\"/home/u/.ssh/id_rsa\", O_WRONLY|O_CREAT|O_TRUNC, 0644");
    let access = Access::WRITE | Access::CREATE | Access::TRUNCATE;
    let path = PathArgument {
        dirfd: None,
        path: b"/home/u/.ssh/id_rsa".to_vec(),
        access,
        follow: true,
        empty_path_ok: false,
    };
    assert_eq!(opened.paths, [path]);

    let flags = (libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC) as u64;
    let listed = run("openat", &[7, 0x2000, flags, 0o644], &memory);
    assert_eq!(listed.text, "7, \"x\", O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC");
    assert_eq!((listed.paths[0].dirfd, listed.paths[0].access), (Some(7), Access::LIST));
    assert!(!listed.paths[0].follow);

    let temporary = run("open", &[0x1000, libc::O_TMPFILE as u64 | 2, 0o600], &memory);
    assert_eq!(temporary.text, "\"/home/u/.ssh/id_rsa\", O_RDWR|O_TMPFILE, 0600");
    assert_eq!(temporary.paths[0].access, Access::READ | Access::WRITE);
}

#[test]
fn openat2_reads_its_structure() {
    let how = words(&[(libc::O_CREAT | libc::O_EXCL) as u64, 0o600, 8]);
    let memory = Pages::default().with(0x1000, b"new\0").with(0x2000, &how);
    let opened = run("openat2", &[AT_CWD, 0x1000, 0x2000, 24], &memory);
    assert_eq!(opened.text, "\"new\", O_RDONLY|O_CREAT|O_EXCL, 0600, RESOLVE_BENEATH");
    assert!(!opened.paths[0].follow);
    for size in [0, 23, 4097, u64::MAX] {
        let wrong = run("openat2", &[AT_CWD, 0x1000, 0x2000, size], &memory);
        assert_eq!((wrong.text.as_str(), wrong.paths.len()), ("\"new\", 0x2000", 0), "{size}");
    }
    assert!(run("openat2", &[AT_CWD, 0x1000, 0x2ff0, 24], &memory).unreadable);
}

#[test]
fn two_paths() {
    let memory = Pages::default().with(0x1000, b"a\0").with(0x1100, b"/b\0");
    let renamed = run("renameat2", &[5, 0x1000, 6, 0x1100, 2], &memory);
    assert_eq!(renamed.text, "5, \"a\", \"/b\", RENAME_EXCHANGE");
    assert_eq!(renamed.paths[1].dirfd, Some(6));
    for path in &renamed.paths {
        assert!(path.access.contains(Access::REMOVE | Access::CREATE | Access::REFER));
    }
    let linked = run("linkat", &[AT_CWD, 0x1000, AT_CWD, 0x1100, 0x400], &memory);
    assert_eq!(linked.text, "\"a\", \"/b\", AT_SYMLINK_FOLLOW");
    assert!(linked.paths[0].follow && !linked.paths[1].follow);
    let symlinked = run("symlinkat", &[0x1000, 9, 0x1000], &memory);
    assert_eq!(symlinked.text, "\"a\", 9, \"a\"");
    assert_eq!(symlinked.paths.len(), 1);
}

#[test]
fn links_and_empty_paths() {
    let memory = Pages::default().with(0x1000, b"\0");
    let this = run("newfstatat", &[3, 0x1000, 0, 0x1000], &memory);
    assert_eq!(this.text, "3, \"\", AT_EMPTY_PATH");
    assert!(this.paths[0].empty_path_ok && this.paths[0].follow);
    let link = run("fchownat", &[3, 0x1000, 0, 0, 0x100], &memory);
    assert!(!link.paths[0].empty_path_ok && !link.paths[0].follow);
    assert!(!run("lstat", &[0x1000], &memory).paths[0].follow);
    let by_fd = run("utimensat", &[3, 0, 0, 0], &memory);
    assert_eq!((by_fd.text.as_str(), by_fd.paths.len(), by_fd.unreadable), ("3, NULL", 0, false));
}

#[test]
fn makes_devices_and_processes() {
    let clone = words(&[libc::CLONE_VM as u64, 0, 0, 0, 17, 0, 0, 0]);
    let memory = Pages::default().with(0x1000, b"d\0").with(0x2000, &clone);
    assert_eq!(run("mknod", &[0x1000, 0o020600, 0x103], &memory).text, "\"d\", S_IFCHR|0600, 1:3");
    assert_eq!(run("mknod", &[0x1000, 0o010600, 0x103], &memory).text, "\"d\", S_IFIFO|0600");
    assert_eq!(run("clone3", &[0x2000, 88], &memory).text, "CLONE_VM, SIGCHLD");
    assert_eq!(run("clone3", &[0x2000, 63], &memory).text, "0x2000, 63");
    assert_eq!(run("execve", &[0x1000, 1, 1], &memory).paths[0].access, Access::EXECUTE);
}

#[test]
fn a_string_may_end_with_its_page() {
    let memory = Pages::default().with(0x1ffe, b"a\0");
    assert_eq!(run("chdir", &[0x1ffe], &memory).text, "\"a\"");
    let endless = Pages::default().with(0x1ff0, &[b'a'; 16]);
    let cut = run("chdir", &[0x1ff0], &endless);
    assert_eq!((cut.text.as_str(), cut.paths.len(), cut.unreadable), ("0x1ff0", 0, true));
    assert_eq!(run("chdir", &[u64::MAX], &endless).text, "0xffffffffffffffff");
}

#[test]
fn long_paths_are_whole_in_the_value_only() {
    let mut path = vec![b'a'; 4095];
    path.push(0);
    let whole = run("chdir", &[0x1000], &Pages::default().with(0x1000, &path));
    assert_eq!(whole.paths[0].path.len(), 4095);
    assert_printable(&whole.text);
    let endless = run("chdir", &[0x1000], &Pages::default().with(0x1000, &[b'a'; 5000]));
    assert!(endless.paths.is_empty() && endless.text.contains('…'));
}

#[test]
fn socket_addresses() {
    let ip = [203, 0, 113, 7, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut v6 = vec![0; 24];
    v6[19] = 1;
    v6[20] = 2;
    let netlink = words(&[16 | 5 << 32, 3]);
    let cases: &[(Vec<u8>, &str, Address)] = &[
        (
            inet(2, 443, &ip),
            "AF_INET 203.0.113.7:443",
            Address::Inet { ip: [203, 0, 113, 7].into(), port: 443 },
        ),
        (inet(10, 53, &v6), "AF_INET6 [::1%2]:53", Address::Inet { ip: "::1".parse().unwrap(), port: 53 }),
        (inet(1, 0x2f72, b"un\0junk"), "AF_UNIX \"/run\"", Address::UnixPath(b"/run".to_vec())),
        (inet(1, 0x2f72, b"un"), "AF_UNIX \"/run\"", Address::UnixPath(b"/run".to_vec())),
        (inet(1, 0x61, b"\0b"), "AF_UNIX @\"a\\x00b\"", Address::UnixAbstract(b"a\0b".to_vec())),
        (vec![1, 0], "AF_UNIX unnamed", Address::UnixUnnamed),
        (netlink, "AF_NETLINK pid 5 groups 0x3", Address::Netlink { pid: 5, groups: 3 }),
        (vec![2, 0, 1], "AF_INET with a wrong length of 3", Address::Other { family: 2 }),
        (vec![1; 120], "257", Address::Other { family: 257 }),
        (vec![0; 16], "AF_UNSPEC", Address::Other { family: 0 }),
    ];
    for (bytes, expected, address) in cases {
        // Up against the end of what is mapped.
        let at = 0x2000 - bytes.len() as u64;
        let decoded = run("connect", &[3, at, bytes.len() as u64], &Pages::default().with(at, bytes));
        assert_eq!((decoded.text.as_str(), decoded.address.as_ref()), (*expected, Some(address)));
    }
}

#[test]
fn impossible_socket_addresses() {
    let memory = Pages::default().with(0x1000, &[1; 256]);
    for (length, expected) in
        [(0, "0x1000 of 0 bytes"), (1, "0x1000 of 1 byte"), (129, "0x1000 of 129 bytes")]
    {
        assert_eq!(run("bind", &[3, 0x1000, length], &memory).text, expected);
    }
    assert_eq!(run("bind", &[3, 0x1000, u64::MAX], &memory).text, "0x1000 of -1 bytes");
    let hole = run("bind", &[3, 0x1ff8, 16], &memory);
    assert_eq!((hole.text.as_str(), hole.address, hole.unreadable), ("0x1ff8", None, true));
}

#[test]
fn messages_have_an_address() {
    let address = inet(2, 53, &[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let memory = Pages::default().with(0x1000, &words(&[0x2000, 16])).with(0x2000, &address);
    for name in ["sendmsg", "sendmmsg"] {
        assert_eq!(run(name, &[3, 0x1000], &memory).text, "3, AF_INET 10.0.0.1:53");
    }
    let sent = run("sendto", &[3, 1, 2, 0x2000_0000, 0x2000, 16], &memory);
    assert_eq!(sent.text, "3, MSG_FASTOPEN, AF_INET 10.0.0.1:53");
    assert_eq!(run("sendto", &[3, 1, 2], &memory).text, "3, NULL");
}

#[test]
fn escapes() {
    let cases: &[(&[u8], &str)] = &[
        (b"a\x1b[31m\n\t\x7f\"\\", r#"a\x1b[31m\n\t\x7f\"\\"#),
        ("é漢".as_bytes(), "é漢"),
        (
            "\u{202e}\u{200b}\u{2028}\u{9b}\u{3164}א…".as_bytes(),
            r"\u{202e}\u{200b}\u{2028}\u{9b}\u{3164}\u{5d0}\u{2026}",
        ),
        (b"\xff\xc3(\xe6\xbc", r"\xff\xc3(\xe6\xbc"),
        (b"", ""),
    ];
    for (bytes, expected) in cases {
        assert_eq!(escape(bytes, 100), *expected);
    }
    assert_eq!(escape(b"/aaaaaaaaaaaaaaaaaaaaaaaaaa/end", 16), "/aaa…aaaaa/end");
    for limit in 0..40 {
        for bytes in ["漢".repeat(30).into_bytes(), vec![0xff; 60], b"\n".repeat(50)] {
            assert!(escape(&bytes, limit).len() <= limit);
        }
    }
}

#[test]
fn no_call_is_listed_twice() {
    let mut seen = BTreeSet::new();
    assert!(table::names().all(|name| seen.insert(name)));
}

#[test]
fn signals_have_names() {
    assert_eq!(signal_name(libc::SIGSYS), Some("SIGSYS"));
    assert_eq!((signal_name(0), signal_name(-1), signal_name(64)), (None, None, None));
}

#[test]
fn hostile_arguments_never_panic() {
    let full = Pages::default().with(0x1000, &[0xff; 8192]);
    let values =
        [0, 1, 0x1000, 0x1fff, 0x2ff8, 1 << 31, u64::from(u32::MAX), 1 << 63, u64::MAX - 1, u64::MAX];
    for name in table::names() {
        for value in values {
            assert_printable(&run(name, &[value; 6], &full).text);
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let memory = Changing(std::cell::Cell::new(0x9e37_79b9_7f4a_7c15));
    for name in table::names() {
        for _ in 0..100 {
            let args = [(); 6].map(|()| memory.next() >> (memory.next() % 64));
            let decoded = run(name, &args, &memory);
            assert_printable(&decoded.text);
            assert!(decoded.paths.len() <= 2 && decoded.paths.iter().all(|path| path.path.len() < 4096));
        }
    }
}

#[test]
fn process_memory_reads_ourselves_only() {
    let text = b"/etc/passwd\0";
    let memory = ProcessMemory::new(std::process::id().cast_signed());
    let mut buffer = [0; 12];
    assert_eq!(memory.read(text.as_ptr() as u64, &mut buffer), 12);
    assert_eq!(&buffer, text);
    assert_eq!(memory.read(8, &mut buffer), 0);
    assert_eq!(memory.read(u64::MAX - 4, &mut buffer), 0);
    assert_eq!(ProcessMemory::new(0).read(text.as_ptr() as u64, &mut buffer), 0);
    buffer.fill(0);
    assert_eq!(memory.read_file(text.as_ptr() as u64, &mut buffer), 12);
    assert_eq!(&buffer, text);
}

#[test]
fn process_memory_reads_up_to_a_hole() {
    // Nothing that can be read is mapped right above the first thread's stack.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let stack = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let end = stack.split(['-', ' ']).nth(1).unwrap();
    let end = u64::from_str_radix(end, 16).unwrap();
    let memory = ProcessMemory::new(std::process::id().cast_signed());
    assert_eq!(memory.read(end - 6, &mut [0; 100]), 6);
    assert_eq!(memory.read(end - 5000, &mut [0; 5100]), 5000);
}
