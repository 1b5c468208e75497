//! The tools: what they answer.

use super::Client;
use sbx_tests::world::SECRET;
use sbx_tests::{World, in_worlds, kernel};
use serde_json::{Value, json};
use std::time::Instant;

/// The definition of a tool.
fn tool(client: &mut Client, name: &str) -> Value {
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap().clone();
    assert_eq!(tools.len(), 3, "{tools:?}");
    tools.into_iter().find(|tool| tool["name"] == name).unwrap()
}

/// Requires that an answer is what the tool says that it is, as text too.
fn conforms(result: &Value, tool: &Value) {
    let structured = &result["structuredContent"];
    let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
    let faults: Vec<String> = schema.iter_errors(structured).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}: {structured}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), structured);
}

#[test]
fn a_command_is_run_and_told_of_as_the_tool_says() {
    in_worlds(|world| {
        let mut client = Client::start(world, &[]);
        let execute = tool(&mut client, "execute");
        let command =
            json!({"command": "echo out; echo err >&2; cat; pwd > where; exit 3", "input": "typed"});
        let result = client.call("execute", command);
        conforms(&result, &execute);
        let run = &result["structuredContent"];
        assert_eq!((&run["stdout"], &run["stderr"]), (&json!("out\ntyped"), &json!("err\n")));
        assert_eq!((&run["cause"], &run["status"], &run["run"]), (&json!("exited"), &json!(3), &json!(1)));
        assert_eq!(run.get("refused"), None, "{run}");
        assert_eq!(world.read("where").unwrap(), format!("{}\n", world.workspace.display()));

        // Nothing but files is left for the next one.
        let run = client.run("echo $left; cat where >/dev/null; kill -9 $$");
        assert_eq!(
            (&run["stdout"], &run["signal"], &run["status"]),
            (&json!("\n"), &json!("SIGKILL"), &json!(137))
        );
        client.leave().success().silent();
    });
}

#[test]
fn what_is_refused_is_told_with_the_flag_that_would_allow_it() {
    in_worlds(|world| {
        if !kernel::promises(1) {
            return;
        }
        let kept = world.outside.join("kept");
        let read = format!("cat '{}'", kept.display());
        let mut client = Client::start(world, &[]);
        let execute = tool(&mut client, "execute");
        let result = client.call("execute", json!({"command": read}));
        conforms(&result, &execute);
        let run = &result["structuredContent"];
        assert_ne!(run["status"], 0);
        assert!(!run["stdout"].as_str().unwrap().contains("outside"), "{run}");
        let refused = &run["refused"][0];
        assert!(refused["what"].as_str().unwrap().contains("kept"), "{run}");
        assert!(refused["why"].as_str().unwrap().contains("may not read"), "{run}");
        let flags = run["allow_all_with"].as_str().unwrap().to_string();
        assert_eq!(flags, format!("--ro {}", kept.display()));
        assert!(!client.run("cat ~/.ssh/id_rsa")["stdout"].as_str().unwrap().contains(SECRET));

        // With that flag at its start, the server allows it.
        let words: Vec<&str> = flags.split(' ').collect();
        assert_eq!(Client::start(world, &words).run(&read)["stdout"], "outside\n");
    });
}

#[test]
fn calls_at_a_time_are_as_many_as_were_said() {
    let world = World::new(&sbx_tests::User::current());
    // Each takes a name that is free; two at a time would meet.
    let alone = "mkdir taken || exit 9; sleep 0.3; rmdir taken";
    let mut client = Client::start(&world, &["--concurrent", "1"]);
    let ids: Vec<u64> = (0..3).map(|_| client.begin(alone)).collect();
    for id in ids {
        let answer = client.answer(id);
        assert_eq!(answer["result"]["structuredContent"]["status"], 0, "{answer}");
    }
    // Each waits for the others: one at a time would never end.
    let together = "touch here-$NAME; for i in $(seq 500); do [ $(ls here-* | wc -l) = 4 ] && exit 0; sleep 0.02; done; \
                    exit 9";
    let mut client = Client::start(&world, &["--concurrent", "4"]);
    let begin = Instant::now();
    let ids: Vec<u64> =
        (0..4).map(|number| client.begin(&together.replace("$NAME", &number.to_string()))).collect();
    let mut runs = Vec::new();
    for id in ids {
        let answer = client.answer(id);
        let run = &answer["result"]["structuredContent"];
        assert_eq!(run["status"], 0, "{answer} after {:?}", begin.elapsed());
        runs.push(run["run"].as_u64().unwrap());
    }
    runs.sort_unstable();
    assert_eq!(runs, [1, 2, 3, 4]);
}

