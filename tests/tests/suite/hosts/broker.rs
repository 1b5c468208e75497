//! What becomes of a run whose broker is not there, or not well.

use super::in_internets;
use sbx_tests::need;

/// A run that waits until something was done to its broker, by the pid `$child`, and then does `then`. The broker is a
/// child of the supervisor's in the same network, and is there soon after the command is.
fn with_broker(done: &str, flags: &str, then: &str) -> String {
    format!(
        "rm -f started go; $SBX --connect allowed.example:80 --connect 203.0.113.15:80 {flags} -- sh -c ': > started; \
         n=0; until test -e go || test $n -gt 400; do n=$((n+1)); sleep 0.05; done; {then}' & \
         n=0; found=; own=$(readlink /proc/self/ns/net); \
         until test \"$found\" || test $n -gt 400; do n=$((n+1)); sleep 0.05; test -e started || continue; \
         for child in $(pgrep -P $!); do \
         test \"$(readlink /proc/$child/ns/net)\" = \"$own\" && {done} && found=$child; done; done; \
         sleep 0.3; : > go; wait $!; status=$?; kill -0 $found 2>/dev/null && echo left; exit $status"
    )
}

#[test]
fn if_the_broker_is_killed_nobody_is_reached() {
    need!("pgrep");
    in_internets(|internet| {
        let out = internet.run(&with_broker("kill -KILL $child", "", "curl -sS http://allowed.example/"));
        out.failed().says("no host is reached any more");
        internet.saw_nothing_of("connection");
    });
}

/// A broker that does nothing, or can open nothing: nobody is reached, and the run is held up by no more than that.
#[test]
fn a_broker_that_does_not_answer_holds_nothing_else_up() {
    need!("pgrep", "prlimit");
    in_internets(|internet| {
        // More connections than may wait, and one to a server of the run's own among them.
        let program = "import socket, threading, time\n\
            def ask():\n \
            try:\n  s = socket.create_connection(('203.0.113.15', 80), timeout=3)\n  s.sendall(b'x')\n  s.recv(1)\n \
            except OSError: pass\n \
            else: print('answered')\n\
            threads = [threading.Thread(target=ask) for _ in range(600)]\n\
            for thread in threads: thread.start()\n\
            server = socket.create_server(('127.0.0.1', 9000))\n\
            socket.create_connection(('127.0.0.1', 9000), timeout=3).close()\n\
            for thread in threads: thread.join()\n\
            print('own server')\n";
        internet.world.write("many.py", program);
        for done in ["kill -STOP $child", "prlimit --nofile=1 --pid $child"] {
            let then = "/usr/bin/python3 many.py; curl -s -m 2 http://allowed.example/; echo $?";
            let out = internet.run(&with_broker(done, "--timeout 60s --report report.json", then));
            let out = out.success();
            assert!(out.out().starts_with("own server\n") && !out.out().contains("left"), "{done}: {out}");
            assert_eq!(internet.log, "", "{done}");
            let report: serde_json::Value =
                serde_json::from_str(&internet.world.read("report.json").unwrap()).unwrap();
            let asked = &report["network"]["hosts"][0];
            assert_eq!(
                (&asked["host"], &asked["connections"]),
                (&"203.0.113.15".into(), &0.into()),
                "{report}"
            );
        }
        // What waits for it ends with the time of the run.
        let then = "curl -sS http://203.0.113.15/";
        let out = internet.run(&with_broker("kill -STOP $child", "--timeout 3s", then));
        let out = out.exited(124);
        assert!(!out.out().contains("left"), "{out}");
        assert_eq!(internet.log, "");
        let out = internet.run(&with_broker("true", "--timeout 60s", then));
        out.success().prints("hello from 203.0.113.15\n");
    });
}
