//! Hosts that a profile names.

use super::{FROM_ALLOWED, in_internets};

const PROFILE: &str = r#"{"extends": "workspace", "network": {"mode": "allow",
    "connect": ["*.example:80", "203.0.113.0/24:80"], "deny": ["other.example", "203.0.113.11"]}}"#;

/// `--net` says what network there is, instead of the profile. What this denies stays denied.
#[test]
fn a_flag_takes_the_place_of_a_profiles_network() {
    in_internets(|internet| {
        internet.world.write("p.json", PROFILE);
        let run = |internet: &mut super::Internet<'_>, flags: &str| {
            internet.run(&format!(
                "$SBX -q -p ./p.json {flags} -- sh -c 'for host in allowed.example other.example 203.0.113.10 \
                 203.0.113.11; do curl -sS -m 5 http://$host/; done; true'"
            ))
        };
        let nothing = [
            "--net none",
            "--net private",
            "--net none --namespaces none",
            "--net private --host-port 8",
            "--net private --publish 9999",
        ];
        for flags in nothing {
            assert_eq!(run(internet, flags).success().out(), "", "{flags}");
            assert_eq!(internet.log, "", "{flags}");
        }
        let twice = FROM_ALLOWED.repeat(2);
        for flags in
            ["", "--host-port 8", "--net private --connect *.example:80,81 --connect 203.0.113.0/24:80"]
        {
            run(internet, flags).success().prints(&twice);
            internet.saw_nothing_of("other.example");
            internet.saw_nothing_of("203.0.113.11");
        }
        run(internet, "--net host").exited(125).says("network.deny");
    });
}

#[test]
fn an_agents_hosts_are_not_reached_without_a_network() {
    in_internets(|internet| {
        let ask = "-- curl -sS -m 5 http://api.anthropic.com:443/";
        internet.run(&format!("$SBX -q -p agent:claude {ask}")).failed();
        assert!(internet.saw("question api.anthropic.com A"), "{}", internet.log);
        for flags in ["--net none", "--net private"] {
            internet.run(&format!("$SBX -q -p agent:claude {flags} {ask}")).failed();
            assert_eq!(internet.log, "", "{flags}");
        }
    });
}

#[test]
fn a_child_takes_no_host_out_of_a_group_that_its_parent_denies() {
    in_internets(|internet| {
        internet.world.write(
            "parent.json",
            r#"{"extends": "workspace", "network": {"mode": "allow", "connect": ["*.example:80"],
                "deny": ["@closed"], "groups": {"closed": ["other.example"]}}}"#,
        );
        let child = r#"{"extends": "./parent.json", "network": {"groups": {"closed": ["allowed.example"]}}}"#;
        internet.world.write("child.json", child);
        let mut curl = |host: &str| internet.run(&format!("$SBX -p ./child.json -- curl -sS http://{host}/"));
        curl("allowed.example").success().prints(FROM_ALLOWED);
        curl("other.example").failed();
        internet.saw_nothing_of("other.example");
    });
}