#[test]
fn a_client_that_wants_to_know_is_told_how_long_it_takes() {
    let world = World::new(&sbx_tests::User::current());
    let mut client = Client::start(&world, &["-t", "50s"]);
    let quiet = client.begin("sleep 1.5");
    let params =
        json!({"name": "execute", "arguments": {"command": "sleep 2.5"}, "_meta": {"progressToken": "mine"}});
    let told = client.ask("tools/call", params);
    client.answer(quiet);
    client.answer(told);
    let news: Vec<Value> = client
        .messages()
        .into_iter()
        .filter(|message| message["method"] == "notifications/progress")
        .collect();
    assert!(!news.is_empty());
    let mut before = 0.0;
    for message in &news {
        let params = &message["params"];
        assert_eq!(
            (&params["progressToken"], params["total"].as_f64()),
            (&json!("mine"), Some(50.0)),
            "{message}"
        );
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > before, "{news:?}");
        before = progress;
    }
}

#[test]
fn the_whole_report_of_a_run_can_be_read_and_no_other_file() {
    let world = World::new(&sbx_tests::User::current());
    let mut client = Client::start(&world, &[]);
    let read_report = tool(&mut client, "read_report");
    client.run("exit 7");
    client.run("curl -s http://192.0.2.1/ || python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'");
    let result = client.call("read_report", json!({"run": 1}));
    conforms(&result, &read_report);
    let report = &result["structuredContent"]["report"];
    assert_eq!((&report["exit_status"], &report["cause"]), (&json!(7), &json!("exited")));
    let second = client.call("read_report", json!({"run": 2}));
    let listed =
        |result: &Value| result["structuredContent"]["report"]["violations"].as_array().unwrap().len();
    assert!(listed(&second) > 0, "{second}");
    let rest = client.call("read_report", json!({"run": 2, "from": listed(&second)}));
    assert_eq!(listed(&rest), 0);
    client.refused("read_report", json!({"run": 3}), &["there was no run 3", "the last one is 2"]);
    client.refused("read_report", json!({"run": "/etc/passwd"}), &["cannot read the arguments"]);
    client.refused("read_report", json!({"run": 1, "file": "/etc/passwd"}), &["file"]);
}

#[test]
fn the_policy_can_be_asked() {
    let world = World::new(&sbx_tests::User::current());
    if !kernel::promises(1) {
        return;
    }
    let kept = world.outside.join("kept");
    let mut client = Client::start(&world, &["--ro", kept.to_str().unwrap()]);
    let why = tool(&mut client, "why");
    let mut asked = |question: Value| {
        let result = client.call("why", question);
        assert_eq!(result["isError"], false, "{result}");
        conforms(&result, &why);
        result["structuredContent"].clone()
    };
    assert_eq!(asked(json!({"path": kept}))["answer"], "allowed");
    let refused = asked(json!({"path": kept, "access": "w"}));
    assert_eq!(refused["answer"], "refused", "{refused}");
    assert!(refused["allow_with"].as_str().unwrap().starts_with("--rw "), "{refused}");
    // A name without a directory is one of the workspace.
    world.write("here", "");
    assert_eq!(asked(json!({"path": "here", "access": "rw"}))["answer"], "allowed");
    assert_eq!(asked(json!({"call": "reboot"}))["answer"], "refused");
    assert_eq!(asked(json!({"connect": "example.org:443"}))["answer"], "refused");
    client.refused("why", json!({}), &["exactly one"]);
    client.refused("why", json!({"call": "opnat"}), &["did you mean 'open"]);
    client.refused("why", json!({"path": "x", "access": "z"}), &["r, w, x and d"]);
}
