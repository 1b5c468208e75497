//! What a stranger's command must not get without being asked for: as data.

/// A place, and what is there.
pub type Place = (&'static str, &'static str);

/// Secrets below the home directory. Whatever else begins with a dot there is closed as well, unless a built-in
/// profile opens it: these lists only say it better.
pub const HOME_SECRETS: &[Place] = &[
    (".gnupg", "keys of GnuPG"),
    (".pgpass", "passwords of databases"),
    (".my.cnf", "passwords of databases"),
    (".password-store", "passwords"),
    (".local/share/keyrings", "passwords"),
    (".local/share/kwalletd", "passwords"),
    (".mozilla", "passwords and sessions of a browser"),
    (".config/google-chrome", "passwords and sessions of a browser"),
    (".config/chromium", "passwords and sessions of a browser"),
    (".thunderbird", "letters and passwords"),
    ("Maildir", "letters"),
    ("Mail", "letters"),
    ("mbox", "letters"),
    ("snap", "settings of programs, with the passwords and sessions of browsers"),
    (".bash_history", "what was typed into a shell"),
    (".zsh_history", "what was typed into a shell"),
];

/// Those of them that open something on other machines.
pub const OF_OTHER_MACHINES: &[Place] = &[
    (".ssh", "keys and hosts of ssh"),
    (".aws", "keys of a cloud"),
    (".azure", "keys of a cloud"),
    (".config/gcloud", "keys of a cloud"),
    (".oci", "keys of a cloud"),
    (".kube", "keys of clusters"),
    (".docker", "passwords of registries"),
    (".config/containers", "passwords of registries"),
    (".netrc", "passwords of hosts"),
    (".git-credentials", "passwords of git"),
    (".config/git/credentials", "passwords of git"),
    (".config/gh", "tokens of a forge"),
    (".config/hub", "tokens of a forge"),
    (".npmrc", "tokens of a registry"),
    (".yarnrc.yml", "tokens of a registry"),
    (".pypirc", "passwords of a registry"),
    (".cargo/credentials.toml", "tokens of a registry"),
    (".gem/credentials", "tokens of a registry"),
    (".m2/settings.xml", "passwords of a registry"),
    (".cache/huggingface/token", "tokens of a service"),
    (".terraform.d", "tokens of a service"),
    (".vault-token", "tokens of a service"),
    (".claude/.credentials.json", "the login of an agent"),
    (".codex/auth.json", "the login of an agent"),
    (".gemini/oauth_creds.json", "the login of an agent"),
    (".local/share/opencode/auth.json", "the logins of an agent"),
];

/// Secrets of the machine.
pub const SECRETS: &[Place] = &[
    ("/etc/shadow", "passwords of users"),
    ("/etc/gshadow", "passwords of groups"),
    ("/etc/sudoers", "who may become root"),
    ("/etc/sudoers.d", "who may become root"),
    ("/etc/ssl/private", "keys of servers"),
    ("/etc/pki/tls/private", "keys of servers"),
    ("/etc/letsencrypt", "keys of servers"),
    ("/etc/wireguard", "keys of networks"),
    ("/etc/NetworkManager/system-connections", "passwords of networks"),
    ("/etc/krb5.keytab", "keys of this machine"),
    ("/etc/kubernetes", "keys of a cluster"),
    ("/var/lib/kubelet", "keys of a cluster"),
    ("/var/run/secrets", "secrets of a container"),
    ("/run/secrets", "secrets of a container"),
    ("/run/credentials", "secrets of services"),
    ("/var/lib/docker", "files of containers"),
    ("/var/lib/private", "files of services"),
    ("/proc/kcore", "the kernel's memory"),
    ("/proc/1", "the first process"),
    ("/var/mail", "letters of users"),
    ("/var/spool/mail", "letters of users"),
    ("/root", "root's home directory"),
];

/// Names of files that hold secrets, wherever they are; `*` matches any text, and case does not count.
pub const SECRET_NAMES: &[&str] = &[
    "*id_rsa*",
    "*id_dsa*",
    "*id_ecdsa*",
    "*id_ed25519*",
    "ssh_host_*_key",
    "*.pem",
    "*.key",
    "key.txt",
    "*.gpg",
    "*.asc",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ovpn",
    ".env",
    ".env.*",
    "*.env",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".dockercfg",
    ".git-credentials",
    "auth.json",
    "*credential*",
    "*secret*",
    "*password*",
    "shadow",
    "*token",
    "token.*",
    "tokens.*",
    "*-token.*",
    "*_token.*",
    "*.token.*",
    ".*_history",
    "*kubeconfig*",
    "*vault_pass*",
    "*vault-pass*",
    "wallet.dat",
    "logins.json",
    "key4.db",
    "cookies.sqlite",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "service-account*.json",
];

