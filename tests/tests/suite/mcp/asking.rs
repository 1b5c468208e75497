//! Asking the user, in the client, for what a command was refused.

use super::Client;
use sbx_tests::world::SECRET;
use sbx_tests::{User, World, kernel};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn able() -> Value {
    json!({"elicitation": {}})
}

fn read(path: &Path) -> String {
    format!("cat '{}'", path.display())
}

/// The questions of the server.
fn questions(client: &Client) -> Vec<Value> {
    client.messages().into_iter().filter(|message| message["method"] == "elicitation/create").collect()
}

/// Runs a command about which the server asks, and answers that.
fn answered(client: &mut Client, command: &str, answer: Value) -> (Value, Value) {
    let before = questions(client).len();
    let id = client.begin(command);
    let asks = |message: &Value| {
        message["method"] == "elicitation/create" && questions(client).len() > before && {
            questions(client)[before]["id"] == message["id"]
        }
    };
    let question = client.wait_for("a question", asks);
    client.reply(&question["id"], answer);
    (question["params"].clone(), client.answer(id)["result"]["structuredContent"].clone())
}

#[test]
fn what_the_user_allows_further_commands_get() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let kept = world.outside.join("kept");
    let mut client = Client::able(&world, &["--ask"], able());
    let yes = json!({"action": "accept", "content": {"allow": true}});
    let (question, run) = answered(&mut client, &read(&kept), yes);
    let text = question["message"].as_str().unwrap();
    assert!(text.contains(&format!("--ro {}", kept.display())) && text.contains("cat"), "{text}");
    assert_eq!(question["requestedSchema"]["properties"]["allow"]["type"], "boolean", "{question}");
    assert_eq!(run["granted"], json!([format!("--ro {}", kept.display())]), "{run}");
    assert_ne!(run["status"], 0);
    let run = client.run(&read(&kept));
    assert_eq!(run["stdout"], "outside\n", "{run}");
    // This file alone.
    let inner = read(&world.outside.join("dir/inner"));
    let (_, run) = answered(&mut client, &inner, json!({"action": "decline"}));
    assert_ne!(run["stdout"], "inner\n", "{run}");
    // The policy tells what is in force.
    assert_eq!(client.call("why", json!({"path": kept}))["structuredContent"]["answer"], "allowed");
}

#[test]
fn what_the_user_does_not_allow_stays_refused_and_is_not_asked_for_again() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let kept = world.outside.join("kept");
    for no in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {"allow": false}}),
        json!({"action": "accept", "content": {"allow": "true"}}),
        json!({"action": "accept"}),
    ] {
        let mut client = Client::able(&world, &["--ask"], able());
        let (_, run) = answered(&mut client, &read(&kept), no);
        assert_eq!(run.get("granted"), None, "{run}");
        let run = client.run(&read(&kept));
        assert_ne!(run["status"], 0, "{run}");
        assert_eq!(questions(&client).len(), 1);
    }
}

/// What a request of the newer protocol says of itself, which begins with no handshake.
fn newer(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": able(),
    });
    params
}

#[test]
fn in_the_newer_protocol_the_call_is_made_again_with_the_answer() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let line = format!("echo x >> ran; {}", read(&world.outside.join("kept")));
    let call = |more: Value| {
        let mut params = json!({"name": "execute", "arguments": {"command": line}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        newer(params)
    };
    let mut client = Client::silent(&world, &["--ask"]);
    let found = client.request("server/discover", newer(json!({})));
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")),
        "{found}"
    );
    let asked = client.request("tools/call", call(json!({})))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(question["params"]["message"].as_str().unwrap().contains("--ro "), "{question}");
    let answers = json!({key: {"action": "accept", "content": {"allow": true}}});
    let again = json!({"requestState": asked["requestState"], "inputResponses": answers});
    let told = client.request("tools/call", call(again.clone()))["result"].clone();
    assert_eq!(told["structuredContent"]["granted"].as_array().unwrap().len(), 1, "{told}");
    // The command was not run for that.
    assert_eq!(world.read("ran").as_deref(), Some("x\n"));
    let told = client.request("tools/call", call(json!({})))["result"].clone();
    assert_eq!(told["structuredContent"]["stdout"], "outside\n", "{told}");
    // An answer counts once, and one that nobody asked for never.
    for state in [asked["requestState"].clone(), json!("run 2"), json!("x")] {
        let made_up = json!({"requestState": state, "inputResponses": again["inputResponses"]});
        let told = client.request("tools/call", call(made_up))["result"].clone();
        assert_eq!(told["isError"], true, "{told}");
    }
    assert_eq!(world.read("ran").as_deref(), Some("x\nx\n"));
}

#[test]
fn the_user_is_asked_only_where_that_was_wanted_and_can_be() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let kept = world.outside.join("kept");
    for (flags, abilities) in
        [(&[][..], able()), (&["--ask"], json!({})), (&["--ask"], json!({"elicitation": {"url": {}}}))]
    {
        let mut client = Client::able(&world, flags, abilities);
        let run = client.run(&read(&kept));
        assert!(run["allow_all_with"].as_str().unwrap().contains("--ro"), "{run}");
        assert!(questions(&client).is_empty());
    }
}

