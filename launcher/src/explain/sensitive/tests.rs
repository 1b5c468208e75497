use super::*;
use crate::enforce::scratch::Scratch;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

struct Machine {
    scratch: Scratch,
    sensitive: Sensitive,
}

/// A home directory with a workspace in it.
fn machine() -> Machine {
    let scratch = Scratch::create(None).unwrap();
    let base = canonical(scratch.path());
    for directory in [
        "home/work/.git/hooks",
        "home/.ssh",
        "home/.claude",
        "home/data/deep",
        "home/code/.git/hooks",
        "home/bare/objects",
        "home/bare/hooks",
        "home/served",
        "home/token/data",
    ] {
        fs::create_dir_all(base.join(directory)).unwrap();
    }
    for file in [
        "home/work/.envrc",
        "home/.ssh/id_rsa",
        "home/.cargo-token",
        "home/data/plain",
        "home/data/deep/table.csv",
        "home/bare/HEAD",
        "home/token/data/plain",
    ] {
        fs::write(base.join(file), "").unwrap();
    }
    UnixListener::bind(base.join("home/served/pipe")).unwrap();
    let host = Host::with_environment(vec![
        ("HOME".into(), base.join("home").into()),
        ("PATH".into(), base.join("home/tools").into()),
    ]);
    let sensitive = Sensitive::of(&host, Some(&base.join("home/work"))).unwrap();
    Machine { scratch, sensitive }
}

impl Machine {
    fn path(&self, below: &str) -> PathBuf {
        canonical(self.scratch.path()).join(below)
    }

    fn is(&self, below: &str, what: Use) -> bool {
        let path = if below.starts_with('/') { PathBuf::from(below) } else { self.path(below) };
        self.sensitive.path(&path, what).is_some()
    }
}

#[test]
fn secrets_and_what_holds_them_are_sensitive() {
    let machine = machine();
    for path in [
        "home/.ssh",
        "home/.ssh/id_rsa",
        "home/.unknown",
        "home/.cargo-token",
        "home",
        "/",
        "/home",
        "/home/somebody-else/file",
        "/etc/shadow",
        "/etc",
        "/root",
        "home/Maildir/new",
        "home/snap/firefox/common",
        "/var/mail",
        "/dev/mem",
        "/dev/kvm",
        "/proc/kcore",
        "home/served",
        "home/token/data/plain",
        "home/snap",
        "home/snap/firefox/common/.mozilla/x",
        "home/data/logins.json",
        "home/data/terraform.tfstate",
        "home/data/terraform.tfstate.backup",
        // Though built-in profiles open what is around it.
        "/proc/1/environ",
    ] {
        assert!(machine.is(path, Use::Read), "{path}");
    }
    for path in [
        "home/data",
        "home/data/plain",
        "home/work",
        "home/work/x",
        "/usr/share",
        "/dev/null",
        "/proc/meminfo",
    ] {
        assert_eq!(machine.sensitive.path(&machine.path(path), Use::Read), None, "{path}");
    }
}

#[test]
fn what_is_executed_later_is_sensitive_to_changes_alone() {
    let machine = machine();
    for path in [
        "home/.bashrc",
        "home/.local/bin/x",
        "home/go/bin/x",
        "home/.config/autostart",
        "home/tools",
        "home/tools/x",
        "home/code",
        "home/code/.git/hooks",
        "home/bare/hooks",
        "home/bare",
        "home/served",
        "home/served/pipe",
        "home/opencode.json",
        "home/work/.git/hooks/pre-commit",
        "home/work/.git/config",
        "home/work/.envrc",
        "home/.claude/settings.json",
        "/etc/cron.d/x",
        "/usr/local/bin",
        "/proc/sys/kernel/core_pattern",
    ] {
        assert!(machine.is(path, Use::Write), "{path}");
    }
    for path in ["home/data", "home/work", "home/work/src", "home/code/file"] {
        assert_eq!(machine.sensitive.path(&machine.path(path), Use::Write), None, "{path}");
    }
}