/// Places of files that everybody may have, whatever they are called: certificates, and programs with their data.
pub const PUBLIC: &[&str] =
    &["/usr", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/nix/store"];

/// What something outside executes or trusts later, below the home directory, beside what profile `workspace` protects.
pub const HOME_LATER: &[Place] = &[
    (".bash_aliases", "the usual .bashrc runs it"),
    (".config/git", "it names programs that git runs"),
    (".ssh", "who may log in, and what ssh runs"),
    (".config/autostart", "the desktop starts what is in it"),
    (".config/systemd", "the user's manager starts what is in it"),
    (".local/share/systemd", "the user's manager starts what is in it"),
    (".config/environment.d", "variables of every program of the session"),
    (".pam_environment", "variables of every program of the session"),
    (".xprofile", "the session runs it"),
    (".xsession", "the session runs it"),
    (".xinitrc", "the session runs it"),
    (".emacs", "emacs runs it"),
    (".emacs.d", "emacs runs what is in it"),
    (".local/bin", "shells look for commands in it"),
    ("bin", "shells look for commands in it"),
    (".cargo/bin", "shells look for commands in it"),
    ("go/bin", "shells look for commands in it"),
    (".npmrc", "it names programs and registries of npm"),
    (".pythonrc", "Python runs it"),
    (".local/lib", "programs load libraries from it"),
];

/// The same of the machine.
pub const LATER: &[Place] = &[
    ("/etc", "settings of the machine"),
    ("/etc/cron.d", "cron runs what is in it"),
    ("/etc/profile.d", "login shells run what is in it"),
    ("/etc/ld.so.preload", "every program loads what it names"),
    ("/usr", "programs of the machine"),
    ("/bin", "programs of the machine"),
    ("/sbin", "programs of the machine"),
    ("/lib", "libraries of the machine"),
    ("/lib64", "libraries of the machine"),
    ("/opt", "programs of the machine"),
    ("/boot", "the kernel that starts next"),
    ("/nix", "programs of the machine"),
    ("/root", "root's home directory"),
    ("/var/spool/cron", "cron runs what is in it"),
    ("/var/spool/at", "at runs what is in it"),
    ("/var/lib", "state of services"),
    ("/var/www", "a web server may run what is in it"),
    ("/run", "state of services"),
    ("/var/run", "state of services"),
    ("/proc", "settings of the kernel and of processes"),
    ("/proc/sys/kernel/core_pattern", "root runs the program that it names when one crashes"),
    ("/proc/sys/kernel/modprobe", "root runs the program that it names when a module is needed"),
    ("/proc/sys/kernel/poweroff_cmd", "root runs the program that it names when the machine stops"),
    ("/proc/sys/kernel/hotplug", "root runs the program that it names when a device comes"),
    ("/proc/sys/fs/binfmt_misc", "it names programs that run the files of others"),
    ("/proc/sysrq-trigger", "stops and restarts the machine"),
    ("/sys", "settings of the kernel"),
    ("/sys/kernel/uevent_helper", "root runs the program that it names when a device comes"),
    ("/sys/firmware/efi/efivars", "settings of the firmware"),
];

/// Names that mark a directory whose contents something outside executes, wherever it is, beside those that profile
/// `workspace` protects.
pub const LATER_NAMES: &[&str] = &[".git", ".hg", ".husky"];

/// Sockets of services that do what root or the user may do.
pub const SOCKETS: &[Place] = &[
    ("/run/docker.sock", "Docker: as good as root"),
    ("/var/run/docker.sock", "Docker: as good as root"),
    ("/run/containerd/containerd.sock", "containerd: as good as root"),
    ("/run/podman/podman.sock", "Podman: as good as root"),
    ("/run/crio/crio.sock", "CRI-O: as good as root"),
    ("/run/snapd.socket", "snapd: installs programs"),
    ("/var/run/libvirt/libvirt-sock", "libvirt: as good as root"),
    ("/run/dbus/system_bus_socket", "the services of the machine"),
    ("/run/systemd/private", "the manager of the machine"),
    ("/tmp/.X11-unix/X0", "the screen and the keyboard"),
];

/// What any other one is.
pub const SERVICE: &str = "a service outside, with rights of its own";

/// How the names of directories begin with sockets of such services in them.
pub const SOCKET_DIRECTORIES: &[Place] = &[
    ("tmux-", "a tmux outside: starts programs there"),
    ("S-", "a screen outside: starts programs there"),
    ("ssh-", "an agent of ssh: signs with your keys"),
];

/// Calls that are more than a program asks for by itself, and what each does. `{whose}`: the processes that it reaches.
pub const CALLS: &[(&str, &str)] = &[
    ("ptrace", "controls {whose}"),
    ("process_vm_readv", "reads the memory of {whose}"),
    ("process_vm_writev", "changes the memory of {whose}"),
    ("pidfd_getfd", "takes files of {whose}"),
    ("bpf", "puts programs into the kernel"),
    ("perf_event_open", "watches the machine, and has had many holes"),
    ("userfaultfd", "holds the kernel up, as exploits do"),
    ("io_uring_setup", "does calls that no filter sees"),
    ("unshare", "makes namespaces, which open much of the kernel"),
    ("clone", "makes namespaces, which open much of the kernel"),
    ("clone3", "makes namespaces, which open much of the kernel"),
    ("setns", "enters other namespaces"),
    ("mount", "changes what paths mean"),
    ("pivot_root", "changes what paths mean"),
    ("chroot", "changes what paths mean"),
    ("open_by_handle_at", "opens files without their paths"),
    ("keyctl", "uses keys of the user"),
    ("add_key", "uses keys of the user"),
    ("init_module", "puts code into the kernel"),
    ("finit_module", "puts code into the kernel"),
    ("kexec_load", "starts another kernel"),
    ("reboot", "restarts the machine"),
    ("settimeofday", "sets the clock"),
    ("swapon", "changes the machine's memory"),
    ("quotactl", "changes what users may store"),
    ("ioperm", "uses the machine's ports"),
    ("syslog", "reads the kernel's messages"),
    ("personality", "weakens protections of programs"),
];
