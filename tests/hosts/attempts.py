"""What attempts to get out are made of: a register, connections, questions, and first bytes of TLS and HTTP."""
import ctypes, pathlib, socket, struct, time

RULES = ["--connect", "allowed.example:80,443", "--connect", "*.wild.example:80", "--connect", "203.0.113.15:80"]
ALLOWED, OTHER, PRIVATE = "203.0.113.10", "203.0.113.11", "10.0.0.1"
LIBC = ctypes.CDLL(None, use_errno=True)
all = []


def attempt(source="", flags=(), seen=(), control=()):
    """Registers a function. `source`: the published hole or class that it repeats, as "identifier: title"; without one
    nobody has published it that we know of. `seen`: lines of the log that the rules allow. `control`: what lines
    have to begin with that have to be there."""

    def register(function):
        all.append((function.__name__, function, source, list(flags), list(seen), list(control)))
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


def listening():
    """The TCP ports that somebody listens at: those of the broker's sockets, too."""
    rows = [row.split() for table in ("/proc/net/tcp", "/proc/net/tcp6") for row in
            pathlib.Path(table).read_text().splitlines()[1:]]
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == "0A"}


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


def extension(kind, contents):
    return struct.pack(">HH", kind, len(contents)) + contents


def counted(data, size=2):
    return len(data).to_bytes(size, "big") + data


def sni(*names):
    """The extension with these server names."""
    return extension(0, counted(b"".join(b"\0" + counted(name) for name in names)))


def handshake(extensions):
    """The message ClientHello of TLS 1.3."""
    body = b"\3\3" + b"R" * 32 + counted(b"S" * 32, 1) + counted(b"\x13\1") + b"\1\0" + counted(extensions)
    return b"\1" + counted(body, 3)


def record(contents, kind=22):
    return bytes([kind, 3, 1]) + counted(contents)


def hello(names, pieces=None, pause=0.0, extensions=b""):
    """A ClientHello with these server names, sent to the address of allowed.example in pieces."""
    message = handshake((sni(*names) if names else b"") + extensions)
    send("allowed.example", 443, record(message), pieces, pause)


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


SEEN_TLS = [f"connection {ALLOWED} 443", f"bytes {ALLOWED} 443", "question allowed.example", "name allowed.example"]
SEEN_HTTP = [f"connection {ALLOWED} 80", f"bytes {ALLOWED} 80", "question allowed.example"]
SEEN_ADDRESS = ["connection 203.0.113.15 80", "bytes 203.0.113.15 80"]
SEEN_BELOW = ["connection 203.0.113.12 80", "bytes 203.0.113.12 80", "question www.wild.example"]
# A host that is allowed may be connected to. What is said to another one must not arrive.
CONNECTED = [f"connection {ALLOWED} 443", f"connection {ALLOWED} 80", "question allowed.example"]
