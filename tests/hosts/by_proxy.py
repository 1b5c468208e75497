"""Attempts on the proxy of a run that has no network of its own."""
import os, re, socket, struct, time

from attempts import (ALLOWED, CONNECTED, OTHER, PRIVATE, SEEN_HTTP, SEEN_TLS, attempt, handshake, quietly, record,
                      sni, tcp)

BY_PROXY = ("--namespaces", "none")


def proxy():
    return "127.0.0.1", int(re.search(r":(\d+)$", os.environ["HTTPS_PROXY"])[1])


def say(*parts, pause=0.0, reads=1):
    """Says the parts to the proxy, and reads after each."""

    def talk():
        with socket.create_connection(proxy(), timeout=1) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = []
            for part in parts:
                s.sendall(part)
                time.sleep(pause)
                answers.append(s.recv(4096))
            while answers[-1]:
                answers.append(s.recv(4096))
            return b"".join(answers)

    return quietly(talk)


def connect(target, *more):
    return say(b"CONNECT " + target + b" HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n", *more)


def get(url, headers=b"Host: allowed.example\r\n"):
    return say(b"GET " + url + b" HTTP/1.1\r\n" + headers + b"\r\n")


@attempt(flags=BY_PROXY, seen=SEEN_HTTP, control=[f"bytes {ALLOWED} 80"])
def a_request_to_an_allowed_host():
    get(b"http://allowed.example/")


@attempt(flags=BY_PROXY, seen=SEEN_TLS, control=[f"bytes {ALLOWED} 443"])
def a_tunnel_to_an_allowed_host():
    connect(b"allowed.example:443", record(handshake(sni(b"allowed.example"))))


@attempt("anthropic-experimental/sandbox-runtime#274: Network policy is hostname-only", flags=BY_PROXY)
def tunnels_to_others():
    for target in (b"other.example:443", b"allowed.example:22", b"allowed.example:65536", b"closed.example:443",
                   OTHER.encode() + b":80", PRIVATE.encode() + b":80", b"127.0.0.1:80", b"[::1]:80", b"localhost:80",
                   b"169.254.169.254:80", b"0.0.0.0:80", b"[::ffff:127.0.0.1]:80", b"[::]:80"):
        connect(target)


@attempt("NVIDIA/OpenShell#1498: regression coverage for proxy hostname parser differentials", flags=BY_PROXY)
def odd_targets_of_tunnels():
    for target in (b"other.example:443@allowed.example:443", b"allowed.example:443@other.example:443",
                   b"x@other.example:443", b"other.example\0.allowed.example:443", b"other.example%00.wild.example:80",
                   b"127.1:80", b"2130706433:80", b"0x7f.0.0.1:80", b"0177.0.0.1:80",
                   b"other.example#allowed.example:443",
                   b"other.example:443:443", b"[other.example]:443", b"other.example/allowed.example:443",
                   b"http://other.example/", b"//other.example:443", b".other.example:443", b"other..example:443"):
        connect(target)


@attempt("archie-judd/agent-sandbox.nix#105: the Host header is not checked against the CONNECT authority",
         flags=BY_PROXY, seen=CONNECTED)
def another_server_name_in_a_tunnel():
    hello = record(handshake(sni(b"shared.example")))
    connect(b"allowed.example:443", hello)
    # Before the answer, together with the wish.
    say(b"CONNECT allowed.example:443 HTTP/1.1\r\n\r\n" + hello)
    connect(b"allowed.example:80", b"GET / HTTP/1.1\r\nHost: shared.example\r\n\r\n")
    connect(b"allowed.example:443", b"GET / HTTP/1.1\r\nHost: shared.example\r\n\r\n")


@attempt("anthropics/claude-code#40213: allowedDomains not enforced for plain HTTP", flags=BY_PROXY)
def requests_to_others():
    for url in (b"http://other.example/", b"http://closed.example/", b"http://allowed.example@other.example/",
                b"http://other.example#@allowed.example/", b"http://other.example?allowed.example/",
                b"http://allowed.example:22/", b"https://allowed.example/", b"ftp://allowed.example/",
                b"http:other.example/", b"http://OTHER.example./", b"http://169.254.169.254/", b"/", b"*"):
        get(url), get(url, b"Host: allowed.example\r\nHost: other.example\r\n")
    # What is spoken at this port is not HTTP.
    get(b"http://allowed.example:443/")


@attempt("RFC 9112, 11.2: Request Smuggling", flags=BY_PROXY, seen=SEEN_HTTP)
def a_second_request_to_another_host():
    second = b"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n"
    first = b"POST http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n"
    for framing in (b"Content-Length: 0", b"Content-Length: 5", b"Transfer-Encoding: chunked",
                    b"Content-Length: 0\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: xchunked",
                    b"Content-Length: 0\r\nContent-Length: 90", b"Connection: keep-alive\r\nContent-Length: 0",
                    b"Connection: Upgrade\r\nUpgrade: other\r\nContent-Length: 0"):
        say(first + framing + b"\r\n\r\n" + second)
        say(first + framing + b"\r\n\r\n", b"0\r\n\r\n" + second)


