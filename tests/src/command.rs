//! Runs one command to its end, with a time limit that the command cannot escape.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::tools::PATH;
use crate::users::User;
use crate::{docker, processes, stage, sys};

/// How long a command may take. Generous: it only keeps a command that hangs from hanging the suite.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A number, set on a slow machine: the time limits are multiplied by it.
const PATIENCE: &str = "SBX_TEST_PATIENCE";
/// Where a program that counts the lines it runs keeps its counters (`make coverage`).
const COUNTERS: &str = "LLVM_PROFILE_FILE";

/// A command to run; its environment holds only what is set here.
pub struct Cmd {
    command: Command,
    shown: Vec<OsString>,
    stdin: Vec<u8>,
    timeout: Duration,
}

impl Cmd {
    /// A command with a minimal environment.
    pub fn new(program: impl AsRef<OsStr>) -> Cmd {
        let mut command = Command::new(program.as_ref());
        command.env_clear().env("PATH", PATH).env("LANG", "C.UTF-8").env("TERM", "dumb");
        // nohup(1) ignores the first, and a shell without job control ignores the others for background commands.
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            sys::by_default(&mut command, signal);
        }
        if let Some(place) = std::env::var_os(COUNTERS) {
            command.env(COUNTERS, place);
        }
        let patience = std::env::var(PATIENCE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        let timeout = TIMEOUT * patience;
        Cmd { command, shown: vec![program.as_ref().into()], stdin: Vec::new(), timeout }
    }

    /// Appends one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Cmd {
        self.command.arg(arg.as_ref());
        self.shown.push(arg.as_ref().into());
        self
    }

    /// Appends arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(self, args: I) -> Cmd {
        args.into_iter().fold(self, Cmd::arg)
    }

    /// Sets a variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Cmd {
        self.command.env(key, value);
        self
    }

    /// Removes a variable.
    pub fn no_env(mut self, key: &str) -> Cmd {
        self.command.env_remove(key);
        self
    }

    /// Sets the working directory.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Cmd {
        self.command.current_dir(dir);
        self
    }

    /// Sets argv\[0\].
    pub fn arg0(mut self, name: impl AsRef<OsStr>) -> Cmd {
        self.command.arg0(name);
        self
    }

    /// Sets the command's standard input; empty by default.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Cmd {
        self.stdin = bytes.into();
        self
    }

    /// Sets another time limit than the usual one.
    pub fn timeout(mut self, limit: Duration) -> Cmd {
        self.timeout = limit;
        self
    }

    /// Runs as `user`.
    pub fn user(mut self, user: &User) -> Cmd {
        if user.switch {
            // With a user number set, std also clears the supplementary groups when it starts as root.
            self.command.uid(user.id).gid(user.id);
        }
        self
    }

    /// Runs where user namespaces, ptrace, mounts and pidfd_getfd are denied, as in an unprivileged container.
    pub fn docker(mut self) -> Cmd {
        docker::apply(&mut self.command);
        self
    }

    /// Answers these calls with these error numbers, or, with 0, as if they had succeeded.
    pub fn answering(mut self, answers: &[(libc::c_long, i32)]) -> Cmd {
        docker::answer(&mut self.command, answers);
        self
    }

    /// Like [`Cmd::answering`] as this user, instead of [`Cmd::user`]; `no_new_privs` stays unset if the suites run as
    /// root.
    pub fn answering_as(mut self, answers: &[(libc::c_long, i32)], user: &User) -> Cmd {
        docker::answer_as(&mut self.command, answers, user);
        self
    }

    /// Lowers the number of descriptors that the command may have open.
    pub fn open_files(mut self, limit: u64) -> Cmd {
        sys::limit_open_files(&mut self.command, limit);
        self
    }

    /// Starts the command with a signal ignored.
    pub fn ignoring(mut self, signal: i32) -> Cmd {
        sys::ignore(&mut self.command, signal);
        self
    }

    /// Hands the command a descriptor under another number.
    pub fn pass_fd(mut self, fd: OwnedFd, number: i32) -> Cmd {
        sys::inherit_as(&mut self.command, fd, number);
        self
    }

    /// Gives the command a session keyring with a secret in it.
    pub fn secret_in_keyring(mut self, name: &'static std::ffi::CStr) -> Cmd {
        sys::new_keyring_with(&mut self.command, name);
        self
    }

    /// Stops the command at its exec, to be followed by this thread (see [`sys::ptrace`]).
    #[cfg(target_arch = "x86_64")]
    pub fn followed(mut self) -> Cmd {
        sys::ptrace::follow(&mut self.command);
        self
    }

    /// Starts the command and leaves it running; stdout and stderr are pipes.
    pub fn start(mut self) -> Running {
        self.command.process_group(0);
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = stage::spawn(&mut self.command);
        let stdin = child.stdin.take().unwrap();
        let feeder = self.stdin;
        std::thread::spawn(move || {
            let mut stdin = stdin;
            // A command may end before it has read everything.
            let _ = stdin.write_all(&feeder);
        });
        let stdout = Collector::start(child.stdout.take().unwrap());
        let stderr = Collector::start(child.stderr.take().unwrap());
        Running { child, stdout, stderr, shown: self.shown, deadline: Instant::now() + self.timeout }
    }

    /// Starts the command as the leader of a session on a new terminal; what the terminal shows counts as stdout.
    pub fn start_on_terminal(mut self) -> (Running, Terminal) {
        let (controller, terminal) = sys::open_terminal();
        sys::control_terminal(&mut self.command, terminal);
        let child = stage::spawn(&mut self.command);
        let controller = File::from(controller);
        let stdout = Collector::start(controller.try_clone().unwrap());
        let stderr = Collector::start(std::io::empty());
        let deadline = Instant::now() + self.timeout;
        (Running { child, stdout, stderr, shown: self.shown, deadline }, Terminal(controller))
    }

    /// Runs the command to its end.
    pub fn run(self) -> Output {
        self.start().wait()
    }
}

