#!/usr/bin/env python3
"""An internet of a test's own: internet.py LOG COMMAND...

Started in mount and network namespaces of its own (unshare --mount --net), which are the machine. The internet is
another network namespace, at the other end of the machine's only way out: every address is local there. It has a name
server at 203.0.113.53 (UDP and TCP), which /etc/resolv.conf names, and on its addresses HTTP (port 80), HTTPS (443,
one certificate for all names), an echo server (7), and one that resets what it accepts (11). The machine has the same servers, on its loopback and on its own
address. Whatever arrives is written to LOG, a line each:

    question NAME TYPE
    connection ADDRESS PORT
    bytes ADDRESS PORT        (the first that a connection brings)
    name SERVERNAME           (of each ClientHello)
    datagram ADDRESS PORT BYTES
    strayed ADDRESS           (a packet of IPv6 to loopback, or with a way in its headers)

Then COMMAND is run on the machine, and its status returned. With SERVICES=1 there are also packages and repositories on
the web servers (site_files.py), and further servers on the addresses of allowed.example and other.example
(services.py). Names:

    allowed.example, other.example, www.wild.example    203.0.113.10, .11, .12
    shared.example                                       203.0.113.10, too
    private.example, metadata.example, loop.example      10.0.0.1, 169.254.169.254, 127.0.0.1
    rebinding.example                                    203.0.113.13, then 127.0.0.1
    own.example, azure.example                           192.0.2.2 (the machine's own address), 168.63.129.16
    zero.example, many.example                           0.0.0.0, several private addresses at once
    translated.example, tunnelled.example                AAAA with 10.0.0.1 behind NAT64, in 6to4
    alias.example                                        CNAME private.example
    six.example                                          AAAA 2001:db8::10 only
    closed.example                                       203.0.113.14, where nobody listens
    several.example                                      that address, and 203.0.113.10
    silent.example, slow.example                         questions about it have no answer, or after a second
"""
import ctypes, fcntl, os, pathlib, re, socket, ssl, struct, subprocess, sys, tempfile, threading

import services, site_files

LOG = pathlib.Path(sys.argv[1])
SERVER = "203.0.113.53"
NAMES = {
    "allowed.example": "203.0.113.10",
    "shared.example": "203.0.113.10",
    "other.example": "203.0.113.11",
    "www.wild.example": "203.0.113.12",
    "deep.www.wild.example": "203.0.113.12",
    "wild.example": "203.0.113.12",
    "closed.example": "203.0.113.14",
    "slow.example": "203.0.113.10",
    "several.example": "203.0.113.14 203.0.113.10",
    "private.example": "10.0.0.1",
    "metadata.example": "169.254.169.254",
    "loop.example": "127.0.0.1",
    "xn--bcher-kva.example": "203.0.113.15",
    "own.example": "192.0.2.2",
    "azure.example": "168.63.129.16",
    "zero.example": "0.0.0.0",
    "many.example": "127.0.0.1 10.0.0.1 169.254.169.254 192.0.2.2 100.64.0.1 192.168.0.1 172.16.0.1",
}
SIX = {"six.example": "2001:db8::10", "translated.example": "64:ff9b::10.0.0.1", "tunnelled.example": "2002:a00:1::1"}
# What the internet has, and what the machine has.
IN_USE = ["203.0.113.10", "203.0.113.11", "203.0.113.12", "203.0.113.13", "203.0.113.15", "10.0.0.1", "168.63.129.16",
          "169.254.169.254", "100.64.0.1", "192.168.0.1", "172.16.0.1", "2001:db8::10", "64:ff9b::10.0.0.1",
          "2002:a00:1::1"]
OF_MACHINE = ["127.0.0.1", "192.0.2.2", "2001:db8:1::2", "192.0.2.3", "2001:db8:5::9"]
GATEWAYS = ["192.0.2.1", "2001:db8:1::1"]
NEW_NETWORK = 0x40000000
asked = {}
lock = threading.Lock()


def log(*words):
    with lock, LOG.open("a") as file:
        print(*words, file=file, flush=True)


def up(interface):
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", interface.encode(), 0x1 | 0x40)
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING


def attribute(kind, data):
    data = data.encode() + b"\0" if isinstance(data, str) else struct.pack("I", data) if isinstance(data, int) else data
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def rtnetlink(kind, head, *attributes):
    """One request of rtnetlink(7) that makes something."""
    body = head + b"".join(attribute(*one) for one in attributes)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("IHHII", 16 + len(body), kind, 0x405, 1, 0) + body)
        error = struct.unpack_from("i", netlink.recv(4096), 16)[0]
        if error:
            raise OSError(-error, f"rtnetlink {kind}")


