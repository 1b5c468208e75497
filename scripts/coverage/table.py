#!/usr/bin/env python3
"""Makes the tables of docs/internals/testing/coverage.md and a list of the lines that did not run, from the output of coverage/run.

Usage: table.py DIRECTORY [--update]
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/internals/testing/coverage.md"
MARK = "<!-- from here on made by make coverage UPDATE=1 -->\n"
# The code that confines, answers or decides: its files have lines of their own.
WATCHED = ("policy/src", "launcher/src/plan", "launcher/src/enforce", "launcher/src/supervise", "launcher/src/sys")
# Files below this percentage are listed.
LISTED_BELOW = 95.0


def is_test(path):
    """Whether a file is only built for tests."""
    return path.name in ("tests.rs", "testing.rs") or "tests" in path.parts


def product_lines(path):
    """The numbers of the lines that are part of the product: all but blocks under #[cfg(test)]."""
    kept, end = set(), None
    lines = (ROOT / path).read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if end is None and line.strip() == "#[cfg(test)]":
            end = line[: len(line) - len(line.lstrip())] + "}"
        if end is None:
            kept.add(number)
        elif line == end or (line.endswith(";") and line.startswith(end[:-1] + "mod ")):
            end = None
    return kept


def measured(file):
    """For each file of the crates, the lines that can run, and whether they did."""
    found = {}
    for record in file.read_text().split("end_of_record"):
        source = re.search(r"^SF:(.*)$", record, re.M)
        if not source:
            continue
        path = Path(source[1]).relative_to(ROOT)
        if is_test(path):
            continue
        kept = product_lines(path)
        lines = re.findall(r"^DA:(\d+),(\d+)", record, re.M)
        found[path] = {int(line): int(count) > 0 for line, count in lines if int(line) in kept}
    return found


def groups(path):
    """The groups that a file counts for: its crate, and in the launcher its module."""
    parts = path.parts
    yield f"`{parts[0]}`"
    if parts[0] == "launcher":
        yield f"`launcher`: `{parts[2]}/`" if len(parts) > 3 else "`launcher`: files beside them"


def share(lines):
    """`lines that ran | per cent`."""
    ran = sum(lines)
    return f"{ran:,} | {100 * ran / max(len(lines), 1):.1f}"


def table(head, rows):
    """A table of the lines that the tests run, and that they run together with failing system calls."""
    text = f"| {head} | lines | by the tests | % | with failing calls too | % |\n|---|---|---|---|---|---|\n"
    for name, (tests, everything) in rows:
        text += f"| {name} | {len(tests):,} | {share(tests)} | {share(everything)} |\n"
    return text


def tables(tests, everything):
    """The measured part of the document."""
    sums = defaultdict(lambda: ([], []))
    files = []
    for path in sorted(tests):
        both = [list(of[path].values()) for of in (tests, everything)]
        for group in (*groups(path), "total"):
            for held, lines in zip(sums[group], both):
                held.extend(lines)
        in_view = any(path.is_relative_to(place) for place in WATCHED)
        if in_view and both[0] and 100 * sum(both[0]) / len(both[0]) < LISTED_BELOW:
            files.append((f"`{path}`", both))
    modules = (name for name in sums if name != "total")
    modules = sorted(modules, key=lambda name: (name.split(":")[0] != "`policy`", name))
    files.sort(key=lambda row: sum(row[1][0]) / len(row[1][0]))
    return (
        "\n" + table("code", [(name, sums[name]) for name in (*modules, "total")])
        + "\n### Files of `policy`, `launch`, `supervise` and `sys` of which less than "
        + f"{LISTED_BELOW:.0f} % ran by the tests\n\n" + table("file", files)
    )


def missed(tests, everything):
    """The lines that did not run in the tests. F marks those that failing system calls reach."""
    for path in sorted(tests):
        source = (ROOT / path).read_text().splitlines()
        for number, ran in sorted(tests[path].items()):
            if not ran:
                mark = "F" if everything[path].get(number) else " "
                yield f"{mark} {path}:{number}: {source[number - 1].strip()}\n"


def main():
    work = Path(sys.argv[1])
    tests, everything = (measured(work / name) for name in ("tests.lcov", "all.lcov"))
    (work / "missed.txt").write_text("".join(missed(tests, everything)))
    text = tables(tests, everything)
    if "--update" in sys.argv[2:]:
        DOCUMENT.write_text(DOCUMENT.read_text().partition(MARK)[0] + MARK + text)
    print(text)
    print(f"Lines that did not run (F: only with failing system calls): {work / 'missed.txt'}")


main()
