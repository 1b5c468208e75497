"""A model that is none: it follows a plan, and looks at what it is told as a model would."""

import json


def call(command):
    return {"call": {"tool": "execute", "arguments": {"command": command}}}


def told(messages):
    """What the tools have answered so far."""
    return [json.loads(message["content"]) for message in messages if message["role"] == "tool"]


def answer(messages, tools):
    """The next answer of the model: a call of a tool, or a text that ends the conversation."""
    assert "execute" in tools
    results = told(messages)
    steps = [
        "echo 'def double(x): return 2 * x' > double.py && python3 -c 'import double; print(double.double(21))'",
        # As if a web page had told it to.
        "cat ~/.ssh/id_rsa; cp double.py /usr/local/lib/double.py",
        "exec 3<>/dev/tcp/192.0.2.1/80",
        "while :; do :; done",
    ]
    if len(results) < len(steps):
        return call(steps[len(results)])
    worked = results[0]["status"] == 0 and results[0]["output"] == "42\n"
    refused = [refusal for result in results for refusal in result.get("refused", [])]
    flags = sorted({refusal["allowed_by"] for refusal in refused if refusal["allowed_by"]})
    needs = f"The rest would need {', '.join(flags)}." if flags else "Nothing else was needed."
    ended = "was ended in time" if results[3]["cause"] == "timeout" else "came to an end"
    return {"text": f"double.py {'works' if worked else 'does not work'}; the last command {ended}. {needs}"}