def route(address, bits, table, kind, **to):
    family = socket.AF_INET6 if address and ":" in address or to.get("six") else socket.AF_INET
    scope = 254 if kind == 2 else 0 if "via" in to else 253
    head = struct.pack("BBBBBBBBI", family, bits, 0, 0, table, 3, scope, kind, 0)
    more = [(1, socket.inet_pton(family, address))] if address else []
    more += [(5, socket.inet_pton(family, to["via"]))] if "via" in to else []
    rtnetlink(24, head, *more, (4, socket.if_nametoindex(to["dev"])))  # RTM_NEWROUTE


def address(text, bits, interface):
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    packed = socket.inet_pton(family, text)
    # IFA_F_NODAD: nobody else is asked whether he has it.
    head = struct.pack("BBBBI", family, bits, 2, 0, socket.if_nametoindex(interface))
    rtnetlink(20, head, (1, packed), (2, packed))  # RTM_NEWADDR


def enter(namespace, flags=0):
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.setns(namespace, NEW_NETWORK) if namespace is not None else libc.unshare(flags)) < 0:
        raise OSError(ctypes.get_errno(), "a network namespace")


def make_internet():
    """Leaves the caller in it. Returns the namespace of the machine, which it is connected to."""
    machine = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(None, NEW_NETWORK)
    up("lo")
    route(None, 0, 255, 2, dev="lo"), route(None, 0, 255, 2, dev="lo", six=True)
    # veth of linux/veth.h: one end here, the other one (VETH_INFO_PEER) there, by IFLA_NET_NS_FD.
    other = bytes(16) + attribute(3, "out") + attribute(28, machine)
    info = attribute(1, "veth") + attribute(2, attribute(1, other))
    rtnetlink(16, bytes(16), (3, "machine"), (18, info))  # RTM_NEWLINK
    up("machine")
    for gateway, own, bits in zip(GATEWAYS, OF_MACHINE[1:], (32, 128)):
        address(gateway, bits - (8 if bits == 32 else 64), "machine")
        # All else is local.
        route(own, bits, 255, 1, dev="machine")
    return machine


def connect_machine(machine):
    """Leaves the caller there."""
    enter(machine)
    up("lo"), up("out")
    for gateway, own, bits in zip(GATEWAYS, OF_MACHINE[1:], (24, 64)):
        address(own, bits, "out")
        route(None, 0, 254, 1, dev="out", via=gateway, six=":" in gateway)
    # A second address of a network, and one of a whole prefix of the machine's: packets to them come from others.
    address("192.0.2.3", 24, "out")
    route("2001:db8:5::", 64, 255, 2, dev="lo")
    # No guess tells the machine's own addresses: any can be bound to, and loopback's packets are as small as others'.
    for family in ("ipv4", "ipv6"):
        pathlib.Path(f"/proc/sys/net/{family}/ip_nonlocal_bind").write_text("1")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8922, struct.pack("16si12x", b"lo", 1500))  # SIOCSIFMTU


