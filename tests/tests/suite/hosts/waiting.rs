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