#[test]
fn a_directory_is_as_sensitive_as_what_is_below_it() {
    let machine = machine();
    assert!(!machine.is("home/data", Use::Read));
    fs::write(machine.path("home/data/deep/server.key"), "").unwrap();
    assert!(machine.is("home/data", Use::Read));
    assert!(!machine.is("home/data/plain", Use::Read));
    fs::remove_file(machine.path("home/data/deep/server.key")).unwrap();
    for name in ["prod.tfstate", "prod-kubeconfig.yaml", ".vault_pass.txt"] {
        let path = machine.path("home/data/deep").join(name);
        assert!(!machine.is("home/data", Use::Read), "{name}");
        fs::write(&path, "").unwrap();
        assert!(machine.is("home/data", Use::Read), "{name}");
        fs::remove_file(&path).unwrap();
    }
    fs::set_permissions(machine.path("home/data/deep/table.csv"), Permissions::from_mode(0o600)).unwrap();
    assert!(machine.is("home/data", Use::Read) && machine.is("home/data/deep/table.csv", Use::Read));
    // A link leads nowhere by a rule about its directory.
    fs::remove_file(machine.path("home/data/deep/table.csv")).unwrap();
    symlink(machine.path("home/.ssh"), machine.path("home/data/link")).unwrap();
    assert!(!machine.is("home/data", Use::Read));
}

#[test]
fn the_settings_of_a_repository_are_sensitive_where_they_have_a_login() {
    let machine = machine();
    fs::create_dir_all(machine.path("home/code/.git/objects")).unwrap();
    fs::write(machine.path("home/code/.git/HEAD"), "").unwrap();
    for (url, has_login) in [("https://user:token@host/x", true), ("https://host/x", false)] {
        let text = format!("[remote \"origin\"]\n\turl = {url}\n");
        fs::write(machine.path("home/code/.git/config"), text).unwrap();
        for path in ["home/code/.git/config", "home/code/.git", "home/code"] {
            assert_eq!(machine.is(path, Use::Read), has_login, "{path} {url}");
        }
    }
    // A command may put one there, which nobody writes to.
    let config = machine.path("home/code/.git/config");
    fs::remove_file(&config).unwrap();
    assert!(!machine.is("home/code", Use::Read));
    assert!(Command::new("mkfifo").arg(config).status().unwrap().success());
    assert!(machine.is("home/code", Use::Read));
}

#[test]
fn calls_of_no_built_in_profile_are_sensitive() {
    let known = KnownCalls::new().unwrap();
    for entry in
        ["ptrace", "bpf", "mount", "unshare", "@mount", "openat2", "no-such", "keyctl", "io_uring_setup"]
    {
        assert!(known.judge(entry).is_some(), "{entry}");
    }
    for entry in
        ["read", "openat[no-setid]", "execve", "mkdir[no-setid]", "ioctl[query]", "listen", "connect"]
    {
        assert_eq!(known.judge(entry), None, "{entry}");
    }
}

#[test]
fn services_and_private_addresses_are_sensitive() {
    let machine = machine();
    let host = |text| machine.sensitive.host(&HostRule::parse(text).unwrap()).is_some();
    for text in [
        "169.254.169.254:80",
        "10.0.0.1:22",
        "*:443",
        "*.com:443",
        "203.0.113.0/24:80",
        "[::1]:80",
        "[fd00::1]:80",
    ] {
        assert!(host(text), "{text}");
    }
    assert!(!host("example.org") && !host("8.8.8.8:443"));
    assert!(machine.sensitive.unix(Path::new("/run/user/1000/bus")).is_some());
    assert!(machine.sensitive.unix(&machine.path("home/work/s.sock")).is_none());
}

#[test]
fn secrets_are_known_by_place_or_name() {
    let home = Some(Path::new("/home/u"));
    let at = |path: &str| secrets_at(Path::new(path), home);
    assert_eq!(at("/home/u/.ssh/config"), Some("keys and hosts of ssh"));
    assert_eq!(at("/etc/shadow"), Some("passwords of users"));
    for named in [
        "/home/u/code/.env",
        "/etc/ssh/ssh_host_rsa_key",
        "/srv/site.key",
        "/srv/old_id_rsa.bak",
        "/srv/secring.gpg",
        "/srv/prod.env",
        "/srv/terraform.tfvars",
        "/srv/auth.json",
        "/srv/api-token.txt",
        "/srv/backup/.bash_history",
    ] {
        assert_eq!(at(named), Some("a secret, as its name says"), "{named}");
    }
    for plain in [
        "/home/u/code/main.c",
        "/home/u/code/tokenizer.json",
        "/etc/ssh/ssh_config",
        "/etc/passwd",
        "/usr/lib/python3/token",
        "/",
    ] {
        assert_eq!(at(plain), None, "{plain}");
    }
}

#[test]
fn sockets_of_services_that_start_programs_are_known() {
    assert!(service_at(Path::new("/run/docker.sock")).is_some());
    assert!(service_at(Path::new("/tmp/tmux-1000/default")).is_some_and(|what| what.contains("tmux")));
    assert!(
        service_at(Path::new("/tmp/tmux-1000")).is_none()
            && service_at(Path::new("/tmp/db/s.sock")).is_none()
    );
}
