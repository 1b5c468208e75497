#!/usr/bin/env python3
"""An agent, as small as can be: a model says which command to run, sbx runs it, and the model is told what came of it.

usage: agent.py TASK

The model is in model.py, and is a fake: it needs no network and no key, and says the same things each time. Put your
own in its place; what matters here is what happens between two of its answers.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))

import model
from run import run, text

# How often the model may ask for a command, and what each one may use.
MOST_STEPS = 8
LIMITS = {"seconds": 20, "max_memory": "1G", "max_processes": 200}


def execute(arguments):
    """Runs a command of the model's, and returns what the model is told."""
    command = arguments.get("command")
    # A model may write anything. What no program can be given is its mistake, and no reason to end.
    if not isinstance(command, str) or "\0" in command or command.encode(errors="replace").decode() != command:
        return {"cause": "refused", "status": 125, "error": "the tool takes a command, one text without NUL"}
    output, report = run(command, **LIMITS)
    result = {
        "cause": report["cause"],
        "status": report["exit_status"],
        # It may be anything, and the model is to get text.
        "output": output.decode(errors="replace"),
    }
    if report["error"]:
        result["error"] = report["error"]
    refused = [{"call": f"{violation['call']}({violation['args']})",
                "why": violation["rule"] and violation["rule"]["text"],
                "allowed_by": allowed_by(violation)} for violation in report["violations"]]
    if refused:
        # The model may do without, or say what it needs. It cannot allow itself anything: flags are the user's.
        result["refused"] = refused
    return result


def allowed_by(violation):
    """The flags that would allow a refused call, for the user to read."""
    suggestion = violation["suggestion"]
    return " ".join(text(flag) for flag in suggestion["flags"]) if suggestion else None


TOOLS = {"execute": execute}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    messages = [{"role": "user", "content": sys.argv[1]}]
    for _ in range(MOST_STEPS):
        answer = model.answer(messages, tools=list(TOOLS))
        messages.append({"role": "assistant", "content": answer})
        if "call" not in answer:
            print(f"model: {text(answer['text'])}")
            return
        call = answer["call"]
        # Escaped: what the model says must not change what the terminal shows.
        print(f"model: {text(call['tool'])} {text(str(call['arguments'].get('command')))}", flush=True)
        tool = TOOLS.get(call["tool"])
        result = tool(call["arguments"]) if tool else {"error": "there is no such tool"}
        print(f"sbx: {result['cause']}, status {result['status']}" if tool else "no such tool")
        for refusal in result.get("refused", []):
            print(f"sbx: refused {refusal['call']}; allowed by: {refusal['allowed_by'] or 'nothing'}")
        messages.append({"role": "tool", "content": json.dumps(result)})
    sys.exit(f"the model did not come to an end in {MOST_STEPS} steps")


main()
