//! Files that are there outside and not inside: whose refusals are told.

use super::{lines, none, one};
use crate::debuggers::compile;
use sbx_tests::{in_worlds, need, promise};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// cargo looks at the directory of a dependency, opens its manifest, writes a cache, and says then what went wrong.
#[test]
fn what_is_out_of_sight_is_named_to_who_speaks_late() {
    need!("gcc");
    promise!(namespaces);
    const PROGRAM: &str = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/stat.h>
        int main(void) {
            struct stat found;
            char directory[4096], file[4200];
            if (scanf("%4095s", directory) != 1) return 0;
            snprintf(file, sizeof file, "%s/file", directory);
            if (stat(directory, &found) == 0 || open(file, O_RDONLY) >= 0) return 0;
            open("cache/file", O_WRONLY | O_CREAT, 0666);
            fprintf(stderr, "%s\n", strerror(2));
            return 1;
        }"#;
    in_worlds(|world| {
        compile(world, "program", PROGRAM, &[]);
        for (name, is_told) in [("other", true), (".settings", false)] {
            let directory = world.home.join(name);
            world.write(directory.join("file"), "x\n");
            let directory = directory.to_str().unwrap();
            world.write("name", directory);
            let line = "./program < name";
            if !is_told {
                none(&lines(world, &[], line));
                continue;
            }
            // One line for the directory and what is in it.
            one(&lines(world, &[], line), &["out of sight", &format!("allow it with --ro {directory}")]);
            none(&lines(world, &["--ro", directory], line));
        }
    });
}

