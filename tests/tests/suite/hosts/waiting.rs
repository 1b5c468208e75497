//! Calls that wait until a host is reached, and end as they do without a sandbox.

use super::in_internets;

/// With these options connect(2) only says that it has begun: the first bytes begin it.
#[test]
fn a_connection_that_the_first_bytes_begin_is_made() {
    in_internets(|internet| {
        let program = r#"import signal, socket
signal.alarm(30)
for options in ((), (30,), (30, 34)):  # TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE
    s = socket.socket()
    for option in options: s.setsockopt(socket.IPPROTO_TCP, option, 1)
    s.connect(("allowed.example", 7))
    s.sendall(b"x")
    print(s.recv(1))
"#;
        internet.world.write("begin.py", program);
        let run = "/usr/bin/python3 begin.py";
        for front in ["", "$SBX --connect allowed.example:7 --"] {
            internet.run(&format!("{front} {run}")).success().prints("b'x'\nb'x'\nb'x'\n");
            assert_eq!(internet.log.matches("connection 203.0.113.10 7\n").count(), 3, "{}", internet.log);
        }
    });
}

/// Another thread ends a connect(2) by shutdown(2), and the socket can be connected again.
#[test]
fn a_connection_that_is_shut_down_is_not_waited_for() {
    in_internets(|internet| {
        let program = r#"import errno, signal, socket, threading
signal.alarm(60)
s, is_over = socket.socket(), threading.Event()
def end():
    while not is_over.wait(0.1):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
ends = threading.Thread(target=end)
ends.start()
try: s.connect(("silent.example", 7))
except OSError as error: print(errno.errorcode[error.errno])
is_over.set()
ends.join()
s.connect(("allowed.example", 7))
s.sendall(b"x")
print(s.recv(1))
"#;
        internet.world.write("shut.py", program);
        let out = internet.run("$SBX --connect '*.example:7' -- /usr/bin/python3 shut.py");
        out.success().prints("ECONNABORTED\nb'x'\n");
        assert!(internet.saw("connection 203.0.113.10 7"));
    });
}
