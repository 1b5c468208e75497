"""A server on loopback that stands for the models of Anthropic, OpenAI and Google.

It makes an agent run one shell command after another: each request that does not yet have the results of all
commands is answered with a call of the agent's shell tool. The last one is answered with a text. What the agent
sends back is kept, so that a test reads what each command printed.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The names that agents give their shell tool, and what it takes.
SHELL_TOOLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command")


class FakeModels:
    """The server. `commands` are run in their order, in every conversation that offers a shell tool."""

    def __init__(self, commands):
        self.commands = commands
        self.results = {}
        self.requests = []
        handler = type("Handler", (Handler,), {"models": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def next_command(self, results):
        """The place of the next command, after those of which there are results; none at the end."""
        for place, text in results:
            self.results[place] = text
        done = len({place for place, _ in results})
        return done if done < len(self.commands) else None

    def arguments(self, tool, place):
        command = self.commands[place]
        if tool in ("exec_command",):
            return {"cmd": command, "yield_time_ms": 30000}
        if tool in ("shell", "local_shell"):
            return {"command": ["bash", "-lc", command], "timeout_ms": 60000}
        if tool in ("Bash", "bash", "run_shell_command"):
            return {"command": command, "description": "a test"}
        return {"command": command}


def tool_of(names):
    return next((name for name in SHELL_TOOLS if name in names), None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, {"data": [], "models": []})

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        try:
            asked = json.loads(body or b"{}")
        except ValueError:
            asked = {}
        self.models.requests.append((self.path, asked))
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            self.answer(200, {"input_tokens": 10, "totalTokens": 10})
        elif path.endswith("/messages"):
            self.anthropic(asked)
        elif path.endswith("/responses"):
            self.openai(asked)
        elif "generateContent" in path or "streamGenerateContent" in path:
            self.google(asked, "stream" in path)
        else:
            self.answer(200, {})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events, named):
        body = "".join(
            (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    # Anthropic's messages.
    def anthropic(self, asked):
        tool = tool_of([tool.get("name") for tool in asked.get("tools", [])])
        results = []
        for message in asked.get("messages", []):
            content = message.get("content")
            for part in content if isinstance(content, list) else []:
                if part.get("type") == "tool_result":
                    results.append((place_of(part["tool_use_id"]), text_of(part.get("content"))))
        place = self.models.next_command(results) if tool else None
        if place is None:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": "done"}
            stop = "end_turn"
            whole = [{"type": "text", "text": "done"}]
        else:
            arguments = self.models.arguments(tool, place)
            block = {"type": "tool_use", "id": f"toolu_{place}", "name": tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            stop = "tool_use"
            whole = [{**block, "input": arguments}]
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model", "fake"),
            "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not asked.get("stream"):
            return self.answer(200, {**message, "content": whole, "stop_reason": stop})
        self.stream([
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
             "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ], True)

    # OpenAI's responses.
    def openai(self, asked):
        names = [tool.get("name") or tool.get("type") for tool in asked.get("tools", [])]
        items = asked.get("input") if isinstance(asked.get("input"), list) else []
        # Some models get their tools in the conversation: one that runs scripts, which call the others.
        spaces = [space for item in items if item.get("type") == "additional_tools" for space in item["tools"]]
        scripts = any(tool.get("name") == "exec" for space in spaces for tool in space.get("tools", []))
        tool = "exec" if scripts else tool_of(names)
        results = []
        for item in items:
            if str(item.get("type", "")).endswith("_output"):
                results.append((place_of(item.get("call_id", "")), text_of(item.get("output"))))
        place = self.models.next_command(results) if tool else None
        if place is None:
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "done", "annotations": []}]}
        elif scripts:
            arguments = json.dumps(self.models.arguments("exec_command", place))
            item = {"type": "custom_tool_call", "id": f"ctc_{place}", "call_id": f"call_{place}", "name": "exec",
                    "namespace": "functions", "status": "completed",
                    "input": f"text(await tools.exec_command({arguments}))"}
        else:
            item = {"type": "function_call", "id": f"fc_{place}", "call_id": f"call_{place}", "name": tool,
                    "status": "completed", "arguments": json.dumps(self.models.arguments(tool, place))}
        usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": asked.get("model", "fake"),
                    "status": "in_progress", "output": []}
        self.stream([
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed",
             "response": {**response, "status": "completed", "output": [item], "usage": usage}},
        ], True)

    # Google's generateContent.
    def google(self, asked, streamed):
        declared = [f["name"] for tool in asked.get("tools", []) for f in tool.get("functionDeclarations", [])]
        tool = tool_of(declared)
        results = []
        for content in asked.get("contents", []):
            for part in content.get("parts", []):
                response = part.get("functionResponse")
                if response:
                    results.append((len(results), text_of(response.get("response"))))
        place = self.models.next_command(results) if tool else None
        if place is None:
            part = {"text": "done"}
        else:
            part = {"functionCall": {"name": tool, "args": self.models.arguments(tool, place)}}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "fake",
        }
        if streamed:
            self.stream([answer], False)
        else:
            self.answer(200, answer)


def place_of(identifier):
    found = re.search(r"(\d+)$", identifier)
    return int(found.group(1)) if found else -1


def text_of(content):
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part.get("text", part)) if isinstance(part, dict) else str(part) for part in content)
    return json.dumps(content)
