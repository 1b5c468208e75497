#!/usr/bin/env python3
"""Runs a shell command under sbx, and tells what became of it.

usage: run.py COMMAND [SECONDS]
"""

import json
import os
import subprocess
import sys
import threading


def run(command, seconds, profile="workspace", max_memory="4G", max_processes=500):
    """Runs a command with limits. Returns what it wrote, and sbx's report."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        ["sbx", "run", f"--report-fd={writer}", "--quiet", f"--profile={profile}", f"--timeout={seconds}s",
         "--max-output=1MiB", f"--max-memory={max_memory}", f"--max-processes={max_processes}", "--", "bash", "-c", command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        # The command itself does not get it: sbx sees to that.
        pass_fds=[writer],
    )
    # Only sbx has it now, so its end is the end of the report.
    os.close(writer)
    report = []

    def read_report():
        with os.fdopen(reader, "rb") as file:
            report.append(file.read())

    # Meanwhile: sbx waits for a reader when a report is longer than a pipe holds.
    thread = threading.Thread(target=read_report)
    thread.start()
    output, _ = process.communicate()
    thread.join()
    if not report[0]:
        raise RuntimeError(f"sbx left no report (status {process.returncode})")
    return output, json.loads(report[0])


def text(value):
    """Words and paths are bytes; what is not UTF-8 comes as base64. The command may have chosen them."""
    return value.encode("unicode_escape").decode() if isinstance(value, str) else value["base64"]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    output, report = run(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "60")
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
    for violation in report["violations"]:
        way = violation["suggestion"]
        flags = " ".join(text(flag) for flag in way["flags"]) if way else "nothing"
        print(f"refused: {violation['call']}({violation['args']}) in {text(violation['process'])}, "
              f"{violation['count']} times; allowed by: {flags}")
    if report["cause"] == "timeout":
        print(f"timeout: ended after {report['duration_ms'] / 1000:.1f} s")
    elif report["cause"] in ("refused", "not-found", "not-executable"):
        print(f"not run: {report['error']}")
    else:
        print(f"{report['cause']}: status {report['exit_status']}")
    sys.exit(report["exit_status"])


if __name__ == "__main__":
    main()