/// The controlling side of a terminal. Closing it hangs up.
pub struct Terminal(File);

impl Terminal {
    /// Types these bytes.
    pub fn types(&self, keys: &str) {
        (&self.0).write_all(keys.as_bytes()).unwrap();
    }

    /// Gives its window another size.
    pub fn resize(&self, rows: u16, columns: u16) {
        sys::resize_terminal(&self.0, rows, columns);
    }

    /// Whether it echoes what is typed, and passes it on in lines.
    pub fn modes(&self) -> (bool, bool) {
        sys::terminal_modes(&self.0)
    }
}

/// A command that has been started.
pub struct Running {
    child: Child,
    stdout: Collector,
    stderr: Collector,
    shown: Vec<OsString>,
    deadline: Instant,
}

impl Running {
    /// The process number of the command.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Sends a signal to the command itself.
    pub fn signal(&self, signal: i32) {
        sys::kill(self.pid(), signal);
    }

    /// Kills the command itself, and waits for the end of its output.
    #[track_caller]
    pub fn kill(self) {
        self.signal(libc::SIGKILL);
        drop(self.wait());
    }

    /// Kills the command itself, and returns what it and those that outlive it have written.
    #[track_caller]
    pub fn killed(self) -> Output {
        self.signal(libc::SIGKILL);
        self.wait().died_of(libc::SIGKILL)
    }

    /// Kills the command and the processes that it has started itself, so that none of them sees another's end.
    #[track_caller]
    pub fn kill_with_children(self) -> Output {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let children = std::fs::read_to_string(children).unwrap();
        self.signal(libc::SIGSTOP);
        children.split_whitespace().for_each(|child| sys::kill(child.parse().unwrap(), libc::SIGKILL));
        self.signal(libc::SIGKILL);
        self.wait().died_of(libc::SIGKILL)
    }

    /// Sends a signal to the command's process group, as a terminal does.
    pub fn signal_group(&self, signal: i32) {
        sys::kill_group(self.pid(), signal);
    }

    /// Waits until the command has printed `text` on stdout.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        while Instant::now() < self.deadline {
            if String::from_utf8_lossy(&self.stdout.so_far()).contains(text) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let (shown, end) = (Shown(&self.shown), self.stdout.done.try_recv());
        let (so_far, tree) = (self.so_far(), processes::tree(self.pid()));
        panic!("{shown} never printed {text:?}, but: {so_far}\nend of output: {end:?}\n{tree}");
    }

    /// Waits until the command has printed `text` on stdout this many times.
    #[track_caller]
    pub fn wait_for_times(&self, text: &str, times: usize) {
        while Instant::now() < self.deadline {
            if String::from_utf8_lossy(&self.stdout.so_far()).matches(text).count() >= times {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let shown = String::from_utf8_lossy(&self.stdout.so_far()).into_owned();
        panic!("{} did not print {text:?} {times} times: {shown}", Shown(&self.shown));
    }

    /// The output on stdout until now.
    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.stdout.so_far()).into_owned()
    }

    /// Waits for the end; past the time limit the process group is killed and the test fails.
    #[track_caller]
    pub fn wait(self) -> Output {
        self.wait_or_kill().unwrap_or_else(|out| panic!("took too long and was killed: {out}"))
    }

    /// Waits for the end; past the time limit the process group is killed, and the output until then is the error.
    pub fn wait_or_kill(mut self) -> Result<Output, Box<Output>> {
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Ok(self.output(status));
            }
            if Instant::now() > self.deadline {
                sys::kill_group(self.pid(), libc::SIGKILL);
                let _ = self.child.wait();
                return Err(Box::new(self.output(ExitStatus::from_raw(libc::SIGKILL))));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// The output of a command that the caller has already waited for.
    pub fn ended(self, status: ExitStatus) -> Output {
        self.output(status)
    }

    fn output(&self, status: ExitStatus) -> Output {
        Output {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            shown: Shown(&self.shown).to_string(),
        }
    }
}

/// Reads a pipe to its end on a thread of its own.
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    done: mpsc::Receiver<std::io::Result<usize>>,
}

impl Collector {
    fn start(mut pipe: impl Read + Send + 'static) -> Collector {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, done) = mpsc::channel();
        let shared = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let mut chunk = [0; 65536];
            let end = loop {
                match pipe.read(&mut chunk) {
                    Ok(count @ 1..) => shared.lock().unwrap().extend_from_slice(&chunk[..count]),
                    end => break end,
                }
            };
            let _ = sender.send(end);
        });
        Collector { bytes, done }
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    /// Everything that was written. If a descendant still holds the pipe, it is waited for only a moment.
    fn finish(&self) -> Vec<u8> {
        let _ = self.done.recv_timeout(Duration::from_secs(2));
        self.so_far()
    }
}

struct Shown<'a>(&'a [OsString]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { " " }, PathBuf::from(word).display())?;
        }
        Ok(())
    }
}
