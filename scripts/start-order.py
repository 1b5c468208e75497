#!/usr/bin/env python3
"""Finds the functions that the start of a run calls, in their order, and the constants that these are about.

    scripts/start-order.py PROGRAM MAP >ORDER

PROGRAM is an sbx with its symbols and relocations, linked at a fixed address. MAP is what the linker tells of it. The
result is a linker script that places these functions next to each other, and the constants too. scripts/link-in-order
calls this in the middle of a release build.

The script sets a breakpoint on every function with ptrace(2), runs sbx in its usual ways, and removes each breakpoint
when it is hit. It runs on x86_64 only. The constants of a function are those that its relocations lead to.
"""

import bisect
import collections
import ctypes
import os
import re
import shutil
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
# PTRACE_O_TRACEFORK, _TRACEVFORK, _TRACECLONE, _TRACEEXEC, and _EXITKILL, so that no process outlives this program.
OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000
SHT_RELA, SHF_ALLOC = 4, 2
R_X86_64_64, R_X86_64_PC32, R_X86_64_32, R_X86_64_32S = 1, 2, 10, 11
WALL = 0x40000000
BREAKPOINT = b"\xcc"
RIP = 16

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread, address=None, data=None):
    if libc.ptrace(request, thread, address, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace({request})")


def functions(program):
    """Maps addresses to names and sizes."""
    found = {}
    lines = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    for line in lines.splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tT":
            found[int(parts[0], 16)] = (parts[3], int(parts[1], 16))
    return found


def code(program):
    """The address and the bytes of the code."""
    with open(program, "rb") as file:
        data = file.read()
    table, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for index in range(count):
        kind, flags, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, table + 56 * index)
        if kind == 1 and flags & 1:
            return address, data[offset:offset + size]
    sys.exit(f"'{program}' has no code")


def relocations(program):
    """Places in the program, and the addresses that they are about. Both in the order of the places."""
    with open(program, "rb") as file:
        data = file.read()
    table, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * index) for index in range(count)]
    found = []
    for _, kind, flags, _, offset, size, symbols, _, _, _ in sections:
        if kind != SHT_RELA or flags & SHF_ALLOC:
            continue
        first = sections[symbols][4]
        for place, about, addend in struct.iter_unpack("<QQq", data[offset:offset + size]):
            symbol, way = about >> 32, about & 0xffffffff
            if way in (R_X86_64_64, R_X86_64_PC32, R_X86_64_32, R_X86_64_32S):
                value = struct.unpack_from("<Q", data, first + 24 * symbol + 8)[0]
                # Relative to the end of the instruction, which is mostly the end of these four bytes.
                found.append((place, value + addend + (4 if way == R_X86_64_PC32 else 0)))
    return sorted(found)


def constants(map_file):
    """Sections of constants that have a name of their own: addresses, sizes, names."""
    with open(map_file) as file:
        text = file.read()
    found = re.findall(r"^ (\.rodata\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) ", text, re.MULTILINE)
    often = collections.Counter(name for name, _, _ in found)
    found = [(int(place, 16), int(size, 16), name) for name, place, size in found if often[name] == 1]
    return sorted(part for part in found if part[0] and part[1])


class Constants:
    """The constants that functions are about, in the order of the functions."""

    def __init__(self, program, map_file):
        self.relocations, self.parts = relocations(program), constants(map_file)
        self.places, self.starts = [place for place, _ in self.relocations], [part[0] for part in self.parts]
        self.met = {}

    def of(self, place, size):
        """Adds what this part of the program leads to. Returns what is new among it."""
        first, last = bisect.bisect_left(self.places, place), bisect.bisect_left(self.places, place + size)
        new = []
        for _, target in self.relocations[first:last]:
            index = bisect.bisect_right(self.starts, target) - 1
            part = self.parts[index] if index >= 0 else (0, 0, "")
            if target < part[0] + part[1] and part not in self.met:
                self.met[part] = None
                new.append(part)
        return new

    def follow(self, parts):
        """Adds what these lead to, and what that leads to. Of a table with all profiles a run takes one."""
        for place, size, _ in parts:
            self.follow(self.of(place, size))