@attempt("RFC 9112, 2.2: bare LF, and what is before the first line", flags=BY_PROXY, seen=SEEN_HTTP)
def heads_that_are_read_in_several_ways():
    for head in (b"\r\nCONNECT other.example:443 HTTP/1.1\r\n\r\n", b"\nGET http://other.example/ HTTP/1.1\n\n",
                 b"GET http://allowed.example/ HTTP/1.1\nX: y\n\nGET http://other.example/ HTTP/1.1\n\n",
                 b"GET http://allowed.example/\r\nHost: other.example\r\n\r\n",
                 b"CONNECT\0other.example:443 HTTP/1.1\r\n\r\n",
                 b"GET http://allowed.example/ HTTP/1.1\r\nHost: a\r\n continued\r\n\r\n",
                 b"GET  http://other.example/  HTTP/1.1\r\n\r\n", b"CONNECT\tother.example:443\tHTTP/1.1\r\n\r\n",
                 b"connect other.example:443 HTTP/1.1\r\n\r\n", b"CONNECT other.example:443 HTTP/2.0\r\n\r\n"):
        say(head)


@attempt("RFC 1928, 4: Requests: names, addresses, BIND and UDP ASSOCIATE", flags=BY_PROXY)
def socks_to_others():
    def socks(command, kind, address, port, methods=b"\5\1\0"):
        say(methods, bytes([5, command, 0, kind]) + address + struct.pack(">H", port))

    def name(text):
        return bytes([len(text)]) + text

    for text in (b"other.example", b"other.example\0.allowed.example", b"127.0.0.1", b"::1", b"127.1", b"", b"[::1]"):
        socks(1, 3, name(text), 80), socks(1, 3, name(text), 443)
    for address in (OTHER, PRIVATE, "127.0.0.1", "0.0.0.0", "169.254.169.254", "198.18.0.2"):
        socks(1, 1, socket.inet_aton(address), 80)
    for address in ("::1", "::", f"::ffff:{OTHER}", "2001:db8::10", "64:ff9b::10.0.0.1"):
        socks(1, 4, socket.inet_pton(socket.AF_INET6, address), 80)
    for command in (2, 3, 0, 255):
        socks(command, 3, name(b"allowed.example"), 443)
    # Without a greeting, with one that offers something else, of another version.
    say(b"\5\1\0\3" + name(b"allowed.example") + b"\1\xbb")
    socks(1, 3, name(b"allowed.example"), 443, b"\5\1\2"), say(b"\4\1\0\x50" + socket.inet_aton(OTHER) + b"x\0")


@attempt(flags=BY_PROXY)
def as_the_supervisor_says_it():
    for text, port in ((b"other.example", 80), (OTHER.encode(), 80), (b"127.0.0.1", 80), (b"allowed.example", 22)):
        say(b"\0" + bytes([len(text)]) + text + struct.pack(">H", port))
    say(b"\0" + b"\xff" * 400)


@attempt("anthropics/claude-code#87381: network allowlist bypassed via in-sandbox relayed CONNECT", flags=BY_PROXY,
         seen=CONNECTED)
def a_tunnel_in_a_tunnel():
    connect(b"allowed.example:443", b"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n")
    connect(b"127.0.0.1:%d" % proxy()[1], b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
    get(b"http://127.0.0.1:%d/" % proxy()[1])


@attempt(flags=BY_PROXY, seen=SEEN_HTTP, control=[f"bytes {ALLOWED} 80"])
def wishes_without_end():
    waiting = [socket.create_connection(proxy()) for _ in range(300)]
    for number, s in enumerate(waiting):
        quietly(lambda: s.sendall((b"GET http://other.example/", b"\5\xff", b"\0\xff", b"")[number % 4]))
    say(b"GET http://other.example/ HTTP/1.1\r\nX: " + b"x" * 100_000)
    say(b"GET http://other.example/ HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n")
    get(b"http://allowed.example/")


@attempt("multikernel/sandlock#27: Sandbox escape by racing seccomp notifications?", flags=BY_PROXY)
def the_sockets_of_the_proxy_by_another_address():
    # Where the supervisor leads connections is its business, and not the program's.
    for address in ("127.0.0.2", "127.255.255.254", ALLOWED):
        quietly(lambda: socket.create_connection((address, proxy()[1]), timeout=2).sendall(
            b"CONNECT other.example:443 HTTP/1.1\r\n\r\n"))


def connected_with(*options):
    """Connects by sockets that were each told where their packets are to go, and then as usual."""
    for level, name, value in options:
        with socket.socket(socket.AF_INET6) as s:
            s.setblocking(False)
            quietly(lambda: s.setsockopt(level, name, value))
            quietly(lambda: s.connect(("::1", 53)))
            time.sleep(0.2)
    tcp("allowed.example", 80, b"GET / HTTP/1.0\r\nHost: allowed.example\r\n\r\n")


@attempt("RFC 8754: IPv6 Segment Routing Header", BY_PROXY, SEEN_HTTP, [f"bytes {ALLOWED} 80"])
def a_routing_header():
    # The packet goes to the last segment first, and has the others with it.
    segments = [bytes(16), b"what is secret..", socket.inet_pton(socket.AF_INET6, "2001:db8::11")]
    header = bytes([0, 2 * len(segments), 4, 2, 2, 0, 0, 0]) + b"".join(segments)
    connected_with((socket.IPPROTO_IPV6, socket.IPV6_RTHDR, header))


@attempt("socket(7): SO_BINDTODEVICE takes no privilege since Linux 5.7", BY_PROXY, SEEN_HTTP, [f"bytes {ALLOWED} 80"])
def another_device():
    connected_with((socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"out\0"),
                   # SO_BINDTOIFINDEX, IPV6_UNICAST_IF
                   *((socket.SOL_SOCKET, 62, struct.pack("i", number)) for number in range(2, 5)),
                   *((socket.IPPROTO_IPV6, 76, struct.pack("!i", number)) for number in range(2, 5)))
