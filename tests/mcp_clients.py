#!/usr/bin/env python3
"""Drives `sbx mcp` with clients of the Model Context Protocol that are not part of this project.

    make test-mcp
    tests/mcp_clients.py [--sbx FILE]

The clients come from their registries: the protocol's SDK for Python, in its newer and its older manner, and the
command line of the Inspector, which stands on the SDK for TypeScript. Each step prints a line; the first that fails
ends it with status 1.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.join(HERE, os.pardir, "target", "mcp-clients")
SDK, INSPECTOR = "mcp==2.3.0", "@modelcontextprotocol/inspector@2.12.0"
MARK = "sbx-mcp-client-mark"


def step(name, holds, shown=""):
    if not holds:
        print(f"FAILED: {name}: {shown}", flush=True)
        # Not by an exception: the client would wrap it in many others. The server ends with this process.
        os._exit(1)
    print(f"  {name}", flush=True)


def processes(mark, program=b""):
    """The processes that have a mark in their command line, which begins with the program's name."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file, open(f"/proc/{number}/stat", encoding="ascii") as stat:
                line, state = file.read(), stat.read().rsplit(")", 1)[1].split()[0]
                if mark.encode() in line and line.startswith(program) and state != "Z":
                    found.append(int(number))
        except OSError:
            pass
    return found


async def until(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return holds()


async def begun(call):
    """Waits until the command of a call runs, and not only the sbx that starts it."""
    await until(lambda: call.done() or processes(MARK, program=b"sh"))
    step("a command runs", not call.done() and processes(MARK, program=b"sh"), call)


def children(of):
    with open(f"/proc/{of}/task/{of}/children", encoding="ascii") as file:
        return [int(number) for number in file.read().split()]


def server_of(place):
    """The server is the child of this process that works in the place."""
    return next(pid for pid in children(os.getpid()) if os.readlink(f"/proc/{pid}/cwd") == place)


async def with_sdk(sbx, mode, place, outside):
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp_types import ElicitResult

    asked, news = [], []

    async def elicit(_, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"allow": True})

    async def progress(done, total, message):
        news.append((done, total, message))

    parameters = StdioServerParameters(command=sbx, args=["mcp", "--ask", "-t", "60s"], cwd=place)
    async with Client(parameters, mode=mode, elicitation_callback=elicit) as client:
        step(f"initialise: protocol {client.protocol_version}", client.server_info.name == "sbx")
        tools = (await client.list_tools()).tools
        step("list", [tool.name for tool in tools] == ["execute", "why", "read_report"], tools)

        async def execute(command, **more):
            return await client.call_tool("execute", {"command": command, **more})

        # The client checks each answer against the tool's schema.
        result = await execute("echo out; cat; exit 3", input="typed")
        told = result.structured_content
        step("call", not result.is_error and told["stdout"] == "out\ntyped" and told["status"] == 3, result)
        result = await execute("true", cwd="/etc")
        step("a call that is refused", result.is_error and "not in the workspace" in result.content[0].text, result)

        begin = time.monotonic()
        runs = await asyncio.gather(*(execute("sleep 1") for _ in range(4)))
        took = time.monotonic() - begin
        step(f"4 calls of a second in parallel: {took:.1f} s", took < 3.5 and len({r.structured_content["run"]
                                                                                  for r in runs}) == 4, runs)
        await client.call_tool("execute", {"command": "sleep 2.5"}, progress_callback=progress)
        step("progress", news and news[0][1] == 60, news)

        secret = os.path.join(outside, "data")
        result = await execute(f"cat {secret}")
        told = result.structured_content
        step("a question to the user", len(asked) == 1 and f"--ro {secret}" in asked[0], (asked, told))
        step("what the user allowed", (await execute(f"cat {secret}")).structured_content["stdout"] == "data\n")
        report = (await client.call_tool("read_report", {"run": told["run"]})).structured_content["report"]
        step("read_report", report["violations"][0]["fate"] == "blocked", report)
        why = (await client.call_tool("why", {"path": "/usr/new", "access": "w"})).structured_content
        step("why", why["answer"] == "refused" and why["allow_with"].startswith("--rw"), why)

        call = asyncio.ensure_future(execute(f"sh -c 'sleep 100 & sleep 100; :' {MARK}"))
        await begun(call)
        call.cancel()
        step("cancel: nothing of it is left", await until(lambda: not processes(MARK)), processes(MARK))
        step("and the server goes on", (await execute("echo on")).structured_content["stdout"] == "on\n")

        server = server_of(place)
        call = asyncio.ensure_future(execute(f"sh -c 'sleep 100; :' {MARK}"))
        await begun(call)
        os.kill(children(server)[0], signal.SIGKILL)
        result = await asyncio.wait_for(call, 20)
        step("a supervisor that is killed", result.is_error and "no report" in result.content[0].text, result)
        step("its command is gone", await until(lambda: not processes(MARK)), processes(MARK))

        call = asyncio.ensure_future(execute(f"sh -c 'sleep 100 & sleep 100; :' {MARK}"))
        await begun(call)
        os.kill(server, signal.SIGKILL)
        step("a server that is killed leaves nothing", await until(lambda: not processes(MARK)), processes(MARK))
        outcome = (await asyncio.gather(asyncio.wait_for(call, 20), return_exceptions=True))[0]
        step(f"and the client is told: {type(outcome).__name__}", isinstance(outcome, Exception), outcome)


