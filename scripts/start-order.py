#!/usr/bin/env python3
"""Finds out which functions the start of a run calls, and in which order.

    scripts/start-order.py PROGRAM >scripts/start.ld

PROGRAM is an sbx with its symbols, linked at a fixed address: SBX_KEEP_SYMBOLS=1 scripts/build-release.sh makes one.
The result is a linker script that puts these functions next to each other (docs/performance.md, "Builds"). A name
in it that no function has any more changes nothing but the time that starting takes.

It puts a breakpoint on every function, by ptrace(2), runs sbx in its usual ways, and takes each breakpoint away when it
is met. x86_64 only; the order serves every architecture.
"""

import ctypes
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile

RUNS = [
    "--exec -p minimal", "-p minimal", "", "-p network", "-p write", "--namespaces none", "--net private",
    "-p read-only", "-q --rw . --timeout 60s",
]
PTRACE_TRACEME, PTRACE_POKETEXT, PTRACE_CONT, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_DETACH = 0, 4, 7, 12, 13, 17
PTRACE_SETOPTIONS, PTRACE_EVENT_EXEC = 0x4200, 4
# Fork, vfork, clone and exec are told; nothing outlives this program.
OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000
WALL = 0x40000000
BREAKPOINT = b"\xcc"
RIP = 16
# So many bytes of functions that merely have the same name may come along with one.
COMPANY = 4096

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread, address=None, data=None):
    if libc.ptrace(request, thread, address, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace({request})")


def functions(program):
    """Address to name and size."""
    found = {}
    lines = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tT":
            found[int(parts[0], 16)] = (parts[3], int(parts[1], 16))
    return found


def code(program):
    """Where the code is loaded, and its bytes."""
    with open(program, "rb") as file:
        data = file.read()
    table, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for index in range(count):
        kind, flags, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, table + 56 * index)
        if kind == 1 and flags & 1:
            return address, data[offset:offset + size]
    sys.exit(f"'{program}' has no code")


class Trace:
    """One run, and the functions that are called in it."""

    def __init__(self, program, names):
        self.start, self.bytes = code(program)
        self.places = frozenset(place for place in names if self.start <= place < self.start + len(self.bytes))
        self.program, self.met = program, {}

    def run(self, flags, directory):
        child = os.fork()
        if child == 0:
            ptrace(PTRACE_TRACEME, 0)
            os.chdir(directory)
            words = [self.program, "run", *flags.split(), "--", "/bin/true"]
            os.execve(self.program, words, {"PATH": "/usr/bin:/bin", "HOME": os.path.dirname(directory)})
        os.waitpid(child, 0)
        ptrace(PTRACE_SETOPTIONS, child, None, OPTIONS)
        with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory:
            for place in self.places:
                memory.seek(place)
                memory.write(BREAKPOINT)
        ptrace(PTRACE_CONT, child)
        status = None
        while True:
            try:
                thread, event = os.waitpid(-1, WALL)
            except ChildProcessError:
                break
            if os.WIFSTOPPED(event):
                self.stopped(thread, event)
            elif thread == child:
                status = event
        if status != 0:
            sys.exit(f"'sbx run {flags} -- /bin/true' failed: wait status {status}")

    def stopped(self, thread, event):
        number = os.WSTOPSIG(event)
        if event >> 16 == PTRACE_EVENT_EXEC:
            return ptrace(PTRACE_DETACH, thread)
        if number == signal.SIGTRAP:
            self.meet(thread)
        passed_on = 0 if number in (signal.SIGSTOP, signal.SIGTRAP) else number
        ptrace(PTRACE_CONT, thread, None, passed_on)

    def meet(self, thread):
        registers = (ctypes.c_ulong * 27)()
        ptrace(PTRACE_GETREGS, thread, None, ctypes.byref(registers))
        place = registers[RIP] - 1
        if place not in self.places:
            return
        offset = place - self.start
        # A word at a time: what follows in it is as the program has it, but for breakpoints there.
        following = [other - place for other in range(place + 1, place + 8) if other in self.places]
        word = bytearray(self.bytes[offset:offset + 8].ljust(8, b"\0"))
        for distance in following:
            word[distance:distance + 1] = BREAKPOINT
        ptrace(PTRACE_POKETEXT, thread, place, int.from_bytes(word, "little"))
        registers[RIP] = place
        ptrace(PTRACE_SETREGS, thread, None, ctypes.byref(registers))
        self.met.setdefault(place)


def pattern(name):
    """The name without what changes with each build: hashes of crates and of functions."""
    name = re.sub(r"17h[0-9a-f]{16}E", "17h*E", name)
    name = re.sub(r"\.[0-9]+$", ".*", name)
    return re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    names = functions(program)
    trace = Trace(program, names)
    # Not in /tmp, which is no workspace's place.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        workspace = os.path.join(directory, "workspace")
        os.mkdir(workspace)
        for flags in RUNS:
            trace.run(flags, workspace)
        subprocess.run(["git", "init", "-q", workspace], check=True)
        trace.run("", workspace)
    sizes = {}
    for name, size in names.values():
        sizes[pattern(name)] = sizes.get(pattern(name), 0) + size
    met = {}
    for place in trace.met:
        name, size = names[place]
        met[pattern(name)] = met.get(pattern(name), 0) + size
    chosen = [name for name, size in met.items() if sizes[name] - size <= COMPANY]
    print(f"/* The functions that the start of a run calls, in their order. By {os.path.basename(__file__)}. */")
    print("SECTIONS\n{\n  .text.start :\n  {")
    for name in chosen:
        # Those that the compiler takes for cold have sections of another name.
        print(f"    *(.text.{name} .text.unlikely.{name})")
    print("  }\n}\nINSERT BEFORE .text;")
    total = sum(sizes[name] for name in chosen)
    print(f"{len(chosen)} names, {total} bytes; left out {len(met) - len(chosen)}", file=sys.stderr)


main()