#[test]
fn the_user_is_never_asked_for_what_holds_secrets_or_opens_much() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let mut client = Client::able(&world, &["--ask"], able());
    world.write(world.outside.join("server.pem"), SECRET);
    world.write(world.outside.join(".env"), SECRET);
    let outside = world.outside.display().to_string();
    std::os::unix::fs::symlink(&world.outside, world.path("link")).unwrap();
    for command in [
        "cat ~/.ssh/id_rsa".to_string(),
        "cat ~/.aws/credentials ~/.netrc; ls -a ~".to_string(),
        format!("cat {outside}/server.pem {outside}/.env"),
        "cat /etc/shadow; cat /proc/1/environ; ls /root; touch /usr/bin/new /etc/new".to_string(),
        "exec 3<>/dev/tcp/192.0.2.1/80".to_string(),
        "unshare -U true; mount -t tmpfs x /mnt; setpriv --reuid 1 true".to_string(),
    ] {
        client.run(&command);
        assert_eq!(questions(&client), [] as [Value; 0], "{command}");
    }
    // Its twin: a file beside them is asked for.
    let (question, _) = answered(&mut client, &format!("cat {outside}/kept"), json!({"action": "decline"}));
    assert!(question["message"].as_str().unwrap().contains("kept"));
}

/// Runs a command, and says yes to whatever is asked.
fn consented(client: &mut Client, command: &str) -> Value {
    let mut replied = questions(client).len();
    let id = client.begin(command);
    loop {
        client.wait_for("an answer or a question", |message| {
            let is_answer = message["id"] == id && message.get("method").is_none();
            is_answer || questions(client).len() > replied
        });
        let Some(question) = questions(client).get(replied).cloned() else {
            return client.answer(id)["result"]["structuredContent"].clone();
        };
        client.reply(&question["id"], json!({"action": "accept", "content": {"allow": true}}));
        replied += 1;
    }
}

/// A directory for which the user may be asked.
fn place(world: &World, name: &str) -> PathBuf {
    let path = world.outside.join(name);
    std::fs::create_dir_all(path.join("data")).unwrap();
    std::fs::write(path.join("data/inner"), "inner\n").unwrap();
    path
}

#[test]
fn what_the_user_allows_gives_no_command_a_path_that_was_allowed_before() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let key = world.home.join(".ssh/id_rsa");
    for flagged in [false, true] {
        let place = place(&world, if flagged { "flagged" } else { "allowed" });
        let (out, data) = (place.display(), place.join("data"));
        let flags = ["--ask", "--ro", data.to_str().unwrap()];
        let mut client = Client::able(&world, if flagged { &flags } else { &flags[..1] }, able());
        consented(&mut client, &format!("ls {out}/data"));
        assert_eq!(client.run(&read(&data.join("inner")))["stdout"], "inner\n");
        consented(&mut client, &format!("touch {out}/new"));
        consented(&mut client, &format!("rm -r {out}/data; ln -s {}/.ssh {out}/data", world.home.display()));
        for secret in [&data.join("id_rsa"), &key] {
            let run = client.run(&read(secret));
            assert!(!run["stdout"].as_str().unwrap().contains(SECRET), "{run}");
        }
        assert!(data.is_dir() && !data.is_symlink() && !place.join("new").exists());
    }
    // Its twin: nothing below the directory was allowed before.
    let place = place(&world, "asked");
    let touch = format!("touch {}/new", place.display());
    let mut client = Client::able(&world, &["--ask"], able());
    let run = consented(&mut client, &touch);
    assert_eq!(run["granted"], json!([format!("--rw {}", place.display())]), "{run}");
    assert_eq!(client.run(&touch)["status"], 0);
    assert!(place.join("new").exists());
}

/// A command in another sandbox may have put a link there, or put one there while the user reads.
#[test]
fn the_user_is_not_asked_for_what_others_can_replace() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    for used in [true, false] {
        let place = place(&world, if used { "used" } else { "unused" });
        if used {
            world.sbx(["run", "-q", "--workspace", place.to_str().unwrap(), "--", "true"]).run().success();
        }
        let mut client = Client::able(&world, &["--ask"], able());
        let run = consented(&mut client, &read(&place.join("data/inner")));
        assert_eq!((questions(&client).is_empty(), run.get("granted").is_none()), (used, used), "{run}");
    }
    let place = place(&world, "swapped");
    let data = place.join("data");
    let mut client = Client::able(&world, &["--ask"], able());
    let id = client.begin(&read(&data.join("inner")));
    let question = client.wait_for("a question", |message| message["method"] == "elicitation/create");
    std::fs::rename(&data, place.join("was")).unwrap();
    std::os::unix::fs::symlink(world.home.join(".ssh"), &data).unwrap();
    client.reply(&question["id"], json!({"action": "accept", "content": {"allow": true}}));
    let run = client.answer(id)["result"]["structuredContent"].clone();
    assert_eq!(run.get("granted"), None, "{run}");
    assert_ne!(client.run(&read(&data.join("id_rsa")))["stdout"], SECRET);
}
