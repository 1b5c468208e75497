//! Learning which hosts a command needs.

use super::{FROM_ALLOWED, Internet, in_internets};
use serde_json::{Value, json};

/// A shell script to be learned from, and the profile that it makes, if one.
fn learn(internet: &mut Internet<'_>, flags: &str, script: &str) -> (sbx_tests::Output, Option<Value>) {
    let out = internet.run(&format!("${{SBX% run}} learn -o learned.json {flags} -- sh -c '{script}'"));
    let profile = internet.world.read("learned.json").map(|text| serde_json::from_str(&text).unwrap());
    (out, profile)
}

/// The hosts of a profile's rules.
fn hosts(profile: &Value) -> Vec<&str> {
    let rules = profile["network"]["connect"].as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["host"].as_str()).collect()
}

#[test]
fn a_command_teaches_the_hosts_that_it_connects_to_and_no_other() {
    in_internets(|internet| {
        let fetch = "curl -sS http://allowed.example/ http://www.wild.example/";
        for flags in ["", "--profile read-only", "--profile workspace"] {
            let (out, profile) = learn(internet, flags, fetch);
            out.success();
            let profile = profile.unwrap();
            assert_eq!(hosts(&profile), ["allowed.example:80", "www.wild.example:80"], "{profile:#}");
            assert_eq!(profile["network"]["mode"], "allow", "{profile:#}");
            let out = internet.run(&format!("$SBX -p ./learned.json -- {fetch}")).success();
            assert_eq!(out.out(), format!("{FROM_ALLOWED}hello from 203.0.113.12\n"), "{out}");
            assert!(internet.saw("bytes 203.0.113.10 80") && internet.saw("bytes 203.0.113.12 80"));
            // The next host, the next port, and a name that looks alike.
            for next in ["other.example", "allowed.example:443", "allowed.example.other.example"] {
                let curl = format!("curl -sS --max-time 5 http://{next}/");
                internet.run(&format!("$SBX -p ./learned.json -- {curl}")).failed();
                internet.saw_nothing_of("other.example");
                internet.saw_nothing_of("connection");
            }
            // The twin.
            let more = "--connect other.example:80 -- curl -sS http://other.example/";
            internet.run(&format!("$SBX -p ./learned.json {more}")).success();
            assert!(internet.saw("connection 203.0.113.11 80"));
            std::fs::remove_file(internet.world.path("learned.json")).unwrap();
        }
    });
}

/// What a name leads to and what an address is decide, and not who asks.
#[test]
fn no_private_address_is_learned() {
    in_internets(|internet| {
        let fetch =
            |hosts: &str| format!("for host in {hosts}; do curl -sS --max-time 5 http://$host/; done; true");
        let private = "private.example metadata.example loop.example 10.0.0.1 169.254.169.254 127.0.0.1";
        let (out, profile) = learn(internet, "", &fetch(&format!("allowed.example {private}")));
        let out = out.success();
        internet.saw_nothing_of("connection 1");
        let profile = profile.unwrap();
        assert_eq!(hosts(&profile), ["allowed.example:80"], "{profile:#}");
        assert_eq!(profile["network"]["deny"][0]["host"], json!("169.254.0.0/16"), "{profile:#}");
        // A name that leads to a private address is tried once, and then no more.
        out.says("private.example").says("its name leads to no public address");
        let again = fetch(private);
        internet.run(&format!("$SBX -p ./learned.json -- sh -c '{again}'"));
        internet.saw_nothing_of("connection");
    });
}
