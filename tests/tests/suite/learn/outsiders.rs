//! Who outside a run reaches it, and what of theirs it reaches: other machines, and other programs of the user.

use super::attackers::{extended, has, run, shown};
use super::reviews::review;
use super::{learn, learned};
use sbx_tests::{World, in_worlds, kernel, need, promise};
use serde_json::json;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

/// Whether somebody outside connects to what a command listens at that says at which port it does. Where the command
/// has a network of its own, somebody else may listen at that port here: only the command knows the word.
fn is_reached(world: &World, bind: &str) -> bool {
    let word = format!("the command of {}", world.path(".").display());
    let script = format!(
        "import socket\ntry:\n s = socket.socket()\n {bind}\n s.listen()\nexcept OSError:\n print('Error')\n exit()\n\
         print('at', s.getsockname()[1], 'now', flush=True)\ns.accept()[0].sendall({word:?}.encode())"
    );
    let words = ["run", "-q", "-p", "../reviewed.json", "--", "/usr/bin/python3", "-c", &script];
    let running = world.sbx(words).start();
    let at = |told: String| told.split_once("at ")?.1.split_once(" now")?.0.parse::<u16>().ok();
    let (mut port, mut left) = (None, 2000);
    while port.is_none() && left > 0 && !running.so_far().contains("Error") {
        std::thread::sleep(std::time::Duration::from_millis(5));
        (port, left) = (at(running.so_far()), left - 1);
    }
    let told = port.and_then(|port| {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
        connection.set_read_timeout(Some(std::time::Duration::from_secs(5))).ok()?;
        let mut told = vec![0; word.len()];
        connection.read_exact(&mut told).ok().map(|()| told)
    });
    running.kill();
    told.is_some_and(|told| told == word.as_bytes())
}

#[test]
fn other_machines_reach_what_listens_at_a_named_port_and_at_one_of_the_kernels() {
    promise!(kernel::TCP_PORTS);
    need!("python3");
    in_worlds(|world| {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = format!("listening at TCP port {free}");
        let chosen = "a free TCP port that the kernel chooses";
        let network = |bind: &[u16]| {
            let network = json!({ "mode": "allow", "connect": ["*:443"], "bind": bind });
            extended("network", &json!({ "network": network }))
        };
        let named = format!("s.bind(('0.0.0.0', {free}))");
        let reviewed = review(world, &network(&[free]));
        for (about, bind) in [(&*at, &*named), (chosen, "pass")] {
            assert!(has(&reviewed, "network", about), "{about}: {reviewed:#}");
            assert!(is_reached(world, bind), "{about}");
        }
        let unusual = reviewed["unusual"].to_string();
        assert!(unusual.contains(&format!("TCP port {free}")) && unusual.contains(chosen), "{unusual}");
        let out = world.sbx(["profile", "diff", "network", "../reviewed.json"]).run().exited(1);
        assert!(out.out().contains(chosen), "{out}");
        // None of it without the rule, nor under the profile that it extends.
        for profile in [network(&[]), json!({ "extends": "network" })] {
            let reviewed = review(world, &profile);
            assert!(!reviewed.to_string().contains("listening"), "{reviewed:#}");
            assert!(!shown(world).contains(chosen) && !is_reached(world, "pass"), "{reviewed:#}");
        }
        // Whoever has the whole network listens everywhere.
        let whole = review(world, &extended("workspace", &json!({ "network": { "mode": "host" } })));
        assert_eq!(
            has(&whole, "network", "listening at any TCP port"),
            is_reached(world, "pass"),
            "{whole:#}"
        );
        // In a network of its own a run is with itself.
        if kernel::gives_namespaces() {
            let alone = review(world, &json!({ "extends": "workspace" }));
            assert!(!alone.to_string().contains("listening") && !is_reached(world, "pass"), "{alone:#}");
        }
    });
}

/// A learned profile opens the workspace, and whoever builds there later runs what the command has left.
#[test]
fn what_is_made_of_the_workspace_later_is_the_commands() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let (build, own) = (world.path("build"), world.path(".").canonicalize().unwrap());
        let (own, about) = (own.to_str().unwrap(), "what is built, run, committed or pushed");
        let script = "rm -f build; printf '#!/bin/sh\\necho changed\\n' > build && chmod +x build";
        let is_changed = || {
            world.script("build", "#!/bin/sh\necho own\n");
            run(world, &["sh", "-c", script]);
            let out = world.bare([build.as_os_str()]).run();
            out.out() == "changed\n"
        };
        world.script("build", "#!/bin/sh\necho own\n");
        learn(world, &[], script).run().success();
        let learned = learned(world).unwrap();
        for (profile, writes) in [
            (learned, true),
            (json!({ "extends": "workspace" }), true),
            (json!({ "extends": "read-only", "paths": { "write": ["/"] } }), true),
            (json!({ "extends": "read-only" }), false),
        ] {
            let reviewed = review(world, &profile);
            let found = super::reviews::about(&reviewed, "workspace", own);
            assert_eq!(found.is_some(), writes, "{profile}: {reviewed:#}");
            assert_eq!(is_changed(), writes, "{profile}");
            let text = shown(world).replace("\n             ", " ");
            assert_eq!(text.contains(about), writes, "{text}");
        }
    });
}