def with_inspector(sbx, place):
    program = os.path.join(CLIENTS, "node_modules", ".bin", "mcp-inspector")

    def ask(*words):
        line = [program, "--cli", sbx, "mcp", "--workspace", place, *words]
        return json.loads(subprocess.run(line, check=True, capture_output=True, timeout=120).stdout)

    tools = ask("--method", "tools/list")["tools"]
    step("list", [tool["name"] for tool in tools] == ["execute", "why", "read_report"], tools)
    result = ask("--method", "tools/call", "--tool-name", "execute", "--tool-arg", "command=echo out; exit 3")
    told = result["structuredContent"]
    step("call", told["stdout"] == "out\n" and told["status"] == 3, result)
    result = ask("--method", "tools/call", "--tool-name", "why", "--tool-arg", "call=reboot")
    step("why", result["structuredContent"]["answer"] == "refused", result)


def install():
    """Fetches the clients, if they are not there."""
    python = os.path.join(CLIENTS, "venv", "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", os.path.join(CLIENTS, "venv")], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", SDK], check=True)
    npm = ["npm", "install", "--prefix", CLIENTS, "--no-audit", "--no-fund", "--loglevel=error", INSPECTOR]
    subprocess.run(npm, check=True, stdout=subprocess.DEVNULL)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sbx", default=os.path.join(HERE, os.pardir, "target", "debug", "sbx"))
    parser.add_argument("--sdk", metavar="MODE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sbx = os.path.realpath(options.sbx)
    with tempfile.TemporaryDirectory(dir=os.path.expanduser("~"), prefix="sbx-mcp-") as base:
        place, outside = os.path.join(base, "project"), os.path.join(base, "outside")
        os.mkdir(place)
        os.mkdir(outside)
        with open(os.path.join(outside, "data"), "w", encoding="ascii") as file:
            file.write("data\n")
        if options.sdk:
            return asyncio.run(with_sdk(sbx, options.sdk, place, outside))
        python = install()
        for mode in ["auto", "legacy"]:
            print(f"{SDK}, {mode}:", flush=True)
            ended = subprocess.run([python, __file__, "--sdk", mode, "--sbx", sbx], timeout=300)
            if ended.returncode != 0:
                sys.exit(1)
        print(f"{INSPECTOR}:", flush=True)
        with_inspector(sbx, place)


main()
