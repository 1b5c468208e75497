#!/usr/bin/env python3
"""Tries `sbx agent` and `sbx hook` with the real agents, and fake models on loopback.

Fetches Claude Code, Codex, Gemini CLI and opencode from the npm registry, and has each run shell commands that a
model asks for: without sbx, as a whole in sbx, and with a hook. What counts is what happened outside: whether the
commands ran, what they read, what became of the agent's settings, what they reached. Agents run in a network
namespace that has only loopback, so nothing leaves the machine.

Usage: tests/agents/run.py [--update] [AGENT...]   (make test-agents)
  --update  writes the table in docs/internals/testing/agents.md
Root also tries each as an ordinary user.
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from fake_models import FakeModels

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/internals/testing/agents.md"
SBX = pathlib.Path(os.environ.get("SBX", TOP / "target/debug/sbx"))
ORDINARY = 65534
SECRET = "planted-secret"
REACHED = "reached-the-unlisted"
PATIENCE = 180

PACKAGES = {
    "claude": ("@anthropic-ai/claude-code", "bin/claude.exe"),
    "codex": ("@openai/codex", "bin/codex.js"),
    "gemini": ("@google/gemini-cli", "bundle/gemini.js"),
    "opencode": ("opencode-ai", "bin/opencode.exe"),
}
SETTINGS = {
    "claude": (".claude/settings.json", "{}\n"),
    "codex": (".codex/config.toml", "# mine\n"),
    "gemini": (".gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}\n'),
    # Without the first key it writes that into the file itself.
    "opencode": (".config/opencode/opencode.json", '{"$schema": "https://opencode.ai/config.json"}\n'),
}


def arguments(agent, port):
    """What has the agent run one turn without asking, with the fake model."""
    if agent == "claude":
        return ["-p", "--dangerously-skip-permissions", "go on"]
    if agent == "codex":
        base = f"http://127.0.0.1:{port}/v1"
        provider = f'{{name="fake",base_url="{base}",wire_api="responses",env_key="OPENAI_API_KEY"}}'
        flags = ["-c", 'model_provider="fake"', "-c", f"model_providers.fake={provider}"]
        # Its own sandbox would refuse the attempts as well.
        flags += ["-c", 'sandbox_mode="danger-full-access"']
        return ["exec", "--skip-git-repo-check", *flags, "go on"]
    if agent == "gemini":
        return ["--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", "go on"]
    return ["run", "go on"]


def variables(agent, port):
    base = f"http://127.0.0.1:{port}"
    provider = {"npm": "@ai-sdk/anthropic", "name": "fake", "options": {"baseURL": f"{base}/v1", "apiKey": "x"},
                "models": {"m": {"name": "m", "tool_call": True, "limit": {"context": 100000, "output": 8000}}}}
    opencode = {"provider": {"fake": provider}, "model": "fake/m", "small_model": "fake/m", "permission": "allow"}
    return {
        "claude": {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "sk-ant-fake", "IS_SANDBOX": "1"},
        "codex": {"OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": "sk-fake"},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": base, "GEMINI_API_KEY": "fake"},
        "opencode": {"OPENCODE_CONFIG_CONTENT": json.dumps(opencode)},
    }[agent]


class Unlisted(http.server.BaseHTTPRequestHandler):
    """A server that no rule names."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(REACHED.encode())

    def log_message(self, *_):
        pass


