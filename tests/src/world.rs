//! A home directory with secrets in it and a workspace inside, for one test and one user.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::Cmd;
use crate::users::{User, as_users};
use crate::{stage, subjects, tools};

/// Every planted secret contains this.
pub const SECRET: &str = "planted-secret";

const SECRETS: &[&str] = &[
    ".ssh/id_rsa",
    ".aws/credentials",
    ".gnupg/private-keys-v1.d/key",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".netrc",
    ".cargo/credentials.toml",
    ".npmrc",
    "other-project/.env",
];

/// If it is set, `sbx run` has a run take its command that waits already, where one can.
const WARM: &str = "SBX_TEST_WARM";

/// Starts a pool for the flags before `--`, and then the command. What is no `run` is left alone.
const START_WARM: &str = r#"
if [ "$1" = run ]; then
    count=0 words= place=0
    for word do
        [ "$word" = -- ] && place=$count && break
        count=$((count + 1))
        [ "$count" = 1 ] || words="$words \"\${$count}\""
    done
    if [ "$place" -gt 0 ]; then
        eval "\"\$0\" pool start --size 1 --idle 2s $words" </dev/null >/dev/null 2>&1
        SBX_POOL=1
        export SBX_POOL
    fi
fi
exec "$0" "$@"
"#;

/// The place that a test's commands run in. Removed when dropped.
pub struct World {
    root: PathBuf,
    /// The user of the commands.
    pub user: User,
    /// The home directory, full of secrets.
    pub home: PathBuf,
    /// The working directory of every command, below the home.
    pub workspace: PathBuf,
    /// A directory of the same user that no profile names, with a few files in it.
    pub outside: PathBuf,
}

impl World {
    /// A new world for this user.
    pub fn new(user: &User) -> World {
        let root = stage::fresh_dir(user);
        let (home, outside) = (root.join("home"), root.join("outside"));
        let world = World { workspace: home.join("project"), root, user: *user, home, outside };
        for dir in [&world.home, &world.workspace, &world.outside] {
            world.make_dir(dir);
        }
        for secret in SECRETS {
            world.write(world.home.join(secret), format!("{SECRET}\n"));
        }
        world.write(world.outside.join("kept"), "outside\n");
        world.write(world.outside.join("dir/inner"), "inner\n");
        world
    }

    /// Relative paths start at the workspace.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.workspace.join(path)
    }

    /// Makes a directory, and those above it, that belong to the user.
    pub fn make_dir(&self, dir: &Path) {
        if dir.is_dir() {
            return;
        }
        if let Some(parent) = dir.parent() {
            self.make_dir(parent);
        }
        fs::create_dir(dir).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        stage::give(dir, &self.user);
    }

    /// Writes a file of the user's; returns its path.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        self.make_dir(path.parent().unwrap());
        stage::write(&path, content.as_ref());
        stage::give(&path, &self.user);
        path
    }

    /// Writes a file in the user's home; returns its path.
    pub fn write_at_home(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.write(self.home.join(name), content)
    }

    /// Writes an executable file of the user's; returns its path.
    pub fn script(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Copies a test subject into the workspace; returns its path.
    pub fn subject(&self, name: &str) -> PathBuf {
        self.install(&subjects::program(name), name)
    }

    /// Copies a test subject into the workspace; returns its path as a word for a command line.
    pub fn program(&self, name: &str) -> String {
        self.subject(name).into_os_string().into_string().unwrap()
    }

    /// Copies any program into the workspace; returns its path.
    pub fn install(&self, program: &Path, name: &str) -> PathBuf {
        let target = self.path(name);
        stage::copy(program, &target);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        stage::give(&target, &self.user);
        target
    }

    /// A file's text, if the file exists.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read(self.path(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether a file exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    fn cmd(&self, program: impl AsRef<OsStr>) -> Cmd {
        let cmd = Cmd::new(program).user(&self.user).cwd(&self.workspace);
        cmd.env("HOME", &self.home).env("USER", self.user.name).env("PWD", &self.workspace)
    }

    /// `sbx` with these arguments.
    pub fn sbx<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Cmd {
        if std::env::var_os(WARM).is_none() {
            return self.cmd(stage::sbx()).args(args);
        }
        // The process that this starts becomes sbx: it has its number, and whatever else the test gives it.
        self.cmd("/bin/sh").args(["-c", START_WARM]).arg(stage::sbx()).args(args)
    }

    /// `sbx run -p PROFILE -- COMMAND`.
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, profile: &str, command: I) -> Cmd {
        self.sbx(["run", "-p", profile, "--"]).args(command)
    }

    /// A command without `sbx`, in the same place: the control of every experiment.
    pub fn bare<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, command: I) -> Cmd {
        let mut words = command.into_iter();
        let program = words.next().expect("a command");
        let name = program.as_ref();
        let found = name.to_str().filter(|name| !name.contains('/')).and_then(tools::have);
        self.cmd(found.as_deref().map_or(name, Path::as_os_str)).arg0(name).args(words)
    }
}

/// Runs `body` in a new world for each user there is to try.
pub fn in_worlds(body: impl Fn(&World)) {
    as_users(|user| body(&World::new(user)));
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
