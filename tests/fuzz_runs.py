#!/usr/bin/env python3
"""Runs random sequences of confined commands in a repository, and looks whether the user's own git executes what they
have planted.

    make fuzz-runs [SECONDS=600] [AS=UID]
    tests/fuzz_runs.py --seconds N [--seed N] [--as UID] [--sbx FILE] [--flags "FLAGS OF RUN"]
    tests/fuzz_runs.py --replay SEED          one try again, with what every step printed

A try is a shape (a repository of some kind, as its user has made it), one to three runs of a few actions each, something
that the user does between them, and at the end what a user does who looks at the place: `git status` and the like in
every directory. A planted program leaves a mark outside the sandbox. Each try is made twice, in two copies: without a
sandbox, which tells how many sequences plant anything at all, and with one. Two kinds of marks count:

- FOUND: something planted ran, and no line of sbx had named the place. The sequence is shortened as far as it still
  does so, and printed. The exit status is 1 then.
- named: it ran, although a line of a run had said that git would act on it.
"""

import argparse
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

GIT = {
    "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@example.org", "GIT_COMMITTER_NAME": "x",
    "GIT_COMMITTER_EMAIL": "x@example.org", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0",
}
SETTINGS = "[protocol \"file\"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n[init]\n\tdefaultBranch = main\n"

COMMIT = "git add -A && git commit -qm more"
BASE = f"git init -q . && echo one > file && {COMMIT} && git branch topic"
LIBRARY = "git init -q ../library && (cd ../library && echo lib > lib && git add . && git commit -qm lib)"
SUBMODULE = f"{BASE} && {LIBRARY} && git submodule --quiet add ../library lib && git commit -qm lib"

# What the user has made before the first run. Every one stands in the workspace.
SHAPES = {
    "none": "echo one > file",
    "plain": BASE,
    "empty": "git init -q .",
    "in a directory": f"(cd .. && git init -q .) && echo one > file && git add . && git commit -qm one",
    "bare": f"git init -q --bare .",
    "behind a file": f"{BASE} && mv .git .bare && echo 'gitdir: .bare' > .git && echo .bare >> .bare/info/exclude",
    "submodule": SUBMODULE,
    "deep submodule": f"{BASE} && {LIBRARY} && git submodule --quiet add ../library third_party/foo && git commit -qm lib",
    "embedded submodule": f"{BASE} && {LIBRARY} && git clone -q ../library lib && git submodule --quiet add ../library lib "
                          "&& git commit -qm lib",
    "embedded, other name": f"{BASE} && {LIBRARY} && git clone -q ../library sub && "
                            "git submodule --quiet add --name other ../library sub && git commit -qm lib",
    "worktree": f"{BASE} && git worktree add -q wt topic",
    "outer worktree": f"{BASE} && git worktree add -q ../wt topic",
    "nested clone": f"{BASE} && git clone -q . sub",
    "deep clone": f"echo one > file && git init -q a/b/sub && (cd a/b/sub && echo x > x && {COMMIT})",
    "hooks path": f"{BASE} && mkdir .githooks && git config core.hooksPath .githooks && {COMMIT}",
    "linked hooks": f"{BASE} && mkdir shared && rm -rf .git/hooks && ln -s ../shared .git/hooks",
    "included": f"{BASE} && echo '[user] name = x' > more.config && git config include.path ../more.config && {COMMIT}",
    "sparse": f"{BASE} && mkdir d && echo x > d/x && {COMMIT} && git sparse-checkout set d",
    "separate": f"git init -q --separate-git-dir=store . && echo one > file && echo store >> store/info/exclude && {COMMIT}",
    "nested bare": f"{BASE} && git init -q --bare sub",
}

PLANT = "touch {mark}; false"
# Where a repository may be, seen from the workspace; what a shape has not is made or fails.
DIRECTORIES = [".git", ".git", ".git", ".git/modules/lib", ".git/modules/third_party/foo", ".git/worktrees/wt", "lib/.git",
               "sub/.git", "sub", "third_party/foo/.git", "wt/.git", "a/b/sub/.git", ".bare", ".", "store", "new/.git"]
PARTS = ["HEAD", "config", "refs", "objects", "hooks", "commondir", "index", "modules", "worktrees", "gitdir", "info", ""]
PLACES = [".", "lib", "sub", "wt", "third_party/foo", "new", "a/b/sub", "../wt"]
OTHERS = [".gitmodules", ".githooks", "shared", "more.config", "a", "a/b", "third_party", "lib", "sub", "wt", ".git"]
MODES = ["000", "1000", "1555", "0300", "0200", "0500", "0700", "755", "444"]


def repositories(shape):
    """Where repositories of a shape are; what else there may be, more seldom."""
    own = {"none": ["new/.git"], "bare": ["."], "behind a file": [".bare"], "separate": ["store"],
           "submodule": [".git/modules/lib"], "deep submodule": [".git/modules/third_party/foo"],
           "embedded submodule": ["lib/.git"], "embedded, other name": ["sub/.git"], "worktree": [".git/worktrees/wt"],
           "outer worktree": [".git/worktrees/wt"], "nested clone": ["sub/.git"], "deep clone": ["a/b/sub/.git"],
           "nested bare": ["sub"]}
    return [".git", *own.get(shape, [".git"]) * 3]