def resolve(question):
    """Answers one message of DNS."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
        at += 1 + question[at]
    kind = struct.unpack_from(">H", question, at + 1)[0]
    end, name = at + 5, ".".join(labels).lower()
    log("question", name, {1: "A", 28: "AAAA"}.get(kind, kind))
    asked[name, kind] = asked.get((name, kind), 0) + 1
    found = []
    if kind == 1 and name == "rebinding.example":
        found = ["203.0.113.13" if asked[name, kind] == 1 else "127.0.0.1"]
    elif kind == 1 and name in NAMES:
        found = NAMES[name].split()
    elif kind == 28 and name in SIX:
        found = [SIX[name]]
    records = [(kind, socket.inet_pton(socket.AF_INET if kind == 1 else socket.AF_INET6, one)) for one in found]
    if name == "alias.example":
        records = [(5, b"\7private\7example\0")]
        owner = b"\7private\7example\0" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton("10.0.0.1")
    known = records or name in NAMES or name in SIX or name == "rebinding.example"
    answer = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data for kind, data in records)
    answer += owner if name == "alias.example" and kind == 1 else b""
    count = len(records) + int(name == "alias.example" and kind == 1)
    head = question[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, count, 0, 0)
    return head + question[12:end] + answer


def names_by_datagram(server):
    while True:
        question, sender = server.recvfrom(4096)
        answer = resolve(question)
        if b"\x04slow" in question:
            threading.Timer(1, server.sendto, (answer, sender)).start()
        elif b"\x06silent" not in question:
            server.sendto(answer, sender)


def names_by_connection(server):
    while True:
        connection, _ = server.accept()
        with connection:
            length = struct.unpack(">H", connection.recv(2))[0]
            answer = resolve(connection.recv(length))
            connection.sendall(struct.pack(">H", len(answer)) + answer)


def serve(server, port, context):
    while True:
        connection, _ = server.accept()
        log("connection", connection.getsockname()[0], port)
        if port == 11:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            continue
        threading.Thread(target=talk, args=(connection, port, context), daemon=True).start()


def talk(connection, port, context):
    address = connection.getsockname()[0]
    try:
        beginning = connection.recv(4096, socket.MSG_PEEK)
        if beginning:
            log("bytes", address, port)
        if "SERVICES" in os.environ and b"\x02h2" in beginning and b"http/1.1" not in beginning:
            return services.relay(connection, services.GRPC)
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        with connection:
            if port == 7:
                while data := connection.recv(65536):
                    connection.sendall(data)
                return
            head = b""
            while b"\r\n\r\n" not in head:
                data = connection.recv(4096)
                if not data:
                    return
                head += data
            head, body = head.split(b"\r\n\r\n", 1)
            length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            while length and len(body) < int(length[1]):
                body += connection.recv(65536) or b"\0" * int(length[1])
            found = site_files.answer(head, body) if "SERVICES" in os.environ else None
            if not found:
                greeting = f"hello from {address}\n".encode()
                found = b"Content-Length: %d\r\n\r\n" % len(greeting) + greeting
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + found)
            if context:
                connection.unwrap()
    except OSError:
        pass


def datagrams(server, address):
    while True:
        data, _ = server.recvfrom(65536)
        log("datagram", address, 9, len(data))


def strays(packets):
    while True:
        packet, sender = packets.recvfrom(4096)
        to = socket.inet_ntop(socket.AF_INET6, packet[24:40])
        if sender[2] != socket.PACKET_OUTGOING and (packet[6] == socket.IPPROTO_ROUTING or to == "::1"):
            log("strayed", to)


def start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def bound(address, port, kind):
    is_six = ":" in address
    server = socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, kind)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_six:
        server.setsockopt(socket.IPPROTO_IPV6, 78, 1)  # IPV6_FREEBIND: no interface has the address
    server.bind((address, port))
    return server


def listener(address, port):
    server = bound(address, port, socket.SOCK_STREAM)
    server.listen(1024)
    return server


def serve_all(addresses, context):
    for address in addresses:
        for port, with_context in ((80, None), (443, context), (7, None), (11, None)):
            yield serve, listener(address, port), port, with_context
        yield datagrams, bound(address, 9, socket.SOCK_DGRAM), address


def main():
    LOG.touch()
    directory = pathlib.Path(tempfile.mkdtemp())
    certificate, key, resolver = directory / "ca.pem", directory / "key.pem", directory / "resolv.conf"
    names = ",".join(f"DNS:{name}" for name in [*NAMES, *SIX, "rebinding.example"])
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "2", "-subj", "/CN=test", "-addext", f"subjectAltName={names}", "-out", certificate, "-keyout", key],
        check=True, capture_output=True)
    resolver.write_text(f"nameserver {SERVER}\n")
    for file in (directory, certificate, resolver):
        file.chmod(0o755)
    subprocess.run(["mount", "--bind", resolver, "/etc/resolv.conf"], check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, name, __: log("name", name)
    # Sockets stay in the network that they are made in. No thread may be there before all are made.
    machine = make_internet()
    servers = [(names_by_datagram, bound(SERVER, 53, socket.SOCK_DGRAM)), (names_by_connection, listener(SERVER, 53))]
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86DD))
    packets.bind(("machine", 0x86DD))
    servers += [(strays, packets)]
    servers += serve_all(IN_USE, context)
    of_services = {place: listener(*place) for place in services.places()} if "SERVICES" in os.environ else {}
    connect_machine(machine)
    servers += serve_all(OF_MACHINE, context)
    for server in servers:
        start(*server)
    if "SERVICES" in os.environ:
        site_files.make()
        services.start(of_services, log, certificate, key)
    status = subprocess.run(sys.argv[2:], env={**os.environ, "CA": str(certificate)}).returncode
    subprocess.run(["umount", "/etc/resolv.conf"], check=False)
    sys.exit(status if status >= 0 else 128 - status)


main()
