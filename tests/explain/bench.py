"""Where the cases run: trees that are made anew for each run, servers on loopback, and a process to be disturbed."""

import collections
import ctypes
import fcntl
import os
import pathlib
import queue
import shutil
import signal
import socket
import string
import struct
import subprocess
import tempfile
import threading

ORDINARY = 65534
WORKERS = 2
NEWNS, NEWNET, NEWUTS = 0x20000, 0x40000000, 0x4000000
MS_REC, MS_SLAVE = 0x4000, 0x80000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HERE = pathlib.Path(__file__).resolve().parent
REMOVE = "chmod u+rwx outside/closed-dir outside/fixed 2>/dev/null || :; rm -rf home outside 2>/dev/null || " \
    "{ chmod -R u+rwX home outside; rm -rf home outside; }"
COPY = "cp -a template/. .; cd outside; chmod 000 closed closed-dir; chmod 444 read-only; chmod 555 fixed; cd .."
Ended = collections.namedtuple("Ended", "status out err")


def which(tool):
    return os.path.exists(tool) if "/" in tool else shutil.which(tool, path=SYSTEM_PATH)


def serve(listener, answer):
    """Answers each connection and closes it."""
    def loop():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.settimeout(2)
                    connection.recv(4096)
                    connection.sendall(answer)
                except OSError:
                    pass
    threading.Thread(target=loop, daemon=True).start()


def echo(listener):
    def loop():
        while True:
            try:
                data, address = listener.recvfrom(4096)
                if address:
                    listener.sendto(data, address)
            except OSError:
                return
    threading.Thread(target=loop, daemon=True).start()


