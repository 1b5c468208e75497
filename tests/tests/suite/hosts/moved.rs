//! Runs that go on while the machine moves to another network.

use super::{FROM_ALLOWED, in_internets};

/// Resolvers of programs look at resolv.conf(5) before each question, and ask the name servers that it has then.
#[test]
fn other_name_servers_are_asked_from_then_on() {
    in_internets(|internet| {
        for flags in ["", "--namespaces none"] {
            let ask = "curl -sSf http://allowed.example/";
            let wait = |file| {
                format!("n=0; until test -e {file} || test $n -gt 400; do n=$((n+1)); sleep 0.05; done")
            };
            let (asked, go) = (wait("asked"), wait("go"));
            let out = internet.run(&format!(
                "rm -f asked go; cp /etc/resolv.conf right; echo nameserver 203.0.113.14 > /etc/resolv.conf; \
                 $SBX {flags} --connect allowed.example:80 -- sh -c '{ask}; : > asked; {go}; {ask}' & \
                 {asked}; cat right > /etc/resolv.conf; : > go; wait $!"
            ));
            let out = out.success().prints(FROM_ALLOWED).says("cannot look up 'allowed.example'");
            assert_eq!(
                internet.log.matches("question allowed.example A\n").count(),
                1,
                "{out} {}",
                internet.log
            );
        }
    });
}
