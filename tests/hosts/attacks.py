#!/usr/bin/env python3
"""Attempts to reach what no rule names: attacks.py LOG SBX [NAME...]

Runs in an internet of a test's own (internet.py), whose log is LOG. Each attempt is a function in one of the modules
`by_*`. It runs inside `SBX run` with the rules of its flags, and tries to reach or to tell somebody outside. What
arrived is in the log: an attempt is through if that has a line which the attempt's rules do not allow. There are
controls that are allowed, so that silence means something. The names of attempts that are through are printed, and the
status is their number.
"""
import pathlib, subprocess, sys, time

import attempts
import by_address, by_name, by_other_ways  # They register their attempts.


def main():
    if sys.argv[1] == "inside":
        next(function for name, function, *_ in attempts.all if name == sys.argv[2])()
        return 0
    log, sbx, wanted = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    through = []
    for name, _, flags, seen, control in attempts.all:
        if wanted and name not in wanted:
            continue
        before = len(log.read_text().splitlines())
        words = [sbx, "run", "-q", "--timeout", "60s", "--env", f"SBX_PROGRAM={sbx}", *attempts.RULES, *flags, "--",
                 "/usr/bin/python3", sys.argv[0], "inside", name]
        ran = subprocess.run(words, capture_output=True, text=True)
        time.sleep(0.05)
        arrived = log.read_text().splitlines()[before:]
        # Lines about the servers that a rule names are allowed in every attempt that says so, and in no other.
        odd = [line for line in arrived if not any(line == one or line.startswith(f"{one} ") for one in seen)]
        silent = control and not any(line.startswith("bytes ") for line in arrived)
        broken = ran.returncode not in (0, 124) or "Traceback" in ran.stderr
        if odd or silent or broken:
            through.append(name)
            what = "through" if odd else "silent" if silent else f"broken ({ran.returncode})"
            print(what, name, *odd[:5], ran.stderr[-600:])
    print(len(attempts.all) if not wanted else len(wanted), "attempts,", len(through), "through")
    return len(through)


if __name__ == "__main__":
    sys.exit(main())