class Place:
    """A home with a secret, a project and the agent's settings, for one agent, user and way."""

    def __init__(self, tools, agent, uid):
        self.agent, self.uid = agent, uid
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sbx-agent-", dir="/var/tmp"))
        self.home = self.root / "home"
        self.project = self.home / "project"
        self.bin = self.root / "bin"
        for directory in (self.project, self.home / ".ssh", self.bin):
            directory.mkdir(parents=True)
        self.sbx = self.bin / "sbx"
        shutil.copy2(SBX, self.sbx)
        (self.home / ".ssh/id_rsa").write_text(SECRET + "\n")
        self.settings = self.home / SETTINGS[agent][0]
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(SETTINGS[agent][1])
        # Where `npm install -g` with a prefix of one's own puts them.
        prefix = self.home / ".npm-global"
        (prefix / "bin").mkdir(parents=True)
        (prefix / "lib").mkdir()
        subprocess.run(["cp", "-al", tools / "node_modules", prefix / "lib"], check=True)
        package, program = PACKAGES[agent]
        (prefix / "bin" / agent).symlink_to(f"../lib/node_modules/{package}/{program}")
        self.path = f"{prefix}/bin:{self.bin}:/usr/local/bin:/usr/bin:/bin"
        self.root.chmod(0o755)
        if uid != os.getuid():
            subprocess.run(["chown", "-R", f"{uid}:{uid}", self.root], check=True)

    def run(self, words, more=None):
        env = {"PATH": self.path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8", "USER": "somebody"}
        env.update(more or {})
        switch = {} if self.uid == os.getuid() else {"user": self.uid, "group": self.uid, "extra_groups": []}
        try:
            return subprocess.run(words, cwd=self.project, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=PATIENCE, errors="replace", **switch)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(words, -1, str(late.stdout), f"took longer than {PATIENCE} s")

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Seen:
    """What one turn of an agent did."""

    def __init__(self, place, words_of, unlisted):
        settings = place.settings.read_text()
        commands = [
            "echo tool-ran; cat ~/.ssh/id_rsa",
            f"echo >>~/{SETTINGS[place.agent][0]}; echo end",
            f"curl -sS -m 10 http://127.0.0.1:{unlisted}/; echo end",
            "echo made >made; echo end",
        ]
        models = FakeModels(commands)
        try:
            self.ran = place.run(words_of(models.port), variables(place.agent, models.port))
        finally:
            models.close()
        self.results = [models.results.get(index, "") for index in range(len(commands))]
        said = "\n".join(self.results) + self.ran.stdout
        self.tool = "tool-ran" in self.results[0]
        self.secret = SECRET in said
        self.settings = place.settings.read_text() != settings
        self.unlisted = REACHED in said
        self.made = (place.project / "made").exists()

    def shown(self):
        def yes(value):
            return "yes" if value else "no"
        return [yes(self.tool and self.made), yes(self.secret), yes(self.settings), yes(self.unlisted)]


COLUMNS = ["ran", "read a key", "changed settings", "reached a host"]
OPEN = ["yes", "yes", "yes", "yes"]
CLOSED = ["yes", "no", "no", "no"]
REFUSED = ["no", "no", "no", "no"]


def ways(agent):
    """The ways, with what is expected: the columns, and what `sbx hook status` ends with."""
    yield "without sbx", OPEN, None
    yield "`sbx agent`", CLOSED, None
    yield "hook", CLOSED, 0
    if agent == "codex":
        yield "hook, not trusted", OPEN, 1
    yield "hook, its `sbx` gone", REFUSED, 1
    yield "hook, removed", OPEN, 1


def attempt(tools, agent, uid, way, unlisted):
    place = Place(tools, agent, uid)
    try:
        if way == "`sbx agent`":
            return Seen(place, lambda port: [place.sbx, "agent", agent, "--host-port", str(port), "--",
                                             *arguments(agent, port)], unlisted), None, ""
        said = ""
        if way.startswith("hook"):
            words = [place.sbx, "hook", "install", agent]
            done = place.run(words + (["--trust"] if agent == "codex" and way != "hook, not trusted" else []))
            said = done.stdout + done.stderr
        if way == "hook, its `sbx` gone":
            place.sbx.rename(place.root / "elsewhere")
        if way == "hook, removed":
            place.run([place.sbx, "hook", "remove", agent])
        seen = Seen(place, lambda port: [agent, *arguments(agent, port)], unlisted)
        status = None
        if way.startswith("hook"):
            program = place.sbx if place.sbx.exists() else place.root / "elsewhere"
            status = place.run([program, "hook", "status", agent])
            said += status.stdout + status.stderr
        return seen, status.returncode if status else None, said
    finally:
        place.close()


def fetch():
    tools = pathlib.Path(os.environ.get("SBX_AGENTS", TOP / "target/agents"))
    wanted = [package for package, _ in PACKAGES.values()]
    if not all((tools / "node_modules" / package).is_dir() for package in wanted):
        tools.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", tools, "--no-audit", "--no-fund", *wanted]
        subprocess.run(command, check=True)
    # Links of the same file system are what a home gets.
    place = pathlib.Path(tempfile.mkdtemp(prefix="sbx-agents-", dir="/var/tmp"))
    subprocess.run(["cp", "-a", "--reflink=auto", tools / "node_modules", place], check=True)
    return place


def version(tools, agent):
    return json.loads((tools / "node_modules" / PACKAGES[agent][0] / "package.json").read_text())["version"]


def main():
    names = [name for name in sys.argv[1:] if not name.startswith("-")] or list(PACKAGES)
    if os.environ.get("SBX_AGENTS_APART") is None:
        tools = fetch()
        try:
            os.environ["SBX_AGENTS_APART"] = str(tools)
            apart = ["unshare", "--net"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
            script = 'ip link set lo up && exec "$0" "$@"'
            done = subprocess.run([*apart, "sh", "-c", script, sys.executable, __file__, *sys.argv[1:]])
            return done.returncode
        finally:
            shutil.rmtree(tools, ignore_errors=True)
    tools = pathlib.Path(os.environ["SBX_AGENTS_APART"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unlisted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    users = [(os.getuid(), "root" if os.getuid() == 0 else "user")]
    with open("/proc/self/uid_map") as uids:
        if os.getuid() == 0 and uids.read().split()[2] != "1":
            users.append((ORDINARY, "user"))
    rows, wrong = [], 0
    for agent in names:
        for uid, user in users:
            for way, expected, status in ways(agent):
                seen, ended, said = attempt(tools, agent, uid, way, server.server_port)
                shown = seen.shown()
                good = shown == expected and ended == status
                wrong += not good
                rows.append([agent, version(tools, agent), user, way, *shown, "-" if ended is None else str(ended)])
                print(("ok    " if good else "WRONG ") + " | ".join(rows[-1]), flush=True)
                if not good:
                    print(f"  expected {expected}, status {status}\n  {seen.results}\n  {said}\n"
                          f"  {seen.ran.returncode} {seen.ran.stdout[-1500:]} {seen.ran.stderr[-1500:]}", flush=True)
    if "--update" in sys.argv and not wrong:
        update(rows)
    print(f"{len(rows)} attempts, {wrong} not as expected")
    return 1 if wrong else 0


def update(rows):
    head = ["agent", "version", "as", "way", *COLUMNS, "`hook status`"]
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    text = PAGE.read_text()
    begin, end = "<!-- table -->\n", "<!-- end -->"
    before, rest = text.split(begin, 1)
    _, after = rest.split(end, 1)
    PAGE.write_text(before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after)


if __name__ == "__main__":
    sys.exit(main())
