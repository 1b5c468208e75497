#!/usr/bin/env python3
"""Examines what sbx says about refusals: whether it names them, rightly, with a remedy that works and is narrow.

    make test-explain                   all, as the calling user; as root and as user 65534 where that is root
    tests/explain.py [--sbx FILE] [--only WORDS] [--update] [--list FILE] [-v]

The cases are in explain/*.txt. `[KIND]` starts a kind, `$ [FLAGS -- ]COMMAND` a case; below it are lines `KEY VALUE`:

    path     the path that is refused, and the access (r, w, x, rw): stands for names, why, allow and not
    names    what a line has to name, or several with ` | ` between them; and says: a regular expression it matches too
    not      a regular expression that no such line may match; also: one that further lines may match
    allow    sets of flags that are narrow enough, with ` | ` between them; `none`: no flag, and a line that says so
    why      the question for `sbx why`; without it none is asked
    more     values for flags that are proposed without one
    innocent it fails outside too, so nothing may be said; user: `root` or `ordinary`; needs: tools
    setup    what is done outside before each run; env: variables

Before the first case, keys are for the whole kind. $H is the home, $W the workspace, $O a directory outside; more are in
explain/bench.py, and the tree is made by explain/tree.sh. A command runs by way of sh only where it has its characters.
A case has to succeed outside. Inside it has to fail, and four answers are looked at: the lines of a plain run and of one
with `--explain`, the report of the plain run, and `sbx why`. The flags that an answer proposes are followed to the
letter, all at once. Commands in explain/noise.txt succeed, and nothing may be said about them. Only loopback is
contacted. The exit status is 1 where a case falls short.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "explain"))
import bench  # noqa: E402
import page  # noqa: E402

TESTS = pathlib.Path(__file__).resolve().parent
CASES = TESTS / "explain"
MODES = ["plain", "explain", "report", "why"]
MARKS = ["named", "right", "remedy", "narrow"]
KEYS = ["names", "says", "not", "allow", "why", "more", "also", "user", "needs", "setup", "env", "path", "innocent"]
OF_A_SHELL = set("|&;<>()$`\\*?[]#~={}!")
# Where the words of a proposal begin. What follows is read as a shell would, up to the first word that is no flag.
PROPOSES = re.compile(r"\b(?:allow it with|allow more with|allow \w+ with|allow them with|pass it with|pass them with"
                      r"|add|with|use)(?=:? -)")
BARE = {"--inherit-env", "--allow-dangerous-env", "--keep-background", "--exec", "--dangerously-unconfined", "-q",
        "--no-explainer", "--explain", "--log-violations", "--verify"}
PATHS = {"--ro", "--rox", "--rw", "--rwx", "--unix", "--deny", "--workspace", "--cwd"}
SEVERAL = {"--ro", "--rox", "--rw", "--rwx", "--unix", "--deny", "--allow-command", "--block-command", "--allow-calls",
           "--deny-calls", "--connect", "--bind", "--env", "--pass-fd"}
# What a line may say where no flag helps.
NO_FLAG = re.compile(r"\bno (flag|rule|profile)\b|never|capabilit|outside|nothing (else )?(allows|helps|opens)|without"
                     r"|cannot be|leave|permission|\bdenies|denied by|--deny|\bblocks\b|belongs to")
BY_OPERATION = {"r": ("--ro", r"may not (change|write|execute)"), "w": ("--rw", r"may not (read|execute)"),
                "x": ("--rox", r"may not (change|write)"), "rw": ("--rw", r"may not (read|execute)\b(?! and)")}
# Warnings about the run itself. They are true whatever is refused.
WARNING = re.compile(r"sbx: warning: (.* can be changed by the command, for the run has no namespaces|.* belongs to user"
                     r"|the command can change its profile)"
                     r"|itself cannot be listed, and nothing new can be made|tool caches do not last beyond this run")
# What a report says of a call that fails outside too. People are not told of it.
FAILS_OUTSIDE = re.compile(r"it fails outside as well|to this user as well")
# How often something was that a line has said.
SUM = re.compile(r" \d+ times in .*")
NOT_OF_WHY = {"--cwd", "--log-violations", "--explain"}
SECONDS = 20


class Case:
    """A command line that is refused, and what is expected of the answers."""

    def __init__(self, kind, line, defaults, where):
        self.kind, self.line, self.where = kind, line, where
        self.said = dict(defaults)
        self.innocent = False

    def finish(self):
        said = self.said
        self.innocent = "innocent" in said
        if "path" in said:
            path, _, operation = said["path"].rpartition(" ")
            if operation not in BY_OPERATION:
                path, operation = said["path"], "r"
            flag, wrong = BY_OPERATION[operation]
            said.setdefault("names", path)
            said.setdefault("why", f"--path {path} --op {operation}")
            said.setdefault("allow", f"{flag} {path}")
            said.setdefault("not", wrong)
        if not self.innocent and not {"names", "allow"} <= said.keys():
            sys.exit(f"{self.where}: says no names, or not what is to be allowed")
        return self

    def split(self, variables):
        """Flags and command."""
        line = variables.put(self.line)
        flags = ""
        if line.startswith("-"):
            flags, _, line = line.partition(" -- ")
        return shlex.split(flags), words(line)

    def missing(self):
        return [tool for tool in self.said.get("needs", "").split() if not bench.which(tool)]


class Answer(collections.namedtuple("Answer", "texts flags text")):
    """What one mode says: pieces of text, all flags that they propose, and the text to show."""


def words(line):
    """A command by itself, or by way of the shell where it has characters of one."""
    unquoted = re.sub(r"'[^']*'", "", line)
    return ["sh", "-c", line] if set(unquoted) & OF_A_SHELL else shlex.split(line)


def read_cases():
    cases = []
    for path in sorted(CASES.glob("*.txt")):
        if path.name == "noise.txt":
            continue
        kind, defaults = path.stem, {}
        case = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.name}:{number}"
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("["):
                kind, defaults, case = line.strip("[]"), {}, None
            elif line.startswith("$ "):
                case = Case(kind, line[2:].strip(), defaults, where)
                cases.append(case)
            else:
                key, _, value = line.strip().partition(" ")
                if key not in KEYS:
                    sys.exit(f"{where}: no such key: {key}")
                (case.said if case else defaults)[key] = value.strip()
    return [case.finish() for case in cases]


def proposed(text):
    """The flags that a text proposes, as pairs of flag and value."""
    found = PROPOSES.search(text)
    pairs = []
    if not found:
        return pairs
    rest = text[found.end():].lstrip(": ").split(" (")[0]
    try:
        tokens = shlex.split(rest)
    except ValueError:
        tokens = rest.split()
    while tokens:
        token = tokens.pop(0)
        if token in ("and", ","):
            continue
        if not token.startswith("-"):
            break
        flag, equals, value = token.rstrip(",;:").partition("=")
        takes_value = flag not in BARE and not equals and tokens and not tokens[0].startswith("-")
        if takes_value and token[-1] not in ",;:" and tokens[0] not in ("and", "or", "if", "to"):
            value = tokens.pop(0)
            ends = value[-1:] in ";,"
            value = value.rstrip(",;")
            pairs.append((flag, value))
            if ends:
                break
            continue
        pairs.append((flag, value))
    return pairs


def normal(pairs, area):
    """As a set that can be compared: paths absolute."""
    def one(flag, value):
        flag = {"-p": "--profile", "-t": "--timeout"}.get(flag, flag)
        if flag in PATHS and value:
            value = os.path.normpath(area.work / value.replace("~", str(area.home), 1))
        return (flag, value)
    return frozenset(one(*pair) for pair in pairs)


def limitless(flags):
    """Without the values of limits: how high they have to be is for the user to say."""
    return frozenset((flag, "" if flag.startswith("--max-") or flag == "--timeout" else value) for flag, value in flags)


def pairs_of(tokens):
    pairs = []
    for token in tokens:
        if token.startswith("-") or not pairs or pairs[-1][1]:
            pairs.append((token, ""))
        else:
            pairs[-1] = (pairs[-1][0], token)
    return pairs


def followed(flags, proposal, more):
    """The flags of a run that does what was proposed."""
    names = {flag for flag, _ in proposal}
    dropped = {flag for flag in names if flag not in SEVERAL}
    if "--net" in names:
        dropped |= {"--connect", "--bind"}
    if names & {"--connect", "--bind"}:
        dropped.add("--net")
    kept = [pair for pair in pairs_of(flags) if pair[0] not in dropped]
    for flag, value in sorted(proposal):
        if flag not in BARE and not value:
            wanted = dict(pairs_of(shlex.split(more)))
            value = wanted.get(flag, "")
        kept.append((flag, value))
    return [word for pair in kept for word in pair if word]


class Examined:
    """What came out of one case for one user."""

    def __init__(self, case, area):
        self.case, self.area, self.user = case, area, area.user
        self.invalid = ""
        self.marks = {}       # mode -> {mark: bool}
        self.wrong = {}       # mode -> false lines
        self.answers = {}
        self.differ = False
        self.remedies = {}    # flags -> (whether it helped, what the run said)
        self.flags, self.command = case.split(area)

    def said(self, key, default=""):
        return self.area.put(self.case.said.get(key, default))

    def shown(self):
        return shlex.join(["sbx", "run", *self.flags, "--", *self.command])

    def run(self, flags=None, extra=(), seconds=SECONDS):
        """In a new tree. Without `flags`, outside."""
        self.area.renew(self.said("setup"))
        # A process that was disturbed outside is another one now.
        self.command = self.case.split(self.area)[1]
        inside = [] if flags is None else [self.area.sbx, "run", *extra, *flags, "--"]
        variables = dict(pairs.split("=", 1) for pairs in shlex.split(self.said("env")))
        return self.area.run([*inside, *self.command], variables, seconds)

    def examine(self):
        outside = self.run()
        if self.case.innocent:
            if outside.status == 0:
                self.invalid = "succeeds outside"
        elif outside.status != 0:
            self.invalid = f"fails outside, status {outside.status}: {outside.err.strip()[-200:]}"
        if self.invalid:
            return self
        report = self.area.place / "report.json"
        plain = self.run(self.flags, ["--report", str(report)])
        entries = self.entries(report)
        if plain.status == 0:
            self.invalid = "is not refused inside"
            return self
        self.mark("plain", self.lines(plain.err))
        # Reports are about calls, and none is refused where a variable does not pass.
        if self.case.kind != "variables":
            self.mark("report", entries)
        self.mark("explain", self.lines(self.run(self.flags, ["--explain"]).err))
        if self.said("why") and not self.case.innocent:
            asked = self.area.run([self.area.sbx, "why", *shlex.split(self.said("why")), *self.of_policy()], {},
                                  SECONDS)
            text = " ".join((asked.out + asked.err).split())
            self.mark("why", Answer([text], normal(proposed(text), self.area), asked.out + asked.err), asked.status)
        flags = {mode: answer.flags for mode, answer in self.answers.items() if mode in self.marks and self.marks[mode]["named"]}
        self.differ = len(set(flags.values())) > 1
        return self

    def of_policy(self):
        """The flags that `sbx why` takes too."""
        return [word for pair in pairs_of(self.flags) if pair[0] not in NOT_OF_WHY for word in pair if word]

    def lines(self, err):
        lines = [line for line in err.splitlines() if line.startswith("sbx:")]
        flags = frozenset().union(*[normal(proposed(line), self.area) for line in lines])
        return Answer(lines, flags, "\n".join(lines))

    def entries(self, path):
        """The report, as lines."""
        try:
            report = json.loads(path.read_text())
            path.unlink()
        except (OSError, ValueError) as error:
            return Answer([], frozenset(), f"no report: {error}")
        lines, flags = [], []
        for entry in report["violations"]:
            suggestion = entry["suggestion"] or {}
            words_of = suggestion.get("flags") or []
            flags += pairs_of([word for word in words_of if isinstance(word, str)])
            # A limit has a flag, and nobody knows its value.
            flags += proposed((entry["rule"] or {}).get("text") or "")
            address = entry["address"] or {}
            lines.append(f"{entry['call']}({entry['args']}) path={entry['path']} address={json.dumps(address)}: "
                         f"{(entry['rule'] or {}).get('text')}; flags={shlex.join(map(str, words_of))} {suggestion.get('note') or ''}")
        cause = {"timeout": "--timeout", "memory-limit": "--max-memory"}.get(report["cause"])
        if cause:
            lines.append(f"cause={report['cause']}: {cause}")
            flags.append((cause, ""))
        if report["error"]:
            lines.append(report["error"])
            flags += proposed(report["error"])
        return Answer(lines, normal(flags, self.area), "\n".join(lines))

    def mark(self, mode, answer, status=None):
        self.answers[mode] = answer
        also = self.said("also")
        names = [re.escape(one.strip()) + r"(?![\w/-])" for one in self.said("names").split(" | ") if one.strip()]
        naming = re.compile("|".join(names) or r"(?!)")
        hits = [text for text in answer.texts if naming.search(text)]
        if mode != "why":
            known = hits + [text for text in answer.texts if also and re.search(also, text)]
            self.wrong[mode] = [text for text in answer.texts
                                if text not in hits and not WARNING.search(text) and not (also and re.search(also, text))
                                and not (mode == "report" and FAILS_OUTSIDE.search(text))
                                and not any(SUM.sub("", text) in one for one in known if SUM.search(text))]
        if self.case.innocent:
            return
        says, never = self.said("says"), self.said("not")
        right = bool(hits) and any(not says or re.search(says, text) for text in hits)
        right = right and not any(never and re.search(never, text) for text in hits)
        if mode == "why":
            right = right and status in (1, 2)
        accepted = [normal(pairs_of(shlex.split(one)), self.area) for one in self.said("allow").split(" | ")
                    if one.strip() != "none"]
        may_be_none = "none" in [one.strip() for one in self.said("allow").split(" | ")]
        if may_be_none and not answer.flags:
            remedy = narrow = bool(hits) and any(NO_FLAG.search(text) for text in hits)
        else:
            remedy = bool(hits) and bool(answer.flags) and not (may_be_none and not accepted) \
                and self.helps(answer.flags)
            narrow = bool(hits) and any(limitless(one) == limitless(answer.flags) for one in accepted)
        self.marks[mode] = dict(named=bool(hits), right=right, remedy=remedy, narrow=narrow)

    def helps(self, flags):
        if flags not in self.remedies:
            ended = self.run(followed(self.flags, flags, self.said("more")))
            said = "" if ended.status == 0 else f"status {ended.status}: {ended.err.strip()[-600:]}"
            self.remedies[flags] = (ended.status == 0, said)
        return self.remedies[flags][0]

    def short(self):
        """What is missing, by mode."""
        found = {mode: [mark for mark in MARKS if not marks[mark]] for mode, marks in self.marks.items()}
        for mode, wrong in self.wrong.items():
            if wrong:
                found.setdefault(mode, []).append("false line" if len(wrong) == 1 else f"{len(wrong)} false lines")
        found = {mode: missing for mode, missing in found.items() if missing}
        if self.differ:
            found["all"] = ["differ"]
        return found


class Quiet:
    """A command that succeeds, for one user: what sbx says about it."""

    def __init__(self, line, area):
        self.line, self.user, self.invalid, self.lines = line, area.user, "", {}
        self.command = words(area.put(line))
        area.renew("")
        outside = area.run(self.command, {}, SECONDS)
        if outside.status != 0:
            self.invalid = f"fails outside, status {outside.status}: {outside.err.strip()[-200:]}"
            return
        for mode, extra in (("plain", []), ("explain", ["--explain"])):
            area.renew("")
            ended = area.run([area.sbx, "run", *extra, "--", *self.command], {}, SECONDS)
            said = [line for line in ended.err.splitlines() if line.startswith("sbx:")]
            if ended.status != 0:
                said.append(f"(status {ended.status} inside: {ended.err.strip()[-200:]})")
            self.lines[mode] = said


def read_noise():
    lines = [line.strip() for line in (CASES / "noise.txt").read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def show(one):
    print(f"\n[{one.case.kind}] {one.shown()}   (user {one.user})")
    for mode, answer in one.answers.items():
        missing = ", ".join(one.short().get(mode, [])) or "good"
        print(f"  {mode}: {missing}")
        print("".join(f"    | {line}\n" for line in answer.text.splitlines()), end="")
    for flags, (helped, said) in one.remedies.items():
        print(f"  with {' '.join(' '.join(pair) for pair in sorted(flags))}: {'works' if helped else said}")
    if one.invalid or one.differ:
        print(f"  {one.invalid or 'the answers differ'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sbx", default=os.environ.get("SBX") or str(TESTS.parent / "target" / "debug" / "sbx"))
    parser.add_argument("--only", default="", help="cases whose kind, file or command has one of these words")
    parser.add_argument("--update", action="store_true", help=f"write {page.PAGE.name}")
    parser.add_argument("--list", type=pathlib.Path, help="write the cases that fall short in full to this file")
    parser.add_argument("-v", action="store_true", dest="verbose")
    given = parser.parse_args()
    began = time.monotonic()
    only = given.only.split()

    def wanted(*texts):
        return not only or any(word in text for word in only for text in texts)

    cases = [case for case in read_cases() if wanted(case.kind, case.line, case.where)]
    noise = [line for line in read_noise() if wanted("noise", line)]
    skipped = [(case.line, case.missing()) for case in cases if case.missing()]
    cases = [case for case in cases if not case.missing()]
    noise = [line for line in noise if bench.which(line.split()[0])]
    users = [0, bench.ORDINARY] if os.geteuid() == 0 else [os.geteuid()]
    jobs = [(user, case) for case in cases for user in users
            if case.said.get("user") != ("ordinary" if user == 0 else "root")]
    results, quiet = [], []
    with bench.Bench(users, given.sbx) as place:
        def do(job):
            user, what = job
            area = place.area(user)
            try:
                return Quiet(what, area) if isinstance(what, str) else Examined(what, area).examine()
            finally:
                place.give_back(area)

        with concurrent.futures.ThreadPoolExecutor(bench.WORKERS) as pool:
            for one in pool.map(do, jobs + [(user, line) for line in noise for user in users]):
                (quiet if isinstance(one, Quiet) else results).append(one)
                if given.verbose and isinstance(one, Examined):
                    show(one)
    page.summary(results, quiet, skipped, sys.stdout)
    if given.list:
        page.failures(results, quiet, given.list)
    if given.update:
        page.update(results, quiet, skipped)
    print(f"\n{time.monotonic() - began:.0f} s")
    bad = [one for one in results if one.invalid or one.short()] + [one for one in quiet if any(one.lines.values())]
    sys.exit(1 if bad and not given.update else 0)


if __name__ == "__main__":
    main()
