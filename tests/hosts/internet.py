#!/usr/bin/env python3
"""An internet of a test's own: internet.py LOG COMMAND...

Started in mount and network namespaces of its own (unshare --mount --net). Every address is local here. It has a
name server at 203.0.113.53 (UDP and TCP), which /etc/resolv.conf names, and on every address HTTP (port 80), HTTPS
(443, one certificate for all names) and an echo server (7). Whatever arrives is written to LOG, a line each:

    question NAME TYPE
    connection ADDRESS PORT
    bytes ADDRESS PORT        (the first that a connection brings)
    datagram ADDRESS PORT BYTES

Then COMMAND is run, and its status returned. Names:

    allowed.example, other.example, www.wild.example    203.0.113.10, .11, .12
    shared.example                                       203.0.113.10, too
    private.example, metadata.example, loop.example      10.0.0.1, 169.254.169.254, 127.0.0.1
    rebinding.example                                    203.0.113.13, then 127.0.0.1
    six.example                                          AAAA 2001:db8::10 only
    closed.example                                       203.0.113.14, where nobody listens
    silent.example                                       questions about it have no answer
"""
import fcntl, os, pathlib, socket, ssl, struct, subprocess, sys, tempfile, threading

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
    "private.example": "10.0.0.1",
    "metadata.example": "169.254.169.254",
    "loop.example": "127.0.0.1",
    "xn--bcher-kva.example": "203.0.113.15",
}
IN_USE = ["203.0.113.10", "203.0.113.11", "203.0.113.12", "203.0.113.13", "203.0.113.15", "10.0.0.1",
          "169.254.169.254", "127.0.0.1", "2001:db8::10"]
asked = {}
lock = threading.Lock()


def log(*words):
    with lock, LOG.open("a") as file:
        print(*words, file=file, flush=True)


def all_local():
    """ip link set lo up; ip route add local default dev lo, for both families (rtnetlink(7))."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("BBBBBBBBI", family, 0, 0, 0, 255, 3, 254, 2, 0) + struct.pack("HHI", 8, 4, 1)
            netlink.send(struct.pack("IHHII", 16 + len(body), 24, 0x405, 1, 0) + body)
            answer = netlink.recv(4096)
            error = struct.unpack_from("i", answer, 16)[0]
            if error:
                raise OSError(-error, "RTM_NEWROUTE")


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
    data = None
    if kind == 1 and name == "rebinding.example":
        data = socket.inet_aton("203.0.113.13" if asked[name, kind] == 1 else "127.0.0.1")
    elif kind == 1 and name in NAMES:
        data = socket.inet_aton(NAMES[name])
    elif kind == 28 and name == "six.example":
        data = socket.inet_pton(socket.AF_INET6, "2001:db8::10")
    known = data or name in NAMES or name in ("six.example", "rebinding.example")
    head = question[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, int(data is not None), 0, 0)
    record = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data if data else b""
    return head + question[12:end] + record


def names_by_datagram(server):
    while True:
        question, sender = server.recvfrom(4096)
        answer = resolve(question)
        if b"\x06silent" not in question:
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
        threading.Thread(target=talk, args=(connection, port, context), daemon=True).start()


def talk(connection, port, context):
    address = connection.getsockname()[0]
    log("connection", address, port)
    try:
        if connection.recv(1, socket.MSG_PEEK):
            log("bytes", address, port)
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
            body = f"hello from {address}\n".encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    except OSError:
        pass


def datagrams(server, address):
    while True:
        data, _ = server.recvfrom(65536)
        log("datagram", address, 9, len(data))


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


def main():
    LOG.touch()
    all_local()
    directory = pathlib.Path(tempfile.mkdtemp())
    certificate, key, resolver = directory / "ca.pem", directory / "key.pem", directory / "resolv.conf"
    names = ",".join(f"DNS:{name}" for name in [*NAMES, "six.example", "rebinding.example"])
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
    start(names_by_datagram, bound(SERVER, 53, socket.SOCK_DGRAM))
    start(names_by_connection, listener(SERVER, 53))
    for address in IN_USE:
        for port, with_context in ((80, None), (443, context), (7, None)):
            start(serve, listener(address, port), port, with_context)
        start(datagrams, bound(address, 9, socket.SOCK_DGRAM), address)
    status = subprocess.run(sys.argv[2:], env={**os.environ, "CA": str(certificate)}).returncode
    subprocess.run(["umount", "/etc/resolv.conf"], check=False)
    sys.exit(status if status >= 0 else 128 - status)


main()
