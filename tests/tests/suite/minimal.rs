//! `minimal`: reading and computing.

use sbx_tests::world::SECRET;
use sbx_tests::{World, as_users, in_worlds, kernel, need, promise};

use crate::corpus;

const COMMANDS: &[&[&str]] = &[
    &["cat", "lines", "table"],
    &["cat", "-A", "lines"],
    &["cat", "missing"],
    &["head", "-n", "2", "lines"],
    &["tail", "-n", "2", "lines"],
    &["tail", "-c", "5", "lines"],
    &["tac", "lines"],
    &["wc", "lines", "table"],
    &["sort", "lines"],
    &["sort", "-k2", "-n", "-r", "table"],
    &["uniq", "-c", "lines"],
    &["cut", "-d,", "-f2", "data.csv"],
    &["paste", "lines", "other"],
    &["join", "table", "table"],
    &["comm", "lines", "lines"],
    &["nl", "lines"],
    &["rev", "lines"],
    &["fold", "-w", "3", "lines"],
    &["expand", "lines"],
    &["tr", "a-z", "A-Z"],
    &["grep", "-r", "needle", "dir"],
    &["grep", "-n", "-i", "two", "lines", "other"],
    &["grep", "-c", "nothing", "lines"],
    &["grep", "-P", "t(?=w)", "lines"],
    &["find", ".", "-name", "deep", "-type", "f"],
    &["find", "dir", "-newermt", "2000-01-01", "-printf", "%p %s %m\n"],
    &["ls"],
    &["ls", "-la", "dir"],
    &["ls", "-R"],
    &["stat", "-c", "%n %s %a %F %U", "lines", "dir", "link"],
    &["readlink", "link"],
    &["readlink", "-f", "link"],
    &["realpath", "dir/sub"],
    &["basename", "dir/file"],
    &["dirname", "dir/file"],
    &["pwd"],
    &["du", "-sb", "lines"],
    &["file", "lines", "packed.gz", "dir"],
    &["sha256sum", "lines", "table"],
    &["md5sum", "lines"],
    &["b2sum", "lines"],
    &["cksum", "lines"],
    &["base64", "lines"],
    &["od", "-c", "lines"],
    &["hexdump", "-C", "lines"],
    &["xxd", "lines"],
    &["strings", "lines"],
    &["cmp", "lines", "lines"],
    &["cmp", "lines", "other"],
    &["diff", "-u", "--label", "a", "--label", "b", "lines", "other"],
    &["diff", "-r", "dir", "dir"],
    &["jq", ".list | add", "data.json"],
    &["jq", "-r", ".name", "data.json"],
    &["sed", "-n", "2p", "lines"],
    &["awk", "{s += $2} END {print s}", "table"],
    &["perl", "-e", "print join(',', sort {$b <=> $a} 1..5), qq(\\n)"],
    &["perl", "-ne", "print if /two/", "lines"],
    &["/usr/bin/python3", "-c", "import json; print(json.load(open('data.json'))['list'])"],
    &[
        "/usr/bin/python3",
        "-c",
        "import hashlib, re, math, decimal; print(hashlib.sha256(b'x').hexdigest(), math.pi)",
    ],
    &["/usr/bin/python3", "-c", "raise SystemExit(1)"],
    &["sqlite3", ":memory:", "create table t(a); insert into t values (1), (2); select sum(a) from t;"],
    &["gzip", "-dc", "packed.gz"],
    &["tar", "-tf", "archive.tar"],
    &["seq", "1", "5"],
    &["factor", "360"],
    &["expr", "2", "+", "3"],
    &["printf", "%s\n", "text"],
    &["echo", "text"],
    &["date", "-u", "-d", "@0", "+%F"],
    &["numfmt", "--to=iec", "1048576"],
    &["true"],
    &["false"],
    &["test", "-f", "lines"],
    &["sh", "-c", "x=1; while [ $x -lt 4 ]; do echo $x; x=$((x+1)); done"],
    &["readelf", "-h", "/bin/true"],
    &["openssl", "dgst", "-sha256", "lines"],
];

#[test]
fn reading_commands_behave_as_without_sbx() {
    as_users(|user| corpus::behaves_the_same(&World::new(user), "minimal", COMMANDS));
}

