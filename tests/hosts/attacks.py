#!/usr/bin/env python3
"""Attempts to reach what no rule names: attacks.py LOG SBX [NAME...], or attacks.py sources

Runs in an internet of a test's own (internet.py), whose log is LOG. Each attempt is a function in one of the modules
`by_*`. It runs inside `SBX run` with the rules of its flags, and tries to reach or to tell somebody outside. What
arrived is in the log: an attempt is through if that has a line which the attempt's rules do not allow. There are
controls that are allowed, so that silence means something. A line is printed for each attempt, and the status is the
number of those that are through. `sources` prints the attempts, and what each repeats.
"""
import os, pathlib, re, subprocess, sys, time

import attempts
import by_address, by_name, by_other_ways, by_proxy, by_what_is_said  # They register their attempts.


PLACES = [
    (r"CVE-[-0-9]+", r"https://www.cve.org/CVERecord?id=\g<0>"),
    (r"GHSA-[-a-z0-9]+", r"https://github.com/advisories/\g<0>"),
    (r"RFC ([0-9]+)", r"https://www.rfc-editor.org/rfc/rfc\1"),
    (r"chromestatus ([0-9]+)", r"https://chromestatus.com/feature/\1"),
    (r"([-.\w]+/[-.\w]+)#([0-9]+)", r"https://github.com/\1/issues/\2"),
]


# As at a level where there is less.
MORE_FLAGS = os.environ.get("SBX_MORE_FLAGS", "").split()

# Where a proxy is reached by variables alone, most attempts and controls fail at their first connection.
BY_PORT = "SBX_BY_PORT" in os.environ


def linked(source):
    """A source with the address of what its first words name, as on the page."""
    for pattern, place in PLACES:
        if found := re.match(pattern, source):
            return f"[{found[0]}]({found.expand(place)}){source[found.end():]}"
    return source


def until_quiet(log):
    """The lines of the log, when nothing has arrived for a while: what comes later would count for the next attempt."""
    seen = None
    while seen != (lines := log.read_text().splitlines()):
        seen = lines
        time.sleep(0.1)
    return lines


def main():
    if sys.argv[1] == "inside":
        next(function for name, function, *_ in attempts.all if name == sys.argv[2])()
        return 0
    if sys.argv[1] == "sources":
        for name, _, source, *_ in attempts.all:
            print(name, linked(source), sep="\t")
        return 0
    log, sbx, wanted = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    tried = through = 0
    for name, _, _, flags, seen, control in attempts.all:
        if wanted and name not in wanted:
            continue
        before = len(log.read_text().splitlines())
        flags = [*(flag for flag in MORE_FLAGS if flag not in flags), *attempts.RULES, *flags]
        words = [sbx, "run", "-q", "--timeout", "60s", "--env", f"SBX_PROGRAM={sbx}", *flags, "--", "/usr/bin/python3",
                 sys.argv[0], "inside", name]
        ran = subprocess.run(words, capture_output=True, text=True)
        arrived = until_quiet(log)[before:]
        # Lines about the servers that a rule names are allowed in every attempt that says so, and in no other.
        odd = [line for line in arrived if not any(line == one or line.startswith(f"{one} ") for one in seen)]
        silent = any(sum(line.startswith(one) for line in arrived) < control.count(one) for one in control)
        # Without a network of the run's own, UDP and listening are refused: such an attempt ends at once.
        ended = BY_PORT or MORE_FLAGS and "PermissionError" in ran.stderr
        broken = (ran.returncode not in (0, 124) or "Traceback" in ran.stderr) and not ended
        tried += 1
        if odd or (silent and not BY_PORT) or broken:
            through += 1
            what = "through" if odd else "silent" if silent else f"broken ({ran.returncode})"
            print(what, name, *odd[:5], ran.stderr[-600:])
        else:
            print("arrived" if control else "refused", name)
    print(tried, "attempts,", through, "through")
    return through


if __name__ == "__main__":
    sys.exit(main())