def any_directory(rng, shape):
    return rng.choice(DIRECTORIES if rng.random() < 0.3 else repositories(shape))


def any_place(rng, shape):
    """A path in or of some repository."""
    if rng.random() < 0.3:
        return rng.choice(OTHERS)
    return os.path.normpath(os.path.join(any_directory(rng, shape), rng.choice(PARTS)))


def planted(rng, shape):
    """Puts something into a place that git reads."""
    at = shlex.quote(any_directory(rng, shape))
    hook = rng.choice(["post-index-change", "post-checkout", "pre-commit", "reference-transaction", "pre-auto-gc"])
    setting = rng.choice(["core.fsmonitor", "core.fsmonitor", "diff.external", "filter.x.clean"])
    script = f"printf '#!/bin/sh\\n{PLANT}\\n'"
    return rng.choice([
        f"printf '[core]\\nfsmonitor = \"{PLANT}\"\\n' >> {at}/config",
        f"git --git-dir={at} config {setting} '{PLANT}'",
        f"cd {shlex.quote(rng.choice(PLACES))} && echo '* filter=x' > .gitattributes; git config {setting} '{PLANT}'",
        f"{script} > own; chmod +x own; mkdir -p evil; cp own evil/{hook}; cd {shlex.quote(rng.choice(PLACES))} && "
        'git config core.hooksPath "$OLDPWD/evil"',
        f"mkdir -p {at}/hooks; {script} > {at}/hooks/{hook}; chmod +x {at}/hooks/{hook}",
        f"mkdir -p .githooks shared; {script} > .githooks/{hook}; {script} > shared/{hook}; chmod +x .githooks/* shared/*",
        f"printf '[core]\\nfsmonitor = \"{PLANT}\"\\n' >> more.config",
        f"mkdir -p evil/hooks; printf '[core]\\nfsmonitor = \"{PLANT}\"\\n' > evil/config; echo ref: refs/heads/main > evil/HEAD; "
        f"mkdir -p evil/objects evil/refs; echo \"$PWD/evil\" > {at}/commondir",
        f"printf '[core]\\nfsmonitor = \"{PLANT}\"\\n' > {at}/config.worktree; git config extensions.worktreeConfig true",
    ])


def moved(rng, shape):
    """Changes what the place looks like."""
    one, other = shlex.quote(any_place(rng, shape)), shlex.quote(any_place(rng, shape))
    return rng.choice([
        f"chmod {rng.choice(MODES)} {one}",
        f"chmod {rng.choice(MODES)} {one}",
        f"mv -T {one} {one}.was",
        f"mv -T {one}.was {one}",
        f"mv -T {one} {other}",
        f"rm -rf {one}",
        f": > {one}",
        f"mkdir -p {one}",
        f"mv {one} {one}.was; cp -a {one}.was {one}",
        f"rm -rf {one}; ln -s \"$PWD\"/{other} {one}",
        f"cp -a .git {other}",
    ])


def worked(rng, shape):
    """git's own work."""
    place = shlex.quote(rng.choice([*PLACES, os.path.dirname(any_directory(rng, shape)) or "."]))
    return rng.choice([
        "git init -q new", "git init -q .", "git init -q --bare sub", "git clone -q . new", "git stash -q", "git gc -q",
        "git worktree add -q wt", "git worktree add -q new HEAD", "git submodule --quiet add $PWD/sub new",
        "git init -q --separate-git-dir=store new", "git submodule --quiet update --init", "git checkout -q topic",
        f"cd {place} && git add -A && git commit -qm run", "git rm -q --cached lib sub", "git config --file .gitmodules "
        "submodule.x.path new", "git sparse-checkout set file", "git add sub new a/b/sub; git commit -qm added",
    ])


# What the user does between two runs, and thinks nothing of.
INNOCENT = [
    "git status", "git stash -u -q; git stash pop -q", "git clean -fdq", "git commit -qam user", "git config user.name me",
    "git submodule update --init -q", "git checkout -q topic", "git gc -q", "git worktree prune", "true", "true",
    "chmod u+rwx .git sub lib 2>/dev/null",
]
LOOK = "git status; git log -1; git diff; git branch; git stash list; git commit -qam looked; git checkout -q topic"


