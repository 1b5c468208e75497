//! Where commands run: always the same path, prepared anew before each of them.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sbx_tests::servers::{HttpServer, UnixServer};
use sbx_tests::{Cmd, User, World, stage};

use crate::list::Class;

/// Makes the times of the files old, so that a time set by a command differs from "now".
const OLD: &str = "find . -exec touch -h -d @1000000000 {} +";
const GITCONFIG: &str =
    "[user]\n\tname = A Developer\n\temail = dev@example.org\n[init]\n\tdefaultBranch = main\n";

/// A home directory with a workspace in it, a directory beside it, and two listeners.
pub struct Place {
    /// The directories and their owner.
    pub world: World,
    /// An HTTP server on loopback.
    pub http: HttpServer,
    /// A listener inside the directory beside the home, `unix` in lists.
    pub unix: UnixServer,
    sockets: PathBuf,
    templates: PathBuf,
}

impl Place {
    /// A new place for one user.
    pub fn new(user: &User) -> Place {
        let world = World::new(user);
        world.write(world.home.join(".gitconfig"), GITCONFIG);
        let (templates, sockets) = (stage::fresh_dir(user), stage::fresh_dir(user));
        let unix = UnixServer::at(&sockets.join("socket"));
        let place = Place { http: HttpServer::start(), unix, sockets, templates, world };
        place.copy(&place.world.home, &place.templates.join("home"));
        place.copy(&place.world.outside, &place.templates.join("outside"));
        place
    }

    /// Makes the files that the commands of a class use: fixtures, completed by its setup.
    pub fn prepare(&self, class: &Class, fixtures: &Path) -> Result<(), String> {
        let template = self.templates.join("project");
        clear(&self.world.workspace, "");
        for fixture in &class.fixtures {
            self.copy(&fixtures.join(fixture), &self.world.workspace);
        }
        let script = format!("set -e\n{}\n{OLD}", class.setup.as_deref().unwrap_or_default());
        self.script(&script).map_err(|error| format!("setup of {}: {error}", class.name))?;
        clear(&template, "");
        self.copy(&self.world.workspace, &template);
        Ok(())
    }

    /// Prepares everything anew. Caches last, as they do at home.
    pub fn lay(&self) {
        clear(&self.world.workspace, "");
        clear(&self.world.home, ".cache");
        clear(&self.world.outside, "");
        for (from, to) in
            [("home", &self.world.home), ("outside", &self.world.outside), ("project", &self.world.workspace)]
        {
            self.copy(&self.templates.join(from), to);
        }
    }

    fn copy(&self, from: &Path, to: &Path) {
        let copied = copy(from, to, &self.world.user);
        copied.unwrap_or_else(|error| panic!("cannot copy {}: {error}", from.display()));
    }

    /// Runs a shell script of the corpus' own in the workspace, unconfined.
    pub fn script(&self, script: &str) -> Result<(), String> {
        let out = surroundings(self.world.bare(["bash", "-c", script])).start().wait_or_kill();
        match out {
            Ok(out) if out.code == Some(0) => Ok(()),
            Ok(out) => Err(out.to_string()),
            Err(out) => Err(format!("took too long: {out}")),
        }
    }

    /// Fills in what only this place knows.
    pub fn fill_in(&self, text: &str) -> String {
        let path = |path: &Path| path.to_str().unwrap_or_default().to_owned();
        text.replace("{http}", &format!("127.0.0.1:{}", self.http.port))
            .replace("{port}", &self.http.port.to_string())
            .replace("{unix}", &path(&self.sockets.join("socket")))
            .replace("{outside}", &path(&self.world.outside))
            .replace("{home}", &path(&self.world.home))
    }
}

/// The environment of every command: nothing is fetched, and commits are the same each time.
pub fn surroundings(cmd: Cmd) -> Cmd {
    let date = "2001-09-09T01:46:40Z";
    cmd.env("GIT_AUTHOR_DATE", date)
        .env("GIT_COMMITTER_DATE", date)
        .env("CARGO_NET_OFFLINE", "true")
        .env("GOPROXY", "off")
        .env("GOFLAGS", "-mod=mod")
        .env("PIP_NO_INDEX", "1")
        .env("SHELL", "/bin/bash")
}

/// Empties a directory, except for one name.
fn clear(dir: &Path, kept: &str) {
    for entry in dir.read_dir().into_iter().flatten().flatten().filter(|entry| entry.file_name() != kept) {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_file(&path);
        } else if fs::remove_dir_all(&path).is_err() {
            // Commands leave directories behind that cannot be entered.
            let mut command = Command::new("sh");
            command.args(["-c", r#"chmod -R u+rwX "$1"; rm -rf "$1""#, "sh"]).arg(&path);
            let _ = stage::spawn(&mut command).wait();
        }
    }
}

/// Copies the content of a directory for this user: files, directories and symbolic links, with modes and times.
fn copy(from: &Path, to: &Path, user: &User) -> io::Result<()> {
    let made = fs::create_dir(to);
    if !to.is_dir() {
        made?;
    }
    for entry in from.read_dir()? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &target, user)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
            lchown(&target, Some(user.id), Some(user.id))?;
        } else {
            stage::copy(&source, &target);
            like(&source, &target, user)?;
        }
    }
    like(from, to, user)
}

/// Gives a file the owner, the mode and the time of change.
fn like(source: &Path, target: &Path, user: &User) -> io::Result<()> {
    let meta = source.metadata()?;
    lchown(target, Some(user.id), Some(user.id))?;
    fs::set_permissions(target, meta.permissions())?;
    File::open(target)?.set_times(FileTimes::new().set_modified(meta.modified()?))
}