def apart():
    """Root's commands run outside the sandbox too: nothing that they do to mounts, the network or the host's name may
    reach the machine. Here the network is a loopback alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEWNS | NEWNET | NEWUTS) or libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None):
        raise SystemExit(f"no namespaces of the exam's own: {os.strerror(ctypes.get_errno())}")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


class Bench:
    """All areas, and what they share."""

    def __init__(self, users, sbx):
        if os.geteuid() == 0:
            apart()
        self.sbx = os.path.abspath(sbx)
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="sbx-explain-", dir="/var/tmp"))
        self.place.chmod(0o755)
        self.shared = {}
        self.listeners = []
        self.tcp()
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind(("127.0.0.1", 0))
        echo(datagrams)
        self.shared["UDP"] = str(datagrams.getsockname()[1])
        self.listeners.append(datagrams)
        self.free = {user: queue.Queue() for user in users}
        self.areas = [Area(self, user, number) for user in users for number in range(WORKERS)]
        for area in self.areas:
            self.free[area.user].put(area)

    def tcp(self):
        answer = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
        for name, family, address in (("PORT", socket.AF_INET, "127.0.0.1"), ("PORT6", socket.AF_INET6, "::1")):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.bind((address, 0))
            listener.listen(16)
            serve(listener, answer)
            self.shared[name] = str(listener.getsockname()[1])
            self.listeners.append(listener)

    def area(self, user):
        return self.free[user].get()

    def give_back(self, area):
        self.free[area.user].put(area)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for area in self.areas:
            area.close()
        for listener in self.listeners:
            listener.close()
        shutil.rmtree(self.place, ignore_errors=True)


class Area:
    """A home with a project in it, a directory outside it, and a user who works there."""

    def __init__(self, bench, user, number):
        self.bench, self.user, self.sbx = bench, user, bench.sbx
        self.place = bench.place / f"{'root' if user == 0 else 'user'}{number}"
        self.home, self.work = self.place / "home", self.place / "home" / "project"
        self.template, self.services = self.place / "template", self.place / "services"
        for path in (self.place, self.template, self.services):
            path.mkdir()
            self.own(path)
        self.temporary = pathlib.Path(tempfile.mkdtemp(prefix="sbx-explain-", dir="/tmp"))
        self.own(self.temporary)
        self.shared_memory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-explain-", dir="/dev/shm"))
        self.own(self.shared_memory)
        made = self.run(["sh", str(HERE / "tree.sh")], {"HERE": str(HERE)}, 60, cwd=self.template)
        if made.status != 0:
            raise SystemExit(f"the tree cannot be made: {made.err}")
        if user == 0:
            os.chown(self.template / "outside" / "others", ORDINARY, ORDINARY)
            os.chown(self.template / "outside" / "others-dir", ORDINARY, ORDINARY)
        # What belongs to root, where root started the exam.
        self.of_root = self.place / "of-root"
        (self.of_root / "dir").mkdir(parents=True)
        for name in ("file", "dir/file", "closed"):
            (self.of_root / name).write_text("kept\n")
        (self.of_root / "closed").chmod(0o600)
        for path in (self.temporary, self.shared_memory):
            (path / "kept").write_text("kept\n")
            self.own(path / "kept")
        self.listeners = []
        for path in (str(self.services / "docker.sock"), str(self.temporary / "agent.sock"),
                     "\0" + self.place.name + self.bench.place.name):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(path)
            if path[0] == "/":
                self.own(pathlib.Path(path))
            listener.listen(8)
            serve(listener, b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
            self.listeners.append(listener)
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(str(self.services / "log.sock"))
        self.own(self.services / "log.sock")
        echo(datagrams)
        self.listeners.append(datagrams)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        self.victim = None
        self.variables = {**bench.shared, "FREE": port, "H": str(self.home), "W": str(self.work),
                          "O": str(self.place / "outside"), "S": str(self.services), "T": str(self.temporary),
                          "M": str(self.shared_memory), "R": str(self.of_root), "ABSTRACT": self.place.name + bench.place.name,
                          "UID": str(user), "SBX": self.sbx}

    def own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.user, self.user)

    def put(self, text):
        """With the variables of the exam in their places; others stay for the shell."""
        if "$VICTIM" in text and (self.victim is None or self.victim.poll() is not None):
            self.victim = subprocess.Popen(["sleep", "600"], **self.as_user())
        victim = {"VICTIM": str(self.victim.pid)} if self.victim else {}
        return string.Template(text).safe_substitute({**self.variables, **victim})

    def as_user(self):
        return {"user": self.user, "group": self.user, "extra_groups": []} if os.geteuid() == 0 else {}

    def renew(self, setup):
        """The tree as it was at the beginning."""
        script = f"{REMOVE}; {COPY}; {setup}"
        made = subprocess.run(["sh", "-ec", script], cwd=self.place, env={"PATH": SYSTEM_PATH}, capture_output=True,
                              timeout=60, check=False, umask=0o022, **self.as_user())
        if made.returncode != 0:
            raise SystemExit(f"the tree cannot be made anew: {setup}: {made.stderr.decode(errors='replace')}")

    def run(self, command, variables, seconds, cwd=None):
        """Runs a command as the user of this area; 124 where it takes too long."""
        name = "root" if self.user == 0 else "nobody"
        environment = {"PATH": SYSTEM_PATH, "HOME": str(self.home), "USER": name, "LOGNAME": name, "SHELL": "/bin/sh",
                       "LANG": "C.UTF-8", "TERM": "dumb", **variables}
        try:
            process = subprocess.Popen(command, cwd=cwd or self.work, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                       umask=0o022, **self.as_user())
        except OSError as error:
            return Ended(127, "", str(error))
        try:
            out, err = process.communicate(timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            # A run that is asked to end writes its report.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            status = 124
        return Ended(status if status >= 0 else 128 - status, out.decode(errors="replace"),
                     err.decode(errors="replace"))

    def close(self):
        if self.victim:
            self.victim.kill()
            self.victim.wait()
        for listener in self.listeners:
            listener.close()
        for path in (self.temporary, self.shared_memory):
            shutil.rmtree(path, ignore_errors=True)
