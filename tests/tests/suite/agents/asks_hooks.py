"""An agent that runs one shell command, and asks its hooks before it does, as the real ones do.

Status 0 with an object on standard output may change the command. Status 2 with a sentence on standard error
refuses it. Any other failure is no reason not to run it.
"""

import json
import os
import re
import subprocess
import sys

kind, command, directory = sys.argv[1], sys.argv[2], os.getcwd()
home = os.environ["HOME"]
TOOLS = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "cursor": "Shell"}
FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
}
EVENTS = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool", "cursor": "preToolUse"}


def hooks():
    try:
        with open(os.path.join(home, FILES[kind])) as file:
            groups = json.load(file).get("hooks", {}).get(EVENTS[kind], [])
    except FileNotFoundError:
        return
    for group in groups:
        if re.fullmatch(group.get("matcher", ".*"), TOOLS[kind]):
            yield from group.get("hooks", [group])


asked = {"command": command, "description": "as the model said"}
call = {
    "session_id": "1", "cwd": directory, "hook_event_name": EVENTS[kind],
    "tool_name": TOOLS[kind], "tool_input": asked, "workspace_roots": [directory],
}
for hook in hooks():
    ran = subprocess.run(["sh", "-c", hook["command"]], input=json.dumps(call), capture_output=True, text=True)
    if ran.returncode == 2 and ran.stderr.strip():
        sys.exit(f"the hook refused: {ran.stderr.strip()}")
    if ran.returncode != 0 or not ran.stdout.strip():
        continue
    answer = json.loads(ran.stdout)
    output = answer.get("hookSpecificOutput", {})
    if kind == "codex" and "updatedInput" in output and output.get("permissionDecision") != "allow":
        sys.exit("codex takes no changed input without 'allow'")
    asked = {**asked, **(output.get("updatedInput") or output.get("tool_input") or answer.get("updated_input") or {})}
assert asked["description"] == "as the model said"
sys.exit(subprocess.run(["bash", "-c", asked["command"]]).returncode)