#[test]
fn pipes_and_large_streams_pass_through() {
    in_worlds(|world| {
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
        let out = world.run("minimal", ["cat"]).stdin(bytes.clone()).run().success().silent();
        assert!(out.stdout == bytes, "the stream was changed");
        world.run("minimal", ["tr", "a-z", "A-Z"]).stdin("abc\n").run().success().prints("ABC\n");
        world.run("minimal", ["sort"]).stdin("b\na\n").run().success().prints("a\nb\n");
        world.run("minimal", ["gzip", "-dc"]).stdin("no archive").run().failed();
    });
}

#[test]
fn commands_that_write_are_refused() {
    in_worlds(|world| {
        corpus::refused_and_without_effect(
            world,
            "minimal",
            &[
                &["touch", "made"],
                &["mkdir", "made"],
                &["cp", "lines", "made"],
                &["mv", "lines", "made"],
                &["rm", "lines"],
                &["rm", "-r", "dir"],
                &["ln", "lines", "made"],
                &["ln", "-s", "lines", "made"],
                &["truncate", "-s", "1", "lines"],
                &["chmod", "600", "lines"],
                &["touch", "-d", "@900000000", "lines"],
                &["sed", "-i", "s/one/ONE/", "lines"],
                &["tee", "made"],
                &["dd", "if=lines", "of=made", "status=none"],
                &["mkfifo", "made"],
                &["sh", "-c", "echo x > made"],
                &["sh", "-c", "echo x >> lines"],
                &["sh", "-c", "/bin/touch made"],
                &["/usr/bin/python3", "-c", "open('made', 'w')"],
                &["perl", "-e", "unlink 'lines' or exit 1"],
                &["sqlite3", "made.db", "create table t(a);"],
                &["gzip", "lines"],
            ],
        );
    });
}

#[test]
fn secrets_are_not_readable() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let home = |file: &str| world.home.join(file).into_os_string().into_string().unwrap();
        let mut files: Vec<String> =
            [".ssh/id_rsa", ".aws/credentials", ".gnupg/private-keys-v1.d/key", ".netrc"]
                .into_iter()
                .chain([
                    ".docker/config.json",
                    ".cargo/credentials.toml",
                    ".config/gh/hosts.yml",
                    "other-project/.env",
                ])
                .map(home)
                .collect();
        files.push("/etc/shadow".into());
        files.push("/proc/1/environ".into());
        files.push("../../outside/kept".into());
        for profile in ["minimal", "network", "write", "no-exec", "workspace", "read-only"] {
            for file in &files {
                let out = world.run(profile, ["cat", file]).run().exited(1).prints("");
                assert!(!out.err().contains(SECRET), "{out}");
            }
            let key = home(".ssh/id_rsa");
            world.sbx(["run", "--exec", "-p", profile, "--", "cat", &key]).run().exited(1).prints("");
        }
        // A link in the workspace does not lead there either.
        std::os::unix::fs::symlink(home(".netrc"), world.path("innocent")).unwrap();
        world.run("workspace", ["cat", "innocent"]).run().exited(1).prints("");
        world.bare(["cat", "innocent"]).run().success();
    });
}

#[test]
fn a_directory_of_the_home_directory_can_be_allowed_by_name() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let dir = world.outside.to_str().unwrap();
        let file = format!("{dir}/kept");
        world
            .sbx(["run", "-p", "minimal", "--ro", dir, "--", "cat", &file])
            .run()
            .success()
            .prints("outside\n");
        world.sbx(["run", "-p", "minimal", "--ro", dir, "--", "rm", &file]).run().failed();
        world.sbx(["run", "--ro", dir, "--", "rm", "-f", &file]).run().failed();
        assert!(world.outside.join("kept").exists());
        world.sbx(["run", "--rw", dir, "--", "rm", "-f", &file]).run().success();
        assert!(!world.outside.join("kept").exists());
    });
}

#[test]
fn who_compiles_while_it_runs_learns_what_it_lacks() {
    need!("node");
    in_worlds(|world| {
        for profile in ["minimal", "network", "write", "no-exec"] {
            let node = ["node", "-e", "console.log(1 + 1)"];
            world.run(profile, node).run().failed().says("refuses executable memory").says("--jitless");
            world.run(profile, ["node", "--jitless", "-e", node[2]]).run().success().prints("2\n");
        }
        let traps = ["sh", "-c", "kill -TRAP $$"];
        assert!(!world.run("workspace", traps).run().failed().err().contains("executable memory"));
    });
}
