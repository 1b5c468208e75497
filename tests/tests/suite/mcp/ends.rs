//! How commands end: by their time, by a client that cancels or leaves, and by the death of the server.

use super::Client;
use sbx_tests::{User, World, in_worlds, processes, sys};
use serde_json::json;
use std::time::{Duration, Instant};

/// A command with children, which would go on for long.
fn long(marker: &str) -> String {
    format!(
        "sh -c 'sleep 1000 & sleep 1000' {marker} & setsid sh -c 'sleep 1000; :' {marker} & wait; : {marker}"
    )
}

/// Begins such a command, and waits for its processes.
fn begin(client: &mut Client) -> (u64, String) {
    let marker = processes::marker();
    let id = client.begin(&long(&marker));
    // Those of sbx itself have the command line too.
    processes::wait_for(&marker, 4);
    (id, marker)
}

#[test]
fn time_is_limited_by_the_call_and_by_the_server() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &["-t", "2s"]);
    for arguments in [json!({"timeout": 0.5}), json!({})] {
        let marker = processes::marker();
        let mut arguments = arguments;
        arguments["command"] = json!(long(&marker));
        let run = client.run_with(arguments);
        assert_eq!((&run["cause"], &run["status"]), (&json!("timeout"), &json!(124)), "{run}");
        processes::none_left(&marker);
    }
}

#[test]
fn a_call_that_is_cancelled_leaves_nothing_and_is_not_answered() {
    in_worlds(|world| {
        let mut client = Client::start(world, &[]);
        let (id, marker) = begin(&mut client);
        let (kept, other) = begin(&mut client);
        client.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
        let until = Instant::now() + Duration::from_secs(20);
        while !processes::with_marker(&marker).is_empty() {
            assert!(Instant::now() < until, "the command goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        // The other one does as before, and so does the server.
        assert!(processes::with_marker(&other).len() >= 4);
        assert_eq!(client.run("echo next")["stdout"], "next\n");
        assert!(client.messages().iter().all(|message| message["id"] != id), "the call was answered");
        client.notify("notifications/cancelled", json!({"requestId": kept}));
        // What was never asked for cannot be cancelled.
        client.notify("notifications/cancelled", json!({"requestId": 4711}));
        let (_, last) = begin(&mut client);
        client.leave().success();
        processes::none_left(&other);
        processes::none_left(&last);
    });
}

/// The server blocks the signals that it waits for. A command that had them blocked too could neither end its own
/// children nor be ended by a client before its last chance.
#[test]
fn signals_reach_commands() {
    in_worlds(|world| {
        let mut client = Client::start(world, &["--kill-after", "60s"]);
        let run = client.run("grep SigBlk /proc/self/status; sleep 60 & kill $!; wait $!; echo $?");
        assert_eq!(run["stdout"], "SigBlk:\t0000000000000000\n143\n", "{run}");
        let (id, marker) = begin(&mut client);
        let began = Instant::now();
        client.notify("notifications/cancelled", json!({"requestId": id}));
        while !processes::with_marker(&marker).is_empty() {
            assert!(
                began.elapsed() < Duration::from_secs(4),
                "the request to end does not reach the command"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        client.leave().success();
    });
}

#[test]
fn a_call_that_waits_can_be_cancelled_before_it_begins() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &["--concurrent", "1"]);
    let first = client.begin("sleep 1");
    let second = client.begin("touch made");
    client.notify("notifications/cancelled", json!({"requestId": second}));
    client.answer(first);
    client.run("true");
    assert!(!world.exists("made"));
}

#[test]
fn the_end_of_the_server_is_the_end_of_its_commands() {
    in_worlds(|world| {
        for (signal, status) in [(libc::SIGTERM, Some(143)), (libc::SIGINT, Some(130)), (libc::SIGKILL, None)]
        {
            let mut client = Client::start(world, &[]);
            let marks = [begin(&mut client).1, begin(&mut client).1];
            client.signal(signal);
            let out = client.ended();
            assert_eq!(out.code, status, "{out}");
            marks.iter().for_each(|marker| processes::none_left(marker));
        }
    });
}

#[test]
fn a_client_that_leaves_is_not_kept_waiting() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &[]);
    let (_, marker) = begin(&mut client);
    let start = Instant::now();
    client.leave().success();
    // Clients of the protocol wait for two seconds before they send signals.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    processes::none_left(&marker);
    // A client that says nothing at all is none.
    Client::silent(&world, &[]).leave().success().prints("");
}

#[test]
fn what_was_asked_before_the_client_left_is_answered() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &[]);
    let id = client.begin("echo done");
    let out = client.leave().success();
    let mut lines = out.out();
    lines.retain(|letter| letter != ' ');
    assert!(lines.contains(&format!("\"id\":{id},")) && lines.contains("done\\n"), "{out}");
}

#[test]
fn a_run_whose_supervisor_is_killed_is_told_of() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &[]);
    let (id, marker) = begin(&mut client);
    // The children of the server are the supervisors.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", client.pid())).unwrap();
    let children: Vec<i32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(children.len(), 1);
    sys::kill(children[0], libc::SIGKILL);
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("left no report"), "{text}");
    processes::none_left(&marker);
    assert_eq!(client.run("echo next")["stdout"], "next\n");
}