class Try:
    """One shape with its steps: ("run", [actions]) or ("user", command)."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.seed = seed
        self.shape = rng.choice(sorted(SHAPES))
        self.steps = []
        for number in range(rng.randint(1, 3)):
            if number and rng.random() < 0.6:
                self.steps.append(("user", rng.choice(INNOCENT)))
            kinds = rng.choices([planted, moved, worked], [4, 4, 3], k=rng.randint(1, 4))
            self.steps.append(("run", [kind(rng, self.shape) for kind in kinds]))


class Bench:
    """Makes tries, below a directory of its own."""

    def __init__(self, options):
        self.options = options
        self.sbx = shlex.split(options.sbx)
        self.root = tempfile.mkdtemp(prefix="sbx-fuzz-runs-", dir="/var/tmp")
        self.number = 0

    def shell(self, script, home, cwd, sbx=None):
        environment = {"PATH": os.environ["PATH"], "HOME": home, **GIT}
        command = ["sh", "-c", script]
        if sbx:
            command = [*self.sbx, "run", *shlex.split(self.options.flags), "--", *command]
        done = subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=60)
        if self.options.replay is not None:
            print(f"  $ {'sbx: ' if sbx else ''}{script}\n{done.stdout}{done.stderr}", end="")
        return done.stderr

    def run(self, shape, steps, confined):
        """Whether the mark was made, and what sbx said."""
        self.number += 1
        place = os.path.join(self.root, str(self.number))
        home, workspace, mark = (os.path.join(place, name) for name in ("home", "home/top/project", "ran"))
        os.makedirs(workspace)
        with open(os.path.join(home, ".gitconfig"), "w") as settings:
            settings.write(SETTINGS)
        fired, said = False, ""
        try:
            self.shell(f"set -e; {SHAPES[shape]}", home, workspace)
            for kind, what in steps:
                if kind == "user":
                    self.shell(what, home, workspace)
                else:
                    script = "\n".join(f"( {action} )" for action in what).replace("{mark}", mark)
                    error = self.shell(script, home, workspace, sbx=confined)
                    said += "".join(f"{line}\n" for line in error.splitlines() if line.startswith("sbx: "))
                    if not confined and os.path.exists(mark):
                        # A command may run what it likes; what counts is the user's git.
                        os.remove(mark)
            places = [os.path.join(at, name) for at, names, _ in os.walk(workspace) for name in [*names, ""]
                      if ".git" not in os.path.join(at, name).split("/")]
            looked = dict.fromkeys([workspace, os.path.dirname(workspace), *places])
            for at in looked:
                if os.path.isdir(at) and os.access(at, os.X_OK):
                    self.shell(LOOK, home, at)
            self.shell("chmod u+rwx .git; git status", home, workspace)
            fired = os.path.exists(mark)
        except (subprocess.TimeoutExpired, PermissionError) as error:
            # The last is of a workspace that the command has closed.
            said += f"{error}\n"
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", place], stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(place, ignore_errors=True)
        return fired, said

    def finds(self, shape, steps):
        fired, said = self.run(shape, steps, True)
        return fired and not is_named(said)

    def shortened(self, shape, steps):
        """The same with what it does not need left out."""
        changed = True
        while changed:
            changed = False
            for number, (kind, what) in enumerate(steps):
                fewer = [steps[:number] + steps[number + 1:]]
                if kind == "run":
                    fewer += [steps[:number] + [(kind, what[:at] + what[at + 1:])] + steps[number + 1:]
                              for at in range(len(what)) if len(what) > 1]
                for candidate in fewer:
                    if self.finds(shape, candidate):
                        steps, changed = candidate, True
                        break
                if changed:
                    break
        return steps


def is_named(said):
    """Whether sbx said that git would act on something, or that nothing is protected."""
    words = ["git outside would act on", "something outside replaced", "can be changed by the command", "cannot tell what git"]
    return any(word in said for word in words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--replay", type=int, default=None)
    parser.add_argument("--as", dest="user", type=int, default=None)
    parser.add_argument("--sbx", default="target/debug/sbx")
    parser.add_argument("--flags", default="")
    options = parser.parse_args()
    options.sbx = os.path.abspath(options.sbx)
    if options.user is not None:
        # The build's directory may be closed to that user.
        copy = tempfile.mkdtemp(prefix="sbx-fuzz-bin-", dir="/var/tmp")
        os.chmod(copy, 0o755)
        options.sbx = shutil.copy(options.sbx, copy)
        os.setgroups([])
        os.setgid(options.user)
        os.setuid(options.user)
    bench = Bench(options)
    if options.replay is not None:
        one = Try(options.replay)
        print(f"shape '{one.shape}': {SHAPES[one.shape]}")
        for confined in (False, True):
            print(f"--- {'confined' if confined else 'not confined'}")
            print("ran:", bench.run(one.shape, one.steps, confined)[0])
        return 0
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    end, tries, controls, named, found, refused = time.monotonic() + options.seconds, 0, 0, 0, 0, 0
    while time.monotonic() < end:
        one = Try(seed + tries)
        tries += 1
        fired, said = bench.run(one.shape, one.steps, True)
        refused += "cannot protect the repository" in said
        # Every fourth tells what the sequences are worth.
        if tries % 4 == 0:
            controls += bench.run(one.shape, one.steps, False)[0]
        if fired and is_named(said):
            named += 1
        elif fired:
            found += 1
            print(f"FOUND by seed {one.seed}, shape '{one.shape}':")
            for kind, what in bench.shortened(one.shape, one.steps):
                print(f"  {kind}: {what if kind == 'user' else '; '.join(what)}")
            sys.stdout.flush()
    shutil.rmtree(bench.root, ignore_errors=True)
    print(f"{tries} tries from seed {seed}: {found} found, {named} ran although named; {refused} had a run refused; "
          f"of {tries // 4} without a sandbox {controls} ran something planted")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