class Trace:
    """Runs of the program, and the functions that were called in them."""

    def __init__(self, program, names):
        self.start, self.bytes = code(program)
        self.places = frozenset(place for place in names if self.start <= place < self.start + len(self.bytes))
        self.program, self.met = program, {}

    def run(self, directory, *commands):
        """Runs commands one after the other, until all processes have ended."""
        left = list(commands)
        child = self.begin(left[0], directory)
        while True:
            try:
                thread, event = os.waitpid(-1, WALL)
            except ChildProcessError:
                break
            if os.WIFSTOPPED(event):
                self.stopped(thread, event)
            elif thread == child:
                if event != 0:
                    sys.exit(f"'sbx {left[0]}' failed: wait status {event}")
                left.pop(0)
                child = self.begin(left[0], directory) if left else None

    def begin(self, command, directory):
        child = os.fork()
        if child == 0:
            # A pool takes no commands from a terminal.
            os.setsid()
            ptrace(PTRACE_TRACEME, 0)
            os.chdir(directory)
            os.dup2(2, 1)
            variables = {"PATH": "/usr/bin:/bin", "HOME": os.path.dirname(directory)}
            os.execve(self.program, [self.program, *command.split()], variables)
        os.waitpid(child, 0)
        ptrace(PTRACE_SETOPTIONS, child, None, OPTIONS)
        with open(f"/proc/{child}/mem", "r+b", buffering=0) as memory:
            for place in self.places:
                memory.seek(place)
                memory.write(BREAKPOINT)
        ptrace(PTRACE_CONT, child)
        return child

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
        # ptrace writes whole words: the original bytes, but the breakpoints that follow in the word stay.
        following = [other - place for other in range(place + 1, place + 8) if other in self.places]
        word = bytearray(self.bytes[offset:offset + 8].ljust(8, b"\0"))
        for distance in following:
            word[distance:distance + 1] = BREAKPOINT
        ptrace(PTRACE_POKETEXT, thread, place, int.from_bytes(word, "little"))
        registers[RIP] = place
        ptrace(PTRACE_SETREGS, thread, None, ctypes.byref(registers))
        self.met.setdefault(place)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    names = functions(program)
    trace = Trace(program, names)
    # Not in /tmp: sbx does not take a workspace there.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        workspace = os.path.join(directory, "workspace")
        os.mkdir(workspace)
        for flags in RUNS:
            trace.run(workspace, f"run {flags} -- /bin/true")
        warm = "run --pool -- /bin/true"
        trace.run(workspace, "pool start --size 1", warm, warm, "pool stop")
        if shutil.which("git"):
            subprocess.run(["git", "init", "-q", workspace], check=True)
            trace.run(workspace, "run -- /bin/true")
    print("SECTIONS\n{\n  .text.start :\n  {")
    for place in trace.met:
        # The compiler puts functions that it takes for cold into sections with another prefix.
        name = names[place][0]
        print(f"    *(.text.{name} .text.unlikely.{name})")
    print("  }\n}\nINSERT BEFORE .text;")
    found = Constants(program, sys.argv[2])
    found.follow([part for place in trace.met for part in found.of(place, names[place][1])])
    print("SECTIONS\n{\n  .rodata.start :\n  {")
    for _, _, name in found.met:
        print(f"    *({name})")
    print("  }\n}\nINSERT BEFORE .rodata;")
    print(f"{len(trace.met)} functions, {sum(names[place][1] for place in trace.met)} bytes", file=sys.stderr)
    print(f"{len(found.met)} constants, {sum(part[1] for part in found.met)} bytes", file=sys.stderr)


main()