/// The library does not see a static program's calls, nor those that libc makes for itself.
#[test]
fn what_is_out_of_sight_is_named_by_the_words_of_a_command_that_fails() {
    need!("busybox", "dash", "git", "sort");
    promise!(namespaces);
    in_worlds(|world| {
        let hidden = world.home.join("other/file");
        world.write(&hidden, "x\n");
        let path = hidden.to_str().unwrap();
        for (line, named) in [
            (format!("busybox cat {path}"), path),
            (format!("sort --files0-from={path}"), path),
            ("sort ~/other/file".to_string(), path),
            // It looks at the directory first.
            (format!("realpath -e {path}"), path),
            ("dash -c 'cd \"$HOME/other\"'".to_string(), hidden.parent().unwrap().to_str().unwrap()),
        ] {
            let words = ["is out of sight", &format!("allow it with --ro {named}")];
            one(&lines(world, &[], &line), &words);
            none(&lines(world, &["--ro", named], &line));
        }
        // Where nobody has seen a call, none is said to have been refused.
        for line in [format!("exit 1; cat {path}"), format!("git commit -m 'see {path}'")] {
            let said = lines(world, &[], &line);
            one(
                &said,
                &[&format!("sbx: {path}, which the command names, is out of sight"), "allow it with --ro "],
            );
            assert!(!said[0].contains("blocked") && !said[0].contains("may not"), "{said:?}");
        }
        let report = world.path("report.json");
        let flags = ["--report", report.to_str().unwrap()];
        lines(world, &flags, &format!("exit 1; cat {path}"));
        assert!(world.read(&report).unwrap().contains(r#""confidence":"named""#));
        // A command that does without is not bothered.
        none(&lines(world, &[], &format!("busybox cat {path}; true")));
        // Nor is one that finds a file of the run's own there.
        let said = lines(world, &[], "mkdir -p ~/other; touch ~/other/file; sort ~/other/file; exit 3");
        one(&said, &["written to the run's own home"]);
    });
}

/// What a program includes it looks for in many places, and goes elsewhere before it ends.
#[test]
fn what_is_beside_the_workspace_is_named_unless_its_name_is_looked_for_upwards() {
    need!("dash", "gcc", "make", "perl");
    promise!(namespaces);
    in_worlds(|world| {
        let (app, lib) = (world.home.join("project/app"), world.home.join("project/lib"));
        let [app, lib] = [&app, &lib].map(|path| path.to_str().unwrap());
        world.write(format!("{app}/Makefile"), "include ../lib/rules.mk\nall:\n\t@echo made\n");
        world.write(format!("{lib}/rules.mk"), "x = 1\n");
        world.write(format!("{lib}/Beside.pm"), "package Beside;\n1;\n");
        world.write(format!("{lib}/beside.h"), "\n");
        world.write(format!("{app}/a.c"), "#include \"beside.h\"\n");
        world.write(format!("{app}/script"), "cd ../lib\n");
        symlink("../lib", format!("{app}/link")).unwrap();
        world.write_at_home("project/settings", "x\n");
        world.write_at_home("settings", "x\n");
        let flags = ["--workspace", app, "--cwd", app];
        let lines_of = [
            "make -s",
            "perl -e 'use lib qw(../lib); use Beside'",
            // It looks for the header in twenty directories.
            "gcc -I../lib -c a.c",
            "dash ./script",
            "perl -e 'open F, qw(../lib/rules.mk) and exit; chdir qw(/); exit 1'",
            "perl -e '-e qw(link) or -e qw(none) or exit 1'",
        ];
        for line in lines_of {
            one(&lines(world, &flags, line), &["out of sight", &format!("allow it with --ro {lib}")]);
            none(&lines(world, &[&flags[..], &["--ro", lib]].concat(), line));
        }
        let looking_in = |directories: &str| {
            let line =
                format!(r#"perl -e '-e "$_/settings" and exit 0 for qw({directories}); -e "none"; exit 1'"#);
            lines(world, &flags, &line)
        };
        none(&looking_in(". .. ../.. ../../.."));
        one(&looking_in(".."), &["out of sight", "project/settings"]);
    });
}

/// What a program looks for on its own and finds nowhere is not why it fails, where no other machine can be reached.
#[test]
fn passwords_of_other_machines_are_missed_where_those_can_be_reached() {
    need!("perl");
    promise!(namespaces);
    in_worlds(|world| {
        let look = "perl -e 'exit !-e $ENV{HOME} . shift'";
        for (name, is_of_others) in [(".netrc", true), (".aws/credentials", true), (".pgpass", false)] {
            world.write_at_home(name, "x\n");
            let line = format!("{look} /{name}");
            let path = world.home.join(name).display().to_string();
            let said = lines(world, &[], &line);
            if is_of_others {
                none(&said)
            } else {
                one(&said, &["out of sight", &path])
            }
            // The twins: they can be, or the file is named.
            one(&lines(world, &["--net", "host"], &line), &["out of sight", &path]);
            one(&lines(world, &[], &format!("cat {path}")), &["out of sight", &path]);
        }
    });
}

/// A shell that finds no name for a pattern hands it on as it is.
#[test]
fn a_pattern_for_files_out_of_sight_asks_for_them() {
    promise!(namespaces);
    in_worlds(|world| {
        for name in ["other/b.txt", "other/.c.txt", "a.txt"] {
            world.write_at_home(name, "x\n");
        }
        let at = |name: &str| world.home.join(name).display().to_string();
        for (pattern, asked) in [("other/*.txt", "other"), ("other/.*.t[x]t", "other"), ("*.txt", "a.txt")] {
            let line = format!("cat {}", at(pattern));
            let flag = format!("allow it with --ro {}", at(asked));
            let said = lines(world, &[], &line);
            one(&said[..1], &["which is out of sight", &flag]);
            assert!(said[0].ends_with(&flag), "{said:?}");
            none(&lines(world, &["--ro", &at(asked)], &line));
        }
        for pattern in ["none/*.txt", "*.none", "[a.txt"] {
            none(&lines(world, &[], &format!("cat {}", at(pattern))));
        }
    });
}

/// A flag that names what a link leads to brings no link.
#[test]
fn what_a_link_out_of_sight_leads_to_is_named_by_that_link() {
    promise!(namespaces);
    in_worlds(|world| {
        world.write_at_home("letters/one", "x\n");
        let at = |name: &str| world.home.join(name).display().to_string();
        for (target, link) in
            [("letters", "post"), ("post", "mail"), ("letters/one", "one"), ("/usr/bin/env", "tool")]
        {
            symlink(target, world.home.join(link)).unwrap();
        }
        symlink(world.home.join("mail/one"), world.path("first")).unwrap();
        for (named, asked) in [
            ("post/one", "post/one"),
            ("mail/one", "mail/one"),
            ("one", "one"),
            ("tool", "tool"),
            ("project/first", "mail/one"),
        ] {
            let line = format!("cat {} > /dev/null", at(named));
            let flag = format!("allow it with --ro {}", at(asked));
            let said = lines(world, &[], &line);
            one(&said, &[&format!("{}, which is out of sight", at(asked)), &flag]);
            one(&lines(world, &["--explain"], &line), &[&flag]);
            none(&lines(world, &["--ro", &at(asked)], &line));
        }
        // What a link leads to that is in sight is read by its own name.
        none(&lines(world, &[], "cat /usr/bin/env > /dev/null; exit 3"));
    });
}

/// A script finds its interpreter by a name of its own. One in an environment of Python's is a link, and takes what is
/// around it.
#[test]
fn an_interpreter_out_of_sight_is_named_with_its_environment() {
    promise!(namespaces);
    in_worlds(|world| {
        world.write_at_home("envs/one/pyvenv.cfg", "");
        world.make_dir(&world.home.join("envs/one/bin"));
        world.make_dir(&world.home.join("plain"));
        for place in ["envs/one/bin", "plain"] {
            symlink("/bin/sh", world.home.join(place).join("python")).unwrap();
        }
        for (at, asked) in [("envs/one/bin/python", "envs/one"), ("plain/python", "plain/python")] {
            let [at, asked] = [at, asked].map(|name| world.home.join(name).display().to_string());
            world.script("script", format!("#!{at}\nexit 0\n"));
            for line in ["./script".to_string(), format!("{at} -c true")] {
                for flags in [&[][..], &["--explain"]] {
                    let said = lines(world, flags, &line);
                    let words =
                        [&*format!("may not execute {at}, which is out of sight"), &format!("--rox {asked}")];
                    one(&said, &words);
                    assert!(said[0].ends_with(words[1]), "{said:?}");
                }
                none(&lines(world, &["--rox", &asked], &line));
            }
        }
        // Of one that is nowhere, nothing is said.
        world.script("script", format!("#!{}/none\n", world.home.display()));
        none(&lines(world, &[], "./script"));
    });
}

/// Where the user may not write outside either, no flag helps.
#[test]
fn what_permissions_close_outside_is_not_blamed_on_the_sandbox() {
    promise!(namespaces);
    in_worlds(|world| {
        let directory = world.home.join("others");
        world.make_dir(&directory);
        let touch = format!("touch {}/new", directory.display());
        one(
            &lines(world, &[], &touch),
            &["out of sight", &format!("allow it with --rw {}", directory.display())],
        );
        fs::set_permissions(&directory, Permissions::from_mode(0o555)).unwrap();
        // Root's own permissions are none there.
        if !world.user.is_root() {
            none(&lines(world, &[], &touch));
        }
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    });
}

/// What reads the manifest of a project reads the rest of it next. Above the working directory it is looked for.
#[test]
fn a_manifest_out_of_sight_is_named_with_its_project() {
    need!("perl");
    promise!(namespaces);
    in_worlds(|world| {
        let (app, lib) = (world.home.join("projects/app"), world.home.join("projects/lib"));
        let [app, lib] = [&app, &lib].map(|path| path.to_str().unwrap());
        for name in ["app/keep", "lib/Cargo.toml", "lib/lib.rs", "lib/settings"] {
            world.write_at_home(&format!("projects/{name}"), "x\n");
        }
        let flags = ["--workspace", app, "--cwd", app];
        let build = "perl -e 'for (qw(Cargo.toml lib.rs)) { open(F, \"../lib/$_\") or die $! }'";
        let said = lines(world, &flags, build);
        one(&said, &["out of sight"]);
        assert!(said[0].ends_with(&format!("allow it with --ro {lib}")), "{said:?}");
        none(&lines(world, &[&flags[..], &["--ro", lib]].concat(), build));
        // So it is beside secrets, and where the workspace is in the project.
        for name in ["keyed/go.mod", "keyed/.env", "go.mod"] {
            world.write_at_home(&format!("projects/{name}"), "x\n");
        }
        for name in ["keyed/go.mod", "go.mod"] {
            let path = world.home.join("projects").join(name).display().to_string();
            let said = lines(world, &flags, &format!("cat {path}"));
            assert!(said[0].ends_with(&format!("allow it with --ro {path}")), "{said:?}");
        }
        // A file of another name is named by itself.
        let said = lines(world, &flags, "cat ../lib/settings");
        assert!(said[0].ends_with(&format!("allow it with --ro {lib}/settings")), "{said:?}");
    });
}
