//! The `#!` line, against what is written here and against the kernel itself.

use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::program::script::{ScriptError, parse};
use crate::program::tests::Scratch;

/// Interpreter and argument, as text.
fn read(line: &[u8]) -> Result<(String, Option<String>), ScriptError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    parse(line).map(|line| {
        let argument = line.argument.map(|argument| text(argument.as_bytes()));
        (text(line.interpreter.as_os_str().as_bytes()), argument)
    })
}

#[test]
fn reads_interpreter_and_argument() {
    let cases: [(&[u8], &str, Option<&str>); 9] = [
        (b"#!/bin/sh\n", "/bin/sh", None),
        (b"#!/bin/sh", "/bin/sh", None),
        (b"#! \t /bin/sh \t\nrest", "/bin/sh", None),
        (b"#!/usr/bin/env -S a  b \nrest", "/usr/bin/env", Some("-S a  b")),
        (b"#!sh\n", "sh", None),
        (b"#!/bin/sh\r\n", "/bin/sh\r", None),
        (b"#!/bin/sh\0 x\n", "/bin/sh", None),
        (b"#!/bin/sh x\0y\n", "/bin/sh", Some("x")),
        (b"#!/b\xffn/sh \xfe\n", "/b\u{fffd}n/sh", Some("\u{fffd}")),
    ];
    for (line, interpreter, argument) in cases {
        assert_eq!(read(line), Ok((interpreter.to_owned(), argument.map(str::to_owned))), "{line:?}");
    }
}

#[test]
fn refuses_a_line_without_interpreter() {
    for line in [&b"#!"[..], b"#!\n", b"#! \t \n", b"#!   ", b"#!\0", b"#! \0x\n"] {
        assert_eq!(read(line), Err(ScriptError::NoInterpreter), "{line:?}");
    }
    assert_eq!(read(&[b"#!".to_vec(), vec![b' '; 300]].concat()), Err(ScriptError::NoInterpreter));
}

#[test]
fn no_line_makes_it_panic() {
    let alphabet = *b"#!/ \t\n\0a";
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..50_000 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let length = (random >> 33) as usize % 12;
        let tail = (0..length).map(|at| alphabet[(random >> (5 * at)) as usize % alphabet.len()]);
        let _ = parse(&b"#!".iter().copied().chain(tail).collect::<Vec<_>>());
    }
}

/// Starts the script, whose interpreter is echo: the kernel shows how it read the line.
fn kernel_reads(scratch: &Scratch, line: &[u8]) -> io::Result<Vec<u8>> {
    let path = scratch.file("script", line, 0o755);
    crate::program::tests::start(&path).map(|output| output.stdout)
}

#[test]
fn the_kernel_reads_lines_of_every_length_the_same_way() {
    let scratch = Scratch::new();
    let name = scratch.path("script").into_os_string();
    for length in 250..260 {
        let name_only = [b"#!".to_vec(), vec![b'/'; length - 10], b"bin/echo".to_vec()].concat();
        let long_argument = [b"#!/bin/echo ".to_vec(), vec![b'a'; length - 12]].concat();
        for start in [name_only, long_argument] {
            for end in ["", "\n", " \n", " q\n", " q", "\tq r \nx", "\0\n"] {
                let line = [&start, end.as_bytes()].concat();
                match (parse(&line), kernel_reads(&scratch, &line)) {
                    (Ok(ours), Ok(shown)) => {
                        assert!(ours.interpreter.ends_with("bin/echo"));
                        let mut expected =
                            ours.argument.map(|text| [text.as_bytes(), b" "].concat()).unwrap_or_default();
                        expected.extend_from_slice(name.as_bytes());
                        expected.push(b'\n');
                        assert_eq!(shown, expected, "{length} {end:?}");
                    }
                    (Err(ScriptError::PathTooLong), Err(error)) => {
                        assert_eq!(error.raw_os_error(), Some(libc::ENOEXEC));
                    }
                    (ours, kernel) => panic!("{length} {end:?}: {ours:?} but the kernel says {kernel:?}"),
                }
            }
        }
    }
}
